"""Topologies and matrices in files of at most 64 MiB.

Formats: edge lists (:mod:`opticoll.instances.readers.edge_lists`); GraphML, GEXF, GML, SNDlib and matrices
(:mod:`opticoll.instances.readers.graph_formats`); graph6, Pajek and DOT
(:mod:`opticoll.instances.readers.plain_graphs`); JSON of opticoll, networkx, msccl and TACCL
(:mod:`opticoll.instances.readers.topology_json`); topology XML of NCCL and RCCL, and ``nvidia-smi topo -m``
(:mod:`opticoll.instances.readers.machine_topologies`). Suffix and contents select the format. Three are written:
``.graphml`` and ``.xml``, ``.json``, and edge lists for any other suffix. Self-loops carry no flow, so a file with
loops is refused unless it declares them. The hash of a topology depends only on its content, not on the name or format
of the file; machines (a LIGHTPATH mesh, a WDM ring) are written as plain topologies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile, BadInput
from opticoll.file_contents import read_bytes
from opticoll.instances.readers import fabrics, graph_formats, line_formats, plain_graphs
from opticoll.instances.readers.edge_lists import read_edge_list, write_edge_list
from opticoll.instances.readers.listed_graph import ListedGraph
from opticoll.instances.readers.machine_topologies import WIRINGS, read_nccl, read_nvidia_smi
from opticoll.instances.readers.read_options import ReadOptions
from opticoll.instances.readers.reading import NUMPY, as_path, decode, numpy_matrix, parses_as_float, refuse
from opticoll.instances.readers.tables import end_columns, has_labels, rows_of, split, square
from opticoll.instances.readers.topology_json import read_json, write_json
from opticoll.instances.readers.unsupported import advice
from opticoll.nearest_names import nearest
from opticoll.shared_files import write_file

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, Topology

#: Size limit of a file, and how much of it tells a matrix from an edge list [bytes].
MAX_FILE_BYTES, _START = 64 * 2**20, 2**20


def _text(data: bytes, where: str) -> str:
    return decode(data, where, "save the file as UTF-8")


def _read_matrix(data: bytes, graph: ListedGraph) -> None:
    if data.startswith(NUMPY):
        graph_formats.read_numpy(numpy_matrix(data, graph.what), graph)
    else:
        graph_formats.read_matrix(_text(data, graph.what), graph)


#: Fills a graph, which says how the file is read and called, with what is in the file.
Reader = Callable[[bytes, ListedGraph], None]


def _of_text(read: Callable[[str, ListedGraph], None]) -> Reader:
    return lambda data, graph: read(_text(data, graph.what), graph)


_READERS: dict[str, Reader] = {
    "edges": _of_text(read_edge_list),
    "graphml": graph_formats.read_graphml,
    "json": _of_text(read_json),
    "gml": _of_text(graph_formats.read_gml),
    "sndlib": graph_formats.read_sndlib,
    "matrix": _read_matrix,
    "nccl": read_nccl,
    "nvidia-smi": _of_text(read_nvidia_smi),
    "gexf": graph_formats.read_gexf,
    "graph6": _of_text(plain_graphs.read_graph6),
    "pajek": _of_text(plain_graphs.read_pajek),
    "dot": _of_text(plain_graphs.read_dot),
    "metis": _of_text(line_formats.read_metis),
    "lgf": _of_text(line_formats.read_lgf),
    "repetita": _of_text(line_formats.read_repetita),
    "anynet": _of_text(line_formats.read_anynet),
    "tacos": _of_text(line_formats.read_tacos),
    "ibnetdiscover": _of_text(fabrics.read_ibnetdiscover),
    "slurm": _of_text(fabrics.read_slurm),
    "hwloc": fabrics.read_hwloc,
}
#: Formats with a first number of their own, or a choice of links, which their readers examine.
_CHOOSING = frozenset({"edges", "json", "nccl", "nvidia-smi"})
#: Formats of topologies.
FORMATS = tuple(_READERS)
#: Suffixes that an edge list must not have, since its reader expects another format.
_NOT_WRITTEN = frozenset({".gml", ".yaml", ".yml"})
#: Options of ``file:PATH,option=value``.
OPTIONS = tuple(option.name for option in fields(ReadOptions))
_WORDS: dict[str, dict[str, bool | int]] = {"directed": {"true": True, "false": False}, "first": {"0": 0, "1": 1}}
_OPTION = re.compile(rf"(?P<path>.*),\s*(?P<name>{'|'.join(OPTIONS)})=(?P<value>[^,]*)", re.DOTALL)
#: Formats by the root element of an XML file, and by the beginning of a text.
_ROOTS = {"graphml": "graphml", "gexf": "gexf", "system": "nccl", "network": "sndlib"}
#: Formats by a suffix that no other format has.
_SUFFIXES = {
    ".json": "json",
    ".gml": "gml",
    ".metis": "metis",
    ".lgf": "lgf",
    ".anynet": "anynet",
    **dict.fromkeys((".g6", ".s6", ".d6"), "graph6"),
}
_STARTS = {
    graph_formats.SNDLIB.encode(): "sndlib",
    line_formats.REPETITA.encode(): "repetita",
    rb"(?:#[^\n]*\n|\s)*(?:router|node)[ \t]+[0-9]+[ \t]+(?:router|node)[ \t]+[0-9]": "anynet",
    rb"(?:#[^\n]*\n|\s)*@(?:nodes|arcs|edges)\b": "lgf",
    rb"(?:[^\n\[]*\n){0,60}?(?:vendid|devid|switchguid|caguid)=0x": "ibnetdiscover",
    rb"NPUs Count,": "tacos",
    rb"(?:#[^\n]*\n|\s)*SwitchName=\S": "slurm",
    rb">>(?:graph6|sparse6|digraph6)<<": "graph6",
    rb"(?:%[^\n]*\n|\s)*\*(?:vertices|network)\b": "pajek",
    rb"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*+\*/|#[^\n]*\n)*+(?:strict\s+)?(?:di)?graph\b[^\[{]*\{": "dot",
    (
        rb"(?:[^\n]*(?:nvidia-smi|topology)[^\n]*\n)?(?:\x1b\[[0-9;]*m|\s)*"
        rb"(?-i:GPU0\b[^\n]*(?:CPU\sAffinity|\n\s*GPU0\s+X\b))"
    ): "nvidia-smi",
    rb"(?:(?:#[^\n]*\n|Creator\s+\"[^\"]*\"|Version\s+\"?[^\"\s]*\"?)\s*)*graph\s*\[": "gml",
}


def read_topology(path: str | Path, options: ReadOptions | None = None) -> Topology:
    """Read a topology from a file of any format in :data:`FORMATS`, which its suffix and contents select.

    Returns
    -------
    Topology
        With the spec ``file:PATH,option=value``.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or does not describe a topology; the message names the line or arc.
    """
    what, options = f"file {str(path)!r}", options or ReadOptions()
    data = _read(path)
    try:
        name = options.format or _recognised(path, data, what)
        if name not in _CHOOSING:
            options.refuse(what, f"{name} files name their vertices and list all links", "first", "wiring")
        graph = ListedGraph(what, options)
        _READERS[name](data, graph)
        topology = graph.build()
    except BadFile as error:
        start = data[:65536].decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        remedy = None if options.format else advice(start, Path(path).suffix.lower())
        if remedy is None:
            raise
        msg = f"{what}: {remedy}"
        raise BadFile(msg) from error
    chosen = "".join(
        f",{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name in OPTIONS
        if (value := getattr(options, name)) is not None
    )
    return topology.renamed(f"file:{path}{chosen}", {"path": f"{path}{chosen}"})


def read_specified(text: str) -> Topology:
    """Read the topology named by ``PATH,option=value``; errors as :func:`read_topology`."""
    path, given = text, dict[str, Any]()
    while (match := _OPTION.fullmatch(path)) is not None:
        if match["name"] in given:
            refuse(f"file {match['path']!r}", f"{match['name']}= is given twice; give it once")
        path, given[match["name"]] = match["path"], match["value"]
    where = f"file {path!r}"
    unknown = re.fullmatch(r"(.*),\s*(\w+)=[^,/]*", path, re.DOTALL)
    if unknown is not None and not Path(path).exists() and Path(unknown[1]).exists():
        refuse(f"file {unknown[1]!r}", f"unknown option {unknown[2][:40]!r}; {nearest(unknown[2], list(OPTIONS))}")
    for name, known in _WORDS.items():
        if name in given:
            if given[name] not in known:
                refuse(where, "write directed=true or directed=false, and first=0 or first=1")
            given[name] = known[given[name]]
    for name, choices in (("format", FORMATS), ("wiring", WIRINGS), ("loops", ("drop", "keep"))):
        if name in given and given[name] not in choices:
            refuse(where, f"{name}={given[name][:40]} is unknown; write one of {', '.join(choices)}")
    rate = given.get("capacity")
    if rate is not None and not rate.strip():
        refuse(where, "capacity= is empty; give a column, a number or a rate, or omit it")
    if rate is not None and parses_as_float(rate):
        given["capacity"] = float(rate)
    return read_topology(path, ReadOptions(**given))


def _recognised(path: str | Path, data: bytes, what: str) -> str:
    """Recognise the format of a file by its suffix and contents."""
    if data.startswith(NUMPY):
        return "matrix"
    suffix = Path(path).suffix.lower()
    start = data[:65536].lstrip(b"\xef\xbb\xbf \t\r\n")
    if suffix == ".graphml":
        return "graphml"
    if suffix == ".xml" or start.startswith(b"<"):
        found = re.search(rb"<(?:\w+:)?([A-Za-z_]+)", re.sub(rb"<!--.*?-->", b"", start, flags=re.DOTALL))
        root = found[1].decode() if found else "graphml"
        if root == "topology":
            return "hwloc"
        if root not in _ROOTS:
            refuse(what, f"<{root[:40]}> begins no topology; roots are {', '.join(_ROOTS)}")
        return _ROOTS[root]
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    known = next((name for pattern, name in _STARTS.items() if re.match(pattern, start, re.IGNORECASE)), None)
    if known is None and (
        suffix == ".graph" or (len(data) < _START and line_formats.is_metis(data.decode("utf-8", "replace")))
    ):
        return "metis"
    if known is None and (remedy := advice(start.decode("utf-8", "replace"), suffix)):
        refuse(what, remedy)
    return known or ("matrix" if _is_matrix(data[:_START].decode("utf-8", "replace"), what) else "edges")


def _is_matrix(text: str, what: str) -> bool:
    """Whether a text is a matrix rather than an edge list: labelled, or at least 4 rows of as many numbers.

    Three rows of three numbers are one if the diagonal is 0, since no arc has capacity 0.
    """
    rows = [split(line) for raw in text.splitlines() if (line := raw.partition("#")[0].strip())]
    if not rows:
        return False
    first = rows[0]
    if len(first) > 2 and has_labels(rows):
        return bool(first[0]) or end_columns(first, what) is None
    whole = len(text) >= _START or len(rows) == len(first)
    if not (len(first) > 2 and whole and all(map(parses_as_float, first))):
        return False
    return len(first) > 3 or all(row[i : i + 1] in (["0"], ["0.0"]) for i, row in enumerate(rows))


def save_topology(topology: Topology, path: str | Path) -> None:
    """Write a topology so that :func:`read_topology` returns it exactly, labels included.

    Of a LIGHTPATH mesh that is its arcs: lasers and waveguides are parts of its spec.

    Parameters
    ----------
    topology
        Topology; its vertices, arcs, capacities (all digits), terminals and labels are written.
    path
        File; the suffixes ``.graphml``, ``.xml`` and ``.json`` select those formats, any other an edge list, with
        commas for ``.csv`` and spaces otherwise. An existing file is replaced.

    Raises
    ------
    BadFile
        If the file cannot be written, or the format cannot represent a label.
    BadInput
        For anything but a topology and a path, and for the suffix of a format that is read but not written.
    """
    from opticoll.instances.topology import Topology

    if not isinstance(topology, Topology):
        kind = type(topology).__name__
        msg = f"save_topology: needs a topology, not {kind}; write oc.save_topology(oc.topology(graph), 'net.json')"
        raise BadInput(msg)
    path = as_path(path, "save_topology")
    suffix = path.suffix.lower()
    if suffix in _NOT_WRITTEN:
        msg = f"save_topology: {suffix} files are not written; end the name in .json, .graphml, .csv or .txt"
        raise BadInput(msg)
    if suffix in {".graphml", ".xml"}:
        write_file(path, graph_formats.write_graphml(topology))
    elif suffix == ".json":
        write_file(path, write_json(topology))
    else:
        write_file(path, write_edge_list(topology, "," if suffix == ".csv" else " "))


def read_matrix(path: str | Path, n: int) -> F64:
    """Read an n×n matrix of numbers: text (:mod:`opticoll.instances.readers.tables`), or NumPy.

    Raises
    ------
    BadFile
        If the file cannot be read, has the wrong number of rows or columns, or contains anything but numbers.
    """
    what, data = f"file {str(path)!r}", _read(path)
    if data.startswith(NUMPY):
        matrix = numpy_matrix(data, what)
    else:
        matrix = square(rows_of(_text(data, what), what), what).numbers()
    if len(matrix) != n:
        refuse(what, f"a matrix of {len(matrix)} rows and columns; give {n}, one per server")
    return matrix


def _read(path: str | Path) -> bytes:
    where = f"file {str(path)!r}"
    if not str(path).strip():
        refuse("file", "the path is missing; write file:PATH")
    data = read_bytes(Path(path), MAX_FILE_BYTES, "name a file with a topology or a matrix", where)
    if not data.strip():
        msg = f"{where} is empty; write one arc (tail head capacity) or one row of a matrix per line"
        raise BadFile(msg)
    return data
