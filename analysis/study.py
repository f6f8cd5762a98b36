"""Studies: their cells handed to an executor, resumed by themselves, never stopped by a cell that fails."""

from __future__ import annotations

import time
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from analysis.cells import CellResult, check_writable, record_failure, run_cell
from instances.errors import OpticollError
from solvers.outcome import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from analysis.store import Store
    from analysis.study_file import Cell, Study

#: How long [s] to wait before asking again for cells that another study works on: first and longest.
_PATIENCE_S = (0.2, 5.0)


class Executor(Protocol):
    """What runs cells: ``submit`` as in :mod:`concurrent.futures`."""

    def submit(self, function: Callable[..., CellResult], /, *arguments: Any) -> Future[CellResult]:
        """Start a call."""
        ...

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor."""
        ...


@dataclass
class Summary:
    """What became of a study's cells, by resume key."""

    study: Study
    results: dict[str, CellResult] = field(default_factory=dict)
    interrupted: bool = False

    def count(self, status: str) -> int:
        """Cells that ended with a status, see :class:`~analysis.cells.CellResult`."""
        return Counter(result.status for result in self.results.values())[status]

    @property
    def complete(self) -> bool:
        """Whether every cell has a row in the store."""
        return all(cell.key in self.results for cell in self.study.cells)


def run_study(
    study: Study,
    store: Store,
    make_executor: Callable[[], Executor],
    *,
    window: int = 64,
    on_result: Callable[[CellResult], None] | None = None,
) -> Summary:
    """Run the cells of a study that the store has no answer for.

    Parameters
    ----------
    study, store
        What to run, and where it is recorded.
    make_executor
        Makes the executor; called again if a dying worker breaks it.
    window
        How many cells are handed out at a time.
    on_result
        Called for every cell that is finished with.

    Returns
    -------
    Summary
        Also after Ctrl-C: what is recorded by then stays recorded, and the next start goes on from there.

    Raises
    ------
    BadInput
        If the store cannot be written.
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
            finish(CellResult(cell.key, "skipped"))
    crew = _Crew(study, store, make_executor)
    try:
        crew.work([cell for cell in study.cells if cell.key not in answered], window, finish)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        crew.dismiss(cancel=summary.interrupted)
    return summary


class _Crew:
    """The executor with the cells it has in hand."""

    def __init__(self, study: Study, store: Store, make_executor: Callable[[], Executor]) -> None:
        self.study, self.store, self.make_executor = study, store, make_executor
        self.executor: Executor | None = None
        self.running: dict[Future[CellResult], Cell] = {}

    def work(self, cells: list[Cell], window: int, finish: Callable[[CellResult], None]) -> None:
        """Run all cells; those that another study holds are asked for again until it is done with them."""
        waiting, busy = deque(cells), list[Cell]()
        pause = _PATIENCE_S[0]
        while waiting or self.running or busy:
            while waiting and len(self.running) < window:
                self._hand_out(waiting.popleft())
            for future in wait(self.running, return_when=FIRST_COMPLETED).done:
                cell = self.running.pop(future)
                result = self._collect(cell, future)
                if result.status == "busy":
                    busy.append(cell)
                else:
                    finish(result)
                    pause = _PATIENCE_S[0]
            if busy and not waiting and not self.running:
                time.sleep(pause)
                pause = min(2 * pause, _PATIENCE_S[1])
                waiting.extend(busy)
                busy.clear()

    def _hand_out(self, cell: Cell) -> None:
        arguments = (run_cell, cell, str(self.store.root), self.study.name)
        if self.executor is None:
            self.executor = self.make_executor()
        try:
            future = self.executor.submit(*arguments)
        except BrokenExecutor:
            self.dismiss(cancel=True)
            self.executor = self.make_executor()
            future = self.executor.submit(*arguments)
        self.running[future] = cell

    def _collect(self, cell: Cell, future: Future[CellResult]) -> CellResult:
        """Take a cell's result; a worker that died is a row too, a store that cannot be written ends the study."""
        try:
            return future.result()
        except OpticollError:
            raise
        except Exception as error:  # noqa: BLE001  whatever killed the worker
            message = f"the worker of this cell died: {type(error).__name__}: {error}"
            return record_failure(cell, str(self.store.root), self.study.name, Termination.CRASHED, message)

    def dismiss(self, *, cancel: bool) -> None:
        """End the executor; with ``cancel`` without waiting for what it has in hand."""
        if self.executor is not None:
            for future in self.running:
                future.cancel()
            with suppress(BrokenExecutor):
                self.executor.shutdown(wait=not cancel, cancel_futures=True)
            self.executor = None
