"""Figure 16 of the TopoOpt paper, with jobs that queue, are placed and share racks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from opticoll.analysis.papers.paper_figure import Figures, frame
from opticoll.analysis.papers.topoopt.cluster_claims import LOADS, published, published_mean
from opticoll.analysis.plots.marks import curve, marks
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.training.cluster import cluster

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FIGURES = Figures("topoopt")
#: Jobs that are simulated at every load.
JOBS = 200
#: Networks and placements that are drawn.
VARIANTS: dict[str, tuple[str, str]] = {
    "TopoOpt": ("topoopt", "first"),
    "Ideal Switch": ("ideal-switch", "first"),
    "Fat-tree of similar cost": ("fat-tree", "first"),
    "Oversub. fat-tree, jobs on neighbours": ("oversubscribed-fat-tree", "first"),
    "Oversub. fat-tree, jobs scattered": ("oversubscribed-fat-tree", "random"),
}
#: Over TopoOpt, averaged over the loads: section 5.6.
PRINTED = {"Fat-tree of similar cost": (1.7, 3.0), "oversubscribed": (1.15, 1.4)}


@cache
def simulated(name: str, active: int) -> tuple[float, float]:
    """Mean and 99 % tail of the iterations with this number of active jobs [s]."""
    network, placement = VARIANTS[name]
    result = cluster(network, active=active, jobs=JOBS, placement=placement)
    return result.mean_s, result.tail_s


def _rows(_: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name in VARIANTS:
        for active in LOADS:
            mean, tail = simulated(name, active)
            rows.append({"network": name, "jobs": active, "source": "simulated", "mean": mean, "tail": tail})
    for name in ("TopoOpt", "Ideal Switch"):
        for active in LOADS:
            own = published(VARIANTS[name][0], jobs=active)
            mean, tail = published_mean(own), max(one.most for one in own)
            rows.append({"network": name, "jobs": active, "source": "published", "mean": mean, "tail": tail})
    return frame(rows)


def _draw(rows: pd.DataFrame) -> Figure:
    with styled_figure(8.0, 4.4, columns=2) as (figure, handles):
        left, right = figure.subplots(1, 2)
        for axes, column, label in ((left, "mean", "mean iteration [ms]"), (right, "tail", "99 % of iterations [ms]")):
            handles.clear()
            for number, name in enumerate(VARIANTS):
                own = rows[rows["network"] == name]
                ours, theirs = (own[own["source"] == source] for source in ("simulated", "published"))
                handles += curve(axes, ours["jobs"], 1e3 * ours[column], number, name, markersize=5, linewidth=1.2)
                if len(theirs):
                    words, times = f"{name}, published", 1e3 * theirs[column]
                    handles += marks(
                        axes, theirs["jobs"], times, number, words, filled=False, marker="*", markersize=11
                    )
            axes.set_xlabel("active jobs of 16 servers")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
    return figure


@FIGURES.drawn("topoopt-16-cluster", _rows, _draw)
def _finding(rows: pd.DataFrame) -> str:
    ours: Any = rows[rows["source"] == "simulated"].set_index(["network", "jobs"])[["mean", "tail"]]
    parts = []
    for name in list(VARIANTS)[2:]:
        over = (ours.loc[name] / ours.loc["TopoOpt"]).mean()
        printed = PRINTED.get(name, PRINTED["oversubscribed"])
        parts.append(f"{name} {over['mean']:.2f} and {over['tail']:.2f} (paper {printed[0]:g} and {printed[1]:g})")
    return (
        f"Mean and 99 % tail over TopoOpt's, averaged over the loads: {'; '.join(parts)}. Scattered jobs share uplinks "
        "as if all sent at all times; how the paper places them is not stated."
    )
