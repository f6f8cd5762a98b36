"""Worker processes in which solvers run, started by :mod:`opticoll.solvers.worker_start`.

A job is a folder: its process reads ``job.json``, calls one function, writes ``answer.json`` and exits at once, without
running the destructors of libraries, which may crash. It is killed when its parent dies.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import OpticollError
from opticoll.instances import plugins
from opticoll.solvers.scratch import NESTED, Report, read_arrays, read_json, write_arrays, write_json
from opticoll.solvers.solver_log import buffer_lines
from opticoll.solvers.worker_start import FORKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> NoReturn:
    """Import the modules (call the ``module:function``) named after the parent's process id, then do jobs.

    The jobs' folders come on stdin. Every job runs in a process of its own, forked from this one, and its exit status
    goes to stdout. Processes that a job leaves behind, in whatever session, come back to this one and are killed. Where
    there is no safe fork, this process does one job itself.
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
    while True:
        folder = wait_for_folder()
        pid = os.fork()
        if pid == 0:
            tie_to_parent(ours)
            do_job(folder)
        ended, status = os.waitpid(-1, 0)
        while ended != pid:  # an orphan of the job
            ended, status = os.waitpid(-1, 0)
        kill_orphans()
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


def wait_for_folder() -> Path:
    """Wait for the parent to name a folder; ends this process where the parent closes the pipe."""
    folder = os.fsdecode(sys.stdin.buffer.readline()).rstrip("\n")
    if not folder:
        os._exit(0)
    return Path(folder)


def do_job(folder: Path, watched: int | None = None) -> NoReturn:
    """Do the job described in a folder; ``watched`` is the parent's id where the system does not signal its death."""
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
        values, arrays = _call(job, folder)
        answer = {"values": values, "files": write_arrays(folder, arrays, "answer")}
    except OpticollError as error:
        kind = type(error)
        answer = {"error": {"module": kind.__module__, "name": kind.__qualname__, "text": str(error)}}
    except MemoryError:
        answer = {"memory": True}
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent reports it
        traceback.print_exc()
        where = plugins.blame(error)
        answer = {"failure": f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")}
    answer["peak_memory_mb"] = tree_peak_mb()
    write_json(folder / "answer.json", answer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent dies, instead of the system's first process."""
    with suppress(AttributeError, OSError, TypeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_orphans() -> None:
    """Kill all children of this process, and theirs, which come back to it."""
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
    arrays = read_arrays(folder, job["files"], mapped=True)
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
    """Limit private memory to ``limit_bytes`` by the kernel, where it can."""
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
        import ctypes

        tied: bool = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
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
    """Record the peak memory of a child together with our own: it may be too short-lived to be sampled."""
    global _nested_peak_mb
    _nested_peak_mb = max(_nested_peak_mb, (child_mb or 0.0) + (_memory_mb("VmRSS:") or 0.0))


def tree_peak_mb() -> float | None:
    """Largest memory of this process and of the workers it started [MB], None where the system does not report it."""
    return max(peak_memory_mb() or 0.0, _nested_peak_mb) or None


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far [MB], None where the system does not report it.

    Not ``ru_maxrss``: after an exec that still counts the parent's memory.
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
