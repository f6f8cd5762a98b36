"""Double binary trees in place of rings in TopologyFinder (appendix A of the TopoOpt paper)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, frame
from opticoll.analysis.plots.marks import curve, marks, reference
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import log_axes, ticks_at
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FIGURES = Figures("topoopt")
SERVERS, DEGREES = (8, 16, 32, 64), (4, 8)
JOBS = ("candle", "dlrm", "ncf", "vgg,parallel=hybrid")
#: The pools with all-reduce groups among those on which TopologyFinder is compared with the optimum.
SMALL = (
    "servers:n=6,degree=2,traffic=dlrm",
    "servers:n=6,degree=3,traffic=dlrm",
    "servers:n=6,degree=2,traffic=bert,parallel=hybrid",
    "servers:n=6,degree=3,traffic=bert,parallel=hybrid",
    "servers:n=8,degree=4,traffic=dlrm",
)


@cache
def compared(spec: str) -> tuple[float, float]:
    """Trees over rings: largest load of TopologyFinder's designs, and their bandwidth tax."""
    pool = parse(spec)
    rings, trees = topology_finder(pool), topology_finder(pool, trees=True)
    return trees.max_load / rings.max_load, trees.bandwidth_tax / rings.bandwidth_tax


def _rows(_: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for degree in DEGREES:
        for job in JOBS:
            for n in SERVERS:
                load, tax = compared(f"servers:n={n},degree={degree},traffic={job}")
                rows.append({"degree": degree, "n": n, "job": job.split(",")[0], "load": load, "tax": tax})
    return frame(rows)


def _draw(rows: pd.DataFrame) -> Figure:
    with styled_figure(7.6, 4.0, columns=4) as (figure, handles):
        for axes, (degree, group) in zip(figure.subplots(1, 2, sharey=True), rows.groupby("degree"), strict=True):
            handles.clear()
            servers = np.array(sorted(set(group["n"])))
            handles += curve(axes, servers, servers / (servers - 1), 0, "n / (n - 1)", markersize=0, linewidth=1.2)
            for number, (job, line) in enumerate(group.groupby("job"), 1):
                handles += marks(axes, line["n"], line["load"], number, str(job), markersize=6)
            reference(axes, y=1.0)
            log_axes(axes, "x")
            ticks_at(axes, servers.tolist())
            axes.set_xlabel("servers n")
            axes.set_title(f"d = {degree}")
        figure.axes[0].set_ylabel("largest load, trees ÷ rings [–]")
    return figure


@FIGURES.drawn("topoopt-trees", _rows, _draw)
def _finding(rows: pd.DataFrame) -> str:
    alone = rows[rows["job"] == "candle"]
    exact = bool(np.allclose(alone["load"], alone["n"] / (alone["n"] - 1), rtol=1e-9))
    words = "exactly" if exact else "not exactly"
    parts = [
        f"{job} {group['load'].median():.3g} ({group['load'].min():.3g} to {group['load'].max():.3g})"
        for job, group in rows.groupby("job")
    ]
    return (
        f"Data parallelism alone (candle): {words} n / (n - 1) times the load of rings, in 2 log n steps in place of "
        f"2 (n - 1). Median ratio by job: {', '.join(parts)}."
    )
