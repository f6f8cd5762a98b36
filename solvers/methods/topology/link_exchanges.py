"""Search for topologies of given degree: exchanges of links, within limits on the cables between racks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.instances.families.regular_graphs import DIGITS, digraph_spec
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.topology.design import Design
    from opticoll.instances.topology import F64, I64, Mask


#: Most nodes: topologies are printed as ``digraph:`` specs.
MOST_EXCHANGED = len(DIGITS)
#: The norm's exponent is 2 to this power; its value for demand without a path, and the first threshold of acceptance.
SQUARINGS, UNREACHED, THRESHOLD = 3, 1e6, 0.02
#: First and last temperature of an annealing run, relative to the norm; its fewest pieces; visits of links in a piece.
ANNEAL, ANNEAL_PIECES, PIECE = (0.005, 1e-4), 8, 50_000_000


@compiled()
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


@compiled()
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


@compiled()
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
    tail: I64,
    head: I64,
    most: int,
    demand: F64,
    *,
    squarings: int,
    moves: int,
    random: np.random.Generator,
    tick: Callable[[], float | None],
) -> tuple[I64, I64]:
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


@compiled()
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


@compiled()
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


@compiled()
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


def exchanged(
    data: Design, *, seed: int = 0, starts: int = 4, steps: int = 5000, given: Topology | None = None
) -> Iterator[Topology]:
    """The best connected topologies of the starts as ``digraph:`` specs, the most promising first.

    Parameters
    ----------
    data
        At most ``MOST_EXCHANGED`` nodes.
    starts, steps
        Random graphs from which a search starts, and exchanges that each tries.
    given
        A known topology, from which one more search starts.
    """
    if data.n > MOST_EXCHANGED or steps <= 0:
        return
    result, cables, uplinks = [], data.cables or data.n**2, data.uplinks or data.n**2
    for start in range(starts if given is None else starts + 1):
        rng = np.random.default_rng([seed, start])
        order, draws = rng.permutation(data.n**2), rng.random((steps, 5))
        if given is not None and start == starts:
            first = given.tail * data.n + given.head
            order = np.concatenate([first, order[~np.isin(order, first)]])
        result.append(
            _exchange(order, draws, data.rack_of, data.degree, not data.directed, cables, uplinks, data.most_links)
        )
    for links, norm in sorted(result, key=lambda one: one[1]):
        if norm < UNREACHED:
            tail, head = np.nonzero(links)
            topology = Topology(data.n, tail, head)
            yield topology.renamed(digraph_spec(topology) or topology.spec)
