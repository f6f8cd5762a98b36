"""Topologies from objects in memory, and capacities under other names in objects and files."""

from __future__ import annotations

import json
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from hypothesis import given, settings
from saved_networks import arcs
from strategies import topologies

import opticoll as oc
from opticoll.analysis.cli.main import cli
from opticoll.errors import BadInput
from opticoll.instances import parse
from opticoll.instances.readers.objects import as_instance
from opticoll.solvers import solve
from opticoll.solvers.procedure import rebuild, send
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.task import Task

TRIANGLE = [("a", "b", 3.0), ("b", "c", 1.0), ("c", "a", 2.0)]


def directed_graph(attribute="capacity", kind=nx.DiGraph):
    graph = kind()
    for u, v, c in TRIANGLE:
        graph.add_edge(u, v, **{attribute: c})
    return graph


def frame(third="capacity", source="src", target="dst"):
    return pd.DataFrame(TRIANGLE, columns=[source, target, third])


MATRIX = np.array([[0, 3.0, 0], [0, 0, 1.0], [2.0, 0, 0]])


@pytest.mark.parametrize(
    "obj",
    [
        directed_graph(),
        directed_graph("cap"),
        directed_graph("bandwidth"),
        directed_graph("bw"),
        directed_graph("BW"),
        directed_graph(kind=nx.MultiDiGraph),
        TRIANGLE,
        [(u, v, {"capacity": c, "note": "x"}) for u, v, c in TRIANGLE],
        {(u, v): c for u, v, c in TRIANGLE},
        pd.Series({(u, v): c for u, v, c in TRIANGLE}),
        {(u, v): {"bw": c} for u, v, c in TRIANGLE},
        frame(),
        frame("Bandwidth", "from", "to"),
        pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc")),
        pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc")).loc[list("cab")],
    ],
)
def test_one_topology_in_many_forms(obj):
    topology = oc.topology(obj)
    assert arcs(topology) == sorted(TRIANGLE)
    assert topology == as_instance(TRIANGLE)
    assert topology.spec == f"custom:{topology.hash[:12]}"
    again = pickle.loads(pickle.dumps(topology))  # noqa: S301
    assert (again, again.labels, again.spec) == (topology, topology.labels, topology.spec)


@pytest.mark.parametrize("obj", [MATRIX, MATRIX.tolist(), sp.csr_array(MATRIX), sp.coo_matrix(MATRIX)])
def test_matrices_number_their_vertices(obj):
    topology = oc.topology(obj)
    assert arcs(topology) == [("0", "1", 3.0), ("1", "2", 1.0), ("2", "0", 2.0)]


def test_undirected_graphs_and_lists_have_an_arc_each_way():
    both = oc.topology(nx.cycle_graph(6))
    assert both == parse("ring:6")
    assert both.capacity.tolist() == [1.0] * 12
    graph = nx.MultiGraph([("x", "y", {"bw": 2}), ("x", "y", {"bw": 5})])
    assert arcs(oc.topology(graph)) == [("x", "y", 2.0), ("x", "y", 5.0), ("y", "x", 2.0), ("y", "x", 5.0)]
    assert oc.topology([(0, 1), (1, 2)], directed=False) == oc.topology(nx.path_graph(3))
    assert oc.topology([(0, 1), (1, 0)]).arcs == 2
    assert oc.topology(nx.petersen_graph()).labels == tuple(map(str, range(10)))


def test_chosen_capacities_ranks_and_units():
    graph = directed_graph("weight")
    assert arcs(oc.topology(graph, capacity="weight")) == sorted(TRIANGLE)
    assert oc.topology(graph, capacity=2.5).capacity.tolist() == [2.5] * 3
    rated = oc.topology(frame("Gbps"), capacity="Gbps", unit="Gb/s", ranks=["a", "c"])
    assert rated.capacity_unit == "Gb/s"
    assert [rated.labels[v] for v in rated.terminals] == ["a", "c"]
    assert oc.topology("ring:4", unit="100Gb/s").spec == "ring:4"
    assert oc.topology("ring:4", unit="100Gb/s") == parse("ring:4")
    chosen = oc.topology("ring:4", ranks=[0, "2"])
    assert chosen.terminals.tolist() == [0, 2]
    assert chosen.spec.startswith("custom:")
    loop = nx.DiGraph([(0, 1), (1, 0), (1, 1)])
    assert (oc.topology(loop, loops="drop").arcs, oc.topology(loop, loops="keep").arcs) == (2, 3)
    switched = nx.Graph([("h", "s"), ("s", "k")])
    switched.nodes["s"]["terminal"] = False
    net = oc.topology(switched)
    assert (net.ranks, net.num_ranks) == (("h", "k"), 2)


@pytest.mark.parametrize("spec", ["ring:4", "dgx1", "hypercube:3+host=2.0", "fat-tree:4"])
def test_ranks_are_the_labels_that_the_argument_ranks_takes(spec):
    whole = parse(spec)
    assert len(whole.ranks) == whole.num_ranks == whole.terminals.size
    assert oc.topology(whole, ranks=whole.ranks).terminals.tolist() == whole.terminals.tolist()
    fewer = oc.topology(whole, ranks=whole.ranks[1:3])
    assert fewer.ranks == whole.ranks[1:3]


@settings(max_examples=40)
@given(topologies())
def test_flows_at_vertices_are_those_of_the_incidence_matrix(topology):
    flow = np.random.default_rng(0).random((topology.arcs, 3))
    assert np.allclose(topology.inflow(flow) - topology.outflow(flow), topology.incidence() @ flow)
    for v in range(topology.n):
        assert topology.arcs_in[v] == tuple(np.flatnonzero(topology.head == v))
        assert topology.arcs_out[v] == tuple(np.flatnonzero(topology.tail == v))


def mixed(attributes):
    return nx.DiGraph([(0, 1, attributes), (1, 0, {})])


@pytest.mark.parametrize(
    ("obj", "options", "word"),
    [
        (directed_graph("weight"), {}, 'capacity="weight"'),
        (directed_graph("LinkSpeed"), {}, "capacity=1 for equal"),
        (frame("Gbps"), {}, "'Gbps'"),
        (mixed({"capacity": 2}), {}, "edge 1: .* has no attribute 'capacity'"),
        (mixed({"bw": 2, "capacity": 1}), {}, "'bw' and 'capacity'"),
        ([(0, 1, 2.0), (1, 0)], {}, "every edge a capacity"),
        (directed_graph(), {"capacity": "speed"}, "attributes: capacity"),
        (directed_graph("x"), {"capacity": -1}, "positive"),
        (nx.DiGraph([(0, 1, {"capacity": "fast"})]), {}, "not a number"),
        (np.ones((2, 3)), {}, "not square"),
        (np.array([[0, np.nan], [1, 0]]), {}, "positive and finite"),
        (np.array([[0, -1], [1, 0]]), {}, "positive"),
        (np.array([[1, 1], [1, 0]]), {}, "loop"),
        (nx.DiGraph([(0, 0), (0, 1)]), {}, "loop"),
        (nx.Graph([(0, 1, {"capacity": float("nan")})]), {}, "positive and finite"),
        (np.array([["a", "b"], ["c", "d"]]), {}, "numbers"),
        (5, {}, "int"),
        ("servers:8,degree=2", {}, "has no links"),
        ("ring:8", {"directed": False}, "omit it for ring:8"),
        ("ring:8", {"capacity": 2}, "scale="),
        (nx.DiGraph(), {}, "no vertices"),
        ([(1, 2, 3, 4)], {}, "tuple"),
        ([5], {}, "tuple"),
        ({"a": {"b": 2.0}, "b": {"a": 1.0}}, {}, "'a' is no pair; a dict maps .u, v. to capacities"),
        ({(0, 1, 0): 2.0}, {}, "is no pair"),
        ({(0, 1): 2.0, (1, 0): None}, {}, "every edge a capacity"),
        ([(0, {}), (1, 0)], {}, r"edge 0: \(0, {}\): name vertices by"),
        ([(0, 1), (1, 0)], {"ranks": [[0]]}, r"ranks: '\[0\]' is not a vertex"),
        ([(0, 1), (1, 0)], {"directed": "no"}, "directed: must be True or False, not 'no'"),
        ([(0, 1), (1, 0)], {"directed": False}, "edge 0: the link between 0 and 1 is listed in both directions"),
        (np.ma.array([[0, 2], [3, 0]], mask=[[0, 1], [0, 0]]), {}, "masked entries"),
        ([[0, 10**400], [1, 0]], {}, "must be numbers"),
        ([[0, 1j], [1, 0]], {}, "must be numbers"),
        (sp.csr_array(np.array([[0, 1j], [1, 0]])), {}, "must be numbers"),
        (nx.Graph([(1, "1")]), {}, "several vertices are called '1' as text"),
        ([("a", 2), (2, "2"), ("2", "a")], {}, "several vertices are called '2' as text"),
        (pd.DataFrame([[0, 1, 2, 3]], columns=["src", "dst", "bw", "bw"]), {}, "'bw' heads several columns"),
        ([(0, 1), (1, 0)], {"unit": 5}, "unit=5 must be a rate"),
        (pd.DataFrame({"x": [1], "y": [2]}), {}, "src and dst"),
        (nx.path_graph(3), {"ranks": [0, 7]}, "ranks: '7' is not a vertex"),
        (nx.path_graph(3), {"ranks": [0, 0]}, "ranks: '0' occurs twice"),
        (nx.path_graph(3), {"ranks": "01"}, "no vertex matches ranks=01"),
        (nx.path_graph(3), {"ranks": [0], "switches": [1]}, "give one of them"),
        (nx.path_graph(3), {"switches": "*"}, "leaves no rank"),
        (nx.path_graph(3), {"ranks": 3}, "list of vertices"),
        (nx.path_graph(3), {"directed": True}, "undirected"),
        (nx.path_graph(3), {"loops": "maybe"}, "loops"),
        (nx.path_graph(3), {"unit": "fast"}, "rate"),
        (pd.DataFrame({"src": ["a", "b"], "dst": ["b", None]}), {}, "edge 1: the column 'dst' has no value"),
        (pd.DataFrame({"src": [0.0, np.nan], "dst": [1, 0]}), {}, "edge 1: the column 'src' has no value"),
        ([("a", "b"), ("b", None)], {}, "lacks an end"),
        ([("a", "b"), (np.nan, "a")], {}, "lacks an end"),
        (MATRIX, {"capacity": "x"}, "omit capacity="),
        (parse("ring:4"), {"capacity": 2}, "capacity="),
    ],
)
def test_objects_that_are_not_topologies_are_refused(obj, options, word):
    with pytest.raises(BadInput, match=word):
        oc.topology(obj, **options)


def test_a_spec_is_read_too():
    assert oc.topology("torus:3x3") == parse("torus:3x3")
    assert oc.topology("ring:4", ranks=["0", "2"]).ranks == ("0", "2")
    assert oc.topology("ring:4", name="our ring").spec == "custom:our ring"


def test_the_spec_of_an_object_says_that_it_is_not_parsed():
    with pytest.raises(BadInput, match="save_topology"):
        parse(oc.topology(TRIANGLE).spec)


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".csv", ".txt"])
def test_saved_topologies_are_solved_from_the_command_line(tmp_path, suffix):
    topology = oc.topology(TRIANGLE, ranks=["a", "b"], unit="Gb/s")
    path = tmp_path / f"net{suffix}"
    oc.save_topology(topology, path)
    again = parse(f"file:{path}")
    assert (again, again.labels, again.capacity_unit) == (topology, topology.labels, "Gb/s")
    run = CliRunner().invoke(cli, ["solve", "alltoall.master", f"file:{path}", "--no-store", "--json"])
    assert json.loads(run.output)["instance_hash"] == topology.hash


def test_objects_travel_to_workers_and_have_a_key_of_their_contents_and_names():
    task = Task("alltoall.link-mcf", oc.topology(TRIANGLE), "flow-decomposition")
    run = solve.solve(task)
    assert run.verified, run.record.message
    assert run.record.instance == task.instance.spec
    assert rebuild(send(task, task.instance)["sent"]).instance == task.instance
    doubled = Task("alltoall.link-mcf", oc.topology(MATRIX * 2), "flow-decomposition")
    assert resume_key(task) != resume_key(doubled)
    renamed = Task("alltoall.link-mcf", oc.topology(MATRIX), "flow-decomposition")
    assert renamed.instance.hash == task.instance.hash  # type: ignore[union-attr]
    assert resume_key(task) != resume_key(renamed)


# files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heading", ["src,capacity", "from,bandwidth", "node1,node2,capacity", "capacity,dst"])
def test_a_heading_that_does_not_name_both_ends_is_not_an_arc(tmp_path, heading):
    path = tmp_path / "net.csv"
    path.write_text(f"{heading}\n" + ",".join("xyz"[: heading.count(",") + 1]) + "\n")
    with pytest.raises(BadInput, match=r"line 1: the heading .* does not name both ends .* write src,dst,capacity"):
        parse(f"file:{path},directed=false")


@pytest.mark.parametrize(("name", "prefix"), [("net.csv", "file"), ("program.mps", "mps"), ("program.LP.gz", "mps")])
def test_a_file_without_its_family_is_recognized(tmp_path, monkeypatch, name, prefix):
    (tmp_path / name).write_text("a b\nb a\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=f"is a file: write {prefix}:{name},capacity=2"):
        parse(f"{name},capacity=2")


@pytest.mark.parametrize("kind", ["f8", ">f4", "i2", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_numpy_are_matrices(tmp_path, kind, order):
    matrix = np.array([[0, 3, 1, 0], [2, 0, 0, 1], [0, 4, 0, 1], [1, 0, 5, 0]])
    np.save(tmp_path / "net.npy", np.asarray(matrix, dtype=kind, order=order))
    np.savetxt(tmp_path / "net.txt", matrix)
    result = parse(f"file:{tmp_path / 'net.npy'}")
    assert result == parse(f"file:{tmp_path / 'net.txt'}")
    with pytest.raises(BadInput, match="entries of a matrix are its capacities"):
        parse(f"file:{tmp_path / 'net.npy'},capacity=2")
    demand = solve.solve(Task("alltoall.master", result, settings={"demand": f"file:{tmp_path / 'net.npy'}"}))
    assert demand.objective == solve.solve(Task("alltoall.master", result, settings={"demand": matrix})).objective
    pool = parse(f"servers:n=4,degree=2,traffic=file:{tmp_path / 'net.npy'}")
    assert np.array_equal(pool.traffic, matrix)
    with pytest.raises(BadInput, match=r"a matrix of 4 rows and columns; give 5"):
        parse(f"servers:n=5,degree=2,traffic=file:{tmp_path / 'net.npy'}")


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((2, 3)), "shape .2, 3. .* save a square matrix"),
        (np.zeros((2, 2), complex), "type complex128"),
        (np.array([[None, 1], [1, None]], dtype=object), "type object"),
        (np.array([["a", "b"], ["c", "d"]]), "type <U1"),
        (np.zeros((2, 2), dtype=[("a", "f8")]), "save a square matrix"),
        (np.array([[0, -1], [1, 0]]), "row 1, column 2"),
        (np.array([[0, np.nan], [1, 0]]), "row 1, column 2"),
        (np.eye(3), "loop"),
    ],
)
def test_other_files_of_numpy_are_refused(tmp_path, array, reason):
    np.save(tmp_path / "net.npy", array)
    with pytest.raises(BadInput, match=reason):
        parse(f"file:{tmp_path / 'net.npy'}")


def test_damaged_files_of_numpy_are_refused(tmp_path):
    np.save(tmp_path / "net.npy", np.ones((3, 3)) - np.eye(3))
    data = (tmp_path / "net.npy").read_bytes()
    opened = data[:80] + b"(" + data[81:]  # in the header, which is a literal of Python
    for damaged in (data[:7], data[:30], data[:-8], data + b"x" * 8, data[:6] + b"\x09" + data[7:], opened):
        (tmp_path / "net.npy").write_bytes(damaged)
        with pytest.raises(BadInput, match="not a complete NumPy file"):
            parse(f"file:{tmp_path / 'net.npy'}")
