"""Formats of lines of words: METIS, LEMON's LGF, REPETITA, BookSim's anynet and TACOS.

METIS (graph files of METIS, KaHIP and Chaco): line v lists the neighbours of vertex v, each edge at both ends, as the
digits of the heading say with weights of edges (``weight``, which is no capacity unless ``capacity=weight`` says so)
behind sizes and weights of the vertex.

LGF (lemon.cs.elte.hu): ``@arcs`` are arcs, ``@edges`` are undirected; LEMON leaves that to the program, so
``directed=`` decides otherwise. REPETITA (github.com/svissicchio/Repetita): arcs with their ``bw``, in a unit that the
file does not state; nodes are numbered from 0. anynet (BookSim 2): links of equal capacity, each way; nodes are the
ranks, routers are relays; lengths of channels are no capacities; behind a node, BookSim makes another link of a length,
which is noted. TACOS (results as CSV): the links of a network with
bandwidths that it calls GB/s and counts by 2^30 bytes, so they are GiB/s; chunks are skipped.

A malformed file is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from opticoll.errors import BadInput
from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.read_options import ReadOptions
from opticoll.instances.readers.reading import parses_as_float, refuse
from opticoll.instances.readers.tables import is_number, lines_of

if TYPE_CHECKING:
    pass


#: A word of LGF: bare, or in quotes, with some escapes of C.
_LGF_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_ESCAPED, _unescaped = re.compile(r"\\(.)"), lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1])
#: How a file of REPETITA begins.
REPETITA = r"(?:NODES|EDGES|DEMANDS)[ \t]+[0-9]+\s*\n\s*label\b"


def read_metis(text: str, graph: ListedGraph) -> None:
    """Read a METIS graph, see the module docstring."""
    graph.directed = False
    lines = enumerate(io.StringIO(text, newline=None), start=1)
    rows = [(number, raw.split()) for number, raw in lines if not raw.startswith("%")]
    heading = rows[0][1] if rows else []
    if not 2 <= len(heading) <= 4 or not all(map(is_number, (*heading[:2], *heading[3:]))):
        what = "no heading of METIS: vertices, edges, and their weights as 011"
        refuse(graph.what, f"{' '.join(heading)[:40]!r} is {what}")
    sized, weighed, weights = (digit != "0" for digit in (heading[2:3] or ["0"])[0].zfill(3)[-3:])
    skip = sized + weighed * int((heading[3:4] or ["1"])[0][:6])
    graph.number_vertices(heading[0])
    ends: dict[tuple[str, str], str] = {}
    if len(rows) <= graph.order or any(words for _, words in rows[graph.order + 1 :]):
        refuse(graph.what, f"{len(rows) - 1} lines for {graph.order} vertices; write one line for each")
    for (number, words), v in zip(rows[1 : graph.order + 1], graph.vertices(), strict=True):
        given = words[skip:]
        for u, weight in zip(given[:: 1 + weights], given[1::2] if weights else given, strict=False):
            if not graph.has_vertex(u) or (u, str(v)) in ends or u == v:
                refuse(graph.where(number), f"{u[:20]!r} is no further neighbour of vertex {v}; correct the line")
            ends[u, str(v)] = weight
            if int(u) > int(str(v)):
                graph.list_link(v, u, {"weight": weight} if weights else {}, number)
        if len(given) % (1 + weights):
            refuse(graph.where(number), "neighbours and their weights must come in pairs; correct the line")
    lone = next(
        (f"{v} to {u}" for u, v in ends if weights * (ends.get((v, u)) != ends[u, v]) or (v, u) not in ends), ""
    )
    if lone or len(ends) != 2 * int(heading[1][:12]):
        fault = f"the edge from {lone} is not the same" if lone else f"there are {len(ends)} neighbours"
        refuse(graph.what, f"{fault}, but each of {heading[1][:12]} edges stands at both its ends; correct the file")


def is_metis(text: str) -> bool:
    """Whether a text is a METIS graph, which no edge list is."""
    graph = ListedGraph("", ReadOptions(capacity=1.0))
    try:
        read_metis(text, graph)
        graph.build()
    except BadInput:
        return False
    return True


def read_lgf(text: str, graph: ListedGraph) -> None:
    """Read a graph of LEMON: its sections ``@nodes`` and ``@arcs`` or ``@edges``."""
    section, columns, read = "", list[str](), set[str]()
    for number, line in lines_of(text, "#"):
        words = [_ESCAPED.sub(_unescaped, quoted) or bare for quoted, bare in _LGF_WORD.findall(line)]
        if line.startswith("@"):
            section, columns = words[0][1:], []
            kind = "arcs" if section == "edges" else section
            if kind in read:
                refuse(graph.where(number), f"a second section of {kind}, of which LEMON reads the first; remove one")
            read |= {kind} & {"nodes", "arcs"}
            continue
        ends = 0 if section == "nodes" else 2
        if section not in {"nodes", "arcs", "edges"}:
            continue
        if not columns:
            columns = ["source", "target"][:ends] + [word for word in words if word != "-"]
            if section == "nodes" and "label" not in columns:
                refuse(graph.where(number), "the nodes have no column label, which arcs name; add it")
            continue
        if len(words) != len(columns):
            refuse(graph.where(number), f"{len(words)} words for the columns {', '.join(columns)}; write one for each")
        given = dict(zip(columns, words, strict=True))
        if section == "nodes":
            graph.add_node(given["label"], given, number)
        else:
            given.pop("label", None)
            graph.list_link(given.pop("source"), given.pop("target"), given, number, section == "arcs")


def read_repetita(text: str, graph: ListedGraph) -> None:
    """Read nodes, arcs and demands of files of REPETITA (``.graph`` and ``.demands``)."""
    graph.stated = True
    left, columns, section = 0, list[str](), ""
    for number, line in lines_of(text, "\n"):  # a name may have a #
        words = line.split()
        begun = re.fullmatch(r"(NODES|EDGES|DEMANDS)\s+([0-9]{1,9})", line)
        if begun and not left:
            section, left, columns = begun[1], int(begun[2]), []
            continue
        if section and not columns:
            columns = words
            continue
        given = dict(zip(columns, words, strict=False))
        needed = ("label",) if section == "NODES" else ("src", "dest", "bw")
        if not left or len(words) != len(columns) or not all(name in given for name in needed):
            refuse(graph.where(number), f"{line[:60]!r} is no line of {left} more {section or 'NODES'}; correct it")
        left -= 1
        if section == "NODES":
            graph.add_node(str(graph.order), given)
        elif section == "EDGES":
            graph.list_link(given["src"], given["dest"], {"capacity": given["bw"]}, number)
        elif not parses_as_float(given["bw"]) or not 0 <= float(given["bw"]) < float("inf"):
            refuse(graph.where(number), f"amount {given['bw'][:20]!r} is not a finite nonnegative number; write one")
        else:
            graph.demands[given["src"], given["dest"]] += float(given["bw"])
    if left:
        refuse(graph.what, f"the file ends {left} lines before the end of {section}; copy the whole file")


def read_anynet(text: str, graph: ListedGraph) -> None:
    """Read a network file of BookSim's topology ``anynet``."""
    graph.directed, graph.multigraph, graph.stated = False, False, True
    for number, line in lines_of(text):
        ends = re.findall(r"(router|node)\s+([0-9]+)(?:\s+[0-9]+)?(?=\s|$)", line)
        if not ends or not re.fullmatch(r"(?:\s*(?:router|node)\s+[0-9]+(?:\s+[0-9]+)?(?=\s|$))+", line):
            refuse(graph.where(number), f"{line[:60]!r} is no line of anynet, such as router 0 node 0 router 1 5")
        names = [kind + (count.lstrip("0") or "0") for kind, count in ends]
        if re.search(r"node\s+[0-9]+\s+[0-9]|^node.*[0-9]\s+[0-9]", line):
            others = "which BookSim 2 takes for another channel (docs/reference/other-tools.md)"
            graph.note(f"line {number}: a length of a node's channel, {others}")
        for name in names:
            if not graph.has_vertex(name):
                graph.add_node(name, {"terminal": name.startswith("node")})
        for name in names[1:]:
            graph.list_link(names[0], name, {}, number)


def read_tacos(text: str, graph: ListedGraph) -> None:
    """Read the network of a CSV file with a result of TACOS."""
    graph.unit, heading = "GiB/s", ""
    for number, line in lines_of(text):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "NPUs Count" and not graph.order and is_number(cells[1]):
            graph.number_vertices(cells[1], 0)
        elif cells[0] == "SrcID":
            heading = cells[3] if len(cells) > 3 else ""
        elif is_number(cells[0]) and len(cells) > 3 and heading == "Bandwidth (GB/s)":
            graph.list_link(cells[0], cells[1], cells[3], number)
        elif not re.fullmatch(r"(?:Links|Chunks) Count|Chunk Size|\w+ Time", cells[0]):
            refuse(
                graph.where(number), f"{line[:60]!r} is no line of TACOS: SrcID,DestID,Latency (ns),Bandwidth (GB/s)"
            )
