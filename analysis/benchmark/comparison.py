"""Runs of solvers, compared: verdicts, profiles, tables and figures.

:mod:`opticoll.analysis.benchmark.solver_metrics` defines each number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from opticoll.analysis.benchmark import benchmark_set, comparison_plots, solver_metrics
from opticoll.analysis.plots.style import counted
from opticoll.analysis.rendering import Listing, frame_rows
from opticoll.analysis.report.drawings import ReportFigure

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Largest recomputed KKT residual of a linear program that counts as solved.
ACCURACY = 1e-6
_CLASSES = {"linear": "linear programs", "integer": "integer programs"}
#: Columns of the table on the terminal.
SHOWN = (
    "solver",
    "problems",
    "solved",
    "inexact",
    "limit",
    "memory",
    "failed",
    "wrong",
    "runs",
    "mean_penalised_s",
    "compared",
    "mean_common_s",
    "common",
    "median_integral_s",
    "spread",
    "median_gap",
)


@dataclass(frozen=True)
class Comparison:
    """Compared runs.

    Parameters
    ----------
    runs
        All runs with their verdicts at the accuracy.
    each
        One row per problem and solver, :func:`~opticoll.analysis.benchmark.solver_metrics.one_each`.
    summaries, profiles
        By class: :func:`~opticoll.analysis.benchmark.solver_metrics.summary`,
        :func:`~opticoll.analysis.benchmark.solver_metrics.performance_profile`.
    problems
        One row per problem: sizes, build and compile times, the fastest solver, best known value.
    solvers
        Solvers that ran, in the order of their colours.
    accuracy
        Largest KKT residual of a linear program that counts as solved.
    """

    runs: pd.DataFrame
    each: pd.DataFrame
    summaries: dict[str, pd.DataFrame]
    profiles: dict[str, pd.DataFrame]
    problems: pd.DataFrame
    solvers: tuple[str, ...]
    accuracy: float

    @classmethod
    def of(cls, runs: pd.DataFrame, accuracy: float = ACCURACY) -> Comparison:
        """Compare runs, as for :func:`~opticoll.analysis.benchmark.solver_metrics.verdicts`, with sizes and times."""
        best = benchmark_set.best_known()
        judged = solver_metrics.verdicts(runs, best, accuracy)
        each = solver_metrics.one_each(judged)
        parts = {"linear": each[each["linear"].astype(bool)], "integer": each[~each["linear"].astype(bool)]}
        parts = {name: part for name, part in parts.items() if (part["verdict"] != "unavailable").any()}
        return cls(
            judged,
            each,
            {name: solver_metrics.summary(part) for name, part in parts.items()},
            {name: steps for name, part in parts.items() if len(steps := _profile(part))},
            _problems(runs, each, best),
            tuple(sorted(set(judged.loc[judged["verdict"] != "unavailable", "solver"]))),
            accuracy,
        )

    def listings(self, title: str, solver: str) -> list[Listing]:
        """Solvers by class of problems, without columns that have no entries, then wrong answers.

        The title holds ``{name}``; ``solver`` is what solvers are called.
        """
        result = []
        for name, frame in self.summaries.items():
            rows = frame_rows(frame.rename(columns={"solver": solver}))
            names = [solver if one == "solver" else one for one in SHOWN]
            shown = [column for column in names if any(row[column] not in (None, 0) for row in rows)]
            result.append(Listing(title.format(name=name), shown, rows))
        wrong = solver_metrics.wrong_answers(self.runs).rename(columns={"solver": solver})
        return [*result, *([Listing("wrong answers", list(wrong.columns), frame_rows(wrong))] if len(wrong) else [])]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Data of every figure and table by file name, one point of a curve per row."""
        frames = {
            "solvers-runs": self.runs,
            "solvers-problems": self.problems,
            "solvers-wrong": solver_metrics.wrong_answers(self.runs),
        }
        frames |= {f"solvers-profile-{name}": frame for name, frame in self.profiles.items()}
        return frames | {f"solvers-summary-{name}": frame for name, frame in self.summaries.items()}


def _profile(part: pd.DataFrame) -> pd.DataFrame:
    """The performance profile; empty if it had one solver of several, which is compared with none."""
    steps = solver_metrics.performance_profile(part)
    return steps.head(0) if steps["solver"].nunique() < min(2, part["solver"].nunique()) else steps


def _problems(rows: pd.DataFrame, each: pd.DataFrame, best: Mapping[str, benchmark_set.BestKnown]) -> pd.DataFrame:
    """Problems with size, median times, and their fastest solver; NaN where nothing is known."""
    groups = rows.groupby("problem", sort=False)
    solved = each[each["verdict"] == "solved"].sort_values("seconds", kind="stable")
    fastest = solved.drop_duplicates("problem").set_index("problem")
    table = groups[list(benchmark_set.SIZES)].max()
    for name in ("build_s", "compile_s"):
        table[name] = groups[name].median()
    table["fastest_s"], table["fastest"] = fastest["seconds"], fastest["solver"]
    known = [best.get(str(name)) for name in table.index]
    table.insert(0, "grade", [None if one is None else one.grade for one in known])
    table["value"] = [None if one is None else one.value for one in known]
    table["proof"] = ["none" if one is None else one.proof for one in known]
    return table.reset_index()


def figures(comparison: Comparison) -> list[ReportFigure]:
    """Draw performance profiles by class."""
    made, solvers = [], comparison.solvers
    for name, steps in comparison.profiles.items():
        part = comparison.each[comparison.each["linear"].astype(bool) == (name == "linear")]
        count = solver_metrics.compared(part)["problem"].nunique()
        made.append(
            ReportFigure(
                f"solvers-profile-{name}",
                f"Performance profiles, {_CLASSES[name]}",
                "Horizontal axis: time ÷ time of the fastest solver, linear on the left and logarithmic on the right. "
                f"Vertical axis: share of the {counted(count, 'problem')} compared that are solved within that factor. "
                "Higher is better; a curve ends at the share solved.",
                comparison_plots.profiles(steps, solvers),
            )
        )
    return made


def write(comparison: Comparison, out: Path, more: Mapping[str, pd.DataFrame]) -> Path:
    """Write the figures of a comparison (SVG) and its tables (CSV), with ``more`` tables; return the folder.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    """
    from opticoll.analysis.report import page

    with page.writing(out, "compare", "choose another --out"):
        page.write_files(Path(out), figures(comparison), {**comparison.tables, **more})
    return Path(out)
