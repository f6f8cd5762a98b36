"""Compiled kernels of routes whose arcs ascend in an order of all arcs.

Arcs are processed in their order; a shortest ascending walk to the head of an arc goes by the shortest one found so far
to its tail. So one pass over an order finds the shortest ascending paths from a source to all vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into, max_of

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask

#: Weight of a link without load, relative to the rise of the potential of the busiest one: of routes with equal loads
#: the shorter is taken.
HOP = 1e-7
#: Kinds of arcs tried to find one that is incident with another.
TRIES = 1000


@compiled(nogil=True)
def _ascending(order: I64, over: I64, tail: I64, head: I64, length: F64, sources: I64, distance: F64) -> None:
    for i in range(sources.size):
        row = distance[i]
        row[:] = np.inf
        row[sources[i]] = 0.0
        for c in order:
            for a in range(over[c], over[c + 1]):
                reach = row[tail[a]] + length[c]
                if reach < row[head[a]]:
                    row[head[a]] = reach


@compiled(nogil=True)
def _work(distance: F64, demand: F64, far: float) -> float:
    total = 0.0
    for i in range(demand.shape[0]):
        for v in range(demand.shape[1]):
            if demand[i, v] > 0:
                total += demand[i, v] * min(distance[:, i, v].min(), far)
    return total


@compiled(nogil=True)
def shorten(
    order: I64,
    over: I64,
    tail: I64,
    head: I64,
    follows: Mask,
    length: F64,
    sources: I64,
    demand: F64,
    far: float,
    enough: float,
    moves: int,
    hot: float,
    cool: float,
    seed: int,
) -> float:
    """Change orders by annealing so that demands have short ascending paths; return demand times length, summed.

    Parameters
    ----------
    order
        The kinds of arcs in every order, ``(L, kinds)``; changed to the best that was found.
    over, tail, head, follows
        The ends of the arcs of kind c are ``tail[over[c]:over[c+1]]`` and ``head[over[c]:over[c+1]]``; which kinds have
        an arc that begins where one of another ends, ``(kinds, kinds)``.
    length, far
        Positive lengths by kind, and that of a pair without an ascending path.
    sources, demand
        Vertices, ``(N,)``, and what each sends to every vertex, ``(N, n)``.
    enough
        The search ends at this sum.
    hot, cool, seed
        Temperatures, of the sum; of the random steps.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    layers, m = order.shape
    distance = np.empty((layers, *demand.shape))
    for level in range(layers):
        _ascending(order[level], over, tail, head, length, sources, distance[level])
    now = _work(distance, demand, far)
    best, kept = now, order.copy()
    for move in range(moves):
        if best <= enough:
            break
        own, i = np.random.randint(layers), np.random.randint(m)  # noqa: NPY002
        a, j = order[own, i], -1
        for _ in range(TRIES):  # a kind that follows this one, or comes before it
            other = np.random.randint(m)  # noqa: NPY002
            b = order[own, other]
            if follows[a, b] or follows[b, a]:
                j = other
                break
        if j < 0:
            continue
        _shift(order[own], i, j)
        before = distance[own].copy()
        _ascending(order[own], over, tail, head, length, sources, distance[own])
        then = _work(distance, demand, far)
        heat = hot * (cool / hot) ** (move / moves)
        if then <= now or np.random.random() < np.exp((now - then) / heat):  # noqa: NPY002
            now = then
            if now < best:
                best, kept = now, order.copy()
        else:
            copy_into(distance[own], before)
            _shift(order[own], j, i)
    copy_into(order, kept)
    return best


@compiled(nogil=True)
def _shift(row: I64, start: int, stop: int) -> None:
    """Move the entry at one place to another, and those between by one place."""
    entry, step = row[start], 1 if stop > start else -1
    for k in range(start, stop, step):
        row[k] = row[k + step]
    row[stop] = entry


@compiled(nogil=True)
def reroute_ascending(
    order: I64,
    tail: I64,
    head: I64,
    kind: I64,
    capacity: F64,
    ends: I64,
    amount: F64,
    pairs: I64,
    together: int,
    power: float,
    noise: float,
    seed: int,
    load: F64,
    route: I64,
    layer: I64,
) -> int:
    """Give pairs, one after the other, the ascending path that raises a potential of the loads least.

    The potential is the sum of loads per capacity to ``power``; ``noise`` varies the rises, by this fraction at most.

    Parameters
    ----------
    order
        The arcs in every order, ``(L, m)``.
    kind, capacity
        Arcs of a kind have the same load and place, ``(m,)``; capacity by kind.
    ends, amount
        Source and target of every pair, ``(2, K)``, and its demand, ``(K,)``.
    pairs, together
        Those that are placed, in this order; up to so many that follow each other and have the same source are placed
        by the same loads.
    load, route, layer
        Load by kind; arcs of every pair's route, -1 after its end, ``(K, longest)``; its order, ``(K,)``,
        -1 without a route. Changed.

    Returns
    -------
    Number of pairs for which there is no ascending path of at most ``longest`` arcs.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    layers, m = order.shape
    n, longest = max(max_of(tail), max_of(head)) + 1, route.shape[1]
    rise, reach, last = np.empty(load.size), np.empty((layers, n)), np.empty((layers, n), dtype=np.int64)
    previous = np.empty((layers, m), dtype=np.int64)
    lost = stop = 0
    while stop < pairs.size:
        start, source, size = stop, ends[0, pairs[stop]], 0.0
        while stop < pairs.size and stop < start + together and ends[0, pairs[stop]] == source:
            k, stop = pairs[stop], stop + 1
            size += amount[k]
            for i in range(longest):
                if route[k, i] < 0:
                    break
                load[kind[route[k, i]]] -= amount[k]
        size /= stop - start
        unit = max_of((load + size) / capacity)
        for c in range(load.size):
            low, high = max(load[c], 0.0) / capacity[c] / unit, (load[c] + size) / capacity[c] / unit
            rise[c] = (high**power - low**power + HOP) * (1.0 + noise * np.random.random())  # noqa: NPY002
        reach[:], last[:] = np.inf, -1
        for level in range(layers):
            row, end = reach[level], last[level]
            row[source] = 0.0
            for a in order[level]:
                through = row[tail[a]] + rise[kind[a]]
                if through < row[head[a]]:
                    row[head[a]], previous[level, a], end[head[a]] = through, end[tail[a]], a
        for k in pairs[start:stop]:
            own = reach[:, ends[1, k]].argmin()
            count, a = 0, last[own, ends[1, k]]
            while a >= 0:
                count, a = count + 1, previous[own, a]
            route[k], layer[k] = -1, -1
            if count == 0 or count > longest:
                lost += 1
                continue
            layer[k], a = own, last[own, ends[1, k]]
            for i in range(count - 1, -1, -1):
                route[k, i], a = a, previous[own, a]
            for i in range(count):
                load[kind[route[k, i]]] += amount[k]
    return lost
