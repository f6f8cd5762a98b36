"""Topologies from objects in memory: networkx graphs, capacity matrices, DataFrames and lists of edges.

Names of nodes become labels; names that are exactly 0 .. n-1 keep their numbers, others are numbered in the order in
which they appear. Capacities are read under a known name (``capacity``, ``cap``, ``bandwidth``, ``bw``, ...) or the one
that is given, as numbers or rates (``"400Gb/s"``); numbers under other names are refused, never ignored. The spec
of the result is ``custom:HASH``: it identifies the contents and cannot be parsed;
:func:`opticoll.instances.readers.files.save_topology` saves them.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import refuse_masked
from opticoll.errors import BadInput, refuse
from opticoll.instances.topology import Instance, Topology

if TYPE_CHECKING:  # a spec needs no reader
    from opticoll.instances.readers.listed_graph import ListedGraph
    from opticoll.instances.readers.ranks import Vertices
    from opticoll.instances.readers.read_options import ReadOptions
    from opticoll.types import Rate

#: Name of an object in messages.
WHAT = "topology"


def as_instance(obj: object) -> Instance:
    """Return an instance, parse a spec, or convert an object to a topology as :func:`topology` does.

    Raises
    ------
    BadInput
        For a spec or an object that cannot be read.
    """
    if isinstance(obj, str):
        from opticoll.instances.spec import parse

        obj = parse(obj)
    return obj if isinstance(obj, Instance) else topology(obj)


def _changed(topology: Topology, options: ReadOptions, unit: Rate | None) -> Topology:
    """Copy a topology with other ranks or another unit of capacity."""
    if options.capacity is not None:
        remedy = "use the modifier +scale= or topology.scaled"
        refuse(topology.spec, f"capacity= is for graphs and tables of edges; {remedy}")
    same_ranks = options.ranks is None and options.switches is None
    if same_ranks and unit is None:
        return topology
    if type(topology) is not Topology:
        refuse(topology.spec, "ranks=, switches= and unit= are for plain topologies; omit them")
    from opticoll.instances.readers.ranks import chosen

    texts = [(label, label) for label in topology.labels]
    named = {"spec": topology.spec, "parameters": topology.parameters} if same_ranks else {}
    return topology.with_changes(
        terminals=topology.terminals if same_ranks else chosen(texts, options.ranks, options.switches, WHAT),
        capacity_unit=unit or topology.capacity_unit,
        places=topology.places,
        notes=topology.notes,
        **named,
    )


def topology(
    obj: object,
    *,
    capacity: str | float | None = None,
    ranks: Vertices | None = None,
    unit: Rate | None = None,
    directed: bool | None = None,
    loops: str = "refuse",
    name: str | None = None,
    switches: Vertices | None = None,
) -> Topology:
    """Make a topology from a graph, a matrix or a table of edges.

    Parameters
    ----------
    obj
        A spec such as ``"torus:4x4"``; a ``pathlib.Path`` of a file (:mod:`opticoll.instances.readers.files`; its
        other options are those of the spec ``file:PATH``); a networkx graph of any kind; an n×n matrix of capacities
        (array, SciPy sparse matrix, or DataFrame with equal labels of rows and columns; 0 where there is no arc); a
        DataFrame with columns ``src`` and ``dst``; a list of tuples (u, v), (u, v, capacity) or (u, v,
        {attribute: value}); or a dict {(u, v): capacity}, or such a Series.
    capacity
        Name of the edge attribute or column with the capacity, or a number, the capacity of every edge. By default an
        attribute ``capacity``, ``cap``, ``bandwidth`` or ``bw``; 1 if edges have no numbers at all.
    ranks
        Vertices that send and receive, as a list or as a pattern such as ``"gpu*"``; the others are switches. By
        default all, except nodes of a graph with the attribute ``terminal=False``. If some seem to be switches, by
        their names or since all others are linked to them alone, one of ``ranks`` and ``switches`` is needed.
    unit
        Unit of the capacities, such as ``"Gb/s"``.
    directed
        For files, tables and lists: False to read every edge both ways (default: arcs as written, or as the file
        specifies). Graphs have a direction of their own.
    loops
        ``refuse``, ``drop`` or ``keep`` edges from a node to itself.
    name
        What results and plots call it, ``custom:NAME``; by default a digest.
    switches
        Vertices that only forward, in the form of ``ranks``, instead of these.

    Raises
    ------
    BadInput
        With a one-line message, for unsupported objects, edges without a capacity when others have one, numbers under
        an unknown name, unknown ranks, capacities that are not positive and finite, or a name with other characters
        than letters, digits, spaces and ``._-``.
    """
    from opticoll.instances.readers.read_options import ReadOptions

    if name is not None and (not isinstance(name, str) or not re.fullmatch(r"[\w. -]{1,60}", name)):
        refuse(WHAT, f"name={name!r} must consist of letters, digits, spaces, '.', '_' and '-'")
    if loops not in ("refuse", "drop", "keep"):  # a list cannot be hashed
        refuse(WHAT, f"loops={loops!r} is unknown; write refuse, drop or keep")
    if unit is not None and not isinstance(unit, str):
        refuse(WHAT, f"unit={unit!r} must be a rate, such as 'Gb/s' or '100Gb/s'")
    if isinstance(obj, str):
        from opticoll.instances.spec import parse

        spec, obj = obj, parse(obj)
        if not isinstance(obj, Topology):
            refuse(WHAT, f"{spec} has no links; it is an instance of its own, which oc.solve takes as it is")
    if isinstance(obj, Path):
        from opticoll.instances.readers.files import read_topology

        everything = None if ranks is switches is None else "*"
        kept = None if loops == "refuse" else loops
        obj = read_topology(obj, ReadOptions(capacity, directed, ranks=everything, loops=kept))
        capacity = directed = None
    options = ReadOptions(capacity=capacity, ranks=ranks, switches=switches)
    if isinstance(obj, Topology):
        if directed is not None:
            refuse(WHAT, f"directed= is for files, tables and lists of edges; omit it for {obj.spec}")
        made = _changed(obj, options, unit)
    else:
        made = _linked(obj, options, unit, directed, loops)
    return made if name is None else made.renamed(f"custom:{name}")


def _linked(obj: object, options: ReadOptions, unit: Rate | None, directed: bool | None, loops: str) -> Topology:
    """The topology of a graph, a matrix or a table of edges."""
    from opticoll.instances.readers.listed_graph import ListedGraph

    builder = ListedGraph(WHAT, options, place="edge")
    builder.ask_ranks = "give oc.topology ranks=[...] or switches=[...], as lists or patterns (ranks='*' for all)"
    builder.ask_arcs = "give edges, such as [('a', 'b', 1)]"
    builder.ask_loops = 'give oc.topology loops="drop" or loops="keep"'
    builder.ask_direction = "give a directed graph, or omit that attribute"
    builder.keep_loops = loops == "keep"
    builder.ask_capacity = 'give oc.topology capacity="{name}", or capacity=1 for equal links'
    builder.unit = unit
    edges, builder.directed = _edges(obj, builder, options.capacity, directed)
    if directed is False:
        builder.options = replace(options, directed=False)  # no link both ways
    for k, (u, v, attributes) in enumerate(edges):
        if u == v and loops == "drop":
            continue
        try:
            builder.add_vertex(u)
            builder.add_vertex(v)
        except TypeError:
            msg = f"{WHAT}, edge {k}: {str((u, v))[:60]}: name vertices by strings, numbers or tuples"
            raise BadInput(msg) from None
        builder.list_link(u, v, attributes, k)
    builder.spec = None
    return builder.build()


def _edges(
    obj: object, builder: ListedGraph, capacity: str | float | None, directed: bool | None
) -> tuple[list[Edge], bool]:
    """The edges of a graph, a matrix or a table, and whether they are arcs, as they are by default."""
    own: bool | None
    if hasattr(obj, "nodes") and hasattr(obj, "edges"):
        edges, own = _graph(obj, builder)
    elif (entries := _matrix(obj, builder, capacity)) is not None:
        edges, own = entries, True
    else:
        edges, own = _table(obj), None
    if directed is not None and own not in (None, directed):
        kind = "directed" if own else "undirected"
        refuse(WHAT, f"the graph or matrix is {kind}; omit directed=, or convert it")
    return edges, (own if directed is None else directed) in (None, True)


Edge = tuple[Hashable, Hashable, Mapping[str, object]]


def _graph(graph: Any, builder: ListedGraph) -> tuple[list[Edge], bool | None]:
    try:
        nodes, links = list(graph.nodes(data=True)), list(graph.edges(data=True))
        edges: list[Edge] = [(u, v, {str(key): value for key, value in data.items()}) for u, v, data in links]
        directed: bool = graph.is_directed()
    except (TypeError, AttributeError, ValueError) as error:  # graphs of other packages
        kind = f"{type(graph).__module__.partition('.')[0]}.{type(graph).__name__}"
        msg = (
            f"{WHAT}: cannot be read from {kind}, which is no networkx graph; give a list of its links (u, v, capacity)"
        )
        raise BadInput(msg) from error
    for name, attributes in nodes:
        builder.add_node(name, {str(key): value for key, value in attributes.items()})
    return edges, directed


def _matrix(obj: object, builder: ListedGraph, capacity: str | float | None) -> list[Edge] | None:
    """The entries of a matrix of capacities that are not 0; None if the object is no matrix."""
    import scipy.sparse as sp

    names: list[str] | None = None
    if hasattr(obj, "columns") and hasattr(obj, "index"):
        names = [str(name) for name in obj.columns]
        if sorted(names) != sorted(str(name) for name in obj.index) or len(set(names)) < len(names):
            return None
        obj = obj.loc[obj.columns].to_numpy()  # type: ignore[attr-defined]
    elif not (sp.issparse(obj) or isinstance(obj, np.ndarray)):
        rows = list(obj) if isinstance(obj, list) else []
        if not rows or not all(isinstance(row, list) for row in rows):
            return None
    refuse_masked(obj, WHAT)
    try:
        entries: Any = obj
        if np.iscomplexobj(entries):
            raise TypeError
        coo = sp.coo_array(entries if sp.issparse(entries) else np.array(entries, dtype=float))
    except (TypeError, ValueError, OverflowError):
        msg = f"{WHAT}: the entries of a matrix of capacities must be numbers"
        raise BadInput(msg) from None
    if len(coo.shape) != 2 or coo.shape[0] != coo.shape[1]:
        refuse(WHAT, f"a matrix of shape {coo.shape} is not square; give n×n capacities, or edges as a list of tuples")
    if capacity is not None:
        refuse(WHAT, "the entries of a matrix are its capacities; omit capacity=")
    coo.sum_duplicates()
    vertices: Sequence[Hashable] = names or range(coo.shape[0])
    for name in vertices:
        builder.add_vertex(name)
    ends = zip(*(side.tolist() for side in coo.coords), coo.data.tolist(), strict=True)
    return [(vertices[i], vertices[j], {"capacity": float(value)}) for i, j, value in ends if value != 0]


def _data_frame(frame: Any) -> list[Edge]:
    """Read the edges of a DataFrame; refuse one without columns for both ends, or with an end missing."""
    from opticoll.instances.readers.tables import end_columns

    names = [str(name) for name in frame.columns]
    ends = end_columns(names, WHAT)
    if ends is None:
        remedy = "call them src and dst, or give a matrix the same labels for rows and columns"
        refuse(WHAT, f"the columns {', '.join(names[:8])} do not name both ends of an edge; {remedy}")
    for column in ends:
        if (empty := frame.iloc[:, column].isna().to_numpy()).any():
            where = f"{WHAT}, edge {int(empty.argmax())}"
            refuse(where, f"the column {names[column]!r} has no value; name both ends of every edge")
    rest = [i for i in range(len(names)) if i not in ends]
    source, target = ends
    return [
        (row[source], row[target], {names[i]: row[i] for i in rest}) for row in frame.itertuples(index=False, name=None)
    ]


def _pairs(items: list[tuple[Any, object]]) -> list[tuple[Any, ...]]:
    """Tuples of a dict or Series of capacities, or of attributes, by pair of vertices."""
    for key, _ in items:
        if not isinstance(key, tuple) or len(key) != 2:
            remedy = "a dict maps (u, v) to capacities; nx.DiGraph reads other dicts"
            refuse(WHAT, f"{str(key)[:60]!r} is no pair; {remedy}")
    return [(*pair, value) for pair, value in items]


def _table(obj: object) -> list[Edge]:
    """Read the edges of a DataFrame or a list of tuples."""
    if hasattr(obj, "columns") and hasattr(obj, "itertuples"):
        return _data_frame(obj)
    if not isinstance(obj, Iterable):
        known = (
            "an n×n matrix of capacities, a DataFrame with columns src and dst, or a list of tuples (u, v, capacity)"
        )
        refuse(WHAT, f"cannot be read from type {type(obj).__name__}; give a networkx graph, {known}")
    if hasattr(obj, "items"):
        obj = _pairs(list(obj.items()))
    edges: list[Edge] = []
    for k, item in enumerate(obj):
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            refuse(f"{WHAT}, edge {k}", f"{str(item)[:60]!r} is no link; write a tuple (u, v) or (u, v, capacity)")
        if any(end is None or (isinstance(end, float) and end != end) for end in item[:2]):
            refuse(f"{WHAT}, edge {k}", f"{str(item)[:60]!r} lacks an end; name both ends of every edge")
        attributes = {} if len(item) == 2 else item[2] if isinstance(item[2], Mapping) else {"capacity": item[2]}
        edges.append((item[0], item[1], attributes))
    return edges
