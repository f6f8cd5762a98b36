"""What ``opticoll compare --json`` prints."""

from __future__ import annotations

from typing import Literal

from opticoll.solvers.task import Fields


class ContestantRow(Fields, frozen=True, kw_only=True):
    """A contestant: the number of its problems by outcome, and mean times [s]."""

    contestant: str
    problems: int
    solved: int
    inexact: int
    limit: int
    memory: int
    failed: int
    wrong: int
    mean_penalised_s: float | None
    mean_common_s: float | None
    common: int
    mean_solved_s: float | None
    median_integral_s: float | None
    runs: int
    spread: float | None
    median_gap: float | None


class ClassTable(Fields, frozen=True, kw_only=True, rename={"name": "class"}):
    """The contestants on all linear, or all integer, programs."""

    name: Literal["linear", "integer"]
    contestants: list[ContestantRow]


class ProblemRow(Fields, frozen=True, kw_only=True):
    """A problem: the size of its matrix, the fastest contestant, and the best known value and its proof."""

    problem: str
    grade: str | None
    variables: int | None
    constraints: int | None
    nonzeros: int | None
    integers: int | None
    build_s: float | None
    compile_s: float | None
    fastest_s: float | None
    fastest: str | None
    value: float | None
    proof: str | None


class ContestantRun(Fields, frozen=True, kw_only=True):
    """A contestant on a problem, over all repetitions: medians of times, and the largest errors."""

    problem: str
    contestant: str
    tol: float
    linear: bool
    verdict: Literal["solved", "inexact", "limit", "memory", "failed", "wrong", "unavailable"]
    seconds: float | None
    limit_s: float | None
    build_s: float | None
    compile_s: float | None
    residual: float | None
    value: float | None
    best: float | None
    best_gap: float | None
    error: float | None
    allowed: float | None
    certified_gap: float | None
    integral: float | None
    reason: str | None
    seconds_run: float | None
    runs: int
    solved_runs: int
    seconds_min: float | None
    seconds_max: float | None


class GapRow(Fields, frozen=True, kw_only=True):
    """A run that ended at a limit: its gap to the best known value, and its certified gap."""

    problem: str
    contestant: str
    limit_s: float | None
    value: float | None
    best: float | None
    best_gap: float | None
    certified_gap: float | None


class WrongRow(Fields, frozen=True, kw_only=True):
    """A run whose answer contradicts a verified value or a bound."""

    problem: str
    contestant: str
    reason: str
    tol: float | None
    value: float | None
    best: float | None
    error: float | None
    allowed: float | None
    residual: float | None


class CompareOutput(Fields, frozen=True, kw_only=True):
    """The comparison of a study's contestants, as ``opticoll compare --json`` prints it."""

    study: str
    file: str
    cells: int
    missing: int
    clock: Literal["solver", "solve", "total"]
    accuracy: float
    classes: list[ClassTable]
    problems: list[ProblemRow]
    runs: list[ContestantRun]
    gaps: list[GapRow]
    wrong: list[WrongRow]
    page: str | None
    other_code: str | None = None
