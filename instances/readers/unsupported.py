"""Files that are no topologies with capacities but are often taken for one: what they are, and what to give instead.

Without this list, a text would be read as an edge list, whose messages are about its first line.
"""

from __future__ import annotations

import re

from opticoll.instances.readers.reading import parses_as_float

_EDGES = "write its links to an edge list, tail,head,capacity"
_RATED = f"{_EDGES}, such as host1,switch1,100Gb/s"
_DUMP = "dump NCCL's topology with NCCL_TOPO_DUMP_FILE and read that file"
_LGL = "this is an LGL file, in which # begins the links of a vertex; write one line per link: tail head capacity"
_YAML = f"YAML is not read; {_EDGES}, or write GraphML or JSON"

#: Remedies by the suffix of a file, and by what begins a line or the text of it.
_SUFFIXES = {".lgl": _LGL, ".yaml": _YAML, ".yml": _YAML}
_TEXTS = {
    r"=+ *(?:ROCm |[A-Z][A-Za-z ]* between two GPUs)|[^\n]*\b(?:rocm|amd)-smi\b"
    r"|\s*GPU0[ \t]+GPU1\b[^\n]*\n\s*GPU0[ \t]+(?:0|N/A)\s"
    r"|(?:ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW|BANDWIDTH) TABLE:|[^\n]*\(Topology\)": (
        "rocm-smi and amd-smi state weights, hops and types of links, but not how many there are; dump RCCL's topology "
        f"with NCCL_TOPO_DUMP_FILE, or {_EDGES}"
    ),
    r"GPU \d+: [^\n]*\(UUID:|<nvidia_smi_log\b": (
        "this output of nvidia-smi does not tell where the links of a GPU lead; save the matrix of nvidia-smi topo -m"
    ),
    r"[^\n]*\bNCCL INFO\b": f"this is a log of NCCL; {_DUMP}",
    r"<graphs\b": "these are the rings and trees that NCCL chose; dump the topology with NCCL_TOPO_DUMP_FILE",
    r"P2P Connectivity Matrix|[A-Za-z]+directional P2P=": (
        "these are measurements of p2pBandwidthLatencyTest; save one square matrix of bandwidths alone"
    ),
    r"(?:CA|Switch): [^\n]*\n\s*[0-9a-fx]+ [^\n]*==\(": "this is the output of iblinkinfo; save that of ibnetdiscover",
    r"Machine \([^\n]*\n\s*(?:Package|NUMANode|Group0|HostBridge)\b": (
        f"the text of lstopo has no bandwidths; write lstopo x.xml, which has those of GPUs, or {_DUMP}"
    ),
    r"[{\s]*\"?(?:npus_count|units-count|logical-dims|topologies-per-dim)\"?\s*:": (
        "this is a network of ASTRA-sim, which names the topology of each dimension and lists no links; give a family, "
        "such as ring:8+unit=50GiB/s for [ Ring ] of 8 with bandwidth 50 (its backend counts 2^30 bytes where it says "
        f"GB), or {_EDGES}"
    ),
    r"(?:Block|Ring)Name=\S": f"Slurm's blocks and rings of nodes have no switches and no rates; {_RATED}",
    r"Nodes[ \t]+\d+[ \t]*\n(?:\s|#[^\n]*\n)*(?:Tiers|Podsize)[ \t]+\d": (
        "this is a fat tree of csg-htsim, whose wiring is in its code; give fat-tree:k=4 or another family, or "
        f"{_EDGES}, and state ranks= or switches="
    ),
    r"Nodes[ \t]+\d+[ \t]*\n(?:\s|#[^\n]*\n)*Connections[ \t]+\d": (
        "this is a connection matrix of csg-htsim, a traffic without links; give a network, and the traffic as a "
        "demand of src,dst,bytes"
    ),
    r"\A\d+ \d+ \d+[^\n]*\n(?:[\d ]*\n)?(?:\d+[ \t]+){2}[\d.]+[GM]bps[ \t]+[\d.]+[munp]?s\b": (
        "this is a network of ns-3 for ASTRA-sim or SimAI; keep the first three columns of its links, tail head "
        "capacity, and state the ranks with ranks="
    ),
    r"p[ \t]+(?:max|min|sp|edge|col)[ \t]+\d+[ \t]+\d+[ \t]*\n": f"DIMACS problems are not read; {_EDGES}",
    r"<topology\b[^>]*\blinkdefault=": (
        "FNSS is not read; give oc.topology(fnss.read_topology(path), unit='Mb/s'), with the capacity_unit of the file"
    ),
    r"DL\b[\s,]*N[RC]?\s*=": f"UCINET's DL is not read; {_EDGES}, or a square matrix with labels",
    r"-?\d+ @[^\n]*->|\S+,\+\S+ \S+,\+\S+ [\d.]+\n": f"maps of Rocketfuel have no capacities; {_EDGES}",
    r"LEDA\.GRAPH\b": f"LEDA graphs are not read; {_EDGES}, or write GraphML or JSON",
    r"%%MatrixMarket": (
        "Matrix Market is not read; give oc.topology(scipy.io.mmread(path)), or write a matrix with numpy.save"
    ),
    r"<network\b[^>]*\bnextElementId=": (
        "Net2Plan designs are not read; write the links as tail,head,capacity, the demands as src,dst,amount"
    ),
    r"<algo\b": "this is a schedule, not a topology; opticoll check FORMULATION INSTANCE FILE executes it",
    r"[{\s]*\"intranode_sketch\"": (
        "this is a sketch of TACCL, which restricts routes and has no links; read its topology"
    ),
    r"\A(?:HYBRID_\w+|DATA|MODEL|MICRO|TRANSFORMER\w*|DLRM\w*)\b[^\n]*\n\d+\s*\n": (
        "this is a workload of SimAI or ASTRA-sim, layers and their collectives without links; give a network, and the "
        "traffic of one collective as a demand"
    ),
    r"[{\s]*\"TopologyParams\"": (
        "this is a TE-CCL input, which names a topology of its code; write its links to another file"
    ),
    r"\{(?s:.)*\"adjacency\":": "this is networkx.adjacency_data; write networkx.node_link_data",
    r"\{(?s:.)*\"elements\":": "this is Cytoscape JSON; write networkx.node_link_data",
    r"\{(?s:.)*\"num_threads_per_block\":": "this is a plan of MSCCL++, a schedule without links; give a network",
    r"\A(?:---\s|[A-Za-z_][\w-]*:(?:[ \t]*\n|[ \t]+[\[{\"']|[ \t]+[^\s,]+[ \t]*\n))": _YAML,
}
#: Comments that networkx writes above lists of neighbours: the program, the time, the graph's name.
_ADJACENCY = re.compile(r"#[^\n]*\n# GMT [A-Z][a-z]{2} [A-Z][a-z]{2} [^\n]*\n#")
_NEIGHBOURS = (
    "networkx.write_adjlist and write_multiline_adjlist list neighbours without capacities or directions; write "
    "networkx.node_link_data as JSON, or give oc.topology the graph"
)


def advice(text: str, suffix: str) -> str | None:
    """What a file is that is not read, by the beginning of its text and its suffix, and what to give instead.

    None if it is none of these.
    """
    text = "".join(f"{line}\n" for line in map(str.strip, text.splitlines()) if line)  # blanks take quadratic time
    for pattern, remedy in _TEXTS.items():
        if re.search(rf"^[ \t]*(?:<\?[^>]*>\s*)?(?!#)(?:{pattern})", text, re.MULTILINE | re.IGNORECASE):
            return remedy
    if _ADJACENCY.match(text):
        return _NEIGHBOURS
    return _LGL if _is_lgl(text) else _SUFFIXES.get(suffix)


def _is_lgl(text: str) -> bool:
    """Whether every comment is one word, the first line is one, and other lines are a vertex and at most a weight."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    hubs = [words[1:] for words in lines if words[0] == "#"]
    links = [words for words in lines if words[0] != "#"]
    if len(hubs) < 2 or lines[0][0] != "#" or not links or not all(len(words) <= 2 for words in links):
        return False
    weighted = all(len(words) == 1 or parses_as_float(words[1]) for words in links)
    numbered = {parses_as_float(words[0]) for words in [*hubs, *links] if words}
    return weighted and len(numbered) == 1 and all(len(words) == 1 and "=" not in words[0] for words in hubs)
