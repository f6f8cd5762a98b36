"""Exact steps in a worker process, with limits of time and memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opticoll.errors import NoSolution
from opticoll.solvers.process.isolation import call_isolated

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from opticoll.solvers.process.messages import Report


def answer_apart(
    solve: Callable[..., Any],
    stated: tuple[object, ...],
    left_s: float,
    timed_out: str,
    memory_limit_gib: float | None = None,
    threads: int = 1,
    stop: threading.Event | None = None,
) -> Any:
    """Return ``solve(*stated, remaining)`` from a worker, in the time that is left.

    ``solve`` is a function of a module; ``remaining`` raises TimeoutError when no time is left.

    Raises
    ------
    NoSolution
        If there is no answer within the limits; the message is ``timed_out`` if that is for the time.
    """
    call = call_isolated(
        "opticoll.solvers.exact.in_worker:answer_here",
        {"solve": solve, "stated": stated, "left_s": left_s, "timed_out": timed_out},
        wall_limit_s=left_s * 1.05 + 3.0,
        memory_limit_gib=memory_limit_gib,
        threads=threads,
        modules=("highspy",),
        stop=stop,
    )
    if not call.finished:
        raise NoSolution(call.message)
    return call.values


def answer_here(
    solve: Callable[..., object], stated: tuple[object, ...], left_s: float, timed_out: str, report: Report
) -> object:
    """Answer in the worker; target of :func:`answer_apart`."""
    end = time.monotonic() + left_s

    def remaining() -> float:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    try:
        return solve(*stated, remaining)
    except TimeoutError:
        raise NoSolution(timed_out) from None
