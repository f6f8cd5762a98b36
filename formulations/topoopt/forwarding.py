"""Host-based forwarding over given circuits, and a lower bound on the byte-hops over any circuits.

Source  TopoOpt, section 4.2 step 4 (lines 19, 20 of Algorithm 1), section 5.4 (bandwidth tax), appendix E.3;
        Bienstock & Guenluek, Mathematical Programming 68, 1995 (the problem)

Forwarding (:func:`routed_design`). Demand between servers with direct circuits is split evenly over these; other
demand takes shortest paths, or fixed offsets as in CoinChangeMod. With ``spread`` only ring hops use only their
direct circuits, and all point-to-point demand is split over k shortest paths.

Bound (:func:`travelled`). With d ports at most c_h = d + d^2 + ... + d^h servers are within h hops of a server, and it
is within h hops of at most c_h. So the pairs within h hops have at most c_h entries in every row and column, and

    sum_st D_st dist(s,t)  >=  sum_{h >= 0} (sum D - W_h),    W_h = the maximum traffic of such a set, W_0 = 0.

Any u, v >= 0 prove W_h <= c_h (sum u + sum v) + sum_st max(0, D_st - u_s - v_t). They come from coordinate descent: the
best u_s for given v is the (c_h + 1)-th largest of D_st - v_t, or 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.rounds.segments import offsets
from opticoll.formulations.topoopt.circuit_design import CircuitDesign, Ring, circuits_between, ring_demand
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import F64, I64

    #: Servers of every walk, source and target included (padded with -1 at the end), and its bytes.
    Walks = tuple[I64, F64]

#: Maximum number of rounds of coordinate descent.
ROUNDS = 40


def travelled(demand: F64, degree: int) -> float:
    """Lower bound of the module docstring on the byte-hops of this traffic, rounded down.

    Parameters
    ----------
    demand
        Bytes, ``(n, n)``, zero diagonal.
    degree
        Ports of a server, d >= 1.
    """
    n, total = len(demand), rounding.sum_down(demand)
    result, within, layer = [0.0], 0, 1
    while within < n - 1:
        result.append(max(rounding.sum_down([total, -most_within(demand, within)]), 0.0) if within else total)
        layer = min(layer * degree, n)
        within += layer
    return max(rounding.sum_down(result), 0.0)


def most_within(demand: F64, count: int) -> float:
    """Upper bound on W: traffic of a set of pairs with at most ``count`` in every row and column, rounded up."""
    n, total = len(demand), rounding.sum_up(demand)
    if count >= n - 1:
        return total
    rows, columns = np.zeros(n), np.zeros(n)
    best = np.inf
    for _ in range(ROUNDS):
        rows = np.maximum(np.sort(demand - columns[None, :], axis=1)[:, n - 1 - count], 0.0)
        columns = np.maximum(np.sort(demand - rows[:, None], axis=0)[n - 1 - count], 0.0)
        left = np.maximum(demand - rows[:, None] - columns[None, :], 0.0)
        prices = np.concatenate([rows, columns])
        if rounding.whole(demand) and rounding.whole(np.concatenate([left.ravel(), count * prices])):
            value = float(left.sum() + count * prices.sum())
            if value >= best:
                break
            best = value
            continue
        excess = rounding.sum_up(left)
        # The two subtractions of a positive excess lose at most a few units in the last place of the demand.
        dual = rounding.up(count * rounding.sum_up(prices))
        value = rounding.sum_up([float(dual), excess, float(rounding.up(rounding.gamma(4) * total))])
        if value >= best * (1 - 1e-12):
            break
        best = value
    return best


def routed_design(
    pool: ServerPool,
    circuits: I64,
    rings: Sequence[Ring],
    *,
    paths: int = 1,
    offsets: Sequence[Sequence[int]] | None = None,
    spread: bool = False,
) -> CircuitDesign:
    """Build the design of these circuits and rings with all demand forwarded.

    Parameters
    ----------
    pool
        Servers and their traffic.
    circuits
        Circuits, ascending, ``(m, 2)``.
    rings
        Rings of the groups.
    paths
        Number of shortest paths over which a demand without a direct circuit is split evenly.
    offsets
        Routes of demand without a direct circuit: from s to s + m modulo n over the servers s + ``offsets[m]``.
        Without them, shortest paths.
    spread
        Split point-to-point demand over the ``paths`` shortest paths even if it has direct circuits.

    Raises
    ------
    NotApplicable
        If some demand has no path, or for fewer than one path.
    """
    if paths < 1:
        refuse("routes", f"paths={paths}; use at least 1", NotApplicable)
    demand, more, several = ring_demand(pool, rings), None, paths > 1
    if spread:
        sent, offsets, several = pool.point_to_point, None, False
        demand = ring_demand(ServerPool(pool.n, pool.degree, np.zeros_like(sent), groups=pool.groups), rings)
        if sent.any():
            more = _many(pool, circuits, sent, np.argwhere(sent > 0), paths)
    number = circuits_between(pool.n, circuits)
    near, far = np.argwhere((demand > 0) & (number > 0)), np.argwhere((demand > 0) & (number == 0))
    pieces = [_direct(demand, number, near)]
    if far.size and offsets is not None:
        pieces.append(_shifted(pool.n, demand, far, offsets))
    elif far.size and several:
        more = _many(pool, circuits, demand, far, paths)
    elif far.size:
        pieces.append(_shortest(pool.n, circuits, demand, far))
    return _joined(pool, circuits, rings, pieces, more)


def _direct(demand: F64, number: I64, pairs: I64) -> Walks:
    """Route demand over its direct circuits: one walk per circuit, with equal shares of the bytes."""
    times = number[pairs[:, 0], pairs[:, 1]]
    return np.repeat(pairs, times, axis=0), np.repeat(demand[pairs[:, 0], pairs[:, 1]] / np.maximum(times, 1), times)


def _shortest(n: int, circuits: I64, demand: F64, pairs: I64) -> Walks:
    """Find one walk of fewest hops for every pair."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    graph = sp.csr_array((np.ones(len(circuits)), (circuits[:, 0], circuits[:, 1])), shape=(n, n))
    hops = dijkstra(graph, unweighted=True)
    wanted = hops[pairs[:, 0], pairs[:, 1]]
    if not np.isfinite(wanted).all():
        s, t = pairs[int(np.argmax(~np.isfinite(wanted)))]
        refuse("routes", f"no path from server {s} to {t} over these circuits; connect them", NotApplicable)
    before = _predecessors(n, circuits, hops)
    at, back = pairs[:, 1], [pairs[:, 1]]
    for _ in range(int(wanted.max(initial=0))):
        at = np.where(at >= 0, before[pairs[:, 0], at], -1)
        back.append(at)
    return _turned(np.stack(back, axis=1)), demand[pairs[:, 0], pairs[:, 1]]


def _predecessors(n: int, circuits: I64, hops: F64) -> I64:
    """Entry (s, v): the server before v on a shortest path from s; -1 for v = s.

    Ties are broken by a hash of the server, s and v, as in equal-cost multi-path routing: always taking the lowest
    number would send nearly all traffic over a few circuits.
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
    """Reverse walks that are padded at the end."""
    length = (back >= 0).sum(axis=1)
    column = length[:, None] - 1 - np.arange(back.shape[1])[None, :]
    walks = np.take_along_axis(back, np.maximum(column, 0), axis=1)
    walks[column < 0] = -1
    return walks


def _shifted(n: int, demand: F64, pairs: I64, offsets: Sequence[Sequence[int]]) -> Walks:
    """Build walks by offsets, the same for all sources."""
    table = np.full((n, max(map(len, offsets))), -1, dtype=np.int64)
    for m, places in enumerate(offsets):
        table[m, : len(places)] = places
    offset = table[(pairs[:, 1] - pairs[:, 0]) % n]
    return np.where(offset >= 0, (pairs[:, :1] + offset) % n, -1), demand[pairs[:, 0], pairs[:, 1]]


def _many(pool: ServerPool, circuits: I64, demand: F64, pairs: I64, paths: int) -> tuple[I64, I64, F64]:
    """Route every pair over its k shortest paths: start, circuits, bytes of each route."""
    from opticoll.formulations.flows.path_sets import PathRule, build_path_set
    from opticoll.instances.topology import Topology

    topology = Topology(pool.n, circuits[:, 0], circuits[:, 1])
    path_set = build_path_set(topology, PathRule("k", paths), "routes", (pairs[:, 0].copy(), pairs[:, 1].copy()))
    part = demand[pairs[:, 0], pairs[:, 1]] / np.diff(path_set.first)
    return path_set.start, path_set.arcs, part[path_set.pair]


def _joined(
    pool: ServerPool, circuits: I64, rings: Sequence[Ring], pieces: list[Walks], more: tuple[I64, I64, F64] | None
) -> CircuitDesign:
    """Turn walks into routes: hops between two servers use their parallel circuits in turn, heaviest first."""
    length = np.concatenate([(walks >= 0).sum(axis=1) - 1 for walks, _ in pieces])
    carried = np.concatenate([amount for _, amount in pieces])
    steps = []
    for walks, _ in pieces:
        selected = walks[:, 1:] >= 0
        steps.append(np.stack([walks[:, :-1][selected], walks[:, 1:][selected]], axis=1))
    flat = _parallel(pool.n, circuits, np.concatenate(steps), np.repeat(carried, length))
    start = offsets(length)
    if more is not None:
        start = np.concatenate([start, start[-1] + more[0][1:]])
        flat, carried = np.concatenate([flat, more[1]]), np.concatenate([carried, more[2]])
    return CircuitDesign(pool, circuits, tuple(rings), start, flat, carried)


def _parallel(n: int, circuits: I64, steps: I64, amount: F64) -> I64:
    """Choose the circuit of every step of a route, ``(steps,)``."""
    key, wanted = circuits[:, 0] * n + circuits[:, 1], steps[:, 0] * n + steps[:, 1]
    first = np.searchsorted(key, wanted)
    count = np.searchsorted(key, wanted, side="right") - first
    order = np.lexsort((np.arange(wanted.size), -amount, wanted))
    ranked = wanted[order]
    turn = np.empty(wanted.size, dtype=np.int64)
    turn[order] = np.arange(wanted.size) - np.searchsorted(ranked, ranked)
    chosen: I64 = first + turn % np.maximum(count, 1)
    return chosen
