"""Files of formats that are not read, and capacities that are infinite or missing, are refused with their place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import networkx as nx
import pytest

import opticoll as oc
from opticoll.errors import BadFile, BadInput
from opticoll.instances import parse
from opticoll.instances.readers.files import read_topology

TEXTS = {
    "ASTRA-sim": (
        "topology: [ Ring, Ring ]\nnpus_count: [ 4, 8 ]\n",
        "yml",
        "line 1: 'topology: .* are names",
    ),
    "ns-3": (
        "3 1 2 100Gbps 0.0005ms 0\n2\n0 2 400Gbps 0.0005ms 0\n",
        "txt",
        "line 1: .* name another format",
    ),
    "log of NCCL": ("node:1:2 [0] NCCL INFO === System : maxBw 240.0 ===\n", "txt", "line 1: 'node:1:2 .*format=NAME"),
    "Slurm": (
        "SwitchName=s0 Nodes=t[0-1]\nSwitchName=s2 Switches=s[0-1] LinkSpeed=100\n",
        "conf",
        "line 1: .* are names that",
    ),
    "csg-htsim": (
        "Nodes 32\nTiers 2\n\nTier 0\nRadix_Down 8\n",
        "topo",
        "every line is a name and a number",
    ),
    "LGL": ("# gpu0\nx0 10\n# gpu1\nx0 20\n", "txt", "every line is a name and a number"),
    "DOT": (
        "/* igraph */\ngraph {\n  0 -- 1 [\n    capacity=10\n  ];\n}\n",
        "dot",
        "line 2: .* is not a networkx edge",
    ),
    "Pajek": ('*Vertices 2\n1 "a"\n2 "b"\n*Edges\n1 2\n', "net", "line 4: '.Edges' is not an arc"),
    "Matrix Market": ("%%MatrixMarket matrix coordinate real general\n", "mtx", "line 1: .* begins like a comment"),
    "METIS": ("% cubic\n4 6\n2 3 4\n1 3 4\n1 2 4\n1 2 3\n", "txt", "begins like a comment"),
    "METIS without comments": ("3 3\n2 3\n1 3\n1 2\n", "metis", "loop|may be|numbered from 1"),
    "graph6": (nx.to_graph6_bytes(nx.petersen_graph()).decode(), "g6", "line 1"),
    "GEXF": (
        "<gexf xmlns='http://www.gexf.net/1.2draft'><graph/></gexf>",
        "gexf",
        "<gexf> begins no topology",
    ),
    "hwloc": (
        "<topology><object type='Machine'/></topology>",
        "xml",
        "<topology> begins no topology; roots",
    ),
    "Net2Plan": ("<network nextElementId='3'><node/></network>", "n2p.xml", "no vertices"),
    "neighbours": ("1 2 4\n2 3\n3 4\n4\n", "adj", "line 4: '4' is not an arc"),
    "adjacency of networkx": (json.dumps(nx.adjacency_data(nx.path_graph(3))), "json", "has neither"),
    "tree of networkx": ('{"id": 1, "children": [{"id": 2}]}', "json", "an object with 'id', 'children' has neither"),
    "list in JSON": ("[[0, 1], [1, 0]]", "json", "a list has neither 'opticoll-topology/1' in 'format' nor"),
    "number in JSON": ("3", "json", "a number has neither"),
    "empty object in JSON": ("{}", "json", "an empty object has neither"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_files_of_other_formats_are_refused(name: str, tmp_path: Path) -> None:
    text, suffix, message = TEXTS[name]
    path = tmp_path / f"net.{suffix}"
    path.write_text(text)
    with pytest.raises(BadFile, match=message):
        read_topology(path)


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


GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="c" for="edge" attr.name="capacity"/>'
    '<graph edgedefault="directed"><node id="a"/><node id="b"/><node id="c"/>'
    '<edge source="a" target="b"><data key="c">1</data></edge><edge source="b" target="c"/></graph></graphml>'
)
NODE_LINK = {
    "directed": True,
    "nodes": [{"id": name} for name in "abc"],
    "edges": [{"source": "a", "target": "b", "capacity": 1}, {"source": "b", "target": "c"}],
}
MISSING = {
    "gml": (gml("source 0 target 1 capacity 2", "source 1 target 2"), "", "line 7: the edge '1'->'2'"),
    "graphml": (GRAPHML, "", "edge 2: the edge 'b'->'c'"),
    "json": (json.dumps(NODE_LINK), "", "edge 1: the edge 'b'->'c'"),
    "txt": ("a b {'capacity': 1}\nb c {}\n", ",directed=true", "line 2: the edge 'b'->'c'"),
}


@pytest.mark.parametrize("suffix", MISSING)
def test_an_edge_without_a_capacity_is_named(suffix: str, tmp_path: Path) -> None:
    text, options, place = MISSING[suffix]
    path = tmp_path / f"net.{suffix}"
    path.write_text(text)
    with pytest.raises(BadFile, match=f"{place} has no attribute 'capacity'; give every edge a capacity"):
        parse(f"file:{path}{options}")
    with pytest.raises(BadFile, match="has no attribute 'speed'"):
        parse(f"file:{path}{options},capacity=speed")


def test_an_edge_of_a_graph_in_python_without_a_capacity_is_named() -> None:
    with pytest.raises(BadInput, match="edge 1: the edge 'b'->'c' has no attribute 'capacity'"):
        oc.topology(nx.DiGraph([("a", "b", {"capacity": 1}), ("b", "c", {})]))
