"""JSON Schemas of what the commands print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from opticoll.analysis.catalog import CALLED
from opticoll.errors import BadInput
from opticoll.nearest_names import nearest
from opticoll.solvers.task import CheckRecord, Fields, Json, Record

#: Commands that print JSON without a schema.
WITHOUT = ("design", "benchmark list", "benchmark submit")
#: Metrics that have the same meaning for several formulations.
_METRICS = {
    "F": {"type": ["number", "null"], "description": "Concurrent flow [1 / T]."},
    "F_s": {"type": ["number", "null"], "description": "Concurrent flow of one source, in its share of a flow."},
    "T": {"type": ["number", "null"], "description": "Time [shards / link bandwidth] of flows."},
    "T_s": {"type": ["number", "null"], "description": "T in seconds, with a shard size and a unit of capacity."},
    "rounds": {"type": ["number", "null"], "description": "Number of rounds."},
    "max_load": {"type": ["number", "null"], "description": "Largest load of a link."},
    "conditional_on": {"type": ["string", "null"], "description": "Restriction under which the value is optimal."},
    "unrestricted_proven": {"type": "boolean", "description": "Whether it is optimal without the restriction too."},
}


class SolveOutput(Record, frozen=True, kw_only=True):
    """The record of a run, as ``opticoll solve --json`` prints it; null where a field is unknown.

    ``schedule`` and ``paths`` describe the files that ``--schedule`` and ``--paths`` wrote, ``why`` is what ``--why``
    found. ``metrics`` depend on the formulation.
    """

    metrics: Annotated[
        dict[str, Json] | None, msgspec.Meta(extra_json_schema={"properties": _METRICS, "additionalProperties": True})
    ] = None
    schedule: dict[str, Json] | None = None
    paths: dict[str, Json] | None = None
    why: dict[str, Json] | None = None


class StudyCell(Fields, frozen=True, kw_only=True):
    """The outcome of one cell of a study."""

    cell: str
    key: str
    status: Literal["done", "skipped", "failed", "unavailable"]
    termination: str | None
    proof: str | None
    gap: float | None
    solve_s: float | None
    message: str


class StudyOutput(Fields, frozen=True, kw_only=True):
    """The outcome of a study, as ``opticoll study --json`` prints it; ``skipped`` cells already had an answer."""

    study: str
    file: str
    cells: int
    done: int
    skipped: int
    failed: int
    unavailable: int
    interrupted: bool
    results: list[StudyCell]


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


class FigurePanel(Fields, frozen=True, kw_only=True):
    """A panel of a figure: its title and the labels of its axes, with units."""

    panel: str
    x: str
    y: str


class FigureOutput(Fields, frozen=True, kw_only=True):
    """A figure of a paper, as ``opticoll figure --json`` prints it; ``rows`` are its points, ``file`` what was written.

    The columns of ``rows`` depend on the figure.
    """

    name: str
    title: str
    caption: str
    source: str
    counts: str
    panels: list[FigurePanel]
    rows: list[dict[str, Json]]
    file: str | None


def _stored_run() -> type[msgspec.Struct]:
    """A row of ``opticoll results --json`` without SQL: the columns of the view ``latest``."""
    from opticoll.analysis.store.schema import flat_columns

    kinds: dict[str, Any] = {"VARCHAR": str, "BIGINT": int, "DOUBLE": float, "BOOLEAN": bool, "TIMESTAMP": str}
    types = {name: list[Any] if of.endswith("[]") else kinds.get(of, Any) for name, of, _ in flat_columns()}
    fields = [(name, kind | None) for name, kind in {**types, "same_code": bool, "superseded": bool}.items()]
    return msgspec.defstruct("StoredRun", fields, kw_only=True)


def outputs() -> Mapping[str, object]:
    """Types of the outputs by command."""
    from opticoll.analysis import catalog
    from opticoll.analysis.bounds.instance_bounds import BoundRow
    from opticoll.analysis.bounds.sweep import SweepResult
    from opticoll.analysis.conjectures import Conjecture
    from opticoll.analysis.describe import Description
    from opticoll.analysis.ledger.claim import ClaimRow
    from opticoll.analysis.repair import Repairs
    from opticoll.analysis.training.cluster import Cluster
    from opticoll.analysis.training.hybrids import Hybrids
    from opticoll.analysis.training.iteration import IterationTime

    return {
        "solve": SolveOutput,
        "check": CheckRecord,
        "study": StudyOutput,
        "compare": CompareOutput,
        "results": list[_stored_run()],  # type: ignore[misc]
        "bounds": list[BoundRow],
        "claims": list[ClaimRow],
        "describe": list[Description],
        "sweep": SweepResult,
        "conjecture": Conjecture,
        "iteration": IterationTime,
        "figure": FigureOutput,
        "hybrids": Hybrids,
        "repair": Repairs,
        "cluster": Cluster,
        "list": list[catalog.NameRow],
        "list instances": list[catalog.InstanceRow],
        "list formulations": list[catalog.FormulationRow],
        "list methods": list[catalog.MethodRow],
        "list solvers": list[catalog.SolverRow],
        "list studies": list[catalog.StudyRow],
        "list claims": list[catalog.ClaimNameRow],
        "list figures": list[catalog.FigureRow],
    }


def schema(command: str) -> dict[str, Json]:
    """The JSON Schema (2020-12) of the output of a command with ``--json``.

    Raises
    ------
    BadInput
        If the command has no such output.
    """
    known = outputs()
    if command in WITHOUT:
        msg = f"schema: there is no schema of what {command!r} prints as JSON"
        raise BadInput(msg)
    if command not in known:
        other = CALLED.get(command.removeprefix("list "))
        near = nearest(command, list(known)) if other is None else f"did you mean 'list {other}'?"
        msg = f"schema: no JSON output of {command!r}; {near}"
        raise BadInput(msg)
    result: dict[str, Any] = msgspec.json.schema(known[command])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"opticoll {command} --json",
        **result,
    }
