"""Time of given circuits, estimated from prices, and sequences of circuits by annealing on it.

For circuits that are set, let those of every configuration have prices that add up to 1. Then sum_k t_k is at least
demand times the cheapest walks in time: a circuit carries t_k at most, so what flows pay is at most sum_k t_k. Prices
of circuits that carry more than others on the cheapest walks rise (multiplicative weights: Plotkin, Shmoys & Tardos,
Math. Oper. Res. 20(2), 1995). The best of some rounds is a lower bound, some per cent below the least time, and orders
sequences almost as the least time does: an estimate for thousands of sequences, of which few are solved as linear
programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.formulations.topology.sequence_bounds import one_by_one
from opticoll.solvers.methods.topology.length_ascent import out_links
from opticoll.solvers.methods.topology.sequence_enumeration import ROUND_OFF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import I64

#: Rounds in which prices change for a bound and for an estimate, and how much they do at first.
ROUNDS, ESTIMATED, RISE = 40, 20, 1.0
#: Estimate where some demand is not served, for each shard of it and one more.
UNSERVED = 1e9
#: Share of the time by which an exchange may be worse at first.
THRESHOLD = 0.03
#: One of so many exchanges moves a circuit to free ports.
TO_FREE = 8
#: Exchanges between two looks at the clock.
CALLED = 200


@compiled()
def priced_time(counts, demand, step, goal, rounds=ROUNDS):  # type: ignore[no-untyped-def]
    """Lower bound on the sum of the lengths for circuits ``(K, n, n)``, raised until it is ``goal`` if possible.

    Infinite if some demand is not served.
    """
    number, tail, head = listed(counts, True)
    time = _estimated(number, tail, head, demand, step, goal, rounds)
    return np.inf if time >= UNSERVED else time * (1 - ROUND_OFF)


@compiled()
def listed(counts, directed):  # type: ignore[no-untyped-def]
    """Number of circuits of every configuration, ``(K,)``, and their tails and heads, ``(K, A)``.

    Unless ``directed``, a circuit at an even place is followed by that of the other way.
    """
    K, n = counts.shape[0], counts.shape[1]
    number = np.zeros(K, np.int64)
    for k in range(K):
        number[k] = counts[k].sum()
    tail, head = np.zeros((K, number.max()), np.int64), np.zeros((K, number.max()), np.int64)
    for k in range(K):
        place = 0
        for u in range(n):
            for v in range(n if directed else u):
                for _ in range(counts[k, u, v]):
                    tail[k, place], head[k, place] = u, v
                    place += 1
                    if not directed:
                        tail[k, place], head[k, place] = v, u
                        place += 1
    return number, tail, head


@compiled()
def _estimated(number, tail, head, demand, step, goal, rounds):  # type: ignore[no-untyped-def]  # noqa: C901 - compiled
    """Demand times the cheapest walks, the most of some rounds, or until it is ``goal``."""
    K, A, n = tail.shape[0], tail.shape[1], demand.shape[0]
    first, order = np.zeros((K, n + 1), np.int64), np.zeros((K, A), np.int64)
    price, load = np.zeros((K, A)), np.zeros((K, A))
    for k in range(K):
        first[k], order[k, : number[k]] = out_links(tail[k, : number[k]], n)
        price[k, : number[k]] = 1.0 / max(number[k], 1)
    far, before, last = np.zeros(n), np.zeros(n), np.full((K, n), -1)
    queue, waiting = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    best = 0.0
    for turn in range(rounds):
        load[:] = 0.0
        value, missing = 0.0, 0.0
        for s in range(n):
            if not demand[s].any():
                continue
            far[:] = np.inf
            far[s] = 0.0
            for k in range(K):
                last[k] = -1
                before[:] = far
                front, size = 0, 0
                for u in range(n):
                    if far[u] < np.inf:
                        queue[size] = u
                        waiting[u] = True
                        size += 1
                while size > 0:
                    u = queue[front]
                    front, size = (front + 1) % n, size - 1
                    waiting[u] = False
                    for p in range(first[k, u], first[k, u + 1]):
                        a = order[k, p]
                        v, cost = head[k, a], (before[u] if step else far[u]) + price[k, a]
                        if cost < far[v]:
                            far[v], last[k, v] = cost, a
                            if not step and not waiting[v]:
                                queue[(front + size) % n] = v
                                waiting[v] = True
                                size += 1
            for v in range(n):
                if demand[s, v] > 0 and far[v] == np.inf:
                    missing += demand[s, v]
                elif demand[s, v] > 0:
                    value += demand[s, v] * far[v]
                    at, k = v, K - 1
                    while k >= 0:
                        a = last[k, at]
                        if a >= 0:
                            load[k, a] += demand[s, v]
                            at = tail[k, a]
                        if a < 0 or step:
                            k -= 1
        if missing > 0:
            return UNSERVED * (1 + missing)
        best = max(best, value)
        if best >= goal:
            break
        for k in range(K):
            most, total = load[k].max(), 0.0
            for a in range(number[k]):
                if most > 0:
                    price[k, a] *= np.exp(RISE / (1 + turn) ** 0.5 * load[k, a] / most)
                total += price[k, a]
            price[k] /= max(total, 1.0e-300)
    return best


@compiled()
def _add(counts, u, v, way, directed):  # type: ignore[no-untyped-def]
    """Add (``way`` = 1) or remove (-1) a circuit of a configuration."""
    counts[u, v] += way
    if not directed:
        counts[v, u] += way


@compiled()
def _swap(counts, tail, head, k, a, b, y, directed):  # type: ignore[no-untyped-def]
    """Exchange the heads of circuits a and b of configuration k; without b (-1), lead a to y. Return a's last head."""
    c, u, v = counts[k], tail[k, a], head[k, a]
    if b >= 0:
        x, y = tail[k, b], head[k, b]
        _add(c, x, y, -1, directed)
        _add(c, x, v, 1, directed)
        head[k, b] = v
        if not directed:
            tail[k, b ^ 1] = v
    _add(c, u, v, -1, directed)
    _add(c, u, y, 1, directed)
    head[k, a] = y
    if not directed:
        tail[k, a ^ 1] = y
    return v


@compiled()
def _drawn(random, counts, number, tail, head, fixed, degree, directed):  # type: ignore[no-untyped-def]
    """A random exchange for :func:`_swap`; a configuration of -1 if this one is none."""
    k = random.integers(fixed, counts.shape[0])
    if number[k] < 2:
        return -1, 0, 0, 0
    a, b = random.integers(0, number[k]), random.integers(0, number[k])
    u, v, x, y = tail[k, a], head[k, a], tail[k, b], head[k, b]
    if random.integers(0, TO_FREE) == 0:
        y = random.integers(0, counts.shape[1])
        if y in (u, v) or counts[k, :, y].sum() >= degree:
            return -1, 0, 0, 0
        return k, a, -1, y
    if u == y or v == x or a == b or (not directed and (u == x or v == y)):
        return -1, 0, 0, 0
    return k, a, b, y


@compiled()
def _fits(counts, parallel, rack, cables, uplinks):  # type: ignore[no-untyped-def]
    """Whether circuits ``(n, n)`` keep to the limits on parallel ones and on those of racks."""
    if counts.max() > parallel:
        return False
    if rack == 0:
        return True
    n = counts.shape[0]
    R = (n + rack - 1) // rack
    between = np.zeros((R, R), np.int64)
    for u in range(n):
        for v in range(n):
            if u // rack != v // rack:
                between[u // rack, v // rack] += counts[u, v]
    if cables > 0 and between.max() > cables:
        return False
    return uplinks == 0 or max(between.sum(axis=0).max(), between.sum(axis=1).max()) <= uplinks


@compiled()
def _annealed(  # type: ignore[no-untyped-def]
    random, counts, now, begin, end, moves, demand, step, fixed, degree, directed, parallel, rack, cables, uplinks
):
    """Exchanges ``begin`` to ``end`` of ``moves`` in ``counts``, of estimate ``now``; the last and the best estimate.

    Also the circuits of the best one.
    """
    number, tail, head = listed(counts, directed)
    best, kept = now, counts.copy()
    for move in range(begin, end):
        k, a, b, y = _drawn(random, counts, number, tail, head, fixed, degree, directed)
        if k < 0:
            continue
        v = _swap(counts, tail, head, k, a, b, y, directed)
        limit, value = now * (1 + THRESHOLD * (1 - move / moves) ** 2), np.inf
        if _fits(counts[k], parallel, rack, cables, uplinks):
            value = _estimated(number, tail, head, demand, step, limit, ESTIMATED)
        if value >= limit:
            _swap(counts, tail, head, k, a, b, v, directed)
            continue
        now = value
        if now < best:
            best, kept = now, counts.copy()
    return now, best, kept


@compiled()
def _near(  # type: ignore[no-untyped-def]
    random, counts, most, goal, demand, step, fixed, degree, directed, parallel, rack, cables, uplinks
):
    """Circuits ``(most, K, n, n)`` after one random exchange each, and their bounds, infinite for none."""
    number, tail, head = listed(counts, directed)
    result, values = np.zeros((most, *counts.shape), np.int64), np.full(most, np.inf)
    for i in range(most):
        k, a, b, y = _drawn(random, counts, number, tail, head, fixed, degree, directed)
        if k < 0:
            continue
        v = _swap(counts, tail, head, k, a, b, y, directed)
        if _fits(counts[k], parallel, rack, cables, uplinks):
            values[i] = _estimated(number, tail, head, demand, step, goal, ROUNDS)
            result[i] = counts
        _swap(counts, tail, head, k, a, b, v, directed)
    return result, values


def _settings(data: TopologySequence) -> tuple[object, ...]:
    fixed = 0 if data.standing is None else 1
    limits = data.parallel, data.rack, data.cables, data.uplinks
    return data.demand, one_by_one(data), fixed, data.degree, data.directed, *limits


def annealed(
    data: TopologySequence, random: np.random.Generator, counts: I64, moves: int, wait: Callable[[], object]
) -> I64:
    """Circuits ``(K, n, n)`` of the least estimate that is found by so many exchanges; ``wait`` is called now and then.

    Exchanges that are worse within a falling threshold are accepted (Dueck & Scheuer, J. Comput. Phys. 90, 1990).
    """
    settings = _settings(data)
    now = priced_time(counts, data.demand, one_by_one(data), np.inf, ESTIMATED)
    now = min(now, UNSERVED * (1 + float(data.demand.sum())))
    best, result, counts = now, counts, counts.copy()
    for begin in range(0, moves, CALLED):
        wait()
        end = min(begin + CALLED, moves)
        now, least, kept = _annealed(random, counts, now, begin, end, moves, *settings)
        if least < best:
            best, result = least, kept
    return np.asarray(result)


def near(data: TopologySequence, random: np.random.Generator, counts: I64, most: int, goal: float) -> Iterator[I64]:
    """Circuits one exchange away that may take less than ``goal``, the least bound first; of ``most`` random ones."""
    others, values = _near(random, counts.copy(), most, goal, *_settings(data))
    for i in np.argsort(values, kind="stable"):
        if values[i] >= min(goal, UNSERVED):
            return
        yield others[i]
