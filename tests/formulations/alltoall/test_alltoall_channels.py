"""Routes and virtual channels together: enumeration, closed forms, the checker, the search."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.alltoall.channels import RoutedChannels
from opticoll.formulations.alltoall.channels_routes import filled
from opticoll.instances import parse
from opticoll.instances.topology import Topology
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.alltoall.channel_search import ChannelLayer, searched
from opticoll.solvers.verify import pack

NAME = RoutedChannels.name


def problem(spec, **parameters):
    return RoutedChannels.prepare(parse(spec) if isinstance(spec, str) else spec, parameters)


def deadlock_free(paths):
    """Whether the dependencies of these paths (lists of arcs) have no cycle, by networkx."""
    graph = nx.DiGraph()
    for path in paths:
        graph.add_edges_from(itertools.pairwise(path))
    return nx.is_directed_acyclic_graph(graph)


def enumerated(data, layers):
    """The least load over all paths and layers of every pair, one after the other; infinite if none is free."""
    paths = data.paths
    options = [[(p, level) for p in paths.of_pair(k) for level in range(layers)] for k in range(paths.pairs)]
    best = np.inf
    for choice in itertools.product(*options):
        load = np.zeros(data.topology.arcs)
        for k, (p, _) in enumerate(choice):
            load[paths.path(p)] += data.routing.amount[k]
        worst = (load / data.topology.capacity).max()
        if worst < best and all(
            deadlock_free([paths.path(p) for p, own in choice if own == level]) for level in range(layers)
        ):
            best = worst
    return best


def drawn(seed):
    """A directed ring of four with two more arcs, of whole capacities."""
    draw = np.random.default_rng(seed)
    arcs = {(i, (i + 1) % 4) for i in range(4)}
    while len(arcs) < 6:
        u, v = (int(w) for w in draw.choice(4, 2, replace=False))
        arcs.add((u, v))
    tail, head = zip(*sorted(arcs), strict=True)
    return Topology(4, tail, head, draw.integers(1, 4, 6).astype(float))


@pytest.mark.parametrize("seed", range(4))
def test_one_layer_is_the_best_of_all_routes(seed):
    topology = drawn(seed)
    best = enumerated(problem(topology, layers=1, k=2), 1)
    run = oc.solve(NAME, topology, layers=1, k=2)
    assert run.termination == ("infeasible" if np.isinf(best) else "optimal")
    assert (run.objective or np.inf) == pytest.approx(best)
    assert run.proof == "optimal" or np.isinf(best)


@pytest.mark.parametrize("seed", [0, 1])
def test_two_layers_are_the_best_of_all_routes(seed):
    topology = drawn(seed)
    best = enumerated(problem(topology, layers=2, k=1), 2)
    assert oc.solve(NAME, topology, layers=2, k=1).objective == pytest.approx(best)
    fewest = oc.solve(NAME, topology, layers=2, k=1, objective="channels", load=best).objective
    assert fewest == (1 if enumerated(problem(topology, layers=1, k=1), 1) == best else 2)


def test_a_ring_of_five_pays_for_one_layer():
    """A layer lacks a dependency each way round, so two routes are an arc longer: (30 + 2) / 10 arcs, rounded up."""
    assert oc.solve(NAME, "ring:5", layers=1).objective == 4
    assert oc.solve(NAME, "ring:5", layers=2).objective == 3
    assert oc.solve(NAME, "ring:5", objective="channels").objective == 1
    assert oc.solve(NAME, "ring:5", objective="channels", load=3).objective == 2


def test_an_order_of_arcs_by_constraint_programming():
    """Positions are integers, so that CP-SAT takes the program: the 3-cube needs one layer at its least load."""
    run = oc.solve(NAME, "hypercube:3", method="cp-sat", objective="channels", load=4, paths="shortest")
    assert (run.objective, run.metrics["max_load"], run.proof) == (1, 4, "optimal")


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_a_directed_ring_needs_half_as_many_layers_as_nodes(n):
    """A layer lacks the dependency at some node, and every route of n-1 arcs passes all nodes but two neighbours."""
    spec, layers = f"ring:{n},directed", -(-n // 2)
    assert problem(spec, layers=1).refute().name == "forced-cycle"
    data = problem(spec, layers=layers)
    passed = [set(data.topology.head[data.paths.path(p)[:-1]].tolist()) for p in range(data.paths.paths)]
    layer = np.array([next(i for i in range(layers) if 2 * i not in nodes) for nodes in passed])
    values = filled(data, np.arange(data.paths.paths), layer)
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == n * (n - 1) / 2 == max(bound.value for bound in data.bounds())
    if n <= 4:
        assert oc.solve(NAME, spec, objective="channels", layers=layers).objective == layers
        assert oc.solve(NAME, spec, layers=layers - 1).termination == "infeasible"


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_dimension_order_needs_one_layer_on_a_hypercube(dimension):
    """E-cube routes correct the lowest wrong bit first: no cycle, and every arc carries 2^(d-1) of them."""
    data = problem(f"hypercube:{dimension}", layers=1, paths="shortest")
    chosen = []
    for k in range(data.paths.pairs):
        for p in data.paths.of_pair(k):
            arcs = data.paths.path(p)
            bits = (data.topology.tail[arcs] ^ data.topology.head[arcs]).tolist()
            if bits == sorted(bits):
                chosen.append(p)
    values = filled(data, np.array(chosen), np.zeros(len(chosen), dtype=int))
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == 2 ** (dimension - 1) == max(bound.value for bound in data.bounds())


def test_corrupted_routes_are_refused():
    data = problem("ring:4", layers=1, objective="channels", load=2, paths="shortest")
    paths = data.paths
    onward = np.array(
        [(data.topology.head[paths.path(p)[0]] - paths.sources[k]) % 4 == 1 for p, k in enumerate(paths.pair)]
    )
    first = np.array([next(p for p in paths.of_pair(k) if onward[p] or len(paths.of_pair(k)) == 1) for k in range(12)])
    bad = data.residuals(filled(data, first, np.zeros(12, dtype=int)))
    assert bad["acyclic"] == np.inf  # all four routes of two arcs run clockwise
    assert bad["congestion"] == pytest.approx(0.5)  # three shards over an arc, of two allowed
    other = [
        next(p for p in paths.of_pair(k) if onward[p] == (paths.sources[k] % 2 == 0) or len(paths.of_pair(k)) == 1)
        for k in range(12)
    ]
    good = filled(data, np.array(other), np.zeros(12, dtype=int))
    assert max(data.residuals(good).values()) == 0
    assert data.objective(good) == 1
    twice, none = good["y"].copy(), good["y"].copy()
    twice[paths.of_pair(1)] = 1.0
    none[other[0]] = 0.0
    for wrong in ({"y": none}, {}, {"y": good["y"][:-1]}, {"y": good["y"] * np.nan}):
        assert np.isinf(max(data.residuals(wrong).values()))
        assert data.objective(wrong) == np.inf
        assert data.repair(wrong) is None
    if len(paths.of_pair(1)) > 1:
        assert np.isinf(max(data.residuals({"y": twice}).values()))
    assert data.residuals({"y": good["y"] * 0.9})["binary"] == pytest.approx(0.1)
    by_load = problem("ring:4", layers=1, paths="shortest")
    assert by_load.residuals({**good, "Lambda": np.array(1.0)})["congestion"] == pytest.approx(0.5)
    assert np.array_equal(by_load.repair({"y": good["y"] * 0.9})["y"], good["y"])


@settings(max_examples=24, deadline=None)
@given(st.integers(0, 10**6))
def test_a_layer_accepts_what_keeps_it_free_of_cycles(seed):
    draw = np.random.default_rng(seed)
    layer, kept = ChannelLayer(), []
    for _ in range(20):
        route = list(itertools.pairwise(draw.permutation(6)[: int(draw.integers(2, 5))].tolist()))
        fits = nx.is_directed_acyclic_graph(nx.DiGraph([e for one in [*kept, route] for e in one]))
        assert layer.add(route) == fits
        if fits:
            kept.append(route)
        if kept and draw.random() < 0.3:
            layer.remove(kept.pop(int(draw.integers(len(kept)))))


@pytest.mark.parametrize("parameters", [{"layers": 2}, {"layers": 3, "objective": "channels", "load": 3.0}])
def test_repaired_solutions_satisfy_the_stated_rows(parameters):
    data = problem("ring:5", **parameters)
    load, path, layer = searched(data, 2, 3.0, 100, 0, None)
    assert load == 3
    values = data.repair({"y": filled(data, path, layer + data.layers - 2)["y"]})
    form = compile_model(data.pyomo())
    x = pack(form, values)
    sums = form.A @ x
    assert (sums >= form.row_lower - 1e-9).all()
    assert (sums <= form.row_upper + 1e-9).all()
    assert (x >= form.col_lower - 1e-9).all()
    assert (x <= form.col_upper + 1e-9).all()


def test_the_search_is_feasible_and_repeats_itself():
    data = problem("torus:3x3", layers=1)
    results = [searched(data, 1, 3.0, 50, seed, None) for seed in (0, 0, 1)]
    for load, path, layer in results:
        values = filled(data, path, layer)
        assert max(data.residuals(values).values()) == 0
        assert data.objective(values) == load >= 3
    assert np.array_equal(results[0][1], results[1][1])
    assert searched(problem("ring:3,directed", layers=1), 1, 3.0, 10, 0, None) is None


def test_the_search_finds_the_fewest_layers():
    run = oc.solve(NAME, "ring:5", method="channel-search", objective="channels", load=3, layers=3, moves=100)
    assert (run.objective, run.metrics["max_load"]) == (2, 3)
    assert run.metrics["routes_by_layer"][2] == 0
    nothing = oc.solve(NAME, "ring:5,directed", method="channel-search", objective="channels", layers=2)
    assert nothing.objective is None
    assert "no routes were found" in nothing.record.message


@pytest.mark.parametrize(
    ("spec", "parameters", "message"),
    [
        ("ring:4", {"layers": 0}, "layers=0"),
        ("ring:4", {"load": -1.0}, "load=-1"),
        ("ring:4", {"load": 2.0}, "no effect with objective=load"),
        ("ring:4", {"load": 1.0, "objective": "channels"}, None),
    ],
)
def test_bad_input_is_one_line(spec, parameters, message):
    if message is None:
        run = oc.solve(NAME, spec, **parameters)
        assert run.termination == "infeasible"
        assert "the load is at least 2" in run.record.message
        return
    with pytest.raises(BadInput, match=message):
        oc.solve(NAME, spec, **parameters)
