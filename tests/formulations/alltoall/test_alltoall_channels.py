"""Routes and virtual channels together: enumeration, closed forms, the checker, the search."""

from __future__ import annotations

import contextlib
import itertools
import math
import time

import networkx as nx
import numpy as np
import pytest
from reference import refused

import opticoll as oc
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.alltoall import channels_routes
from opticoll.formulations.alltoall.channels import RoutedChannels
from opticoll.formulations.alltoall.channels_bounds import least_layers, load_on
from opticoll.formulations.alltoall.channels_routes import solution
from opticoll.formulations.alltoall.layer_bounds import LayerBound, two_coloured
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.formulations.flows.path_sets import subset
from opticoll.instances import parse
from opticoll.instances.topology import Topology
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.alltoall import arc_orders
from opticoll.solvers.methods.alltoall.arc_orders import OrderSearch, moved_solution, up_and_down
from opticoll.solvers.methods.alltoall.torus_routes import torus_routes
from opticoll.solvers.methods.flows.dimension_order import arc_groups
from opticoll.solvers.verify import pack

NAME = RoutedChannels.name


def problem(spec, **parameters):
    return RoutedChannels.prepare(parse(spec) if isinstance(spec, str) else spec, parameters)


def filled(data, path, layer):
    """All arrays of a solution in which every pair takes a listed path, on a layer from 0."""
    return solution(data, subset(data.paths, np.isin(np.arange(data.paths.paths), path)), layer)


def searched(data, layers, enough, moves, seed):
    """Load, routes and layers that the search finds; None if some pair has no route."""
    search = OrderSearch(data, enough, moves, seed)
    search.run(layers)
    if search.best is None:
        return None
    load, routing = search.best
    return load, routing.paths(data.topology, search.ends), routing.layer


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
    best = enumerated(problem(topology, layers=1, paths="k", k=2), 1)
    assert load_on(problem(topology, layers=1, paths="k", k=2), 1) <= best
    run = oc.solve(NAME, topology, layers=1, paths="k", k=2)
    assert run.termination == ("infeasible" if np.isinf(best) else "optimal")
    assert (run.objective or np.inf) == pytest.approx(best)
    assert run.proof == "optimal" or np.isinf(best)


@pytest.mark.parametrize("seed", [0, 1])
def test_two_layers_are_the_best_of_all_routes(seed):
    topology = drawn(seed)
    best = enumerated(problem(topology, layers=2, paths="k", k=1), 2)
    assert load_on(problem(topology, layers=2, paths="k", k=1), 2) <= best
    assert oc.solve(NAME, topology, layers=2, paths="k", k=1).objective == pytest.approx(best)
    fewest = oc.solve(NAME, topology, layers=2, paths="k", k=1, objective="channels", load=best).objective
    assert fewest == (1 if enumerated(problem(topology, layers=1, paths="k", k=1), 1) == best else 2)


@pytest.mark.parametrize("paths", ["all", "shortest"])
@pytest.mark.parametrize("seed", range(12))
def test_no_routes_beat_the_bound_from_cycles(seed, paths):
    """On a ring with chords, some of them two-way, against the enumeration of all routes."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(3, 5))
    arcs = {(i, (i + 1) % n) for i in range(n)} | {((i + 1) % n, i) for i in range(n) if draw.random() < 0.5}
    tail, head = zip(*sorted(arcs), strict=True)
    topology = Topology(n, tail, head, draw.integers(1, 3, len(arcs)).astype(float))
    data = problem(topology, layers=1, paths=paths)
    best = enumerated(data, 1)
    assert load_on(data, 1) <= best
    near = LayerBound(data.routing, listed=False).excess_arcs(1)
    assert near <= best * topology.capacity.sum() - topology.hops.sum() + 1e-9
    if data.paths.paths <= 9:
        assert load_on(data, 2) <= enumerated(data, 2)


@pytest.mark.parametrize(
    ("spec", "load"), [("ring:4", 2), ("ring:5", 4), ("ring:6", 6), ("ring:8", 12), ("hypercube:3", 4), ("mesh:2x3", 4)]
)
def test_detours_are_two_arcs_longer_where_arcs_change_colours(spec, load):
    """By shortest paths of near pairs alone, against arcs at the least load of one layer."""
    data = problem(spec, layers=1)
    graph = nx.Graph(zip(data.topology.tail.tolist(), data.topology.head.tolist(), strict=True))
    assert two_coloured(data.topology) == nx.is_bipartite(graph)
    near = LayerBound(data.routing, listed=False)
    assert set(near.unlisted) == {2.0 if nx.is_bipartite(graph) else 1.0}
    assert near.excess_arcs(1) <= load * data.topology.arcs - data.topology.hops.sum()


@pytest.mark.parametrize(
    ("spec", "paths", "layers", "bound"),
    [
        ("ring:5", "all", 1, 4),
        ("ring:5", "all", 2, 3),
        ("petersen", "shortest", 1, np.inf),
        ("petersen", "all", 1, 6),
        ("torus:5x5", "all", 1, 16),
        ("torus:5x5", "shortest", 2, 15),
        ("ring:7,directed", "all", 3, np.inf),
        ("ring:7,directed", "all", 4, 21),
        ("torus:4x4", "all", 1, 8),
        ("path:4", "all", 1, 4),
    ],
)
def test_bounds_of_the_load_on_some_layers(spec, paths, layers, bound):
    assert load_on(problem(spec, layers=layers, paths=paths), layers) == bound


@pytest.mark.parametrize(
    ("spec", "load", "layers"),
    [
        ("torus:4x4", 8, 1),
        ("torus:4x4x4", 32, 1),
        pytest.param("circulant:n=8,offsets=1x4", 4, 1, marks=pytest.mark.slow),
        ("ring:5", 3, 2),
        ("ring:6", 5, 2),
        ("ring:8", 8, 2),
        ("petersen", 5, 2),
        ("bipartite:4x4", 3, 1),
    ],
)
def test_the_fewest_layers_at_the_least_load(spec, load, layers):
    run = oc.solve(NAME, spec, objective="channels", load=load)
    assert (run.objective, run.bound, run.proof) == (layers, layers, "optimal")


def test_two_layers_for_shortest_paths_on_the_graph_of_heawood(tmp_path):
    """Its girth is 6, so the paths of two arcs are all forced; Wagner's graph needs two for shortest paths alone."""
    edges = [f"{i} {(i + 1) % 14}" for i in range(14)] + [f"{i} {(i + 5) % 14}" for i in range(0, 14, 2)]
    path = tmp_path / "heawood.edges"
    path.write_text("".join(f"{edge}\n{' '.join(edge.split()[::-1])}\n" for edge in edges), encoding="utf-8")
    run = oc.solve(NAME, f"file:{path}", objective="channels", load=9)
    assert (run.objective, run.bound) == (2, 2)
    wagner = oc.solve(NAME, "circulant:n=8,offsets=1x4", objective="channels", load=4, paths="shortest")
    assert (wagner.objective, wagner.bound) == (2, 2)


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
    assert problem(spec, layers=layers - 1)._refute().name == "cycles"
    assert least_layers(problem(spec, layers=layers, objective="channels")) == layers
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
    for wrong in ({}, {"y": good["y"][:-1]}, {"y": good["y"] * np.nan}):
        assert refused(data, wrong)
    assert np.isinf(max(data.residuals({"y": none}).values()))
    assert data.objective({"y": none}) == np.inf
    assert data.repair({"y": none}) is None
    if len(paths.of_pair(1)) > 1:
        assert np.isinf(max(data.residuals({"y": twice}).values()))
    assert data.residuals({"y": good["y"] * 0.9})["binary"] == pytest.approx(0.1)
    by_load = problem("ring:4", layers=1, paths="shortest")
    assert by_load.residuals({**good, "Lambda": np.array(1.0)})["congestion"] == pytest.approx(0.5)
    assert np.array_equal(by_load.repair({"y": good["y"] * 0.9})["y"], good["y"])


@pytest.mark.parametrize("parameters", [{"layers": 2}, {"layers": 3, "objective": "channels", "load": 3.0}])
def test_repaired_solutions_satisfy_the_stated_rows(parameters):
    data = problem("ring:5", **parameters)
    load, routes, layer = searched(data, 2, 3.0, 100_000, 0)
    assert load == 3
    values = data.repair({"y": solution(data, routes, layer + data.layers - 2)["y"]})
    form = compile_model(data.pyomo())
    x = pack(form, values)
    sums = form.A @ x
    assert (sums >= form.row_lower - 1e-9).all()
    assert (sums <= form.row_upper + 1e-9).all()
    assert (x >= form.col_lower - 1e-9).all()
    assert (x <= form.col_upper + 1e-9).all()


def test_the_search_is_feasible_and_repeats_itself():
    data = problem("torus:3x3", layers=1)
    results = [searched(data, 1, 3.0, 20_000, seed) for seed in (0, 0, 1)]
    for load, routes, layer in results:
        values = solution(data, routes, layer, own=True)
        assert max(data.residuals(values).values()) == 0
        assert data.objective(values) == load >= 3
        assert deadlock_free([routes.path(p) for p in range(routes.paths)])
    assert np.array_equal(results[0][1].arcs, results[1][1].arcs)
    assert searched(problem("ring:3,directed", layers=1), 1, 3.0, 1000, 0) is None


POD = "pod:cubes=4,side=2,wiring=1/3/2/1/3/2/3/1/2/2/1/3"


@pytest.mark.parametrize("layers", [1, 2])
def test_routes_of_many_pairs_are_moved_by_translations(monkeypatch, layers):
    """All arcs of an orbit carry the same load, the layers have no cycle, and every pair has its route."""
    monkeypatch.setattr(arc_orders, "MANY_PAIRS", 100)
    data = problem(POD, layers=layers)
    search = OrderSearch(data, 20.0, 100_000, 0)
    assert (len(search.images), search.kinds, search.together) == (4, data.topology.arcs // 4, 3)
    search.run(layers)
    values = search.solution(search.best[1])
    assert "y" not in values
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == search.best[0] == values["Lambda"]
    routes, layer = channels_routes.taken(data, values)
    assert np.array_equal(search.best[1].load[search.kind], arc_load(routes, data.routing.amount))
    for level in range(layers):
        assert deadlock_free([routes.path(p) for p in range(routes.paths) if layer[p] == level])
    plain = solution(data, routes, layer, own=True)
    assert max(data.residuals(plain).values()) == 0
    assert data.describe(values) == data.describe(plain)
    assert data.repair(values) == values


@pytest.mark.parametrize("name", ["images", "u", "path"])
def test_moved_routes_of_a_solution_are_checked(monkeypatch, name):
    monkeypatch.setattr(arc_orders, "MANY_PAIRS", 100)
    data = problem(POD, layers=2)
    search = OrderSearch(data, 20.0, 100_000, 0)
    search.run(2)
    values = search.solution(search.best[1])
    changed = {key: -array if key == "u" else array[:-1] for key, array in values.items() if key.startswith(name)}
    wrong = values | changed
    assert np.isinf(max(data.residuals(wrong).values()))
    assert data.objective(wrong) == np.inf
    assert channels_routes.taken(data, wrong) is None


@pytest.mark.parametrize(
    ("spec", "layers"),
    [("torus:4x4", 2), ("torus:6x6", 2), ("torus:5x5", 4), ("torus:3x6", 4), ("torus:5x6", 4), ("torus:4x4x5", 4)],
)
def test_routes_of_tori_hold_the_least_load(spec, layers):
    """Every pair has one, on a layer without a cycle; the busiest link carries no more than any routes must load it."""
    data = problem(spec, layers=layers)
    routes, images, place = torus_routes(data.topology)
    values = moved_solution(data, routes, images, place)
    assert place.shape[1] == layers
    assert max(data.residuals(values).values()) == 0
    sides = [int(side) for side in spec.removeprefix("torus:").split("x")]
    n = math.prod(sides)
    least = max(math.ceil(n * k / 8) if k % 2 == 0 else n * (k * k - 1) // (8 * k) for k in sides)
    assert data.objective(values) == least == max(bound.value for bound in data.bounds())
    every, layer = channels_routes.taken(data, values)
    for level in range(layers):
        assert deadlock_free([every.path(p) for p in range(every.paths) if layer[p] == level])


@pytest.mark.parametrize("spec", ["ring:5", "torus:2x5", "torus:4x4+fail=1,seed=0", POD])
def test_other_networks_have_no_routes_of_tori(spec):
    assert torus_routes(parse(spec)) is None


def test_large_tori_take_routes_in_the_order_of_dimensions():
    run = oc.solve(NAME, "torus:12x12", method="arc-orders", layers=2)
    assert (run.objective, run.proof, run.record["solver"]["algorithm"]) == (
        216,
        "optimal",
        "dimension order on a torus",
    )


def test_large_tori_have_the_layers_of_the_order_of_dimensions_at_the_least_load():
    run = oc.solve(NAME, "torus:12x12", method="arc-orders", layers=5, objective="channels", load=216)
    assert (run.objective, run.record["metrics"]["max_load"], run.record["proof"]) == (2, 216, "optimal")


@pytest.mark.parametrize(
    "spec", ["torus:4x4x4", f"{POD}+fail=1,seed=0", "pod:cubes=4,side=2,wiring=1/3/2/1/0/2/3/1/2/0/1/3"]
)
def test_translations_that_move_an_arc_to_the_next_or_a_parallel_one_are_not_used(monkeypatch, spec):
    monkeypatch.setattr(arc_orders, "MANY_PAIRS", 100)
    assert len(OrderSearch(problem(spec), 20.0, 1000, 0).images) == 1


def test_pairs_that_are_too_many_to_route_are_refused(monkeypatch):
    monkeypatch.setattr(arc_orders, "MOST_PAIRS", 19)
    with pytest.raises(NotApplicable, match="20 pairs are too many to route; use up to 19 pairs"):
        OrderSearch(problem("ring:5"), 3.0, 1000, 0)


def test_under_a_time_limit_the_search_goes_on_to_the_bound():
    few = {"method": "arc-orders", "moves": 1, "layers": 2}
    assert oc.solve(NAME, "ring:8", **few).objective > 8
    run = oc.solve(NAME, "ring:8", **few, time_limit=900)
    assert (run.objective, run.bound, run.proof) == (8, 8, "optimal")


def test_routes_of_a_solution_are_checked():
    """A solution over all paths may contain its routes; what is no simple path, or not of its pair, is refused."""
    data = problem("torus:3x3", layers=1)
    values = solution(data, *searched(data, 1, 3.0, 20_000, 0)[1:], own=True)
    again = data.repair(values)
    assert data.objective(again) == data.objective(values)
    assert max(data.residuals(again).values()) == 0
    for name, change in (("path_arcs", 1.0), ("path_pair", 1.0), ("y", 1.0)):
        wrong = {**values, name: values[name].copy()}
        wrong[name][0] = (wrong[name][0] + change) % 2 if name == "y" else wrong[name][0] + change
        assert np.isinf(max(data.residuals(wrong).values()))
        assert data.objective(wrong) == np.inf
        assert data.repair(wrong) is None


@pytest.mark.parametrize(
    ("spec", "groups"),
    [("torus:5x5", 2), ("torus:4x4x4", 6), ("torus:4x5", 3), ("mesh:3x4", 2), ("hypercube:3", 3), ("complete:5", 1)],
)
def test_groups_of_arcs_are_the_dimensions_of_products(spec, groups):
    group = arc_groups(parse(spec))
    assert group.max() + 1 == groups
    topology = parse(spec)
    back = {(v, u): g for u, v, g in zip(topology.tail.tolist(), topology.head.tolist(), group.tolist(), strict=True)}
    assert all(back[u, v] == g for (v, u), g in back.items())


@pytest.mark.parametrize("spec", ["petersen", "ring:5,directed", "genkautz:n=8,d=2"])
def test_other_networks_are_one_group(spec):
    assert arc_groups(parse(spec)).max() == 0


@pytest.mark.parametrize("spec", ["path:5", "torus:3x4", "random-regular:n=12,d=3,seed=2", "star:4", "ring:6+fail=1"])
def test_up_and_down_arcs_connect_all_pairs(spec):
    topology = parse(spec)
    place = np.empty(topology.arcs, dtype=int)
    place[up_and_down(topology)] = np.arange(topology.arcs)
    for source in range(topology.n):
        reached = {source}
        for a in np.argsort(place).tolist():
            if topology.tail[a] in reached:
                reached.add(int(topology.head[a]))
        assert len(reached) == topology.n


@pytest.mark.parametrize(
    ("spec", "layers", "load"),
    [
        ("torus:4x4", 1, 8),
        ("torus:4x4x4", 1, 32),
        ("mesh:3x3", 1, 6),
        ("ring:5", 2, 3),
        ("ring:8", 2, 8),
        ("petersen", 2, 5),
    ],
)
def test_the_least_load_of_any_routes_is_attained(spec, layers, load):
    """By dimension order on products: a ring of four is a square, so that the 4x4x4 torus is the 6-cube."""
    run = oc.solve(NAME, spec, layers=layers)
    assert (run.objective, run.bound, run.proof) == (load, load, "optimal")


def test_the_search_has_routes_at_the_deadline():
    """Along the orders that it has by then, or up and down."""
    data = problem("torus:5x5", layers=1)
    search = OrderSearch(data, 15.0, 10**9, 0)
    assert search.shortest.load.max() == 15
    search.deadline = time.monotonic()
    with contextlib.suppress(TimeoutError):
        search.run(1)
    load, routing = search.best
    values = search.solution(routing)
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == load >= 16


def test_the_search_finds_the_fewest_layers():
    run = oc.solve(NAME, "ring:5", method="arc-orders", objective="channels", load=3, layers=3)
    assert (run.objective, run.metrics["max_load"]) == (2, 3)
    assert run.metrics["routes_by_layer"][2] == 0
    nothing = oc.solve(NAME, "ring:6", method="arc-orders", objective="channels", load=5, layers=1)
    assert nothing.objective is None
    assert "no routes were found within the layers and load; raise layers= or load=" in nothing.record.message


@pytest.mark.parametrize(
    ("spec", "parameters", "load"),
    [
        ("torus:4x4", {"paths": "shortest", "layers": 1}, 8),
        ("torus:4x4", {"paths": "disjoint", "layers": 3}, 8),
        ("petersen", {"paths": "k", "layers": 2}, 5),
        ("ring:5", {"paths": "all", "lmax": 3, "layers": 1}, 4),
        ("ring:4", {"paths": "k", "k": 1, "layers": 2}, 3),
    ],
)
def test_routes_of_the_search_are_of_the_stated_set(spec, parameters, load):
    """The checker refuses other routes; ``ring:4`` has one path of every pair, of which some link carries three."""
    run = oc.solve(NAME, spec, method="arc-orders", **parameters)
    assert (run.objective, run.verified) == (load, True)


def test_what_is_infeasible_by_a_bound_names_what_the_bound_admits():
    for spec, parameters, ways in (
        ("ring:8,directed", {"layers": 3}, "layers=4"),
        ("ring:5", {"layers": 1, "objective": "channels", "load": 3.0}, "load=4 or layers=2"),
        ("ring:5", {"layers": 1, "objective": "channels", "load": 2.0}, "load=4"),
    ):
        run = oc.solve(NAME, spec, **parameters)
        assert run.termination == "infeasible"
        assert run.record.message.endswith(f"; the bound admits {ways}")
    assert oc.solve(NAME, "ring:8,directed", layers=4).verified
    with pytest.raises(NotApplicable, match=r"give another set \(paths=disjoint, k or shortest\) or a smaller lmax$"):
        oc.model(NAME, "torus:4x4")


@pytest.mark.parametrize(
    ("spec", "parameters", "message"),
    [
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
