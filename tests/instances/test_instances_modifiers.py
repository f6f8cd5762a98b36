"""Failed links, host bottlenecks, scaled capacities."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.errors import BadInput
from opticoll.instances import LightpathMesh, Topology, parse
from opticoll.instances.readers.graph_formats import to_networkx
from opticoll.instances.symmetry import automorphisms, isomorphism, orbits_of
from opticoll.instances.topology import link_groups


def arcs(topology):
    return list(zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True))


@settings(max_examples=40)
@given(st.integers(0, 32), st.integers(0, 5))
def test_fail_removes_whole_links_of_two_way_topologies(links, seed):
    before = parse("torus:4x4")
    after = parse(f"torus:4x4+fail={links},seed={seed}")
    assert after.arcs == before.arcs - 2 * links
    assert set(arcs(after)) <= set(arcs(before))
    assert set(arcs(after)) == {(v, u, c) for u, v, c in arcs(after)}
    assert after == parse(f"torus:4x4+fail={links},seed={seed}")
    assert (after.n, after.num_ranks, after.labels) == (16, 16, before.labels)


def test_fail_removes_single_arcs_of_digraphs():
    before = parse("genkautz:n=16,d=4")
    after = parse("genkautz:n=16,d=4+fail=3,seed=5")
    assert after.arcs == before.arcs - 3
    assert parse("ring:8,directed+fail=1").connected is False


def test_fail_seeds_differ_and_unequal_directions_are_single_arcs():
    assert len({parse(f"torus:8x8+fail=3,seed={s}").hash for s in range(10)}) == 10
    topology = Topology(2, [0, 1], [1, 0], [1.0, 2.0])
    assert link_groups(topology.tail, topology.head, topology.capacity)[1] == 2


def test_links_of_parallel_arcs_and_loops():
    topology = Topology(3, [0, 0, 1, 1, 2], [1, 1, 0, 0, 2], [1.0, 2.0, 2.0, 1.0, 1.0])
    group, links = link_groups(topology.tail, topology.head, topology.capacity)
    assert links == 3
    pairs = {frozenset(np.flatnonzero(group == k).tolist()) for k in range(links)}
    assert pairs == {frozenset({0, 2}), frozenset({1, 3}), frozenset({4})}


def test_machines_keep_their_class_through_failures():
    mesh = parse("lightpath:4x4,lasers=4,waveguides=2+fail=2,seed=1+scale=3.0")
    assert isinstance(mesh, LightpathMesh)
    assert (mesh.lasers, mesh.waveguides, mesh.arcs) == (4, 2, 44)
    assert (mesh.capacity == 3).all()


@pytest.mark.parametrize("spec", ["torus:3x3", "genkautz:n=8,d=3", "dgx1"])
def test_host_structure(spec):
    base, topology = parse(spec), parse(f"{spec}+host=1.5")
    n = base.n
    assert (topology.n, topology.arcs) == (3 * n, base.arcs + 2 * n)
    assert topology.terminals.tolist() == list(range(n))
    wanted = [(2 * n + u, n + v, c) for u, v, c in arcs(base)]
    wanted += [(n + u, u, 1.5) for u in range(n)] + [(u, 2 * n + u, 1.5) for u in range(n)]
    assert sorted(arcs(topology)) == sorted(wanted)
    assert topology.labels[0] == f"host[{base.labels[0]}]"
    assert topology.labels[n] == f"in[{base.labels[0]}]"
    assert topology.labels[2 * n + 1] == f"out[{base.labels[1]}]"
    assert topology.connected
    assert (topology.hops[:, :n] == 3 * base.hops).all()


def test_a_nic_that_forwards_leaves_its_host_out():
    base, topology = parse("path:3"), parse("path:3+host=0.5,relay=nic")
    assert (topology.n, topology.arcs, topology.num_ranks) == (6, base.arcs + 6, 3)
    assert topology.spec == "path:3+host=0.5,relay=nic"
    arcs = set(zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True))
    assert {(3, 4, 1.0), (4, 5, 1.0), (0, 3, 0.5), (3, 0, 0.5)} <= arcs
    assert topology.labels[3] == f"nic[{base.labels[0]}]"
    with pytest.raises(BadInput, match="host or nic"):
        parse("path:3+host=0.5,relay=switch")


def test_host_bounds_what_a_node_forwards():
    graph = to_networkx(parse("path:3+host=0.5"))
    flow, _ = nx.maximum_flow(nx.DiGraph(graph), 0, 2)
    assert flow == 0.5  # through the host of the middle node
    free = to_networkx(parse("path:3+host=5.0"))
    assert nx.maximum_flow_value(nx.DiGraph(free), 0, 2) == 1.0


def test_scale():
    assert (parse("dgx1+scale=0.5").capacity == parse("dgx1").capacity / 2).all()
    assert parse("dgx1+scale=1") == parse("dgx1")


@pytest.mark.parametrize(
    ("base", "times", "same"), [("complete:4", 2, "kautz:d=3,D=3"), ("complete:3", 3, "kautz:d=2,D=4")]
)
def test_line_digraphs_of_complete_digraphs_are_kautz(base, times, same):
    assert isomorphism(parse(f"{base}+line={times}"), parse(same)) is not None


@pytest.mark.parametrize("spec", ["torus:3x3", "genkautz:n=7,d=2", "digraph:1122.2200.0011", "path:4"])
def test_line_digraph_is_that_of_networkx_without_loops(spec):
    base, lined = parse(spec), parse(f"{spec}+line=1")
    pairs = list(zip(base.tail.tolist(), base.head.tolist(), strict=True))
    expected = {(a, b) for a, (_, v) in enumerate(pairs) for b, (w, _) in enumerate(pairs) if v == w and a != b}
    assert lined.n == base.arcs
    assert set(zip(lined.tail.tolist(), lined.head.tolist(), strict=True)) == expected
    assert lined.arcs == len(expected)


def test_symmetries_of_a_digraph_carry_over_to_its_line_digraph():
    lined = parse("cayley:m=8,k=2,r=7,generators=1x6x8x11,directed+line=2")
    vertices, arcs = automorphisms(lined, searched=False)
    assert np.unique(orbits_of(vertices, lined.n)).size == 16
    for image, moved in zip(vertices, arcs, strict=True):
        assert np.array_equal(image[lined.tail], lined.tail[moved])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ring:4+line=0", "at least 1"),
        ("ring:4+host=2.0+line=1", "relay vertices"),
        ("torus:3x3+line=30", "too|large|exceed|more than"),
    ],
)
def test_line_digraphs_that_are_refused(spec, message):
    with pytest.raises(BadInput, match=message):
        parse(spec)
