"""Figure 3 of the LuMorph paper, the time to find routes; and the overlap of stored routes, for figure 5."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.lumorph.route_overlaps import MCF, RANDOM, edges
from opticoll.analysis.papers.paper_figure import Figures, frame, settings_of
from opticoll.analysis.plots.marks import marks, note, stars
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import MUTED, log_axes
from opticoll.instances.published.lumorph_numbers import figure as drawn_figure
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FIGURES = Figures("lumorph")
_FORMULATION = "lumorph.min-overlap"
#: Radix of an exchange by the name of its circuit list.
_RADIX = {"recursive-doubling": 2, "recursive-quadrupling": 4}
#: Largest size in figure 3, and its range of seconds ("tens").
_FIG3_LARGEST, _FIG3_SECONDS = 128, (10.0, 100.0)


def _shape(spec: str) -> str:
    return spec.partition(":")[2].partition("+")[0].partition(",")[0]


def _routed(rows: pd.DataFrame) -> pd.DataFrame:
    mesh = rows["instance"].str.startswith("lightpath:")
    table = rows[(rows["formulation"] == _FORMULATION) & mesh].copy()
    table["circuits"], table["model"] = settings_of(table, "circuits"), settings_of(table, "model")
    table["shape"] = [_shape(spec) for spec in table["instance"]]
    return table


# figure 3 -----------------------------------------------------------------------------------------------------


def _time_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Permutations routed by negotiated rerouting, also with failed links, and by HiGHS on the printed arc form."""
    table = _routed(rows)
    table = table[(table["circuits"] == "permutation") & (table["model"] == "arc") & table["time_solve_s"].notna()]
    table = table[table["method"].isin(("negotiated-rerouting", "highs"))].copy()
    failed = table["instance"].str.contains("+fail=", regex=False)
    table["how"] = np.where(
        table["method"] == "highs",
        "printed MILP, HiGHS",
        np.where(failed, "negotiated rerouting, a tenth of the links failed", "negotiated rerouting"),
    )
    return table


def _over_gpus(axes: Axes, table: pd.DataFrame) -> None:
    """Logarithmic axes with the sizes N on the horizontal one."""
    log_axes(axes)
    nodes = sorted(set(table["n"].astype(int)))
    axes.set_xticks(nodes, [str(n) for n in nodes])
    axes.minorticks_off()
    axes.set_xlabel("GPUs N")


def _time(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, y="time to find routes [s]", columns=2) as (figure, axes, handles):
        for number, (how, group) in enumerate(rows.groupby("how")):
            proven = group["proof"].isin(PROVEN)
            handles += marks(axes, group["n"][proven], group["time_solve_s"][proven], number, str(how))
            if (~proven).any():
                handles += marks(
                    axes,
                    group["n"][~proven],
                    group["time_solve_s"][~proven],
                    number,
                    f"{how}, limit reached",
                    filled=False,
                )
        for name, curve in drawn_figure("3").items():
            known = {n: seconds for n, seconds in curve.items() if seconds > 0}
            handles += stars(
                axes,
                list(known),
                list(known.values()),
                f"paper, {name}",
                filled=True,
                markersize=6,
                marker="x" if name == "Lumorph-2" else "+",
            )
        low, high = _FIG3_SECONDS
        axes.fill_between([100, 150], low, high, color=MUTED, alpha=0.18, linewidth=0)
        note(
            axes,
            "paper: tens of seconds\nup to 128 nodes, Gurobi",
            (100, (low * high) ** 0.5),
            (-6, 0),
            ha="right",
            va="center",
        )
        _over_gpus(axes, rows)
    return figure


@FIGURES.drawn("lumorph-3", _time_rows, _time)
def _time_finding(rows: pd.DataFrame) -> str:
    parts = []
    for how, group in rows.groupby("how"):
        proven = group[group["proof"].isin(PROVEN)]
        if len(proven):
            top = proven[proven["n"] == proven["n"].max()]
            parts.append(f"{how}: proven up to N = {int(top['n'].iloc[0])}, {top['time_solve_s'].max():.3g} s there")
        for _, row in group[~group["proof"].isin(PROVEN)].sort_values("n").drop_duplicates("n").iterrows():
            value = "no routes" if not np.isfinite(row["objective"] or np.nan) else f"overlap {row['objective']:g}"
            parts.append(f"at N = {int(row['n'])} {value}, bound {row['bound']:g} after {row['time_solve_s']:.3g} s")
    ours = rows[(rows["method"] != "highs") & rows["proof"].isin(PROVEN) & (rows["n"] >= _FIG3_LARGEST)]
    verdict = ""
    if len(ours):
        worst = float(ours["time_solve_s"].max())
        verdict = (
            f" Instead of the paper's tens of seconds at 128 nodes we need at most {worst:.3g} s, up to N = "
            f"{int(ours['n'].max())}."
        )
    return "; ".join(parts) + "." + verdict if parts else "No result yet."


# figure 5 -----------------------------------------------------------------------------------------------------


@cache
def edge_overlap(store: str, run: str, spec: str, circuits: str) -> int | None:
    """Circuits on the busiest edge of stored routes, both directions together; None if their solution is not stored."""
    from opticoll.analysis.store import Store
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.instances import parse

    values, _ = Store(store).solution(run)
    if not values:
        return None
    links = Overlap.prepare(parse(spec), {"circuits": circuits}).links(values)
    return round(float(np.bincount(edges(links.topology), links.load).max()))


def _kind(run: dict[Any, Any]) -> str:
    """Kind of the routes of a run: random, of least overlap if proven, else the method's name."""
    if run["method"] == "random-shortest":
        return RANDOM
    return MCF if run["proof"] in PROVEN else str(run["method"])


def worst_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The step of an all-reduce that overlaps most, by scheme and shape, where the store has the routes of all steps.

    Returns
    -------
    Columns ``scheme``, ``shape``, ``n``, ``load`` (circuits on the busiest edge, both directions; for random routes the
    mean over seeds), ``id`` (a run of that step).
    """
    routes = _routed(rows)
    steps: dict[tuple[str, str, int, int], dict[int, list[tuple[float, str]]]] = {}
    for run in routes[routes["ok"]].to_dict("records"):
        name, _, step = str(run["circuits"]).partition(":")
        if name not in _RADIX or "+" in run["instance"]:
            continue
        load = edge_overlap(str(run["store"]), str(run["id"]), str(run["instance"]), str(run["circuits"]))
        if load is not None:
            key = (f"LUMORPH-{_RADIX[name]} + {_kind(run)}", run["shape"], int(run["n"]), _RADIX[name])
            steps.setdefault(key, {}).setdefault(int(step or 0), []).append((float(load), str(run["id"])))
    table = []
    for (scheme, shape, n, radix), found in sorted(steps.items()):
        if set(found) >= set(range(math.ceil(math.log(n, radix) - 1e-9))):
            each = [(_over_runs(scheme, runs), runs[0][1]) for runs in found.values()]
            table.append((scheme, shape, n, *max(each)))
    return frame(table, columns=["scheme", "shape", "n", "load", "id"])


def _over_runs(scheme: str, runs: list[tuple[float, str]]) -> float:
    """The least of several runs of one step; the mean of random ones."""
    loads = [load for load, _ in runs]
    return float(np.mean(loads)) if scheme.endswith(RANDOM) else min(loads)
