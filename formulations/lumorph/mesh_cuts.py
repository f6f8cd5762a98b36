"""Cuts of photonic meshes, and the bounds on overlap that they give.

Source  LuMorph, section 3.1 (overlap); the bounds are our own
Data    k = (s_k, d_k) in L circuits (:mod:`opticoll.formulations.lumorph.circuits`); a arcs of a topology

Every circuit with s_k inside a vertex set S and d_k outside crosses an arc that leaves S. Hence, for every S,

    max_a load_a >= ceil( |{k : s_k in S, d_k not in S}| / |{a : tail in S, head not in S}| ).

Where arcs carry c_a circuits, integers, q = |{k : ...}| circuits over arcs of C = sum of c_a give some arc of these
with load_a / c_a >= q / C, and load_a is an integer: max_a load_a / c_a >= min over their c_a of ceil(q c_a / C) / c_a.

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

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows.path_bounds import shortest_lengths
from opticoll.formulations.flows.path_flow import unit_capacities, whole_paths
from opticoll.formulations.model import Bound
from opticoll.instances.families.rings_and_grids import mesh
from opticoll.instances.spec import Dimensions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.lumorph.circuits import Circuits
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.instances.topology import F64, I64, Mask, Topology

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
    intact = mesh(Dimensions(shape))
    return np.array_equal(intact.tail, topology.tail) and np.array_equal(intact.head, topology.head)


def _of_capacity(topology: Topology) -> list[tuple[int, Mask]]:
    """Every capacity, an integer, and whether each arc has it."""
    return [(int(c), topology.capacity == c) for c in np.unique(topology.capacity).tolist()]


def _load(crossing: I64, arcs: list[tuple[int, I64]]) -> F64:
    """Least load per capacity of the busiest of the arcs that ``crossing`` circuits cross, 0 where none crosses.

    ``arcs`` are the numbers of crossed arcs of every capacity. A quotient may be rounded up, see :func:`_proven`.
    """
    room = np.maximum(sum(c * count for c, count in arcs), 1)
    each = [np.where(count > 0, -(-crossing * c // room) / c, np.inf) for c, count in arcs]
    least = np.minimum.reduce(each)
    return np.where((crossing > 0) & np.isfinite(least), least, 0.0)


def _proven(value: float) -> float:
    """The quotient of integers that a float is nearest to, rounded down; integers remain."""
    return value if value.is_integer() else rounding.fraction_down(Fraction(value).limit_denominator(10**6))


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
    """Best bound of all rectangles, in both directions."""
    inside, sources, targets = _inside(*pairs, shape)
    leaving, entering = [], []
    for c, of_c in _of_capacity(topology):
        arcs, tails, heads = _inside(topology.tail[of_c], topology.head[of_c], shape)
        leaving.append((c, tails - arcs))
        entering.append((c, heads - arcs))
    value = np.maximum(_load(sources - inside, leaving), _load(targets - inside, entering))
    r1, r2, c1, c2 = (int(i) for i in np.unravel_index(int(value.argmax()), value.shape))
    reason = f"circuits over arcs across the border of rows {r1}..{r2}, columns {c1}..{c2}"
    return Bound("rectangle-cut", _proven(float(value.max())), reason)


def straight_cuts(topology: Topology, pairs: tuple[I64, I64], shape: tuple[int, int]) -> Bound:
    """Best bound of all straight lines across the grid, in both directions."""
    columns = shape[1]
    best, line, kinds = 0.0, "none", _of_capacity(topology)
    for axis, size in enumerate(shape):
        s, d, u, v = (np.divmod(ends, columns)[axis] for ends in (*pairs, topology.tail, topology.head))
        for start, end, tail, head in ((s, d, u, v), (d, s, v, u)):
            arcs = [(c, _across(tail[of_c], head[of_c], size)) for c, of_c in kinds]
            value = _load(_across(start, end, size), arcs)
            if float(value.max()) > best:
                best, line = (
                    float(value.max()),
                    f"{('row', 'column')[axis]}s {int(value.argmax())} and {int(value.argmax()) + 1}",
                )
    return Bound("straight-cut", _proven(best), f"circuits over arcs across the line between {line}")


def _across(a: I64, b: I64, size: int) -> I64:
    """Number of pairs (a, b) that cross from index <= i to index > i, for every i, ``(size,)``."""
    return np.bincount(a[a < b], minlength=size).cumsum() - np.bincount(b[a < b], minlength=size).cumsum()


def vertex_cuts(topology: Topology, pairs: tuple[I64, I64]) -> Bound:
    """Best bound of single vertices: circuits out of or into a vertex over its arcs in that direction."""
    kinds, value = _of_capacity(topology), 0.0
    for circuits_at, at in ((pairs[0], topology.tail), (pairs[1], topology.head)):
        arcs = [(c, np.bincount(at[of_c], minlength=topology.n)) for c, of_c in kinds]
        value = max(value, float(_load(np.bincount(circuits_at, minlength=topology.n), arcs).max()))
    return Bound(
        "vertex-cut", _proven(value), "circuits that one GPU sends or receives, over its arcs in that direction"
    )


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
    """Every cut bound that applies, best first, on a topology whose capacities are integers [circuits]."""
    shape = grid_shape(topology)
    cuts = [vertex_cuts(topology, pairs)]
    if shape is not None:
        cuts.append(straight_cuts(topology, pairs, shape))
        if topology.n**2 <= MOST_RECTANGLES:
            cuts.append(rectangle_cuts(topology, pairs, shape))
    return sorted(cuts, key=lambda bound: -bound.value)


def overlap_cuts(data: Overlap) -> list[Bound]:
    """Cut bounds and the closed form, best first."""
    result = cut_bounds(data.topology, data.commodities)
    shape = grid_shape(data.topology)
    if shape is not None and unit_capacities(data.routing) and is_mesh(data.topology, shape):
        value = exchange_overlap(data.circuits, shape)
        if value is not None:
            reason = f"{data.circuits.name} on an intact {shape[0]}x{shape[1]} mesh: XY routes meet the straight cut"
            exact = data.routing.rule.unrestricted
            result.append(Bound("recursive-exchange", float(value), reason, exact=exact))
    return sorted(result, key=lambda bound: -bound.value)


def hop_bound(data: Overlap) -> Bound:
    """Bound of unit lengths: every circuit loads at least as many arcs as the distance between its ends."""
    value = length_bound(data, np.ones(data.topology.arcs))
    total = "number of arcs" if unit_capacities(data.routing) else "capacity of all arcs"
    return Bound("hop-lengths", value, f"hops of all circuits over the {total}, rounded up")


def certify(data: Overlap, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by the duals of ``congestion`` (or ``capacity``), read as arc lengths."""
    name = "congestion" if "congestion" in duals else "capacity"
    if name not in duals:
        return None
    value = length_bound(data, np.abs(np.asarray(duals[name], dtype=float)))
    if value <= 0:
        return None
    return Bound("any-lengths", value, "arc lengths from duals: shortest paths over total length, rounded up")


def bounds(data: Overlap) -> list[Bound]:
    """Bounds from cuts, the closed form where it applies, and unit lengths."""
    return sorted([*data.cuts, data.hop_bound], key=lambda bound: -bound.value)


closed_forms = bounds


def length_bound(data: Overlap, lengths: F64) -> float:
    """``sum_k dist_l(s_k, d_k) / sum_a c_a l_a`` over the allowed routes, for any lengths, ``(m,)``; 0 if empty.

    Rounded up to a multiple of some ``1 / c_a``. Exact: lengths are scaled to integers small enough that every sum of
    them is exact in double precision.
    """
    topology = data.topology
    lengths = np.asarray(lengths, dtype=float)
    lengths = np.where(np.isfinite(lengths) & (lengths > 0), lengths, 0.0)
    if lengths.shape != (topology.arcs,) or not lengths.any():
        return 0.0
    lengths = np.ldexp(lengths, -rounding.exponent(lengths))
    most = 2.0**52 / (max(data.circuits.count, int(topology.capacity.sum())) * topology.n)
    whole = np.maximum(np.floor(lengths / lengths.max() * most), 1.0)
    total = sum(int(reach) for reach in shortest_lengths(data.routing, whole))
    cost = int((whole * topology.capacity).sum())
    capacities = map(Fraction, np.unique(topology.capacity).tolist())
    return rounding.fraction_down(whole_paths(Fraction(total, cost), capacities, Fraction(1)))
