"""Topologies to and from networkx graphs and GraphML.

Attributes: ``capacity`` of edges [link bandwidths], ``label`` and ``terminal`` of nodes, and ``loops`` of the graph
(``keep`` accepts self-loops). An undirected edge is an arc each way. Other attributes are ignored.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from opticoll.errors import BadFile, BadInput
from opticoll.instances.readers.draft import Draft

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    import networkx as nx

    from opticoll.instances.digraph import Topology


def to_networkx(topology: Topology) -> nx.MultiDiGraph:
    """Turn a topology into a directed multigraph.

    Nodes are the vertex numbers, with attributes ``label`` and ``terminal``; arc ``a`` is an edge with
    attributes ``capacity`` [link bandwidths] and ``arc`` (its number); the graph carries ``spec``.
    """
    import networkx as nx

    graph: nx.MultiDiGraph = nx.MultiDiGraph(spec=topology.spec)
    terminals = set(topology.terminals.tolist())
    for v, label in enumerate(topology.labels):
        graph.add_node(v, label=label, terminal=v in terminals)
    ends = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    graph.add_edges_from((u, v, {"capacity": c, "arc": a}) for a, (u, v, c) in enumerate(ends))
    return graph


def from_networkx(
    graph: nx.Graph, *, capacity: str = "capacity", spec: str = "networkx", loops: str = "refuse"
) -> Topology:
    """Read a topology from any networkx graph.

    Parameters
    ----------
    graph
        An undirected graph gives one arc each way for every edge; parallel edges of multigraphs are kept.
    capacity
        Edge attribute with the capacity [link bandwidths]; an edge without it has capacity 1.
    spec
        Spec of the result, also used in messages.
    loops
        ``refuse``, ``drop`` or ``keep`` edges from a node to itself.

    Nodes that are exactly the integers ``0 .. n-1`` keep their numbers; other nodes are numbered in the graph's order
    and become labels, unless they have the attribute ``label``.

    Raises
    ------
    BadInput
        For an empty graph, a loop unless dropped or kept, a capacity that is not a positive finite number, or more
        vertices or arcs than a topology may have.
    """
    if loops not in {"refuse", "drop", "keep"}:
        msg = f"{spec}: loops={loops!r} is unknown; write refuse, drop or keep"
        raise BadInput(msg)
    draft = Draft(spec, "edge")
    draft.keep_loops = loops == "keep"
    for name, attributes in graph.nodes(data=True):
        draft.add_node(name, attributes)
    for number, (u, v, attributes) in enumerate(graph.edges(data=True)):
        if u != v or loops != "drop":
            draft.add_edge(u, v, attributes.get(capacity, 1.0), number, directed=graph.is_directed())
    return draft.build()


def read_graphml(data: bytes, what: str) -> Topology:
    """Read a GraphML document with one graph.

    Edges follow ``edgedefault`` or their own ``directed``. The document is checked here and not read by networkx, which
    merges edges of one id, creates missing nodes, reads only the first graph and refuses edges of both kinds.

    Raises
    ------
    BadFile
        For malformed XML, a document type or entities, hyperedges, nested graphs, bad capacities.
    """
    root = _parsed(data, what)
    draft = Draft(what, "edge")
    graphs = root.findall(".//{*}graph")
    if len(graphs) != 1:
        msg = f"{what}: {'no <graph> in it' if not graphs else 'more than one graph'}; write GraphML with one graph"
        raise BadFile(msg)
    if root.find(".//{*}hyperedge") is not None:
        msg = f"{what}: hyperedges are not supported; write edges"
        raise BadFile(msg)
    graph = graphs[0]
    default = graph.get("edgedefault", "directed")
    if default not in {"directed", "undirected"}:
        msg = f"{what}: edgedefault {default[:60]!r} must be directed or undirected"
        raise BadFile(msg)
    names: dict[str | None, str] = {}
    defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}, "graph": {}}
    for key in root.findall(".//{*}key"):
        name = names[key.get("id")] = key.get("attr.name", key.get("id", ""))
        for kind in defaults:
            if key.get("for", "all") in {kind, "all"} and (text := key.findtext("{*}default")) is not None:
                defaults[kind][name] = text

    def attributes(element: Element, kind: str) -> dict[str, str]:
        given = {
            names.get(item.get("key"), item.get("key", "")): item.text or "" for item in element.findall("{*}data")
        }
        return {**defaults[kind], **given}

    draft.keep_loops = attributes(graph, "graph").get("loops") == "keep"
    for node in graph.findall("{*}node"):
        draft.add_node(node.get("id"), attributes(node, "node"))
    for number, edge in enumerate(graph.findall("{*}edge"), start=1):
        directed = {"true": True, "false": False}.get(edge.get("directed", ""), default == "directed")
        capacity = attributes(edge, "edge").get("capacity", "1")
        draft.add_edge(edge.get("source"), edge.get("target"), capacity, number, directed=directed)
    return draft.build()


def _parsed(data: bytes, what: str) -> Element:
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DefusedXmlException:
        msg = f"{what}: document types and entities are not accepted; remove the <!DOCTYPE> declaration"
        raise BadFile(msg) from None
    except (ParseError, LookupError, ValueError) as error:
        msg = f"{what}: not well-formed XML ({' '.join(str(error).split())}); write GraphML"
        raise BadFile(msg) from None
    return root


def write_graphml(topology: Topology) -> bytes:
    """GraphML that reads back exactly.

    Raises
    ------
    BadFile
        If a label holds a character that XML cannot represent exactly.
    """
    import networkx as nx

    for label in topology.labels:
        if re.search("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", label):
            msg = f"write {topology.spec}: label {label[:60]!r} cannot be represented in XML; write JSON instead"
            raise BadFile(msg)
    graph = to_networkx(topology)
    if (topology.tail == topology.head).any():
        graph.graph["loops"] = "keep"
    document = io.BytesIO()
    nx.write_graphml_xml(graph, document)
    return document.getvalue()
