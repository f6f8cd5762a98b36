"""Texts that are not topologies with capacities but are often taken for one: what they are, and what to give instead.

Without this list such a text would be read as an edge list, whose messages are about its first line.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from opticoll.instances.readers.reading import parses_as_float, refuse

_DUMP = "dump {}'s topology with NCCL_TOPO_DUMP_FILE and read that file"
_EDGES = "write its links to an edge list, tail,head,capacity"
_ROCM = (
    "rocm-smi and amd-smi state weights, hops and types of links, but not how many there are; "
    f"{_DUMP.format('RCCL')}, or {_EDGES}"
)
_ASTRA = (
    "this is a network of ASTRA-sim, which names the topology of each dimension and lists no links; give a family, "
    "such as ring:8+unit=50GiB/s for [ Ring ] of 8 with bandwidth 50 (its backend counts 2^30 bytes where it says GB), "
    f"or {_EDGES}"
)
_NEIGHBOURS = (
    "networkx.write_adjlist and write_multiline_adjlist list neighbours without capacities or directions; write "
    "networkx.node_link_data as JSON, or give oc.topology the graph"
)
_LGL = "this is an LGL file, in which # begins the links of a vertex; write one line per link: tail head capacity"
_METIS = (
    "this seems to be a METIS graph, whose lines list the neighbours of vertices 1, 2, ...; write one line per link, "
    "or format=edges if the first line is an arc"
)
_SLURM = (
    "Slurm's topology tells which nodes are behind which switch, but neither rates nor numbers of cables (the unit of "
    f"LinkSpeed is free); {_EDGES}, such as node1,switch1,100Gb/s, and state ranks= or switches="
)
_HTSIM = (
    "this is a fat tree of csg-htsim, whose wiring is in its code; give fat-tree:k=4 or another family, or "
    f"{_EDGES}, and state ranks= or switches="
)
_YAML = f"YAML is not read; {_EDGES}, or write GraphML or JSON"

#: Beginnings of lines, other than comments, that tell what a text is, and what to do instead.
_LINES = {
    r"=+ *(?:ROCm System Management Interface|ROCm SMI|[A-Z][A-Za-z ]* between two GPUs)|[^\n]*\b(?:rocm|amd)-smi\b"
    r"|(?:ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW|BANDWIDTH) TABLE:|device,\(Topology\)": _ROCM,
    r"GPU \d+: [^\n]*\(UUID:": (
        "`nvidia-smi nvlink` does not tell where the links of a GPU lead; save the matrix of nvidia-smi topo -m"
    ),
    r"[^\n]*\bNCCL INFO\b": f"this is a log of NCCL; {_DUMP.format('NCCL')}",
    r"P2P Connectivity Matrix|[A-Za-z]+directional P2P=": (
        "these are measurements of p2pBandwidthLatencyTest; save one square matrix of bandwidths alone"
    ),
    r"vendid=0x|switchguid=0x|caguid=0x": (
        f"ibnetdiscover lists cables with their speeds in comments; {_EDGES}, such as host1,switch1,100Gb/s"
    ),
    r"(?:CA|Switch): [^\n]*\n\s*0x[0-9a-f]+ [^\n]*==\(": (
        f"this is the output of iblinkinfo; {_EDGES}, such as host1,switch1,100Gb/s"
    ),
    r"Machine \([^\n]*\n\s*(?:Package|NUMANode|Group0|HostBridge)\b": (
        f"an hwloc topology has no bandwidths of GPU links; {_DUMP.format('NCCL')}"
    ),
    r"(?:npus_count|units-count|logical-dims)\s*:": _ASTRA,
    r"(?:SwitchName|BlockName)=\S": _SLURM,
    r"Nodes[ \t]+\d+[ \t]*\n(?:\s|#[^\n]*\n)*(?:Tiers|Podsize)[ \t]+\d": _HTSIM,
    r"Nodes[ \t]+\d+[ \t]*\n(?:\s|#[^\n]*\n)*Connections[ \t]+\d": (
        "this is a connection matrix of csg-htsim, a traffic without links; give a network, and the traffic as a "
        "demand of src,dst,bytes"
    ),
    r"LEDA\.GRAPH\b": f"LEDA graphs are not read; {_EDGES}, or write GraphML or JSON",
    r">>(?:graph6|sparse6|digraph6)<<": (
        "graph6, sparse6 and digraph6 are not read; give oc.topology(networkx.read_graph6(path)), or write GraphML"
    ),
    r"\A\d+ \d+ \d+[^\n]*\n[\d\s]*\n(?:\d+[ \t]+){2}[\d.]+[GM]bps[ \t]+[\d.]+[munp]?s\b": (
        "this is a network of ns-3 for ASTRA-sim or SimAI; keep the first three columns of its links, tail head "
        "capacity, and state the ranks with ranks="
    ),
}
_KNOWN = tuple((re.compile(rf"^[ \t]*(?!#)(?:{pattern})", re.MULTILINE), remedy) for pattern, remedy in _LINES.items())
#: A labelled table of GPUs with 0 or N/A on its diagonal, as rocm-smi prints them.
_ROCM_TABLE = re.compile(r"\s*GPU0[ \t]+GPU1\b[^\n]*\n\s*GPU0[ \t]+(?:0|N/A)\s")
#: Comments that networkx writes above lists of neighbours: the program, the time, the graph's name.
_ADJACENCY = re.compile(r"#[^\n]*\n# GMT [A-Z][a-z]{2} [A-Z][a-z]{2} [^\n]*\n#")
#: What the name of a file says of texts that could be anything.
_SUFFIXES = {
    ".lgl": _LGL,
    ".metis": _METIS,
    **dict.fromkeys((".g6", ".s6", ".d6"), "graph6, sparse6 and digraph6 are not read; write GraphML or an edge list"),
}
_YAML_START = re.compile(
    r"(?:\s|#[^\n]*\n)*(?:---\s|[A-Za-z_][\w-]*:(?:[ \t]*\n|[ \t]+[\[{\"']|[ \t]+[^\s,]+[ \t]*\n))"
)
#: Keys of JSON objects of other formats.
_JSON_KEYS = {
    "intranode_sketch": "this is a sketch of TACCL, which restricts routes and has no links; read its topology",
    "TopologyParams": "this is a TE-CCL input, which names a topology of its code; write its links to another file",
    "adjacency": "this is networkx.adjacency_data; write networkx.node_link_data",
    "elements": "this is Cytoscape JSON; write networkx.node_link_data",
    "num_threads_per_block": "this is a plan of MSCCL++, a schedule without links; give a network",
    "npus_count": _ASTRA,
    "units-count": _ASTRA,
    "logical-dims": _ASTRA,
    "topologies-per-dim": _ASTRA,
}


def refuse_text(text: str, what: str, suffix: str) -> None:
    """Refuse the beginning of a text that is recognised as something else than a topology.

    Raises
    ------
    BadFile
        With what it is and what to do.
    """
    remedies = [remedy for pattern, remedy in _KNOWN if pattern.search(text)]
    remedies += [_ROCM] if _ROCM_TABLE.match(text) else []
    remedies += [_SUFFIXES[suffix]] if suffix in _SUFFIXES else []
    remedies += [_YAML] if suffix in {".yaml", ".yml"} or _YAML_START.match(text) else []
    remedies += [_NEIGHBOURS] if _ADJACENCY.match(text) else []
    remedies += [_LGL] if _is_lgl(text) else []
    remedies += [_METIS] if _is_metis(text) else []
    if remedies:
        refuse(what, remedies[0])


def _is_lgl(text: str) -> bool:
    """Whether every comment is one word, the first line is one, and other lines are a vertex and at most a weight."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    hubs = [words[1:] for words in lines if words[0] == "#"]
    links = [words for words in lines if words[0] != "#"]
    if len(hubs) < 2 or lines[0][0] != "#" or not links:
        return False
    weighted = [len(words) == 2 and parses_as_float(words[1]) for words in links]
    numbered = {parses_as_float(words[0]) for words in [*hubs, *links] if words}
    return (
        all(len(words) == 1 and "=" not in words[0] for words in hubs)
        and all(ok or len(words) == 1 for ok, words in zip(weighted, links, strict=True))
        and len(numbered) == 1
    )


def _is_metis(text: str) -> bool:
    """Whether a first line of n vertices and m edges stands above n lines with 2 m neighbours in all."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("%")]
    if len(lines) < 4 or not all(word.isdecimal() for words in lines for word in words) or len(lines[0]) != 2:
        return False
    n, m = (int(word) if len(word) < 10 else 0 for word in lines[0])
    listed = [[int(word) for word in words if len(word) < 10] for words in lines[1:]]
    neighbours = [v for words in listed for v in words]
    symmetric = all(1 <= v <= n and u in listed[v - 1] for u, words in enumerate(listed, start=1) for v in words)
    return len(listed) == n and len(neighbours) == 2 * m > 0 and symmetric


def refuse_keys(keys: Collection[str], what: str) -> None:
    """Refuse a JSON object that is recognised by its keys; errors as for :func:`refuse_text`."""
    for key, remedy in _JSON_KEYS.items():
        if key in keys:
            refuse(what, remedy)
    if any(key.startswith("(Topology)") for key in keys):
        refuse(what, _ROCM)
