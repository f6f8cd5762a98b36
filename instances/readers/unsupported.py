"""Texts that are not topologies with capacities but are often taken for one: what they are, and what to give instead.

Without this list such a text would be read as an edge list, whose messages are about its first line.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from opticoll.errors import BadFile

_DUMP = "dump {}'s topology with NCCL_TOPO_DUMP_FILE and read that file"
_EDGES = "write its links to an edge list, tail,head,capacity"
_ROCM = (
    "rocm-smi and amd-smi state weights, hops and types of links, but not how many there are; "
    f"{_DUMP.format('RCCL')}, or {_EDGES}"
)
_ASTRA = (
    "this is a network of ASTRA-sim, which names the topology of each dimension and lists no links; give a family, "
    f"such as ring:8+unit=50GB/s for [ Ring ] of 8 with 50 GB/s, or {_EDGES}"
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
    r"\d+ \d+ \d+[^\n]*\n[\d\s]*\n(?:\d+[ \t]+){2}[\d.]+[GM]bps[ \t]+[\d.]+[munp]?s\b": (
        "this is a network of ns-3 for ASTRA-sim or SimAI; keep the first three columns of its links, tail head "
        "capacity, and state the ranks with ranks="
    ),
}
_KNOWN = tuple((re.compile(rf"^[ \t]*(?!#)(?:{pattern})", re.MULTILINE), remedy) for pattern, remedy in _LINES.items())
#: A labelled table of GPUs with 0 or N/A on its diagonal, as rocm-smi prints them.
_ROCM_TABLE = re.compile(r"\s*GPU0[ \t]+GPU1\b[^\n]*\n\s*GPU0[ \t]+(?:0|N/A)\s")
_YAML_START = re.compile(
    r"(?:\s|#[^\n]*\n)*(?:---\s|[A-Za-z_][\w-]*:(?:[ \t]*\n|[ \t]+[\[{\"']|[ \t]+[^\s,]+[ \t]*\n))"
)
#: Keys of JSON objects of other formats.
_JSON_KEYS = {
    "intranode_sketch": "this is a sketch of TACCL, which restricts routes and has no links; read its topology",
    "TopologyParams": "this is a TE-CCL input, which names a topology of its code; write its links to another file",
    "adjacency": "this is networkx.adjacency_data; write networkx.node_link_data",
    "elements": "this is Cytoscape JSON; write networkx.node_link_data",
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
    for pattern, remedy in _KNOWN:
        if pattern.search(text):
            msg = f"{what}: {remedy}"
            raise BadFile(msg)
    if _ROCM_TABLE.match(text):
        msg = f"{what}: {_ROCM}"
        raise BadFile(msg)
    if suffix in {".yaml", ".yml"} or _YAML_START.match(text):
        msg = f"{what}: {_YAML}"
        raise BadFile(msg)


def refuse_keys(keys: Collection[str], what: str) -> None:
    """Refuse a JSON object that is recognised by its keys; errors as for :func:`refuse_text`."""
    for key, remedy in _JSON_KEYS.items():
        if key in keys:
            msg = f"{what}: {remedy}"
            raise BadFile(msg)
    if any(key.startswith("(Topology)") for key in keys):
        msg = f"{what}: {_ROCM}"
        raise BadFile(msg)
