"""Run independent jobs in this process, in local processes, or on a Dask cluster.

``map_unordered(function, items)`` yields ``(index, result)`` as jobs finish; a job that fails yields its exception
in place of a result, and costs only itself. Functions and items must be picklable for everything but
:class:`InProcess`, and functions must live in an importable module.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from opticoll.errors import BadOption, OpticollError
from opticoll.solvers.isolation import importable_places, interpreter, isolated_environment, kill_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection
    from types import TracebackType
    from typing import Self


class JobCrashed(OpticollError):
    """The process of a job died before it could answer."""

    exit_status = 3


class ClusterLost(OpticollError):
    """The cluster that ran the jobs is gone."""

    exit_status = 3


class Executor(Protocol):
    """Runs independent jobs; a context manager whose end, also by Ctrl-C, leaves no process behind.

    ``jobs`` is how many it runs at a time; ``shares_files`` whether they see the files that its user sees.
    """

    shares_files: bool

    @property
    def jobs(self) -> int:
        """How many jobs it runs at a time."""

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` as jobs finish."""

    def close(self) -> None:
        """End all processes, running jobs included."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Closing:
    """Context management by :meth:`close`."""

    shares_files = True

    def close(self) -> None:
        """End all processes, running jobs included."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InProcess(Closing):
    """One job after the other, in this process and in order."""

    jobs = 1

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` in order."""
        for index, item in enumerate(items):
            yield index, _attempt(function, item)


class LocalProcesses(Closing):
    """A pool of processes on this machine, each started once and fed one job at a time.

    Not ``concurrent.futures``: there one dead process breaks the pool and every job in it, and starting needs a
    main module that can be imported again. Here a dead process costs its own job and is replaced.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = os.cpu_count() or 1 if jobs is None else jobs
        if self.jobs < 1:
            msg = f"jobs = {jobs} is impossible: it must be at least 1"
            raise BadOption(msg)
        self._lock = threading.Lock()
        self._running: set[_Process] = set()

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` as jobs finish; jobs start in order."""
        if getattr(function, "__module__", None) == "__main__":
            msg = f"{function!r} lives in the main script, which workers cannot import: move it to a module"
            raise BadOption(msg)
        jobs = list(enumerate(items))
        todo: queue.SimpleQueue[tuple[int, tuple[Any, Any]]] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Any | Exception]] = queue.SimpleQueue()
        for index, item in jobs:
            todo.put((index, (function, item)))
        stop = threading.Event()
        threads = [
            threading.Thread(target=self._feed, args=(todo, done, stop), daemon=True)
            for _ in range(min(self.jobs, len(jobs)))
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                index, result = done.get()
                if isinstance(result, _Unsendable):
                    msg = f"a job cannot be sent to another process ({result}): use functions of modules and plain data"
                    raise BadOption(msg)
                yield index, result
        finally:
            stop.set()
            if any(thread.is_alive() for thread in threads):  # left early: what still runs is not wanted
                self._kill_running()
            for thread in threads:
                thread.join()

    def _feed(self, todo: Any, done: Any, stop: threading.Event) -> None:
        """Give one process job after job; its thread starts it, for it dies with that thread."""
        process: _Process | None = None
        while not stop.is_set():
            try:
                index, job = todo.get_nowait()
            except queue.Empty:
                break
            try:
                if process is None:
                    process = _Process()
                    with self._lock:
                        self._running.add(process)
                result = process.ask(_packed(job))
            except Exception as error:  # noqa: BLE001 - reported in place of the result
                if process is not None and not isinstance(error, _Unsendable):
                    self._drop(process)
                    process = None
                result = error
            done.put((index, result))
        if process is not None:
            self._drop(process)

    def _drop(self, process: _Process) -> None:
        with self._lock:
            self._running.discard(process)
        process.kill()
        process.disconnect()

    def _kill_running(self) -> None:
        with self._lock:
            running = list(self._running)
        for process in running:
            process.kill()

    def close(self) -> None:
        """End all processes, running jobs included."""
        self._kill_running()


class _Unsendable(Exception):
    """A job that cannot be pickled."""


def _packed(job: tuple[Any, Any]) -> bytes:
    import pickle

    try:
        return pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _Unsendable(error) from error


class _Process:
    """One worker and the pipe to it."""

    def __init__(self) -> None:
        from multiprocessing import Pipe

        ours, theirs = Pipe()
        path = os.pathsep.join(importable_places())
        with theirs:
            self._process = subprocess.Popen(
                [*interpreter("opticoll.solvers.executor:serve"), str(theirs.fileno()), str(os.getpid()), path],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env=isolated_environment(), start_new_session=True,
            )  # fmt: skip
        self._pipe: Connection[Any, Any] = ours

    def ask(self, job: bytes) -> Any | Exception:
        """Send a job and wait for its result; raises JobCrashed if the process dies."""
        try:
            self._pipe.send_bytes(job)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.wait()
            msg = f"a job's process died (status {self._process.returncode}); the other jobs go on"
            raise JobCrashed(msg) from None

    def kill(self) -> None:
        """End it, and what it started."""
        kill_tree(self._process)

    def disconnect(self) -> None:
        """Close the pipe; only by the thread that reads it."""
        with suppress(OSError):
            self._pipe.close()


def serve() -> None:
    """Answer jobs in a worker of :class:`LocalProcesses` until the pipe closes."""
    import pickle
    from multiprocessing.connection import Connection

    from opticoll.solvers.worker import extend_path, tie_to_parent

    handle, parent, path = sys.argv[1:]
    tie_to_parent(int(parent))
    extend_path(path.split(os.pathsep))
    pipe: Connection[Any, Any] = Connection(int(handle))
    while True:
        try:
            job = pipe.recv_bytes()
        except EOFError:
            return
        try:
            function, item = pickle.loads(job)  # noqa: S301 - from our own parent, over its private pipe
            result = _attempt(function, item)
        except Exception as error:  # noqa: BLE001 - a job that cannot even be read
            result = error
        try:
            pipe.send(result)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            pipe.send(OpticollError(f"the result of a job cannot be sent back: {error}"))


def _attempt(function: Callable[[Any], Any], item: Any) -> Any | Exception:
    try:
        return function(item)
    except Exception as error:  # noqa: BLE001 - reported in place of the result
        return error


def make_executor(jobs: int | None = None, dask: str | None = None) -> Executor:
    """Choose the executor that ``--jobs`` and ``--dask`` describe.

    Raises
    ------
    SolverUnavailable
        If a Dask address is given and ``distributed`` is missing.
    BadOption
        If no scheduler answers at that address, both are given, or ``jobs`` is below 1.
    """
    if dask is not None:
        if jobs is not None:
            msg = "--jobs and --dask exclude each other: the cluster has its own workers"
            raise BadOption(msg)
        from opticoll.solvers.cluster import DaskCluster

        return DaskCluster(dask)
    return InProcess() if jobs is None or jobs == 1 else LocalProcesses(jobs)
