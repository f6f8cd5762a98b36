"""Compiled local search that reroutes commodities by negotiated congestion with a tabu list.

Every commodity uses one of its candidate paths, or ``copies`` different ones; arc a may carry a load of ``limit[a]``,
to which each path of commodity k adds the size of k. A step takes a random overloaded arc, tries all unused candidates
of all commodities on it, and makes the best move that is not tabu. The cost of an arc is its price times its overload,
plus a small convex cost of load that spreads the remaining load; prices of arcs that remain overloaded grow
(negotiated congestion: McMurchie & Ebeling, PathFinder, FPGA 1995; tabu: Glover, ORSA Journal on Computing 1, 1989).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import copy_into, max_of
from opticoll.formulations.flows.path_kernels import backtracked

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64

#: Weight of the convex cost of load relative to that of overload.
EVEN = 0.02


@compiled(nogil=True)
def _arc_cost(load: int, limit: int, price: float) -> float:
    over = load - limit
    even = EVEN * load * load / max(limit, 1)
    return even + (price * over if over > 0 else 0.0)


@compiled(nogil=True)
def reroute(  # noqa: C901 - compiled
    first: I64, start: I64, arcs: I64, size: I64, limit: I64, choice: I64, seed: int, most_steps: int
) -> tuple[int, int]:
    """Reroute commodities by changing ``choice`` in place until no arc is above its limit, for at most ``most_steps``.

    Parameters
    ----------
    first, start, arcs
        Candidates of commodity k are ``first[k] .. first[k+1] - 1``, the arcs of candidate p
        ``arcs[start[p]:start[p+1]]``.
    size, limit
        Load that a path of a commodity adds to its arcs, ``(|K|,)``, at least 1, and that an arc may carry, ``(m,)``.
    choice
        The candidates in use, all different, ``copies`` consecutive ones per commodity, ``(copies |K|,)``; on return
        those with the smallest total overload found.

    Returns
    -------
    The total overload of that choice, and the steps made.
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    m, routes = limit.size, choice.size
    copies = routes // size.size
    load, using = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    taken = np.zeros(start.size - 1, dtype=np.bool_)
    for r in range(routes):
        taken[choice[r]] = True
        for i in range(start[choice[r]], start[choice[r] + 1]):
            load[arcs[i]] += size[r // copies]
            using[arcs[i]] += 1
    price = np.ones(m)
    tabu = np.zeros(routes, dtype=np.int64)
    over_arcs = np.empty(m, dtype=np.int64)
    place = np.full(m, -1, dtype=np.int64)
    count = total = 0
    for a in range(m):
        if load[a] > limit[a]:
            over_arcs[count], place[a] = a, count
            count += 1
            total += load[a] - limit[a]
    # Routes by arc, so that a step need not scan all of them.
    room = int(max_of(using)) + 64
    users = np.empty((m, room), dtype=np.int64)
    using[:] = 0
    for r in range(routes):
        for i in range(start[choice[r]], start[choice[r] + 1]):
            users[arcs[i], using[arcs[i]]] = r
            using[arcs[i]] += 1
    best, best_choice = total, choice.copy()
    step = 0
    while count > 0 and step < most_steps:
        step += 1
        hot = over_arcs[np.random.randint(count)]  # noqa: NPY002
        gain, mover, target, ties = 1e300, -1, -1, 0
        for index in range(using[hot]):
            r = users[hot, index]
            if tabu[r] > step:
                continue
            k = r // copies
            old, q = choice[r], size[k]
            saved = 0.0
            for i in range(start[old], start[old + 1]):
                a = arcs[i]
                saved += _arc_cost(load[a], limit[a], price[a]) - _arc_cost(load[a] - q, limit[a], price[a])
                load[a] -= q
            for p in range(first[k], first[k + 1]):
                if taken[p]:
                    continue
                cost = -saved
                for i in range(start[p], start[p + 1]):
                    a = arcs[i]
                    cost += _arc_cost(load[a] + q, limit[a], price[a]) - _arc_cost(load[a], limit[a], price[a])
                    if cost > gain + 1.0:
                        break
                if cost < gain - 1e-12:
                    gain, mover, target, ties = cost, r, p, 1
                elif cost <= gain + 1e-12:
                    ties += 1
                    if np.random.randint(ties) == 0:  # noqa: NPY002
                        mover, target = r, p
            for i in range(start[old], start[old + 1]):
                load[arcs[i]] += q
        price[hot] += 0.05
        if mover < 0:
            continue
        old, q = choice[mover], size[mover // copies]
        taken[old], taken[target] = False, True
        for i in range(start[old], start[old + 1]):
            a = arcs[i]
            load[a] -= q
            for index in range(using[a]):
                if users[a, index] == mover:
                    using[a] -= 1
                    users[a, index] = users[a, using[a]]
                    break
            if load[a] + q > limit[a]:
                total -= min(q, load[a] + q - limit[a])
                if load[a] <= limit[a]:
                    count -= 1
                    last = over_arcs[count]
                    over_arcs[place[a]], place[last] = last, place[a]
        for i in range(start[target], start[target + 1]):
            a = arcs[i]
            load[a] += q
            if using[a] == room:
                wider = np.empty((m, 2 * room), dtype=np.int64)
                copy_into(wider[:, :room], users)
                users, room = wider, 2 * room
            users[a, using[a]] = mover
            using[a] += 1
            if load[a] > limit[a]:
                total += min(q, load[a] - limit[a])
                if load[a] - q <= limit[a]:
                    over_arcs[count], place[a] = a, count
                    count += 1
        choice[mover] = target
        tabu[mover] = step + 5 + np.random.randint(10 + count)  # noqa: NPY002
        if total < best:
            best, best_choice = total, choice.copy()
        if step % 2000 == 0:
            price = 1.0 + (price - 1.0) * 0.5
    copy_into(choice, best_choice)
    return best, step


@compiled(nogil=True)
def lightest_path(first_out: I64, head: I64, tail: I64, weight: F64, source: int, target: int, path: I64) -> int:
    """Store a path of minimum ``weight`` from ``source`` to ``target`` in ``path``; return its arcs (-1 for none)."""
    n = first_out.size - 1
    distance = np.full(n, np.inf)
    parent = np.full(n, -1, dtype=np.int64)
    settled = np.zeros(n, dtype=np.bool_)
    distance[source] = 0.0
    while True:
        u, least = -1, np.inf
        for v in range(n):
            if not settled[v] and distance[v] < least:
                u, least = v, distance[v]
        if u < 0:
            return -1
        if u == target:
            break
        settled[u] = True
        for arc in range(first_out[u], first_out[u + 1]):
            v = head[arc]
            if distance[u] + weight[arc] < distance[v]:
                distance[v], parent[v] = distance[u] + weight[arc], arc
    return backtracked(parent, tail, source, target, path)
