r"""Link-based maximum concurrent multicommodity flow: one flow per commodity.

Source  all-to-all paper, (1)-(5), and its matrix form (25)-(28)
Sets    u in V vertices (n); a in A arcs (m); k = (s,t) in K ordered pairs of distinct ranks
Data    c_a > 0 capacity [link bandwidths], (m,); D_uk >= 0 demand of k [shards], (n, |K|), 0 except at u = t_k: 1 (the
        paper's) or ``--set demand=...`` (:mod:`opticoll.instances.demands`), whose pairs without demand are not in K
Vars    f_ak >= 0 flow of commodity k over arc a [link bandwidths], (m, |K|); F >= 0 concurrent flow [link bandwidths /
        shard]

max F  s.t.
    balance[u,k]   (M f)_uk = F D_uk                u != s_k       (26)
    capacity[a]    sum_k f_ak <= c_a                               (2), (27)

(26) at u = s_k is implied and omitted; arcs into s_k and out of t_k are fixed at 0. N(N-1) m + 1 variables.
Certificate: F <= sum_a c_a l_a / sum_k D_k dist_l(s_k,t_k) for any lengths l >= 0.

``printed=true`` builds the sink-inflow reading of (1)-(5), a *relaxation*; the available text lacks the formulas:

    conservation[u,k]   outflow_u(f_k) <= inflow_u(f_k)     u not in {s_k, t_k}      (3)
    delivery[k]         sum_{a into t_k} f_ak >= F D_k                              (4), D_k = D_uk at u = t_k

with ``capacity`` as above and no flow fixed at 0. Commodity k may leave t_k again, so a cycle through t_k delivers
without using s_k: 1/F = 3 on ``path:4`` (T = 4), 1/F = 6 on ``ring:8`` (T = 8). So 1/F is no T, and there is no
schedule. Its dual certificate needs min(dist_l(s,t), shortest cycle of l through t) in place of dist_l(s,t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.alltoall import link_mcf_bounds
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import concurrent_flow
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
    from opticoll.formulations.model import Changeable, Values
    from opticoll.instances.topology import Mask


@dataclass(frozen=True, eq=False)
class LinkFlow(Formulation):
    """The problem: flows by commodity, its targets, and whether (1)-(5) are read by sink inflow."""

    name = "alltoall.link-mcf"
    where = "(1)-(5), (25)-(28)"
    parameters = (
        Parameter("printed", bool, default=False, help="the sink-inflow reading of (1)-(5), a relaxation"),
        concurrent_flow.demand_parameter(),
    )
    concurrent = "F"
    variables: ClassVar = {"f": ("arc", "commodity"), "F": ()}
    constraints: ClassVar = {
        "balance": ("vertex", "commodity"),
        "conservation": ("vertex", "commodity"),
        "delivery": ("commodity",),
        "capacity": ("arc",),
    }
    _beside = (link_mcf_bounds, checks)
    _label_invariant = staticmethod(concurrent_flow.equal_demands)

    flow: ConcurrentFlow
    printed: bool
    topology = property(checks.topology)
    _prepare = classmethod(concurrent_flow.by_commodity)

    @property
    def inner(self) -> Mask:
        """Vertices that only forward a commodity (the rows of ``conservation``), shape ``(n, |K|)``."""
        return self.flow.served & (np.arange(self.topology.n)[:, None] != self.flow.targets)

    def changeable(self) -> Changeable:
        """Capacities and demands."""
        amounts, D = (self.flow.commodities[1], "commodity"), (self.flow.demand, "vertex", "commodity")
        return {"c": (self.flow.capacity, "arc"), "D": amounts if self.printed else D}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f = F D`` without the rows of the sources, ``f 1 <= c``."""
        import cvxpy as cp

        b, flow, M = Cvx(self), self.flow, self.topology.incidence()  # (n, m): +1 into a vertex, -1 out of it
        c, D, F = b.data("c"), b.data("D"), b.var("F")
        if not self.printed:
            f = b.var("f", upper=flow.most)
            b.row("balance", M @ f == F * D, where=flow.served)
        else:
            f = b.var("f")
            b.row("conservation", M @ f >= 0, where=self.inner)
            b.row("delivery", (M.maximum(0) @ f)[flow.targets, np.arange(flow.groups)] >= F * D)
        b.row("capacity", cp.sum(f, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,s,t]``, ``F``, ``balance[u,s,t]``, ``capacity[a]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        (K,) = b.sets("commodity")
        c, F = b.data("c"), b.var("F")

        def net(u: Any, s: Any, t: Any) -> Any:
            return b.sum(f[a, s, t] for a in into[u]) - b.sum(f[a, s, t] for a in out_of[u])

        if not self.printed:
            f = b.var("f", upper=self.flow.most)
            D = b.data("D", where=lambda u, s, t: u == t)
            b.row(
                "balance",
                lambda u, s, t: net(u, s, t) - (D[t, s, t] * F if u == t else 0) == 0,
                where=lambda u, s, t: u != s,
            )
        else:
            f, D = b.var("f"), b.data("D")
            b.row("conservation", lambda u, s, t: net(u, s, t) >= 0, where=lambda u, s, t: u not in (s, t))
            b.row("delivery", lambda s, t: b.sum(f[a, s, t] for a in into[t]) >= D[s, t] * F)
        b.row("capacity", lambda a: b.sum(f[a, s, t] for s, t in K) <= c[a])
        return b.maximize(F)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block; the sink-inflow reading has its own, weaker blocks."""
        if not self.printed:
            return checks.flow_residuals(self.flow, values["f"], values["F"])
        f, F = np.asarray(values["f"], dtype=float), float(np.asarray(values["F"]))
        topology, flow, capacity = self.topology, self.flow, self.flow.capacity
        inflow, outflow = topology.inflow(f), topology.outflow(f)
        size = max(abs(F), 1e-12 * float(capacity.min()))
        arrived = inflow[flow.targets, np.arange(flow.groups)]
        return {
            "nonnegative": float(max(0.0, (-f.min(axis=1, initial=0.0) / capacity).max(), -F / capacity.min())),
            "conservation": float(np.where(self.inner, outflow - inflow, 0.0).max(initial=0.0)) / size,
            "delivery": float(np.maximum(F - arrived / flow.amounts, 0.0).max(initial=0.0)) / size,
            "capacity": float(np.maximum(f.sum(axis=1) / capacity - 1.0, 0.0).max(initial=0.0)),
        }

    @property
    def meaning(self) -> str:  # type: ignore[override]
        """What F is."""
        if self.printed:
            return "F of the sink-inflow reading, at least the concurrent flow [link bandwidths / shard]"
        return "concurrent flow F [link bandwidths / shard]; T = 1/F"


FORMULATION = LinkFlow
