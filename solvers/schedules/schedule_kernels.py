"""Compiled kernels of schedules: balance of chunks over routes, list scheduling, and fair rates.

Importing this module compiles or loads the kernels. Schedules made here are checked by independent code: link schedules
by :func:`opticoll.solvers.schedules.collective_steps.run_moves`, routes by
:func:`opticoll.solvers.schedules.link_schedule.run_routes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled

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
    first: I64, arcs: I64, urgency: I64, until: I64, route: I64, size: F64, limit: F64, step: I64, arc: I64, token: I64
) -> None:
    """Steps of every hop: in a step each arc sends waiting chunks up to its budget, the most urgent first.

    Parameters
    ----------
    first, arcs
        Arcs of route r: ``arcs[first[r] : first[r + 1]]``.
    urgency
        Of every entry of ``arcs``, from 0; equals are sent in the order of arrival.
    until
        Of every entry of ``arcs``: the end of the entries that are crossed in one step with it.
    route, size
        Route and size of every chunk, ``(P,)``.
    limit
        A chunk may cross an arc while what has crossed it in the step is below this, ``(m,)``.
    step, arc, token
        Of every transfer, filled in order, ``(hops,)``.
    """
    chunks, m, width = route.size, limit.size, urgency.max() + 1
    head, tail = np.full(m * width, -1, dtype=np.int64), np.full(m * width, -1, dtype=np.int64)
    after, top = np.full(chunks, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
    hops = np.zeros(chunks, dtype=np.int64)
    moved, sent = np.arange(chunks), np.zeros(m)
    count, placed, now, left = chunks, 0, 0, chunks
    while True:
        for j in range(count):
            p = moved[j]
            at = first[route[p]] + hops[p]
            if at == first[route[p] + 1]:
                left -= 1
                continue
            cell = arcs[at] * width + urgency[at]
            after[p] = -1
            if tail[cell] < 0:
                head[cell] = p
            else:
                after[tail[cell]] = p
            tail[cell] = p
            top[arcs[at]] = max(top[arcs[at]], urgency[at])
        if left == 0:
            return
        count = 0
        sent[:] = 0.0
        for turn in range(m):
            a = (turn + now) % m  # arcs take turns where chunks share arcs behind the first one
            while sent[a] < limit[a] - 1e-9 and top[a] >= 0:
                cell = a * width + top[a]
                p = head[cell]
                if p < 0:
                    top[a] -= 1
                    continue
                head[cell] = after[p]
                if head[cell] < 0:
                    tail[cell] = -1
                moved[count] = p
                count += 1
                at = first[route[p]] + hops[p]
                free = True
                for i in range(at + 1, until[at]):
                    free = free and sent[arcs[i]] < limit[arcs[i]] - 1e-9
                if not free:
                    continue  # queued again for the next step
                for i in range(at, until[at]):
                    step[placed], arc[placed], token[placed] = now, arcs[i], p
                    placed += 1
                    sent[arcs[i]] += size[p]
                hops[p] = until[at] - first[route[p]]
        moved[:count].sort()
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
