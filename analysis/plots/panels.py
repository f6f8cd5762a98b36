"""Empty figures in the common style: panels, their labels, and the legend below them."""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opticoll.analysis.plots.style import style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticoll.analysis.plots.data_figure import DataFigure


def new_figure(width: float, height: float) -> DataFigure:
    """Empty figure of a size [inches]; call within :func:`style`."""
    from opticoll.analysis.plots.data_figure import DataFigure

    return DataFigure(figsize=(width, height), layout="constrained")


@contextmanager
def styled_figure(width: float, height: float, *, columns: int = 3) -> Iterator[tuple[DataFigure, list[Any]]]:
    """Empty figure of a size [inches] in the common style, and the handles of the legend, which is put below it."""
    with style():
        figure, handles = new_figure(width, height), list[Any]()
        yield figure, handles
        wrap_labels(figure)
        legend_below(figure, handles, columns)


@contextmanager
def one_panel(
    width: float, height: float, *, x: str = "", y: str = "", columns: int = 3
) -> Iterator[tuple[DataFigure, Axes, list[Any]]]:
    """A figure as from :func:`styled_figure` with one pair of axes, labelled ``x`` and ``y``."""
    with styled_figure(width, height, columns=columns) as (figure, handles):
        yield figure, figure.add_subplot(xlabel=x, ylabel=y), handles


def legend_below(figure: Figure, handles: list[Any], columns: int = 3) -> None:
    """Put a legend below the axes, so that it takes no width on a small screen, in as many columns as fit.

    A figure grows by what its legend needs beyond a third of its height.
    """
    if not handles:
        return
    width, height = figure.get_window_extent().size
    for number in range(min(columns, len(handles)), 0, -1):
        legend = figure.legend(handles=handles, loc="outside lower center", ncols=number)
        taken = legend.get_window_extent(_renderer(figure))
        if number == 1 or taken.width <= width:
            figure.set_figheight((height + max(taken.height - height / 3, 0.0)) / figure.dpi)
            return
        legend.remove()


def _renderer(figure: Figure) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    return (canvas if isinstance(canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)).get_renderer()


#: Share of a panel's room that its axis takes, about, and width of a letter over the font size.
_AXIS_SHARE, _LETTER = 0.64, 0.52


def wrap_labels(figure: Figure) -> None:
    """Break labels of axes and titles of panels into lines that are no longer than the panel."""
    size = {"x": figure.get_figwidth(), "y": figure.get_figheight()}
    for axes in figure.axes:
        place = axes.get_subplotspec()
        if place is None:
            continue
        rows, columns, *_ = place.get_geometry()
        parts = {"x": columns, "y": rows}
        texts = [(axes.xaxis.label, "x"), (axes.yaxis.label, "y"), (axes.title, "x")]
        for text, axis in texts:
            room = size[axis] / parts[axis] * _AXIS_SHARE * 72 / (_LETTER * float(text.get_fontsize()))
            lines = [textwrap.fill(line, int(room), break_long_words=False) for line in text.get_text().split("\n")]
            text.set_text("\n".join(lines))
