"""Cuts of photonic meshes, and the bounds on overlap that they give.

Source  LuMorph, section 3.1 (overlap); the bounds are our own
Data    k = (s_k, d_k) in L circuits (:mod:`opticoll.formulations.lumorph.circuits`); a arcs of a topology

Every circuit with s_k inside a vertex set S and d_k outside crosses an arc that leaves S. Hence, for every S,

    max_a load_a >= ceil( |{k : s_k in S, d_k not in S}| / |{a : tail in S, head not in S}| ).

All axis-parallel rectangles of a grid are evaluated at once, on every topology whose vertices have grid positions
(arcs may be missing or wrap around, since any S gives a bound on any graph). Straight cuts are the rectangles that span
the grid. The bounding boxes of circuits and arcs are counted in a 4-D histogram whose cumulative sums give the number
inside each rectangle, in O(R^2 C^2).

Closed form. On an intact R x C mesh with row-major ranks, where the groups of a recursive exchange align with the rows
(they divide a row, fill rows, or are whole rows apart), the busiest arc of a step carries exactly

    max( sigma_c g_r floor(g_c^2 / 4),  sigma_r g_c floor(g_r^2 / 4) )

circuits: a group spans g_c positions sigma_c apart in a row and g_r rows sigma_r apart. The straight cut through the
middle of a group gives the bound, and row-first (XY) routes attain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.circuits import Circuits
    from opticoll.instances.topology import I64, Topology

#: Maximum entries of the histogram of all rectangles; on larger grids only straight cuts are evaluated.
MOST_RECTANGLES = 4_000_000


def grid_shape(topology: Topology) -> tuple[int, int] | None:
    """Rows and columns if the vertices have row-major grid positions, else None; extra dimensions count as rows.

    The shape describes the positions of the vertices, not which arcs exist.
    """
    shape = getattr(topology, "shape", None) or dict(topology.parameters).get("shape")
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
        return None
    rows, columns = int(np.prod(shape[:-1], dtype=np.int64)), int(shape[-1])
    return (rows, columns) if rows * columns == topology.n else None


def is_mesh(topology: Topology, shape: tuple[int, int]) -> bool:
    """Whether the arcs are exactly those of the intact mesh of this shape, one in each direction."""
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
    """Number of circuits divided by arcs, rounded up; 0 where no circuit crosses."""
    return np.where(crossing > 0, -(-crossing // np.maximum(arcs, 1)), 0)


def _inside(tail: I64, head: I64, shape: tuple[int, int]) -> tuple[I64, I64, I64]:
    """Numbers of pairs, tails and heads in rectangles ``[r1, r2] x [c1, c2]``, ``(R, R, C, C)`` by r1, r2, c1, c2."""
    rows, columns = shape
    boxes = []
    for first, second in ((tail, head), (tail, tail), (head, head)):
        r, c = np.divmod(np.stack([first, second]), columns)
        where = (r.min(axis=0), r.max(axis=0), c.min(axis=0), c.max(axis=0))
        flat = np.ravel_multi_index(where, (rows, rows, columns, columns))
        count = np.bincount(flat, minlength=(rows * columns) ** 2).reshape(rows, rows, columns, columns)
        count = np.flip(np.flip(count, 0).cumsum(axis=0), 0).cumsum(axis=1)
        boxes.append(np.flip(np.flip(count, 2).cumsum(axis=2), 2).cumsum(axis=3))
    return boxes[0], boxes[1], boxes[2]


def rectangle_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """Best bound of all rectangles, in both directions; ``detail`` gives rows and columns, both ends included."""
    inside, sources, targets = _inside(*pairs, shape)
    arcs, tails, heads = _inside(topology.tail, topology.head, shape)
    value = np.maximum(_per_arc(sources - inside, tails - arcs), _per_arc(targets - inside, heads - arcs))
    r1, r2, c1, c2 = (int(i) for i in np.unravel_index(int(value.argmax()), value.shape))
    reason = f"circuits over arcs across the border of rows {r1}..{r2}, columns {c1}..{c2}"
    return Bound("rectangle-cut", float(value.max()), reason, detail={"rows": [r1, r2], "columns": [c1, c2]})


def straight_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """Best bound of all straight lines across the grid, in both directions."""
    columns = shape[1]
    best, line = 0, "none"
    for axis, size in enumerate(shape):
        s, d, u, v = (np.divmod(ends, columns)[axis] for ends in (*pairs, topology.tail, topology.head))
        for start, end, tail, head in ((s, d, u, v), (d, s, v, u)):
            # Number that cross from index <= i to index > i, for every i.
            crossing, arcs = (
                np.bincount(a[a < b], minlength=size).cumsum() - np.bincount(b[a < b], minlength=size).cumsum()
                for a, b in ((start, end), (tail, head))
            )
            value = _per_arc(crossing, arcs)
            if int(value.max()) > best:
                best, line = (
                    int(value.max()),
                    f"{('row', 'column')[axis]}s {int(value.argmax())} and {int(value.argmax()) + 1}",
                )
    return Bound("straight-cut", float(best), f"circuits over arcs across the line between {line}")


def vertex_cuts(topology: Topology, pairs: tuple[I64, I64]) -> Bound:
    """Best bound of single vertices: circuits out of or into a vertex over its arcs in that direction."""
    ends = ((pairs[0], topology.out_degree), (pairs[1], topology.in_degree))
    value = max(int(_per_arc(np.bincount(v, minlength=topology.n), degree).max()) for v, degree in ends)
    return Bound("vertex-cut", float(value), "circuits that one GPU sends or receives, over its arcs in that direction")


def exchange_overlap(circuits: Circuits, shape: tuple[int, int]) -> int | None:
    """Closed form for an intact mesh; None if the groups do not align with its rows."""
    if circuits.exchange is None:
        return None
    (stride, group), (_, columns) = circuits.exchange, shape
    if stride * group <= columns:
        aligned, across, along = columns % (stride * group) == 0, (stride, group), (1, 1)
    elif stride >= columns:
        aligned, across, along = stride % columns == 0, (1, 1), (stride // columns, group)
    else:
        wide = columns // stride
        aligned = columns % stride == 0 and group % wide == 0
        across, along = (stride, wide), (1, group // wide)
    if not aligned:
        return None
    return max(across[0] * along[1] * (across[1] ** 2 // 4), along[0] * across[1] * (along[1] ** 2 // 4))


def cut_bounds(topology: Topology, pairs: tuple[I64, I64]) -> list[Bound]:
    """Every cut bound that applies, best first."""
    shape = grid_shape(topology)
    cuts = [vertex_cuts(topology, pairs)]
    if shape is not None:
        cuts.append(straight_cuts(topology, pairs, shape))
        if topology.n**2 <= MOST_RECTANGLES:
            cuts.append(rectangle_cuts(topology, pairs, shape))
    return sorted(cuts, key=lambda bound: -bound.value)
