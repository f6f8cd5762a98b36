"""Topologies as JSON: the formats of opticoll, networkx (node-link), msccl-tools and TACCL.

opticoll: ``{"format": "opticoll-topology/1", "n": 3, "arcs": [[0, 1, 2.5], [1, 2]], "terminals": [0, 1],
"labels": ["a", "b", "c"], "unit": "Gb/s", "loops": "keep"}``. An arc is tail, head and capacity (1 if absent).
The keys terminals (default: all vertices), labels (the numbers), unit (none) and loops (refused) are optional.

Node-link (networkx, rustworkx): ``nodes`` with ``id`` (and ``label`` or ``name``, ``terminal``), ``edges`` or ``links``
with ``source``, ``target`` and a capacity (:class:`opticoll.instances.readers.listed_graph.ListedGraph`), ``directed``
(false if absent), ``multigraph`` (if false, a link that is listed again is the same one) and, in ``graph``, optionally
``"loops": "keep"`` and ``unit``. Attributes may stand under ``data``, as rustworkx writes them. Other attributes are
ignored.

msccl-tools (msccl/serialization.py): ``"msccl_type": "topology"`` (or an algorithm, whose topology is read) with
``links[dst][src]``, the chunks that a link moves per round, and ``switches`` ``[sources, destinations, bandwidth,
name]``, which limit the total over all links between them. A switch with one source (or one destination) is a relay
behind (before) that rank; others cannot be expressed as capacities.

TACCL (taccl/topologies/generic.py): the links within a node. Capacities are 1000 / ``invbws`` [us/MB], i.e. GB/s,
for each of the ``links``, indexed ``[dst][src]``. The files that TACCL ships have no ``links``: their wiring is in its
code, so ``wiring=ndv2`` (hybrid cube-mesh), or ``dgx2`` and ``hub_and_spoke`` (a switch) must be given.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from opticoll.errors import BadFile
from opticoll.instances.readers.listed_graph import ListedGraph, declarations, short
from opticoll.instances.readers.reading import as_struct, parse_json, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import Topology
    from opticoll.types import Json

FORMAT = "opticoll-topology/1"
#: NDv2 (DGX-1), with GPUs numbered as in TACCL: pairs with two NVLinks, and with one.
_NDV2_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_NDV2_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
Number = Annotated[float, Meta(ge=0, le=1e15)]
Vertex = Annotated[int, Meta(ge=0)]


class _Ours(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    n: Annotated[int, Meta(ge=1)]
    arcs: list[Annotated[list[Any], Meta(min_length=2, max_length=3)]]
    terminals: list[Vertex] | None = None
    labels: list[str] | None = None
    loops: Literal["keep"] | None = None
    unit: str | None = None


class _NodeLink(msgspec.Struct):
    nodes: list[dict[str, Any]]
    links: list[dict[str, Any]] | None = None
    edges: list[dict[str, Any]] | None = None
    directed: bool = False
    multigraph: bool | None = None
    graph: Any = None
    attrs: Any = None


class _Demands(msgspec.Struct):
    demands: dict[str, dict[str, Number]]


class _Msccl(msgspec.Struct):
    msccl_type: Literal["topology"]
    links: list[list[Number]]
    switches: list[tuple[list[Vertex], list[Vertex], Number, str]] | None = None


class _Taccl(msgspec.Struct):
    gpus_per_node: Annotated[int, Meta(ge=2, le=1024)]
    links: list[list[Number]] | None = None
    invbws: list[list[Number]] = []
    node_invbws_list: list[Annotated[float, Meta(gt=0, le=1e15)]] = []


def read_json(text: str, graph: ListedGraph) -> None:
    """Read any of the formats."""
    what, options = graph.what, graph.options
    data = parse_json(text, what, "correct the syntax")
    if isinstance(data, dict) and data.get("format") == FORMAT:
        options.refuse(what, "the file specifies everything", "capacity", "directed", "first", "wiring")
        return list_document(data, graph)
    if isinstance(data, dict) and "nodes" in data and ("links" in data or "edges" in data):
        options.refuse(what, "the file names its vertices and lists all links", "first", "wiring")
        return node_link(data, graph)
    if isinstance(data, dict) and data.get("msccl_type") in {"topology", "algorithm"}:
        options.refuse(what, "the file specifies its links", "capacity", "directed", "first", "wiring")
        return _msccl(data if data["msccl_type"] == "topology" else data.get("topology"), graph)
    if isinstance(data, dict) and "gpus_per_node" in data:
        options.refuse(what, "the file specifies its links", "capacity", "directed", "first")
        return _taccl(data, graph)
    kinds = {dict: "an empty object", list: "a list", str: "a string", type(None): "null", bool: "true or false"}
    found = kinds.get(type(data), "a number")
    found = f"an object with {', '.join(map(short, list(data)[:5]))}" if isinstance(data, dict) and data else found
    msg = f"{what}: {found} has neither {FORMAT!r} in 'format' nor 'nodes' with 'edges', and is no topology of msccl "
    raise BadFile(msg + "or TACCL; write one of these formats")


def list_document(data: Mapping[str, Json], builder: ListedGraph) -> None:
    """Read a document of the opticoll format."""
    read = as_struct(dict(data), _Ours, builder.what)
    builder.place, builder.stated = "arc", True
    builder.number_vertices(read.n, 0)
    builder.describe_graph({"loops": read.loops, "unit": read.unit})
    for k, arc in enumerate(read.arcs):
        where = builder.where(k)
        if not all(type(v) is int for v in arc[:2]):
            refuse(where, "must be [tail, head] or [tail, head, capacity] with whole numbers as ends")
        if any(capacity is None or isinstance(capacity, str) for capacity in arc[2:]):
            refuse(where, f"capacity {str(arc[2])[:60]!r} is not a number; write one, such as 2.5")
        builder.list_link(arc[0], arc[1], arc[2] if len(arc) == 3 else 1.0, k)
    builder.terminals = None if read.terminals is None else list(read.terminals)
    if read.labels is not None:
        if len(read.labels) != read.n:
            refuse(builder.what, f"{len(read.labels)} labels for {read.n} vertices; give one label per vertex")
        builder.labels = dict(enumerate(read.labels))


def _name(value: Any, where: str) -> Hashable:
    """Make a node id hashable; networkx writes tuples as lists."""
    if isinstance(value, list):
        return json.dumps(value)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        refuse(where, "the id of a node is no number, string or list; give it one")
    return value


def _attributes(item: dict[str, Any], where: str) -> dict[str, Any]:
    """Attributes of a node or edge: its own, and those that rustworkx keeps under ``data``."""
    inside = item.get("data")
    if not isinstance(inside, dict):
        return {key: value for key, value in item.items() if key != "data" or value is not None}
    own = {key: value for key, value in item.items() if key != "data"}
    twice = next((key for key in inside if key in own and str(own[key]) != str(inside[key])), None)
    if twice is not None:
        refuse(where, f"{twice[:40]!r} stands there and under 'data' with another value; keep one of them")
    return {**inside, **own}


def node_link(data: Mapping[str, Json], graph: ListedGraph) -> None:
    """Read nodes and links of node-link JSON, and the demands by pair that topohub keeps in ``graph``."""
    what = graph.what
    read = as_struct(dict(data), _NodeLink, what)
    demands: dict[str, dict[str, float]] = {}
    graph.place, graph.directed, graph.multigraph = "edge", read.directed, read.multigraph
    for about in (read.graph, read.attrs):
        if isinstance(about, dict):
            amounts = about.get("demands")
            graph.describe_graph({key: about[key] for key in about if key != "demands"})
            if amounts:
                demands = as_struct({"demands": amounts}, _Demands, what).demands
    for number, node in enumerate(read.nodes):
        where = f"{what}, node {number}"
        attributes = _attributes(node, where)
        if "id" not in attributes:
            refuse(where, "must have an 'id', which edges name (places in the list are not read)")
        graph.add_node(_name(attributes["id"], where), attributes)
    if read.links is not None and read.edges is not None:
        refuse(what, "it has 'links' and 'edges'; keep one of them")
    for number, edge in enumerate((read.edges if read.links is None else read.links) or ()):
        where = graph.where(number)
        attributes = _attributes(edge, where)
        if "source" not in attributes or "target" not in attributes:
            refuse(where, "lacks 'source' or 'target'; name both ends")
        tail, head = (_name(attributes.pop(end), where) for end in ("source", "target"))
        graph.list_link(tail, head, attributes, number)
    called = {str(name): graph.labels.get(name, str(name)) for name in graph.vertices()}
    for source, row in demands.items():
        for target, amount in row.items():
            if source not in called or target not in called:
                refuse(what, f"a demand from {source[:40]!r} to {target[:40]!r}, which are not both nodes; correct it")
            graph.demands[called[source], called[target]] += amount


def _check_square(rows: list[list[float]], key: str, what: str, n: int) -> None:
    """Refuse rows that are not n×n numbers with zero diagonal."""
    if len(rows) != n or any(len(row) != n for row in rows) or any(rows[i][i] for i in range(n)):
        refuse(what, f"{key!r} must be a list of {n} rows of {n} numbers, 0 on the diagonal; {key}[dst][src]")


def _msccl(data: Any, builder: ListedGraph) -> None:
    what = builder.what
    if not isinstance(data, dict) or data.get("msccl_type") != "topology":
        refuse(what, "contains no msccl topology; write {'msccl_type': 'topology', 'links': ...}")
    read = as_struct(data, _Msccl, what)
    links, n = read.links, len(read.links)
    _check_square(links, "links", what, n)
    builder.place = "link"
    builder.number_vertices(n, 0)
    behind: dict[tuple[int, int], str] = {}
    before: dict[tuple[int, int], str] = {}
    for k, (sources, targets, bandwidth, name) in enumerate(read.switches or ()):
        where = f"{what}, switch {k}"
        if max([*sources, *targets], default=0) >= n:
            refuse(where, f"a rank is not 0..{n - 1}; correct it, or the number of rows of 'links'")
        if 1 not in (len(sources), len(targets)):
            msg = f"{where}: it limits the links between several sources and several destinations together, which "
            raise BadFile(msg + "capacities cannot express; give one switch per source or per destination")
        relay = f"{name[:60]} ({k})"
        side = behind if len(sources) == 1 else before
        pairs = [(u, v) for u in sources for v in targets if u != v and links[v][u]]
        if any(pair in side for pair in pairs):
            refuse(where, "a link belongs to two switches on one side, which capacities cannot express; name it in one")
        side.update(dict.fromkeys(pairs, relay))
        if pairs:
            builder.add_vertex(relay, relay=True)
            tail, head = (sources[0], relay) if side is behind else (relay, targets[0])
            builder.list_link(tail, head, bandwidth, f"switch {k}")
    for v, row in enumerate(links):
        for u, capacity in enumerate(row):
            if capacity:
                builder.list_link(behind.get((u, v), u), before.get((u, v), v), capacity, v)


def _taccl(data: dict[str, Any], builder: ListedGraph) -> None:
    read = as_struct(data, _Taccl, builder.what)
    builder.place, builder.unit = "link", "GB/s"
    builder.number_vertices(read.gpus_per_node, 0)
    if read.links is not None:
        builder.options.refuse(builder.what, "the file has 'links'", "wiring")
        _taccl_links(builder, read.links, read.invbws, read.gpus_per_node)
    else:
        _taccl_wiring(builder, read, builder.options.wiring)


def _taccl_links(builder: ListedGraph, links: list[list[float]], slowness: list[list[float]], n: int) -> None:
    """Add the links that a file of TACCL lists, with their inverse bandwidths [us/MB]; both ``[dst][src]``."""
    _check_square(links, "links", builder.what, n)
    _check_square(slowness, "invbws", builder.what, n)
    for v, row in enumerate(links):
        for u, count in enumerate(row):
            if bool(count) != bool(slowness[v][u]):
                refuse(
                    builder.what,
                    f"links and invbws must be 0 for the same pairs, not only for {u}->{v}; correct one of them",
                )
            if count:
                builder.list_link(u, v, count * 1000.0 / slowness[v][u], v)


def _taccl_wiring(builder: ListedGraph, read: _Taccl, wiring: str | None) -> None:
    """Add the links of GPUs that are wired as in TACCL's code."""
    what, n, values = builder.what, read.gpus_per_node, read.node_invbws_list
    if wiring not in {"ndv2", "dgx2", "hub_and_spoke"}:
        msg = f"{what}: it has no 'links' (their wiring is in TACCL's code); write file:PATH,wiring=ndv2, dgx2 or "
        raise BadFile(msg + "hub_and_spoke")
    if len(values) != (2 if wiring == "ndv2" else 1) or n != {"ndv2": 8, "dgx2": 16}.get(wiring, n):
        refuse(what, f"{n} GPUs with {len(values)} invbws do not fit wiring={wiring}; choose another")
    if wiring == "ndv2":
        for pairs, slow in zip((_NDV2_DOUBLE, _NDV2_SINGLE), values, strict=True):
            for u, v in pairs:
                builder.list_link(u, v, 1000.0 / slow, u, directed=False)
        return
    builder.add_vertex("switch", relay=True)
    for v in range(n):
        builder.list_link(v, "switch", 1000.0 / values[0], v, directed=False)


def topology_document(topology: Topology) -> dict[str, Json]:
    """A topology in the opticoll format, which reads back exactly."""
    return {"format": FORMAT, "n": topology.n, **declarations(topology), "arcs": [*_arcs(topology)]}


def _arcs(topology: Topology) -> Iterator[Json]:
    for arc in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        yield list(arc)


def write_json(topology: Topology) -> str:
    """The text of :func:`topology_document`, a line for every arc."""
    head = json.dumps({**topology_document(topology), "arcs": []}).removesuffix("]}")
    arcs = ",\n  ".join(map(json.dumps, _arcs(topology)))
    return f"{head}\n  {arcs}]}}\n"
