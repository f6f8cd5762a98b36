"""A topology while it is read: named vertices and arcs, checked one by one against where they stand."""

from __future__ import annotations

import re
from array import array
from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Any

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
    texts = [str(name) for name in names]
    if set(texts) == {str(v) for v in range(len(texts))}:
        return {name: int(text) for name, text in zip(names, texts, strict=True)}, tuple(
            str(v) for v in range(len(texts))
        )
    return {name: v for v, name in enumerate(names)}, tuple(texts)


def read_capacity(value: Any, where: str) -> float:
    """Read a capacity written as a number or as text.

    Raises
    ------
    BadFile
        Unless it is a positive finite number.
    """
    odd = isinstance(value, bool) or (isinstance(value, str) and "_" in value)
    try:
        number = None if odd else float(value)
    except (ValueError, TypeError, OverflowError):
        number = None
    if number is None:
        msg = f"{where}: capacity {_short(value)} is not a number; write a positive one, such as 1.0"
        raise BadFile(msg)
    if not isfinite(number) or number <= 0:
        msg = f"{where}: capacity {_short(value)} must be positive and finite (leave out idle arcs)"
        raise BadFile(msg)
    return number


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Draft:
    """Vertices and arcs of one file, in the order read.

    Parameters
    ----------
    what
        How messages call the file.
    place
        How messages call the place of an arc in it: ``line``, ``arc`` or ``edge``.

    Attributes
    ----------
    keep_loops
        Whether the file declares that its self-loops are meant; else a loop is refused.
    terminals
        Names of the terminals, or None for all vertices.
    labels
        A label for every vertex number, or a label for some names; the names themselves if empty.
    """

    def __init__(self, what: str, place: str) -> None:
        self.what = what
        self.place = place
        self.keep_loops = False
        self.terminals: list[Hashable] | None = None
        self.labels: dict[Hashable, str] = {}
        self._vertices: dict[Hashable, None] = {}
        self._seen: dict[Hashable, int] = {}  # every end of an arc, numbered as it comes
        self._tail, self._head, self._places = array("q"), array("q"), array("q")
        self._capacity = array("d")

    def add_vertex(self, name: Hashable) -> None:
        """Take note of a vertex; one that is known already changes nothing.

        Raises
        ------
        BadFile
            If there are more vertices than a topology may have.
        """
        self._vertices[name] = None
        self.check_vertices(len(self._vertices))

    def check_vertices(self, n: int) -> None:
        """Refuse a number of vertices before anything of that size is made.

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
        """Name the place of an arc in the file."""
        return f"{self.what}, {self.place} {number}"

    def add_link(self, tail: Hashable, head: Hashable, capacity: float, number: int, *, directed: bool) -> None:
        """Take note of an arc, or unless ``directed`` of an arc each way (a loop is one arc).

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

    def build(self) -> Topology:
        """Make the topology.

        Raises
        ------
        BadFile
            For no vertices, arcs and terminals of unknown vertices, loops not declared, no terminals.
        """
        if not self._vertices:
            msg = f"{self.what}: there is no vertex and no arc in it; write one arc a line: tail head capacity"
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
            raise BadFile(msg + "remove it, or declare loops to be kept")
        unknown = [name for name in self.terminals or () if name not in numbers]
        if unknown:
            msg = f"{self.what}: terminal {_short(unknown[0])} is no vertex; name vertices of the file"
            raise BadFile(msg)
        if self.terminals is not None and not self.terminals:
            msg = f"{self.what}: no vertex is a terminal; mark those that send and receive"
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
                terminals=None if self.terminals is None else [numbers[name] for name in self.terminals],
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
