"""Figures 11, 12, 16, 17 and 28 of the TopoOpt paper: iteration times by flow-level simulation.

The simulated times are the table ``iteration_times.csv`` beside this module, which
``python -m opticoll.analysis.papers.topoopt.iteration_figures`` writes anew (some minutes). Its columns: figure, model,
batch (samples per GPU), network, degree, link_gbps, pause_us and interval_ms of circuits that change, and seconds.
Ends of flows are put together within 0.2 % of the time of Eq. (1).

What the paper leaves open and is chosen here: the fat-tree of similar cost has 1.4/5.7 of the bandwidth (section 5.5);
data parallelism, tables placed whole; one shortest path where servers forward, an even split over switches; the
expander is a random regular graph; OCS-reconfig and SiP-ML choose circuits every 50 ms.
"""

from __future__ import annotations

import csv
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from opticoll.analysis.papers import PaperFigure
from opticoll.analysis.papers.topoopt.time_claims import NETWORKS, TABLE, simulated, table
from opticoll.analysis.plots.style import INK, legend_below, log_axes, new_figure, series, style
from opticoll.instances.compute_times import shared_cluster
from opticoll.instances.training_jobs import training_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from matplotlib.figure import Figure

FIELDS = ("figure", "model", "batch", "network", "degree", "link_gbps", "pause_us", "interval_ms", "seconds")
MODELS = ("candle", "vgg", "bert", "dlrm", "ncf", "resnet50")
LINKS = (10, 25, 40, 100, 200)
BATCHES = (64, 128, 512, 2048)
#: Fat-tree over TopoOpt, averaged over the links: section 5.3.
PRINTED_RATIOS = {"candle": 2.8, "vgg": 2.8, "bert": 3.0, "dlrm": 2.8, "ncf": 2.1}
PAUSES = (1, 100, 10_000)


def _cells() -> Iterator[dict[str, Any]]:
    """What the table holds: figure, and the arguments of :func:`simulated`."""
    for model, network, link in product(MODELS, NETWORKS, LINKS):
        if (model, network) == ("ncf", "OCS-reconfig"):  # minutes a cell: its flows are routed anew at every interval
            continue
        yield {"figure": 11, "model": model, "network": network, "degree": 4, "link": link}
    for degree, batch, network in product((4, 8), BATCHES, ("TopoOpt", "Ideal Switch", "Fat-tree")):
        yield {"figure": 12, "model": "dlrm", "network": network, "degree": degree, "link": 100, "section": "5.4",
               "batch": batch}  # fmt: skip
    for model, degree in product(("bert", "candle", "dlrm", "vgg"), (4, 8)):
        yield {"figure": 16, "model": model, "network": "TopoOpt", "degree": degree, "link": 100, "section": "5.6"}
    for model, network in product(("dlrm", "bert"), ("OCS-reconfig-FW", "OCS-reconfig-noFW")):
        for pause in PAUSES:
            for interval in sorted({50.0, max(5.0, 5 * pause / 1000)}):
                yield {"figure": 17, "model": model, "network": network, "degree": 8, "link": 100, "pause": pause,
                       "interval": interval}  # fmt: skip
    for model, degree, link in product(("dlrm", "candle", "bert"), (4, 6, 8, 10), (40, 100)):
        yield {"figure": 28, "model": model, "network": "TopoOpt", "degree": degree, "link": link}


def record(cell: dict[str, Any]) -> dict[str, Any]:
    """The row of a cell, simulated."""
    given = {key: value for key, value in cell.items() if key not in ("figure", "pause", "interval", "network")}
    network = cell["network"]
    if "pause" in cell:
        forwards = str(network.endswith("-FW")).lower()
        network = (
            f"circuits:n={{n}},degree={{d}},rule=ocs-reconfig,interval_ms={cell['interval']},"
            f"pause_us={cell['pause']},forwarding={forwards}"
        )
    seconds = simulated(network=network, **given)
    return {
        "figure": cell["figure"], "model": cell["model"],
        "batch": cell.get("batch") or training_job(cell["model"], cell.get("section", "5.3")).batch,
        "network": cell["network"], "degree": cell["degree"], "link_gbps": cell["link"],
        "pause_us": cell.get("pause", ""), "interval_ms": cell.get("interval", ""),
        "seconds": f"{seconds:.6g}",
    }  # fmt: skip


def write_table() -> None:
    """Simulate all cells and write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for cell in _cells():
            writer.writerow(record(cell))
            file.flush()


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
    """Mean over the links of the time on one network by that on another."""
    own = rows[rows["model"] == model].pivot_table(index="link_gbps", columns="network", values="seconds")
    return float((own[over] / own[under]).mean())


# drawings -----------------------------------------------------------------------------------------------------------


def _models(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(9.6, 6.0)
        handles: list[Any] = []
        for axes, model in zip(figure.subplots(2, 3).flat, MODELS, strict=True):
            handles = []
            for number, network in enumerate(NETWORKS):
                colour, marker = series(number)
                here = rows[(rows["model"] == model) & (rows["network"] == network)].sort_values("link_gbps")
                handles += axes.plot(here["link_gbps"], here["seconds"], color=colour, marker=marker, markersize=4,
                                     linewidth=1.1, label=network)  # fmt: skip
            log_axes(axes)
            axes.set_xticks(LINKS, [str(b) for b in LINKS])
            axes.set_xticks([], minor=True)
            axes.set_title(model)
            axes.set_xlabel("link [Gb/s]")
            if model in PRINTED_RATIOS and int(rows["degree"].iloc[0]) == 4:
                own = rows[(rows["model"] == model) & (rows["network"] == "TopoOpt")].sort_values("link_gbps")
                handles += axes.plot(own["link_gbps"], own["seconds"] * PRINTED_RATIOS[model], color=INK, linewidth=0.8,
                                     linestyle=(0, (2, 3)), label="TopoOpt times the paper's mean ratio")  # fmt: skip
        for axes in figure.axes[::3]:
            axes.set_ylabel("iteration time [s]")
        legend_below(figure, handles if len(handles) > len(NETWORKS) else _longest(figure), columns=4)
    return figure


def _longest(figure: Figure) -> list[Any]:
    """The handles of the axes with most lines."""
    return max((axes.get_lines() for axes in figure.axes), key=len)


def _models_finding(rows: pd.DataFrame) -> str:
    parts = [
        f"{model} {ratio(rows, model):.2f}"
        + (f" (paper {PRINTED_RATIOS[model]:.2g})" if model in PRINTED_RATIOS and rows["degree"].iloc[0] == 4 else "")
        for model in MODELS
    ]
    below = [f"{model} {ratio(rows, model, 'TopoOpt', 'Ideal Switch'):.2f}" for model in MODELS]
    return (
        f"Fat-tree over TopoOpt, averaged over the links: {', '.join(parts)}. TopoOpt over the ideal switch: "
        f"{', '.join(below)}."
    )


def _batches(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(7.6, 4.2)
        for axes, (degree, here) in zip(figure.subplots(1, 2), rows.groupby("degree"), strict=True):
            for number, (network, line) in enumerate(here.groupby("network")):
                colour, marker = series(number)
                axes.plot(line["batch"], line["seconds"], color=colour, marker=marker, markersize=5, linewidth=1.2,
                          label=str(network))  # fmt: skip
            own = here[here["network"] == "TopoOpt"].set_index("batch")["seconds"]
            if degree == 4:
                axes.plot([128, 2048], [2.7 * own[128], own[2048] / 1.1], color=INK, marker="*", linestyle="none",
                          markersize=11, markerfacecolor="none", label="fat-tree by the paper's ratios")  # fmt: skip
            log_axes(axes, "x")
            axes.set_xticks(BATCHES, [str(b) for b in BATCHES], rotation=45)
            axes.set_xticks([], minor=True)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("samples per GPU")
            axes.set_title(f"d = {degree}")
        figure.axes[0].set_ylabel("iteration time [s]")
        legend_below(figure, _longest(figure))
    return figure


def _batches_finding(rows: pd.DataFrame) -> str:
    parts = []
    for degree, here in rows.groupby("degree"):
        table: Any = here.pivot_table(index="batch", columns="network", values="seconds")
        tree, ideal = table["Fat-tree"] / table["TopoOpt"], table["TopoOpt"] / table["Ideal Switch"]
        parts.append(
            f"d = {degree}: fat-tree over TopoOpt {tree[128]:.2f} at batch 128, {tree[2048]:.2f} at 2048; TopoOpt over "
            f"the ideal switch {ideal[128]:.2f} and {ideal[2048]:.2f}"
        )
    return (
        "; ".join(parts) + ". The paper, d = 4: 2.7 at batch 128, 1/1.1 = 0.91 at 2048, like the ideal switch at 128."
    )


def shared_means(rows: pd.DataFrame, degree: int) -> pd.DataFrame:
    """Published mean over the jobs of figure 16 at every load, and ours with the same numbers of jobs [s]."""
    import pandas as pd

    ours = rows[rows["degree"] == degree].set_index("model")["seconds"]
    found = []
    for jobs in (5, 10, 15, 20, 27):
        own = [one for one in shared_cluster() if (one.network, one.degree, one.jobs) == ("topoopt", degree, jobs)]
        count = sum(one.samples for one in own)
        found.append({
            "jobs": jobs, "published": sum(one.samples * one.mean for one in own) / count,
            "simulated": sum(one.samples * float(ours[one.model]) for one in own) / count,
        })  # fmt: skip
    return pd.DataFrame(found)


def _shared(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(7.6, 4.2)
        left, right = figure.subplots(1, 2)
        for number, degree in enumerate((4, 8)):
            colour, marker = series(number)
            means = shared_means(rows, degree)
            left.plot(means["jobs"], 1e3 * means["simulated"], color=colour, marker=marker, linewidth=1.2,
                      label=f"simulated, d = {degree}")  # fmt: skip
            left.plot(means["jobs"], 1e3 * means["published"], color=colour, marker="*", markersize=11,
                      markerfacecolor="none", linestyle="none", label=f"published, d = {degree}")  # fmt: skip
            own = rows[rows["degree"] == degree]
            for place, model in enumerate(sorted(own["model"])):
                published = [one for one in shared_cluster() if (one.network, one.degree, one.model)
                             == ("topoopt", degree, model)]  # fmt: skip
                x = place + 0.2 * number
                ends = [min(one.least for one in published), max(one.most for one in published)]
                right.plot([x, x], [1e3 * end for end in ends],
                           color=colour, marker="*", markersize=9, markerfacecolor="none")  # fmt: skip
                right.plot([x], 1e3 * own[own["model"] == model]["seconds"], color=colour, marker=marker)
        left.set_xlabel("active jobs of 16 servers")
        left.set_ylabel("mean iteration time [ms]")
        left.set_ylim(bottom=0)
        right.set_xticks(range(4), sorted(set(rows["model"])))
        right.set_ylabel("iteration time [ms]")
        right.set_xlabel("model")
        right.set_ylim(bottom=0)
        legend_below(figure, left.get_lines(), columns=2)
    return figure


def _shared_finding(rows: pd.DataFrame) -> str:
    parts = []
    for degree in (4, 8):
        means = shared_means(rows, degree)
        off = means["simulated"] / means["published"] - 1
        parts.append(f"d = {degree}: {100 * off.min():.1f} to {100 * off.max():.1f} %")
    ours = rows[rows["degree"] == 8].set_index("model")["seconds"]
    models = []
    for model in sorted(ours.index):
        own = [one for one in shared_cluster() if (one.network, one.degree, one.model) == ("topoopt", 8, model)]
        mean = sum(one.samples * one.mean for one in own) / sum(one.samples for one in own)
        models.append(f"{model} {1e3 * ours[model]:.1f} against {1e3 * mean:.1f} ms")
    return (
        f"Simulated means against the published ones, same jobs: {'; '.join(parts)}. At d = 8: {', '.join(models)}. "
        "Nothing is fitted; headers and start-up of packets are left out."
    )


def _pauses(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(7.6, 4.4)
        for axes, (model, here) in zip(figure.subplots(1, 2), rows.groupby("model"), strict=True):
            number = 0
            for network, line in here.groupby("network"):
                fixed = line[line["interval_ms"] == 50].sort_values("pause_us")
                scaled = line[line["interval_ms"] == (5e-3 * line["pause_us"]).clip(lower=5.0)].sort_values("pause_us")
                for shown, rule in ((fixed, "every 50 ms"), (scaled, "every 5 pauses, at least 5 ms")):
                    colour, marker = series(number)
                    axes.plot(shown["pause_us"], shown["seconds"], color=colour, marker=marker, markersize=5,
                              linewidth=1.1, label=f"{network}, {rule}")  # fmt: skip
                    number += 1
            table = _table()
            still = table[(table["figure"] == 28) & (table["degree"] == 8) & (table["model"] == model)]
            axes.axhline(float(still[still["link_gbps"] == 100]["seconds"].iloc[0]), color=INK, linewidth=1,
                         label="TopoOpt")  # fmt: skip
            log_axes(axes)
            axes.set_xlabel("reconfiguration latency [µs]")
            axes.set_title(str(model))
        figure.axes[0].set_ylabel("iteration time [s]")
        legend_below(figure, _longest(figure), columns=2)
    return figure


def _pauses_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (model, interval), here in rows[rows["interval_ms"] == 50].groupby(["model", "interval_ms"]):
        table: Any = here.pivot_table(index="pause_us", columns="network", values="seconds")
        over = table["OCS-reconfig-FW"] / table["OCS-reconfig-noFW"]
        parts.append(f"{model}, every {interval:.0f} ms: {over.min():.2f} to {over.max():.2f}")
    return f"Time with forwarding over that without: {'; '.join(parts)}. The paper: 1.4 for BERT, below 1 for DLRM."


def _degrees(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(7.6, 4.2)
        for axes, (link, here) in zip(figure.subplots(1, 2), rows.groupby("link_gbps"), strict=True):
            for number, (model, line) in enumerate(here.groupby("model")):
                colour, marker = series(number)
                axes.plot(line["degree"], line["seconds"], color=colour, marker=marker, linewidth=1.2, label=str(model))
            log_axes(axes, "y")
            axes.set_xlabel("degree d")
            axes.set_title(f"B = {link} Gb/s")
        figure.axes[0].set_ylabel("iteration time [s]")
        legend_below(figure, _longest(figure))
    return figure


def _degrees_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (link, model), here in rows.groupby(["link_gbps", "model"]):
        time = here.set_index("degree")["seconds"]
        parts.append(f"{model} at {link} Gb/s {time[4] / time[10]:.2f}")
    return f"Time at d = 4 over that at d = 10: {', '.join(parts)}."


FIGURES = (
    PaperFigure(
        "topoopt-11", "topoopt", "figure 11", "Iteration times on a dedicated cluster of 128 servers, d = 4",
        "A fat-tree of similar cost takes 2.8 (CANDLE, VGG, DLRM), 3 (BERT) and 2.1 (NCF) times as long as TopoOpt.",
        None, _of(11), _models, _models_finding,
    ),
    PaperFigure(
        "topoopt-12-simulated", "topoopt", "figure 12", "Iteration times of a DLRM with a table on each of 128 servers",
        "At d = 4 TopoOpt equals the ideal switch at batch 128 (the fat-tree takes 2.7 times as long) and takes 1.1 "
        "times the time of the fat-tree at 2048.", None, _of(12), _batches, _batches_finding,
    ),
    PaperFigure(
        "topoopt-16", "topoopt", "figure 16", "Iteration times of jobs of 16 servers on a shared cluster, B = 100 Gb/s",
        "The authors published TopoOpt's times: means of 60 to 71 ms at d = 8.", None, _of(16), _shared,
        _shared_finding,
    ),
    PaperFigure(
        "topoopt-17", "topoopt", "figure 17", "Effect of the reconfiguration latency, d = 8, B = 100 Gb/s",
        "Forwarding helps DLRM; it makes BERT's iteration 1.4 times as long.", None, _of(17), _pauses, _pauses_finding,
    ),
    PaperFigure(
        "topoopt-28", "topoopt", "figure 28", "Effect of the degree on TopoOpt, 128 servers",
        "CANDLE's gain is almost linear in d, DLRM's more than linear at 100 Gb/s, BERT's marginal.", None, _of(28),
        _degrees, _degrees_finding,
    ),
)  # fmt: skip

if __name__ == "__main__":
    write_table()
