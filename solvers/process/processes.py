"""What the system knows of processes and does to them: families, processor time, memory, ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: File in which Linux lists the children of this thread.
_LISTED = Path("/proc/thread-self/children")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


# Families ------------------------------------------------------------------------------------------------------------


def descendants(root: int) -> list[int]:
    """The processes that a process has started, and theirs.

    If the system lists the children of a process, only those are examined: a search through all processes takes ten
    times as long, and this function is called continually.
    """
    result, todo = list[int](), [root]
    if not _LISTED.exists():
        import psutil

        with suppress(psutil.Error):
            result = [child.pid for child in psutil.Process(root).children(recursive=True)]
        return result
    while todo:
        with suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{todo.pop()}/task").iterdir():
                children = [int(pid) for pid in (thread / "children").read_bytes().split()]
                result += children
                todo += children
    return result


def kill_tree(process: subprocess.Popen[bytes], collecting_s: float = 0.0) -> None:
    """Kill the leader of a session and every process it started, and wait until all have ended.

    The others are killed first. For ``collecting_s`` seconds, the process may then collect them and end by itself, so
    that their processor time counts as that of children of ours.
    """
    family = descendants(process.pid) if process.poll() is None else []
    for pid in family:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    if family and collecting_s:
        with suppress(subprocess.TimeoutExpired):
            process.wait(collecting_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 2.0
    while not all(map(_has_ended, family)) and time.monotonic() < deadline:
        time.sleep(0.001)


def _has_ended(pid: int) -> bool:
    """Whether a process has ended; it may be a zombie for long if the system's first process collects it late."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    import psutil

    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def adopt_orphans() -> None:
    """Let this process, rather than the system's first one, adopt descendants whose parent dies."""
    with suppress(AttributeError, OSError, TypeError):
        system_library().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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


def tie_to_parent(parent: int) -> None:
    """Arrange that this process is killed when its parent dies, on systems that support that."""
    with suppress(AttributeError, OSError, TypeError):
        system_library().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the request


def watch_parent(parent: int) -> None:
    """End this process and its group soon after its parent's death."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


@cache
def system_library() -> Any:
    """The system's C library, loaded once, before processes are forked."""
    import ctypes

    return ctypes.CDLL(None)


# Processor time and memory -------------------------------------------------------------------------------------------


def processor_s_of_children() -> float:
    """Processor time of the ended children of this process [s].

    In microseconds; ``os.times`` counts in steps of 10 ms, longer than a small program takes.
    """
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_s(pid: int) -> float:
    """Processor time of a process and of those that it has waited for [s]; 0 if it has ended."""
    try:
        used = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[11:15]
    except OSError:
        return _by_psutil(pid, lambda process: sum(process.cpu_times()[:4]))
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory of a process [MB]; 0 if it has ended."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_bytes().split()[1]
    except OSError:
        return _by_psutil(pid, lambda process: process.memory_info().rss / 1e6)
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _by_psutil(pid: int, measured: Callable[[Any], float]) -> float:
    """The same where the system has no such files."""
    import psutil

    with suppress(psutil.Error):
        return measured(psutil.Process(pid))
    return 0.0


def limit_data(limit_bytes: int) -> None:
    """Let the kernel limit private memory to ``limit_bytes``, where it supports this."""
    import resource

    with suppress(OSError, ValueError):  # the parent's watchdog acts then
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


#: Largest memory of this process and a worker of its own together [MB]; None in a process that is no worker itself.
nested_peak_mb: float | None = None


def forget_peak() -> bool:
    """Measure peak memory from now on; return whether the system can."""
    global nested_peak_mb
    nested_peak_mb = 0.0
    try:
        Path("/proc/self/clear_refs").write_bytes(b"5")
    except OSError:
        return False
    return True


def note_nested_peak(child_mb: float | None) -> None:
    """Record the peak memory of a child together with our own, since it may be too short-lived to be sampled."""
    global nested_peak_mb
    nested_peak_mb = max(nested_peak_mb or 0.0, (child_mb or 0.0) + own_memory_mb())


def tree_peak_mb() -> float | None:
    """Largest memory of this process and of the workers it started [MB], None if the system does not report it."""
    return max(peak_memory_mb() or 0.0, nested_peak_mb or 0.0) or None


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far [MB], None if the system does not report it.

    ``ru_maxrss`` is not used, because after an exec it still includes the parent's memory.
    """
    return _memory_mb(b"VmHWM:")


def own_memory_mb() -> float:
    """Resident memory of this process now [MB]; 0 where the system does not report it."""
    return _memory_mb(b"VmRSS:") or 0.0


def _memory_mb(field: bytes) -> float | None:
    try:
        _, found, rest = Path("/proc/self/status").read_bytes().partition(field)
    except OSError:
        return None
    return float(rest.split(maxsplit=1)[0]) * 1024 / 1e6 if found else None
