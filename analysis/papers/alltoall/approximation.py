"""The approximation scheme that the all-to-all paper compares its master LP with, for flows grouped by source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask, Topology

#: A demand that fits up to this share of a capacity is routed without a further tree.
ROUND_OFF = 1e-9


@compiled(nogil=True, error_model="numpy")
def tree(
    root: int, length: F64, head: I64, first_out: I64, distance: F64, parent: I64, queue: I64, waiting: Mask
) -> None:
    """A shortest-path tree, in place, by label correction in first-in first-out order.

    Where there is no path, the distance, ``(n,)``, is infinite and the parent, the arc into the vertex, is -1. A label
    changes only if it gets smaller, so the arcs form a tree even where a length is lost to rounding.
    """
    n = first_out.size - 1
    distance[:] = np.inf
    parent[:] = -1
    distance[root], queue[0] = 0.0, root
    first, count = 0, 1
    while count > 0:
        u = queue[first]
        first = first + 1 if first + 1 < n else 0
        count -= 1
        waiting[u] = False
        for a in range(first_out[u], first_out[u + 1]):
            v, farther = head[a], distance[u] + length[a]
            if farther < distance[v]:
                distance[v], parent[v] = farther, a
                if not waiting[v]:
                    waiting[v] = True
                    queue[first + count if first + count < n else first + count - n] = v
                    count += 1


@compiled(nogil=True, error_model="numpy")
def phase(
    sources: I64, demand: F64, capacity: F64, step: float, length: F64, load: F64, tail: I64, head: I64, first_out: I64
) -> int:
    """Route every source's demand once, in place, and return the number of trees.

    Parameters
    ----------
    sources, demand
        Vertices, ``(|S|,)``, and the demand of each vertex from them, ``(|S|, n)``.
    capacity, length, load
        Of every arc, ``(m,)``; length and load are updated.
    step
        Growth of the length of an arc that is filled.
    """
    n, m = first_out.size - 1, head.size
    distance, parent, carried = np.empty(n), np.empty(n, dtype=np.int64), np.empty(m)
    queue, waiting = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    grown = 0
    for s in range(sources.size):
        left = 1.0
        while left > 0.0:
            tree(sources[s], length, head, first_out, distance, parent, queue, waiting)
            grown += 1
            carried[:] = 0.0
            for v in range(n):
                w = v
                while parent[w] >= 0:
                    carried[parent[w]] += demand[s, v]
                    w = tail[parent[w]]
            most = max_of(carried / capacity)
            part = left if most * left <= 1.0 + ROUND_OFF else 1.0 / most
            load += carried * part
            length *= 1.0 + step * part * carried / capacity
            left = 0.0 if part == left else left - part
    return grown


def approximation(topology: Topology, epsilon: float) -> tuple[float, int]:
    """F of the scheme of Fleischer and Karakostas, at least (1 - epsilon)^3 of the optimum, and the trees it takes.

    Source  Karakostas, ACM Transactions on Algorithms 4, 2008; Fleischer, SIAM J. Discrete Mathematics 13, 2000

    Arcs have lengths. A phase routes the demand of every source once: the remaining demand is sent along a
    shortest-path tree, scaled down if it would exceed the capacity of an arc, until none is left. The length of an arc
    that carries x grows by the factor 1 + epsilon x/c before the next tree. The phases end once the arcs' capacities
    cost 1, as in the proof of the guarantee.
    """
    data, first_out = ConcurrentFlow.by_source(topology), np.searchsorted(topology.tail, np.arange(topology.n + 1))
    tail, head = topology.tail.copy(), topology.head.copy()
    capacity, demand = data.capacity, np.ascontiguousarray(data.demand.T, dtype=float)
    length, load = (topology.arcs / (1 - epsilon)) ** (-1 / epsilon) / capacity, np.zeros(topology.arcs)
    phases = trees = 0
    while length @ capacity < 1:
        trees += phase(data.sources, demand, capacity, epsilon, length, load, tail, head, first_out)
        phases += 1
    return phases / float((load / capacity).max()), trees
