"""Maximum concurrent flow grouped by source: the master LP of the decomposition.

Source  all-to-all paper, (6)-(9)
Sets    u in V vertices (n); a in A arcs (m); s in S sources (the ranks that send), ascending
Data    c_a > 0 capacity [link bandwidths], (m,); D_su >= 0 demand of rank u from source s [shards], (N, N): 1 for
        all u != s (the paper's) or ``--set demand=...`` (:mod:`opticoll.instances.demands`)
Vars    g_as >= 0 flow from source s over arc a [link bandwidths], (m, |S|); F >= 0 concurrent flow [link bandwidths /
        shard]

max F  s.t.
    balance[u,s]   inflow_u(g_s) - outflow_u(g_s) >= F D_su  (>= 0 where u is not a rank)  u != s        (8)
    capacity[a]    sum_s g_as <= c_a                                                                     (7)

Arcs into s are fixed at 0. The optimum is that of ``alltoall.link-mcf`` with 1/(N-1) of its variables: m |S| + 1.
T = 1/F is the time in which all of D is sent. Certificate: F <= sum_a c_a l_a / sum_su D_su dist_l(s,u) for any lengths
l >= 0. Closed forms: those of the families (:mod:`opticoll.instances.families`). For a single pair, F is the maximum
flow over the demand. The paper reports solving it at N=1000, d=4 in 40 minutes with MOSEK (figure 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import concurrent_flow, feasible_bases
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from opticoll.formulations.model import Values


@dataclass(frozen=True, eq=False)
class Master(Formulation):
    """The problem: flows by source."""

    name = "alltoall.master"
    where = "(6)-(9)"
    parameters = (concurrent_flow.demand_parameter(),)
    concurrent = "F"
    variables: ClassVar = {"g": ("arc", "source"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "source"), "capacity": ("arc",)}
    _beside = (checks,)
    _label_invariant = staticmethod(concurrent_flow.equal_demands)

    _bound_parts = checks.analytic_bounds
    _closed_forms = checks.declared_optimum
    _feasible_basis = feasible_bases.tree_basis

    flow: ConcurrentFlow
    topology = property(checks.topology)
    _prepare = classmethod(concurrent_flow.by_source)

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M g >= F D`` without the rows of the sources, ``g 1 <= c``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        c, D = b.data("c"), b.data("D")
        g, F = b.var("g", upper=self.flow.most), b.var("F")
        b.row("balance", M @ g >= F * D, where=self.flow.served)
        b.row("capacity", cp.sum(g, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``g[a,s]``, ``F``, ``balance[u,s]``, ``capacity[a]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        (S,) = b.sets("source")
        c, D = b.data("c"), b.data("D")
        g, F = b.var("g", upper=self.flow.most), b.var("F")

        def balance(u: Any, s: Any) -> Any:
            net = b.sum(g[a, s] for a in into[u]) - b.sum(g[a, s] for a in out_of[u])
            return net - D[u, s] * F >= 0

        b.row("balance", balance, where=lambda u, s: u != s)
        b.row("capacity", lambda a: b.sum(g[a, s] for s in S) <= c[a])
        return b.maximize(F)

    matrix = checks.rows_alone

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, g >= 0 and g = 0 on arcs into s."""
        return checks.flow_residuals(self.flow, values["g"], values["F"])


FORMULATION = Master
