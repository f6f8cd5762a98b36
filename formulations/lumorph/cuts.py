r"""Cuts that bound the overlap of circuits from below, and what it is exactly for recursive exchanges on a mesh.

Source  LuMorph paper, section 3.1 (overlap); bounds of our own
Data    circuits (s_k, d_k), arcs a of a topology; a set S of vertices

Every circuit with s_k in S and d_k outside crosses an arc that leaves S, so that for every S

    max_a load_a >= ceil( |{k : s_k in S, d_k not in S}| / |{a : tail in S, head not in S}| ).

All axis-parallel rectangles of a grid are tried at once, for every topology whose vertices have grid places (arcs may
be missing, or wrap round: any S bounds any graph). Those from edge to edge are the straight cuts. With the bounding box
of every circuit and arc counted in a 4-D histogram, the number inside each rectangle is a cumulative sum, O(R^2 C^2).

Closed form. On an intact R x C mesh with ranks row-major, where the groups of a recursive exchange line up with the
rows (they divide a row, or fill rows, or are whole rows apart), its step has exactly

    max( sigma_c g_r floor(g_c^2 / 4),  sigma_r g_c floor(g_r^2 / 4) )

circuits on its busiest arc: a group spans g_c places sigma_c apart in a row and g_r rows sigma_r apart. The straight
cut through the middle of a group is that bound, and row-first (XY) routes attain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.lumorph.circuits import Circuits
    from instances.topology import Topology

    I64 = NDArray[np.int64]

#: Histograms of all rectangles have at most this many entries; on larger grids only straight cuts are tried.
MOST_RECTANGLES = 4_000_000


def grid_shape(topology: Topology) -> tuple[int, int] | None:
    """Rows and columns, if the vertices have places on a grid in row-major order; further dimensions count as rows.

    Only where the vertices lie is taken from this, never which arcs there are.
    """
    shape = getattr(topology, "shape", None) or dict(topology.parameters).get("shape")
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
        return None
    rows, columns = int(np.prod(shape[:-1], dtype=np.int64)), int(shape[-1])
    return (rows, columns) if rows * columns == topology.n else None


def is_mesh(topology: Topology, shape: tuple[int, int]) -> bool:
    """Whether the arcs are exactly those of the intact mesh of this shape, one each way."""
    rows, columns = shape
    place = np.arange(rows * columns).reshape(shape)
    links = np.concatenate(
        [
            np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1),
            np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1),
        ]
    )
    tail, head = np.concatenate([links, links[:, ::-1]]).T
    order = np.lexsort((head, tail))
    return np.array_equal(tail[order], topology.tail) and np.array_equal(head[order], topology.head)


def _per_arc(crossing: I64, arcs: I64) -> I64:
    """Circuits over arcs, rounded up; where nothing crosses (or, then, no arc leaves) 0."""
    return np.where(crossing > 0, -(-crossing // np.maximum(arcs, 1)), 0)


def _inside(tail: I64, head: I64, shape: tuple[int, int]) -> tuple[I64, I64, I64]:
    """For all rectangles ``[r1, r2] x [c1, c2]``, ``(R, R, C, C)`` by r1, r2, c1, c2: pairs inside, tails, heads in."""
    rows, columns = shape
    boxes = []
    for one, other in ((tail, head), (tail, tail), (head, head)):
        r, c = np.divmod(np.stack([one, other]), columns)
        where = (r.min(axis=0), r.max(axis=0), c.min(axis=0), c.max(axis=0))
        flat = np.ravel_multi_index(where, (rows, rows, columns, columns))
        count = np.bincount(flat, minlength=(rows * columns) ** 2).reshape(rows, rows, columns, columns)
        count = np.flip(np.flip(count, 0).cumsum(axis=0), 0).cumsum(axis=1)
        boxes.append(np.flip(np.flip(count, 2).cumsum(axis=2), 2).cumsum(axis=3))
    return boxes[0], boxes[1], boxes[2]


def rectangle_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """The best bound of all rectangles, both directions; ``detail`` names rows and columns (last one included)."""
    inside, sources, targets = _inside(*pairs, shape)
    arcs, tails, heads = _inside(topology.tail, topology.head, shape)
    value = np.maximum(_per_arc(sources - inside, tails - arcs), _per_arc(targets - inside, heads - arcs))
    r1, r2, c1, c2 = (int(i) for i in np.unravel_index(int(value.argmax()), value.shape))
    reason = f"circuits over arcs across the border of rows {r1}..{r2}, columns {c1}..{c2}"
    return Bound("rectangle-cut", float(value.max()), reason, detail={"rows": [r1, r2], "columns": [c1, c2]})


def straight_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """The best bound of all straight lines across the grid, both directions."""
    columns = shape[1]
    best, line = 0, "none"
    for axis, size in enumerate(shape):
        s, d, u, v = (np.divmod(ends, columns)[axis] for ends in (*pairs, topology.tail, topology.head))
        for one, other, tail, head in ((s, d, u, v), (d, s, v, u)):
            # How many go from at most i to above i, for every line i.
            crossing, arcs = (
                np.bincount(a[a < b], minlength=size).cumsum() - np.bincount(b[a < b], minlength=size).cumsum()
                for a, b in ((one, other), (tail, head))
            )
            value = _per_arc(crossing, arcs)
            if int(value.max()) > best:
                best, line = (
                    int(value.max()),
                    f"{('row', 'column')[axis]}s {int(value.argmax())} and {int(value.argmax()) + 1}",
                )
    return Bound("straight-cut", float(best), f"circuits over arcs across the line between {line}")


def vertex_cuts(topology: Topology, pairs: tuple[I64, I64]) -> Bound:
    """The best bound of single vertices: what leaves or enters one over the arcs it has for that."""
    ends = ((pairs[0], topology.out_degree), (pairs[1], topology.in_degree))
    value = max(int(_per_arc(np.bincount(v, minlength=topology.n), degree).max()) for v, degree in ends)
    return Bound("vertex-cut", float(value), "circuits that one GPU sends or receives over the arcs it has for them")


def exchange_overlap(circuits: Circuits, shape: tuple[int, int]) -> int | None:
    """The closed form above for an intact mesh; None where the groups do not line up with its rows."""
    if circuits.exchange is None:
        return None
    (stride, group), (_, columns) = circuits.exchange, shape
    if stride * group <= columns:
        lines_up, across, along = columns % (stride * group) == 0, (stride, group), (1, 1)
    elif stride >= columns:
        lines_up, across, along = stride % columns == 0, (1, 1), (stride // columns, group)
    else:
        wide = columns // stride
        lines_up = columns % stride == 0 and group % wide == 0
        across, along = (stride, wide), (1, group // wide)
    if not lines_up:
        return None
    return max(across[0] * along[1] * (across[1] ** 2 // 4), along[0] * across[1] * (along[1] ** 2 // 4))


def cut_bounds(topology: Topology, pairs: tuple[I64, I64]) -> list[Bound]:
    """Every cut above that applies, best first."""
    shape = grid_shape(topology)
    found = [vertex_cuts(topology, pairs)]
    if shape is not None:
        found.append(straight_cuts(topology, pairs, shape))
        if topology.n**2 <= MOST_RECTANGLES:
            found.append(rectangle_cuts(topology, pairs, shape))
    return sorted(found, key=lambda bound: -bound.value)
