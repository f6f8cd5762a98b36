"""JSON Schemas of what the commands print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from opticoll.analysis.catalog import CALLED
from opticoll.errors import BadInput
from opticoll.extensions import extensions, part
from opticoll.nearest_names import nearest
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
    from opticoll.analysis.describe import Description

    return {
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
        **{command: _type(target) for one in extensions() for command, target in one.outputs.items()},
    }


def _type(target: str) -> object:
    """A type that an extension names, or a list of it."""
    one = part(target.removesuffix("[]"))
    return list[one] if target.endswith("[]") else one  # type: ignore[valid-type]


def schema(command: str) -> dict[str, Json]:
    """The JSON Schema (2020-12) of the output of a command with ``--json``.

    Raises
    ------
    BadInput
        If the command has no such output.
    """
    known = outputs()
    if any(command in one.without_schema for one in extensions()):
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
