r"""Trees from one rank of every orbit of translations, whose translated copies are a packing.

Source  translated trees on Cayley graphs: ours; column generation: Gilmore & Gomory, Oper. Res. 9(6), 1961; minimum
        arborescences: Edmonds, J. Res. NBS 71B, 1967
Data    g translations; roots i, one of each orbit of ranks; P orbits of arcs, C_P the sum of their capacities; D trees
        per shard

A tree of root i that has q_P arcs in orbit P loads every arc of P, together with its translated copies, by
q_P g / |P|, so

    T = max_P  g / (D C_P) sum over the D trees of all roots of q_P.

*Shortest paths.* Where no arc ends at a switch, every rank v may take its parent of any root among the vertices one hop
nearer to it: any choices are D trees. The fewest of an orbit that the busiest one needs are a max-flow from orbits,
which hold at most D T C_P / g arcs each, to the pairs (i, v), which need D.

*Trees by price.* Otherwise, or if that exceeds the worst cut, trees are columns of a linear program,

    min T   s.t.   sum_tau q_P(tau) g x_tau <= C_P T  (price l_P),   sum of x over the trees of root i = 1,

and a tree that may improve it is a minimum arborescence of hops between ranks: the shortest ways through switches,
under lengths g l_P / C_P. The sum of the minima over the roots is a bound on every packing without copies at switches
(:attr:`PricedTrees.bound`). Whole numbers of the columns for the smallest D without loss are an integer program.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Self

import numpy as np

from opticoll.instances.translations import first_of_orbits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opticoll.formulations.flows.worst_cuts import Network
    from opticoll.instances.topology import F64, I64, Mask

#: Bisections of the time in which shortest paths suffice.
BISECTIONS = 12
#: Maximum numbers of trees that are priced, of roots, and of roots times orbits of arcs.
MOST_PRICED, MOST_ROOTS, MOST_ROWS = 400, 32, 2000
#: Maximum number of hops between ranks, for all roots together.
MOST_HOPS = 5_000_000
#: Relative distance between the program over trees and its bound at which no more are priced; least relative price.
CLOSED, LEAST = 1e-9, 1e-10
#: Seconds for one integer program.
WHOLE_S = 2.0


@dataclass(frozen=True)
class PackedTree:
    """``count`` equal trees from ``root`` to all ranks.

    ``paths`` lead from a vertex of the tree through switches to a rank that is not in it yet, in an order in which
    the first vertex has been reached before.
    """

    root: int
    count: int
    paths: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, root: int, count: int, paths: Mapping[int, tuple[int, ...]]) -> Self:
        """The trees whose paths to every rank from its parent are these."""
        return cls(root, count, tuple(paths[v] for v in top_down(root, paths)))


@dataclass(frozen=True)
class RootTrees:
    """``chunks`` trees of every root, and the time of them with their copies [shards / unit of the network]."""

    chunks: int
    trees: tuple[PackedTree, ...]
    time: Fraction


class JointOrbits:
    """Orbits of joint arcs under translations ``(g, n)``: ``label`` of every arc, ``room`` C_P of every orbit."""

    def __init__(self, network: Network, images: I64) -> None:
        n = network.n
        self.network, self.images = network, images
        self.roots = first_of_orbits(network.ranks, images)
        key = network.tail * n + network.head
        order = np.argsort(key)
        place = np.full(key.size, key.size)
        for image in images:
            moved = np.searchsorted(key[order], image[network.tail] * n + image[network.head])
            np.minimum(place, moved, out=place)
        first, self.label = np.unique(place, return_inverse=True)
        self.room = [0] * first.size
        for orbit, c in zip(self.label.tolist(), network.capacity, strict=True):
            self.room[orbit] += c
        self.key, self.of_key = key[order], self.label[order]

    def time(self, counts: Iterable[int], chunks: int) -> Fraction:
        """The time of trees with so many arcs in every orbit."""
        g = len(self.images)
        return max(Fraction(int(q) * g, chunks * c) for q, c in zip(counts, self.room, strict=True))

    def orbit(self, tail: I64, head: I64) -> I64:
        """The orbits of arcs that exist."""
        return self.of_key[np.searchsorted(self.key, tail * self.network.n + head)]


def translated_trees(network: Network, images: I64, time: Fraction, numbers: Sequence[int]) -> RootTrees | None:
    """The trees of the roots of least time for one of these numbers per shard; None if there are too many of them.

    ``time`` is that of the worst cut; the first number that attains it is taken.
    """
    orbits = JointOrbits(network, images)
    if orbits.roots.size > MOST_ROOTS or orbits.roots.size * len(orbits.room) > MOST_ROWS:
        return None
    best = _by_shortest_paths(orbits, time, numbers)
    if best is None or best.time > time:
        other = PricedTrees(orbits).whole(sorted(numbers), best)
        best = other if best is None or (other is not None and other.time < best.time) else best
    return best


# Shortest paths ---------------------------------------------------------------------------------------------------


def _by_shortest_paths(orbits: JointOrbits, time: Fraction, numbers: Sequence[int]) -> RootTrees | None:
    """The best trees of shortest paths among these numbers; None if some rank is reached through switches only."""
    network = orbits.network
    between = np.isin(network.tail, network.ranks) & np.isin(network.head, network.ranks)
    nearer = [_nearer(network, between, root) for root in orbits.roots.tolist()]
    if any(arcs is None for arcs in nearer):
        return None
    best: RootTrees | None = None
    for D in numbers:
        found = _ShortestTrees(orbits, [arcs for arcs in nearer if arcs is not None], D).least(time)
        if best is None or found.time < best.time:
            best = found
        if best.time <= time:
            break
    return best


def _nearer(network: Network, between: Mask, root: int) -> I64 | None:
    """The arcs of shortest paths from a root over ranks alone; None if they do not reach all."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    arcs = np.flatnonzero(between)
    ends = network.tail[arcs], network.head[arcs]
    away = dijkstra(csr_array((np.ones(arcs.size), ends), shape=(network.n,) * 2), indices=root, unweighted=True)
    if not np.isfinite(away[network.ranks]).all():
        return None
    return np.asarray(arcs[away[ends[0]] + 1 == away[ends[1]]])


class _ShortestTrees:
    """D trees of shortest paths for every root: choices of orbits by the pairs (root, rank) as a max-flow."""

    def __init__(self, orbits: JointOrbits, nearer: list[I64], chunks: int) -> None:
        network = orbits.network
        self.orbits, self.chunks, self.nearer = orbits, chunks, nearer
        self.pairs = len(nearer) * (network.ranks.size - 1)
        arcs = np.concatenate(nearer)
        place = np.repeat(np.arange(len(nearer)), [one.size for one in nearer])
        pair = np.unique(place * network.n + network.head[arcs], return_inverse=True)[1]
        first = np.unique(pair * len(orbits.room) + orbits.label[arcs], return_index=True)[1]
        #: One arc for every pair and orbit in which it has one.
        self.arc, self.root, self.pair, self.orbit = arcs[first], place[first], pair[first], orbits.label[arcs[first]]

    def least(self, time: Fraction) -> RootTrees:
        """Trees of the least time, at least that of the worst cut, to one part in 2**BISECTIONS."""
        low, high = time, time
        while (flow := self._flow(high)) is None:
            low, high = high, 2 * high
        for _ in range(BISECTIONS if high > time else 0):
            middle = (low + high) / 2
            closer = self._flow(middle)
            low, high, flow = (low, middle, closer) if closer is not None else (middle, high, flow)
        return self._trees(flow)

    def _flow(self, time: Fraction) -> I64 | None:
        """How many of the D trees take every arc within a time, ``(arcs,)``; None if that time is too short."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        orbits, D, g = self.orbits, self.chunks, len(self.orbits.images)
        holds = np.array([min(int(time * D * c / g), D * self.pairs) for c in orbits.room], dtype=np.int32)
        classes = np.arange(holds.size)
        source = holds.size + self.pairs
        sink = source + 1
        pairs = holds.size + np.arange(self.pairs)
        ends = np.concatenate([np.full(holds.size, source), self.orbit, pairs])
        to = np.concatenate([classes, holds.size + self.pair, np.full(self.pairs, sink)])
        most = np.concatenate([holds, np.full(self.arc.size + self.pairs, D)]).astype(np.int32)
        graph = csr_array((most, (ends, to)), shape=(sink + 1, sink + 1))
        found = maximum_flow(graph, source, sink)
        if found.flow_value < D * self.pairs:
            return None
        return np.asarray(found.flow[self.orbit, holds.size + self.pair]).ravel().astype(np.int64)

    def _trees(self, flow: I64) -> RootTrees:
        """The trees: each rank's parents, in turn; trees that are equal are one."""
        network, D = self.orbits.network, self.chunks
        chosen: list[list[dict[int, tuple[int, ...]]]] = [[{} for _ in range(D)] for _ in self.nearer]
        filled: dict[tuple[int, int], int] = {}
        for arc, root, many in zip(self.arc.tolist(), self.root.tolist(), flow.tolist(), strict=True):
            u, v = int(network.tail[arc]), int(network.head[arc])
            for _ in range(many):
                j = filled.get((root, v), 0)
                filled[root, v] = j + 1
                chosen[root][(j + v) % D][v] = (u, v)
        trees = []
        for root, mine in zip(self.orbits.roots.tolist(), chosen, strict=True):
            alike: dict[tuple[tuple[int, tuple[int, ...]], ...], int] = {}
            for paths in mine:
                key = tuple(sorted(paths.items()))
                alike[key] = alike.get(key, 0) + 1
            trees += [PackedTree.of(root, count, dict(key)) for key, count in alike.items()]
        counts = np.bincount(self.orbit, flow, minlength=len(self.orbits.room))
        return RootTrees(D, tuple(trees), self.orbits.time(counts.astype(np.int64).tolist(), D))


# Trees by price ---------------------------------------------------------------------------------------------------


class PricedTrees:
    """The linear program over trees, by column generation: its columns, its value and ``bound``.

    ``bound`` [shards / unit of the network] is a bound on the time of every packing whose switches only forward, in
    floating point.
    """

    def __init__(self, orbits: JointOrbits) -> None:
        self.orbits, self.value, self.bound = orbits, np.inf, 0.0
        network, g = orbits.network, len(orbits.images)
        self.rank = np.full(network.n, -1)
        self.rank[network.ranks] = np.arange(network.ranks.size)
        self.scale = g / np.array([float(c) for c in orbits.room])
        #: Trees as (place of the root, paths of the hops by rank, numbers of arcs by orbit).
        self.columns: list[tuple[int, dict[int, tuple[int, ...]], I64]] = []
        self.used: F64 = np.zeros(0)
        self.generate()

    def generate(self) -> None:
        """Price trees until none improves the program, the bound is attained, or there are too many."""
        prices = np.ones(len(self.orbits.room))
        seen: set[tuple[int, ...]] = set()
        while len(self.columns) < MOST_PRICED:
            prices = np.maximum(prices, LEAST * prices.max())  # of ways of length 0, those of fewer arcs are better
            lengths = prices / prices.sum() * self.scale
            trees = self._cheapest(lengths)
            if trees is None:
                return
            self.bound = max(self.bound, float(sum(counts @ lengths for _, _, counts in trees)))
            new = [tree for tree in trees if (tree[0], *tree[2].tolist()) not in seen]
            if not new or self.value <= self.bound * (1 + CLOSED):
                return
            self.columns += new
            seen |= {(tree[0], *tree[2].tolist()) for tree in new}
            self.value, prices = self._solved()

    def _solved(self) -> tuple[float, F64]:
        """The value and the prices l_P at the optimum over the columns."""
        from scipy.optimize import linprog

        rows, roots = len(self.orbits.room), self.orbits.roots.size
        counts = np.array([counts for _, _, counts in self.columns], dtype=float).T * self.scale[:, None]
        mine = np.arange(roots)[:, None] == [place for place, _, _ in self.columns]
        solved = linprog(
            np.append(np.zeros(len(self.columns)), 1.0),
            A_ub=np.column_stack([counts, np.full(rows, -1.0)]),
            b_ub=np.zeros(rows),
            A_eq=np.column_stack([mine.astype(float), np.zeros(roots)]),
            b_eq=np.ones(roots),
            method="highs",
        )
        self.used = np.asarray(solved.x[:-1])
        return float(solved.fun), -np.asarray(solved.ineqlin.marginals)

    def _cheapest(self, lengths: F64) -> list[tuple[int, dict[int, tuple[int, ...]], I64]] | None:
        """A cheapest tree of every root under lengths of the orbits; None if some rank is not reached."""
        orbits, network = self.orbits, self.orbits.network
        ways = _Ways(orbits, lengths)
        if ways.tail.size > MOST_HOPS:
            return None
        trees = []
        for place, root in enumerate(orbits.roots.tolist()):
            ends = self.rank[ways.tail], self.rank[ways.head]
            into = arborescence(network.ranks.size, int(self.rank[root]), *ends, ways.length)
            if into is None:
                return None
            taken = np.delete(into, self.rank[root])
            paths = {int(ways.head[hop]): ways.path(int(hop)) for hop in taken.tolist()}
            trees.append((place, paths, ways.counts[ways.way[taken]].sum(axis=0)))
        return trees

    def whole(self, numbers: Sequence[int], known: RootTrees | None) -> RootTrees | None:
        """Whole numbers of the columns for the first of these D that loses nothing, or loses least.

        None if the columns do not have a shorter time than ``known`` trees.
        """
        if not self.columns or (known is not None and self.value >= float(known.time) * (1 - CLOSED)):
            return None
        self.columns += self._between()
        best: RootTrees | None = None
        for D in numbers:
            found = self._integers(D)
            if found is not None and (best is None or found.time < best.time):
                best = found
            if best is not None and float(best.time) <= self.value * (1 + CLOSED):
                break
        return best

    def _between(self) -> list[tuple[int, dict[int, tuple[int, ...]], I64]]:
        """Trees between those that the optimum uses, for whole numbers of them.

        Ranks take their parents of one tree, and in the order of the other one its parents: wherever that stops, what
        has changed is connected to the root, and what has not is above it or above what has changed.
        """
        used = np.flatnonzero(self.used > CLOSED)
        result: list[tuple[int, dict[int, tuple[int, ...]], I64]] = []
        seen = {(place, *counts.tolist()) for place, _, counts in self.columns}
        for first, second in permutations(used.tolist(), 2):
            (place, paths, counts), (other, onto, _) = self.columns[first], self.columns[second]
            if place != other:
                continue
            mixed, total = dict(paths), counts.copy()
            for v in top_down(int(self.orbits.roots[place]), onto):
                total = total - self._orbits_of(mixed[v]) + self._orbits_of(onto[v])
                mixed[v] = onto[v]
                key = (place, *total.tolist())
                if key not in seen and len(seen) < MOST_PRICED:
                    seen.add(key)
                    result.append((place, dict(mixed), total))
        return result

    def _orbits_of(self, path: tuple[int, ...]) -> I64:
        """Number of arcs of a path in every orbit."""
        along = np.array(path)
        return np.bincount(self.orbits.orbit(along[:-1], along[1:]), minlength=len(self.orbits.room))

    def _integers(self, D: int) -> RootTrees | None:
        from scipy.optimize import Bounds, LinearConstraint, milp

        rows, roots, size = len(self.orbits.room), self.orbits.roots.size, len(self.columns)
        table = np.array([counts for _, _, counts in self.columns]).T
        mine = np.arange(roots)[:, None] == [place for place, _, _ in self.columns]
        load = np.column_stack([table * self.scale[:, None], np.full(rows, -1.0)])
        solved = milp(
            np.append(np.zeros(size), 1.0),
            constraints=[
                LinearConstraint(load, -np.inf, 0.0),
                LinearConstraint(np.column_stack([mine.astype(float), np.zeros(roots)]), D, D),
            ],
            integrality=np.append(np.ones(size), 0.0),
            bounds=Bounds(0.0, np.append(np.full(size, float(D)), np.inf)),
            options={"time_limit": WHOLE_S, "mip_rel_gap": 0.0},
        )
        if solved.x is None:
            return None
        number = np.rint(solved.x[:-1]).astype(np.int64)
        if not np.array_equal(mine @ number, np.full(roots, D)):
            return None
        used = np.flatnonzero(number)
        trees = tuple(
            PackedTree.of(int(self.orbits.roots[self.columns[j][0]]), int(number[j]), self.columns[j][1])
            for j in used.tolist()
        )
        return RootTrees(D, trees, self.orbits.time((table @ number).tolist(), D))


class _Ways:
    """Hops between ranks under lengths of the orbits: the shortest way of each root through switches, translated.

    Hop h leads from ``tail[h]`` to ``head[h]`` along the image under translation ``by[h]`` of way ``way[h]``, of
    length ``length[h]``; ``counts`` has the number of arcs of every way in every orbit.
    """

    def __init__(self, orbits: JointOrbits, lengths: F64) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        network, self.images = orbits.network, orbits.images
        self.ways: list[tuple[int, ...]] = []
        every: list[float] = []
        counts: list[I64] = []
        switch = ~np.isin(network.tail, network.ranks)
        for root in orbits.roots.tolist():
            arcs = np.flatnonzero(switch | (network.tail == root))
            ends = network.tail[arcs], network.head[arcs]
            graph = csr_array((lengths[orbits.label[arcs]], ends), shape=(network.n,) * 2)
            away, before = dijkstra(graph, indices=root, return_predecessors=True)
            for v in network.ranks[np.isfinite(away[network.ranks])].tolist():
                path = [v]
                while path[-1] != root:
                    path.append(int(before[path[-1]]))
                if v == root:
                    continue
                path.reverse()
                along = np.array(path)
                orbit = orbits.orbit(along[:-1], along[1:])
                counts.append(np.bincount(orbit, minlength=len(orbits.room)))
                self.ways.append(tuple(path))
                every.append(float(away[v]))
        g, many = len(self.images), len(self.ways)
        self.counts = np.array(counts).reshape(many, len(orbits.room))
        self.way, self.by = np.tile(np.arange(many), g), np.repeat(np.arange(g), many)
        starts, stops = (np.array([way[end] for way in self.ways], dtype=np.int64) for end in (0, -1))
        self.tail, self.head = self.images[:, starts].ravel(), self.images[:, stops].ravel()
        self.length = np.tile(np.array(every), g)

    def path(self, hop: int) -> tuple[int, ...]:
        """The vertices of a hop."""
        return tuple(self.images[self.by[hop], list(self.ways[self.way[hop]])].tolist())


def top_down(root: int, paths: Mapping[int, tuple[int, ...]]) -> list[int]:
    """The ranks of a tree below its root, each after its parent; ``paths`` lead to every rank from its parent."""
    below: dict[int, list[int]] = {}
    for v, path in paths.items():
        below.setdefault(path[0], []).append(v)
    reached = [root]
    for u in reached:
        reached += below.get(u, [])
    return reached[1:]


def arborescence(n: int, root: int, tail: I64, head: I64, cost: F64) -> I64 | None:
    """The arc into every vertex in a minimum arborescence from ``root``, ``(n,)``, -1 for the root (Edmonds 1967).

    Every vertex takes its cheapest arc; circles of them are contracted, all at once, until there are none. None if some
    vertex cannot be reached.
    """
    at, top = np.arange(n), root  # the contracted vertex of every vertex
    arc, start, stop, left = np.arange(tail.size), tail, head, cost
    chosen: list[tuple[I64, I64]] = []
    while True:
        keep = (start != stop) & (stop != top)
        arc, start, stop, left = arc[keep], start[keep], stop[keep], left[keep]
        size = int(at.max()) + 1
        order = np.lexsort((left, stop))
        reached, first = np.unique(stop[order], return_index=True)
        if reached.size < size - 1:
            return None
        cheapest = order[first]
        parent, into, least = np.full(size, top), np.full(size, -1), np.zeros(size)
        parent[reached], into[reached], least[reached] = start[cheapest], arc[cheapest], left[cheapest]
        chosen.append((at, into))
        ahead, lead = parent.copy(), np.minimum(np.arange(size), parent)
        for _ in range(size.bit_length()):
            lead, ahead = np.minimum(lead, lead[ahead]), ahead[ahead]
        circle = np.unique(ahead)
        circle = circle[circle != top]
        if not circle.size:
            break
        label = np.arange(size)
        label[circle] = lead[circle]
        label = np.unique(label, return_inverse=True)[1]
        left = left - least[stop]
        start, stop, at, top = label[start], label[stop], label[at], int(label[top])
    result = chosen[-1][1]
    for at, into in reversed(chosen[:-1]):
        entering = result[result >= 0]
        result = into.copy()
        result[at[head[entering]]] = entering
    return result
