"""Persistent threads that share the chunks of a pass: no fork and join of an operating-system thread an iteration."""

from __future__ import annotations

import threading
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Job = Callable[[int, int], object]


class Team:
    """The calling thread and ``size - 1`` helpers.

    Chunks are handed out one by one, so that a helper whose core is taken by another program delays a pass by one
    chunk at most. Who does a chunk never changes what it computes: results do not depend on ``size``.

    Parameters
    ----------
    size
        Threads in all, at least 1.
    """

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self._calls: list[SimpleQueue[tuple[Job, Iterator[int], int] | None]] = []
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        for number in range(1, self.size):
            calls: SimpleQueue[tuple[Job, Iterator[int], int] | None] = SimpleQueue()
            self._calls.append(calls)
            threading.Thread(target=self._serve, args=(number, calls), daemon=True).start()

    def run(self, job: Job, chunks: int) -> None:
        """Call ``job(chunk, worker)`` for every chunk; returns when all are done.

        An exception of any of them is raised here, after the others have ended.
        """
        if self.size == 1 or chunks < 2:
            for chunk in range(chunks):
                job(chunk, 0)
            return
        tickets = count()
        helpers = self._calls[: chunks - 1]
        for calls in helpers:
            calls.put((job, tickets, chunks))
        failure = _take(job, tickets, chunks, 0)
        for _ in helpers:
            failure = self._done.get() or failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Let the helpers end."""
        for calls in self._calls:
            calls.put(None)
        self._calls.clear()
        self.size = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, number: int, calls: SimpleQueue[tuple[Job, Iterator[int], int] | None]) -> None:
        while (call := calls.get()) is not None:
            self._done.put(_take(*call, number))


def _take(job: Job, tickets: Iterator[int], chunks: int, worker: int) -> BaseException | None:
    try:
        while (chunk := next(tickets)) < chunks:
            job(chunk, worker)
    except BaseException as error:  # noqa: BLE001 - raised again by the thread that called run
        return error
    return None
