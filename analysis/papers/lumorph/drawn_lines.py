"""The lines of LuMorph's figures, computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.lumorph.machine_times import LIGHTPATH, Machine, switch_time, timeline
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, violations
from opticoll.instances import parse
from opticoll.solvers.methods.lumorph.collective_algorithms import pattern_of
from opticoll.solvers.methods.lumorph.patterns import beside, tree_all_reduce, two_trees
from opticoll.solvers.methods.lumorph.realisation import KnownRoutes, realised, split_rounds

if TYPE_CHECKING:
    from opticoll.solvers.methods.lumorph.patterns import Pattern


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
#: Numbers of pieces tried for pipelined trees.
PIECES = tuple(2**k for k in range(1, 10))


@dataclass(frozen=True)
class Line:
    """Time over buffer size: ``rounds (alpha + r) + weight B / b``; r is due ``reconfigurations`` times at least.

    ``violations`` is the number of violations found by the independent check; None if it was not run.
    """

    rounds: int
    weight: float
    reconfigurations: int
    violations: float | None = None

    def time(self, size: float, machine: Machine = LIGHTPATH) -> float:
        """Time for a buffer of ``size`` bytes [us]."""
        paid = self.rounds if machine.charged == "every-round" else self.reconfigurations
        return (
            self.rounds * machine.alpha_us + paid * machine.reconfigure_us + self.weight * size / machine.circuit_rate
        )


@cache
def optical(name: str, grid: str, *, waveguides: int = 64, check: bool = False) -> Line:
    """The all-reduce of one of :data:`OPTICAL` on a LIGHTPATH grid.

    Raises
    ------
    BadInput
        If the algorithm does not support the grid.
    """
    algorithm, parameters = OPTICAL[name]
    mesh = parse(f"lightpath:{grid},lasers={LIGHTPATH.lasers},waveguides={waveguides}")
    limits, wanted = Limits(LIGHTPATH.lasers, waveguides, load=None), collective("all-reduce", mesh.n)
    pattern, _ = pattern_of(algorithm, wanted, mesh, limits, **parameters)
    schedule = realised(mesh, limits, pattern, routing="min-overlap", per_wavelength=True)
    # A circuit of one byte a microsecond, a buffer of one byte.
    times = timeline(schedule, 1.0 / mesh.n, Machine(0.0, 1.0, LIGHTPATH.lasers, 8e-3, "changes"))
    faults = sum(violations(mesh, wanted, limits, schedule).values()) if check else None
    return Line(schedule.rounds, float(times.data.sum()), times.reconfigurations, faults)


@cache
def reconfigurations(
    name: str, grid: str, waveguides: int, *, per_wavelength: bool, routing: str = "min-overlap"
) -> int:
    """Rounds of the all-reduce with this number of waveguides per arc and 16 lasers: twice those of its all-gather."""
    mesh = parse(f"lightpath:{grid},waveguides={waveguides}")
    limits = Limits(16, waveguides, load=None)
    options: Any = {"routing": routing, "per_wavelength": per_wavelength, "known_routes": _routes(grid, routing)}
    return 2 * int(split_rounds(mesh, limits, _all_gather(name, grid), **options).sum())


@cache
def _all_gather(name: str, grid: str) -> Pattern:
    """The pattern of an all-gather by one of :data:`OPTICAL`, for any number of waveguides."""
    algorithm, parameters = OPTICAL[name]
    mesh = parse(f"lightpath:{grid}")
    return pattern_of(algorithm, collective("all-gather", mesh.n), mesh, Limits(16, 1, load=None), **parameters)[0]


@cache
def _routes(grid: str, routing: str) -> KnownRoutes:
    """Cache of the routes of a grid."""
    return {}


@cache
def electrical(name: str, n: int) -> tuple[Line, ...]:
    """NCCL's ``ring``, ``tree`` or ``double-binary-tree`` on an ideal switch, one line per number of pieces."""
    topology = parse(f"lightpath:1x{n}")
    limits, unit = Limits(16, 1, load=None), Machine(0.0, 0.0, 16, 8e-3)
    if name == "ring":
        pattern, _ = pattern_of(name, collective("all-reduce", n), topology, limits)
        return (Line(pattern.steps, switch_time(pattern, n, 1.0 / n, unit), 0),)
    lines = []
    for pieces in (1, *PIECES) if name == "tree" else PIECES:
        parents = two_trees(n)[:1] if name == "tree" else two_trees(n)
        share = pieces // len(parents)
        halves = [tree_all_reduce(parent, np.arange(share)) for parent in parents]
        pattern = halves[0]
        if len(halves) > 1:
            other = halves[1].renamed(np.arange(n), np.arange(share, 2 * share))
            pattern = beside([pattern, other])
        lines.append(Line(pattern.steps, switch_time(pattern, n, 1.0 / pieces, unit), 0))
    return tuple(lines)


def switch_times(name: str, n: int, size: float, machine: Machine = LIGHTPATH) -> float:
    """Time of a baseline on an ideal switch of this machine's bandwidth [us], trees with their best pieces."""
    return min(line.time(size, machine.electrical) for line in electrical(name, n))
