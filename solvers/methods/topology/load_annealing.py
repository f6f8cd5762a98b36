"""Simulated annealing of links under exact loads, with lengths that rule out most exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into, sum_of
from opticoll.solvers.methods.topology.minimum_load import least_load, with_distances

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64


#: Over-relaxation of a step, between 1 (onto the violated half-space) and 2 (its mirror image); least length of a link,
#: relative to the sum of all: positive, so that nodes on a path differ in distance.
RELAXED, LEAST = 1.8, 1e-9


@compiled()
def out_links(tail: I64, n: int) -> tuple[I64, I64]:
    """Bounds ``first``, ``(n + 1,)``, in the links by tail, ``(m,)``: ``link[first[u]:first[u + 1]]`` leave node u."""
    first, link = np.zeros(n + 1, np.int64), np.empty(tail.size, np.int64)
    for a in range(tail.size):
        first[tail[a] + 1] += 1
    for u in range(n):
        first[u + 1] += first[u]
    free = first[:n].copy()
    for a in range(tail.size):
        link[free[tail[a]]] = a
        free[tail[a]] += 1
    return first, link


@compiled()
def _settle(first, link, head, lengths, nodes, place, dist, before):  # type: ignore[no-untyped-def]
    """Shortest distances from ``nodes[0]``; sort ``nodes`` by them. Fast if they are almost sorted."""
    n = nodes.size
    dist[:] = np.inf
    dist[nodes[0]], before[nodes[0]] = 0.0, -1
    again = True
    while again:
        again = False
        for k in range(n):
            place[nodes[k]] = k
        for k in range(n):
            u = nodes[k]
            for i in range(first[u], first[u + 1]):
                a = link[i]
                v = head[a]
                if dist[u] + lengths[a] < dist[v]:
                    dist[v] = dist[u] + lengths[a]
                    before[v] = a
                    again = again or place[v] < k
        for k in range(1, n):
            v, j = nodes[k], k - 1
            while j >= 0 and dist[nodes[j]] > dist[v]:
                nodes[j + 1] = nodes[j]
                j -= 1
            nodes[j + 1] = v


@compiled()
def raised_bound(
    tail: I64, head: I64, demand: F64, lengths: F64, worst: float, steps: int, nodes: I64
) -> tuple[float, int]:
    """Lower bound on the minimum maximum load, raised by changing the lengths until it reaches ``worst``.

    Lengths l >= 0 of links prove that the load is at least ``worst`` if and only if

        h(l) = sum_st D_st dist_l(s,t) - worst sum_a l_a >= 0.

    h is concave and positively homogeneous, and the loads of shortest paths minus ``worst`` are a supergradient. Each
    step relaxes the half-space of l that it defines (Agmon; Motzkin and Schoenberg, Canadian J. Math. 6, 1954).

    Parameters
    ----------
    tail, head
        Links, ``(m,)`` each; parallel links are separate.
    demand
        Demand between all nodes, ``(n, n)``, 0 on the diagonal.
    lengths
        Initial lengths >= 0, ``(m,)``; on return those of the bound.
    worst, steps
        Ends once the bound reaches ``worst``, or after this many steps.
    nodes
        Permutations of the nodes, the source first, in about the order of their distances, ``(n, n)``; updated.

    Returns
    -------
    The bound, infinite if some demand has no path; and the steps taken.
    """
    n, m = demand.shape[0], tail.size
    first, link = out_links(tail, n)
    place, before = np.empty(n, np.int64), np.empty(n, np.int64)
    dist, need, load = np.empty(n), np.empty(n), np.empty(m)
    trial, low = lengths.copy(), 0.0
    least = LEAST * sum_of(trial)
    for a in range(m):
        trial[a] = max(trial[a], least)
    for step in range(steps):
        load[:] = 0.0
        paid, price, size = 0.0, 0.0, 0.0
        for s in range(n):
            order = nodes[s]
            _settle(first, link, head, trial, order, place, dist, before)
            for t in range(n):
                need[t] = demand[s, t]
                if need[t] > 0.0:
                    paid += need[t] * dist[t]
            if paid == np.inf:
                return np.inf, step
            for k in range(n - 1, 0, -1):
                v = order[k]
                if need[v] > 0.0:
                    load[before[v]] += need[v]
                    need[tail[before[v]]] += need[v]
        for a in range(m):
            price += trial[a]
        if paid > low * price:
            low = paid / price
            copy_into(lengths, trial)
        if low >= worst:
            return low, step + 1
        least = LEAST * price
        for a in range(m):
            if load[a] > worst or trial[a] > least:
                size += (load[a] - worst) ** 2
        if size == 0.0:
            break
        stride = RELAXED * (worst * price - paid) / size
        for a in range(m):
            trial[a] = max(trial[a] + stride * (load[a] - worst), least)
    return low, steps


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
    state: I64, best: I64, loads: F64, most: int, demand: F64, moves: int, heat: float, cool: float, seed: int
) -> None:
    """Anneal the minimum maximum load by exchanges of the heads of two links, or of the places of two nodes.

    An exchange is accepted if the load stays below a random limit. Changes of the last state's lengths
    (:func:`.raised_bound`) rule out most others, and :func:`.least_load` routes what is left.

    Parameters
    ----------
    state, best
        Tails and heads of the links, ``(2, m)``: on return those of the last state, and of the best one.
    loads
        The loads of both, ``(2,)``; that of the best one is initially infinite.
    most, demand
        Most links of a pair; demand between all nodes, ``(n, n)``.
    moves, heat, cool
        Number of exchanges; first and last temperature, relative to the load.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    n, m, new = demand.shape[0], state.shape[1], state.copy()
    tail, head, new_tail, new_head = state[0], state[1], new[0], new[1]
    count, lengths = np.zeros((n, n), np.int64), np.ones((n, n))
    for a in range(m):
        count[tail[a], head[a]] += 1
    now = least_load(count, demand, lengths, np.inf)[1]
    if now == np.inf:
        return
    with_distances(count, lengths)
    if now < loads[1]:
        loads[1] = now
        copy_into(best, state)
    links, ends, trial = np.empty(m, np.int64), np.empty((2, m), np.int64), lengths.copy()
    raised, nodes = np.empty(m), np.empty((n, n), np.int64)
    for s in range(n):
        for v in range(n):
            nodes[s, v] = (s + v) % n
    for move in range(moves):
        size = _proposed(tail, head, count, most, links, ends)
        if size == 0:
            continue
        level = heat * (cool / heat) ** (move / moves)
        worst = now * (1.0 - level * np.log(1.0 - np.random.random()))  # noqa: NPY002
        copy_into(new, state)
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
            copy_into(state, new)
            now = high
            with_distances(count, trial)
            copy_into(lengths, trial)
            if now < loads[1] * (1.0 - 1e-9):
                loads[1] = now
                copy_into(best, state)
        else:
            for i in range(size):
                count[ends[0, i], ends[1, i]] -= 1
            for i in range(size):
                count[tail[links[i]], head[links[i]]] += 1
    loads[0] = now
