"""Plots of one problem: the sparsity pattern of its matrix, and the cases of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.plots.panels import one_panel, styled_figure
from opticoll.analysis.plots.style import INK, MUTED, PALETTE, label, legend_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import Block, StandardForm

#: With more nonzeros, their density per cell is drawn instead of single entries.
_MOST_DOTS = 6000
_CELLS = 300


def sparsity(form: StandardForm) -> Figure:
    """Draw the nonzeros of the constraint matrix, rows and columns in their named blocks.

    Parameters
    ----------
    form
        The compiled problem. Rows and columns are permuted so that each block is contiguous; those without a
        block come last, as ``(unnamed)``.
    """
    rows, row_spans = _in_blocks(form.rows, form.A.shape[0])
    columns, column_spans = _in_blocks(form.columns, form.A.shape[1])
    entries = form.A.tocoo()
    at_row, at_column = rows[entries.row], columns[entries.col]
    m, n = form.A.shape
    height = float(np.clip(1.4 + 5.2 * m / max(n, 1), 2.6, 6.6))
    with one_panel(6.6, height, x=f"variables [{n:,} columns]", y=f"constraints [{m:,} rows]") as (figure, axes, _):
        if entries.nnz <= _MOST_DOTS:
            dot = float(np.clip(240.0 / max(m, n, 1), 0.8, 4.0))
            axes.plot(
                at_column, at_row, linestyle="none", marker="s", markersize=dot, color=PALETTE[0], markeredgewidth=0
            )
        else:
            _density(axes, at_row, at_column, m, n)
        for spans, line in ((row_spans, axes.axhline), (column_spans, axes.axvline)):
            for _, start, _ in spans[1:]:
                line(start - 0.5, color=MUTED, linewidth=0.8)
        axes.set_xlim(-0.5, n - 0.5)
        axes.set_ylim(m - 0.5, -0.5)
        axes.set_aspect("auto")
        _name_blocks(axes, row_spans, column_spans)
        axes.set_title(f"{m:,} × {n:,}, {form.A.nnz:,} nonzeros", loc="left", pad=18)
        for side in ("top", "right"):
            axes.spines[side].set_visible(True)
    return figure


Span = tuple[str, int, int]


def _in_blocks(blocks: Mapping[str, Block], count: int) -> tuple[NDArray[np.int64], list[Span]]:
    """New position of every row (column), shape ``(count,)``, and the blocks as name, first, end."""
    place = np.full(count, -1, dtype=np.int64)
    spans: list[Span] = []
    following = 0
    for block in blocks.values():
        mine = block.index[block.index >= 0]
        mine = mine[place[mine] < 0]
        if mine.size:
            place[mine] = following + np.arange(mine.size)
            spans.append((block.name, following, following + mine.size))
            following += mine.size
    rest = place < 0
    if rest.any():
        place[rest] = following + np.arange(int(rest.sum()))
        spans.append(("(unnamed)", following, count))
    return place, spans


def _density(axes: Axes, row: NDArray[np.int64], column: NDArray[np.int64], m: int, n: int) -> None:
    """Shade cells by their number of nonzeros, with a minimum shade that remains visible."""
    shape = (min(_CELLS, m), min(_CELLS, n))
    counts, _, _ = np.histogram2d(row, column, bins=shape, range=((-0.5, m - 0.5), (-0.5, n - 0.5)))
    share = counts / counts.max()
    colour = [int(PALETTE[0][i : i + 2], 16) / 255 for i in (1, 3, 5)]
    image = np.empty((*shape, 4))
    image[..., :3] = colour
    image[..., 3] = np.where(counts > 0, 0.35 + 0.65 * np.sqrt(share), 0.0)
    axes.imshow(image, extent=(-0.5, n - 0.5, m - 0.5, -0.5), interpolation="nearest", aspect="auto")


def _name_blocks(axes: Axes, rows: list[Span], columns: list[Span]) -> None:
    """Write the names of blocks above the columns and right of the rows, moved apart where blocks are narrow."""
    total_rows, total_columns = rows[-1][2] if rows else 1, columns[-1][2] if columns else 1
    last = -1.0
    for name, start, end in columns:
        middle = (start + end) / 2 / total_columns
        middle = max(middle, last + 0.09)
        last = middle
        axes.annotate(
            label(name, 18), (min(middle, 1.0), 1.01), xycoords="axes fraction", ha="center", va="bottom", color=INK
        )
    last = -1.0
    for name, start, end in rows:
        middle = (start + end) / 2 / total_rows
        middle = max(middle, last + 0.06)
        last = middle
        axes.annotate(
            label(name, 18), (1.01, 1 - min(middle, 1.0)), xycoords="axes fraction", ha="left", va="center", color=INK
        )


#: Colour and marker of the cases of a sweep.
_CASES = {"holds": (PALETTE[0], "o"), "violated": (PALETTE[1], "X")}


def bound_sweep(cases: pd.DataFrame, *, title: str, quantity: str) -> Figure:
    """Draw the distribution of bound / optimum, and the bound of every case against its optimum.

    Only cases with a proven optimum are drawn. On the dashed lines the bound is attained.

    Parameters
    ----------
    cases
        One row per case: ``status`` (``holds`` or ``violated``), ``optimum``, ``bound`` and ``ratio``.
    title
        Heading.
    quantity
        What is bounded, with its unit.
    """
    drawn = cases[cases["status"].isin(list(_CASES)) & cases["ratio"].notna()].astype(
        {"optimum": float, "bound": float, "ratio": float}
    )
    parts = {status: drawn[drawn["status"] == status] for status in _CASES}
    parts = {status: part for status, part in parts.items() if len(part)}
    colours = [_CASES[status][0] for status in parts]
    with styled_figure(7.2, 3.4) as (figure, handles):
        figure.suptitle(label(title, 80), fontsize=11)
        left, right = figure.subplots(1, 2)
        if not parts:
            left.text(0.5, 0.5, "no proven optimum", ha="center", va="center", transform=left.transAxes, color=MUTED)
            right.set_axis_off()
            return figure
        ratios = [part["ratio"].to_numpy() for part in parts.values()]
        low, high = min(1.0, *map(np.min, ratios)), max(1.0, *map(np.max, ratios))
        left.hist(ratios, bins=np.linspace(low, high, 26) if high > low else 1, stacked=True, color=colours)
        left.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        left.set(xlabel="bound / optimum", ylabel="cases")
        left.yaxis.get_major_locator().set_params(integer=True)
        for status, part in parts.items():
            colour, marker = _CASES[status]
            right.scatter(part["optimum"], part["bound"], s=18, color=colour, marker=marker, linewidths=0, alpha=0.8)
        ends = np.array([drawn[["optimum", "bound"]].min().min(), drawn[["optimum", "bound"]].max().max()])
        right.plot(ends, ends, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        right.set(xlabel=f"optimum: {quantity}", ylabel="bound")
        names = {status: f"{status} ({len(part)})" for status, part in parts.items()}
        handles += [legend_mark(names[status], *_CASES[status]) for status in parts]
    return figure
