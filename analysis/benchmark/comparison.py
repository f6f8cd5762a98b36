"""Runs of solvers, compared: verdicts, profiles, and the tables and figures of a page on solvers.

:mod:`opticoll.analysis.benchmark.solver_metrics` and the page define each number.
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
from opticoll.analysis.report.page_tables import Column, table

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Largest recomputed KKT residual of a linear program that counts as solved.
ACCURACY = 1e-6
_CLASSES = {"linear": "linear programs", "integer": "integer programs"}
_SUMMARY = (
    Column("solver", "solver"),
    Column("problems", "problems run", "count"),
    Column("solved", "solved", "count"),
    Column("inexact", "inexact", "count"),
    Column("limit", "stopped by the time limit", "count"),
    Column("memory", "out of memory", "count"),
    Column("failed", "failed", "count"),
    Column("wrong", "wrong answers", "count"),
    Column("runs", "runs", "count"),
    Column("mean_penalised_s", "mean, penalised [s]", "seconds"),
    Column("compared", "over", "count"),
    Column("mean_common_s", "mean, commonly solved [s]", "seconds"),
    Column("common", "commonly solved", "count"),
    Column("mean_solved_s", "mean, solved by it [s]", "seconds"),
    Column("median_integral_s", "median primal integral [s]", "seconds"),
    Column("spread", "slowest ÷ fastest repetition", "ratio"),
    Column("median_gap", "median gap to the best", "gap"),
)
#: Columns of the table on the terminal.
SHOWN = tuple(one.field for one in _SUMMARY if one.field not in ("mean_solved_s", "median_integral_s"))
_PROBLEMS = (
    Column("problem", "problem"),
    Column("grade", "grade"),
    Column("variables", "variables", "count"),
    Column("constraints", "constraints", "count"),
    Column("nonzeros", "nonzeros", "count"),
    Column("integers", "integers", "count"),
    Column("build_s", "build, median [s]", "seconds"),
    Column("compile_s", "compile, median [s]", "seconds"),
    Column("fastest_s", "fastest [s]", "seconds"),
    Column("fastest", "fastest solver"),
    Column("value", "best known value", "number"),
    Column("proof", "proof", "proof"),
)
_GAPS = (
    Column("problem", "problem"),
    Column("solver", "solver"),
    Column("limit_s", "limit [s]", "seconds"),
    Column("value", "value", "number"),
    Column("best", "best known", "number"),
    Column("best_gap", "gap to the best known", "gap"),
    Column("certified_gap", "gap to our bound", "gap"),
)
_WRONG = (
    Column("problem", "problem"),
    Column("solver", "solver"),
    Column("reason", "reason"),
    Column("tol", "requested tolerance", "gap"),
    Column("value", "value", "number"),
    Column("best", "best known", "number"),
    Column("error", "off by", "gap"),
    Column("allowed", "allowed", "gap"),
    Column("residual", "KKT residual", "gap"),
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
    gaps_over_time
        :func:`~opticoll.analysis.benchmark.solver_metrics.gap_over_time` of the integer programs.
    accuracy
        Largest KKT residual of a linear program that counts as solved.
    """

    runs: pd.DataFrame
    each: pd.DataFrame
    summaries: dict[str, pd.DataFrame]
    profiles: dict[str, pd.DataFrame]
    problems: pd.DataFrame
    solvers: tuple[str, ...]
    gaps_over_time: pd.DataFrame
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
            solver_metrics.gap_over_time(runs, judged),
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
            "solvers-gaps": solver_metrics.gaps_at_limit(self.each),
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
    """Draw performance profiles by class, and the gap over time of integer programs."""
    made, solvers = [], comparison.solvers
    for name, steps in comparison.profiles.items():
        part = comparison.each[comparison.each["linear"].astype(bool) == (name == "linear")]
        count = solver_metrics.compared(part)["problem"].nunique()
        made.append(
            ReportFigure.of(
                f"solvers-profile-{name}",
                f"Performance profiles, {_CLASSES[name]}",
                "Horizontal axis: time ÷ time of the fastest solver, linear on the left and logarithmic on the right. "
                f"Vertical axis: share of the {counted(count, 'problem')} compared that are solved within that factor. "
                "Higher is better; a curve ends at the share solved.",
                comparison_plots.profiles(steps, solvers),
            )
        )
    if len(comparison.gaps_over_time):
        made.append(
            ReportFigure.of(
                "solvers-gap-over-time",
                "Gap over time, integer programs",
                "Mean gap of the incumbent to the best known value over the problems compared, by its time in seconds; "
                "1 before the first incumbent. Lower left is better.",
                comparison_plots.gaps_over_time(comparison.gaps_over_time, solvers),
                comparison.gaps_over_time,
            )
        )
    return made


def content(comparison: Comparison, drawn: Mapping[str, ReportFigure]) -> dict[str, object]:
    """What the page shows: the constants that define its numbers, and its tables and figures by class."""
    classes = []
    for name, words in _CLASSES.items():
        if name in comparison.summaries:
            names = [f"solvers-profile-{name}", *(["solvers-gap-over-time"] if name == "integer" else [])]
            classes.append(
                {
                    "title": words.capitalize(),
                    "summary": table(comparison.summaries[name], _SUMMARY, f"Solvers on {words}"),
                    "figures": [drawn[figure] for figure in names if figure in drawn],
                }
            )
    return {
        "shift_s": solver_metrics.SHIFT_S,
        "penalty": solver_metrics.PENALTY,
        "accuracy": comparison.accuracy,
        "wrong_by": solver_metrics.WRONG,
        "classes": classes,
        "wrong": table(solver_metrics.wrong_answers(comparison.runs), _WRONG, "Answers that our check refutes"),
        "gaps": table(solver_metrics.gaps_at_limit(comparison.each), _GAPS, "Runs stopped by the time limit"),
        "problems": table(comparison.problems, _PROBLEMS, "Problems of the benchmark"),
    }


def write_page(comparison: Comparison, out: Path, more: Mapping[str, pd.DataFrame], **words: object) -> Path:
    """Write a comparison as a page with its figures (SVG and PNG) and tables (CSV), and with ``more`` tables.

    ``words`` are ``heading`` and ``title`` of the page, ``clock``, a sentence that explains what the times are,
    ``rerun``, the command that runs the solvers again, and ``missing``, the number of cells without a run.

    Returns
    -------
    Path
        ``out/index.html``.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    """
    from opticoll.analysis.report import page

    with page.writing(out, "compare", "choose another --out"):
        drawn = figures(comparison)
        page.write_files(Path(out), drawn, {**comparison.tables, **more})
        shown = content(comparison, {one.name: one for one in drawn})
        return page.write_page(Path(out), "comparison.html.j2", {**shown, **words})
