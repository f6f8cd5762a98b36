"""Published results of the solver benchmark: one table per solver version, and comparisons with your own runs.

A table is ``analysis/benchmark/published/SOLVER-VERSION.csv``, a row for every run: a cold start of the solver in a new
process. It has all data for the verdicts (:mod:`opticoll.analysis.benchmark.solver_metrics`), which follow from
the table and the best known values: value, bound and residuals as we recomputed them, time, limit and incumbents.
The compared times are processor seconds, which other work on the machine hardly affects; limits are of wall-clock
time.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from opticoll.analysis.benchmark import benchmark_set, solver_metrics
from opticoll.errors import BadFile, BadInput, NoSolution
from opticoll.solvers.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opticoll.analysis.benchmark.benchmark_set import Problem
    from opticoll.analysis.benchmark.solver_comparison import Comparison
    from opticoll.analysis.store import Store

FOLDER = Path(__file__).resolve().parent / "published"
#: Columns that are copied from the view ``latest``, numbers first.
NUMBERS = (
    "requested_tol",
    "requested_time_limit_s",
    "requested_threads",
    "requested_repetition",
    "objective",
    "bound",
    "gap",
    "kkt_primal",
    "kkt_dual",
    "kkt_gap",
    "time_build_s",
    "time_compile_s",
    "time_solver_s",
    "time_solver_cpu_s",
    "size_variables",
    "size_constraints",
    "size_nonzeros",
    "size_integers",
)
TEXTS = ("formulation", "method", "solver_version", "sense", "termination", "infeasible_by", "finished")
FIELDS = ("problem_name", *TEXTS, "verified", "linear", *NUMBERS, "violation", "incumbents")
#: Maximum number of published incumbents per run, evenly spread and including the last.
MOST_INCUMBENTS = 50


def rows_of(runs: pd.DataFrame) -> list[dict[str, str]]:
    """Rows of the published tables from runs that :func:`opticoll.analysis.benchmark.benchmark_set.select` returns."""
    made = []
    for row in runs.to_dict("records"):
        violations = json.loads(row["violations"]) if isinstance(row["violations"], str) else {}
        worst = [np.inf if value is None else float(value) for value in violations.values()]
        trail = [] if row["incumbents"] is None or np.ndim(row["incumbents"]) == 0 else list(row["incumbents"])
        places = np.linspace(0, len(trail) - 1, min(len(trail), MOST_INCUMBENTS)).astype(int)
        kept: list[int] = np.unique(places).tolist() if trail else []
        entry = {name: _text(row[name]) for name in ("problem_name", *TEXTS)}
        entry |= {name: _text(row[name]) for name in NUMBERS}
        entry |= {
            "verified": "yes" if row["verified"] is True or row["verified"] is np.True_ else "no",
            "linear": "yes" if row["linear"] else "no",
            "violation": _text(max(worst)) if worst else "",
            "incumbents": " ".join(f"{trail[place][0]:.4g}:{trail[place][1]:.12g}" for place in kept),
        }
        made.append({name: entry[name] for name in FIELDS})
    return made


def _text(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def write_tables(runs: pd.DataFrame, folder: Path = FOLDER) -> list[Path]:
    """Write runs into the table of their solver's version; a run of the same cell and repetition is replaced.

    Returns
    -------
    list
        The files written.
    """
    tables: dict[Path, dict[tuple[str, ...], dict[str, str]]] = {}
    rows = rows_of(runs)
    known = {(row["method"], row["solver_version"]) for row in rows}
    known |= {(row["method"], row["solver_version"]) for path in folder.glob("*.csv") for row in _read(path)}
    for row in rows:
        row["solver_version"] = _full_version(row["method"], row["solver_version"], known)
        version = re.sub(r"[^A-Za-z0-9.+]+", "-", row["solver_version"] or "unknown").strip("-")
        path = folder / f"{row['method']}-{version}.csv"
        if path not in tables:
            tables[path] = {_cell(old): old for old in _read(path)} if path.exists() else {}
        tables[path][_cell(row)] = row
    folder.mkdir(parents=True, exist_ok=True)
    for path, table in tables.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table[cell] for cell in sorted(table))
        rewrite(path, text.getvalue())
    return sorted(tables)


def _full_version(method: str, version: str, known: set[tuple[str, str]]) -> str:
    """The version of a solver with its package; a run that was killed states only the package's version."""
    whole = [other for name, other in known if name == method and other.endswith(f" {version})")]
    return whole[0] if version and len(whole) == 1 else version


def _cell(row: dict[str, str]) -> tuple[str, ...]:
    return row["problem_name"], row["requested_tol"], row["requested_time_limit_s"], row["requested_repetition"]


def _read(path: Path) -> list[dict[str, str]]:
    reader = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    if tuple(reader.fieldnames or ()) != FIELDS:
        msg = f"{path} is not a table of published results; write it again with `opticoll benchmark publish`"
        raise BadFile(msg)
    return list(reader)


def published(folder: Path = FOLDER, names: Iterable[str] | None = None) -> pd.DataFrame:
    """The published runs, as :func:`opticoll.analysis.benchmark.solver_metrics.verdicts` takes them.

    Parameters
    ----------
    folder, names
        The tables, and names of problems; by default all.

    Returns
    -------
    DataFrame
        A row for every run; ``contestant`` is the solver and its version.

    Raises
    ------
    BadFile
        If a file is not a table of results.
    """
    frame = pd.DataFrame([row for path in sorted(folder.glob("*.csv")) for row in _read(path)], columns=list(FIELDS))
    wanted = {one.name for one in benchmark_set.problems()} if names is None else set(names)
    return _restored(frame[frame["problem_name"].isin(list(wanted))].reset_index(drop=True))


def _restored(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of the published tables as those of the view ``latest``."""
    made = frame.astype(object).where(frame != "", None)
    for name in (*NUMBERS, "violation"):
        made[name] = made[name].astype(float)
    for name in ("verified", "linear"):
        made[name] = (frame[name] == "yes").to_numpy()
    made["violations"] = [None if np.isnan(v) else json.dumps({"worst": v}) for v in made["violation"]]
    trails: list[Any] = [
        [tuple(map(float, pair.split(":"))) for pair in text.split()] if isinstance(text, str) else None
        for text in made["incumbents"]
    ]
    made["incumbents"] = trails
    whole = made["solver_version"].fillna("").astype(str)
    short = whole.str.split(" (", n=1, regex=False).str[0]  # without the version of the package
    versions = whole.groupby([made["method"].astype(str), short]).transform("nunique")
    made["contestant"] = (made["method"].astype(str) + " " + short.where(versions == 1, whole)).str.strip()
    made["answered_s"] = made["time_solver_s"]
    made["time_solver_s"] = made["time_solver_cpu_s"].fillna(made["time_solver_s"])
    return made


def compared(rows: pd.DataFrame, accuracy: float = 1e-6) -> Comparison:
    """Compare runs: of repetitions the median, of several tolerances the fastest that reached the accuracy.

    Raises
    ------
    NoSolution
        If there are no runs.
    """
    from opticoll.analysis.benchmark import solver_comparison

    if not (rows["termination"] != "unavailable").any():
        msg = "no published results of these problems; run them with `opticoll benchmark run NAME`"
        raise NoSolution(msg)
    return solver_comparison.compared(rows, benchmark_set.best_known(), accuracy, combined=_one_each)


def _one_each(table: pd.DataFrame) -> pd.DataFrame:
    """One row per problem and solver: the median of repetitions, then the best of the tolerances."""
    parts = [solver_metrics.repeated_runs(part) for _, part in table.groupby("tol", sort=True)]
    return solver_metrics.one_run_each(pd.concat(parts, ignore_index=True)) if parts else table


def spread(comparison: Comparison) -> pd.DataFrame:
    """Problems run repeatedly by each solver, and the median of slowest over fastest repetition."""
    each = comparison.each[(comparison.each["runs"] > 1) & (comparison.each["verdict"] == "solved")]
    ratios = each["seconds_max"].clip(lower=1e-3) / each["seconds_min"].clip(lower=1e-3)
    table = ratios.groupby(each["solver"]).agg(["size", "median", "max"]).reset_index()
    return table.rename(columns={"size": "repeated", "median": "spread", "max": "spread_max"})


def write_page(comparison: Comparison, out: Path, title: str) -> Path:
    """Write a comparison as a page with figures (SVG and PNG) and tables (CSV).

    Returns
    -------
    Path
        ``out/index.html``.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    """
    from opticoll.analysis.benchmark import solver_comparison
    from opticoll.analysis.report import page

    drawn = solver_comparison.figures(comparison)
    clock = "Times are processor seconds of the solver inside its worker; limits are of wall-clock time."
    content = solver_comparison.section(comparison, {one.name: one for one in drawn}, None, clock)
    tables = solver_comparison.tables(comparison) | {"solvers-spread": spread(comparison)}
    return page.build_comparison(
        out,
        drawn,
        tables,
        study=benchmark_set.STUDY,
        title=title,
        missing=0,
        cells=len(comparison.runs),
        solvers=content,
    )


class Subset(NamedTuple):
    """Finished runs with their problems' names, as for :func:`write_tables`, out of ``cells`` requested runs."""

    runs: pd.DataFrame
    cells: int
    interrupted: bool


def run_problems(
    chosen: Sequence[Problem],
    solvers: Sequence[str],
    store: Store,
    *,
    jobs: int | None = 1,
    repetitions: int = 1,
    tols: Sequence[float] = (),
) -> Subset:
    """Run solvers on problems, under the limits of the benchmark; runs in the store are not repeated.

    Parameters
    ----------
    chosen, solvers
        Problems, and names of solver adapters or of methods of the formulations.
    store
        Where the runs are recorded.
    jobs, repetitions
        Concurrent runs, and cold starts of each cell.
    tols
        Requested tolerances; by default those of the problem.

    Returns
    -------
    Subset
        The finished runs; also returned after Ctrl-C.

    Raises
    ------
    BadInput
        If no solver takes any of the problems.
    """
    from opticoll.analysis.report import findings
    from opticoll.analysis.study.running import run_with_progress
    from opticoll.analysis.study.study_file import study_of
    from opticoll.formulations import formulation
    from opticoll.solvers.adapters import adapter
    from opticoll.solvers.task import Task

    tasks, names = [], []
    for one in chosen:
        integer = formulation(one.formulation).problem == "MILP"
        for solver in solvers:
            able = adapter(solver).capabilities
            if not (able.mip if integer else able.lp):
                continue
            for tol in tols or one.tols:
                for repetition in range(repetitions):
                    tasks.append(
                        Task(
                            one.formulation,
                            one.instance,
                            solver,
                            settings=dict(one.settings),
                            tol=tol,
                            threads=one.threads,
                            time_limit_s=one.limit_s,
                            memory_limit_gib=one.memory_gib,
                            repetition=repetition,
                        )
                    )
                    names.append(one.name)
    if not tasks:
        msg = f"run: {', '.join(solvers)} take none of these problems; `opticoll list solvers` lists what each takes"
        raise BadInput(msg)
    study = study_of(benchmark_set.STUDY, tasks)
    summary = run_with_progress(study, store, jobs, None)
    keys = {cell.key for cell in study.cells}
    results = findings.best_runs(store)
    runs = benchmark_set.select(results[results["key"].isin(keys)], tols=tuple(tols))
    return Subset(runs, len(keys), summary.interrupted)


def beside_published(runs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Finished runs, and the published ones of the named problems."""
    mine = _restored(pd.DataFrame(rows_of(runs), columns=list(FIELDS)))
    mine["contestant"] += " (here)"
    return pd.concat([mine, published(names=names)], ignore_index=True) if names else mine
