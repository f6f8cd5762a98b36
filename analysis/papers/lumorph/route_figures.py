"""Figures of the LuMorph paper about routes (3 and 5), and the points drawn in figures 5 to 8, 10 and 11.

Routes: time to find them, their overlap, and the waveguides needed. Points: the drawn ones and ours in the same axes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.papers.paper_figure import PaperFigure, frame, settings_of
from opticoll.analysis.plots.marks import curve, marks, note, reference, stars
from opticoll.analysis.plots.style import INK, MUTED, legend_mark, log_axes, one_panel, series, styled_figure
from opticoll.instances.published.lumorph_numbers import figure as drawn_figure
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_FORMULATION = "lumorph.min-overlap"
_PAPER = "LuMorph"
#: Radix of an exchange by the name of its circuit list.
_RADIX = {"recursive-doubling": 2, "recursive-quadrupling": 4}
_ROUTES = {"negotiated-rerouting": "MCF", "random-shortest": "Random"}
#: Largest size in figure 3, its range of seconds ("tens"), and the number of waveguides that is enough in figure 5.
_FIG3_LARGEST, _FIG3_SECONDS, _ENOUGH = 128, (10.0, 100.0), 30
_GPUS = 256


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
        for number, (how, group) in enumerate(sorted(rows.groupby("how"), key=lambda one: str(one[0]))):
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


def _time_finding(rows: pd.DataFrame) -> str:
    parts = []
    for how, group in sorted(rows.groupby("how"), key=lambda one: str(one[0])):
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


def _step_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per step, shape and kind of route: ``scheme``, ``load`` (mean over seeds for random routes)."""
    result = _routed(rows)
    result = result[result["ok"] & result["method"].isin(tuple(_ROUTES)) & result["max_load"].notna()]
    loads: dict[tuple[str, str, int, str], list[float]] = {}
    for _, row in result.iterrows():
        radix = _RADIX.get(row["circuits"].partition(":")[0])
        if radix is not None and "+" not in row["instance"]:
            key = (f"LUMORPH-{radix} + {_ROUTES[row['method']]}", row["shape"], int(row["n"]), row["circuits"])
            loads.setdefault(key, []).append(float(row["max_load"]))
    table = [(*key, float(np.mean(each))) for key, each in sorted(loads.items())]
    return frame(table, columns=["scheme", "shape", "n", "circuits", "load"])


def _aspect(shape: str) -> float:
    rows, columns = map(int, shape.split("x"))
    return columns / rows


def _overlap_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The largest overlap of all steps, by scheme and shape; ``square``: whether the shape is the squarest of its N."""
    worst = _step_rows(rows).sort_values("load", ascending=False, kind="stable")
    table = worst.drop_duplicates(["scheme", "shape"]).sort_values(["scheme", "n", "shape"]).copy()
    table["aspect"] = [_aspect(shape) for shape in table["shape"]]
    table["square"] = table["aspect"] == table.groupby("n")["aspect"].transform("min")
    return table


def _overlap(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.4, y="circuits on the busiest arc, worst step", columns=2) as (figure, axes, handles):
        for number, (scheme, group) in enumerate(sorted(table.groupby("scheme"), key=lambda one: str(one[0]))):
            # Shift equal values sideways to keep them visible.
            aside = 1.0 + 0.035 * (number - 1.5)
            dashes = (0, (4, 2)) if str(scheme).endswith("Random") else "solid"
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


def _overlap_finding(table: pd.DataFrame) -> str:
    top = table[table["n"] == table["n"].max()]
    parts = []
    for shape, group in sorted(top.groupby("shape"), key=lambda one: _aspect(str(one[0]))):
        loads = ", ".join(f"{row['scheme']} {row['load']:g}" for _, row in group.sort_values("scheme").iterrows())
        parts.append(f"{shape}: {loads}")
    held = [
        (
            table[table["scheme"] == f"LUMORPH-{r} + Random"].set_index("shape")["load"]
            - table[table["scheme"] == f"LUMORPH-{r} + MCF"].set_index("shape")["load"]
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
        for w in range(1, 81)
    ]
    return frame(results, columns=["scheme", "shape", "load", "waveguides", "rounds"])


def _waveguides(table: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.6, x="waveguides per arc", y="rounds of the worst step", columns=2) as (
        figure,
        axes,
        handles,
    ):
        least = table[table["scheme"].str.endswith("MCF")].drop_duplicates(["scheme", "shape"])
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


def _waveguides_finding(table: pd.DataFrame) -> str:
    parts = []
    for shape, group in sorted(table.groupby("shape"), key=lambda one: _aspect(str(one[0]))):
        needed = group.drop_duplicates("scheme").sort_values("scheme")
        listed = ", ".join(f"{row['scheme']} {row['load']:g}" for _, row in needed.iterrows())
        parts.append(f"{shape} needs {listed}")
    least = table[table["scheme"].str.endswith("MCF")].groupby("shape")["load"].max()
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


@dataclass(frozen=True)
class Axis:
    """The axes of a figure: labels with units, logarithmic axes, and the titles of its panels."""

    x: str
    y: str
    logarithmic: str
    titles: tuple[str, ...]
    steps: bool = False


_AXES = {
    "5": Axis(
        "GPUs | waveguides per edge",
        "circuits on the busiest edge | circuits above the waveguides",
        "x",
        ("all steps", "256 GPUs"),
    ),
    "6": Axis("GPUs", "reconfigurations of an all-reduce", "x", ("20 waveguides", "40 waveguides")),
    "7": Axis("buffer [MiB]", "all-reduce [µs]", "xy", ("64 GPUs", "128 GPUs", "256 GPUs")),
    "8a": Axis("reconfiguration delay [ns]", "all-reduce, 256 GPUs [µs]", "xy", ("8a",)),
    "8b": Axis("rate of a laser [GB/s]", "all-reduce, 256 GPUs [µs]", "xy", ("8b",)),
    "10": Axis("size of an all-reduce [bytes]", "share of calls up to this size", "x", ("256 GPUs",), steps=True),
    "11": Axis("GPUs", "throughput [samples/s]", "xy", ("bert", "ncf", "inception")),
}


def _rows(*numbers: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def select(_: pd.DataFrame) -> pd.DataFrame:
        from opticoll.analysis.papers.lumorph.route_claims import points

        return frame([{**asdict(point), "agrees": point.agrees} for n in numbers for point in points(n)])

    return select


def _curve(axes: Axes, points: pd.DataFrame, colour: str, marker: str, *, steps: bool) -> None:
    """The drawn points as hollow marks; ours as a line where computed, as a band where bounded."""
    points = points.sort_values(["x", "low"])
    if points["exact"].all():
        axes.plot(
            points["x"], points["low"], color=colour, linewidth=1.2, drawstyle="steps-post" if steps else "default"
        )
    else:
        axes.fill_between(points["x"], points["low"], points["high"], color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        points["x"],
        points["drawn"],
        color=colour,
        marker=marker,
        markersize=3 if steps else 5,
        linestyle="none",
        markerfacecolor="none",
    )


def _draw(rows: pd.DataFrame) -> Figure:
    places = list(dict.fromkeys(zip(rows["figure"], rows["panel"], strict=True)))
    names = list(dict.fromkeys(rows["series"]))
    at: dict[str, int] = {}
    with styled_figure(3.2 * max(len(places), 2.4), 4.0) as (figure, handles):
        panels = figure.subplots(1, len(places), squeeze=False)[0]
        for axes, (number, panel) in zip(panels, places, strict=True):
            about, selected = _AXES[number], rows[(rows["figure"] == number) & (rows["panel"] == panel)]
            for name, curve in selected.groupby("series", sort=False):
                _curve(axes, curve[curve["x"] > 0], *series(names.index(str(name))), steps=about.steps)
            place = at.get(number, 0)
            at[number] = place + 1
            log_axes(axes, about.logarithmic if panel != "right_256_gpus" else "")
            axes.set_title(about.titles[place])
            labels = [text.split(" | ") for text in (about.x, about.y)]
            axes.set_xlabel(labels[0][min(place, len(labels[0]) - 1)])
            if place < len(labels[1]):
                axes.set_ylabel(labels[1][place])
            if number in ("5", "6"):  # the upper bounds of random routes are far above
                axes.set_ylim(0, 1.15 * float(selected["drawn"].max()))
        handles += [legend_mark(name, *series(k), filled=False) for k, name in enumerate(names)]
        handles.append(legend_mark("marks: drawn; lines, bands: ours", INK, ""))
    return figure


def _gain_rows(_: pd.DataFrame) -> pd.DataFrame:
    from opticoll.analysis.papers.lumorph.route_claims import gains
    from opticoll.instances.published.lumorph_numbers import MODELS

    return frame([asdict(gain) for model in MODELS for gain in gains(model)])


def _draw_gains(rows: pd.DataFrame) -> Figure:
    models, names = list(dict.fromkeys(rows["model"])), list(dict.fromkeys(rows["algorithm"]))
    with styled_figure(3.2 * len(models), 4.0) as (figure, handles):
        panels = figure.subplots(1, len(models), squeeze=False)[0]
        for axes, model in zip(panels, models, strict=True):
            for number, name in enumerate(names):
                selected = rows[(rows["model"] == model) & (rows["algorithm"] == name)]
                (colour, marker), aside = series(number), 1.0 + 0.08 * (number - 0.5)
                axes.vlines(
                    selected["gpus"] * aside, selected["low"], selected["high"], color=colour, linewidth=1, alpha=0.5
                )
                bounded = selected[selected["queue"].notna()]
                if len(bounded):
                    low, high = zip(*bounded["queue"], strict=True)
                    axes.vlines(bounded["gpus"] * aside, low, high, color=colour, linewidth=5, alpha=0.3)
                axes.plot(
                    selected["gpus"] * aside,
                    selected["drawn"],
                    color=colour,
                    marker=marker,
                    markersize=5,
                    linestyle="none",
                    markerfacecolor="none",
                )
            reference(axes, y=1.0, linewidth=0.8, linestyle="-")
            log_axes(axes, "x")
            axes.set_title(model)
            axes.set_xlabel("GPUs")
        panels[0].set_ylabel("throughput over that with the ring")
        handles += [legend_mark(name, *series(k), filled=False) for k, name in enumerate(names)]
        handles.append(legend_mark("marks: drawn; thin: our bounds; thick: one queue, given the ring", INK, ""))
    return figure


def _finding(rows: pd.DataFrame) -> str:
    exact, bounded = rows[rows["exact"]], rows[~rows["exact"]]
    parts = []
    if len(exact):
        off = (exact["drawn"] - exact["low"]).abs().max()
        parts.append(f"{int(exact['agrees'].sum())} of {len(exact)} computed points agree, largest deviation {off:.2g}")
    if len(bounded):
        parts.append(f"{int(bounded['agrees'].sum())} of {len(bounded)} points lie within our bounds")
    return "; ".join(parts) + "."


def _buffer_finding(rows: pd.DataFrame) -> str:
    from opticoll.analysis.papers.lumorph.route_claims import fitted_buffer

    return f"{_finding(rows)} Figure 8a states no buffer; the ring's time implies {fitted_buffer() / 2**20:.2f} MiB."


def _gain_finding(rows: pd.DataFrame) -> str:
    parts = []
    for model, group in rows.groupby("model", sort=False):
        best = group.sort_values("drawn").to_dict("records")[-1]
        queue = best["queue"]
        tight = "" if queue is None else f", by one queue {queue[0]:.3f} to {queue[1]:.3f}"
        parts.append(
            f"{model} {best['drawn']:.3f} ({best['algorithm']}, {best['gpus']} GPUs; bounds "
            f"{best['low']:.3f} to {best['high']:.3f}{tight})"
        )
    return f"Largest throughput over the ring's: {'; '.join(parts)}."


def _one(number: str, numbers: tuple[str, ...], title: str, says: str, finding: Any = _finding) -> PaperFigure:
    return PaperFigure(
        f"lumorph-{number}-drawn", "lumorph", f"figure {number}", title, says, None, _rows(*numbers), _draw, finding
    )


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        name="lumorph-3",
        paper=_PAPER,
        where="figure 3",
        title="Time to find routes of least overlap",
        says="Algorithm 2 finds routes within tens of seconds for up to 128 nodes (Gurobi).",
        study="lumorph-fig3",
        select=_time_rows,
        draw=_time,
        finding=_time_finding,
    ),
    PaperFigure(
        name="lumorph-5-overlap",
        paper=_PAPER,
        where="figure 5, left",
        title="Overlap of circuits in an all-reduce",
        says=(
            "The overlap grows with N up to 256 for both; shortest paths are significantly worse than least-overlap "
            "routes; quadrupling overlaps more than doubling."
        ),
        study="lumorph-fig5",
        select=_overlap_rows,
        draw=_overlap,
        finding=_overlap_finding,
    ),
    PaperFigure(
        name="lumorph-5-waveguides",
        paper=_PAPER,
        where="figure 5, right",
        title="Waveguides needed at 256 GPUs",
        says="30 waveguides between tiles are enough to eliminate congestion for all algorithms.",
        study="lumorph-fig5",
        select=_waveguide_rows,
        draw=_waveguides,
        finding=_waveguides_finding,
    ),
    _one("5", ("5",), "Overlap of circuits, as drawn and as proven", "Least-overlap routes need up to 32 waveguides."),
    _one("6", ("6",), "Reconfigurations, as drawn and as proven", "Fewer waveguides take more reconfigurations."),
    _one(
        "7",
        ("7",),
        "Time of an all-reduce, as drawn and by the closed forms",
        "LUMORPH-2 and LUMORPH-4 are fastest; D&C beats the ring up to 16 MB.",
    ),
    _one(
        "8",
        ("8a", "8b"),
        "Delay and laser rate, as drawn and by the closed forms",
        "Four times better than the ideal switch at 3.7 µs; no gain over its ring at 25 µs.",
        _buffer_finding,
    ),
    _one(
        "10",
        ("10",),
        "Sizes of the all-reduces, as drawn and from the logs",
        "NCF has fewer and larger calls; BERT has many small ones.",
    ),
    _one(
        "11",
        ("11",),
        "Training throughput, as drawn, and our bounds",
        "Inception and BERT are close to free communication.",
    ),
    PaperFigure(
        "lumorph-11-ratios",
        "lumorph",
        "figure 11",
        "Throughput over the ring's, as drawn, and our bounds",
        "1.7 times as fast as the ring (BERT), around 8 % (NCF), 1.31 times (Inception).",
        None,
        _gain_rows,
        _draw_gains,
        _gain_finding,
    ),
)
