"""Figures of the report: bounds and times of a store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup

from opticoll.analysis.plots import store_plots
from opticoll.analysis.plots.style import counted, drawing, inline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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
        The figure of matplotlib.
    rows
        Its points, written as a CSV file; None if another table has them.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    rows: pd.DataFrame | None = None

    @cached_property
    def drawing(self) -> str:
        """The figure as SVG text."""
        return drawing(self.figure)

    @property
    def points(self) -> str:
        """CSV file of the points, relative to the page."""
        return f"tables/{self.name}.csv"

    @property
    def inline(self) -> Markup:
        """The figure as an SVG element; its text is escaped."""
        return Markup(inline(self.drawing, self.name, self.title, self.caption))


def bounds_by_formulation(findings: Findings) -> dict[str, ReportFigure]:
    """Draw the optimum over each analytic bound, by formulation."""
    made = {}
    for name, rows in findings.bounds.groupby("formulation"):
        if rows["ratio"].notna().any():
            counts = f"{counted(rows['instance'].nunique(), 'instance')}, {counted(rows['bound'].nunique(), 'bound')}"
            made[str(name)] = ReportFigure(
                f"bounds-{slug(str(name))}",
                f"Optimum over bounds, {name}",
                f"Horizontal axis: optimum divided by each bound ({counts}). Further right is tighter; the table below "
                "has the numbers.",
                store_plots.throughput_over_bounds(rows),
            )
    return made


def times(findings: Findings) -> dict[str, ReportFigure]:
    """Draw solve times by formulation, and the all-to-all time under the empty name."""
    made = {}
    for name, rows in findings.results.groupby("formulation"):
        caption = (
            f"Solve time in seconds by size, logarithmic axes; lower is faster. {counted(len(rows), 'run')} by "
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


def slug(name: str) -> str:
    """A name in the characters that file names and anchors share."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"
