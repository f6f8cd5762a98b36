"""Topologies under construction: named vertices and arcs, checked as they are read, with their place in the file."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.instances.readers.ranks import Vertices, chosen, marked_switches, plain, seeming_switches
from opticoll.instances.readers.reading import refuse
from opticoll.instances.topology import MAX_ARCS, MAX_VERTICES, Topology, is_size, parse_rate, rate_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Headings of the source and target columns, in lower case.
_SOURCES = ("src", "source", "from", "u", "tail", "origin", "sender")
_TARGETS = ("dst", "target", "to", "v", "head", "destination", "dest", "receiver")
#: Node attributes that may give the kind of a node, with names as of :func:`plain`, and its name; of the latter the
#: first that is given counts.
KINDS = ("type", "kind", "role", "nodetype", "device", "devicetype")
NAMES = ("label", "name")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a topology file, in addition to what the file specifies.

    Parameters
    ----------
    capacity
        Attribute or column with the capacity; or the capacity of every link, a number or a rate such as ``400Gb/s``.
    directed
        True to read links as arcs, False to read each as an arc each way; None to follow the file or its format.
    format
        Name of the format; None to recognise it.
    first
        Number of the first vertex, 0 or 1; None for the default of the format, usually 0.
    ranks
        Vertices that send and receive, as a list or as a pattern (``gpu*``) of their names or kinds; None to follow the
        file.
    wiring
        Choice of links where a format allows several: ``nvlink``, ``pci``, ``all``, ``switch``, ``direct``, ``ndv2``,
        ``dgx2``, ``hub_and_spoke``.
    switches
        Vertices that do not send and receive, instead of ``ranks``.
    """

    capacity: str | float | None = None
    directed: bool | None = None
    format: str | None = None
    first: int | None = None
    ranks: Vertices | None = None
    wiring: str | None = None
    switches: Vertices | None = None

    def refuse(self, what: str, reason: str, *names: str) -> None:
        """Refuse options that do not apply to a format.

        Raises
        ------
        BadFile
            For the first such option that is given.
        """
        for name in names:
            if getattr(self, name) is not None:
                refuse(what, f"{name}= does not apply: {reason}; omit it")


def number_vertices(names: Sequence[Hashable]) -> tuple[dict[Hashable, int], tuple[str, ...]]:
    """Assign numbers to named vertices.

    Names that are exactly ``0 .. n-1`` (integers, or their digits) keep their numbers; others are numbered
    in the order given.

    Returns
    -------
    numbers, labels
        Number of every name, and the name of every number as a string.
    """
    texts = tuple(map(str, names))
    numbers = tuple(map(str, range(len(texts))))
    if set(texts) == set(numbers):
        return {name: int(text) for name, text in zip(names, texts, strict=True)}, numbers
    return {name: v for v, name in enumerate(names)}, texts


def end_columns(headings: Sequence[str], what: str) -> tuple[int, int] | None:
    """Positions of the columns with the source and the target of an edge; None if a heading is missing.

    Raises
    ------
    BadFile
        If several columns may be one of them, or a heading is repeated.
    """
    words = [heading.strip().lower() for heading in headings]
    ends = [[i for i, word in enumerate(words) if word in known] for known in (_SOURCES, _TARGETS)]
    if not all(ends):
        return None
    for end, found in zip(("source", "target"), ends, strict=True):
        if len(found) > 1:
            names = " and ".join(repr(headings[i].strip()[:40]) for i in found[:3])
            refuse(what, f"the columns {names} may all name the {end} of an edge; keep one of them")
    twice = next((name for name, count in Counter(map(str.strip, headings)).items() if name and count > 1), None)
    if twice is not None:
        refuse(what, f"{twice[:40]!r} heads several columns; keep one of them, or rename the others")
    return ends[0][0], ends[1][0]


def read_capacity(value: object, where: str) -> float:
    """Read a capacity given as a number or as a string.

    Raises
    ------
    BadFile
        If it is not a positive finite number.
    """
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        msg = f"{where}: capacity {short(value)} is not a number; write a positive number, such as 1.0 or 400Gb/s"
        raise BadFile(msg) from None
    if not isfinite(number) or number <= 0:
        unlimited = number > 0
        remedy = "write a number that it cannot exceed" if unlimited else "omit arcs without capacity"
        refuse(where, f"capacity {short(value)} must be positive and finite ({remedy})")
    return number


def short(value: object) -> str:
    """A value as messages show it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(attributes: Mapping[str, object]) -> tuple[float, float] | None:
    """The place that the attributes of a node give it in a drawing; None if they give none."""
    pair = attributes.get("pos")
    x, y = (
        pair
        if isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        else (attributes.get("x"), attributes.get("y"))
    )
    try:
        place = float(x), float(y)
    except (TypeError, ValueError, OverflowError):
        return None
    return place if isfinite(place[0]) and isfinite(place[1]) else None


class TopologyBuilder:
    """Vertices and arcs of one file, in reading order.

    Parameters
    ----------
    what
        Name of the file in messages.
    place
        Unit of position in messages: ``line``, ``arc`` or ``edge``.

    Attributes
    ----------
    spec
        Spec of the topology; None for one that is named after its contents.
    keep_loops
        Whether self-loops are accepted.
    multigraph
        False if the file says that it has no parallel links, so that a link listed again is the same one; True if it
        may have some, listed in any direction; None if it does not say.
    terminals
        Names of the terminals, or None for all vertices except ``relays``.
    relays
        Names of vertices that are not terminals.
    labels
        A label for every vertex number, or a label for some names; the names themselves if empty.
    unit
        Unit of the capacities, see :attr:`opticoll.instances.Topology.capacity_unit`.
    kinds
        Kind that the file gives a vertex, such as ``switch``.
    stated
        Whether the file specifies the terminals, so that names like those of switches are not ambiguous.
    ask_ranks, ask_arcs, ask_direction
        How to choose the terminals, how to state arcs, and how to state their direction, for messages.
    notes
        What the user must be told, each once (:attr:`opticoll.instances.Topology.notes`).
    """

    def __init__(self, what: str, place: str, options: ReadOptions | None = None) -> None:
        self.what = what
        self.spec: str | None = what
        self.place = place
        self.options = options or ReadOptions()
        self.kinds: dict[Hashable, str] = {}
        self.stated = False
        self.ask_ranks = (
            "write file:PATH,ranks=PATTERN for the vertices that send and receive (ranks=* for all), or "
            "file:PATH,switches=PATTERN for the others"
        )
        self.ask_direction = "write file:PATH,directed=true or file:PATH,directed=false"
        self.notes: list[str] = []
        self.ask_arcs = "write one arc per line: tail head capacity"
        self._rated: bool | None = None  # whether capacities have units
        self.keep_loops = False
        self.multigraph: bool | None = None
        self._once: dict[tuple[int, int], float] = {}  # capacity of every link of a graph without parallel ones
        self.terminals: list[Hashable] | None = None
        self.relays: set[Hashable] = set()
        self.labels: dict[Hashable, str] = {}
        self.unit: str | None = None
        self._attributes: dict[Hashable, Mapping[str, object]] = {}
        self._drawn_at: dict[Hashable, tuple[float, float]] = {}
        self._vertices: dict[Hashable, None] = {}
        self._seen: dict[Hashable, int] = {}  # ends of arcs, in reading order
        self._tail, self._head, self._places = array("q"), array("q"), array("q")
        self._capacity, self._back = array("d"), array("b")  # whether an arc is the second of an undirected link

    def add_vertex(self, name: Hashable) -> None:
        """Add a vertex, unless it has been added before.

        Raises
        ------
        BadFile
            If there are more vertices than a topology may have.
        """
        self._vertices[name] = None
        self.check_vertices(len(self._vertices))

    def add_node(self, name: Hashable | None, attributes: Mapping[str, object]) -> None:
        """Add a node of a graph with its attributes ``label`` or ``name`` and ``terminal``, and its place in a drawing.

        The place is ``x`` and ``y``, or ``pos`` as networkx has it; other words there are no place.

        Raises
        ------
        BadFile
            If it has no name or was already added, or ``terminal`` is not true or false.
        """
        if name is None or self.has_vertex(name):
            refuse(self.what, f"a node has no id, or id {short(name)} is used twice; give every node a unique id")
        self.add_vertex(name)
        called = [str(attributes[key]) for word in NAMES for key in attributes if key.lower() == word]
        if called:  # networkx writes the numbers of vertices as labels of GML
            spoken = [text for text in called if text.strip()] or called
            self.labels[name] = next((text for text in spoken if not text.strip().isdigit()), spoken[0])
        self._attributes[name] = attributes
        kind = next((attributes[key] for key in attributes if plain(key) in KINDS), None)
        if isinstance(kind, str):
            self.kinds[name] = kind
        marks = [attributes[key] for key in attributes if plain(key) == "terminal"]
        self.stated = self.stated or bool(marks)
        terminal = str(marks[0] if marks else True).strip().lower()
        if terminal not in {"true", "false", "1", "0"}:
            refuse(self.what, f"node {short(name)} has terminal {short(terminal)}; write true or false")
        if terminal in {"false", "0"}:
            self.relays.add(name)
        place = _place(attributes)
        if place is not None:
            self._drawn_at[name] = place

    def checked_unit(self, unit: object) -> str | None:
        """Check a unit of capacities; None if there is none.

        Raises
        ------
        BadFile
            If it is not a rate such as ``100Gb/s``.
        """
        if unit is None:
            return None
        try:
            parse_rate(str(unit), f"{self.what}: unit")
        except BadInput as error:
            raise BadFile(str(error)) from None
        return str(unit)

    def check_vertices(self, n: int) -> None:
        """Refuse too many vertices before allocating anything of that size.

        Raises
        ------
        BadFile
            If ``n`` is above the largest topology.
        """
        if n > MAX_VERTICES:
            refuse(self.what, f"{short(n)} vertices are more than the {MAX_VERTICES} allowed; split the file")

    @property
    def order(self) -> int:
        """Number of vertices read so far."""
        return len(self._vertices)

    def vertices(self) -> list[Hashable]:
        """Names of the vertices in reading order."""
        return list(self._vertices)

    def has_vertex(self, name: Hashable) -> bool:
        """Whether the vertex has been read."""
        return name in self._vertices

    def where(self, number: int) -> str:
        """Position of an arc in the file, for messages."""
        return f"{self.what}, {self.place} {number}"

    def add_link(self, tail: Hashable, head: Hashable, capacity: float, number: int, *, directed: bool) -> None:
        """Add an arc, or an arc each way unless ``directed`` (one arc for a loop).

        In a graph without parallel links one that was added before is left out.

        Raises
        ------
        BadFile
            If there are more arcs than a topology may have, or such a link has another capacity.
        """
        directed = directed if self.options.directed is None else self.options.directed
        u = self._seen.setdefault(tail, len(self._seen))
        v = self._seen.setdefault(head, len(self._seen))
        if self.multigraph is False:
            one_way = directed or self.options.directed is not None
            ends = (u, v) if one_way or u < v else (v, u)
            before = self._once.get(ends)
            if before == capacity:
                return
            if before is not None:
                msg = (
                    f"the link {short(tail)}->{short(head)} of a graph without parallel links is listed with capacity "
                )
                refuse(self.where(number), f"{msg}{before:g} and {capacity:g}; list it once, or with one capacity")
            self._once[ends] = capacity
        for back, (x, y) in enumerate(((u, v),) if directed or u == v else ((u, v), (v, u))):
            self._tail.append(x)
            self._head.append(y)
            self._capacity.append(capacity)
            self._places.append(number)
            self._back.append(back)
        if len(self._tail) > MAX_ARCS:
            refuse(self.what, f"more than the {MAX_ARCS} arcs allowed; split the file")

    def add_edge(
        self, tail: Hashable | None, head: Hashable | None, capacity: object, number: int, *, directed: bool
    ) -> None:
        """Add an edge of a graph file, as :meth:`add_link`.

        Raises
        ------
        BadFile
            If an end is missing, the capacity is not a positive finite number, or there are too many arcs.
        """
        if tail is None or head is None:
            refuse(self.where(number), "source or target is missing; name both nodes")
        where = f"{self.where(number)} ({short(tail)}->{short(head)})"
        self.add_link(tail, head, self.capacity(capacity, where), number, directed=directed)

    def capacity(self, value: object, where: str) -> float:
        """Read a capacity, with a unit if the others have one; rates are converted to the first unit.

        Raises
        ------
        BadFile
            If it is not positive and finite, or if only some capacities have a unit.
        """
        rate = rate_in(value)
        if rate is None and is_size(value):
            refuse(where, f"capacity {short(value)} is a size, not a rate; write it per second, such as 400Gb/s")
        if self._rated not in (None, rate is not None):
            msg = f"{where}: capacity {short(value)} has {'a' if rate else 'no'} unit, unlike the previous ones; "
            raise BadFile(msg + "give all capacities a unit, or none")
        self._rated = rate is not None
        if rate is None:
            return read_capacity(value, where)
        number, unit = rate
        self.unit = self.unit or unit
        return read_capacity(
            number if unit == self.unit else number * (parse_rate(unit) / parse_rate(self.unit)), where
        )

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def note_equal(self) -> None:
        """Note that no link states a capacity."""
        links = len(self._back) - sum(self._back)
        if links:
            self.note(f"no link states a capacity; each of the {links} has capacity 1")

    def build(self) -> Topology:
        """Build the topology of the vertices and arcs read.

        Raises
        ------
        BadFile
            If there are no vertices or terminals, for unknown vertices or refused loops, or if two names of vertices
            are the same text, such as 1 and "1".
        """
        if not self._vertices:
            refuse(self.what, f"it contains no vertices and no arcs; {self.ask_arcs}")
        self._refuse_both_ways()
        order = sorted(self._vertices, key=lambda name: int(str(name))) if self.options.first else list(self._vertices)
        numbers, names = number_vertices(order)
        alike = next((name for name, count in Counter(names).items() if count > 1), None)
        if alike is not None:
            refuse(self.what, f"several vertices are called {short(alike)} as text; give them different names")
        tail, head = self._arc_ends(numbers)
        labels = list(names)
        for name, label in self.labels.items():
            if name in numbers:
                labels[numbers[name]] = label
        self._choose_ranks(sorted(order, key=numbers.__getitem__), labels, tail, head)
        terminals = self._terminal_numbers(numbers)
        try:
            return Topology(
                len(names),
                tail,
                head,
                np.array(self._capacity),
                spec=self.spec,
                terminals=terminals,
                labels=tuple(labels),
                capacity_unit=self.unit,
                places=[self._drawn_at[name] for name in sorted(numbers, key=numbers.__getitem__)]
                if len(self._drawn_at) == len(numbers)
                else None,
                notes=tuple(self.notes),
            )
        except BadInput as error:
            raise BadFile(str(error)) from error

    def _arc_ends(self, numbers: Mapping[Hashable, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tail and head of every arc, given the numbers of the vertices; refuse unknown ends and loops."""
        vertex = np.array([numbers.get(name, -1) for name in self._seen], dtype=np.int64)
        tail, head = (vertex[np.array(ends, dtype=np.int64)] for ends in (self._tail, self._head))
        for bad in np.flatnonzero((tail < 0) | (head < 0))[:1].tolist():
            end = list(self._seen)[self._tail[bad] if tail[bad] < 0 else self._head[bad]]
            refuse(self.where(self._places[bad]), f"vertex {short(end)} is not declared; add it to the vertices")
        for bad in [] if self.keep_loops else np.flatnonzero(tail == head)[:1].tolist():
            end = short(list(self._seen)[self._tail[bad]])
            msg = f"{self.where(self._places[bad])}: arc {end}->{end} is a loop and carries no flow; "
            raise BadFile(msg + "remove it, or declare loops=keep")
        return tail, head

    def _terminal_numbers(self, numbers: Mapping[Hashable, int]) -> list[int]:
        """Numbers of the terminals; refuse none, and ones that are not vertices."""
        terminals = [v for v in self._vertices if v not in self.relays] if self.terminals is None else self.terminals
        unknown = [name for name in terminals if name not in numbers]
        if unknown:
            refuse(self.what, f"terminal {short(unknown[0])} is not a vertex; name vertices of the file")
        if not terminals:
            refuse(self.what, "no vertex is a terminal; mark the vertices that send and receive")
        return [numbers[name] for name in terminals]

    def _refuse_both_ways(self) -> None:
        """Refuse undirected links that are listed in both directions, which would double them.

        Where the file says that it has parallel links, these may be some; so all links must be listed twice, between
        more than two vertices.

        Raises
        ------
        BadFile
            If there is such a link.
        """
        listed = np.flatnonzero(np.array(self._back, dtype=np.int64)) - 1
        pairs = [(self._tail[k], self._head[k]) for k in listed.tolist()]
        forth = set(pairs)
        back = [(v, u) in forth for u, v in pairs]
        stated = self.options.directed is None
        if not any(back) or (stated and self.multigraph and not (all(back) and len(forth) > 2)):
            return
        twice, names = back.index(True), list(self._seen)
        link = f"{short(names[pairs[twice][0]])} and {short(names[pairs[twice][1]])}"
        where = self.where(self._places[listed[twice]])
        if stated:
            msg = f"{where}: the undirected link between {link} is listed in both directions; list every link once, "
            raise BadFile(msg + "parallel ones in the same direction, or state that they are directed (directed=true)")
        msg = f"{where}: the link between {link} is listed in both directions; "
        raise BadFile(msg + "omit directed=false, or list every link once")

    def _choose_ranks(
        self, order: list[Hashable], labels: list[str], tail: NDArray[np.int64], head: NDArray[np.int64]
    ) -> None:
        """Apply ``ranks=`` or ``switches=``; ask if some vertices seem to be switches and nothing states the ranks.

        Raises
        ------
        BadFile
            If no vertex matches, or the ranks are open.
        """
        marked = marked_switches([self._attributes.get(v, {}) for v in order])
        texts = [
            (str(v), str(self.labels.get(v, "")), self.kinds.get(v, ""), marked[1].get(k, ""))
            for k, v in enumerate(order)
        ]
        found = chosen(texts, self.options.ranks, self.options.switches, self.what)
        if found is not None:
            self.terminals = [order[k] for k in found]
            return
        if self.terminals is not None or self.relays or self.stated:
            return
        switches, how = seeming_switches([words[:3] for words in texts], labels, marked, tail, head)
        if switches:
            example = " ".join(dict.fromkeys(text for text in texts[switches[0]] if text))[:60]
            msg = (
                f"{self.what}: {len(switches)} of {len(order)} vertices {how} ({example}), but nothing tells which "
                f"vertices are ranks; {self.ask_ranks}, or mark nodes terminal true or false"
            )
            raise BadFile(msg)


def is_number(text: str) -> bool:
    """Whether a vertex name is a canonical natural number (no sign, no leading zero)."""
    return re.fullmatch(r"0|[1-9][0-9]*", text) is not None


def default_labels(topology: Topology) -> bool:
    """Whether the labels are the vertex numbers, so that a file need not contain them."""
    return all(label == str(v) for v, label in enumerate(topology.labels))
