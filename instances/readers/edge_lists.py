"""Edge lists: ``tail head [capacity]`` on each line, separated by commas or spaces.

``#`` starts a comment. The first line that is not a comment may be ``directed`` (the default: arcs as written) or
``undirected`` (an arc each way for every line), and the next a heading such as ``tail,head,capacity``, with any number
of columns; one called ``Type`` or ``directed`` may state the direction of each line (``Undirected``), as Gephi's tables
do. A capacity may have a unit (``400Gb/s``) if all have one. Lines of networkx, ``tail head {'capacity': 2}``,
need the option ``directed``. Lines that start with ``#:`` are declarations:

    #: undirected                same as the line ``undirected``
    #: vertices 12               number of vertices, some of which may have no arcs
    #: terminals 0 1 2           the vertices that send and receive; all if absent
    #: labels ["a", "b", ...]    names of vertices 0, 1, ... as a JSON list
    #: unit Gb/s                 unit of the capacities
    #: loops keep                accept self-loops, which are refused otherwise

Vertices are either the numbers 0 .. n-1 (each with an arc unless ``vertices`` is declared), or names, which are
numbered in order of appearance and kept as labels. A missing
capacity is 1.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.instances.readers.listed_graph import (
    CAPACITY_NAMES,
    DIRECTIONS,
    NEUTRAL,
    OTHER_NAMES,
    ListedGraph,
)
from opticoll.instances.readers.reading import parses_as_float
from opticoll.instances.readers.topology_builder import ReadOptions, default_labels, end_columns, is_number
from opticoll.instances.topology import split_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import Topology

_MAX_LINE = 10_000
#: Words separated by blanks of which the last is a number with a decimal comma.
_DECIMAL_COMMA = re.compile(r"^[^\S\n]*[^\s,]+[^\S\n]+[^\s,]+[^\S\n]+[0-9]+,[0-9]+[^\S\n]*$", re.MULTILINE)


def read_edge_list(text: str, what: str, options: ReadOptions | None = None) -> Topology:
    """Read an edge list.

    Raises
    ------
    BadFile
        With the number of the malformed line.
    """
    options = options or ReadOptions()
    options.refuse(what, "an edge list has no choice of links", "wiring")
    builder = ListedGraph(what, "line", options)
    rows = _Rows(builder)
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        rows.read(line.strip(), number)
    rows.check()
    _declare(builder, rows.vertices)
    if rows.labels and len(rows.labels) < builder.order:
        msg = f"{what}: {len(rows.labels)} labels for {builder.order} vertices; give one label per vertex"
        raise BadFile(msg)
    for v, label in enumerate(rows.labels or ()):
        if not builder.has_vertex(str(v)):
            msg = (
                f"{what}: label {label[:60]!r} is for vertex {v}, but there is no vertex {v}; give one label per vertex"
            )
            raise BadFile(msg)
        builder.labels[str(v)] = label
    return builder.build()


class _Rows:
    """Reader of the arcs of an edge list, below a heading if there is one.

    ``stated`` is whether the file specifies the direction of its lines; networkx lines, ``u v {...}``, do not.
    """

    def __init__(self, builder: ListedGraph) -> None:
        self.builder, self.chosen = builder, builder.options.capacity
        self.count, self.stated = 0, builder.options.directed is not None
        self.width: int | None = None
        self.ends, self.column, self.heading = (0, 1), 2, ("", "")
        self.first: tuple[str, str, str] | None = None  # position and ends of the first arc
        self.direction: tuple[str, int] | None = None  # name and position of a column with the direction
        named = isinstance(self.chosen, str) and split_rate(self.chosen) is None
        self.name = str(self.chosen) if named else None
        self.declared: set[str] = set()
        self.rated: bool | None = None  # whether lines without a heading have a capacity
        self.vertices: int | None = None
        self.labels: list[str] | None = None

    def read(self, line: str, number: int) -> None:
        """Read one line: a declaration, a heading, an arc or a comment.

        Raises
        ------
        BadFile
            If it is none of them.
        """
        where = self.builder.where(number)
        if line.startswith("#:"):
            self._read_declaration(line, where)
            return
        line = line.partition("#")[0].strip()
        if not line:
            return
        if len(line) > _MAX_LINE:
            msg = f"{where}: {len(line)} characters exceed the limit of {_MAX_LINE}; write one arc per line"
            raise BadFile(msg)
        if not self.count and line.lower() in {"directed", "undirected"}:
            self._declare_once("directed", where)
            self.builder.directed, self.stated = line.lower() == "directed", True
            return
        self._add(line, number, where)

    def _read_declaration(self, line: str, where: str) -> None:
        builder = self.builder
        key, _, value = line[2:].strip().partition(" ")
        value = value.strip()
        self._declare_once("directed" if key == "undirected" else key, where)
        if key in {"directed", "undirected"} and not value:
            if self.count:
                msg = f"{where}: {key!r} follows arcs; move it to the top"
                raise BadFile(msg)
            builder.directed, self.stated = key == "directed", True
        elif key == "vertices" and is_number(value):
            builder.check_vertices(int(value) if len(value) < 19 else 10**18)
            self.vertices, builder.stated = int(value), True
        elif key == "terminals":
            builder.terminals = list(value.replace(",", " ").split())
        elif key == "labels":
            self.labels = _labels(value, where)
        elif key == "unit":
            builder.unit = builder.checked_unit(value)
        elif (key, value) == ("loops", "keep"):
            builder.keep_loops = True
        else:
            msg = f"{where}: cannot read {line[:60]!r}; known: directed, undirected, vertices N, "
            raise BadFile(msg + "terminals A B ..., labels [...], unit Gb/s, loops keep")

    def _declare_once(self, key: str, where: str) -> None:
        if key in self.declared:
            msg = f"{where}: {key!r} is declared twice; declare it once, on one line"
            raise BadFile(msg)
        self.declared.add(key)

    def _add(self, line: str, number: int, where: str) -> None:
        if "{" in line:
            self._add_networkx(line, number, where)
            return
        parts = _fields(line, where)
        if not self.count and self.width is None and self._read_heading(parts, where):
            return
        if self.width is None and "," not in line and len(parts) == 4 and split_rate(" ".join(parts[2:])) is not None:
            parts = [*parts[:2], " ".join(parts[2:])]  # 25 GB/s
        tail, head = self._ends_of(parts, line, where)
        if self.name is not None and self.width is None:
            msg = f"{where}: an edge list without a heading has no column {self.name[:60]!r}; omit capacity="
            raise BadFile(msg)
        self.count += 1
        value: object = parts[self.column] if self.column < len(parts) else 1.0
        if self.chosen is not None and self.name is None:
            value = self.chosen
        self.first = self.first or (where, tail, head)
        self.builder.add_vertex(tail)
        self.builder.add_vertex(head)
        capacity = self.builder.capacity(value, where)
        if self.width is None and self.chosen is None and self.rated not in (None, len(parts) > 2):
            msg = f"{where}: {line[:60]!r} has {'a' if len(parts) > 2 else 'no'} capacity, unlike the previous lines; "
            raise BadFile(msg + "give every line a capacity, or none")
        self.rated = len(parts) > 2
        told = {} if self.direction is None else {self.direction[0]: parts[self.direction[1]]}
        self.builder.add_link(tail, head, capacity, number, directed=self.builder.direction(told, number))

    def _ends_of(self, parts: list[str], line: str, where: str) -> tuple[str, str]:
        """Tail and head of an arc, given the cells of its line; refuse a line that is no arc."""
        tail, head = [parts[i] for i in self.ends] if max(self.ends) < len(parts) else ("", "")
        fits = 2 <= len(parts) <= 3 if self.width is None else len(parts) == self.width
        if not fits or not (tail and head) or (self.width is None and not all(parts)):
            msg = f"{where}: {line[:60]!r} is not an arc; write tail, head and optionally a capacity"
            if len(parts) > 3 and all(map(parses_as_float, parts)):
                msg += " (a square matrix of capacities has as many rows as columns; file:PATH,format=matrix)"
            elif len(parts) == 1 and self.count:
                msg += "; in a list of neighbours, write one line per link"
            raise BadFile(msg)
        return tail, head

    def _read_heading(self, parts: list[str], where: str) -> bool:
        """Read the first line if it is a heading with columns for the ends and the capacity; False if it is not."""
        if any(map(parses_as_float, parts)):
            return False
        ends = end_columns(parts, where)
        if ends is None:
            if not any(part.lower() in CAPACITY_NAMES for part in parts):
                return False
            msg = (
                f"{where}: the heading {','.join(parts)[:60]!r} does not name both ends of an arc; "
                "write src,dst,capacity"
            )
            raise BadFile(msg)
        self.width, self.ends, self.heading = len(parts), ends, (parts[ends[0]], parts[ends[1]])
        self.column = self._capacity_column(parts, where)
        said = [(part.strip().lower(), i) for i, part in enumerate(parts) if part.strip().lower() in DIRECTIONS]
        self.direction = next((column for column in said if column[1] != self.column), None)
        return True

    def _capacity_column(self, parts: list[str], where: str) -> int:
        """Position of the capacity under a heading; that behind the last column if every link has capacity 1."""
        neutral = NEUTRAL if self.name is not None else NEUTRAL.union(DIRECTIONS)
        rest = {part: i for i, part in enumerate(parts) if i not in self.ends and part.lower() not in neutral}
        known = [part for part in rest if part.lower() in CAPACITY_NAMES] or [
            part for part in rest if part.lower() in OTHER_NAMES
        ]
        choice = "write file:PATH,capacity={}, or file:PATH,capacity=1 for equal links"
        if self.name is not None and self.name not in rest:
            msg = f"{where}: no column is called {self.name[:60]!r}; the columns are {', '.join(parts)[:120]}"
            raise BadFile(msg)
        if self.name is not None:
            return rest[self.name]
        if len(known) == 1:
            self.builder.unit = self.builder.unit or OTHER_NAMES.get(known[0].lower())
            return rest[known[0]]
        if rest and self.chosen is None:
            result = known or list(rest)
            kind = "may contain the capacity" if known else "do not identify the capacity"
            msg = f"{where}: the columns {', '.join(map(repr, result[:4]))} {kind}; {choice.format(result[0])}"
            raise BadFile(msg)
        return len(parts)

    def _add_networkx(self, line: str, number: int, where: str) -> None:
        ends, _, rest = line.partition("{")
        parts = _fields(ends.rstrip().rstrip(","), where)
        try:
            attributes = ast.literal_eval("{" + rest)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            attributes = None
        if len(parts) != 2 or not all(parts) or not isinstance(attributes, dict):
            msg = f"{where}: {line[:60]!r} is not a networkx edge; write tail, head and {{'capacity': 1.0}}"
            raise BadFile(msg)
        if not self.stated:
            msg = (
                f"{where}: an edge list with {{...}} does not specify whether its edges are directed; write "
                "file:PATH,directed=true or file:PATH,directed=false"
            )
            raise BadFile(msg)
        self.builder.add_vertex(parts[0])
        self.builder.add_vertex(parts[1])
        self.builder.list_link(parts[0], parts[1], {str(key): value for key, value in attributes.items()}, number)

    def check(self) -> None:
        """Refuse what is judged by all lines: a first line that must be a heading, or neighbours for capacities.

        Raises
        ------
        BadFile
            For such lines, and for lines with and without attributes in one file.
        """
        builder = self.builder
        if builder.links and self.count:
            msg = f"{builder.where(builder.links[0][3])}: lines with and without {{...}} cannot be mixed"
            raise BadFile(msg)
        stated = self.rated if self.width is None else self.column < self.width
        if self.count and self.chosen is None and not stated:
            builder.note_equal()
        twice = next((name for name in self.heading if name and builder.has_vertex(name)), None)
        if twice is not None:
            msg = f"{builder.what}: the first line may be a heading or an arc, since {twice!r} is also a vertex; "
            raise BadFile(msg + "write the heading src,dst above it")
        if self.first is None or self.width is not None:
            return
        where, *ends = self.first
        others = [str(name) for name in builder.vertices() if name not in ends]
        numbers = others and all(map(is_number, others))
        if others and not any(map(is_number, ends)) and (numbers or (not self.rated and builder.stands_alone(*ends))):
            reason = "all other vertices are numbers" if numbers else "they stand in no other line"
            msg = f"{where}: {ends[0][:40]!r} and {ends[1][:40]!r} are names, but {reason}; "
            raise BadFile(msg + "call the columns of a heading src,dst,capacity, or write src,dst above an arc")
        if self.chosen is None and self.rated and builder.capacities_are_neighbours():
            msg = (
                f"{builder.what}: every vertex begins one line, and every third column is a third vertex, so this may "
                "be a list of neighbours; write one line per link, or the heading src,dst,capacity if they are "
                "capacities"
            )
            raise BadFile(msg)


def _fields(line: str, where: str) -> list[str]:
    if ";" in line:
        msg = f"{where}: columns are separated by ';'; use commas or spaces"
        raise BadFile(msg)
    if line.startswith(("%", "//")):
        msg = f"{where}: {line[:60]!r} begins like a comment; comments begin with #"
        raise BadFile(msg)
    if "," not in line:
        return line.split()
    if "\t" in line or _DECIMAL_COMMA.search(line):
        msg = f"{where}: {line[:60]!r} has blanks between its columns and a comma inside one; write 2.5 for 2,5"
        raise BadFile(msg)
    return [field.strip() for field in (next(csv.reader([line])) if '"' in line else line.split(","))]


def _labels(text: str, where: str) -> list[str]:
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        msg = f'{where}: labels must be a JSON list of strings, such as ["a", "b"]'
        raise BadFile(msg)
    return labels


def _declare(builder: ListedGraph, vertices: int | None) -> None:
    """Check numbered vertices for gaps, and add the declared ones that have no arc."""
    numbered = [str(name) for name in builder.vertices() if is_number(str(name))]
    first = builder.options.first or 0
    if len(numbered) < builder.order and vertices is None and not first:
        return
    if len(numbered) < builder.order or (first and builder.has_vertex("0")):
        reason = f"must be numbers from {first}" if first else "must be numbers, not names,"
        msg = f"{builder.what}: vertices {reason} where {'first=' if first else 'their number is declared'}"
        msg += "1 is given" if first else ""
        raise BadFile(msg)
    longest = max(numbered, key=lambda name: (len(name), name), default="")
    largest = -1 if not longest else int(longest) if len(longest) < 19 else 10**18
    builder.check_vertices(largest + 1)
    if vertices is None:
        _refuse_gap(builder, first, largest)
        return
    if largest >= vertices + first:
        msg = f"{builder.what}: vertex {largest} lies outside the {vertices} declared; number them from {first}"
        raise BadFile(msg)
    for v in range(first, vertices + first):
        builder.add_vertex(str(v))


def _refuse_gap(builder: ListedGraph, first: int, largest: int) -> None:
    """Refuse a number from ``first`` to ``largest`` that is no vertex."""
    if largest + 1 - first <= builder.order:
        return
    gap = next(v for v in range(first, largest + 1) if not builder.has_vertex(str(v)))
    msg = (
        f"{builder.what}: vertices are numbered up to {largest}, but {gap} has no arc; "
        f"number them from {first} without gaps, or declare '#: vertices {largest + 1 - first}'"
    )
    if not first and largest == builder.order:
        msg = (
            f"{builder.what}: vertices are numbered from 1 to {largest}, but 0 has no arc; write "
            f"file:PATH,first=1 if the first is 1, or declare '#: vertices {largest + 1}'"
        )
    raise BadFile(msg)


def write_edge_list(topology: Topology, separator: str) -> Iterator[str]:
    """Yield the lines of an edge list that reads back exactly."""
    yield "# opticoll edge list: tail, head, capacity [link bandwidths]\n"
    yield f"#: vertices {topology.n}\n"
    if topology.num_ranks != topology.n:
        yield f"#: terminals {' '.join(map(str, topology.terminals.tolist()))}\n"
    if not default_labels(topology):
        yield f"#: labels {json.dumps(list(topology.labels))}\n"
    if topology.capacity_unit is not None:
        yield f"#: unit {topology.capacity_unit}\n"
    if (topology.tail == topology.head).any():
        yield "#: loops keep\n"
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    for u, v, c in arcs:
        yield f"{u}{separator}{v}{separator}{c!r}\n"
