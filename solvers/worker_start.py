"""Start worker processes, ahead of their job where possible, keep them for the next one, and end them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.solvers import solver_log

if TYPE_CHECKING:
    import psutil

ROOT = Path(__file__).absolute().parents[2]
"""The folder that holds our packages; workers find them there from any working directory."""

#: Whether a worker forks a process for every job and then takes another; otherwise it takes one job.
FORKS = sys.platform == "linux"
#: Where the system lists the children of this process, if it does.
_LISTED = Path("/proc/thread-self/children")
#: Workers of a thread that wait at a time.
MOST_WAITING = 3

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def interpreter(target: str) -> list[str]:
    """The command that calls a ``module:function`` of opticoll in a new interpreter, from any working directory.

    The working directory is not importable there (``-P``), and our own folder comes first only if it is not on the
    regular path, so that nothing shadows the standard library.
    """
    module, _, function = target.partition(":")
    root = str(ROOT)
    place = f"import sys; {root!r} in sys.path or sys.path.insert(0, {root!r})"
    return [sys.executable, "-P", "-c", f"{place}; from {module} import {function}; {function}()"]


def importable_places() -> list[str]:
    """The import path of this process, with the working directory by its name."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def isolated_environment(threads: int | None = None) -> dict[str, str]:
    """The environment of a worker, with the sizes of its thread pools."""
    environment = dict(os.environ)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    return environment


def descendants(root: int) -> list[int]:
    """The processes that a process has started, and theirs.

    Where the system lists the children of a process, only those are looked at: a search through all processes takes
    ten times as long, and is repeated all the time.
    """
    import psutil

    if not _LISTED.exists():
        return [child.pid for child in psutil.Process(root).children(recursive=True)]
    found, todo = [], [root]
    while todo:
        with suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{todo.pop()}/task").iterdir():
                children = [int(pid) for pid in (thread / "children").read_bytes().split()]
                found += children
                todo += children
    return found


class Job:
    """A job that a worker carries out: wait for it, measure it, kill it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._received = b""
        self.returncode: int | None = None

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the job to end; return whether it has."""
        process = self._worker.process
        assert process.stdout is not None
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([process.stdout], [], [], left)[0]:
                return False
            chunk = os.read(process.stdout.fileno(), 64)
            self._received += chunk
            if self._received.endswith(b"\n"):
                self.returncode = int(self._received)
            elif not chunk:  # the worker itself has died, or takes one job only
                self.returncode = process.wait()
        return True

    def memory_mb(self) -> float:
        """Resident memory of the job's processes [MB]."""
        import psutil

        total = 0
        with suppress(psutil.Error):
            root = self._worker.process.pid
            for pid in descendants(root) if FORKS else [root, *descendants(root)]:
                with suppress(psutil.Error):
                    total += psutil.Process(pid).memory_info().rss
        return total / 1e6

    def end(self) -> None:
        """Kill the job if it still runs; a worker that can take another job waits for one."""
        worker = self._worker
        if self.returncode is None or worker.process.poll() is not None or not FORKS:
            worker.end()
        else:
            _keep(worker)


@dataclass(eq=False)
class Worker:
    """A process that takes jobs, one at a time; it ends when the object is garbage-collected.

    ``serves`` says for which calls: the modules that it has imported, the threads of its pools, the process that
    started it, whether it shows logs, its working directory and its environment.
    """

    process: subprocess.Popen[bytes]
    serves: tuple[object, ...]

    def __post_init__(self) -> None:
        self.end = weakref.finalize(self, _end_worker, self.process, os.getpid())

    def take(self, folder: Path) -> Job | None:
        """Hand over the job in a folder; None if the worker has died."""
        assert self.process.stdin is not None
        if self.process.poll() is None:
            with suppress(OSError):
                self.process.stdin.write(f"{folder}\n".encode())
                self.process.stdin.flush()
                return Job(self)
        self.end()
        return None


class _Here(threading.local):
    """The waiting workers of each thread, by what they serve; the system kills workers when their thread ends."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[object, ...], Worker] = {}


here = _Here()


def _served(modules: tuple[str, ...], threads: int | None) -> tuple[object, ...]:
    environment = frozenset(isolated_environment(threads).items())
    return modules, os.getpid(), solver_log.shown(), str(Path.cwd()), environment


def start_ahead(modules: tuple[str, ...], threads: int | None) -> None:
    """Start a worker that imports a solver's modules while this process builds the model for it.

    The next calls of this thread with the same modules and threads take it. It ends with this process.
    """
    serves = _served(modules, threads)
    if serves not in here.waiting:
        _keep(_start(serves, threads))


def _start(serves: tuple[object, ...], threads: int | None) -> Worker:
    modules: Any = serves[0]
    process = subprocess.Popen(  # our own interpreter, no shell
        [*interpreter("opticoll.solvers.worker:main"), str(os.getpid()), *modules],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=isolated_environment(threads) | solver_log.environment(), start_new_session=True,
    )  # fmt: skip
    return Worker(process, serves)


def _keep(worker: Worker) -> None:
    """Let a worker wait; beyond :data:`MOST_WAITING`, the one that has waited longest ends."""
    here.waiting[worker.serves] = worker
    for serves in list(here.waiting)[:-MOST_WAITING]:
        here.waiting.pop(serves).end()


def end_waiting() -> None:
    """End the workers of this thread that wait for jobs."""
    while here.waiting:
        here.waiting.popitem()[1].end()


def start_job(folder: Path, modules: tuple[str, ...], threads: int | None) -> Job:
    """Give the job in a folder to a worker with these modules: a waiting one or a new one."""
    serves = _served(modules, threads)
    waiting = here.waiting.pop(serves, None)
    job = None if waiting is None else waiting.take(folder)
    while job is None:
        job = _start(serves, threads).take(folder)
    return job


def _end_worker(process: subprocess.Popen[bytes], parent: int) -> None:
    if parent != os.getpid():
        return
    kill_tree(process)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker and every process it started, and wait until it is gone."""
    import psutil

    family: list[psutil.Process] = []
    if process.poll() is None:
        with suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in family:
        with suppress(psutil.Error):
            child.kill()
    with suppress(ProcessLookupError):
        process.kill()
    process.wait()
    psutil.wait_procs(family, timeout=2.0)
