"""The approximation scheme that the all-to-all paper compares its master LP with, for flows grouped by source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask, Topology

#: A demand that fits up to this share of a capacity is routed without a further tree.
ROUND_OFF = 1e-9
#: Sources whose trees are computed together.
LANES = 8


@compiled(nogil=True, error_model="numpy")
def trees(
    roots: I64, length: F64, head: I64, first_out: I64, distance: F64, parent: I64, queue: I64, waiting: Mask
) -> None:
    """Shortest-path trees from ``LANES`` roots at once, in place, by label correction in first-in first-out order.

    Where there is no path, distances, ``(n, LANES)``, are infinite and parents, the arcs into the vertices, are -1. A
    label changes only if it gets smaller, so the arcs form trees even where a length is lost to rounding.
    """
    n = first_out.size - 1
    distance[:] = np.inf
    parent[:] = -1
    waiting[:] = False
    first = last = count = 0
    for lane in range(LANES):
        u = roots[lane]
        distance[u, lane] = 0.0
        if not waiting[u]:
            waiting[u] = True
            queue[last] = u
            last += 1
            count += 1
    last %= n
    while count > 0:
        u = queue[first]
        first = first + 1 if first + 1 < n else 0
        count -= 1
        waiting[u] = False
        selected = distance[u]
        for a in range(first_out[u], first_out[u + 1]):
            v, one = head[a], length[a]
            there, arcs = distance[v], parent[v]
            changed = 0
            for lane in range(LANES):
                old, farther = there[lane], selected[lane] + one
                nearer = farther < old
                there[lane] = farther if nearer else old
                arcs[lane] = a if nearer else arcs[lane]
                changed += nearer
            if changed > 0 and not waiting[v]:
                waiting[v] = True
                queue[last] = v
                last = last + 1 if last + 1 < n else 0
                count += 1


@compiled(nogil=True, error_model="numpy")
def gather(lane: int, parent: I64, tail: I64, through: F64, children: I64) -> None:
    """Add to the demand of each vertex, ``through``, that of its descendants in the lane's tree, in place."""
    n = through.size
    children[:] = 0
    for v in range(n):
        if parent[v, lane] >= 0:
            children[tail[parent[v, lane]]] += 1
    for v in range(n):
        w = v
        while children[w] == 0:
            children[w] = -1
            if parent[w, lane] < 0:
                break
            u = tail[parent[w, lane]]
            through[u] += through[w]
            children[u] -= 1
            w = u


@compiled(nogil=True, error_model="numpy")
def phase(
    sources: I64,
    demand: F64,
    capacity: F64,
    step: float,
    length: F64,
    flow: F64,
    load: F64,
    tail: I64,
    head: I64,
    first_out: I64,
) -> int:
    """Route every source's demand once, in place, ``LANES`` sources at a time.

    Parameters
    ----------
    sources, demand
        Vertices, ``(|S|,)``, and the demand of each vertex from them, ``(|S|, n)``.
    capacity, length, load
        Of every arc, ``(m,)``; length and load are updated.
    flow
        Flow of every source so far, ``(|S|, m)``, updated.

    Returns
    -------
    The number of trees.
    """
    n, m = first_out.size - 1, head.size
    distance, parent = np.empty((n, LANES)), np.empty((n, LANES), dtype=np.int64)
    queue, waiting, children = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.int64)
    roots, through, carried = np.empty(LANES, dtype=np.int64), np.empty((LANES, n)), np.empty(m)
    grown = 0
    for start in range(0, sources.size, LANES):
        together = min(LANES, sources.size - start)
        for lane in range(LANES):
            roots[lane] = sources[start + min(lane, together - 1)]
        left = 1.0
        while left > 0.0:
            trees(roots, length, head, first_out, distance, parent, queue, waiting)
            grown += together
            carried[:] = 0.0
            for lane in range(together):
                s = start + lane
                through[lane] = demand[s]
                gather(lane, parent, tail, through[lane], children)
                for v in range(n):
                    if parent[v, lane] >= 0:
                        carried[parent[v, lane]] += through[lane, v]
            most = 0.0
            for a in range(m):
                most = max(most, carried[a] / capacity[a])
            part = left if most * left <= 1.0 + ROUND_OFF else 1.0 / most
            for lane in range(together):
                for v in range(n):
                    if parent[v, lane] >= 0:
                        flow[start + lane, parent[v, lane]] += through[lane, v] * part
            for a in range(m):
                sent = carried[a] * part
                load[a] += sent
                length[a] *= 1.0 + step * sent / capacity[a]
            left = 0.0 if part == left else left - part
    return grown


def approximation(topology: Topology, epsilon: float) -> tuple[float, int]:
    """F of the scheme of Fleischer and Karakostas, at least (1 - epsilon)^3 of the optimum, and the trees it takes.

    Source  Karakostas, ACM Transactions on Algorithms 4, 2008; Fleischer, SIAM J. Discrete Mathematics 13, 2000

    Arcs have lengths. A phase routes the demand of every source once: the remaining demand is sent along a
    shortest-path tree, scaled down if it would exceed the capacity of an arc, until none is left. The length of an arc
    that carries x grows by the factor 1 + epsilon x/c before the next tree. The phases end once the arcs' capacities
    cost 1, as in the proof of the guarantee. Sources are routed ``LANES`` at a time, as one commodity, which is ours:
    their trees use the same lengths and are scaled down together.
    """
    data, first_out = ConcurrentFlow.by_source(topology), np.searchsorted(topology.tail, np.arange(topology.n + 1))
    tail, head = topology.tail.copy(), topology.head.copy()
    capacity, demand = data.capacity, np.ascontiguousarray(data.demand.T, dtype=float)
    length = (topology.arcs / (1 - epsilon)) ** (-1 / epsilon) / capacity
    flow, load = np.zeros((data.groups, topology.arcs)), np.zeros(topology.arcs)
    phases = trees = 0
    while length @ capacity < 1:
        grown = phase(data.sources, demand, capacity, epsilon, length, flow, load, tail, head, first_out)
        phases, trees = phases + 1, trees + grown
    return phases / float((load / capacity).max()), trees
