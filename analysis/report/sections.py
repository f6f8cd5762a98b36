"""Content of the report's sections, as plain data for the templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from opticoll.analysis.report import page_tables
from opticoll.analysis.report.findings import distinguishing_columns, machine
from opticoll.analysis.report.page_tables import PROOFS, Column, PageTable, missing, table
from opticoll.extensions import parts
from opticoll.plugin_faults import called

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from opticoll.analysis.report.drawings import ReportFigure
    from opticoll.analysis.report.findings import Findings
    from opticoll.analysis.store import Store


_RESULTS = (
    Column("problem", "instance", "name"),
    Column("formulation", "formulation"),
    Column("method", "method"),
    Column("n", "N", "count"),
    Column("objective", "objective", "number"),
    Column("T", "T = 1/F", "number"),
    Column("outcome", "proof", "proof"),
    Column("gap", "gap", "gap"),
    Column("time_solve_s", "solve [s]", "seconds"),
    Column("seconds", "total [s]", "seconds"),
    Column("solver_name", "solver"),
)
_FAILURES = (
    Column("problem", "instance", "name"),
    Column("formulation", "formulation"),
    Column("method", "method"),
    Column("termination", "termination"),
    Column("requested_time_limit_s", "time limit [s]", "seconds"),
    Column("proof", "proof", "proof"),
    Column("bound", "our bound", "number"),
    Column("message", "message", "long"),
)
_ENVIRONMENT = (
    Column("platform", "platform"),
    Column("host", "host"),
    Column("cpus", "cores", "count"),
    Column("python", "Python"),
    Column("opticoll", "opticoll"),
    Column("git_commit", "commit"),
    Column("runs", "runs", "count"),
    Column("first", "first run (UTC)"),
    Column("last", "last run (UTC)"),
)


class Fact(NamedTuple):
    """A named value."""

    name: str
    value: Any


class Overview(NamedTuple):
    """Counts by proof status: tiles over all, a table by formulation."""

    tiles: list[tuple[str, int]]
    table: PageTable


class BoundsOf(NamedTuple):
    """Bounds on the instances of one formulation."""

    formulation: str
    figure: ReportFigure | None
    table: PageTable


class ReportEnvironment(NamedTuple):
    """The machine that wrote the report, and the machines that made the runs."""

    facts: list[Fact]
    table: PageTable


@dataclass(frozen=True)
class AddedSection:
    """A section of an extension.

    Parameters
    ----------
    anchor, title
        Its anchor on the page, and its title.
    before
        Anchor of the section before which it stands.
    html
        Its content.
    figures, tables
        Its figures, and its tables by file name.
    """

    anchor: str
    title: str
    before: str
    html: Markup
    figures: Sequence[ReportFigure] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def added(store: Store, findings: Findings) -> list[AddedSection]:
    """The sections of extensions that have something to show."""
    either, remedy = (AddedSection, NoneType), "an AddedSection, or None"
    made = (called(section, either, remedy, store, findings) for section in parts("sections"))
    return [one for one in made if one is not None]


def overview(findings: Findings) -> Overview:
    """Counts by proof status, over all and by formulation."""
    results = findings.results
    counts = results["outcome"].value_counts()
    words = {name: words.split(" ", 1)[1] for name, (_, words) in PROOFS.items()}
    tiles = [("runs recorded", findings.runs), ("different cells", len(results))]
    tiles += [(text, int(counts.get(name, 0))) for name, text in words.items()]
    tiles.append(("failed or unverified", len(findings.failures)))
    by = results.groupby("formulation")["outcome"].value_counts().unstack(fill_value=0)
    rows = page_tables.rows(by.reset_index())
    shown = [Column("formulation", "formulation")]
    shown += [Column(name, text, "count") for name, text in words.items() if name in by]
    return Overview(tiles, PageTable("Cells by formulation and proof status", shown, rows, len(rows), sortable=False))


def results(findings: Findings) -> PageTable:
    """Best run of every cell."""
    timed = findings.results["T"].notna().any()
    apart = [Column(field, heading) for field, heading in distinguishing_columns(findings.results).items()]
    columns = [*_RESULTS[:3], *apart, *(column for column in _RESULTS[3:] if timed or column.field != "T")]
    return table(findings.results, columns, "Results")


def bounds(findings: Findings, figures: Mapping[str, ReportFigure]) -> list[BoundsOf]:
    """Optimum over every analytic bound, by formulation; the tightest bound of an instance is bold."""
    results = []
    for formulation, rows in findings.bounds.groupby("formulation"):
        names = list(dict.fromkeys(rows["bound"]))
        lines: list[dict[str, Any]] = []
        for instance, group in rows.groupby("instance", sort=False):
            ratios = dict(zip(group["bound"], group["ratio"], strict=True))
            known = {name: ratio for name, ratio in ratios.items() if not missing(ratio)}
            tight = {name for name, ratio in known.items() if ratio >= max(known.values()) - 1e-6}
            lines.append({"instance": instance, **group.iloc[0][["n", "objective", "proof"]], **ratios, "bold": tight})
        shown = [
            Column("instance", "instance", "name"),
            Column("n", "N", "count"),
            Column("objective", "optimum", "number"),
            Column("proof", "proof", "proof"),
            *(Column(name, f"÷ {name}", "ratio") for name in names),
        ]
        made = PageTable("Optimum over each bound", shown, lines, len(lines))
        results.append(BoundsOf(str(formulation), figures.get(str(formulation)), made))
    return results


def missing_bounds(findings: Findings) -> dict[str, list[str]]:
    """Instances without bounds, by reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in findings.missing.items():
        reasons.setdefault(reason, []).append(name)
    return reasons


def failures(findings: Findings) -> PageTable:
    """Cells without an answer."""
    return table(findings.failures, _FAILURES, "Failures")


def environment(findings: Findings) -> ReportEnvironment:
    """Machines and versions of the runs, and of this report."""
    current = machine()
    solvers = findings.results[["solver_name", "solver_version"]].dropna().drop_duplicates().sort_values("solver_name")
    versions = ", ".join(f"{name} {version}" for name, version in solvers.itertuples(index=False))
    facts = [
        Fact("report written on", current["platform"]),
        Fact("cores", current["cpus"]),
        Fact("memory [GiB]", current["memory_gib"]),
        Fact("Python", current["python"]),
        Fact("opticoll", current["opticoll"]),
        Fact("commit", current["git_commit"]),
        Fact("solvers in the store", versions),
    ]
    facts = [fact for fact in facts if fact.value is not None and fact.value != ""]
    rows = page_tables.rows(findings.environments)
    for row in rows:
        for moment in ("first", "last"):
            row[moment] = None if missing(row[moment]) else f"{row[moment]:%Y-%m-%d %H:%M}"
        if not missing(row["git_commit"]):
            commit, dash, dirty = str(row["git_commit"]).partition("-")
            row["git_commit"] = f"{commit[:12]}{dash}{dirty}"
    return ReportEnvironment(facts, PageTable("Environments", _ENVIRONMENT, rows, len(findings.environments)))
