"""Compiled kernels: counts, lists and searches of simple paths, and flows without cycles.

A depth-first search from one source visits every simple path out of it exactly once, so counting takes time
proportional to the number of paths. Arcs are sorted by tail. Importing this module compiles or loads the kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask


@compiled(nogil=True)
def simple_paths(
    first_out: I64,
    head: I64,
    allowed: Mask,
    end: Mask,
    source: int,
    longest: int,
    most: int,
    arcs: I64,
    length: I64,
    target: I64,
) -> tuple[int, int, int]:
    """Count simple paths from ``source`` over ``allowed`` arcs to vertices of ``end``, of at most ``longest`` arcs.

    They are found in depth-first order, lexicographic by arc numbers. As many as ``length`` and ``target`` have
    entries are listed there, and concatenated in ``arcs``.

    Returns
    -------
    Number of paths, sum of their lengths, and steps of the search, which stops once the steps exceed ``most``.
    """
    n = first_out.size - 1
    on_path = np.zeros(n, dtype=np.bool_)
    vertex = np.empty(n + 1, dtype=np.int64)
    cursor = np.empty(n + 1, dtype=np.int64)
    taken = np.empty(n + 1, dtype=np.int64)
    depth, count, total, steps = 0, 0, 0, 0
    vertex[0], cursor[0], on_path[source] = source, first_out[source], True
    while depth >= 0:
        u = vertex[depth]
        if depth < longest and cursor[depth] < first_out[u + 1]:
            arc = cursor[depth]
            cursor[depth] += 1
            v = head[arc]
            if allowed[arc] and not on_path[v]:
                taken[depth] = arc
                depth += 1
                vertex[depth], cursor[depth], on_path[v] = v, first_out[v], True
                steps += 1
                if end[v]:
                    if count < length.size:
                        for i in range(depth):
                            arcs[total + i] = taken[i]
                        length[count], target[count] = depth, v
                    count += 1
                    total += depth
                if steps > most:
                    return count, total, steps
        else:
            on_path[u] = False
            depth -= 1
    return count, total, steps


@compiled(nogil=True)
def backtracked(parent: I64, tail: I64, source: int, target: int, path: I64) -> int:
    """Write the arcs from ``source`` to ``target``, given the arc ``parent`` into every vertex; return their number."""
    count = 0
    v = target
    while v != source:
        count += 1
        v = tail[parent[v]]
    v = target
    for i in range(count - 1, -1, -1):
        path[i] = parent[v]
        v = tail[parent[v]]
    return count


@compiled(nogil=True)
def shortest_path(
    first_out: I64, head: I64, tail: I64, barred_arc: Mask, barred_vertex: Mask, source: int, target: int, path: I64
) -> int:
    """Write a path with fewest arcs that avoids barred vertices and arcs to ``path``; return its length, -1 if none.

    Breadth-first with arcs in ascending order, so that the answer is the same on all machines.
    """
    n = first_out.size - 1
    parent = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    queue[0] = source
    begin, stop = 0, 1
    while begin < stop:
        u = queue[begin]
        begin += 1
        for arc in range(first_out[u], first_out[u + 1]):
            v = head[arc]
            if barred_arc[arc] or barred_vertex[v] or v == source or parent[v] >= 0:
                continue
            parent[v] = arc
            if v == target:
                return backtracked(parent, tail, source, target, path)
            queue[stop] = v
            stop += 1
    return -1


@compiled(nogil=True)
def disjoint_flow(
    n: int, tail: I64 | list[int], head: I64 | list[int], source: int, target: int
) -> tuple[int, list[bool]]:
    """Find a largest set of arc-disjoint paths of minimum total length: the number of paths, and a mask of arcs.

    Successive shortest augmenting paths (Bellman-Ford; an arc in use costs -1 backwards) with unit capacities:
    a minimum-cost maximum flow, whose support has no cycle because cycles have positive cost. As plain Python, with
    lists, it takes 0.1 us an arc.
    """
    m = len(head)
    far = n * m + 1
    used = [False] * m
    count = 0
    while True:
        distance, parent = [far] * n, [-1] * n
        distance[source] = 0
        changed = True
        while changed:
            changed = False
            for arc in range(m):
                u, v = tail[arc], head[arc]
                if used[arc]:
                    if distance[v] < far and distance[v] - 1 < distance[u]:
                        distance[u], parent[u], changed = distance[v] - 1, arc, True
                elif distance[u] + 1 < distance[v]:
                    distance[v], parent[v], changed = distance[u] + 1, arc, True
        if distance[target] >= far:
            return count, used
        v = target
        while v != source:
            arc = parent[v]
            if head[arc] == v and not used[arc]:
                used[arc] = True
                v = tail[arc]
            else:
                used[arc] = False
                v = head[arc]
        count += 1


@compiled(nogil=True)
def cancel_cycles(flow: F64, head: I64, tail: I64, first_out: I64) -> None:
    """Subtract circulations from a flow, ``(m,)``, in place, until its support has no cycle, by depth-first search.

    Each cycle found loses its smallest arc, so at most m cycles are cancelled.
    """
    n = first_out.size - 1
    state, cursor, path = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for u in range(n):
        state[u] = 0  # 0 new, 1 on the current path, 2 done
        cursor[u] = first_out[u]
    for root in range(n):
        if state[root] != 0:
            continue
        depth = 0
        u = root
        state[u] = 1
        while True:
            while cursor[u] < first_out[u + 1] and flow[cursor[u]] <= 0.0:
                cursor[u] += 1
            if cursor[u] == first_out[u + 1]:
                state[u] = 2
                if depth == 0:
                    break
                depth -= 1
                u = tail[path[depth]]
                cursor[u] += 1  # its head is done: no cycle through this arc
                continue
            arc = cursor[u]
            v = head[arc]
            if state[v] == 2:
                cursor[u] += 1
            elif state[v] == 0:
                path[depth] = arc
                depth += 1
                state[v] = 1
                u = v
            else:  # the path from v to u and this arc close a cycle
                at = depth
                least = flow[arc]
                w = u
                while w != v:
                    at -= 1
                    least = min(least, flow[path[at]])
                    w = tail[path[at]]
                flow[arc] -= least
                dry = depth
                for position in range(depth - 1, at - 1, -1):
                    flow[path[position]] -= least
                    if flow[path[position]] <= 0.0:
                        dry = position
                # Resume at the tail of the first arc along the path whose flow is now 0.
                for position in range(dry, depth):
                    state[head[path[position]]] = 0
                if dry < depth:
                    u = tail[path[dry]]
                    depth = dry
