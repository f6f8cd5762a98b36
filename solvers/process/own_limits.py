"""Limits on the work of this process itself: reading, building and checking, which run outside a worker."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from opticoll.solvers.process.processes import own_memory_mb
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.solvers.task import Progress, Task

    OnProgress = Callable[[Progress], None]

#: Seconds between two polls, and between two attempts to interrupt a thread.
_POLL_S, _AGAIN_S = 0.05, 1.0
#: Seconds granted in any case to reading and preparing an instance, not counted while our modules are loaded (at most),
#: granted to analytic bounds after the limit, and to each step that checks or describes a solution (at least).
READING_S, LOADING_S, BOUNDS_S, CHECK_S = 4.0, 2.0, 5.0, 20.0
#: How many times as long as its processor time a function may take, because it sleeps or others keep processors busy.
PATIENCE = 5.0


class LimitReached(BaseException):
    """Raised in this process by :class:`OwnLimits`; no handler of errors may swallow it."""


class OwnLimits:
    """Limits on the work of this thread: a deadline, the memory of this process, and a stop event.

    Within the block, :class:`LimitReached` is raised between two steps of the interpreter; ``ending`` and ``message``
    then give the reason. In the main thread, a sleep or a blocking system call ends too. A call of compiled code is not
    interrupted, and neither is a sleep in another thread.

    Parameters
    ----------
    deadline
        On the clock of ``time.monotonic``, or None.
    memory_limit_mb
        Largest resident memory of this process [MB], or None.
    stop
        Ends the block when set.
    least_s
        Processor time [s] that the block has in any case, for which it may take at most :data:`PATIENCE` times as long
        after the deadline.
    """

    ending: Termination | None = None
    message = ""

    def __init__(
        self, deadline: float | None, memory_limit_mb: float | None, stop: threading.Event | None, least_s: float = 0.0
    ) -> None:
        self._limits = (deadline, memory_limit_mb, stop)
        self._least_s = least_s
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._limits != (None, None, None):
            self._begun_s = time.process_time()
            self._lock, self._done = threading.Lock(), threading.Event()
            wake, self._unwake = wakeable()
            self._thread = threading.Thread(target=self._watch, args=(threading.get_ident(), wake), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thread is not None:
            while not self._done.is_set():
                with suppress(LimitReached), self._lock:  # raised here instead of in the block
                    self._done.set()
            if self.ending is not None:
                clear_raised(LimitReached)
                _report_unraisable_again()
            self._unwake()

    def _watch(self, thread: int, wake: bool) -> None:
        while self.ending is None:
            if self._done.wait(_POLL_S):
                return
            self._poll()
        _report_unraisable_but_limits()
        while True:
            with self._lock:
                if not self._done.is_set():
                    raise_in(thread, LimitReached, wake=wake)
            # Raise again: Python ignores the exception in destructors and in callbacks of weak references.
            if self._done.wait(_AGAIN_S):
                return

    def _poll(self) -> None:
        """Find out whether a limit has been reached."""
        deadline, most_mb, stop = self._limits
        late = 0.0 if deadline is None else time.monotonic() - deadline
        used = 0.0 if most_mb is None else own_memory_mb()
        worked = time.process_time() - self._begun_s
        if late > 0 and (worked >= self._least_s or late > PATIENCE * self._least_s):
            self.ending, self.message = Termination.TIME_LIMIT, "the time limit was reached"
        elif most_mb is not None and used > most_mb:
            more = f"more than the {most_mb:.0f} MB of the memory limit"
            self.ending, self.message = Termination.MEMORY_LIMIT, f"this process alone uses {used:.0f} MB, {more}"
        elif stop is not None and stop.is_set():
            self.ending, self.message = Termination.INTERRUPTED, "stopped by its caller"


def _report_unraisable_but_limits() -> None:
    """Let ``sys.unraisablehook`` report every exception that Python ignores except :class:`LimitReached`."""
    usual = sys.unraisablehook
    if hasattr(usual, "but_limits"):
        return

    def report(ignored: sys.UnraisableHookArgs) -> None:
        if ignored.exc_type is not LimitReached:
            usual(ignored)

    report.but_limits = usual  # type: ignore[attr-defined]
    sys.unraisablehook = report


def _report_unraisable_again() -> None:
    """Let ``sys.unraisablehook`` be what it was; a hook that a program has set meanwhile stays."""
    sys.unraisablehook = getattr(sys.unraisablehook, "but_limits", sys.unraisablehook)


def wakeable() -> tuple[bool, Callable[[], object]]:
    """Let :func:`raise_in` wake this thread, where that is possible; also returns what undoes it.

    Signal handlers run in the main thread only. That of SIGURG is left to a program that sets its own.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_kill"):
        return False, _nothing
    usual = signal.getsignal(signal.SIGURG)
    if usual in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(signal.SIGURG, _woken)
        return True, lambda: signal.signal(signal.SIGURG, usual)
    return usual is _woken, _nothing


def _nothing() -> None:
    """Undo nothing."""


def _woken(number: int, frame: object) -> None:
    """Do nothing: a pending exception is raised when this begins, and ends the system call that was interrupted."""


def raise_in(thread: int, error: type[BaseException], *, wake: bool = False) -> None:
    """Raise an error in another thread before its next step.

    ``wake`` interrupts a sleep or a blocking system call; only if :func:`wakeable` returned True in that thread.
    """
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
    if wake:
        signal.pthread_kill(thread, signal.SIGURG)


def clear_raised(error: type[BaseException]) -> None:
    """Clear an error that :func:`raise_in` may have left pending in this thread.

    It is raised once more and caught. Withdrawing it (``PyThreadState_SetAsyncExc(thread, NULL)``) would leave CPython
    3.11 waiting for it in every function, for ever if a debugger or a profiler traces them.
    """
    with suppress(error):
        raise_in(threading.get_ident(), error)
        while True:  # raised at the next step
            pass


#: Largest share of the time limit for the floating-point solve before an exact step, which gets the rest.
USUAL_PART = 0.5


class Budget:
    """Time and memory of a solve, from its start; before an exact step, only a part of the time limit.

    ``stop`` ends the solve when set; ``on_progress`` is called with its incumbents and bounds.
    """

    def __init__(self, task: Task, stop: threading.Event | None = None, on_progress: OnProgress | None = None) -> None:
        self.task, self.stop, self.on_progress = task, stop, on_progress
        self.overdue = False  # whether a step that checks or describes a solution did not end
        self.started = time.monotonic()
        self.base_mb = 0.0 if task.memory_limit_gib is None else own_memory_mb()
        part = USUAL_PART if task.exact else 1.0
        self.deadline = None if task.time_limit_s is None else self.started + part * task.time_limit_s

    @property
    def stopped(self) -> bool:
        """Whether the caller has stopped the solve."""
        return self.stop is not None and self.stop.is_set()

    def own_limits(self, deadline: float | None, *, least_s: float = 0.0, interruptible: bool = True) -> OwnLimits:
        """Limits on this process's own work until a deadline."""
        most = self.task.memory_limit_gib
        most_mb = None if most is None else self.base_mb + most * 2**30 / 1e6
        return OwnLimits(deadline, most_mb, self.stop if interruptible else None, least_s)

    def memory_left_gib(self) -> float | None:
        """The part of the memory limit that is left for a worker."""
        most = self.task.memory_limit_gib
        return None if most is None else max(most - max(own_memory_mb() - self.base_mb, 0.0) * 1e6 / 2**30, 0.001)

    def reading(self) -> OwnLimits:
        """The limits of reading and preparing an instance, with a minimum of processor time."""
        return self.own_limits(self.deadline, least_s=READING_S)

    def checking(self) -> tuple[OwnLimits, float]:
        """The limits of a step that checks or describes a solution, if there is a time limit; its minimum [s]."""
        least_s = max(CHECK_S, self.task.time_limit_s or 0.0)
        return OwnLimits(self.deadline, None, None, least_s), least_s

    def start_solving(self) -> None:
        """Postpone the deadline by the time that loading our own modules may have taken."""
        if self.deadline is not None:
            self.deadline += min(time.monotonic() - self.started, LOADING_S)
