"""Run studies: their cells are given to an executor, resumed automatically, and never stopped by a failing cell."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from opticoll.analysis.study.cells import (
    Attempt,
    CellJob,
    CellResult,
    answer_of,
    attempt,
    check_writable,
    claim_cell,
    record_attempt,
    record_failure,
    result_of,
    run_cell,
)
from opticoll.analysis.study.study_file import find, load
from opticoll.errors import BadInput, OpticollError
from opticoll.solvers.executor import JobCrashed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    import pandas as pd

    from opticoll.analysis.store import Store
    from opticoll.analysis.study.cells import CellResult
    from opticoll.analysis.study.study_file import Cell, Study
    from opticoll.instances.readers.untrusted import Json
    from opticoll.solvers.executor import Executor


#: First and longest wait [s] before retrying cells that another study is running.
_PATIENCE_S = (0.2, 5.0)


@dataclass
class Summary:
    """The results of a study's cells, by resume key."""

    study: Study
    results: dict[str, CellResult] = field(default_factory=dict)
    interrupted: bool = False

    def count(self, status: str) -> int:
        """Cells that ended with a status, see :class:`~opticoll.analysis.study.cells.CellResult`."""
        return Counter(result.status for result in self.results.values())[status]

    @property
    def complete(self) -> bool:
        """Whether every cell has a row in the store."""
        return all(cell.key in self.results for cell in self.study.cells)


def run_study(
    study: Study,
    store: Store,
    executor: Executor,
    *,
    on_result: Callable[[CellResult], None] | None = None,
) -> Summary:
    """Run the cells of a study for which the store has no answer.

    Parameters
    ----------
    study, store
        What to run, and where it is recorded.
    executor
        Runs the cells. If it shares our files, cells record themselves; otherwise they are recorded as they return.
    on_result
        Called with every finished cell.

    Returns
    -------
    Summary
        Also after Ctrl-C: finished cells stay recorded, and the next start resumes from there.

    Raises
    ------
    BadInput
        If the store cannot be written, or is removed while the study runs.
    """
    check_writable(store)
    store.sweep()
    summary = Summary(study)

    def finish(result: CellResult) -> None:
        summary.results[result.key] = result
        if on_result is not None:
            on_result(result)

    answered = store.answered({cell.key for cell in study.cells})
    for cell in study.cells:
        if cell.key in answered:
            finish(result_of(cell, answered[cell.key], "skipped"))
    jobs = [CellJob(cell, str(store.root), study.name) for cell in study.cells if cell.key not in answered]
    try:
        (_work if executor.shares_files else _work_elsewhere)(executor, jobs, finish)
    except KeyboardInterrupt:
        summary.interrupted = True
    _refuse_vanished(summary, store)
    return summary


def _refuse_vanished(summary: Summary, store: Store) -> None:
    """Refuse to count cells as done whose records have been removed in the meantime."""
    there = {name.partition(".")[0] for name in store.names()}
    gone = [key for key, result in summary.results.items() if result.status == "done" and key not in there]
    if gone:
        msg = (
            f"study {summary.study.name}: {len(gone)} records are gone from the store {store.root}, which was removed "
            "or replaced while the study ran; start it again"
        )
        raise BadInput(msg)


def _work(executor: Executor, jobs: list[CellJob], finish: Callable[[CellResult], None]) -> None:
    """Run all jobs; retry those that another study is running until it has finished them."""
    pause = _PATIENCE_S[0]
    while jobs:
        busy: list[CellJob] = []
        for index, result in executor.map_unordered(run_cell, jobs):
            outcome = _outcome(jobs[index], result)
            if outcome.status == "busy":
                busy.append(jobs[index])
            else:
                finish(outcome)
        if busy:
            pause = _PATIENCE_S[0] if len(busy) < len(jobs) else min(2 * pause, _PATIENCE_S[1])
            time.sleep(pause)
        jobs = busy


def _work_elsewhere(executor: Executor, jobs: list[CellJob], finish: Callable[[CellResult], None]) -> None:
    """Run all jobs where the store cannot be reached; each is claimed and recorded by this process."""
    pause = _PATIENCE_S[0]
    while jobs:
        away: dict[int, tuple[CellJob, ExitStack]] = {}
        busy: list[CellJob] = []

        def leaving(
            jobs: list[CellJob] = jobs,
            away: dict[int, tuple[CellJob, ExitStack]] = away,
            busy: list[CellJob] = busy,
        ) -> Iterator[Cell]:
            sent = itertools.count()
            for job in jobs:
                hold = ExitStack()
                if not hold.enter_context(claim_cell(job)):
                    hold.close()
                    busy.append(job)
                    continue
                known = answer_of(job)
                if known is not None:
                    hold.close()
                    finish(known)
                    continue
                away[next(sent)] = (job, hold)
                yield job.cell

        try:
            for index, made in executor.map_unordered(attempt, leaving()):
                job, hold = away.pop(index)
                with hold:
                    finish(record_attempt(job, made) if isinstance(made, Attempt) else _outcome(job, made))
        finally:
            for _, hold in away.values():
                hold.close()
        if busy:
            pause = _PATIENCE_S[0] if len(busy) < len(jobs) else min(2 * pause, _PATIENCE_S[1])
            time.sleep(pause)
        jobs = busy


def _outcome(job: CellJob, result: CellResult | Exception) -> CellResult:
    """Take a job's result. A worker that died gives a row too; a store that cannot be written ends the study."""
    if isinstance(result, CellResult):
        return result
    if isinstance(result, OpticollError) and not isinstance(result, JobCrashed):
        raise result
    return record_failure(job, f"{type(result).__name__}: {result}")


def study(
    name: str | os.PathLike[str],
    *,
    store: Store | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
) -> pd.DataFrame:
    """Run a study as ``opticoll study`` does, and return the best record of each of its cells.

    Parameters
    ----------
    name
        A built-in study, or a TOML file.
    store
        A store or its folder; by default ``$OPTICOLL_STORE``, or ``results``. Cells with an answer there are not run.
    jobs, dask
        Number of cells to run at a time in local processes, or the address of a Dask scheduler.

    Returns
    -------
    DataFrame
        One row per cell in the study's order, with the columns of ``opticoll results``.

    Raises
    ------
    BadInput
        For anything in the study that can be refused; nothing has been run or written then.
    """
    from opticoll.analysis.store import Store

    home = store if isinstance(store, Store) else Store(store)
    summary = run(str(name), home, jobs, dask)
    rows = home.sql("SELECT * FROM latest").set_index("key", drop=False)
    return rows.loc[[cell.key for cell in summary.study.cells if cell.key in rows.index]].reset_index(drop=True)


def run(name: str, store: Store, jobs: int | None, dask: str | None) -> Summary:
    """Run a study by name or file with a progress bar on stderr.

    Raises
    ------
    BadInput
        For anything in the study that can be refused; nothing has been run or written then.
    """
    return run_with_progress(load(find(name)), store, jobs, dask)


def run_with_progress(study: Study, store: Store, jobs: int | None, dask: str | None) -> Summary:
    """Run a study as :func:`run_study` does, with a progress bar on stderr."""
    from opticoll.solvers.executor import make_executor

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
            finished = f"{counts['done']} done, {counts['failed'] + counts['unavailable']} failed, "
            bar.update(line, advance=1, counts=f"{finished}{counts['skipped']} skipped")

        return run_study(study, store, executor, on_result=advance)


def as_json(summary: Summary) -> dict[str, Json]:
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
