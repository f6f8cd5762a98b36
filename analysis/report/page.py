"""Write the report: one self-contained HTML page of a results store, with its figures and tables as files.

    OUT/index.html      the page; it loads no other file, no font and nothing from the network
    OUT/figures/        every figure as SVG and PNG
    OUT/tables/         results, bounds, failures, claims, and the points of the papers' figures as CSV

Each file is replaced atomically. The templates escape all text, such as instance names and messages, and a content
security policy forbids every script but the page's own.

The section on solvers gives speed, accuracy and wrong answers of every solver in the runs on
:mod:`opticoll.analysis.benchmark.benchmark_set` under the limits of the study ``solver-bench``;
:mod:`opticoll.analysis.benchmark.solver_metrics` and the page define each number.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jinja2
import pandas as pd
from markupsafe import Markup

from opticoll.analysis.benchmark import benchmark_set, solver_metrics
from opticoll.analysis.plots import store_plots
from opticoll.analysis.plots.style import DARK_CSS, LIGHT_CSS, standalone
from opticoll.analysis.report import drawings, page_tables
from opticoll.analysis.report.drawings import ReportFigure
from opticoll.analysis.report.findings import PAPER_NAMES, SUPERSEDED_COMMAND, claims_frame, collect
from opticoll.analysis.report.page_tables import Column, PageTable, table
from opticoll.errors import BadInput
from opticoll.solvers.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opticoll.analysis.report.findings import Findings
    from opticoll.analysis.store import Store


STUDY = benchmark_set.STUDY
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
    Column("tol", "requested tolerance", "gap"),
    Column("value", "value", "number"),
    Column("best", "best known", "number"),
    Column("error", "off by", "gap"),
    Column("allowed", "allowed", "gap"),
    Column("residual", "KKT residual", "gap"),
)


@dataclass(frozen=True)
class Comparison:
    """The benchmark's runs, compared.

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


def compare(results: pd.DataFrame) -> Comparison | None:
    """Compare the benchmark's runs among the results of a store; None if none of them ran."""
    if results.empty:
        return None
    rows = benchmark_set.select(results)
    if not (rows["termination"] != "unavailable").any():
        return None
    return compared(rows, benchmark_set.best_known())


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
        {name: steps for name, part in profiled.items() if len(steps := solver_metrics.performance_profile(part))},
        solver_metrics.by_accuracy(linear, best, combined=combined) if "linear" in parts else pd.DataFrame(),
        _problems(rows, each, best),
        tuple(sorted(set(runs.loc[runs["verdict"] != "unavailable", "solver"]))),
        solver_metrics.gap_over_time(rows, runs),
        accuracy,
    )


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
        sizes = {part: runs[f"size_{part}"].max() for part in ("variables", "constraints", "nonzeros", "integers")}
        made.append(
            {
                "problem": name,
                "grade": None if known is None else known.grade,
                **sizes,
                "build_s": runs["time_build_s"].median(),
                "compile_s": runs["time_compile_s"].median(),
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
                    store_plots.profiles(comparison.profiles[name], comparison.solvers),
                )
            )
        if f"{name}-shared" in comparison.profiles:
            shared = solver_metrics.run_by_all(part)["problem"].nunique()
            made.append(
                ReportFigure.of(
                    f"solvers-profile-{name}-shared",
                    f"Performance profiles where all solvers ran, {words}",
                    f"The same axes, over the {shared} problems that every solver could try.",
                    store_plots.profiles(comparison.profiles[f"{name}-shared"], comparison.solvers),
                )
            )
        made.append(
            ReportFigure.of(
                f"solvers-times-{name}",
                f"Time of every solver on every problem, {words}",
                f"Horizontal axis: solver time in seconds. One row for each of {count} problems, fastest solved "
                "first. Marks on the right are runs without a time; bars span the repetitions of a run.",
                store_plots.times_by_problem(part, comparison.solvers),
            )
        )
    if len(comparison.gaps_over_time):
        made.append(
            ReportFigure.of(
                "solvers-gap-over-time",
                "Gap over time, integer programs",
                "Mean gap of the incumbent to the best known value over the runs of every solver, by its time in "
                "seconds; 1 before the first incumbent. Lower left is better.",
                store_plots.gaps_over_time(comparison.gaps_over_time, comparison.solvers),
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
                store_plots.accuracy_over_time(linear, comparison.solvers),
            )
        )
    return made


def tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Data of every figure and table by file name, one point of a curve per row.

    ``opticoll report --out FOLDER`` writes them to ``FOLDER/tables``; in Python, with a store's results::

        from opticoll.analysis.report import findings, page
        from opticoll.analysis.store import Store

        comparison = page.compare(findings.best_runs(Store("results")))
        for name, frame in page.tables(comparison).items():
            frame.to_csv(f"{name}.csv", index=False)
    """
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


#: Clock of the benchmark, in words.
_CLOCK = (
    "Times are those of the solver inside its worker. Building and compiling take the same time for all solvers; the "
    "table of problems lists them. Every run may use {} thread{}."
)
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
    summaries: Mapping[str, pd.DataFrame] | None = None,
    clock: str | None = None,
    rerun: str = STUDY,
) -> Section:
    """Content of the section.

    Parameters
    ----------
    comparison
        The compared runs.
    drawn
        :func:`figures` by name.
    summaries
        Rows of contestants by class, for the comparison of a study; else those of the comparison.
    clock
        Sentence that explains what the times are.
    rerun
        The study to run again.
    """
    threads = max(problem.threads for problem in benchmark_set.problems())
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
        clock or _CLOCK.format(threads, "" if threads == 1 else "s"),
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


_TEMPLATES = Path(__file__).resolve().parent / "templates"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def build(store: Store, out: Path, findings: Findings | None = None) -> Path:
    """Write the report of a store.

    Parameters
    ----------
    store
        The store to report on; it is only read.
    out
        Folder for the page, its figures and tables; created if missing, files of an earlier report are replaced.
    findings
        Result of :func:`~opticoll.analysis.report.findings.collect`, if the caller has it already.

    Returns
    -------
    Path
        The page, ``out/index.html``.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    BadFile
        If a file of the store is not a valid record.
    """
    findings = collect(store) if findings is None else findings
    out = Path(out)
    page = out / "index.html"
    try:
        if findings.results.empty and not findings.claims:
            _write(page, _page(store, findings).encode())
            return page
        comparison = compare(findings.results)
        solvers = {} if comparison is None else {one.name: one for one in figures(comparison)}
        claims = drawings.claims(findings)
        bounds, times = drawings.bounds_by_formulation(findings), drawings.times(findings)
        papers = drawings.from_papers(findings)
        claimed = [] if claims is None else [claims]
        frames = {"results": findings.results, "bounds": findings.bounds, "failures": findings.failures}
        frames |= {"claims": claims_frame(findings.claims)}
        frames |= {} if comparison is None else tables(comparison)
        drawn = [*claimed, *bounds.values(), *times.values(), *papers.values(), *solvers.values()]
        _write_files(out, drawn, frames)
        shown = drawings.shown_records(store, findings)
        content: dict[str, object] = {"claims_figure": claims, "times": times, "shown": set(shown)}
        if not findings.results.empty:
            content |= {
                "overview": drawings.overview(findings),
                "results": drawings.results(findings),
                "bounds": drawings.bounds(findings, bounds),
                "missing_bounds": drawings.missing_bounds(findings),
                "papers": drawings.papers(papers, set(shown)),
                "solvers": None if comparison is None else section(comparison, solvers),
                "failures": drawings.failures(findings),
                "environment": drawings.environment(findings),
                "records": drawings.records({name: store.read(name) for name in shown}),
            }
        _write(page, _page(store, findings, **content).encode())
    except OSError as error:
        msg = (
            f"report: cannot write {error.filename or out}: {error.strerror or error}; choose another folder with --out"
        )
        raise BadInput(msg) from error
    return page


@cache
def templates() -> jinja2.Environment:
    """The report's templates: everything is escaped, and a missing variable is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"written": page_tables.written}
    environment.tests |= {"missing": page_tables.missing}
    environment.globals |= {
        "PROOFS": page_tables.PROOFS,
        "VERDICTS": drawings.VERDICTS,
        "MOST_INSTANCES": drawings.MOST_INSTANCES,
        "STUDY": STUDY,
        "PAPER_NAMES": PAPER_NAMES,
        "SUPERSEDED_COMMAND": SUPERSEDED_COMMAND,
    }
    return environment


def _printable(value: object) -> object:
    """Text without control characters, which HTML cannot hold; None is a dash, markup is unchanged."""
    if value is None:
        return "–"
    return value if isinstance(value, Markup) else _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value))


def _page(store: Store, findings: Findings, **content: object) -> str:
    return _rendered("page.html.j2", {"findings": findings, "store": store.root.name, **content})


def _rendered(template: str, content: Mapping[str, object]) -> str:
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    css = LIGHT_CSS + DARK_CSS + (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    return (
        templates()
        .get_template(template)
        .render(
            now=datetime.now(UTC),
            css=Markup(css),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **content,
        )
    )


def build_comparison(
    out: Path, drawn: Sequence[drawings.ReportFigure], tables: Mapping[str, pd.DataFrame], **content: object
) -> Path:
    """Write the comparison of a study (:mod:`opticoll.analysis.benchmark.study_comparison`).

    Parameters
    ----------
    out
        Folder for the page, its figures and tables; created if missing.
    drawn, tables
        Figures, and tables by file name.
    content
        Variables of the template.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    """
    page = Path(out) / "index.html"
    try:
        _write_files(Path(out), drawn, tables)
        _write(page, _rendered("comparison.html.j2", content).encode())
    except OSError as error:
        msg = f"compare: cannot write {error.filename or out}: {error.strerror or error}; choose another --out"
        raise BadInput(msg) from error
    return page


def _write_files(out: Path, drawn: Iterable[drawings.ReportFigure], tables: Mapping[str, pd.DataFrame]) -> None:
    """Write figures as SVG and PNG, and their points and the tables as CSV."""
    for figure in drawn:
        _write(out / "figures" / f"{figure.name}.svg", standalone(figure.drawing).encode())
        _write(out / "figures" / f"{figure.name}.png", figure.png)
        if figure.rows is not None:
            _write(out / figure.points, figure.rows.to_csv(index=False).encode())
    for name, frame in tables.items():
        _write(out / "tables" / f"{name}.csv", frame.to_csv(index=False).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rewrite(path, content)
