"""Topologies as JSON: the formats of opticoll, networkx (node-link), msccl-tools and TACCL.

opticoll: ``{"format": "opticoll-topology/1", "n": 3, "arcs": [[0, 1, 2.5], [1, 2]], "terminals": [0, 1],
"labels": ["a", "b", "c"], "unit": "Gb/s", "loops": "keep"}``. An arc is tail, head and capacity (1 if absent).
The keys terminals (default: all vertices), labels (the numbers), unit (none) and loops (refused) are optional.

Node-link (networkx, rustworkx): ``nodes`` with ``id`` (and ``label`` or ``name``, ``terminal``), ``edges`` or ``links``
with ``source``, ``target`` and a capacity (:class:`opticoll.instances.readers.listed_graph.Capacities`), ``directed``
(false if absent) and, in ``graph``, optionally ``"loops": "keep"`` and ``unit``. Attributes may stand under ``data``,
as rustworkx writes them. Other attributes are ignored.

msccl-tools (msccl/serialization.py): ``"msccl_type": "topology"`` (or an algorithm, whose topology is read) with
``links[dst][src]``, the chunks that a link moves per round, and ``switches`` ``[sources, destinations, bandwidth,
name]``, which limit the total over all links between them. A switch with one source (or one destination) is a relay
behind (before) that rank; others cannot be expressed as capacities.

TACCL (taccl/topologies/generic.py): the links within a node. Capacities are 1000 / ``invbws`` [us/MB], i.e. GB/s,
for each of the ``links``, indexed ``[dst][src]``. The files that TACCL ships have no ``links``: their wiring is in its
code, so ``wiring=ndv2`` (hybrid cube-mesh), or ``dgx2`` and ``hub_and_spoke`` (a switch) must be given.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile
from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.reading import parse_json
from opticoll.instances.readers.topology_builder import ReadOptions, TopologyBuilder, default_labels, read_capacity
from opticoll.instances.readers.unsupported import refuse_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import Topology

FORMAT = "opticoll-topology/1"
#: Largest number in a file of msccl or TACCL, and maximum number of GPUs in a node.
_LARGEST, _MOST_GPUS = 1e15, 1024
#: NDv2 (DGX-1), with GPUs numbered as in TACCL: pairs with two NVLinks, and with one.
_NDV2_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_NDV2_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
_KEYS = {"format", "n", "arcs", "terminals", "labels", "loops", "unit"}


def read_json(text: str, what: str, options: ReadOptions | None = None) -> Topology:
    """Read any of the formats.

    Raises
    ------
    BadFile
        For malformed JSON, another format, or invalid arcs; the message names the arc.
    """
    data = parse_json(text, what, "correct the syntax")
    options = options or ReadOptions()
    if isinstance(data, dict) and data.get("format") == FORMAT:
        options.refuse(what, "the file specifies everything", "capacity", "directed", "first", "wiring")
        return _ours(data, what, options)
    if isinstance(data, dict) and "nodes" in data and ("links" in data or "edges" in data):
        options.refuse(what, "the file names its vertices and lists all links", "first", "wiring")
        return _node_link(data, what, options)
    if isinstance(data, dict) and data.get("msccl_type") in {"topology", "algorithm"}:
        options.refuse(what, "the file specifies its links", "capacity", "directed", "first", "wiring")
        return _msccl(data if data["msccl_type"] == "topology" else data.get("topology"), what, options)
    if isinstance(data, dict) and "gpus_per_node" in data:
        options.refuse(what, "the file specifies its links", "capacity", "directed", "first")
        return _taccl(data, what, options)
    keys = _all_keys(data)
    refuse_keys(keys, what)
    found = f"an object with {', '.join(map(repr, list(data)[:5]))}" if isinstance(data, dict) and data else _kind(data)
    msg = f"{what}: {found} has neither {FORMAT!r} in 'format' nor 'nodes' with 'edges', and is no topology of msccl "
    raise BadFile(msg + "or TACCL; write one of these formats")


def _all_keys(data: Any) -> set[str]:
    """Keys of an object and of the objects directly inside it."""
    inside = data.values() if isinstance(data, dict) else ()
    return {str(key) for one in (data, *inside) if isinstance(one, dict) for key in one}


def _kind(data: Any) -> str:
    kinds = {dict: "an empty object", list: "a list", str: "a string", type(None): "null", bool: "true or false"}
    return kinds.get(type(data), "a number")


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


def _ours(data: dict[str, Any], what: str, options: ReadOptions) -> Topology:
    builder = TopologyBuilder(what, "arc", options)
    builder.stated = True
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        msg = f"{what}: unknown key {unknown[0][:60]!r}; known: {', '.join(sorted(_KEYS))}"
        raise BadFile(msg)
    n = data.get("n")
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        msg = f"{what}: 'n' must be a whole number of vertices, at least 1"
        raise BadFile(msg)
    builder.check_vertices(n)
    for v in range(n):
        builder.add_vertex(v)
    builder.keep_loops = _check_loops(data.get("loops"), what)
    for k, arc in enumerate(_list(data, "arcs", what)):
        where = f"{what}, arc {k}"
        if not isinstance(arc, list) or not 2 <= len(arc) <= 3 or not (_whole(arc[0]) and _whole(arc[1])):
            msg = f"{where}: must be [tail, head] or [tail, head, capacity] with whole numbers as ends"
            raise BadFile(msg)
        capacity = _capacity(arc[2], where) if len(arc) == 3 else 1.0
        builder.add_link(arc[0], arc[1], capacity, k, directed=True)
    if "terminals" in data:
        builder.terminals = _list(data, "terminals", what)
        if not all(map(_whole, builder.terminals)):
            msg = f"{what}: 'terminals' must be vertex numbers"
            raise BadFile(msg)
    if "labels" in data:
        labels = _list(data, "labels", what)
        if len(labels) != n or not all(isinstance(label, str) for label in labels):
            msg = f"{what}: 'labels' must be one string for each of the {n} vertices"
            raise BadFile(msg)
        builder.labels = dict(enumerate(labels))
    builder.unit = builder.checked_unit(data.get("unit"))
    return builder.build()


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


def _attributes(item: dict[str, Any], where: str) -> dict[str, Any]:
    """Attributes of a node or edge: its own, and those that rustworkx keeps under ``data``."""
    inside = item.get("data")
    if not isinstance(inside, dict):
        return {key: value for key, value in item.items() if key != "data" or value is not None}
    own = {key: value for key, value in item.items() if key != "data"}
    twice = next((key for key in inside if key in own and str(own[key]) != str(inside[key])), None)
    if twice is not None:
        msg = f"{where}: {twice[:40]!r} stands there and under 'data' with another value; keep one of them"
        raise BadFile(msg)
    return {**inside, **own}


def _node_link(data: dict[str, Any], what: str, options: ReadOptions) -> Topology:
    directed = data.get("directed", False)
    if not isinstance(directed, bool):
        msg = f"{what}: 'directed' must be true or false"
        raise BadFile(msg)
    graph = ListedGraph(what, "edge", options, directed=directed)
    for about in (data.get("graph"), data.get("attrs")):
        if isinstance(about, dict):
            graph.keep_loops = graph.keep_loops or _check_loops(about.get("loops"), what)
            graph.unit = graph.unit or graph.checked_unit(about.get("unit"))
            graph.note_traffic(about, "the graph has")
    for number, node in enumerate(_list(data, "nodes", what)):
        where = f"{what}, node {number}"
        attributes = _attributes(node, where) if isinstance(node, dict) else {}
        if "id" not in attributes:
            msg = f"{where}: must be an object with an 'id', which edges name (places in the list are not read)"
            raise BadFile(msg)
        graph.add_node(_name(attributes["id"], where), attributes)
    if "links" in data and "edges" in data:
        msg = f"{what}: it has 'links' and 'edges'; keep one of them"
        raise BadFile(msg)
    for number, edge in enumerate(_list(data, "links" if "links" in data else "edges", what)):
        where = graph.where(number)
        attributes = _attributes(edge, where) if isinstance(edge, dict) else {}
        if "source" not in attributes or "target" not in attributes:
            msg = f"{where}: must be an object with 'source' and 'target'"
            raise BadFile(msg)
        tail, head = (_name(attributes.pop(end), where) for end in ("source", "target"))
        graph.list_link(tail, head, attributes, number)
    return graph.build()


def _square(data: dict[str, Any], key: str, what: str, n: int | None = None) -> list[list[float]]:
    """Return an n×n list of finite nonnegative numbers with zero diagonal."""
    rows = _list(data, key, what)
    n = len(rows) if n is None else n
    valid = len(rows) == n and all(isinstance(row, list) and len(row) == n for row in rows)
    for i, row in enumerate(rows if valid else ()):
        valid = valid and row[i] == 0 and all(type(x) in (int, float) and 0 <= x <= _LARGEST for x in row)
    if not valid:
        msg = f"{what}: {key!r} must be a list of {n} rows of {n} numbers, 0 on the diagonal; {key}[dst][src]"
        raise BadFile(msg)
    return rows


def _msccl(data: Any, what: str, options: ReadOptions) -> Topology:
    if not isinstance(data, dict) or data.get("msccl_type") != "topology":
        msg = f"{what}: contains no msccl topology; write {{'msccl_type': 'topology', 'links': ...}}"
        raise BadFile(msg)
    links = _square(data, "links", what)
    builder = TopologyBuilder(what, "link", options)
    for v in range(len(links)):
        builder.add_vertex(v)
    behind: dict[tuple[int, int], str] = {}
    before: dict[tuple[int, int], str] = {}
    for k, switch in enumerate(_list(data, "switches", what) if data.get("switches") else ()):
        sources, targets, bandwidth, name = _switch(switch, len(links), f"{what}, switch {k}")
        relay = f"{name} ({k})"
        side = behind if len(sources) == 1 else before
        pairs = [(u, v) for u in sources for v in targets if u != v and links[v][u]]
        if any(pair in side for pair in pairs):
            msg = f"{what}, switch {k}: a link belongs to two switches on one side, which capacities cannot express"
            raise BadFile(msg)
        side.update(dict.fromkeys(pairs, relay))
        if pairs:
            builder.add_vertex(relay)
            builder.relays.add(relay)
            tail, head = (sources[0], relay) if side is behind else (relay, targets[0])
            builder.add_edge(tail, head, bandwidth, k, directed=True)
    for v, row in enumerate(links):
        for u, capacity in enumerate(row):
            if capacity:
                builder.add_edge(behind.get((u, v), u), before.get((u, v), v), capacity, v, directed=True)
    return builder.build()


def _switch(switch: Any, n: int, where: str) -> tuple[list[int], list[int], float, str]:
    valid = isinstance(switch, list) and len(switch) == 4 and all(isinstance(ends, list) for ends in switch[:2])
    valid = valid and all(_whole(v) and 0 <= v < n for ends in switch[:2] for v in ends)
    if not valid or type(switch[2]) not in (int, float) or not isinstance(switch[3], str):
        msg = f"{where}: must be [sources, destinations, bandwidth, name] with ranks 0..{n - 1}"
        raise BadFile(msg)
    sources, targets, bandwidth, name = switch
    if 1 not in (len(sources), len(targets)):
        msg = f"{where}: it limits the links between several sources and several destinations together, which "
        raise BadFile(msg + "capacities cannot express; give one switch per source or per destination")
    return sources, targets, read_capacity(bandwidth, where), name[:60]


def _taccl(data: dict[str, Any], what: str, options: ReadOptions) -> Topology:
    n = data.get("gpus_per_node")
    if not isinstance(n, int) or isinstance(n, bool) or not 1 < n <= _MOST_GPUS:
        msg = f"{what}: 'gpus_per_node' must be a whole number from 2 to {_MOST_GPUS}"
        raise BadFile(msg)
    builder = TopologyBuilder(what, "link", options)
    builder.unit = "GB/s"
    for v in range(n):
        builder.add_vertex(v)
    if "links" in data:
        options.refuse(what, "the file has 'links'", "wiring")
        _taccl_links(builder, _square(data, "links", what, n), _square(data, "invbws", what, n))
    else:
        _taccl_wiring(builder, data, n, options.wiring)
    return builder.build()


def _taccl_links(builder: TopologyBuilder, links: list[list[float]], slowness: list[list[float]]) -> None:
    """Add the links that a file of TACCL lists, with their inverse bandwidths [us/MB]; both ``[dst][src]``."""
    for v, row in enumerate(links):
        for u, count in enumerate(row):
            if bool(count) != bool(slowness[v][u]):
                msg = f"{builder.what}: links and invbws must be 0 for the same pairs, not only for {u}->{v}"
                raise BadFile(msg)
            if count:
                builder.add_edge(u, v, count * 1000.0 / slowness[v][u], v, directed=True)


def _taccl_wiring(builder: TopologyBuilder, data: dict[str, Any], n: int, wiring: str | None) -> None:
    """Add the links of ``n`` GPUs that are wired as in TACCL's code."""
    what = builder.what
    values = _list(data, "node_invbws_list", what)
    if not all(type(x) in (int, float) and 0 < x <= _LARGEST for x in values):
        msg = f"{what}: 'node_invbws_list' must be a list of positive numbers"
        raise BadFile(msg)
    if wiring not in {"ndv2", "dgx2", "hub_and_spoke"}:
        msg = f"{what}: it has no 'links' (their wiring is in TACCL's code); write file:PATH,wiring=ndv2, dgx2 or "
        raise BadFile(msg + "hub_and_spoke")
    if len(values) != (2 if wiring == "ndv2" else 1) or n != {"ndv2": 8, "dgx2": 16}.get(wiring, n):
        msg = f"{what}: {n} GPUs with {len(values)} invbws do not fit wiring={wiring}; choose another"
        raise BadFile(msg)
    if wiring == "ndv2":
        for pairs, slow in zip((_NDV2_DOUBLE, _NDV2_SINGLE), values, strict=True):
            for u, v in pairs:
                builder.add_edge(u, v, 1000.0 / slow, u, directed=False)
        return
    builder.add_vertex("switch")
    builder.relays.add("switch")
    for v in range(n):
        builder.add_edge(v, "switch", 1000.0 / values[0], v, directed=False)


def write_json(topology: Topology) -> Iterator[str]:
    """Yield the pieces of the opticoll format, which reads back exactly."""
    yield f'{{"format": "{FORMAT}", "n": {topology.n}'
    if topology.num_ranks != topology.n:
        yield f',\n "terminals": {json.dumps(topology.terminals.tolist())}'
    if not default_labels(topology):
        yield f',\n "labels": {json.dumps(list(topology.labels))}'
    if topology.capacity_unit is not None:
        yield f',\n "unit": {json.dumps(topology.capacity_unit)}'
    if (topology.tail == topology.head).any():
        yield ',\n "loops": "keep"'
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    yield ',\n "arcs": ['
    yield ",\n  ".join(json.dumps(list(arc)) for arc in arcs)
    yield "]}\n"
