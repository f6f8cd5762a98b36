"""Simulated annealing of links under exact loads, with lengths that rule out most exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.solvers.methods.topology.length_ascent import raised_bound
from opticoll.solvers.methods.topology.minimum_load import least_load, with_distances

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64

#: Part of the steps that exchange the places of two nodes instead of the heads of two links; most steps that raise the
#: bound of a topology before it is routed.
PLACES, ASCENT = 0.1, 50


@compiled()
def _proposed(tail, head, count, most, links, ends):  # type: ignore[no-untyped-def]
    """Draw an exchange: its links, and their new ``ends`` ``(2, .)``; return their number, 0 if it is not allowed."""
    n, m = count.shape[0], tail.size
    if np.random.random() >= PLACES:  # noqa: NPY002 - the generator of the compiled code
        a, b = np.random.randint(m), np.random.randint(m)  # noqa: NPY002
        u, v, x, y = tail[a], head[a], tail[b], head[b]
        if u in (x, y) or v in (x, y) or count[u, y] >= most or count[x, v] >= most:
            return 0
        links[0], ends[0, 0], ends[1, 0] = a, u, y
        links[1], ends[0, 1], ends[1, 1] = b, x, v
        return 2
    u, v, size = np.random.randint(n), np.random.randint(n), 0  # noqa: NPY002
    if u == v:
        return 0
    for a in range(m):
        if tail[a] in (u, v) or head[a] in (u, v):
            links[size] = a
            ends[0, size] = v if tail[a] == u else u if tail[a] == v else tail[a]
            ends[1, size] = v if head[a] == u else u if head[a] == v else head[a]
            size += 1
    return size


@compiled()
def anneal_loads(
    tail: I64,
    head: I64,
    best_tail: I64,
    best_head: I64,
    loads: F64,
    most: int,
    demand: F64,
    moves: int,
    heat: float,
    cool: float,
    seed: int,
) -> None:
    """Anneal the minimum maximum load by exchanges of the heads of two links, or of the places of two nodes.

    An exchange is accepted if the load stays below a random limit. Changes of the last state's lengths
    (:func:`.raised_bound`) rule out most others, and :func:`.least_load` routes what is left.

    Parameters
    ----------
    tail, head
        Links, ``(m,)`` each; on return the last state.
    best_tail, best_head, loads
        The best links, ``(m,)`` each, and the loads of both states, ``(2,)``; the best one is initially infinite.
    most, demand
        Most links of a pair; demand between all nodes, ``(n, n)``.
    moves, heat, cool
        Number of exchanges; first and last temperature, relative to the load.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    n, m = demand.shape[0], tail.size
    count, lengths = np.zeros((n, n), np.int64), np.ones((n, n))
    for a in range(m):
        count[tail[a], head[a]] += 1
    now = least_load(count, demand, lengths, np.inf)[1]
    if now == np.inf:
        return
    with_distances(count, lengths)
    if now < loads[1]:
        loads[1] = now
        best_tail[:], best_head[:] = tail, head
    links, ends, trial = np.empty(m, np.int64), np.empty((2, m), np.int64), lengths.copy()
    new_tail, new_head, raised, nodes = tail.copy(), head.copy(), np.empty(m), np.empty((n, n), np.int64)
    for s in range(n):
        for v in range(n):
            nodes[s, v] = (s + v) % n
    for move in range(moves):
        size = _proposed(tail, head, count, most, links, ends)
        if size == 0:
            continue
        level = heat * (cool / heat) ** (move / moves)
        worst = now * (1.0 - level * np.log(1.0 - np.random.random()))  # noqa: NPY002
        new_tail[:], new_head[:] = tail, head
        for i in range(size):
            new_tail[links[i]], new_head[links[i]] = ends[0, i], ends[1, i]
            count[tail[links[i]], head[links[i]]] -= 1
        for i in range(size):
            count[ends[0, i], ends[1, i]] += 1
        for a in range(m):
            ends_apart = lengths[new_tail[a], new_head[a]]
            raised[a] = ends_apart if ends_apart < np.inf else 0.0
            trial[new_tail[a], new_head[a]] = np.inf
        low, high = raised_bound(new_tail, new_head, demand, raised, worst, ASCENT, nodes)[0], np.inf
        for a in range(m):
            trial[new_tail[a], new_head[a]] = min(trial[new_tail[a], new_head[a]], raised[a])
        if low < worst:
            low, high = least_load(count, demand, trial, worst)
        if high <= worst:
            tail[:], head[:] = new_tail, new_head
            now = high
            with_distances(count, trial)
            lengths[:] = trial
            if now < loads[1] * (1.0 - 1e-9):
                loads[1] = now
                best_tail[:], best_head[:] = tail, head
        else:
            for i in range(size):
                count[ends[0, i], ends[1, i]] -= 1
            for i in range(size):
                count[tail[links[i]], head[links[i]]] += 1
    loads[0] = now
