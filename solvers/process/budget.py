"""Time and memory of a solve, and the limits of what this process does itself: reading, building and checking."""

from __future__ import annotations

import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from opticoll.solvers.process.processes import own_memory_mb
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.solvers.task import Progress, Task

    OnProgress = Callable[[Progress], None]

_Result = TypeVar("_Result")

#: Seconds between two polls of the limits.
_POLL_S = 0.05
#: Seconds granted in any case to reading and preparing an instance, not counted while our modules are loaded (at most),
#: granted to analytic bounds after the limit, and to each step that checks or describes a solution (at least).
READING_S, LOADING_S, BOUNDS_S, CHECK_S = 4.0, 2.0, 5.0, 20.0
#: How many times as long as its processor time a step may take, because it sleeps or others keep processors busy.
PATIENCE = 5.0
#: Largest share of the time limit for the floating-point solve before an exact step, which gets the rest.
USUAL_PART = 0.5


class LimitReached(Exception):
    """A step has not returned before a limit; ``termination`` states which one."""

    def __init__(self, termination: Termination, message: str) -> None:
        super().__init__(message)
        self.termination = termination


def limited(
    step: Callable[[], _Result],
    deadline: float | None = None,
    *,
    memory_limit_mb: float | None = None,
    stop: threading.Event | None = None,
    least_s: float = 0.0,
) -> _Result:
    """The result of a step, which is waited for until a limit is reached.

    The step runs in a thread of its own, unless there is no limit. It is not interrupted: a step that never returns
    goes on until the process ends. What may take long or much memory belongs in a worker process, which is killed.

    Parameters
    ----------
    step
        What to call.
    deadline
        On the clock of ``time.monotonic``, or None.
    memory_limit_mb
        Largest resident memory of this process [MB], or None.
    stop
        Ends the wait when set.
    least_s
        Processor time [s] that the step has in any case, for which it may take at most :data:`PATIENCE` times as long
        after the deadline.

    Raises
    ------
    LimitReached
        If the step has not returned.
    """
    if deadline is None and memory_limit_mb is None and stop is None:
        return step()
    begun_s = time.process_time()
    returned, raised, ended = list[_Result](), list[BaseException](), threading.Event()

    def run() -> None:
        try:
            returned.append(step())
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            raised.append(error)
        ended.set()

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    while not ended.wait(_POLL_S):
        late = 0.0 if deadline is None else time.monotonic() - deadline
        if late > 0 and (time.process_time() - begun_s >= least_s or late > PATIENCE * least_s):
            raise LimitReached(Termination.TIME_LIMIT, "the time limit was reached")
        if memory_limit_mb is not None and (used := own_memory_mb()) > memory_limit_mb:
            more = f"more than the {memory_limit_mb:.0f} MB of the memory limit"
            raise LimitReached(Termination.MEMORY_LIMIT, f"this process alone uses {used:.0f} MB, {more}")
        if stop is not None and stop.is_set():
            raise LimitReached(Termination.INTERRUPTED, "stopped")
    for error in raised:
        raise error
    return returned[0]


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

    @property
    def unlimited(self) -> bool:
        """Whether nothing can end the solve but its own end."""
        return self.deadline is None and self.stop is None and self.task.memory_limit_gib is None

    def limited(
        self, step: Callable[[], _Result], deadline: float | None, *, least_s: float = 0.0, interruptible: bool = True
    ) -> _Result:
        """The result of a step of this process; see the function :func:`limited`.

        Raises
        ------
        LimitReached
            If the step has not returned.
        """
        most = self.task.memory_limit_gib
        most_mb = None if most is None else self.base_mb + most * 2**30 / 1e6
        stop = self.stop if interruptible else None
        return limited(step, deadline, memory_limit_mb=most_mb, stop=stop, least_s=least_s)

    def memory_left_gib(self) -> float | None:
        """The part of the memory limit that is left for a worker."""
        most = self.task.memory_limit_gib
        return None if most is None else max(most - max(own_memory_mb() - self.base_mb, 0.0) * 1e6 / 2**30, 0.001)

    def least_check_s(self) -> float:
        """Processor time [s] of each step that checks or describes a solution, whatever the limit."""
        return max(CHECK_S, self.task.time_limit_s or 0.0)

    def start_solving(self) -> None:
        """Postpone the deadline by the time that loading our own modules may have taken."""
        if self.deadline is not None:
            self.deadline += min(time.monotonic() - self.started, LOADING_S)
