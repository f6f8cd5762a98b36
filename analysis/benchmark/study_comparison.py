"""Comparison of the contestants of any study: speed, accuracy, gaps and wrong answers, as text and JSON.

A *contestant* is a method with its options, and with the form, tolerance, limits and threads where the study varies
them; a *problem* is a formulation on an instance with the formulation's parameters. Runs of one contestant on one
problem that differ by seed or repetition are repetitions: their median counts, with the range as spread.
:mod:`opticoll.analysis.benchmark.solver_metrics` defines each number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from opticoll.analysis.benchmark import benchmark_set, solver_metrics
from opticoll.analysis.benchmark.comparison import Comparison
from opticoll.analysis.plots.style import counted
from opticoll.analysis.rendering import Listing, Printed, frame_rows
from opticoll.analysis.store.current_records import AGAIN, code_note
from opticoll.errors import NoSolution, refuse
from opticoll.formulations import formulation
from opticoll.solvers.task import texts

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.analysis.store import Store
    from opticoll.analysis.study.study_file import Cell, Study
    from opticoll.formulations.model import Formulation
    from opticoll.solvers.task import Task
    from opticoll.types import Json

Clock = Literal["solver", "solve", "total"]
CLOCKS: dict[str, str] = {
    "solver": "Times are those of the solver inside its worker, without building, compiling and our checks.",
    "solve": "Times are those of the whole solve step, the start of the worker included, since some contestants are "
    "methods that solve several programs.",
    "total": "Times are those of building, compiling and solving together.",
}
#: Fields of a task that are part of a contestant's name where a study varies them.
_VARIED = {"tol": "tol", "threads": "threads", "time_limit_s": "limit", "memory_limit_gib": "memory"}


@dataclass(frozen=True, repr=False)
class StudyComparison(Printed):
    """The compared runs of a study.

    ``comparison`` holds all tables; ``clock`` is the time that is compared; ``missing`` the number of cells without a
    record in the store; ``folder`` has the figures and tables, if they were written; ``other_code`` says how many of
    the runs were computed by other code than is here, None if none were.
    """

    study: Study
    comparison: Comparison
    clock: Clock
    missing: int
    folder: Path | None = None
    other_code: str | None = None

    @property
    def _title(self) -> str:
        return f"study {self.study.name}"

    def lines(self) -> dict[str, str]:
        """What the times are."""
        return {"times": f"{CLOCKS[self.clock]} Means are shifted geometric means [s]."}

    def remarks(self) -> list[str]:
        """What could not be compared."""
        each = self.comparison.each
        absent = each[each["verdict"] == "unavailable"].groupby("solver")["runs"].sum()
        remarks = [f"{name}: {counted(int(runs), 'run')} had no usable solver" for name, runs in absent.items()]
        missing = f"{self.missing} of {len(self.study.cells)} cells have no record in the store"
        other = [] if self.other_code is None else [f"{self.other_code}; {AGAIN}"]
        return [*remarks, *([missing] if self.missing else []), *other]

    def tables(self) -> list[Listing]:
        """A row per contestant by class of problems, then wrong answers."""
        return self.comparison.listings(f"study {self.study.name}: {{name}} programs", "contestant")

    def document(self) -> dict[str, Json]:
        """The comparison as ``--json`` prints it."""
        made = self.comparison

        def rows(frame: pd.DataFrame) -> list[dict[str, Json]]:
            return frame_rows(frame.rename(columns={"solver": "contestant"}))

        return {
            "study": self.study.name,
            "file": str(self.study.source),
            "cells": len(self.study.cells),
            "missing": self.missing,
            "other_code": self.other_code,
            "clock": self.clock,
            "accuracy": made.accuracy,
            "classes": [{"class": name, "contestants": rows(frame)} for name, frame in made.summaries.items()],
            "problems": rows(made.problems),
            "runs": rows(made.each),
            "wrong": rows(solver_metrics.wrong_answers(made.runs)),
            "folder": None if self.folder is None else str(self.folder),
        }


def compare(
    study: Study, store: Store, *, clock: Clock | None = None, accuracy: float | None = None
) -> StudyComparison:
    """Compare the contestants of a study by their records in a store.

    Parameters
    ----------
    study, store
        The study, and the store with its runs; nothing is run. A cell without a run of this code counts with the
        current one of other code.
    clock
        Time to compare; by default the solver's if every contestant has one, and the total if the study varies the
        form.
    accuracy
        Largest KKT residual, or violation and certified gap without duals, of a linear program that counts as solved;
        by default the loosest tolerance of the study, at least 1e-6.

    Raises
    ------
    BadInput
        If the accuracy is not between 0 and 1.
    NoSolution
        If the store has no runs of the study.
    """
    if accuracy is not None and not 0 < accuracy < 1:
        refuse("compare", f"the accuracy must lie between 0 and 1, not {accuracy:g}")
    cells = {cell.key: cell for cell in study.cells}
    rows = _records(study, store)
    if not (rows["termination"] != "unavailable").any():
        first = f"run `opticoll study {study.source}` first"
        refuse("compare", f"store {store.root} has no runs of study {study.name!r}; {first}", NoSolution)
    shown = [cells[key] for key in rows["cell"]]
    labels = _Labels(study.cells)
    known = {one.key: one.name for one in benchmark_set.problems()}
    stated = np.array([formulation(name).problem == "LP" for name in rows["formulation"]])
    chosen = clock or _clock(rows, labels)
    renamed = {"objective": "value", "requested_tol": "tol", "requested_time_limit_s": "limit_s"}
    renamed |= {f"size_{part}": part for part in benchmark_set.SIZES}
    renamed |= {f"time_{part}_s": f"{part}_s" for part in ("build", "compile")}
    runs = rows.rename(columns=renamed).assign(
        problem=[_problem(cell, known) for cell in shown],
        solver=[labels.contestant(cell.task) for cell in shown],
        violation=[_worst(violations) for violations in rows["violations"]],
        answered_s=rows["time_solver_s"].fillna(rows["time_solve_s"]),  # the clock of the incumbents
        seconds=_seconds(rows, chosen),
    )
    integers = runs.groupby("problem")["integers"].transform("max")
    runs["linear"] = np.where(integers.notna(), integers.fillna(1) == 0, stated).astype(bool)
    if runs.loc[runs["answer"].astype(bool), "seconds"].isna().any():
        refuse("compare", "--time solver: some contestants are methods without a solver of their own; use --time solve")
    if accuracy is None:
        accuracy = max(1e-6, *(cell.task.tol for cell in study.cells))
    missing = len(set(cells) - set(rows["cell"]))
    made = Comparison.of(runs, accuracy)
    return StudyComparison(study, made, chosen, missing, other_code=code_note(rows["by"]))


def _records(study: Study, store: Store) -> pd.DataFrame:
    """The record of every cell that has one; one of other code only where there is none of this code."""
    from opticoll.analysis.report import findings
    from opticoll.analysis.study.dry_run import task_of_cell, task_of_row

    keys, by_task = [cell.key for cell in study.cells], {task_of_cell(cell): cell.key for cell in study.cells}
    results = findings.best_runs(store, superseded=True)
    ours = results["key"].isin(keys)
    others = results[~ours & (results["by"] != "") & ~results["superseded"]]
    results["cell"] = results["key"].where(ours)
    results.loc[others.index, "cell"] = [by_task.get(task_of_row(row)) for row in others.to_dict("records")]
    results = results[results["cell"].notna()].assign(_other=~ours)
    return results.sort_values(["_other", "superseded"], kind="stable").drop_duplicates("cell").sort_index()


def _worst(violations: object) -> float:
    """The largest of the violations by constraint, as JSON; infinite if one is unknown."""
    by_constraint = json.loads(violations) if isinstance(violations, str) else {}
    return max((np.inf if one is None or np.isnan(one) else float(one) for one in by_constraint.values()), default=0.0)


class _Labels:
    """Names of contestants: what a study varies between the runs of one problem."""

    def __init__(self, cells: tuple[Cell, ...]) -> None:
        self.forms = _varies("form", cells)
        self.varied = [name for name in _VARIED if _varies(name, cells)]

    def contestant(self, task: Task) -> str:
        """The method, its form and options, and the limits that vary."""
        own = _parameters(formulation(task.formulation))
        options = {name: value for name, value in texts(task.settings).items() if name not in own}
        options |= {
            _VARIED[name]: f"{getattr(task, name):g}" for name in self.varied if getattr(task, name) is not None
        }
        form = f"/{task.form or 'default'}" if self.forms else ""
        return " ".join([f"{task.method}{form}", *(f"{name}={value}" for name, value in sorted(options.items()))])


def _varies(name: str, cells: tuple[Cell, ...]) -> bool:
    """Whether a field of the tasks differs between the cells of one formulation."""
    values: dict[str, set[object]] = {}
    for cell in cells:
        values.setdefault(str(cell.task.formulation), set()).add(getattr(cell.task, name))
    return any(len(result) > 1 for result in values.values())


def _parameters(model: type[Formulation]) -> set[str]:
    return {parameter.name for parameter in model.parameters}


def _problem(cell: Cell, known: dict[tuple[Any, ...], str]) -> str:
    """Name of the problem of a cell, in the benchmark if it belongs to the benchmark."""
    task = cell.task
    own = _parameters(formulation(task.formulation))
    settings = {name: benchmark_set.word(value) for name, value in sorted(task.settings.items()) if name in own}
    name = known.get((task.formulation, cell.canonical, tuple(sorted(settings.items()))))
    return name or " ".join([str(task.formulation), cell.canonical, *(f"{k}={v}" for k, v in settings.items())])


def _clock(rows: pd.DataFrame, labels: _Labels) -> Clock:
    if rows.loc[rows["answer"].astype(bool), "time_solver_s"].isna().any():
        return "solve"
    return "total" if labels.forms else "solver"


def _seconds(rows: pd.DataFrame, clock: Clock) -> pd.Series[float]:
    if clock == "solver":
        return rows["time_solver_s"].astype(float)
    parts = ("solve",) if clock == "solve" else ("build", "compile", "solve")
    spent = pd.concat([rows[f"time_{part}_s"].astype(float) for part in parts], axis=1).sum(axis=1, min_count=1)
    return spent.mask(rows["answer"].astype(bool) & spent.isna(), 0.0)  # answered before anything was solved
