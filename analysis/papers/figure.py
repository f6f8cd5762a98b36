"""Draw a figure of a paper: from stored runs, shipped rows or closed forms, with own points over it."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opticoll.analysis.papers.figure_rows import answered, shipped_rows
from opticoll.analysis.papers.paper_figure import PaperFigure, figure_named
from opticoll.analysis.plots.data_figure import DataFigure
from opticoll.analysis.plots.panels import legend_below
from opticoll.analysis.plots.style import INK, counted, style
from opticoll.analysis.store.current_records import code_note
from opticoll.arguments import refused
from opticoll.errors import BadFile, BadInput
from opticoll.instances.spec import expand
from opticoll.solvers.task import Fields, plain
from opticoll.types import Json

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

    from opticoll.analysis.store import Store

#: Columns of a table of own points; the first two are required.
POINT_COLUMNS = ("x", "y", "series", "panel")
#: Series of the runs of a store beside shipped rows.
HERE = "runs of the store (here)"
#: Markers of own points, by series.
_OWN_MARKERS = ("D", "s", "^", "v", "P", "X")
#: Room beyond own points outside the range of an axis, as a share of the range.
_ROOM = 0.05


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


def figure(
    name: str,
    *,
    store: Store | str | os.PathLike[str] | None = None,
    over: pd.DataFrame | str | os.PathLike[str] | None = None,
) -> DataFigure:
    """Draw a figure of a paper with the paper's own points, where they are published, and ours.

    Parameters
    ----------
    name
        Name as listed by ``opticoll list figures``, such as ``"lumorph-5"``.
    store
        Results store whose runs are drawn; the default one if None. Until it has those of the whole study, the rows
        that come with opticoll are drawn, and its runs over them (``here``); or closed forms. Of figures without such
        rows the smallest cases of the study are solved, in a minute or less on an idle machine. ``source`` says which.
    over
        Own points to draw over it: a table, or a CSV file of it, with the columns ``x``, ``y``, optionally ``series``
        (names for the legend) and ``panel`` (titles), in the units of ``convention``. Own runs are saved in a store.

    Returns
    -------
    A figure of matplotlib, with ``data`` (its rows as a table), ``title``, ``caption``, ``source``, ``counts``,
    ``convention`` and ``save(path)`` for PDF, SVG and PNG.

    Raises
    ------
    BadInput
        For an unknown name, a store that is named and not there, a figure that needs runs and has none, or own points
        that do not fit it.
    """
    import pandas as pd

    from opticoll.analysis.report.findings import best_runs
    from opticoll.analysis.store import Store

    stated = figure_named(name)
    if isinstance(over, str | os.PathLike):
        over = _read(over)
    elif over is not None and not isinstance(over, pd.DataFrame):
        raise refused(over, f"figure {stated.name}: over", "a table or a CSV file")
    place = Store.at(store)
    place.check_readable()
    runs = best_runs(place)
    rows, source, here = _rows(stated, runs, place)
    result = drawn(stated, rows, source)
    points = [] if here is None else [_points(stated, here).assign(series=HERE)]
    if here is not None:
        result.data = pd.concat([rows.assign(**{"from": "shipped"}), here.assign(**{"from": "here"})])
    if over is not None:
        points.append(_checked(stated, over))
    if any(len(one) for one in points):
        _add(result, pd.concat(points, ignore_index=True))
    return result


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


def _rows(stated: PaperFigure, runs: pd.DataFrame, store: Store) -> tuple[pd.DataFrame, str, pd.DataFrame | None]:
    """The rows of a figure, where they are from, and rows of the store beside shipped ones."""
    rows, known = stated.select(runs), shipped_rows(stated.name)
    if not rows.empty and (known is None or answered(stated, store)):
        return rows, source_of(stated, rows, store.root), None
    if not rows.empty and known is not None:
        over = "over them" if stated.at is not None else "not drawn, as a run has no place of its own"
        return known[0], f"{known[1]}; {over}: {source_of(stated, rows, store.root)}", rows
    known = known or _solved_now(stated)
    if known is None:
        msg = f"figure {stated.name}: the store {store.root} has no runs for it; run `opticoll study {stated.study}`"
        raise BadInput(msg)
    return *known, None


def _solved_now(stated: PaperFigure) -> tuple[pd.DataFrame, str] | None:
    """The rows of the small cases of a figure's study, solved now, and what they are; None if it names none."""
    from opticoll.analysis.report.findings import best_runs
    from opticoll.analysis.store import Store
    from opticoll.analysis.study.running import run_with_progress
    from opticoll.analysis.study.study_file import find, load

    if not stated.small:
        return None
    wanted = {spec for pattern in stated.small for spec in expand(pattern)}
    study = load(find(str(stated.study)))
    cells = tuple(cell for cell in study.cells if str(cell.task.instance) in wanted)
    what = f"{len(cells)} small cases of the {len(study.cells)} of `opticoll study {stated.study}`"
    with tempfile.TemporaryDirectory(prefix="opticoll-") as folder:
        own = Store(folder)
        summary = run_with_progress(replace(study, name=f"figure {stated.name}, {what}", cells=cells), own, None, None)
        rows = stated.select(best_runs(own))
    if rows.empty:
        return None
    ended = f", stopped after {len(summary.results)} of them" if summary.interrupted else ""
    return rows, f"solved now, on this machine: {what} ({', '.join(stated.small)}){ended}; the study draws all"


# own points -----------------------------------------------------------------------------------------------------------


def _read(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Own points from a CSV file."""
    import pandas as pd

    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        msg = f"figure: cannot read {os.fspath(path)}: {why}; give a CSV file with the columns x and y"
        raise BadFile(msg) from error


def _checked(stated: PaperFigure, over: Any) -> pd.DataFrame:
    """Own points with the columns ``x``, ``y``, ``series`` and ``panel``."""
    missing = [column for column in POINT_COLUMNS[:2] if column not in over]
    if missing and {"formulation", "instance"} <= set(over):
        msg = (
            f"figure {stated.name}: over is a table of runs without x and y; keep them in a store, oc.study(..., "
            f"store='DIR'), and draw it: oc.figure({stated.name!r}, store='DIR')"
        )
        raise BadInput(msg)
    if missing:
        msg = (
            f"figure {stated.name}: over has no column {' and no '.join(missing)}; it needs x and y, and may have "
            "series and panel (see the figure's convention)"
        )
        raise BadInput(msg)
    unknown = [str(column) for column in over if column not in POINT_COLUMNS]
    if unknown:
        msg = f"figure {stated.name}: over has a column {unknown[0]!r}; it may have {', '.join(POINT_COLUMNS)}"
        raise BadInput(msg)
    return over.assign(**{name: over.get(name, "") for name in POINT_COLUMNS[2:]})


def _points(stated: PaperFigure, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a figure as points, one column for each of :data:`POINT_COLUMNS`."""
    import pandas as pd

    if rows.empty or stated.at is None:
        return pd.DataFrame([], columns=list(POINT_COLUMNS))
    runs = rows[rows["id"].notna()] if "id" in rows and stated.basis else rows
    x, y, *panel = stated.at
    return pd.DataFrame(
        {
            "x": runs[x].to_numpy(),
            "y": runs[y].to_numpy(),
            "series": runs["id"].astype(str).to_numpy() if "id" in runs else "",
            "panel": runs[panel[0]].to_numpy() if panel else "",
        }
    )


def _add(result: DataFigure, points: pd.DataFrame) -> None:
    """Draw own points, each in its panel, and name their series in the legend."""
    handles, names = [], list(dict.fromkeys(points["series"].astype(str)))
    with style():
        for (panel, name), group in points.assign(series=points["series"].astype(str)).groupby(
            ["panel", "series"], sort=False
        ):
            axes = _panel(result, str(panel))
            x, y = (_numbers(result, axes, which, group[which]) for which in ("x", "y"))
            marker = _OWN_MARKERS[names.index(str(name)) % len(_OWN_MARKERS)]
            handles += axes.plot(
                x,
                y,
                linestyle="none",
                marker=marker,
                markersize=9,
                color=INK,
                markerfacecolor="white",
                markeredgewidth=1.8,
                zorder=6,
                label=str(name) or "own results",
            )
            _make_room(axes, "x", x)
            _make_room(axes, "y", y)
        _extend_legend(result, list({one.get_label(): one for one in handles}.values()))


def _panel(result: DataFigure, title: str) -> Axes:
    """The panel with a title; the only one, or the first, without a title."""
    panels = dict(zip(result.convention["panel"], result.panels, strict=True))
    if title in panels:
        found: Axes = panels[title]
        return found
    if title or len(panels) > 1:
        what = f"no panel {title!r}" if title else "several panels"
        msg = f"figure {result.name}: {what}; write one of {', '.join(map(repr, panels))} into the column panel of over"
        raise BadInput(msg)
    first: Axes = result.panels[0]
    return first


def _numbers(result: DataFigure, axes: Axes, which: str, values: Any) -> list[float]:
    """Positions on an axis: numbers, or the names at its ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    texts = [(text.get_text(), at) for at, text in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)]
    names = {text.partition("\n")[0]: at for text, at in texts} | dict(texts)
    places = []
    for value in values:
        if isinstance(value, str) and value not in names:
            msg = f"figure {result.name}: no {which} {value!r}; the axis has {', '.join(filter(None, names))[:300]}"
            raise BadInput(msg)
        place = float(names[value] if isinstance(value, str) else value)
        scale = axes.get_xscale() if which == "x" else axes.get_yscale()
        if not math.isfinite(place) or (scale == "log" and place <= 0):
            msg = f"figure {result.name}: {which} = {value!r} cannot be drawn on this axis; leave it out of over"
            raise BadInput(msg)
        places.append(place)
    return places


def _make_room(axes: Axes, which: str, values: Sequence[float]) -> None:
    """Widen an axis so that values are inside it."""
    interval = axes.get_xlim() if which == "x" else axes.get_ylim()
    logarithmic = (axes.get_xscale() if which == "x" else axes.get_yscale()) == "log"
    there = math.log10 if logarithmic else float
    low, high = sorted(map(there, interval))
    room = _ROOM * (high - low)
    wanted = sorted(map(there, values))
    low, high = (min(low, wanted[0] - room), max(high, wanted[-1] + room))
    ends = [10.0**low, 10.0**high] if logarithmic else [low, high]
    if interval[0] > interval[1]:
        ends.reverse()
    axes.set(**{f"{which}lim": tuple(ends)})


def _extend_legend(result: DataFigure, handles: list[Any]) -> None:
    """Add entries to the legend below a figure."""
    before = []
    for legend in list(result.legends):
        before += list(legend.legend_handles)
        legend.remove()
    legend_below(result, [*before, *handles])
