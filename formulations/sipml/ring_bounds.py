"""Bounds on the slowest transfer of a ring: segments, cuts, and prices of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.sipml.transfers import TIME_ROUNDINGS, least_times
from opticoll.formulations.sipml.walks import heaviest_set

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.instances.topology import F64


#: Limits on the number of cuts whose integer circuits are counted, and on their total number of pairs.
CUTS, CUT_ENTRIES = 256, 2_000_000


def distance_time(data: RingTraffic) -> float:
    """Bound on T [s] from all 2 n W segments: every circuit takes at least its shortest distance."""
    weight = data.hops.min(axis=1).astype(float)
    return weighted_time(data, weight, 2.0 * data.n * data.wavelengths)


def weighted_time(data: RingTraffic, weight: F64, capacity: float) -> float:
    """Smallest T [s] at which the needs, weighted by ``(|P|,)``, fit a capacity."""
    used = np.flatnonzero(weight > 0)
    if used.size == 0:
        return 0.0
    group = np.zeros(used.size, dtype=np.int64)
    return float(least_times(data.transfers, group, used, weight[used], np.array([capacity]))[0])


def priced_time(data: RingTraffic, weight: F64) -> float:
    """Bound on T [s] from weights >= 0, ``(|P|,)``."""
    moves = data.transfers
    sets = sum(heaviest_set(data.n, moves.source, moves.target, weight, way) for way in (0, 1))
    capacity = float(rounding.up(data.wavelengths * sets, data.n + 3))
    return float(rounding.down(weighted_time(data, weight, capacity), TIME_ROUNDINGS))


def cut_time(data: RingTraffic) -> tuple[float, int, int]:
    """Bound on T [s] from the worst cut, the first node of its interval, and the number of nodes in it.

    Cuts are ranked by volume and by pairs; integer circuits are counted for the first ``CUTS`` of each ranking
    (fewer if there are many pairs).
    """
    n, moves, capacity = data.n, data.transfers, 2.0 * data.wavelengths
    first, size = (part.ravel() for part in np.mgrid[0:n, 1:n])
    ranks, most = [], min(CUTS, max(8, CUT_ENTRIES // moves.pairs))
    for weight in (moves.volume, np.ones(moves.pairs)):
        dense = np.zeros((2 * n, 2 * n))
        for a in (0, n):
            for b in (0, n):
                dense[moves.source + a, moves.target + b] = weight
        total = np.zeros((2 * n + 1, 2 * n + 1))
        total[1:, 1:] = dense.cumsum(axis=0).cumsum(axis=1)
        last = first + size
        out = total[last, first + n] - total[first, first + n] - total[last, last] + total[first, last]
        ranks.append(np.argsort(-out, kind="stable")[:most])
    chosen = np.unique(np.concatenate(ranks))
    members = (moves.source[None, :] - first[chosen, None]) % n < size[chosen, None]
    members &= (moves.target[None, :] - first[chosen, None]) % n >= size[chosen, None]
    group, pair = np.nonzero(members)
    times = least_times(moves, group, pair, np.ones(pair.size), np.full(chosen.size, capacity))
    times = np.where(members.any(axis=1), times, 0.0)
    worst = int(times.argmax())
    return float(times[worst]), int(first[chosen[worst]]), int(size[chosen[worst]])


def least_ring_time(data: RingTraffic) -> float:
    """Best analytic bound on T [s], infinite if the problem is infeasible."""
    return max(data.distance_bound, data.cut_bound[0])


def refute(data: RingTraffic) -> Bound | None:
    """Bound that proves infeasibility if one circuit per pair exceeds the capacity of all segments or of a cut."""
    if np.isfinite(data.least):
        return None
    if np.isinf(data.distance_bound):
        segments = int(data.hops.min(axis=1).sum())
        reason = f"one circuit per pair takes {segments} segments, more than {2 * data.n * data.wavelengths}"
        return Bound("arc-load", np.inf, reason, "sipml")
    _, first, size = data.cut_bound
    reason = f"one circuit per pair is more than {2 * data.wavelengths} out of the {size} nodes from {first} on"
    return Bound("cut", np.inf, reason, "sipml")


def bounds(data: RingTraffic) -> list[Bound]:
    """Bounds from the total of segments, and from the worst cut."""
    time, first, size = data.cut_bound
    arcs, time = (
        float(t) if np.isinf(t) else max(float(rounding.down(t, TIME_ROUNDINGS)), 0.0)
        for t in (data.distance_bound, time)
    )
    reason = f"at most {2 * data.wavelengths} circuits leave the {size} nodes from {first} on"
    return [
        Bound("arc-load", arcs, "in less time the circuits take more segments than exist", "sipml"),
        Bound("cut", time, reason, "sipml"),
    ]


def certify(data: RingTraffic, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by any prices of pairs; the heaviest sets are recomputed."""
    if "serve" not in duals:
        return None
    weight = np.abs(np.asarray(duals["serve"], dtype=float))
    weight = np.where(np.isfinite(weight), weight, 0.0)
    if weight.shape != (data.transfers.pairs,) or not weight.max(initial=0.0) > 0:
        return None
    value = data.priced_time(weight / weight.max())
    if not np.isfinite(value):
        return None
    return Bound("sets", value, "prices of pairs; no wavelength carries more than the heaviest set", "sipml")
