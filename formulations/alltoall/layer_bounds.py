r"""Bound on the load of routes on L layers without cyclic dependencies, from cycles of dependencies.

Let C be a cycle of dependencies. Every layer lacks one of C at least: take one that it lacks, and let X be the set of
those taken, :math:`|X| \le L`. The path of a pair k lacks the one of its layer, so it does not contain X. With e_p the
arcs by which a path p is longer than the shortest path of its pair, the routes have at least

.. math:: \sum_k D_k d_k + \min_{X \subseteq C, |X| = \min(L, |C|)} \sum_k D_k \min_{p \in P_k, X \not\subseteq p} e_p

arcs times shards (a larger X is in fewer paths), d_k being the distance of pair k. Their number is at most the load
times the sum of the capacities. Several cycles add up if each counts other pairs. If every X is in all paths of some
pair, the minimum is infinite, and no routes on L layers exist.

Where there are too many paths, the shortest ones of near pairs are listed; any other path of such a pair is at least
one arc longer, and two if the network has two colours that all arcs change, as tori and pods of even sides.
"""

from __future__ import annotations

from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall.dependencies import Dependencies, acyclic
from opticoll.formulations.flows.path_sets import PathRule, PathSet, build_path_set, count_all

if TYPE_CHECKING:
    from opticoll.formulations.flows.path_flow import PathFlow
    from opticoll.instances.topology import F64, I64, Mask, Topology

#: Most paths that are listed; most sets X of a cycle, and how many are examined at a time; most cycles that are added.
MOST_LISTED, MOST_SETS, SETS, MOST_CYCLES = 20_000, 50_000, 500, 1_000


def near_paths(routing: PathFlow) -> tuple[PathSet, F64]:
    """Shortest paths of the pairs up to the largest distance for which they can be listed, and the pairs' amounts."""
    topology, (sources, targets) = routing.topology, routing.commodities
    hops = topology.hops[np.searchsorted(topology.terminals, sources), targets]
    for most in np.unique(hops)[::-1].tolist():
        near = hops <= most
        pairs, rule = (sources[near], targets[near]), PathRule("shortest", lmax=int(most))
        count, _, complete = count_all(topology, rule, 4 * MOST_LISTED, pairs)
        if complete and count <= MOST_LISTED:
            return build_path_set(topology, rule, routing.name, pairs), routing.amount[near]
    none = np.empty(0, dtype=np.int64)
    return PathSet(topology, none, none, none, np.zeros(1, dtype=np.int64), none), np.empty(0)


def two_coloured(topology: Topology) -> bool:
    """Whether every arc joins a vertex of even distance from the first rank with one of odd distance."""
    odd = topology.hops[0] % 2 == 1
    return bool(np.isfinite(topology.hops[0]).all() and (odd[topology.tail] != odd[topology.head]).all())


class LayerBound:
    """The bound for a problem over paths: all of them if ``listed``, else :func:`near_paths`."""

    def __init__(self, routing: PathFlow, *, listed: bool) -> None:
        self.routing = routing
        self.paths, self.amount = (routing.paths, routing.amount) if listed else near_paths(routing)
        pair, first = self.paths.pair, self.paths.first
        longer = (self.paths.length - self.paths.length[first[:-1]][pair]).astype(float)
        #: D_k e_p of every path, and of a path of every pair that is not listed.
        self.excess = longer * self.amount[pair]
        self.unlisted = (
            np.full(self.amount.size, np.inf) if listed else self.amount * (1 + two_coloured(routing.topology))
        )
        self.dependencies = Dependencies(self.paths)
        self._found: dict[int, float] = {}

    def excess_arcs(self, layers: int) -> float:
        """Arcs times shards beyond the distances that routes on so many layers have at least; infinite if none exist.

        The cycles are found one after the other: those of dependencies that cost most to avoid come first.
        """
        if layers not in self._found:
            left, total = np.ones(self.amount.size, dtype=bool), 0.0
            removed = np.zeros(self.dependencies.size, dtype=bool)
            for _ in range(MOST_CYCLES):
                cycle = self._cycle(left, removed)
                if cycle.size == 0 or total == np.inf:
                    break
                cost, pairs = self._least(cycle, left, layers)
                total += cost
                left[pairs] &= cost <= 0
                removed[cycle] = True
            self._found[layers] = total
        return self._found[layers]

    def _prices(self, left: Mask) -> F64:
        """What the pairs in ``left`` pay in all for lacking a dependency, ``(|E|,)``."""
        path, number = self.dependencies.uses
        pair, first = self.paths.pair[path], self.paths.first
        rank = path - first[pair]
        order = np.lexsort((rank, number, pair))
        key = pair[order] * max(self.dependencies.size, 1) + number[order]
        begin = np.flatnonzero(np.diff(key, prepend=-1))
        if begin.size == 0:
            return np.zeros(self.dependencies.size)
        count = np.diff(np.append(begin, key.size))
        place = np.arange(key.size) - np.repeat(begin, count)
        # The paths of a pair ascend by length: the first one that lacks the dependency is the shortest.
        lacking = np.minimum.reduceat(np.where(rank[order] != place, place, key.size), begin)
        lacking = np.minimum(lacking, count)
        k, e = pair[order][begin], number[order][begin]
        some = lacking < np.diff(first)[k]
        paid = np.where(some, self.excess[np.where(some, first[k] + lacking, 0)], np.inf)
        paid = np.where(left[k], np.minimum(paid, self.unlisted[k]), 0.0)
        return np.asarray(np.bincount(e, paid, self.dependencies.size), dtype=float)

    def _cycle(self, left: Mask, removed: Mask) -> I64:
        """A cycle of dependencies of highest prices, as their numbers; empty if none has positive prices alone."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        price, arcs, pairs = self._prices(left), self.dependencies.arcs, self.dependencies.pairs
        dear = np.flatnonzero((price > 0) & ~removed)
        dear = dear[np.argsort(-price[dear], kind="stable")]
        if acyclic(arcs, pairs[dear]):
            return np.empty(0, dtype=np.int64)
        low, high = 0, dear.size  # the first `high` have a cycle, the first `low` have none
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if acyclic(arcs, pairs[dear[:middle]]) else (low, middle)
        first, second = pairs[dear[:high]].T
        graph = csr_array((np.ones(high), (first, second)), shape=(arcs, arcs))
        a, b = int(first[-1]), int(second[-1])  # the last dependency closes a cycle
        before = breadth_first_order(graph, b)[1]
        walk = [a]
        while walk[-1] != b:
            walk.append(int(before[walk[-1]]))
        ends = np.array(walk[::-1])
        return np.searchsorted(pairs[:, 0] * arcs + pairs[:, 1], ends * arcs + np.roll(ends, -1))

    def _least(self, cycle: I64, left: Mask, layers: int) -> tuple[float, I64]:
        """The minimum over X of what the pairs in ``left`` pay, and the pairs that have a part of the cycle."""
        path, number = self.dependencies.uses
        place = np.full(self.dependencies.size, -1)
        place[cycle] = np.arange(cycle.size)
        inside = place[number] >= 0
        pairs = np.unique(self.paths.pair[path[inside]])
        pairs = pairs[left[pairs]]
        chosen = np.flatnonzero(np.isin(self.paths.pair, pairs))
        row = np.full(self.paths.paths, -1)
        row[chosen] = np.arange(chosen.size)
        has = np.zeros((chosen.size, cycle.size), dtype=bool)
        inside &= row[path] >= 0
        has[row[path[inside]], place[number[inside]]] = True
        size = min(layers, cycle.size)
        if comb(cycle.size, size) > MOST_SETS or pairs.size == 0:
            return 0.0, pairs
        first = np.searchsorted(self.paths.pair[chosen], pairs)
        sets, least = combinations(range(cycle.size), size), np.inf
        while block := list(islice(sets, SETS)):
            contained = has[:, np.array(block)].all(axis=2)
            paid = np.where(contained, np.inf, self.excess[chosen][:, None])
            of_pair = np.minimum(np.minimum.reduceat(paid, first, axis=0), self.unlisted[pairs][:, None])
            least = min(least, float(of_pair.sum(axis=0).min()))
        return least, pairs
