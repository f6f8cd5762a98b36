"""Figures 11, 12, 17, 27 and 28 of the TopoOpt paper: iteration times by flow-level simulation.

The times are those of :mod:`opticoll.analysis.papers.topoopt`. As a script, this module writes them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures
from opticoll.analysis.papers.topoopt.simulated_iterations import (
    BATCHES,
    FIELDS,
    LINKS,
    MODELS,
    NETWORKS,
    table,
    write_table,
)
from opticoll.analysis.papers.topoopt.time_claims import OVER_FAT_TREE, OVER_IDEAL
from opticoll.analysis.plots.marks import curve, stars
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import INK, log_axes, ticks_at

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.figure import Figure

FIGURES = Figures("topoopt")


@cache
def _table() -> pd.DataFrame:
    import pandas as pd

    rows = pd.DataFrame(table())
    numbers = [name for name in FIELDS if name not in ("model", "network")]
    return rows.assign(**{name: pd.to_numeric(rows[name]) for name in numbers})


def _of(figure: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def select(_: pd.DataFrame) -> pd.DataFrame:
        table = _table()
        return table[table["figure"] == figure].copy()

    return select


def ratio(rows: pd.DataFrame, model: str, over: str = "Fat-tree", under: str = "TopoOpt") -> float:
    """Mean over the links of the time on one network over that on another."""
    own = rows[rows["model"] == model].pivot_table(index="link_gbps", columns="network", values="seconds")
    return float((own[over] / own[under]).mean())


# drawings -----------------------------------------------------------------------------------------------------------


def _models(rows: pd.DataFrame) -> Figure:
    with styled_figure(9.6, 6.0) as (figure, handles):
        for axes, model in zip(figure.subplots(2, 3).flat, MODELS, strict=True):
            for number, network in enumerate(NETWORKS):
                selected = rows[(rows["model"] == model) & (rows["network"] == network)].sort_values("link_gbps")
                curve(axes, selected["link_gbps"], selected["seconds"], number, network, markersize=4, linewidth=1.1)
            log_axes(axes)
            ticks_at(axes, LINKS)
            axes.set_title(model)
            axes.set_xlabel("link [Gb/s]")
            if model in OVER_FAT_TREE and int(rows["degree"].iloc[0]) == 4:
                own = rows[(rows["model"] == model) & (rows["network"] == "TopoOpt")].sort_values("link_gbps")
                factors = {
                    "fat-tree by the paper's mean ratio": OVER_FAT_TREE[model],
                    "ideal switch by the paper's mean ratio": 1 / OVER_IDEAL.get(model, np.nan),
                }
                for (label, factor), dots in zip(factors.items(), ((2, 3), (6, 2)), strict=True):
                    axes.plot(
                        own["link_gbps"],
                        own["seconds"] * factor,
                        color=INK,
                        linewidth=0.9,
                        linestyle=(0, dots),
                        label=label,
                    )
        for axes in figure.axes[::3]:
            axes.set_ylabel("iteration time [s]")
        handles += _longest(figure)
    return figure


def _longest(figure: Figure) -> list[Any]:
    """The handles of the axes with the most lines."""
    return max((axes.get_lines() for axes in figure.axes), key=len)


def _models_finding(rows: pd.DataFrame) -> str:
    parts = [
        f"{model} {ratio(rows, model):.2f}"
        + (f" (paper {OVER_FAT_TREE[model]:.2g})" if model in OVER_FAT_TREE and rows["degree"].iloc[0] == 4 else "")
        for model in MODELS
    ]
    below = [f"{model} {ratio(rows, model, 'TopoOpt', 'Ideal Switch'):.2f}" for model in MODELS]
    return (
        f"Fat-tree over TopoOpt, averaged over the links: {', '.join(parts)}. TopoOpt over the ideal switch: "
        f"{', '.join(below)}."
    )


def _batches(rows: pd.DataFrame) -> Figure:
    """Draw times by batch and network, a panel for each degree, with the paper's ratios for d = 4."""
    with styled_figure(7.6, 4.2) as (figure, handles):
        for axes, (degree, group) in zip(figure.subplots(1, 2), rows.groupby("degree"), strict=True):
            for number, (network, line) in enumerate(group.groupby("network")):
                curve(axes, line["batch"], line["seconds"], number, str(network), linewidth=1.2)
            own = group[group["network"] == "TopoOpt"].set_index("batch")["seconds"]
            if degree == 4:
                stars(axes, [128, 2048], [2.7 * own[128], own[2048] / 1.1], "fat-tree by the paper's ratios")
            log_axes(axes, "x")
            ticks_at(axes, BATCHES, rotation=45)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("samples per GPU")
            axes.set_title(f"d = {degree}")
        figure.axes[0].set_ylabel("iteration time [s]")
        handles += _longest(figure)
    return figure


def _batches_finding(rows: pd.DataFrame) -> str:
    parts = []
    for degree, group in rows.groupby("degree"):
        table: Any = group.pivot_table(index="batch", columns="network", values="seconds")
        tree, ideal = table["Fat-tree"] / table["TopoOpt"], table["TopoOpt"] / table["Ideal Switch"]
        parts.append(
            f"d = {degree}: fat-tree over TopoOpt {tree[128]:.2f} at batch 128, {tree[2048]:.2f} at 2048; TopoOpt over "
            f"the ideal switch {ideal[128]:.2f} and {ideal[2048]:.2f}"
        )
    return (
        "; ".join(parts) + ". The paper, d = 4: 2.7 at batch 128, 1/1.1 = 0.91 at 2048, like the ideal switch at 128."
    )


#: Shortest interval [ms], and the rule by which circuits are chosen; a pause is a fifth of the interval at most.
_RULES = {50.0: "every 50 ms", 5.0: "every 5 pauses, at least 5 ms", 0.5: "every 5 pauses, at least 0.5 ms"}


def _pauses(rows: pd.DataFrame) -> Figure:
    with styled_figure(8.4, 4.8, columns=2) as (figure, handles):
        for axes, (model, group) in zip(figure.subplots(1, 2), rows.groupby("model"), strict=True):
            number = 0
            for network, line in group.groupby("network"):
                for least, rule in _RULES.items():
                    own = line["interval_ms"] == (5e-3 * line["pause_us"]).clip(lower=least)
                    shown = line[own].sort_values("pause_us")
                    curve(axes, shown["pause_us"], shown["seconds"], number, f"{network}, {rule}", linewidth=1.1)
                    number += 1
            table = _table()
            still = table[(table["figure"] == 28) & (table["degree"] == 8) & (table["model"] == model)]
            time = float(still[still["link_gbps"] == 100]["seconds"].iloc[0])
            axes.axhline(time, color=INK, linewidth=1, label="TopoOpt")
            slow = group[(group["network"] == "OCS-reconfig-noFW") & (group["interval_ms"] == 50)].sort_values(
                "pause_us"
            )
            if model == "bert":
                stars(axes, slow["pause_us"], 1.4 * slow["seconds"], "FW by the paper's ratio, 1.4", markersize=10)
            stars(axes, [1], [time], "noFW at 1 µs by the paper: as TopoOpt", markersize=9, marker="D")
            log_axes(axes)
            axes.set_xlabel("reconfiguration latency [µs]")
            axes.set_title(str(model))
        figure.axes[0].set_ylabel("iteration time [s]")
        handles += _longest(figure)
    return figure


def _pauses_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (model, interval), group in rows.groupby(["model", "interval_ms"]):
        table: Any = group.pivot_table(index="pause_us", columns="network", values="seconds")
        over = table["OCS-reconfig-FW"] / table["OCS-reconfig-noFW"]
        parts.append(f"{model}, every {interval:g} ms: {over.min():.2f} to {over.max():.2f}")
    return f"Time with forwarding over that without: {'; '.join(parts)}. The paper: 1.4 for BERT, below 1 for DLRM."


def _degrees(rows: pd.DataFrame) -> Figure:
    with styled_figure(7.6, 4.2, columns=4) as (figure, handles):
        for axes, (link, group) in zip(figure.subplots(1, 2), rows.groupby("link_gbps"), strict=True):
            for number, (model, line) in enumerate(group.groupby("model")):
                curve(axes, line["degree"], line["seconds"], number, str(model), markersize=6, linewidth=1.2)
                first = line.sort_values("degree").iloc[0]
                axes.plot(
                    line["degree"],
                    first["seconds"] * first["degree"] / line["degree"],
                    color=INK,
                    linewidth=0.8,
                    linestyle=(0, (2, 3)),
                    label="linear in d" if number == 2 else "_linear",
                )
            log_axes(axes, "y")
            axes.set_xlabel("degree d")
            axes.set_title(f"B = {link} Gb/s")
        figure.axes[0].set_ylabel("iteration time [s]")
        handles += [line for line in _longest(figure) if line.get_label() != "_linear"]
    return figure


def _degrees_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (link, model), group in rows.groupby(["link_gbps", "model"]):
        time = group.set_index("degree")["seconds"]
        parts.append(f"{model} at {link} Gb/s {time[4] / time[10]:.2f}")
    return f"Time at d = 4 over that at d = 10: {', '.join(parts)}."


FIGURES.drawn("topoopt-11", _of(11), _models)(_models_finding)
FIGURES.drawn("topoopt-12-simulated", _of(12), _batches)(_batches_finding)
FIGURES.drawn("topoopt-17", _of(17), _pauses)(_pauses_finding)
FIGURES.drawn("topoopt-27", _of(27), _models)(_models_finding)
FIGURES.drawn("topoopt-28", _of(28), _degrees)(_degrees_finding)

if __name__ == "__main__":
    write_table()
