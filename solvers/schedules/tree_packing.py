"""Pack spanning trees from every root into the capacities of a topology.

Source  Edmonds, Edge-disjoint branchings, 1973; Bang-Jensen, Frank & Jackson, SIAM J. Discrete Math. 8(2), 1995
        (vertices that are not ranks); Berczi & Frank, 2010 (capacitated packing); ForestColl (Zhao et al., 2024), which
        formulates all-gather as this packing
Data    w_v >= 0 shards that start at rank v, W = sum_v w_v; c_a > 0 capacities, scaled to whole numbers

The minimum time T* = max of w(S) / c(S -> V - S) over S without some rank is a fraction p/q found by Newton's
method on max-flows. With U = p / gcd(q, capacities) and k = U / T*, every c_a U is whole, and by the theorems there are
k trees of capacity 1 per shard, each from its rank to all ranks, that use an arc a at most c_a U times: the time is T*
exactly. No copies at switches are needed, provided that the capacity into every switch is at least that out of it, or
can be made so by leaving capacity unused: the same share of every arc out of a switch, or arc by arc. If it cannot with
k trees per shard, multiples of k are tried; then U is increased until it can, and the time exceeds T*.

For a smaller number k of trees per shard the smallest U with such a packing of capacities floor(c_a U) is found by
bisection; the time is then at most U / k.

Of many ranks, the trees of a few are found and copied where translations are at hand
(:mod:`opticoll.solvers.schedules.translated_trees`).

Otherwise switches are removed first: an arc u -> w into a switch and an arc w -> t out of it are replaced by u -> t, as
long as every rank can still receive W k. Trees then grow arc by arc; how much capacity of an arc a tree may take
without preventing the other trees is a max-flow (Berczi & Frank). Trees with equal arcs are kept as one tree with a
count. Schedules made of them are simulated by independent code.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into
from opticoll.errors import NotApplicable
from opticoll.formulations.flows.worst_cuts import Network, least_time_of, network_of
from opticoll.instances.translations import first_of_orbits, translations
from opticoll.solvers.schedules.max_flow_kernels import MOST_FLOW, adjacency, least_flow, max_flow
from opticoll.solvers.schedules.translated_trees import PackedTree, translated_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opticoll.instances.topology import I64, Mask, Topology


#: Maximum number of divisors tried as the number of trees per shard.
DIVISORS = 6
#: Number of trees per shard up to which multiples of k are tried where switches would have to copy.
MULTIPLES = 24
#: Numbers of trees per shard that are tried with translations, after the least that can attain the worst cut.
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
#: Ranks from which on trees are copied by translations; up to which trees are grown instead, if copies lose time.
MANY_RANKS, MOST_GROWN = 32, 128
#: Number of values of U that are listed; a longer range of them is halved first.
MOST_STEPS = 1000
#: Turns of a switch in which capacities out of it may be reduced, on average.
MOST_TURNS = 50
TOO_LARGE = (
    "tree packing: the capacities, scaled to whole numbers, are too large; round them, for example to multiples of "
    "the smallest"
)


@dataclass(frozen=True, eq=False)
class TreePacking:
    """``chunks`` trees per shard; ``time`` is that of the busiest arc [shards / link bandwidth], ``bound`` is T*.

    The trees are ``trees`` moved by every row of ``images``, ``(g, n)``: those of one rank of every orbit, or all.
    """

    topology: Topology
    weight: tuple[int, ...]
    chunks: int
    trees: tuple[PackedTree, ...]
    time: Fraction
    bound: Fraction
    images: I64

    def load(self, *, backwards: bool = False) -> I64:
        """Number of trees that cross from one vertex to another, by ``tail * n + head``, or with the ends swapped."""
        n = self.topology.n
        ends = [(*arc, tree.count) for tree in self.trees for path in tree.paths for arc in pairwise(path)]
        tail, head, count = np.array(ends, dtype=np.int64).reshape(-1, 3).T
        load = np.zeros(n * n, dtype=np.int64)
        for image in self.images:
            first, last = (image[head], image[tail]) if backwards else (image[tail], image[head])
            np.add.at(load, first * n + last, count)
        return load

    def expanded(self) -> TreePacking:
        """The same trees of all ranks, which only the identity moves."""
        trees = tuple(
            PackedTree(int(image[one.root]), one.count, tuple(tuple(image[[*way]].tolist()) for way in one.paths))
            for image in self.images
            for one in self.trees
        )
        return replace(self, trees=trees, images=self.images[:1])

    @property
    def loss(self) -> float:
        """Relative excess of the time over the bound."""
        return float(self.time / self.bound - 1)


def pack(topology: Topology, weight: Sequence[int] | None = None, most: int | None = None) -> TreePacking:
    """Pack trees from every root to all ranks in minimum time.

    Parameters
    ----------
    topology
        Its terminals are the ranks; other vertices are switches, which forward without storing.
    weight
        Number of shards that start at each rank, in rank order; 1 if None.
    most
        Maximum number of trees per shard; None for as many as the optimum needs.

    Raises
    ------
    BadInput
        If some rank cannot be reached from a root.
    NotApplicable
        If the capacities, scaled to whole numbers, are too large.
    """
    return _pack(topology, tuple(weight) if weight is not None else (1,) * topology.num_ranks, most)


@lru_cache(maxsize=8)
def _pack(topology: Topology, weight: tuple[int, ...], most: int | None) -> TreePacking:
    network = network_of(topology, weight)
    time, _ = least_time_of(network, _receivers(topology, weight))
    shared = gcd(time.denominator, *network.capacity)
    k = time.denominator // shared
    numbers = (k, *(D for D in NUMBERS if k != D))
    moved = _translated(topology, network, time, [D for D in numbers if most is None or most >= D])
    if moved is not None:
        return moved
    if most is None or k <= most:
        unit = [c * time.numerator // shared for c in network.capacity]
        for j in range(1, max((most or MULTIPLES) // k, 1) + 1):
            exact = _without_copies(network, [j * c for c in unit], j * k)
            if exact is not None:
                return _packed(topology, network, exact, j * k, time)
        most = most or max(k, MULTIPLES)
    best: tuple[Fraction, int, list[int]] | None = None
    for chunks in range(most, max(most // 2, 0), -1):
        capacity = _fewest(network, time, chunks)
        busiest = max(Fraction(q, chunks * c) for q, c in zip(capacity, network.capacity, strict=True))
        if best is None or busiest < best[0]:
            best = busiest, chunks, capacity
    assert best is not None
    return _packed(topology, network, best[2], best[1], time)


def _receivers(topology: Topology, weight: tuple[int, ...]) -> I64 | None:
    """Ranks of which one receives as much as any in time, one of each orbit; None for all."""
    alike = len(weight) >= MANY_RANKS and len(set(weight)) == 1
    return first_of_orbits(topology.terminals, translations(topology)) if alike else None


def _translated(topology: Topology, network: Network, time: Fraction, numbers: Sequence[int]) -> TreePacking | None:
    """Copies of the trees of a few ranks, for one of these numbers per shard; None if they lose time, or are none."""
    N, images = topology.num_ranks, translations(topology) if topology.num_ranks >= MANY_RANKS else None
    if images is None or len(images) < 2 or set(network.weight) != {1} or not numbers:
        return None
    found = translated_trees(network, images, time, numbers)
    if found is None or (found.time > time and N <= MOST_GROWN):
        return None
    unit = network.unit
    return TreePacking(topology, network.weight, found.chunks, found.trees, found.time / unit, time / unit, images)


def pack_dividing(
    topology: Topology, weight: Sequence[int] | None, chunks: int, most: int | None = None
) -> TreePacking:
    """As :func:`pack`, with a number of trees per shard that divides ``chunks`` and is at most ``most``."""
    weights = tuple(weight) if weight is not None else (1,) * topology.num_ranks
    network = network_of(topology, weights)
    time, _ = least_time_of(network, _receivers(topology, weights))
    ideal = time.denominator // gcd(time.denominator, *network.capacity)
    limit = min(chunks, most or chunks)
    moved = _translated(topology, network, time, [k for k in range(1, limit + 1) if chunks % k == 0][-DIVISORS:])
    if moved is not None:
        return moved
    if ideal <= limit and chunks % ideal == 0:
        packing = _pack(topology, weights, ideal)
        if packing.time == packing.bound:
            return packing
    divisors = [k for k in range(1, limit + 1) if chunks % k == 0]
    return min(
        (_packed(topology, network, _fewest(network, time, k), k, time) for k in divisors[-DIVISORS:]),
        key=lambda packing: (packing.time, packing.chunks),
    )


def _fewest(network: Network, time: Fraction, k: int) -> list[int]:
    """Capacities floor(c U) for the smallest U that admits k trees per shard."""
    sizes, least = set(network.capacity), time * k
    low = high = least

    def tried(U: Fraction) -> list[int] | None:
        return _without_copies(network, [int(c * U) for c in network.capacity], k)

    while tried(high) is None:
        low, high = high, high + least / 8 + Fraction(1, min(sizes))
    while sum(int(high * c) - int(low * c) for c in sizes) > MOST_STEPS:
        between = (low + high) / 2
        low, high = (between, high) if tried(between) is None else (low, between)
    steps = sorted({Fraction(j, c) for c in sizes for j in range(int(low * c) + 1, int(high * c) + 1)}) or [least]
    first, last = 0, len(steps) - 1
    while first < last:
        middle = (first + last) // 2
        first, last = (middle + 1, last) if tried(steps[middle]) is None else (first, middle)
    result = tried(steps[first])
    assert result is not None
    return result


def _serves(network: Network, arcs: Mapping[tuple[int, int], int], k: int) -> bool:
    """Whether every rank can receive all trees over arcs of these capacities."""
    roots = [(v, w * k) for v, w in zip(network.ranks.tolist(), network.weight, strict=True) if w]
    ends = np.array(list(arcs), dtype=np.int64).reshape(-1, 2)
    if sum(arcs.values()) + network.shards * k > MOST_FLOW:
        raise NotApplicable(TOO_LARGE)
    tail = np.concatenate([ends[:, 0], np.full(len(roots), network.n)])
    head = np.concatenate([ends[:, 1], np.array([v for v, _ in roots])])
    whole = np.array([*arcs.values(), *(w for _, w in roots)], dtype=np.int64)
    return least_flow(network.n + 1, tail, head, whole, network.ranks, network.n, network.shards * k, 0)[0] < 0


def _without_copies(network: Network, capacity: list[int], k: int) -> list[int] | None:
    """Reduce capacities so that no more leaves a switch than enters it, but enough for k trees; None if not found."""
    arcs = dict(zip(zip(network.tail.tolist(), network.head.tolist(), strict=True), capacity, strict=True))
    if not _serves(network, arcs, k):
        return None
    even = evenly(network.n, network.ranks, arcs)
    if even is not None and _serves(network, even, k):
        return list(even.values())
    switches = deque(np.setdiff1d(np.arange(network.n), network.ranks).tolist())
    while switches:
        w = switches.popleft()
        excess = sum(c if u == w else -c for (u, v), c in arcs.items() if w in (u, v))
        for arc in [arc for arc in arcs if arc[0] == w]:
            if excess <= 0:
                break
            cut = _unused(network, arcs, arc, excess, k)
            arcs[arc] -= cut
            excess -= cut
            if cut and arc[1] not in network.ranks:
                switches.append(arc[1])
        if excess > 0:
            return None
    return list(arcs.values())


def evenly(n: int, ranks: I64, arcs: Mapping[tuple[int, int], int]) -> dict[tuple[int, int], int] | None:
    """Capacities of which no more leaves a switch than enters it: less of all arcs out of it, in proportion.

    None if that takes too many turns, where switches in a circle pass on hardly less than before.
    """
    result = dict(arcs)
    switches = deque(np.setdiff1d(np.arange(n), ranks).tolist())
    turns = MOST_TURNS * n
    while switches:
        w = switches.popleft()
        turns -= 1
        if not turns:
            return None
        entering = sum(c for (_, v), c in result.items() if v == w)
        leaving = {arc: c for arc, c in result.items() if arc[0] == w}
        total = sum(leaving.values())
        if total <= entering:
            continue
        before = given = 0
        for arc, c in leaving.items():  # rounded so that they add up to what enters
            before += c
            result[arc], given = before * entering // total - given, before * entering // total
            if result[arc] < c and arc[1] not in ranks:
                switches.append(arc[1])
    return result


def _unused(network: Network, arcs: Mapping[tuple[int, int], int], arc: tuple[int, int], excess: int, k: int) -> int:
    """Amount of an arc's capacity, at most ``excess``, that no rank needs."""

    def allowed(less: int) -> bool:
        return _serves(network, {**arcs, arc: arcs[arc] - less}, k)

    return _largest(allowed, min(excess, arcs[arc]))


def _largest(allowed: Callable[[int], bool], most: int) -> int:
    """Largest allowed number up to ``most``, by bisection; 0 is always allowed."""
    if most <= 0 or allowed(most):
        return max(most, 0)
    low = 0
    while low + 1 < most:
        middle = (low + most) // 2
        low, most = (middle, most) if allowed(middle) else (low, middle)
    return low


def _packed(topology: Topology, network: Network, capacity: list[int], k: int, time: Fraction) -> TreePacking:
    ways = _Splitting(network, capacity, k).without_switches()
    trees = _Growth(network, ways, k).trees()
    load: dict[tuple[int, int], int] = {}
    for tree in trees:
        for arc in chain.from_iterable(map(pairwise, tree.paths)):
            load[arc] = load.get(arc, 0) + tree.count
    joint = dict(zip(zip(network.tail.tolist(), network.head.tolist(), strict=True), network.capacity, strict=True))
    taken = max(Fraction(q, k * joint[arc]) for arc, q in load.items())
    unit, alone = network.unit, np.arange(topology.n)[None, :]
    return TreePacking(topology, network.weight, k, tuple(trees), taken / unit, time / unit, alone)


class _Splitting:
    """Arcs between ranks that stand for paths through switches: ways[u, t] is a list of [amount, path]."""

    def __init__(self, network: Network, capacity: list[int], k: int) -> None:
        self.network, self.k = network, k
        self.ways: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = {
            (u, v): [(c, (u, v))]
            for u, v, c in zip(network.tail.tolist(), network.head.tolist(), capacity, strict=True)
            if c
        }
        self.capacity = {arc: ways[0][0] for arc, ways in self.ways.items()}

    def without_switches(self) -> dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]]:
        """Remove all switches, those with fewest neighbours first."""
        ranks = set(self.network.ranks.tolist())
        switches = [v for v in range(self.network.n) if v not in ranks]
        degree = {w: sum(1 for arc in self.capacity if w in arc) for w in switches}
        for w in sorted(switches, key=lambda w: (degree[w], w)):
            self._remove(w)
        return self.ways

    def _ends(self, w: int) -> tuple[list[int], list[int]]:
        return [u for u, v in self.capacity if v == w], [v for u, v in self.capacity if u == w]

    def _remove(self, w: int) -> None:
        sources, targets = self._ends(w)
        for plan in self._plans(w, sorted(sources), sorted(targets)):
            if _serves(self.network, self._after(w, plan), self.k):
                for (u, t), amount in plan.items():
                    self._split(u, w, t, amount)
                break
        else:
            for u in sorted(sources):
                for t in sorted(targets, key=lambda t: t == u):
                    self._split(u, w, t, self._most(u, w, t))
        for arc in [arc for arc in self.capacity if w in arc]:
            del self.capacity[arc], self.ways[arc]

    def _plans(self, w: int, sources: list[int], targets: list[int]) -> Iterator[dict[tuple[int, int], int]]:
        """Complete splittings to try before the search: neighbour i to i + d, in equal parts for several shifts d.

        All shifts first, which makes trees shallow; then the multiples of a stride, which skip near neighbours.
        """
        p = len(sources)
        sizes = {self.capacity[u, w] for u in sources} | {self.capacity[w, t] for t in targets}
        if sources != targets or len(sizes) != 1 or p < 2:
            return
        (c,) = sizes
        for stride in [d for d in range(1, p) if p % d == 0]:
            shifts = range(stride, p, stride)
            parts = min(c, len(shifts))
            yield {
                (u, sources[(i + shifts[j * len(shifts) // parts]) % p]): c // parts + (j < c % parts)
                for i, u in enumerate(sources)
                for j in range(parts)
            }

    def _after(self, w: int, plan: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
        capacity = {arc: c for arc, c in self.capacity.items() if w not in arc}
        for arc, amount in plan.items():
            if arc[0] != arc[1]:
                capacity[arc] = capacity.get(arc, 0) + amount
        return capacity

    def _most(self, u: int, w: int, t: int) -> int:
        """Largest amount of u -> w -> t that may become u -> t, by bisection with a check of all ranks."""

        def allowed(amount: int) -> bool:
            capacity = dict(self.capacity)
            for arc, change in (((u, w), -amount), ((w, t), -amount), ((u, t), amount)):
                if arc[0] != arc[1]:
                    capacity[arc] = capacity.get(arc, 0) + change
            return _serves(self.network, capacity, self.k)

        return _largest(allowed, min(self.capacity.get((u, w), 0), self.capacity.get((w, t), 0)))

    def _split(self, u: int, w: int, t: int, amount: int) -> None:
        if amount == 0:
            return
        first, second = self._taken((u, w), amount), self._taken((w, t), amount)
        if u == t:
            return
        ways = self.ways.setdefault((u, t), [])
        i = j = 0
        while i < len(first):
            part = min(first[i][0], second[j][0])
            ways.append((part, _simple((*first[i][1], *second[j][1][1:]))))
            first[i], second[j] = (first[i][0] - part, first[i][1]), (second[j][0] - part, second[j][1])
            i, j = i + (first[i][0] == 0), j + (second[j][0] == 0)
        self.capacity[u, t] = self.capacity.get((u, t), 0) + amount

    def _taken(self, arc: tuple[int, int], amount: int) -> list[tuple[int, tuple[int, ...]]]:
        """Take ``amount`` out of the ways of an arc."""
        self.capacity[arc] -= amount
        taken, kept = [], []
        for size, path in self.ways[arc]:
            part = min(size, amount)
            amount -= part
            if part:
                taken.append((part, path))
            if size > part:
                kept.append((size - part, path))
        self.ways[arc] = kept
        return taken


def _simple(path: tuple[int, ...]) -> tuple[int, ...]:
    """Remove the cycles of a walk."""
    kept: list[int] = []
    for v in path:
        if v in kept:
            del kept[kept.index(v) :]
        kept.append(v)
    return tuple(kept)


@compiled(nogil=True)
def _grow(
    n: int,
    tail: I64,
    head: I64,
    capacity: I64,
    first_out: I64,
    reached: Mask,
    blocked: Mask,
    order: I64,
    size: int,
    count: int,
    others: int,
    into: I64,
) -> tuple[int, int, int]:
    """Add arcs that all ``count`` trees can take, breadth first; ``order`` lists the reached vertices.

    Arcs out of vertex v are ``first_out[v]`` to ``first_out[v + 1] - 1``; those after all of these belong to the
    auxiliary network, whose source is vertex n - 1. Returns the number of vertices reached and, if some are missing and
    no arc serves all trees, the arc that serves most of them, and their number.
    """
    first, listed = adjacency(n, tail, head)
    residual = np.zeros(2 * tail.size, dtype=np.int64)
    members = first_out.size - 1
    while size < members:
        best = -1
        most = 0
        for i in range(size):
            x = order[i]
            for a in range(first_out[x], first_out[x + 1]):
                y = head[a]
                if reached[y] or blocked[a] or capacity[a] <= most:
                    continue
                room = min(capacity[a], count)
                copy_into(residual[0::2], capacity)
                residual[1::2] = 0
                sent = max_flow(first, listed, tail, head, residual, x, n - 1, y, others + room)
                served = min(room, sent - others)
                if served <= 0:
                    blocked[a] = True
                elif served > most:
                    most = served
                    best = a
                if most == count:
                    break
            if most == count:
                break
        if most < count:
            return size, best, most
        capacity[best] -= count
        reached[head[best]] = True
        into[head[best]] = best
        order[size] = head[best]
        size += 1
    return size, -1, 0


@dataclass
class _Partial:
    """Trees under construction that are equal so far; vertices are numbers of ranks."""

    root: int
    count: int
    order: list[int]
    into: dict[int, int]


class _Growth:
    """Grow the trees, root by root."""

    def __init__(
        self, network: Network, ways: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]], k: int
    ) -> None:
        number = {v: i for i, v in enumerate(network.ranks.tolist())}
        usable = sorted(arc for arc, result in ways.items() if result)
        self.ranks = network.ranks.tolist()
        self.ways = [deque(sorted(ways[arc], key=lambda way: (len(way[1]), -way[0]))) for arc in usable]
        self.tail = np.array([number[u] for u, _ in usable], dtype=np.int64)
        self.head = np.array([number[v] for _, v in usable], dtype=np.int64)
        self.capacity = np.array([sum(way[0] for way in ways[arc]) for arc in usable], dtype=np.int64)
        self.first_out = np.searchsorted(self.tail, np.arange(len(self.ranks) + 1))
        self.waiting = [w * k for w in network.weight]
        self.stack: list[_Partial] = []

    def trees(self) -> list[PackedTree]:
        """Return all trees."""
        done: list[PackedTree] = []
        for root, count in enumerate(self.waiting):
            self.waiting[root] = 0
            if count:
                self.stack.append(_Partial(root, count, [root], {}))
            while self.stack:
                done += self._finished(self.stack.pop())
        return done

    def _finished(self, partial: _Partial) -> list[PackedTree]:
        """Complete a tree; trees that branch off from it are put on the stack."""
        N = len(self.ranks)
        reached, blocked = np.zeros(N, dtype=bool), np.zeros(self.tail.size, dtype=bool)
        order, into = np.zeros(N, dtype=np.int64), np.full(N, -1, dtype=np.int64)
        size = len(partial.order)
        order[:size] = partial.order
        reached[partial.order] = True
        for v, a in partial.into.items():
            into[v] = a
        while size < N:
            tail, head, capacity, others = self._auxiliary()
            size, arc, most = _grow(
                N + len(self.stack) + 1,
                tail,
                head,
                capacity,
                self.first_out,
                reached,
                blocked,
                order,
                size,
                partial.count,
                others,
                into,
            )
            self.capacity = capacity[: self.tail.size]
            if size < N:
                if arc < 0:
                    msg = "tree packing: no arc extends the tree, although the cuts admit one"
                    raise ArithmeticError(msg)
                placed = order[:size].tolist()
                rest = _Partial(
                    partial.root, partial.count - most, placed, {v: int(into[v]) for v in placed if into[v] >= 0}
                )
                self.stack.append(rest)
                partial = _Partial(partial.root, most, placed, {})
        return self._routed(partial.root, partial.count, order.tolist(), into.tolist())

    def _auxiliary(self) -> tuple[I64, I64, I64, int]:
        """Auxiliary network: the arcs, and a source with arcs to waiting roots and to partial trees on the stack."""
        N = len(self.ranks)
        source = N + len(self.stack)
        ends = [(source, v, count) for v, count in enumerate(self.waiting) if count]
        for j, partial in enumerate(self.stack):
            ends.append((source, N + j, partial.count))
            ends += [(N + j, v, MOST_FLOW) for v in partial.order]
        extra = np.array(ends, dtype=np.int64).reshape(-1, 3)
        others = sum(self.waiting) + sum(partial.count for partial in self.stack)
        joined = (np.concatenate(pair) for pair in zip((self.tail, self.head, self.capacity), extra.T, strict=True))
        tail, head, capacity = joined
        return tail, head, capacity, others

    def _routed(self, root: int, count: int, order: list[int], into: list[int]) -> list[PackedTree]:
        """The trees along paths that their arcs stand for."""
        ways = [self.ways[into[v]] for v in order[1:]]
        trees = []
        while count:
            many = min([count, *(way[0][0] for way in ways)])
            trees.append(PackedTree(self.ranks[root], many, tuple(way[0][1] for way in ways)))
            count -= many
            for way in ways:
                amount, path = way.popleft()
                if amount > many:
                    way.appendleft((amount - many, path))
        return trees
