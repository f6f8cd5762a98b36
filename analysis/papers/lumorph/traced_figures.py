"""The points drawn in figures 5 to 8, 10 and 11 of the LuMorph paper, and ours in the same axes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from opticoll.analysis.papers.paper_figure import Figures, frame
from opticoll.analysis.plots.marks import reference
from opticoll.analysis.plots.style import INK, legend_mark, log_axes, series, styled_figure

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES = Figures("lumorph")


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
        from opticoll.analysis.papers.lumorph.drawn_points import points

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
    from opticoll.analysis.papers.lumorph.drawn_points import fitted_buffer

    return f"{_finding(rows)} Figure 8a states no buffer; the ring's time implies {fitted_buffer() / 2**20:.2f} MiB."


for _number, _numbers, _title, _says, _found in (
    (
        "5",
        ("5",),
        "Overlap of circuits, as drawn and as proven",
        "Least-overlap routes need up to 32 waveguides.",
        _finding,
    ),
    ("6", ("6",), "Reconfigurations, as drawn and as proven", "Fewer waveguides take more reconfigurations.", _finding),
    (
        "7",
        ("7",),
        "Time of an all-reduce, as drawn and by the closed forms",
        "LUMORPH-2 and LUMORPH-4 are fastest; D&C beats the ring up to 16 MB.",
        _finding,
    ),
    (
        "8",
        ("8a", "8b"),
        "Delay and laser rate, as drawn and by the closed forms",
        "Four times better than the ideal switch at 3.7 µs; no gain over its ring at 25 µs.",
        _buffer_finding,
    ),
    (
        "10",
        ("10",),
        "Sizes of the all-reduces, as drawn and from the logs",
        "NCF has fewer and larger calls; BERT has many small ones.",
        _finding,
    ),
    (
        "11",
        ("11",),
        "Training throughput, as drawn, and our bounds",
        "Inception and BERT are close to free communication.",
        _finding,
    ),
):
    FIGURES.drawn(f"lumorph-{_number}-drawn", f"figure {_number}", _title, _says, _rows(*_numbers), _draw)(_found)


# ratios of figure 11 --------------------------------------------------------------------------------------------------


def _gain_rows(_: pd.DataFrame) -> pd.DataFrame:
    from opticoll.analysis.papers.lumorph.drawn_points import gains
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


@FIGURES.drawn(
    "lumorph-11-ratios",
    "figure 11",
    "Throughput over the ring's, as drawn, and our bounds",
    "1.7 times as fast as the ring (BERT), around 8 % (NCF), 1.31 times (Inception).",
    _gain_rows,
    _draw_gains,
)
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
