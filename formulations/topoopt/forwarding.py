"""Routes over circuits: rings on their own circuits, all else by host-based forwarding over few hops.

Source  TopoOpt, section 4.2 step 4 (lines 19, 20 of Algorithm 1), appendix E.3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import NotApplicable
from formulations.topoopt.design import Ring, TopologyDesign, ring_demand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from instances.servers import ServerPool

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]
    #: Servers of every walk (padded with -1 behind the end), source and target included, and its bytes.
    Walks = tuple[I64, F64]


def routed_design(
    pool: ServerPool, circuits: I64, rings: Sequence[Ring], *, paths: int = 1, coins: Sequence[int] = ()
) -> TopologyDesign:
    """The design of these circuits and rings with every byte routed.

    Parameters
    ----------
    pool
        Servers and their traffic.
    circuits
        Ascending, ``(m, 2)``.
    rings
        Rings of the groups.
    paths
        Every demand without a circuit of its own is split evenly over this many shortest paths.
    coins
        Steps of rings over all servers in the order of their numbers: if given, demand without a circuit of its own
        goes by CoinChangeMod over those.

    Raises
    ------
    NotApplicable
        If some demand has no way, or for fewer than one path.
    """
    if paths < 1:
        msg = f"routes: {paths} paths a demand; take at least 1"
        raise NotApplicable(msg)
    demand = ring_demand(pool, rings)
    number = np.zeros((pool.n, pool.n), dtype=np.int64)
    np.add.at(number, (circuits[:, 0], circuits[:, 1]), 1)
    near, far = np.argwhere((demand > 0) & (number > 0)), np.argwhere((demand > 0) & (number == 0))
    pieces = [_direct(demand, number, near)]
    if far.size and coins:
        pieces.append(_by_coins(pool.n, demand, far, coins))
    elif far.size and paths == 1:
        pieces.append(_shortest(pool.n, circuits, demand, far))
    more = _many(pool, circuits, demand, far, paths) if far.size and paths > 1 and not coins else None
    return _joined(pool, circuits, rings, pieces, more)


def _direct(demand: F64, number: I64, pairs: I64) -> Walks:
    """Demand with circuits of its own: one walk for each of them, its bytes in equal parts."""
    times = number[pairs[:, 0], pairs[:, 1]]
    return np.repeat(pairs, times, axis=0), np.repeat(demand[pairs[:, 0], pairs[:, 1]] / np.maximum(times, 1), times)


def _shortest(n: int, circuits: I64, demand: F64, pairs: I64) -> Walks:
    """One walk of fewest hops for every pair."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    graph = sp.csr_array((np.ones(len(circuits)), (circuits[:, 0], circuits[:, 1])), shape=(n, n))
    hops = dijkstra(graph, unweighted=True)
    wanted = hops[pairs[:, 0], pairs[:, 1]]
    if not np.isfinite(wanted).all():
        s, t = pairs[int(np.argmax(~np.isfinite(wanted)))]
        msg = f"routes: no way from server {s} to {t} over these circuits; connect them"
        raise NotApplicable(msg)
    before = _predecessors(n, circuits, hops)
    at, back = pairs[:, 1], [pairs[:, 1]]
    for _ in range(int(wanted.max(initial=0))):
        at = np.where(at >= 0, before[pairs[:, 0], at], -1)
        back.append(at)
    return _turned(np.stack(back, axis=1)), demand[pairs[:, 0], pairs[:, 1]]


def _predecessors(n: int, circuits: I64, hops: F64) -> I64:
    """The server before v on a shortest way from s, entry (s, v); -1 for v = s.

    Of several the one whose number mixed with s and v is least, as equal-cost multi-path routing by hash does: always
    to take the lowest would lead nearly all traffic over a few circuits.
    """
    before = np.full((n, n), -1, dtype=np.int64)
    least = np.full((n, n), np.iinfo(np.int64).max)
    sources = np.arange(n)
    for u, v in np.unique(circuits, axis=0).tolist():
        mixed = ((sources * 73_856_093) ^ (u * 19_349_663) ^ (v * 83_492_791)) * 2_654_435_761 % (1 << 32)
        fits = (hops[:, v] == hops[:, u] + 1) & (mixed < least[:, v])
        before[fits, v] = u
        least[fits, v] = mixed[fits]
    return before


def _turned(back: I64) -> I64:
    """Walks listed backwards, padded behind, as walks listed forwards."""
    length = (back >= 0).sum(axis=1)
    column = length[:, None] - 1 - np.arange(back.shape[1])[None, :]
    walks = np.take_along_axis(back, np.maximum(column, 0), axis=1)
    walks[column < 0] = -1
    return walks


def _by_coins(n: int, demand: F64, pairs: I64, coins: Sequence[int]) -> Walks:
    """Walks by CoinChangeMod: one table for all servers, moved on by the source."""
    from formulations.topoopt.coin_change import coin_routes

    routes = coin_routes(n, coins)
    table = np.full((n, max(map(len, routes))), -1, dtype=np.int64)
    for m, places in enumerate(routes):
        table[m, : len(places)] = places
    offset = table[(pairs[:, 1] - pairs[:, 0]) % n]
    return np.where(offset >= 0, (pairs[:, :1] + offset) % n, -1), demand[pairs[:, 0], pairs[:, 1]]


def _many(pool: ServerPool, circuits: I64, demand: F64, pairs: I64, paths: int) -> tuple[I64, I64, F64]:
    """Routes over the k shortest paths of every pair: start, circuits, bytes."""
    from formulations.alltoall.path_sets import PathRule, build_path_set
    from instances.topology import Topology

    topology = Topology(pool.n, circuits[:, 0], circuits[:, 1])
    found = build_path_set(topology, PathRule("k", paths), "routes", (pairs[:, 0].copy(), pairs[:, 1].copy()))
    each = demand[pairs[:, 0], pairs[:, 1]] / np.diff(found.first)
    return found.start, found.arcs, each[found.pair]


def _joined(
    pool: ServerPool, circuits: I64, rings: Sequence[Ring], pieces: list[Walks], more: tuple[I64, I64, F64] | None
) -> TopologyDesign:
    """The walks as routes: hops of one pair of servers take its parallel circuits in turn, the heaviest first."""
    length = np.concatenate([(walks >= 0).sum(axis=1) - 1 for walks, _ in pieces])
    carried = np.concatenate([amount for _, amount in pieces])
    steps = []
    for walks, _ in pieces:
        here = walks[:, 1:] >= 0
        steps.append(np.stack([walks[:, :-1][here], walks[:, 1:][here]], axis=1))
    flat = _parallel(pool.n, circuits, np.concatenate(steps), np.repeat(carried, length))
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    if more is not None:
        start = np.concatenate([start, start[-1] + more[0][1:]])
        flat, carried = np.concatenate([flat, more[1]]), np.concatenate([carried, more[2]])
    return TopologyDesign(pool, circuits, tuple(rings), start, flat, carried)


def _parallel(n: int, circuits: I64, steps: I64, amount: F64) -> I64:
    """The circuit that every step of a route takes, ``(steps,)``."""
    key, wanted = circuits[:, 0] * n + circuits[:, 1], steps[:, 0] * n + steps[:, 1]
    first = np.searchsorted(key, wanted)
    count = np.searchsorted(key, wanted, side="right") - first
    order = np.lexsort((np.arange(wanted.size), -amount, wanted))
    ranked = wanted[order]
    turn = np.empty(wanted.size, dtype=np.int64)
    turn[order] = np.arange(wanted.size) - np.searchsorted(ranked, ranked)
    chosen: I64 = first + turn % np.maximum(count, 1)
    return chosen
