"""Routing that minimizes the maximum load over given circuits: the best that host-based forwarding could attain.

Source  TopoOpt, section 5.5 (routing strategy, figure 15); Shahrokhi & Matula, J. ACM 37(2), 1990
Sets    v in V servers; a in A circuits; s in S servers that send
Data    circuits and rings of a design, given by the method ``circuits``; D_st >= 0 demand [bytes] of ``traffic``, in
        units of Lambda_0 = the largest amount that a server sends or receives per circuit, (n, |S|)
Vars    f_as >= 0 flow of server s over circuit a [Lambda_0], (m, |S|); F >= 0 served fraction [-]

max F  s.t.
    balance[u,s]   inflow_u(f_s) - outflow_u(f_s) >= F D_su      u != s
    capacity[a]    sum_s f_as <= 1

Flows of s on circuits into s are fixed at 0. The minimum of the maximum load of the whole demand is Lambda_0 / F, so F
<= 1. Any lengths l >= 0 prove F <= sum_a l_a / sum_st D_st dist_l(s,t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topoopt import routing_solution
from opticoll.formulations.topoopt.circuit_design import CircuitDesign, ports_left, server_pool
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opticoll.formulations.model import Values
    from opticoll.instances.topology import Topology

NAME = "topoopt.routing"
#: Maximum number of servers: larger flow matrices are too large for any solver here.
MOST_SERVERS = 512


@dataclass(frozen=True, eq=False)
class FixedCircuits(Formulation):
    """Data of the model: the flow problem, the design with the given circuits, and Lambda_0 [bytes]."""

    name = NAME
    where = "section 5.5, figure 15"
    example = "servers:n=12,degree=4,traffic=dlrm"
    parameters = (
        Parameter(
            "circuits",
            str,
            default="topology-finder",
            help="method that chooses the circuits",
            choices=("topology-finder", "ocs-reconfig"),
            constructs=True,
        ),
        Parameter(
            "traffic",
            str,
            default="all",
            help="traffic to route: all, or point-to-point only",
            choices=("all", "point-to-point"),
        ),
    )
    concurrent = "F"
    meaning = "served fraction F of the unit load; largest load of a circuit = unit load / F"
    variables: ClassVar = {"f": ("arc", "source"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "source"), "capacity": ("arc",)}
    units: ClassVar = {"f": "unit loads", "F": ""}  # Lambda_0, ``unit_load`` of the metrics

    derived = routing_solution.exact_routing_numbers
    bounds = routing_solution.routing_bounds
    metrics = routing_solution.routing_metrics
    describe = routing_solution.described_routing
    links = routing_solution.routing_links
    certify = checks.length_certificate
    arrays = checks.flow_arrays
    repair = checks.repaired
    sets = checks.senders
    changeable = checks.capacities_and_demands

    flow: ConcurrentFlow
    design: CircuitDesign
    unit: float

    @property
    def topology(self) -> Topology:
        """V and A."""
        return self.flow.topology

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> FixedCircuits:
        """Prepare the data of the model; ``circuits`` is the function that makes the design with the given circuits."""
        pool = server_pool(instance, NAME)
        if pool.n > MOST_SERVERS:
            msg = f"{NAME}: {pool.n} servers have too many flows; use at most {MOST_SERVERS}"
            raise NotApplicable(msg)
        design: CircuitDesign = given["circuits"](pool)
        if given["traffic"] == "all":
            return flow_over(design)
        if not pool.point_to_point.any():
            msg = f"{NAME}: {pool.spec} has no point-to-point traffic; route all traffic with traffic=all"
            raise NotApplicable(msg)
        alone = ServerPool(pool.n, pool.degree, pool.point_to_point, spec=pool.spec)
        return flow_over(routed_design(alone, design.circuits, ()))

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f >= F D`` without the rows of the sources, ``f 1 <= c``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        c, D = b.data("c"), b.data("D")
        f, F = b.var("f", upper=np.where(self.flow.blocked, 0.0, np.inf)), b.var("F")
        b.row("balance", M @ f >= F * D, where=self.flow.served)
        b.row("capacity", cp.sum(f, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,s]``, ``F``, ``balance[u,s]``, ``capacity[a]``."""
        from pyomo.core import quicksum

        b = Pyo(self)
        into, out_of = b.incident()
        (S,) = b.sets("source")
        c, D = b.data("c"), b.data("D")
        f, F = b.var("f", upper=np.where(self.flow.blocked, 0.0, np.inf)), b.var("F")

        def balance(u: Hashable, s: Hashable) -> object:
            net = quicksum(f[a, s] for a in into[u]) - quicksum(f[a, s] for a in out_of[u])
            return net - D[u, s] * F >= 0

        b.row("balance", balance, where=lambda u, s: u != s)
        b.row("capacity", lambda a: quicksum(f[a, s] for s in S) <= c[a])
        return b.maximize(F)

    matrix = checks.rows_alone

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, f >= 0 and f = 0 on circuits into s."""
        return checks.flow_residuals(self.flow, values["f"], values["F"])


def flow_over(design: CircuitDesign) -> FixedCircuits:
    """Build the data for the demand of a design over its circuits."""
    topology, n, demand = design.topology, design.pool.n, design.demand
    out, into = (np.maximum(-free, 1) for free in ports_left(n, 0, design.circuits))
    unit = float(max((demand.sum(axis=1) / out).max(), (demand.sum(axis=0) / into).max()))
    sources = np.flatnonzero(demand.sum(axis=1) > 0)
    blocked = topology.head[:, None] == sources[None, :]
    scaled = demand[sources].T / unit
    flow = ConcurrentFlow(topology, sources, scaled, topology.capacity, blocked, equality=False)
    return FixedCircuits(flow, design, unit)


FORMULATION = FixedCircuits
