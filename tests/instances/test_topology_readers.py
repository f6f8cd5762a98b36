"""Topology files of other tools: read as those tools define them, or refused in one line that names the line."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import networkx as nx
import pytest
from changed_files import changed_files
from saved_networks import arcs, written

import opticoll as oc
from opticoll.errors import BadFile, BadInput, NotApplicable
from opticoll.instances import parse
from opticoll.instances.demands import read_demand
from opticoll.instances.readers.files import read_topology
from opticoll.instances.readers.read_options import ReadOptions
from opticoll.instances.readers.stated_rates import rate_in, resembles_rate

#: Files that other projects publish.
PUBLISHED = Path(__file__).parents[1] / "data" / "third-party"


def arcs_of(topology):
    """Capacity by labels of the ends, parallel arcs added."""
    result = defaultdict(float)
    for u, v, c in arcs(topology):
        result[u, v] += c
    return dict(result)


def both(arcs):
    return {**arcs, **{(v, u): c for (u, v), c in arcs.items()}}


def _box(switched=True, cpus=2, per=2, kind="0x068000"):
    """A machine as NCCL dumps it: GPUs and NICs below PCIe switches of Intel CPUs, NVLinks to two NVSwitches."""
    lines = ['<system version="1">']
    for cpu in range(cpus):
        lines.append(f'<cpu numaid="{cpu}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">')
        for g in range(cpu * per, (cpu + 1) * per):
            links = [f'<nvlink target="0000:0{s}:00.0" count="9" tclass="{kind}"/>' for s in (5, 6)] if switched else []
            lines += [
                f'<pci busid="0000:{g + 16:02x}:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">',
                f'<pci busid="0000:{g + 64:02x}:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">',
                f'<gpu dev="{g}" sm="90" rank="{g}" gdr="1">',
                *links,
                "</gpu></pci>",
                f'<pci busid="0000:{g + 128:02x}:00.0" class="0x020700" link_speed="16 GT/s" link_width="16">',
                f'<nic><net name="mlx5_{g}" dev="{g}" speed="400000"/></nic></pci></pci>',
            ]
        lines.append("</cpu>")
    return "\n".join([*lines, "</system>"])


def _smi(cells, extra="NIC0\tCPU Affinity\tNUMA Affinity"):
    names = [f"GPU{i}" for i in range(len(cells))]
    head = "\t\x1b[4m" + "\t".join(names) + f"\t{extra}\x1b[0m"
    rows = [f"{name}\t" + "\t".join(row) + "\tPIX\t0-51\t0" for name, row in zip(names, cells, strict=True)]
    return "\n".join([head, *rows, "NIC0\t" + "PIX\t" * len(cells) + " X ", "", "Legend:", "", "  X    = Self"])


def _uniform(n, word):
    return [[" X " if i == j else word for j in range(n)] for i in range(n)]


def _switched(counts):
    """What nvidia-smi shows of GPUs with these numbers of NVLinks to NVSwitches."""
    return [[" X " if i == j else f"NV{min(a, b)}" for j, b in enumerate(counts)] for i, a in enumerate(counts)]


SNDLIB = """?SNDlib native format; type: network; version: 1.0
# network demo
META (
  granularity = 15min
)
NODES (
  A ( 18.60 54.20 )
  B ( 21.00 52.20 )
  C ( 1.0 -2.0 ) ( ) ( )
)
LINKS (
  L0 ( A B ) 40.00 0.00 0.00 156.00 ( 155.00 156.00 622.00 468.00 )
  L1 ( B C ) 10.00 0.00 0.00 156.00 ( )
  L2 ( B C ) 5 0 0 0 ( )
)
DEMANDS (
  D1 ( A C ) 1 12.5 UNLIMITED
  D2 ( A C ) 2 0.5 4
  D3 ( C B ) 1 3 UNLIMITED
)
ADMISSIBLE_PATHS (
  D1 (
    P_0 ( L0 L1 )
  )
)
"""
SNDLIB_XML = """<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <networkStructure>
  <nodes><node id="A"><coordinates><x>1</x><y>2</y></coordinates></node><node id="B"/><node id="C"/></nodes>
  <links>
   <link id="L0"><source>A</source><target>B</target>
    <preInstalledModule><capacity>40.0</capacity><cost>0</cost></preInstalledModule></link>
   <link id="L1"><source>B</source><target>C</target>
    <preInstalledModule><capacity>15</capacity><cost>0</cost></preInstalledModule>
    <additionalModules><addModule><capacity>40</capacity><cost>5</cost></addModule></additionalModules></link>
  </links>
 </networkStructure>
 <demands>
  <demand id="D1"><source>A</source><target>C</target><routingUnit>2</routingUnit>
   <demandValue>6.75</demandValue></demand>
  <demand id="D3"><source>C</source><target>B</target><demandValue>3.0</demandValue></demand>
 </demands>
</network>
"""
GML = """Creator "Topology Zoo Toolset"
graph [
  directed 0
  stats [ a 1 ]
  node [
    id 0
    label "Z&#252;rich"
  ]
  node [ id 1 label "Bern" ]
  edge [ source 0 target 1 LinkSpeedRaw 10000000000.0 LinkLabel "10 Gbps" ]
  edge [ source 0 target 1 LinkSpeedRaw 2500000000.0 ]
]
"""
NETWORKX = "0 1 {'capacity': 2.0}\n1 2 {'capacity': 1.0, 'note': 'x'}\n2 0 {'capacity': 3}\n"
MSCCL = {"msccl_type": "topology", "name": "x", "switches": [], "links": [[0, 1, 1], [1, 0, 2], [1, 3, 0]]}
TACCL = {
    "name": "NDv2",
    "gpus_per_node": 8,
    "nics_per_node": 1,
    "alpha": 0.3,
    "node_betas_list": [23, 46],
    "node_invbws_list": [20, 40],
    "remote_invbw": 107,
    "remote_alpha": 2.6,
    "remote_beta": 105,
}
#: As igraph, rustworkx, yEd, topohub, Gephi and the Topology Zoo write networks; the names are ours.
IGRAPH_GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<!-- Created by igraph -->
  <key id="v_name" for="node" attr.name="name" attr.type="string"/>
  <key id="e_capacity" for="edge" attr.name="capacity" attr.type="double"/>
  <graph id="G" edgedefault="undirected">
    <node id="n0"><data key="v_name">gpu0</data></node>
    <node id="n1"><data key="v_name">gpu1</data></node>
    <node id="n2"><data key="v_name">sw0</data></node>
    <edge source="n0" target="n2"><data key="e_capacity">10</data></edge>
    <edge source="n1" target="n2"><data key="e_capacity">20</data></edge>
  </graph>
</graphml>
"""
IGRAPH_GML = """Creator "igraph version 1.0.0 Sat Nov 28 21:03:23 2026"
Version 1
graph
[
  directed 0
  node [ id 0 name "gpu0" ]
  node [ id 1 name "gpu1" ]
  node [ id 2 name "sw0" ]
  edge [ source 2 target 0 capacity 10 ]
  edge [ source 2 target 1 capacity 20 ]
]
"""
YED = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
<key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d10" yfiles.type="edgegraphics"/>
<graph edgedefault="undirected" id="G">
<node id="n0"><data key="d6"><y:ShapeNode><y:NodeLabel>gpu0</y:NodeLabel></y:ShapeNode></data></node>
<node id="n1"><data key="d6"><y:ShapeNode><y:NodeLabel>gpu1</y:NodeLabel></y:ShapeNode></data></node>
<node id="n2"><data key="d6"><y:ShapeNode><y:NodeLabel>sw0</y:NodeLabel></y:ShapeNode></data></node>
<edge source="n0" target="n2"><data key="d10"><y:PolyLineEdge><y:EdgeLabel>10 Gb/s</y:EdgeLabel>
</y:PolyLineEdge></data></edge>
<edge source="n1" target="n2"><data key="d10"><y:PolyLineEdge><y:EdgeLabel>20 Gb/s</y:EdgeLabel>
</y:PolyLineEdge></data></edge>
</graph></graphml>
"""
RUSTWORKX = {
    "directed": False,
    "multigraph": True,
    "attrs": None,
    "nodes": [{"id": i, "data": {"name": name}} for i, name in enumerate(("gpu0", "gpu1", "sw0"))],
    "links": [{"source": i, "target": 2, "id": i, "data": {"capacity": str(10 * i + 10)}} for i in range(2)],
}
#: What each of these four states.
STAR = {("gpu0", "sw0"): 10.0, ("gpu1", "sw0"): 20.0}
TOPOHUB = {
    "directed": False,
    "multigraph": False,
    "graph": {"name": "two", "demands": {"0": {"1": 3.0}}, "stats": {"nodes": 2}},
    "nodes": [{"name": "R0", "pos": [1.0, 2.0], "id": 0}, {"name": "R1", "pos": [3.0, 4.0], "id": 1}],
    "edges": [{"dist": 3.5, "ecmp_fwd": {"uni": 1.0}, "source": 0, "target": 1}],
}
GEPHI = "Source,Target,Type,Id,Label,timeset,Weight\na,b,Undirected,0,,,2\nb,c,{},1,,,3\n"


def zoo(*labels, key="label"):
    """A file of the Topology Zoo: a path of cities, with the text of every link."""
    nodes = "".join(f'  node [\n    id {i}\n    label "City {chr(65 + i)}"\n  ]\n' for i in range(len(labels) + 1))
    edges = "".join(
        f"  edge [\n    source {i}\n    target {i + 1}\n" + (f'    {key} "{text}"\n' if text else "") + "  ]\n"
        for i, text in enumerate(labels)
    )
    return f"graph [\n{nodes}{edges}]\n"


TRIANGLE = {("0", "1"): 2.0, ("1", "2"): 1.0, ("2", "0"): 3.0}


def case(text, suffix, arcs=None, options="", ranks=None, unit=None):
    """A file, the arcs that it states (None: not compared), options, the number of ranks (None: all), and the unit."""
    count = len({end for arc in arcs or () for end in arc}) if ranks is None else ranks
    return text, suffix, options, arcs, count, unit


#: Files of other tools, and what is read.
READ = {
    "nccl": case(_box(), "xml", both({(f"gpu{g}", "nvswitch"): 370.8 for g in range(4)}), ranks=4, unit="GB/s"),
    "nccl-power": case(_box(kind="0x068001").replace('sm="90"', 'sm="70"'), "xml", ranks=4, unit="GB/s"),
    **{
        f"nvidia-smi after {line!r}": case(
            f"{line}\n" + _smi(_uniform(2, "NV18")), "txt", both({("gpu0", "gpu1"): 18.0})
        )
        for line in ("$ nvidia-smi topo -m", "root@ff9250fe4fe3:/# nvidia-smi topo -m", "GPU topology:", "")
    },
    "nvswitch": case(
        _smi(_uniform(8, "NV18")), "txt", both({(f"gpu{g}", "nvswitch"): 18.0 for g in range(8)}), ranks=8
    ),
    "nv4": case(
        _smi(_uniform(4, "NV4")),
        "txt",
        {(f"gpu{i}", f"gpu{j}"): 4.0 for i in range(4) for j in range(4) if i != j},
        options=",capacity=25GB/s",
        unit="25GB/s",
    ),
    "nv6-switch": case(
        _smi(_uniform(4, "NV6")),
        "txt",
        both({(f"gpu{g}", "nvswitch"): 6.0 for g in range(4)}),
        options=",wiring=switch",
        ranks=4,
    ),
    "sndlib": case(SNDLIB, "txt", both({("A", "B"): 40.0, ("B", "C"): 15.0})),
    "sndlib-without-first-line": case(SNDLIB.partition("\n")[2], "txt", both({("A", "B"): 40.0, ("B", "C"): 15.0})),
    "sndlib-directed": case(SNDLIB, "txt", {("A", "B"): 40.0, ("B", "C"): 15.0}, options=",directed=true"),
    "sndlib-module": case(
        SNDLIB.replace("156.00 ( )", "156.00 ( 7 1 155 2 )").replace("5 0 0 0 ( )", "0 0 0 0 ( 8 1 )"),
        "txt",
        both({("A", "B"): 155.0, ("B", "C"): 15.0}),
        options=",capacity=module_1_capacity",
    ),
    "sndlib-xml": case(SNDLIB_XML, "xml", both({("A", "B"): 40.0, ("B", "C"): 15.0})),
    "gml": case(GML, "gml", both({("Zürich", "Bern"): 1.25e10}), unit="b/s"),
    "gml-equal": case(GML, "txt", both({("Zürich", "Bern"): 2.0}), options=",capacity=1"),
    "networkx": case(NETWORKX, "txt", TRIANGLE, options=",directed=true"),
    "networkx-undirected": case(NETWORKX, "txt", both(TRIANGLE), options=",directed=false"),
    "networkx-declared": case("#: directed\n" + NETWORKX, "txt", TRIANGLE),
    "msccl": case(
        json.dumps(MSCCL),
        "json",
        {("0", "1"): 1, ("1", "0"): 1, ("2", "0"): 1, ("0", "2"): 1, ("2", "1"): 2, ("1", "2"): 3},
    ),
    "msccl-algo": case(json.dumps({"msccl_type": "algorithm", "topology": MSCCL}), "json", ranks=3),
    "taccl-ndv2": case(json.dumps(TACCL), "json", options=",wiring=ndv2", ranks=8, unit="GB/s"),
    "taccl-links": case(
        json.dumps({**TACCL, "gpus_per_node": 2, "links": [[0, 2], [1, 0]], "invbws": [[0, 8], [20, 0]]}),
        "json",
        {("1", "0"): 250.0, ("0", "1"): 50.0},
        unit="GB/s",
    ),
    "taccl-dgx2": case(
        json.dumps({**TACCL, "gpus_per_node": 16, "node_invbws_list": [8]}),
        "json",
        both({(str(g), "switch"): 125.0 for g in range(16)}),
        options=",wiring=dgx2",
        ranks=16,
        unit="GB/s",
    ),
    "matrix-labels": case(",a,b,c\na,0,1,0\nb,0,0,2\nc,3,0,0\n", "csv", {("a", "b"): 1, ("b", "c"): 2, ("c", "a"): 3}),
    "matrix-other-order": case(",a,b\nb,2,0\na,0,1\n", "csv", {("a", "b"): 1, ("b", "a"): 2}),
    "matrix-corner": case("node,a,b\na,0,1\nb,2,0\n", "csv", {("a", "b"): 1, ("b", "a"): 2}),
    "matrix": case(
        "0 1 0 1\n1 0 1 0\n0 1 0 1\n1 0 1 0\n",
        "txt",
        both({("0", "1"): 1, ("1", "2"): 1, ("2", "3"): 1, ("3", "0"): 1}),
    ),
    "matrix-3": case(
        "0 1 0\n0 0 2\n3 0 0\n", "txt", {("0", "1"): 1, ("1", "2"): 2, ("2", "0"): 3}, options=",format=matrix"
    ),
    "matrix-triangle": case(
        "0 1 2\n0 0 3\n0 0 0\n",
        "txt",
        both({("0", "1"): 1, ("0", "2"): 2, ("1", "2"): 3}),
        options=",format=matrix,directed=false",
    ),
    "units": case("src,dst,bw\na,b,400Gbps\nb,a,25 GB/s\n", "csv", {("a", "b"): 400.0, ("b", "a"): 200.0}, unit="Gbps"),
    "units-declared": case(
        "#: unit GB/s\na b 400Gb/s\nb a 25 GB/s\n", "txt", {("a", "b"): 50.0, ("b", "a"): 25.0}, unit="GB/s"
    ),
    "no-capacity": case("src,dst\na,b\nb,a\n", "csv", both({("a", "b"): 1.0})),
    "one-rate": case("a,b,7\nb,a,7\n", "csv", both({("a", "b"): 100.0}), options=",capacity=100Gb/s", unit="Gb/s"),
    "heading": case(
        "id,Source,Target,Weight,color\n1,a,b,4,x\n2,b,a,5,y\n",
        "csv",
        {("a", "b"): 4.0, ("b", "a"): 5.0},
        options=",capacity=Weight",
    ),
    "quotes": case('source,target,capacity\n"a, 1",b,4\nb,"a, 1",5\n', "csv", {("a, 1", "b"): 4, ("b", "a, 1"): 5}),
    "first": case("1 2\n3 1\n2 3\n", "txt", {("1", "2"): 1, ("2", "3"): 1, ("3", "1"): 1}, options=",first=1"),
    "ranks": case(
        "gpu0 sw0\ngpu1 sw0\n",
        "txt",
        both({("gpu0", "sw0"): 1, ("gpu1", "sw0"): 1}),
        options=",directed=false,ranks=gpu*",
        ranks=2,
    ),
    "nvswitch-with-a-dead-link": case(
        _smi(_switched([18, 18, 17, 18])),
        "txt",
        both({(f"gpu{g}", "nvswitch"): 17.0 if g == 2 else 18.0 for g in range(4)}),
        ranks=4,
    ),
    "igraph-graphml": case(IGRAPH_GRAPHML, "graphml", both(STAR), options=",switches=sw*", ranks=2),
    "igraph-gml": case(IGRAPH_GML, "gml", both(STAR), options=",ranks=gpu*", ranks=2),
    "yed": case(YED, "graphml", both(STAR), options=",switches=sw*", ranks=2, unit="Gb/s"),
    "rustworkx": case(json.dumps(RUSTWORKX), "json", both(STAR), options=",switches=sw*", ranks=2),
    "topohub": case(json.dumps(TOPOHUB), "json", both({("R0", "R1"): 1.0}), options=",capacity=1"),
    "gephi": case(
        GEPHI.format("Undirected"), "csv", both({("a", "b"): 2.0, ("b", "c"): 3.0}), options=",capacity=Weight"
    ),
    "gephi-mixed": case(
        GEPHI.format("Directed"), "csv", both({("a", "b"): 2.0}) | {("b", "c"): 3.0}, options=",capacity=Weight"
    ),
    "zoo-rates": case(
        zoo("45 Mbps DS-3", "1.5 Mbps", "1 Gbps Ethernet"),
        "gml",
        both({("City A", "City B"): 45.0, ("City B", "City C"): 1.5, ("City C", "City D"): 1000.0}),
        unit="Mbps",
    ),
    "sndlib-equal": case(
        SNDLIB_XML.replace(">15<", ">0<"), "xml", both({("A", "B"): 1.0, ("B", "C"): 1.0}), options=",capacity=1"
    ),
}


@pytest.mark.parametrize("name", READ)
def test_files_of_other_tools(tmp_path, name):
    text, suffix, options, arcs, ranks, unit = READ[name]
    topology = parse(f"file:{written(tmp_path, text, suffix)}{options}")
    assert (topology.num_ranks, topology.capacity_unit) == (ranks, unit)
    if arcs is not None:
        assert arcs_of(topology) == pytest.approx(arcs)
    assert parse(topology.spec) == topology
    for copy in ("copy.json", "copy.graphml", "copy.csv"):
        oc.save_topology(topology, tmp_path / copy)
        again = parse(f"file:{tmp_path / copy}")
        assert (again, again.labels, again.capacity_unit) == (topology, topology.labels, unit)


def test_pcie_of_nccl(tmp_path):
    path = written(tmp_path, _box(), "xml")
    arcs = arcs_of(parse(f"file:{path},wiring=pci"))
    assert arcs["cpu0", "cpu1"] == 22.0  # Sapphire Rapids
    assert arcs["gpu0", "0000:10:00.0"] == arcs["0000:10:00.0", "cpu0"] == 48.0  # 16 lanes of 24 Gb/s
    assert len(arcs) == 2 * (4 + 4 + 1)  # NICs lead out of the machine
    everything = arcs_of(parse(f"file:{path},wiring=all"))
    assert everything == {**arcs, **arcs_of(parse(f"file:{path}"))}
    alone = _box(switched=False)
    assert arcs_of(parse(f"file:{written(tmp_path, alone, 'xml')}")) == arcs  # no NVLinks: NCCL goes over PCIe


def test_nvlinks_between_gpus(tmp_path):
    text = _box(cpus=1, per=2).replace(
        'target="0000:05:00.0" count="9" tclass="0x068000"', 'target="0000:41:00.0" count="2" tclass="0x030200"', 1
    )
    text = text.replace(
        'target="0000:05:00.0" count="9" tclass="0x068000"', 'target="0000:40:00.0" count="3" tclass="0x030200"', 1
    )
    text = re.sub(r'<nvlink target="0000:06[^>]*>', "", text)
    assert arcs_of(parse(f"file:{written(tmp_path, text, 'xml')}")) == pytest.approx(
        {("gpu0", "gpu1"): 41.2, ("gpu1", "gpu0"): 61.8}
    )


def test_taccl_wires_ndv2_as_the_dgx1(tmp_path):
    topology = parse(f"file:{written(tmp_path, json.dumps(TACCL), 'json')},wiring=ndv2")
    scaled = topology.scaled(1 / 25.0)
    kinds = [nx.DiGraph([(u, v, {"c": round(c)}) for (u, v), c in arcs_of(t).items()]) for t in (scaled, parse("dgx1"))]
    assert nx.is_isomorphic(*kinds, edge_match=lambda a, b: a["c"] == b["c"])


def test_switches_of_msccl_limit_what_a_rank_sends_and_receives(tmp_path):
    links = [[0 if u == v else 1 for u in range(3)] for v in range(3)]
    switches = [[[u], [v for v in range(3) if v != u], 1, "out"] for u in range(3)]
    switches += [[[v for v in range(3) if v != u], [u], 1, "in"] for u in range(3)]
    path = written(tmp_path, json.dumps({**MSCCL, "links": links, "switches": switches}), "json")
    assert oc.solve("alltoall.master", f"file:{path}").metrics["T"] == pytest.approx(2.0)


def test_booleans_of_written_graphml_are_those_of_xml(tmp_path):
    topology = oc.topology(nx.Graph([("True", "s1"), ("b", "s1")]), switches="s*", capacity=1)
    oc.save_topology(topology, tmp_path / "net.graphml")
    text = (tmp_path / "net.graphml").read_text(encoding="utf-8")
    assert re.findall(r">(True|False|true|false)<", text) == ["True", "true", "false", "true"]  # the first is a name
    assert read_topology(tmp_path / "net.graphml") == topology


@pytest.mark.parametrize("write", [nx.write_gml, nx.write_graphml])
def test_large_and_fractional_capacities_of_networkx(tmp_path, write):
    graph = nx.Graph()
    graph.add_edge("a", "b", capacity=400_000_000_000)  # GML has it as text
    graph.add_edge("b", "c", capacity=2.5)  # GraphML has two keys of one name
    path = tmp_path / f"net.{write.__name__.removeprefix('write_').split('_')[0]}"
    write(graph, path)
    assert arcs_of(read_topology(path)) == both({("a", "b"): 4e11, ("b", "c"): 2.5})


def test_demands_of_network_files(tmp_path):
    for name, text in (("txt", SNDLIB), ("net", SNDLIB.partition("\n")[2]), ("xml", SNDLIB_XML)):
        path = written(tmp_path, text, name)
        demand = read_demand(f"file:{path},pairs=one-way", parse(f"file:{path}"), "test")
        assert demand.tolist() == [[0, 0, 13.5], [0, 0, 0], [0, 3, 0]]
        demand = read_demand(f"file:{path},pairs=both", parse(f"file:{path}"), "test")
        assert demand.tolist() == [[0, 0, 13.5], [0, 0, 3], [13.5, 3, 0]]
        with pytest.raises(
            BadFile, match="2 of 2 demands, such as A to C are stated in one direction only; write file"
        ):
            read_demand(f"file:{path}", parse(f"file:{path}"), "test")


#: Text, suffix with options, and part of the message.
REFUSED = [
    (IGRAPH_GRAPHML, "graphml", "1 of 3 vertices have names like switches (n2 sw0)"),
    (IGRAPH_GML, "gml", "1 of 3 vertices have names like switches (2 sw0)"),
    (YED, "graphml", "1 of 3 vertices have names like switches (n2 sw0)"),
    (json.dumps(RUSTWORKX), "json", "or file:PATH,switches=PATTERN for the others"),
    (json.dumps(RUSTWORKX), "json,ranks=gpu*,switches=sw*", "ranks= and switches= state the same twice"),
    (json.dumps(RUSTWORKX), "json,switches=leaf*", "no vertex matches switches=leaf*"),
    (json.dumps(TOPOHUB), "json", "numbers under 'dist', but no capacity"),
    (zoo("45 Mbps DS-3", "", key="LinkLabel"), "gml", "1 of 2 edges state one rate as text under 'LinkLabel'"),
    (zoo("2x155 Mbps", "155 Mbps"), "gml", "under 'label' (not '2x155 Mbps')"),
    (zoo("10G", "10G"), "gml", "give each a rate, such as 155 Mbps, or take file:PATH,capacity=1"),
    (zoo("OC-3", "OC-3"), "gml,capacity=label", "capacity 'OC-3' is not a number"),
    (zoo("10 Gb/s", "10 Gb/s", key="demand"), "gml", "edges have rates under 'demand', but no capacity"),
    (GEPHI.format("Directed").replace("Source", "#: undirected\nSource"), "csv,capacity=Weight", "directed=true"),
    ("1 2 3\n2 3 1\n3 1 2\n", "txt,first=1", "may be a list of neighbours; write one line per link"),
    ("from here,to there\na,b\nb,a\n", "csv", "they stand in no other line"),
    (_smi(_switched([18] * 4)).replace("NV18", "NV17", 1), "txt", "the matrix is not symmetric"),
    (_smi(_switched([6, 6, 5, 6])), "txt", "NV6 between all 4 GPUs may be 6 links to each other"),
    (
        _smi([["X", "NV17", "NV18"], ["NV17", "X", "NV18"], ["NV18", "NV18", "X"]]),
        "txt",
        "the row of GPU2 has 36 NVLinks in all (a GPU has at most 18), but GPU0 and GPU1 show 17",
    ),
    (
        SNDLIB_XML.replace(">15<", ">0<"),
        "xml",
        "1 of 2 links, such as B-C, have no pre-installed capacity, unlike the others; take capacity=1",
    ),
    ("src,dst,weight\na,b,2\n", "csv", "numbers under 'weight', but no capacity; write file:PATH,capacity=w"),
    ("#: unit parsecs\n0 1\n1 0\n", "csv", "'parsecs' is not a positive rate"),
    ("a,b,2\nb,a,2\n", "csv,capacity=speed", "the edge 'a'->'b' has no attribute 'speed' (attributes: capacity)"),
    ("src,dst,bw,cap\na,b,2,3\n", "csv", "edges have 'bw' and 'cap'; write file:PATH,capacity=bw"),
    ("node_a,node_b\n0,1\n1,0\n", "csv", "line 1: 'node_a' and 'node_b' are names"),
    ("u v\nv w\nw u\n", "txt", "may be a heading or an arc"),
    ("1 2\n2 3\n3 1\n", "txt", "numbered from 1 to 3, but 0 has no arc; write file:PATH,first=1"),
    ("0 1\n1 0\n", "txt,first=1", "numbers from 1"),
    ("0 1\n1 0\n", "txt,directed=false", "line 1: the link between '0' and '1' is listed in both directions"),
    ("a b 4Gb/s\nb a 5\n", "txt", "line 2 ('b'->'a'): capacity '5' has no unit, unlike the previous ones"),
    ("a b 4Gb/s\nb a 3GB\n", "txt", "line 2 ('b'->'a'): capacity '3GB' is a size, not a rate"),
    ("a b 4\nb a 5Gb/s\n", "txt", "line 2 ('b'->'a'): capacity '5Gb/s' has a unit, unlike the previous ones"),
    ("src,dst,weight\na,b,2\nb,a,\n", "csv", "numbers under 'weight', but no capacity"),
    ("src,dst,bw\na,b,2\nb,a,\n", "csv", "line 3: the edge 'b'->'a' has no attribute 'bw'"),
    (GML.replace(" LinkSpeedRaw 2500000000.0", ""), "gml", "line 11: the edge '0'->'1' has no attribute 'LinkSpeed"),
    (re.sub("<data key=.e_capacity.>20</data>", "", IGRAPH_GRAPHML), "graphml", "edge 2: the edge 'n1'->'n2' has no"),
    (json.dumps(RUSTWORKX).replace('"capacity": "20"', ""), "json", "edge 1: the edge 1->2 has no attribute 'capac"),
    ("0 1 {'capacity': 1}\n1 0 {}\n", "txt,directed=true", "line 2: the edge '1'->'0' has no attribute 'capacity'"),
    (IGRAPH_GRAPHML, "graphml,capacity=speed", "has no attribute 'speed' (attributes: capacity); give every edge"),
    (json.dumps(RUSTWORKX), "json,capacity=0", "capacity 0.0 must be positive and finite"),
    (IGRAPH_GRAPHML.replace("capacity", "weight"), "graphml", "numbers under 'weight', but no capacity; write file"),
    ("a;b\nb;a\n", "csv", "separated by ';'"),
    ("0 1 {'capacity': 2}\n", "txt", "an edge list with {...} does not specify whether its edges are directed"),
    ("0 1 {'weight': 2}\n", "txt,directed=true", "capacity=weight"),
    ("0 1 {'capacity': __import__('os')}\n", "txt,directed=true", "line 1"),
    ("0 1 {'a': " + "[" * 5000 + "\n", "txt,directed=true", "line 1"),
    ("0 1 {'capacity': 2}\n1 0 2\n", "txt,directed=true", "cannot be mixed"),
    ("gpu0 switch0\nswitch0 gpu0\n", "txt", "1 of 2 vertices have names like switches (switch0)"),
    ("gpu0 switch0\n", "txt,ranks=cpu*", "no vertex matches ranks=cpu*"),
    ("%%MatrixMarket matrix\n", "mtx", "Matrix Market"),
    ("<algo name='x'/>", "xml", "this is a schedule"),
    ("0 1 2\n", "txt,format=excel", "format=excel is unknown"),
    ("0 1 2\n", "txt,wiring=ring", "wiring=ring is unknown"),
    ("0 1 2\n", "txt,wiring=nvlink", "wiring= does not apply"),
    ("0 1 2\n", "txt,capacty=2", "unknown option 'capacty'; did you mean 'capacity'?"),
    ("0 1 2\n", "txt,speed=2,first=1", "unknown option 'speed'; known: capacity"),
    ("0 1 2\n", "txt,directed=maybe", "directed=true or directed=false"),
    ("0 1 2\n", "txt,first=1,first=1", "given twice"),
    ("0 1 0\n0 0 2\n3 0\n", "txt,format=matrix", "line 3: 2 entries"),
    ("0 1\n-1 0\n", "txt,format=matrix", "line 2, column 1"),
    ("1 1\n1 0\n", "txt,format=matrix", "loop"),
    (",a,b\nb,0,1\nc,1,0\n", "csv", "'a' labels only a row or only a column"),
    ("graph [\n node [ id 0 ]\n node [ id 0 ]\n]", "gml", "line 3: a node has no id, or id '0' is used twice"),
    ("graph [\n edge [ source 0 ]\n]", "gml", "line 2: edge without source and target"),
    ("graph [ node [ id 0 ]\n edge [ source 0 target 7 ]\n]", "gml", "line 2: vertex '7' is not declared"),
    ("graph [\n node [ id 0\n", "gml", "ends inside a list"),
    ("graph [\n ] ]", "gml", "line 2"),
    ('graph [ node [ id 0 label "x ]', "gml", "line 1"),
    ("graph " + "[ a " * 100, "gml", "line 1"),
    ("graph [ directed 2 ]", "gml", "write 0 or 1"),
    ("graph [ node [ id 0 id 1 ] ]", "gml", "occurs twice"),
    (
        SNDLIB.replace("40.00", "0.00").replace("10.00", "0").replace(" 5 0", " 0 0"),
        "txt",
        "capacity=module_1_capacity",
    ),
    (SNDLIB.replace("( B C ) 10", "( B X ) 10"), "txt", "line 13: vertex 'X' is not declared"),
    (SNDLIB.replace("40.00", "many"), "txt", "line 12: pre_installed_capacity 'many'"),
    (SNDLIB.replace("  L1 (", "  L1 "), "txt", "line 13"),
    (SNDLIB.replace("( A C ) 1", "( A A ) 1"), "txt", "line 17: a demand must join two different nodes"),
    (SNDLIB.replace("  D1 (\n    P_0 ( L0 L1 )\n  )\n)", "  D1 ("), "txt", "section ADMISSIBLE_PATHS is not closed"),
    (SNDLIB_XML.replace("40.0<", "0<").replace(">15<", ">0<"), "xml", "capacity=module_1_capacity"),
    (SNDLIB_XML.replace("<target>C<", "<target>X<", 1), "xml", "line 8: vertex 'X' is not declared"),
    (SNDLIB_XML.replace("<source>C<", "<source>B<"), "xml", "line 16: a demand must join two different nodes"),
    (SNDLIB_XML.replace("<target>C</target>", "", 1), "xml", "line 8: <link> without"),
    (SNDLIB_XML.replace("40.0<", "x<"), "xml", "line 6: pre_installed_capacity 'x'"),
    (SNDLIB_XML.replace('"B"', '"A"'), "xml", "line 4: a node has no id, or id 'A' is used twice"),
    (SNDLIB_XML + "<", "xml", "not well-formed XML"),
    ('<!DOCTYPE network [<!ENTITY a "b">]><network>&a;</network>', "xml", "not accepted"),
    ("<network>" + "<a>" * 100 + "</a>" * 100 + "</network>", "xml", "levels"),
    (_box().replace("</gpu>", "").replace("<gpu ", "<gpu/><x "), "xml", "not well-formed"),
    (re.sub("<gpu.*?</gpu>", "", _box(), flags=re.DOTALL), "xml", "is a GPU by its class but has no <gpu>"),
    (_box().replace('sm="90"', 'sm="35"'), "xml", "sm 35, for which the NVLink bandwidth is unknown"),
    (_box().replace('rank="1"', 'rank="0"'), "xml", "two GPUs of rank 0"),
    (_box().replace('count="9"', 'count="-9"'), "xml", "attribute count is '-9'"),
    (_box().replace('tclass="0x068000"', ""), "xml", "target and tclass"),
    (_box().replace("<nvlink", "<xgmi"), "xml", "for which the xGMI bandwidth is unknown"),
    (_box().replace("<nvlink", "<ualink"), "xml", "expected <nvlink>, <xgmi> or <c2c>"),
    (_box().replace('busid="0000:11:00.0"', 'busid="0000:10:00.0"'), "xml", "busid of another"),
    (_box().replace('numaid="1"', 'numaid="0"'), "xml", "numaid of another"),
    (_box(), "xml,wiring=switch", "does not apply to NCCL files"),
    (_box(), "xml,capacity=1", "capacity= does not apply"),
    (_smi(_uniform(4, "NV6")), "txt", "NV6 between all 4 GPUs may be 6 links to each other"),
    (_smi(_uniform(4, "PHB")), "txt", "topo -mp` omits NVLinks"),
    (_smi(_uniform(4, "NV#")), "txt", "line 2: entry 'NV#'"),
    (_smi([["X", "NV1"], ["NV2", "X"]]), "txt", "not symmetric"),
    (_smi([["NV1", "X"], ["NV2", "X"]]), "txt", "line 2"),
    (_smi(_uniform(4, "NV4")).rpartition("GPU3")[0], "txt", "3 rows for 4 GPUs"),
    (_smi(_uniform(4, "NV4")) * 2, "txt", "row of GPU0 after those of all 4 GPUs"),
    (_smi(_uniform(4, "NV4")), "txt,capacity=1", "rate of one NVLink"),
    ("\tGPU0\tCPU Affinity\nGPU0\t X \t0-19\n", "txt", "one GPU has no links"),
    ('{"TopologyParams": {"name": "NDv2", "chassis": 2}, "InstanceParams": {}}', "json", "a TE-CCL input"),
    (json.dumps({**MSCCL, "links": [[0, 1], [1]]}), "json", "links[dst][src]"),
    (json.dumps({**MSCCL, "links": [[0, -1], [1, 0]]}), "json", ": links[0][1] must be "),
    (json.dumps({**MSCCL, "switches": [[[0, 1], [1, 2], 1, "x"]]}), "json", "several sources and several destinations"),
    (json.dumps({**MSCCL, "switches": [[[0], [1, 2], 0, "x"]]}), "json", "switch 0"),
    (json.dumps({**MSCCL, "switches": 5}), "json", ": switches must be "),
    (json.dumps({**MSCCL, "switches": [[[0], [1], 1, "x"], [[0], [1], 1, "y"]]}), "json", "two switches on one side"),
    (json.dumps({"msccl_type": "algorithm"}), "json", "no msccl topology"),
    (json.dumps(TACCL), "json", "wiring=ndv2"),
    (json.dumps(TACCL), "json,wiring=dgx2", "do not fit wiring=dgx2"),
    (json.dumps({**TACCL, "links": [[0]]}), "json", "'links' must be a list of 8 rows"),
    (
        json.dumps({"nodes": [{"id": "a", "type": "gpu"}, {"id": "b", "type": "switch"}], "edges": []}),
        "json",
        "1 of 2 vertices have names like switches (b switch)",
    ),
    (
        json.dumps({"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1, "speed": 4}]}),
        "json",
        "capacity=speed",
    ),
]


@pytest.mark.parametrize(("text", "suffix", "message"), REFUSED)
def test_what_is_refused_names_the_place_and_the_remedy(tmp_path, text, suffix, message):
    suffix, comma, options = suffix.partition(",")
    path = written(tmp_path, text, suffix)
    with pytest.raises(BadFile) as caught:
        parse(f"file:{path}{comma}{options}")
    assert message in str(caught.value)
    assert path.name in str(caught.value)


def marked(attribute, values):
    """A path of numbers with an attribute, absent where the value is None."""
    graph = nx.path_graph(len(values))
    nx.set_node_attributes(graph, {v: value for v, value in enumerate(values) if value is not None}, attribute)
    return graph


#: Names of switches; and graphs without any.
SWITCHED = [
    *(
        "sw0",
        "switch0",
        "tor0",
        "leaf0",
        "spine0",
        "nvs0",
        "ocs0",
        "core0",
        "agg0",
        "edge0",
        "mems0",
        "patch0",
        "xbar0",
    ),
    *("router0", "nvswitch", "s1", "rack1-leaf", "ToRSwitch3", "roadm_Berlin", "host/sw2"),
]
ORDINARY = {
    "numbers": nx.star_graph(5),
    "places": nx.grid_2d_graph(3, 3),
    "letters": nx.Graph(["ab", "ac", "ad"]),
    "cities": nx.Graph([("Bern", "Basel"), ("Bern", "Swindon"), ("Bern", "Toronto"), ("Bern", "Spineland")]),
    "cities with numbers": nx.Graph([("MI-1", "Roma"), ("MI-1", "Pisa"), ("MI-1", "Bari")]),
    "GPUs": nx.Graph([("gpu0", f"gpu{i}") for i in range(1, 5)]),
    "GPUs below leaves": nx.Graph([("leaf0-gpu0", f"leaf{i}-gpu1") for i in range(4)]),
    "rows of a mesh": nx.Graph([("a0", "a1"), ("b0", "b1"), ("c0", "c1"), ("a0", "b0"), ("b0", "c0"), ("a1", "b1")]),
    "cores alone": nx.relabel_nodes(nx.cycle_graph(4), lambda i: f"core{i}"),
    "people": nx.karate_club_graph(),
    "hosts": nx.Graph([("host1", "node2"), ("node2", "gpu3"), ("gpu3", "host1")]),
    **{
        f"{key} {values[0]}": marked(key, values)
        for key, values in {
            "Country": ("Switzerland", "Spain", "Core d'Ivoire", "Toronto"),
            "type": ("Fiber", "Green Node", "Fiber", "Fiber"),
            "gpu": (0, 1, 2, 3),
            "host": (0, 0, 0, 0),
            "level": (0, 1, 1, 2),
            "is_switch": (False,) * 4,
            "is-host": ("true",) * 4,
            "layer": ("core",) * 4,
            "Internal": (1, 1, 0, 1),
        }.items()
    },
}
#: Attributes by which the last two vertices of four are switches: their name, and what ranks and switches have.
MARKED = [
    ("is_switch", False, True),
    ("isSwitch", "false", "true"),
    ("Is-Switch", None, True),
    ("switch", 0, 1),
    ("switch", None, 1),
    ("is_host", True, False),
    ("host", True, None),
    ("GPU", 1, 0),
    ("gpu", "H100", None),
    ("rank", 0, None),
    ("device_type", "gpu", "switch"),
    ("Device-Type", "gpu", "ToR"),
    ("category", "HOST", "SWITCH"),
    ("class", "gpu", "leaf"),
    ("layer", None, "core"),
    ("group", "x", "spine"),
    ("tier", "host", "tor"),
    ("level", "server", "agg"),
]


@pytest.mark.parametrize("switch", SWITCHED)
def test_switches_are_asked_about_at_both_doors(switch, tmp_path):
    hosts = [f"gpu{i}" for i in range(4)]
    path = written(tmp_path, "undirected\n" + "".join(f"{host} {switch} 2\n" for host in hosts), "txt")
    graph = nx.Graph([(host, switch, {"capacity": 2}) for host in hosts])
    numbered = nx.relabel_nodes(graph, {name: i for i, name in enumerate(graph)})
    nx.set_node_attributes(numbered, dict(enumerate(graph)), "name")
    for one in (graph, numbered):
        with pytest.raises(BadInput, match=r"1 of 5 vertices .*give oc.topology ranks=\[...\] or switches="):
            oc.topology(one)
        assert oc.topology(one, switches=[switch]).ranks == oc.topology(one, ranks="gpu*").ranks == tuple(hosts)
        assert oc.topology(one, ranks="*", capacity="capacity").num_ranks == 5
    with pytest.raises(BadFile, match=r"1 of 5 vertices have .*ranks=PATTERN .*switches=PATTERN"):
        parse(f"file:{path}")
    assert parse(f"file:{path},switches={switch}").ranks == parse(f"file:{path},ranks=gpu*").ranks == tuple(hosts)
    for kind, write in (("gml", nx.write_gml), ("graphml", nx.write_graphml)):
        file = tmp_path / f"numbered.{kind}"
        write(numbered, file)
        with pytest.raises(BadFile, match="1 of 5 vertices have "):
            parse(f"file:{file}")
        assert parse(f"file:{file},switches={switch}").num_ranks == 4


@pytest.mark.parametrize(("attribute", "rank", "switch"), MARKED)
def test_attributes_that_mark_switches_are_asked_about(attribute, rank, switch, tmp_path):
    graph, path = marked(attribute, (rank, rank, switch, switch)), tmp_path / "net.graphml"
    with pytest.raises(BadInput, match=r"2 of 4 vertices .*\(2.*ranks=\[...\] or switches="):
        oc.topology(graph)
    assert oc.topology(graph, switches=[2, 3]).ranks == ("0", "1")
    nx.write_graphml(graph, path)
    with pytest.raises(BadFile, match=r"2 of 4 vertices .*switches=PATTERN"):
        parse(f"file:{path}")
    if isinstance(switch, str | bool) and switch:
        assert parse(f"file:{path},switches={switch}").ranks == ("0", "1")
    for v in graph:
        graph.nodes[v]["Terminal"] = v < 3
    assert oc.topology(graph).num_ranks == 3


@pytest.mark.parametrize("others", [("a", "b"), ("4", "5"), ("x", "y2"), ("cpu0", "Bern")])
def test_numbered_ranks_among_other_names_are_asked_about(others):
    links = [("gpu0", others[0]), ("gpu1", others[0]), ("gpu0", "gpu1"), ("gpu2", others[1]), others]
    with pytest.raises(BadInput, match=r"2 of 5 vertices have other names .* such as gpu0 .*switches="):
        oc.topology([*links, *(link[::-1] for link in links)])
    tree = nx.Graph([("h0", others[0]), ("h1", others[0]), ("h2", others[1]), ("h3", others[1]), others])
    if others != ("cpu0", "Bern"):
        with pytest.raises(BadInput, match="2 of 6 vertices have more links than all others"):
            oc.topology(tree)


#: Names of ranks, leaves and spines as people give them, with ``{}`` for their numbers.
FABRICS = [
    *(("gpu{}", "S{}"), ("h{}", "s{}"), ("node{}", "L{}", "SP{}"), ("server{}", "EdgeSw{}", "CoreRouter{}")),
    *(
        ("n{}", "br{}"),
        ("c{}", "fm{}"),
        ("h{}", "dist{}", "bb{}"),
        ("a{}", "access{}", "backbone{}"),
        ("x{}c0", "x{}r0"),
    ),
    *(("gpu{}", "t0-{}", "t1-{}"), ("pc{}", "pe{}", "p{}"), ("vm{}", "rt{}"), ("dgx{}", "ib-leaf-{}", "ib-spine-{}")),
    *(("host-{}", "ToR_{}", "AGG_{}"), ("worker{}", "nvsw{}"), ("compute-{}", "fabric-{}"), ("h{}", "e{}", "c{}")),
    *(("{}", "s{}"), ("trainer{}", "rsw{}", "fsw{}"), ("n{}", "hub{}"), ("blade{}", "chassis{}"), ("H{}", "SW-{}")),
    *(("pod0-h{}", "pod0-edge{}", "core-{}"), ("host{}", "leaf{}.dc1.example.com"), ("srv{}", "sw{}.rack1")),
    ("10.0.0.{}", "10.1.0.{}"),
]


@pytest.mark.parametrize("names", FABRICS, ids=" ".join)
def test_leaves_and_spines_of_any_name_are_asked_about(names):
    host, leaf, spine = (*names, names[1])[:3]
    links = [(host.format(i), leaf.format(i // 2)) for i in range(4)]
    above = [(leaf.format(i), spine.format(j)) for i in range(2) for j in range(2)]
    graph = nx.Graph(links + (above if len(names) > 2 else above[1:2]))
    with pytest.raises(BadInput, match=r"of [68] vertices .*ranks=\[...\] or switches="):
        oc.topology(graph)


def test_switches_that_a_pattern_forgets_are_noted(tmp_path):
    text = "undirected\nh0 pod0-edge0 1\nh1 pod0-edge0 1\npod0-edge0 core0 1\nh2 core0 1\n"
    topology = parse(f"file:{written(tmp_path, text, 'txt')},switches=pod*")
    assert topology.notes == ("1 ranks have names like switches (core0), which switches= does not name",)
    assert parse(f"file:{tmp_path}/net.txt,ranks=h*").notes == ()
    with pytest.raises(BadFile, match=r"2 of 5 vertices have names like switches \(pod0-edge0\)"):
        parse(f"file:{tmp_path}/net.txt")


#: Texts of links that state a rate in words of which no number can be made.
RATES = ["4x25G", "2 x 100G", "100GbE", "10 Gig", "HDR", "4xEDR", "NDR400", "OC192", "STM64", "40GBASE-SR4"]
RATES += ["PCIe Gen5 x16", "32 GT/s", "100 Gigabit", "200Gb HDR"]


@pytest.mark.parametrize("rate", RATES)
def test_rates_in_words_are_refused_by_every_reader_and_never_1(rate, tmp_path):
    files = {
        "csv": f"src,dst,speed\na,b,{rate}\nb,a,{rate}\n",
        "dot": f'graph {{ a -- b [speed="{rate}"] }}',
        "gml": f'graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 speed "{rate}" ] ]',
        "json": json.dumps({"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1, "speed": rate}]}),
        "net": f'*Vertices 2\n*Edges\n1 2 1 speed "{rate}"\n',
        "lgf": f'@nodes\nlabel\n0\n1\n@edges\nspeed\n0 1 "{rate}"\n',
        "gexf": '<gexf><graph><attributes class="edge"><attribute id="0" title="speed"/></attributes><nodes>'
        '<node id="0"/><node id="1"/></nodes><edges><edge source="0" target="1"><attvalues>'
        f'<attvalue for="0" value="{rate}"/></attvalues></edge></edges></graph></gexf>',
        "graphml": '<graphml><key id="s" for="edge" attr.name="speed"/><graph edgedefault="undirected"><node id="0"/>'
        f'<node id="1"/><edge source="0" target="1"><data key="s">{rate}</data></edge></graph></graphml>',
    }
    for suffix, text in files.items():
        for file in (text, text.replace("speed", "capacity")):
            with pytest.raises(BadFile, match="capacity"):
                parse(f"file:{written(tmp_path, file, suffix)}")
        stated = text.replace(rate, "100 Gb/s")
        topology = parse(f"file:{written(tmp_path, stated.replace('speed', 'capacity'), suffix)}")
        assert set(topology.capacity.tolist()) == {100}
        assert topology.capacity_unit == "Gb/s"


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_graphs_are_not_asked_about(name):
    graph = ORDINARY[name]
    assert oc.topology(graph, capacity=1).num_ranks == len(graph)


def node_link(*links, **about):
    """A node-link file of links such as ``ab2``: its ends and capacity."""
    listed = [{"source": u, "target": v, "capacity": int(c)} for u, v, c in links]
    nodes = [{"id": name} for name in sorted({end for link in links for end in link[:2]})]
    return json.dumps({"directed": False, "multigraph": False, "nodes": nodes, "edges": listed, **about})


def gml(*links, about=""):
    nodes = "".join(f" node [ id {v} ]\n" for v in range(3))
    edges = "".join(f" edge [ source {u} target {v} capacity {c} ]\n" for u, v, c in links)
    return f"graph [ {about}\n{nodes}{edges}]\n"


GRAPHML = (
    '<graphml><key id="c" for="edge" attr.name="capacity"/><graph edgedefault="undirected">'
    + "".join(f'<node id="{name}"/>' for name in "abc")
    + "".join(f'<edge source="{u}" target="{v}"><data key="c">2</data></edge>' for u, v in ("ab", "ba", "bc"))
    + "</graph></graphml>"
)
TYPED = "Source,Target,Type,capacity\na,b,Undirected,2\nb,a,Undirected,2\n"
SNAP = "# Undirected graph: ring.txt\n# Nodes: 5 Edges: 5\n# FromNodeId\tToNodeId\n"
RING = [(str(i), str((i + 1) % 5)) for i in range(5)]
PENTAGON = both(dict.fromkeys(RING, 1.0))
#: Undirected links, of which some are listed in both directions: as the file says that there are no parallel ones.
ONCE = {
    "one": (node_link("ab2", "ba2", "bc4"), "json", both({("a", "b"): 2, ("b", "c"): 4})),
    "all": (node_link("ab2", "ba2", "bc4", "cb4"), "json", both({("a", "b"): 2, ("b", "c"): 4})),
    "repeated": (node_link("ab2", "ab2", "bc4"), "json", both({("a", "b"): 2, ("b", "c"): 4})),
    "directed": (node_link("ab2", "ba3", "ab2", directed=True), "json", {("a", "b"): 2, ("b", "a"): 3}),
    "multigraph": (
        node_link("ab2", "ba2", "bc4", multigraph=True),
        "json",
        both({("a", "b"): 4, ("b", "c"): 4}),
    ),
    "gml": (gml("012", "102", "124", about="multigraph 0"), "gml", both({("0", "1"): 2, ("1", "2"): 4})),
    "parallel": (gml("012", "012", "124"), "gml", both({("0", "1"): 4, ("1", "2"): 4})),
    "snap": (SNAP + "".join(f"{u}\t{v}\n" for u, v in RING), "txt", PENTAGON),
    "snap twice": (SNAP + "".join(f"{u}\t{v}\n{v}\t{u}\n" for u, v in RING), "txt", PENTAGON),
    "snap partly": (SNAP + "".join(f"{u}\t{v}\n" for u, v in [*RING, RING[0][::-1]]), "txt", PENTAGON),
    "snap directed": ("# Directed graph: x\n0\t1\n1\t2\n2\t0\n", "txt", dict.fromkeys(["01", "12", "20"], 1.0)),
    "comment": ("# Undirected graph\n#: directed\n0 1\n1 0\n", "txt", both({("0", "1"): 1})),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_link_of_a_graph_without_parallel_links_counts_once(name, tmp_path):
    text, suffix, arcs = ONCE[name]
    topology = parse(f"file:{written(tmp_path, text, suffix)}")
    assert arcs_of(topology) == {tuple(ends): capacity for ends, capacity in arcs.items()}
    if name not in ("multigraph", "parallel"):
        assert topology.arcs == len(arcs)


@pytest.mark.parametrize(
    ("text", "suffix", "where"),
    [
        (node_link("ab2", "ba2", "bc4", multigraph=None), "json", "edge 0"),
        (node_link("ab2", "ba2", "bc4", "cb4", multigraph=True), "json", "edge 0"),
        (gml("012", "102", "124"), "gml", "line 5"),
        (gml("012", "102").replace(" node [ id 2 ]\n", ""), "gml", "line 4"),
        (GRAPHML, "graphml", "edge 1"),
        (TYPED, "csv", "line 2"),
        (TYPED + "b,c,Undirected,4\nc,d,Directed,1\n", "csv", "line 2"),
        ("#: undirected\na b 2\nb a 2\nb c 2\n", "txt", "line 2"),
        ("# Undirected graph\nundirected\na b 2\nb a 2\nb c 2\n", "txt", "line 3"),
    ],
)
def test_links_listed_in_both_directions_are_refused_where_they_may_be_parallel(text, suffix, where, tmp_path):
    path = written(tmp_path, text, suffix)
    with pytest.raises(BadFile, match=f"{where}: the undirected link between .* is listed in both directions; list"):
        parse(f"file:{path}")
    listed = len(re.findall(r"(?m)source|^[a-d],?[ ,]?[a-d]", text))
    assert parse(f"file:{path},directed=true").arcs == listed


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (node_link("ab2", "ba3"), "json"),
        (node_link("ab2", "ab3", directed=True), "json"),
        (gml("012", "103", about="multigraph 0"), "gml"),
        (SNAP + "0 1 2\n1 0 3\n", "txt"),
    ],
)
def test_a_link_listed_again_with_another_capacity_is_refused(text, suffix, tmp_path):
    with pytest.raises(BadFile, match="without parallel links is listed with capacity 2 and 3; list it once"):
        parse(f"file:{written(tmp_path, text, suffix)}")


def test_links_without_a_capacity_and_unused_demands_are_noted(tmp_path):
    equal = "no link states a capacity; each of the 2 has capacity 1"
    assert parse(f"file:{written(tmp_path, 'undirected' + chr(10) + '0 1' + chr(10) + '1 2', 'txt')}").notes == (equal,)
    assert oc.topology(nx.path_graph(3)).notes == (equal,)
    assert oc.topology(nx.path_graph(3), capacity=1).notes == parse("ring:4").notes == ()
    result = oc.solve("alltoall.master", nx.path_graph(3))
    assert result.record.message == f"note: {equal}."
    topology = parse(f"file:{written(tmp_path, json.dumps(TOPOHUB), 'json')},capacity=1")
    (note,) = topology.notes
    assert (
        note == "the file also states demands (1 amounts, 1 of them in one direction only); demand=file:PATH takes them"
    )
    with pytest.raises(
        BadFile, match=r"1 of 1 demands, such as .* in one direction only; write file:PATH,pairs=one-way"
    ):
        read_demand(f"file:{tmp_path / 'net.json'}", topology, "test")
    (note,) = parse(f"file:{written(tmp_path, SNDLIB_XML, 'xml')}").notes
    assert note.startswith("the file also states demands (2 amounts, 2 of them in one direction only)")
    (note,) = parse(f"file:{written(tmp_path, _smi(_switched([18, 17, 18])), 'txt')}").notes
    assert note == "read as a switch with 18 NVLinks of each GPU, but of gpu1 17"


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("45 Mbps DS-3", (45.0, "Mbps")),
        ("155 Mbps (OC-3)", (155.0, "Mbps")),
        ("100 Mbits/s", (100.0, "Mbit/s")),
        ("1 Gbps Ethernet, leased line", (1.0, "Gbps")),
        ("2x155 Mbps", None),
        ("10 Gbps x 2", None),
        ("10 Gbps / 5 Gbps", None),
        ("<10 Mbps", None),
        ("10G", None),
        ("1000BASE-T", None),
        ("STM-4", None),
    ],
)
def test_a_text_states_one_rate_or_is_only_like_one(text, rate):
    assert rate_in(text) == rate
    assert resembles_rate(text)
    assert not any(map(resembles_rate, ("#00FF3B", "12 months", "5 km", "e3", "42")))


def test_units_and_implied_units_of_objects():
    topology = oc.topology([("a", "b", "400Gbps"), ("b", "a", "25 GB/s")])
    assert (topology.capacity.tolist(), topology.capacity_unit) == ([400.0, 200.0], "Gbps")
    assert oc.topology([("a", "b", "4Gb/s"), ("b", "a", "4Gb/s")], unit="GB/s").capacity.tolist() == [0.5, 0.5]
    zoo = oc.topology(nx.DiGraph([(0, 1, {"LinkSpeedRaw": 1e9}), (1, 0, {"LinkSpeedRaw": 1e9})]))
    assert zoo.capacity_unit == "b/s"


def test_one_way_listings_get_a_note_on_direction(tmp_path):
    path = written(tmp_path, "0 1\n1 2\n0 2\n", "txt")
    with pytest.raises(NotApplicable, match=r"if every arc ran both ways; .*directed=false"):
        oc.solve("alltoall.master", f"file:{path}")
    assert oc.solve("alltoall.master", f"file:{path},directed=false").proof == "optimal"
    with pytest.raises(NotApplicable, match="another failure seed"):
        oc.solve("alltoall.master", "path:3+fail=1")
    with pytest.raises(NotApplicable, match=r"use a connected topology$"):
        oc.solve("alltoall.master", oc.topology([(0, 1, 1), (2, 3, 1)]))


def test_options_in_specs_and_in_python(tmp_path):
    path = written(tmp_path, "1 2 5\n2 3 5\n", "txt")
    topology = parse(f"file:{path},ranks=[12],first=1,format=edges,directed=false,capacity=2")
    assert (topology.num_ranks, topology.arcs, parse(topology.spec)) == (2, 4, topology)
    path.write_text("gpu0 sw0 7\ngpu1 sw0 7\n")
    assert read_topology(path, ReadOptions(2.0, directed=False, ranks="g*")).spec == (
        f"file:{path},capacity=2.0,directed=false,ranks=g*"
    )
    topology = oc.topology(path, directed=False, capacity=3, ranks=["gpu1", "gpu0"])
    assert (topology.num_ranks, topology.capacity.tolist()) == (2, [3.0] * 4)
    assert oc.topology(written(tmp_path, "a b 1\nb a 1\n", "txt")).spec == f"file:{path}"
    with pytest.raises(BadFile, match="first=0 or first=1"):
        parse(f"file:{path},first=2")


test_changed_files_are_refused_in_one_line_or_read_completely = changed_files([one[:3] for one in READ.values()], 60)


def test_blank_lines_take_no_quadratic_time(tmp_path):
    assert parse(f"file:{written(tmp_path, chr(10) * 60_000 + 'a b 2' + chr(10) + 'b a 3', 'txt')}").arcs == 2


SQUARE = both({("gpu0", "gpu1"): 24.0, ("gpu1", "gpu3"): 24.0, ("gpu3", "gpu2"): 24.0, ("gpu2", "gpu0"): 24.0})


def test_published_machines_are_read_as_rccl_and_nccl_read_them():
    assert arcs_of(read_topology(PUBLISHED / "topo_4p1h.xml")) == SQUARE
    every = {(f"gpu{i}", f"gpu{j}"): 48.0 for i in range(4) for j in range(4) if i != j}
    assert arcs_of(read_topology(PUBLISHED / "topo_4p_942.xml")) == every
    pcie = read_topology(PUBLISHED / "topo_3p_pcie.xml")  # no xGMI: PCIe 4.0 behind the switches, 24 GB/s of CPUs
    assert pcie.num_ranks == 3
    assert arcs_of(pcie)["cpu0", "cpu1"] == arcs_of(pcie)["0000:21:00.0", "cpu0"] == 24.0
    assert arcs_of(pcie)["gpu0", "0000:21:00.0"] == 48.0
    own = read_topology(PUBLISHED / "ncv4-topo.xml")  # its NVLinks lead from every GPU to itself
    assert {v for arc in arcs_of(own) for v in arc} == {f"{kind}{i}" for kind in ("gpu", "cpu") for i in range(4)}


@pytest.mark.parametrize(("name", "ranks", "first"), [("ndv4-topo.xml", 8, "cpu1"), ("p4d-24xl-topo.xml", 8, "cpu0")])
def test_files_that_nccl_completes_are_read_for_their_pcie(name, ranks, first):
    with pytest.raises(BadFile, match="write wiring=pci for its PCIe links only"):
        read_topology(PUBLISHED / name)
    topology = parse(f"file:{PUBLISHED / name},wiring=pci")
    assert topology.num_ranks == ranks
    switch = {u: v for u, v in arcs_of(topology) if u.startswith("gpu")}
    assert (switch["gpu0"], first) in arcs_of(topology)  # in the order of bus ids: on Azure not that of the file
    assert switch["gpu0"] == switch["gpu1"] != switch["gpu2"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("graph.xml", "rings and trees that NCCL chose; dump the topology"),
        ("sk1-ndv2-n1.json", "a sketch of TACCL"),
        ("topo-ndv2-32KB.json", "wiring=ndv2"),
        ("alltoall-8n-0-9kb.xml", "a schedule, not a topology"),
    ],
)
def test_published_files_without_links_are_refused_by_name(name, message):
    with pytest.raises(BadFile, match=message):
        read_topology(PUBLISHED / name)


@pytest.mark.parametrize(
    ("name", "attribute", "marks"),
    [
        ("sw", "is_switch", [True, True, False, False, False]),
        ("router", "is_host", [False, False, True, True, True]),
        ("tor-", "type", ["switch", "switch", "compute", "compute", "compute"]),
        ("edge", "role", ["spine", "spine", "host", "host", "host"]),
    ],
)
def test_marks_count_where_every_name_is_that_of_a_switch(name, attribute, marks, tmp_path):
    nodes = [{"id": f"{name}{k}", attribute: mark} for k, mark in enumerate(marks)]
    links = [{"source": f"{name}{k}", "target": f"{name}{(k + 1) % 5}"} for k in range(5)]
    path = tmp_path / "marked.json"
    path.write_text(json.dumps({"directed": False, "multigraph": False, "nodes": nodes, "links": links}))
    with pytest.raises(BadFile, match=f"2 of 5 vertices are marked like switches by their '{attribute}'"):
        parse(f"file:{path}")
