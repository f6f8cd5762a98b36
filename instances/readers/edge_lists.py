"""Edge lists: ``tail head [capacity]`` on each line, separated by commas or spaces.

``#`` starts a comment. The first line that is not a comment may be ``directed`` (the default: arcs as written) or
``undirected`` (an arc each way for every line), and the next a heading such as ``tail,head,capacity``, with any number
of columns; one called ``Type`` or ``directed`` may state the direction of each line (``Undirected``), as Gephi's tables
do. A capacity may have a unit (``400Gb/s``) if all have one. Lines of networkx, ``tail head {'capacity': 2}``,
need the option ``directed``. A comment ``# Undirected graph`` or ``# Directed graph`` above the links, as SNAP writes
it, states the direction too; an undirected graph of SNAP may list its links in one or both directions. Lines that start
with ``#:`` are declarations:

    #: undirected                same as the line ``undirected``
    #: vertices 12               number of vertices, some of which may have no arcs
    #: terminals 0 1 2           the vertices that send and receive; all if absent
    #: labels ["a", "b", ...]    names of vertices 0, 1, ... as a JSON list
    #: unit Gb/s                 unit of the capacities
    #: loops keep                accept self-loops, which are refused otherwise

Vertices are either the numbers 0 .. n-1 (each with an arc unless ``vertices`` is declared), or names, which are
numbered in order of appearance and kept as labels. A missing
capacity is 1.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import ast
import io
import json
import re
from sys import intern
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.instances.quantities import split_rate
from opticoll.instances.readers.listed_graph import CAPACITY_NAMES, ListedGraph, declarations
from opticoll.instances.readers.reading import parses_as_float, refuse
from opticoll.instances.readers.tables import cells_of, end_columns, is_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opticoll.instances.topology import Topology

_MAX_LINE = 10_000
#: First line of a network of SNAP (snap.stanford.edu/data), whose undirected graphs have no parallel links.
_SNAP = re.compile(r"#\s*(?:directed|(?P<undirected>undirected))\s+graph\b", re.IGNORECASE)


def read_edge_list(text: str, graph: ListedGraph) -> None:
    """Read an edge list."""
    graph.options.refuse(graph.what, "an edge list has no choice of links", "wiring")
    lines = _Lines(graph)
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        lines.read(line.strip(), number)
    lines.check()
    _declare(graph, lines.vertices)
    if lines.labels and len(lines.labels) < graph.order:
        refuse(graph.what, f"{len(lines.labels)} labels for {graph.order} vertices; give one label per vertex")
    for v, label in enumerate(lines.labels or ()):
        if not graph.has_vertex(str(v)):
            remedy = "give one label per vertex"
            refuse(graph.what, f"label {label[:60]!r} is for vertex {v}, but there is no vertex {v}; {remedy}")
        graph.labels[str(v)] = label


class _Lines:
    """Lines of an edge list, read into a graph: declarations, a heading, and links with their attributes.

    Under a heading every other column is an attribute; without one, a third column is the capacity.
    """

    def __init__(self, graph: ListedGraph) -> None:
        self.graph = graph
        self.stated = graph.options.directed is not None  # the direction; networkx lines, ``u v {...}``, do not
        self.heading: list[str] | None = None
        self.ends, self.rest = (0, 1), [(2, "capacity")]
        self.alike: dict[tuple[str, ...], dict[str, str]] = {}  # attributes that links share, by their cells
        self.plain, self.braced = False, 0  # whether there are lines without {...}; the number of one with them
        self.declared: set[str] = set()
        self.vertices: int | None = None
        self.labels: list[str] | None = None

    def read(self, line: str, number: int) -> None:
        """Read one line: a declaration, a heading, a link or a comment."""
        where = self.graph.where(number)
        if line.startswith("#:"):
            self._read_declaration(line, where)
            return
        snap = _SNAP.match(line)
        if snap and not self.plain and "directed" not in self.declared:
            self.graph.directed, self.stated = snap["undirected"] is None, True
            self.graph.multigraph = None if self.graph.directed else False
        line = line.partition("#")[0].strip()
        if not line:
            return
        if len(line) > _MAX_LINE:
            refuse(where, f"{len(line)} characters exceed the limit of {_MAX_LINE}; write one arc per line")
        if not self.plain and line.lower() in {"directed", "undirected"}:
            self._declare_once("directed", where)
            self.graph.directed, self.stated = line.lower() == "directed", True
        elif "{" in line:
            self._read_networkx(line, number, where)
        else:
            self._read_plain(line, number, where)

    def _read_declaration(self, line: str, where: str) -> None:
        graph = self.graph
        key, _, value = line[2:].strip().partition(" ")
        value = value.strip()
        self._declare_once("directed" if key == "undirected" else key, where)
        if key in {"directed", "undirected"} and not value:
            if self.plain:
                refuse(where, f"{key!r} follows arcs; move it to the top")
            graph.directed, self.stated = key == "directed", True
        elif key == "vertices" and is_number(value):
            graph.check_vertices(int(value) if len(value) < 19 else 10**18)
            self.vertices, graph.stated = int(value), True
        elif key == "terminals":
            graph.terminals = list(value.replace(",", " ").split())
        elif key == "labels":
            self.labels = _labels(value, where)
        elif key == "unit":
            graph.unit = graph.checked_unit(value)
        elif (key, value) == ("loops", "keep"):
            graph.keep_loops = True
        else:
            msg = f"{where}: cannot read {line[:60]!r}; known: directed, undirected, vertices N, "
            raise BadFile(msg + "terminals A B ..., labels [...], unit Gb/s, loops keep")

    def _declare_once(self, key: str, where: str) -> None:
        if key in self.declared:
            refuse(where, f"{key!r} is declared twice; declare it once, on one line")
        self.declared.add(key)
        if key == "directed":
            self.graph.multigraph = None  # a declaration takes the place of a comment

    def _read_plain(self, line: str, number: int, where: str) -> None:
        cells = cells_of(line, where)
        if not self.plain and self.heading is None and self._read_heading(cells, where):
            return
        if self.heading is None and "," not in line and len(cells) == 4 and split_rate(" ".join(cells[2:])) is not None:
            cells = [*cells[:2], " ".join(cells[2:])]  # 25 GB/s
        tail, head = [cells[i] for i in self.ends] if max(self.ends) < len(cells) else ("", "")
        fits = 2 <= len(cells) <= 3 and all(cells) if self.heading is None else len(cells) == len(self.heading)
        if not fits or not (tail and head):
            msg = f"{where}: {line[:60]!r} is not an arc; write tail, head and optionally a capacity"
            if len(cells) > 3 and all(map(parses_as_float, cells)):
                msg += " (a square matrix of capacities has as many rows as columns; file:PATH,format=matrix)"
            elif len(cells) == 1 and self.plain:
                msg += "; in a list of neighbours, write one line per link"
            raise BadFile(msg)
        self.plain = True
        given = tuple(cells[i] if i < len(cells) else "" for i, _ in self.rest)
        if given not in self.alike:
            self.alike[given] = {name: cell for (_, name), cell in zip(self.rest, given, strict=True) if cell}
        self._list(tail, head, self.alike[given], number)

    def _list(self, tail: str, head: str, attributes: Mapping[str, object], number: int) -> None:
        tail, head = intern(tail), intern(head)
        self.graph.add_vertex(tail)
        self.graph.add_vertex(head)
        self.graph.list_link(tail, head, attributes, number)

    def _read_heading(self, cells: list[str], where: str) -> bool:
        """Read the first line if it is a heading with columns for the ends; False if it is not."""
        if any(map(parses_as_float, cells)):
            return False
        ends = end_columns(cells, where)
        if ends is not None:
            self.heading, self.ends = cells, ends
            self.rest = [(i, name) for i, name in enumerate(cells) if i not in ends]
        elif any(cell.lower() in CAPACITY_NAMES for cell in cells):
            msg = f"{where}: the heading {','.join(cells)[:60]!r} does not name both ends of an arc; "
            raise BadFile(msg + "write src,dst,capacity")
        return ends is not None

    def _read_networkx(self, line: str, number: int, where: str) -> None:
        ends, _, rest = line.partition("{")
        cells = cells_of(ends.rstrip().rstrip(","), where)
        try:
            attributes = ast.literal_eval("{" + rest)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            attributes = None
        if len(cells) != 2 or not all(cells) or not isinstance(attributes, dict):
            refuse(where, f"{line[:60]!r} is not a networkx edge; write tail, head and {{'capacity': 1.0}}")
        if not self.stated:
            remedy = "write file:PATH,directed=true or file:PATH,directed=false"
            refuse(where, f"an edge list with {{...}} does not specify whether its edges are directed; {remedy}")
        self.braced = number
        self._list(cells[0], cells[1], {str(key): value for key, value in attributes.items()}, number)

    def check(self) -> None:
        """Refuse what is judged by all lines: a first line that must be a heading, or neighbours for capacities."""
        graph = self.graph
        if self.braced and self.plain:
            refuse(
                graph.where(self.braced),
                "lines with and without {...} cannot be mixed; write {...} on all of them, or on none",
            )
        heads = [] if self.heading is None else [self.heading[i] for i in self.ends]
        twice = next((name for name in heads if graph.has_vertex(name)), None)
        if twice is not None:
            msg = f"{graph.what}: the first line may be a heading or an arc, since {twice!r} is also a vertex; "
            raise BadFile(msg + "write the heading src,dst above it")
        if not self.plain or self.heading is not None:
            return
        tail, head, attributes, number, _ = graph.links[0]
        others = [str(name) for name in graph.vertices() if name not in (tail, head)]
        numbers = bool(others) and all(map(is_number, others))
        apart = not attributes and not any({tail, head} & {u, v} for u, v, *_ in graph.links[1:])
        if others and not any(is_number(str(end)) for end in (tail, head)) and (numbers or apart):
            reason = "all other vertices are numbers" if numbers else "they stand in no other line"
            msg = f"{graph.where(number)}: {str(tail)[:40]!r} and {str(head)[:40]!r} are names, but {reason}; "
            raise BadFile(msg + "call the columns of a heading src,dst,capacity, or write src,dst above an arc")
        if graph.options.capacity is None and _are_neighbours(graph):
            reason = "every vertex begins one line, and every third column is a third vertex, so this may be a list of"
            remedy = "write one line per link, or the heading src,dst,capacity if they are capacities"
            refuse(graph.what, f"{reason} neighbours; {remedy}")


def _are_neighbours(graph: ListedGraph) -> bool:
    """Whether every vertex, a number, is the tail of one link whose capacity is the number of a third vertex."""
    rows = [(tail, head, attributes.get("capacity")) for tail, head, attributes, *_ in graph.links]
    return len({tail for tail, *_ in rows}) == len(rows) == graph.order and all(
        is_number(str(tail)) and third not in (tail, head) and graph.has_vertex(third) for tail, head, third in rows
    )


def _labels(text: str, where: str) -> list[str]:
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        refuse(where, 'labels must be a JSON list of strings, such as ["a", "b"]')
    return labels


def _declare(graph: ListedGraph, vertices: int | None) -> None:
    """Check numbered vertices for gaps, and add the declared ones that have no arc."""
    numbered = [str(name) for name in graph.vertices() if is_number(str(name))]
    first = graph.options.first or 0
    if len(numbered) < graph.order and vertices is None and not first:
        return
    if len(numbered) < graph.order or (first and graph.has_vertex("0")):
        reason = f"must be numbers from {first}" if first else "must be numbers, not names,"
        msg = f"{graph.what}: vertices {reason} where {'first=' if first else 'their number is declared'}"
        msg += "1 is given" if first else ""
        raise BadFile(msg)
    longest = max(numbered, key=lambda name: (len(name), name), default="")
    largest = -1 if not longest else int(longest) if len(longest) < 19 else 10**18
    graph.check_vertices(largest + 1)
    if vertices is None:
        _refuse_gap(graph, first, largest)
        return
    if largest >= vertices + first:
        refuse(graph.what, f"vertex {largest} lies outside the {vertices} declared; number them from {first}")
    for v in range(first, vertices + first):
        graph.add_vertex(str(v))


def _refuse_gap(graph: ListedGraph, first: int, largest: int) -> None:
    """Refuse a number from ``first`` to ``largest`` that is no vertex."""
    if largest + 1 - first <= graph.order:
        return
    gap = next(v for v in range(first, largest + 1) if not graph.has_vertex(str(v)))
    msg = (
        f"{graph.what}: vertices are numbered up to {largest}, but {gap} has no arc; "
        f"number them from {first} without gaps, or declare '#: vertices {largest + 1 - first}'"
    )
    if not first and largest == graph.order:
        msg = (
            f"{graph.what}: vertices are numbered from 1 to {largest}, but 0 has no arc; write "
            f"file:PATH,first=1 if the first is 1, or declare '#: vertices {largest + 1}'"
        )
    raise BadFile(msg)


def write_edge_list(topology: Topology, separator: str) -> Iterator[str]:
    """Yield the lines of an edge list that reads back exactly."""
    yield "# opticoll edge list: tail, head, capacity [link bandwidths]\n"
    yield f"#: vertices {topology.n}\n"
    for key, value in declarations(topology).items():
        text = (
            json.dumps(value) if key == "labels" else " ".join(map(str, value if isinstance(value, list) else [value]))
        )
        yield f"#: {key} {text}\n"
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    for u, v, c in arcs:
        yield f"{u}{separator}{v}{separator}{c!r}\n"
