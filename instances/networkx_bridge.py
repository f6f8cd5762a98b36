"""Topologies to networkx graphs and back."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.draft import number_vertices
from instances.errors import BadInput
from instances.topology import Topology, check_size

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import networkx as nx


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
