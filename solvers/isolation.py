"""Run solvers in worker processes with enforced time and memory limits.

:func:`call_isolated` runs a function in a worker, :func:`solve_isolated` a solver adapter. If a worker is killed,
crashes, hangs or runs out of memory, the caller continues with the last report of the worker: its incumbent and bound.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadOption, OpticollError, SolverUnavailable
from opticoll.solvers.adapters import adapter
from opticoll.solvers.adapters.interface import LicenceState, trivial_outcome
from opticoll.solvers.scratch import read_arrays, read_json, read_progress, scratch_folder, write_arrays, write_json
from opticoll.solvers.standard_form import assemble
from opticoll.solvers.task import Outcome, PrimalStatus, SolveRequest, Termination
from opticoll.solvers.worker import note_nested_peak

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    import psutil
    from numpy.typing import NDArray

    from opticoll.solvers.adapters.interface import Progress
    from opticoll.solvers.scratch import Report
    from opticoll.solvers.standard_form import StandardForm

ROOT = Path(__file__).absolute().parents[2]
"""The folder that holds our packages; workers find them there from any working directory."""

_POLL_S = 0.05
_GIB = 2**30
_OUT_OF_MEMORY = ("bad_alloc", "MemoryError", "out of memory", "Cannot allocate memory", "Unable to allocate")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True)
class Answer:
    """The result of an isolated call.

    ``ending`` is None if the function returned; then ``values`` and ``arrays`` are what it returned.
    Otherwise they are its last report, and ``message`` states what happened. ``peak_memory_mb`` is the largest memory
    of the worker and of the workers that it started together [MB].
    """

    ending: Termination | None
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    message: str = ""
    wall_s: float = 0.0
    peak_memory_mb: float | None = None

    @property
    def finished(self) -> bool:
        """Whether the function returned."""
        return self.ending is None


def call_isolated(
    target: str,
    arguments: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
    *,
    wall_limit_s: float | None = None,
    memory_limit_gib: float | None = None,
    threads: int | None = None,
    on_progress: Callable[[dict[str, Any], dict[str, NDArray[Any]]], None] | None = None,
    stop: threading.Event | None = None,
) -> Answer:
    """Run ``module:function`` in a worker process.

    Parameters
    ----------
    target
        ``"module:function"``; called as ``function(arguments, arrays, report)`` it returns
        ``(values, arrays)``. ``report(values, arrays)`` saves an intermediate state that survives a kill.
    arguments, arrays
        JSON-able arguments; named arrays, which the worker gets mapped and read-only.
    wall_limit_s, memory_limit_gib
        Wall-clock limit [s] and limit on the resident memory of the worker's whole process tree [GiB].
    threads
        Written into the environment variables that thread pools read at start.
    on_progress
        Called in this process, at most every 50 ms, with the latest report.
    stop
        Kills the worker when set, e.g. from another thread.

    Raises
    ------
    OpticollError
        Typed errors of the function cross the border as themselves.
    """
    named = dict(arrays or {})
    with scratch_folder(sum(array.nbytes for array in named.values())) as folder:
        job = {
            "target": target,
            "arguments": dict(arguments),
            "files": write_arrays(folder, named, "argument"),
            "parent": os.getpid(),
            "path": importable_places(),
            "data_limit_bytes": None if memory_limit_gib is None else int((1.25 * memory_limit_gib + 0.5) * _GIB),
        }
        write_json(folder / "job.json", job)
        watch = _Watch(folder, wall_limit_s, memory_limit_gib, on_progress, stop)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(  # our own interpreter, no shell
                [*interpreter("opticoll.solvers.worker:main"), str(folder)],
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                env=isolated_environment(threads), start_new_session=True,
            )  # fmt: skip
        try:
            ending, message = watch.run(process)
        finally:
            kill_tree(process)
            if process.stdin is not None:
                process.stdin.close()
        answer = _collect(folder, process, watch, ending, message)
        note_nested_peak(answer.peak_memory_mb)
        return answer


class _Watch:
    """Waits for a worker, relays its progress and enforces the limits from outside."""

    def __init__(
        self,
        folder: Path,
        wall_limit_s: float | None,
        memory_limit_gib: float | None,
        on_progress: Callable[[dict[str, Any], dict[str, NDArray[Any]]], None] | None,
        stop: threading.Event | None,
    ) -> None:
        self.folder = folder
        self.wall_limit_s = wall_limit_s
        self.memory_limit_mb = None if memory_limit_gib is None else memory_limit_gib * _GIB / 1e6
        self.on_progress = on_progress
        self.stop = stop
        self.start = time.perf_counter()
        self.peak_mb = 0.0
        self._serial = 0

    @property
    def wall_s(self) -> float:
        return time.perf_counter() - self.start

    def run(self, process: subprocess.Popen[bytes]) -> tuple[Termination | None, str]:
        """Wait; returns why the worker must be killed, or (None, "") when it has ended by itself."""
        import psutil  # while the worker starts

        root = psutil.Process(process.pid)
        next_memory = 0.0
        while True:
            try:
                process.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                self._relay()
                return None, ""
            self._relay()
            if self.wall_s >= next_memory:
                next_memory = self.wall_s + (_POLL_S if self.memory_limit_mb else 4 * _POLL_S)
                used = tree_memory_mb(root)
                self.peak_mb = max(self.peak_mb, used)
                if self.memory_limit_mb is not None and used > self.memory_limit_mb:
                    return Termination.MEMORY_LIMIT, (
                        f"killed at {used:.0f} MB of memory, above its limit of {self.memory_limit_mb:.0f} MB; "
                        "raise the memory limit or use a smaller instance"
                    )
            if self.wall_limit_s is not None and self.wall_s > self.wall_limit_s:
                return Termination.TIME_LIMIT, f"killed after {self.wall_s:.1f} s, the wall-clock limit"
            if self.stop is not None and self.stop.is_set():
                return Termination.INTERRUPTED, f"stopped from outside after {self.wall_s:.1f} s"

    def _relay(self) -> None:
        if self.on_progress is None:
            return
        state = read_progress(self.folder, self._serial, mapped=True)
        if state is not None:
            self._serial, values, arrays = state
            self.on_progress(values, arrays)


def _collect(
    folder: Path, process: subprocess.Popen[bytes], watch: _Watch, ending: Termination | None, message: str
) -> Answer:
    """Read the answer in the folder, or raise the worker's typed error."""
    wall_s, peak = watch.wall_s, watch.peak_mb
    answer = read_json(folder / "answer.json") or {}
    peak = max(peak, answer.get("peak_memory_mb") or 0.0)
    if "error" in answer:
        raise _typed(answer["error"])
    if "values" in answer:
        found = read_arrays(folder, answer["files"])
        return Answer(None, answer["values"], found, wall_s=wall_s, peak_memory_mb=peak or None)
    if ending is None:
        ending, message = _diagnose(folder, process.returncode, answer, limited=watch.memory_limit_mb is not None)
    state = read_progress(folder)
    values, arrays = state[1:] if state else ({}, {})
    return Answer(ending, values, arrays, message, wall_s, peak or None)


def _diagnose(folder: Path, code: int, answer: dict[str, Any], *, limited: bool) -> tuple[Termination, str]:
    """Why a worker ended without an answer."""
    log = _tail(folder / "log")
    if "failure" in answer:
        return Termination.ERROR, answer["failure"]
    if "memory" in answer or (limited and any(word in log for word in _OUT_OF_MEMORY)):
        limit = "the memory limit" if limited else "this machine's memory"
        return Termination.MEMORY_LIMIT, f"an allocation was refused: beyond {limit}"
    if code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            hint = " (perhaps the system ran out of memory)" if name == "SIGKILL" else ""
            return Termination.CRASHED, f"the worker died by signal {-code} ({name}){hint}{_quoted(log)}"
    return Termination.CRASHED, f"the worker ended with status {code} and no answer{_quoted(log)}"


def _tail(path: Path, size: int = 2000) -> str:
    try:
        return path.read_bytes()[-size:].decode("utf-8", errors="replace").strip()
    except OSError:
        return ""


def _quoted(log: str) -> str:
    lines = log.splitlines()[-3:]
    return f"; last output: {' / '.join(line.strip() for line in lines)}" if lines else ""


def _typed(error: dict[str, str]) -> OpticollError:
    """Make the worker's error an object of its own class."""
    with suppress(ImportError, AttributeError):
        kind = getattr(import_module(error["module"]), error["name"])
        if isinstance(kind, type) and issubclass(kind, OpticollError):
            return kind(error["text"])
    return OpticollError(error["text"])


def interpreter(target: str) -> list[str]:
    """Make the command that calls ``module:function`` of ours in a new interpreter, from any working directory.

    The working directory is not importable there (``-P``), and our own place comes first only if it is no regular
    one, so that nothing shadows the standard library.
    """
    module, _, function = target.partition(":")
    root = str(ROOT)
    place = f"import sys; {root!r} in sys.path or sys.path.insert(0, {root!r})"
    return [sys.executable, "-P", "-c", f"{place}; from {module} import {function}; {function}()"]


def importable_places() -> list[str]:
    """List where this process imports from, the working directory by its name."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def isolated_environment(threads: int | None = None) -> dict[str, str]:
    """Make the environment of a worker: its thread pools find their size."""
    environment = dict(os.environ)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    return environment


def tree_memory_mb(root: psutil.Process) -> float:
    """Resident memory of a process and all its descendants [MB]."""
    import psutil

    total = 0
    with suppress(psutil.Error):
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                total += process.memory_info().rss
    return total / 1e6


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


def solve_isolated(
    form: StandardForm,
    adapter_name: str,
    request: SolveRequest,
    *,
    wall_limit_s: float | None = None,
    memory_limit_gib: float | None = None,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Solve ``form`` with an adapter in a worker process.

    Parameters
    ----------
    form, adapter_name, request
        The problem, the solver's name, and what is asked of it.
    wall_limit_s
        When the worker is killed; by default a little after ``request.time_limit_s``.
    memory_limit_gib
        Limit on the memory of the worker's process tree [GiB].
    on_progress
        Called in this process with new incumbents and bounds.
    stop
        Kills the worker when set.

    Returns
    -------
    Outcome
        Also when the worker was killed or crashed: then with the last incumbent and bound it reported.

    Raises
    ------
    SolverUnavailable, BadOption, MethodMismatch
        As :meth:`opticoll.solvers.adapters.interface.Adapter.solve`.
    """
    chosen = adapter(adapter_name)
    chosen.check(form, request)
    if wall_limit_s is None and request.time_limit_s is not None:
        wall_limit_s = request.time_limit_s * 1.05 + 3.0 + form.A.nnz / 5e5
    for name, limit in (("wall_limit_s", wall_limit_s), ("memory_limit_gib", memory_limit_gib)):
        if limit is not None and not limit > 0:
            msg = f"{name} must be positive, not {limit}"
            raise BadOption(msg)
    arrays = form.arrays()
    if request.warm_start is not None:
        arrays["warm_start"] = request.warm_start
    asked = asdict(replace(request, warm_start=None))

    def relay(values: dict[str, Any], found: dict[str, NDArray[Any]]) -> None:
        if on_progress is not None:
            on_progress(values.get("objective"), values.get("bound"), found.get("x"))

    answer = call_isolated(
        "opticoll.solvers.isolation:solve_in_worker",
        {"adapter": adapter_name, "request": asked},
        arrays,
        wall_limit_s=wall_limit_s,
        memory_limit_gib=memory_limit_gib,
        threads=request.threads,
        on_progress=None if on_progress is None else relay,
        stop=stop,
    )
    return _outcome(answer, adapter_name)


def _outcome(answer: Answer, adapter_name: str) -> Outcome:
    """Make an Outcome of a finished or a broken call."""
    values = dict(answer.values)
    x = answer.arrays.get("x")
    incumbents = [(float(t), float(v)) for t, v in values.pop("incumbents", [])]
    if answer.finished:
        return Outcome(
            **{
                **values,
                "termination": Termination(values["termination"]),
                "primal": PrimalStatus(values["primal"]),
                "x": x,
                "row_duals": answer.arrays.get("row_duals"),
                "incumbents": incumbents,
                "peak_memory_mb": answer.peak_memory_mb,
            }
        )
    assert answer.ending is not None
    return Outcome(
        termination=answer.ending,
        primal=PrimalStatus.NONE if x is None else PrimalStatus.FEASIBLE,
        objective=None if x is None else values.get("objective"),
        bound=values.get("bound"),
        x=x,
        raw="worker killed" if answer.ending != Termination.ERROR else "exception",
        algorithm=adapter(adapter_name).algorithm,
        version=adapter(adapter_name).version(),
        solve_s=answer.wall_s,
        peak_memory_mb=answer.peak_memory_mb,
        message=answer.message,
        incumbents=incumbents,
    )


def solve_in_worker(
    arguments: dict[str, Any], arrays: dict[str, NDArray[Any]], report: Report
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Do the worker's side of :func:`solve_isolated`."""
    request = SolveRequest(**{**arguments["request"], "warm_start": arrays.pop("warm_start", None)})
    form = assemble(arrays)
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
            values["objective"] = objective
            report(values, {"x": x})
        elif values:
            report(values)

    outcome = solve_here(form, arguments["adapter"], request, progress)
    values = {name: value for name, value in vars(outcome).items() if name not in ("x", "row_duals")}
    found = {"x": outcome.x, "row_duals": outcome.row_duals}
    return values, {name: array for name, array in found.items() if array is not None}


def solve_here(
    form: StandardForm, adapter_name: str, request: SolveRequest, progress: Progress | None = None
) -> Outcome:
    """Solve in this process: for code that already runs in a worker.

    ortools and highspy cannot share a process, and nothing here enforces limits: elsewhere use
    :func:`solve_isolated`.
    """
    chosen = adapter(adapter_name)
    chosen.check(form, request)
    outcome = trivial_outcome(form)
    if outcome is None:
        for module in chosen.modules or (chosen.package,):
            chosen.load(module)
        start = time.perf_counter()
        outcome = chosen.solve(form, request, progress or _silent)
        if outcome.solve_s is None:
            outcome.solve_s = time.perf_counter() - start
    outcome.version = outcome.version or chosen.version()
    return outcome


def _silent(objective: float | None, bound: float | None, x: NDArray[Any] | None = None) -> None:
    """Ignore progress."""


def write_isolated(
    form: StandardForm, adapter_name: str, path: Path, *, names: tuple[list[str], list[str]] | None = None
) -> None:
    """Write ``form`` to a model file through a solver's own writer, in a worker.

    ``names`` are column and row names; by default those of the form's blocks.

    Raises
    ------
    SolverUnavailable
        If the package is missing.
    BadOption
        If the solver cannot write such a file.
    """
    chosen = adapter(adapter_name)
    if not chosen.installed():
        raise SolverUnavailable(chosen.missing())
    columns, rows = names if names is not None else (form.column_names(), form.row_names())
    arguments = {"adapter": adapter_name, "path": str(path.resolve()), "columns": columns, "rows": rows}
    answer = call_isolated("opticoll.solvers.isolation:write_in_worker", arguments, form.arrays())
    if not answer.finished:
        msg = f"{adapter_name} could not write {path}: {answer.message}"
        raise BadOption(msg)


def write_in_worker(
    arguments: dict[str, Any], arrays: dict[str, NDArray[Any]], report: Report
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Do the worker's side of :func:`write_isolated`."""
    names = (arguments["columns"], arguments["rows"])
    form = assemble(arrays)
    whole = np.asarray(form.integer)  # readers ignore the fractional bound of an integer column: round it inwards
    lower = np.where(whole, np.ceil(form.col_lower - 1e-9), form.col_lower)
    upper = np.where(whole, np.floor(form.col_upper + 1e-9), form.col_upper)
    form = replace(form, col_lower=lower, col_upper=upper)
    adapter(arguments["adapter"]).write(form, Path(arguments["path"]), names)
    return {}, {}


@cache
def probe(adapter_name: str) -> LicenceState:
    """Whether a solver can be used here; tested in a worker, once per process."""
    chosen = adapter(adapter_name)
    if not chosen.installed():
        return LicenceState(usable=False, state="not installed", remedy=chosen.install)
    try:
        answer = call_isolated(
            "opticoll.solvers.isolation:probe_in_worker", {"adapter": adapter_name}, wall_limit_s=60, threads=1
        )
    except SolverUnavailable as error:
        return LicenceState(usable=False, state=str(error), remedy=chosen.install)
    if not answer.finished:
        return LicenceState(usable=False, state=f"probe failed: {answer.message}", remedy=chosen.install)
    return LicenceState(**answer.values)


def probe_in_worker(
    arguments: dict[str, Any], arrays: dict[str, NDArray[Any]], report: Report
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Do the worker's side of :func:`probe`."""
    return asdict(adapter(arguments["adapter"]).probe_licence()), {}
