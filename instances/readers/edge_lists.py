"""Edge lists: ``tail head [capacity]`` on each line, separated by commas or blanks.

``#`` starts a comment. The first other line may be ``directed`` (the default: arcs as written) or
``undirected`` (an arc each way for every line), and the next a heading ``tail,head,capacity``. Lines that start with
``#:`` are declarations:

    #: undirected                as the line ``undirected``
    #: vertices 12               number of vertices, of which some may have no arcs
    #: terminals 0 1 2           the vertices that send and receive; all if absent
    #: labels ["a", "b", ...]    names of vertices 0, 1, ... as a JSON list
    #: loops keep                accept self-loops, which are refused otherwise

Vertices are either the numbers 0 .. n-1 (each with an arc unless ``vertices`` is declared), or names, which are
numbered in order of appearance and kept as labels. A missing
capacity is 1.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.instances.readers.draft import Draft, default_labels, is_number, read_capacity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.digraph import Topology

_MAX_LINE = 10_000
_HEADINGS = ({"tail", "source", "from", "u"}, {"head", "target", "to", "v"}, {"capacity"})


def read_edge_list(text: str, what: str) -> Topology:
    """Read an edge list.

    Raises
    ------
    BadFile
        Naming the line that is malformed.
    """
    draft = Draft(what, "line")
    directed, vertices, labels, rows = True, None, None, 0
    for number, raw in enumerate(io.StringIO(text, newline=None), start=1):
        where = draft.where(number)
        line = raw.strip()
        if line.startswith("#:"):
            key, _, value = line[2:].strip().partition(" ")
            value = value.strip()
            if key in {"directed", "undirected"} and not value:
                if rows:
                    msg = f"{where}: {key!r} follows arcs; move it to the top"
                    raise BadFile(msg)
                directed = key == "directed"
            elif key == "vertices" and is_number(value):
                draft.check_vertices(int(value) if len(value) < 19 else 10**18)
                vertices = int(value)
            elif key == "terminals":
                draft.terminals = list(value.replace(",", " ").split())
            elif key == "labels":
                labels = _labels(value, where)
            elif (key, value) == ("loops", "keep"):
                draft.keep_loops = True
            else:
                msg = f"{where}: cannot read {line[:60]!r}; known: directed, undirected, vertices N, "
                raise BadFile(msg + "terminals A B ..., labels [...], loops keep")
            continue
        line = line.partition("#")[0].strip()
        if not line:
            continue
        if len(line) > _MAX_LINE:
            msg = f"{where}: {len(line)} characters exceed the limit of {_MAX_LINE}; write one arc per line"
            raise BadFile(msg)
        if not rows and line.lower() in {"directed", "undirected"}:
            directed = line.lower() == "directed"
            continue
        parts = [part.strip() for part in line.split(",")] if "," in line else line.split()
        if not rows and _is_heading(parts):
            continue
        if not 2 <= len(parts) <= 3 or not all(parts):
            msg = f"{where}: {line[:60]!r} is not an arc; write tail, head and optionally a capacity"
            raise BadFile(msg)
        rows += 1
        capacity = read_capacity(parts[2], where) if len(parts) == 3 else 1.0
        draft.add_vertex(parts[0])
        draft.add_vertex(parts[1])
        draft.add_link(parts[0], parts[1], capacity, number, directed=directed)
    _declare(draft, vertices)
    for v, label in enumerate(labels or ()):
        if not draft.has_vertex(str(v)):
            msg = (
                f"{what}: label {label[:60]!r} is for vertex {v}, but there is no vertex {v}; give one label per vertex"
            )
            raise BadFile(msg)
        draft.labels[str(v)] = label
    return draft.build()


def _is_heading(parts: list[str]) -> bool:
    words = [part.lower() for part in parts]
    return 2 <= len(words) <= 3 and all(w in known for w, known in zip(words, _HEADINGS, strict=False))


def _labels(text: str, where: str) -> list[str]:
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        msg = f'{where}: labels must be a JSON list of strings, such as ["a", "b"]'
        raise BadFile(msg)
    return labels


def _declare(draft: Draft, vertices: int | None) -> None:
    """Check numbered vertices for gaps, and add the declared ones that have no arc."""
    numbered = [str(name) for name in draft.vertices() if is_number(str(name))]
    if len(numbered) < draft.order and vertices is None:
        return
    if len(numbered) < draft.order:
        msg = f"{draft.what}: vertices must be numbers, not names, where their number is declared"
        raise BadFile(msg)
    longest = max(numbered, key=lambda name: (len(name), name), default="")
    largest = -1 if not longest else int(longest) if len(longest) < 19 else 10**18
    draft.check_vertices(largest + 1)
    if vertices is None:
        if largest + 1 > draft.order:
            gap = next(v for v in range(largest + 1) if not draft.has_vertex(str(v)))
            msg = (
                f"{draft.what}: vertices are numbered up to {largest}, but {gap} has no arc; "
                f"number them from 0 without gaps, or declare '#: vertices {largest + 1}'"
            )
            raise BadFile(msg)
        return
    if largest >= vertices:
        msg = f"{draft.what}: vertex {largest} lies outside the {vertices} declared; number them from 0"
        raise BadFile(msg)
    for v in range(vertices):
        draft.add_vertex(str(v))


def write_edge_list(topology: Topology, separator: str) -> Iterator[str]:
    """Write an edge list that reads back exactly, line by line."""
    yield "# opticoll edge list: tail, head, capacity [link bandwidths]\n"
    yield f"#: vertices {topology.n}\n"
    if topology.ranks != topology.n:
        yield f"#: terminals {' '.join(map(str, topology.terminals.tolist()))}\n"
    if not default_labels(topology):
        yield f"#: labels {json.dumps(list(topology.labels))}\n"
    if (topology.tail == topology.head).any():
        yield "#: loops keep\n"
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    for u, v, c in arcs:
        yield f"{u}{separator}{v}{separator}{c!r}\n"
