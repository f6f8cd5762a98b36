"""Drawings of networks: topologies, the load of every link, and the circuits of every round."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.analysis.plots.panels import new_figure
from opticoll.analysis.plots.style import GRID, INK, MUTED, ON_SERIES, PALETTE, counted, label, style
from opticoll.errors import BadInput
from opticoll.instances import Topology, as_instance

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from opticoll.analysis.result import InstanceLike
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.variables import Links
    from opticoll.instances import Instance

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

Layout = Literal["auto", "circular", "grid", "hypercube", "columns", "rings", "star", "spring"]
LAYOUTS = ("auto", "circular", "grid", "hypercube", "columns", "rings", "star", "spring")

#: With more arcs, lines without arrowheads are drawn; with more vertices, no labels.
_MOST_ARROWS, _MOST_LABELS = 600, 128
#: Maximum number of vertices of a spring layout, whose time grows quadratically.
_MOST_SPRINGS = 2000
#: Maximum number of (arc, vertex) pairs that are tested for overlap.
_MOST_PAIRS = 400_000
#: Maximum number of rounds that are drawn.
_MOST_PANELS = 16
#: Layout of a family, by the first word of the spec; all others have no natural one.
_FAMILIES: dict[str, Layout] = {
    **dict.fromkeys(("ring", "wdm-ring", "kautz", "debruijn", "genkautz", "complete", "slimfly"), "circular"),
    **dict.fromkeys(("mesh", "torus", "lightpath", "path", "wdm-line"), "grid"),
    **dict.fromkeys(("hypercube", "twisted-hypercube"), "hypercube"),
    **dict.fromkeys(("servers", "circuits", "random-regular", "xpander", "sp-expander"), "circular"),
    "bipartite": "columns",
    "petersen": "rings",
    "dgx1": "rings",
    "dragonfly": "rings",
    "star": "star",
}


# positions -------------------------------------------------------------------------------------------------------


def positions(topology: Topology, layout: str = "auto", family: Instance | None = None) -> F64:
    """Positions of the vertices, ``(n, 2)``, with neighbours about 1 apart.

    Parameters
    ----------
    topology
        The vertices and arcs.
    layout
        One of :data:`LAYOUTS`; ``auto`` chooses by family, with a seeded spring layout for other topologies.
    family
        The instance whose spec names the family; the topology if None.

    Raises
    ------
    BadInput
        For an unknown layout, or one that does not fit the topology.
    """
    if layout not in LAYOUTS:
        msg = f"plot: unknown layout {layout!r}; write {', '.join(LAYOUTS)}"
        raise BadInput(msg)
    named = family or topology
    n, chosen = topology.n, layout
    if layout == "auto":
        word = re.split("[:+]", named.spec, maxsplit=1)[0]
        chosen = _FAMILIES.get(word, "spring")
        if named.n != n or "+host" in named.spec:
            chosen = "spring" if isinstance(named, Topology) else "circular"
        if chosen == "grid" and _shape(named, n) is None:
            chosen = "spring"
        if chosen == "spring" and n > _MOST_SPRINGS:
            chosen = "circular"
    if chosen == "grid":
        shape = _shape(named, n)
        if shape is None:
            msg = f"plot: layout 'grid' needs a mesh or torus, and {label(named.spec, 60)} has no shape; use 'spring'"
            raise BadInput(msg)
        return _oblique(np.stack(np.unravel_index(np.arange(n), shape), axis=1)[:, ::-1].astype(float))
    if chosen == "hypercube":
        bits = max(1, math.ceil(math.log2(n)))
        return _nested((np.arange(n)[:, None] >> np.arange(bits)) & 1)
    if chosen == "columns":
        sizes = _shape(named, None) or (n - n // 2, n // 2)
        return _columns(sizes if sum(sizes) == n else (n - n // 2, n // 2))
    if chosen == "rings":
        return _rings(n, dict(named.parameters).get("a"))
    if chosen == "star":
        return np.concatenate([np.zeros((1, 2)), _circle(n - 1) * 2.0])
    if chosen == "circular":
        return _circle(n)
    return _springs(topology)


def _shape(named: Instance, n: int | None) -> tuple[int, ...] | None:
    """Sizes of a mesh, torus or bipartite graph, ``(n,)`` of a path; None if they do not give n vertices."""
    shape = dict(named.parameters).get("shape")
    if shape is None and re.split("[:+]", named.spec, maxsplit=1)[0] in {"path", "wdm-line"}:
        shape = (named.n,)
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        return None
    return shape if n is None or math.prod(shape) == n else None


def _circle(n: int) -> F64:
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / max(n, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) * max(n / (2 * np.pi), 1.0)


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


def _rings(n: int, group: object) -> F64:
    """Groups of vertices: small circles around a large one; two concentric circles without groups."""
    if isinstance(group, int) and 0 < group < n and n % group == 0:
        own = _circle(group) * 0.8
        return np.concatenate([centre + own for centre in _circle(n // group) * group * 0.75])
    half = n // 2
    return np.concatenate([_circle(half) * 2.2, _circle(n - half)])


def _springs(topology: Topology) -> F64:
    import networkx as nx

    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(range(topology.n))
    graph.add_edges_from(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    start = {v: tuple(place) for v, place in enumerate(_circle(topology.n).tolist())}
    result = nx.spring_layout(graph, pos=start, seed=0, iterations=200)
    place = np.array([result[v] for v in range(topology.n)], dtype=float)
    ends = place[topology.tail] - place[topology.head]
    length = np.hypot(*ends.T)
    return place / float(np.median(length[length > 0])) if (length > 0).any() else place


# drawings -----------------------------------------------------------------------------------------------------


def topology(
    instance: Topology, *, load: ArrayLike | None = None, layout: str = "auto", title: str | None = None
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
        As in :func:`positions`.
    title
        Heading; the instance's spec if None.
    """
    share = None if load is None else np.asarray(load, dtype=float) / instance.capacity
    heading = title or f"{instance.spec}: {instance.n} vertices, {instance.arcs} arcs"
    return _figure(instance, positions(instance, layout), share, 1.0, "arc load ÷ capacity [–]", heading)


def loads(
    links: Links,
    family: Instance,
    *,
    scale: Callable[[str], tuple[str, float] | None],
    layout: str = "auto",
    title: str = "",
) -> Figure:
    """Draw the load of every link: in its unit if all capacities are equal, else relative to capacity.

    Parameters
    ----------
    links
        Links with load and capacity.
    family
        The instance, whose family determines the layout.
    scale
        The absolute unit for a relative one, with its factor, or None.
    layout, title
        As in :func:`topology`.
    """
    drawn, load = links.topology, np.asarray(links.load, dtype=float)
    room = np.asarray(links.capacity, dtype=float) * links.time
    even = room.size > 0 and bool(np.allclose(room, room[0]))
    busiest = int(np.argmax(links.utilisation)) if load.size else None
    if even:
        unit, factor = scale(links.load_unit) or (links.load_unit, 1.0)
        unit, factor = _readable(unit, factor, float(load.max(initial=0.0)))
        shown, top, text = load * factor, float(room[0]) * factor, f"link load [{unit}]"
    else:
        shown, top, text = links.utilisation, 1.0, "utilisation of links [–]"
    if busiest is not None:
        ends = f"{label(drawn.labels[drawn.tail[busiest]], 16)} -> {label(drawn.labels[drawn.head[busiest]], 16)}"
        use = f"busiest link {ends}: {100 * links.utilisation[busiest]:.3g} % of its capacity in use"
        title = f"{title}\n{use}" if title else use
    return _figure(drawn, positions(drawn, layout, family), shown, top, text, title)


def _readable(unit: str, factor: float, most: float) -> tuple[str, float]:
    """Bytes with the prefix that suits the largest value."""
    if unit != "bytes":
        return unit, factor
    power = min(max(int(math.log10(max(most * factor, 1.0)) // 3), 0), 5)
    return ("bytes", "kB", "MB", "GB", "TB", "PB")[power], factor / 1000.0**power


def _figure(drawn: Topology, place: F64, shown: F64 | None, top: float, text: str, title: str) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    scale = LinearSegmentedColormap.from_list("load", _colour_ramp())
    span = np.ptp(place, axis=0) + 1.5
    size = float(np.clip(4.6 + drawn.n / 20.0, 5.0, 8.5))
    ratio = float(np.clip(span[1] / span[0], 0.35, 1.1))
    with style():
        figure = new_figure(size + 0.8, size * ratio + 0.6)
        axes = figure.add_subplot()
        norm = Normalize(0.0, max(top, float(shown.max(initial=0.0))) if shown is not None else 1.0)
        order = np.arange(drawn.arcs) if shown is None else np.argsort(shown, kind="stable")  # busy links on top
        colours: list[Any] = [MUTED] * drawn.arcs if shown is None else [scale(norm(value)) for value in shown]
        diameter = _diameter(place, size * 72.0 * 0.85 / float(span.max()))
        _draw_arcs(axes, drawn, place, colours, order, diameter)
        _draw_vertices(axes, drawn, place, diameter)
        if shown is not None:
            bar = figure.colorbar(ScalarMappable(norm, scale), ax=axes, shrink=0.75, pad=0.02)
            bar.set_label(text)
            bar.outline.set_visible(False)
        _finish(axes)
        _set_title(figure, title, size + 0.8)
    return figure


def _finish(axes: Axes) -> None:
    axes.set_aspect("equal")
    axes.margins(0.09)
    axes.set_axis_off()


def _set_title(figure: Figure, title: str, width: float) -> None:
    """Put the title over the whole figure, with every line cut to the figure's width [inches]."""
    lines = [label(line, int(width * 14)) for line in title.split("\n")]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9.5)


def _diameter(place: F64, points: float) -> float:
    """Diameter of a vertex [points] that leaves room between the closest two; a distance of 1 is ``points`` long."""
    from scipy.spatial import KDTree

    if len(place) < 2:
        return 18.0
    near = KDTree(place).query(place, k=2)[0][:, 1]
    return float(np.clip(0.42 * points * float(near.min()), 3.5, 18.0))


def _colour_ramp() -> list[tuple[float, float, float, float]]:
    """Colours from violet to orange, all visible on both dark and light pages."""
    import matplotlib as mpl

    colours = mpl.colormaps["plasma"](np.linspace(0.12, 0.82, 9))
    return [(float(r), float(g), float(b), float(a)) for r, g, b, a in colours]


def _draw_vertices(axes: Axes, drawn: Topology, place: F64, diameter: float) -> None:
    """Draw filled terminals and open relays, with labels inside if they fit, else beside them."""
    from matplotlib.patheffects import withStroke

    ends = np.isin(np.arange(drawn.n), drawn.terminals)
    face = [PALETTE[0] if end else "none" for end in ends]
    axes.scatter(place[:, 0], place[:, 1], s=diameter**2, c=face, edgecolors=PALETTE[0], zorder=3)
    if drawn.n > _MOST_LABELS:
        return
    longest = max(map(len, drawn.labels), default=0)
    inner = min(diameter * 0.58, diameter / (0.62 * max(longest, 1)), 9.0)
    centre = place.mean(axis=0)
    for (x, y), name, end in zip(place, drawn.labels, ends, strict=True):
        if inner >= (4.0 if longest <= 3 else 5.5):
            axes.text(
                x,
                y,
                label(name, 6),
                ha="center",
                va="center",
                zorder=4,
                fontsize=inner,
                color=ON_SERIES if end else INK,
            )
            continue
        away = np.array([x, y]) - centre
        length = float(np.hypot(*away))
        way = away / length if length > 1e-9 else np.array([0.0, 1.0])
        reach = diameter / 2 + 3
        axes.annotate(
            label(name, 18),
            (x, y),
            xytext=(way[0] * reach, way[1] * reach),
            textcoords="offset points",
            ha="left" if way[0] > 0.3 else "right" if way[0] < -0.3 else "center",
            va="bottom" if way[1] > 0.3 else "top" if way[1] < -0.3 else "center",
            fontsize=8.5 if drawn.n <= 40 else 6.0,
            color=INK,
            zorder=5,
            path_effects=[withStroke(linewidth=2.5, foreground="white", alpha=0.8)],
        )


def _bends(drawn: Topology, place: F64) -> F64:
    """Curvature of every arc, ``(m,)``: parallel arcs are drawn apart, and arcs avoid vertices in their way."""
    pair = np.stack([drawn.tail, drawn.head], axis=1)
    repeat = np.zeros(drawn.arcs, dtype=int)
    same = np.r_[False, (pair[1:] == pair[:-1]).all(axis=1)] if drawn.arcs else np.zeros(0, dtype=bool)
    for a in np.flatnonzero(same).tolist():
        repeat[a] = repeat[a - 1] + 1
    bend = np.full(drawn.arcs, 0.09)
    if drawn.arcs * drawn.n <= _MOST_PAIRS:
        ends = place[drawn.head] - place[drawn.tail]
        length = np.maximum(np.hypot(*ends.T), 1e-9)
        along = ends / length[:, None]
        from_tail = place[None, :, :] - place[drawn.tail][:, None, :]
        ahead = (from_tail * along[:, None, :]).sum(axis=2)
        aside = np.abs(from_tail[..., 0] * along[:, None, 1] - from_tail[..., 1] * along[:, None, 0])
        met = ((aside < 0.08) & (ahead > 0.1) & (ahead < length[:, None] - 0.1)).any(axis=1)
        bend = np.where(met, np.minimum(0.62 / length, 0.3), bend)
    return np.asarray(bend + 0.12 * repeat)


def _draw_arcs(axes: Axes, drawn: Topology, place: F64, colours: list[Any], order: I64, diameter: float) -> None:
    """Draw every arc bent to its right, so both directions and parallel arcs are distinguishable."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch

    tail, head, bend = drawn.tail, drawn.head, _bends(drawn, place)
    capacity = drawn.capacity / drawn.capacity.max() if drawn.arcs else np.ones(0)
    width = float(np.clip(40.0 / max(drawn.arcs, 1) ** 0.7, 0.45, 1.8)) * (0.55 + 0.45 * np.sqrt(capacity))
    if drawn.arcs <= _MOST_ARROWS:
        for a in order.tolist():
            axes.add_patch(
                FancyArrowPatch(
                    tuple(place[tail[a]]),
                    tuple(place[head[a]]),
                    connectionstyle=f"arc3,rad={bend[a]}",
                    arrowstyle="-|>",
                    mutation_scale=4 + 3 * width[a],
                    linewidth=width[a],
                    color=colours[a],
                    shrinkA=diameter * 0.4,
                    shrinkB=diameter * 0.55,
                    zorder=2,
                )
            )
        return
    start, end = place[tail], place[head]
    middle = (start + end) / 2 + (end - start)[:, ::-1] * np.array([1.0, -1.0]) * bend[:, None]
    t = np.linspace(0.0, 1.0, 12)[None, :, None]
    curves = (1 - t) ** 2 * start[:, None] + 2 * t * (1 - t) * middle[:, None] + t**2 * end[:, None]
    lines = LineCollection(
        list(curves[order]), colors=[colours[a] for a in order.tolist()], linewidths=width[order], zorder=2
    )
    axes.add_collection(lines)


# rounds -------------------------------------------------------------------------------------------------------


def rounds(instance: Topology, schedule: RoundSchedule, *, layout: str = "auto", title: str = "") -> Figure:
    """Draw the circuits of every round on the topology, coloured by wavelength, a panel per round.

    Parameters
    ----------
    instance
        The topology.
    schedule
        Circuits by round.
    layout, title
        As in :func:`topology`; beyond 16 rounds, the first 16 are drawn.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap

    place, panels = positions(instance, layout), min(max(schedule.rounds, 1), _MOST_PANELS)
    count = int(schedule.circuit_wavelength.max(initial=0)) + 1
    scale = LinearSegmentedColormap.from_list("wavelength", _colour_ramp(), N=max(count, 2))
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, max(count, 2))
    across = min(panels, 4 if panels > 4 else panels)
    down = -(-panels // across)
    span = np.ptp(place, axis=0) + 1.5
    wide = 2.6 if across > 2 else 3.6
    tall = wide * float(np.clip(span[1] / span[0], 0.3, 1.1)) + 0.35
    with style():
        figure = new_figure(across * wide + 0.9, down * tall + 0.5)
        diameter = _diameter(place, wide * 72.0 * 0.85 / float(span.max()))
        for number in range(panels):
            axes = figure.add_subplot(down, across, number + 1)
            indices = np.flatnonzero(schedule.circuit_round == number)
            _draw_circuits(axes, instance, place, schedule, indices, lambda w: scale(norm(w)))
            _draw_vertices(axes, instance, place, diameter)
            _finish(axes)
            axes.set_title(f"round {number + 1}: {counted(indices.size, 'circuit')}", loc="left", fontsize=9)
        cut = f", first {panels} of {schedule.rounds} rounds" if schedule.rounds > panels else ""
        _set_title(figure, f"{title}{cut}", across * wide + 0.9)
        bar = figure.colorbar(ScalarMappable(norm, scale), ax=figure.axes, shrink=0.8, pad=0.02)
        bar.set_label("wavelength [number]")
        bar.set_ticks(np.unique(np.linspace(0, count - 1, min(count, 9)).astype(int)).tolist())
        bar.outline.set_visible(False)
    return figure


def _draw_circuits(
    axes: Axes,
    instance: Topology,
    place: F64,
    schedule: RoundSchedule,
    indices: I64,
    colour: Callable[[int], Any],
) -> None:
    """Draw some circuits along their arcs, side by side where they share an arc."""
    from matplotlib.collections import LineCollection

    start, end = place[instance.tail], place[instance.head]
    axes.add_collection(LineCollection(list(np.stack([start, end], axis=1)), colors=GRID, linewidths=1.0, zorder=1))
    uses = [(a, k) for k in indices.tolist() for a in schedule.path(k)]
    shared: dict[int, list[int]] = {}
    for a, k in uses:
        shared.setdefault(a, []).append(k)
    most = max((len(circuits) for circuits in shared.values()), default=1)
    step = min(0.07, 0.3 / most)
    lines, colours = [], []
    for a, circuits in shared.items():
        way = end[a] - start[a]
        side = np.array([way[1], -way[0]]) / max(float(np.hypot(*way)), 1e-9)
        for i, k in enumerate(sorted(circuits, key=lambda k: int(schedule.circuit_wavelength[k]))):
            aside = side * step * (i + 0.7)  # to the right, so that both directions are apart
            lines.append(np.array([start[a] + aside, end[a] + aside]))
            colours.append(colour(int(schedule.circuit_wavelength[k])))
    width = float(np.clip(14.0 * step, 0.5, 1.5))
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=width, zorder=2))


__all__ = ["LAYOUTS", "Layout", "loads", "positions", "rounds", "topology"]


def plot_topology(instance: InstanceLike, *, layout: str = "auto", title: str | None = None) -> Figure:
    """Draw a topology; layouts as in :meth:`Result.plot`.

    Raises
    ------
    BadInput
        For an instance without arcs, or an unknown layout.
    """
    result = as_instance(instance)
    if not isinstance(result, Topology):
        msg = f"plot: {label(result.spec, 60)} is not a topology; solve it and plot the result"
        raise BadInput(msg)
    return topology(result, layout=layout, title=title)
