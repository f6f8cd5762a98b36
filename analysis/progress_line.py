"""How far a solve has come: its incumbent, bound, gap and time, while it runs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from opticoll.solvers.task import Progress

#: Seconds until the first plain line, and at most between two: each wait is twice as long as the one before.
FIRST_S, MOST_S = 10.0, 60.0
#: Seconds between two updates of the line of a terminal.
REDRAWN_S = 1.0


class ProgressLine:
    """Says how far a solve has come, from a thread of its own, since a solver may report nothing for long.

    Parameters
    ----------
    title
        What is solved.
    say
        Called with a plain line after :data:`FIRST_S` seconds and then every so often.
    terminal
        Whether standard error is a terminal, where the line is shown in place from the beginning instead.

    Used as a context manager; called with every :class:`~opticoll.solvers.task.Progress`.
    """

    def __init__(self, title: str, say: Callable[[str], None], *, terminal: bool = False) -> None:
        self.title = title
        self._say = say
        self._terminal = terminal
        self._status: Any = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._objective: float | None = None
        self._bound: float | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._terminal:
            from rich.console import Console

            self._status = Console(stderr=True).status(self.title)
            self._status.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if self._status is not None:
            self._status.__exit__(None, None, None)

    def __call__(self, progress: Progress) -> None:
        """Note a new incumbent or bound; None leaves the one before."""
        self._objective = self._objective if progress["objective"] is None else progress["objective"]
        self._bound = self._bound if progress["bound"] is None else progress["bound"]

    def text(self) -> str:
        """Time, incumbent, bound and gap as far as they are known."""
        objective, bound = self._objective, self._bound
        parts = [f"{time.monotonic() - self._began:.0f} s"]
        parts.append("no incumbent yet" if objective is None else f"incumbent {objective:.8g}")
        parts.append("no bound yet" if bound is None else f"bound {bound:.8g}")
        if objective and bound is not None:
            parts.append(f"gap {abs(objective - bound) / abs(objective):.2%}")
        return ", ".join(parts)

    def _run(self) -> None:
        wait = REDRAWN_S if self._terminal else FIRST_S
        while not self._done.wait(wait):
            if self._terminal:
                self._status.update(f"{self.title}: {self.text()}")
            else:
                self._say(f"{self.title}: {self.text()}")
                wait = min(2.0 * wait, MOST_S)
