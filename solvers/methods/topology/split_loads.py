"""Norms of loads over equally split shortest paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of, sum_of

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64


#: Value of the norm for demand without a path.
UNREACHED = 1e6


@compiled()
def split_norm(first: I64, head: I64, demand: F64, kind: I64, squarings: int, most: int) -> float:
    """The p-norm of loads over equally split shortest paths, divided by that of ``most`` loads of 1.

    Parameters
    ----------
    first, head
        Links out of node u are ``first[u]`` to ``first[u + 1] - 1``, ``(n + 1,)``; their heads, ``(m,)``.
    demand
        Demand between all nodes, ``(n, n)``, 0 on the diagonal; or from the first of them alone, ``(s, n)``.
    kind
        Links of a kind have one load, the sum of theirs, ``(m,)``.
    squarings
        p is 2 to this power.
    """
    n = first.size - 1
    load, missing = np.zeros(max_of(kind) + 1), 0.0
    depth, order = np.empty(n, np.int64), np.empty(n, np.int64)
    paths, passed = np.empty(n), np.empty(n)
    for source in range(demand.shape[0]):
        depth[:], paths[:] = -1, 0.0
        depth[source], paths[source], order[0] = 0, 1.0, source
        begin, end = 0, 1
        while begin < end:
            u = order[begin]
            begin += 1
            deeper = depth[u] + 1
            for link in range(first[u], first[u + 1]):
                v = head[link]
                if depth[v] < 0:
                    depth[v] = deeper
                    order[end] = v
                    end += 1
                if depth[v] == deeper:
                    paths[v] += paths[u]
        if end < n:
            for v in range(n):
                if depth[v] < 0:
                    missing += demand[source, v]
        for place in range(end - 1, -1, -1):  # passed: demand that reaches a node, per path to it
            u = order[place]
            deeper, sent = depth[u] + 1, 0.0
            for link in range(first[u], first[u + 1]):
                v = head[link]
                if depth[v] == deeper:
                    load[kind[link]] += passed[v] * paths[u]
                    sent += passed[v]
            passed[u] = demand[source, u] / paths[u] + sent
    total = 0.0
    for power in load:
        for _ in range(squarings):
            power *= power
        total += power
    return missing * UNREACHED + (total / most) ** (0.5**squarings)


@compiled()
def load_norm(count: I64, demand: F64, squarings: int) -> float:
    """:func:`split_norm` of numbers of links, ``(n, n)``, divided by that of n loads of 1."""
    n = count.shape[0]
    first, head, links = np.zeros(n + 1, np.int64), np.empty(sum_of(count), np.int64), 0
    for u in range(n):
        for v in range(n):
            for _ in range(count[u, v]):
                head[links] = v
                links += 1
        first[u + 1] = links
    return split_norm(first, head, demand, np.arange(links), squarings, n)
