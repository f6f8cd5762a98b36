"""Run solvers in worker processes with enforced time and memory limits.

:func:`call_isolated` runs a function in a worker, :func:`solve_isolated` a solver adapter. If a worker is killed,
crashes, hangs or runs out of memory, the caller continues with the last report of the worker: its incumbent and bound.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from opticoll.errors import SolverUnavailable
from opticoll.solvers.adapters import adapter
from opticoll.solvers.adapters.interface import LicenceState, accepted, returned, trivial_outcome
from opticoll.solvers.process import processes, solver_log
from opticoll.solvers.process.memory import exhausted
from opticoll.solvers.process.processes import processor_s_of_children
from opticoll.solvers.process.worker import start_job
from opticoll.solvers.task import Outcome, SolveRequest, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.adapters.interface import Adapter, ProgressCallback
    from opticoll.solvers.process.messages import Report
    from opticoll.solvers.process.worker import Worker

#: Seconds between two polls of a worker.
_POLL_S = 0.05
_GIB = 2**30
#: Message of a solver that was ended at its limit of processor time.
CPU_LIMIT = "stopped at its limit of processor time"
#: Packages of solvers that exclude each other in a process.
_EXCLUSIVE = ({"highspy", "ortools"},)
_OUT_OF_MEMORY = ("bad_alloc", "MemoryError", "out of memory", "Cannot allocate memory", "Unable to allocate")


@dataclass(frozen=True)
class WorkerAnswer:
    """The result of an isolated call.

    ``ending`` is None if the function returned; then ``values`` is what it returned. Otherwise they are its reports so
    far, and ``message`` states what happened. ``peak_memory_mb`` is the largest memory of the worker and of the workers
    that it started together [MB], ``cpu_s`` their processor time when the worker was killed [s].
    """

    ending: Termination | None
    values: Any = field(default_factory=dict)
    message: str = ""
    wall_s: float = 0.0
    peak_memory_mb: float | None = None
    cpu_s: float | None = None

    @property
    def finished(self) -> bool:
        """Whether the function returned."""
        return self.ending is None


def call_isolated(
    target: str,
    arguments: Mapping[str, Any],
    *,
    wall_limit_s: float | None = None,
    memory_limit_gib: float | None = None,
    threads: int | None = None,
    modules: tuple[str, ...] = (),
    on_progress: Callable[[dict[str, Any]], None] | None = None,
    stop: threading.Event | None = None,
    pooled: bool = False,
) -> WorkerAnswer:
    """Run ``module:function`` in a worker process.

    Parameters
    ----------
    target
        ``"module:function"``; called as ``function(**arguments, report=report)``, where ``report(values)`` saves an
        intermediate state that survives a kill.
    arguments
        What can be pickled and needs no module of the user's, nor may the result; arrays are read-only in the worker.
    wall_limit_s, memory_limit_gib
        Wall-clock limit [s] and limit on the resident memory of the worker's whole process tree [GiB].
    threads
        Written to the environment variables that thread pools read when they start.
    modules
        Modules that the worker imports before the call; an idle worker that has imported them is reused.
    on_progress
        Called in this process, at most every 50 ms, with the reports so far.
    stop
        Kills the worker when set, e.g. from another thread.
    pooled
        Whether the process may take the next call whatever this one leaves there: both belong to one pool.

    Raises
    ------
    OpticollError
        As the function raises it; one of a class of the user's as one of ours from which that is derived.
    """
    if stop is not None and stop.is_set():
        return WorkerAnswer(Termination.INTERRUPTED, {}, "stopped before it began")
    limits = _Limits(time.perf_counter(), wall_limit_s, memory_limit_gib, stop)
    job = start_job(target, arguments, modules, threads, memory_limit_gib, pooled=pooled)
    try:
        try:
            ending, message = _watch(job, limits, on_progress)
        except pickle.UnpicklingError as error:
            ending, message = Termination.ERROR, str(error)
        answer = _collect(job, limits, ending, message)
    finally:
        job.release()
    if processes.nested_peak_mb is not None:
        processes.note_nested_peak(answer.peak_memory_mb)
    return answer


@dataclass
class _Limits:
    """The limits of a job, enforced from outside; the largest memory seen [MB]; processor time at a limit [s]."""

    begun: float
    wall_limit_s: float | None
    memory_limit_gib: float | None
    stop: threading.Event | None
    peak_mb: float = 0.0
    cpu_s: float | None = None

    @property
    def wall_s(self) -> float:
        return time.perf_counter() - self.begun

    def reached(self, memory_mb: float | None) -> tuple[Termination, str] | None:
        """The reason to kill the job, if there is one; ``memory_mb`` is None where it has not been measured."""
        self.peak_mb = max(self.peak_mb, memory_mb or 0.0)
        limit_mb = (self.memory_limit_gib or 0.0) * _GIB / 1e6
        if self.memory_limit_gib is not None and memory_mb is not None and memory_mb > limit_mb:
            message = f"killed at {memory_mb:.0f} MB of memory, above its limit of {limit_mb:.0f} MB"
            return Termination.MEMORY_LIMIT, f"{message}; raise the memory limit or use a smaller instance"
        if self.memory_limit_gib is None and memory_mb is not None and exhausted(memory_mb * 1e6):
            message = f"killed at {memory_mb:.0f} MB of memory, because this machine has no more"
            return Termination.MEMORY_LIMIT, f"{message}; use a smaller instance or another method"
        if self.wall_limit_s is not None and self.wall_s > self.wall_limit_s:
            return Termination.TIME_LIMIT, f"killed after {self.wall_s:.1f} s, the wall-clock limit"
        if self.stop is not None and self.stop.is_set():
            return Termination.INTERRUPTED, f"stopped after {self.wall_s:.1f} s"
        return None


def _watch(
    job: Worker, limits: _Limits, on_progress: Callable[[dict[str, Any]], None] | None
) -> tuple[Termination | None, str]:
    """Wait for a job and relay its progress; return why it must be killed, or (None, "") if it has ended by itself."""
    log, relayed, next_relay_s = solver_log.Tail(job.log), 0, 0.0
    # Without a limit the first measurement can wait: a worker that ends before it reports its own peak.
    every_s = 4 * _POLL_S if limits.memory_limit_gib is None else _POLL_S
    next_memory_s = every_s if limits.memory_limit_gib is None else 0.0
    while True:
        ended = job.wait(_POLL_S)
        log.copy()
        if on_progress is not None and job.reports > relayed and (ended or limits.wall_s >= next_relay_s):
            relayed, next_relay_s = job.reports, limits.wall_s + _POLL_S
            on_progress(dict(job.values))
        if ended:
            return None, ""
        memory_mb = None
        if limits.wall_s >= next_memory_s:
            memory_mb, next_memory_s = job.memory_mb(), limits.wall_s + every_s
        reason = limits.reached(memory_mb)
        if reason is not None:
            limits.cpu_s = job.cpu_s()
            return reason


def _collect(job: Worker, limits: _Limits, ending: Termination | None, message: str) -> WorkerAnswer:
    """The job's answer, or the worker's typed error."""
    wall_s = limits.wall_s
    answer = job.answer or {}
    peak = max(limits.peak_mb, answer.get("peak_memory_mb") or 0.0) or None
    if "error" in answer:
        raise answer["error"]
    if "result" in answer:
        return WorkerAnswer(None, answer["result"], wall_s=wall_s, peak_memory_mb=peak)
    if ending is None:
        ending, message = _diagnose(job, answer, limited=limits.memory_limit_gib is not None)
    return WorkerAnswer(ending, job.values, message, wall_s, peak, limits.cpu_s)


def _diagnose(job: Worker, answer: dict[str, Any], *, limited: bool) -> tuple[Termination, str]:
    """Determine why a worker ended without an answer."""
    log, code = _tail(job.log), job.returncode or 0
    if "failure" in answer:
        return Termination.ERROR, answer["failure"]
    if "memory" in answer or (limited and any(word in log for word in _OUT_OF_MEMORY)):
        limit = "the memory limit" if limited else "this machine's memory"
        return Termination.MEMORY_LIMIT, f"a memory allocation failed: it would exceed {limit}"
    if code == -signal.SIGPROF:
        return Termination.TIME_LIMIT, CPU_LIMIT
    if code == -signal.SIGALRM:
        return Termination.TIME_LIMIT, "stopped at its time limit"
    if code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            hint = " (the system may have run out of memory)" if name == "SIGKILL" else ""
            return Termination.CRASHED, f"the worker was killed by signal {-code} ({name}){hint}{_quoted(log)}"
    return Termination.CRASHED, f"the worker ended with status {code} without an answer{_quoted(log)}"


def _tail(log: IO[bytes], size: int = 2000) -> str:
    start = max(os.fstat(log.fileno()).st_size - size, 0)
    return os.pread(log.fileno(), size, start).decode("utf-8", errors="replace").strip()


def _quoted(log: str) -> str:
    lines = log.splitlines()[-3:]
    return f"; last output: {' / '.join(line.strip() for line in lines)}" if lines else ""


def solve_isolated(
    form: StandardForm,
    adapter_name: str,
    request: SolveRequest,
    *,
    wall_limit_s: float | None = None,
    memory_limit_gib: float | None = None,
    on_progress: ProgressCallback | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Solve ``form`` with an adapter in a worker process.

    Parameters
    ----------
    form, adapter_name, request
        The problem, the solver's name, and the request.
    wall_limit_s
        Wall-clock time [s] after which the worker is killed; by default a little after ``request.time_limit_s``.
    memory_limit_gib
        Limit on the memory of the worker's process tree [GiB].
    on_progress
        Called in this process with new incumbents and bounds.
    stop
        Kills the worker when set.

    Returns
    -------
    Outcome
        If the worker was killed or crashed, with the last incumbent and bound that it reported.

    Raises
    ------
    SolverUnavailable, BadOption, MethodMismatch
        As :meth:`opticoll.solvers.adapters.interface.Adapter.solve`.
    """
    chosen = adapter(adapter_name)
    chosen.check(form, request)
    if wall_limit_s is None and request.time_limit_s is not None:
        wall_limit_s = request.time_limit_s * 1.05 + 3.0 + form.stored.nnz / 5e5

    def relay(values: dict[str, Any]) -> None:
        if on_progress is not None:
            on_progress(values.get("objective"), values.get("bound"), values.get("x"))

    answer = call_isolated(
        "opticoll.solvers.process.isolation:solve_in_worker",
        {"form": form.without_blocks(), "solver": adapter_name, "request": request},
        wall_limit_s=wall_limit_s,
        memory_limit_gib=memory_limit_gib,
        threads=request.threads,
        modules=modules_of(adapter_name),
        on_progress=None if on_progress is None else relay,
        stop=stop,
    )
    if answer.finished:
        outcome: Outcome = answer.values
        outcome.peak_memory_mb = answer.peak_memory_mb
        return outcome
    outcome = _unfinished(answer, chosen)
    if outcome.message == CPU_LIMIT:
        outcome.cpu_s = request.cpu_limit_s
    return accepted(adapter_name, form, outcome)


def _unfinished(answer: WorkerAnswer, chosen: Adapter) -> Outcome:
    """What is known of a solve that has ended without an answer."""
    values, x = answer.values, answer.values.get("x")
    assert answer.ending is not None
    return Outcome(
        termination=answer.ending,
        objective=None if x is None else values.get("objective"),
        bound=values.get("bound"),
        x=x,
        raw="worker killed" if answer.ending != Termination.ERROR else "exception",
        algorithm=chosen.algorithm,
        version=chosen.version(),
        solve_s=answer.wall_s,
        cpu_s=answer.cpu_s,
        peak_memory_mb=answer.peak_memory_mb,
        message=answer.message,
        incumbents=values.get("incumbents", []),
    )


def solve_in_worker(form: StandardForm, solver: str, request: SolveRequest, report: Report) -> Outcome:
    """Solve in the worker; target of :func:`solve_isolated`."""
    start = time.perf_counter()
    history: list[tuple[float, float]] = []

    def progress(objective: float | None, bound: float | None, x: NDArray[Any] | None = None) -> None:
        values: dict[str, Any] = {}
        if bound is not None:
            values["bound"] = bound
        if objective is not None:
            history.append((time.perf_counter() - start, objective))
            del history[:-1000]
            values["incumbents"] = history
        if objective is not None and x is not None:
            values |= {"objective": objective, "x": x}
        if values:
            report(values)

    return solve_here(form, solver, request, progress)


def solve_here(
    form: StandardForm, adapter_name: str, request: SolveRequest, progress: ProgressCallback | None = None
) -> Outcome:
    """Solve in this process, for code that already runs in a worker; elsewhere use :func:`solve_isolated`.

    Nothing here enforces limits. OR-Tools and HiGHS cannot share a process: the second of them gets a worker.
    """
    chosen = adapter(adapter_name)
    if any(chosen.package in pair and sys.modules.keys() & pair - {chosen.package} for pair in _EXCLUSIVE):
        return solve_isolated(form, adapter_name, request, on_progress=progress)
    chosen.check(form, request)
    outcome = trivial_outcome(form)
    if outcome is None:
        solver_log.say(f"{adapter_name} starts on {form.size['variables']} variables, {form.size['constraints']} rows")
        for module in chosen.modules or (chosen.package,):
            chosen.load(module)
        start, used = time.perf_counter(), _processor_s()
        with timer(signal.ITIMER_PROF, None if chosen.limits_cpu else request.cpu_limit_s):
            outcome = returned(chosen, form, chosen.solve(form, request, progress or _silent))
        if outcome.solve_s is None:
            outcome.solve_s = time.perf_counter() - start
        if outcome.cpu_s is None:
            outcome.cpu_s = _processor_s() - used
    outcome.version = outcome.version or chosen.version()
    return outcome


@contextmanager
def timer(which: int, limit_s: float | None) -> Iterator[None]:
    """Let the kernel end this process, a worker, after so many seconds.

    ``which`` is ``signal.ITIMER_PROF``, for processor time of all its threads, or ``signal.ITIMER_REAL``.
    """
    if limit_s is None:
        yield
        return
    signal.setitimer(which, max(limit_s, 1e-3))  # 0 would be no limit
    try:
        yield
    finally:
        signal.setitimer(which, 0.0)


def _processor_s() -> float:
    """Processor time of this process and of its children that have ended [s]."""
    return time.process_time() + processor_s_of_children()


def _silent(objective: float | None, bound: float | None, x: NDArray[Any] | None = None) -> None:
    """Ignore progress."""


def modules_of(adapter_name: str) -> tuple[str, ...]:
    """Modules that a worker imports before it solves with an adapter."""
    chosen = adapter(adapter_name)
    home = type(chosen).__module__
    ours = ("opticoll.solvers.process.isolation", *([home] if home.startswith("opticoll.") else []))
    return *ours, *filter(None, chosen.modules or (chosen.package,))


@cache
def probe(adapter_name: str) -> LicenceState:
    """Test in a worker whether a solver can be used here; cached for this process."""
    return _probed([adapter_name])[adapter_name]


def probe_all(chosen: Iterable[Adapter]) -> dict[str, LicenceState]:
    """Test whether solvers can be used here, as :func:`probe` does, with one worker for those of a package."""
    from concurrent.futures import ThreadPoolExecutor

    groups: dict[str, list[str]] = {}
    for one in chosen:
        groups.setdefault(one.package or one.name, []).append(one.name)
    with ThreadPoolExecutor(max_workers=max(len(groups), 1)) as pool:
        return {name: state for found in pool.map(_probed, groups.values()) for name, state in found.items()}


def _probed(names: list[str]) -> dict[str, LicenceState]:
    """Test solvers in one worker; if it dies, each of several in a worker of its own."""
    states = {name: LicenceState(usable=False, state="not installed", remedy=adapter(name).install) for name in names}
    installed = [name for name in names if adapter(name).installed()]
    if not installed:
        return states
    answer = call_isolated(
        "opticoll.solvers.process.isolation:probe_in_worker", {"solvers": installed}, wall_limit_s=60, threads=1
    )
    if answer.finished:
        return {**states, **answer.values}
    if len(installed) > 1:
        return {**states, **{name: probe(name) for name in installed}}
    (name,) = installed
    failed = LicenceState(usable=False, state=f"probe failed: {answer.message}", remedy=adapter(name).install)
    return {**states, name: failed}


def probe_in_worker(solvers: list[str], report: Report) -> dict[str, LicenceState]:
    """Probe the licences in the worker; target of :func:`probe`."""
    found = {}
    for name in solvers:
        try:
            found[name] = adapter(name).probe_licence()
        except SolverUnavailable as error:
            found[name] = LicenceState(usable=False, state=str(error), remedy=adapter(name).install)
    return found
