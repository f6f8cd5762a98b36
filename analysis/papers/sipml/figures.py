"""SiP-ML: circuits over switches by degree, wavelengths on the ring, placement by degree. The paper's own are lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers import PaperFigure, argument
from opticoll.analysis.plots.style import INK, legend_below, log_axes, new_figure, series, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def _setting(rows: pd.DataFrame, name: str, default: str) -> list[str]:
    return [str(json.loads(text or "{}").get(name, default)) for text in rows["settings"]]


# circuits over switches ---------------------------------------------------------------------------------------------


def _ocs_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Proven optima: degree, traffic, and the time over that of circuits that need not be whole."""
    found = rows[rows["ok"] & (rows["formulation"] == "sipml.ocs-circuits") & (rows["proof"] == "optimal")].copy()
    found["degree"] = [int(argument(spec, "degree") or 0) for spec in found["instance"]]
    found["traffic"] = [argument(spec, "traffic") or "alltoall" for spec in found["instance"]]
    ideal = [_volume_bound(spec) for spec in found["instance"]]
    found["ratio"] = found["objective"] / np.asarray(ideal, dtype=float)
    found = found.drop_duplicates(["instance", "method"])
    columns = ["instance", "n", "method", "degree", "traffic", "objective", "ratio", "time_solve_s"]
    return found[columns].sort_values(["traffic", "degree"])


def _volume_bound(spec: str) -> float:
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.instances import parse

    bounds = {bound.name: bound.value for bound in ocs_circuits.bounds(ocs_circuits.prepare(parse(spec)))}
    return bounds["volume"]


def _ocs(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(6.6, 4.2)
        axes = figure.add_subplot()
        handles: list[Any] = []
        for number, (traffic, here) in enumerate(rows.groupby("traffic")):
            colour, marker = series(number)
            mean = here.groupby("degree")["ratio"].mean()
            axes.plot(
                here["degree"], here["ratio"], linestyle="none", marker=marker, color=colour, markersize=4, alpha=0.5
            )
            handles += axes.plot(mean.index, mean, color=colour, marker=marker, markersize=6, linewidth=1,
                                 label=f"{traffic} (mean)")  # fmt: skip
        axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        log_axes(axes, "x")
        axes.set_xlabel("degree D (switches, ports of a server)")
        axes.set_ylabel("time ÷ that of divisible circuits [–]")
        legend_below(figure, handles)
    return figure


def _ocs_finding(rows: pd.DataFrame) -> str:
    ends = []
    for traffic, here in rows.groupby("traffic"):
        mean = here.groupby("degree")["ratio"].mean()
        ends.append(f"{traffic} {mean.iloc[0]:.3g} at D = {mean.index[0]}, {mean.iloc[-1]:.3g} at D = {mean.index[-1]}")
    both = rows.groupby("instance")["method"].nunique()
    twice = [name for name, count in both.items() if count > 1]
    spread = rows[rows["instance"].isin(twice)].groupby("instance")["objective"].agg(lambda v: v.max() / v.min() - 1)
    told = f" ILP and polynomial method agree on {len(twice)} instances to {spread.max():.1g}." if twice else ""
    return f"What whole circuits cost over divisible ones: {'; '.join(ends)}.{told}" if ends else "Nothing proven yet."


# ring ---------------------------------------------------------------------------------------------------------------


def _ring_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs on rings: wavelengths, method with its model, objective over the best bound known for the instance."""
    found = rows[rows["ok"] & (rows["formulation"] == "sipml.ring-wavelengths")].copy()
    found = found[found["instance"].str.startswith("wdm-ring")]
    found["wavelengths"] = [int(argument(spec, "wavelengths") or 0) for spec in found["instance"]]
    models = _setting(found, "model", "sets")
    found["scheme"] = [
        f"{method}, {model}" if method not in {"ring-sets", "ring-first-fit"} else method
        for method, model in zip(found["method"], models, strict=True)
    ]
    found["case"] = [
        f"{spec} {traffic} {seed}"
        for spec, traffic, seed in zip(
            found["instance"], _setting(found, "traffic", "alltoall"), _setting(found, "seed", "0"), strict=True
        )
    ]
    found["ratio"] = found["objective"] / found.groupby("case")["bound"].transform("max")
    columns = ["instance", "case", "n", "wavelengths", "scheme", "objective", "ratio", "proof", "time_solve_s"]
    return found[columns].sort_values(["n", "scheme", "wavelengths"])


def _ring(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(6.6, 6.4)
        above, below = figure.subplots(2, 1, sharex=True)
        handles: list[Any] = []
        for number, ((n, scheme), here) in enumerate(rows.groupby(["n", "scheme"])):
            colour, marker = series(number)
            above.plot(here["wavelengths"], here["ratio"], color=colour, marker=marker, markersize=5, linewidth=1)
            handles += below.plot(here["wavelengths"], here["time_solve_s"], color=colour, marker=marker, markersize=5,
                                  linewidth=1, label=f"n = {n}: {scheme}")  # fmt: skip
        above.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        log_axes(above, "x")
        log_axes(below)
        above.set_ylabel("slowest transfer ÷ best bound [–]")
        below.set_ylabel("solve time [s]")
        below.set_xlabel("wavelengths W")
        legend_below(figure, handles)
    return figure


def _ring_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (n, scheme), here in rows.groupby(["n", "scheme"]):
        proven = int((here["proof"] == "optimal").sum())
        worst = here["ratio"].max()
        parts.append(f"n = {n}, {scheme}: {proven} of {len(here)} proven, at most {worst:.4g} times the bound, "
                     f"{here['time_solve_s'].max():.3g} s")  # fmt: skip
    return "; ".join(parts) + "." if parts else "Nothing solved yet."


# placement ----------------------------------------------------------------------------------------------------------


def _placement_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs of Algorithm 1 over their bound, and over the optimum where an exact method has proven one."""
    found = rows[rows["ok"] & (rows["formulation"] == "sipml.placement")].copy()
    for name, default in (("degree", "3"), ("k", "4"), ("rule", "distance"), ("replicas", "2"), ("bandwidth", "0.0")):
        found[name] = _setting(found, name, default)
    found["degree"] = [int(d) for d in found["degree"]]
    found["model"] = [argument(spec, "model") or spec.partition(":")[2].partition(",")[0] for spec in found["instance"]]
    key = ["instance", "k", "degree", "rule", "replicas", "bandwidth"]
    exact = (found["proof"] == "optimal") & (found["method"] != "degree-aware")
    proven = found[exact].groupby(key)["objective"].min().rename("optimum")
    found = found.merge(proven, how="left", left_on=key, right_index=True)
    found = found[found["method"] == "degree-aware"]
    found["over_bound"] = found["objective"] / found["bound"]
    found["over_optimum"] = found["objective"] / found["optimum"]
    columns = [*key, "model", "n", "objective", "bound", "over_bound", "over_optimum", "time_solve_s"]
    return found[columns].drop_duplicates(key).sort_values(["model", "instance", "degree"])


def _placement(rows: pd.DataFrame) -> Figure:
    with style():
        figure = new_figure(6.6, 4.4)
        axes = figure.add_subplot()
        handles: list[Any] = []
        large = rows[rows["over_optimum"].isna()]
        for number, ((model, _), here) in enumerate(large.groupby(["model", "instance"])):
            colour, marker = series(number)
            handles += axes.plot(here["degree"], here["over_bound"], color=colour, marker=marker, markersize=5,
                                 linewidth=1, label=f"{model}, {int(here['n'].iloc[0])} sub-operations")  # fmt: skip
        axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        log_axes(axes, "y")
        axes.set_xlabel("degree D of a GPU (one circuit of it for the other groups)")
        axes.set_ylabel("makespan of Algorithm 1 ÷ lower bound [–]")
        legend_below(figure, handles, columns=2)
    return figure


def _placement_finding(rows: pd.DataFrame) -> str:
    small, large = rows[rows["over_optimum"].notna()], rows[rows["over_optimum"].isna()]
    parts = [
        f"{model}: {here['over_bound'].iloc[0]:.3g} times the bound at D = {here['degree'].iloc[0]}, "
        f"{here['over_bound'].iloc[-1]:.3g} at D = {here['degree'].iloc[-1]}"
        for model, here in large.groupby("model")
    ]
    if len(small):
        ratio = small["over_optimum"]
        parts.append(
            f"on {len(small)} small graphs with a proven optimum {ratio.mean():.4g} times it, at most {ratio.max():.4g}"
        )
    return "; ".join(parts) + "." if parts else "Nothing placed yet."


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "sipml-ocs", "sipml", "section 3.3", "What whole circuits cost over optical switches",
        "Circuits are assigned by a simple ILP, run once, so that the maximum transfer time is minimised.",
        "sipml-ocs", _ocs_rows, _ocs, _ocs_finding,
    ),
    PaperFigure(
        "sipml-ring", "sipml", "section 3.3", "Wavelengths on a ring: first fit, sets of arcs, single wavelengths",
        "The ring's controller reschedules circuits; wavelengths are reused on segments that do not overlap.",
        "sipml-ring", _ring_rows, _ring, _ring_finding,
    ),
    PaperFigure(
        "sipml-placement", "sipml", "section 3.2, Algorithm 1", "Makespan of degree-aware placement by degree, 16 GPUs",
        "The placement minimises the run time under the degree constraint; its ILP is prohibitive at this scale.",
        "sipml-placement", _placement_rows, _placement, _placement_finding,
    ),
)  # fmt: skip
