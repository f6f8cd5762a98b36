"""Topologies as JSON: the format of opticoll, and the node-link format of networkx.

opticoll: ``{"format": "opticoll-topology/1", "n": 3, "arcs": [[0, 1, 2.5], [1, 2]], "terminals": [0, 1],
"labels": ["a", "b", "c"], "loops": "keep"}``. An arc is tail, head and capacity (1 if absent). Terminals
(all vertices if absent), labels (the numbers) and loops (refused) may be left out.

Node-link: ``nodes`` with ``id`` (and ``label``, ``terminal``), ``edges`` or ``links`` with ``source``,
``target`` and ``capacity`` (1 if absent), ``directed`` (false if absent) and in ``graph`` perhaps
``"loops": "keep"``. Other attributes are not read.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile
from opticoll.instances.readers.draft import Draft, default_labels, read_capacity
from opticoll.instances.readers.untrusted import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.digraph import Topology

FORMAT = "opticoll-topology/1"
_KEYS = {"format", "n", "arcs", "terminals", "labels", "loops"}


def read_json(text: str, what: str) -> Topology:
    """Read either format.

    Raises
    ------
    BadFile
        For malformed JSON, another format, or arcs that are invalid; the message names the arc.
    """
    data = parse_json(text, what, "correct the syntax")
    if isinstance(data, dict) and data.get("format") == FORMAT:
        return _ours(data, what)
    if isinstance(data, dict) and "nodes" in data and ("links" in data or "edges" in data):
        return _node_link(data, what)
    msg = f"{what}: neither {FORMAT!r} in 'format' nor 'nodes' with 'edges'; write one of the two formats"
    raise BadFile(msg)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _list(data: dict[str, Any], key: str, what: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        msg = f"{what}: {key!r} must be a list"
        raise BadFile(msg)
    return value


def _check_loops(loops: Any, what: str) -> bool:
    if loops not in (None, "keep"):
        msg = f"{what}: 'loops' must be 'keep' or absent"
        raise BadFile(msg)
    return loops == "keep"


def _ours(data: dict[str, Any], what: str) -> Topology:
    draft = Draft(what, "arc")
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        msg = f"{what}: unknown key {unknown[0][:60]!r}; known: {', '.join(sorted(_KEYS))}"
        raise BadFile(msg)
    n = data.get("n")
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        msg = f"{what}: 'n' must be a whole number of vertices, at least 1"
        raise BadFile(msg)
    draft.check_vertices(n)
    for v in range(n):
        draft.add_vertex(v)
    draft.keep_loops = _check_loops(data.get("loops"), what)
    for k, arc in enumerate(_list(data, "arcs", what)):
        where = f"{what}, arc {k}"
        if not isinstance(arc, list) or not 2 <= len(arc) <= 3 or not (_whole(arc[0]) and _whole(arc[1])):
            msg = f"{where}: must be [tail, head] or [tail, head, capacity] with whole numbers as ends"
            raise BadFile(msg)
        capacity = _capacity(arc[2], where) if len(arc) == 3 else 1.0
        draft.add_link(arc[0], arc[1], capacity, k, directed=True)
    if "terminals" in data:
        draft.terminals = _list(data, "terminals", what)
        if not all(map(_whole, draft.terminals)):
            msg = f"{what}: 'terminals' must be vertex numbers"
            raise BadFile(msg)
    if "labels" in data:
        labels = _list(data, "labels", what)
        if len(labels) != n or not all(isinstance(label, str) for label in labels):
            msg = f"{what}: 'labels' must be one string for each of the {n} vertices"
            raise BadFile(msg)
        draft.labels = dict(enumerate(labels))
    return draft.build()


def _capacity(value: Any, where: str) -> float:
    if isinstance(value, str):
        msg = f"{where}: capacity {value[:60]!r} is a string; write a number"
        raise BadFile(msg)
    return read_capacity(value, where)


def _name(value: Any, where: str) -> Hashable:
    """Make a node id hashable; networkx writes tuples as lists."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, list):
        return json.dumps(value)
    msg = f"{where}: the id of a node must be a number, a string or a list"
    raise BadFile(msg)


def _node_link(data: dict[str, Any], what: str) -> Topology:
    draft = Draft(what, "edge")
    attributes = data.get("graph")
    if isinstance(attributes, dict):
        draft.keep_loops = _check_loops(attributes.get("loops"), what)
    for number, node in enumerate(_list(data, "nodes", what)):
        where = f"{what}, node {number}"
        if not isinstance(node, dict) or "id" not in node:
            msg = f"{where}: must be an object with an 'id'"
            raise BadFile(msg)
        draft.add_node(_name(node["id"], where), node)
    directed = data.get("directed", False)
    if not isinstance(directed, bool):
        msg = f"{what}: 'directed' must be true or false"
        raise BadFile(msg)
    for number, edge in enumerate(_list(data, "links" if "links" in data else "edges", what)):
        where = draft.where(number)
        if not isinstance(edge, dict) or "source" not in edge or "target" not in edge:
            msg = f"{where}: must be an object with 'source' and 'target'"
            raise BadFile(msg)
        tail, head = _name(edge["source"], where), _name(edge["target"], where)
        draft.add_edge(tail, head, edge.get("capacity", 1.0), number, directed=directed)
    return draft.build()


def write_json(topology: Topology) -> Iterator[str]:
    """Write the format of opticoll, exactly, in pieces."""
    yield f'{{"format": "{FORMAT}", "n": {topology.n}'
    if topology.ranks != topology.n:
        yield f',\n "terminals": {json.dumps(topology.terminals.tolist())}'
    if not default_labels(topology):
        yield f',\n "labels": {json.dumps(list(topology.labels))}'
    if (topology.tail == topology.head).any():
        yield ',\n "loops": "keep"'
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    yield ',\n "arcs": ['
    yield ",\n  ".join(json.dumps(list(arc)) for arc in arcs)
    yield "]}\n"
