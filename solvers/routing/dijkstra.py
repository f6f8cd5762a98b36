"""Lightest paths from one vertex, compiled: the kernel that searches over routes call thousands of times a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]


@njit(cache=True, nogil=True)
def lightest_paths(
    first_out: I64, head: I64, weight: F64, source: int, target: int, distance: F64, parent: I64, heap: F64, node: I64
) -> None:
    """Dijkstra from ``source`` with a binary heap, until ``target`` is settled (all vertices if it is -1).

    ``distance`` ``(n,)`` is filled, ``parent`` ``(n,)`` gets the arc into every vertex reached and keeps the others;
    ``heap`` and ``node`` are for work, one place more than there can be arcs and vertices together.
    """
    for v in range(distance.size):
        distance[v] = np.inf
    distance[source] = 0.0
    heap[0], node[0], size = 0.0, source, 1
    while size > 0:
        key, u = heap[0], node[0]
        size -= 1
        last_key, last = heap[size], node[size]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= last_key:
                break
            heap[i], node[i] = heap[child], node[child]
            i = child
        heap[i], node[i] = last_key, last
        if key > distance[u]:
            continue
        if u == target:
            return
        for a in range(first_out[u], first_out[u + 1]):
            v = head[a]
            reach = key + weight[a]
            if reach < distance[v]:
                distance[v], parent[v] = reach, a
                i = size
                size += 1
                while i > 0:
                    above = (i - 1) // 2
                    if heap[above] <= reach:
                        break
                    heap[i], node[i] = heap[above], node[above]
                    i = above
                heap[i], node[i] = reach, v
