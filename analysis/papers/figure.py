"""Draw a figure of a paper: from stored runs, shipped rows or closed forms, with own points over it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from opticoll.analysis.papers.figure_rows import answered, shipped_rows
from opticoll.analysis.papers.paper_figure import PaperFigure, figure_named
from opticoll.analysis.plots.data_figure import DataFigure
from opticoll.analysis.plots.style import counted
from opticoll.analysis.store.current_records import code_note
from opticoll.errors import BadInput
from opticoll.solvers.task import Fields, plain
from opticoll.types import Json

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from opticoll.analysis.store import Store


class FigurePanel(Fields, frozen=True, kw_only=True):
    """A panel of a figure: its title and the labels of its axes, with units."""

    panel: str
    x: str
    y: str


class FigureOutput(Fields, frozen=True, kw_only=True):
    """A figure of a paper, as ``opticoll figure --json`` prints it; ``rows`` are its points, ``file`` what was written.

    The columns of ``rows`` depend on the figure.
    """

    name: str
    title: str
    caption: str
    source: str
    counts: str
    panels: list[FigurePanel]
    rows: list[dict[str, Json]]
    file: str | None


def figure(name: str, *, store: Store | str | os.PathLike[str] | None = None) -> DataFigure:
    """Draw a figure of a paper with the paper's own points, where they are published, and ours.

    Parameters
    ----------
    name
        Name as listed by ``opticoll list figures``, such as ``"lumorph-5"``.
    store
        Results store whose runs are drawn; the default one if None. Until it has those of the whole study, the rows
        that come with opticoll are drawn; or closed forms. ``source`` says which.

    Returns
    -------
    A figure of matplotlib, to whose axes own points can be added, with ``data`` (its rows as a table), ``title``,
    ``caption``, ``source``, ``counts``, ``convention`` (units) and ``save(path)`` for PDF, SVG and PNG.

    Raises
    ------
    BadInput
        For an unknown name, a store that is named and not there, or a figure that needs runs and has none.
    """
    from opticoll.analysis.report.findings import best_runs
    from opticoll.analysis.store import Store

    stated = figure_named(name)
    place = Store.at(store)
    place.check_readable()
    return drawn(stated, *_rows(stated, best_runs(place), place))


def as_json(result: DataFigure, file: Path | None = None) -> FigureOutput:
    """What ``opticoll figure --json`` prints: the texts of a figure, its axes and its rows."""
    rows = [] if result.data is None else result.data.drop(columns="store", errors="ignore").to_dict("records")
    return FigureOutput(
        name=result.name,
        title=result.title,
        caption=result.caption,
        source=result.source,
        counts=result.counts,
        panels=[FigurePanel(panel=panel, x=x, y=y) for panel, x, y in result.convention.itertuples(index=False)],
        rows=[{str(name): _plain(value) for name, value in row.items()} for row in rows],
        file=None if file is None else str(file),
    )


def _plain(value: object) -> Any:
    """A cell as JSON; None for what is missing."""
    import pandas as pd

    if isinstance(value, list | dict):
        return plain(value)
    return None if pd.isna(value) else str(value) if isinstance(value, pd.Timestamp) else plain(value)  # type: ignore[call-overload]


def drawn(stated: PaperFigure, rows: pd.DataFrame, source: str) -> DataFigure:
    """Draw the rows of a figure, with caption, source and data."""
    result = stated.draw(rows)
    if not isinstance(result, DataFigure):
        msg = f"figure {stated.name}: draw must make its figure with opticoll.analysis.plots.style"
        raise TypeError(msg)
    result.name, result.title = stated.name, f"{stated.where[:1].upper()}{stated.where[1:]}: {stated.title}"
    result.data, result.caption, result.source, result.counts = rows, stated.finding(rows), source, stated.counts
    return result


def stored_runs(stated: PaperFigure, rows: pd.DataFrame) -> int:
    """Number of the rows of a figure that are runs of a store; others are points of the paper, or computed."""
    return rows["id"].dropna().nunique() if "id" in rows else len(rows) * (stated.study is not None)


def source_of(stated: PaperFigure, rows: pd.DataFrame, store: Path) -> str:
    """Where the rows of a figure are from, if its runs are those of a store."""
    runs = stored_runs(stated, rows)
    what = counted(runs, "run" if "id" in rows else "row")
    stored = f"{what} of the store {store} (`opticoll study {stated.study}`)" if runs else ""
    other = code_note(rows["by"].dropna()) if runs and "by" in rows else None
    return "; ".join(filter(None, (stated.basis, stored, other)))


def _rows(stated: PaperFigure, runs: pd.DataFrame, store: Store) -> tuple[pd.DataFrame, str]:
    """The rows of a figure, and where they are from."""
    rows, known = stated.select(runs), shipped_rows(stated.name)
    if not rows.empty and (known is None or answered(stated, store)):
        return rows, source_of(stated, rows, store.root)
    if known is None:
        msg = f"figure {stated.name}: the store {store.root} has no runs for it; run `opticoll study {stated.study}`"
        raise BadInput(msg)
    return known
