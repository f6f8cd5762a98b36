"""METIS, LGF, REPETITA and anynet are read as their programs read them, or refused by line; demands ask for pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from changed_files import changed_files
from saved_networks import arcs, check_refused, saved

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile
from opticoll.instances import parse
from opticoll.instances.demands import DemandSpec, read_demand
from opticoll.instances.quantities import parse_rate

METIS = "% two triangles\n4 5 001\n2 5 3 1\n1 5 3 2 4 3\n1 1 2 2 4 4\n2 3 3 4\n"
LGF = """# a ring
@nodes
label\tname\tterminal
3\t"gpu 0"\ttrue
5\t"gpu 1"\ttrue
8\t"middle box"\tfalse

@{kind}
\t\tlabel\tcapacity
3\t8\t0\t2.5
5\t8\t1\t4
@attributes
source 3
"""
REPETITA = """NODES 3
label x y
0_Oslo 10.75 59.91
1_Bergen 5.32 60.39
2_Bodo 14.40 67.28

EDGES 4
label src dest weight bw delay
edge_0 0 1 1 9953280 1913
edge_1 1 0 1 9953280 1913
edge_2 1 2 1 622000 4000
edge_3 2 1 1 622000 4000
"""
DEMANDS = "DEMANDS 3\nlabel src dest bw\ndemand_0 0 1 100\ndemand_1 1 0 70\ndemand_2 0 2 5.5\n"
ANYNET = "router 0 node 0 node 1 router 1 15\nrouter 1 node 2 router 0 3\nnode 3 router 1 2\n"
TOPOHUB = {
    "directed": False,
    "multigraph": False,
    "graph": {"name": "small", "demands": {"0": {"1": 3.0, "2": 1.5}, "1": {"0": 3.0}}, "stats": {"links": 2}},
    "nodes": [{"name": name, "pos": [0.5, v], "id": v} for v, name in enumerate(["Oslo", "Bergen", "Bodo"])],
    "edges": [
        {"dist": 305.1, "ecmp_fwd": {"org": 2.2}, "source": 0, "target": 1},
        {"dist": 981.4, "ecmp_fwd": {"org": 1.1}, "source": 1, "target": 2},
    ],
}


@pytest.mark.parametrize("suffix", ["metis", "graph", "txt"])
def test_metis_lists_every_edge_at_both_ends(suffix: str, tmp_path: Path) -> None:
    topology = parse(f"{saved(tmp_path, METIS, suffix)},capacity=weight")
    edges = [("1", "2", 5), ("1", "3", 1), ("2", "3", 2), ("2", "4", 3), ("3", "4", 4)]
    assert arcs(topology) == sorted(edges + [(v, u, c) for u, v, c in edges])
    with pytest.raises(BadFile, match="numbers under 'weight', but no capacity; write file:PATH,capacity=weight"):
        parse(f"file:{tmp_path}/net.{suffix}")


def test_metis_skips_sizes_and_weights_of_vertices_and_keeps_isolated_ones(tmp_path: Path) -> None:
    text = "4 2 111 2\n9 1 1 2 7\n9 1 1 1 7 3 8\n9 1 1 2 8\n9 1 1\n"
    topology = parse(f"{saved(tmp_path, text, 'metis')},capacity=weight")
    assert arcs(topology) == [("1", "2", 7), ("2", "1", 7), ("2", "3", 8), ("3", "2", 8)]
    assert topology.n == 4
    assert parse(saved(tmp_path, "3 1\n2\n1\n\n", "metis")).n == 3


def test_lgf_has_names_terminals_and_two_kinds_of_links(tmp_path: Path) -> None:
    forth = [("gpu 0", "middle box", 2.5), ("gpu 1", "middle box", 4.0)]
    topology = parse(saved(tmp_path, LGF.format(kind="edges"), "lgf"))
    assert arcs(topology) == sorted(forth + [(v, u, c) for u, v, c in forth])
    assert topology.terminals.tolist() == [0, 1]
    assert arcs(parse(saved(tmp_path, LGF.format(kind="arcs"), "txt"))) == forth
    bare = parse(saved(tmp_path, "@nodes\nlabel\n0\n1\n@arcs\n -\n0 1\n1 0\n", "lgf"))
    assert arcs(bare) == [("0", "1", 1), ("1", "0", 1)]


def test_repetita_has_arcs_and_demands_of_numbered_nodes(tmp_path: Path) -> None:
    network = saved(tmp_path, REPETITA, "graph")
    topology = parse(network)
    assert arcs(topology)[0] == ("0_Oslo", "1_Bergen", 9953280.0)
    assert topology.places[0].tolist() == [10.75, 59.91]
    demand = saved(tmp_path, DEMANDS, "demands")
    assert read_demand(f"{demand},pairs=one-way", topology, "test").tolist() == [[0, 100, 5.5], [70, 0, 0], [0, 0, 0]]
    assert read_demand(f"{demand},pairs=both", topology, "test").tolist() == [[0, 100, 5.5], [70, 0, 0], [5.5, 0, 0]]


def test_nodes_of_anynet_are_ranks_and_its_lengths_no_capacities(tmp_path: Path) -> None:
    topology = parse(saved(tmp_path, ANYNET, "anynet"))
    ends = [("node0", "router0"), ("node1", "router0"), ("router0", "router1"), ("node2", "router1")]
    ends.append(("node3", "router1"))
    assert arcs(topology) == sorted((u, v, 1.0) for pair in ends for u, v in (pair, pair[::-1]))
    assert [topology.labels[v] for v in topology.terminals] == ["node0", "node1", "node2", "node3"]
    long = f"1{'0' * 5000}"
    assert f"router{long}" in parse(saved(tmp_path, f"router 00 node 0 router {long} node 1\n", "anynet")).labels
    assert topology.notes[0].startswith(
        "line 3: a length of a node's channel, which BookSim 2 takes for another channel"
    )
    assert oc.solve("alltoall.master", saved(tmp_path, ANYNET, "txt")).objective == pytest.approx(1 / 4)


TACOS = """NPUs Count,3
Links Count,3
Chunks Count,3
Chunk Size,1048576,B
Collective Time,3906248,ps
SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks (ID:ps)
0,1,0,1000,0:976562:0,2:1953124:976562
1,2,500,50,None
2,0,0,1000,2:976562:0
"""


def test_bandwidths_of_tacos_count_by_two_to_the_thirty(tmp_path: Path) -> None:
    topology = parse(saved(tmp_path, TACOS, "csv"))
    assert arcs(topology) == [("0", "1", 1000), ("1", "2", 50), ("2", "0", 1000)]
    picoseconds = 1048576 * 8 / (1000 * parse_rate(topology.capacity_unit)) * 1e12
    assert picoseconds == pytest.approx(976562, rel=1e-6)  # as the file says of chunk 0


DEMANDED = {"json": json.dumps(TOPOHUB), "demands": DEMANDS}


@pytest.mark.parametrize("suffix", DEMANDED)
def test_demands_in_one_direction_are_asked_about_and_the_answer_is_kept(suffix: str, tmp_path: Path, capfd) -> None:
    network = f"{saved(tmp_path, json.dumps(TOPOHUB), 'json')},capacity=1"
    demand = saved(tmp_path, DEMANDED[suffix], suffix)
    settings = ["solve", "alltoall.master", network, "--set"]
    assert main([*settings, f"demand={demand}"]) == 2
    asked = "1 of 3 demands, such as"
    assert asked in (error := capfd.readouterr().err)
    assert "write file:PATH,pairs=one-way, or file:PATH,pairs=both" in error
    values = []
    for pairs in ("one-way", "both"):
        spec = DemandSpec(f"{demand},pairs={pairs}")
        assert spec.endswith(f",pairs={pairs}")
        assert "#sha256=" in spec
        assert DemandSpec(spec) == spec
        matrix = read_demand(spec, parse(network), "test")
        assert (matrix[2, 0] > 0) == (pairs == "both")
        assert main([*settings, f"demand={demand},pairs={pairs}", "--json"]) == 0
        values.append(f"pairs={pairs}" in capfd.readouterr().out)
    assert values == [True, True]
    assert main([*settings[:-1], "--demand", f"{demand.removeprefix('file:')},pairs=both"]) == 0
    with pytest.raises(BadFile, match="write file:PATH,pairs=one-way"):
        read_demand(f"{demand},pairs=some", parse(network), "test")


def test_a_changed_file_is_noticed_behind_the_choice_of_pairs(tmp_path: Path) -> None:
    network, demand = parse("complete:3"), saved(tmp_path, DEMANDS, "demands")
    spec = DemandSpec(f"{demand},pairs=both")
    assert read_demand(spec, network, "test")[2, 0] == 5.5
    saved(tmp_path, DEMANDS.replace("5.5", "6"), "demands")
    with pytest.raises(BadFile, match="has changed since it was named"):
        read_demand(spec, network, "test")
    table = saved(tmp_path, "src,dst,bytes\n0,1,2\n", "csv")
    with pytest.raises(BadFile, match="pairs= is for the demands of a network"):
        read_demand(f"{table},pairs=both", network, "test")


def test_notes_name_the_demands_of_a_network(tmp_path: Path) -> None:
    notes = parse(f"{saved(tmp_path, json.dumps(TOPOHUB), 'json')},capacity=1").notes
    assert any("demands (3 amounts, 1 of them in one direction only); demand=file:PATH" in note for note in notes)


BENDS = {
    **TOPOHUB,
    "nodes": [
        {"type": "City", "name": "Oslo", "id": 0},
        {"type": "Seacable Waypoint", "id": 1},
        {"type": "City", "name": "Bergen", "id": 2},
    ],
    "graph": {"name": "sea", "demands": {}},
}


def test_bends_of_cables_in_topohub_are_asked_about(tmp_path: Path) -> None:
    network = saved(tmp_path, json.dumps(BENDS), "json")
    with pytest.raises(BadFile, match=r"1 of 3 vertices have names like switches \(1 Seacable"):
        parse(f"{network},capacity=1")
    assert parse(f"{network},capacity=1,ranks=City").terminals.tolist() == [0, 2]


REFUSED = [
    ("3 2\n2\n1 3\n", "metis", "2 lines for 3 vertices; write one line for each"),
    ("3 2\n2\n1 3\n3\n", "metis", "line 4: '3' is no further neighbour of vertex 3"),
    ("3 2\n2\n1 4\n2\n", "metis", "line 3: '4' is no further neighbour of vertex 2"),
    ("3 2\n2\n1 3\n1\n", "metis", "the edge from 2 to 3 is not the same, but each of 2"),
    ("2 1 1\n2 5\n1 6\n", "metis", "the edge from 1 to 2 is not the same, but each of 1"),
    ("2 1 1\n2 5\n1\n", "metis", "line 3: neighbours and their weights must come in pairs"),
    ("2 2\n2\n1\n", "metis", "there are 2 neighbours, but each of 2 edges stands at both its ends"),
    ("a b\n", "metis", "is no heading of METIS"),
    ("9999999999 1\n", "metis", "more than the 1000000 allowed"),
    (LGF.format(kind="arcs").replace("label\tname", "id\tname"), "lgf", "line 3: the nodes have no column label"),
    (LGF.format(kind="arcs").replace("2.5", ""), "lgf", "line 10: 3 words for the columns source, target, label, cap"),
    (LGF.format(kind="arcs").replace("5\t8", "5\t9"), "lgf", "line 11: vertex '9' is not declared"),
    (LGF.format(kind="arcs") + "@edges\n -\n5 7\n", "lgf", "a second section of arcs, of which LEMON reads the first"),
    (LGF.format(kind="arcs").replace("capacity", "lower"), "lgf", "line 10: the arc has the lower bound '2.5'"),
    (REPETITA.replace("EDGES 4", "EDGES 5"), "graph", "the file ends 1 lines before the end of EDGES"),
    (REPETITA.replace("EDGES 4", "EDGES 3"), "graph", "line 12: 'edge_3 2 1 1 622000 4000' is no line of 0 more EDGES"),
    (REPETITA.replace("edge_2 1 2", "edge_2 1 7"), "graph", "line 11: vertex '7' is not declared"),
    (REPETITA.replace("622000 4000", "622000"), "graph", "line 11: .* is no line of 2 more EDGES"),
    (
        TACOS.replace("Bandwidth (GB/s)", "Rate"),
        "csv",
        "line 7: '0,1,0,1000,0:976562:0,2:1953124:976562' is no line of",
    ),
    (TACOS.replace("2,0,0,", "3,0,0,"), "csv", "line 9: vertex '3' is not declared"),
    (DEMANDS, "demands", "no vertices and no arcs; name it as demand=file:PATH beside the network"),
    ("0|1|-1\n", "txt", r"line 1: columns are separated by '\|'; use commas or spaces"),
    ("router 0 node 0 switch 1\n", "anynet", "line 1: .* is no line of anynet, such as router 0 node 0 router 1 5"),
]


@pytest.mark.parametrize(("text", "suffix", "message"), REFUSED)
def test_what_is_refused_names_the_line_and_the_remedy(text: str, suffix: str, message: str, tmp_path: Path) -> None:
    check_refused(tmp_path, text, suffix, message)


CHANGED = [
    (METIS, "metis", ",capacity=weight"),
    (LGF.format(kind="arcs"), "lgf", ""),
    (REPETITA, "graph", ""),
    (ANYNET, "anynet", ""),
    (TACOS, "csv", ""),
    (json.dumps(TOPOHUB), "json", ",capacity=1"),
]
test_changed_files_are_refused_in_one_line_or_read_completely = changed_files(CHANGED)
