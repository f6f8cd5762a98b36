"""SiP-ML: model and data parallelism, and circuits over switches by degree; the paper's figures are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.papers.paper_figure import Figures, argument, frame
from opticoll.analysis.plots.marks import curve, marks, reference
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import log_axes, ticks_at
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FIGURES = Figures("sipml")
# hybrids ------------------------------------------------------------------------------------------------------------
#: GPUs, circuits per GPU, and their bandwidth [bytes/s] (8 Tb/s per circuit).
_GPUS, _DEGREE, _BANDWIDTH = 16, 5, 1e12
#: Model, layers, width and batches of all groups.
_HYBRIDS = (("transformer", 2, 1024, (16, 64)), ("resnet", 2, 64, (64,)), ("dlrm", 2, 1024, (65536, 524288)))


def _hybrid_rows(_: pd.DataFrame) -> pd.DataFrame:
    from opticoll.solvers.methods.sipml.degree_aware import hybrids

    rows = []
    for model, layers, hidden, batches in _HYBRIDS:
        spec = f"op-graph:model={model},layers={layers},hidden={hidden}"
        for batch in batches:
            tried = hybrids(spec, _GPUS, batch, degree=_DEGREE, bandwidth=_BANDWIDTH)
            rows += [
                {"case": f"{model}, batch {batch}", "k": one.k, "time": one.time, "makespan": one.makespan}
                for one in tried
            ]
    return frame(rows)


def _hybrid(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.2, x=f"GPUs per group k, of {_GPUS}", y="iteration time ÷ minimum over k [–]", columns=2) as (
        figure,
        axes,
        handles,
    ):
        for number, (case, group) in enumerate(rows.groupby("case", sort=False)):
            handles += curve(axes, group["k"], group["time"] / group["time"].min(), number, str(case))
        log_axes(axes)
        ticks_at(axes, (1, 2, 4, 8, 16))
    return figure


@FIGURES.drawn("sipml-hybrid", _hybrid_rows, _hybrid)
def _hybrid_finding(rows: pd.DataFrame) -> str:
    parts = []
    for case, group in rows.groupby("case", sort=False):
        times = group.set_index("k")["time"]
        parts.append(
            f"{case}: k = {times.idxmin()}, {times[1] / times.min():.3g} times as fast as k = 1 and "
            f"{times[_GPUS] / times.min():.3g} times as k = {_GPUS}"
        )
    return "Best: " + "; ".join(parts) + "."


# circuits over switches ---------------------------------------------------------------------------------------------


def _ocs_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Proven optima: degree, traffic, and the time over that of divisible circuits."""
    runs = rows[rows["ok"] & (rows["formulation"] == "sipml.ocs-circuits") & rows["proof"].isin(PROVEN)].copy()
    runs["degree"] = [int(argument(spec, "degree") or 0) for spec in runs["instance"]]
    runs["traffic"] = [argument(spec, "traffic") or "alltoall" for spec in runs["instance"]]
    ideal = [_volume_bound(spec) for spec in runs["instance"]]
    runs["ratio"] = runs["objective"] / np.asarray(ideal, dtype=float)
    runs = runs.drop_duplicates(["instance", "method"])
    columns = ["instance", "n", "method", "degree", "traffic", "objective", "ratio", "time_solve_s"]
    return runs[columns].sort_values(["traffic", "degree"])


def _volume_bound(spec: str) -> float:
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.instances import parse

    bounds = {bound.name: bound.value for bound in ocs_circuits.OcsCircuits.prepare(parse(spec)).bounds()}
    return bounds["volume"]


def _ocs(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.2, x="degree D (switches, ports of a server)", y="time ÷ time of divisible circuits [–]") as (
        figure,
        axes,
        handles,
    ):
        for number, (traffic, group) in enumerate(rows.groupby("traffic")):
            mean = group.groupby("degree")["ratio"].mean()
            marks(axes, group["degree"], group["ratio"], number, markersize=4, alpha=0.5)
            handles += curve(axes, mean.index, mean, number, f"{traffic} (mean)", markersize=6)
        reference(axes, y=1.0)
        log_axes(axes, "x")
    return figure


@FIGURES.drawn("sipml-ocs", _ocs_rows, _ocs)
def _ocs_finding(rows: pd.DataFrame) -> str:
    ends = []
    for traffic, group in rows.groupby("traffic"):
        mean = group.groupby("degree")["ratio"].mean()
        ends.append(f"{traffic} {mean.iloc[0]:.3g} at D = {mean.index[0]}, {mean.iloc[-1]:.3g} at D = {mean.index[-1]}")
    both = rows.groupby("instance")["method"].nunique()
    twice = [name for name, count in both.items() if count > 1]
    spread = rows[rows["instance"].isin(twice)].groupby("instance")["objective"].agg(lambda v: v.max() / v.min() - 1)
    agreement = f" ILP and polynomial method agree on {len(twice)} instances to {spread.max():.1g}." if twice else ""
    return (
        f"Time of whole circuits over divisible ones: {'; '.join(ends)}.{agreement}"
        if ends
        else "No proven result yet."
    )
