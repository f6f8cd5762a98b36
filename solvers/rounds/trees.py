"""Shortest-path trees over arcs that grow dearer with load, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from solvers.routing.dijkstra import lightest_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]


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
        parent[:] = -1
        lightest_paths(first_out, head, weight, s, -1, distance, parent, key, heap)
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
        parent[:] = -1
        lightest_paths(first_out, head, weight, s, -1, distance, parent, key, heap)
        for t in range(n):
            if demand[s, t] > 0.0 and np.isfinite(distance[t]):
                v = t
                while v != s:
                    load[parent[v]] += demand[s, t]
                    v = tail[parent[v]]
    return load
