"""Transfers between GPUs, and the least times of the circuits that serve them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations import rounding

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.instances.topology import F64, I64, Mask


#: Number of roundings between a transfer's exact time and the computed one.
TIME_ROUNDINGS = 3


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
        refuse(where, f"bandwidth={bandwidth}; give the bytes per second of one circuit, a positive number")
    source, target = np.nonzero(traffic)
    if source.size == 0:
        refuse(where, "no server sends anything; set traffic")
    volume = traffic[source, target]
    with np.errstate(over="ignore", under="ignore"):
        times = volume / bandwidth
    if not np.isfinite(times).all() or (times < np.finfo(float).tiny * 2.0**60).any():
        sizes = f"{volume.min():g} to {volume.max():g} bytes over {bandwidth:g} bytes/s"
        refuse(where, f"times of {sizes} are out of floating-point range; scale the traffic")
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
    room = capacity * (1.0 + rounding.gamma(int(np.bincount(group).max(initial=0)) + 3))  # sums are not exact

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


def exact_chord_numbers(data: OcsCircuits | RingTraffic) -> list[Fraction]:
    """Exact fractions of the coefficients of chords, and of the unit of time."""
    transfers = data.transfers
    largest = rounding.decimal(float(transfers.volume.max()))
    most: dict[Fraction, int] = {}
    for volume, top in zip(transfers.volume.tolist(), data.high.tolist(), strict=True):
        share = rounding.decimal(volume) / largest
        most[share] = max(most.get(share, 0), top)
    results = [largest / rounding.entered(transfers.bandwidth)]
    for share, top in most.items():
        for h in range(1, max(top, 2)):
            slope = share / (h * (h + 1))
            results += [slope, slope * (2 * h + 1)]
    return results
