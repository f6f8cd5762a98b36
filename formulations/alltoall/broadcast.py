"""Broadcast in minimum time: every rank receives the shard of one root, and copies are free.

Source  beyond the all-to-all paper; disjoint branchings: Edmonds 1973; network coding: Ahlswede, Cai, Li & Yeung, IEEE
        Trans. Inf. Theory 46(4), 2000; as packing of trees over switches: ForestColl (Zhao et al., 2024)
Sets    u in V vertices (n); a in A arcs (m); r in V the root, a rank; v in R receiving ranks, all but r (N - 1)
Data    c_a > 0 capacity [link bandwidths], (m,); the root has one shard
Vars    0 <= h_av <= 1  flow towards v over arc a [shards], (m, N-1); 0 <= T <= 1 / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    outflow_u(h_v) - inflow_u(h_v) = 1  at u = r, 0 elsewhere      u != v
    capacity[a,v]   h_av <= c_a T                                                  a not out of v

This formulation is ours. Its rows are those of :mod:`opticoll.formulations.alltoall.all_gather`, which states both
builds, with all supply at r: flows towards different receivers do not add up, because a copy is made where their paths
split. Arcs out of v are fixed at 0. The upper bounds exclude no optimum, so the checker need not know them: a flow
without cycles carries at most the one shard that v receives, and a spanning tree attains that time.

Certificate. For any lengths l_av >= 0 and any v: T >= dist_l(r, v) / sum_a c_a l_av.

Minimum cut. The shard must leave every set S that contains r but not all ranks:

    T >= 1 / c(S -> V - S),        T* = max over such S = 1 / min_v maxflow(r, v).

T* is attained by store-and-forward: as many arc-disjoint trees from r to all ranks exist as the minimum cut admits, if
no more capacity leaves a vertex that is not a rank than enters it (Edmonds; Bang-Jensen, Frank & Jackson 1995).
*Reduce*, the sum of all ranks at r, is the same on the reversed topology, with sums for copies. Closed forms: complete
1/(N-1), d-cube 1/d, n-ring 1/2, directed n-ring 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from opticoll.formulations.alltoall.all_gather import AllGather
from opticoll.formulations.flows import shared_flows as shared
from opticoll.formulations.parameters import Parameter


@dataclass(frozen=True, eq=False)
class Broadcast(AllGather):
    """The problem: a flow of one shard from the root towards every other rank, in the rows of the all-gather.

    ``ends`` are R, ``(N-1,)``, ``supply`` the shards of every vertex, ``(n,)``, ``most`` is 1.
    """

    name = "alltoall.broadcast"
    parameters = (Parameter("root", int, 0, "rank that has the shard, counted from 0"),)

    bounds = shared.root_bounds
    metrics = shared.root_metrics
    _prepare = classmethod(shared.from_root)
    _label_invariant = staticmethod(lambda parameters: False)

    root: int


FORMULATION = Broadcast
