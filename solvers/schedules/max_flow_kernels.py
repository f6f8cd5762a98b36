"""Compiled max-flows in whole numbers, of which a packing of trees takes very many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into

if TYPE_CHECKING:
    from opticoll.instances.topology import I64

#: Maximum sum of capacities.
MOST_FLOW = 1 << 60


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
        copy_into(residual[0::2], capacity)
        residual[1::2] = 0
        sent = max_flow(first, listed, tail, head, residual, source, source, ranks[i], need)
        if sent < need:
            return i, sent
    return -1, need
