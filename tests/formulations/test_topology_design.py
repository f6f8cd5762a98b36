"""Topologies of given degree: bounds, groups, search, records and the command."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from case_families import each
from reference import flow_time, multigraph

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.designs import design
from opticoll.errors import BadInput
from opticoll.formulations.topology.design import Design
from opticoll.formulations.topology.design_bounds import depth_sum, least_time
from opticoll.instances import parse
from opticoll.instances.families.low_diameter import inverse, product
from opticoll.instances.symmetry import automorphisms, isomorphism, orbits_of
from opticoll.solvers import solve
from opticoll.solvers.methods.method import Context
from opticoll.solvers.methods.topology.graph_enumeration import Exclusion
from opticoll.solvers.methods.topology.minimum_load import least_load
from opticoll.solvers.methods.topology.sequence_orbits import groups
from opticoll.solvers.methods.topology.symmetric_search import (
    candidates,
    cayley_candidates,
    exchange_candidates,
    search,
)
from opticoll.solvers.task import Task

NAME = "topology.design"

POPULATIONS = [
    *(f"all-graphs:n={n},d={d}" for n, d in ((4, 2), (5, 2), (6, 2), (6, 3), (7, 4), (8, 3), (10, 3))),
    *(f"all-digraphs:n={n},d={d}" for n, d in ((4, 2), (5, 2), (6, 2), (5, 3))),
]


@each("name", POPULATIONS)
def test_no_topology_of_the_degree_is_below_the_bound(name):
    from opticoll.instances.families.regular_graphs import all_digraphs, all_graphs

    directed = "digraphs" in name
    n, d = (int(part.split("=")[1]) for part in name.partition(":")[2].split(","))
    bound = least_time(Design.of_nodes(n, d, directed))[0]
    results = [parse(spec) for spec in (all_digraphs if directed else all_graphs)(n, d)]
    assert results
    for topology in results:
        depths = nx.all_pairs_shortest_path_length(multigraph(topology))
        total = sum(sum(reached.values()) for _, reached in depths)
        assert Fraction(total, topology.arcs) >= bound


def test_bounds_of_moore_graphs_and_of_graphs_that_do_not_exist():
    def least(n, d, directed=False):
        return least_time(Design.of_nodes(n, d, directed))[0]

    assert least(10, 3) == 5  # the Petersen graph: 3 + 2 * 6
    assert least(50, 7) == Fraction(7 + 2 * 42, 7)  # the Hoffman-Singleton graph
    assert least(17, 4) == Fraction(17 * (4 + 2 * 12) + 2, 17 * 4)  # degree 4: none of diameter 2
    assert least(22, 3) == Fraction(22 * (3 + 2 * 6 + 3 * 12) + 2, 22 * 3)
    assert least(7, 2, directed=True) == Fraction(7 * (2 + 2 * 4) + 1, 7 * 2)
    assert least(5, 3) == Fraction(4 * (3 + 2) + (2 + 2 * 2), 14)  # 5 x 3 is odd: one node has two links
    assert least(5, 2) == 3
    assert least(6, 5) == 1
    assert least(4, 1, directed=True) == 6
    assert depth_sum(9, 4, 0) == 4  # nodes that cannot be reached are not counted


def test_groups_are_groups():
    for n in (8, 12, 21, 27):
        nodes = np.arange(n)
        seen = set()
        for m, k, r in groups(n):
            table = product(m, k, r, nodes[:, None], nodes[None, :])
            assert (np.sort(table, axis=0) == nodes[:, None]).all()
            assert (np.sort(table, axis=1) == nodes[None, :]).all()
            assert (table[0] == nodes).all()
            left = table[table[:, :, None], nodes[None, None, :]]
            assert (left == table[nodes[:, None, None], table[None, :, :]]).all()
            assert (table[nodes, inverse(m, k, r, nodes)] == 0).all()
            seen.add((table == table.T).all())
        assert seen == {True, False}


@pytest.mark.parametrize(
    ("spec", "other"),
    [
        ("cayley:m=12,k=1,r=1,generators=1x5", "circulant:n=12,offsets=1x5"),
        ("cayley:m=5,k=1,r=1,generators=1,directed", "ring:5,directed"),
        ("cayley:m=4,k=4,r=1,generators=1x4", "torus:4x4"),
        ("cayley:m=3,k=2,r=2,generators=1x3", None),  # the prism: triangles and a perfect matching
    ],
)
def test_cayley_graphs_are_known_graphs(spec, other):
    graph = nx.Graph(multigraph(parse(spec)))
    known = nx.circular_ladder_graph(3) if other is None else nx.Graph(multigraph(parse(other)))
    assert nx.is_isomorphic(graph, known)
    assert parse(str(parse(spec).spec)) == parse(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cayley:m=7,k=3,r=3,generators=1", "r=1 always does"),
        ("cayley:m=7,k=3,r=2,generators=21", "must lie in 1..20"),
        ("cayley:m=7,k=3,r=2,generators=1x6", "give the same links"),
        ("cayley:m=0,k=3,r=1,generators=1", "at least 1"),
    ],
)
def test_unusable_groups_are_refused(spec, message):
    with pytest.raises(BadInput, match=message):
        parse(spec)


@pytest.mark.parametrize("directed", [False, True])
def test_candidates_have_the_degree_and_the_sum_that_they_state(directed):
    data = Design.of_nodes(20, 4, directed)
    listed = candidates(data, seed=3, starts=1, moves=10)
    assert len(listed) > 5
    for candidate in listed:
        topology = parse(candidate.spec)
        assert set(topology.out_degree.tolist()) == set(topology.in_degree.tolist()) == {4} or "kautz" in candidate.spec
        if candidate.least:
            lengths = dict(nx.all_pairs_shortest_path_length(multigraph(topology)))
            mean = sum(sum(result.values()) for result in lengths.values()) / 20
            assert candidate.least == pytest.approx(mean / 4)
            assert mean >= least_time(data)[0] * 4
    assert candidates(data, seed=3, starts=1, moves=10) == listed


def test_the_search_is_solved_checked_and_compared_with_the_bound():
    result = oc.solve(NAME, "servers:n=13,degree=4", method="symmetric-search")
    assert result.proof == "optimal"
    assert result.verified
    topology = parse(result.metrics["found"])
    assert result.metrics["T"] == pytest.approx(flow_time(topology), rel=1e-7)
    assert result.metrics["T"] == pytest.approx(float(least_time(Design.of_nodes(13, 4, False))[0]), rel=1e-7)
    assert parse(result.metrics["topology"]) == topology


def test_the_program_finds_what_enumeration_finds():
    from opticoll.instances.families.regular_graphs import all_graphs

    best = min(flow_time(parse(spec)) for spec in all_graphs(6, 3))
    assert oc.solve(NAME, "servers:n=6,degree=3", method="highs").metrics["T"] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(
    ("instance", "settings", "message"),
    [
        ("ring:4", {}, "servers:n=8"),
        ("servers:n=4,degree=2,traffic=dlrm", {}, "uniform"),
        ("servers:n=4,degree=4", {}, "degrees 1 to 3"),
        ("servers:n=4,degree=1", {}, "directed=true"),
    ],
)
def test_other_instances_are_refused(instance, settings, message):
    with pytest.raises(BadInput, match=message):
        oc.solve(NAME, instance, **settings)


# records and the command ----------------------------------------------------------------------------------------------


def test_every_record_has_its_size_and_stays_above_the_bound():
    rows = design.records()
    assert len(rows) >= 200
    improved = optimal = 0
    for (n, degree, directed), row in rows.items():
        bound = least_time(Design.of_nodes(n, degree, directed))[0]
        assert row.bound == bound
        assert row.time >= float(bound) * (1 - 1e-9)
        optimal += row.best_possible
        improved += directed and n <= 256 and row.genkautz is not None and row.time < row.genkautz * (1 - 1e-6)
        if n <= 64:
            topology = parse(row.topology)
            assert topology.n == n
            assert topology.out_degree.max() == degree
            assert directed or np.array_equal(*(np.sort(keys) for keys in _both(topology)))
    assert improved >= 30
    assert optimal >= 20


def _both(topology):
    n = topology.n
    return topology.tail * n + topology.head, topology.head * n + topology.tail


@pytest.mark.parametrize("seed", range(6))
def test_a_record_s_time_is_that_of_a_plain_lp(seed):
    small = sorted(key for key in design.records() if key[0] <= 14)
    key = small[np.random.default_rng(seed).integers(len(small))]
    row = design.records()[key]
    assert row.time == pytest.approx(flow_time(parse(row.topology)), rel=1e-7)


ENUMERATED = [key for key, row in design.records().items() if row.enumerated is not None]


@each("key", [key for key in ENUMERATED if key[0] <= 12])
def test_no_topology_is_faster_than_an_enumerated_record(key):
    assert_enumerated(key)


@pytest.mark.slow
@each("key", [key for key in ENUMERATED if key[0] > 12])
def test_no_topology_is_faster_than_a_larger_enumerated_record(key):
    assert_enumerated(key)


def assert_enumerated(key):
    """All topologies again: as many are left by their distances, and none of them is faster."""
    row, (n, degree, directed) = design.records()[key], key
    exclusion = Exclusion(Design.of_nodes(n, degree, directed), row.time, 1e-9, most=10**8)
    assert exclusion.run(lambda topology: (flow_time(topology),) * 2, lambda: None)
    assert exclusion.whole == row.enumerated
    assert row.time * (1 - 1e-8) <= exclusion.least <= row.time
    assert row.time > float(row.bound) * (1 + 1e-8), "the bound is attained: no enumeration is needed"


def test_a_record_that_can_be_beaten_is_noticed():
    exclusion = Exclusion(Design.of_nodes(12, 3, False), 7.25, 1e-9, most=10**8)  # Cayley graphs and exchanges of links
    assert exclusion.run(lambda topology: (flow_time(topology),) * 2, lambda: None)
    assert exclusion.best == pytest.approx(107 / 15, rel=1e-7)


@each(
    ("n", "degree", "time", "orbits"),
    [(12, 3, "107/15", 2), (14, 4, "141/25", 8), (20, 3, "323/21", 3), (22, 3, "533/30", 12)],
)
def test_the_best_small_networks_are_not_vertex_transitive(n, degree, time, orbits):
    row = design.records()[n, degree, False]
    result = oc.solve("alltoall.master", row.topology, exact=True)
    assert 1 / Fraction(result.record["objective_exact"]) == Fraction(time)
    assert row.time == pytest.approx(float(Fraction(time)), rel=1e-12)
    assert np.unique(orbits_of(automorphisms(parse(row.topology))[0], n)).size == orbits


def test_one_of_the_85_cubic_graphs_of_12_nodes_is_faster_than_all_others():
    from opticoll.instances.families.regular_graphs import all_graphs

    times = {}
    for spec in all_graphs(12, 3):
        topology = parse(spec)
        links = np.zeros((12, 12), dtype=np.int64)
        links[topology.tail, topology.head] = 1
        low, high = least_load(links, 1.0 - np.eye(12), np.ones((12, 12)), np.inf)
        assert high == pytest.approx(low, rel=1e-9)
        times[spec] = high
    best, second, *_ = sorted(times.values())
    assert len(times) == 85
    assert best == pytest.approx(107 / 15)
    assert second == pytest.approx(7.25)
    fastest = min(times, key=times.get)
    assert isomorphism(parse(fastest), parse(design.records()[12, 3, False].topology)) is not None


def test_design_says_what_was_enumerated(capsys):
    assert main(["design", "n=12", "degree=3"]) == 0
    text = capsys.readouterr().out
    assert "none: best possible" in text
    assert "7.1333333   for any topology: all topologies of 12 nodes with at most 3 links each, none parallel," in text
    assert main(["design", "n=12", "degree=3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["bound"], document["best_possible"]) == (pytest.approx(107 / 15, rel=1e-12), True)
    assert abs(document["gap"]) < 1e-6


def test_design_answers_from_the_table_or_by_search(capsys):
    assert main(["design", "n=10", "degree=3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["T"], document["bound"], document["proof"]) == (pytest.approx(5), 5, "optimal")
    assert document["best_possible"] is True
    assert document["source"] == "table"
    assert main(["design", "n=10", "degree=3", "--search"]) == 0
    text = capsys.readouterr().out
    assert "none: best possible" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["n=4", "degree=9"], "degrees 1 to 3"),
        (["n=1", "degree=1"], "at least 2 nodes"),
        (["n=9", "degree=3"], "is odd"),
        (["n=x", "degree=2"], "whole numbers"),
        (["n=4"], "whole numbers"),
        (["n=5000", "degree=4"], "exceeds the limit of 4096"),
        (["n=4096", "degree=5", "--time-limit", "5"], "of which 14.3 s to verify T; set --time-limit 30"),
    ],
)
def test_design_refuses_in_one_line(words, message, capsys):
    assert main(["design", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize(("n", "degree"), [("a", 2), (8, 2.5), (True, 1), (-1, 2)])
def test_sizes_in_python_are_whole_numbers(n, degree):
    with pytest.raises(BadInput, match=r"^[^\n]+$"):
        oc.design(n, degree)


def test_a_spent_limit_names_the_first_candidate_without_flows():
    context = Context(
        Task("alltoall.master", "servers:n=24,degree=3"),
        None,
        None,
        {},
        -1.0,
        solve.solve,
        lambda answer, objective: None,
    )
    match = search(context, Design.of_nodes(24, 3, False), starts=2)
    assert (match.interrupted, match.orbits, match.time) == (True, None, np.inf)
    topology = parse(match.spec)
    assert topology.n == 24
    assert (topology.out_degree == 3).all()
    assert np.isfinite(topology.hops).all()


def test_with_a_deadline_the_groups_of_largest_order_come_first():
    (first, *_) = (c.spec for c in cayley_candidates(2000 // 8, 4, False, starts=1, deadline=-1.0))
    largest = max(len({pow(r, b, m) for b in range(k)}) for m, k, r in groups(2000 // 8))
    m, k, r = (int(part.partition("=")[2]) for part in first.removeprefix("cayley:").split(",")[:3])
    assert len({pow(r, b, m) for b in range(k)}) == largest > 1


def test_line_digraphs_are_tried_and_have_the_size():
    specs = design.line_specs(64, 4)
    assert {parse(spec).n for spec in specs} == {64}
    assert all((parse(spec).out_degree == 4).all() and (parse(spec).in_degree == 4).all() for spec in specs)
    assert design.line_specs(35, 4) == []
    assert design.line_specs(3, 1) == []  # line digraphs of a ring are rings


@pytest.mark.parametrize(("n", "degree"), [(2, 4), (3, 4), (4, 4), (5, 4), (8, 8)])
def test_line_digraphs_of_complete_multigraphs_have_the_smallest_distances(n, degree):
    topology = parse(f"{design.complete_multigraph(n, degree)}+line=1")
    assert topology.n == n * degree
    assert set(topology.hops.sum(axis=1)) == {depth_sum(n * degree, degree, degree)} or n == 2


# racks and exchanges of links -----------------------------------------------------------------------------------------

RACKS = [
    *(("all-graphs:n=6,d=3", limits) for limits in ((2, 2, 0), (3, 4, 5))),
    *(("all-digraphs:n=5,d=2", limits) for limits in ((2, 2, 3), (3, 0, 2))),
    *(pytest.param("all-graphs:n=6,d=3", limits, marks=pytest.mark.slow) for limits in ((2, 0, 4), (3, 0, 3))),
    *(pytest.param("all-digraphs:n=5,d=2", limits, marks=pytest.mark.slow) for limits in ((2, 1, 0), (2, 0, 2))),
]


def keeps_to(topology, rack, cables, uplinks):
    """Whether no limit of the racks is exceeded, counted link by link."""
    between, out, into = {}, {}, {}
    for u, v in zip(topology.tail.tolist(), topology.head.tolist(), strict=True):
        p, q = u // rack, v // rack
        if p != q:
            between[p, q] = between.get((p, q), 0) + 1
            out[p], into[q] = out.get(p, 0) + 1, into.get(q, 0) + 1
    loads = [*out.values(), *into.values()]
    return max(between.values()) <= (cables or np.inf) and max(loads) <= (uplinks or np.inf)


@pytest.mark.parametrize(("name", "limits"), RACKS)
def test_no_topology_that_keeps_to_the_racks_is_below_the_bound(name, limits):
    """All numberings of all topologies: the checker accepts those that keep to the limits, and the bound holds."""
    from opticoll.formulations.topology.design_solution import rack_excess
    from opticoll.instances.families.regular_graphs import all_digraphs, all_graphs

    directed = "digraphs" in name
    n, d = (int(part.split("=")[1]) for part in name.partition(":")[2].split(","))
    data = Design.of_nodes(n, d, directed, **dict(zip(("rack", "cables", "uplinks"), limits, strict=True)))
    bound, kept = least_time(data)[0], 0
    for spec in (all_digraphs if directed else all_graphs)(n, d):
        topology = parse(spec)
        time = None
        for order in permutations(range(n)):
            other = topology.relabelled(order)
            links = np.zeros((n, n))
            links[other.tail, other.head] = 1.0
            keeps = keeps_to(other, *limits)
            assert keeps == (max(rack_excess(data, links).values()) == 0)
            if keeps:
                time = time or flow_time(topology)
                kept += 1
                assert time >= float(bound) * (1 - 1e-9)
                assert topology.arcs <= data.most_links
    assert kept


def test_the_program_with_racks_finds_what_enumeration_finds():
    result = oc.solve(NAME, "servers:n=6,degree=3", rack=3, uplinks=2, method="highs")
    topology = parse(result.metrics["topology"])
    assert keeps_to(topology, 3, 0, 2)
    assert result.metrics["T"] == pytest.approx(flow_time(topology), rel=1e-6)
    assert result.metrics["T"] == pytest.approx(4.5)  # 9 shards over 2 cables each way, which two triangles attain


@pytest.mark.parametrize("directed", [False, True])
def test_exchanges_keep_to_racks_and_ports_and_their_norm_is_that_of_equal_splits(directed):
    from opticoll.solvers.methods.topology.split_loads import load_norm

    limits = (4, 2, 5)
    data = Design.of_nodes(12, 4, directed, rack=4, cables=2, uplinks=5)
    results = [one.topology() for one in exchange_candidates(data, seed=3, starts=2, steps=300)]
    assert results
    assert [one.spec for one in exchange_candidates(data, seed=3, starts=2, steps=300)] == [one.spec for one in results]
    for topology in results:
        assert parse(topology.spec) == topology
        assert keeps_to(topology, *limits)
        assert max(topology.out_degree.max(), topology.in_degree.max()) <= 4
        assert directed or np.array_equal(*(np.sort(keys) for keys in _both(topology)))
        links = np.zeros((12, 12), dtype=bool)
        links[topology.tail, topology.head] = True
        loads = np.array(list(nx.edge_betweenness_centrality(nx.DiGraph(links), normalized=False).values()))
        norm = ((loads**8).sum() / 12) ** (1 / 8)
        assert load_norm(links.astype(int), 1.0 - np.eye(12), 3) == pytest.approx(norm)
        assert loads.max() >= flow_time(topology) * (1 - 1e-7)


def test_exchanges_improve_on_circulants_where_the_order_is_a_prime():
    result = oc.solve(NAME, "servers:n=17,degree=4", method="symmetric-search", starts=2, exchanges=300)
    assert result.verified
    assert result.metrics["found"].startswith("digraph:")
    circulants = [c for c in candidates(Design.of_nodes(17, 4, False), starts=4) if c.spec.startswith("cayley")]
    assert result.metrics["T"] < min(candidate.least for candidate in circulants)


@pytest.mark.parametrize(
    ("n", "limits", "message"),
    [
        (16, {"cables": 2}, "racks need a limit"),
        (16, {"rack": 4}, "racks need a limit"),
        (16, {"rack": 16, "uplinks": 2}, "are inconsistent"),
    ],
)
def test_invalid_racks_are_refused(n, limits, message):
    with pytest.raises(BadInput, match=message):
        oc.solve(NAME, f"servers:n={n},degree=4", **limits)


def test_a_search_keeps_to_racks():
    result = oc.solve(NAME, "servers:n=12,degree=4", rack=4, cables=2, uplinks=4, starts=1, method="symmetric-search")
    topology = parse(result.metrics["found"])
    assert keeps_to(topology, 4, 2, 4)
    assert pytest.approx(flow_time(topology), rel=1e-6) == result.T
    assert result.bound == pytest.approx(1 / 8)  # 4 x 8 shards over 4 cables


# all records ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_the_time_of_every_record_is_solved_again(part):
    """Also counts: faster than generalized Kautz for at least 30 sizes up to 256, best possible for at least 20."""
    keys = sorted(design.records())[part::8]
    for n, degree, directed in keys:
        row = design.records()[n, degree, directed]
        solved = design.solved(row.topology).T
        assert solved == pytest.approx(row.time, rel=1e-6 if n <= design.MOST_LINED else 2e-3)
        if row.genkautz is not None and n <= 256:
            kautz = design.solved(f"genkautz:n={n},d={degree}").T
            assert kautz == pytest.approx(row.genkautz, rel=2e-6)
