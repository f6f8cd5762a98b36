"""Comparison of folders of runs, the published ones among them: tables and figures.

All runs are compared under one limit of processor time: the smallest at which a run was stopped. Of repetitions the
median counts, of several tolerances the fastest that reached the accuracy. Runs with other seeds or orders of rows and
columns are compared only with each other (:func:`opticoll.analysis.benchmark.solver_metrics.sensitivity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from opticoll import package_code
from opticoll.analysis.benchmark import benchmark_set, comparison, solver_metrics
from opticoll.analysis.benchmark.comparison import Comparison
from opticoll.analysis.benchmark.comparison_plots import HERE
from opticoll.analysis.benchmark.runs import FIELDS, PUBLISHED, read_runs
from opticoll.analysis.rendering import Listing, Printed, frame_rows
from opticoll.errors import NoSolution
from opticoll.formulations import formulation
from opticoll.solvers.adapters.command_line import OTHER_OBJECTIVE
from opticoll.solvers.verify import relative_gap

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from opticoll.analysis.benchmark.runs import RunRow


#: A processor time of 0 counts as this step of the clock that timed some commands [s].
STEP_S = 0.01


@dataclass(frozen=True, repr=False)
class Compared(Printed):
    """Compared runs: the comparison, the common limit [s], sensitivity by class, the machines, and misstatements.

    ``misstated`` is the number of problems by contestant where its file states another objective than its values have,
    ``other_code`` that of runs in the folders that other code of opticoll made.
    """

    comparison: Comparison
    limit_s: float
    sensitivity: dict[str, pd.DataFrame]
    machines: pd.DataFrame
    misstated: dict[str, int]
    other_code: dict[str, int]

    _title = "runs of solvers"

    def lines(self) -> dict[str, str]:
        """What the times are, by name of the line."""
        means = f"shifted geometric means of processor seconds, shift {1000 * solver_metrics.SHIFT_S:g} ms"
        return {
            "limit": f"{self.limit_s:g} s of processor time of the solver, without building, compiling and starting",
            "means": f"{means}; no time counts ten limits",
            "SCIP": "solves linear programs without presolve, since it returns no duals with it",
        }

    def tables(self) -> list[Listing]:
        """A row per solver by class of problems, wrong answers, other seeds and orders, and the machines."""
        others = [
            Listing(f"{name} programs, other seeds and orders", list(frame.columns), frame_rows(frame))
            for name, frame in self.sensitivity.items()
        ]
        machines = Listing("machines", list(self.machines.columns), frame_rows(self.machines))
        return [*self.comparison.listings("{name} programs", "solver"), *others, machines]

    def remarks(self) -> list[str]:
        """What could not be compared, and solvers that state another objective than their values have."""
        each = self.comparison.each
        absent = each[each["verdict"] == "unavailable"].groupby("solver")["problem"].nunique()
        why = {str(solver): f"could not be tried on {count} problems" for solver, count in absent.items()}
        remarks = [f"{solver}: {text}; see `message` in its table" for solver, text in why.items()]
        stated = "states another objective than its values have ({} problems); see `message` in its table"
        remarks += [f"{solver}: {stated.format(count)}" for solver, count in self.misstated.items()]
        changed = "{} runs were made by other code of opticoll; `opticoll benchmark run` makes them again"
        return [*remarks, *(f"{solver}: {changed.format(count)}" for solver, count in self.other_code.items())]


def compare(
    folders: Sequence[Path] = (),
    *,
    names: Collection[str] | None = None,
    published: bool = True,
    accuracy: float = 1e-6,
    limit_s: float | None = None,
) -> Compared:
    """Compare the runs of folders, with those that are published on the same problems.

    Parameters
    ----------
    folders
        Folders that ``opticoll benchmark run`` wrote.
    names
        Problems; by default those of the folders, and without folders all.
    published
        Whether to add the published runs.
    accuracy
        Largest residual of a solved linear program.
    limit_s
        Common limit of processor time [s]; by default the smallest at which a run was stopped.

    Raises
    ------
    NoSolution
        If there are no runs of these problems, or a folder has no runs.
    """
    frames = [frame(_runs_in(folder), here=folder != PUBLISHED) for folder in dict.fromkeys(folders)]
    if names is None and frames:
        names = {str(name) for one in frames for name in one["problem"]}
    frames += [frame(read_runs(PUBLISHED))] if published and PUBLISHED not in folders else []
    rows = pd.concat([one for one in frames if len(one)] or [frame([])], ignore_index=True)
    rows = rows if names is None else rows[rows["problem"].isin(list(names))].reset_index(drop=True)
    if not (rows["termination"] != "unavailable").any():
        msg = "no runs of these problems; make them with `opticoll benchmark run NAME --solver S`"
        raise NoSolution(msg)
    limit = common_limit(rows) if limit_s is None else limit_s
    rows = limited(rows, limit)
    made = Comparison.of(rows[(rows["seed"] == 0) & (rows["order"] == 0)], accuracy)
    other = rows[rows["message"].str.contains(OTHER_OBJECTIVE, regex=False)]
    misstated = {str(name): part["problem"].nunique() for name, part in other.groupby("solver")}
    changed = rows[rows["solver"].str.endswith(HERE) & (rows["code"] != package_code.digest())]
    other_code = {str(name): len(part) for name, part in changed.groupby("solver")}
    return Compared(made, limit, _sensitivity(rows, accuracy), _machines(rows), misstated, other_code)


def _runs_in(folder: Path) -> list[RunRow]:
    runs = read_runs(folder)
    if not runs:
        msg = f"no runs in {folder}; make them with `opticoll benchmark run NAME --solver S --out {folder}`"
        raise NoSolution(msg)
    return runs


def frame(runs: Sequence[RunRow], *, here: bool = False) -> pd.DataFrame:
    """Runs as :func:`opticoll.analysis.benchmark.solver_metrics.verdicts` takes them; ``here`` marks the user's own."""
    table = pd.DataFrame([[getattr(row, name) for name in FIELDS] for row in runs], columns=list(FIELDS))
    numbers = ["value", "bound", "violation", "kkt_primal", "kkt_dual", "kkt_gap", "cpu_s", "wall_s", "calibration_s"]
    table[numbers] = table[numbers].astype(float)
    known = {problem.name: problem for problem in benchmark_set.problems()}
    table = table[table["problem"].isin(list(known))].reset_index(drop=True)
    models = [formulation(known[name].formulation) for name in table["problem"]]
    sizes = {name: best.size for name, best in benchmark_set.best_known().items()}
    table["solver"] = (table["solver"] + " " + table["version"]).str.strip() + (HERE if here else "")
    table["sense"] = [model.sense for model in models]
    table["linear"] = [model.problem == "LP" for model in models]
    pairs = zip(table["value"], table["bound"], table["sense"], strict=True)
    table["gap"] = [None if np.isnan(v) or np.isnan(b) else relative_gap(v, b, sense) for v, b, sense in pairs]
    table["violation"] = table["violation"].fillna(0.0)
    trails: list[Any] = [
        [tuple(map(float, pair.split(":"))) for pair in text.split()] if text else None for text in table["incumbents"]
    ]
    table["incumbents"] = trails
    table["seconds"] = table["cpu_s"].mask(table["cpu_s"] == 0.0, STEP_S)
    table["limit_s"] = table["cpu_limit_s"]
    for part in benchmark_set.SIZES:
        table[part] = [sizes.get(name, {}).get(part) for name in table["problem"]]
    table[["build_s", "compile_s"]] = np.nan
    return table


def common_limit(rows: pd.DataFrame) -> float:
    """The smallest limit at which a run was stopped; without one, the largest that was asked for."""
    stopped = rows.loc[rows["termination"] == "time-limit", "cpu_limit_s"]
    return float(stopped.min() if len(stopped) else rows["cpu_limit_s"].max())


def limited(rows: pd.DataFrame, limit_s: float) -> pd.DataFrame:
    """The runs as they are under a smaller limit: slower ones count as stopped, with their incumbents until then."""
    late = rows["seconds"] > 1.05 * limit_s
    result = rows.assign(limit_s=limit_s)
    result.loc[late & (result["termination"] != "unavailable"), "termination"] = "time-limit"
    return result


def _sensitivity(rows: pd.DataFrame, accuracy: float) -> dict[str, pd.DataFrame]:
    verdicts = solver_metrics.verdicts(rows, benchmark_set.best_known(), accuracy)
    variants = rows["seed"].astype(str) + "/" + rows["order"].astype(str)
    result = {}
    for name, linear in (("linear", True), ("integer", False)):
        part = verdicts["linear"].astype(bool) == linear
        made = solver_metrics.sensitivity(verdicts[part], variants[part])
        if len(made):
            result[name] = made
    return result


def _machines(rows: pd.DataFrame) -> pd.DataFrame:
    """Machines of the runs: how many, when, how loaded, and the time of the program that calibrates them."""
    groups = rows.groupby(["machine", rows["solver"].str.endswith(HERE)], sort=True)
    return pd.DataFrame(
        [
            {
                "machine": name,
                "runs": len(part),
                "here": bool(here),
                "calibration_s": part["calibration_s"].dropna().median(),
                "load": part["load"].dropna().median(),
                "first": part["finished"].min()[:10],
                "last": part["finished"].max()[:10],
            }
            for (name, here), part in groups
        ]
    )


def write(made: Compared, out: Path) -> Path:
    """Write the comparison into a folder, see :func:`opticoll.analysis.benchmark.comparison.write`."""
    tables = {f"solvers-sensitivity-{name}": table for name, table in made.sensitivity.items()}
    return comparison.write(made.comparison, out, {"solvers-machines": made.machines, **tables})
