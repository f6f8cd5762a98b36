"""graph6, GEXF, Pajek and DOT: read as their definitions say, against the writers of networkx, or refused by line."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
from changed_files import changed_files
from saved_networks import arcs, check_refused, read

import opticoll as oc
from opticoll.errors import BadFile

GEXF = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">
 <graph {graph}>
  <attributes class="node"><attribute id="0" title="terminal" type="boolean"><default>true</default></attribute>
  </attributes>
  <attributes class="edge">
   <attribute id="0" title="capacity" type="float"><default>10.0</default></attribute>
  </attributes>
  <nodes>
   <node id="a" label="gpu A"><viz:position x="1" y="2" z="0"/></node>
   <node id="b" label="gpu B"><viz:position x="3" y="4" z="0"/></node>
   <node id="s"><attvalues><attvalue for="0" value="false"/></attvalues><viz:position x="0" y="0" z="0"/></node>
  </nodes>
  <edges>
   <edge id="0" source="a" target="s"/>
   <edge id="1" source="b" target="s" type="{kind}"><attvalues><attvalue for="0" value="2.5"/></attvalues></edge>
  </edges>
 </graph>
</gexf>
"""
PAJEK = """*Network wired
% a comment
*Vertices 4
1 "rack 0" 0.1 0.2 0.5
2 "rack 1" 0.3 0.4 0.5 ellipse
3 r2 0.5 0.6 0.5
4 "rack 3" 0.7 0.8 0.5
*Edges
1 2 2.5 c Blue
*Arcs
2 3 4
3 2 4 l "back"
"""
DOT = r"""/* two racks,
   one spine */
digraph "net" {
  graph [rankdir=LR, label="drawn"]; splines = true;
  node [label="\N", shape=box]
  edge [capacity=10 penwidth=2];
  // a chain
  a -> b -> c [minlen=3];
  c:eth0 -> "a":eth1:n [capacity="2" + "0"]
  subgraph cluster_1 {
    edge [capacity=3.5]
    d [label="rack\nD"]
    d -> {a b} [label=<<b>two</b>>]
  }
# 1 "net.dot"
  a -> d;
}
"""


@pytest.mark.parametrize(("graph", "own"), [("", "directed"), ('defaultedgetype="directed"', "undirected")])
def test_gexf_has_defaults_and_a_type_for_every_edge(graph: str, own: str, tmp_path: Path) -> None:
    topology = read(tmp_path, GEXF.format(graph=graph, kind=own), "gexf")
    one_way, two_way = ("gpu B", "s", 2.5), ("gpu A", "s", 10.0)
    if own == "undirected":
        one_way, two_way = two_way, one_way
    assert arcs(topology) == sorted([one_way, two_way, (two_way[1], two_way[0], two_way[2])])
    assert topology.terminals.tolist() == [0, 1]
    assert topology.places[1].tolist() == [3, 4]


def test_the_weight_of_gexf_is_a_capacity_only_if_one_says_so(tmp_path: Path) -> None:
    text = (
        '<gexf><graph defaultedgetype="mutual"><nodes><node id="0"/><node id="1"/><node id="2"/></nodes>'
        '<edges><edge source="0" target="1" weight="3"/><edge source="1" target="2"/></edges></graph></gexf>'
    )
    with pytest.raises(BadFile, match="numbers under 'weight', but no capacity; write file:PATH,capacity=weight"):
        read(tmp_path, text, "gexf")
    assert read(tmp_path, text, "gexf", ",capacity=weight").capacity.tolist() == [3, 3, 1, 1]


def test_pajek_keeps_arcs_and_edges_apart_in_any_order(tmp_path: Path) -> None:
    expected = [
        ("rack 0", "rack 1", 2.5),
        ("rack 1", "rack 0", 2.5),
        ("rack 1", "r2", 4.0),
        ("r2", "rack 1", 4.0),
    ]
    start, edges, links = PAJEK.partition("*Edges")[0], *PAJEK.partition("*Edges")[2].split("*Arcs")
    for text in (PAJEK, f"{start}*Arcs{links}*edges{edges}"):
        topology = read(tmp_path, text, "net", ",capacity=weight")
        assert arcs(topology) == sorted(expected)
        assert topology.n == 4
        assert topology.places[0].tolist() == [0.1, 0.2]
    with pytest.raises(BadFile, match="capacity=weight"):
        read(tmp_path, PAJEK, "net")


def test_lists_of_pajek_have_neighbours_and_no_weights(tmp_path: Path) -> None:
    topology = read(tmp_path, "*Vertices 4\r\n*Arcslist\r\n1 2 3 4\r\n*Edgeslist\r\n2 3\r\n", "net")
    assert arcs(topology) == [("1", "2", 1), ("1", "3", 1), ("1", "4", 1), ("2", "3", 1), ("3", "2", 1)]
    assert "each of the 4 has capacity 1" in topology.notes[0]


def test_dot_keeps_defaults_chains_subgraphs_and_ports(tmp_path: Path) -> None:
    topology = read(tmp_path, DOT, "txt")
    expected = [("a", "b", 10), ("b", "c", 10), ("c", "a", 20), ("rack D", "a", 3.5), ("rack D", "b", 3.5)]
    assert arcs(topology) == sorted([*expected, ("a", "rack D", 10)])


def test_weights_of_dot_are_asked_about_and_drawings_are_not(tmp_path: Path) -> None:
    text = "graph { a -- b [weight=3, penwidth=7]; b -- c [weight=2, penwidth=7] }"
    with pytest.raises(BadFile, match="numbers under 'weight', but no capacity; write file:PATH,capacity=weight"):
        read(tmp_path, text, "dot")
    assert sorted(read(tmp_path, text, "dot", ",capacity=weight").capacity) == [2, 2, 3, 3]
    assert set(read(tmp_path, text, "dot", ",capacity=penwidth").capacity) == {7}


def test_words_of_dot_are_names_in_quotes_and_graphs_are_undirected(tmp_path: Path) -> None:
    topology = read(tmp_path, 'strict graph { "node" -- b [bw="100 Gb/s"]; b -- "node" [bw="100 Gb/s"] }', "gv")
    assert arcs(topology) == [("b", "node", 100), ("node", "b", 100)]
    assert topology.capacity_unit == "Gb/s"


def test_codes_of_networkx_are_read_as_the_graph_that_it_wrote(tmp_path: Path) -> None:
    for seed in range(40):
        directed = seed % 2 == 0
        n = 1 + seed * 2
        graph = nx.gnp_random_graph(n, 0.3, seed=seed, directed=directed)
        links = sorted(graph.to_directed().edges)
        codes = [("g6", nx.to_graph6_bytes), ("s6", nx.to_sparse6_bytes)]
        for suffix, write in [] if directed else codes:
            topology = read(tmp_path, write(graph, header=seed % 3 == 0).decode(), suffix)
            assert sorted(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)) == links
            assert topology.n == n
        code = "&" + digraph6(nx.to_numpy_array(graph, dtype=int))
        assert sorted(zip(*(side.tolist() for side in ends_of(read(tmp_path, code, "d6"))), strict=True)) == links


def ends_of(topology):
    return topology.tail, topology.head


def digraph6(matrix) -> str:
    """The code of a matrix, as the format's definition has it; networkx does not write it."""
    n = len(matrix)
    size = chr(63 + n) if n < 63 else "~" + "".join(chr(63 + (n >> place & 63)) for place in (12, 6, 0))
    bits = "".join(map(str, matrix.ravel()))
    bits += "0" * (-len(bits) % 6)
    return size + "".join(chr(63 + int(bits[i : i + 6], 2)) for i in range(0, len(bits), 6))


REFUSED = [
    ("Bw\nBw\n", "g6", "2 graphs, one a line; give one graph of at most"),
    ("~~~~~~~~\n", "g6", "68719476735 vertices are more than the 1000000 allowed"),
    ("D?\n", "g6", "1 characters for 5 vertices, not 2; copy the whole line"),
    ("B w\n", "g6", "2 graphs"),
    ("B\x7f\n", "g6", "is no graph6"),
    (GEXF.format(graph='mode="dynamic"', kind="directed"), "gexf", "changes in time"),
    (GEXF.format(graph="", kind="one"), "gexf", "line 16: type 'one'; write directed, undirected or mutual"),
    ("<gexf><graph/><graph/></gexf>", "gexf", "more than one graph; write GEXF with one graph"),
    ("<!DOCTYPE x [<!ENTITY a 'b'>]><gexf><graph/></gexf>", "gexf", "entities are not accepted"),
    ("*Vertices 2\n1 2\n*Matrix\n0 1\n1 0\n", "net", "line 3: .*Matrix' is not read; write one .Vertices N"),
    ('*Vertices 2\n*Arcs :1 "a"\n1 2\n*Arcs :2 "b"\n2 1\n', "net", "line 4: .*of one relation"),
    ("*Vertices 2\n*Arcs\n1 3\n", "net", "line 3: '1 3' is no line of .arcs with vertices 1..2"),
    ("*Vertices 9999999999\n", "net", "vertices are more than the 1000000 allowed"),
    ("*Vertices 3\n*Arcs\n1 2 4\n2 3\n", "net,capacity=weight", "line 4: the edge '2'->'3' has no attribute"),
    ("graph {\n a -> b }", "dot", "line 2: a name is expected, not '->'; correct the DOT"),
    ("graph {\n a -- b\n", "dot", "line 3: a name is expected, not 'the end'"),
    ("graph { a -- b } graph { }", "dot", "the end of the file is expected, not 'graph'"),
    ("digraph { a -> b\n b -> a [dir=both] }", "dot", "line 2: dir=both in a digraph; write file:PATH,directed=true"),
    ("digraph { a -> b [capacity=1]; b -> a }", "dot", "has no attribute 'capacity'; give every edge a capacity"),
    ("graph { a -- b\n b -- a }", "dot", "the undirected link between .* is listed in both directions"),
    ("graph { a -- b\n @ }", "dot", "line 2: '@ }' is not DOT"),
    ("graph " + "{" * 40 + "a" + "}" * 40, "dot", "at most 32 levels of subgraphs"),
    ("graph { a -- b [speed=4x25G] }", "dot", "line 1: .*4x25G|state one rate as text under 'speed' .not '4x25G'"),
    ("graph { a -- b }", "dot,first=1", "first= does not apply: dot files name their vertices"),
]


@pytest.mark.parametrize(("text", "suffix", "message"), REFUSED)
def test_what_is_refused_names_the_line_and_the_remedy(text: str, suffix: str, message: str, tmp_path: Path) -> None:
    check_refused(tmp_path, text, suffix, message)


def test_loops_are_refused_dropped_or_kept_in_every_format(tmp_path: Path) -> None:
    text = 'graph { "exit01":"swp48" -- "exit01":"swp49"; exit01 -- leaf01; leaf01 -- host1 }'
    with pytest.raises(
        BadFile, match=r"line 1: arc 'exit01'->'exit01' is a loop .*; write file:PATH,loops=drop, or loops="
    ):
        read(tmp_path, text, "dot", ",ranks=*")
    dropped, kept = (read(tmp_path, text, "dot", f",ranks=*,loops={how}") for how in ("drop", "keep"))
    assert (dropped.tail.size, kept.tail.size, dropped.n) == (4, 5, 3)
    assert oc.topology(tmp_path / "net.dot", ranks="*", loops="drop").tail.size == 4
    with pytest.raises(BadFile, match="loops=maybe is unknown; write one of drop, keep"):
        read(tmp_path, text, "dot", ",loops=maybe")
    gml = 'graph [ directed 1 unit "Gb/s" loops %s node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ]%s ]'
    stated = read(tmp_path, gml % ('"false"', ""), "gml")  # as igraph states of random graphs
    assert (stated.arcs, stated.capacity_unit) == (1, "Gb/s")
    assert read(tmp_path, gml % ('"keep"', " edge [ source 1 target 1 ]"), "gml").arcs == 2


def test_functions_of_nodes_tell_ranks_and_equal_labels_are_two_vertices(tmp_path: Path) -> None:
    text = (
        'graph { leaf01 [function="leaf"]; exit01 [function="exit"]; server01 [function="host"]; edge01 [function=host]'
    )
    text += "\nleaf01 -- exit01; leaf01 -- server01; leaf01 -- edge01 }"
    with pytest.raises(BadFile, match=r"vertices have names like switches \(leaf01"):
        read(tmp_path, text, "dot")
    assert read(tmp_path, text, "dot", ",ranks=host").ranks == ("server01", "edge01")
    topology = read(
        tmp_path, '*Vertices 3\n1 "gpu"\n2 "gpu"\n3 "x"\n*Edges\n1 3 1\n2 3 1\n', "net", ",capacity=1,ranks=*"
    )
    assert (topology.n, topology.labels) == (3, ("gpu", "gpu", "x"))


def test_many_links_in_few_words_are_refused_before_they_are_made(tmp_path: Path) -> None:
    group = "{" + " ".join(f"n{v}" for v in range(1500)) + "}"
    with pytest.raises(BadFile, match="line 1: more than 2000000 links"):
        read(tmp_path, f"graph {{ {group} -- {group} }}", "dot")


CHANGED = [
    (GEXF.format(graph="", kind="directed"), "gexf", ""),
    (PAJEK, "net", ",capacity=weight"),
    (DOT, "dot", ""),
    ("Dhc", "g6", ""),
    (":Fa@x^", "s6", ""),
    ("&BP_", "d6", ""),
]
test_changed_files_are_refused_in_one_line_or_read_completely = changed_files(CHANGED)
