"""Run studies: an executor runs their cells, a restarted study resumes, and a failing cell never stops the others."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from opticoll.analysis.rendering import Listing, Printed
from opticoll.analysis.result.interruption import in_notebook
from opticoll.analysis.store.records import Store
from opticoll.analysis.study.cells import (
    Attempt,
    CellJob,
    CellResult,
    attempt,
    record_attempt,
    record_failure,
    result_of,
    run_cell,
)
from opticoll.analysis.study.study_file import find, load
from opticoll.arguments import refused
from opticoll.errors import OpticollError, one_line
from opticoll.solvers.process.executor import JobCrashed

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.study.study_file import Study
    from opticoll.solvers.process.executor import Executor
    from opticoll.types import Json


#: First and longest wait [s] before retrying cells that another study is running.
_RETRY_S = (0.2, 5.0)


#: How a cell can end.
STATUSES = ("done", "skipped", "failed", "unavailable")


@dataclass(repr=False)
class Summary(Printed):
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

    @property
    def exit_status(self) -> int:
        """0: no cell failed; 1: some failed or were not run; 3: none has an answer; 4: all lack their solver."""
        failed, without = self.count("failed"), self.count("unavailable")
        if 0 < failed + without == len(self.study.cells):
            return 3 if failed else 4
        return 0 if self.complete and not failed else 1

    @property
    def unanswered(self) -> str:
        """How many cells have no answer, and why, on one line; empty if all that ran have one."""
        failed, without = self.count("failed"), self.count("unavailable")
        reasons = [f"{failed} failed"] * (failed > 0) + [f"{without} without a usable solver"] * (without > 0)
        if not reasons:
            return ""
        again = "; run the study again to retry them" if failed else ""
        cells = f"{failed + without} of {len(self.study.cells)} cells have no answer"
        return f"study {self.study.name}: {cells} ({', '.join(reasons)}){again}"

    @property
    def _title(self) -> str:
        return f"study {self.study.name}"

    def lines(self) -> dict[str, str]:
        """The number of cells, and how they ended."""
        counts = {status: self.count(status) for status in STATUSES}
        ended = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        return {"cells": f"{len(self.study.cells)}: {ended or 'none has run'}"}

    def tables(self) -> list[Listing]:
        """A row for every formulation and method."""
        groups: dict[tuple[str, str], list[CellResult | None]] = {}
        for cell in self.study.cells:
            group = groups.setdefault((str(cell.task.formulation), cell.task.method), [])
            group.append(self.results.get(cell.key))
        rows: list[dict[str, object]] = []
        for (formulation, method), results in groups.items():
            known = [one for one in results if one is not None]
            times = sorted(one.solve_s for one in known if one.solve_s is not None)
            counts = {status: sum(one.status == status for one in known) for status in STATUSES}
            middle = round(times[len(times) // 2], 4) if times else None
            row = {"formulation": formulation, "method": method, "cells": len(results), **counts}
            rows.append({**row, "median_solve_s": middle})
        return [Listing(None, ["formulation", "method", "cells", *STATUSES, "median_solve_s"], rows)]

    def remarks(self) -> list[str]:
        """The cells without an answer, and why, a line each."""
        ended = [(cell, self.results[cell.key]) for cell in self.study.cells if cell.key in self.results]
        wrong = [(cell, result) for cell, result in ended if result.status in {"failed", "unavailable"}]
        return [f"{result.status}: {cell.label}: {one_line(result.message)}" for cell, result in wrong]

    def document(self) -> dict[str, Json]:
        """The summary as ``--json`` prints it."""
        return {
            "study": self.study.name,
            "file": str(self.study.source),
            "cells": len(self.study.cells),
            **{status: self.count(status) for status in STATUSES},
            "interrupted": self.interrupted,
            "results": [
                {"cell": cell.label, **asdict(self.results[cell.key])}
                for cell in self.study.cells
                if cell.key in self.results
            ],
        }


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
        Runs the cells. Processes that share our files record them; otherwise this process does.
    on_result
        Called with every finished cell.

    Returns
    -------
    Summary
        Returned after Ctrl-C as well: finished cells stay recorded, and the next start resumes from there.

    Raises
    ------
    BadInput
        If the store cannot be written.
    """
    store.check_writable()
    store.sweep()
    summary = Summary(study)

    def finish(result: CellResult) -> None:
        summary.results[result.key] = result
        if on_result is not None:
            on_result(result)

    answered = store.answered({cell.key for cell in study.cells})
    store.confirm(str(record.id) for record in answered.values())
    for cell in study.cells:
        if cell.key in answered:
            finish(result_of(cell, answered[cell.key], "skipped"))
    jobs = [CellJob(cell, store, study.name) for cell in study.cells if cell.key not in answered]
    try:
        (_work if executor.shares_files else _work_elsewhere)(executor, jobs, finish)
    except KeyboardInterrupt:
        summary.interrupted = True
    return summary


def _work(executor: Executor, jobs: list[CellJob], finish: Callable[[CellResult], None]) -> None:
    """Run all jobs where they are recorded; retry those that another study is running until it has finished."""
    pause = _RETRY_S[0]
    while jobs:
        busy: list[CellJob] = []
        for index, result in executor.map_unordered(run_cell, jobs):
            outcome = _outcome(jobs[index], result)
            if outcome.status == "busy":
                busy.append(jobs[index])
            else:
                finish(outcome)
        if busy:
            pause = _RETRY_S[0] if len(busy) < len(jobs) else min(2 * pause, _RETRY_S[1])
            time.sleep(pause)
        jobs = busy


def _work_elsewhere(executor: Executor, jobs: list[CellJob], finish: Callable[[CellResult], None]) -> None:
    """Run all jobs where the store cannot be reached, and record them here.

    A cell that another study runs at the same time is run twice and recorded once.
    """
    for index, made in executor.map_unordered(attempt, [job.cell for job in jobs]):
        finish(_recorded(jobs[index], made))


def _recorded(job: CellJob, made: Attempt | Exception) -> CellResult:
    """Record the run of a cell or how it failed; an error while it is recorded is a failure of the cell too."""
    if not isinstance(made, Attempt):
        return _outcome(job, made)
    try:
        return record_attempt(job, made)
    except Exception as error:  # noqa: BLE001  an error of the store is raised again
        return _outcome(job, error)


def _outcome(job: CellJob, result: CellResult | Exception) -> CellResult:
    """The result of a job. A worker that died gives a row too; a store that cannot be written ends the study."""
    if isinstance(result, CellResult):
        return result
    if isinstance(result, OpticollError) and not isinstance(result, JobCrashed):
        raise result
    return record_failure(job, f"{type(result).__name__}: {result}")


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
    from opticoll.solvers.process.executor import make_executor

    if not isinstance(dask, str | None):
        raise refused(dask, "dask", "the address of a scheduler")
    counts: Counter[str] = Counter()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console() if in_notebook() else Console(file=sys.stderr),
        disable=not (in_notebook() or sys.stderr.isatty()),
    )
    with make_executor(jobs, dask) as executor, bar:
        line = bar.add_task(study.name, total=len(study.cells), counts="")

        def advance(result: CellResult) -> None:
            counts[result.status] += 1
            finished = f"{counts['done']} done, {counts['failed'] + counts['unavailable']} failed, "
            bar.update(line, advance=1, counts=f"{finished}{counts['skipped']} skipped")

        return run_study(study, store, executor, on_result=advance)
