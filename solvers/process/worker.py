"""Worker processes for solvers: started before their job if possible, and reused for the next one.

A worker is a process that has imported the modules of its jobs (:mod:`opticoll.solvers.process.worker_main`). Each
thread keeps a few idle ones, by the calls that they can take. The first one of a process is forked from it where that
is safe (:func:`fork_ahead`): a new interpreter would import NumPy and our own modules again.
"""

from __future__ import annotations

import os
import pickle
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll import compiled, plugins
from opticoll.extensions import part
from opticoll.shared_files import SCRATCH, scratch_place, working_folder
from opticoll.solvers.process import solver_log
from opticoll.solvers.process.messages import NO_SIGNAL, Inbox, packed
from opticoll.solvers.process.processes import descendants, kill_tree, own_memory_mb, processor_s, resident_mb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, NoReturn

#: Packages after whose import a process may be forked; modules of extensions, which begin with an underscore, belong to
#: them.
_FORKABLE = frozenset({"opticoll", "numpy", "scipy", "click", "msgspec", "typing_extensions", "cython_runtime"})
#: Largest memory [MB] of such a process: it counts as memory of the worker's jobs.
_MOST_FORKED_MB = 150.0

ROOT = Path(__file__).absolute().parents[3]
"""The folder that holds our packages; workers find them there from any working directory."""

#: Whether a worker forks the processes that do its jobs, and so can take several; otherwise only that of a pool does.
FORKS = sys.platform == "linux"
#: How long [s] a worker may take to collect the processes that were killed.
_COLLECTED_S = 0.5
#: Most idle workers per thread.
MOST_IDLE = 3

_THREAD_VARIABLES = (b"OMP_NUM_THREADS", b"OPENBLAS_NUM_THREADS", b"MKL_NUM_THREADS", b"VECLIB_MAXIMUM_THREADS")


def interpreter(target: str) -> list[str]:
    """The command that calls a ``module:function`` of opticoll in a new interpreter, from any working directory.

    The working directory is not importable there (``-P``), and our own folder is put first only if it is not on the
    regular path, so nothing shadows the standard library. Garbage is not collected until it is enabled: while modules
    are imported, there is none.
    """
    module, _, function = target.partition(":")
    root = str(ROOT)
    place = f"import gc, sys; gc.disable(); {root!r} in sys.path or sys.path.insert(0, {root!r})"
    return [sys.executable, "-P", "-c", f"{place}; from {module} import {function}; {function}()"]


def importable_places() -> list[str]:
    """The import path of this process, with the working directory as an absolute path."""
    return [entry or working_folder() for entry in sys.path]


def isolated_environment(threads: int | None) -> dict[bytes, bytes]:
    """The environment of a worker, with the sizes of its thread pools.

    It lacks the variable in which pytest names the current test: a worker serves one environment.
    """
    environment = dict(os.environb)  # as text, every solve would decode all of it
    environment.pop(b"PYTEST_CURRENT_TEST", None)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads).encode()))
    return environment


class Worker:
    """A process that takes jobs, one at a time; it ends when the object is garbage-collected.

    ``serves`` identifies the calls it can take: the modules that it has imported, the process that started it, and its
    environment with the threads of its pools. Of the job that it has taken last, ``values`` are the reports so far,
    ``answer`` is what it returned, ``returncode`` is None until it has ended, and ``log`` is the file with what it has
    printed.
    """

    returncode: int | None

    def __init__(
        self,
        serves: tuple[object, ...],
        modules: tuple[str, ...] = (),
        threads: int | None = None,
        *,
        forked: bool = False,
    ) -> None:
        self.serves = serves
        self.scratch = scratch_place()
        while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:  # ours must not have numbers of closed standard streams
            pass
        os.close(spare)
        self._connection, theirs = socket.socketpair()
        self._endings, ended = os.pipe()
        self.log = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115 - closed with the worker
        ends = (theirs.fileno(), ended, self.log.fileno())
        self.process = subprocess.Popen(  # our own interpreter, no shell
            [*interpreter("opticoll.solvers.process.worker_main:main"), str(os.getpid()), *map(str, ends), *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=ends,
            env=self._environment(threads),
            start_new_session=True,
            preexec_fn=partial(_become_worker, os.getpid(), ends) if forked else None,  # which never returns
        )
        theirs.close()
        os.close(ended)
        self._used_s = 0.0  # processor time of its process before this job
        self.end = weakref.finalize(
            self, _end_worker, self.process, self._connection, self._endings, self.log, self.scratch, os.getpid()
        )

    def begin(self, serves: tuple[object, ...], modules: tuple[str, ...], threads: int | None) -> None:
        """Tell a process that was forked ahead the modules and the environment of its jobs."""
        self.serves = serves
        orders = pickle.dumps((modules, self._environment(threads), threads))
        with suppress(OSError):  # it has died
            self._connection.sendall(len(orders).to_bytes(8) + orders, NO_SIGNAL)

    def _environment(self, threads: int | None) -> dict[bytes, bytes]:
        return {**isolated_environment(threads), SCRATCH.encode(): bytes(self.scratch)}

    def take(self, job: Mapping[str, object]) -> bool:
        """Begin to send a job to the worker; return False if the worker has died.

        The worker takes a large one only when it has imported its modules: :meth:`wait` sends the rest.
        """
        self.returncode, self.reports = None, 0
        self.answer: dict[str, Any] | None = None
        self.values: dict[str, Any] = {}
        self._inbox = Inbox(self._connection)  # what the last job left in it is gone
        self._unsent = packed(job)
        if self.process.poll() is not None:
            self.end()
            return False
        self.log.seek(0)
        self.log.truncate()
        self._send()
        return True

    def _send(self) -> None:
        """Send as much of the job as the system takes now."""
        while self._unsent:
            part = memoryview(self._unsent[0])
            try:
                sent = self._connection.send(part, socket.MSG_DONTWAIT | NO_SIGNAL)
            except BlockingIOError:
                return
            except OSError:  # the worker dies, which is the end of the job
                sent = len(part)
            self._unsent[:1] = [part[sent:]] if sent < len(part) else []

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a report or the end of the job; return whether it has ended."""
        events = select.poll()  # select.select takes no file of a number from 1024 on
        events.register(self._connection, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        events.register(self._endings, select.POLLIN)
        ready = dict(events.poll(1000 * timeout))
        self._send()
        if self._endings in ready:
            status = os.read(self._endings, 8)
            self.returncode, self._used_s = int(status) if status else self.process.wait(), 0.0
        for message in self._inbox.arrived():
            if "report" in message:
                self.reports += 1
                self.values.update(message["report"])
            else:
                self.answer = message
                if message.get("uncached"):
                    compiled.note()
                if message["stays"]:
                    self.returncode, self._used_s = 0, message["cpu_s"]
        return self.returncode is not None

    def memory_mb(self) -> float:
        """Resident memory of the job's processes [MB]."""
        return self._total(resident_mb)

    def cpu_s(self) -> float:
        """Processor time of the job's processes, those included that they have waited for [s]."""
        return max(self._total(processor_s) - self._used_s, 0.0)

    def _total(self, measured: Callable[[int], float]) -> float:
        root = self.process.pid
        return sum(map(measured, descendants(root) if FORKS else [root, *descendants(root)]))

    def release(self) -> None:
        """Kill the job if it is still running; a worker that has answered and can take another job becomes idle.

        After a crash the next process could read the rest of a job that was not read whole.
        """
        if self.returncode is None or self.answer is None or self.process.poll() is not None:
            self.end()
        elif FORKS or self.answer["stays"]:
            _keep(self)
        else:
            self.end()


def _become_worker(parent: int, ends: Sequence[int]) -> NoReturn:
    """Go on as a worker in a process that was forked from ``parent``, in the place of a new interpreter."""
    try:
        part("opticoll.solvers.process.worker_main:become_worker")(parent, *ends)
    finally:
        os._exit(1)


class _IdleWorkers(threading.local):
    """The idle workers of each thread, by ``serves``; the system kills workers when their thread ends."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[object, ...], Worker] = {}


idle_workers = _IdleWorkers()


def _served(modules: tuple[str, ...], threads: int | None) -> tuple[object, ...]:
    environment = frozenset(isolated_environment(threads).items())
    return modules, os.getpid(), environment


_ahead: dict[int, Worker] = {}
"""The worker that was forked ahead, by the process that forked it."""


def fork_ahead() -> None:
    """Fork the process of the first worker from this one, before its modules are known, where that is safe.

    That is in a process with one thread and little memory, which has imported our own modules, NumPy and little else:
    after a fork, other packages may miss their threads, and each job runs the plug-ins that come with it.
    """
    if idle_workers.waiting or os.getpid() in _ahead or plugins.known():
        return
    packages = {name.partition(".")[0] for name in list(sys.modules) if not name.startswith("_")}
    if (
        FORKS
        and packages <= _FORKABLE | sys.stdlib_module_names
        and threading.active_count() == 1
        and threading.current_thread() is threading.main_thread()  # the worker is killed when the thread ends
        and own_memory_mb() < _MOST_FORKED_MB
    ):
        _ahead[os.getpid()] = Worker((), forked=True)


def _new(serves: tuple[object, ...], modules: tuple[str, ...], threads: int | None) -> Worker:
    worker = _ahead.pop(os.getpid(), None)
    if worker is None:
        return Worker(serves, modules, threads)
    worker.begin(serves, modules, threads)
    return worker


def start_ahead(modules: tuple[str, ...], threads: int | None) -> None:
    """Start a worker that imports a solver's modules while this process builds the model for it.

    The next calls of this thread with the same modules and threads use it. It ends with this process.
    """
    serves = _served(modules, threads)
    if serves not in idle_workers.waiting:
        _keep(_new(serves, modules, threads))


def _keep(worker: Worker) -> None:
    """Keep a worker idle; if there are more than :data:`MOST_IDLE`, end the one idle for longest."""
    idle_workers.waiting[worker.serves] = worker
    for serves in list(idle_workers.waiting)[:-MOST_IDLE]:
        idle_workers.waiting.pop(serves).end()


def end_waiting() -> None:
    """End the idle workers of this thread."""
    while idle_workers.waiting:
        idle_workers.waiting.popitem()[1].end()


def start_job(
    target: str,
    arguments: Mapping[str, object],
    modules: tuple[str, ...],
    threads: int | None,
    memory_limit_gib: float | None,
    *,
    pooled: bool,
) -> Worker:
    """Give a call to a worker that has imported the modules, an idle one or a new one.

    Its parameters are those of :func:`opticoll.solvers.process.isolation.call_isolated`.
    """
    job = {
        "target": target,
        "arguments": arguments,
        "path": importable_places(),
        "folder": working_folder(),
        "plugins": plugins.shipment(),
        "pooled": pooled,
        "data_limit_bytes": None if memory_limit_gib is None else int((1.25 * memory_limit_gib + 0.5) * 2**30),
        "log": solver_log.shown(),
    }
    serves = _served(modules, threads)
    worker = idle_workers.waiting.pop(serves, None)
    while worker is None or not worker.take(job):
        worker = _new(serves, modules, threads)
    return worker


def _end_worker(
    process: subprocess.Popen[bytes],
    connection: socket.socket,
    endings: int,
    log: IO[bytes],
    scratch: Path,
    parent: int,
) -> None:
    if parent != os.getpid():
        return
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)  # the worker ends when its job has
    kill_tree(process, _COLLECTED_S if FORKS else 0.0)
    connection.close()
    os.close(endings)
    log.close()
    shutil.rmtree(scratch, ignore_errors=True)
