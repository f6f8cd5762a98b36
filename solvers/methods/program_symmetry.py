r"""Rows that keep the lexicographically largest of all optimal solutions that symmetries exchange.

A symmetry :math:`\pi` permutes columns and rows and leaves entries, costs, bounds and integrality as they are, so with
x also :math:`(x_{\pi(k)})_k` is a solution, of the same value. Of all optimal solutions let x be the one whose binary
columns are lexicographically largest, in any fixed order. For every symmetry, x is then at least as large as its image,
and so is its beginning: for the first K columns that :math:`\pi` moves,

.. math:: \sum_{k=1}^K 2^{K-k} (x_k - x_{\pi(k)}) \ge 0 .

One solution satisfies all these rows, so they leave the optimal value as it is (Friedman, Integer programming and
combinatorial optimization, LNCS 4513, 2007; Hojny & Pfetsch, Mathematical Programming 175, 2019).

Symmetries come from colour refinement of the graph of columns, rows and entries
(:mod:`opticoll.instances.coloured_graphs`); each is verified entry by entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from opticoll.instances.coloured_graphs import ColouredGraph, ColourSearch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import I64

#: Budget of the search: refinements times columns, rows and entries.
MOST_WORK = 200_000_000
#: Maximum number of pairs individualised in one candidate.
MOST_DEPTH = 40
#: Maximum number of rows, and K, the columns that one compares. Longer rows cut off little more, and their entries are
#: larger.
MOST_ROWS, COMPARED = 200, 8


def ordered(form: StandardForm) -> StandardForm | None:
    """The program with such rows; None if no symmetry is found. Its optimum is that of ``form``, if there is one."""
    rows = []
    for image in symmetries(form):
        rows.append(_row(image))
        if len(rows) == MOST_ROWS:
            break
    if not rows:
        return None
    return form.with_rows(sp.vstack(rows), np.zeros(len(rows)), np.full(len(rows), np.inf))


def _row(image: I64) -> sp.csr_array:
    """The row of a symmetry that permutes binary columns in this way and moves some, ``(1, columns)``."""
    moved = np.flatnonzero(image != np.arange(image.size))[:COMPARED]
    weight = 2.0 ** np.arange(moved.size - 1, -1, -1)
    entries = np.concatenate([weight, -weight]), (np.zeros(2 * moved.size, int), np.concatenate([moved, image[moved]]))
    row = sp.csr_array(sp.coo_array(entries, shape=(1, image.size)))
    row.eliminate_zeros()
    return row


def symmetries(form: StandardForm) -> Iterator[I64]:
    """Symmetries as images of the binary columns, ``(columns,)`` each; other columns are shown as their own images.

    For every binary column in turn, one symmetry for each column to which symmetries that keep the earlier ones map it.
    The search is limited, so some may be missing.
    """
    graph = _graph(form)
    columns = form.cost.size
    binary = np.asarray(form.integer, dtype=bool) & (form.col_lower == 0) & (form.col_upper == 1)
    search = ColourSearch(graph, work=MOST_WORK, depth=MOST_DEPTH, nearest=True)
    for column in np.flatnonzero(binary).tolist():
        search.first = search.refined(search.first)
        colours = search.first[: graph.colour.size]
        if np.unique(colours[binary.nonzero()]).size == binary.sum() or search.spent:
            return
        for other in np.flatnonzero(colours[:columns] == colours[column]).tolist():
            if search.spent:
                return
            image = None if other == column else search.extend(column, other)
            if image is not None and _holds(image, graph):
                yield np.where(binary, image[:columns], np.arange(columns))
        search.first = np.where(
            np.isin(np.arange(search.first.size), [column, column + graph.colour.size]),
            search.first.max() + 1,
            search.first,
        )


def _graph(form: StandardForm) -> ColouredGraph:
    """The columns, then the rows, with an arc from the column to the row for every entry."""
    entries = form.A.tocoo()
    kept = entries.data != 0
    integer = np.asarray(form.integer, dtype=float)
    each = np.column_stack([form.cost, integer, form.col_lower, form.col_upper])
    _, column = np.unique(each, axis=0, return_inverse=True)
    _, row = np.unique(np.column_stack([form.row_lower, form.row_upper]), axis=0, return_inverse=True)
    _, kind = np.unique(entries.data[kept], return_inverse=True)
    tail, head = entries.col[kept].astype(np.int64), entries.row[kept].astype(np.int64) + form.cost.size
    return ColouredGraph(np.concatenate([column, row + column.max(initial=-1) + 1]), tail, head, kind)


def _holds(image: I64, graph: ColouredGraph) -> bool:
    """Whether a permutation of the vertices, ``(n,)``, maps the graph to itself."""
    if not np.array_equal(graph.colour[image], graph.colour):
        return False
    size = graph.colour.size
    moved, stated = image[graph.tail] * size + image[graph.head], graph.tail * size + graph.head
    new, old = np.argsort(moved), np.argsort(stated)
    return np.array_equal(moved[new], stated[old]) and np.array_equal(graph.kind[new], graph.kind[old])
