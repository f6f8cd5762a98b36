"""Routing that minimizes the maximum load over given circuits: the best that host-based forwarding could attain.

Source  TopoOpt, section 5.5 (routing strategy, figure 15); Shahrokhi & Matula, J. ACM 37(2), 1990
Sets    u in V servers; a in A circuits; s in S servers that send
Data    circuits and rings of a design, given by the method ``circuits``; c_a = 1 what a circuit carries; D_us >= 0
        demand of server u from s by ``traffic`` [Lambda_0], (n, |S|); Lambda_0 the largest amount that a server sends
        or receives per circuit [bytes]
Vars    f_as >= 0 flow of server s over circuit a [Lambda_0], (m, |S|); F >= 0 served fraction [-]

max F  s.t.
    balance[u,s]   inflow_u(f_s) - outflow_u(f_s) >= F D_su      u != s
    capacity[a]    sum_s f_as <= c_a

Flows of s on circuits into s are fixed at 0. The minimum of the maximum load of the whole demand is Lambda_0 / F, so F
<= 1. Any lengths l >= 0 prove F <= sum_a c_a l_a / sum_us D_us dist_l(s,u).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import feasible_bases
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topoopt import routing_data, routing_solution

if TYPE_CHECKING:
    from opticoll.formulations.model import Values
    from opticoll.formulations.topoopt.circuit_design import CircuitDesign


@dataclass(frozen=True, eq=False)
class FixedCircuits(Formulation):
    """Data of the model: the flow problem, the design with the given circuits, and Lambda_0 [bytes]."""

    name = "topoopt.routing"
    where = "section 5.5, figure 15"
    example = "servers:n=12,degree=4,traffic=dlrm"
    parameters = routing_data.PARAMETERS
    concurrent = "F"
    meaning = "served fraction F of the unit load; largest load of a circuit = unit load / F"
    variables: ClassVar = {"f": ("arc", "source"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "source"), "capacity": ("arc",)}
    units: ClassVar = {"f": "unit loads", "F": ""}  # Lambda_0, ``unit_load`` of the metrics
    _beside = (routing_solution, checks)

    flow: ConcurrentFlow
    design: CircuitDesign
    unit: float
    topology = property(checks.topology)
    _feasible_basis = feasible_bases.tree_basis

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        return cls(*routing_data.flow_over(routing_data.chosen_design(instance, cls.name, **given)))

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f >= F D`` without the rows of the sources, ``f 1 <= c``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        c, D = b.data("c"), b.data("D")
        f, F = b.var("f", upper=self.flow.most), b.var("F")
        b.row("balance", M @ f >= F * D, where=self.flow.served)
        b.row("capacity", cp.sum(f, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,s]``, ``F``, ``balance[u,s]``, ``capacity[a]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        (S,) = b.sets("source")
        c, D = b.data("c"), b.data("D")
        f, F = b.var("f", upper=self.flow.most), b.var("F")

        def balance(u: Any, s: Any) -> Any:
            net = b.sum(f[a, s] for a in into[u]) - b.sum(f[a, s] for a in out_of[u])
            return net - D[u, s] * F >= 0

        b.row("balance", balance, where=lambda u, s: u != s)
        b.row("capacity", lambda a: b.sum(f[a, s] for s in S) <= c[a])
        return b.maximize(F)

    matrix = checks.rows_alone

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, f >= 0 and f = 0 on circuits into s."""
        return checks.flow_residuals(self.flow, values["f"], values["F"])


FORMULATION = FixedCircuits
