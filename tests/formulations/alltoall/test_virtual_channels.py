"""Virtual channels: the exact model on small instances, orders of arcs, two heuristics, and cycles found by others."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from case_families import each
from reference import optimum, refused

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall import virtual_channels_solution as model
from opticoll.formulations.alltoall.dependencies import acyclic
from opticoll.formulations.alltoall.virtual_channels import LayeredRoutes
from opticoll.formulations.flows.path_sets import PathRule, build_path_set, path_set_of, subset
from opticoll.instances import Topology, parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.alltoall.layer_assignment import HEURISTICS, breaking_cycles
from opticoll.solvers.methods.alltoall.layer_orders import LayerOrders
from opticoll.solvers.task import Proof, Task

NAME = "alltoall.virtual-channels"


def first_shortest(spec, layers=4):
    """Every pair on the first of its shortest paths."""
    paths = build_path_set(parse(spec), PathRule("shortest"), "test")
    keep = np.zeros(paths.paths, dtype=bool)
    keep[paths.first[:-1]] = True
    return LayeredRoutes(paths.topology, subset(paths, keep), layers)


def has_cycle(data, layer):
    """By networkx, from the routes themselves."""
    for level in set(layer.tolist()):
        graph = nx.DiGraph()
        for r in np.flatnonzero(layer == level).tolist():
            nx.add_path(graph, data.known_routes.path(r))
        if not nx.is_directed_acyclic_graph(graph):
            return True
    return False


@each("name", HEURISTICS)
@each("spec", ["ring:6,directed", "ring:8", "torus:3x3", "genkautz:n=12,d=4", "hypercube:3", "star:5"])
def test_no_layer_of_a_heuristic_has_a_cycle(spec, name):
    data = first_shortest(spec, layers=12)
    layer = HEURISTICS[name](data)
    assert not has_cycle(data, layer)
    values = model.values_of(data, layer)
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == layer.max() + 1 >= data.bounds()[0].value


@pytest.mark.parametrize(
    ("spec", "layers"),
    [
        ("ring:4,directed", 2),
        ("ring:5,directed", 3),
        ("ring:5", 2),
        ("star:4", 1),
        ("path:4", 1),
    ],
)
def test_the_exact_model_finds_the_fewest(spec, layers):
    """On a directed n-ring a layer is free of cycles if some vertex forwards nothing: ceil(n/2) layers, n = 4, 5."""
    data = first_shortest(spec, layers=max(layers, 2))
    form = compile_model(data.pyomo())
    best, x = optimum(form)
    assert round(best) == layers
    values = form.values(x)
    layer = model.layers_of(data, values)
    assert not has_cycle(data, layer)
    assert data.objective({"y": np.round(values["y"])}) == layers
    assert layers >= data.bounds()[0].value


def test_one_layer_is_infeasible_where_there_is_a_cycle():
    from scipy.optimize import Bounds, LinearConstraint, milp

    data = first_shortest("ring:4,directed", layers=1)
    form = compile_model(data.pyomo())
    result = milp(
        form.cost,
        constraints=LinearConstraint(form.A, form.row_lower, form.row_upper),
        bounds=Bounds(form.col_lower, form.col_upper),
        integrality=form.integer.astype(int),
    )
    assert result.status == 2  # infeasible


@pytest.mark.parametrize("seed", range(5))
def test_the_acyclicity_check_agrees_with_networkx(seed):
    random = np.random.default_rng(seed)
    for _ in range(40):
        pairs = random.integers(0, 8, size=(random.integers(1, 12), 2))
        assert acyclic(8, pairs) == nx.is_directed_acyclic_graph(nx.DiGraph(map(tuple, pairs.tolist())))
    assert acyclic(3, np.zeros((0, 2), dtype=np.int64))


def test_a_layer_with_a_cycle_is_refused():
    data = first_shortest("ring:5,directed", layers=3)
    values = model.values_of(data, np.zeros(20, dtype=np.int64))
    assert data.residuals(values)["acyclic"] == np.inf
    for change in ((0, 0.5), (0, 0.0)):
        layer = breaking_cycles(data)
        broken = model.values_of(data, layer)
        broken["y"][0, layer[0]] = change[1]
        assert max(data.residuals(broken).values()) > 1e-6
    assert refused(data, {"y": np.zeros((3, 3))})


def test_too_few_layers_say_how_many():
    data = first_shortest("ring:5,directed", layers=1)
    with pytest.raises(NotApplicable, match="layers=3"):
        model.values_of(data, breaking_cycles(data))
    with pytest.raises(NotApplicable, match="layers=0"):
        LayeredRoutes.prepare(parse("ring:5"), {"layers": 0})
    with pytest.raises(NotApplicable, match="min-congestion"):
        _ = LayeredRoutes.prepare(parse("ring:5"), {}).known_routes


def test_every_route_on_its_own_dependency_cycle_needs_two():
    """A directed triangle: three routes of two arcs each make one cycle of three dependencies."""
    triangle = Topology(3, [0, 1, 2], [1, 2, 0])
    routes = path_set_of(triangle, [[0], [0, 1], [1, 2], [1], [2], [2, 0]], range(6))
    data = LayeredRoutes(routes.topology, routes, 3)
    for assign in HEURISTICS.values():
        assert assign(data).max() == 1


@each("heuristic", HEURISTICS)
@each("spec", ["torus:4x4", "ring:8", "genkautz:n=16,d=3"])
def test_orders_of_arcs_need_no_more_layers(spec, heuristic):
    settings = {"paths": "disjoint", "routes": "sssp"}
    run = solve.solve(Task(NAME, spec, "layer-assignment", settings=settings))
    assert (run.objective, run.bound, run.record["solver"]["algorithm"]) == (2, 2, "orders")
    assert not has_cycle(run.plan.problem, model.layers_of(run.plan.problem, run.values))
    other = solve.solve(Task(NAME, spec, "layer-assignment", settings={**settings, "heuristic": heuristic}))
    assert other.objective >= run.objective
    assert not has_cycle(other.plan.problem, model.layers_of(other.plan.problem, other.values))


def test_cycles_are_broken_where_no_orders_are_found():
    run = solve.solve(Task(NAME, "torus:5x5", "layer-assignment", settings={"moves": "1"}))
    assert (run.record["solver"]["algorithm"], run.verified) == ("breaking-cycles", True)
    assert run.objective <= 8


def test_orders_that_are_not_found_say_what_to_raise():
    run = solve.solve(Task(NAME, "ring:5,directed", "layer-assignment", settings={"layers": "2", "moves": "1000"}))
    assert run.objective is None
    assert "no orders were found in which every route ascends; raise layers=2, or moves=1000" in run.record["message"]


ON_TORI = [("torus:4x4", 8, 1), ("torus:5x5", 15, 2), ("torus:4x4x4", 32, 1)]


@pytest.mark.parametrize(("spec", "load", "layers"), ON_TORI)
def test_routes_by_default_hold_the_least_load_in_few_layers(spec, load, layers):
    """Shortest paths in the order of dimensions, which attain the bound of the load."""
    run = solve.solve(Task(NAME, spec, "layer-assignment"))
    assert (run.objective, run.proof, run.record["metrics"]["max_load"]) == (layers, Proof.OPTIMAL, load)
    assert not has_cycle(run.plan.problem, model.layers_of(run.plan.problem, run.values))


@pytest.mark.parametrize("seed", range(3))
def test_orders_give_layers_without_cycles_or_none(seed):
    data = first_shortest("ring:5,directed")
    three, two = (LayerOrders(data.known_routes, layers, seed) for layers in (3, 2))
    assert three.anneal(20_000, lambda: None) == 0
    assert not has_cycle(data, three.layer)
    assert two.anneal(20_000, lambda: None) > 0


@pytest.mark.parametrize("seed", range(6))
def test_annealing_counts_the_routes_that_go_forward(seed):
    """Counts that are changed move by move equal those made anew from the places."""
    data = first_shortest("torus:3x4")
    orders = LayerOrders(data.known_routes, 2, seed)
    left = orders.anneal(50 * seed, lambda: None)
    forward = [
        [all(row[a] < row[b] for a, b in pairwise(data.known_routes.path(r))) for row in orders.place]
        for r in range(data.known_routes.paths)
    ]
    assert left == sum(not any(one) for one in forward)
    assert orders.forward.tolist() == [sum(one) for one in forward]
    assert all((level < 0) != one[level] for level, one in zip(orders.layer.tolist(), forward, strict=True))


@pytest.mark.parametrize("routes", ["exact-routing", "sssp"])
def test_routes_come_from_min_congestion(routes):
    run = solve.solve(Task(NAME, "genkautz:n=7,d=3", "layer-assignment", settings={"routes": routes, "layers": "6"}))
    assert run.verified
    assert run.record["needed"]["formulation"] == "alltoall.min-congestion"
    assert run.needed.record["method"] == routes
    assert not has_cycle(run.plan.problem, model.layers_of(run.plan.problem, run.values))
    assert run.objective == run.record["metrics"]["layers"] >= run.bound


@pytest.mark.parametrize(("spec", "load"), [("torus:4x4+scale=2.5", 3.2), ("ring:4+scale=0.5", 4.0)])
def test_the_largest_load_is_over_the_capacity_of_its_link(spec, load):
    run = solve.solve(Task("alltoall.virtual-channels", spec))
    assert run.record["metrics"]["max_load"] == pytest.approx(load)
