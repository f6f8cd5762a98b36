"""Lengths that rule out a topology: the relaxation method on the dual of the minimum maximum load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled

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
    least = LEAST * trial.sum()
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
            lengths[:] = trial
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
