"""Worker processes for solvers: started before their job if possible, and reused for the next one.

A worker imports the modules of its jobs and forks a process for them. That one gets a job over a socket, calls its
function, sends reports and the answer, and either waits for another job (:func:`may_stay`) or exits at once, without
running the destructors of libraries, which may crash; the worker then kills what it has left behind, tells the parent
how it ended, and forks another. What a job prints goes to a file that the parent reads. A worker is killed when its
parent dies.
"""

from __future__ import annotations

import gc
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import OpticollError
from opticoll.instances import plugins
from opticoll.instances.plugin_faults import blame, exits_refused
from opticoll.solvers import solver_log
from opticoll.solvers.messages import Inbox, Report, packed, send
from opticoll.solvers.shared_files import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import IO, NoReturn

    import psutil
    from numpy.typing import NDArray

    from opticoll.solvers.messages import Arrays, Message


ROOT = Path(__file__).absolute().parents[2]
"""The folder that holds our packages; workers find them there from any working directory."""

#: Whether a worker forks the processes that do its jobs, and so can take several; otherwise it takes one job.
FORKS = sys.platform == "linux"
#: File in which Linux lists the children of this thread.
_LISTED = Path("/proc/thread-self/children")
#: Most idle workers per thread.
MOST_IDLE = 3

#: Packages that a worker imports for its later jobs once a job has imported them. None of a solver, and not CVXPY,
#: which imports those of all solvers: HiGHS and OR-Tools exclude each other in a process.
_LEARNED = frozenset({"opticoll", "numpy", "scipy", "numba", "llvmlite", "networkx", "pyomo", "flint", "psutil"})
#: Packages that a process may have loaded to do another job; OR-Tools then gets another process.
_HARMLESS = _LEARNED | sys.stdlib_module_names | {"highspy"}

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
    """The environment of a worker, with the sizes of its thread pools.

    It lacks variables that differ from job to job, and that in which pytest names the current test: a worker serves one
    environment.
    """
    environment = dict(os.environ)
    for changing in (SCRATCH, "PYTEST_CURRENT_TEST"):
        environment.pop(changing, None)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    return environment


def descendants(root: int) -> list[int]:
    """The processes that a process has started, and theirs.

    If the system lists the children of a process, only those are examined: a search through all processes takes ten
    times as long, and this function is called continually.
    """
    if not _LISTED.exists():
        import psutil

        return [child.pid for child in psutil.Process(root).children(recursive=True)]
    result, todo = [], [root]
    while todo:
        with suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{todo.pop()}/task").iterdir():
                children = [int(pid) for pid in (thread / "children").read_bytes().split()]
                result += children
                todo += children
    return result


#: Size of a job [bytes] that the system buffers in any case.
_BUFFERED = 2**15
#: How long [s] a worker may take to collect the processes that were killed.
_COLLECTED_S = 0.5


class Worker:
    """A process that takes jobs, one at a time; it ends when the object is garbage-collected.

    ``serves`` identifies the calls it can take: the modules that it has imported, whether there are plug-ins, the
    threads of its pools, the process that started it, and its environment. Of the job that it has taken last,
    ``values`` and ``arrays`` are the reports so far, ``answer`` is what it returned, ``returncode`` is None until it
    has ended, and ``log`` is the file with what it has printed.
    """

    returncode: int | None

    def __init__(self, serves: tuple[object, ...], modules: tuple[str, ...], threads: int | None) -> None:
        self.serves = serves
        self._connection, theirs = socket.socketpair()
        self._endings, ended = os.pipe()
        self.log = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115 - closed with the worker
        ends = (theirs.fileno(), ended, self.log.fileno())
        self.process = subprocess.Popen(  # our own interpreter, no shell
            [*interpreter("opticoll.solvers.worker:main"), str(os.getpid()), *map(str, ends), *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=ends,
            env=isolated_environment(threads),
            start_new_session=True,
        )
        theirs.close()
        os.close(ended)
        self._inbox = Inbox(self._connection)
        self._used_s: float | None = None  # processor time of its processes before this job
        self.end = weakref.finalize(
            self, _end_worker, self.process, self._connection, self._endings, self.log, os.getpid()
        )

    def take(self, job: Mapping[str, object], arrays: Arrays) -> bool:
        """Send a job to the worker; return False if the worker has died.

        A large job is sent by a thread, since the worker takes it only when it has imported its modules; if it never
        does, it is killed at the limits of the job like any other.
        """
        self._used_s = 0.0 if self._used_s is None else self._processor_s()
        self.returncode, self.reports = None, 0
        self.answer: Message | None = None
        self.values: dict[str, Any] = {}
        self.arrays: dict[str, NDArray[Any]] = {}
        self._inbox.clear()
        parts = packed(job, arrays)
        if self.process.poll() is not None:
            self.end()
            return False
        self.log.seek(0)
        self.log.truncate()
        if sum(map(len, parts)) < _BUFFERED:
            self._send(parts)
        else:
            threading.Thread(target=self._send, args=(parts,), daemon=True).start()
        return True

    def _send(self, parts: Sequence[bytes | memoryview]) -> None:
        with suppress(OSError):  # the worker dies, which is the end of the job
            for part in parts:
                self._connection.sendall(part)

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a report or the end of the job; return whether it has ended."""
        ready, _, _ = select.select((self._connection, self._endings), [], [], timeout)
        if self._endings in ready:
            status = os.read(self._endings, 8)
            self.returncode = int(status) if status else self.process.wait()
        for values, arrays in self._inbox.arrived():
            if "report" in values:
                self.reports += 1
                self.values.update(values["report"])
                self.arrays.update(arrays)
            else:
                self.answer = values, arrays
                self.returncode = 0 if values["stays"] else self.returncode
        return self.returncode is not None

    def memory_mb(self) -> float:
        """Resident memory of the job's processes [MB]."""
        return self._total(lambda process: process.memory_info().rss / 1e6)

    def cpu_s(self) -> float:
        """Processor time of the job's processes, those included that they have waited for [s]."""
        return max(self._processor_s() - (self._used_s or 0.0), 0.0)

    def _processor_s(self) -> float:
        return self._total(lambda process: sum(process.cpu_times()[:4]))

    def _total(self, measured: Callable[[psutil.Process], float]) -> float:
        import psutil

        total = 0.0
        with suppress(psutil.Error):
            root = self.process.pid
            for pid in descendants(root) if FORKS else [root, *descendants(root)]:
                with suppress(psutil.Error):
                    total += measured(psutil.Process(pid))
        return total

    def release(self) -> None:
        """Kill the job if it is still running; a worker that has answered and can take another job becomes idle.

        After a crash the next process could read the rest of a job that was not read whole.
        """
        if self.returncode is None or self.answer is None or self.process.poll() is not None:
            self.end()
        elif FORKS or self.answer[0]["stays"]:
            _keep(self)
        else:
            self.end()


class _IdleWorkers(threading.local):
    """The idle workers of each thread, by ``serves``; the system kills workers when their thread ends."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[object, ...], Worker] = {}


idle_workers = _IdleWorkers()


def _served(modules: tuple[str, ...], threads: int | None) -> tuple[object, ...]:
    environment = frozenset(isolated_environment(threads).items())
    return modules, bool(plugins.shipped()["plugins"]), os.getpid(), environment


def start_ahead(modules: tuple[str, ...], threads: int | None) -> None:
    """Start a worker that imports a solver's modules while this process builds the model for it.

    The next calls of this thread with the same modules and threads use it. It ends with this process.
    """
    serves = _served(modules, threads)
    if serves not in idle_workers.waiting:
        _keep(Worker(serves, modules, threads))


def _keep(worker: Worker) -> None:
    """Keep a worker idle; if there are more than :data:`MOST_IDLE`, end the one idle for longest."""
    idle_workers.waiting[worker.serves] = worker
    for serves in list(idle_workers.waiting)[:-MOST_IDLE]:
        idle_workers.waiting.pop(serves).end()


def end_waiting() -> None:
    """End the idle workers of this thread."""
    while idle_workers.waiting:
        idle_workers.waiting.popitem()[1].end()


def worker_job(
    target: str,
    arguments: Mapping[str, object],
    scratch: Path | None = None,
    memory_limit_gib: float | None = None,
    *,
    pooled: bool = False,
) -> dict[str, object]:
    """Describe a call of ``module:function`` for :func:`start_job`.

    ``scratch`` is the place for the job's own folders, ``memory_limit_gib`` the limit on its memory [GiB], ``pooled``
    whether its process takes the next job whatever this one leaves there.
    """
    return {
        "target": target,
        "arguments": dict(arguments),
        "path": importable_places(),
        "folder": str(Path.cwd()),
        "plugins": (shipped := plugins.shipped()),
        "own": bool(shipped["plugins"]),
        "pooled": pooled,
        "data_limit_bytes": None if memory_limit_gib is None else int((1.25 * memory_limit_gib + 0.5) * 2**30),
        "log": solver_log.shown(),
        "scratch": None if scratch is None else str(scratch),
    }


def start_job(job: Mapping[str, object], arrays: Arrays, modules: tuple[str, ...], threads: int | None) -> Worker:
    """Give a job to a worker with these modules, an idle one or a new one."""
    serves = _served(modules, threads)
    worker = idle_workers.waiting.pop(serves, None)
    while worker is None or not worker.take(job, arrays):
        worker = Worker(serves, modules, threads)
    return worker


def _end_worker(
    process: subprocess.Popen[bytes], connection: socket.socket, endings: int, log: IO[bytes], parent: int
) -> None:
    if parent != os.getpid():
        return
    kill_tree(process, connection)
    connection.close()
    os.close(endings)
    log.close()


def kill_tree(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    """Kill a worker and every process it started, and wait until it has ended.

    The others are killed first, so that the worker collects them and their processor time counts as that of children
    of ours; as the connection is shut down, it then ends by itself.
    """
    import psutil

    family: list[psutil.Process] = []
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    if process.poll() is None:
        with suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
    for child in family:
        with suppress(psutil.Error):
            child.kill()
    if family and FORKS:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_COLLECTED_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
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


#: Memory [MB] that a process may retain after its jobs to take another.
_MOST_RETAINED_MB = 64.0


def main() -> NoReturn:
    """Import modules (call them, if given as ``module:function``), then do jobs.

    The arguments are the parent's process id, the ends of the connection, of the pipe for exit statuses and of the log,
    and the modules. Jobs run in a process forked from this one before they arrive, and in another one when that has
    ended; what it has imported is imported here first. Processes that it leaves behind, in any session, are adopted by
    this one and killed. If fork is not safe, this process does its jobs itself, usually one.
    """
    parent, connection, endings, log, *modules = sys.argv[1:]
    tied = tie_to_parent(int(parent))
    for module in modules:
        with suppress(ImportError):  # reported when a job needs it
            import_module(module) if ":" not in module else resolve(module)()
    end, ended, working = socket.socket(fileno=int(connection)), int(endings), mmap.mmap(-1, 1)
    if not FORKS:
        if not tied:
            threading.Thread(target=watch_parent, args=(int(parent),), daemon=True).start()
        do_jobs(end, int(log), working)
    adopt_orphans()
    ours, imported = os.getpid(), os.memfd_create("imported")
    while True:
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            tie_to_parent(ours)
            do_jobs(end, int(log), working, imported)
        last, status = os.waitpid(-1, 0)
        while last != pid:  # an orphan of the job
            last, status = os.waitpid(-1, 0)
        kill_orphans()
        if closed(end):
            os.killpg(0, signal.SIGKILL)
        if working[0]:
            os.write(ended, b"%d" % os.waitstatus_to_exitcode(status))
            working[0] = False
        import_again(imported)


def do_jobs(end: socket.socket, log: int, working: mmap.mmap, imported: int | None = None) -> NoReturn:
    """Wait for a job and do it, and others while this process may stay; end if its parent closes instead.

    Parameters
    ----------
    end, log
        The connection to the parent, and the file that takes what is printed.
    working
        Memory shared with the worker, whose first byte states that a job has begun after which this process ends.
    imported
        File that takes the names of the modules that the jobs import, for :func:`import_again`.
    """
    before, inbox, retained_mb = set(sys.modules), Inbox(end), own_memory_mb() + _MOST_RETAINED_MB
    stays = True
    while stays:
        select.select([end], [], [])
        working[0] = True
        try:
            job, arrays = inbox.wait()
        except (EOFError, OSError):  # the parent has closed
            if imported is None:
                os.killpg(0, signal.SIGKILL)
            os._exit(0)
        counted = forget_peak()
        os.dup2(log, 1)
        os.dup2(log, 2)
        answer, results = _answer(job, arrays, Report(end))
        answer["peak_memory_mb"] = tree_peak_mb()
        sys.stdout.flush()
        sys.stderr.flush()
        del arrays
        stays = "values" in answer and (
            job["pooled"]
            or (counted and may_stay(job, sys.modules.keys() - before, retained_mb) and leaves_no_process())
        )
        if stays:
            _system().fflush(None)
            working[0] = False
        try:
            send(end, {**answer, "stays": stays}, results)
        except TypeError as error:
            working[0], stays = True, False
            send(end, {"failure": f"TypeError: {error}", "stays": False}, {})
    if imported is not None:
        names = [name for name in sys.modules if name not in before and name.partition(".")[0] in _LEARNED]
        os.pwrite(imported, "\n".join(names).encode(), 0)
    os._exit(0)


def closed(end: socket.socket) -> bool:
    """Whether the parent will send nothing more, nor has sent anything that is not read yet."""
    try:
        return not end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def leaves_no_process() -> bool:
    """Whether a job has left no process behind but those of our own idle workers, which the next job may use."""
    if not (FORKS and _LISTED.exists()):
        return False
    workers = [worker.process.pid for worker in idle_workers.waiting.values()]
    known = {os.getpid(), *workers, *(pid for worker in workers for pid in descendants(worker))}
    return known.issuperset(descendants(os.getppid()))


def may_stay(job: Mapping[str, object], loaded: AbstractSet[str], most_mb: float) -> bool:
    """Whether the process that has done a job may do another: nothing that the job has left here can affect that one.

    Not after plug-ins, a limit on memory or a shown log; nor with threads, another package (of solvers only HiGHS) or
    much memory left over.
    """
    return (
        not job["own"]
        and job["data_limit_bytes"] is None
        and not job["log"]
        and threading.active_count() == 1
        and all(name.partition(".")[0] in _HARMLESS for name in loaded)
        and own_memory_mb() < most_mb
    )


def import_again(names: int) -> None:
    """Import here what the last job has imported, in its order, so that the next ones need not; empty that file.

    What is imported here counts as memory of the next jobs, too.
    """
    learned = os.pread(names, os.fstat(names).st_size, 0).decode().split()
    if not learned:
        return
    for name in learned:
        with suppress(Exception):  # it will fail again in the job that needs it
            import_module(name)
    os.ftruncate(names, 0)
    if "numba.core.registry" in sys.modules:  # otherwise every process would do this when it first calls a kernel
        with suppress(Exception):
            target = sys.modules["numba.core.registry"].cpu_target
            target.typing_context.refresh()
            target.target_context.refresh()


def _answer(job: dict[str, Any], arrays: dict[str, NDArray[Any]], report: Report) -> Message:
    """Call the job's function; return what it returned, or its error."""
    try:
        extend_path(job["path"])
        if job["data_limit_bytes"] is not None:
            end_waiting()
            limit_data(job["data_limit_bytes"])
        os.environ[SCRATCH] = job["scratch"] or ""
        if job["log"]:
            solver_log.show_in_worker()
        os.chdir(job["folder"])
        with exits_refused():
            plugins.accept(job["plugins"])
            for array in arrays.values():
                array.flags.writeable = False
            values, results = resolve(job["target"])(job["arguments"], arrays, report)
            plugins.check_imports()
        return {"values": dict(values)}, dict(results)
    except OpticollError as error:
        kind = type(error)
        return {"error": {"module": kind.__module__, "name": kind.__qualname__, "text": str(error)}}, {}
    except MemoryError:
        return {"memory": True}, {}
    except Exception as error:  # noqa: BLE001 - the parent reports any error
        traceback.print_exc()
        where = blame(error)
        return {"failure": f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")}, {}


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


def processor_s_of_children() -> float:
    """Processor time of the ended children of this process [s], in microseconds where the system counts them.

    ``os.times`` counts in steps of 10 ms, longer than a small program takes.
    """
    with suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    return sum(os.times()[2:4])


def limit_data(limit_bytes: int) -> None:
    """Let the kernel limit private memory to ``limit_bytes``, where it supports this."""
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


def watch_parent(parent: int) -> None:
    """End this process and its group soon after its parent's death."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


_nested_peak_mb = 0.0


def forget_peak() -> bool:
    """Measure peak memory from now on; return whether the system can."""
    global _nested_peak_mb
    _nested_peak_mb = 0.0
    try:
        Path("/proc/self/clear_refs").write_bytes(b"5")
    except OSError:
        return False
    return True


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
