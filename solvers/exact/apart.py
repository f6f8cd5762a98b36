"""Exact steps in a worker process, with limits of time and memory."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution
from opticoll.solvers.isolation import call_isolated

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from numpy.typing import NDArray


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
        {"left_s": left_s},
        {"stated": np.frombuffer(pickle.dumps(stated), dtype=np.uint8)},
        wall_limit_s=left_s * 1.05 + 3.0,
        memory_limit_gib=memory_limit_gib,
        threads=threads,
        modules=("highspy",),
        stop=stop,
    )
    if "answer" not in call.arrays:
        raise NoSolution(call.message or call.values.get("message") or "exact: the step ended without an answer")
    return pickle.loads(call.arrays["answer"].tobytes())  # noqa: S301  from our own worker


def answer_apart(
    left_s: float, stated: NDArray[np.uint8], solve: Callable[..., object], timed_out: str
) -> tuple[dict[str, str], dict[str, NDArray[np.uint8]]]:
    """Answer :func:`call_apart` in the worker: ``solve(*stated, remaining)``, or the reason why there is no answer."""
    end = time.monotonic() + left_s

    def remaining() -> float:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    try:
        answer = solve(*pickle.loads(stated.tobytes()), remaining)  # noqa: S301  between our own processes
    except NoSolution as error:
        return {"message": str(error)}, {}
    except TimeoutError:
        return {"message": timed_out}, {}
    return {}, {"answer": np.frombuffer(pickle.dumps(answer), dtype=np.uint8)}
