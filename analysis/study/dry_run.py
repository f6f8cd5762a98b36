"""What a study would run, and why: the stored runs of its cells, under their keys or as the same task."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from opticoll import package_code
from opticoll.analysis.rendering import Listing, Printed
from opticoll.instances.readers.reading import PIN
from opticoll.solvers.task import Requested, texts

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from opticoll.analysis.store import Store
    from opticoll.analysis.study.study_file import Cell, Study
    from opticoll.types import Json

STORED, RUNS = "stored", "would run"
#: What is read of a stored run.
_COLUMNS = (
    "key, formulation, instance, instance_hash, settings, termination, message, answer, code, plugins, versions, "
    + ", ".join(f"requested_{name}" for name in Requested.__struct_fields__)
)
_PIN = re.compile(r"#sha256=[0-9a-f]+(?=$|,pairs=)")
Row = Mapping["Hashable", Any]


@dataclass(frozen=True)
class PlannedCell:
    """A cell of a study: whether it is stored or would run, and why it would."""

    cell: str
    key: str
    status: str
    reason: str


@dataclass(repr=False)
class Preview(Printed):
    """The cells of a study, and what would be run."""

    study: Study
    cells: list[PlannedCell]

    def count(self, status: str) -> int:
        """Number of cells with a status."""
        return sum(cell.status == status for cell in self.cells)

    @property
    def frame(self) -> pd.DataFrame:
        """A row per cell, with the fields of :class:`PlannedCell`."""
        return pd.DataFrame([vars(cell) for cell in self.cells], columns=["cell", "key", "status", "reason"])

    @property
    def _title(self) -> str:
        return f"study {self.study.name}"

    def lines(self) -> dict[str, str]:
        """How many cells are stored, and how many would run for each reason."""
        reasons = Counter(cell.reason for cell in self.cells if cell.status == RUNS)
        lines = {"cells": f"{len(self.cells)}: {self.count(STORED)} stored, {self.count(RUNS)} would run"}
        return lines | {reason: str(count) for reason, count in reasons.most_common(20)}

    def tables(self) -> list[Listing]:
        """The cells that would run."""
        rows: list[dict[str, object]] = [{"cell": c.cell, "reason": c.reason} for c in self.cells if c.status == RUNS]
        return [Listing("would run", ["cell", "reason"], rows)] if rows else []

    def document(self) -> dict[str, Json]:
        """The preview as ``--json`` prints it."""
        return {
            "study": self.study.name,
            "file": str(self.study.source),
            "cells": len(self.cells),
            "stored": self.count(STORED),
            "would_run": self.count(RUNS),
            "plan": [dict(vars(cell)) for cell in self.cells],
        }


def preview(study: Study, store: Store) -> Preview:
    """What :func:`opticoll.analysis.study.running.run_study` would run; nothing is run or written."""
    answered = store.answered({cell.key for cell in study.cells})
    left = [cell for cell in study.cells if cell.key not in answered]
    query = f"SELECT {_COLUMNS} FROM runs ORDER BY finished NULLS FIRST"
    rows: list[Row] = [*store.tables(query)[0].to_dict("records")] if left else []
    of_key: dict[str, list[Row]] = {}
    of_task: dict[Hashable, Row] = {}
    for row in rows:
        of_key.setdefault(row["key"], []).append(row)
        of_task[task_of_row(row)] = row
    why = {cell.key: _reason(cell, of_key, of_task) for cell in left}
    return Preview(
        study,
        [
            PlannedCell(cell.label, cell.key, RUNS if cell.key in why else STORED, why.get(cell.key, ""))
            for cell in study.cells
        ],
    )


def task_of_cell(cell: Cell) -> Hashable:
    """What identifies the task of a cell, whatever code and solvers are here."""
    from opticoll.formulations.registry import formulation

    requested = Requested.of(cell.task)
    name = formulation(cell.task.formulation).name
    return _task(name, cell.canonical, cell.facts.get("instance_hash"), dict(requested.items()))


def task_of_row(row: Row) -> Hashable:
    """The same of a stored run, a row of the view ``runs``."""
    return _task(row["formulation"], row["instance"], row["instance_hash"], _requested(row))


def _task(formulation: str, instance: str, instance_hash: str | None, requested: Mapping[str, Any]) -> Hashable:
    settings = tuple(sorted((name, _PIN.sub("", str(value))) for name, value in (requested["settings"] or {}).items()))
    place = instance_hash if str(instance).startswith("custom") else instance  # made in Python, it has no other name
    rest = tuple(value for name, value in requested.items() if name != "settings")
    return formulation, place, settings, rest


def _requested(row: Row) -> dict[str, Any]:
    found = {name: row[f"requested_{name}"] for name in Requested.__struct_fields__}
    found = {name: None if pd.isna(value) else value for name, value in found.items()}
    return {**found, "settings": _mapping(found["settings"])}


def _mapping(text: object) -> dict[str, Any]:
    return json.loads(text) if isinstance(text, str) else {}


def _reason(cell: Cell, of_key: Mapping[str, Sequence[Row]], of_task: Mapping[Hashable, Row]) -> str:
    """Why a cell without an answer would run."""
    own = of_key.get(cell.key)
    if own:
        if any(row["answer"] for row in own):
            return "its solution file is missing, cut or changed"
        return f"no answer before: {own[-1]['termination']}"
    earlier = of_task.get(task_of_cell(cell))
    if earlier is None:
        return "new"
    return "; ".join(_changes(cell, earlier)) or "something has changed that the stored run does not show"


def _changes(cell: Cell, row: Row) -> list[str]:
    """What has changed since the run of the same task."""
    from opticoll.solvers.plan import make_plan
    from opticoll.solvers.resume_key import plugin_digests, versions_of

    changes: list[str] = []
    if pd.isna(row["code"]):
        changes.append("computed by unknown code")
    elif row["code"] != package_code.digest():
        changes.append("code changed")
    if row["instance_hash"] != cell.facts.get("instance_hash"):
        changes.append("the instance changed")
    if cell.planned:
        plan = make_plan(cell.task)
        stored = _mapping(row["settings"])
        files = [name for name, text in texts(plan.settings).items() if PIN in text and text != stored.get(name)]
        changes += [f"file changed: {', '.join(files)}"] if files else []
        before, after = _mapping(row["plugins"]), plugin_digests(plan)
        names = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
        changes += [f"plug-in changed: {', '.join(names)}"] if names else []
        known = _mapping(row["versions"])
        for name, version in versions_of(cell.task, plan, after).items() if known else ():
            if known.get(name) != version:
                changes.append(f"{name} {known.get(name)} -> {version}")
    return changes
