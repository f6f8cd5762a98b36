"""Figures of the report: bounds, times and claims of a store, and the papers' figures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from opticoll.analysis.papers import figures as paper_figures
from opticoll.analysis.plots import store_plots
from opticoll.analysis.plots.style import drawing, inline, png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticoll.analysis.papers import PaperFigure
    from opticoll.analysis.report.findings import Findings


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report.

    Parameters
    ----------
    name
        Name of its files.
    title, caption
        Plain text.
    figure
        The drawing.
    rows
        Its points, written as a CSV file; None if another table has them.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    rows: pd.DataFrame | None = None

    @property
    def points(self) -> str:
        """CSV file of the points, relative to the page."""
        return f"tables/{self.name}.csv"

    @cached_property
    def drawing(self) -> str:
        """The figure as SVG text."""
        return drawing(self.figure)

    @cached_property
    def png(self) -> bytes:
        """The figure as PNG."""
        return png(self.figure)

    @property
    def inline(self) -> Markup:
        """The figure as an SVG element; its texts are escaped."""
        return Markup(inline(self.drawing, self.name, self.title, self.caption))


def bounds_by_formulation(findings: Findings) -> dict[str, ReportFigure]:
    """Draw the optimum over each analytic bound, by formulation."""
    made = {}
    for name, rows in findings.bounds.groupby("formulation"):
        if rows["ratio"].notna().any():
            counts = f"{rows['instance'].nunique()} instances, {rows['bound'].nunique()} bounds"
            made[str(name)] = ReportFigure(
                f"bounds-{slug(str(name))}", f"Optimum over bounds, {name}",
                f"Horizontal axis: optimum divided by each bound ({counts}). Further right is tighter; the table below "
                "has the numbers.",
                store_plots.throughput_over_bounds(rows),
            )  # fmt: skip
    return made


def times(findings: Findings) -> dict[str, ReportFigure]:
    """Draw solve times by formulation, and the all-to-all time under the empty name."""
    made = {}
    for name, rows in findings.results.groupby("formulation"):
        caption = (
            f"Solver's time in seconds by size, logarithmic axes; lower is faster. {counted(len(rows), 'run')} by "
            f"{counted(rows['method'].nunique(), 'method')}."
        )
        made[str(name)] = ReportFigure(
            f"solve-time-{slug(str(name))}", f"Solve time by size, {name}", caption, store_plots.solve_time(rows)
        )
    verified = findings.results[findings.results["ok"] & findings.results["T"].notna()]
    if not verified.empty:
        caption = (
            "Time T of an all-to-all, in units of shard size ÷ link bandwidth, by number of vertices N; logarithmic "
            f"axes, {counted(verified['instance'].nunique(), 'instance')}. Lower is faster."
        )
        made[""] = ReportFigure("time-by-size", "All-to-all time by size", caption, store_plots.time_by_size(verified))
    return made


def claims(findings: Findings) -> ReportFigure | None:
    """Draw the number of claims by paper and verdict; None without measured claims."""
    if not findings.claims:
        return None
    caption = f"{counted(len(findings.claims), 'claim')} by paper and verdict. The tables below list all of them."
    return ReportFigure(
        "claims", "Claims by paper and verdict", caption, store_plots.claims_by_verdict(findings.claims)
    )


def from_papers(findings: Findings) -> dict[str, ReportFigure]:
    """Draw the figures of the papers that the store has rows for, by name."""
    made: dict[str, ReportFigure] = {}
    if findings.results.empty:
        return made
    for figure in paper_figures():
        if figure.study is None:
            made[figure.name] = _computed(figure)
            continue
        rows = figure.select(findings.results)
        if not rows.empty:
            made[figure.name] = _drawn(figure, rows)
    return made


def _drawn(figure: PaperFigure, rows: pd.DataFrame) -> ReportFigure:
    title = f"{figure.where}: {figure.title}"
    return ReportFigure(f"paper-{figure.name}", title, figure.finding(rows), figure.draw(rows), rows)


@cache
def _computed(figure: PaperFigure) -> ReportFigure:
    """Draw a figure that is computed without runs, once per process."""
    return _drawn(figure, figure.select(pd.DataFrame()))


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where needed."""
    return f"{number} {noun}{'s' * (number != 1)}"


def slug(name: str) -> str:
    """A name in the characters that file names and anchors share."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"
