"""JSON Schemas of what the commands print with ``--json``: the page on JSON output, and tests of real outputs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from opticoll.analysis import catalog
from opticoll.analysis.bounds.instance_bounds import BoundRow
from opticoll.analysis.bounds.sweep import SweepResult
from opticoll.analysis.conjectures.conjecture import Conjecture
from opticoll.analysis.describe import Description
from opticoll.analysis.ledger.claim import ClaimRow
from opticoll.analysis.ledger.descriptions import ClaimNameRow
from opticoll.analysis.papers.descriptions import FigureRow
from opticoll.analysis.papers.figure import FigureOutput
from opticoll.analysis.store.schema import flat_columns
from opticoll.analysis.training.cluster import Cluster
from opticoll.analysis.training.iteration import IterationTime
from opticoll.solvers.task import CheckRecord, Fields, Record
from opticoll.types import Json

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

    ``schedule`` describes the file that ``--schedule`` wrote, ``why`` is what ``--why``
    found. ``metrics`` depend on the formulation.
    """

    metrics: Annotated[
        dict[str, Json] | None, msgspec.Meta(extra_json_schema={"properties": _METRICS, "additionalProperties": True})
    ] = None
    schedule: dict[str, Json] | None = None
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


def _stored_run() -> type[msgspec.Struct]:
    """A row of ``opticoll results --json`` without SQL: the columns of the view ``latest``."""
    kinds: dict[str, Any] = {"VARCHAR": str, "BIGINT": int, "DOUBLE": float, "BOOLEAN": bool, "TIMESTAMP": str}
    types = {name: list[Any] if of.endswith("[]") else kinds.get(of, Any) for name, of, _ in flat_columns()}
    fields = [(name, kind | None) for name, kind in {**types, "same_code": bool, "superseded": bool}.items()]
    return msgspec.defstruct("StoredRun", fields, kw_only=True)


#: Types of the outputs by command; those of ``design`` and of the benchmark's commands have no fixed type.
OUTPUTS: dict[str, Any] = {
    "solve": SolveOutput,
    "check": CheckRecord,
    "study": StudyOutput,
    "results": list[_stored_run()],  # type: ignore[misc]
    "bounds": list[BoundRow],
    "describe": list[Description],
    "sweep": SweepResult,
    "list": list[catalog.NameRow],
    "list instances": list[catalog.InstanceRow],
    "list formulations": list[catalog.FormulationRow],
    "list methods": list[catalog.MethodRow],
    "list solvers": list[catalog.SolverRow],
    "list studies": list[catalog.StudyRow],
    "conjecture": Conjecture,
    "claims": list[ClaimRow],
    "list claims": list[ClaimNameRow],
    "figure": FigureOutput,
    "list figures": list[FigureRow],
    "iteration": IterationTime,
    "cluster": Cluster,
}
#: Commands that print JSON of no fixed type.
UNTYPED = {"design", "benchmark list", "benchmark submit", "compare"}


def schema(command: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the output of a command with ``--json``."""
    return msgspec.json.schema(OUTPUTS[command])
