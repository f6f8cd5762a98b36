"""Simulated annealing of links under exact loads, with remembered metrics that rule out most exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from opticoll.compiled import compiled
from opticoll.solvers.methods.topology.length_ascent import raised_bound
from opticoll.solvers.methods.topology.minimum_load import least_load

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64

#: Metrics remembered; part of the steps that exchange the places of two nodes instead of the heads of two links; most
#: steps that raise the bound of a topology before it is routed.
REMEMBERED, PLACES, ASCENT = 1000, 0.1, 50


@dataclass(frozen=True, eq=False)
class Metrics:
    """Metrics of earlier designs, each a lower bound on the load of every design.

    If l is a metric on the nodes, no path from s to t is shorter than l_st, so that any links A carry a maximum load

        Lambda >= sum_st D_st l_st / sum_{a of A} l_a.

    Parameters
    ----------
    length
        The metrics, ``(K, n, n)``.
    paid
        Their numerators, ``(K,)``.
    price
        Their denominators for the current design, ``(K,)``.
    order
        Numbers of the metrics; those that ruled out much are first, ``(K,)``.
    used
        Number of metrics known, ``(1,)``.
    """

    length: F64
    paid: F64
    price: F64
    order: I64
    used: I64

    @classmethod
    def none(cls, n: int) -> Self:
        """Room for metrics on n nodes."""
        room = REMEMBERED
        used = np.zeros(1, dtype=np.int64)
        return cls(np.zeros((room, n, n)), np.zeros(room), np.zeros(room), np.arange(room), used)


@compiled()
def _close(count, lengths):  # type: ignore[no-untyped-def]
    """Replace the lengths of links by the distances between all nodes, a metric."""
    n = count.shape[0]
    for u in range(n):
        for v in range(n):
            if count[u, v] == 0:
                lengths[u, v] = np.inf
        lengths[u, u] = 0.0
    for k in range(n):
        for u in range(n):
            for v in range(n):
                if lengths[u, k] + lengths[k, v] < lengths[u, v]:
                    lengths[u, v] = lengths[u, k] + lengths[k, v]


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


@compiled(inline="always")
def _difference(length, tail, head, links, ends, size):  # type: ignore[no-untyped-def]
    """By how much an exchange increases the total length of all links."""
    total = 0.0
    for i in range(size):
        total += length[ends[0, i], ends[1, i]] - length[tail[links[i]], head[links[i]]]
    return total


@compiled()
def _remember(length, paid, order, used, lengths, demand):  # type: ignore[no-untyped-def]
    """Store a metric, if there is no room in place of one that ruled out little; return its number."""
    if used[0] < order.size:
        place = used[0]
        used[0] += 1
    else:
        place = order.size - 1 - np.random.randint(order.size // 4)  # noqa: NPY002
    number, total = order[place], 0.0
    for u in range(demand.shape[0]):
        for v in range(demand.shape[0]):
            length[number, u, v] = lengths[u, v]
            total += demand[u, v] * lengths[u, v]
    paid[number] = total
    order[place], order[place // 2] = order[place // 2], number
    return number


@compiled()
def anneal_loads(  # noqa: C901 - compiled
    tail: I64,
    head: I64,
    best_tail: I64,
    best_head: I64,
    loads: F64,
    most: int,
    demand: F64,
    length: F64,
    paid: F64,
    price: F64,
    order: I64,
    used: I64,
    moves: int,
    heat: float,
    cool: float,
    seed: int,
) -> None:
    """Anneal the minimum maximum load by exchanges of the heads of two links, or of the places of two nodes.

    An exchange is accepted if the load stays below a random limit. Remembered metrics rule out many others in a few
    operations each, and changes of the last state's lengths (:func:`.raised_bound`) most of the rest. What is left is
    routed by :func:`.least_load`. Both add a metric each time.

    Parameters
    ----------
    tail, head
        Links, ``(m,)`` each; on return the last state.
    best_tail, best_head, loads
        The best links, ``(m,)`` each, and the loads of both states, ``(2,)``; the best one is initially infinite.
    most, demand
        Most links of a pair; demand between all nodes, ``(n, n)``.
    length, paid, price, order, used
        The arrays of :class:`Metrics`.
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
    _close(count, lengths)
    for k in range(used[0]):
        price[k] = 0.0
        for a in range(m):
            price[k] += length[k, tail[a], head[a]]
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
        worst, excluded = now * (1.0 - level * np.log(1.0 - np.random.random())), False  # noqa: NPY002
        for place in range(used[0]):
            k = order[place]
            if paid[k] >= worst * (price[k] + _difference(length[k], tail, head, links, ends, size)):
                order[place], order[place // 2] = order[place // 2], k
                excluded = True
                break
        if excluded:
            continue
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
        number = -1
        if low < np.inf:
            _close(count, trial)
            number = _remember(length, paid, order, used, trial, demand)
        if high <= worst:
            for k in range(used[0]):
                price[k] += _difference(length[k], tail, head, links, ends, size)
            tail[:], head[:] = new_tail, new_head
            now = high
            lengths[:] = trial
            if now < loads[1] * (1.0 - 1e-9):
                loads[1] = now
                best_tail[:], best_head[:] = tail, head
        else:
            for i in range(size):
                count[ends[0, i], ends[1, i]] -= 1
            for i in range(size):
                count[tail[links[i]], head[links[i]]] += 1
        if number >= 0:
            price[number] = 0.0
            for a in range(m):
                price[number] += length[number, tail[a], head[a]]
    loads[0] = now
