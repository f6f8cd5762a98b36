"""Figures 4-6 of the OpTree paper: steps by depth, time by message size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.optree import table_one
from opticoll.analysis.papers.optree.claims import BEST_DEPTHS
from opticoll.analysis.papers.optree.figure_claims import PANELS
from opticoll.analysis.papers.paper_figure import Figures, argument, settings_of
from opticoll.analysis.plots.marks import marks, reference, stars
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import MUTED, log_axes, series, ticks_at
from opticoll.formulations.optree import step_counts, step_times
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FIGURES = Figures("optree")
#: Message sizes of figures 5 and 6 [MiB].
MESSAGES = (4, 8, 16, 32, 64, 128)


def _trees(rows: pd.DataFrame) -> pd.DataFrame:
    """Proven trees on rings, one row each: nodes, wavelengths, count, requested depth (0: any) and steps."""
    table = rows[rows["ok"] & (rows["formulation"] == "optree.tree") & rows["proof"].isin(PROVEN)].copy()
    table = table[table["instance"].str.startswith("wdm-ring")]
    table["count"] = settings_of(table, "count", "lemma")
    table["depth"] = list(map(int, settings_of(table, "depth", "0")))
    table["wavelengths"] = [int(argument(spec, "wavelengths") or 0) for spec in table["instance"]]
    table = table.sort_values("objective").drop_duplicates(["n", "wavelengths", "count", "depth"])
    return table[["n", "wavelengths", "count", "depth", "objective", "instance", "ok"]]


# figure 4 -----------------------------------------------------------------------------------------------------------


def _depth_rows(rows: pd.DataFrame) -> pd.DataFrame:
    table = _trees(rows)
    table = table[(table["depth"] > 0) & (table["wavelengths"] == 64) & table["count"].isin(("lemma", "exact"))]
    return table.sort_values(["n", "count", "depth"])


def _depth(rows: pd.DataFrame) -> Figure:
    with styled_figure(7.2, 5.8, columns=2) as (figure, handles):
        every = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        panels = zip(every, BEST_DEPTHS, strict=True)
        longest = max((_depth_panel(axes, nodes, rows[rows["n"] == nodes]) for axes, nodes in panels), key=len)
        handles += longest
        every[0].set_ylim(0.9, 1.4)
        every[0].set_xlim(3.7, 9.3)
        every[0].set_xticks(range(4, 10))
        for axes in every[2:]:
            axes.set_xlabel("depth of the tree k")
        for axes in every[::2]:
            axes.set_ylabel("steps ÷ OpTree's [–]")
    return figure


def _depth_panel(axes: Axes, nodes: int, rows: pd.DataFrame) -> list[Any]:
    """Draw steps by depth for one number of nodes."""
    least, depths = step_counts.optree_steps(nodes, 64), np.linspace(1, 10, 200)
    handles: list[Any] = axes.plot(
        depths,
        [step_counts.theorem_1(nodes, 64, k) / least for k in depths],
        color=MUTED,
        linewidth=1.3,
        label="Theorem 1",
    )
    whole = [math.ceil(step_counts.theorem_1(nodes, 64, k) - 1e-9) / math.ceil(least - 1e-9) for k in range(1, 11)]
    handles += axes.plot(
        range(1, 11), whole, color=MUTED, linestyle="none", marker="_", markersize=9, label="Theorem 1, rounded up"
    )
    handles += stars(
        axes,
        BEST_DEPTHS[nodes],
        step_counts.theorem_1(nodes, 64, BEST_DEPTHS[nodes]) / least,
        "best depth in the paper",
        filled=True,
        markersize=13,
    )
    for number, (count, text) in enumerate((("lemma", "the paper's count"), ("exact", "wavelengths needed"))):
        selected, (colour, marker) = rows[rows["count"] == count], series(number)
        if len(selected):
            handles += axes.plot(
                selected["depth"],
                selected["objective"] / least,
                linestyle="none",
                marker=marker,
                color=colour,
                markerfacecolor="none",
                markersize=6 + 2 * number,
                label=f"best integer radices, {text}",
            )
    reference(axes, y=1.0, color=MUTED, linestyle=(0, (2, 3)))
    axes.grid(visible=True)
    axes.set_title(f"N = {nodes}")
    return handles


@FIGURES.drawn("optree-4", _depth_rows, _depth)
def _depth_finding(rows: pd.DataFrame) -> str:
    parts = []
    for _, group in rows.groupby("n"):
        nodes = int(group["n"].iloc[0])
        least = group.loc[group.groupby("count")["objective"].idxmin()].set_index("count")
        details = "; ".join(
            f"{count} {steps:.0f} at depth {depth}"
            for count, steps, depth in zip(least.index, least["objective"], least["depth"], strict=True)
        )
        parts.append(
            f"N = {nodes}: Theorem 2 {step_counts.optree_steps(nodes, 64):.4g} at depth "
            f"{step_counts.theorem_2(nodes)}, {details}"
        )
    return "Fewest steps, w = 64. " + ". ".join(parts) + "."


# figures 5, 6 -------------------------------------------------------------------------------------------------------


def _time_rows(panels: list[list[int]]) -> Any:
    def select(rows: pd.DataFrame) -> pd.DataFrame:
        table = _trees(rows)
        wanted = [[n, w] in panels for n, w in zip(table["n"], table["wavelengths"], strict=True)]
        return table[np.asarray(wanted, dtype=bool) & (table["depth"] == 0)].sort_values(["n", "wavelengths", "count"])

    return select


def _panel(axes: Axes, nodes: int, wavelengths: int, rows: pd.DataFrame) -> list[Any]:
    """Draw the time of every algorithm by message size, relative to OpTree's at the smallest message."""
    handles: list[Any] = []
    step = np.array([step_times.step_time(size * 2.0**20 / nodes) for size in MESSAGES])
    unit = step_counts.optree_steps(nodes, wavelengths) * step[0]
    for number, algorithm in enumerate(a for a in table_one.TABLE_I if a.name != "One-stage"):
        colour, _ = series(number)
        steps = algorithm.steps(nodes, wavelengths)
        handles += axes.plot(
            MESSAGES,
            steps * step / unit,
            color=colour,
            linewidth=1.5,
            linestyle=(0, (5, 4)) if algorithm.name == "WRHT" else "-",
            label=algorithm.name,
        )
        if steps != math.ceil(steps):
            handles += axes.plot(
                MESSAGES,
                math.ceil(steps) * step / unit,
                color=colour,
                linestyle="none",
                marker="_",
                markersize=9,
                label=f"{algorithm.name}, rounded up",
            )
    for count, marker, size in (("lemma", "o", 5), ("exact", "D", 9)):
        selected = rows[(rows["n"] == nodes) & (rows["wavelengths"] == wavelengths) & (rows["count"] == count)]
        if len(selected):
            handles += marks(
                axes,
                MESSAGES,
                float(selected["objective"].iloc[0]) * step / unit,
                3,
                f"best integer radices, {count}",
                filled=False,
                marker=marker,
                markersize=size,
            )
    log_axes(axes)
    ticks_at(axes, MESSAGES)
    axes.set_title(f"N = {nodes}, w = {wavelengths}")
    axes.set_xlabel("total size gathered [MiB]")
    return handles


def _times(panels: list[list[int]]) -> Any:
    def draw(rows: pd.DataFrame) -> Figure:
        with styled_figure(7.6, 4.2) as (figure, handles):
            both = figure.subplots(1, len(panels), sharey=True)
            longest = max((_panel(axes, n, w, rows) for axes, (n, w) in zip(both, panels, strict=True)), key=len)
            handles += longest
            both[0].set_ylabel("time ÷ OpTree's at 4 MiB [–]")
        return figure

    return draw


def _time_finding(rows: pd.DataFrame) -> str:
    parts = []
    for _, group in rows.groupby(["n", "wavelengths"]):
        nodes, wavelengths = int(group["n"].iloc[0]), int(group["wavelengths"].iloc[0])
        steps = ", ".join(
            f"{a.name} {a.steps(nodes, wavelengths):.4g}" for a in table_one.TABLE_I if a.name != "One-stage"
        )
        best = ", ".join(
            f"{count} {int(value)}" for count, value in zip(group["count"], group["objective"], strict=True)
        )
        parts.append(f"N = {nodes}, w = {wavelengths}: {steps}; best integer radices {best}")
    grown = step_times.step_time(128 * 2.0**20 / 1024) / step_times.step_time(4 * 2.0**20 / 1024)
    alone = step_times.step_time(128 * 2.0**20) / step_times.step_time(4 * 2.0**20)
    return (
        "Steps. " + ". ".join(parts) + f". Every time grows {grown:.3g}-fold from 4 to 128 MiB at N = 1024 if this is "
        f"the total size gathered, and {alone:.3g}-fold if it is the size per node."
    )


FIGURES.drawn("optree-5", _time_rows(PANELS["figure 5"]), _times(PANELS["figure 5"]))(_time_finding)
FIGURES.drawn("optree-6", _time_rows(PANELS["figure 6"]), _times(PANELS["figure 6"]))(_time_finding)
