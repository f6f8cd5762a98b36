"""Cells of a study: solving one, keeping its record, and reporting its failure."""

from __future__ import annotations

import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import structs

from opticoll.analysis.store import schema
from opticoll.analysis.store.schema import environment
from opticoll.analysis.study.study_file import unplanned_key
from opticoll.errors import LimitSpent, MethodMismatch, OpticollError, SolverUnavailable, one_line
from opticoll.plugin_faults import FAULTS, fault
from opticoll.shared_files import AlreadyStored, claim
from opticoll.solvers.process.memory import TooLarge
from opticoll.solvers.run import Run
from opticoll.solvers.task import Proof, Record, Requested, Termination

if TYPE_CHECKING:
    from opticoll.analysis.store.records import Store
    from opticoll.analysis.store.schema import StoredRecord
    from opticoll.analysis.study.study_file import Cell
    from opticoll.solvers.task import Environment


@dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    ``status`` is ``done`` (an answer was recorded, see :func:`opticoll.analysis.store.schema.is_answer`), ``failed`` or
    ``unavailable`` (recorded too), ``skipped`` (it already has an answer), or ``busy`` (another study is working on
    it; nothing was done).
    """

    key: str
    status: str
    termination: str | None = None
    proof: str | None = None
    gap: float | None = None
    solve_s: float | None = None
    message: str = ""


@dataclass(frozen=True)
class CellJob:
    """A cell to run for a study, and the store that gets its record."""

    cell: Cell
    store: Store
    study: str


def run_cell(job: CellJob) -> CellResult:
    """Run a cell if it has no answer in the store yet, and record the result."""
    store = job.store
    with claim(store.locks / f"{job.cell.key}.lock") as ours:
        if not ours:
            return CellResult(job.cell.key, "busy")
        answer = _answer_among(job.cell, store, store.attempts(job.cell.key))
        return answer or record_attempt(job, attempt(job.cell))


def _answer_among(cell: Cell, store: Store, attempts: list[StoredRecord | None]) -> CellResult | None:
    kept = (record for record in attempts if record is not None and schema.is_answer(record))
    answers = [record for record in kept if store.is_whole(record)]
    return result_of(cell, answers[-1], "skipped") if answers else None


@dataclass(frozen=True)
class Attempt:
    """The run of a cell, its environment and times; without a plan, so that it can be sent between machines."""

    run: Run
    environment: Environment
    started: datetime
    finished: datetime


def attempt(cell: Cell) -> Attempt:
    """Run a cell on any machine, without a store."""
    started = datetime.now(UTC)
    run = _with_cell_key(cell, _solve(cell))
    return Attempt(_without_plan(run), environment(), started, datetime.now(UTC))


def _with_cell_key(cell: Cell, run: Run) -> Run:
    """The run under the cell's key; a failed run if it solved something other than the key identifies."""
    solved = run.record.key
    if solved is not None and run.plan is not None:
        own = cell.planned or unplanned_key(cell.task, run.plan.instance) != cell.key
        if own and solved != cell.key:
            run = failed_run(
                cell,
                Termination.ERROR,
                "a file that a setting names has changed since the study was read, or opticoll or a solver has another "
                "version where the cell ran; start the study again",
            )
    return replace(run, record=structs.replace(run.record, key=cell.key))


def _without_plan(run: Run) -> Run:
    needed = None if run.needed is None else _without_plan(run.needed)
    return replace(run, plan=None, needed=needed)


def record_attempt(job: CellJob, made: Attempt) -> CellResult:
    """Record the run of a cell, unless the store already has the same."""
    cell, store, run = job.cell, job.store, made.run
    # Read the attempts only once: a record that another study adds from here on takes the name of our attempt.
    earlier = store.attempts(cell.key)
    answered = _answer_among(cell, store, earlier)
    if answered is not None:  # by a study that could not see our lock
        return answered
    if earlier and earlier[-1] is not None and _nothing_new(earlier[-1], run.record):
        return result_of(cell, run.record, _status(run.record))
    try:
        store.save(
            run,
            attempt=len(earlier) + 1,
            study=job.study,
            started=made.started,
            finished=made.finished,
            where=made.environment,
        )
    except AlreadyStored:  # a study that could not see our lock was faster
        theirs = store.attempts(cell.key)[-1]
        return result_of(cell, run.record if theirs is None else theirs, "skipped")
    return result_of(cell, run.record, _status(run.record))


def _solve(cell: Cell) -> Run:
    """Run the task; any exception becomes a record."""
    from opticoll.solvers import solve

    if cell.unavailable is not None:
        return failed_run(cell, Termination.UNAVAILABLE, cell.unavailable)
    try:
        return solve.solve(cell.task)
    except (SolverUnavailable, MethodMismatch) as error:  # nothing was tried, so the solver did not fail
        return failed_run(cell, Termination.UNAVAILABLE, str(error))
    except TooLarge as error:
        return failed_run(cell, Termination.REFUSED, str(error))
    except LimitSpent as error:
        return failed_run(cell, Termination(error.termination), str(error))
    except OpticollError as error:
        return failed_run(cell, Termination.ERROR, str(error))
    except FAULTS as error:  # a failing cell never stops a study, nor does a plug-in that ends the program
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__}: {error} (at {last.filename}:{last.lineno})"
        ended = None if isinstance(error, Exception) else fault(error)
        return failed_run(cell, Termination.ERROR, ended or where)


def failed_run(cell: Cell, termination: Termination, message: str) -> Run:
    """Make a run without an answer from the fields of the cell."""
    from opticoll.formulations.registry import formulation, paper_of

    task = cell.task
    model = formulation(task.formulation)
    record = Record(
        formulation=model.name,
        paper=paper_of(model),
        instance=cell.canonical,
        method=task.method,
        form=task.form,
        termination=termination,
        proof=Proof.NONE,
        sense=model.sense,
        verified=False,
        message=one_line(message),
        requested=Requested.of(task),
        **cell.facts,
    )
    return Run(task, record)


def _nothing_new(last: Record, record: Record) -> bool:
    """Whether the solver or the memory is missing, as in the last attempt."""
    if last.termination == record.termination == Termination.REFUSED:
        return True  # the message differs: it states the available memory
    return last.termination == record.termination == schema.UNAVAILABLE and last.message == record.message


def _status(record: Record) -> str:
    if schema.is_answer(record):
        return "done"
    return "unavailable" if record.termination == schema.UNAVAILABLE else "failed"


def result_of(cell: Cell, record: Record, status: str) -> CellResult:
    """Summarize a record of a cell; one without an answer says why, also where its solver or method did not."""
    message = record.message or ""
    if not message and not schema.is_answer(record):
        from opticoll.analysis.rendering import unsolved

        message = unsolved(record)
    return CellResult(cell.key, status, record.termination, record.proof, record.gap, record.time.solve_s, message)


def record_failure(job: CellJob, message: str) -> CellResult:
    """Record the failure of a worker that died while it ran a cell."""
    cell, store = job.cell, job.store
    run = failed_run(cell, Termination.CRASHED, message)
    run = replace(run, record=structs.replace(run.record, key=cell.key))
    with suppress(AlreadyStored):
        store.save(run, attempt=len(store.attempts(cell.key)) + 1, study=job.study)
    return result_of(cell, run.record, "failed")
