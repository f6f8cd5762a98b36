"""Marks, lines and notes of a figure: series in their colours, what a paper prints, references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.analysis.plots.style import INK, MUTED, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curve(
    axes: Axes, x: Any, y: Any, number: int, label: str | None = None, *, filled: bool = True, **look: Any
) -> list[Any]:
    """Draw a series as a line with its marks, in the colour and marker of its number; returns its legend entry.

    Parameters
    ----------
    axes, x, y
        Where it is drawn, and the points.
    number
        Number of the series, see :func:`opticoll.analysis.plots.style.series`.
    label
        Its name in the legend.
    filled
        Whether the marks are filled.
    look
        Other properties of the line.
    """
    colour, marker = series(number)
    face = colour if filled else "none"
    given: dict[str, Any] = {
        "color": colour,
        "marker": marker,
        "markersize": 5,
        "markerfacecolor": face,
        "linewidth": 1,
    }
    return list(axes.plot(x, y, **(given | {"label": label} | look)))


def marks(
    axes: Axes, x: Any, y: Any, number: int, label: str | None = None, *, filled: bool = True, **look: Any
) -> list[Any]:
    """Draw a series as marks without a line; arguments as of :func:`curve`."""
    return curve(axes, x, y, number, label, filled=filled, **({"linestyle": "none", "markersize": 6} | look))


def stars(axes: Axes, x: Any, y: Any, label: str | None, *, filled: bool = False, **look: Any) -> list[Any]:
    """Draw what the paper prints, as stars; returns their legend entry."""
    face = INK if filled else "none"
    given: dict[str, Any] = {
        "color": INK,
        "marker": "*",
        "markersize": 11,
        "markerfacecolor": face,
        "linestyle": "none",
    }
    return list(axes.plot(x, y, **(given | {"label": label} | look)))


def reference(axes: Axes, *, x: float | None = None, y: float | None = None, **look: Any) -> None:
    """Draw a dashed line at a value of one of the axes."""
    given: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": (0, (4, 3))} | look
    if x is not None:
        axes.axvline(x, **given)
    if y is not None:
        axes.axhline(y, **given)


#: Coordinates of a note: those of the data, or a fraction of the named axes.
_COORDINATES: dict[str, Any] = {
    "": "data",
    "x": ("axes fraction", "data"),
    "y": ("data", "axes fraction"),
    "xy": "axes fraction",
}


def note(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float] = (0, 0),
    *,
    fraction: str = "",
    **look: Any,
) -> None:
    """Write a note in small muted letters.

    Parameters
    ----------
    axes, text, at
        Where it stands, and what it says.
    offset
        Distance from there [points].
    fraction
        The axes, ``x``, ``y`` or ``xy``, of which ``at`` gives fractions instead of data.
    look
        Other properties of the text.
    """
    given: dict[str, Any] = {"fontsize": 8, "color": MUTED} | look
    axes.annotate(text, at, offset, xycoords=_COORDINATES[fraction], textcoords="offset points", **given)
