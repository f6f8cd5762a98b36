"""A figure of matplotlib that carries what it shows, and displays itself in notebooks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from opticoll.analysis.plots.style import label, png, style, svg
from opticoll.errors import refuse
from opticoll.instances.readers.reading import as_path
from opticoll.shared_files import write_file

if TYPE_CHECKING:
    import os

    import pandas as pd

#: Formats of :meth:`DataFigure.save`.
FORMATS = (".pdf", ".svg", ".png")
#: Resolution of a PNG for a paper or slides [dots per inch].
PRINT_DPI = 300
#: Dots of a web page per inch.
_CSS_DPI = 96


class DataFigure(Figure):
    """A figure with its data, caption and source; everything else is as for any figure of matplotlib.

    Attributes
    ----------
    name, title
        Its name, and a line on what it is; empty for a plot of a result.
    data
        The points that are drawn, a row each; None for a plot of a result.
    caption
        What it shows, in sentences with numbers.
    source
        Where the points are from.
    counts
        What is counted, and how, where the axes do not say it.
    """

    name: str = ""
    title: str = ""
    data: pd.DataFrame | None = None
    caption: str = ""
    source: str = ""
    counts: str = ""

    @property
    def convention(self) -> pd.DataFrame:
        """The units of the axes: a row per panel, with its title and the labels of its axes."""
        import pandas as pd

        rows = [
            {
                "panel": _line(one.get_title() or one.get_title(loc="left")),
                "x": _line(one.get_xlabel()),
                "y": _line(one.get_ylabel()),
            }
            for one in self.panels
        ]
        table = pd.DataFrame(rows, columns=["panel", "x", "y"])
        # Panels side by side share the label of an axis, which only the first one shows.
        for axis in ("x", "y"):
            table[axis] = table[axis].replace("", None).ffill().bfill().fillna("")
        table.attrs["counts"] = self.counts
        return table

    @property
    def panels(self) -> list[Any]:
        """The axes that show points: all but colour bars."""
        return [axes for axes in self.axes if axes.get_label() != "<colorbar>"]

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Write the figure as matplotlib does, in the common style: text stays text."""
        with style():
            super().savefig(*arguments, **options)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure as PDF or SVG, whose text stays text, or as PNG of 300 dots per inch.

        Parameters
        ----------
        path
            File whose suffix, ``.pdf``, ``.svg`` or ``.png``, is the format.

        Returns
        -------
        The file.

        Raises
        ------
        BadInput
            For another suffix, or a file that cannot be written.
        """
        target = as_path(path, "save")
        kind = checked_format(target)
        return write_file(target, self._written(kind))

    def _written(self, kind: str) -> bytes:
        if kind == ".svg":
            return svg(self).encode()
        if kind == ".png":
            return png(self, PRINT_DPI)
        buffer = io.BytesIO()
        self.savefig(buffer, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
        return buffer.getvalue()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The figure in a notebook, in its size and sharp on any screen."""
        inches = {"width": self.get_figwidth(), "height": self.get_figheight()}
        return png(self, 2 * _CSS_DPI), {name: round(_CSS_DPI * size) for name, size in inches.items()}


def _line(text: str) -> str:
    """A label that was broken into lines, as one."""
    return " ".join(text.split())


def checked_format(path: Path) -> str:
    """The suffix of a file for a figure, in lower case.

    Raises
    ------
    BadInput
        If it is none of :data:`FORMATS`.
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        refuse("figure", f"{label(path.name, 80)!r}: the name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    return kind
