"""The solvers' own logs, shown while they run.

A caller that wants them provides a text stream (:func:`streamed`). Adapters then let their solver print
(:func:`shown`), a worker's output is copied to the stream as it appears, and that of nested workers reaches it through
the worker. New incumbents and bounds appear between the solver's lines. None of this affects a task, its resume key or
the recorded options.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_BUFFERED = 1  # _IOLBF
_stream: ContextVar[TextIO | None] = ContextVar("solver log", default=None)
_shown_in_worker = False


@contextmanager
def streamed(stream: TextIO | None) -> Iterator[None]:
    """Show the logs of the solvers that run within the block on ``stream``; None changes nothing."""
    if stream is None:
        yield
        return
    token = _stream.set(stream)
    try:
        yield
    finally:
        _stream.reset(token)


def shown() -> bool:
    """Whether solvers should print their logs."""
    return _target() is not None


def _target() -> TextIO | None:
    stream = _stream.get()
    if stream is None and _shown_in_worker:
        return sys.stdout  # which the parent reads
    return stream


def say(text: str) -> None:
    """Add a line of our own to the log, if it is shown."""
    target = _target()
    if target is not None:
        target.write(f"opticoll: {text}\n")
        target.flush()


class ProgressLines:
    """Prints incumbent, bound and gap between the solver's lines, in the process that shows the log."""

    def __init__(self) -> None:
        self._last: tuple[float | None, float | None] = (None, None)

    def __call__(self, objective: float | None, bound: float | None, gap: float | None, elapsed_s: float) -> None:
        """Print a line if either value has changed."""
        now = (self._last[0] if objective is None else objective, self._last[1] if bound is None else bound)
        if _stream.get() is None or now == self._last:
            return
        self._last = now
        named = zip(("incumbent", "bound"), now, strict=True)
        parts = [f"{name} {value:.8g}" for name, value in named if value is not None]
        say("  ".join([f"{elapsed_s:.1f} s", *parts, *([] if gap is None else [f"gap {gap:.2%}"])]))


def show_in_worker() -> None:
    """Show logs on this worker's standard output, which C libraries then flush after every line, as on a terminal."""
    global _shown_in_worker
    _shown_in_worker = True
    with suppress(AttributeError, OSError, ValueError, TypeError, ImportError):
        import ctypes

        library = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(library, "__stdoutp" if sys.platform == "darwin" else "stdout")
        library.setvbuf(stdout, None, _LINE_BUFFERED, 0)
    with suppress(AttributeError):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


class Tail:
    """Copies what is appended to a file to the caller's stream; does nothing if no log is shown."""

    def __init__(self, log: IO[bytes]) -> None:
        self._target = _target()
        self._log = log
        self._copied = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def copy(self) -> None:
        """Copy the new output."""
        if self._target is None:
            return
        while data := os.pread(self._log.fileno(), 2**20, self._copied):
            self._copied += len(data)
            self._target.write(self._decoder.decode(data))
            self._target.flush()
