r"""Placement, circuits and wavelengths of optically connected GPUs (paper: SiP-ML).

Sets of disjoint arcs of a ring are modelled as walks; :func:`heaviest_set` finds the heaviest one. A wavelength of one
direction carries a set of circuits that share no segment of the ring. Cut the ring at node 0, and call node 0 at the
other end n. At most one circuit crosses the cut: (u,v) with 1 <= v < u. So a set is a walk on the line from v, over
circuits and idle segments, to u, and the crossing circuit back; or from 0 to n if nothing crosses. Sets with the same v
are one commodity: walks that leave v and end at any u, so n commodities contain all sets of a direction (independent
sets of the conflict graph: by columns in Yetginer, Liu & Rouskas, J. Opt. Commun. Netw. 3(7), 2011, here by arcs).
Integer flows of a commodity split into its sets, because the line has no cycles. The size does not depend on the number
of wavelengths, and wavelengths are not symmetric copies.

Sets    d in {0 clockwise, 1 anticlockwise}; (u,w) the ends of pair p in direction d on the cut line, w = n for node 0;
        X_d pairs with w < u, which cross the cut; v in V_d = {0} + {w: (u,w) in X_d} commodities; e_v = n for v = 0,
        else the largest u of a crossing pair with w = v
        f_dvp    circuits on the line, p with v <= u < w <= e_v
        idle_dva segments a -> a + 1, v <= a < e_v
        over_dp  crossing circuits, p in X_d: they close a walk of commodity w, from its end u to its start w
        rows of conservation (d,v,a): 0 < a < n for v = 0, else v <= a <= e_v

The other direction is the same on mirrored nodes, i -> -i.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import outward
from opticoll.formulations.arrays import Links, Names
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds import arcs_taken
from opticoll.instances.digraph import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyomo.environ as pyo

    from opticoll.formulations.model import Axis
    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.digraph import F64, I64, Mask
    from opticoll.instances.families.op_graphs import OpGraph


def directed(n: int, source: I64, target: I64, way: int) -> tuple[I64, I64]:
    """Ends of pairs as clockwise arcs on the cut ring, with target 0 written as n: way 0 unchanged, way 1 mirrored."""
    tail, head = (source, target) if way == 0 else (-source % n, -target % n)
    return tail, np.where(head == 0, n, head)


@dataclass(frozen=True, eq=False)
class Walks:
    """Index sets of the walks of both directions.

    Attributes
    ----------
    flow_way, flow_start, flow_pair
        Circuits on the line: direction, commodity v, pair, ``(|F|,)`` each.
    flow_tail, flow_head
        Ends of these circuits on the cut line, ``(|F|,)``.
    idle_way, idle_start, idle_tail
        Idle segments a -> a + 1, ``(|H|,)`` each.
    over_way, over_pair, over_tail, over_head
        Crossing circuits; their commodity is ``over_head``, ``(|X|,)`` each.
    node_way, node_start, node
        Rows of conservation: node a of commodity v, ``(rows,)`` each.
    """

    n: int
    flow_way: I64
    flow_start: I64
    flow_pair: I64
    flow_tail: I64
    flow_head: I64
    idle_way: I64
    idle_start: I64
    idle_tail: I64
    over_way: I64
    over_pair: I64
    over_tail: I64
    over_head: I64
    node_way: I64
    node_start: I64
    node: I64

    @property
    def rows(self) -> int:
        """Number of rows of conservation."""
        return int(self.node.size)

    def row_of(self, way: I64, start: I64, node: I64) -> I64:
        """Row of node a of commodity v, -1 if there is none (the start of commodity 0, and node n)."""
        n = self.n
        key = (self.node_way * n + self.node_start) * (n + 1) + self.node
        wanted = (way * n + start) * (n + 1) + node
        at = np.minimum(np.searchsorted(key, wanted), max(key.size - 1, 0))
        return np.where(key[at] == wanted, at, -1) if key.size else np.full(wanted.shape, -1)


def walks(n: int, source: I64, target: I64) -> Walks:
    """Build the index sets for these pairs."""
    flow: list[I64] = []
    idle: list[I64] = []
    over: list[I64] = []
    nodes: list[I64] = []
    for way in (0, 1):
        tail, head = directed(n, source, target, way)
        crossing = head < tail
        over.append(np.stack([np.full(crossing.sum(), way), np.flatnonzero(crossing), tail[crossing], head[crossing]]))
        line = np.flatnonzero(~crossing)
        for v in range(n):
            tails = tail[crossing & (head == v)]
            if v and tails.size == 0:
                continue
            end = n if v == 0 else int(tails.max())
            selected = line[(tail[line] >= v) & (head[line] <= end)]
            flow.append(
                np.stack(
                    [np.full(selected.size, way), np.full(selected.size, v), selected, tail[selected], head[selected]]
                )
            )
            at = np.arange(v, end)
            idle.append(np.stack([np.full(at.size, way), np.full(at.size, v), at]))
            inner = np.arange(1, n) if v == 0 else np.arange(v, end + 1)
            nodes.append(np.stack([np.full(inner.size, way), np.full(inner.size, v), inner]))
    parts = [np.concatenate(part, axis=1).astype(np.int64) for part in (flow, idle, over, nodes)]
    return Walks(n, *parts[0], *parts[1], *parts[2], *parts[3])


def state_walks(
    model: pyo.ConcreteModel,
    P: list[tuple[int, int]],
    n: int,
    W: int,
    variables: dict[str, tuple[Axis, ...]],
    named: dict[str, tuple[Axis, ...]],
) -> None:
    """Add variables f, idle, over and constraints ``walk``, ``light``, ``serve`` to a Pyomo model that has c.

    Parameters
    ----------
    P
        Pairs (i,j).
    n, W
        Numbers of nodes and wavelengths.
    variables, named
        Axes of the model's variables and constraints, to which those of the walks are added.
    """
    import pyomo.environ as pyo

    F, H, X, rows = [], [], [], []
    tail: dict[tuple[int, int, int], int] = {}
    head: dict[tuple[int, int, int], int] = {}
    for d in (0, 1):
        for i, j in P:
            tail[d, i, j], head[d, i, j] = (i, j or n) if d == 0 else (-i % n, -j % n or n)
        crossing = [p for p in P if head[(d, *p)] < tail[(d, *p)]]
        X += [(d, *p) for p in crossing]
        for v in range(n):
            tails = [tail[(d, *p)] for p in crossing if head[(d, *p)] == v]
            if v and not tails:
                continue
            end = max(tails) if v else n
            F += [(d, v, *p) for p in P if v <= tail[(d, *p)] < head[(d, *p)] <= end]
            H += [(d, v, a) for a in range(v, end)]
            rows += [(d, v, a) for a in (range(v, end + 1) if v else range(1, n))]
    model.f = pyo.Var(F, domain=pyo.NonNegativeIntegers)
    model.idle = pyo.Var(H, domain=pyo.NonNegativeReals)
    model.over = pyo.Var(X, domain=pyo.NonNegativeIntegers)
    into: dict[Any, list[Any]] = {}
    out: dict[Any, list[Any]] = {}
    for d, v, i, j in F:
        into.setdefault((d, v, head[d, i, j]), []).append(model.f[d, v, i, j])
        out.setdefault((d, v, tail[d, i, j]), []).append(model.f[d, v, i, j])
    for d, v, a in H:
        into.setdefault((d, v, a + 1), []).append(model.idle[d, v, a])
        out.setdefault((d, v, a), []).append(model.idle[d, v, a])
    for d, i, j in X:  # the walk that it closes starts at its head and ends at its tail
        into.setdefault((d, head[d, i, j], head[d, i, j]), []).append(model.over[d, i, j])
        out.setdefault((d, head[d, i, j], tail[d, i, j]), []).append(model.over[d, i, j])
    model.walk = pyo.Constraint(
        rows, rule=lambda _, *r: pyo.quicksum(into.get(r, [])) - pyo.quicksum(out.get(r, [])) == 0
    )
    model.light = pyo.Constraint(
        range(2),
        rule=lambda b, d: pyo.quicksum(out.get((d, 0, 0), [])) + pyo.quicksum(b.over[x] for x in X if x[0] == d) <= W,
    )
    carried: dict[tuple[int, int], list[Any]] = {p: [] for p in P}
    for name, keys in (("f", F), ("over", X)):
        for key in keys:
            carried[key[-2], key[-1]].append(getattr(model, name)[key])
    model.serve = pyo.Constraint(P, rule=lambda b, i, j: b.c[i, j] - pyo.quicksum(carried[i, j]) <= 0)
    variables |= {name: (keys,) for name, keys in (("f", F), ("idle", H), ("over", X)) if keys}
    named |= {"walk": (rows,), "light": (2,)}


def heaviest_set(n: int, source: I64, target: I64, weight: F64, way: int) -> float:
    """Largest total weight (each >= 0) of pairs that one wavelength of a direction can carry, ``(|P|,)``.

    Computed as longest walks from every node at once: n steps on an (n, n) array.
    """
    tail, head = directed(n, source, target, way)
    gain = np.full((n, n + 1), -np.inf)
    line = head > tail
    gain[tail[line], head[line]] = weight[line]
    best = np.full((n, n + 1), -np.inf)
    np.fill_diagonal(best, 0.0)
    for b in range(1, n + 1):
        reached = np.maximum(best[:, b - 1], (best[:, :b] + gain[:b, b]).max(axis=1))
        best[:, b] = np.maximum(best[:, b], reached)
    crossing = ~line
    over = best[head[crossing], tail[crossing]] + weight[crossing]
    return float(max(best[0, n], over.max(initial=0.0)))


def strip(walk: Walks, flow: I64, idle: I64, over: I64) -> list[tuple[int, list[int]]] | None:
    """Split integer flows into nonempty sets (direction, pairs); None if the flows are not conserved.

    Parameters
    ----------
    flow, idle, over
        Integer and nonnegative, ``(|F|,)``, ``(|H|,)``, ``(|X|,)``.
    """
    n = walk.n
    out: dict[tuple[int, int, int], list[list[int]]] = {}
    for way, v, a, b, pair, count in zip(
        walk.flow_way.tolist(), walk.flow_start.tolist(), walk.flow_tail.tolist(), walk.flow_head.tolist(),
        walk.flow_pair.tolist(), flow.tolist(), strict=True,
    ):  # fmt: skip
        if count > 0:
            out.setdefault((way, v, a), []).append([count, b, pair])
    for way, v, a, count in zip(
        walk.idle_way.tolist(), walk.idle_start.tolist(), walk.idle_tail.tolist(), idle.tolist(), strict=True
    ):
        if count > 0:
            out.setdefault((way, v, a), []).append([count, a + 1, -1])
    ends: dict[tuple[int, int], dict[int, list[int]]] = {}
    for way, pair, u, v, count in zip(
        walk.over_way.tolist(), walk.over_pair.tolist(), walk.over_tail.tolist(), walk.over_head.tolist(),
        over.tolist(), strict=True,
    ):  # fmt: skip
        if count > 0:
            ends.setdefault((way, v), {})[u] = [count, pair]
    results: list[tuple[int, list[int]]] = []

    def follow(way: int, v: int) -> list[int] | None:
        at = v
        pairs: list[int] = []
        sinks = ends.get((way, v), {}) if v else {}
        while True:
            if at == n:
                return pairs if v == 0 else None
            if at in sinks and sinks[at][0] > 0:
                sinks[at][0] -= 1
                return [*pairs, sinks[at][1]]
            choices = out.get((way, v, at), [])
            while choices and choices[-1][0] == 0:
                choices.pop()
            if not choices:
                return None
            choices[-1][0] -= 1
            at, pair = choices[-1][1], choices[-1][2]
            if pair >= 0:
                pairs.append(pair)

    for way in (0, 1):
        for v in range(n):
            starts = sum(count for count, _, _ in out.get((way, v, v), []))
            for _ in range(starts):
                pairs = follow(way, v)
                if pairs is None:
                    return None
                if pairs:
                    results.append((way, pairs))
    left = any(item[0] for items in out.values() for item in items)
    left |= any(item[0] for sinks in ends.values() for item in sinks.values())
    return None if left else results


def circuits_of_sets(sets: list[tuple[int, list[int]]]) -> I64:
    """Convert sets (direction, pairs) to ``circuits``, each on its own wavelength, in order."""
    results: list[tuple[int, int, int]] = []
    used = [0, 0]
    for way, pairs in sets:
        results += [(pair, way, used[way]) for pair in pairs]
        used[way] += 1
    return np.array(results, dtype=np.int64).reshape(-1, 3)


PAPER = "SiP-ML: high-bandwidth optical network interconnects for machine learning training"


#: Names of the directions of a ring.
WAYS = ("clockwise", "anticlockwise")
#: Number of roundings between a transfer's exact time and the computed one.
TIME_ROUNDINGS = 3
#: Maximum number of chords that are built.
MOST_CHORDS = 5_000_000


@dataclass(frozen=True, eq=False)
class Transfers:
    """The pairs with traffic.

    Attributes
    ----------
    n
        Number of servers.
    source, target
        Ends of every pair, ``(|P|,)``, by source, then target.
    volume
        Bytes of every pair, ``(|P|,)``, all positive.
    bandwidth
        Bandwidth of one circuit [bytes/s].
    """

    n: int
    source: I64
    target: I64
    volume: F64
    bandwidth: float

    @property
    def pairs(self) -> int:
        """Number of pairs |P|."""
        return int(self.volume.size)

    @cached_property
    def unit_time(self) -> float:
        """Time of the largest transfer over one circuit [s]."""
        return float(self.volume.max() / self.bandwidth)

    @cached_property
    def shares(self) -> F64:
        """Volumes relative to the largest, ``(|P|,)``."""
        return self.volume / self.volume.max()

    def times(self, circuits: F64 | I64) -> F64:
        """Transfer times of pairs with these numbers of circuits [s]."""
        return self.volume / circuits / self.bandwidth

    def slowest(self, circuits: F64 | I64) -> float:
        """Slowest transfer time T [s]; infinite if some pair has no circuit."""
        if np.shape(circuits) != (self.pairs,) or not (np.asarray(circuits) > 0).all():
            return np.inf
        return float(self.times(circuits).max())

    def needs(self, time: float | F64, pair: I64 | None = None) -> I64:
        """n_p(T) of the pairs (None: all), for one T or one per pair [s]; T must be positive.

        Needs beyond 2**52 are returned as 2**52.
        """
        volume = self.volume if pair is None else self.volume[pair]
        most = 2.0**52
        with np.errstate(over="ignore", divide="ignore"):
            values = np.clip(np.ceil(volume / self.bandwidth / time), 1.0, most)
            values = np.where(
                (values > 1) & (volume / np.maximum(values - 1, 1) / self.bandwidth <= time), values - 1, values
            )
            values = np.where((values < most) & (volume / values / self.bandwidth > time), values + 1, values)
        return values.astype(np.int64)


def transfers_of(traffic: F64, bandwidth: float, where: str) -> Transfers:
    """Extract the pairs of a checked traffic matrix.

    Raises
    ------
    BadInput
        If there is no traffic, the bandwidth is not positive, or times are too large or small for floating point.
    """
    if not 0 < bandwidth < np.inf:
        msg = f"{where}: bandwidth={bandwidth}; give the bytes per second of one circuit, a positive number"
        raise BadInput(msg)
    source, target = np.nonzero(traffic)
    if source.size == 0:
        msg = f"{where}: no server sends anything; set traffic"
        raise BadInput(msg)
    volume = traffic[source, target]
    with np.errstate(over="ignore", under="ignore"):
        times = volume / bandwidth
    if not np.isfinite(times).all() or (times < np.finfo(float).tiny * 2.0**60).any():
        sizes = f"{volume.min():g} to {volume.max():g} bytes over {bandwidth:g} bytes/s"
        msg = f"{where}: times of {sizes} are out of floating-point range; scale the traffic"
        raise BadInput(msg)
    return Transfers(traffic.shape[0], source, target, volume, bandwidth)


def least_times(transfers: Transfers, group: I64, pair: I64, weight: F64, capacity: F64) -> F64:
    """Smallest T [s] at which the needs of each group fit its capacity, ``(groups,)``; infinite if there is none.

    T is rounded as by :meth:`Transfers.times`: a bound on exact times is :data:`TIME_ROUNDINGS` roundings lower.

    Parameters
    ----------
    group, pair, weight
        Entries: group g contains pair p with weight w_p, ``(entries,)`` each.
    capacity
        Capacity C of every group, ``(groups,)``.
    """
    size = capacity.size
    room = capacity * (1.0 + outward.gamma(int(np.bincount(group).max(initial=0)) + 3))  # sums are not exact

    def fits(time: F64) -> Mask:
        used = np.bincount(group, weight * transfers.needs(time[group], pair), minlength=size)
        return np.asarray(used <= room)

    top = np.full(size, float(transfers.volume.max() / transfers.bandwidth))
    least = float(transfers.volume.min() / transfers.bandwidth) * 2.0**-50
    low = np.full(size, min(least, float(top[0]) * 0.5)).view(np.int64)
    possible = fits(top)
    high = top.view(np.int64)
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        good = fits(middle.view(np.float64))
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return np.where(possible, high.view(np.float64), np.inf)


@dataclass(frozen=True, eq=False)
class Chords:
    """Rows ``t + slope_r c_{pair_r} >= level_r``, ``(rows,)`` each, by pair, then j."""

    pair: I64
    j: I64
    slope: F64
    level: F64


def pair_sets(moves: Transfers, walk: Walks | None = None) -> dict[str, Names]:
    """Names ``i -> j`` of every pair (by server numbers), and of the circuits and segments of walks."""
    pairs = [f"{i} -> {j}" for i, j in zip(moves.source.tolist(), moves.target.tolist(), strict=True)]
    result: dict[str, Names] = {"pair": pairs, "direction": WAYS}
    if walk is None:
        return result

    def ways(way: I64) -> list[str]:
        return [WAYS[i] for i in way.tolist()]

    circuit = {"direction": ways(walk.flow_way), "walk": walk.flow_start.tolist()}
    crossing = {"direction": ways(walk.over_way), "walk": walk.over_head.tolist()}
    return result | {
        "circuit of a walk": circuit | {"pair": [pairs[p] for p in walk.flow_pair.tolist()]},
        "crossing circuit": crossing | {"pair": [pairs[p] for p in walk.over_pair.tolist()]},
        "idle segment": {
            "direction": ways(walk.idle_way), "walk": walk.idle_start.tolist(), "segment": walk.idle_tail.tolist()
        },
    }  # fmt: skip


def pair_links(moves: Transfers, circuits: F64, time: float) -> Links:
    """Bytes of every pair over its own circuits, within the time of the slowest transfer [s]."""
    topology = Topology(moves.n, moves.source, moves.target, spec="circuits")
    return Links(topology, moves.volume, circuits * moves.bandwidth, time, "bytes", "bytes/s")


def ring_links(n: int, circuits: Sequence[tuple[int, int, bool, int]], wavelengths: int) -> Links:
    """Load of every segment and direction of a ring by circuits (source, target, clockwise, wavelength)."""
    source, target, clockwise, _ = np.array(circuits, dtype=np.int64).reshape(-1, 4).T
    spans, _, owner = arcs_taken(n, source, target, clockwise == 1)
    onward, nodes = clockwise[owner] == 1, np.arange(n)
    after = (nodes + 1) % n
    topology = Topology(n, np.concatenate([nodes, after]), np.concatenate([after, nodes]), spec=f"ring:{n}")
    key = topology.tail * n + topology.head
    at = np.where(onward, spans * n + after[spans], after[spans] * n + spans)
    load = np.bincount(np.searchsorted(key, at), minlength=topology.arcs).astype(float)
    return Links(topology, load, np.full(load.size, float(wavelengths)), 1.0, "circuits", "wavelengths")


def chord_count(low: I64, high: I64) -> int:
    """Number of chords between the bounds of c."""
    return int(np.maximum(high - low, 1).sum())


def derived(transfers: Transfers, high: I64) -> list[Fraction]:
    """Exact fractions of the coefficients of :func:`chords` for low = 1, and of the unit of time."""
    largest = outward.decimal(float(transfers.volume.max()))
    most: dict[Fraction, int] = {}
    for volume, top in zip(transfers.volume.tolist(), high.tolist(), strict=True):
        share = outward.decimal(volume) / largest
        most[share] = max(most.get(share, 0), top)
    results = [largest / outward.entered(transfers.bandwidth)]
    for share, top in most.items():
        for j in range(1, max(top, 2)):
            slope = share / (j * (j + 1))
            results += [slope, slope * (2 * j + 1)]
    return results


def chords(shares: F64, low: I64, high: I64, where: str) -> Chords:
    """Build the chords of every pair between the bounds of its c (one if they are equal).

    Raises
    ------
    BadInput
        For more than ``MOST_CHORDS`` chords.
    """
    count = np.maximum(high - low, 1)
    rows = chord_count(low, high)
    if rows > MOST_CHORDS:
        msg = (
            f"{where}: the model would have {rows:,} chords; use fewer circuits or pairs, or a method without a matrix"
        )
        raise BadInput(msg)
    pair = np.repeat(np.arange(shares.size), count)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)[:-1]])
    j = np.arange(rows) - first[pair] + low[pair]
    slope = shares[pair] / (j * (j + 1.0))
    return Chords(pair, j, slope, slope * (2.0 * j + 1.0))


#: Number of thresholds for heads, and for tails, in the heads-tails bound.
THRESHOLDS = 64


def chains(graph: OpGraph, delay: F64) -> tuple[F64, F64]:
    """Longest chains before and after every sub-operation [us], with these delays of dependencies; ``(n,)`` each."""
    n, duration = graph.n, graph.duration.tolist()
    before, after = [0.0] * n, [0.0] * n
    ends = list(zip(graph.tail.tolist(), graph.head.tolist(), delay.tolist(), strict=True))
    for u, v, wait in ends:  # sorted by head
        before[v] = max(before[v], before[u] + duration[u] + wait)
    for u, v, wait in reversed(ends):
        after[u] = max(after[u], after[v] + duration[v] + wait)
    return np.array(before), np.array(after)


def bounds(data: Placement) -> list[Bound]:
    """Bounds from the longest chain, from the work, and from the work between heads and tails."""
    k, heads, tails, p = data.devices, data.heads, data.tails, data.graph.duration
    chain = float((heads + p + tails).max())
    best = 0.0
    for h in np.unique(np.quantile(heads, np.linspace(0, 1, THRESHOLDS), method="lower")):
        late = heads >= h
        for r in np.unique(np.quantile(tails[late], np.linspace(0, 1, THRESHOLDS), method="lower")):
            some = late & (tails >= r)
            parallel = max(float(p[some].sum()) / k, -(-int(some.sum()) // k) * float(p[some].min()))
            best = max(best, float(h) + parallel + float(r))
    # A head and a tail together are sums of at most n durations and n delays, and so is the work.
    chain, work, best = (float(outward.down(t, 4 * data.n + 10)) for t in (chain, data.work / k, best))
    return [
        Bound("critical-path", chain, "the longest chain of dependencies", "sipml"),
        Bound("work", work, "all GPUs busy throughout", "sipml"),
        Bound("heads-tails", best, "work between the chains before and after it", "sipml"),
    ]
