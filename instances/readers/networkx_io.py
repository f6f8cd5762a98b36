"""GraphML, read without document types and entities.

Edges follow ``edgedefault`` or their own ``directed``; the edge attribute ``capacity`` (or its default) is
the capacity, 1 if absent; the node attributes ``label`` and ``terminal`` and the graph attribute ``loops``
(``keep``: self-loops are meant) are honoured. Other attributes are not read.

Topologies to networkx graphs and back.
"""

from __future__ import annotations

import io
import re
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.instances.digraph import Topology, check_size
from opticoll.instances.readers.draft import Draft, number_vertices, read_capacity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

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
        An undirected graph gives one arc each way for every edge; a directed one is taken as it is;
        parallel edges of multigraphs are kept.
    capacity
        Edge attribute with the capacity [link bandwidths]; an edge without it has capacity 1.
    spec
        Name to use in messages and in the result.
    loops
        ``refuse``, ``drop`` or ``keep`` edges from a node to itself.

    Nodes that are exactly the integers ``0 .. n-1`` keep their numbers; other nodes are numbered in the
    graph's order and become labels. Node attributes ``label`` and ``terminal`` are honoured.

    Raises
    ------
    BadInput
        For an empty graph, a loop where none is wanted, or a capacity that is no positive finite number.
    """
    if loops not in {"refuse", "drop", "keep"}:
        msg = f"{spec}: loops={loops!r} is unknown; write refuse, drop or keep"
        raise BadInput(msg)
    directed = graph.is_directed()
    check_size(graph.number_of_nodes(), graph.number_of_edges() * (1 if directed else 2), spec)
    nodes: Sequence[Hashable] = list(graph.nodes)
    numbers, labels = number_vertices(nodes)
    tail, head, caps = [], [], []
    for u, v, data in graph.edges(data=True):
        if u == v and loops != "keep":
            if loops == "drop":
                continue
            msg = f"{spec}: edge {u!r}-{v!r} is a loop and carries no flow; remove it, or ask for loops='keep'"
            raise BadInput(msg)
        c = _number(data.get(capacity, 1.0), f"{spec}: edge {u!r}-{v!r}")
        tail.append(numbers[u])
        head.append(numbers[v])
        caps.append(c)
        if not directed and u != v:
            tail.append(numbers[v])
            head.append(numbers[u])
            caps.append(c)
    terminals = [numbers[v] for v, data in graph.nodes(data=True) if data.get("terminal", True)]
    names = list(labels)
    for v, data in graph.nodes(data=True):
        if "label" in data:
            names[numbers[v]] = str(data["label"])
    return Topology(
        len(nodes),
        np.array(tail, dtype=np.int64),
        np.array(head, dtype=np.int64),
        np.array(caps, dtype=np.float64),
        spec=spec,
        terminals=terminals,
        labels=tuple(names),
    )


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"{where} has capacity {value!r}; write a positive number"
        raise BadInput(msg)
    return float(value)


_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_READ = {"edge": {"capacity"}, "node": {"label", "terminal"}, "graph": {"loops"}}


def read_graphml(data: bytes, what: str) -> Topology:
    """Read a GraphML document with one graph.

    Raises
    ------
    BadFile
        For malformed XML, a document type or entities, hyperedges, nested graphs, bad capacities.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    draft = Draft(what, "edge")
    reader = _Reader(draft)
    depth = 0
    try:
        for event, element in iterparse(io.BytesIO(data), events=("start", "end"), forbid_dtd=True):
            depth += 1 if event == "start" else -1
            if depth > 20:
                msg = f"{what}: elements are nested more than 20 deep; GraphML of a flat graph is expected"
                raise BadFile(msg)
            (reader.start if event == "start" else reader.end)(element)
    except DefusedXmlException:
        msg = f"{what}: document types and entities are not accepted; remove the <!DOCTYPE> declaration"
        raise BadFile(msg) from None
    except (ParseError, LookupError, ValueError) as error:
        if isinstance(error, BadFile):
            raise
        msg = f"{what}: not well-formed XML ({' '.join(str(error).split())}); write GraphML"
        raise BadFile(msg) from None
    if not reader.graphs:
        msg = f"{what}: no <graph> in it; write GraphML"
        raise BadFile(msg)
    if reader.terminals_marked:
        draft.terminals = reader.terminals
    return draft.build()


class _Reader:
    """Collect keys, nodes and edges as their elements close."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.graphs = 0
        self.edges = 0
        self.directed = True
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[tuple[str, str], str] = {}
        self.terminals: list[Any] = []
        self.terminals_marked = False
        self.parent: list[Any] = []

    def start(self, element: Any) -> None:
        tag = _tag(element)
        self.parent.append(element)
        if tag == "graph":
            self.graphs += 1
            if self.graphs > 1:
                msg = f"{self.draft.what}: more than one graph; write one graph a file"
                raise BadFile(msg)
            default = element.get("edgedefault", "directed")
            if default not in {"directed", "undirected"}:
                msg = f"{self.draft.what}: edgedefault {default[:60]!r} must be directed or undirected"
                raise BadFile(msg)
            self.directed = default == "directed"
        elif tag == "hyperedge":
            msg = f"{self.draft.what}: hyperedges are not accepted; write edges"
            raise BadFile(msg)

    def end(self, element: Any) -> None:
        self.parent.pop()
        tag = _tag(element)
        if tag == "key":
            name = (element.get("for", "all"), element.get("attr.name", element.get("id", "")))
            self.keys[element.get("id", "")] = name
            for child in element:
                if _tag(child) == "default":
                    self.defaults[name] = (child.text or "").strip()
        elif tag == "node":
            self._node(element)
        elif tag == "edge":
            self._edge(element)
        elif tag == "graph" and self._data(element, "graph").get("loops") == "keep":
            self.draft.keep_loops = True
        if tag in {"node", "edge"}:
            element.clear()
            if self.parent:
                self.parent[-1].remove(element)

    def _data(self, element: Any, kind: str) -> dict[str, str]:
        values = {name: text for (of, name), text in self.defaults.items() if of in {kind, "all"}}
        for child in element:
            if _tag(child) == "data":
                of, name = self.keys.get(child.get("key", ""), ("all", child.get("key", "")))
                if of in {kind, "all"} and name in _READ[kind]:
                    values[name] = child.text or ""
        return values

    def _node(self, element: Any) -> None:
        name = element.get("id")
        if name is None or self.draft.has_vertex(name):
            msg = f"{self.draft.what}: a node has no id, or id {name!r:.60} twice; give every node its own"
            raise BadFile(msg)
        self.draft.add_vertex(name)
        data = self._data(element, "node")
        if "label" in data:
            self.draft.labels[name] = data["label"]
        terminal = data.get("terminal", "true").strip().lower()
        if terminal not in {"true", "false", "1", "0"}:
            msg = f"{self.draft.what}: node {name[:60]!r} has terminal {terminal[:60]!r}; write true or false"
            raise BadFile(msg)
        if terminal in {"true", "1"}:
            self.terminals.append(name)
        else:
            self.terminals_marked = True

    def _edge(self, element: Any) -> None:
        self.edges += 1
        tail, head = element.get("source"), element.get("target")
        where = self.draft.where(self.edges)
        if tail is None or head is None:
            msg = f"{where}: source or target is missing; name both nodes"
            raise BadFile(msg)
        where += f" ({tail[:40]!r}->{head[:40]!r})"
        directed = {"true": True, "false": False}.get(element.get("directed", ""), self.directed)
        capacity = read_capacity(self._data(element, "edge").get("capacity", "1"), where)
        self.draft.add_link(tail, head, capacity, self.edges, directed=directed)


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def write_graphml(topology: Topology) -> Iterator[str]:
    """Write GraphML that reads back exactly, line by line.

    Raises
    ------
    BadFile
        If a label holds a character that XML cannot.
    """
    yield "<?xml version='1.0' encoding='utf-8'?>\n"
    yield f'<graphml xmlns="{_NAMESPACE}">\n'
    for kind, name, form in (
        ("edge", "capacity", "double"),
        ("node", "label", "string"),
        ("node", "terminal", "boolean"),
        ("graph", "loops", "string"),
    ):
        yield f'  <key id="{name}" for="{kind}" attr.name="{name}" attr.type="{form}"/>\n'
    yield '  <graph edgedefault="directed">\n'
    if (topology.tail == topology.head).any():
        yield '    <data key="loops">keep</data>\n'
    terminals = set(topology.terminals.tolist())
    for v, label in enumerate(topology.labels):
        if re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", label):
            msg = f"write {topology.spec}: label {label[:60]!r} does not fit into XML; write JSON instead"
            raise BadFile(msg)
        text = escape(label, quote=False).replace("\r", "&#13;")
        yield f'    <node id="{v}"><data key="label">{text}</data>'
        yield f'<data key="terminal">{"true" if v in terminals else "false"}</data></node>\n'
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    for u, v, c in arcs:
        yield f'    <edge source="{u}" target="{v}"><data key="capacity">{c!r}</data></edge>\n'
    yield "  </graph>\n</graphml>\n"
