"""Graph files: GraphML, GEXF, GML, SNDlib and matrices of capacities; topologies as networkx graphs.

Attributes of GraphML, GEXF and GML: ``capacity`` of edges [link bandwidths] (or another known name, or a rate as text,
see :class:`opticoll.instances.readers.listed_graph.ListedGraph`), ``label`` or ``name`` and ``terminal`` of nodes, and
``loops`` of the graph (``keep`` accepts self-loops). The drawings of yEd give names and labels. An undirected edge is
an arc each way. Other attributes are ignored.

SNDlib (Orlowski et al., Networks 55(3), 2010; sndlib.zib.de): network files, native and XML. A link is an arc each way
of its pre-installed capacity, which is SNDlib's link model BIDIRECTED; the model itself is in a separate file. Demands
are routing unit times value; several demands of a pair are added.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.reading import decode, line_of, parse_xml, parses_as_float, refuse
from opticoll.instances.readers.tables import lines_of, rows_of, square

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    import networkx as nx

    from opticoll.instances.topology import F64, Topology


def to_networkx(topology: Topology) -> nx.MultiDiGraph[int]:
    """Turn a topology into a directed multigraph.

    Nodes are the vertex numbers, with attributes ``label`` and ``terminal``; arc ``a`` is an edge with
    attributes ``capacity`` [link bandwidths] and ``arc`` (its number); the graph carries ``spec``.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(spec=topology.spec)
    if topology.capacity_unit is not None:
        graph.graph["unit"] = topology.capacity_unit
    terminals = set(topology.terminals.tolist())
    for v, label in enumerate(topology.labels):
        graph.add_node(v, label=label, terminal=v in terminals)
    ends = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    graph.add_edges_from((u, v, {"capacity": c, "arc": a}) for a, (u, v, c) in enumerate(ends))
    return graph


def read_graphml(data: bytes, listed: ListedGraph) -> None:
    """Read a GraphML document with one graph.

    Edges follow ``edgedefault`` or their own ``directed``. The document is not read by networkx, which
    merges edges with the same id, creates missing nodes, reads only the first graph and refuses edges of both kinds.
    """
    what = listed.what
    root = parse_xml(data, what, "write GraphML")
    graph = _one_graph(root, what, "GraphML")
    default = graph.get("edgedefault", "directed")
    if default not in {"directed", "undirected"}:
        refuse(what, f"edgedefault {default[:60]!r}; write directed or undirected")
    listed.place, listed.directed = "edge", default == "directed"
    keys = _Keys(what)
    for key in root.iter("key"):
        about = key.attrib
        for kind in ("node", "edge", "graph"):
            if about.get("for", "all") in {kind, "all"}:
                keys.declare(kind, about.get("id"), about.get("attr.name"), key.findtext("default"))

    def attributes(element: Element, kind: str) -> dict[str, str]:
        items = element.findall("data")
        given = keys.of(element, kind, [(item.get("key", ""), item.text or "") for item in items])
        drawn = next(((one.text or "").strip() for item in items for one in item.iter(f"{kind.title()}Label")), "")
        return {"label": drawn, **given} if drawn else given

    listed.describe_graph(attributes(graph, "graph"))
    for node in graph.findall("node"):
        listed.add_node(node.get("id"), attributes(node, "node"))
    for number, edge in enumerate(graph.findall("edge"), start=1):
        stated = edge.get("directed")
        if stated not in {"true", "false", None}:
            refuse(listed.where(number), f"directed {str(stated)[:20]!r}; write true or false")
        own = None if stated is None else stated == "true"
        listed.list_link(edge.get("source"), edge.get("target"), attributes(edge, "edge"), number, own)


def _one_graph(root: Element, what: str, name: str) -> Element:
    graphs = list(root.iter("graph"))
    if len(graphs) != 1:
        refuse(what, f"{'no <graph>' if not graphs else 'more than one graph'}; write {name} with one graph")
    if next(root.iter("hyperedge"), None) is not None:
        refuse(what, "hyperedges are not supported; write edges")
    return graphs[0]


class _Keys:
    """Names and defaults of the attributes that GraphML and GEXF declare for nodes, edges and the graph."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.names: dict[tuple[str, str | None], str] = {}
        self.defaults: dict[str, dict[str, str]] = {}

    def declare(self, kind: str, key: str | None, name: str | None, default: str | None) -> None:
        """Declare an attribute."""
        self.names[kind, key] = name = (key or "") if name is None else name
        if default is not None:
            self.defaults.setdefault(kind, {})[name] = default

    def of(self, element: Element, kind: str, items: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Attributes of an element, by name, given the items of its data."""
        given = {self.names.get((kind, key), key): text for key, text in items}
        if len(given) < len(items):
            name = "->".join(element.attrib[key] for key in ("id", "source", "target") if key in element.attrib)
            refuse(self.what, f"{kind} {name[:80]} has several values of one attribute; write each attribute once")
        return {**self.defaults.get(kind, {}), **given}


def read_gexf(data: bytes, listed: ListedGraph) -> None:
    """Read a GEXF document with one graph that does not change in time.

    Edges follow ``defaultedgetype`` (undirected if absent) or their own ``type``; a mutual one is an arc each way. The
    attribute ``weight`` of an edge, 1 where others have one, is no capacity unless ``capacity=weight`` says so.
    """
    what = listed.what
    root = parse_xml(data, what, "write GEXF")
    graph = _one_graph(root, what, "GEXF")
    default = graph.get("defaultedgetype", "undirected")
    listed.directed, keys = default == "directed", _Keys(what)
    if graph.get("mode") == "dynamic" or len(graph.findall("nodes/node")) < len(list(graph.iter("node"))):
        refuse(what, "the graph changes in time, or has nodes within nodes; export one static graph without groups")
    for declared in graph.findall("attributes"):
        for one in declared.findall("attribute"):
            keys.declare(declared.get("class", ""), one.get("id"), one.get("title"), one.findtext("default"))

    edges = graph.findall("edges/edge")
    implied = {"weight": "1.0"} if any("weight" in edge.attrib for edge in edges) else {}

    def attributes(element: Element, kind: str) -> dict[str, str]:
        values = element.findall("attvalues/attvalue")
        items = [(one.get("for", one.get("id", "")), one.get("value", "")) for one in values]
        own: dict[str, str] = {key: element.attrib[key] for key in ("label", "weight") if key in element.attrib}
        return {**(implied if kind == "edge" else {}), **own, **keys.of(element, kind, items)}

    for node in graph.findall("nodes/node"):
        place = node.find("position")
        drawn = {} if place is None else {axis: place.get(axis, "") for axis in "xy"}
        listed.add_node(node.get("id"), {**drawn, **attributes(node, "node")}, line_of(node))
    for edge in edges:
        kind = edge.get("type", default)
        if kind not in {"directed", "undirected", "mutual"}:
            refuse(listed.where(line_of(edge)), f"type {kind[:20]!r}; write directed, undirected or mutual")
        given = attributes(edge, "edge")
        listed.list_link(edge.get("source"), edge.get("target"), given, line_of(edge), kind == "directed")


def write_graphml(topology: Topology) -> bytes:
    """Return GraphML that reads back exactly."""
    import networkx as nx

    for label in topology.labels:
        if re.search("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", label):
            refuse(f"write {topology.spec}", f"label {label[:60]!r} cannot be represented in XML; write JSON instead")
    graph = to_networkx(topology)
    if (topology.tail == topology.head).any():
        graph.graph["loops"] = "keep"
    document = io.BytesIO()
    nx.write_graphml_xml(graph, document)
    data = document.getvalue()
    # networkx writes True and False, which are no booleans of XML; rustworkx refuses them.
    if key := re.search(rb'id="(\w+)" for="node" attr.name="terminal"', data):
        data = re.sub(b'(?<=<data key="' + key[1] + b'">)(True|False)', lambda found: found[0].lower(), data)
    return data


_GML = re.compile(
    r"(?P<skip>(?:\s|#[^\n]*)*)(?:(?P<key>[A-Za-z][A-Za-z0-9_]*)"
    r'|(?P<string>"[^"]*")|(?P<number>[-+]?(?:[0-9.][-+0-9.eE]*|INF))(?![A-Za-z_"])|(?P<bracket>[\[\]])|\Z)'
)
#: Values that some writers put for numbers, without quotes or a sign.
_NOT_FINITE = frozenset({"INF", "NAN"})
#: Maximum nesting depth of lists in GML.
_DEEPEST = 32
GmlList = list[tuple[str, object, int]]


def _gml(text: str, what: str) -> GmlList:
    """Parse a GML file into entries (key, value, line); a list is also a value."""
    top: GmlList = []
    open_lists, key, line, position = [top], "", 1, 0
    while position < len(text):
        token = _GML.match(text, position)
        if token is None:
            raise _not_gml(text, position, what, line)
        line += token["skip"].count("\n")
        kind, wrong = token.lastgroup, False
        if kind == "key" and key and token["key"] in _NOT_FINITE:
            kind = "number"
        if kind == "key":
            wrong, key = bool(key), token["key"]
        elif token["bracket"] == "]":
            wrong = bool(key) or len(open_lists) == 1
            del open_lists[-1:]
        elif kind == "bracket":
            inner: GmlList = []
            wrong = not key or len(open_lists) > _DEEPEST
            open_lists[-1].append((key, inner, line))
            open_lists.append(inner)
            key = ""
        elif kind in {"string", "number"}:
            value = html.unescape(token["string"][1:-1]) if kind == "string" else token["number"] or token["key"]
            wrong = not key or (kind == "number" and not parses_as_float(value))
            open_lists[-1].append((key, value, line))
            line += value.count("\n")
            key = ""
        if wrong:
            raise _not_gml(text, position, what, line)
        position = token.end()
    if key or len(open_lists) > 1:
        refuse(f"{what}, line {line}", "the file ends inside a list; close it with ]")
    return top


def _not_gml(text: str, position: int, what: str, line: int) -> BadFile:
    at = text[position : position + 200].strip().split("\n")[0][:30]
    return BadFile(f'{what}, line {line}: {at!r} is not GML; write keys with a number, a "string" or a [ list ]')


def _entries(entries: GmlList, what: str, line: int) -> dict[str, object]:
    """Return the attributes that are numbers or strings, each given once."""
    result: dict[str, object] = {}
    for key, value, at in entries:
        if isinstance(value, list):
            continue
        if key in result:
            refuse(f"{what}, line {at}", f"key {key[:60]!r} occurs twice; write it once")
        result[key] = value
    return result


def read_gml(text: str, listed: ListedGraph) -> None:
    """Read a GML file with one graph; edges are undirected unless it contains ``directed 1``.

    Vertices are named by their ``id``. The file is not read by networkx, which refuses parallel edges
    and duplicate labels, both common in the Topology Zoo.
    """
    what = listed.what
    graphs = [value for key, value, _ in _gml(text, what) if key == "graph" and isinstance(value, list)]
    if len(graphs) != 1:
        refuse(what, f"it contains {len(graphs)} graphs; write GML with one 'graph ['")
    about = _entries(graphs[0], what, 1)
    for key in ("directed", "multigraph"):
        if about.get(key, "0") not in {"0", "1"}:
            refuse(what, f"{key} {str(about[key])[:20]!r}; write 0 or 1")
    listed.directed = about.get("directed") == "1"
    listed.multigraph = about["multigraph"] == "1" if "multigraph" in about else None
    listed.describe_graph(about)
    for key, value, line in graphs[0]:
        if key not in {"node", "edge"}:
            continue
        entries = _entries(value, what, line) if isinstance(value, list) else {}
        needed = ("id",) if key == "node" else ("source", "target")
        if not all(name in entries for name in needed):
            refuse(f"{what}, line {line}", f"{key} without {' and '.join(needed)}; add the missing keys")
        ends = [str(entries.pop(name)) for name in needed]
        if key == "edge":
            listed.list_link(ends[0], ends[1], entries, line)
        else:
            listed.add_node(ends[0], entries, line)


#: How native SNDlib files begin; some in circulation lack the first line.
SNDLIB = r"\?SNDlib|(?:#[^\n]*\n|\s)*(?:META|NODES)\s*\("
_INSTALLED = "pre_installed_capacity"
#: Words of an SNDlib network by section, with their lines: a node; ends and capacities of a link, the pre-installed one
#: first; ends, routing unit and value of a demand.
SndWords = dict[str, list[tuple[int, list[str]]]]


def _amount(text: str, where: str, name: str) -> float:
    """Read a finite nonnegative number of an SNDlib file."""
    if not parses_as_float(text) or not 0 <= float(text) < float("inf"):
        refuse(where, f"{name} {text[:40]!r} is not a finite nonnegative number; write one")
    return float(text)


def _native_words(text: str, what: str) -> SndWords:
    """The words of a network in the native format, each line of which is an entry, or begins or ends a section."""
    found: SndWords = {"NODES": [], "LINKS": [], "DEMANDS": []}
    section, depth, begun = "", 0, set[str]()
    for number, line in lines_of(text):
        words, inside = re.sub("[()]", " ", line).split(), depth
        depth += line.count("(") - line.count(")")
        count, where = len(words), f"{what}, line {number}"
        if not inside and number == 1 and line.startswith("?SNDlib native format; type: network;"):
            continue
        if not inside:
            section = line.partition("(")[0].strip()
            fits = section in {*found, "META", "ADMISSIBLE_PATHS"} - begun and count == 1 and depth in {0, 1}
            begun.add(section)
        elif section in found and words:
            fits = {"NODES": count in {1, 3}, "DEMANDS": count == 6, "LINKS": count > 6 and count % 2 == 1}[section]
            fits &= depth == inside == 1
            kept = {"NODES": words[:1], "DEMANDS": words[1:5], "LINKS": [*words[1:4], *words[7::2]]}[section]
            found[section].append((number, kept))
        else:
            fits = depth >= 0
        if not fits:
            kind = f"section {section}" if inside else "an SNDlib network"
            refuse(where, f"{line[:60]!r} is not a line of {kind}; correct it")
    if depth or "NODES" not in begun:
        refuse(what, f"{f'section {section} is not closed' if depth else 'no section NODES'}; complete the file")
    return found


def _xml_words(root: Element, what: str) -> SndWords:
    """The same of a network in XML."""
    found: SndWords = {"LINKS": [], "DEMANDS": []}
    found["NODES"] = [(line_of(node), [node.get("id", "")]) for node in root.iterfind("networkStructure/nodes/node")]
    for link in root.iterfind("networkStructure/links/link"):
        modules = (module.findtext("capacity") or "" for module in link.iterfind("additionalModules/addModule"))
        amounts = [link.findtext("preInstalledModule/capacity") or "0", *modules]
        found["LINKS"].append((line_of(link), [*_xml_ends(link, what), *amounts]))
    for demand in root.iterfind("demands/demand"):
        amounts = [demand.findtext("routingUnit") or "1", demand.findtext("demandValue") or ""]
        found["DEMANDS"].append((line_of(demand), [*_xml_ends(demand, what), *amounts]))
    return found


def list_sndlib(network: Element | str, result: ListedGraph) -> None:
    """Read nodes, links and demands of an SNDlib network: the root of its XML, or its text in the native format."""
    result.directed, result.multigraph = False, True
    read = _native_words if isinstance(network, str) else _xml_words
    words = read(network, result.what)  # type: ignore[arg-type]
    for line, (name,) in words["NODES"]:
        result.add_node(name or None, {}, line)
    for line, (source, target, *texts) in words["LINKS"]:
        names = [_INSTALLED, *(f"module_{i}_capacity" for i in range(1, len(texts)))]
        amounts = {name: _amount(text, result.where(line), name) for name, text in zip(names, texts, strict=True)}
        result.list_link(source, target, {name: value for name, value in amounts.items() if value}, line)
    for line, (source, target, *texts) in words["DEMANDS"]:
        where = result.where(line)
        unit, value = (
            _amount(text, where, name) for text, name in zip(texts, ("routing unit", "demand value"), strict=True)
        )
        unknown = [end for end in (source, target) if not result.has_vertex(end)]
        if unknown or source == target or unit * value == float("inf"):
            odd = f", not {unknown[0][:60]!r}" if unknown else ""
            refuse(where, f"a demand must join two different nodes of the file{odd}")
        result.demands[source, target] += unit * value


def _xml_ends(element: Element, what: str) -> tuple[str, str]:
    source, target = ((element.findtext(end) or "").strip() for end in ("source", "target"))
    if not source or not target:
        refuse(f"{what}, line {line_of(element)}", f"<{element.tag}> without <source> and <target>; write both")
    return source, target


def read_sndlib(data: bytes, result: ListedGraph) -> None:
    """Read an SNDlib network: an arc each way for every link unless ``directed=true``."""
    what = result.what
    xml = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    network = parse_xml(data, what, "write SNDlib XML") if xml else decode(data, what, "save the file as UTF-8")
    list_sndlib(network, result)
    installed = [_INSTALLED in attributes for _, _, attributes, *_ in result.links]
    if result.options.capacity in {None, _INSTALLED} and any(installed) and not all(installed):
        tail, head, *_ = result.links[installed.index(False)]
        everywhere = set.intersection(*(set(attributes) for _, _, attributes, *_ in result.links))
        choices = [f"capacity={name}" for name in sorted(everywhere)] + ["capacity=1 for equal links"]
        lone = f"{installed.count(False)} of {len(installed)} links, such as {tail}-{head},"
        remedy = f"take {' or '.join(choices)}, or remove the links that are not built"
        refuse(what, f"{lone} have no pre-installed capacity, unlike the others; {remedy}")


def read_matrix(text: str, graph: ListedGraph) -> None:
    """Read a square matrix of capacities, row i column j for the arc i -> j, 0 for no arc.

    The format is that of :mod:`opticoll.instances.readers.tables`. ``directed=false`` completes a triangle.
    """
    matrix = square(rows_of(text, graph.what), graph.what)
    n = len(matrix.rows)
    entries = [
        (*divmod(k, n), cell, matrix.place(k))
        for k, cell in enumerate(matrix.cells())
        if not (parses_as_float(cell) and float(cell) == 0)
    ]
    _list_entries(matrix.labels or range(n), entries, graph)


def read_numpy(matrix: F64, graph: ListedGraph) -> None:
    """Read capacities from an array ``(n, n)``, otherwise as :func:`read_matrix`."""
    ends = zip(*(side.tolist() for side in np.nonzero(matrix)), strict=True)
    entries = [(i, j, float(matrix[i, j]), f"row {i + 1}, column {j + 1}") for i, j in ends]
    _list_entries(range(len(matrix)), entries, graph)


def _list_entries(
    vertices: Sequence[Hashable], entries: Sequence[tuple[int, int, object, str]], graph: ListedGraph
) -> None:
    """List the entries of a matrix that are not 0, each with its row, column and place."""
    graph.options.refuse(graph.what, "the entries of a matrix are its capacities", "capacity")
    graph.check_vertices(len(vertices))
    for name in vertices:
        graph.add_vertex(name)
    for i, j, value, place in entries:
        graph.list_link(vertices[i], vertices[j], value, place)
