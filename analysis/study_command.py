"""``opticoll study``: a study with its executor, its progress bar and its summary."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from analysis.study import Summary, run_study
from analysis.study_file import find, load

if TYPE_CHECKING:
    from analysis.cells import CellResult
    from analysis.store import Store


def run(name: str, store: Store, jobs: int | None, dask: str | None) -> Summary:
    """Run a study by name or file with a progress bar on stderr.

    Raises
    ------
    BadInput
        For anything in the study that can be refused; nothing has been run or written then.
    """
    from solvers.executor import make_executor

    study = load(find(name))
    counts: Counter[str] = Counter()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable=not sys.stderr.isatty(),
    )
    with make_executor(jobs, dask) as executor, bar:
        line = bar.add_task(study.name, total=len(study.cells), counts="")

        def advance(result: CellResult) -> None:
            counts[result.status] += 1
            told = f"{counts['done']} done, {counts['failed'] + counts['unavailable']} failed, "
            bar.update(line, advance=1, counts=f"{told}{counts['skipped']} skipped")

        return run_study(study, store, executor, on_result=advance)


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as ``--json`` prints it."""
    statuses = ("done", "skipped", "failed", "unavailable")
    return {
        "study": summary.study.name,
        "file": str(summary.study.source),
        "cells": len(summary.study.cells),
        **{status: summary.count(status) for status in statuses},
        "interrupted": summary.interrupted,
        "results": [
            {"cell": cell.label, **asdict(summary.results[cell.key])}
            for cell in summary.study.cells
            if cell.key in summary.results
        ],
    }
