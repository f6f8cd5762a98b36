"""Topologies under construction: named vertices and arcs, checked as they are read, with their place in the file."""

from __future__ import annotations

import re
from array import array
from collections.abc import Hashable, Mapping, Sequence
from math import isfinite

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.instances.digraph import MAX_ARCS, MAX_VERTICES, Topology


def number_vertices(names: Sequence[Hashable]) -> tuple[dict[Hashable, int], tuple[str, ...]]:
    """Assign numbers to named vertices.

    Names that are exactly ``0 .. n-1`` (integers, or their digits) keep their numbers; others are numbered
    in the order given.

    Returns
    -------
    numbers, labels
        Number of every name, and the name of every number as text.
    """
    texts = tuple(map(str, names))
    numbers = tuple(map(str, range(len(texts))))
    if set(texts) == set(numbers):
        return {name: int(text) for name, text in zip(names, texts, strict=True)}, numbers
    return {name: v for v, name in enumerate(names)}, texts


def read_capacity(value: object, where: str) -> float:
    """Read a capacity given as a number or as text.

    Raises
    ------
    BadFile
        Unless it is a positive finite number.
    """
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        msg = f"{where}: capacity {_short(value)} is not a number; write a positive number, such as 1.0"
        raise BadFile(msg) from None
    if not isfinite(number) or number <= 0:
        msg = f"{where}: capacity {_short(value)} must be positive and finite (leave out arcs without capacity)"
        raise BadFile(msg)
    return number


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Draft:
    """Vertices and arcs of one file, in the order read.

    Parameters
    ----------
    what
        Name of the file in messages.
    place
        Name of an arc's place in messages: ``line``, ``arc`` or ``edge``.

    Attributes
    ----------
    keep_loops
        Whether self-loops are accepted.
    terminals
        Names of the terminals, or None for all vertices but ``relays``.
    relays
        Names of vertices that are not terminals.
    labels
        A label for every vertex number, or a label for some names; the names themselves if empty.
    """

    def __init__(self, what: str, place: str) -> None:
        self.what = what
        self.place = place
        self.keep_loops = False
        self.terminals: list[Hashable] | None = None
        self.relays: set[Hashable] = set()
        self.labels: dict[Hashable, str] = {}
        self._vertices: dict[Hashable, None] = {}
        self._seen: dict[Hashable, int] = {}  # ends of arcs, in the order read
        self._tail, self._head, self._places = array("q"), array("q"), array("q")
        self._capacity = array("d")

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
        """Add a node of a graph file with its attributes ``label`` and ``terminal``.

        Raises
        ------
        BadFile
            If it has no name or is there already, or ``terminal`` is not true or false.
        """
        if name is None or self.has_vertex(name):
            msg = f"{self.what}: a node has no id, or id {_short(name)} is used twice; give every node its own id"
            raise BadFile(msg)
        self.add_vertex(name)
        if "label" in attributes:
            self.labels[name] = str(attributes["label"])
        terminal = str(attributes.get("terminal", True)).strip().lower()
        if terminal not in {"true", "false", "1", "0"}:
            msg = f"{self.what}: node {_short(name)} has terminal {_short(terminal)}; write true or false"
            raise BadFile(msg)
        if terminal in {"false", "0"}:
            self.relays.add(name)

    def check_vertices(self, n: int) -> None:
        """Refuse too many vertices before allocating anything of that size.

        Raises
        ------
        BadFile
            If ``n`` is above the largest topology.
        """
        if n > MAX_VERTICES:
            msg = f"{self.what}: {_short(n)} vertices are more than the {MAX_VERTICES} allowed; split the file"
            raise BadFile(msg)

    @property
    def order(self) -> int:
        """Number of vertices read so far."""
        return len(self._vertices)

    def vertices(self) -> list[Hashable]:
        """Names of the vertices in the order read."""
        return list(self._vertices)

    def has_vertex(self, name: Hashable) -> bool:
        """Whether the vertex has been read."""
        return name in self._vertices

    def where(self, number: int) -> str:
        """The place of an arc in the file, for messages."""
        return f"{self.what}, {self.place} {number}"

    def add_link(self, tail: Hashable, head: Hashable, capacity: float, number: int, *, directed: bool) -> None:
        """Add an arc, or unless ``directed`` an arc each way (one arc for a loop).

        Raises
        ------
        BadFile
            If there are more arcs than a topology may have.
        """
        u = self._seen.setdefault(tail, len(self._seen))
        v = self._seen.setdefault(head, len(self._seen))
        for x, y in ((u, v),) if directed or u == v else ((u, v), (v, u)):
            self._tail.append(x)
            self._head.append(y)
            self._capacity.append(capacity)
            self._places.append(number)
        if len(self._tail) > MAX_ARCS:
            msg = f"{self.what}: more than the {MAX_ARCS} arcs allowed; split the file"
            raise BadFile(msg)

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
            msg = f"{self.where(number)}: source or target is missing; name both nodes"
            raise BadFile(msg)
        where = f"{self.where(number)} ({_short(tail)}->{_short(head)})"
        self.add_link(tail, head, read_capacity(capacity, where), number, directed=directed)

    def build(self) -> Topology:
        """The topology of the vertices and arcs read.

        Raises
        ------
        BadFile
            For no vertices, arcs or terminals at unknown vertices, loops unless accepted, or no terminals.
        """
        if not self._vertices:
            msg = f"{self.what}: it contains no vertex and no arc; write one arc per line: tail head capacity"
            raise BadFile(msg)
        numbers, names = number_vertices(list(self._vertices))
        vertex = np.array([numbers.get(name, -1) for name in self._seen], dtype=np.int64)
        tail, head = (vertex[np.array(ends, dtype=np.int64)] for ends in (self._tail, self._head))
        for bad in np.flatnonzero((tail < 0) | (head < 0))[:1].tolist():
            end = list(self._seen)[self._tail[bad] if tail[bad] < 0 else self._head[bad]]
            msg = f"{self.where(self._places[bad])}: vertex {_short(end)} is not declared; add it to the vertices"
            raise BadFile(msg)
        for bad in [] if self.keep_loops else np.flatnonzero(tail == head)[:1].tolist():
            end = _short(list(self._seen)[self._tail[bad]])
            msg = f"{self.where(self._places[bad])}: arc {end}->{end} is a loop and carries no flow; "
            raise BadFile(msg + "remove it, or declare loops=keep")
        terminals = [v for v in self._vertices if v not in self.relays] if self.terminals is None else self.terminals
        unknown = [name for name in terminals if name not in numbers]
        if unknown:
            msg = f"{self.what}: terminal {_short(unknown[0])} is not a vertex; name vertices of the file"
            raise BadFile(msg)
        if not terminals:
            msg = f"{self.what}: no vertex is a terminal; mark the vertices that send and receive"
            raise BadFile(msg)
        labels = list(names)
        for name, label in self.labels.items():
            if name in numbers:
                labels[numbers[name]] = label
        try:
            return Topology(
                len(names),
                tail,
                head,
                np.array(self._capacity),
                spec=self.what,
                terminals=[numbers[name] for name in terminals],
                labels=tuple(labels),
            )
        except BadInput as error:
            raise BadFile(str(error)) from error


def is_number(text: str) -> bool:
    """Whether a vertex name is a canonical natural number (no sign, no leading zero)."""
    return re.fullmatch(r"0|[1-9][0-9]*", text) is not None


def default_labels(topology: Topology) -> bool:
    """Whether the labels are the vertex numbers, so that a file need not hold them."""
    return all(label == str(v) for v, label in enumerate(topology.labels))
