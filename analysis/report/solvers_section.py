"""The report's section on the solver benchmark: who is how fast, how accurate and how often wrong, on the set.

The runs are those of the problems of :mod:`opticoll.analysis.benchmark.benchmark_set` under the limits of the study
``solver-bench``;
what each number means is said in :mod:`opticoll.analysis.benchmark.solver_metrics` and on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from opticoll.analysis.benchmark import benchmark_set, solver_metrics
from opticoll.analysis.plots import solver_plots as plots_solvers
from opticoll.analysis.report.html_tables import Column, Markup, join, table, tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

ACCURACY = 1e-6
_CLASSES = (("linear", "linear programs"), ("integer", "integer programs"))
_SUMMARY = (
    Column("solver", "solver"),
    Column("problems", "ran on", "count"),
    Column("solved", "solved", "count"),
    Column("inexact", "not to the accuracy", "count"),
    Column("limit", "stopped by the time limit", "count"),
    Column("memory", "out of memory", "count"),
    Column("failed", "failed", "count"),
    Column("wrong", "wrong answers", "count"),
    Column("mean_penalised_s", "mean, penalised [s]", "seconds"),
    Column("mean_common_s", "mean, commonly solved [s]", "seconds"),
    Column("common", "commonly solved", "count"),
    Column("mean_solved_s", "mean, its own solved [s]", "seconds"),
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
    Column("fastest_s", "fastest solver [s]", "seconds"),
    Column("fastest", "which"),
    Column("value", "best known value", "number"),
    Column("proof", "proof", "proof"),
)
_GAPS = (
    Column("problem", "problem"), Column("solver", "solver"), Column("limit_s", "limit [s]", "seconds"),
    Column("value", "value", "number"), Column("best", "best known", "number"),
    Column("best_gap", "gap to the best known", "gap"), Column("certified_gap", "gap to our bound", "gap"),
)  # fmt: skip
_WRONG = (
    Column("problem", "problem"), Column("solver", "solver"), Column("value", "value", "number"),
    Column("best", "best known", "number"), Column("best_gap", "off by", "gap"),
    Column("residual", "KKT residual", "gap"),
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The benchmark's runs, compared.

    Parameters
    ----------
    runs
        All runs with their verdicts at :data:`ACCURACY`, and ``seconds_run``: what the run took, solved or not.
    each
        One run for every problem and solver.
    summaries, profiles
        By class: :func:`~opticoll.analysis.benchmark.solver_metrics.summary`,
        :func:`~opticoll.analysis.benchmark.solver_metrics.performance_profile`. Where
        solvers could not try every problem, profiles also have ``CLASS-shared``: every solver, over the problems
        that all of them ran on.
    accuracy
        :func:`~opticoll.analysis.benchmark.solver_metrics.by_accuracy` of the linear programs.
    problems
        A row for every problem that was run: sizes, build and compile times, the fastest solver, best known value.
    solvers
        Solvers that ran, in the order of their colours.
    """

    runs: pd.DataFrame
    each: pd.DataFrame
    summaries: dict[str, pd.DataFrame]
    profiles: dict[str, pd.DataFrame]
    accuracy: pd.DataFrame
    problems: pd.DataFrame
    solvers: tuple[str, ...]


def compare(results: pd.DataFrame) -> Comparison | None:
    """Compare the benchmark's runs among the results of a store; None if there are none that ran."""
    if results.empty:
        return None
    rows = benchmark_set.select(results)
    if not (rows["termination"] != "unavailable").any():
        return None
    best = benchmark_set.best_known()
    runs = solver_metrics.verdicts(rows, best, ACCURACY)
    runs["seconds_run"] = rows["time_solver_s"].to_numpy(dtype=float)
    each = solver_metrics.one_run_each(runs)
    parts = {"linear": each[each["linear"].astype(bool)], "integer": each[~each["linear"].astype(bool)]}
    parts = {name: part for name, part in parts.items() if (part["verdict"] != "unavailable").any()}
    linear = rows[rows["linear"].astype(bool)]
    shared = {f"{name}-shared": solver_metrics.run_by_all(part) for name, part in parts.items() if _partial(part)}
    profiled = parts | {name: part for name, part in shared.items() if not part.empty}
    return Comparison(
        runs, each,
        {name: solver_metrics.summary(part) for name, part in parts.items()},
        {name: steps for name, part in profiled.items() if len(steps := solver_metrics.performance_profile(part))},
        solver_metrics.by_accuracy(linear, best) if "linear" in parts else pd.DataFrame(),
        _problems(rows, each, best),
        tuple(sorted(set(runs.loc[runs["verdict"] != "unavailable", "solver"]))),
    )  # fmt: skip


def _partial(part: pd.DataFrame) -> list[str]:
    """Solvers that ran on some problems, but not on all."""
    ran = set(part.loc[part["verdict"] != "unavailable", "solver"])
    return sorted(ran - set(solver_metrics.attempted_all(part)))


def _problems(rows: pd.DataFrame, each: pd.DataFrame, best: dict[str, benchmark_set.Best]) -> pd.DataFrame:
    found = []
    for name, here in rows.groupby("problem_name", sort=False):
        solved = each[(each["problem"] == name) & (each["verdict"] == "solved")]
        known = best.get(str(name))
        first = None if solved.empty else solved.sort_values("seconds", kind="stable").iloc[0]
        sizes = {part: here[f"size_{part}"].max() for part in ("variables", "constraints", "nonzeros", "integers")}
        found.append(
            {
                "problem": name, "grade": None if known is None else known.grade, **sizes,
                "build_s": here["time_build_s"].median(), "compile_s": here["time_compile_s"].median(),
                "fastest_s": None if first is None else first["seconds"],
                "fastest": None if first is None else first["solver"],
                "value": None if known is None else known.value, "proof": "none" if known is None else known.proof,
            }
        )  # fmt: skip
    return pd.DataFrame(found)


def figures(found: Comparison) -> list[tuple[str, str, str, Figure]]:
    """Name, title, description and drawing of every figure."""
    drawn = []
    for name, words in _CLASSES:
        if name not in found.summaries:
            continue
        here = found.each[found.each["linear"].astype(bool) == (name == "linear")]
        count = here["problem"].nunique()
        absent = _partial(here)
        told = f" Not drawn, since they could not try every problem: {', '.join(absent)}." if absent else ""
        if name in found.profiles:
            drawn.append(
                (
                    f"solvers-profile-{name}", f"Performance profiles, {words}",
                    f"Share of all {count} problems that a solver solved within a factor of the fastest; left the near "
                    f"end on a linear axis, right the tail on a logarithmic one. Curves end at the share solved.{told}",
                    plots_solvers.profiles(found.profiles[name], found.solvers),
                )
            )  # fmt: skip
        if f"{name}-shared" in found.profiles:
            shared = solver_metrics.run_by_all(here)["problem"].nunique()
            drawn.append(
                (
                    f"solvers-profile-{name}-shared", f"Performance profiles where all solvers ran, {words}",
                    f"The same over the {shared} problems that every solver could try.",
                    plots_solvers.profiles(found.profiles[f"{name}-shared"], found.solvers),
                )
            )  # fmt: skip
        drawn.append(
            (
                f"solvers-times-{name}", f"Time of every solver on every problem, {words}",
                f"{count} problems, fastest solved first. Marks right of the dashed line have no time.",
                plots_solvers.times_by_problem(here, found.solvers),
            )
        )  # fmt: skip
    linear = found.runs[found.runs["linear"].astype(bool)]
    if linear["residual"].notna().any():
        drawn.append(
            (
                "solvers-accuracy", "Accuracy that was reached over time, linear programs",
                f"{int(linear['residual'].notna().sum())} runs to several tolerances; residuals below 1e-16 are drawn "
                "there.",
                plots_solvers.accuracy_over_time(linear, found.solvers),
            )
        )  # fmt: skip
    return drawn


def tables(found: Comparison) -> dict[str, pd.DataFrame]:
    """What lies behind every figure and table, by file name: the points of every curve, one a row.

    ``opticoll report --out FOLDER`` writes them to ``FOLDER/tables``; in Python, with a store's results::

        from analysis import report_data, report_solvers, store

        found = report_solvers.compare(report_data.collect(store.Store("results")).results)
        for name, frame in report_solvers.tables(found).items():
            frame.to_csv(f"{name}.csv", index=False)
    """
    named = {"solvers-runs": found.runs, "solvers-accuracy": found.accuracy, "solvers-problems": found.problems}
    named["solvers-gaps"] = solver_metrics.gaps_at_limit(found.each)
    named |= {f"solvers-profile-{name}": frame for name, frame in found.profiles.items()}
    named |= {f"solvers-summary-{name}": frame for name, frame in found.summaries.items()}
    return named


def section(found: Comparison | None, figure: Callable[[str], Markup | None]) -> Markup:
    """Write the section.

    Parameters
    ----------
    found
        What was compared.
    figure
        A figure of :func:`figures` by name, as the page shows it.
    """
    command = tag("code", f"opticoll study {benchmark_set.STUDY}")
    if found is None:
        return tag("p", "The store has no runs of the solver benchmark yet; they are made by ", command, ".")
    parts: list[Any] = [_how(), tag("p", "Made by ", command, ".", class_="soft")]
    for name, words in _CLASSES:
        if name not in found.summaries:
            continue
        parts += [tag("h3", words.capitalize()), _table(found.summaries[name], _SUMMARY, f"Solvers on {words}")]
        parts += [figure(f"solvers-profile-{one}") for one in (name, f"{name}-shared") if one in found.profiles]
        parts.append(figure(f"solvers-times-{name}"))
        if name == "linear":
            parts += [tag("h4", "At matched accuracy"), *_accuracy(found), figure("solvers-accuracy")]
    wrong, gaps = solver_metrics.wrong_answers(found.runs), solver_metrics.gaps_at_limit(found.each)
    parts.append(tag("h3", "Wrong answers"))
    parts.append(
        _table(wrong, _WRONG, "Answers that our check refutes") if len(wrong)
        else tag("p", "No solver gave an answer that our check refutes.")
    )  # fmt: skip
    if len(gaps):
        parts += [tag("h3", "What was left at the limit"), _table(gaps, _GAPS, "Runs stopped by the time limit")]
    parts += [tag("h3", "Problems"), _table(found.problems, _PROBLEMS, "Problems of the benchmark")]
    return join(part for part in parts if part is not None)


def _how() -> Markup:
    penalty = f"{solver_metrics.PENALTY:g}"
    threads = max(one.threads for one in benchmark_set.problems())
    return tag(
        "p",
        "Times are the solver's own, in its worker; building and compiling, which are the same for all, stand apart in "
        f"the table of problems. Every run may use {threads} thread{'s' * (threads != 1)}. "
        "Means are shifted geometric means with a shift of "
        f"{solver_metrics.SHIFT_S:g} s. The penalised one counts a run without a time as {penalty} limits "
        f"(PAR-{penalty}), given only for solvers that ran on every problem: what a solver could not try, for want of "
        "a licence or since it takes no such problems, is no slowness. The other is over the problems that all "
        "of these solved. A linear program counts as solved if its recomputed KKT residuals are at most "
        f"{ACCURACY:g}, an integer program if its value is verified and within 1e-6 of the best known. An answer is "
        "wrong if it was claimed optimal and misses the best known value or feasibility by more than "
        f"{solver_metrics.WRONG:g}.",
        class_="soft",
    )


def _accuracy(found: Comparison) -> list[Markup]:
    return [
        _table(here, _SUMMARY[:2] + _SUMMARY[2:3] + _SUMMARY[7:10], f"Linear programs to {accuracy:g}",
               lead=f"Worst residual at most {accuracy:g}; of several runs the fastest that reached it:")
        for accuracy, here in found.accuracy.groupby("accuracy", sort=False)
    ]  # fmt: skip


def _table(frame: pd.DataFrame, columns: tuple[Column, ...], caption: str, lead: str | None = None) -> Markup:
    rows = [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]
    return join([tag("p", lead) if lead else Markup(""), table(rows, columns, caption)])
