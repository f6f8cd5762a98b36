"""Bounds on the makespan of a placement: chains of dependencies, and the work between them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.sipml.transfers import chains

if TYPE_CHECKING:
    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.topology import F64


def exact_placement_numbers(data: Placement) -> list[Fraction]:
    """Durations and delays in units of the horizon, their differences to 1, 2 and 3, the horizon, and memory."""
    durations = [rounding.decimal(value) for value in data.graph.duration.tolist()]
    horizon, delays = sum(durations, Fraction(0)), []
    if data.bandwidth:
        rate = rounding.entered(data.bandwidth) / 10**6
        delays = [rounding.decimal(value) / rate for value in data.graph.volume.tolist()]
    if data.memory:
        horizon += sum(delays, Fraction(0))
    shares = {value / horizon for value in durations}
    results = [horizon, *shares, *(k - share for k in (1, 2, 3) for share in shares)]
    results += [delay / horizon for delay in delays]
    if data.memory:
        results += [rounding.entered(held) / rounding.entered(data.memory) for held in data.occupied.tolist()]
    return results


def heads(data: Placement) -> F64:
    """Longest chain before every sub-operation [us], ``(n,)``."""
    return chains(data.graph, data.forced)[0]


def tails(data: Placement) -> F64:
    """Longest chain after every sub-operation [us], ``(n,)``."""
    return chains(data.graph, data.forced)[1]


def forced_delays(data: Placement) -> F64:
    """Delay of dependencies whose ends do not fit together on one GPU [us], 0 for the others, ``(m,)``."""
    together = data.occupied[data.graph.tail] + data.occupied[data.graph.head]
    return np.where((data.memory > 0) & (together > data.memory * (1 + 1e-9)), data.delay, 0.0)
