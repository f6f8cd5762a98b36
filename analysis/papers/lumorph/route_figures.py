"""Figures 3 and 5 of the LuMorph paper: time to find routes, their overlap, and the waveguides needed."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.lumorph.route_overlaps import MCF, RANDOM, edges
from opticoll.analysis.papers.paper_figure import Figures, frame, settings_of
from opticoll.analysis.plots.marks import curve, marks, note, reference, stars
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import MUTED, log_axes, series
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
#: Largest size in figure 3, its range of seconds ("tens"), and the number of waveguides that is enough in figure 5.
_FIG3_LARGEST, _FIG3_SECONDS, _ENOUGH = 128, (10.0, 100.0), 30
_GPUS = 256
#: How figure 5 counts; Lambda of the formulation counts the circuits of one direction.
COUNTS = "circuits in both directions of an edge together, wavelengths ignored; GPUs numbered by rows"


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


def _aspect(shape: str) -> float:
    rows, columns = map(int, shape.split("x"))
    return columns / rows


def _overlap_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The largest overlap of all steps, by scheme and shape; ``square``: whether the shape is the squarest of its N."""
    table = worst_steps(rows).sort_values(["scheme", "n", "shape"])
    table = table[table["scheme"].str.endswith((MCF, RANDOM))].copy()
    table["aspect"] = [_aspect(shape) for shape in table["shape"]]
    table["square"] = table["aspect"] == table.groupby("n")["aspect"].transform("min")
    return table


def _overlap(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, y="circuits on the busiest edge, both directions, worst step", columns=2) as (
        figure,
        axes,
        handles,
    ):
        for number, (scheme, group) in enumerate(table.groupby("scheme")):
            # Shift equal values sideways to keep them visible.
            aside = 1.0 + 0.035 * (number - 1.5)
            dashes = (0, (4, 2)) if str(scheme).endswith(RANDOM) else "solid"
            square, long = group[group["square"]].sort_values("n"), group[~group["square"]]
            handles += curve(
                axes, square["n"] * aside, square["load"], number, str(scheme), markersize=6, linestyle=dashes
            )
            marks(axes, long["n"] * aside, long["load"], number, filled=False)
        reference(axes, y=_ENOUGH)
        note(
            axes,
            f"{_ENOUGH} waveguides: enough according to the paper",
            (0.01, _ENOUGH),
            (0, 2),
            fraction="x",
            va="bottom",
        )
        if not table["square"].all():
            note(axes, "hollow: elongated meshes", (0.99, 0.01), fraction="xy", va="bottom", ha="right")
        _over_gpus(axes, table)
    return figure


@FIGURES.drawn("lumorph-5-shapes", _overlap_rows, _overlap)
def _overlap_finding(table: pd.DataFrame) -> str:
    top = table[table["n"] == table["n"].max()]
    parts = []
    for shape, group in sorted(top.groupby("shape"), key=lambda one: _aspect(str(one[0]))):
        loads = ", ".join(f"{row['scheme']} {row['load']:g}" for _, row in group.sort_values("scheme").iterrows())
        parts.append(f"{shape}: {loads}")
    held = [
        (
            table[table["scheme"] == f"LUMORPH-{r} + {RANDOM}"].set_index("shape")["load"]
            - table[table["scheme"] == f"LUMORPH-{r} + {MCF}"].set_index("shape")["load"]
        ).dropna()
        for r in (2, 4)
    ]
    worse = sum(int((gap > 0).sum()) for gap in held)
    never_better = all((gap >= 0).all() for gap in held)
    order = "never less than" if never_better else "not always more than"
    return (
        f"Largest overlap at N = {int(table['n'].max())}: {'; '.join(parts)}. Random shortest paths overlap {order} "
        f"least-overlap routes, more in {worse} of {sum(map(len, held))} cases. With ranks numbered row by row most "
        "steps run along lines, where the shortest path is unique: the difference in the paper needs another "
        "numbering of ranks, or groups that span rows and columns."
    )


def _waveguide_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Number of rounds of the worst step at 256 GPUs, by scheme, shape and number of waveguides."""
    worst = _overlap_rows(rows)
    worst = worst[worst["n"] == _GPUS]
    results = [
        {
            "scheme": row["scheme"],
            "shape": row["shape"],
            "load": row["load"],
            "waveguides": w,
            "rounds": int(np.ceil(row["load"] / w)),
        }
        for _, row in worst.iterrows()
        for w in range(1, 161)
    ]
    return frame(results, columns=["scheme", "shape", "load", "waveguides", "rounds"])


def _waveguides(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.6, x="waveguides per edge, for both directions", y="rounds of the worst step", columns=2) as (
        figure,
        axes,
        handles,
    ):
        least = table[table["scheme"].str.endswith(MCF)].drop_duplicates(["scheme", "shape"])
        for number, load in enumerate(sorted(set(least["load"]))):
            colour, _ = series(number)
            same = least[least["load"] == load].sort_values(["scheme", "shape"])
            names = ", ".join(
                f"{scheme.partition(' ')[0]} {shape}"
                for scheme, shape in zip(same["scheme"], same["shape"], strict=True)
            )
            selected = table[table["load"] == load].drop_duplicates("waveguides")
            handles += axes.plot(
                selected["waveguides"],
                selected["rounds"],
                color=colour,
                drawstyle="steps-post",
                linewidth=1.6,
                label=names,
            )
        reference(axes, x=_ENOUGH)
        note(axes, f"paper: {_ENOUGH} are enough", (_ENOUGH, 0.97), (4, 0), fraction="y", va="top")
        log_axes(axes, "y")
        ticks = [2**i for i in range(8) if 2**i <= table["rounds"].max()]
        axes.set_yticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
    return figure


@FIGURES.drawn("lumorph-5-waveguides", _waveguide_rows, _waveguides)
def _waveguides_finding(table: pd.DataFrame) -> str:
    parts = []
    for shape, group in sorted(table.groupby("shape"), key=lambda one: _aspect(str(one[0]))):
        needed = group.drop_duplicates("scheme").sort_values("scheme")
        listed = ", ".join(f"{row['scheme']} {row['load']:g}" for _, row in needed.iterrows())
        parts.append(f"{shape} needs {listed}")
    least = table[table["scheme"].str.endswith(MCF)].groupby("shape")["load"].max()
    short = sorted((str(shape) for shape in least.index[least > _ENOUGH]), key=_aspect)
    verdict = (
        f"{_ENOUGH} waveguides do not suffice on {', '.join(short)}: the claim holds for the square mesh only"
        if len(short)
        else f"{_ENOUGH} waveguides suffice on every shape tried"
    )
    return (
        f"Waveguides needed to avoid a second round at {_GPUS} GPUs: {'; '.join(parts)}. {verdict} (one wavelength "
        "per circuit)."
    )
