"""Figures 10 and 13-15 of the TopoOpt paper."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, argument, frame
from opticoll.analysis.papers.topoopt import price_claims as cost
from opticoll.analysis.papers.topoopt.iteration_loads import point_to_point_loads, slowdown
from opticoll.analysis.papers.topoopt.network_claims import TAXES, job
from opticoll.analysis.papers.topoopt.simulated_iterations import BATCHES, GIGABIT
from opticoll.analysis.plots.marks import curve, note, reference, stars
from opticoll.analysis.plots.panels import one_panel, styled_figure
from opticoll.analysis.plots.style import log_axes, series, ticks_at
from opticoll.instances import parse
from opticoll.instances.training.training_jobs import NUMBER_BYTES, training_job
from opticoll.solvers.methods.topoopt import ring_permutations
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from opticoll.formulations.topoopt.circuit_design import CircuitDesign


FIGURES = Figures("topoopt")
DEGREES = (4, 8)
#: Bandwidth of a link in figures 12-15 [bytes/s].
LINK = 100 * GIGABIT
_NAMES = {
    "topoopt": "TopoOpt (patch panels) and fat-tree",
    "ocs": "OCS-reconfig, TopoOpt with OCSs",
    "ideal-switch": "Ideal Switch",
    "oversub-fat-tree": "Oversub. fat-tree",
    "expander": "Expander",
}
#: Cost over TopoOpt's with patch panels, on average: section 5.2.
_PRINTED_COSTS = {"ideal switch by the paper's mean ratio, 3.2": 3.2, "OCSs by the paper's mean ratio, 1.33": 1.33}


@lru_cache(maxsize=32)
def _design(degree: int, batch: int) -> CircuitDesign:
    """The all-to-all DLRM of section 5.4 on 128 servers, forwarded by CoinChangeMod."""
    return topology_finder(parse(job(degree, batch)), forwarding="coin-change")


def _gradients() -> float:
    """Bytes of the gradients of all servers: R as counted in the shares of figure 12."""
    return 128.0 * NUMBER_BYTES * training_job("dlrm", "5.4").dense_weights


# figure 10 ------------------------------------------------------------------------------------------------------


def _cost_rows(_: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for degree, bandwidth in ((4, 100), (8, 200)):
        for servers in (128, 256, 432, 1024, 2000):
            for architecture in cost.ARCHITECTURES:
                price = cost.interconnect_cost(architecture, servers, degree, bandwidth)
                rows.append({"degree": degree, "n": servers, "architecture": architecture, "cost": price})
    return frame(rows)


def _cost(rows: pd.DataFrame) -> Figure:
    with styled_figure(7.2, 4.0, columns=2) as (figure, handles):
        for axes, (degree, group) in zip(figure.subplots(1, 2, sharey=True), rows.groupby("degree"), strict=True):
            handles.clear()
            for number, (architecture, line) in enumerate(group.groupby("architecture")):
                handles += curve(axes, line["n"], line["cost"] / 1e6, number, _NAMES[str(architecture)], linewidth=1.2)
            own = group[group["architecture"] == "topoopt"]
            for (label, factor), marker in zip(_PRINTED_COSTS.items(), ("*", "P"), strict=True):
                handles += stars(axes, own["n"], own["cost"] / 1e6 * factor, label, markersize=9, marker=marker)
            log_axes(axes)
            ticks_at(axes, (128, 432, 1024, 2000))
            axes.set_xlabel("servers")
            axes.set_title(f"d = {degree}, B = {100 if degree == 4 else 200} Gb/s")
        figure.axes[0].set_ylabel("interconnect cost [million $]")
    return figure


@FIGURES.drawn("topoopt-10", _cost_rows, _cost)
def _cost_finding(rows: pd.DataFrame) -> str:
    table: Any = rows[rows["n"] == 128].pivot_table(index="degree", columns="architecture", values="cost")
    ratios = table.div(table["topoopt"], axis=0)
    parts = [
        f"{_NAMES[a]} {ratios.loc[4, a]:.2f} (d = 4) and {ratios.loc[8, a]:.2f} (d = 8)"
        for a in cost.ARCHITECTURES
        if a != "topoopt"
    ]
    slower = [
        f"{cost.equal_cost_bandwidth(degree, bandwidth, cost.NIC_RULES[0], 2):.0f} Gb/s (d = {degree}, B = {bandwidth})"
        for degree, bandwidth in ((4, 100), (8, 200))
    ]
    return (
        "Cost relative to TopoOpt with patch panels, from the components of appendix G: "
        + ", ".join(parts)
        + f". The fat-tree costs the same by the choice of B', which is {' and '.join(slower)} with one NIC per "
        "interface. SiP-ML has no prices in Table 2."
    )


# figure 13 ------------------------------------------------------------------------------------------------------


def _tax_rows(_: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for degree in DEGREES:
        for batch in BATCHES:
            design = _design(degree, batch)
            records, direct = slowdown(design), float(design.pool.point_to_point.sum())
            tax = (_gradients() + records.mean_hops * direct) / (_gradients() + direct)
            rows.append({"degree": degree, "batch": batch, "tax": tax, "ring_tax": records.tax})
    return frame(rows)


def _tax(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.2, x="samples per GPU", y="bandwidth tax [–]", columns=2) as (figure, axes, handles):
        for number, (degree, group) in enumerate(rows.groupby("degree")):
            handles += curve(
                axes,
                group["batch"],
                group["tax"],
                number,
                f"d = {degree}, R = bytes of the gradients",
                markersize=6,
                linewidth=1.2,
            )
            handles += curve(
                axes,
                group["batch"],
                group["ring_tax"],
                number,
                f"d = {degree}, R = bytes sent by rings",
                filled=False,
                markersize=6,
                linestyle=(0, (4, 3)),
            )
        printed = np.array([(batch, tax) for (_, batch), tax in TAXES.items()])
        handles += stars(axes, printed[:, 0], printed[:, 1], "paper", markersize=13)
        log_axes(axes, "x")
        ticks_at(axes, BATCHES)
    return figure


@FIGURES.drawn("topoopt-13", _tax_rows, _tax)
def _tax_finding(rows: pd.DataFrame) -> str:
    table = rows.set_index(["degree", "batch"])["tax"]
    parts = [f"d = {d}, batch {b}: {table[(d, b)]:.2f} (paper {printed:.2f})" for (d, b), printed in TAXES.items()]
    return "; ".join(parts) + ", with all-reduce counted as in figure 12."


# figure 14 ------------------------------------------------------------------------------------------------------


def _path_rows(_: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for degree in DEGREES:
        count = np.bincount(ring_permutations.hops(128, ring_permutations.selected(128, degree))[1:])
        below = np.cumsum(count) / 127
        rows += [{"degree": degree, "hops": h, "cdf": below[h], "pairs": int(count[h])} for h in range(count.size)]
    return frame(rows)


def _paths(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.0, x="path length [hops]", y="share of server pairs") as (figure, axes, handles):
        for number, ((degree, group), printed) in enumerate(zip(rows.groupby("degree"), (5.7, 3.0), strict=True)):
            colour, _ = series(number)
            handles += axes.step(
                group["hops"], group["cdf"], where="post", color=colour, linewidth=1.6, label=f"d = {degree}"
            )
            reference(axes, x=printed, color=colour, linestyle=(0, (2, 3)))
            note(axes, f"paper's mean,\nd = {degree}", (printed, 0.03), (4, 0))
        axes.grid(visible=True)
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
    return figure


@FIGURES.drawn("topoopt-14", _path_rows, _paths)
def _path_finding(rows: pd.DataFrame) -> str:
    parts = []
    for degree, group in rows.groupby("degree"):
        mean = float((group["hops"] * group["pairs"]).sum() / 127)
        parts.append(f"d = {degree}: mean {mean:.2f}, longest {int(group['hops'].max())}")
    return "; ".join(parts) + ". The paper's means are 5.7 and 3."


# figure 15 ------------------------------------------------------------------------------------------------------


def _load_rows(rows: pd.DataFrame) -> pd.DataFrame:
    records: list[dict[str, Any]] = []
    for _, row in rows[rows["ok"] & (rows["formulation"] == "topoopt.routing") & rows["proof"].isin(PROVEN)].iterrows():
        metrics, settings = json.loads(row["metrics"]), json.loads(row["settings"] or "{}")
        ports, samples = (argument(row["instance"], name) for name in ("degree", "batch"))
        ours = argument(row["instance"], "section") == "5.4" and settings.get("traffic") == "point-to-point"
        if not ours or int(row["n"]) != 128 or settings.get("circuits", "topology-finder") != "topology-finder":
            continue
        both = (("shortest paths, hashed", "heuristic_quantiles"), ("optimal routing", "load_quantiles"))
        for routing, key in both:
            if ports and samples and key in metrics:
                records.append({"degree": int(ports), "batch": int(samples), "routing": routing, "loads": metrics[key]})
    for degree, batch in sorted({(one["degree"], one["batch"]) for one in records}):
        load = point_to_point_loads(_design(degree, batch))
        quantiles = np.quantile(load, np.linspace(0, 1, 101)).tolist()
        records.append({"degree": degree, "batch": batch, "routing": "CoinChangeMod", "loads": quantiles})
    return frame(records).drop_duplicates(["degree", "batch", "routing"]) if records else frame(records)


def _loads(rows: pd.DataFrame) -> Figure:
    with styled_figure(7.2, 4.6, columns=2) as (figure, handles):
        lines: dict[str, Any] = {}
        names = sorted(set(rows["routing"]))
        panels = figure.subplots(1, rows["batch"].nunique(), sharey=True, squeeze=False)[0]
        for axes, (batch, group) in zip(panels, rows.groupby("batch"), strict=True):
            for _, row in group.iterrows():
                colour, _ = series(names.index(row["routing"]))
                name = f"d = {row['degree']}, {row['routing']}"
                values = np.asarray(row["loads"]) / 1e6
                line = axes.plot(
                    values,
                    np.linspace(0, 1, values.size),
                    color=colour,
                    linewidth=1.5,
                    label=name,
                    linestyle="-" if row["degree"] == 4 else (0, (4, 2)),
                )
                lines.setdefault(name, line[0])
            axes.grid(visible=True)
            axes.set_xlim(left=0)
            axes.set_ylim(0, 1.02)
            axes.set_title(f"{batch} samples per GPU")
            axes.set_xlabel("point-to-point load of a circuit [MB]")
        figure.axes[0].set_ylabel("share of circuits")
        handles += lines.values()
    return figure


@FIGURES.drawn("topoopt-15", _load_rows, _loads)
def _load_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (degree, batch), group in rows.groupby(["degree", "batch"]):
        printed = [
            f"{name} {max(load) / 1e6:.1f} MB, smallest {min(load) / max(load):.2f} of it"
            for name, load in zip(group["routing"], group["loads"], strict=True)
        ]
        parts.append(f"d = {degree}, batch {batch}: {', '.join(printed)}")
    return "Largest load: " + "; ".join(parts) + "."
