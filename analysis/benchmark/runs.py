"""Runs of solvers on the problems of the benchmark, and the tables that hold them: ``opticoll benchmark run``.

A run is a cold start of one solver, in a process of its own, on one problem's matrix: the one that
``opticoll benchmark export`` writes, always a minimization. It is stopped after a limit of *processor* time of the
solver; building the model, compiling it and starting the process are not charged. Other work on the machine hardly
changes processor time; every row has the load at its start, and the processor time of a fixed program on this machine.

A folder of runs has a table ``SOLVER-VERSION.csv`` with a row for every run, whose values, bounds and residuals we
recomputed from the vectors of the solver, and ``solutions/PROBLEM.sol.gz``, the best solution found. The published
runs are such a folder. A run that is in the folder is not repeated, unless it was stopped at a smaller limit.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
import platform
import re
import statistics
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from opticoll import package_code
from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem, best_known, problems_named
from opticoll.errors import BadFile, OpticollError, SolverUnavailable, refuse
from opticoll.formulations import formulation
from opticoll.formulations.model import states
from opticoll.formulations.standard_form import StandardForm
from opticoll.shared_files import rewrite
from opticoll.solvers import verify
from opticoll.solvers.adapters import adapter, adapters
from opticoll.solvers.adapters.command_line import CommandLine
from opticoll.solvers.process.isolation import probe, solve_isolated
from opticoll.solvers.program_writer import plain_names
from opticoll.solvers.task import SolveRequest, Task, Termination

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opticoll.formulations import Formulation
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.adapters import Adapter
    from opticoll.solvers.task import Outcome

PUBLISHED = Path(__file__).resolve().parent / "published"
#: The program whose processor time calibrates a machine, and how often it is solved.
CALIBRATION, CALIBRATIONS = "timestep-mcf-genkautz-n-27-d-4", 3
#: Maximum number of incumbents in a row, evenly spread and including the last.
MOST_INCUMBENTS = 50
#: A run is killed after this multiple of its limit on the clock, and some seconds: it waits, or got no processor.
MOST_CLOCK, MORE_S = 25.0, 60.0
#: Largest violation of a solution that is kept.
FEASIBLE = 1e-9
#: Share of its limit that a run stopped at the limit has used, unless it waited or got no processor.
USED = 0.9
#: Endings at a limit of time, after which a larger limit may give another answer.
CENSORED = (str(Termination.TIME_LIMIT),)


class RunKey(NamedTuple):
    """What identifies a run, apart from its limit."""

    problem: str
    solver: str
    tol: float
    seed: int
    order: int
    repetition: int
    threads: int


@dataclass(frozen=True)
class RunRow:
    """One run.

    ``order`` is the seed of a permutation of rows and columns, 0 for the order of the file. ``value`` is that of the
    solver's vector in the sense of the formulation, ``verified`` if all constraints hold, ``violation`` the largest
    one. ``bound`` is what the duals of a linear program prove. Times are of the solver alone: processor ``cpu_s`` and
    clock ``wall_s`` [s]; the times of ``incumbents`` are on the processor's clock, by the share of the processor that
    the run had. ``calibration_s`` is the processor time of :data:`CALIBRATION` on the machine. ``code`` is the digest
    of the code of opticoll that stated the problem and called the solver, empty where it is not recorded.
    """

    problem: str
    solver: str
    version: str
    algorithm: str
    tol: float
    seed: int
    order: int
    repetition: int
    threads: int
    cpu_limit_s: float
    memory_limit_gib: float | None
    termination: str
    message: str
    value: float | None
    bound: float | None
    verified: bool
    violation: float | None
    kkt_primal: float | None
    kkt_dual: float | None
    kkt_gap: float | None
    cpu_s: float | None
    wall_s: float | None
    memory_mb: float | None
    incumbents: str
    finished: str
    machine: str
    calibration_s: float | None
    load: float
    code: str = ""

    @property
    def cell(self) -> RunKey:
        """What identifies the run, apart from its limit."""
        return RunKey(*(getattr(self, name) for name in RunKey._fields))


FIELDS = tuple(one.name for one in fields(RunRow))
_NUMBERS = {one.name for one in fields(RunRow) if "float" in str(one.type)}
_COUNTS = {one.name for one in fields(RunRow) if one.type == "int"}


# tables ---------------------------------------------------------------------------------------------------------------


def read_runs(folder: Path) -> list[RunRow]:
    """The runs in a folder, of every cell the last one.

    Raises
    ------
    BadFile
        If a table has other columns.
    """
    rows: dict[tuple[str, RunKey], RunRow] = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != FIELDS:
                msg = f"{path} is not a table of runs of this version; move it away, or name another folder"
                raise BadFile(msg)
            for texts in reader:
                try:
                    row = RunRow(**{name: _read(name, text) for name, text in texts.items()})
                except (TypeError, ValueError) as error:
                    msg = f"{path}, line {reader.line_num}: is not a row of a table of runs ({error}); remove it"
                    raise BadFile(msg) from error
                rows[row.version, row.cell] = row
    return list(rows.values())


def _read(name: str, text: str) -> Any:
    if name in _NUMBERS:
        return float(text) if text else None
    if name in _COUNTS:
        return int(text)
    return text == "yes" if name == "verified" else text


def _write(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def append(folder: Path, row: RunRow) -> Path:
    """Add a run to its table, which is created if missing, and is left as it was if that fails.

    Raises
    ------
    BadFile
        If it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    version = re.sub(r"[^A-Za-z0-9.+]+", "-", row.version or "unknown").strip("-")
    path = folder / f"{row.solver}-{version}.csv"
    size = path.stat().st_size if path.exists() else 0
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not size:
                writer.writerow(FIELDS)
            writer.writerow([_write(value) for value in astuple(row)])
    except OSError as error:
        os.truncate(path, size)  # a part of a row would join the next one
        refuse(path, f"cannot be written: {error.strerror}; name another folder, and run again", BadFile)
    return path


# solvers and cells ----------------------------------------------------------------------------------------------------


def usable_solvers() -> list[str]:
    """The free solvers that can be used here, by name; of HiGHS's simplex only the default."""
    known = [one for one in adapters().values() if not one.capabilities.licensed and one.name != "highs-simplex"]
    return [one.name for one in known if one.installed() and probe(one.name).usable]


def installed(solvers: Sequence[str]) -> Sequence[str]:
    """These solvers, if one of them can be used here.

    Raises
    ------
    SolverUnavailable
        If none can be used.
    """
    faults = [chosen.missing() for chosen in map(adapter, solvers) if not chosen.installed()]
    if faults and len(faults) == len(solvers):
        raise SolverUnavailable(faults[0])
    return solvers


def takes_tolerance(chosen: Adapter) -> bool:
    """Whether a solver's answer to a linear program depends on the requested tolerance."""
    if isinstance(chosen, CommandLine):
        return "{rel_tol}" in chosen.configuration.command
    return not chosen.capabilities.exact


def takes(chosen: Adapter, problem: BenchmarkProblem) -> bool:
    """Whether a solver takes the class of a problem."""
    return chosen.capabilities.mip if formulation(problem.formulation).problem == "MILP" else chosen.capabilities.lp


@dataclass(frozen=True)
class Conditions:
    """What every run is given: limits of processor time [s] and memory [GiB], threads, and what is repeated.

    ``tols`` are the tolerances of solvers that take one, None for those of the problem; ``orders`` the seeds of
    permutations.
    """

    cpu_limit_s: float = 60.0
    memory_limit_gib: float | None = 6.0
    threads: int = 1
    tols: tuple[float, ...] | None = None
    seeds: tuple[int, ...] = (0,)
    orders: tuple[int, ...] = (0,)
    repetitions: int = 1

    @property
    def wall_limit_s(self) -> float:
        """Time on the clock after which a run is killed [s]."""
        return MOST_CLOCK * self.cpu_limit_s + MORE_S

    def cells(self, problem: BenchmarkProblem, solver: str) -> Iterator[RunKey]:
        """The cells of a solver on a problem."""
        chosen = adapter(solver)
        if not takes(chosen, problem):
            return
        linear = formulation(problem.formulation).problem == "LP"
        tols = (self.tols or problem.tols) if linear and takes_tolerance(chosen) else (1e-6,)
        for tol in tols:
            for seed in self.seeds:
                for order in self.orders:
                    for repetition in range(self.repetitions):
                        yield RunKey(problem.name, solver, tol, seed, order, repetition, self.threads)


def decided(row: RunRow, limit_s: float) -> bool:
    """Whether a run is also what it would be under another limit."""
    if row.termination in CENSORED:
        return row.cpu_limit_s >= limit_s
    return row.termination not in (str(Termination.UNAVAILABLE), str(Termination.INTERRUPTED))


# running --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProblemMatrix:
    """A problem's matrix as a minimization, the problem with its data, and the names of the columns in its file."""

    problem: BenchmarkProblem
    data: Formulation
    form: StandardForm
    flip: float

    @classmethod
    def of(cls, problem: BenchmarkProblem) -> ProblemMatrix:
        """Build a problem."""
        from opticoll.solvers.export import stated_matrix

        task = Task(problem.formulation, problem.instance, "highs", settings=dict(problem.settings))
        _, data, form = stated_matrix(task)
        return cls(problem, data, form.minimized(), -1.0 if form.sense == "max" else 1.0)

    def column_names(self) -> list[str]:
        """Names of the columns in the file of the problem."""
        return plain_names(self.form.column_names(), "x")


@cache
def machine() -> str:
    """Processor of this machine, and how many it may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8", errors="replace"))
        name = found[1].strip() if found else name
    return f"{name}, {os.cpu_count()} cores"


@cache
def calibration() -> float | None:
    """Processor time [s] of HiGHS's simplex on a fixed linear program on this machine, the median of several runs."""
    (problem,) = problems_named([CALIBRATION])
    form = ProblemMatrix.of(problem).form
    times = [solve_isolated(form, "highs", SolveRequest(threads=1)).cpu_s for _ in range(CALIBRATIONS)]
    return None if None in times else round(statistics.median(t for t in times if t is not None), 3)


def missing(
    chosen: Iterable[BenchmarkProblem], solvers: Sequence[str], folder: Path, conditions: Conditions
) -> dict[BenchmarkProblem, list[RunKey]]:
    """The cells of every problem that have no run by this code in a folder; those that HiGHS solves fast first."""
    code = package_code.digest()
    versions = {solver: solver_version(solver) for solver in solvers}
    done = {
        row.cell
        for row in read_runs(folder)
        if row.version == versions.get(row.solver) and row.code == code and decided(row, conditions.cpu_limit_s)
    }
    known = best_known()

    def effort(problem: BenchmarkProblem) -> tuple[float, int]:
        best = known.get(problem.name)
        seconds = None if best is None else best.highs_s
        return math.inf if seconds is None else seconds, 0 if best is None else best.size.get("nonzeros", 0)

    left: dict[BenchmarkProblem, list[RunKey]] = {}
    for problem in sorted(chosen, key=effort):
        cells = [cell for solver in solvers for cell in conditions.cells(problem, solver) if cell not in done]
        if cells:
            left[problem] = cells
    return left


@cache
def solver_version(name: str) -> str:
    """Version of a solver, without what stands in brackets behind it: as it states it, else that of its package."""
    chosen = adapter(name)
    stated = chosen.version() or ""
    if isinstance(chosen, CommandLine):
        return stated.partition(" (")[0]
    whole = np.array([chosen.capabilities.mip])
    one = np.ones(1)
    form = StandardForm(sp.csc_array(np.ones((1, 1))), one, one, np.zeros(1), one, one, "min", integer=whole)
    with suppress(OpticollError):  # cannot be used here
        request = SolveRequest(threads=1, cpu_limit_s=2.0)
        stated = solve_isolated(form, name, request, wall_limit_s=60.0).version or stated
    return stated.partition(" (")[0]


def run_cells(
    left: dict[BenchmarkProblem, list[RunKey]], folder: Path, conditions: Conditions
) -> Iterator[tuple[RunRow, BenchmarkProblem]]:
    """Run cells one after the other, add each to its table, and keep the best solutions.

    A run that the clock stopped before it had used its processor time reached its limit if a processor was free; it
    waited. On a busy machine it is yielded, but not recorded.
    """
    calibrated = calibration() if adapter("highs").installed() else None
    for problem, cells in left.items():
        try:
            stated = ProblemMatrix.of(problem)
        except OpticollError as error:
            reason = str(error)
            for cell in cells:
                yield _row(cell, conditions, calibrated, termination="refused", message=reason), problem
            continue
        for cell in cells:
            row, x = _run(stated, cell, conditions, calibrated)
            early = row.termination in CENSORED and (row.cpu_s or 0.0) < USED * conditions.cpu_limit_s
            load, processors = os.getloadavg()[0], os.cpu_count() or 1
            starved = early and load >= processors
            if early:
                row = replace(row, message=_unused(row, load if starved else None, processors))
            if not starved:
                append(folder, row)
                if x is not None and row.verified and (row.violation or 0.0) <= FEASIBLE:
                    keep_solution(folder / "solutions", stated, x, row.value)
            yield row, problem


def _unused(row: RunRow, load: float | None, processors: int) -> str:
    """Why a run was stopped before it had used its processor time; ``load`` is None if a processor was free."""
    used = f"used {row.cpu_s or 0.0:.3g} s of processor time in {row.wall_s or 0.0:.0f} s"
    if load is None:
        return f"{used} although a processor was free: it waited"
    return f"{used} at a load of {load:.1f} on {processors} processors: not recorded; run it again when they are free"


def _row(cell: RunKey, conditions: Conditions, calibrated: float | None, **known: Any) -> RunRow:
    empty: dict[str, Any] = dict.fromkeys(FIELDS)
    empty |= {"version": solver_version(cell.solver), "algorithm": "", "message": "", "incumbents": ""}
    return RunRow(
        **{
            **empty,
            **cell._asdict(),
            "cpu_limit_s": conditions.cpu_limit_s,
            "memory_limit_gib": conditions.memory_limit_gib,
            "verified": False,
            "finished": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
            "machine": machine(),
            "calibration_s": calibrated,
            "load": round(os.getloadavg()[0], 2),
            "code": package_code.digest(),
            **known,
        }
    )


def _run(
    stated: ProblemMatrix, cell: RunKey, conditions: Conditions, calibrated: float | None
) -> tuple[RunRow, F64 | None]:
    """One run, and its vector in the order of the problem's file."""
    rows, columns = permutations(stated.form, cell.order)
    form = permuted(stated.form, rows, columns)
    load = round(os.getloadavg()[0], 2)
    try:
        outcome = solve_isolated(
            form,
            cell.solver,
            SolveRequest(None, cell.threads, cell.tol, cell.seed, cpu_limit_s=conditions.cpu_limit_s),
            wall_limit_s=conditions.wall_limit_s,
            memory_limit_gib=conditions.memory_limit_gib,
        )
    except OpticollError as error:  # no licence, or one that is too small; an option that it does not know
        return _row(cell, conditions, calibrated, termination="unavailable", message=str(error), load=load), None
    x = y = None
    if outcome.x is not None:
        x = np.empty_like(outcome.x)
        x[columns] = outcome.x
    if outcome.row_duals is not None:
        y = np.empty_like(outcome.row_duals)
        y[rows] = outcome.row_duals
    known = {
        "algorithm": outcome.algorithm or "",
        "termination": str(outcome.termination),
        "message": outcome.message,
        "cpu_s": outcome.cpu_s,
        "wall_s": outcome.solve_s,
        "memory_mb": outcome.peak_memory_mb,
        "incumbents": _incumbents(outcome, stated.flip),
        "load": load,
        **_judged(stated, x, y),
    }
    return _row(cell, conditions, calibrated, **known), x


def permutations(form: StandardForm, order: int) -> tuple[I64, I64]:
    """Orders of the rows and of the columns: those of the file for 0, else drawn with this seed."""
    rows, columns = (np.arange(size) for size in form.A.shape)
    if order:
        rng = np.random.default_rng(order)
        rows, columns = rng.permutation(rows), rng.permutation(columns)
    return rows, columns


def permuted(form: StandardForm, rows: I64, columns: I64) -> StandardForm:
    """The same program with rows and columns in another order, without names."""
    return replace(
        form,
        A=form.A.tocsr()[rows].tocsc()[:, columns],
        row_lower=form.row_lower[rows],
        row_upper=form.row_upper[rows],
        col_lower=form.col_lower[columns],
        col_upper=form.col_upper[columns],
        cost=form.cost[columns],
        integer=np.asarray(form.integer)[columns],
        columns={},
        rows={},
    )


def _judged(stated: ProblemMatrix, x: F64 | None, y: F64 | None) -> dict[str, Any]:
    """What a solver's vectors are worth: value and violation by the formulation's checker, residuals, and bound.

    An approximate solution of a linear program is first made feasible, where its formulation can do so; the residuals
    are those of the vectors themselves.
    """
    form, data = stated.form, stated.data
    if x is None or not np.isfinite(x).all():
        return {}
    values = data._unfold(form.values(verify.whole(form, x)))
    with np.errstate(all="ignore"):
        known = _checked(stated, values)
        if not known["verified"] and not form.is_mip and states(data, "repair"):
            repaired = data.repair(values)
            known = known if repaired is None else _checked(stated, repaired)
    if form.is_mip:
        return known
    known |= {f"kkt_{name}": value for name, value in verify.kkt(form, x, y).items()}
    bound = -np.inf if y is None else verify.dual_bound(form, y)
    return known | {"bound": stated.flip * bound if np.isfinite(bound) else None}


def _checked(stated: ProblemMatrix, values: Mapping[str, F64]) -> dict[str, Any]:
    x = verify.pack(stated.form, values)
    violations = verify.residuals(stated.data, values)
    violations |= {} if x is None else verify.matrix_violations(stated.form, x)
    value = float(verify.objective(stated.data, values))
    return {
        "value": value,
        "verified": verify.violated(violations) is None and math.isfinite(value),
        "violation": float(np.nan_to_num(max(violations.values(), default=0.0), nan=np.inf)),
    }


def _incumbents(outcome: Outcome, flip: float) -> str:
    """Incumbents as ``seconds:value`` on the processor's clock, at most :data:`MOST_INCUMBENTS`."""
    trail = outcome.incumbents
    if not trail:
        return ""
    share = outcome.cpu_s / outcome.solve_s if outcome.cpu_s and outcome.solve_s else 1.0
    places = np.unique(np.linspace(0, len(trail) - 1, min(len(trail), MOST_INCUMBENTS)).astype(int)).tolist()
    return " ".join(f"{min(share, 1.0) * trail[at][0]:.4g}:{flip * trail[at][1]:.12g}" for at in places)


# solutions ------------------------------------------------------------------------------------------------------------


def keep_solution(folder: Path, stated: ProblemMatrix, x: F64, value: float | None) -> Path | None:
    """Write a solution unless the one in the folder is as good; the path if it was written."""
    path = folder / f"{stated.problem.name}.sol.gz"
    if value is None:
        return None
    if path.exists():
        head = gzip.decompress(path.read_bytes())[:200].decode("ascii", errors="replace")
        stored = re.match(r"=obj= (\S+)", head)
        if stored and stated.flip * value >= float(stored[1]) - 1e-9 * abs(value):
            return None
    folder.mkdir(parents=True, exist_ok=True)
    rewrite(path, packed_solution(stated, x))
    return path


def packed_solution(stated: ProblemMatrix, x: F64) -> bytes:
    """:func:`solution_text`, compressed."""
    return gzip.compress(solution_text(stated, x).encode("ascii"), mtime=0)


def solution_text(stated: ProblemMatrix, x: F64) -> str:
    """A solution of the exported file in the format of MIPLIB: the objective of the file, and the nonzero columns."""
    whole = verify.whole(stated.form, x)
    lines = [f"=obj= {stated.form.objective(whole):.17g}"]
    names = stated.column_names()
    lines += [f"{names[j]} {whole[j]:.17g}" for j in np.flatnonzero(whole).tolist()]
    return "\n".join(lines) + "\n"
