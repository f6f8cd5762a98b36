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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.alltoall import link_mcf_bounds
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import (
    ConcurrentFlow,
    demand_parameter,
    demanded_traffic,
    equal_demands,
    pairs_of,
)
from opticoll.formulations.model import CvxpyModel, Formulation, Parameter, PyomoModel
from opticoll.formulations.variables import Axis, pair_axis

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opticoll.formulations.model import Changeable, Values
    from opticoll.instances.topology import F64, I64, Mask, Topology


@dataclass(frozen=True, eq=False)
class LinkFlow(Formulation):
    """The problem: flows by commodity, its targets, and whether (1)-(5) are read by sink inflow."""

    name = "alltoall.link-mcf"
    where = "(1)-(5), (25)-(28)"
    parameters = (
        Parameter("printed", bool, default=False, help="the sink-inflow reading of (1)-(5), a relaxation"),
        demand_parameter(),
    )
    concurrent = "F"
    variables: ClassVar = {"f": ("arc", "commodity"), "F": ()}
    constraints: ClassVar = {
        "balance": ("vertex", "commodity"),
        "conservation": ("vertex", "commodity"),
        "delivery": ("commodity",),
        "capacity": ("arc",),
    }
    label_invariant = staticmethod(equal_demands)

    arrays = checks.flow_arrays
    derived = checks.demands
    links = checks.flow_links

    flow: ConcurrentFlow
    targets: I64
    printed: bool

    @property
    def topology(self) -> Topology:
        """V and A."""
        return self.flow.topology

    @property
    def amount(self) -> F64:
        """D_k, shape ``(|K|,)``."""
        return self.flow.demand[self.targets, np.arange(self.targets.size)]

    @property
    def inner(self) -> Mask:
        """Vertices that only forward a commodity (the rows of ``conservation``), shape ``(n, |K|)``."""
        mask = self.flow.served.copy()
        mask[self.targets, np.arange(self.targets.size)] = False
        return mask

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The problem on a topology; errors as :func:`.concurrent_flow.demanded_traffic`."""
        topology, traffic = demanded_traffic(instance, given, cls.name)
        sources, targets, amount = pairs_of(topology, traffic)
        flow = ConcurrentFlow.by_commodity(topology, sources, targets, amount)
        return cls(flow, targets, given["printed"])

    def sets(self) -> dict[str, Axis]:
        """The pairs of ranks with demand."""
        return {"commodity": pair_axis(self.topology, self.flow.sources, self.targets)}

    def changeable(self) -> Changeable:
        """Capacities and demands."""
        if self.printed:
            return {}
        return {"c": (self.flow.capacity, "arc"), "D": (self.flow.demand, "vertex", "commodity")}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f = F D`` without the rows of the sources, ``f 1 <= c``."""
        import cvxpy as cp

        b, topology, flow = Cvx(self), self.topology, self.flow
        F = b.var("F")
        c: Any
        if not self.printed:
            c, D = b.data("c"), b.data("D")
            f = b.var("f", upper=np.where(flow.blocked, 0.0, np.inf))
            b.row("balance", topology.incidence() @ f == F * D, where=flow.served)
        else:
            c, f, arrivals = flow.capacity, b.var("f"), topology.incidence().maximum(0)
            b.row("conservation", topology.incidence() @ f >= 0, where=self.inner)
            b.row("delivery", (arrivals @ f)[self.targets, np.arange(flow.groups)] >= F * self.amount)
        b.row("capacity", cp.sum(f, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,s,t]``, ``F``, ``balance[u,s,t]``, ``capacity[a]``."""
        from pyomo.core import quicksum

        b = Pyo(self)
        into, out_of = b.incident()
        (K,) = b.sets("commodity")
        F = b.var("F")

        def net(u: Hashable, s: Hashable, t: Hashable) -> Any:
            return quicksum(f[a, s, t] for a in into[u]) - quicksum(f[a, s, t] for a in out_of[u])

        if not self.printed:
            c, D = b.data("c"), b.data("D", where=lambda u, s, t: u == t)
            f = b.var("f", upper=np.where(self.flow.blocked, 0.0, np.inf))
            b.row(
                "balance",
                lambda u, s, t: net(u, s, t) - (D[t, s, t] * F if u == t else 0) == 0,
                where=lambda u, s, t: u != s,
            )
        else:
            c, d = b.by_label(self.flow.capacity, "arc"), b.by_label(self.amount, "commodity")
            f = b.var("f")
            b.row("conservation", lambda u, s, t: net(u, s, t) >= 0, where=lambda u, s, t: u not in (s, t))
            b.row("delivery", lambda s, t: quicksum(f[a, s, t] for a in into[t]) >= d[s, t] * F)
        b.row("capacity", lambda a: quicksum(f[a, s, t] for s, t in K) <= c[a])
        return b.maximize(F)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block; the sink-inflow reading has its own, weaker blocks."""
        if not self.printed:
            return checks.flow_residuals(self.flow, values["f"], values["F"])
        f, F = np.asarray(values["f"], dtype=float), float(np.asarray(values["F"]))
        topology, groups, capacity = self.topology, self.flow.groups, self.flow.capacity
        if f.shape != (topology.arcs, groups) or not np.isfinite(f).all() or not np.isfinite(F):
            return dict.fromkeys(("nonnegative", "conservation", "delivery", "capacity"), np.inf)
        inflow, outflow = topology.inflow(f), topology.outflow(f)
        size = max(abs(F), 1e-12 * float(capacity.min()))
        arrived = inflow[self.targets, np.arange(groups)]
        return {
            "nonnegative": float(max(0.0, (-f.min(axis=1, initial=0.0) / capacity).max(), -F / capacity.min())),
            "conservation": float(np.where(self.inner, outflow - inflow, 0.0).max(initial=0.0)) / size,
            "delivery": float(np.maximum(F - arrived / self.amount, 0.0).max(initial=0.0)) / size,
            "capacity": float(np.maximum(f.sum(axis=1) / capacity - 1.0, 0.0).max(initial=0.0)),
        }

    @property
    def meaning(self) -> str:  # type: ignore[override]
        """What F is."""
        if self.printed:
            return "F of the sink-inflow reading, at least the concurrent flow [link bandwidths / shard]"
        return "concurrent flow F [link bandwidths / shard]; T = 1/F"

    certify = link_mcf_bounds.certify
    bounds = link_mcf_bounds.bounds
    closed_forms = link_mcf_bounds.closed_forms
    metrics = link_mcf_bounds.metrics
    repair = link_mcf_bounds.repaired


FORMULATION = LinkFlow
