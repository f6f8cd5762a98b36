"""Minimum overlap: both forms against brute force, closed forms, bounds in order, symmetries, corrupted solutions."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import optimum, simple_paths

from opticoll.errors import BadFile, BadInput, MethodMismatch, NotApplicable
from opticoll.formulations.flows.path_sets import PathRule
from opticoll.formulations.lumorph import circuits, mesh_cuts, min_overlap, overlap_solution
from opticoll.formulations.model import build_model
from opticoll.instances import Topology, parse
from opticoll.instances.readers import reading
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.lumorph.overlap_search import min_overlap_routes, shortest_routes, straight_or_shortest
from opticoll.solvers.solution_document import SolutionDocument
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Proof, Task

NAME = "lumorph.min-overlap"


def data_of(spec, **parameters):
    return min_overlap.Overlap.prepare(parse(spec) if isinstance(spec, str) else spec, parameters)


def given_pairs(topology, pairs, **changes):
    s, d = (np.array(ends, dtype=np.int64) for ends in zip(*pairs, strict=True))
    data = min_overlap.unit_data(topology, s, d)
    if not changes:
        return data
    return replace(data, model="path", routing=replace(data.routing, rule=PathRule(**changes)))


def best_of(data, form="cvxpy"):
    compiled = compile_model(build_model(data, form))
    value, x = optimum(compiled)
    return round(value), compiled, compiled.values(x)


def brute_force(data):
    """Every combination of simple paths; branches no better than the best so far are left."""
    choices = [simple_paths(data.topology, *map(int, ends)) for ends in zip(*data.commodities, strict=True)]
    load, best = [0] * data.topology.arcs, len(choices) + 1

    def place(k, worst):
        nonlocal best
        if k == len(choices):
            best = worst
            return
        for path in choices[k]:
            for a in path:
                load[a] += 1
            higher = max(worst, *(load[a] for a in path))
            if higher < best:
                place(k + 1, higher)
            for a in path:
                load[a] -= 1

    place(0, 0)
    if best > len(choices):
        raise NotApplicable(data.topology.spec)
    return best


# The model --------------------------------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31))
def test_both_forms_and_the_method_find_what_brute_force_finds(seed):
    random = np.random.default_rng(seed)
    mesh = parse(f"lightpath:2x3+fail={random.integers(2)},seed={random.integers(9)}")
    pairs = [tuple(random.choice(6, 2, replace=False)) for _ in range(random.integers(1, 6))]
    try:
        arc = given_pairs(mesh, pairs)
        truth = brute_force(arc)
    except NotApplicable:
        return  # the missing link cut some circuit off
    assert best_of(arc)[0] == truth
    path, _, values = best_of(given_pairs(mesh, pairs, kind="all"))
    assert path == truth
    assert given_pairs(mesh, pairs, kind="all").objective(values) == truth
    routes = min_overlap_routes(mesh, *arc.commodities)
    assert routes.bound <= truth <= routes.load
    assert routes.load == truth


@pytest.mark.parametrize(
    ("spec", "pairs"),
    [
        ("lightpath:3x3", [(0, 8), (8, 0), (2, 6), (6, 2), (0, 8)]),
        ("ring:6", [(0, 3), (3, 0), (1, 4), (0, 3)]),
        ("complete:4", [(0, 3)] * 4 + [(1, 3), (2, 3)]),
    ],
)
def test_the_arc_form_traces_to_routes_of_its_optimum(spec, pairs):
    data = given_pairs(parse(spec), pairs)
    value, _, values = best_of(data)
    assert value == brute_force(data)
    repaired = data.repair(values)
    assert max(data.residuals(repaired).values()) == 0
    routes = overlap_solution.traced(data, repaired["x"])
    heads = parse(spec).head
    assert [heads[routes.path(k)[-1]] for k in range(len(pairs))] == [d for _, d in pairs]
    assert np.bincount(routes.arcs).max() == value


def test_capacities_are_not_asked():
    fat = parse("ring:4").scaled(7.0)
    assert (data_of(fat).topology.capacity == 1.0).all()
    assert solve.solve(Task(NAME, fat, settings={"circuits": "all"})).objective == 2


# Bounds -----------------------------------------------------------------------------------------------------------


@each("shape", ["2x4", "4x4", "4x8", "8x4", "8x8", "8x16", "16x16", "8x32", "4x64", "3x9", "6x8"])
def test_xy_routes_attain_the_closed_form_of_every_recursive_exchange(shape):
    mesh = parse(f"lightpath:{shape}")
    rows, columns = map(int, shape.split("x"))
    proven = 0
    for radix in (2, 3, 4, 8):
        try:
            steps = circuits.exchange_steps(mesh.n, radix)
        except BadInput:
            continue
        for step in range(len(steps)):
            data = data_of(mesh, circuits=f"recursive:{radix}:{step}")
            closed = mesh_cuts.exchange_overlap(data.circuits, (rows, columns))
            load = overlap_solution.overlap(straight_or_shortest(mesh, *data.commodities))
            if closed is None:
                continue
            straight = mesh_cuts.straight_cuts(mesh, data.commodities, (rows, columns)).value
            assert load == closed == straight, (radix, step)
            assert [b.value for b in data.bounds() if b.exact] == [closed]
            proven += 1
    assert proven >= 2


@pytest.mark.parametrize(("shape", "load"), [("16x16", 16), ("8x32", 32), ("4x64", 64)])
def test_the_top_step_of_quadrupling_depends_on_the_shape(shape, load):
    """Not 30 waveguides for all (paper, figure 5)."""
    steps = [f"recursive-quadrupling:{step}" for step in range(4)]
    assert max(max(b.value for b in data_of(f"lightpath:{shape}", circuits=c).bounds()) for c in steps) == load


def test_closed_forms_hold_for_the_arcs_not_for_the_name():
    mesh = parse("lightpath:4x4")
    broken = mesh.with_arcs(mesh.tail[1:], mesh.head[1:], mesh.capacity[1:])
    assert not [b for b in data_of(broken, circuits="recursive-doubling:1").bounds() if b.exact]
    restricted = data_of(mesh, circuits="recursive-doubling:1", model="path")
    assert not [b for b in restricted.bounds() if b.exact]


@pytest.mark.parametrize("spec", ["lightpath:3x4", "mesh:3x4+fail=4,seed=2", "torus:3x4"])
def test_rectangles_are_counted_as_one_by_one(spec):
    topology, random = parse(spec), np.random.default_rng(1)
    s, d = random.integers(0, 12, (2, 30))
    s, d = s[s != d], d[s != d]
    best = 0
    for r1, r2 in itertools.combinations(range(4), 2):
        for c1, c2 in itertools.combinations(range(5), 2):
            inside = np.zeros((3, 4), dtype=bool)
            inside[r1:r2, c1:c2] = True
            inside = inside.ravel()
            for a, b, u, v in ((s, d, topology.tail, topology.head), (d, s, topology.head, topology.tail)):
                crossing, arcs = int((inside[a] & ~inside[b]).sum()), int((inside[u] & ~inside[v]).sum())
                best = max(best, -(-crossing // arcs) if arcs else 0)
    assert mesh_cuts.rectangle_cuts(topology, (s, d), (3, 4)).value == best
    assert mesh_cuts.straight_cuts(topology, (s, d), (3, 4)).value <= best


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**31))
def test_cuts_lengths_and_loads_stand_in_order(seed):
    random = np.random.default_rng(seed)
    mesh = parse(f"lightpath:2x4+fail={random.integers(3)},seed={random.integers(99)}")
    try:
        data = data_of(mesh, circuits="permutation", seed=int(random.integers(99)))
    except NotApplicable:
        return
    best = best_of(data)[0]
    for bound in data.bounds():
        assert bound.value <= best
    for _ in range(5):
        lengths = random.exponential(size=mesh.arcs) ** 3
        assert data.certify({"congestion": lengths}).value == mesh_cuts.length_bound(data, lengths) <= best
    assert mesh_cuts.length_bound(data, np.zeros(mesh.arcs)) == 0
    assert data.certify({}) is None


def test_a_cut_is_no_better_than_the_fluid_optimum_rounded_up():
    data = data_of("lightpath:4x4+fail=3,seed=2", seed=1)
    relaxed = compile_model(build_model(data, "cvxpy"))
    fluid, _ = optimum(replace(relaxed, integer=np.zeros(relaxed.cost.size, dtype=bool)))
    assert max(b.value for b in data.cuts) <= np.ceil(fluid - 1e-9)


@settings(max_examples=5, deadline=None)
@given(st.permutations(range(9)), st.integers(0, 1000))
def test_relabelling_and_reversing_keep_the_optimum(order, seed):
    mesh = parse("lightpath:3x3+fail=2,seed=3")
    s, d = data_of(mesh, seed=seed).commodities
    new = np.array(order)
    loads = []
    for topology, sources, targets in (
        (mesh, s, d),
        (mesh.relabelled(new), new[s], new[d]),
        (mesh.reversed(), d, s),
    ):
        data = min_overlap.unit_data(topology, sources, targets)
        loads.append(best_of(data)[0])
        assert max(b.value for b in data.bounds()) <= loads[-1]
    assert len(set(loads)) == 1


# Solutions --------------------------------------------------------------------------------------------------------


def test_cycles_beside_the_path_are_feasible_and_dropped():
    mesh = parse("lightpath:2x4")
    data = given_pairs(mesh, [(0, 1), (4, 5)])
    arc = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(mesh.tail, mesh.head, strict=True))}
    x = np.zeros((mesh.arcs, 2))
    x[[arc[0, 1]], 0] = x[[arc[4, 5]], 1] = 1.0
    for k in (0, 1):
        x[[arc[e] for e in ((2, 3), (3, 7), (7, 6), (6, 2))], k] = 1.0
    values = {"x": x, "Lambda": np.asarray(2.0)}
    assert max(data.residuals(values).values()) == 0  # as the model is printed
    routes = overlap_solution.traced(data, x)
    assert [routes.path(k) for k in (0, 1)] == [[arc[0, 1]], [arc[4, 5]]]
    assert data.objective(values) == 1
    assert data.repair(values)["x"].sum() == 2


def test_saved_routes_are_checked_and_corrupted_ones_refused(tmp_path):
    chosen = {"circuits": "permutation", "seed": "5"}
    task = Task(NAME, "lightpath:4x4+fail=2,seed=1", "negotiated-rerouting", settings=chosen)
    document = SolutionDocument.of(solve.solve(task)).as_json()
    file = tmp_path / "routes.json"

    def verdict(**changes):
        file.write_text(json.dumps({**document, **changes}))
        return check(NAME, task.instance, file, task.settings)

    assert verdict()["verified"]
    assert verdict()["metrics"]["max_load"] == document["objective"]
    assert not verdict(objective=document["objective"] - 1)["verified"]
    arcs = document["values"]["path_arcs"]
    broken = [*arcs["value"]]
    broken[0] = broken[0] % 40 + 1
    understated = {**document["values"]["Lambda"], "value": [document["objective"] - 1]}
    lost = {**arcs, "index": arcs["index"][1:], "value": arcs["value"][1:]}
    for name, entry in (("path_arcs", {**arcs, "value": broken}), ("Lambda", understated), ("path_arcs", lost)):
        result = verdict(values={**document["values"], name: entry})
        assert not result["verified"], name


# Methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "settings_", "load"),
    [
        ("lightpath:16x16", {"circuits": "recursive-quadrupling:3"}, 16),
        ("lightpath:8x16", {"circuits": "permutation", "seed": "1"}, 5),
        ("lightpath:4x4", {"circuits": "all"}, 16),
        ("lightpath:8x16+fail=23,seed=5", {"seed": "5"}, 7),
    ],
)
def test_the_default_proves_the_optimum(spec, settings_, load):
    run = solve.solve(Task(NAME, spec, settings=settings_))
    assert run.record["method"] == "negotiated-rerouting"
    assert (run.objective, run.bound, run.proof) == (load, load, Proof.OPTIMAL)
    metrics = run.record["metrics"]
    assert metrics["max_load"] == load
    assert metrics["circuits"] == run.plan.problem.circuits.count
    assert max(metrics["bounds"].values()) <= load
    assert metrics["longest_path"] >= metrics["mean_length"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["8x16", "16x16", "8x32", "4x64"])
@pytest.mark.parametrize("seed", range(4))
def test_permutations_at_rack_scale_are_proven(shape, seed):
    run = solve.solve(Task(NAME, f"lightpath:{shape}", settings={"seed": str(seed)}))
    assert run.proof is Proof.OPTIMAL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "seeds"),
    [
        ("lightpath:8x16+fail=23", (1, 3, 5)),
        ("lightpath:16x16+fail=48", (1, 2, 8)),
        ("lightpath:4x64+fail=44", (2, 4)),
        ("lightpath:8x32+fail=47", (5, 7, 8)),
    ],
)
def test_with_a_tenth_of_the_links_gone_too(spec, seeds):
    for seed in seeds:
        run = solve.solve(Task(NAME, f"{spec},seed={seed}", settings={"seed": str(seed)}))
        assert (run.proof, run.record["gap"]) == (Proof.OPTIMAL, 0.0)


@pytest.mark.parametrize("method", ["xy-routes", "random-shortest", "sssp", "lp-rounding", "exact-routing", "highs"])
def test_every_method_gives_verified_routes_no_better_than_the_optimum(method):
    run = solve.solve(Task(NAME, "lightpath:3x4", method=method, settings={"seed": "2"}))
    assert run.verified
    assert run.objective >= 2 >= run.bound
    assert run.objective == 2 or method not in {"exact-routing", "highs"}


@pytest.mark.parametrize("method", ["negotiated-rerouting", "highs"])
def test_route_sets_have_their_own_optimum(method):
    run = solve.solve(Task(NAME, "lightpath:4x4", method=method, settings={"model": "path", "k": "3", "seed": "1"}))
    assert run.verified
    assert run.record["metrics"]["path_set"] == "3 shortest paths"
    exact = best_of(data_of("lightpath:4x4", model="path", k=3, seed=1))[0]
    assert run.bound <= exact == run.objective


def test_random_shortest_paths_are_shortest_seeded_and_uniform():
    mesh = parse("lightpath:3x3")
    s, d = np.zeros(3000, dtype=np.int64), np.full(3000, 8)
    routes = shortest_routes(mesh, s, d, np.random.default_rng(4))
    assert (routes.length == 4).all()
    kinds, count = np.unique(routes.arcs.reshape(-1, 4), axis=0, return_counts=True)
    assert len(kinds) == 6
    assert count.min() > 400  # 500 expected, deviation 20
    again = shortest_routes(mesh, s, d, np.random.default_rng(4))
    np.testing.assert_array_equal(routes.arcs, again.arcs)


def test_routes_in_process_are_whole_and_the_same_for_a_seed():
    mesh = parse("lightpath:8x8+fail=8,seed=1")
    s, d = data_of(mesh, seed=7).commodities
    one, other = min_overlap_routes(mesh, s, d, seed=3), min_overlap_routes(mesh, s, d, seed=3)
    np.testing.assert_array_equal(one.routes.arcs, other.routes.arcs)
    assert one.bound <= one.load
    for k in range(s.size):
        path = one.routes.path(k)
        assert (mesh.tail[path[0]], mesh.head[path[-1]]) == (s[k], d[k])
        assert (mesh.head[path[:-1]] == mesh.tail[path[1:]]).all()


def test_routes_in_process_need_no_grid():
    graph = parse("genkautz:n=24,d=3")
    random = np.random.default_rng(0)
    s, d = np.arange(24), np.roll(random.permutation(24), 1)
    s, d = s[s != d], d[s != d]
    routes = min_overlap_routes(graph, s, d)
    assert routes.cut == "vertex-cut"
    assert routes.load <= overlap_solution.overlap(straight_or_shortest(graph, s, d))


# Circuit lists ----------------------------------------------------------------------------------------------------


def test_recursive_exchanges_are_the_known_patterns():
    mesh = parse("lightpath:4x4")
    for step in range(4):
        result = circuits.read_circuits(f"recursive-doubling:{step}", mesh, 0, "test")
        np.testing.assert_array_equal(result.targets, np.arange(16) ^ (1 << step))
    result = circuits.read_circuits("recursive-quadrupling:1", mesh, 0, "test")
    assert sorted(result.targets[result.sources == 1].tolist()) == [5, 9, 13]  # the paper's figure 13, counted from 0
    assert circuits.exchange_steps(128, 4) == [(1, 4), (4, 4), (16, 4), (64, 2)]
    every = {(int(s), int(d)) for s, d in zip(*data_of("mesh:2x3", circuits="all").commodities, strict=True)}
    assert len(every) == 30


def test_circuit_files(tmp_path):
    path = tmp_path / "circuits.csv"
    for text in ("source,destination\n0,1\n# a comment\n\n1, 5\n", "0.0,0.1\n0.1,1.2\n"):
        path.write_text(text)
        data = data_of("lightpath:2x3", circuits=f"file:{path}")
        assert [ends.tolist() for ends in data.commodities] == [[0, 1], [1, 5]]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0,0\n", "itself"),
        ("0,9\n", "not a rank"),
        ("0\n", "not a pair"),
        ("", "no circuits"),
        ("0,1,2\n", "not a pair"),
        ("0,-1\n", "not a rank"),
        ("0,0.1\n", "not a rank"),
        ('"0\0,1', "not "),
    ],
)
def test_bad_circuit_files_are_refused(tmp_path, text, word):
    path = tmp_path / "circuits.csv"
    path.write_text(text)
    with pytest.raises(BadFile, match=word):
        solve.solve(Task(NAME, "lightpath:2x3", settings={"circuits": f"file:{path}"}))


def test_files_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "circuits.csv"
    path.write_bytes(b"\xff\xfe0,1")
    for where, word in ((path, "UTF-8"), (tmp_path / "none.csv", "No such file"), (tmp_path, "directory")):
        with pytest.raises(BadFile, match=word):
            data_of("lightpath:2x3", circuits=f"file:{where}")
    path.write_text("0,1\n" * 3)
    monkeypatch.setattr(circuits, "MAX_CIRCUITS", 2)
    with pytest.raises(BadFile, match="3 circuits"):
        data_of("lightpath:2x3", circuits=f"file:{path}")
    monkeypatch.setattr(reading, "MOST_PINNED", 5)
    with pytest.raises(BadFile, match="bytes"):
        data_of("lightpath:2x3", circuits=f"file:{path}")


@each(
    ("spec", "settings_", "word"),
    [
        ("lightpath:4x4", {"circuits": "recursive-doubling:4"}, "steps 0..3"),
        ("lightpath:4x4", {"circuits": "recursive-doubling:-1"}, "whole number"),
        ("lightpath:4x4", {"circuits": "recursive:17:0"}, "radix 17"),
        ("lightpath:4x4", {"circuits": "recursive:1:0"}, "radix 1"),
        ("lightpath:2x3", {"circuits": "recursive-doubling:1"}, "power of 2"),
        ("lightpath:4x4", {"circuits": "recursive-doubling"}, "not a circuit list"),
        ("lightpath:4x4", {"circuits": "some"}, "not a circuit list"),
        ("lightpath:4x4", {"circuits": "permutation", "seed": "-1"}, "negative"),
        ("lightpath:1x2", {"circuits": "permutation", "seed": "0"}, "no circuits"),
        ("lightpath:4x4", {"model": "path", "lmax": "1"}, "lmax must be at least"),
        ("path:4+fail=1,seed=0", {"circuits": "all"}, "no path from"),
        ("servers:n=4,degree=2,traffic=alltoall", {}, "needs a topology"),
    ],
)
def test_bad_tasks_are_refused(spec, settings_, word):
    with pytest.raises(BadInput, match=word):
        solve.solve(Task(NAME, spec, settings=settings_))


def test_a_method_without_route_sets_refuses_them():
    with pytest.raises(MethodMismatch, match="route set"):
        solve.solve(Task(NAME, "lightpath:4x4", method="xy-routes", settings={"model": "path"}))


def test_parallel_arcs_count_apart():
    double = Topology(2, [0, 0, 1], [1, 1, 0])
    data = given_pairs(double, [(0, 1), (0, 1), (0, 1)])
    assert best_of(data)[0] == 2 == max(b.value for b in data.bounds())
    assert min_overlap_routes(double, *data.commodities).load == 2
