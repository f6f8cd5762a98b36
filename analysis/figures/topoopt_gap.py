"""TopologyFinder and OCS-reconfig against the best circuits: how far the heuristics are from what is proven."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures.base import PaperFigure, argument
from analysis.plots_style import INK, MUTED, legend_below, new_figure, series, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_FORMULATION = "topoopt.topology"
_METHODS = {
    "topology-finder": "TopologyFinder",
    "ocs-reconfig": "OCS-reconfig",
    "design-search": "exchanges and enumeration",
}


def _rows(rows: pd.DataFrame) -> pd.DataFrame:
    """One row an instance and method: ``ratio``, its maximum load over the best bound of that instance."""
    found = rows[(rows["formulation"] == _FORMULATION) & rows["ok"] & rows["method"].isin(tuple(_METHODS))].copy()
    settings = [json.loads(text or "{}") for text in found["settings"]]
    plain = [
        one.get("objective", "max-load") == "max-load" and one.get("rings", "free") == "free"
        and str(one.get("parallel", "0")) == "0" for one in settings
    ]  # fmt: skip
    found = found[np.array(plain, dtype=bool)]
    found = found.sort_values("objective", kind="stable").drop_duplicates(["instance", "method"])
    found["traffic"] = [argument(spec, "traffic") or "alltoall" for spec in found["instance"]]
    found["degree"] = [int(argument(spec, "degree") or 0) for spec in found["instance"]]
    found["ratio"] = found["objective"] / found.groupby("instance")["bound"].transform("max")
    proven = found[found["proof"] == "optimal"]["instance"].unique()
    found["proven"] = found["instance"].isin(proven)
    return found.sort_values(["method", "n", "instance"])


def _draw(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(6.6, 4.4)
        axes = figure.add_subplot()
        handles: list[Any] = []
        for number, (method, label) in enumerate(_METHODS.items()):
            here = rows[rows["method"] == method]
            if not len(here):
                continue
            colour, marker = series(number)
            aside = 0.14 * (number - 1)  # methods that agree stand side by side
            for proven, filled in ((True, colour), (False, "none")):
                part = here[here["proven"] == proven]
                drawn = axes.plot(part["n"] + aside, part["ratio"], color=colour, marker=marker, linestyle="none",
                                  markersize=5, markerfacecolor=filled, label=label)  # fmt: skip
                if proven or not len(here[here["proven"]]):
                    handles += drawn
        axes.axhline(1.0, color=INK, linewidth=1)
        axes.annotate("filled: the optimum is proven; hollow: over the best bound", (0.01, 0.99),
                      xycoords="axes fraction", va="top", fontsize=8, color=MUTED)  # fmt: skip
        axes.set_xticks(sorted(set(rows["n"].astype(int))))
        axes.set_xlabel("servers n")
        axes.set_ylabel("maximum load over optimum or bound")
        legend_below(figure, handles, columns=3)
    return figure


def _finding(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Nothing solved yet."
    parts = []
    own = rows[rows["method"] == "design-search"]
    proven = own[own["proven"]]
    if len(proven):
        parts.append(
            f"{proven['instance'].nunique()} of {own['instance'].nunique()} instances are proven, up to "
            f"n = {int(proven['n'].max())}"
        )
    open_ones = own[~own["proven"]]
    if len(open_ones):
        parts.append(f"the others within {100 * (open_ones['ratio'].max() - 1):.3g} % of the bound")
    for method in ("topology-finder", "ocs-reconfig"):
        for traffic, here in sorted(rows[(rows["method"] == method) & rows["proven"]].groupby("traffic"), key=str):
            parts.append(
                f"{_METHODS[method]} on {traffic} traffic: {here['ratio'].min():.3g} to {here['ratio'].max():.3g} "
                "times the optimum"
            )
    return "; ".join(parts) + "."


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        name="topoopt-gap", paper="TopoOpt", where="section 4.2, Algorithms 1 and 5",
        title="Heuristic circuits against the best ones",
        says="TopologyFinder finds an efficient topology and routing; joint optimisation explodes at six nodes.",
        study="topoopt-gap", select=_rows, draw=_draw, finding=_finding,
    ),
)  # fmt: skip
