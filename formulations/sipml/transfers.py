r"""Transfers over integer numbers of circuits: time of the slowest, and lower bounds on it.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import outward

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

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


def least_times(
    transfers: Transfers, group: I64, pair: I64, weight: F64, capacity: F64, floor: float | None = None
) -> F64:
    """Least T [s] at which the needs of every group keep to its capacity, ``(groups,)``; infinite if none does.

    T is rounded as by :meth:`Transfers.times`: a bound on exact times is :data:`TIME_ROUNDINGS` roundings lower.

    Parameters
    ----------
    group, pair, weight
        The entries: group g holds pair p with w_p, ``(entries,)`` each.
    capacity
        C of every group, ``(groups,)``.
    floor
        A positive T below which results need not be exact: a smaller T may be returned as any value up to it.
    """
    size = capacity.size
    room = capacity * (1.0 + outward.gamma(int(np.bincount(group).max(initial=0)) + 3))  # sums are not exact

    def fits(time: F64) -> NDArray[np.bool_]:
        used = np.bincount(group, weight * transfers.needs(time[group], pair), minlength=size)
        return np.asarray(used <= room)

    top = np.full(size, float(transfers.volume.max() / transfers.bandwidth))
    least = float(transfers.volume.min() / transfers.bandwidth) * 2.0**-50 if floor is None else floor * (1 - 1e-12)
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


def chord_count(low: I64, high: I64) -> int:
    """Number of chords between the bounds of c."""
    return int(np.maximum(high - low, 1).sum())


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
