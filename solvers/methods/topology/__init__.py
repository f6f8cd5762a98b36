r"""Search for topologies of given degree: exchanges of links, within limits on the cables between racks.

If every shard is split equally over its shortest paths, the largest load of an arc bounds T from above. The search
minimises the p-norm of these loads, p = 8, which penalises both long distances and unequal loads:

1. Start from a random graph that respects the ports and the limits of the racks.
2. Exchange two links (a,b), (c,e) for (a,c), (b,e), or move one link to a free port. Exchanges that violate a limit are
   rejected; an increase of the norm is accepted up to a threshold that falls to 0 (Dueck & Scheuer, J. Comput. Phys.
   90, 1990).
3. The best topology of every start is a candidate for the linear program.

:func:`annealed` minimises the same norm for any demand, by exchanging the heads of one-way links, and
:func:`routed_search` minimises the maximum load of optimal routes itself, for few links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from opticoll.instances.digraph import Topology
from opticoll.instances.families.regular_graphs import DIGITS, digraph_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.degree_design import Design
    from opticoll.instances.digraph import F64, I64, Mask


#: Most nodes: topologies are printed as ``digraph:`` specs.
MOST_EXCHANGED = len(DIGITS)
#: The norm's exponent is 2 to this power; its value for demand without a path, and the first threshold of acceptance.
SQUARINGS, UNREACHED, THRESHOLD = 3, 1e6, 0.02
#: First and last temperature of an annealing run, relative to the norm; its fewest pieces; visits of links in a piece.
ANNEAL, ANNEAL_PIECES, PIECE = (0.005, 1e-4), 8, 50_000_000
#: In linear programs: multipliers that count as 0; pivots that do, relative to the largest; closed gap; most pivots.
ROUND_OFF, PIVOT, CLOSED, PIVOTS = 1e-12, 1e-9, 1e-10, 2000
#: Iterated local search: most random exchanges before a descent; relative load up to which a result is accepted.
KICKS, WORSE = 4, 1.003


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def least_load(count: I64, demand: F64, lengths: F64, worst: float) -> tuple[float, float]:
    """Lower and upper bound on the minimum maximum load with splittable demand; equal unless it ends early.

    The simplex method on min t, sum_sk load_ska x_sk <= count_a t, sum_k x_sk = 1 for every source s, in which k are
    shortest-path trees generated as needed. The multipliers l of the links give the lower bound
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
    trial, pivots = np.zeros((n, n)), 0
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
        paid, price, entered = 0.0, 0.0, False
        for a in range(m):
            trial[tail[a], head[a]] = max(-inverse[full, a], 0.0)
            price += width[a] * trial[tail[a], head[a]]
        for s in range(n):
            paid += _shortest(count, trial, demand, unit, s, number, dist, before, order, need, loads[s])
        if paid / price > low:
            low = paid / price
            lengths[:] = trial
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
        if not entered:
            break
    return low * unit, x[full] * unit if low <= x[full] * (1.0 + PIVOT) else np.inf  # round-off has grown


@njit(cache=True)
def _exchanged(count: I64, tail: I64, head: I64, a: int, b: int, most: int) -> bool:
    """Exchange the heads of two links if that is allowed; return whether it was."""
    u, v, x, y = tail[a], head[a], tail[b], head[b]
    if u in (x, y) or v in (x, y) or count[u, y] >= most or count[x, v] >= most:
        return False
    count[u, v] -= 1
    count[x, y] -= 1
    count[u, y] += 1
    count[x, v] += 1
    head[a], head[b] = y, v
    return True


@njit(cache=True)
def _descended(  # type: ignore[no-untyped-def]
    tail, head, count, lengths, current, demand, most
):
    """Exchange heads of links or places of nodes while that lowers the load; return the load and exchanges tried."""
    n, m = demand.shape[0], tail.size
    pairs = m * (m - 1) // 2
    every = pairs + n * (n - 1) // 2
    before, trial, new_tail, new_head = count.copy(), lengths.copy(), tail.copy(), head.copy()
    order, places, tried, failed = np.random.permutation(every), np.arange(n), 0, 0  # noqa: NPY002
    while failed < every:
        which, i = order[tried % every], 0
        tried += 1
        failed += 1
        left, size = (which, m) if which < pairs else (which - pairs, n)
        while left >= size - 1 - i:
            left -= size - 1 - i
            i += 1
        j = i + 1 + left
        before[:], trial[:], new_tail[:], new_head[:] = count, lengths, tail, head
        if which < pairs:
            if not _exchanged(count, new_tail, new_head, i, j, most):
                continue
        else:
            places[:] = np.arange(n)
            places[i], places[j] = j, i
            for u in range(n):
                for v in range(n):
                    count[places[u], places[v]] = before[u, v]
                    trial[places[u], places[v]] = lengths[u, v]
            for c in range(m):
                new_tail[c], new_head[c] = places[tail[c]], places[head[c]]
        least = current * (1.0 - PIVOT)
        load = least_load(count, demand, trial, least)[1]
        if load < least:
            current, failed = load, 0
            tail[:], head[:] = new_tail, new_head
            with_distances(count, trial)
            lengths[:] = trial
        else:
            count[:] = before
    return current, tried


@njit(cache=True)
def routed_search(
    tail: I64, head: I64, best_tail: I64, best_head: I64, loads: F64, most: int, demand: F64, moves: int, seed: int
) -> int:
    """Iterated local search for the minimum maximum load: random exchanges, then exchanges that lower the load.

    Parameters
    ----------
    tail, head
        Links, ``(m,)`` each; on return those from which the search continues.
    best_tail, best_head, loads
        The best links, and the loads of both, ``(2,)``, initially infinite.
    most, demand
        Most links of a pair; demand between all nodes, ``(n, n)``.
    moves
        Number of exchanges after which no further descent begins.

    Returns
    -------
    Number of descents since the best links improved.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    n, m = demand.shape[0], tail.size
    count, idle = np.zeros((n, n), np.int64), 0
    new_tail, new_head = tail.copy(), head.copy()
    while moves > 0:
        new_tail[:], new_head[:] = tail, head
        count[:] = 0
        for c in range(m):
            count[tail[c], head[c]] += 1
        if loads[0] < np.inf:
            for _ in range(KICKS):
                _exchanged(count, new_tail, new_head, np.random.randint(m), np.random.randint(m), most)  # noqa: NPY002
        lengths = np.ones((n, n))
        load = least_load(count, demand, lengths, np.inf)[1]
        moves -= 1
        if load < np.inf:
            with_distances(count, lengths)
            load, tried = _descended(new_tail, new_head, count, lengths, load, demand, most)
            moves -= tried
        idle += 1
        if load <= loads[0] * WORSE or loads[0] == np.inf:
            tail[:], head[:], loads[0] = new_tail, new_head, load
        if load < loads[1] * (1.0 - PIVOT):
            best_tail[:], best_head[:], loads[1], idle = new_tail, new_head, load, 0
    return idle


@njit(cache=True)
def split_norm(first: I64, head: I64, demand: F64, squarings: int, most: int) -> float:
    """The p-norm of loads over equally split shortest paths, divided by that of ``most`` loads of 1.

    Parameters
    ----------
    first, head
        Links out of node u are ``first[u]`` to ``first[u + 1] - 1``, ``(n + 1,)``; their heads, ``(m,)``.
    demand
        Demand between all nodes, ``(n, n)``, 0 on the diagonal.
    squarings
        p is 2 to this power.
    """
    n = demand.shape[0]
    load, missing = np.zeros(head.size), 0.0
    depth, order = np.empty(n, np.int64), np.empty(n, np.int64)
    paths, passed = np.empty(n), np.empty(n)
    for source in range(n):
        depth[:], paths[:] = -1, 0.0
        depth[source], paths[source], order[0] = 0, 1.0, source
        begin, end = 0, 1
        while begin < end:
            u = order[begin]
            begin += 1
            deeper = depth[u] + 1
            for link in range(first[u], first[u + 1]):
                v = head[link]
                if depth[v] < 0:
                    depth[v] = deeper
                    order[end] = v
                    end += 1
                if depth[v] == deeper:
                    paths[v] += paths[u]
        if end < n:
            for v in range(n):
                if depth[v] < 0:
                    missing += demand[source, v]
        for place in range(end - 1, -1, -1):  # passed: demand that reaches a node, per path to it
            u = order[place]
            deeper, sent = depth[u] + 1, 0.0
            for link in range(first[u], first[u + 1]):
                v = head[link]
                if depth[v] == deeper:
                    load[link] += passed[v] * paths[u]
                    sent += passed[v]
            passed[u] = demand[source, u] / paths[u] + sent
    total = 0.0
    for link in range(head.size):
        power = load[link]
        for _ in range(squarings):
            power *= power
        total += power
    return missing * UNREACHED + (total / most) ** (0.5**squarings)


@njit(cache=True)
def load_norm(adjacent: Mask, most: int) -> float:
    """:func:`split_norm` of an all-to-all."""
    n = adjacent.shape[0]
    first, head, links = np.zeros(n + 1, np.int64), np.empty(n * n, np.int64), 0
    demand = np.ones((n, n))
    for u in range(n):
        demand[u, u] = 0.0
        for v in range(n):
            if adjacent[u, v]:
                head[links] = v
                links += 1
        first[u + 1] = links
    return split_norm(first, head[:links], demand, SQUARINGS, most)


@njit(cache=True)
def _anneal(  # type: ignore[no-untyped-def]
    first, tail, head, most, demand, squarings, moves, heat, cool, seed
):
    """Anneal by exchanging the heads of two links; ``head`` becomes the last state, the best one is returned."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    links = tail.size
    now = split_norm(first, head, demand, squarings, links)
    least, best = now, head.copy()
    for move in range(moves):
        a, b = np.random.randint(links), np.random.randint(links)  # noqa: NPY002
        u, v, x, y = tail[a], head[a], tail[b], head[b]
        if u in (x, y) or v in (x, y):
            continue
        from_u, from_x = 0, 0
        for link in range(first[u], first[u + 1]):
            from_u += head[link] == y
        for link in range(first[x], first[x + 1]):
            from_x += head[link] == v
        if from_u >= most or from_x >= most:
            continue
        level = heat * (cool / heat) ** (move / moves)
        head[a], head[b] = y, v
        then = split_norm(first, head, demand, squarings, links)
        if then <= now * (1.0 - level * np.log(1.0 - np.random.random())):  # noqa: NPY002
            now = then
            if now < least:
                least = now
                best[:] = head
        else:
            head[a], head[b] = v, y
    return best


def annealed(
    tail: I64, head: I64, most: int, demand: F64, *, squarings: int, moves: int, random: np.random.Generator,
    tick: Callable[[], float | None],
) -> tuple[I64, I64]:  # fmt: skip
    """Simulated annealing of links for a demand; every node keeps its numbers of outgoing and incoming links.

    Parameters
    ----------
    tail, head
        The initial links, ``(m,)`` each.
    most
        Most links of a pair.
    demand, squarings
        As for :func:`split_norm`.
    tick
        Called after every :data:`PIECE` steps.
    """
    order = np.lexsort((head, tail))
    tail, head = np.ascontiguousarray(tail[order]), np.ascontiguousarray(head[order])
    n = len(demand)
    first = np.searchsorted(tail, np.arange(n + 1))
    pieces = max(-(-moves * n * tail.size // PIECE), ANNEAL_PIECES)
    heats, best = np.geomspace(*ANNEAL, pieces + 1), head
    for heat, cool in zip(heats[:-1].tolist(), heats[1:].tolist(), strict=True):
        tick()
        seed = int(random.integers(2**31))
        best = _anneal(first, tail, head, most, demand, squarings, -(-moves // pieces), heat, cool, seed)
    return tail, best


@njit(cache=True)
def _put(adjacent, count, between, racks, link, way, both):  # type: ignore[no-untyped-def]
    """Add (``way`` = 1) or remove (-1) a link; ``count`` has links out of and into nodes, and between racks."""
    for turn in range(2 if both else 1):
        a, b = link[turn], link[1 - turn]
        p, q = racks[a], racks[b]
        adjacent[a, b] = way > 0
        count[0, a] += way
        count[1, b] += way
        if p != q:
            between[p, q] += way
            count[2, p] += way
            count[3, q] += way


@njit(cache=True)
def _allowed(adjacent, count, between, racks, link, degree, cables, uplinks, both):  # type: ignore[no-untyped-def]
    """Whether a link can be added."""
    if link[0] == link[1] or adjacent[link[0], link[1]]:
        return False
    for turn in range(2 if both else 1):
        a, b = link[turn], link[1 - turn]
        p, q = racks[a], racks[b]
        if count[0, a] >= degree or count[1, b] >= degree:
            return False
        if p != q and (between[p, q] >= cables or count[2, p] >= uplinks or count[3, q] >= uplinks):
            return False
    return True


@njit(cache=True)
def _exchange(  # type: ignore[no-untyped-def]
    order, draws, racks, degree, both, cables, uplinks, most
):
    """The best topology of one start as a matrix, and its norm.

    ``order`` lists all pairs of nodes in the order in which the initial graph is built from them; ``draws`` are random
    numbers in [0, 1) for every step, ``(steps, 5)``.
    """
    n, steps = racks.size, draws.shape[0]
    adjacent, between = np.zeros((n, n), np.bool_), np.zeros((n, n), np.int64)
    count = np.zeros((4, n), np.int64)
    ends, links = np.zeros((n * degree, 2), np.int64), 0
    old, new = np.zeros((2, 2), np.int64), np.zeros((2, 2), np.int64)
    for pair in order:
        new[0, 0], new[0, 1] = pair // n, pair % n
        if _allowed(adjacent, count, between, racks, new[0], degree, cables, uplinks, both):
            _put(adjacent, count, between, racks, new[0], 1, both)
            ends[links, 0], ends[links, 1] = new[0, 0], new[0, 1]
            links += 1
    now = load_norm(adjacent, most)
    best, kept = now, adjacent.copy()
    for step in range(steps):
        limit = now * (1.0 + THRESHOLD * (1.0 - step / steps) ** 2)
        i, j = int(draws[step, 0] * links), int(draws[step, 1] * links)
        flip = 1 if both and draws[step, 2] < 0.5 else 0
        used = 1 if i == j else 2
        for k in range(2):
            old[0, k], old[1, k] = ends[i, k], ends[j, k]
        a, b, c, e = old[0, flip], old[0, 1 - flip], old[1, 0], old[1, 1]
        if used == 1:  # one end moves to a node with a free port
            new[0, 0], new[0, 1] = a, int(draws[step, 3] * n)
        elif both:
            new[0, 0], new[0, 1], new[1, 0], new[1, 1] = a, c, b, e
        else:
            new[0, 0], new[0, 1], new[1, 0], new[1, 1] = a, e, c, b
        for k in range(used):
            _put(adjacent, count, between, racks, old[k], -1, both)
        placed = 0
        while placed < used and _allowed(adjacent, count, between, racks, new[placed], degree, cables, uplinks, both):
            _put(adjacent, count, between, racks, new[placed], 1, both)
            placed += 1
        then = load_norm(adjacent, most) if placed == used else np.inf
        if then <= limit:
            now = then
            for k in range(2):
                ends[i, k] = new[0, k]
                if used == 2:
                    ends[j, k] = new[1, k]
        else:
            for k in range(placed):
                _put(adjacent, count, between, racks, new[k], -1, both)
            for k in range(used):
                _put(adjacent, count, between, racks, old[k], 1, both)
        if links < n * degree:  # a port may have become usable
            new[0, 0], new[0, 1] = int(draws[step, 3] * n), int(draws[step, 4] * n)
            if _allowed(adjacent, count, between, racks, new[0], degree, cables, uplinks, both):
                _put(adjacent, count, between, racks, new[0], 1, both)
                ends[links, 0], ends[links, 1] = new[0, 0], new[0, 1]
                links += 1
                now = load_norm(adjacent, most)
        if now < best:
            best = now
            kept[:] = adjacent
    return kept, best


def exchanged(data: Design, *, seed: int = 0, starts: int = 4, steps: int = 5000) -> Iterator[Topology]:
    """The best connected topologies of the starts as ``digraph:`` specs, the most promising first.

    Parameters
    ----------
    data
        At most ``MOST_EXCHANGED`` nodes.
    starts, steps
        Random graphs from which a search starts, and exchanges that each tries.
    """
    if data.n > MOST_EXCHANGED or steps <= 0:
        return
    result, cables, uplinks = [], data.cables or data.n**2, data.uplinks or data.n**2
    for start in range(starts):
        rng = np.random.default_rng([seed, start])
        order, draws = rng.permutation(data.n**2), rng.random((steps, 5))
        result.append(
            _exchange(order, draws, data.rack_of, data.degree, not data.directed, cables, uplinks, data.links)
        )
    for links, norm in sorted(result, key=lambda one: one[1]):
        if norm < UNREACHED:
            tail, head = np.nonzero(links)
            topology = Topology(data.n, tail, head)
            object.__setattr__(topology, "spec", digraph_spec(topology))
            yield topology
