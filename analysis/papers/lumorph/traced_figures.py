"""The points drawn in figures 5 to 8, 10 and 11 of the LuMorph paper, and ours in the same axes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from opticoll.analysis.papers.paper_figure import Figures, frame
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import INK, legend_mark, log_axes, series

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES = Figures("lumorph")


@dataclass(frozen=True)
class PlotAxis:
    """The axes of a figure: labels with units, logarithmic axes, and the titles of its panels."""

    x: str
    y: str
    logarithmic: str
    titles: tuple[str, ...]
    steps: bool = False


_AXES = {
    "5": PlotAxis(
        "GPUs | waveguides per edge",
        "circuits on the busiest edge, both directions | circuits above the waveguides, both directions",
        "x",
        ("worst step", "256 GPUs"),
    ),
    "6": PlotAxis("GPUs", "reconfigurations of an all-reduce", "x", ("20 waveguides", "40 waveguides")),
    "7": PlotAxis("buffer [MiB]", "all-reduce [µs]", "xy", ("64 GPUs", "128 GPUs", "256 GPUs")),
    "8a": PlotAxis("reconfiguration delay [ns]", "all-reduce, 256 GPUs [µs]", "xy", ("by delay, fitted buffer",)),
    "8b": PlotAxis("rate of a laser [GB/s]", "all-reduce, 256 GPUs [µs]", "xy", ("LUMORPH-2, by buffer",)),
    "10": PlotAxis("size of an all-reduce [bytes]", "share of calls up to this size", "x", ("256 GPUs",), steps=True),
    "11": PlotAxis("GPUs", "throughput [samples/s]", "xy", ("bert", "ncf", "inception")),
}


def _rows(*numbers: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def select(_: pd.DataFrame) -> pd.DataFrame:
        from opticoll.analysis.papers.lumorph.drawn_points import points

        table = frame([{**asdict(point), "agrees": point.agrees} for n in numbers for point in points(n)])
        return table.rename(columns={"drawn": "paper"})

    return select


def _curve(axes: Axes, points: pd.DataFrame, colour: str, marker: str, *, steps: bool) -> None:
    """The paper's points as hollow marks; ours as a line or, where bounded, a band."""
    points = points.sort_values(["x", "low"])
    if points["exact"].all():
        axes.plot(
            points["x"], points["low"], color=colour, linewidth=1.2, drawstyle="steps-post" if steps else "default"
        )
    else:
        axes.fill_between(points["x"], points["low"], points["high"], color=colour, alpha=0.1, linewidth=0)
    axes.plot(
        points["x"],
        points["paper"],
        color=colour,
        marker=marker,
        markersize=3 if steps else 7,
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
            if labels[0][min(place, len(labels[0]) - 1)] == "GPUs":
                axes.set_xticks(sorted(set(selected["x"]))[::2])
                axes.minorticks_off()
            if number in ("5", "6"):  # the upper bounds of random routes are far above
                axes.yaxis.get_major_locator().set_params(integer=True)
                axes.set_ylim(0, 1.15 * float(selected["paper"].max()))
        handles += [legend_mark(name, *series(k), filled=False) for k, name in enumerate(names)]
        handles.append(legend_mark("hollow: the paper; lines, bands: ours", INK, ""))
    return figure


def _finding(rows: pd.DataFrame) -> str:
    exact, bounded = rows[rows["exact"]], rows[~rows["exact"]]
    parts = []
    if len(exact):
        off = (exact["paper"] - exact["low"]).abs().max()
        parts.append(f"{int(exact['agrees'].sum())} of {len(exact)} computed points agree, largest deviation {off:.2g}")
    if len(bounded):
        parts.append(f"{int(bounded['agrees'].sum())} of {len(bounded)} points lie within our bounds")
    return "; ".join(parts) + "."


def _buffer_finding(rows: pd.DataFrame) -> str:
    from opticoll.analysis.papers.lumorph.drawn_points import fitted_buffer

    return f"{_finding(rows)} Figure 8a states no buffer; the ring's time implies {fitted_buffer() / 2**20:.2f} MiB."


FIGURES.drawn("lumorph-5", _rows("5"), _draw)(_finding)
FIGURES.drawn("lumorph-6", _rows("6"), _draw)(_finding)
FIGURES.drawn("lumorph-7", _rows("7"), _draw)(_finding)
FIGURES.drawn("lumorph-8", _rows("8a", "8b"), _draw)(_buffer_finding)
FIGURES.drawn("lumorph-10", _rows("10"), _draw)(_finding)
FIGURES.drawn("lumorph-11", _rows("11"), _draw)(_finding)
