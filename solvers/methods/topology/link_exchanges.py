"""Loads over equally split shortest paths, and annealing of links under a norm of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.instances.topology import F64, I64, Mask


#: The norm's exponent is 2 to this power; its value for demand without a path.
SQUARINGS, UNREACHED = 3, 1e6
#: First and last temperature of an annealing run, relative to the norm; its fewest pieces; visits of links in a piece.
ANNEAL, ANNEAL_PIECES, PIECE = (0.005, 1e-4), 8, 50_000_000


@compiled()
def split_norm(first: I64, head: I64, demand: F64, kind: I64, squarings: int, most: int) -> float:
    """The p-norm of loads over equally split shortest paths, divided by that of ``most`` loads of 1.

    Parameters
    ----------
    first, head
        Links out of node u are ``first[u]`` to ``first[u + 1] - 1``, ``(n + 1,)``; their heads, ``(m,)``.
    demand
        Demand between all nodes, ``(n, n)``, 0 on the diagonal; or from the first of them alone, ``(s, n)``.
    kind
        Links of a kind have one load, the sum of theirs, ``(m,)``.
    squarings
        p is 2 to this power.
    """
    n = first.size - 1
    load, missing = np.zeros(kind.max() + 1), 0.0
    depth, order = np.empty(n, np.int64), np.empty(n, np.int64)
    paths, passed = np.empty(n), np.empty(n)
    for source in range(demand.shape[0]):
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
                    load[kind[link]] += passed[v] * paths[u]
                    sent += passed[v]
            passed[u] = demand[source, u] / paths[u] + sent
    total = 0.0
    for power in load:
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
    return split_norm(first, head[:links], demand, np.arange(links), SQUARINGS, most)


@compiled()
def _anneal(  # type: ignore[no-untyped-def]
    first, tail, head, most, demand, squarings, moves, heat, cool, seed
):
    """Anneal by exchanging the heads of two links; ``head`` becomes the last state, the best one is returned."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    links, every = tail.size, np.arange(tail.size)
    now = split_norm(first, head, demand, every, squarings, links)
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
        then = split_norm(first, head, demand, every, squarings, links)
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
