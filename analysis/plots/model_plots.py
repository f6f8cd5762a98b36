"""Plots of one problem: the sparsity pattern of its matrix, and its topology with the load of every arc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.analysis.plots.style import INK, MUTED, ON_SERIES, PALETTE, label, new_figure, style

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from opticoll.instances import Topology
    from opticoll.solvers.standard_form import Block, StandardForm

Layout = Literal["circular", "spring"]

#: With more nonzeros, the density of cells is drawn instead of single entries.
_MOST_DOTS = 6000
_CELLS = 300
_MOST_ARROWS = 450
_MOST_LABELS = 80


def sparsity(form: StandardForm, *, title: str | None = None) -> Figure:
    """Draw the nonzeros of the constraint matrix, rows and columns in their named blocks.

    Parameters
    ----------
    form
        The compiled problem. Rows and columns are permuted so that each block is contiguous; those without a
        block come last, as ``(unnamed)``.
    title
        Heading; sizes of the matrix if None.
    """
    rows, row_spans = _in_blocks(form.rows, form.A.shape[0])
    columns, column_spans = _in_blocks(form.columns, form.A.shape[1])
    entries = form.A.tocoo()
    at_row, at_column = rows[entries.row], columns[entries.col]
    m, n = form.A.shape
    with style():
        figure = new_figure(6.6, float(np.clip(1.4 + 5.2 * m / max(n, 1), 2.6, 6.6)))
        axes = figure.add_subplot()
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
        axes.set_xlabel(f"variables [{n:,} columns]")
        axes.set_ylabel(f"constraints [{m:,} rows]")
        axes.set_title(title or f"{m:,} × {n:,}, {form.A.nnz:,} nonzeros", loc="left", pad=18)
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


def topology(
    instance: Topology, *, load: ArrayLike | None = None, layout: Layout = "circular", title: str | None = None
) -> Figure:
    """Draw the vertices and arcs of a topology, arcs coloured by their load.

    Parameters
    ----------
    instance
        The topology. Terminals are filled; vertices that only forward are open.
    load
        Load of every arc in the instance's arc order, shape ``(m,)``, in the unit of its capacities; drawn as
        load over capacity. Plain arcs if None.
    layout
        ``"circular"`` in vertex order, or ``"spring"`` (seeded).
    title
        Heading; the instance's spec if None.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    place = _positions(instance, layout)
    share = None if load is None else np.asarray(load, dtype=float) / instance.capacity
    plasma = _plasma()
    scale = LinearSegmentedColormap.from_list("load", plasma)
    with style():
        figure = new_figure(5.8, 5.4)
        axes = figure.add_subplot()
        norm = Normalize(0.0, max(1.0, float(share.max(initial=0.0))) if share is not None else 1.0)
        colours = [MUTED] * instance.arcs if share is None else [scale(norm(s)) for s in share]
        _draw_arcs(axes, instance, place, colours)
        ends = np.isin(np.arange(instance.n), instance.terminals)
        size = float(np.clip(3600.0 / instance.n, 12.0, 240.0))
        face = [PALETTE[0] if end else "none" for end in ends]
        axes.scatter(place[:, 0], place[:, 1], s=size, c=face, edgecolors=PALETTE[0], zorder=3)
        if instance.n <= _MOST_LABELS:
            for (x, y), name, end in zip(place, instance.labels, ends, strict=True):
                axes.text(
                    x, y, label(name, 6), ha="center", va="center", zorder=4,
                    fontsize=float(np.clip(size**0.5 * 0.62, 4.0, 9.0)), color=ON_SERIES if end else INK,
                )  # fmt: skip
        if share is not None:
            bar = figure.colorbar(ScalarMappable(norm, scale), ax=axes, shrink=0.7, pad=0.02)
            bar.set_label("arc load ÷ capacity [–]")
            bar.outline.set_visible(False)
        axes.set_aspect("equal")
        axes.margins(0.08)
        axes.set_axis_off()
        axes.set_title(label(title or f"{instance.spec}: {instance.n} vertices, {instance.arcs} arcs", 60), loc="left")
    return figure


def _plasma() -> list[tuple[float, float, float, float]]:
    """Colours from violet to orange, without those that are invisible on a dark or a light page."""
    import matplotlib as mpl

    colours = mpl.colormaps["plasma"](np.linspace(0.12, 0.82, 9))
    return [(float(r), float(g), float(b), float(a)) for r, g, b, a in colours]


def _positions(instance: Topology, layout: Layout) -> NDArray[np.float64]:
    """Place the vertices, shape ``(n, 2)``."""
    if layout == "circular":
        angle = np.pi / 2 - 2 * np.pi * np.arange(instance.n) / instance.n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    import networkx as nx

    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(range(instance.n))
    graph.add_edges_from(zip(instance.tail.tolist(), instance.head.tolist(), strict=True))
    positions = nx.spring_layout(graph, seed=0, iterations=100)
    return np.array([positions[v] for v in range(instance.n)], dtype=float)


def _draw_arcs(axes: Axes, instance: Topology, place: NDArray[np.float64], colours: list[object]) -> None:
    """Draw every arc bent to its right, so that both directions and parallel arcs are distinguishable."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch

    tail, head = instance.tail, instance.head
    pair = np.stack([tail, head], axis=1)
    repeat = np.zeros(instance.arcs, dtype=int)
    same = np.r_[False, (pair[1:] == pair[:-1]).all(axis=1)] if instance.arcs else np.zeros(0, dtype=bool)
    for a in np.flatnonzero(same).tolist():
        repeat[a] = repeat[a - 1] + 1
    bend = 0.09 + 0.12 * repeat
    width = float(np.clip(90.0 / max(instance.arcs, 1) ** 0.7, 0.5, 1.8))
    if instance.arcs <= _MOST_ARROWS:
        for a in range(instance.arcs):
            axes.add_patch(
                FancyArrowPatch(
                    tuple(place[tail[a]]), tuple(place[head[a]]), connectionstyle=f"arc3,rad={bend[a]}",
                    arrowstyle="-|>", mutation_scale=4 + 3 * width, linewidth=width, color=colours[a],
                    shrinkA=3, shrinkB=float(np.clip((2400.0 / instance.n) ** 0.5 / 2, 2.0, 7.0)), zorder=2,
                )
            )  # fmt: skip
        return
    start, end = place[tail], place[head]
    middle = (start + end) / 2 + (end - start)[:, ::-1] * np.array([1.0, -1.0]) * bend[:, None]
    t = np.linspace(0.0, 1.0, 12)[None, :, None]
    curves = (1 - t) ** 2 * start[:, None] + 2 * t * (1 - t) * middle[:, None] + t**2 * end[:, None]
    axes.add_collection(LineCollection(list(curves), colors=colours, linewidths=width, zorder=2))


__all__ = ["Layout", "sparsity", "topology"]
