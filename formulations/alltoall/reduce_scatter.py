"""Reduce-scatter in minimum time: every rank receives the sum of all ranks' shards for it, and sums are free.

Source  beyond the all-to-all paper; reversed all-gather (:mod:`opticoll.formulations.alltoall.all_gather`, with its
        sources); as packing of trees over switches: ForestColl (Zhao et al., 2024)
Sets    u in V vertices (n); a in A arcs (m); v in R contributing ranks (N)
Data    c_a > 0 capacity [link bandwidths], (m,); every rank has one shard for the sum of every rank
Vars    0 <= h_av <= N-1  flow of contributions of v over arc a [shards], (m, N); 0 <= T <= (N-1) / min_a c_a  time
        [shards / link bandwidth]

min T  s.t.
    balance[u,v]    inflow_u(h_v) - outflow_u(h_v) = 1   (0 where u is not a rank)     u != v
    capacity[a,v]   h_av <= c_a T

This formulation is ours. Contributions of different ranks do *not* add up on an arc: those to the same sum are added
before they are sent, and the partial sum has the size of one. Arcs into v are fixed at 0. The upper bound on T excludes
no optimum: a spanning tree attains it.

Reversal. A schedule run backwards in time over reversed arcs, with a copy for every sum, is an all-gather of the same
time on the reversed topology, and vice versa. So what holds for all-gather holds here with the arcs reversed:

    T >= sum_{s != v} dist_l(v, s) / sum_a c_a l_av     for any lengths l_av >= 0 and any v,
    T* = max over S, some rank not in S, of |S & R| / c(V - S -> S),

and T* is attained by trees towards every rank, if every vertex is a rank or no more capacity enters a vertex that is
not a rank than leaves it. If every arc has a reverse arc of equal capacity, T* is that of the all-gather. Closed
forms: complete 1; d-cube (N-1)/d; n-ring (n-1)/2, directed n-1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from opticoll.formulations.alltoall.all_gather import SharedFlows, cut_bounds

if TYPE_CHECKING:
    from opticoll.formulations.model import Bound
    from opticoll.instances.types import Settings

NAME = "alltoall.reduce-scatter"


class ReduceScatter(SharedFlows):
    """The problem."""

    name = NAME

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model; errors as :meth:`SharedFlows.between_all`."""
        return cls.between_all(instance, away=True)

    def bounds(self) -> list[Bound]:
        """Bounds of the worst cut, which is the optimum, and of the arcs out of one rank."""
        return cut_bounds(self, "what leaves the rank that can send least", "sums of ")


FORMULATION = ReduceScatter
