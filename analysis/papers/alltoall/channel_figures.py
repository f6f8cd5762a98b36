"""Load of deadlock-free routes against the number of layers of virtual channels, with the bound on each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, settings_of
from opticoll.analysis.plots.marks import curve, marks
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.store_plots import family_of
from opticoll.analysis.plots.style import legend_mark, series

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIGURES = Figures("alltoall")
#: Families of the study, in the order of the panels, and their names.
NAMES = {
    "torus": "",
    "genkautz": "GenKautz",
    "random-regular": "Jellyfish",
    "xpander": "Xpander",
    "slimfly": "Slim Fly, q =",
}
#: Panels beside each other.
COLUMNS = 4


def _rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Least verified load and best bound by network and number of layers, over all paths, one shard a pair."""
    stated = {"objective": "load", "paths": "all", "lmax": "0", "demand": "uniform"}
    selected = rows[(rows["formulation"] == "alltoall.channels") & rows["instance"].map(family_of).isin(list(NAMES))]
    for name, value in stated.items():
        selected = selected[np.array(settings_of(selected, name, value)) == value]
    layers = [int(text) for text in settings_of(selected, "layers", "2")]
    load = selected["objective"].where(selected["ok"]).astype(float)
    table = selected.assign(layers=layers, load=load, bound=selected["bound"].astype(float))
    least = table.groupby(["instance", "layers"], as_index=False).agg(load=("load", "min"), bound=("bound", "max"))
    order = [*NAMES]
    rank = least["instance"].map(lambda spec: order.index(family_of(spec)))
    return least.assign(_rank=rank).sort_values(["_rank", "instance", "layers"]).drop(columns="_rank")


def _name(spec: str) -> str:
    """The name that a family has in publications, and its parameters."""
    return f"{NAMES[family_of(spec)] or family_of(spec)} {spec.partition(':')[2]}"


def _draw(table: pd.DataFrame) -> Figure:
    groups = list(table.groupby("instance", sort=False))
    down = -(-len(groups) // COLUMNS)
    with styled_figure(9.0, 0.6 + 2.3 * down) as (figure, handles):
        panels = figure.subplots(down, COLUMNS, squeeze=False, sharex=True).ravel()
        for number, (axes, (spec, group)) in enumerate(zip(panels, groups, strict=False)):
            curve(axes, group["layers"], group["bound"], 1, marker="_", markersize=10, linestyle="--")
            proven = group["load"] <= group["bound"] * (1 + 1e-6)
            marks(axes, group["layers"][~proven], group["load"][~proven], 0, filled=False)
            marks(axes, group["layers"][proven], group["load"][proven], 0)
            axes.set_title(_name(str(spec)), fontsize=9)
            axes.set_ylim(0, 1.15 * float(group[["load", "bound"]].max().max()))
            axes.set_xlim(0.5, int(table["layers"].max()) + 0.5)
            axes.set_xticks(sorted(table["layers"].unique()))
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("layers [count]")
            if number % COLUMNS == 0:
                axes.set_ylabel("largest load [shards ÷ link bandwidth]")
            axes.grid(visible=True, axis="y")
        for axes in panels[len(groups) :]:
            axes.remove()
        colour, marker = series(0)
        handles += [
            legend_mark("load of verified routes, proven least", colour, marker),
            legend_mark("load of verified routes", colour, marker, filled=False),
            legend_mark("lower bound", series(1)[0], "_"),
        ]
    return figure


@FIGURES.drawn("alltoall-channels", _rows, _draw)
def _finding(table: pd.DataFrame) -> str:
    parts = []
    for spec, group in table.groupby("instance", sort=False):
        loads = (
            f"{load:g}" if load <= bound * (1 + 1e-6) else f"{bound:g} to {load:g}"
            for load, bound in zip(group["load"], group["bound"], strict=True)
        )
        parts.append(f"{_name(str(spec))} {', '.join(loads)}")
    return "Least load by the number of layers from 1, or from bound to best found: " + "; ".join(parts) + "."
