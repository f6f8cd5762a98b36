"""Runs of solvers, compared: verdicts, profiles, and the tables and figures of a page on solvers.

:mod:`opticoll.analysis.benchmark.solver_metrics` and the page define each number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from opticoll.analysis.benchmark import benchmark_set, comparison_plots, solver_metrics
from opticoll.analysis.report.drawings import ReportFigure
from opticoll.analysis.report.page_tables import Column, PageTable, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


#: Largest recomputed KKT residual of a linear program that counts as solved.
ACCURACY = 1e-6
_CLASSES = (("linear", "linear programs"), ("integer", "integer programs"))
_SUMMARY = (
    Column("solver", "solver"),
    Column("problems", "problems run", "count"),
    Column("solved", "solved", "count"),
    Column("inexact", "inexact", "count"),
    Column("limit", "stopped by the time limit", "count"),
    Column("memory", "out of memory", "count"),
    Column("failed", "failed", "count"),
    Column("wrong", "wrong answers", "count"),
    Column("mean_penalised_s", "mean, penalised [s]", "seconds"),
    Column("mean_common_s", "mean, commonly solved [s]", "seconds"),
    Column("common", "commonly solved", "count"),
    Column("mean_solved_s", "mean, solved by it [s]", "seconds"),
    Column("median_integral_s", "median primal integral [s]", "seconds"),
)
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
_BY_ACCURACY = (*_SUMMARY[:3], *_SUMMARY[7:10])
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
        All runs with their verdicts at :data:`ACCURACY`, and ``seconds_run``: time of the run, solved or not.
    each
        One run per problem and solver.
    summaries, profiles
        By class: :func:`~opticoll.analysis.benchmark.solver_metrics.summary`,
        :func:`~opticoll.analysis.benchmark.solver_metrics.performance_profile`. Where some solvers could not try
        every problem, ``CLASS-shared`` compares all solvers over the problems that all of them ran on.
    accuracy
        :func:`~opticoll.analysis.benchmark.solver_metrics.by_accuracy` of the linear programs.
    problems
        One row per problem: sizes, build and compile times, the fastest solver, best known value.
    solvers
        Solvers that ran, in the order of their colours.
    gaps_over_time
        :func:`~opticoll.analysis.benchmark.solver_metrics.gap_over_time` of the integer programs.
    accuracy_asked
        Largest KKT residual of a linear program that counts as solved.
    """

    runs: pd.DataFrame
    each: pd.DataFrame
    summaries: dict[str, pd.DataFrame]
    profiles: dict[str, pd.DataFrame]
    accuracy: pd.DataFrame
    problems: pd.DataFrame
    solvers: tuple[str, ...]
    gaps_over_time: pd.DataFrame
    accuracy_asked: float = ACCURACY


def compared(
    rows: pd.DataFrame,
    best: Mapping[str, benchmark_set.BestKnown],
    accuracy: float = ACCURACY,
    combined: Callable[[pd.DataFrame], pd.DataFrame] = solver_metrics.one_run_each,
) -> Comparison:
    """Compare runs.

    Parameters
    ----------
    rows, best, accuracy
        As for :func:`opticoll.analysis.benchmark.solver_metrics.verdicts`.
    combined
        Combines all verdicts into one row per problem and solver.
    """
    runs = solver_metrics.verdicts(rows, best, accuracy)
    runs["seconds_run"] = rows["time_solver_s"].to_numpy(dtype=float)
    each = combined(runs)
    parts = {"linear": each[each["linear"].astype(bool)], "integer": each[~each["linear"].astype(bool)]}
    parts = {name: part for name, part in parts.items() if (part["verdict"] != "unavailable").any()}
    linear = rows[rows["linear"].astype(bool)]
    shared = {f"{name}-shared": solver_metrics.run_by_all(part) for name, part in parts.items() if _incomplete(part)}
    profiled = parts | {name: part for name, part in shared.items() if not part.empty}
    return Comparison(
        runs,
        each,
        {name: solver_metrics.summary(part) for name, part in parts.items()},
        {name: steps for name, part in profiled.items() if len(steps := _profile(part))},
        solver_metrics.by_accuracy(linear, best, combined=combined) if "linear" in parts else pd.DataFrame(),
        _problems(rows, each, best),
        tuple(sorted(set(runs.loc[runs["verdict"] != "unavailable", "solver"]))),
        solver_metrics.gap_over_time(rows, runs),
        accuracy,
    )


def _profile(part: pd.DataFrame) -> pd.DataFrame:
    """The performance profile; empty if it had one solver of several, which is compared with none."""
    steps = solver_metrics.performance_profile(part)
    return steps.head(0) if steps["solver"].nunique() < min(2, part["solver"].nunique()) else steps


def _incomplete(part: pd.DataFrame) -> list[str]:
    """Solvers that ran on some problems, but not on all."""
    ran = set(part.loc[part["verdict"] != "unavailable", "solver"])
    return sorted(ran - set(solver_metrics.attempted_all(part)))


def _problems(rows: pd.DataFrame, each: pd.DataFrame, best: Mapping[str, benchmark_set.BestKnown]) -> pd.DataFrame:
    made = []
    for name, runs in rows.groupby("problem_name", sort=False):
        solved = each[(each["problem"] == name) & (each["verdict"] == "solved")]
        known = best.get(str(name))
        first = None if solved.empty else solved.sort_values("seconds", kind="stable").iloc[0]
        sizes = {part: runs[f"size_{part}"].max() for part in benchmark_set.SIZES}
        made.append(
            {
                "problem": name,
                "grade": None if known is None else known.grade,
                **sizes,
                "build_s": runs["time_build_s"].dropna().median(),
                "compile_s": runs["time_compile_s"].dropna().median(),
                "fastest_s": None if first is None else first["seconds"],
                "fastest": None if first is None else first["solver"],
                "value": None if known is None else known.value,
                "proof": "none" if known is None else known.proof,
            }
        )
    return pd.DataFrame(made)


def figures(comparison: Comparison) -> list[ReportFigure]:
    """Draw profiles and times by class, and the accuracy of linear programs."""
    made = []
    for name, words in _CLASSES:
        if name not in comparison.summaries:
            continue
        part = comparison.each[comparison.each["linear"].astype(bool) == (name == "linear")]
        count = part["problem"].nunique()
        absent = _incomplete(part)
        note = f" Not drawn, since they could not try every problem: {', '.join(absent)}." if absent else ""
        if name in comparison.profiles:
            made.append(
                ReportFigure.of(
                    f"solvers-profile-{name}",
                    f"Performance profiles, {words}",
                    "Horizontal axis: time ÷ time of the fastest solver, linear on the left and logarithmic on the "
                    f"right. Vertical axis: share of all {count} problems solved within that factor. Higher is better; "
                    f"a curve ends at the share solved.{note}",
                    comparison_plots.profiles(comparison.profiles[name], comparison.solvers),
                )
            )
        if f"{name}-shared" in comparison.profiles:
            shared = solver_metrics.run_by_all(part)["problem"].nunique()
            made.append(
                ReportFigure.of(
                    f"solvers-profile-{name}-shared",
                    f"Performance profiles where all solvers ran, {words}",
                    f"The same axes, over the {shared} problems that every solver could try.",
                    comparison_plots.profiles(comparison.profiles[f"{name}-shared"], comparison.solvers),
                )
            )
        made.append(
            ReportFigure.of(
                f"solvers-times-{name}",
                f"Time of every solver on every problem, {words}",
                f"Horizontal axis: solver time in seconds. One row for each of {count} problems, fastest solved "
                "first. Marks on the right are runs without a time; bars span the repetitions of a run.",
                comparison_plots.times_by_problem(part, comparison.solvers),
            )
        )
    if len(comparison.gaps_over_time):
        made.append(
            ReportFigure.of(
                "solvers-gap-over-time",
                "Gap over time, integer programs",
                "Mean gap of the incumbent to the best known value over the problems that every solver ran on, by its "
                "time in seconds; 1 before the first incumbent. Lower left is better.",
                comparison_plots.gaps_over_time(comparison.gaps_over_time, comparison.solvers),
                comparison.gaps_over_time,
            )
        )
    linear = comparison.runs[comparison.runs["linear"].astype(bool)]
    if linear["residual"].notna().any():
        made.append(
            ReportFigure.of(
                "solvers-accuracy",
                "Accuracy by time, linear programs",
                f"Worst recomputed KKT residual by solver time in seconds, {int(linear['residual'].notna().sum())} "
                "runs to several tolerances; lower left is better. Residuals below 1e-16 are drawn at 1e-16.",
                comparison_plots.accuracy_over_time(linear, comparison.solvers),
            )
        )
    return made


def tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Data of every figure and table by file name, one point of a curve per row."""
    frames = {
        "solvers-runs": comparison.runs,
        "solvers-accuracy": comparison.accuracy,
        "solvers-problems": comparison.problems,
        "solvers-gaps": solver_metrics.gaps_at_limit(comparison.each),
    }
    frames |= {f"solvers-profile-{name}": frame for name, frame in comparison.profiles.items()}
    return frames | {f"solvers-summary-{name}": frame for name, frame in comparison.summaries.items()}


class ProblemClass(NamedTuple):
    """Solvers on one class of problems; linear programs also by accuracy."""

    title: str
    summary: PageTable
    figures: list[ReportFigure]
    by_accuracy: list[tuple[float, PageTable]]
    accuracy_figure: ReportFigure | None


class Section(NamedTuple):
    """Content of the section: the constants that define its numbers, and its tables and figures."""

    clock: str
    rerun: str
    several: str
    shift_s: float
    penalty: float
    accuracy: float
    wrong_by: float
    classes: list[ProblemClass]
    wrong: PageTable
    gaps: PageTable
    problems: PageTable


_COMPARED = (
    Column("contestant", "contestant"),
    *_SUMMARY[1:8],
    Column("runs", "runs", "count"),
    *_SUMMARY[8:],
    Column("spread", "slowest ÷ fastest repetition", "ratio"),
    Column("median_gap", "median gap to the best", "gap"),
)


def section(
    comparison: Comparison,
    drawn: Mapping[str, ReportFigure],
    clock: str,
    rerun: str,
    summaries: Mapping[str, pd.DataFrame] | None = None,
) -> Section:
    """Content of the section.

    Parameters
    ----------
    comparison
        The compared runs.
    drawn
        :func:`figures` by name.
    clock
        Sentence that explains what the times are.
    rerun
        The command that runs the solvers again.
    summaries
        Rows of contestants by class, for the comparison of a study; else those of the comparison.
    """
    classes = []
    for name, words in _CLASSES:
        if name in comparison.summaries:
            names = [f"solvers-profile-{name}", f"solvers-profile-{name}-shared", f"solvers-times-{name}"]
            names += ["solvers-gap-over-time"] if name == "integer" else []
            by_accuracy = (
                [
                    (float(str(accuracy)), table(rows, _BY_ACCURACY, f"Linear programs to {accuracy:g}"))
                    for accuracy, rows in comparison.accuracy.groupby("accuracy", sort=False)
                ]
                if name == "linear"
                else []
            )
            rows, columns = (comparison.summaries, _SUMMARY) if summaries is None else (summaries, _COMPARED)
            summary = table(rows[name], columns, f"Solvers on {words}")
            shown = [drawn[figure] for figure in names if figure in drawn]
            accuracy_figure = drawn.get("solvers-accuracy") if name == "linear" else None
            classes.append(ProblemClass(words.capitalize(), summary, shown, by_accuracy, accuracy_figure))
    return Section(
        clock,
        rerun,
        "the fastest that reached it" if summaries is None else "their median",
        solver_metrics.SHIFT_S,
        solver_metrics.PENALTY,
        comparison.accuracy_asked,
        solver_metrics.WRONG,
        classes,
        table(solver_metrics.wrong_answers(comparison.runs), _WRONG, "Answers that our check refutes"),
        table(solver_metrics.gaps_at_limit(comparison.each), _GAPS, "Runs stopped by the time limit"),
        table(comparison.problems, _PROBLEMS, "Problems of the benchmark"),
    )


def write_page(
    comparison: Comparison,
    out: Path,
    *,
    clock: str,
    rerun: str,
    heading: str,
    title: str,
    summaries: Mapping[str, pd.DataFrame] | None = None,
    more: Mapping[str, pd.DataFrame] | None = None,
    missing: int = 0,
) -> Path:
    """Write a comparison as a page with its figures and tables, and with ``more`` tables; see :func:`section`.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    """
    from opticoll.analysis.report import page

    with page.writing(out, "compare", "choose another --out"):
        drawn = figures(comparison)
        content = section(comparison, {one.name: one for one in drawn}, clock, rerun, summaries)
        written = {**tables(comparison), **(more or {})}
        shown = {"heading": heading, "title": title, "missing": missing, "solvers": content}
        page.write_files(Path(out), drawn, written)
        return page.write_page(Path(out), "comparison.html.j2", shown)
