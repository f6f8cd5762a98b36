"""Exact steps in a worker process, with limits of time and memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opticoll.errors import NoSolution
from opticoll.solvers.process.isolation import call_isolated

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


def call_apart(
    target: str,
    stated: tuple[object, ...],
    left_s: float,
    memory_limit_gib: float | None = None,
    threads: int = 1,
    stop: threading.Event | None = None,
) -> Any:
    """Return the answer of ``target``, which is :func:`answer_apart`, to what is stated.

    Raises
    ------
    NoSolution
        If there is none within the limits.
    """
    call = call_isolated(
        target,
        {"left_s": left_s, "stated": stated},
        wall_limit_s=left_s * 1.05 + 3.0,
        memory_limit_gib=memory_limit_gib,
        threads=threads,
        modules=("highspy",),
        stop=stop,
    )
    if not call.finished:
        raise NoSolution(call.message)
    return call.values


def answer_apart(left_s: float, stated: tuple[object, ...], solve: Callable[..., object], timed_out: str) -> object:
    """Answer :func:`call_apart` in the worker: ``solve(*stated, remaining)``, in the time that is left.

    Raises
    ------
    NoSolution
        If there is no answer; the message says why.
    """
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
