"""Path sets: counted before listed, listed in order, refused in one line; against networkx."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module

import networkx as nx
import numpy as np
import pytest
from reference import multigraph

from opticoll import compiled
from opticoll.compiled import interpreted
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.flows import path_sets
from opticoll.formulations.flows.path_sets import (
    KERNELS,
    MOST_PATHS,
    PathRule,
    arc_disjoint_paths,
    build_path_set,
    count_all,
    from_arrays,
    k_shortest_paths,
    path_violations,
    rule_parameters,
    to_arrays,
)
from opticoll.formulations.parameters import read_parameters
from opticoll.instances import Topology, parse

GRAPHS = ("ring:6", "petersen", "mesh:2x4", "genkautz:n=7,d=3", "hypercube:3", "dgx1", "hypercube:2+host=1.5")
RULES = (PathRule("all"), PathRule("all", lmax=4), PathRule("shortest"), PathRule("k", 3), PathRule("disjoint"))
PARALLEL = Topology(3, [0, 0, 1, 2, 0], [1, 1, 2, 0, 2], [1.0, 2.0, 1.0, 1.0, 1.0])


def arcs_between(result, k):
    return [tuple(result.path(p)) for p in range(result.first[k], result.first[k + 1])]


@pytest.mark.parametrize("spec", GRAPHS)
def test_all_simple_paths_are_those_of_networkx(spec):
    topology = parse(spec)
    graph = multigraph(topology)
    rule = PathRule("all", lmax=5) if topology.arcs > 40 else PathRule("all")
    path_set = build_path_set(topology, rule, "test")
    assert count_all(topology, rule)[:2] == (path_set.paths, path_set.arcs.size)
    for k, (s, t) in enumerate(zip(path_set.sources.tolist(), path_set.targets.tolist(), strict=True)):
        cutoff = rule.lmax or topology.n
        expected = {tuple(e[2] for e in path) for path in nx.all_simple_edge_paths(graph, s, t, cutoff)}
        current = arcs_between(path_set, k)
        assert set(current) == expected
        assert current == sorted(current, key=lambda path: (len(path), path))


@pytest.mark.parametrize("topology", [*map(parse, GRAPHS), PARALLEL], ids=[*GRAPHS, "parallel arcs"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_set_is_valid_complete_and_deterministic(topology, rule):
    longest = None if rule.lmax is None else max(rule.lmax, int(topology.diameter))
    rule = replace(rule, lmax=longest if topology.arcs <= 40 or rule.kind != "all" else 5)
    path_set = build_path_set(topology, rule, "test")
    assert path_violations(path_set, rule) == 0
    assert (np.bincount(path_set.pair, minlength=path_set.pairs) > 0).all()
    again = build_path_set(topology, rule, "test")
    assert np.array_equal(path_set.arcs, again.arcs)
    assert np.array_equal(path_set.incidence.sum(axis=0), path_set.length)
    shortest = path_set.length[path_set.first[:-1]]
    rank = {v: i for i, v in enumerate(topology.terminals.tolist())}
    for k, (s, t) in enumerate(zip(path_set.sources.tolist(), path_set.targets.tolist(), strict=True)):
        # The disjoint set that is shortest in total need not hold a shortest path.
        assert shortest[k] == topology.hops[rank[s], t] or rule.kind == "disjoint"
        if rule.kind == "shortest":
            assert set(path_set.length[path_set.first[k] : path_set.first[k + 1]]) == {shortest[k]}


@pytest.mark.parametrize("spec", GRAPHS)
def test_k_shortest_are_the_shortest(spec):
    topology = parse(spec)
    graph = nx.DiGraph(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    ends = topology.terminals.tolist()
    for s, t in [(ends[0], ends[-1]), (ends[1], ends[2]), (ends[-1], ends[0])]:
        result = k_shortest_paths(topology, s, t, 6)
        expected = [len(path) - 1 for path, _ in zip(nx.shortest_simple_paths(graph, s, t), range(6), strict=False)]
        assert [len(path) for path in result] == expected
        assert len(set(map(tuple, result))) == len(result)


def test_parallel_arcs_are_different_paths():
    path_set = build_path_set(PARALLEL, PathRule("k", 10), "test")
    direct = arcs_between(path_set, 0)  # 0 -> 1
    assert sorted(direct) == [(0,), (1,)]
    assert len(arc_disjoint_paths(PARALLEL, 0, 2)) == 2
    assert build_path_set(PARALLEL, PathRule("shortest"), "test").first[1] == 2


@pytest.mark.parametrize("spec", GRAPHS)
def test_disjoint_sets_are_largest_disjoint_and_shortest(spec):
    topology = parse(spec)
    graph = nx.DiGraph()
    for u, v in zip(topology.tail.tolist(), topology.head.tolist(), strict=True):
        graph.add_edge(u, v, capacity=1, weight=1)
    ends = topology.terminals.tolist()
    for s, t in [(ends[0], ends[-1]), (ends[1], ends[2])]:
        result = arc_disjoint_paths(topology, s, t)
        arcs = [a for path in result for a in path]
        assert len(set(arcs)) == len(arcs)
        assert len(result) == nx.maximum_flow_value(graph, s, t)
        cheapest = nx.max_flow_min_cost(graph, s, t)
        assert len(arcs) == nx.cost_of_flow(graph, cheapest)


@pytest.mark.parametrize("spec", ["torus:3x4", "hypercube:3", "circulant:n=9,offsets=1x3", "complete:5"])
def test_disjoint_sets_use_all_links_alike_where_translations_reach_every_rank(spec):
    topology = parse(spec)
    path_set = build_path_set(topology, PathRule("disjoint"), "test")
    ends = list(zip(path_set.sources.tolist(), path_set.targets.tolist(), strict=True))
    assert len(set(ends)) == topology.n * (topology.n - 1)
    for k, (s, t) in enumerate(ends):
        found, plain = arcs_between(path_set, k), arc_disjoint_paths(topology, s, t)
        assert len(found) == len(plain)
        assert sum(map(len, found)) == sum(map(len, plain))
        assert len({arc for path in found for arc in path}) == sum(map(len, found))
    used = np.bincount(path_set.arcs, minlength=topology.arcs)
    assert len(np.unique(used)) <= topology.arcs // topology.n


@pytest.mark.parametrize(
    ("spec", "rule", "count"),
    [
        ("genkautz:n=16,d=4", PathRule("all"), "3,636,276"),
        ("torus:3x3x3", PathRule("all"), "more than 20,000,000"),
        ("hypercube:7", PathRule("shortest"), "1,753,472"),
    ],
)
def test_too_many_paths_are_refused_with_their_count(spec, rule, count):
    with pytest.raises(NotApplicable, match=count) as caught:
        build_path_set(parse(spec), rule, "alltoall.path-mcf")
    assert f"{MOST_PATHS:,}" in str(caught.value)
    assert "lmax" in str(caught.value)


def test_a_pair_without_a_path_is_named():
    with pytest.raises(NotApplicable, match=r"lmax=2 arcs from 0 to 3.*diameter 4"):
        build_path_set(parse("ring:8"), PathRule("all", lmax=2), "test")
    for rule in ({"paths": "k", "k": 0}, {"lmax": -1}):
        with pytest.raises(NotApplicable):
            read_parameters(rule_parameters("disjoint"), rule, "test")


def test_zero_capacity_is_refused_where_it_stands():
    with pytest.raises(BadInput, match=r"0->1 has capacity 0\.0"):
        Topology(2, [0, 1], [1, 0], [0.0, 1.0])


def test_sets_survive_their_arrays_and_bad_arrays_do_not():
    path_set = build_path_set(parse("petersen"), PathRule("k", 3), "test")
    arrays = to_arrays(path_set)
    back = from_arrays(path_set.topology, arrays)
    assert np.array_equal(back.arcs, path_set.arcs)
    assert np.array_equal(back.pair, path_set.pair)

    def broken(name, at, value):
        changed = {key: array.copy() for key, array in arrays.items()}
        changed[name][at] = value
        return from_arrays(path_set.topology, changed)

    long = int(np.argmax(path_set.length))
    assert broken("path_arcs", (long, 0), 0.0) is None  # a hole
    assert broken("path_pair", 0, 5.0) is None  # not ascending
    rule = PathRule("all")
    assert path_violations(broken("path_arcs", (0, 0), 31.0), rule) == np.inf  # no such arc
    assert path_violations(broken("path_arcs", (0, 0), arrays["path_arcs"][5, 0]), rule) == np.inf  # another source
    assert path_violations(broken("path_pair", -1, 1e6), rule) == np.inf
    assert path_violations(path_set, PathRule("all", lmax=1)) == np.inf


def test_a_walk_with_a_cycle_is_not_a_path():
    from opticoll.formulations.flows.path_sets import path_set_of

    ring = parse("ring:3")
    arc = {(u, v): a for a, (u, v) in enumerate(zip(ring.tail.tolist(), ring.head.tolist(), strict=True))}
    walk = [arc[0, 2], arc[2, 0], arc[0, 1]]
    assert path_violations(path_set_of(ring, [walk], [0]), PathRule("all")) == np.inf
    assert path_violations(path_set_of(ring, [[arc[0, 1]]], [0]), PathRule("all")) == 0


@pytest.mark.parametrize("spec", GRAPHS)
def test_kernels_find_the_same_paths_as_plain_python(spec, monkeypatch):
    topology, found = parse(spec), []
    for module in (interpreted(KERNELS), import_module(KERNELS)):
        monkeypatch.setattr(path_sets, "kernels", lambda name, steps, module=module: module)
        found.append([build_path_set(topology, rule, "paths") for rule in RULES[3:]])
    assert hasattr(import_module(KERNELS).disjoint_flow, "py_func")
    assert not hasattr(interpreted(KERNELS).disjoint_flow, "py_func")
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.arcs, other.arcs)
        np.testing.assert_array_equal(one.start, other.start)


def test_few_steps_do_not_load_numba_and_many_do(monkeypatch):
    monkeypatch.setattr(compiled, "_plain_steps", 0)
    monkeypatch.delitem(sys.modules, KERNELS, raising=False)
    assert compiled.kernels(KERNELS, 1000) is interpreted(KERNELS)
    assert compiled.kernels(KERNELS, compiled._MOST_PLAIN) is sys.modules[KERNELS]
    assert compiled.kernels(KERNELS, 1) is sys.modules[KERNELS]
