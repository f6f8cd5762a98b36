"""Files: three formats round trip exactly, and invalid or hostile files are refused in one line."""

import json

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opticoll as oc
from opticoll.errors import BadFile, BadInput
from opticoll.instances import Topology, parse
from opticoll.instances.readers import files
from opticoll.instances.readers.files import read_topology, save_topology
from opticoll.instances.readers.graph_formats import to_networkx

SUFFIXES = ["csv", "txt", "graphml", "json"]


@st.composite
def topologies(draw):
    n = draw(st.integers(1, 6))
    ends = st.integers(0, n - 1)
    capacity = st.floats(1e-300, 1e300)
    arcs = draw(st.lists(st.tuples(ends, ends, capacity), max_size=12))
    text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=6)
    labels = draw(st.none() | st.lists(text, min_size=n, max_size=n).map(tuple))
    terminals = draw(st.none() | st.lists(ends, min_size=1, unique=True))
    return (
        Topology(n, *zip(*arcs, strict=True), terminals=terminals, labels=labels)
        if arcs
        else Topology(n, [], [], terminals=terminals, labels=labels)
    )


@settings(max_examples=24, deadline=None)
@given(topology=topologies(), suffix=st.sampled_from(SUFFIXES))
def test_files_round_trip(tmp_path_factory, topology, suffix):
    path = tmp_path_factory.mktemp("t") / f"t.{suffix}"
    save_topology(topology, path)
    again = read_topology(path)
    assert again == topology
    assert again.labels == topology.labels
    assert again.spec == f"file:{path}"


@pytest.mark.parametrize("suffix", [".gml", ".GML", ".yaml"])
def test_an_edge_list_gets_no_suffix_of_another_format(tmp_path, suffix):
    with pytest.raises(BadInput, match=r"files are not written; end the name in \.json"):
        save_topology(parse("ring:3"), tmp_path / f"net{suffix}")


def test_file_with_modifier(tmp_path):
    path = tmp_path / "ring.txt"
    save_topology(parse("ring:8"), path)
    assert parse(f"file:{path}+fail=1,seed=2") == parse("ring:8+fail=1,seed=2")


def read(tmp_path, text, name="t.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_topology(path)


@pytest.mark.parametrize(
    ("text", "n", "arcs", "labels"),
    [
        ("0 1 1\n1 0 2.5\n", 2, [(0, 1, 1.0), (1, 0, 2.5)], "01"),
        ("0 1 2\n1 2 3\n2 0 4\n", 3, [(0, 1, 2.0), (1, 2, 3.0), (2, 0, 4.0)], "012"),
        (",src,dst,capacity\n0,a,b,2.5\n", 2, [(0, 1, 2.5)], "ab"),
        ("\ufeff# c\n\ntail,head,capacity\n1,0,2 # c\n0 , 1 , 1e0\n", 2, [(0, 1, 1.0), (1, 0, 2.0)], "01"),
        ("undirected\n0\t1\t3\n", 2, [(0, 1, 3.0), (1, 0, 3.0)], "01"),
        ("#: undirected\n0 1\n", 2, [(0, 1, 1.0), (1, 0, 1.0)], "01"),
        ("directed\r\n0 1\r\n", 2, [(0, 1, 1.0)], "01"),
        ("b a\na c\n", 3, [(0, 1, 1.0), (1, 2, 1.0)], "bac"),
        ("1 0\n2 x\n", 4, [(0, 1, 1.0), (2, 3, 1.0)], "102x"),
        ("#: vertices 3\n1 0\n", 3, [(1, 0, 1.0)], "012"),
        ('#: labels ["p", "q"]\n1 0\n', 2, [(1, 0, 1.0)], "pq"),
        ("0 1\n0 1\n", 2, [(0, 1, 1.0), (0, 1, 1.0)], "01"),
        ("#: loops keep\n0 0\n", 1, [(0, 0, 1.0)], "0"),
    ],
)
def test_edge_lists(tmp_path, text, n, arcs, labels):
    topology = read(tmp_path, text)
    result = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    assert (topology.n, sorted(result), topology.labels) == (n, arcs, tuple(labels))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n\t\n", "empty"),
        ("# nothing\n", "no vertices"),
        ("0\n", "line 1"),
        ("0 1\n1\n", "line 2"),
        ("0,1\n1,,2\n", "line 2"),
        ("0 1 2 3\n", "line 1"),
        ("0 1 fast\n", "line 1 ('0'->'1'): capacity 'fast' is not a number"),
        ("0 1 1\n1 0 nan\n", "line 2 ('1'->'0'): capacity 'nan' must be positive"),
        ("0 1 inf\n", "line 1 ('0'->'1'): capacity 'inf'"),
        ("0 1 -1\n", "line 1 ('0'->'1'): capacity '-1'"),
        ("0 1 0\n", "line 1 ('0'->'1'): capacity '0'"),
        ("0 1 1_0\n", "not a number"),
        ("0 1 1e999\n", "positive and finite"),
        ("0 1\n1 1\n", "line 2: arc '1'->'1' is a loop"),
        ("1 2\n2 1\n", "0 has no arc"),
        ("0 1000000000\n", "1000000001 vertices"),
        (f"0 {'9' * 5000}\n", "vertices"),
        ("#: vertices 1000000000\n0 1\n", "1000000000 vertices"),
        (f"#: vertices {'9' * 5000}\n0 1\n", "vertices"),
        ("#: vertices 2\n0 5\n", "outside"),
        ("#: vertices 2\na b\n", "not names"),
        ("#: vertices many\n0 1\n", "cannot read"),
        ("#: terminals 7\n0 1\n", "terminal '7'"),
        ("#: terminals\n0 1\n", "terminal"),
        ("#: labels [1, 2]\n0 1\n", "JSON list of strings"),
        ('#: labels ["a", "b", "c"]\n0 1\n', "no vertex 2"),
        ("#: labels " + "[" * 100_000 + "\n0 1\n", "JSON list"),
        ("0 1\n#: undirected\n1 2\n", "move it to the top"),
        ("0 1 1" + " " * 20_000 + "x" * 20_000 + "\n", "characters"),
        ("0 1 5\n1 0\n", "line 2: the edge '1'->'0' has no attribute 'capacity'; give every edge a capacity"),
        ("a b 2,5\n", "line 1: 'a b 2,5' has blanks between its columns and a comma inside one"),
        ("a\tb\t2\nb\ta\t1,5\n", "line 2: 'b\\ta\\t1,5' has blanks"),
        ("src,dst,capacity,capacity\na,b,1,2\n", "line 1: 'capacity' heads several columns"),
        ("src,source,dst\nx,a,b\n", "line 1: the columns 'src' and 'source' may all name the source"),
        ("#: terminals 0\n#: terminals 1\n0 1\n1 0\n", "line 2: 'terminals' is declared twice"),
        ("directed\n#: undirected\n0 1\n", "line 2: 'directed' is declared twice"),
        ('#: labels ["a"]\n0 1\n', "1 labels for 2 vertices"),
        ("% directed\n0 1\n", "line 1: '% directed' begins like a comment"),
        (
            "undirected\n0 1\n1 0\n1 2\n2 1\n",
            "line 2: the undirected link between '0' and '1' is listed in both directions",
        ),
        (b"\x1f\x8b\x08\x00", "compressed by gzip"),
        (b"0 1\n\xff\xfe\n", "byte 4 is not UTF-8"),
        (b"\x00\x01\x02", "not an arc"),
    ],
)
def test_bad_edge_lists(tmp_path, text, message):
    refused(tmp_path, text, "t.csv", message)


def refused(tmp_path, text, name, expected):
    with pytest.raises(BadFile) as caught:
        read(tmp_path, text, name)
    message = str(caught.value)
    assert expected in message
    assert name in message
    assert "\n" not in message
    assert len(message) < 500 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1, 2]", "neither"),
        ("3", "neither"),
        ('{"n": ' + "9" * 5000 + "}", "not valid JSON"),
        ('{"format": "opticoll-topology/2"}', "neither"),
        ('{"format": "opticoll-topology/1"}', "lacks the field 'n'"),
        ('{"format": "opticoll-topology/1", "n": true, "arcs": []}', "n must be a whole number"),
        ('{"format": "opticoll-topology/1", "n": 0, "arcs": []}', "n must be a whole number >= 1"),
        ('{"format": "opticoll-topology/1", "n": 1000000000, "arcs": []}', "1000000000 vertices"),
        ('{"format": "opticoll-topology/1", "n": 2}', "lacks the field 'arcs'"),
        (
            '{"format": "opticoll-topology/1", "n": 2, "arcs": [], "arc": 1}',
            "unknown field 'arc'; did you mean 'arcs'",
        ),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1], [0]]}', "arcs[1] must be a list of length >= 2"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1.0]]}', "arc 0"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 2]]}', "arc 0: vertex 2"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, NaN]]}', "NaN is not"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, -Infinity]]}', "-Infinity is not"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, 1e999]]}', "arc 0 (0->1): capacity inf"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, "1"]]}', "not a number"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, null]]}', "not a number"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, true]]}', "not a number"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[0, 1, [1]]]}', "not a number"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[1, 1]]}', "loop"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[1, 0]], "loops": "yes"}', ": loops "),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[1, 0]], "terminals": [2]}', "terminal 2"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[1, 0]], "terminals": [[1]]}', ": terminals[0] "),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[1, 0]], "terminals": []}', "terminal"),
        ('{"format": "opticoll-topology/1", "n": 2, "arcs": [[1, 0]], "labels": ["a"]}', "2 vertices"),
        ('{"nodes": [{"id": 0}, {"id": 0}], "edges": []}', "twice"),
        ('{"nodes": [{"id": {}}], "edges": []}', "node 0"),
        ('{"nodes": [3], "edges": []}', ": nodes[0] "),
        ('{"nodes": [{}], "edges": []}', "node 0"),
        ('{"nodes": [{"id": 0}], "edges": [{"source": 0}]}', "edge 0"),
        ('{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 1}]}', "edge 0: vertex 1"),
        ('{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1, "capacity": -2}]}', "edge 0"),
        ('{"nodes": [], "edges": []}', "no vertices"),
        ('{"nodes": [{"id": 0}], "edges": [], "links": []}', "'links' and 'edges'"),
        ('{"nodes": 3, "edges": []}', ": nodes "),
        ('{"nodes": [{"id": 0}], "edges": [], "directed": 1}', ": directed "),
    ],
)
def test_bad_json(tmp_path, text, message):
    refused(tmp_path, text, "t.json", message)


def graphml(body, keys='<key id="c" for="edge" attr.name="capacity" attr.type="double"/>', default="directed"):
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
    return f'<?xml version="1.0"?><graphml {space}>{keys}<graph edgedefault="{default}">{body}</graph></graphml>'


TWO = '<node id="a"/><node id="b"/>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>', "entities"),
        ('<!DOCTYPE g SYSTEM "file:///etc/hostname"><graphml/>', "entities"),
        ('<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]><graphml>&x;</graphml>', "entities"),
        ("<graphml>", "not well-formed"),
        ("plain text", "not well-formed"),
        ("<?xml version='1.0' encoding='nonsense'?><graphml/>", "XML"),
        ("<graphml/>", "no <graph>"),
        ("<a>" * 1000 + "</a>" * 1000, "levels"),
        (graphml(""), "no vertices"),
        (graphml(TWO, default="both"), "edgedefault"),
        (graphml(TWO + "<graph/>"), "more than one graph"),
        (graphml(TWO + "<hyperedge/>"), "hyperedges"),
        (graphml(TWO + '<node id="a"/>'), "twice"),
        (graphml("<node/>"), "no id"),
        (graphml(TWO + '<edge source="a"/>'), "edge 1"),
        (graphml(TWO + '<edge source="a" target="z"/>'), "'z'"),
        (graphml(TWO + '<edge source="a" target="a"/>'), "loop"),
        (graphml(TWO + '<edge source="a" target="b"><data key="c">nan</data></edge>'), "edge 1 ('a'->'b'): capacity"),
        (graphml(TWO + '<edge source="a" target="b"><data key="c">-1</data></edge>'), "positive"),
        (graphml(TWO + '<edge source="a" target="b"><data key="c"/></edge>'), "not a number"),
        (graphml(TWO + '<edge source="a" target="b"><data key="c">1</data><data key="c">2</data></edge>'), "edge a->b"),
        (graphml(TWO + '<edge source="a" target="b" directed="yes"/>'), "edge 1: directed 'yes'"),
    ],
)
def test_bad_graphml(tmp_path, text, message):
    refused(tmp_path, text, "t.graphml", message)


def test_graphml_directions_defaults_and_names(tmp_path):
    keys = '<key id="c" for="edge" attr.name="capacity" attr.type="double"><default>2.5</default></key>'
    body = (
        TWO + '<edge source="a" target="b"/><edge source="b" target="a" directed="true"><data key="c">4</data></edge>'
    )
    topology = read(tmp_path, graphml(body, keys, "undirected"), "t.graphml")
    assert topology.labels == ("a", "b")
    assert topology.capacity.tolist() == [2.5, 2.5, 4.0]
    assert topology.tail.tolist() == [0, 1, 1]


def test_links_and_tuples_in_node_link_of_networkx(tmp_path):
    grid = nx.grid_graph((2, 3))
    for edges in ("edges", "links"):
        topology = read(tmp_path, json.dumps(nx.node_link_data(grid, edges=edges)), "g.json")
        assert (topology.n, topology.arcs, topology.labels[0]) == (6, 14, "[0, 0]")


def test_paths_that_cannot_be_read(tmp_path, monkeypatch):
    for path, word in (("", "missing"), (" ", "missing"), (tmp_path, "directory"), (tmp_path / "no", "No such file")):
        with pytest.raises(BadFile, match=word):
            read_topology(path)
    for path in ("a\x00b", "x" * 10_000):
        with pytest.raises(BadFile):
            read_topology(path)
    with pytest.raises(BadFile, match="regular"):
        read_topology("/dev/zero")
    with pytest.raises(BadFile, match="cannot be written"):
        save_topology(parse("ring:3"), tmp_path / "no" / "t.csv")
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    with pytest.raises(BadFile, match="limit of 100"):
        read(tmp_path, "0 1\n" * 100)


def test_the_home_folder_in_a_spec_a_store_and_an_output(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    oc.save_topology(oc.parse("ring:4"), "~/net.json")
    assert oc.topology("file:~/net.json").n == 4
    oc.solve("alltoall.master", "file:~/net.json").save("~/solution.json")
    assert oc.load("~/solution.json").T == 2.0
    assert oc.Store("~/results").root == tmp_path / "results"


def test_labels_that_xml_cannot_hold(tmp_path):
    topology = Topology(1, [], [], labels=("\x00",))
    with pytest.raises(BadFile, match="write JSON"):
        save_topology(topology, tmp_path / "t.graphml")
    save_topology(topology, tmp_path / "t.json")
    assert read_topology(tmp_path / "t.json").labels == ("\x00",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n", "line 1: 2 entries in a matrix of 1 rows"),
        ("0,1,0\n1,0,0\n0,0,0\n", "a matrix of 3 rows and columns; give 2, one per server"),
        ("0,1\n1\n", "line 2"),
        ("0 1\n1 0\n0 1\n", "line 1: 2 entries in a matrix of 3 rows"),
        ("0,a\n1,0\n", "line 1"),
        ("", "empty"),
        *((f"0,{cell}\n1,0\n", "server 0 sends") for cell in ("nan", "-1", "inf")),
    ],
)
def test_bad_traffic_files(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        parse(f"servers:n=2,degree=1,traffic=file:{path}")


@settings(max_examples=16, deadline=None)
@given(topology=topologies())
def test_networkx_round_trip(topology):
    graph = to_networkx(topology)
    again = oc.topology(graph, loops="keep")
    assert again == topology
    assert again.labels == topology.labels
    for u, v, data in graph.edges(data=True):
        a = data["arc"]
        assert (topology.tail[a], topology.head[a], topology.capacity[a]) == (u, v, data["capacity"])
