"""Exact minimum loads of small networks: a compiled simplex method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64

#: In linear programs: multipliers that count as 0; pivots that do, relative to the largest; closed gap; most pivots.
ROUND_OFF, PIVOT, CLOSED, PIVOTS = 1e-12, 1e-9, 1e-10, 2000
#: Weight of the best known lengths in those for which trees are generated: smoothing (Wentges 1997).
SMOOTHED = 0.8


@compiled()
def tree(count: I64, lengths: F64, source: int, dist: F64, before: I64, order: I64) -> int:
    """Dijkstra from ``source``: fill in distances, predecessors and the order of settled nodes; return their number."""
    n = count.shape[0]
    settled = np.zeros(n, np.bool_)
    for v in range(n):
        dist[v] = np.inf
        before[v] = -1
    dist[source] = 0.0
    for k in range(n):
        u, least = -1, np.inf
        for v in range(n):
            if not settled[v] and dist[v] < least:
                u, least = v, dist[v]
        if u < 0:
            return k
        settled[u] = True
        order[k] = u
        for v in range(n):
            if count[u, v] > 0 and least + lengths[u, v] < dist[v]:
                dist[v] = least + lengths[u, v]
                before[v] = u
    return n


@compiled()
def with_distances(count: I64, lengths: F64) -> None:
    """Set the lengths of missing links to the distances of their ends, so that adding one changes no distance."""
    n = count.shape[0]
    for u in range(n):
        for v in range(n):
            if count[u, v] == 0:
                lengths[u, v] = np.inf
    for k in range(n):
        for u in range(n):
            for v in range(n):
                if count[u, v] == 0 and lengths[u, k] + lengths[k, v] < lengths[u, v]:
                    lengths[u, v] = lengths[u, k] + lengths[k, v]


@compiled()
def _shortest(  # type: ignore[no-untyped-def]
    count, lengths, demand, unit, source, number, dist, before, order, need, load
):
    """Route the demand of ``source`` along shortest paths into ``load``, in units; return the sum of load x length."""
    reached = tree(count, lengths, source, dist, before, order)
    load[:] = 0.0
    paid = 0.0
    for t in range(dist.size):
        need[t] = demand[source, t] / unit
        if need[t] > 0.0:
            paid += need[t] * dist[t]
    if paid < np.inf:
        for k in range(reached - 1, 0, -1):
            v = order[k]
            u = before[v]
            load[number[u, v]] += need[v]
            need[u] += need[v]
    return paid


@compiled()
def _pivot(inverse, x, column, row):  # type: ignore[no-untyped-def]
    """Let a column, in terms of the basis, enter it; ``row`` does not leave. Return whether a row left the basis."""
    # Harris' ratio test: of the rows that limit the step within a tolerance, the one with the largest entry leaves.
    leaving, step, least = -1, np.inf, 0.0
    for i in range(x.size):
        least = max(least, PIVOT * abs(column[i]))
    for i in range(x.size):
        if i != row and column[i] > least:
            step = min(step, (max(x[i], 0.0) + ROUND_OFF * x[row]) / column[i])
    for i in range(x.size):
        if i != row and column[i] > least and max(x[i], 0.0) <= step * column[i]:
            leaving = i if leaving < 0 or column[i] > column[leaving] else leaving
    if leaving < 0:
        return False
    step = x[leaving] / column[leaving]
    for j in range(x.size):
        inverse[leaving, j] /= column[leaving]
    for i in range(x.size):
        if i != leaving and column[i] != 0.0:
            for j in range(x.size):
                inverse[i, j] -= column[i] * inverse[leaving, j]
            x[i] -= step * column[i]
    x[leaving] = step
    return True


@compiled()
def least_load(count: I64, demand: F64, lengths: F64, worst: float) -> tuple[float, float]:  # noqa: C901 - compiled
    """Lower and upper bound on the minimum maximum load with splittable demand; equal unless it ends early.

    The simplex method on min t, sum_sk load_ska x_sk <= count_a t, sum_k x_sk = 1 for every source s, in which k are
    shortest-path trees generated as needed, first for lengths between the multipliers and the best known lengths, and
    for the multipliers if those give no tree that enters. The multipliers l of the links give the lower bound
    sum_st D_st dist_l(s,t) / sum_a count_a l_a.

    Parameters
    ----------
    count, demand
        Numbers of links, and demand between all nodes, ``(n, n)``; the diagonals are 0.
    lengths
        Initial lengths >= 0; on return those of the lower bound, for the links that exist, ``(n, n)``.
    worst
        Ends once the lower bound reaches it.

    Returns
    -------
    Both bounds, infinite if some demand has no path; the upper one is also infinite if the initial lengths reach
    ``worst``, or if the program fails because of round-off.
    """
    n = count.shape[0]
    number = np.full((n, n), -1)
    tail, head, width = np.empty(n * n, np.int64), np.empty(n * n, np.int64), np.empty(n * n)
    m = 0
    for u in range(n):
        for v in range(n):
            if count[u, v] > 0:
                number[u, v], tail[m], head[m], width[m] = m, u, v, count[u, v]
                m += 1
    dist, before, order, need = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    loads, load, price, paid = np.zeros((n, m)), np.zeros(m), 0.0, 0.0
    for s in range(n):
        paid += _shortest(count, lengths, demand, 1.0, s, number, dist, before, order, need, loads[s])
    unit, full = 0.0, 0
    for a in range(m):
        price += width[a] * lengths[tail[a], head[a]]
        for s in range(n):
            load[a] += loads[s, a]
        if load[a] > unit * width[a]:
            unit, full = load[a] / width[a], a
    if paid == np.inf or unit == 0.0:
        return paid, paid
    low = paid / price if price > 0.0 else 0.0
    if low >= worst:
        return low, np.inf
    # The basis: slack of every link but the one with the largest load, whose row has t, and every source's first tree.
    low, worst, rows = low / unit, worst / unit, m + n
    inverse, x, column = np.zeros((rows, rows)), np.empty(rows), np.empty(rows)
    for i in range(rows):
        inverse[i, i], x[i] = 1.0, 1.0
    for a in range(m):
        if a != full:
            share = width[a] / width[full]
            x[a] = (share * load[full] - load[a]) / unit
            inverse[a, full] = -share
            for s in range(n):
                inverse[a, m + s] = (share * loads[s, full] - loads[s, a]) / unit
    inverse[full, full] = -1.0 / width[full]
    for s in range(n):
        inverse[full, m + s] = loads[s, full] / width[full] / unit
    trial, mixed, pivots = np.zeros((n, n)), np.zeros((n, n)), 0
    while pivots < PIVOTS:
        negative = 0
        for a in range(m):
            if inverse[full, a] > inverse[full, negative]:
                negative = a
        if inverse[full, negative] > ROUND_OFF / width[negative]:
            for i in range(rows):
                column[i] = inverse[i, negative]
            if not _pivot(inverse, x, column, full):
                break
            pivots += 1
            continue
        price, known, entered = 0.0, 0.0, False
        for a in range(m):
            trial[tail[a], head[a]] = max(-inverse[full, a], 0.0)
            price += width[a] * trial[tail[a], head[a]]
            known += width[a] * lengths[tail[a], head[a]]
        smoothed = SMOOTHED if known > 0.0 else 0.0
        while not entered:
            for a in range(m):
                best = lengths[tail[a], head[a]] * price / known if smoothed > 0.0 else 0.0
                mixed[tail[a], head[a]] = smoothed * best + (1.0 - smoothed) * trial[tail[a], head[a]]
            paid = 0.0
            for s in range(n):
                paid += _shortest(count, mixed, demand, unit, s, number, dist, before, order, need, loads[s])
            if paid / price > low:
                low = paid / price
                copy_into(lengths, mixed)
            if low >= worst or low >= x[full] * (1.0 - CLOSED):
                break
            for s in range(n):
                gain = inverse[full, m + s]
                for a in range(m):
                    gain += loads[s, a] * inverse[full, a]
                if gain > ROUND_OFF:
                    for i in range(rows):
                        column[i] = inverse[i, m + s]
                        for a in range(m):
                            column[i] += inverse[i, a] * loads[s, a]
                    if _pivot(inverse, x, column, full):
                        entered = True
                        pivots += 1
            if smoothed == 0.0:
                break
            smoothed = 0.0
        if not entered:
            break
    return low * unit, x[full] * unit if low <= x[full] * (1.0 + PIVOT) else np.inf  # round-off has grown
