"""SiP-ML: circuits over switches, wavelengths on the ring, and placement, by degree; the paper's figures are lost.

The benchmark tables time circuits over switches, wavelengths on rings and placement, each at real sizes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.benchmark.measured_tables import Row, Table
from opticoll.analysis.papers.paper_figure import PaperFigure, argument, frame, settings_of
from opticoll.analysis.plots.marks import curve, marks, reference
from opticoll.analysis.plots.style import log_axes, one_panel, styled_figure
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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


# ring ---------------------------------------------------------------------------------------------------------------


def _ring_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs on rings: wavelengths, method with its model, and objective over the best known bound of the instance."""
    runs = rows[rows["ok"] & (rows["formulation"] == "sipml.ring-wavelengths")].copy()
    runs = runs[runs["instance"].str.startswith("wdm-ring")]
    runs["wavelengths"] = [int(argument(spec, "wavelengths") or 0) for spec in runs["instance"]]
    models = settings_of(runs, "model", "sets")
    runs["scheme"] = [
        f"{method}, {model}" if method not in {"ring-sets", "ring-first-fit"} else method
        for method, model in zip(runs["method"], models, strict=True)
    ]
    runs["case"] = [
        f"{spec} {traffic} {seed}"
        for spec, traffic, seed in zip(
            runs["instance"], settings_of(runs, "traffic", "alltoall"), settings_of(runs, "seed", "0"), strict=True
        )
    ]
    runs["ratio"] = runs["objective"] / runs.groupby("case")["bound"].transform("max")
    columns = ["instance", "case", "n", "wavelengths", "scheme", "objective", "ratio", "proof", "time_solve_s"]
    return runs[columns].sort_values(["n", "scheme", "wavelengths"])


def _ring(rows: pd.DataFrame) -> Figure:
    with styled_figure(6.6, 6.4) as (figure, handles):
        above, below = figure.subplots(2, 1, sharex=True)
        for number, ((n, scheme), group) in enumerate(rows.groupby(["n", "scheme"])):
            curve(above, group["wavelengths"], group["ratio"], number)
            handles += curve(below, group["wavelengths"], group["time_solve_s"], number, f"n = {n}: {scheme}")
        reference(above, y=1.0)
        log_axes(above, "x")
        log_axes(below)
        above.set_ylabel("slowest transfer ÷ best bound [–]")
        below.set_ylabel("solve time [s]")
        below.set_xlabel("wavelengths W")
    return figure


def _ring_finding(rows: pd.DataFrame) -> str:
    parts = []
    for (n, scheme), group in rows.groupby(["n", "scheme"]):
        proven = int(group["proof"].isin(PROVEN).sum())
        worst = group["ratio"].max()
        parts.append(
            f"n = {n}, {scheme}: {proven} of {len(group)} proven, at most {worst:.4g} times the bound, "
            f"{group['time_solve_s'].max():.3g} s"
        )
    return "; ".join(parts) + "." if parts else "No result yet."


# placement ----------------------------------------------------------------------------------------------------------


def _placement_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs of Algorithm 1 over their bound, and over the optimum if an exact method has proven one."""
    runs = rows[rows["ok"] & (rows["formulation"] == "sipml.placement")].copy()
    for name, default in (
        ("degree", "3"),
        ("k", "4"),
        ("rule", "distance"),
        ("replicas", "2"),
        ("bandwidth", "0.0"),
        ("memory", "0.0"),
        ("states", "2.0"),
    ):
        runs[name] = settings_of(runs, name, default)
    runs["degree"] = [int(d) for d in runs["degree"]]
    runs["model"] = [argument(spec, "model") or spec.partition(":")[2].partition(",")[0] for spec in runs["instance"]]
    key = ["instance", "k", "degree", "rule", "replicas", "bandwidth", "memory", "states"]
    exact = runs["proof"].isin(PROVEN) & (runs["method"] != "degree-aware")
    proven = runs[exact].groupby(key)["objective"].min().rename("optimum")
    runs = runs.merge(proven, how="left", left_on=key, right_index=True)
    runs = runs[runs["method"] == "degree-aware"]
    runs["over_bound"] = runs["objective"] / runs["bound"]
    runs["over_optimum"] = runs["objective"] / runs["optimum"]
    columns = [*key, "model", "n", "objective", "bound", "over_bound", "over_optimum", "time_solve_s"]
    return runs[columns].drop_duplicates(key).sort_values(["model", "instance", "degree"])


def _placement(rows: pd.DataFrame) -> Figure:
    with one_panel(
        6.6,
        4.4,
        x="degree D of a GPU (including one circuit to other groups)",
        y="makespan of Algorithm 1 ÷ lower bound [–]",
        columns=2,
    ) as (figure, axes, handles):
        large = rows[rows["over_optimum"].isna()]
        for number, ((model, _), group) in enumerate(large.groupby(["model", "instance"])):
            handles += curve(
                axes, group["degree"], group["over_bound"], number, f"{model}, {int(group['n'].iloc[0])} sub-operations"
            )
        reference(axes, y=1.0)
        log_axes(axes, "y")
    return figure


def _placement_finding(rows: pd.DataFrame) -> str:
    small, large = rows[rows["over_optimum"].notna()], rows[rows["over_optimum"].isna()]
    parts = [
        f"{model}: {group['over_bound'].iloc[0]:.3g} times the bound at D = {group['degree'].iloc[0]}, "
        f"{group['over_bound'].iloc[-1]:.3g} at D = {group['degree'].iloc[-1]}"
        for model, group in large.groupby("model")
    ]
    if len(small):
        ratio = small["over_optimum"]
        parts.append(
            f"on {len(small)} small graphs, {ratio.mean():.4g} times the proven optimum, at most {ratio.max():.4g}"
        )
    return "; ".join(parts) + "." if parts else "No result yet."


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
        axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        axes.set_xticks([], minor=True)
    return figure


def _hybrid_finding(rows: pd.DataFrame) -> str:
    parts = []
    for case, group in rows.groupby("case", sort=False):
        times = group.set_index("k")["time"]
        parts.append(
            f"{case}: k = {times.idxmin()}, {times[1] / times.min():.3g} times as fast as k = 1 and "
            f"{times[_GPUS] / times.min():.3g} times as k = {_GPUS}"
        )
    return "Best: " + "; ".join(parts) + "."


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "sipml-hybrid",
        "sipml",
        "section 3.2",
        "Model and data parallelism, k l = 16",
        "It is trivial to optimize over k and l.",
        None,
        _hybrid_rows,
        _hybrid,
        _hybrid_finding,
    ),
    PaperFigure(
        "sipml-ocs",
        "sipml",
        "section 3.3",
        "Whole circuits compared with divisible ones over optical switches",
        "Circuits are assigned by a simple ILP, run once, so the maximum transfer time is minimised.",
        "sipml-ocs",
        _ocs_rows,
        _ocs,
        _ocs_finding,
    ),
    PaperFigure(
        "sipml-ring",
        "sipml",
        "section 3.3",
        "Wavelengths on a ring: first fit, sets of arcs, single wavelengths",
        "The ring's controller reschedules circuits; wavelengths are reused on segments that do not overlap.",
        "sipml-ring",
        _ring_rows,
        _ring,
        _ring_finding,
    ),
    PaperFigure(
        "sipml-placement",
        "sipml",
        "section 3.2, Algorithm 1",
        "Makespan of degree-aware placement by degree, 16 GPUs",
        "The placement minimises the run time under the degree constraint; its ILP is prohibitive at this scale.",
        "sipml-placement",
        _placement_rows,
        _placement,
        _placement_finding,
    ),
)


def circuits() -> list[Row]:
    """Bisection and edge colouring on sums of random permutations, three quarters of the ports in use."""
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.instances.servers import ServerPool
    from opticoll.solvers.methods.sipml.koenig_bisection import bisect

    rows = []
    for n, degree in ((64, 8), (1024, 8), (1024, 64), (4096, 16)):
        random, matrix = np.random.default_rng(0), np.zeros((n, n))
        for _ in range(3 * degree // 4):
            matrix[np.arange(n), random.permutation(n)] += random.integers(1, 1000, n)
        np.fill_diagonal(matrix, 0)
        data = ocs_circuits.OcsCircuits.prepare(ServerPool(n, degree, matrix))
        start = time.perf_counter()
        least, _ = bisect(data)
        bisected = time.perf_counter()
        match = ocs_circuits.matchings_of(data, data.transfers.needs(least))
        coloured = time.perf_counter()
        worst = max(data.residuals({"match": match.astype(float)}).values())
        rows.append(
            {
                "servers": n,
                "degree": degree,
                "pairs": data.transfers.pairs,
                "bisection [s]": bisected - start,
                "colouring [s]": coloured - bisected,
                "violation": worst,
            }
        )
    return rows


def placements() -> list[Row]:
    """Algorithm 1 with the unrolled repair, and its bounds."""
    from opticoll.formulations.sipml import placement
    from opticoll.instances import parse
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    rows = []
    for spec, k, degree in (
        ("op-graph:model=transformer,layers=24,parts=16", 16, 4),
        ("op-graph:model=transformer,layers=128,parts=32", 32, 5),
        ("op-graph:model=resnet,layers=12,parts=16", 16, 4),
        ("op-graph:model=dlrm,layers=12,parts=16", 16, 4),
        ("op-graph:model=random,layers=2000,parts=16", 16, 4),
    ):
        data = placement.Placement.prepare(parse(spec), {"k": k, "degree": degree})
        start = time.perf_counter()
        state = Unrolled(data, 0)
        state.place()
        seconds = time.perf_counter() - start
        device = np.array(state.device)
        begun = placement.starts(data, device, np.arange(data.n))
        assert begun is not None
        makespan = float((begun + data.graph.duration).max())
        rows.append(
            {
                "instance": spec,
                "GPUs": k,
                "degree": degree,
                "sub-ops": data.n,
                "seconds": seconds,
                "makespan / bound": makespan / max(bound.value for bound in data.bounds()),
            }
        )
    return rows


def rings() -> list[Row]:
    """Methods on rings with random traffic, as a user runs them (including the start of a worker)."""
    from opticoll.solvers.solve import solve
    from opticoll.solvers.task import Task

    rows = []
    for n, wavelengths, method, model in (
        (8, 32, "highs", "arcs"),
        (8, 32, "highs", "sets"),
        (8, 32, "ring-sets", "sets"),
        (8, 512, "ring-sets", "sets"),
        (8, 512, "ring-first-fit", "sets"),
        (16, 256, "ring-sets", "sets"),
    ):
        spec = f"wdm-ring:n={n},wavelengths={wavelengths}"
        named = {"traffic": "random", "seed": "1", "model": model}
        run = solve(Task("sipml.ring-wavelengths", spec, method=method, settings=named, time_limit_s=120.0))
        rows.append(
            {
                "instance": spec,
                "method": method,
                "model": model,
                "seconds": run.record["time"]["solve_s"],
                "objective": run.objective,
                "gap": run.record["gap"],
                "proof": str(run.proof),
            }
        )
    return rows


TABLES = (
    Table("sipml-circuits", "Circuits over optical switches: bisection and edge colouring", circuits),
    Table("sipml-ring", "Wavelengths on a ring", rings),
    Table("sipml-placement", "Degree-aware placement", placements),
)
