"""Shortest-path trees over arcs that grow dearer with load, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]


@njit(cache=True, nogil=True)
def _tree(first_out: I64, head: I64, weight: F64, source: int, distance: F64, parent: I64, heap: I64, key: F64) -> None:
    """Dijkstra from ``source`` with a binary heap (lazy deletion); ``parent`` is the arc into each vertex, -1 none."""
    distance[:] = np.inf
    parent[:] = -1
    distance[source] = 0.0
    size = 1
    heap[0], key[0] = source, 0.0
    while size > 0:
        u, d = heap[0], key[0]
        size -= 1
        hv, hk = heap[size], key[size]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and key[child + 1] < key[child]:
                child += 1
            if key[child] >= hk:
                break
            heap[i], key[i] = heap[child], key[child]
            i = child
        heap[i], key[i] = hv, hk
        if d > distance[u]:
            continue
        for arc in range(first_out[u], first_out[u + 1]):
            v = head[arc]
            if d + weight[arc] < distance[v]:
                distance[v], parent[v] = d + weight[arc], arc
                i = size
                size += 1
                while i > 0 and key[(i - 1) // 2] > distance[v]:
                    heap[i], key[i] = heap[(i - 1) // 2], key[(i - 1) // 2]
                    i = (i - 1) // 2
                heap[i], key[i] = v, distance[v]


@njit(cache=True, nogil=True)
def routes_by_trees(first_out: I64, head: I64, tail: I64, sources: I64, targets: I64, load: F64, aversion: float,
                    mean: float, seed: int) -> tuple[I64, I64]:  # fmt: skip
    """One route a pair; pairs stand by source, sources are taken in random order.

    An arc weighs ``1 + aversion (load + routes so far / mean)`` with a little noise.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    n, m, pairs = first_out.size - 1, head.size, sources.size
    weight, new = np.empty(m), np.zeros(m)
    distance, parent = np.empty(n), np.empty(n, dtype=np.int64)
    heap, key = np.empty(m + n + 1, dtype=np.int64), np.empty(m + n + 1)
    begin = np.searchsorted(sources, np.arange(n + 1))
    route_start = np.zeros(pairs + 1, dtype=np.int64)
    chosen = np.empty((pairs, 1), dtype=np.int64)
    parents = np.full((n, n), -1, dtype=np.int64)
    for s in np.random.permutation(n):  # noqa: NPY002
        if begin[s] == begin[s + 1]:
            continue
        for a in range(m):
            weight[a] = 1.0 + aversion * (load[a] + new[a] / mean) + 0.01 * np.random.random()  # noqa: NPY002
        _tree(first_out, head, weight, s, distance, parent, heap, key)
        parents[s] = parent
        for k in range(begin[s], begin[s + 1]):
            v, hops = targets[k], 0
            while v != s and parent[v] >= 0:
                new[parent[v]] += 1.0
                v = tail[parent[v]]
                hops += 1
            chosen[k, 0] = hops if v == s else 0
    for k in range(pairs):
        route_start[k + 1] = route_start[k] + chosen[k, 0]
    arcs = np.empty(route_start[-1], dtype=np.int64)
    for k in range(pairs):
        s, v = sources[k], targets[k]
        for i in range(route_start[k + 1] - 1, route_start[k] - 1, -1):
            arcs[i] = parents[s, v]
            v = tail[arcs[i]]
    return route_start, arcs


@njit(cache=True, nogil=True)
def loads_by_trees(first_out: I64, head: I64, tail: I64, weight: F64, demand: F64) -> F64:
    """Load of every arc when each pair's demand ``(n, n)`` goes a lightest way, ``(m,)``."""
    n, m = first_out.size - 1, head.size
    load = np.zeros(m)
    distance, parent = np.empty(n), np.empty(n, dtype=np.int64)
    heap, key = np.empty(m + n + 1, dtype=np.int64), np.empty(m + n + 1)
    for s in range(n):
        if not demand[s].any():
            continue
        _tree(first_out, head, weight, s, distance, parent, heap, key)
        for t in range(n):
            if demand[s, t] > 0.0 and np.isfinite(distance[t]):
                v = t
                while v != s:
                    load[parent[v]] += demand[s, t]
                    v = tail[parent[v]]
    return load
