"""Figures 1, 8 and 9 of the TopoOpt paper: traffic between 16 servers, and TopologyFinder's circuits for it.

The paper prints the range of a colour scale, not the numbers of its cells.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, frame
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import INK, MUTED, series
from opticoll.formulations.topoopt.circuit_design import Ring, ring_demand
from opticoll.instances import parse
from opticoll.instances.servers import ServerPool
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticoll.instances.topology import F64

    Panels = dict[str, F64]


FIGURES = Figures("topoopt")
SERVERS = 16
#: Steps of the rings in figure 8.
STEPS = (1, 3, 7)
#: Traffic below this is drawn as none [bytes].
LEAST = 1e6


def dlrm(placement: str = "hybrid") -> ServerPool:
    """The DLRM of section 2.1 on 16 servers of three interfaces."""
    return parse(f"servers:n={SERVERS},degree=3,traffic=dlrm,parallel={placement}")


def ringed(pool: ServerPool, *steps: int) -> F64:
    """Traffic with the all-reduce of all servers in equal parts on +p rings [bytes], ``(n, n)``."""
    (group,) = pool.groups
    chosen = [Ring(0, 1.0 / len(steps), tuple(group.ring(step).tolist())) for step in steps]
    return ring_demand(pool, chosen)


@cache
def _panels(name: str) -> Panels:
    hybrid = dlrm()
    if name == "1":
        return {"data parallel": ringed(dlrm("data"), 1), "hybrid": ringed(hybrid, 1)}
    return {f"+{step} ring": ringed(hybrid, step) for step in STEPS}


def _heat_rows(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def select(_: pd.DataFrame) -> pd.DataFrame:
        return frame(
            [
                {"panel": panel, "source": s, "target": t, "bytes": float(matrix[s, t])}
                for panel, matrix in _panels(name).items()
                for s, t in np.argwhere(matrix > 0).tolist()
            ]
        )

    return select


def heat(figure: Figure, panels: Panels, axes: list[Axes], printed: tuple[float, ...]) -> None:
    """Draw one heat map per axes, on a common logarithmic scale from 1 MB, with the sizes that the paper prints."""
    import matplotlib as mpl
    from matplotlib.colors import LogNorm

    most = max([*printed, *(float(matrix.max()) for matrix in panels.values())])
    scale = LogNorm(LEAST, most)
    edges = np.arange(SERVERS + 1) - 0.5
    drawn: Any = None
    for group, (name, matrix) in zip(axes, panels.items(), strict=True):
        shown = np.ma.masked_less(matrix, LEAST)
        drawn = group.pcolormesh(edges, edges, shown, norm=scale, cmap=mpl.colormaps["viridis_r"], linewidth=0)
        group.set_aspect("equal")
        group.set_ylim(edges[-1], edges[0])
        group.set_xticks([0, 5, 10, 15])
        group.set_yticks([0, 5, 10, 15])
        group.set_xlabel("to server")
        group.set_title(name)
    axes[0].set_ylabel("from server")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.85)
    bar.set_label("sent from server to server")
    decades = [10.0**k for k in range(6, 11) if LEAST <= 10.0**k <= most]
    bar.set_ticks([*decades, *printed], labels=[*map(_size, decades), *(f"paper: {_size(size)}" for size in printed)])
    bar.ax.hlines(printed, 0, 1, color=INK, linewidth=1.5, transform=bar.ax.get_yaxis_transform())


def _size(size: float) -> str:
    return f"{size / 1e6:g} MB" if size < 1e9 else f"{size / 1e9:g} GB"


def _heat(*printed: float) -> Callable[[pd.DataFrame], Figure]:
    def draw(rows: pd.DataFrame) -> Figure:
        panels: Panels = {}
        for name, group in rows.groupby("panel", sort=False):
            matrix = np.zeros((SERVERS, SERVERS))
            matrix[group["source"], group["target"]] = group["bytes"]
            panels[str(name)] = matrix
        with styled_figure(2.6 * len(panels) + 1.4, 3.0) as (figure, _):
            heat(figure, panels, list(np.atleast_1d(figure.subplots(1, len(panels), sharey=True))), printed)
        return figure

    return draw


def _heat_finding(printed: str) -> Callable[[pd.DataFrame], str]:
    def finding(rows: pd.DataFrame) -> str:
        parts = [
            f"{panel}: {len(group)} pairs, at most {group['bytes'].max() / 1e9:.3g} GB, at least "
            f"{group['bytes'].min() / 1e6:.3g} MB"
            for panel, group in rows.groupby("panel", sort=False)
        ]
        return "; ".join(parts) + f". {printed}"

    return finding


# figure 9 ------------------------------------------------------------------------------------------------


def _draw_circle(axes: Axes, links: list[tuple[int, int]], colour: str, name: str) -> None:
    angle = np.pi / 2 - 2 * np.pi * np.arange(SERVERS) / SERVERS
    x, y = np.cos(angle), np.sin(angle)
    arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 0.9, "shrinkA": 7, "shrinkB": 7}
    for s, t in links:
        axes.annotate("", (x[t], y[t]), (x[s], y[s]), arrowprops=arrow)
    axes.plot(x, y, linestyle="none", marker="o", markersize=3, color=MUTED)
    for v in range(SERVERS):
        axes.text(1.15 * x[v], 1.15 * y[v], str(v), ha="center", va="center", fontsize=7, color=INK)
    axes.set_aspect("equal")
    axes.set_axis_on()
    axes.set_xlim(-1.35, 1.35)
    axes.set_ylim(-1.35, 1.35)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(name)


def _finder_rows(_: pd.DataFrame) -> pd.DataFrame:
    design = topology_finder(dlrm())
    loads = design.loads
    return frame(
        [
            {"panel": "circuits", "source": int(s), "target": int(t), "bytes": float(load)}
            for (s, t), load in zip(design.circuits.tolist(), loads.tolist(), strict=True)
        ]
        + [
            {"panel": "traffic", "source": s, "target": t, "bytes": float(design.demand[s, t])}
            for s, t in np.argwhere(design.demand > 0).tolist()
        ]
    )


def _finder(rows: pd.DataFrame) -> Figure:
    circuits, traffic = (rows[rows["panel"] == name] for name in ("circuits", "traffic"))
    matrix = np.zeros((SERVERS, SERVERS))
    matrix[traffic["source"], traffic["target"]] = traffic["bytes"]
    with styled_figure(7.6, 3.6) as (figure, _):
        left, right = figure.subplots(1, 2)
        ends = list(zip(circuits["source"].tolist(), circuits["target"].tolist(), strict=True))
        _draw_circle(left, ends, series(0)[0], "circuits")
        heat(figure, {"traffic": matrix}, [right], (4e9,))
    return figure


def _finder_finding(rows: pd.DataFrame) -> str:
    circuits, traffic = (rows[rows["panel"] == name] for name in ("circuits", "traffic"))
    steps = sorted({int((t - s) % SERVERS) for s, t in zip(circuits["source"], circuits["target"], strict=True)})
    largest = traffic["bytes"].max() / 1e9
    return (
        f"Rings +{', +'.join(map(str, steps))}; largest transfer {largest:.3g} GB instead of 4 GB on one ring, busiest "
        f"circuit {circuits['bytes'].max() / 1e9:.3g} GB with forwarding. The paper's scale ends at 4 GB."
    )


FIGURES.drawn("topoopt-1", _heat_rows("1"), _heat(44e9, 4e9, 32e6))(_heat_finding("Paper: 44 GB, 4 GB and 32 MB."))
FIGURES.drawn("topoopt-8", _heat_rows("8"), _heat(4e9))(_heat_finding("Paper: up to 4 GB in all three."))
FIGURES.drawn("topoopt-9", _finder_rows, _finder)(_finder_finding)
