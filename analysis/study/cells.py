"""One cell of a study, run and recorded where it runs: in this process, another one, or on another machine."""

from __future__ import annotations

import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from opticoll.analysis.store import Store, schema
from opticoll.analysis.store.publishing import AlreadyStored, claim
from opticoll.analysis.store.schema import environment
from opticoll.analysis.study.study_file import unplanned_key
from opticoll.errors import BadInput, MethodMismatch, OpticollError, SolverUnavailable
from opticoll.solvers.memory import TooLarge
from opticoll.solvers.task import Proof, Run, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from opticoll.analysis.study.study_file import Cell


@dataclass(frozen=True)
class CellResult:
    """What became of a cell.

    ``status`` is ``done`` (an answer was recorded, see :func:`opticoll.analysis.store.schema.is_answer`), ``failed`` or
    ``unavailable`` (recorded too), ``skipped`` (there is an answer already), or ``busy`` (another study works on it
    just now; nothing was done).
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
    """A cell to run for a study, and the folder of the store that gets its record."""

    cell: Cell
    root: str
    study: str


def run_cell(job: CellJob) -> CellResult:
    """Run a cell if it has no answer in the store yet, and record what came of it."""
    with claim_cell(job) as ours:
        if not ours:
            return CellResult(job.cell.key, "busy")
        return answer_of(job) or record_attempt(job, attempt(job.cell))


def claim_cell(job: CellJob) -> AbstractContextManager[bool]:
    """Hold a cell for the time of the block; False if another study works on it just now."""
    return claim(Store(job.root).locks / f"{job.cell.key}.lock")


def answer_of(job: CellJob) -> CellResult | None:
    """What the store says of a cell that has been answered."""
    answers = [r for r in Store(job.root).attempts(job.cell.key) if schema.is_answer(r)]
    return result_of(job.cell, answers[-1], "skipped") if answers else None


@dataclass(frozen=True)
class Attempt:
    """A cell that has been run, where and when; as it travels between machines, without the plan behind it."""

    run: Run
    environment: Mapping[str, Any]
    started: datetime
    finished: datetime


def attempt(cell: Cell) -> Attempt:
    """Run a cell, on whatever machine; needs no store."""
    started = datetime.now(UTC)
    run = _keyed(cell, _solve(cell))
    return Attempt(_without_plan(run), environment(), started, datetime.now(UTC))


def _keyed(cell: Cell, run: Run) -> Run:
    """The run under the cell's key, if it is a run of what that key stands for; else a failed one that says so."""
    solved = run.record.get("key")
    if solved is not None:
        own = cell.planned or unplanned_key(cell.task, run.record["instance_hash"]) != cell.key
        if own and solved != cell.key:
            run = failed_run(
                cell, Termination.ERROR,
                "a file that a setting names has changed since the study was read, or opticoll or a solver has another "
                "version where the cell ran; start the study again",
            )  # fmt: skip
    run.record["key"] = cell.key
    return run


def _without_plan(run: Run) -> Run:
    needed = None if run.needed is None else _without_plan(run.needed)
    return replace(run, plan=None, needed=needed)


def record_attempt(job: CellJob, made: Attempt) -> CellResult:
    """Record a cell that has been run, unless it came to what the store says already."""
    cell, store, run = job.cell, Store(job.root), made.run
    answered = answer_of(job)
    if answered is not None:  # by a study that could not see our lock
        return answered
    earlier = store.attempts(cell.key)
    if earlier and _nothing_new(earlier[-1], run.record):
        return result_of(cell, run.record, _status(run.record))
    try:
        store.save(
            run, attempt=len(earlier) + 1, study=job.study, started=made.started, finished=made.finished,
            where=made.environment,
        )  # fmt: skip
    except AlreadyStored:  # a study that could not see our lock was faster
        return result_of(cell, store.attempts(cell.key)[-1], "skipped")
    return result_of(cell, run.record, _status(run.record))


def _solve(cell: Cell) -> Run:
    """Run the task; whatever it raises becomes a record."""
    from opticoll.solvers import runner

    if cell.unavailable is not None:
        return failed_run(cell, Termination.UNAVAILABLE, cell.unavailable)
    try:
        return runner.solve(cell.task)
    except (SolverUnavailable, MethodMismatch) as error:  # nothing was tried: no failure of the solver's
        return failed_run(cell, Termination.UNAVAILABLE, str(error))
    except TooLarge as error:
        return failed_run(cell, Termination.REFUSED, str(error))
    except OpticollError as error:
        return failed_run(cell, Termination.ERROR, str(error))
    except Exception as error:  # noqa: BLE001  a failing cell never stops a study
        last = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{last.filename}:{last.lineno}"
        return failed_run(cell, Termination.ERROR, f"{type(error).__name__}: {error} (at {at})")


def failed_run(cell: Cell, termination: Termination, message: str) -> Run:
    """Make a run without an answer out of what is known of the cell."""
    from opticoll.formulations import formulation

    task = cell.task
    model = formulation(task.formulation)
    record: dict[str, Any] = {
        "formulation": model.name,
        "paper": model.paper,
        "instance": cell.canonical,
        "method": task.method,
        "form": task.form,
        "termination": str(termination),
        "proof": str(Proof.NONE),
        "sense": model.sense,
        "verified": False,
        "message": message,
        "requested": {
            "method": task.method,
            "form": task.form,
            "settings": {name: str(value) for name, value in task.settings.items()},
            "time_limit_s": task.time_limit_s,
            "memory_limit_gib": task.memory_limit_gib,
            "tol": task.tol,
            "seed": task.seed,
            "threads": task.threads,
            "repetition": task.repetition,
        },
        **cell.facts,
    }
    return Run(task, record, termination, Proof.NONE, None, None, verified=False)


def _nothing_new(last: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a solver is missing, or the memory, just as it was missing before."""
    if last["termination"] == record["termination"] == Termination.REFUSED:
        return True  # the message tells how much there is left just now
    return last["termination"] == record["termination"] == schema.UNAVAILABLE and last["message"] == record["message"]


def _status(record: Mapping[str, Any]) -> str:
    if schema.is_answer(record):
        return "done"
    return "unavailable" if record["termination"] == schema.UNAVAILABLE else "failed"


def result_of(cell: Cell, record: Mapping[str, Any], status: str) -> CellResult:
    """Sum up a record of a cell."""
    row = schema.typed(record)
    return CellResult(
        cell.key, status, row["termination"], row["proof"], row["gap"], row["time"]["solve_s"], row["message"] or ""
    )


def record_failure(job: CellJob, message: str) -> CellResult:
    """Record for a worker that died over a cell that it did."""
    cell, store = job.cell, Store(job.root)
    run = failed_run(cell, Termination.CRASHED, message)
    run.record["key"] = cell.key
    with suppress(AlreadyStored):
        store.save(run, attempt=len(store.attempts(cell.key)) + 1, study=job.study)
    return result_of(cell, run.record, "failed")


def check_writable(store: Store) -> None:
    """Create a store, or refuse one that cannot be written before any cell runs.

    Raises
    ------
    BadInput
        If its folder cannot be written.
    """
    store.check_writable()
    try:
        store.records.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"store {store.root}: cannot be created: {error.strerror}; choose another folder"
        raise BadInput(msg) from error
