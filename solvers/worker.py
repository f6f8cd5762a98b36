"""The process a solver runs in, started by :mod:`opticoll.solvers.isolation` with a folder as its argument.

It reads ``job.json``, calls one function, writes ``answer.json`` and exits at once, without running the
destructors of libraries, which may crash. It is killed when its parent dies.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import OpticollError
from opticoll.solvers.scratch import NESTED, Report, read_arrays, read_json, write_arrays, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Do the job described in the folder on the command line."""
    folder = Path(sys.argv[1])
    job = read_json(folder / "job.json")
    tie_to_parent(job["parent"])
    extend_path(job["path"])
    limit_data(job["data_limit_bytes"])
    os.environ[NESTED] = str(folder)
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
        answer = {"failure": f"{type(error).__name__}: {error}"}
    answer["peak_memory_mb"] = tree_peak_mb()
    write_json(folder / "answer.json", answer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _call(job: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
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
    """Make what the parent can import importable here, after this process's own places."""
    sys.path.extend(entry for entry in entries if entry not in sys.path)


def limit_data(limit_bytes: int | None) -> None:
    """Let the kernel refuse private memory beyond ``limit_bytes``, where it can."""
    if limit_bytes is None:
        return
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    except (ImportError, OSError, ValueError):
        pass  # the parent's watchdog is the first fence


def tie_to_parent(parent: int) -> None:
    """Die when the parent dies, however it dies."""
    try:
        import ctypes

        tied = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (AttributeError, OSError, TypeError):
        tied = False
    if not tied:
        import threading

        threading.Thread(target=_watch_pipe, daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)  # it died before we could ask


def _watch_pipe() -> None:
    """Where the kernel has no death signal: the parent holds the other end of our standard input."""
    while os.read(0, 1):
        pass
    os.killpg(os.getpid(), signal.SIGKILL)


_nested_peak_mb = 0.0


def note_nested_peak(child_mb: float | None) -> None:
    """Remember what a worker of ours came to, together with what we hold: it may be too short-lived to be watched."""
    global _nested_peak_mb
    _nested_peak_mb = max(_nested_peak_mb, (child_mb or 0.0) + (_memory_mb("VmRSS:") or 0.0))


def tree_peak_mb() -> float | None:
    """Largest memory of this process and of the workers it started [MB], None where it is not told."""
    return max(peak_memory_mb() or 0.0, _nested_peak_mb) or None


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far [MB], None where it is not told.

    Not ``ru_maxrss``: after an exec that still counts the parent's memory.
    """
    return _memory_mb("VmHWM:")


def _memory_mb(field: str) -> float | None:
    try:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(field):
                return float(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return None
