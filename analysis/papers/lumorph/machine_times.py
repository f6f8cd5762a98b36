"""The time of schedules of rounds on LIGHTPATH, and of the algorithms of LuMorph's figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, violations
from opticoll.instances import parse
from opticoll.solvers.methods.lumorph.collective_algorithms import pattern_of
from opticoll.solvers.methods.lumorph.realisation import realised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import Mask


#: Grids by number of GPUs in the paper; a wafer has 4x8 tiles.
GRIDS = {4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
#: The algorithms of the paper as methods and parameters of this package.
OPTICAL: dict[str, tuple[str, dict[str, int]]] = {
    "LUMORPH-2": ("recursive", {"radix": 2}),
    "LUMORPH-4": ("recursive", {"radix": 4}),
    "LUMORPH-8": ("recursive", {"radix": 8}),
    "LUMORPH-16": ("recursive", {"radix": 16}),
    "D&C": ("divide-and-conquer", {"whole": True}),
    "optical ring": ("ring", {}),
}


@dataclass(frozen=True)
class Machine:
    """Times [us] of a round, alpha, and of its switches, r; lasers of a GPU, L; rate of one circuit [Gb/s]."""

    alpha_us: float = 0.7
    reconfigure_us: float = 3.7
    lasers: int = 16
    laser_gbps: float = 150.0

    @property
    def circuit_rate(self) -> float:
        """Bytes that a circuit carries per microsecond, b."""
        return self.laser_gbps * 1e3 / 8

    @property
    def beta(self) -> float:
        """Microseconds a byte takes over all lasers of a GPU."""
        return 1.0 / (self.lasers * self.circuit_rate)


#: Parameters of section 5 and Appendix C: 0.7 us, 3.7 us, 16 lasers of 150 Gb/s, 300 GB/s in all.
LIGHTPATH = Machine()


@dataclass(frozen=True)
class Line:
    """Time over buffer size: ``rounds (alpha + r) + weight B / b``; r is due ``reconfigurations`` times at least.

    ``violations`` is the number of violations found by the independent check; None if it was not run.
    """

    rounds: int
    weight: float
    reconfigurations: int
    violations: float | None = None

    def time(self, size: float) -> float:
        """Time for a buffer of ``size`` bytes on LIGHTPATH, r paid in every round [us]."""
        return (
            self.rounds * (LIGHTPATH.alpha_us + LIGHTPATH.reconfigure_us) + self.weight * size / LIGHTPATH.circuit_rate
        )


@cache
def optical(name: str, grid: str, *, check: bool = False) -> Line:
    """The all-reduce of one of :data:`OPTICAL` on a LIGHTPATH grid.

    Raises
    ------
    BadInput
        If the algorithm does not support the grid.
    """
    algorithm, parameters = OPTICAL[name]
    mesh = parse(f"lightpath:{grid},lasers={LIGHTPATH.lasers},waveguides=64")
    limits, wanted = Limits(LIGHTPATH.lasers, 64, load=None), collective("all-reduce", mesh.n)
    pattern, _ = pattern_of(algorithm, wanted, mesh, limits, **parameters)
    schedule = realised(mesh, limits, pattern)
    faults = sum(violations(mesh, wanted, limits, schedule).values()) if check else None
    return Line(schedule.rounds, weight(schedule, mesh.n), int(changes(schedule).sum()), faults)


def weight(schedule: RoundSchedule, n: int) -> float:
    """Shares of the buffer, an n-th a chunk, on the fullest circuit of a round, summed over the rounds."""
    pairs, circuits = np.unique(
        (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target, return_counts=True
    )
    sent = (schedule.transfer_round * n + schedule.transfer_source) * n + schedule.transfer_target
    chunks = np.bincount(np.searchsorted(pairs, sent), minlength=pairs.size)
    fullest = np.zeros(schedule.rounds)
    np.maximum.at(fullest, pairs // (n * n), chunks / n / circuits)
    return float(fullest.sum())


def changes(schedule: RoundSchedule) -> Mask:
    """Rounds whose circuits differ from those of the round before, ``(R,)``; the first counts as different."""
    ends = zip(schedule.circuit_source.tolist(), schedule.circuit_target.tolist(), strict=True)
    rounds: list[list[tuple[int, ...]]] = [[] for _ in range(schedule.rounds)]
    for k, (when, pair) in enumerate(zip(schedule.circuit_round.tolist(), ends, strict=True)):
        rounds[when].append((*pair, int(schedule.circuit_wavelength[k]), *schedule.path(k)))
    for circuits in rounds:
        circuits.sort()
    return np.array([not when or rounds[when] != rounds[when - 1] for when in range(schedule.rounds)])


def usable(lasers: int, peers: int) -> float:
    """Share of a GPU's bandwidth that equal bundles to ``peers`` peers can use: ``peers floor(L/peers) / L``."""
    return peers * (lasers // peers) / lasers


def recursive_time(radices: Sequence[int], size: float, machine: Machine) -> float:
    """Recursive exchange all-reduce with these digits, nearest first [us]."""
    n, total, reached = prod(radices), 0.0, 1
    for m in radices:
        total += 2 * (machine.alpha_us + machine.reconfigure_us)
        total += 2 * (m - 1) * reached / n * size * machine.beta / usable(machine.lasers, m - 1)
        reached *= m
    return total
