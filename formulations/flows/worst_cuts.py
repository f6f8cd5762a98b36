"""Minimum time of a collective that copies: the exact worst cut, by max-flows in whole numbers.

The minimum time T* = max of w(S) / c(S -> V - S) over S without some rank is found by Newton's method on
max-flows; packings of trees attain it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.compiled import compiled
from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import I64, Topology

#: Maximum sum of capacities in the kernels.
MOST_FLOW = 1 << 60
TOO_LARGE = (
    "tree packing: the capacities, scaled to whole numbers, are too large; round them, for example to multiples of "
    "the smallest"
)


@compiled(nogil=True)
def adjacency(n: int, tail: I64, head: I64) -> tuple[I64, I64]:
    """List arcs 2a from tail to head and 2a + 1 back by the vertex that they leave."""
    first = np.zeros(n + 1, dtype=np.int64)
    for a in range(tail.size):
        first[tail[a] + 1] += 1
        first[head[a] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    at = first[:-1].copy()
    listed = np.empty(2 * tail.size, dtype=np.int64)
    for a in range(tail.size):
        listed[at[tail[a]]] = 2 * a
        at[tail[a]] += 1
        listed[at[head[a]]] = 2 * a + 1
        at[head[a]] += 1
    return first, listed


@compiled(nogil=True)
def max_flow(  # noqa: C901 - compiled
    first: I64, listed: I64, tail: I64, head: I64, residual: I64, source: int, other: int, sink: int, limit: int
) -> int:
    """Maximum flow from two sources (possibly equal) to the sink, up to ``limit``; changes ``residual`` (Dinic)."""
    n = first.size - 1
    level = np.empty(n, dtype=np.int64)
    cursor = np.empty(n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    path = np.empty(n, dtype=np.int64)
    total = 0
    while total < limit:
        level[:] = -1
        level[source] = 0
        level[other] = 0
        queue[0] = source
        last = 1
        if other != source:
            queue[1] = other
            last = 2
        current = 0
        while current < last and level[sink] < 0:
            u = queue[current]
            current += 1
            for i in range(first[u], first[u + 1]):
                e = listed[i]
                v = head[e >> 1] if e & 1 == 0 else tail[e >> 1]
                if residual[e] > 0 and level[v] < 0:
                    level[v] = level[u] + 1
                    queue[last] = v
                    last += 1
        if level[sink] < 0:
            break
        for v in range(n):
            cursor[v] = first[v]
        for start in (source, other):
            u = start
            depth = 0
            while total < limit:
                if u == sink:
                    push = limit - total
                    for d in range(depth):
                        push = min(push, residual[path[d]])
                    total += push
                    back = depth
                    for d in range(depth):
                        residual[path[d]] -= push
                        residual[path[d] ^ 1] += push
                    for d in range(depth):
                        if residual[path[d]] == 0:
                            back = d
                            break
                    if back == depth:
                        break  # the limit is reached
                    e = path[back]
                    u = tail[e >> 1] if e & 1 == 0 else head[e >> 1]
                    depth = back
                    continue
                moved = False
                while cursor[u] < first[u + 1]:
                    e = listed[cursor[u]]
                    v = head[e >> 1] if e & 1 == 0 else tail[e >> 1]
                    if residual[e] > 0 and level[v] == level[u] + 1 and (level[v] < level[sink] or v == sink):
                        path[depth] = e
                        depth += 1
                        u = v
                        moved = True
                        break
                    cursor[u] += 1
                if not moved:
                    if depth == 0:
                        break
                    depth -= 1
                    e = path[depth]
                    u = tail[e >> 1] if e & 1 == 0 else head[e >> 1]
                    cursor[u] += 1
            if other == source:
                break
    return total


@compiled(nogil=True)
def least_flow(
    n: int, tail: I64, head: I64, capacity: I64, ranks: I64, source: int, need: int, begin: int
) -> tuple[int, int]:
    """First rank, from index ``begin`` on, that receives fewer than ``need`` units, and the units; -1 if none."""
    first, listed = adjacency(n, tail, head)
    residual = np.zeros(2 * tail.size, dtype=np.int64)
    for j in range(ranks.size):
        i = (begin + j) % ranks.size
        residual[0::2] = capacity
        residual[1::2] = 0
        sent = max_flow(first, listed, tail, head, residual, source, source, ranks[i], need)
        if sent < need:
            return i, sent
    return -1, need


# The optimum ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Network:
    """Joint arcs between distinct vertices with whole capacities; one unit is ``unit`` link bandwidths."""

    n: int
    tail: I64
    head: I64
    capacity: tuple[int, ...]
    ranks: I64
    weight: tuple[int, ...]
    unit: Fraction

    @property
    def shards(self) -> int:
        """Total weight W of the ranks."""
        return sum(self.weight)


def network_of(topology: Topology, weight: Sequence[int]) -> Network:
    """Network of a topology, with capacities scaled to whole numbers and parallel arcs joined."""
    joint: dict[tuple[int, int], Fraction] = {}
    for u, v, c in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        if u != v:
            joint[u, v] = joint.get((u, v), Fraction(0)) + Fraction(c)
    common = int(np.lcm.reduce([c.denominator for c in set(joint.values())], dtype=object))
    whole = [int(c * common) for c in joint.values()]
    shared = gcd(*whole)
    tail, head = (np.array([arc[end] for arc in joint], dtype=np.int64) for end in (0, 1))
    unit = Fraction(shared, common)
    return Network(
        topology.n, tail, head, tuple(c // shared for c in whole), topology.terminals.copy(), tuple(weight), unit
    )


def sink_side(
    n: int, arcs: Sequence[tuple[int, int, int]], supply: Sequence[tuple[int, int]], sink: int, need: int
) -> frozenset[int] | None:
    """Sink side of the smallest minimum cut, if fewer than ``need`` units reach the sink; else None.

    Parameters
    ----------
    n
        Number of vertices.
    arcs
        (tail, head, capacity), whole numbers of any size.
    supply
        (vertex, amount) pairs of flow that starts at a vertex.
    sink, need
        Vertex where the flow ends, and the amount required there.
    """
    joined = [*arcs, *((n, v, amount) for v, amount in supply)]
    if sum(c for _, _, c in joined) <= MOST_FLOW:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        tail, head, capacity = np.array(joined, dtype=np.int64).reshape(-1, 3).T.copy()
        residual = np.stack([capacity, np.zeros_like(capacity)], axis=1).ravel()  # of arcs 2a and, back, 2a + 1
        if max_flow(*adjacency(n + 1, tail, head), tail, head, residual, n, n, sink, need) >= need:
            return None
        starts, ends = np.stack([tail, head], axis=1).ravel(), np.stack([head, tail], axis=1).ravel()
        open_ = residual > 0
        back = csr_array((open_[open_], (ends[open_], starts[open_])), shape=(n + 1, n + 1))
        return frozenset(breadth_first_order(back, sink, return_predecessors=False).tolist())
    import networkx as nx

    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(n + 1))
    for u, v, c in joined:
        before = graph[u][v]["capacity"] if graph.has_edge(u, v) else 0
        graph.add_edge(u, v, capacity=before + c)
    value, (_, outside) = nx.minimum_cut(graph, n, sink)
    return None if value >= need else frozenset(outside)


def least_time(topology: Topology, weight: Sequence[int]) -> tuple[Fraction, frozenset[int]]:
    """Compute T* and a set S that attains it.

    Parameters
    ----------
    topology
        Its terminals are the ranks.
    weight
        Number of shards that start at each rank, in rank order.

    Raises
    ------
    BadInput
        If some rank cannot be reached from a root.
    NotApplicable
        If the capacities, scaled to whole numbers, are too large.
    """
    network = network_of(topology, weight)
    time, inside = least_time_of(network)
    return time / network.unit, inside


def least_time_of(network: Network) -> tuple[Fraction, frozenset[int]]:
    """T* and a cut that attains it, as :func:`least_time`."""
    place = dict(zip(network.ranks.tolist(), network.weight, strict=True))
    W, everything = network.shards, frozenset(range(network.n))
    arcs = list(zip(network.tail.tolist(), network.head.tolist(), network.capacity, strict=True))
    best: tuple[Fraction, frozenset[int]] | None = None
    entering = np.zeros(network.n, dtype=object)
    for _, v, c in arcs:
        entering[v] += c
    for v, w in place.items():
        if w < W and entering[v] and (best is None or Fraction(W - w, entering[v]) > best[0]):
            best = Fraction(W - w, entering[v]), everything - {v}
    if best is None:
        msg = "tree packing: no arc enters a rank; use a connected topology"
        raise BadInput(msg)
    ranks, settled = deque(place), 0
    while settled < len(ranks):
        v, p, q = ranks[0], best[0].numerator, best[0].denominator
        supply = [(u, w * q) for u, w in place.items() if w]
        outside = sink_side(network.n, [(u, w, c * p) for u, w, c in arcs], supply, v, W * q)
        if outside is None:
            ranks.rotate(-1)
            settled += 1
            continue
        inside, settled = everything - outside, 0
        leaving = sum(c for u, w, c in arcs if u in inside and w in outside)
        if not leaving:
            msg = f"tree packing: vertex {v} cannot be reached; use a connected topology"
            raise BadInput(msg)
        best = Fraction(sum(w for u, w in place.items() if u in inside), leaving), inside
    return best


def reversed_arcs(topology: Topology) -> Topology:
    """Reverse every arc of a topology and renumber the arcs."""
    return topology.with_arcs(topology.head, topology.tail, topology.capacity)


def tight_partition(topology: Topology, weight: Sequence[int]) -> list[frozenset[int]] | None:
    """For every rank, find the smallest set containing it whose entering arcs are full at T*, if these are disjoint.

    Each such set X receives w(V - X) over c(V - X -> X) = w(V - X) / T*. None if some rank has no such set except V.
    """
    network = network_of(topology, weight)
    time, _ = least_time_of(network)
    p, q = time.numerator, time.denominator
    arcs = list(zip(network.tail.tolist(), network.head.tolist(), (c * p for c in network.capacity), strict=True))
    place = dict(zip(network.ranks.tolist(), network.weight, strict=True))
    W, sets = network.shards, set()
    for v, own in place.items():
        supply = [(u, w * q) for u, w in place.items() if u != v and w]
        outside = sink_side(network.n, arcs, supply, v, (W - own) * q + 1)
        if outside is None or not place.keys() - outside:
            return None
        sets.add(outside)
    covered = [v for members in sets for v in members & place.keys()]
    return sorted(sets, key=min) if len(covered) == len(set(covered)) else None
