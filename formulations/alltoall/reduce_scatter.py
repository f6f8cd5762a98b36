"""Reduce-scatter in minimum time: every rank receives the sum of all ranks' shards for it, and sums are free.

Source  beyond the all-to-all paper; reversed all-gather (:mod:`opticoll.formulations.alltoall.all_gather`, with its
        sources); as packing of trees over switches: ForestColl (Zhao et al., 2024)
Sets    u in V vertices (n); a in A arcs (m); v in R contributing ranks (N)
Data    c_a > 0 capacity [link bandwidths], (m,); every rank has one shard for the sum of every rank
Vars    0 <= h_av <= N-1  flow of contributions of v over arc a [shards], (m, N); 0 <= T <= (N-1) / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    inflow_u(h_v) - outflow_u(h_v) = 1   (0 where u is not a rank)     u != v
    capacity[a,v]   h_av <= c_a T                                                      a not into v

This formulation is ours. Contributions of different ranks do *not* add up on an arc: those to the same sum are added
before they are sent, and the partial sum has the size of one. Arcs into v are fixed at 0. The upper bounds exclude no
optimum, so the checker need not know them: a flow without cycles carries at most the N-1 shards that v receives, and a
spanning tree attains that time.

Reversal. A schedule run backwards in time over reversed arcs, with a copy for every sum, is an all-gather of the same
time on the reversed topology, and vice versa. So what holds for all-gather holds here with the arcs reversed:

    T >= sum_{s != v} dist_l(v, s) / sum_a c_a l_av     for any lengths l_av >= 0 and any v,
    T* = max over S, some rank not in S, of |S & R| / c(V - S -> S),

with dist_l(v, s) the length of a shortest path to rank s, R the ranks, and c(V - S -> S) the capacity of the arcs
from V - S to S; and T* is attained by trees towards every rank, if every vertex is a rank or no more capacity enters
a vertex that is not a rank than leaves it. If every arc has a reverse arc of equal capacity, T* is that of the
all-gather. Closed forms: complete 1; d-cube (N-1)/d; n-ring (n-1)/2, directed n-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import shared_flows as shared
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64, Topology


@dataclass(frozen=True, eq=False)
class ReduceScatter(Formulation):
    """The problem: a flow of one shard from every rank towards every sum.

    ``ends`` are R, ``(N,)``, ``supply`` the shards of every vertex, ``(n,)``, ``most`` is N - 1.
    """

    name = "alltoall.reduce-scatter"
    where = "beyond the paper"
    meaning = "time T [shards / link bandwidth]"
    variables: ClassVar = {"h": ("arc", "contributor"), "T": ()}
    constraints: ClassVar = {"balance": ("vertex", "contributor"), "capacity": ("arc", "contributor")}
    units: ClassVar = shared.UNITS
    _beside = (shared,)

    _prepare = classmethod(shared.between_all)

    topology: Topology
    ends: I64
    supply: F64
    most: int
    away: ClassVar = True  # flows lead away from their rank on the reversed topology

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the flows that do not lead from their contributor."""
        b, topology, c, nodes = Cvx(self), self.topology, self.topology.capacity, np.arange(self.topology.n)
        flows = Index.of_mask("arc contributor", topology.head[:, None] != self.ends)
        flows = flows.given(tail=topology.tail[flows["arc"]], head=topology.head[flows["arc"]])
        rows = Index.of_mask("vertex contributor", nodes[:, None] != self.ends)
        h, T = b.var("h", upper=self.most, over=flows), b.var("T", upper=self.most / c.min())
        net = rows.of(flows, head="vertex") - rows.of(flows, tail="vertex")
        b.row("balance", net @ h == self.supply[rows["vertex"]], over=rows)
        b.row("capacity", h <= c[flows["arc"]] * T, over=flows)
        return b.minimize(T)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``h[a,v]``, ``T``, ``balance[u,v]``, ``capacity[a,v]``."""
        b = Pyo(self)
        into, out_of = b.incident()
        c, supply = b.by_label(self.topology.capacity, "arc"), b.by_label(self.supply, "vertex")
        h = b.var("h", upper=self.most, where=lambda a, v: a not in into[v])
        T = b.var("T", upper=self.most / min(c.values()))

        def balance(u: Hashable, v: Hashable) -> Any:
            return b.sum(h[a, v] for a in into[u]) - b.sum(h[a, v] for a in out_of[u]) == supply[u]

        b.row("balance", balance, where=lambda u, v: u != v)
        b.row("capacity", lambda a, v: h[a, v] <= c[a] * T, where=lambda a, v: a not in into[v])
        return b.minimize(T)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``balance``, ``capacity``, h >= 0 and h = 0 on arcs into v."""
        return shared.shared_residuals(self, values)


FORMULATION = ReduceScatter
