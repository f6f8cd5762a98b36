"""The program of a worker process: it imports the modules of its jobs, and forks a process that does them.

That process gets a job over a socket, calls its function, sends reports and the answer, and either waits for another
job (:func:`may_stay`) or exits at once, without running the destructors of libraries, which may crash. The worker then
kills what it has left behind, tells the parent how it ended, and forks another. What a job prints goes to a file that
the parent reads. A worker is killed when its parent dies.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from opticoll import compiled, plugins
from opticoll.errors import OpticollError
from opticoll.extensions import part
from opticoll.formulations.modelling_layers import import_layer
from opticoll.plugin_faults import blame
from opticoll.solvers.process import solver_log, worker_imports
from opticoll.solvers.process.messages import Inbox, Report, send
from opticoll.solvers.process.processes import (
    adopt_orphans,
    forget_peak,
    kill_orphans,
    limit_data,
    own_memory_mb,
    processor_s_of_children,
    system_library,
    tie_to_parent,
    tree_peak_mb,
    watch_parent,
)
from opticoll.solvers.process.worker import FORKS, end_waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import NoReturn

#: Packages that a worker imports for its later jobs once a job has imported them. None of a solver: HiGHS and OR-Tools
#: exclude each other in a process.
_LEARNED = frozenset(
    {"opticoll", "numpy", "scipy", "numba", "llvmlite", "networkx", "pyomo", "flint", "psutil"}
    | {"cvxpy", "_cvxcore", "qdldl", "sparsediffpy"}
)
#: Packages that a process may have loaded to do another job; OR-Tools then gets another process. Modules of extensions,
#: which begin with an underscore, belong to them.
_HARMLESS = _LEARNED | sys.stdlib_module_names | {"highspy", "cython_runtime", "swig_runtime_data4"}
#: Signals that end jobs at their limits, that tell of their end, or with which users end processes.
_RELIED_ON = (signal.SIGPROF, signal.SIGALRM, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Memory [MB] that a process may retain after its jobs to take another.
_MOST_RETAINED_MB = 64.0


def main() -> NoReturn:
    """Import modules (call them, if given as ``module:function``), then do jobs.

    The arguments are the parent's process id, the ends of the connection, of the pipe for exit statuses and of the log,
    and the modules. Jobs run in a process forked from this one before they arrive, and in another one when that has
    ended; what it has imported is imported here first, once there is a job for the next one. Processes that it leaves
    behind, in any session, are adopted by this one and killed. If fork is not safe, this process does its jobs itself,
    usually one.
    """
    parent, connection, endings, log, *modules = sys.argv[1:]
    tie_to_parent(int(parent))
    take_default_signals()
    work(int(parent), socket.socket(fileno=int(connection)), int(endings), int(log), modules)


def become_worker(parent: int, connection: int, endings: int, log: int) -> NoReturn:
    """Do the same in a process forked from the parent, as if it were a new one: with no files or signals of it.

    The modules and the environment arrive over the connection.
    """
    tie_to_parent(parent)
    gc.freeze()  # objects of the parent never end here, so they close nothing
    take_default_signals()
    system_library().fflush(None)  # what the parent has not printed yet, and will; what Python holds of it stays there
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    for file in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers
        if file > 2 and file not in (connection, endings, log):
            with suppress(OSError):
                os.close(file)
    end = socket.socket(fileno=connection)
    size = int.from_bytes(end.recv(8, socket.MSG_WAITALL))
    if not size:  # the parent has ended, or has no job
        os._exit(0)
    modules, environment, threads = pickle.loads(end.recv(size, socket.MSG_WAITALL))  # noqa: S301 - from our parent
    os.environb.clear()
    os.environb.update(environment)
    limit_blas(threads)
    work(parent, end, endings, log, modules)


def take_default_signals() -> None:
    """Undo what the parent has set: handlers of a copied process; a new one, too, has what is ignored or blocked."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals():
        if number in _RELIED_ON or callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def limit_blas(threads: int | None) -> None:
    """Limit the threads of NumPy's linear algebra, which has read the environment already."""
    import ctypes

    with suppress(AttributeError, KeyError, OSError, ctypes.ArgumentError):  # another library, or no limit
        linked = ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)
        linked.scipy_openblas_set_num_threads64_(threads)


def work(parent: int, end: socket.socket, ended: int, log: int, modules: Sequence[str]) -> NoReturn:
    """Import the modules, and fork processes that do jobs."""
    worker_imports.prepare()
    for module in modules:
        with suppress(ImportError):  # reported when a job needs it
            import_module(module) if ":" not in module else part(module)()
    gc.enable()
    working = mmap.mmap(-1, 1)
    if not FORKS:
        threading.Thread(target=watch_parent, args=(parent,), daemon=True).start()
        do_jobs(end, log, working)
    adopt_orphans()
    ours, imported = os.getpid(), os.memfd_create("imported")
    while True:
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            tie_to_parent(ours)
            do_jobs(end, log, working, imported)
        last, status = os.waitpid(-1, 0)
        while last != pid:  # an orphan of the job
            last, status = os.waitpid(-1, 0)
        kill_orphans()
        if working[0] and not closed(end):
            os.write(ended, b"%d" % os.waitstatus_to_exitcode(status))
            working[0] = False
        if os.fstat(imported).st_size:  # to be imported here, if another job comes
            await_job(end)
        if closed(end):
            os.killpg(0, signal.SIGKILL)
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
    before, inbox, retained_mb = set(sys.modules), Inbox(end, read_only=True), own_memory_mb() + _MOST_RETAINED_MB
    threads, stays = threading.active_count(), True
    while stays:
        await_job(end)
        working[0] = True
        while not (arrived := inbox.arrived()):
            await_job(end)
            if closed(end):
                if imported is None:
                    os.killpg(0, signal.SIGKILL)
                os._exit(0)
        (job,) = arrived
        counted, used_s = forget_peak(), processor_s_of_children()
        os.dup2(log, 1)
        os.dup2(log, 2)
        answer = _answer(job, Report(end))
        answer |= {"peak_memory_mb": tree_peak_mb(), "uncached": compiled.noted()}
        sys.stdout.flush()
        sys.stderr.flush()
        stays = (
            "result" in answer
            and threading.active_count() == threads  # otherwise a step that a limit has ended may go on
            and (
                job["pooled"]
                or (
                    counted
                    and processor_s_of_children() == used_s  # otherwise what it has started may have left processes
                    and may_stay(job, sys.modules.keys() - before, retained_mb)
                )
            )
        )
        if stays:
            system_library().fflush(None)
            working[0] = False
        try:
            used_s = time.process_time() + processor_s_of_children()
            send(end, {**answer, "stays": stays, "cpu_s": used_s})
        except TypeError as error:
            working[0], stays = True, False
            send(end, {"failure": f"TypeError: {error}", "stays": False})
    if imported is not None:
        names = [name for name in sys.modules if name not in before and name.partition(".")[0] in _LEARNED]
        os.pwrite(imported, "\n".join(names).encode(), 0)
    os._exit(0)


def _answer(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Call the job's function; return what it returned, or its error."""
    arguments = job.pop("arguments")
    try:
        sys.path.extend(entry for entry in job["path"] if entry not in sys.path)
        if job["data_limit_bytes"] is not None:
            end_waiting()
            limit_data(job["data_limit_bytes"])
        if job["log"]:
            solver_log.show_in_worker()
        os.chdir(job["folder"])
        plugins.accept(job["plugins"])
        result = part(job["target"])(**arguments, report=report)
    except OpticollError as error:  # the parent may not have loaded a class of the user's
        ours = next(kind for kind in type(error).__mro__ if kind.__module__.startswith("opticoll."))
        return {"error": error if ours is type(error) else ours(error)}
    except MemoryError:
        return {"memory": True}
    except BaseException as error:  # noqa: BLE001 - the parent reports any error, and what ends a program
        traceback.print_exc()
        where = blame(error)
        return {"failure": f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")}
    else:
        return {"result": result}


def may_stay(job: Mapping[str, Any], loaded: AbstractSet[str], most_mb: float) -> bool:
    """Whether the process that has done a job may do another: nothing that the job has left here can affect that one.

    Not after plug-ins, a limit on memory or a shown log; nor with another package (of solvers only HiGHS) or much
    memory left over.
    """
    return (
        not job["plugins"].plugins
        and job["data_limit_bytes"] is None
        and not job["log"]
        and all(name.startswith("_") or name.partition(".")[0] in _HARMLESS for name in loaded)
        and own_memory_mb() < most_mb
    )


def import_again(names: int) -> None:
    """Import here what the last job has imported, in its order, so that the next ones need not; empty that file.

    What is imported here counts as memory of the next jobs, too.
    """
    learned = os.pread(names, os.fstat(names).st_size, 0).decode().split()
    if not learned:
        return
    for layer in ("pyomo", "cvxpy"):
        if layer in learned:
            import_layer(layer)
    for name in learned:
        with suppress(Exception):  # it will fail again in the job that needs it
            import_module(name)
    os.ftruncate(names, 0)
    if "numba.core.registry" in sys.modules:  # otherwise every process would do this when it first calls a kernel
        with suppress(Exception):
            target = sys.modules["numba.core.registry"].cpu_target
            target.typing_context.refresh()
            target.target_context.refresh()


def await_job(end: socket.socket) -> None:
    """Wait until the parent sends something, or has closed."""
    with suppress(OSError):
        end.recv(1, socket.MSG_PEEK)


def closed(end: socket.socket) -> bool:
    """Whether the parent will send nothing more, nor has sent anything that is not read yet."""
    try:
        return not end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
