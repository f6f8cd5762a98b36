"""Positions of the vertices of a network in a drawing: by family, in layers, by racks, or given."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.plots.style import label
from opticoll.errors import BadInput, refuse
from opticoll.instances import LightpathMesh, Topology
from opticoll.instances.spec import family_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.instances import Instance
    from opticoll.instances.topology import F64, I64, Mask


LAYOUTS = ("auto", "circular", "grid", "hypercube", "columns", "rings", "star", "layers", "racks", "given", "spring")
#: Positions by vertex: a mapping of labels or numbers, or an array of shape (n, 2).
Places = Mapping[Any, Sequence[float]] | Sequence[Sequence[float]]

#: Maximum number of vertices of a spring layout, whose time grows quadratically.
_MOST_SPRINGS = 2000
#: Layout of a family, by the first word of the spec; all others have no natural one.
_FAMILIES: dict[str, str] = {
    **dict.fromkeys(
        ("ring", "wdm-ring", "kautz", "debruijn", "genkautz", "complete", "slimfly", "polarfly"), "circular"
    ),
    **dict.fromkeys(("mesh", "torus", "lightpath", "path", "wdm-line"), "grid"),
    **dict.fromkeys(("hypercube", "twisted-hypercube", "folded-hypercube"), "hypercube"),
    **dict.fromkeys(("servers", "circuits", "random-regular", "xpander", "sp-expander"), "circular"),
    **dict.fromkeys(("circulant", "cayley", "digraph"), "circular"),
    **dict.fromkeys(("fat-tree", "nvswitch", "ideal-switch"), "layers"),
    "bipartite": "columns",
    "petersen": "rings",
    "dgx1": "rings",
    "dragonfly": "racks",
    "star": "star",
}
#: Distance added between neighbouring columns of two wafers.
_GAP = 0.9


@dataclass(frozen=True)
class Arrangement:
    """Where the vertices of a drawing are, and what it shows of their order.

    Attributes
    ----------
    place
        Positions, ``(n, 2)``, with neighbours about 1 apart.
    group
        Rack, group or wafer of every vertex, drawn as boxes; None without.
    word
        What a group is called.
    level
        Layer of every vertex, drawn as rows; None without.
    wrapped
        Arcs that lead around a torus, drawn as their two ends, ``(m,)``; None without.
    sides
        Vertices in the first column or last row of a grid, ``(n,)``; None for other layouts.
    """

    place: F64
    group: I64 | None = None
    word: str = ""
    level: I64 | None = None
    wrapped: Mask | None = None
    sides: Mask | None = None


def arrangement(
    topology: Topology, layout: str | Places | ArrayLike = "auto", family: Instance | None = None
) -> Arrangement:
    """Place the vertices of a drawing.

    Parameters
    ----------
    topology
        The vertices and arcs.
    layout
        One of :data:`LAYOUTS`; ``racks:R`` for racks of R consecutive vertices each (not for R racks), ``racks:KxR``
        for K such racks, which must be all; or positions, as a mapping of the
        vertices (labels or numbers) to x and y, or an array of shape ``(n, 2)``. ``auto`` takes the places of the
        topology, if it has any, else chooses by family, with layers where some vertices only forward, and a seeded
        spring layout for other topologies.
    family
        The instance whose spec names the family; the topology if None.

    Raises
    ------
    BadInput
        For an unknown layout, or one that does not fit the topology.
    """
    if not isinstance(layout, str):
        return Arrangement(_given(topology, layout))
    name, _, size = layout.partition(":")
    if name not in LAYOUTS or (size and name != "racks"):
        refuse("plot", f"unknown layout {layout!r}; write {', '.join(LAYOUTS)}, racks:R, or positions by vertex")
    named = family or topology
    chosen = chosen_layout(topology, named) if name == "auto" else name
    if chosen == "given":
        places = getattr(named, "places", None)
        if places is None or len(places) != topology.n:
            spec = label(named.spec, 60)
            refuse("plot", f"{spec} has no places; give x and y of the nodes in its file, or positions")
        return Arrangement(_given(topology, places))
    if chosen == "grid":
        return _grid(topology, named)
    if chosen == "racks":
        group, word = racks_of(topology, size, named)
        return Arrangement(_blocks(group), group, word)
    if chosen == "layers":
        level = layers_of(topology)
        return Arrangement(_rows(topology, level), level=level)
    return Arrangement(_by_name(topology, chosen, named))


def chosen_layout(topology: Topology, named: Instance) -> str:
    """The layout that ``auto`` stands for."""
    n = topology.n
    if getattr(named, "places", None) is not None and named.n == n:
        return "given"
    chosen = _FAMILIES.get(family_name(named.spec), "layers" if topology.num_ranks < n else "spring")
    if "+host" in named.spec:
        chosen = "racks" if _hosts(topology) is not None else "spring"
    elif named.n != n:
        chosen = "spring" if isinstance(named, Topology) else "circular"
    if chosen == "grid" and _shape(named, n) is None:
        chosen = "spring"
    return "circular" if chosen == "spring" and n > _MOST_SPRINGS else chosen


def racks_of(topology: Topology, size: str, named: Instance) -> tuple[I64, str]:
    """The rack of every vertex and what it is called, "" if its vertices say it.

    These are racks of so many consecutive vertices, or K of them (``KxR``); without a size, hosts with their NICs, or
    the groups of a dragonfly.

    Raises
    ------
    BadInput
        If no size is given and the family has no racks, or the size does not fit.
    """
    n = topology.n
    if size:
        count, _, each = size.rpartition("x")
        if not (each.isdigit() and 0 < int(each) <= n and (count.isdigit() or size == each)):
            asked = f"layout 'racks:{size}'"
            refuse("plot", f"{asked}: write racks:R with the vertices of a rack, 1 to {n}, or racks:KxR for K")
        if count and int(count) * int(each) != n:
            given = int(count) * int(each)
            refuse("plot", f"layout 'racks:{size}' is {given} vertices, {label(named.spec, 60)} has {n}")
        return np.arange(n) // int(each), "rack"
    hosts = _hosts(topology)
    if hosts is not None:
        return hosts, ""
    group = dict(named.parameters).get("a")
    if not (isinstance(group, int) and 0 < group < n and n % group == 0):
        spec = label(named.spec, 60)
        refuse("plot", f"{spec} has no racks of its own; write racks:R for racks of R consecutive vertices")
    return np.arange(n) // group, "group"


def layers_of(topology: Topology) -> I64:
    """Hops of every vertex from the nearest terminal, ``(n,)``: 0 for terminals, 1 for their switches, and so on."""
    from scipy.sparse.csgraph import dijkstra

    links = topology.length_matrix(np.ones(topology.arcs))
    hops = dijkstra(links, directed=False, indices=topology.terminals, unweighted=True, min_only=True)
    reached = np.isfinite(hops)
    return np.where(reached, hops, hops[reached].max() + 1).astype(np.int64)


def _given(topology: Topology, layout: Any) -> F64:
    """Positions from a mapping or an array, in units of the median distance of a vertex from its nearest neighbour."""
    from scipy.spatial import KDTree

    if isinstance(layout, Mapping):
        by_name = {str(name): place for name, place in layout.items()}
        missing = [name for name in topology.labels if name not in by_name]
        if missing:
            msg = f"plot: no position of vertex {missing[0]!r} ({len(missing)} missing); give x and y of every label"
            raise BadInput(msg)
        layout = [by_name[name] for name in topology.labels]
    try:
        place = np.asarray(layout, dtype=float)
    except (TypeError, ValueError):
        place = np.empty(0)
    if place.shape != (topology.n, 2) or not np.isfinite(place).all():
        refuse("plot", f"positions must be finite numbers x and y of each of the {topology.n} vertices")
    if len(place) < 2:
        return place
    near = KDTree(place).query(place, k=2)[0][:, 1]
    unit = float(np.median(near[near > 0])) if (near > 0).any() else 1.0
    return (place - place.mean(axis=0)) / unit


def _by_name(topology: Topology, chosen: str, named: Instance) -> F64:
    n = topology.n
    if chosen == "hypercube":
        bits = max(1, math.ceil(math.log2(n)))
        return _nested((np.arange(n)[:, None] >> np.arange(bits)) & 1)
    if chosen == "columns":
        sizes = _shape(named, None) or (n - n // 2, n // 2)
        return _columns(sizes if sum(sizes) == n else (n - n // 2, n // 2))
    if chosen == "rings":
        half = n // 2
        return np.concatenate([_circle(half) * 2.2, _circle(n - half)])
    if chosen == "star":
        return np.concatenate([np.zeros((1, 2)), _circle(n - 1) * 2.0])
    return _circle(n) if chosen == "circular" else _springs(topology)


def _hosts(topology: Topology) -> I64 | None:
    """Number of the host that a vertex belongs to, by labels such as ``host[a]``, ``nic[a]``; None without hosts."""
    names = [re.fullmatch(r"(host|in|out|nic)\[(.*)\]", name) for name in topology.labels]
    if not all(names):
        return None
    order: dict[str, int] = {}
    return np.array([order.setdefault(match[2], len(order)) for match in names if match], dtype=np.int64)


def _blocks(rack: I64) -> F64:
    """Racks around a circle, each a block of rows and columns about as wide as it is high."""
    count = int(rack.max()) + 1
    members = [np.flatnonzero(rack == number) for number in range(count)]
    most = max(part.size for part in members)
    wide = math.ceil(math.sqrt(most))
    flat, centres = np.zeros((rack.size, 2)), _circle(count) * 1.25 * (wide + 0.8)
    for centre, part in zip(centres, members, strict=True):
        across = min(wide, part.size)
        row, column = np.divmod(np.arange(part.size), across)
        block = np.stack([column - (across - 1) / 2, -(row - row.max(initial=0) / 2)], axis=1)
        flat[part] = (centre if count > 1 else 0.0) + block
    return flat


def _rows(topology: Topology, level: I64) -> F64:
    """Terminals in the lowest row, and their switches above them, each above the middle of its own."""
    wide = max(int(np.bincount(level).max()), 2)
    flat = np.zeros((topology.n, 2))
    height = max(1.4, wide / 8)
    for step in range(int(level.max()) + 1):
        row = np.flatnonzero(level == step)
        if step:
            below = [np.r_[topology.tail[topology.head == v], topology.head[topology.tail == v]] for v in row]
            centre = [flat[part[level[part] < step], 0].mean() if part.size else 0.0 for part in below]
            row = row[np.argsort(centre, kind="stable")]
        places = (np.arange(row.size) + 0.5) * wide / row.size
        flat[row] = np.stack([places, np.full(row.size, step * height)], axis=1)
    return flat


def _shape(named: Instance, n: int | None) -> tuple[int, ...] | None:
    """Sizes of a mesh, torus or bipartite graph, ``(n,)`` of a path; None if they do not give n vertices."""
    shape = named.shape if isinstance(named, LightpathMesh) else dict(named.parameters).get("shape")
    if shape is None and family_name(named.spec) in {"path", "wdm-line"}:
        shape = (named.n,)
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        return None
    return shape if n is None or math.prod(shape) == n else None


def _circle(n: int) -> F64:
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / max(n, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) * max(n / (2 * np.pi), 1.0)


def _grid(topology: Topology, named: Instance) -> Arrangement:
    """The vertices of a mesh or torus, whose wafers stand apart."""
    shape = _shape(named, topology.n)
    if shape is None:
        refuse("plot", f"layout 'grid' needs a mesh or torus, and {label(named.spec, 60)} has no shape; use 'spring'")
    at = np.stack(np.unravel_index(np.arange(topology.n), shape), axis=1)
    place = _oblique(at[:, ::-1].astype(float))
    wafer = named.wafer_of if isinstance(named, LightpathMesh) and named.wafers > 1 else None
    if wafer is not None:
        place[:, 0] += _GAP * wafer
    wrapped = np.abs(at[topology.tail] - at[topology.head]).max(axis=1) > 1
    sides = (place[:, 0] <= place[:, 0].min() + 0.01) | (place[:, 1] <= place[:, 1].min() + 0.01)
    return Arrangement(place, wafer, "wafer", wrapped=wrapped, sides=sides)


def _oblique(place: F64) -> F64:
    """Project grid positions (last dimension first) onto the plane: two axes straight, the others oblique."""
    flat = np.zeros((len(place), 2))
    width = [1.0, 1.0]
    for axis, column in enumerate(place.T):
        size = float(column.max(initial=0.0)) + 1
        if axis == 0:
            flat[:, 0] += column
            width[0] = size
        elif axis == 1:
            flat[:, 1] -= column
            width[1] = size
        elif axis == 2:
            flat += column[:, None] * np.array([0.37, 0.43])
        else:
            turn = axis % 2
            flat[:, turn] += column * (width[turn] + 1.2)
            width[turn] = size * (width[turn] + 1.2)
    return flat


def _nested(bits: I64) -> F64:
    """Nested cubes: the first three bits form an oblique cube, each further three a cube of the previous ones."""
    flat = np.zeros((len(bits), 2))
    steps = np.array([[1.0, 0.0], [0.0, -1.0], [0.45, 0.42]])
    for bit, column in enumerate(bits.T):
        flat += column[:, None] * steps[bit % 3] * 4.0 ** (bit // 3)
    return flat


def _columns(sizes: tuple[int, ...]) -> F64:
    tall = max(sizes)
    return np.concatenate(
        [
            np.stack([np.full(size, side * max(tall / 2, 1.0)), -np.linspace(0, tall - 1, size)], axis=1)
            for side, size in enumerate(sizes)
        ]
    )


def _springs(topology: Topology) -> F64:
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(topology.n))
    graph.add_edges_from(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    start = {v: tuple(place) for v, place in enumerate(_circle(topology.n).tolist())}
    result = nx.spring_layout(graph, pos=start, seed=0, iterations=200)
    place = np.array([result[v] for v in range(topology.n)], dtype=float)
    ends = place[topology.tail] - place[topology.head]
    length = np.hypot(*ends.T)
    return place / float(np.median(length[length > 0])) if (length > 0).any() else place
