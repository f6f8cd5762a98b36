"""Compiled kernels of schedules: balance of chunks over routes, list scheduling, and fair rates.

Importing this module compiles or loads the kernels. Schedules made here are checked by independent code: link schedules
by :func:`opticoll.solvers.schedules.collective_steps.run_moves`, routes by
:func:`opticoll.solvers.schedules.link_schedule.run_routes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64


#: Largest exponent of a potential: sums of some thousand terms stay finite.
STEEPEST = 300.0


@compiled(nogil=True, error_model="numpy")
def balance(
    members: I64,
    first_member: I64,
    first: I64,
    cells: I64,
    size: F64,
    carried: I64,
    load: F64,
    room: F64,
    steepness: F64,
    order: I64,
    seed: int,
) -> None:
    r"""Move chunks between routes of a commodity while that lowers the potential of the cells' loads.

    The potential is :math:`\sum_i e^{\beta (load_i / room_i - 1)}`: with growing beta it comes close to the largest
    relative load. A chunk is taken off its route and put where that costs least; ties are broken at random.

    Parameters
    ----------
    members, first_member
        Routes of commodity k: ``members[first_member[k] : first_member[k + 1]]``.
    first, cells
        Cells of route r: ``cells[first[r] : first[r + 1]]``.
    size
        Load of one chunk of a route, ``(R,)``.
    carried, load
        Chunks of every route and load of every cell; changed in place.
    room
        Load that every cell should not exceed, ``(cells,)``.
    steepness
        Values of beta, one per sweep.
    order
        Commodities with several routes, shuffled in place.
    seed
        Of the random numbers.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    price = np.empty(load.size)
    for beta in steepness:
        for i in range(load.size):
            price[i] = np.exp(min(beta * (load[i] / room[i] - 1.0), STEEPEST))
        for i in range(order.size - 1, 0, -1):
            j = np.random.randint(0, i + 1)  # noqa: NPY002
            order[i], order[j] = order[j], order[i]
        for k in order:
            for at in range(first_member[k], first_member[k + 1]):
                r = members[at]
                for _ in range(carried[r]):
                    for i in cells[first[r] : first[r + 1]]:
                        load[i] -= size[r]
                        price[i] = np.exp(min(beta * (load[i] / room[i] - 1.0), STEEPEST))
                    best, least = r, np.inf
                    for other in range(first_member[k], first_member[k + 1]):
                        q = members[other]
                        cost = 0.0
                        for i in cells[first[q] : first[q + 1]]:
                            grown = min(beta * size[q] / room[i], STEEPEST)
                            cost += price[i] * (np.exp(grown) - 1.0)
                        cost *= 1.0 + 1e-9 * np.random.random()  # noqa: NPY002
                        if cost < least:
                            best, least = q, cost
                    for i in cells[first[best] : first[best + 1]]:
                        load[i] += size[best]
                        price[i] = np.exp(min(beta * (load[i] / room[i] - 1.0), STEEPEST))
                    if best != r:
                        carried[r] -= 1
                        carried[best] += 1


@compiled(nogil=True)
def list_schedule(
    first: I64, arcs: I64, urgency: I64, size: F64, waiting: I64, begin: I64, behind: I64, limit: F64, step: I64
) -> None:
    """The step of every move: in a step each arc sends moves that are ready up to its budget, the most urgent first.

    Parameters
    ----------
    first, arcs
        Arcs of move i: ``arcs[first[i] : first[i + 1]]``, all crossed in its step.
    urgency
        From 0, ``(moves,)``; equals are sent in the order in which they become ready, and then in their own order.
    size
        Load of a move on each of its arcs, ``(moves,)``.
    waiting
        Number of moves that must be done before, ``(moves,)``; changed.
    begin, behind
        Moves that wait for move i: ``behind[begin[i] : begin[i + 1]]``.
    limit
        A move may cross an arc while what has crossed it in the step is below this, ``(m,)``.
    step
        Filled, ``(moves,)``.
    """
    moves, m, width = urgency.size, limit.size, max_of(urgency) + 1
    head, tail = np.full(m * width, -1, dtype=np.int64), np.full(m * width, -1, dtype=np.int64)
    after, top, sent = np.full(moves, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64), np.zeros(m)
    ready = np.empty(moves, dtype=np.int64)
    count, now, left = 0, 0, moves
    for i in range(moves):
        if waiting[i] == 0:
            ready[count] = i
            count += 1
    while left > 0:
        for j in range(count):
            i = ready[j]
            a = arcs[first[i]]
            cell = a * width + urgency[i]
            after[i] = -1
            if tail[cell] < 0:
                head[cell] = i
            else:
                after[tail[cell]] = i
            tail[cell] = i
            top[a] = max(top[a], urgency[i])
        count = 0
        sent[:] = 0.0
        for turn in range(m):
            a = (turn + now) % m  # arcs take turns where moves share arcs behind the first one
            while sent[a] < limit[a] - 1e-9 and top[a] >= 0:
                cell = a * width + top[a]
                i = head[cell]
                if i < 0:
                    top[a] -= 1
                    continue
                head[cell] = after[i]
                if head[cell] < 0:
                    tail[cell] = -1
                free = True
                for j in range(first[i] + 1, first[i + 1]):
                    free = free and sent[arcs[j]] < limit[arcs[j]] - 1e-9
                if not free:  # queued again for the next step
                    ready[count] = i
                    count += 1
                    continue
                step[i] = now
                left -= 1
                for j in range(first[i], first[i + 1]):
                    sent[arcs[j]] += size[i]
                for j in range(begin[i], begin[i + 1]):
                    waiting[behind[j]] -= 1
                    if waiting[behind[j]] == 0:
                        ready[count] = behind[j]
                        count += 1
        ready[:count].sort()
        now += 1


@compiled(nogil=True)
def fair_rates(active: I64, start: I64, arc: I64, share: F64, capacity: F64, rate: F64) -> None:
    """Set the max-min fair rates of the active flows by water-filling; 0 for a flow without arcs.

    Parameters
    ----------
    active
        Flows that send.
    start, arc, share
        Arcs of flow f and the share of its rate on each: entries ``start[f]`` .. ``start[f + 1] - 1``.
    capacity
        Capacity of every arc.
    rate
        Of every flow; set for the active ones.
    """
    arcs = capacity.size
    left, weight, count = capacity.copy(), np.zeros(arcs), np.zeros(arcs, dtype=np.int64)
    entries = 0
    for i in range(active.size):
        f = active[i]
        rate[f] = -1.0 if start[f + 1] > start[f] else 0.0
        for e in range(start[f], start[f + 1]):
            weight[arc[e]] += share[e]
            count[arc[e]] += 1
            entries += 1
    users, first = np.empty(entries, dtype=np.int64), np.zeros(arcs + 1, dtype=np.int64)
    for a in range(arcs):
        first[a + 1] = first[a] + count[a]
    fill = first[:arcs].copy()
    listed, used = np.empty(arcs, dtype=np.int64), 0
    for a in range(arcs):
        if count[a] > 0:
            listed[used] = a
            used += 1
    for i in range(active.size):
        f = active[i]
        for e in range(start[f], start[f + 1]):
            users[fill[arc[e]]] = f
            fill[arc[e]] += 1
    while used > 0:
        least = np.inf
        kept = 0
        for i in range(used):
            a = listed[i]
            if count[a] > 0:
                listed[kept] = a
                kept += 1
                level = max(left[a], 0.0) / weight[a]
                least = min(least, level)
        used = kept
        for i in range(used):
            a = listed[i]
            if count[a] == 0 or max(left[a], 0.0) > least * weight[a] * (1.0 + 1e-12):
                continue
            for u in range(first[a], first[a + 1]):
                f = users[u]
                if rate[f] >= 0.0:
                    continue
                rate[f] = least
                for e in range(start[f], start[f + 1]):
                    b = arc[e]
                    left[b] -= share[e] * least
                    weight[b] -= share[e]
                    count[b] -= 1
                    if count[b] == 0:
                        weight[b] = 0.0
