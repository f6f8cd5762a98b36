"""How far the papers' heuristics end from the optimum: one figure a paper, over families of small instances.

A heuristic's value is divided by the proven optimum of the same problem, where any run in the store has proven one
(filled marks), else by the best bound that is our own (open marks: the ratio is at most this). TopoOpt's are in
:mod:`analysis.figures.topoopt_gap`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analysis.figures.base import PaperFigure
from analysis.plots_style import BAND, INK, MUTED, label, legend_below, log_axes, new_figure, series, style

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

_COLUMNS = ["formulation", "instance", "problem", "heuristic", "objective", "reference", "proven", "ratio"]


@dataclass(frozen=True)
class Heuristics:
    """Which methods of a formulation are heuristics, and which of their settings tell variants apart."""

    formulation: str
    methods: tuple[str, ...]
    settings: tuple[str, ...] = ()


def gap_rows(rows: pd.DataFrame, wanted: tuple[Heuristics, ...]) -> pd.DataFrame:
    """The runs of heuristics over what is known of their problems.

    Parameters
    ----------
    rows
        Results with ``ok`` and ``problem`` (instance and the formulation's own parameters).
    wanted
        The heuristics.

    Returns
    -------
    DataFrame
        ``formulation``, ``instance``, ``problem``, ``heuristic``, ``objective``, ``reference``, ``proven`` (whether the
        reference is the optimum), ``ratio`` (at least 1: value over reference, turned over for a maximum).
    """
    found: list[dict[str, Any]] = []
    for one in wanted:
        here = rows[rows["formulation"] == one.formulation]
        for problem, runs in here.groupby("problem"):
            sense = runs["sense"].iloc[0]
            optimum = runs.loc[runs["ok"] & (runs["proof"] == "optimal"), "objective"]
            bounds = runs["bound"].dropna()
            proven = not optimum.empty
            if not proven and bounds.empty:
                continue
            tightest = bounds.max() if sense == "min" else bounds.min()
            reference = float(optimum.iloc[0] if proven else tightest)
            for run in runs[runs["ok"] & runs["method"].isin(one.methods)].to_dict("records"):
                value = float(run["objective"])
                above, below = (value, reference) if sense == "min" else (reference, value)
                if below <= 0:
                    continue
                found.append(
                    {
                        "formulation": one.formulation, "instance": run["instance"], "problem": problem,
                        "heuristic": _name(run, one.settings), "objective": value, "reference": reference,
                        "proven": proven, "ratio": max(above / below, 1.0) if proven else above / below,
                    }
                )  # fmt: skip
    return pd.DataFrame(found, columns=_COLUMNS).drop_duplicates(["formulation", "problem", "heuristic", "objective"])


def _name(run: dict[Any, Any], settings: tuple[str, ...]) -> str:
    asked = json.loads(run["requested_settings"] or "{}")
    words = ", ".join(f"{name} {asked[name]}" for name in settings if name in asked)
    return f"{run['method']}, {words}" if words else str(run["method"])


def draw(rows: pd.DataFrame) -> Figure:
    """Draw a strip and a box for every heuristic, one below the other; n is the number of problems."""
    from matplotlib.lines import Line2D

    groups = [(key, here) for key, here in rows.groupby(["formulation", "heuristic"])]
    spread = np.random.default_rng(0)
    with style():
        figure = new_figure(7.0, 1.7 + 0.42 * max(len(groups), 1))
        axes = figure.add_subplot()
        names = sorted(set(rows["formulation"]))
        for row, ((formulation, _), here) in enumerate(groups):
            colour, marker = series(names.index(formulation))
            if row % 2 == 0:
                axes.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)
            axes.boxplot(
                [here["ratio"]], positions=[row], orientation="horizontal", widths=0.55, showfliers=False,
                manage_ticks=False, boxprops={"color": MUTED}, whiskerprops={"color": MUTED},
                capprops={"color": MUTED}, medianprops={"color": INK, "linewidth": 1.6},
            )  # fmt: skip
            at = row + spread.uniform(-0.22, 0.22, len(here))
            fill = [colour if proven else "none" for proven in here["proven"]]
            axes.scatter(here["ratio"], at, marker=marker, s=20, edgecolors=colour, facecolors=fill, zorder=3)
        axes.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        told = [f"{label(heuristic, 34)}  (n = {here['problem'].nunique()})" for (_, heuristic), here in groups]
        axes.set_yticks(range(len(groups)), told)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(max(len(groups), 1) - 0.5, -0.5)
        if rows["ratio"].max() > 4:
            log_axes(axes, "x")
        axes.grid(visible=True, axis="x")
        axes.set_axisbelow(True)
        axes.set_xlabel("value ÷ proven optimum, or ÷ best bound (open) [–]")
        axes.set_ylabel("heuristic")
        handles = [
            Line2D([], [], linestyle="none", marker=series(k)[1], color=series(k)[0], markersize=5, label=name)
            for k, name in enumerate(names)
        ]
        if not rows["proven"].all():
            handles.append(Line2D([], [], linestyle="none", marker="o", color=MUTED, markerfacecolor="none",
                                  label="open: over a bound"))  # fmt: skip
        legend_below(figure, handles)
    return figure


def finding(rows: pd.DataFrame) -> str:
    """Say of every heuristic how often it is optimal, its median and its worst ratio."""
    parts = []
    for (_, heuristic), here in rows.groupby(["formulation", "heuristic"]):
        sure = here[here["proven"]]
        best = int((sure["ratio"] <= 1 + 1e-6).sum())
        open_ = f", {len(here) - len(sure)} over a bound" if len(sure) < len(here) else ""
        parts.append(
            f"{heuristic}: optimal on {best} of {len(here)}{open_}, median {here['ratio'].median():.3g}, "
            f"worst {here['ratio'].max():.3g}"
        )
    return "; ".join(parts) + "."


def _figure(name: str, paper: str, where: str, title: str, says: str, *wanted: Heuristics) -> PaperFigure:
    select: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: gap_rows(rows, wanted)  # noqa: E731
    return PaperFigure(f"gap-{name}", paper, where, title, says, f"gap-{name}", select, draw, finding)


FIGURES: tuple[PaperFigure, ...] = (
    _figure(
        "alltoall", "alltoall", "section 3.1, App. D.1", "Single paths and layers by heuristics over the optimum",
        "Load-aware shortest paths underperform the ILP, where tractable, by more than 2 times; three heuristics "
        "assign virtual channels.",
        Heuristics("alltoall.min-congestion", ("sssp", "lp-rounding")),
        Heuristics("alltoall.virtual-channels", ("layer-assignment",), ("heuristic",)),
    ),
    _figure(
        "lumorph", "lumorph", "Algorithms 1, 2", "Routes and rounds by heuristics over the optimum or a bound",
        "Routes are random shortest ones, or those of a MILP for the least overlap of circuits.",
        Heuristics("lumorph.min-overlap", ("random-shortest", "xy-routes", "sssp", "lp-rounding")),
        Heuristics(
            "lumorph.rounds",
            ("recursive", "ring", "tree", "double-binary-tree", "divide-and-conquer", "layer-to-layer"), ("radix",),
        ),
    ),
    _figure(
        "sipml", "sipml", "sections 3.2, 3.3", "First fit and degree-aware placement over the optimum or a bound",
        "The placement heuristic is used because its ILP is prohibitive; wavelengths are reused on the ring.",
        Heuristics("sipml.ring-wavelengths", ("ring-first-fit",)),
        Heuristics("sipml.placement", ("degree-aware",)),
    ),
    _figure(
        "optree", "optree", "Theorem 2", "Uniform trees of the theorem's depth over the best trees",
        "The depth of Theorem 2 makes the number of communication steps least.",
        Heuristics("optree.tree", ("uniform-tree",), ("count",)),
    ),
)  # fmt: skip
