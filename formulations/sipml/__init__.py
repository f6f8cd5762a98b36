r"""Placement, circuits and wavelengths of optically connected GPUs (paper: SiP-ML).

Transfers over integer numbers of circuits: time of the slowest, and lower bounds on it.

Source  SiP-ML, section 3.3 ("assign circuits to each pair of GPUs ... such that the maximum transfer time is
        minimized")
Sets    p in P pairs of servers with traffic
Data    V_p > 0 bytes of the pair, (|P|,); B bandwidth of one circuit [bytes/s]
Vars    c_p >= 1 circuits of the pair, integer

    T = max_p V_p / (c_p B)

Needs. T is attained iff every pair has c_p >= n_p(T) = ceil(V_p / (T B)). The floating-point quotients V_p / c, which
fall with c, are compared directly, so that every n_p(T) is exact for the objective as computed.

Bounds. If every assignment has sum_p w_p c_p <= C for weights w_p >= 0, then T is at least the least T with
sum_p w_p n_p(T) <= C (:func:`least_times`), found by bisection over the floating-point numbers in at most 64 steps.
Needs are rounded up to integers, so this is stronger than the volume bound sum_p w_p V_p / (C B).

Linear form. 1/c is convex, so at integer c the chords through neighbouring integers are exact: with
v_p = V_p / max V, low_p <= c_p <= high_p, and t = T B / max V,

    chord[p,j]   t + v_p/(j(j+1)) c_p >= v_p (2j+1)/(j(j+1))     low_p <= j < high_p

Lower bounds on the makespan of a placement: chains, work, and work between chains.

Chains (``critical-path``) add the delay of a dependency where both ends need more memory than one GPU has, so that they
must be apart. For the m sub-operations with chains of at least h before and at least r after them (``heads-tails``),
h + max(work/k, ceil(m/k) shortest) + r.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import outward
from opticoll.formulations.arrays import Links, Names
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.wavelengths import arcs_taken
from opticoll.instances.digraph import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.sipml.arc_sets import Walks
    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.families.op_graphs import OpGraph

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]


PAPER = "SiP-ML: high-bandwidth optical network interconnects for machine learning training"


#: Names of the directions of a ring.
WAYS = ("clockwise", "anticlockwise")
#: Roundings between a transfer's exact time and the computed one.
TIME_ROUNDINGS = 3
#: Largest number of chords that is built.
MOST_CHORDS = 5_000_000


@dataclass(frozen=True, eq=False)
class Transfers:
    """The pairs with traffic.

    Attributes
    ----------
    n
        Servers.
    source, target
        Ends of every pair, ``(|P|,)``, by source, then target.
    volume
        Bytes, ``(|P|,)``, all positive.
    bandwidth
        Of one circuit [bytes/s].
    """

    n: int
    source: I64
    target: I64
    volume: F64
    bandwidth: float

    @property
    def pairs(self) -> int:
        """Pairs |P|."""
        return int(self.volume.size)

    @cached_property
    def unit_time(self) -> float:
        """Time of the largest transfer over one circuit [s]."""
        return float(self.volume.max() / self.bandwidth)

    @cached_property
    def shares(self) -> F64:
        """Volumes over the largest, ``(|P|,)``."""
        return self.volume / self.volume.max()

    def times(self, circuits: F64 | I64) -> F64:
        """Transfer times of pairs with these numbers of circuits [s]."""
        return self.volume / circuits / self.bandwidth

    def slowest(self, circuits: F64 | I64) -> float:
        """T [s]; infinite if some pair has no circuit."""
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
            found = np.clip(np.ceil(volume / self.bandwidth / time), 1.0, most)
            found = np.where(
                (found > 1) & (volume / np.maximum(found - 1, 1) / self.bandwidth <= time), found - 1, found
            )
            found = np.where((found < most) & (volume / found / self.bandwidth > time), found + 1, found)
        return found.astype(np.int64)


def transfers_of(traffic: F64, bandwidth: float, where: str) -> Transfers:
    """The pairs of a checked traffic matrix.

    Raises
    ------
    BadInput
        If there is no traffic, or the bandwidth is not positive, or times are too large or small for floating point.
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
    """Least T [s] at which the needs of every group keep to its capacity, ``(groups,)``; infinite if none does.

    T is rounded as by :meth:`Transfers.times`: a bound on exact times is :data:`TIME_ROUNDINGS` roundings lower.

    Parameters
    ----------
    group, pair, weight
        The entries: group g holds pair p with w_p, ``(entries,)`` each.
    capacity
        C of every group, ``(groups,)``.
    """
    size = capacity.size
    room = capacity * (1.0 + outward.gamma(int(np.bincount(group).max(initial=0)) + 3))  # sums are not exact

    def fits(time: F64) -> NDArray[np.bool_]:
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
    """``i -> j`` for every pair (servers have their numbers), and the circuits and segments of walks."""
    pairs = [f"{i} -> {j}" for i, j in zip(moves.source.tolist(), moves.target.tolist(), strict=True)]
    found: dict[str, Names] = {"pair": pairs, "direction": WAYS}
    if walk is None:
        return found

    def ways(way: I64) -> list[str]:
        return [WAYS[i] for i in way.tolist()]

    circuit = {"direction": ways(walk.flow_way), "walk": walk.flow_start.tolist()}
    crossing = {"direction": ways(walk.over_way), "walk": walk.over_head.tolist()}
    return found | {
        "circuit of a walk": circuit | {"pair": [pairs[p] for p in walk.flow_pair.tolist()]},
        "crossing circuit": crossing | {"pair": [pairs[p] for p in walk.over_pair.tolist()]},
        "idle segment": {
            "direction": ways(walk.idle_way), "walk": walk.idle_start.tolist(), "segment": walk.idle_tail.tolist()
        },
    }  # fmt: skip


def pair_links(moves: Transfers, circuits: F64, time: float) -> Links:
    """The bytes of every pair over its own circuits, in the time of the slowest transfer [s]."""
    topology = Topology(moves.n, moves.source, moves.target, spec="circuits")
    return Links(topology, moves.volume, circuits * moves.bandwidth, time, "bytes", "bytes/s")


def ring_links(n: int, circuits: Sequence[tuple[int, int, bool, int]], wavelengths: int) -> Links:
    """Circuits (source, target, clockwise, wavelength) over every segment of a ring and direction."""
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
    """The fractions behind the coefficients of :func:`chords` for low = 1, and behind the unit of time."""
    largest = outward.decimal(float(transfers.volume.max()))
    most: dict[Fraction, int] = {}
    for volume, top in zip(transfers.volume.tolist(), high.tolist(), strict=True):
        share = outward.decimal(volume) / largest
        most[share] = max(most.get(share, 0), top)
    found = [largest / outward.entered(transfers.bandwidth)]
    for share, top in most.items():
        for j in range(1, max(top, 2)):
            slope = share / (j * (j + 1))
            found += [slope, slope * (2 * j + 1)]
    return found


def chords(shares: F64, low: I64, high: I64, where: str) -> Chords:
    """The chords of every pair between the bounds of its c (one if they are equal).

    Raises
    ------
    BadInput
        For more than ``MOST_CHORDS`` chords.
    """
    count = np.maximum(high - low, 1)
    rows = chord_count(low, high)
    if rows > MOST_CHORDS:
        msg = (
            f"{where}: the model would have {rows:,} chords; take fewer circuits or pairs, or a method without a matrix"
        )
        raise BadInput(msg)
    pair = np.repeat(np.arange(shares.size), count)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)[:-1]])
    j = np.arange(rows) - first[pair] + low[pair]
    slope = shares[pair] / (j * (j + 1.0))
    return Chords(pair, j, slope, slope * (2.0 * j + 1.0))


#: Thresholds on either side of the bound by heads and tails.
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
    """Bounds by the longest chain, by the work, and by the work between heads and tails."""
    k, heads, tails, p = data.devices, data.heads, data.tails, data.graph.duration
    chain = float((heads + p + tails).max())
    best = 0.0
    for h in np.unique(np.quantile(heads, np.linspace(0, 1, THRESHOLDS), method="lower")):
        late = heads >= h
        for r in np.unique(np.quantile(tails[late], np.linspace(0, 1, THRESHOLDS), method="lower")):
            some = late & (tails >= r)
            parallel = max(float(p[some].sum()) / k, -(-int(some.sum()) // k) * float(p[some].min()))
            best = max(best, float(h) + parallel + float(r))
    # A head and a tail are sums of at most n durations and n delays together, and so is the work.
    chain, work, best = (float(outward.down(t, 4 * data.n + 10)) for t in (chain, data.work / k, best))
    return [
        Bound("critical-path", chain, "the longest chain of dependencies", "sipml"),
        Bound("work", work, "all GPUs busy throughout", "sipml"),
        Bound("heads-tails", best, "work between the chains before and after it", "sipml"),
    ]
