"""How far a solve has come: its incumbent, bound, gap and time, while it runs."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from opticoll.analysis.result.interruption import in_notebook

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from opticoll.solvers.task import Progress

#: Seconds until a line appears that is redrawn, and between two updates.
SHOWN_S, REDRAWN_S = 2.0, 1.0
#: Seconds until the first plain line, and at most between two: each wait is twice as long as the one before.
FIRST_S, MOST_S = 10.0, 60.0


class PlainLines:
    """Plain lines, one below the other, such as on the standard error of a command."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.show = show
        self.waits = FIRST_S, 2.0 * FIRST_S, MOST_S

    def clear(self) -> None:
        """Leave what was printed."""


class RedrawnLine:
    """A line of a terminal, or below the cell of a notebook, that is redrawn, and removed at the end."""

    waits = SHOWN_S, REDRAWN_S, REDRAWN_S

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, line: str) -> None:
        """Show a line in place of the one before."""
        if in_notebook():
            self._show_in_notebook(line)
            return
        if self._shown is None:
            from rich.console import Console

            self._shown = Console(stderr=True).status(line)
            self._shown.start()
        self._shown.update(line)

    def _show_in_notebook(self, line: str) -> None:
        from IPython.display import display

        if self._shown is None:
            self._shown = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._shown.update({"text/plain": line}, raw=True)

    def clear(self) -> None:
        """Remove what was shown."""
        if self._shown is not None and in_notebook():
            self._show_in_notebook("")
        elif self._shown is not None:
            self._shown.stop()


def progress_here(title: str, *, searches: bool = True) -> ProgressLine | nullcontext[None]:
    """A line of progress where somebody watches: in a notebook or a terminal; elsewhere nothing is shown."""
    watched = in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    return ProgressLine(title, RedrawnLine(), searches=searches) if watched else nullcontext()


class ProgressLine:
    """Says how far a solve has come, from a thread of its own, since a solver may report nothing for long.

    Parameters
    ----------
    title
        What is solved.
    place
        Where that is shown.
    searches
        Whether what is done finds incumbents and bounds; otherwise only the time is shown.

    Used as a context manager; called with every :class:`~opticoll.solvers.task.Progress`.
    """

    def __init__(self, title: str, place: PlainLines | RedrawnLine, *, searches: bool = True) -> None:
        self.title, self._searches = title, searches
        self._place = place
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._objective: float | None = None
        self._bound: float | None = None
        self._of: str | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._place.clear()

    def __call__(self, progress: Progress) -> None:
        """Note a new incumbent or bound; None leaves the one before, unless that was of another formulation."""
        if self._of != progress.get("of"):
            self._of, self._objective, self._bound = progress.get("of"), None, None
        self._objective = self._objective if progress["objective"] is None else progress["objective"]
        self._bound = self._bound if progress["bound"] is None else progress["bound"]

    def text(self) -> str:
        """Time, incumbent, bound and gap as far as they are known."""
        objective, bound = self._objective, self._bound
        parts = [f"{time.monotonic() - self._began:.0f} s", *([] if self._of is None else [f"first {self._of}"])]
        if not self._searches:
            return parts[0]
        parts.append("no incumbent yet" if objective is None else f"incumbent {objective:.8g}")
        parts.append("no bound yet" if bound is None else f"bound {bound:.8g}")
        if objective and bound is not None:
            parts.append(f"gap {abs(objective - bound) / abs(objective):.2%}")
        return ", ".join(parts)

    def _run(self) -> None:
        wait, following, most = self._place.waits
        while not self._done.wait(wait):
            self._place.show(f"{self.title}: {self.text()}")
            wait, following = min(following, most), min(2.0 * following, most)
