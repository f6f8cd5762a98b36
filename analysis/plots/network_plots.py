"""Drawings of networks: topologies, the load of every link, and the circuits of every round."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.plots.layouts import Arrangement, Places, arrangement
from opticoll.analysis.plots.panels import new_figure
from opticoll.analysis.plots.style import BAND, GRID, INK, MUTED, ON_SERIES, PALETTE, counted, label, labels, style
from opticoll.arguments import refused
from opticoll.errors import refuse
from opticoll.instances import Topology
from opticoll.instances.readers.objects import as_instance
from opticoll.instances.topology import link_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from opticoll.analysis.plots.data_figure import DataFigure
    from opticoll.analysis.result.result import InstanceLike
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.variables import Links
    from opticoll.instances import Instance
    from opticoll.instances.topology import F64, I64


#: With more arcs, lines without arrowheads are drawn; with more vertices, no labels.
_MOST_ARROWS, _MOST_LABELS = 600, 128
#: Maximum number of (arc, vertex) pairs that are tested for overlap.
_MOST_PAIRS = 400_000
#: Maximum number of rounds with a panel each.
MOST_PANELS = 12
#: Smallest letters inside a vertex, and those beside it [points]; letters of a name.
_SMALLEST_INSIDE, _BESIDE, _LONGEST = 6.0, 7.0, 12
#: Grids with more vertices are labelled at their sides alone.
_MOST_GRID_LABELS = 64
#: Width of a page [inches]; a wider figure would be shrunk there, with its letters.
PAGE = 7.6
#: Width of a colour bar with its label [inches].
_BAR = 0.8
#: Length of the two ends that stand for a link around a torus.
_STUB = 0.36


def plot_topology(
    instance: InstanceLike, *, layout: str | Places | ArrayLike = "auto", title: str | None = None
) -> DataFigure:
    """Draw the vertices and arcs of a topology, one line for equal arcs in both directions.

    Parameters
    ----------
    instance
        A spec, an instance, a graph, or a table of edges. Ranks are filled; vertices that only forward are open.
    layout
        ``"auto"``: the places that the nodes of a file have (``x`` and ``y``, or ``pos``), else by family; one of
        ``"circular"``, ``"grid"``, ``"hypercube"``, ``"columns"``, ``"rings"``, ``"star"``, ``"layers"``, ``"spring"``;
        ``"racks:R"`` for racks of R consecutive vertices, drawn together; or positions: a mapping of the labels to x
        and y, as networkx layouts give it, or an array of shape ``(n, 2)``.
    title
        Heading; the instance's spec if None.

    Raises
    ------
    BadInput
        For an instance without arcs, an unknown layout, or positions that do not fit.
    """
    drawn = as_instance(instance)
    if not isinstance(drawn, Topology):
        refuse("plot", f"{label(drawn.spec, 60)} is not a topology; solve it and plot the result")
    if not isinstance(title, str | None):
        raise refused(title, "plot_topology: title", "a string")
    heading = title or f"{drawn.spec}: {drawn.n} vertices, {drawn.arcs} arcs"
    return _figure(drawn, arrangement(drawn, layout), None, 1.0, "", heading)


def loads(
    links: Links,
    family: Instance,
    *,
    scale: Callable[[str], tuple[str, float] | None],
    layout: str | Places | ArrayLike = "auto",
    title: str = "",
    price: F64 | None = None,
) -> DataFigure:
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
        As in :func:`plot_topology`.
    price
        dT/dc of every link, ``(m,)``; the title counts the links that have one, and names the dearest.
    """
    drawn, load = links.topology, np.asarray(links.load, dtype=float)
    room = np.asarray(links.capacity, dtype=float) * links.time
    even = room.size > 0 and bool(np.allclose(room, room[0]))
    if even:
        unit, factor = scale(links.load_unit) or (links.load_unit, 1.0)
        unit, factor = _readable(unit, factor, float(load.max(initial=0.0)))
        shown, top, text = load * factor, float(room[0]) * factor, f"link load [{unit}]"
    else:
        shown, top, text = links.utilisation, 1.0, "utilisation of links [–]"
    priced = np.flatnonzero(price < 0) if price is not None else np.zeros(0, dtype=np.int64)
    if priced.size and price is not None:
        use = f"{counted(priced.size, 'link')} with a price, the dearest {_ends(drawn, int(np.argmin(price)))}"
        title = _below(title, use)
    elif load.size:
        busiest = int(np.argmax(links.utilisation))
        use = f"{_ends(drawn, busiest)}: {100 * links.utilisation[busiest]:.3g} % of its capacity in use"
        title = _below(title, f"busiest link {use}")
    return _figure(drawn, arrangement(drawn, layout, family), shown, top, text, title)


def _ends(drawn: Topology, link: int) -> str:
    names = labels(drawn.labels, 16)
    return "->".join(names[end[link]] for end in (drawn.tail, drawn.head))


def _below(title: str, words: str) -> str:
    """A title with another line."""
    return f"{title}\n{words}" if title else words


def _readable(unit: str, factor: float, most: float) -> tuple[str, float]:
    """Bytes with the prefix that suits the largest value."""
    if unit != "bytes":
        return unit, factor
    power = min(max(int(math.log10(max(most * factor, 1.0)) // 3), 0), 5)
    return ("bytes", "kB", "MB", "GB", "TB", "PB")[power], factor / 1000.0**power


def _figure(drawn: Topology, placed: Arrangement, shown: F64 | None, top: float, text: str, title: str) -> DataFigure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba

    scale = LinearSegmentedColormap.from_list("load", _colour_ramp())
    place = placed.place
    span = np.ptp(place, axis=0) + 1.5
    bar_width = _BAR * (shown is not None)
    size = float(np.clip(4.4 + drawn.n / 22.0, 5.0, PAGE - bar_width)) if placed.level is None else PAGE - bar_width
    ratio = float(np.clip(span[1] / span[0], 0.35, 1.1))
    with style():
        above, below = 0.25 + 0.15 * title.count("\n"), 0.6 * (placed.level is not None)  # the title, upright names
        figure = new_figure(size + bar_width, size * ratio + above + below)
        axes = figure.add_subplot()
        norm = Normalize(0.0, max(top, float(shown.max(initial=0.0))) if shown is not None else 1.0)
        order = np.arange(drawn.arcs) if shown is None else np.argsort(shown, kind="stable")  # busy links on top
        colours = np.tile(to_rgba(MUTED), (drawn.arcs, 1)) if shown is None else scale(norm(shown))
        points = size * 72.0 * 0.85 / float(max(span[0], span[1] / 1.1))
        diameter = _diameter(place, points)
        _draw_groups(axes, placed)
        _draw_arcs(axes, drawn, placed, colours, order, diameter, points, plain=shown is None)
        _draw_vertices(axes, drawn, placed, diameter, points)
        if shown is not None:
            bar = figure.colorbar(ScalarMappable(norm, scale), ax=axes, shrink=0.75, pad=0.02)
            bar.set_label(text)
            bar.outline.set_visible(False)
        _finish(axes, place, 0.5 + 0.2 * (placed.group is not None) + diameter / points)
        _set_title(figure, title)
    return figure


def _finish(axes: Axes, place: F64, room: float) -> None:
    """Leave room around the positions, in their unit; labels beyond it make the axes smaller."""
    low, high = place.min(axis=0) - room, place.max(axis=0) + room
    axes.set_aspect("equal")
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_axis_off()


def _set_title(figure: DataFigure, title: str) -> None:
    """Put the title over the whole figure, with every line cut to the figure's width."""
    lines = [label(line, int(figure.get_figwidth() * 14)) for line in title.split("\n")]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9.5)


def _diameter(place: F64, points: float) -> float:
    """Diameter of a vertex [points] that leaves room between the closest two; a distance of 1 is ``points`` long."""
    from scipy.spatial import KDTree

    if len(place) < 2:
        return 18.0
    near = KDTree(place).query(place, k=2)[0][:, 1]
    return float(np.clip(0.46 * points * float(near.min()), 3.5, 18.0))


def _colour_ramp() -> list[tuple[float, float, float, float]]:
    """Colours from violet to orange, all visible on both dark and light pages."""
    import matplotlib as mpl

    colours = mpl.colormaps["plasma"](np.linspace(0.12, 0.82, 9))
    return [(float(r), float(g), float(b), float(a)) for r, g, b, a in colours]


# vertices -------------------------------------------------------------------------------------------------------


def _draw_groups(axes: Axes, placed: Arrangement) -> None:
    """Draw a box around every rack, group or wafer, with its number."""
    from matplotlib.patches import FancyBboxPatch

    if placed.group is None:
        return
    for number in range(int(placed.group.max()) + 1):
        inside = placed.place[placed.group == number]
        low, high = inside.min(axis=0), inside.max(axis=0)
        box = FancyBboxPatch(
            (low[0] - 0.3, low[1] - 0.3),
            high[0] - low[0] + 0.6,
            high[1] - low[1] + 0.6,
            boxstyle="round,pad=0.08,rounding_size=0.2",
            facecolor=BAND,
            edgecolor=GRID,
            linewidth=0.8,
            zorder=0,
        )
        axes.add_patch(box)
        if placed.word:
            text = f"{placed.word} {number}"
            axes.text(low[0] - 0.3, high[1] + 0.42, text, fontsize=7, color=INK, va="bottom", zorder=5, **_halo())


def _halo() -> dict[str, Any]:
    """Property of a text that keeps it legible on lines."""
    from matplotlib.patheffects import withStroke

    return {"path_effects": [withStroke(linewidth=3.0, foreground="white", alpha=0.9)]}


def _draw_vertices(axes: Axes, drawn: Topology, placed: Arrangement, diameter: float, points: float) -> None:
    """Draw filled terminals and open relays, with labels inside if they fit, else beside them where there is room."""
    place = placed.place
    ends = drawn.is_terminal
    face = [PALETTE[0] if end else "white" for end in ends]
    axes.scatter(place[:, 0], place[:, 1], s=diameter**2, c=face, edgecolors=PALETTE[0], zorder=3)
    if drawn.n > _MOST_LABELS:
        return
    names = labels(drawn.labels, _LONGEST)
    longest = max(map(len, names), default=0)
    inside = min(diameter * 0.58, diameter / (0.62 * max(longest, 1)), 9.0)
    if inside >= _SMALLEST_INSIDE:
        for (x, y), name, end in zip(place, names, ends, strict=True):
            colour = ON_SERIES if end else INK
            axes.text(x, y, name, ha="center", va="center", zorder=4, fontsize=inside, color=colour)
        return
    if placed.sides is not None and drawn.n > _MOST_GRID_LABELS:
        names = [name if side else "" for name, side in zip(names, placed.sides.tolist(), strict=True)]
    for v, x, y, turn in label_places(place * points, names, placed.level, diameter):
        axes.annotate(
            names[v],
            tuple(place[v]),
            (x, y),
            textcoords="offset points",
            ha="center",
            va="center",
            rotation=turn,
            fontsize=_BESIDE,
            color=INK,
            zorder=5,
            **_halo(),
        )


def label_places(
    place: F64, names: Sequence[str], level: I64 | None, diameter: float
) -> Iterator[tuple[int, float, float, int]]:
    """Offsets [points] and turns [degrees] of the labels that cover neither vertices nor each other.

    A label is away from the middle of the drawing, or the next eighth of a circle where there is room. In rows it is
    above its vertex, in the lowest one below, upright where it is longer than the vertices are apart.

    Parameters
    ----------
    place
        Vertices on the page [points], ``(n, 2)``.
    names
        A name per vertex.
    level
        Row of every vertex, ``(n,)``, or None; 0 is the lowest.
    diameter
        Of a vertex [points].
    """
    centres, halves = [*place], [np.full(2, diameter / 2)] * len(place)
    middle = place.mean(axis=0)
    apart = np.ptp(place[level == 0, 0]) / max(int((level == 0).sum()) - 1, 1) if level is not None else math.inf
    for v, (at, name) in enumerate(zip(place, names, strict=True)):
        half = _BESIDE / 2 * np.array([0.58 * len(name), 1.15])
        upright = level is not None and level[v] == 0 and 2 * half[0] > apart
        half = half[::-1] if upright else half
        first = math.atan2(*(at - middle)[::-1]) if level is None and (at != middle).any() else math.pi / 2
        turns = (
            [0.0 if level[v] else 0.5] if level is not None else [0.0, 0.125, -0.125, 0.25, -0.25, 0.375, -0.375, 0.5]
        )
        for turn in turns:
            angle = first + 2 * math.pi * turn
            offset = np.array([math.cos(angle), math.sin(angle)]) * (diameter / 2 + 2 + half)
            met = (np.abs(np.array(centres) - at - offset) < np.array(halves) + half).all(axis=1).any()
            if name and not met:
                centres.append(at + offset)
                halves.append(half)
                yield v, float(offset[0]), float(offset[1]), 90 * upright
                break


# arcs -----------------------------------------------------------------------------------------------------------


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


def _both_ways(drawn: Topology) -> I64 | None:
    """One arc of every pair of opposite arcs of equal capacity; None if some arc has no such partner."""
    group, links = link_groups(drawn.tail, drawn.head, drawn.capacity)
    return np.unique(group, return_index=True)[1] if 2 * links == drawn.arcs else None


def _draw_arcs(
    axes: Axes,
    drawn: Topology,
    placed: Arrangement,
    colours: F64,
    order: I64,
    diameter: float,
    points: float,
    *,
    plain: bool,
) -> None:
    """Draw arcs bent to their right, so both directions and parallel arcs are distinguishable.

    Plain links of equal capacity in both directions are one line without arrowheads.
    """
    place, bend = placed.place, _bends(drawn, placed.place)
    links = _both_ways(drawn) if plain else None
    if links is not None:
        repeated = bend > 0.11  # parallel links, and those with a vertex in their way
        bend, order = np.where(repeated, bend, 0.0), links
    capacity = drawn.capacity / drawn.capacity.max() if drawn.arcs else np.ones(0)
    width = float(np.clip(40.0 / max(order.size, 1) ** 0.7, 0.45, 1.8)) * (0.55 + 0.45 * np.sqrt(capacity))
    wrapped = np.zeros(drawn.arcs, dtype=bool) if placed.wrapped is None else placed.wrapped
    straight = order[~wrapped[order]]
    start, end = place[drawn.tail[straight]], place[drawn.head[straight]]
    middle = (start + end) / 2 + (end - start)[:, ::-1] * np.array([1.0, -1.0]) * bend[straight, None]
    t = np.linspace(0.0, 1.0, 24)[None, :, None]
    curves = (1 - t) ** 2 * start[:, None] + 2 * t * (1 - t) * middle[:, None] + t**2 * end[:, None]
    _lines(axes, curves, colours[straight], width[straight])
    if links is None and straight.size <= _MOST_ARROWS:
        way = _ways(middle, end)
        _heads(axes, end - way * 0.6 * diameter / points, way, (3 + 1.7 * width[straight]) / points, colours[straight])
    _draw_stubs(axes, drawn, placed, colours, order[wrapped[order]], width, aside=0.06 * (links is None))


def _ways(start: F64, end: F64) -> F64:
    """Directions of length 1."""
    return np.asarray((end - start) / np.maximum(np.hypot(*(end - start).T), 1e-9)[:, None])


def _lines(axes: Axes, lines: F64, colours: F64, widths: F64, **look: Any) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection([*lines], colors=colours, linewidths=widths, **({"zorder": 2} | look)))


def _heads(axes: Axes, tip: F64, way: F64, length: ArrayLike, colours: F64) -> None:
    """Draw arrowheads at places, ``(k, 2)``, along ways of length 1."""
    from matplotlib.collections import PolyCollection

    along = way * np.reshape(length, (-1, 1))
    side = along[:, ::-1] * np.array([-0.45, 0.45])
    heads = np.stack([tip, tip - along + side, tip - along - side], axis=1)
    axes.add_collection(PolyCollection([*heads], facecolors=colours, edgecolors="none", zorder=2.5))


def _draw_stubs(
    axes: Axes, drawn: Topology, placed: Arrangement, colours: F64, order: I64, width: F64, *, aside: float
) -> None:
    """Draw a link around a torus as its two ends, each pointing away from the other."""
    start, end = placed.place[drawn.tail[order]], placed.place[drawn.head[order]]
    way = _ways(start, end)
    side = way[:, ::-1] * np.array([-1.0, 1.0]) * aside
    near = np.stack([start + side, start + side - _STUB * way], axis=1)
    far = np.stack([end + side + _STUB * way, end + side], axis=1)
    twice = np.tile(order, 2)
    _lines(axes, np.concatenate([near, far]), colours[twice], width[twice], linestyles=(0, (2, 1)))


# rounds -------------------------------------------------------------------------------------------------------


def rounds(
    instance: Topology, schedule: RoundSchedule, *, layout: str | Places | ArrayLike = "auto", title: str = ""
) -> DataFigure:
    """Draw the circuits of every round on the topology, coloured by wavelength, a panel per round.

    Parameters
    ----------
    instance
        The topology.
    schedule
        Circuits by round.
    layout, title
        As in :func:`plot_topology`. Of more than :data:`MOST_PANELS` rounds the first are drawn, and the title says so;
        ``result.schedule().circuits`` is the table of all.
    """
    placed, panels = arrangement(instance, layout), min(max(schedule.rounds, 1), MOST_PANELS)
    if schedule.rounds > panels:
        title = _below(title, f"first {panels} of {schedule.rounds} rounds")
    place = placed.place
    count = int(schedule.circuit_wavelength.max(initial=0)) + 1
    colour = _wavelengths(count)
    across = panels if panels <= 3 else 2 if panels == 4 else 3
    down = -(-panels // across)
    low, high = place.min(axis=0) - 0.55, place.max(axis=0) + 0.55
    span = high - low
    bar_width = _BAR * (count > 1)
    wide = (PAGE - bar_width) / max(across, 2)
    tall = wide * float(np.clip(span[1] / span[0], 0.3, 1.1)) + 0.3
    with style():
        figure = new_figure(across * wide + bar_width, down * tall + 0.5)
        points = wide * 72.0 * 0.9 / float(span.max())
        diameter = _diameter(place, points)
        for number in range(panels):
            axes = figure.add_subplot(down, across, number + 1)
            indices = np.flatnonzero(schedule.circuit_round == number)
            _draw_groups(axes, placed)
            _draw_circuits(axes, instance, place, schedule, indices, colour)
            _draw_vertices(axes, instance, placed, diameter, points)
            _finish(axes, place, 0.55)
            words = f"round {number + 1}: {counted(indices.size, 'circuit')}"
            axes.set_title(words, loc="left", fontsize=9, pad=10.0)  # above the labels of vertices
        _set_title(figure, title if count > 1 else _below(title, "all on one wavelength"))
        if count > 1:
            _wavelength_bar(figure, count)
    return figure


def _wavelengths(count: int) -> Callable[[int], Any]:
    """Colour of every wavelength: those of series as far as they go, else a ramp."""
    from matplotlib.colors import LinearSegmentedColormap

    if count <= len(PALETTE) - 1:
        return lambda wavelength: PALETTE[wavelength]
    scale = LinearSegmentedColormap.from_list("wavelength", _colour_ramp(), N=count)
    return lambda wavelength: scale(wavelength / max(count - 1, 1))


def _wavelength_bar(figure: DataFigure, count: int) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colour = _wavelengths(count)
    scale = ListedColormap([colour(w) for w in range(count)])
    bar = figure.colorbar(
        ScalarMappable(BoundaryNorm(np.arange(count + 1) - 0.5, count), scale), ax=figure.axes, shrink=0.8, pad=0.02
    )
    bar.set_label("wavelength [number]")
    bar.set_ticks(np.unique(np.linspace(0, count - 1, min(count, 9)).astype(int)).tolist())
    bar.minorticks_off()
    bar.outline.set_visible(False)


def _draw_circuits(
    axes: Axes,
    instance: Topology,
    place: F64,
    schedule: RoundSchedule,
    indices: I64,
    colour: Callable[[int], Any],
) -> None:
    """Draw some circuits along their arcs, side by side where they share an arc, with an arrowhead at their ends."""
    from matplotlib.colors import to_rgba_array

    start, end = place[instance.tail], place[instance.head]
    way = _ways(start, end)
    _lines(axes, np.stack([start, end], axis=1), to_rgba_array(GRID), np.ones(1), zorder=1)
    wavelength = schedule.circuit_wavelength
    hops = [(k, a) for k in indices[np.argsort(wavelength[indices], kind="stable")].tolist() for a in schedule.path(k)]
    circuit, arc = np.array(hops, dtype=np.int64).reshape(-1, 2).T
    lane = np.array([(arc[:i] == a).sum() for i, a in enumerate(arc.tolist())], dtype=np.int64)
    step = min(0.09, 0.32 / (lane.max(initial=0) + 1))
    aside = way[arc, ::-1] * np.array([1.0, -1.0]) * (step * (lane + 0.7))[:, None]  # to the right, both ways apart
    lines = np.stack([start[arc] + aside, end[arc] + aside], axis=1)
    colours = to_rgba_array([colour(w) for w in wavelength[circuit].tolist()])
    _lines(axes, lines, colours, np.clip(16.0 * step, 0.6, 1.6)[None])
    last = np.diff(circuit, append=-1) != 0
    _heads(axes, lines[last, 1] - 0.24 * way[arc[last]], way[arc[last]], 0.13, colours[last])


__all__ = ["MOST_PANELS", "loads", "plot_topology", "rounds"]
