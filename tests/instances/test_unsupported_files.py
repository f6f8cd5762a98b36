"""Outputs of other tools that are no topologies with capacities are refused by name, with what to give instead."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import networkx as nx
import pytest

from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile
from opticoll.instances import parse
from opticoll.instances.readers.files import read_topology


def bar(text: str) -> str:
    return f" {text} ".center(90, "=") + "\n"


def table(same: str, other: str, count: int = 4) -> str:
    """A table of GPUs as rocm-smi prints it."""
    names = [f"GPU{i}" for i in range(count)]
    rows = [[name, *(same if name == head else other for head in names)] for name in names]
    return "".join("".join(word.ljust(13) for word in row) + "\n" for row in (["", *names], *rows))


SHOWTOPO = (
    f"\n\n{bar('ROCm System Management Interface')}{bar('Weight between two GPUs')}{table('0', '15')}\n"
    f"{bar('Hops between two GPUs')}{table('0', '1')}\n{bar('Link Type between two GPUs')}{table('0', 'XGMI')}\n"
    f"{bar('Numa Nodes')}GPU[0]\t\t: (Topology) Numa Node: 0\n{bar('End of ROCm SMI Log')}"
)
SHOWNODESBW = f"{bar('ROCm System Management Interface')}{bar('Bandwidth')}{table('N/A', '50000-50000')}"


def smi(other: str, more: str = "\tCPU Affinity\tNUMA Affinity", count: int = 4) -> str:
    """The matrix of ``nvidia-smi topo``."""
    names = [f"GPU{i}" for i in range(count)]
    rows = ["\t".join([name, *(" X " if name == head else other for head in names)]) for name in names]
    return "\n".join(["\t".join(["", *names]) + more, *rows, "", "Legend:", "", "  X    = Self", ""])


def adjacency(write) -> str:
    """Neighbours as networkx writes them, of vertices 1, 2, 3 and 4."""
    stream = io.BytesIO()
    write(nx.relabel_nodes(nx.cycle_graph(4), lambda v: v + 1), stream)
    return stream.getvalue().decode()


HTSIM = "Nodes 32\nTiers 2\nPodsize 32\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n"
IBLINKINFO = """\
CA: node01 HCA-1:
      0x0002c903002f9d31      3    1[  ] ==( 4X          14.0625 Gbps Active/  LinkUp)==>       1    1[  ] "MF0" ( )
"""
ASTRA = """\
# two dimensions
topology: [ Ring, FullyConnected ]
npus_count: [ 4, 8 ]
bandwidth: [ 50.0, 25.0 ]  # GB/s
latency: [ 500.0, 500.0 ]  # ns
"""
AMD_SMI = """\
ACCESS TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 ENABLED      ENABLED
0000:22:00.0 ENABLED      ENABLED
"""
P2P = """\
P2P Connectivity Matrix
     D\\D     0     1
     0       1     1
     1       1     1
"""
NVLINK = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\nGPU 1: NVIDIA A100 (UUID: GPU-2)\n"

TEXTS = {
    "rocm-smi --showtopo": (SHOWTOPO, "txt", "rocm-smi .* not how many there are; dump RCCL's topology"),
    "its command before it": ("$ rocm-smi --showtopo" + SHOWTOPO, "txt", "dump RCCL's topology"),
    "a part of it": (bar("Weight between two GPUs") + table("0", "15"), "txt", "dump RCCL's topology"),
    "a table of it": (table("0", "15"), "txt", "dump RCCL's topology"),
    "types alone": (table("0", "XGMI"), "txt", "dump RCCL's topology"),
    "rocm-smi --shownodesbw": (SHOWNODESBW, "txt", "dump RCCL's topology"),
    "its table": (table("N/A", "50000-50000"), "txt", "dump RCCL's topology"),
    "rocm-smi --csv": ("device,(Topology) Numa Node\ncard0,0\n", "csv", "dump RCCL's topology"),
    "rocm-smi --json": ('{"system": {"(Topology) Weight between DRM devices 0 and 1": "15"}}', "json", "dump RCCL's"),
    "amd-smi topology": (AMD_SMI, "txt", "amd-smi .*dump RCCL's topology"),
    "ASTRA-sim": (ASTRA, "yml", r"a network of ASTRA-sim.*; give a family, such as ring:8\+unit=50GiB/s"),
    "ASTRA-sim under another name": (ASTRA, "txt", "a network of ASTRA-sim"),
    "ASTRA-sim in lists": ("topology:\n  - Ring\nnpus_count:\n  - 8\nbandwidth:\n  - 50.0\n", "txt", "of ASTRA-sim"),
    "ASTRA-sim in JSON": ('{"topologies-per-dim": ["Ring"], "units-count": [8]}', "json", "a network of ASTRA-sim"),
    "ns-3": ("3 1 2 100Gbps 0.0005ms 0\n2\n0 2 400Gbps 0.0005ms 0\n1 2 400Gbps 0.0005ms 0\n", "txt", "first three col"),
    "SimAI": ("12 4 4 4 8 H100\n8 9 10 11\n0 8 2400Gbps 0.000025ms 0\n", "txt", "keep the first three columns"),
    "YAML": ("nodes:\n  - a\nlinks:\n  - {source: a, target: b}\n", "yaml", "YAML is not read; write its links"),
    "YAML under another name": ("---\nnodes: [a, b]\nlinks: [[a, b]]\n", "txt", "YAML is not read"),
    "YAML of two words a line": ("tail: a\nhead: b\n", "txt", "YAML is not read"),
    "iblinkinfo": (IBLINKINFO, "txt", "the output of iblinkinfo; save that of ibnetdiscover"),
    "iblinkinfo of a switch": (
        'Switch: 0x0002c9020046c588 MF0:\n      2    1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==>  6  1[ ] "n1" ( )\n',
        "txt",
        "the output of iblinkinfo; save",
    ),
    "lstopo": (
        "Machine (503GB total)\n  Package L#0\n    NUMANode L#0 (P#0 251GB)\n",
        "txt",
        "the text of lstopo .*write lstopo x.xml.*NCCL_TOPO",
    ),
    "log of NCCL": ("node:1:2 [0] NCCL INFO === System : maxBw 240.0 ===\n", "txt", "a log of NCCL; dump NCCL's"),
    "p2pBandwidthLatencyTest": (P2P, "txt", "save one square matrix of bandwidths"),
    "nvidia-smi nvlink": (NVLINK, "txt", "does not tell where .*; save the matrix of nvidia-smi topo -m"),
    "nvidia-smi -q -x": ("<?xml version='1.0'?><nvidia_smi_log><gpu/></nvidia_smi_log>", "xml", "nvidia-smi topo -m"),
    "nvidia-smi topo -mp": (smi("SYS"), "txt", "topo -mp` omits NVLinks: save the matrix of nvidia-smi topo -m"),
    "its command before": ("$ nvidia-smi topo -mp\n" + smi("PIX"), "txt", "topo -mp` omits NVLinks"),
    "nvidia-smi topo -p2p": (smi("OK", ""), "txt", "the matrix of topo -p2p; save that of topo -m"),
    "adjacency of networkx": (json.dumps(nx.adjacency_data(nx.path_graph(3))), "json", "write networkx.node_link_data"),
    "Cytoscape": (json.dumps(nx.cytoscape_data(nx.path_graph(3))), "json", "Cytoscape JSON; write networkx.node_link"),
    "MSCCL++": (
        '{"name": "a", "protocol": "Simple", "num_threads_per_block": 1024, "gpus": []}',
        "json",
        "a plan of MSCCL",
    ),
    "Slurm's blocks": ("# Slurm\nBlockName=b1 Nodes=node[1-4]\nBlockSizes=4\n", "txt", "Slurm's blocks and rings"),
    "csg-htsim": (HTSIM, "topo", "a fat tree of csg-htsim.*give fat-tree:k=4"),
    "traffic of csg-htsim": ("Nodes 4\nConnections 2\n0->1 start 0 size 100\n", "cm", "a traffic without links"),
    "LGL": ("# gpu0\nsw0 10\n# gpu1\nsw0 20\n", "txt", "an LGL file, in which # begins the links"),
    "LGL of numbers": ("# 0\n2\n# 1\n2\n", "txt", "an LGL file"),
    "LGL by its name": ("# a\nb\n", "lgl", "an LGL file"),
    "workload of SimAI": (
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16\n3\ngrad\t-1\t1\tNONE\t0\n",
        "txt",
        "a workload of SimAI or ASTRA-sim, .*; give a network",
    ),
    "map of Rocketfuel": (
        "16 @Bern,+Switzerland + bb\t(2) -> <2> =a.example r0\n",
        "cch",
        "maps of Rocketfuel have no cap",
    ),
    "latencies of Rocketfuel": ("Bern,+CH1 Basel,+CH2 7\nBern,+CH1 Chur,+CH3 9\n", "intra", "maps of Rocketfuel"),
    "DL": ("DL N = 3\nData:\n0 1 1\n1 0 0\n1 0 0\n", "dl", "UCINET's DL is not read; write its links to an edge list"),
    "DL with a format": ("dl n=3\nformat=edgelist1\ndata:\n1 2\n", "txt", "UCINET's DL is not read"),
    "LEDA": ("LEDA.GRAPH\nstring\ndouble\n-2\n3\n|{a}|\n", "txt", "LEDA graphs are not read"),
    "DIMACS": (
        "c a comment\np max 4 1\nn 1 s\nn 4 t\na 1 2 3\n",
        "max",
        "DIMACS problems are not read; write its links",
    ),
    "DIMACS of a graph": ("p edge 3 1\ne 1 2\n", "col", "DIMACS problems are not read"),
    "FNSS": (
        '<?xml version="1.0"?>\n<topology linkdefault="directed"><node id="1"/></topology>',
        "xml",
        "FNSS is not read",
    ),
    "Net2Plan": ("<network nextElementId='3'><node/></network>", "n2p.xml", "Net2Plan designs are not read"),
    "neighbours": (adjacency(nx.write_adjlist), "adj", "write_adjlist .* list neighbours without capacities"),
    "many lines of neighbours": (adjacency(nx.write_multiline_adjlist), "txt", "list neighbours without capacities"),
    "tree of networkx": ('{"id": 1, "children": [{"id": 2}]}', "json", "an object with 'id', 'children' has neither"),
    "list in JSON": ("[[0, 1], [1, 0]]", "json", "a list has neither 'opticoll-topology/1' in 'format' nor"),
    "number in JSON": ("3", "json", "a number has neither"),
    "empty object in JSON": ("{}", "json", "an empty object has neither"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_output_of_another_tool_is_refused_by_name(name: str, tmp_path: Path, capfd) -> None:
    text, suffix, message = TEXTS[name]
    path = tmp_path / f"net.{suffix}"
    path.write_text(text)
    with pytest.raises(BadFile, match=message) as refused:
        read_topology(path)
    assert main(["bounds", f"file:{path}"]) == 2
    assert capfd.readouterr().err.strip().endswith(str(refused.value))


SOUND = {
    "comments about tools": "# rocm-smi --showtopo, NCCL INFO, npus_count: 3\na b 2 # vendid=0x1\nb a 2\n",
    "colons in names": "a:1 b:2 2\nb:2 a:1 2\n",
    "GPUs by name": "GPU0 GPU1 2\nGPU1 GPU0 2\n",
    "comments of one word": "# ring\na b 2\n# back\nb a 2\n",
    "heading": "src,dst,bandwidth\nGPU0,GPU1,2\nGPU1,GPU0,2\n",
}


@pytest.mark.parametrize("name", SOUND)
def test_edge_lists_are_still_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_text(SOUND[name])
    assert read_topology(tmp_path / "net.txt").capacity.tolist() == [2, 2]


def test_the_family_that_is_suggested_for_astra_sim_exists() -> None:
    assert parse("ring:8+unit=50GiB/s").capacity_unit == "50GiB/s"


def gml(*edges: str, node: str = "") -> str:
    nodes = "".join(f'node [ id {v} label "{name}" {node} ]\n' for v, name in enumerate("abc"))
    return f"graph [\ndirected 1\n{nodes}{''.join(f'edge [ {edge} ]' + chr(10) for edge in edges)}]\n"


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("+INF", "write a number that it cannot exceed"),
        ("INF", "write a number"),
        ("-INF", "omit arcs without"),
        ("NAN", "omit arcs without"),
    ],
)
def test_an_infinite_capacity_in_gml_is_refused_as_such(word: str, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "net.gml"
    path.write_text(gml("source 0 target 1 capacity 2", f"source 1 target 0 capacity {word}"))
    with pytest.raises(
        BadFile, match=rf"line 7 \('1'->'0'\): capacity '{re.escape(word)}' must be positive and finite \({remedy}"
    ):
        read_topology(path)


def test_gml_of_networkx_with_infinities_elsewhere_is_read(tmp_path: Path) -> None:
    graph = nx.DiGraph([(0, 1, {"capacity": 2.0, "weight": float("inf")}), (1, 0, {"capacity": 3.0})])
    nx.set_node_attributes(graph, {0: float("-inf"), 1: float("nan")}, "height")
    path = tmp_path / "net.gml"
    nx.write_gml(graph, path)
    assert "+INF" in path.read_text()
    assert read_topology(path).capacity.tolist() == [2, 3]
    path.write_text(path.read_text().replace("+INF", "INF"))
    assert read_topology(path).capacity.tolist() == [2, 3]
