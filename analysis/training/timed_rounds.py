"""All-reduces and exchanges as rounds of circuits on a LIGHTPATH mesh, with the time of every round.

Source  LuMorph, sections 3 and 4, appendices B and C; costs as in
        :mod:`opticoll.formulations.lumorph.cost_formulas`, but on the lasers and waveguides of a mesh
Data    alpha latency of a round, r delay of a change of circuits [s]; rate of a wavelength [bytes/s]

A round takes alpha, r if its circuits differ from those of the round before, and the longest transmission: the bytes of
a pair over its circuits, all wavelengths that the pair has in this round. The first round of a communication always
pays r.

    all-reduce  ``lumorph-2`` and ``lumorph-4`` (recursive halving and doubling, quartering and quadrupling), ``ring``
                (over a Hamiltonian cycle of the mesh, whose circuits stay); ``auto`` is the fastest of them for the
                buffer
    exchange    bytes from every GPU to every other: direct circuits, or the index algorithm of any radix, which
                forwards and combines, whichever is fastest

Every step of an algorithm gets lambda wavelengths for each of its pairs, on routes of least overlap. If waveguides or
lasers are too few, the step is split into several rounds (appendix C). Fewer wavelengths make fewer rounds, more make
shorter ones: lambda = floor(L / k), k = 1, 2, .., is chosen for the least time, for steps with the same pairs together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.analysis.training.circuit_replay import Communication
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.rounds.collectives import Collective, collective
from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule, chained
from opticoll.formulations.rounds.segments import select
from opticoll.solvers.methods.lumorph.collective_algorithms import pattern_of
from opticoll.solvers.methods.lumorph.index_algorithm import index_pattern, radices
from opticoll.solvers.methods.lumorph.patterns import Pattern
from opticoll.solvers.methods.lumorph.realisation import StepCircuits

if TYPE_CHECKING:
    from opticoll.instances.photonics import LightpathMesh
    from opticoll.instances.topology import F64, I64

AllReduce = Literal["auto", "lumorph-4", "lumorph-2", "ring"]
#: Algorithms of an all-reduce: name and parameters as in :func:`.collective_algorithms.pattern_of`.
ALL_REDUCES: dict[str, tuple[str, dict[str, int]]] = {
    "lumorph-4": ("recursive", {"radix": 4}),
    "lumorph-2": ("recursive", {"radix": 2}),
    "ring": ("ring", {}),
}
ALGORITHMS = ("auto", *ALL_REDUCES)


@dataclass(frozen=True)
class CircuitCosts:
    """Latency alpha of a round and delay r of a change [s], and the rate of a wavelength [bytes/s]."""

    latency: float
    delay: float
    rate: float


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of a pattern: its pairs, and the pair of each of its transfers, ``rows``."""

    source: I64
    target: I64
    rows: I64
    pair: I64

    def bytes(self, amounts: F64) -> F64:
        """Bytes of every pair; ``amounts`` are those of the transfers of the pattern."""
        return np.bincount(self.pair, amounts[self.rows], self.source.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A pattern, its steps in runs with the same pairs, and the bytes of every chunk for a unit of data."""

    name: str
    collective: Collective
    pattern: Pattern
    runs: list[list[_Step]]
    share: F64


@dataclass(frozen=True, eq=False)
class TimedRounds:
    """A communication in rounds.

    Attributes
    ----------
    algorithm
        Its algorithm.
    durations
        Time of every round [s], ``(R,)``.
    changes
        Changes of circuits.
    """

    algorithm: str
    durations: F64
    changes: int
    _candidate: _Candidate
    _unit: float
    _lanes: list[int]
    _circuits: StepCircuits

    @property
    def seconds(self) -> float:
        """Time of all rounds [s]."""
        return float(self.durations.sum())

    @cached_property
    def schedule(self) -> RoundSchedule:
        """The circuits of every round, and what they carry."""
        parts: list[RoundSchedule] = []
        pattern = self._candidate.pattern
        for run, lanes in zip(self._candidate.runs, self._lanes, strict=True):
            when, wave, start, arcs = self._circuits.assigned(run[0].source, run[0].target, lanes)
            many, lane = np.repeat(np.arange(when.size), lanes), np.tile(np.arange(lanes), when.size)
            first, along = select(start, arcs, many)
            for step in run:
                row = step.rows
                parts.append(
                    RoundSchedule(
                        when[many],
                        step.source[many],
                        step.target[many],
                        wave[many] * lanes + lane,
                        first,
                        along,
                        when[step.pair],
                        pattern.source[row],
                        pattern.target[row],
                        pattern.chunk[row],
                        pattern.adds[row],
                    )
                )
        return chained(parts)

    def at(self, begin: float, tasks: I64) -> Communication:
        """The communication of ``tasks`` that begins at a time [s], with all its rounds."""
        size = self._candidate.share * self._unit
        return Communication(begin, self.durations, self.schedule, self._candidate.collective, size, tasks)


class CircuitRounds:
    """Rounds of circuits on a mesh: patterns, routes and assignments are computed once."""

    def __init__(self, mesh: LightpathMesh, costs: CircuitCosts) -> None:
        self.mesh, self.costs = mesh, costs
        self.limits = Limits(mesh.lasers, mesh.waveguides, load=None, fibres=mesh.scarce_fibres)
        self._circuits = StepCircuits(mesh, self.limits, "min-overlap", True, 0, 0.0)
        self._known: dict[tuple[tuple[int, ...], str], list[_Candidate]] = {}
        self._reduced: dict[tuple[tuple[int, ...], float, str], TimedRounds] = {}
        self._lanes = sorted({mesh.lasers // k for k in range(1, mesh.lasers + 1)}, reverse=True)

    def all_reduce(self, members: tuple[int, ...], size: float, algorithm: AllReduce = "auto") -> TimedRounds:
        """An all-reduce of a buffer of ``size`` bytes among the vertices ``members``.

        Raises
        ------
        NotApplicable
            If a GPU has too few lasers for the algorithm.
        BadInput
            For an unknown algorithm.
        """
        if algorithm not in ALGORITHMS:
            msg = f"iteration: algorithm {algorithm!r}; use one of {', '.join(ALGORITHMS)}"
            raise BadInput(msg)
        members = tuple(sorted(members))
        key = (members, size, algorithm)
        if key not in self._reduced:
            if (members, algorithm) not in self._known:
                self._known[members, algorithm] = self._reductions(members, algorithm)
            self._reduced[key] = self._fastest(self._known[members, algorithm], size)
        return self._reduced[key]

    def exchange(self, amounts: F64) -> TimedRounds:
        """Bytes ``amounts[s, t]`` from every vertex s to every other t, ``(n, n)``."""
        n = self.mesh.n
        source, target = np.nonzero(amounts)
        number = np.arange(source.size)
        needed = Collective(
            "exchange", n, source.size, np.column_stack([number, source]), np.column_stack([number, target])
        )
        share = amounts[source, target].astype(np.float64)
        copies = np.zeros(source.size, dtype=bool)
        patterns = {"direct": Pattern(1, np.zeros_like(number), source, target, number, copies)}
        for radix in radices(np.union1d(source, target).size, self.mesh.lasers + 1):
            patterns[f"index algorithm, radix {radix}"] = index_pattern(needed, radix)
        return self._fastest(
            [_Candidate(name, needed, each, _runs(each, n), share) for name, each in patterns.items()], 1.0
        )

    def _reductions(self, members: tuple[int, ...], algorithm: str) -> list[_Candidate]:
        wanted = collective("all-reduce", self.mesh.n, members)
        share = np.full(len(members), 1.0 / len(members))
        result: list[_Candidate] = []
        for name, (kind, settings) in ALL_REDUCES.items():
            if algorithm not in ("auto", name):
                continue
            try:
                pattern, _ = pattern_of(kind, wanted, self.mesh, self.limits, **settings)
            except NotApplicable:
                if algorithm != "auto":
                    raise
                continue
            result.append(_Candidate(name, wanted, pattern, _runs(pattern, self.mesh.n), share))
        return result

    def _fastest(self, candidates: list[_Candidate], unit: float) -> TimedRounds:
        found = [self._timed(candidate, unit) for candidate in candidates]
        return min(found, key=lambda one: one.seconds)

    def _timed(self, candidate: _Candidate, unit: float) -> TimedRounds:
        """The candidate with the best number of wavelengths for every run, for ``unit`` times its share of data."""
        costs, amounts = self.costs, (candidate.share * unit)[candidate.pattern.chunk]
        durations: list[F64] = []
        chosen: list[int] = []
        changes = 0
        for run in candidate.runs:
            best: tuple[float, int, F64, int] | None = None
            for lanes in self._lanes:
                when = self._circuits.assigned(run[0].source, run[0].target, lanes)[0]
                rounds = int(when.max()) + 1
                largest = np.zeros((len(run), rounds))
                for number, step in enumerate(run):
                    np.maximum.at(largest[number], when, step.bytes(amounts))
                changed = np.ones((len(run), rounds), dtype=bool)
                changed[1:] = rounds > 1  # one round with the circuits of the step before
                each = (costs.latency + costs.delay * changed + largest / (lanes * costs.rate)).ravel()
                if best is None or each.sum() < best[0]:
                    best = float(each.sum()), lanes, each, int(changed.sum())
            assert best is not None
            chosen.append(best[1])
            durations.append(best[2])
            changes += best[3]
        return TimedRounds(candidate.name, np.concatenate(durations), changes, candidate, unit, chosen, self._circuits)


def _runs(pattern: Pattern, n: int) -> list[list[_Step]]:
    """The steps of a pattern, those with the same pairs one after the other together."""
    runs: list[list[_Step]] = []
    cut = np.searchsorted(pattern.step, np.arange(pattern.steps + 1))
    for a, b in zip(cut[:-1].tolist(), cut[1:].tolist(), strict=True):
        if a == b:
            continue
        rows = np.arange(a, b)
        key, pair = np.unique(pattern.source[rows] * n + pattern.target[rows], return_inverse=True)
        source, target = np.divmod(key, n)
        step = _Step(source, target, rows, pair.ravel())
        same = runs and np.array_equal(runs[-1][0].source, source) and np.array_equal(runs[-1][0].target, target)
        if same:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs
