"""Explicit digraphs, and the enumeration of regular graphs, counted against known sequences and by labellings."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import networkx as nx
import numpy as np
import pytest
from case_families import each
from reference import labelled_digraphs
from slow_cases import marked

from opticoll.errors import BadInput, BadSpec
from opticoll.instances import Topology, parse
from opticoll.instances.families.regular_graphs import (
    LARGEST_DIGRAPHS,
    LARGEST_GRAPHS,
    codes,
    digraph_spec,
)
from opticoll.instances.spec import expand
from opticoll.instances.symmetry import isomorphism, isomorphism_classes


def test_a_digraph_is_given_by_its_rows():
    topology = parse("digraph:12.2.0")
    assert list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2), (2, 0)]
    assert (topology.capacity == 1).all()
    assert parse("digraph:21.2.0") == topology
    assert parse("digraph:11.0").arcs == 3  # parallel arcs
    assert parse("digraph:1.").out_degree.tolist() == [1, 0]


@pytest.mark.parametrize("spec", ["ring:5,directed", "genkautz:n=12,d=3", "debruijn:d=2,D=3", "petersen", "ring:40"])
def test_topologies_print_as_digraphs_and_parse_back(spec):
    printed = digraph_spec(parse(spec))
    assert printed is not None
    again = parse(printed)
    assert again == parse(spec)
    assert again.spec == printed == digraph_spec(again)


def test_what_a_digraph_spec_cannot_express_has_none():
    assert digraph_spec(parse("ring:65")) is None
    assert digraph_spec(parse("ring:5+scale=2")) is None
    assert digraph_spec(parse("ring:5+host=1")) is None
    assert digraph_spec(parse("lightpath:2x2")) is None
    assert digraph_spec(Topology(1, [], [])) is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("digraph:12.2.3", "row 2 names the node '3'; the 3 rows define the nodes 012"),
        ("digraph:1.0 ;", "row 1 names the node ' '"),
        ("digraph:" + "." * 64, "65 nodes"),
        ("digraph", "argument 'rows' is missing"),
        ("digraph:12,20", "too many arguments"),
        ("all-digraphs:n=4,d=2", "is a set of instances; use it in"),
        ("all-digrafs:n=4,d=2", "did you mean 'all-digraphs'"),
    ],
)
def test_bad_digraphs_are_refused(spec, message):
    with pytest.raises(BadInput) as caught:
        parse(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("all-digraphs:n=5", "argument 'd' is missing"),
        ("all-digraphs:n=5,d=5", "d must be below n=5"),
        ("all-digraphs:n=1,d=1", "n: must be a whole number of at least 2"),
        ("all-digraphs:n=10,d=2", "too many members to enumerate; the limits are n=40 for d=1, n=9 for d=2"),
        ("all-graphs:n=18,d=3", "too many members"),
        ("all-graphs:n=8", "n=8 has too many members to enumerate; the limit without d is 7"),
        ("all-graphs:n=1", "n: must be a whole number of at least 2"),
        ("all-graphs:n=100,d=99", "too many members"),
        ("all-graphs:n=5,d=3", "no connected 3-regular graph on 5 nodes"),
        ("all-graphs:n=4,d=1", "no connected 1-regular graph on 4 nodes"),
        ("all-nonsense:n={3,4}", None),
    ],
)
def test_bad_populations_are_refused(spec, message):
    if message is None:
        assert expand(spec) == ["all-nonsense:n=3", "all-nonsense:n=4"]
        with pytest.raises(BadSpec, match="unknown family"):
            parse(expand(spec)[0])
        return
    with pytest.raises(BadInput) as caught:
        expand(spec)
    assert message in str(caught.value)


#: OEIS A002851 (cubic) and A006820 (quartic connected graphs).
CONNECTED_GRAPHS = {
    (4, 3): 1,
    (6, 3): 2,
    (8, 3): 5,
    (10, 3): 19,
    (12, 3): 85,
    (14, 3): 509,
    (16, 3): 4060,
    (5, 4): 1,
    (6, 4): 1,
    (7, 4): 2,
    (8, 4): 6,
    (9, 4): 16,
    (10, 4): 59,
    (11, 4): 265,
    (12, 4): 1544,
    (2, 1): 1,
    (9, 2): 1,
}


@pytest.mark.parametrize(
    ("size", "count"),
    [marked(size, count, slow=count > 300) for size, count in CONNECTED_GRAPHS.items()],
)
def test_regular_graphs_are_as_many_as_known(size, count):
    n, d = size
    results = [parse(spec) for spec in expand(f"all-graphs:n={n},d={d}")]
    assert len(results) == count
    for topology in results:
        assert (topology.out_degree == d).all()
        assert topology.connected
        assert topology.reversed() == topology


@each(("n", "count"), {2: 1, 3: 2, 4: 6, 5: 21, 6: 112, 7: 853}.items())
def test_connected_graphs_are_as_many_as_known(n, count):
    """OEIS A001349; one of each class by their number, as each is connected and no two are isomorphic."""
    graphs = [parse(spec) for spec in expand(f"all-graphs:n={n}")]
    assert len(graphs) == count
    assert all(graph.connected and graph.reversed() == graph for graph in graphs)
    if n <= 6:
        assert len(set(isomorphism_classes(graphs))) == count


def labellings(topology: Topology) -> int:
    """Number of labelled digraphs isomorphic to one: n! over its automorphisms, counted over all permutations."""
    arcs = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    fixed = sum(all((p[u], p[v]) in arcs for u, v in arcs) for p in permutations(range(topology.n)))
    return factorial(topology.n) // fixed


@pytest.mark.parametrize(
    ("n", "d", "labelled"), [(3, 1, 2), (4, 1, 6), (4, 2, 9), (4, 3, 1), (5, 2, 216), (5, 3, 44), (6, 2, 7570 - 10)]
)
def test_the_classes_of_digraphs_make_up_all_labelled_ones(n, d, labelled):
    """Labelled 2-regular digraphs: 1, 9, 216, 7570 (OEIS A007107), of which 10 are two complete digraphs of 3 nodes."""
    results = [parse(spec) for spec in expand(f"all-digraphs:n={n},d={d}")]
    assert all((g.out_degree == d).all() and (g.in_degree == d).all() and g.connected for g in results)
    assert sum(labellings(g) for g in results) == labelled
    if n <= 5:
        assert len({g.hash for g in labelled_digraphs(n, d)}) == labelled


def test_no_two_members_are_isomorphic():
    results = [parse(spec) for spec in expand("all-digraphs:n=5,d=2")]
    images = [{g.relabelled(np.array(p)).hash for p in permutations(range(5))} for g in results]
    assert len(results) == 5
    assert all(not (a & b) for i, a in enumerate(images) for b in images[:i])


def test_populations_take_braces_and_modifiers():
    assert expand("all-digraphs:n={3,4},d=2") == [*expand("all-digraphs:n=3,d=2"), *expand("all-digraphs:n=4,d=2")]
    failed = expand("all-graphs:n=6,d=3+fail=1,seed=2")
    assert len(failed) == 2
    assert all(spec.startswith("digraph:") and spec.endswith("+fail=1,seed=2") for spec in failed)
    assert [parse(spec).arcs for spec in failed] == [16, 16]


def test_limits_are_within_the_printable_nodes():
    assert max(*LARGEST_DIGRAPHS.values(), *LARGEST_GRAPHS.values()) <= 64
    assert len(codes(40, 1, directed=True)) == 1


# isomorphic copies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "ring:7,directed",
        "petersen",
        "complete:20",
        "random-regular:n=64,d=4,seed=1",
        "dgx1",
        "torus:4x4+fail=3,seed=1",
        "mesh:2x3+host=2",
        "digraph:11.02.0",
    ],
)
def test_renumbered_copies_are_isomorphic(spec):
    topology = parse(spec)
    copy = topology.relabelled(np.random.default_rng(0).permutation(topology.n))
    image = isomorphism(topology, copy)
    assert image is not None
    assert topology.relabelled(image).hash == copy.hash
    assert isomorphism_classes([topology, copy, topology]) == [0, 0, 0]


def test_known_isomorphisms_and_their_absence():
    assert isomorphism(parse("hypercube:4"), parse("torus:4x4")) is not None
    assert isomorphism(parse("ring:6"), parse("digraph:12.20.01.45.53.34")) is None  # two triangles
    assert isomorphism(parse("ring:6"), parse("ring:6+scale=2")) is None
    assert isomorphism(parse("ring:5"), parse("ring:5,directed")) is None
    one_rank = Topology(3, [0, 1, 2], [1, 2, 0], terminals=[0, 1])
    assert isomorphism(one_rank, parse("ring:3,directed")) is None
    assert isomorphism(Topology(3, [0, 1], [1, 2], [1.0, 2.0]), Topology(3, [0, 1], [1, 2], [2.0, 1.0])) is None


@pytest.mark.parametrize("size", [(4, 2), (5, 2)])
def test_classes_of_all_labelled_digraphs_are_the_members_of_the_population(size):
    n, d = size
    labelled = list(labelled_digraphs(n, d))
    classes = isomorphism_classes(labelled)
    assert len(set(classes)) == len(expand(f"all-digraphs:n={n},d={d}"))
    graphs = [nx.DiGraph(zip(g.tail.tolist(), g.head.tolist(), strict=True)) for g in labelled]
    assert all(nx.is_isomorphic(graph, graphs[one]) for graph, one in zip(graphs, classes, strict=True))
