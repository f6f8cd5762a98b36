"""Worker processes for solvers: started before their job if possible, and reused for the next one.

A job is a folder: its process reads ``job.json``, calls one function, writes ``answer.json`` and exits at once, without
running the destructors of libraries, which may crash. It is killed when its parent dies.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import OpticollError
from opticoll.instances import plugins
from opticoll.solvers import solver_log
from opticoll.solvers.shared_files import NESTED, Report, read_arrays, read_json, write_arrays, write_json
from opticoll.solvers.solver_log import buffer_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    import psutil


ROOT = Path(__file__).absolute().parents[2]
"""The folder that holds our packages; workers find them there from any working directory."""

#: Whether a worker forks a process for every job and then takes another; otherwise it takes one job.
FORKS = sys.platform == "linux"
#: File in which Linux lists the children of this thread.
_LISTED = Path("/proc/thread-self/children")
#: Most idle workers per thread.
MOST_IDLE = 3

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def interpreter(target: str) -> list[str]:
    """The command that calls a ``module:function`` of opticoll in a new interpreter, from any working directory.

    The working directory is not importable there (``-P``), and our own folder is put first only if it is not on the
    regular path, so nothing shadows the standard library.
    """
    module, _, function = target.partition(":")
    root = str(ROOT)
    place = f"import sys; {root!r} in sys.path or sys.path.insert(0, {root!r})"
    return [sys.executable, "-P", "-c", f"{place}; from {module} import {function}; {function}()"]


def importable_places() -> list[str]:
    """The import path of this process, with the working directory as an absolute path."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def isolated_environment(threads: int | None = None) -> dict[str, str]:
    """The environment of a worker, with the sizes of its thread pools."""
    environment = dict(os.environ)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    return environment


def descendants(root: int) -> list[int]:
    """The processes that a process has started, and theirs.

    If the system lists the children of a process, only those are examined: a search through all processes takes ten
    times as long, and this function is called continually.
    """
    import psutil

    if not _LISTED.exists():
        return [child.pid for child in psutil.Process(root).children(recursive=True)]
    result, todo = [], [root]
    while todo:
        with suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{todo.pop()}/task").iterdir():
                children = [int(pid) for pid in (thread / "children").read_bytes().split()]
                result += children
                todo += children
    return result


class Job:
    """Handle on a job that a worker carries out, to wait for it, measure it or kill it."""

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
            elif not chunk:  # the worker itself has died, or takes only one job
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
        """Kill the job if it is still running; a worker that can take another job becomes idle."""
        worker = self._worker
        if self.returncode is None or worker.process.poll() is not None or not FORKS:
            worker.end()
        else:
            _keep(worker)


@dataclass(eq=False)
class Worker:
    """A process that takes jobs, one at a time; it ends when the object is garbage-collected.

    ``serves`` identifies the calls it can take: the modules that it has imported, the threads of its pools, the process
    that started it, whether it shows logs, its working directory and its environment.
    """

    process: subprocess.Popen[bytes]
    serves: tuple[object, ...]

    def __post_init__(self) -> None:
        self.end = weakref.finalize(self, _end_worker, self.process, os.getpid())

    def take(self, folder: Path) -> Job | None:
        """Send the job in a folder to the worker; return None if the worker has died."""
        assert self.process.stdin is not None
        if self.process.poll() is None:
            with suppress(OSError):
                self.process.stdin.write(f"{folder}\n".encode())
                self.process.stdin.flush()
                return Job(self)
        self.end()
        return None


class _IdleWorkers(threading.local):
    """The idle workers of each thread, by ``serves``; the system kills workers when their thread ends."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[object, ...], Worker] = {}


idle_workers = _IdleWorkers()


def _served(modules: tuple[str, ...], threads: int | None) -> tuple[object, ...]:
    environment = frozenset(isolated_environment(threads).items())
    return modules, os.getpid(), solver_log.shown(), str(Path.cwd()), environment


def start_ahead(modules: tuple[str, ...], threads: int | None) -> None:
    """Start a worker that imports a solver's modules while this process builds the model for it.

    The next calls of this thread with the same modules and threads use it. It ends with this process.
    """
    serves = _served(modules, threads)
    if serves not in idle_workers.waiting:
        _keep(_start(serves, threads))


def _start(serves: tuple[object, ...], threads: int | None) -> Worker:
    modules: Any = serves[0]
    process = subprocess.Popen(  # our own interpreter, no shell
        [*interpreter("opticoll.solvers.worker:main"), str(os.getpid()), *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=isolated_environment(threads) | solver_log.environment(),
        start_new_session=True,
    )
    return Worker(process, serves)


def _keep(worker: Worker) -> None:
    """Keep a worker idle; if there are more than :data:`MOST_IDLE`, end the one idle for longest."""
    idle_workers.waiting[worker.serves] = worker
    for serves in list(idle_workers.waiting)[:-MOST_IDLE]:
        idle_workers.waiting.pop(serves).end()


def end_waiting() -> None:
    """End the idle workers of this thread."""
    while idle_workers.waiting:
        idle_workers.waiting.popitem()[1].end()


def start_job(folder: Path, modules: tuple[str, ...], threads: int | None) -> Job:
    """Give the job in a folder to a worker with these modules, an idle one or a new one."""
    serves = _served(modules, threads)
    waiting = idle_workers.waiting.pop(serves, None)
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
    """Kill a worker and every process it started, and wait until it has ended."""
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
    deadline = time.monotonic() + 2.0
    while not all(map(_has_ended, family)) and time.monotonic() < deadline:
        time.sleep(0.001)


def _has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended; it may be a zombie for long if the system's first process collects it late."""
    import psutil

    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> NoReturn:
    """Import the modules (call the ``module:function``) in the arguments after the parent's process id, then do jobs.

    The jobs' folders are read from stdin. Every job runs in its own process, forked from this one before the job
    arrives, and its exit status is written to stdout. Processes that a job leaves behind, in any session, are adopted
    by this one and killed. If fork is not safe, this process does one job itself.
    """
    parent, *modules = sys.argv[1:]
    tied = tie_to_parent(int(parent))
    for module in modules:
        with suppress(ImportError):  # reported when a job needs it
            import_module(module) if ":" not in module else resolve(module)()
    if not FORKS:
        do_job(wait_for_folder(), None if tied else int(parent))
    adopt_orphans()
    gc.freeze()
    ours = os.getpid()
    answered, answering = os.pipe()
    os.set_blocking(answered, False)
    while True:
        pid, named = fork_ahead(ours, answering)
        folder = wait_for_folder()
        try:
            os.write(named, os.fsencode(folder))
        except BrokenPipeError:  # it was killed while it waited
            os.waitpid(pid, 0)
            os.close(named)
            pid, named = fork_ahead(ours, answering)
            os.write(named, os.fsencode(folder))
        os.close(named)
        answered_all = answers_alone(pid, answered)
        if answered_all:  # do not wait the milliseconds that the system takes to end the process
            os.write(1, b"0\n")
        ended, status = os.waitpid(-1, 0)
        while ended != pid:  # an orphan of the job
            ended, status = os.waitpid(-1, 0)
        kill_orphans()
        if not answered_all:
            with suppress(BlockingIOError):
                os.read(answered, 1)
            os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


def fork_ahead(worker: int, answering: int) -> tuple[int, int]:
    """Fork the process of the next job in advance; return its id and the pipe that takes the job's folder."""
    folder, named = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(named)
        tie_to_parent(worker)
        name = os.read(folder, 1 << 16)
        os.close(folder)
        if not name:
            os._exit(0)
        do_job(Path(os.fsdecode(name)), answering=answering)
    os.close(folder)
    return pid, named


def answers_alone(pid: int, answered: int) -> bool:
    """Wait for a job's answer or its end; return whether it has answered and is the only remaining child process.

    False also if the system cannot report the end of a process.
    """
    try:
        end = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return False
    try:
        ready, _, _ = select.select([answered, end], [], [])
    finally:
        os.close(end)
    return answered in ready and descendants(os.getpid()) == [pid] and os.read(answered, 1) == b"\n"


def wait_for_folder() -> Path:
    """Wait for the parent to name a folder; end this process if the parent closes the pipe."""
    folder = os.fsdecode(sys.stdin.buffer.readline()).rstrip("\n")
    if not folder:
        os._exit(0)
    return Path(folder)


def do_job(folder: Path, watched: int | None = None, answering: int | None = None) -> NoReturn:
    """Do the job described in a folder.

    Parameters
    ----------
    folder
        The folder.
    watched
        The parent's id, if the system does not signal its death.
    answering
        Pipe to which a line is written when the answer is complete.
    """
    with (folder / "log").open("wb") as log, Path(os.devnull).open("rb") as nothing:
        if watched is not None:
            watch_pipe(os.dup(0))
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    job = read_json(folder / "job.json")
    extend_path(job["path"])
    limit_data(job["data_limit_bytes"])
    os.environ[NESTED] = str(folder)
    buffer_lines()
    answer: dict[str, Any]
    try:
        with plugins.exits_refused():
            values, arrays = _call(job, folder)
            late = plugins.late_modules()
        answer = {"values": values, "places": write_arrays(folder, arrays, "answer"), "late": late}
    except OpticollError as error:
        kind = type(error)
        answer = {"error": {"module": kind.__module__, "name": kind.__qualname__, "text": str(error)}}
    except MemoryError:
        answer = {"memory": True}
    except Exception as error:  # noqa: BLE001 - the parent reports any error
        traceback.print_exc()
        where = plugins.blame(error)
        answer = {"failure": f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")}
    answer["peak_memory_mb"] = tree_peak_mb()
    write_json(folder / "answer.json", answer)
    sys.stdout.flush()
    sys.stderr.flush()
    if answering is not None:
        os.write(answering, b"\n")
    os._exit(0)


def adopt_orphans() -> None:
    """Let this process, rather than the system's first one, adopt descendants whose parent dies."""
    with suppress(AttributeError, OSError, TypeError):
        _system().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@cache
def _system() -> Any:
    """The system's C library, loaded once, before processes are forked."""
    import ctypes

    return ctypes.CDLL(None)


def kill_orphans() -> None:
    """Kill all children of this process and their descendants, which this process adopts."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(OSError):
        while pids := children.read_bytes().split():
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(int(pid), 0)


def _call(job: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    plugins.accept(job["plugins"])
    function = resolve(job["target"])
    arrays = read_arrays(folder, job["places"], mapped=True)
    values, results = function(job["arguments"], arrays, Report(folder))
    return dict(values), dict(results)


def resolve(target: str) -> Callable[..., Any]:
    """Find the function called ``module:function``."""
    module, _, name = target.partition(":")
    function = import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    return function  # type: ignore[return-value]


def extend_path(entries: list[str]) -> None:
    """Append the parent's import path to this process's own."""
    sys.path.extend(entry for entry in entries if entry not in sys.path)


def limit_data(limit_bytes: int | None) -> None:
    """Let the kernel limit private memory to ``limit_bytes``, where it supports this."""
    if limit_bytes is None:
        return
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    except (ImportError, OSError, ValueError):
        pass  # the parent's watchdog acts first


def tie_to_parent(parent: int) -> bool:
    """Arrange that this process is killed when its parent dies; return whether the system supports that."""
    try:
        tied: bool = _system().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (AttributeError, OSError, TypeError):
        tied = False
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the request
    return tied


def watch_pipe(pipe: int) -> None:
    """End this process and its group when the parent closes the other end of a pipe."""
    import threading

    def watch() -> None:
        while os.read(pipe, 1):
            pass
        os.killpg(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


_nested_peak_mb = 0.0


def note_nested_peak(child_mb: float | None) -> None:
    """Record the peak memory of a child together with our own, since it may be too short-lived to be sampled."""
    global _nested_peak_mb
    _nested_peak_mb = max(_nested_peak_mb, (child_mb or 0.0) + (_memory_mb("VmRSS:") or 0.0))


def tree_peak_mb() -> float | None:
    """Largest memory of this process and of the workers it started [MB], None if the system does not report it."""
    return max(peak_memory_mb() or 0.0, _nested_peak_mb) or None


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far [MB], None if the system does not report it.

    ``ru_maxrss`` is not used, because after an exec it still includes the parent's memory.
    """
    return _memory_mb("VmHWM:")


def own_memory_mb() -> float:
    """Resident memory of this process now [MB]; 0 where the system does not report it."""
    return _memory_mb("VmRSS:") or 0.0


def _memory_mb(field: str) -> float | None:
    try:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(field):
                return float(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return None


def idle(thread: int) -> bool:
    """Whether a thread, by its native id, and the processes that it started wait for neither a processor nor a disk.

    False where the system does not report it.
    """
    try:
        state = Path(f"/proc/{thread}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        started = Path(f"/proc/{thread}/task/{thread}/children").read_text(encoding="utf-8").split()
    except (OSError, IndexError):
        return False
    return state not in {"R", "D"} and all(idle(int(child)) for child in started)


def wakeable() -> bool:
    """Let :func:`raise_in` wake this thread; False where that is impossible.

    Signal handlers run in the main thread only. That of SIGURG is left to a program that sets its own; ours stays,
    since it does nothing, like the default.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_kill"):
        return False
    if signal.getsignal(signal.SIGURG) in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(signal.SIGURG, _woken)
    return signal.getsignal(signal.SIGURG) is _woken


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
