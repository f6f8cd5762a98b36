"""Minimum congestion: builds agree, known optima, three methods, and the path set over which an optimum holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from reference import compiled, optimum

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.path_sets import PathRule, build_path_set, subset
from opticoll.formulations.model import Bound
from opticoll.instances import Topology, parse
from opticoll.solvers import solve
from opticoll.solvers.methods.flows import exact_routing
from opticoll.solvers.methods.method import Context
from opticoll.solvers.task import Proof, Task

NAME = "alltoall.min-congestion"


@pytest.mark.parametrize(
    ("spec", "load"),
    [
        ("ring:5", 3),
        ("ring:4,directed", 6),
        ("complete:5", 1),
        ("hypercube:3", 4),
        ("path:4", 4),
        ("star:4", 3),
        ("bipartite:3x3", 3),
    ],
)
def test_known_optima(spec, load):
    data, form = compiled(NAME, spec, paths="all")
    best, x = optimum(form)
    assert round(best) == load
    values = data.repair(form.values(x))
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == load
    assert all(bound.value <= load for bound in data.bounds())


@pytest.mark.parametrize(("spec", "time"), [("torus:4x4", 8), ("torus:4x6", 18), ("circulant:n=16,offsets=1x5", 8)])
def test_disjoint_paths_hold_the_optimum_on_tori(spec, time):
    assert pytest.approx(time, rel=1e-6) == oc.solve("alltoall.path-mcf", spec).T
    run = oc.solve(NAME, spec)
    assert (run.objective, run.proof) == (time, "optimal")


def test_whole_paths_on_unequal_links():
    """Loads are multiples of 1/c: on a 3-ring with one double link the bound rounds to such a multiple."""
    ring = Topology(3, [0, 1, 2], [1, 2, 0], [1.0, 2.0, 1.0])
    data, form = compiled(NAME, ring, paths="all")
    assert optimum(form)[0] == pytest.approx(3.0)
    capacity = np.array([1.0, 2.0, 3.0])
    assert path_flow.round_up(2.1, capacity) == pytest.approx(7 / 3)
    assert path_flow.round_up(2.4, capacity) == 2.5
    assert path_flow.round_up(2.0, capacity) == 2.0
    assert path_flow.round_up(2.0 + 1e-9, capacity) == pytest.approx(7 / 3)
    assert path_bounds.rounded(data.routing, Bound("x", 0.4, "")).value == 2.5
    run = solve.solve(Task(NAME, ring, method="exact-routing", settings={"paths": "all"}))
    assert (run.objective, run.proof) == (3.0, Proof.OPTIMAL)


@pytest.mark.parametrize("spec", ["genkautz:n=7,d=3", "mesh:2x3"])
def test_lengths_certify_no_more_than_the_optimum(spec):
    data, form = compiled(NAME, spec, paths="k", k=3)
    best = optimum(form)[0]
    random = np.random.default_rng(0)
    for _ in range(20):
        assert data.certify({"capacity": random.exponential(size=data.topology.arcs) ** 3}).value <= best + 1e-9
    assert data.certify({}) is None


def test_corrupted_routes_are_refused():
    run = solve.solve(Task(NAME, "genkautz:n=7,d=3", method="sssp", settings={"paths": "all"}))
    data = run.plan.problem
    assert max(path_flow.residuals(data, run.values).values()) == 0
    routes = path_flow.chosen_paths(data.routing, run.values)
    assert routes.paths == 7 * 6
    loads = np.bincount(routes.arcs)
    assert loads.max() == run.objective == run.record["metrics"]["max_load"]
    for change in (
        lambda v: v["x"].__setitem__(0, 0.0),
        lambda v: v["x"].__setitem__(0, 0.5),
        lambda v: v["x"].__setitem__(0, 2.0),
        lambda v: v.__setitem__("Lambda", v["Lambda"] - 1),
        lambda v: v.__setitem__("Lambda", v["Lambda"] + 0.5),
        lambda v: v["path_pair"].__setitem__(-1, 0.0),
        lambda v: v["path_arcs"].__setitem__((0, 0), v["path_arcs"][0, 0] % 3 + 5),
    ):
        broken = {name: np.array(array, dtype=float) for name, array in run.values.items()}
        change(broken)
        assert max(path_flow.residuals(data, broken).values()) > 1e-6


def test_sssp_is_seeded_and_more_orders_are_no_worse():
    def load(**arguments):
        run = solve.solve(Task(NAME, "torus:3x3x3", method="sssp", **arguments))
        assert run.verified
        return run.objective, run.values["x"]

    settings = {"paths": "all"}
    one, again = load(seed=3, settings=settings), load(seed=3, settings=settings)
    assert one[0] == again[0]
    assert load(seed=3, settings={**settings, "orders": "5"})[0] <= one[0]
    assert one[0] > 9  # the paper: well above the MCF


def least_load_by_enumeration(paths, kappa):
    """The least of the largest number of paths on an arc, over all choices of ``kappa`` paths per pair."""
    choices = []
    for k in range(paths.pairs):
        ways = [
            np.bincount([a for p in some for a in paths.path(p)], minlength=paths.topology.arcs)
            for some in combinations(paths.of_pair(k), kappa)
        ]
        choices.append(ways)
    reached = {(0,) * paths.topology.arcs}
    for ways in choices:
        reached = {tuple(np.array(load) + way) for load in reached for way in ways}
    return min(max(load) for load in reached)


@pytest.mark.parametrize(
    ("spec", "paths", "kappa"),
    [
        ("path:3", {"paths": "all"}, 1),
        ("ring:4", {"paths": "all"}, 2),
        ("complete:3", {"paths": "all"}, 1),
        ("complete:3", {"paths": "all"}, 2),
        pytest.param("complete:4", {"paths": "k", "k": 3}, 2, marks=pytest.mark.slow),
    ],
)
def test_equal_split_against_enumeration(spec, paths, kappa):
    """Time = paths on the busiest arc / kappa; every path carries 1/kappa of its commodity."""
    data, form = compiled(NAME, spec, **paths, kappa=kappa)
    best, x = optimum(form)
    assert best == pytest.approx(least_load_by_enumeration(data.routing.paths, kappa) / kappa)
    values = data.repair(form.values(x))
    assert max(data.residuals(values).values()) == 0
    assert data.objective(values) == pytest.approx(best)
    assert all(bound.value <= best + 1e-12 for bound in data.bounds())
    routes = path_flow.chosen_paths(data.routing, values)
    assert all(len({tuple(routes.path(p)) for p in routes.of_pair(k)}) == kappa for k in range(routes.pairs))
    run = solve.solve(Task(NAME, spec, "exact-routing", settings={**paths, "kappa": kappa, "steps": 5000}))
    assert run.verified
    assert run.objective == pytest.approx(best)


@pytest.mark.parametrize(
    ("spec", "kappa", "time"),
    [
        ("bipartite:4x4", 2, 3.5),
        ("bipartite:4x4", 4, 5.5),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("bipartite:4x4", 3, 4.0), ("torus:3x3x3", 2, 9.5), ("torus:3x3x3", 4, 11.75))
        ),
    ],
)
def test_equal_split_is_proven_by_lengths(spec, kappa, time):
    """More paths than one cost capacity: the fluid optima are 2.5 and 9, single paths take 3 and 9.

    Two paths in torus:3x3x3 leave no slack to the bound: only those as short as a pair's second can attain it.
    """
    run = solve.solve(Task(NAME, spec, "exact-routing", settings={"kappa": kappa, "steps": 30_000, "mip_s": 0}))
    assert (run.objective, run.proof) == (pytest.approx(time), Proof.OPTIMAL)
    assert run.record["metrics"]["fluid_time"] < time
    assert run.record["metrics"]["paths_per_pair"] == kappa


def test_lengths_certify_no_more_than_the_optimum_of_equal_splits():
    data, form = compiled(NAME, "genkautz:n=6,d=3", paths="k", k=4, kappa=3)
    best, random = optimum(form)[0], np.random.default_rng(0)
    results = [data.certify({"capacity": random.exponential(size=data.topology.arcs) ** 3}).value for _ in range(20)]
    assert max(results) <= best + 1e-9
    fluid = replace(data.routing, kappa=1)
    lengths = np.ones(data.topology.arcs)
    assert path_bounds.length_bound(data.routing, lengths) < path_bounds.length_bound(fluid, lengths)


def test_a_repeated_path_does_not_count_twice():
    run = solve.solve(Task(NAME, "ring:4", "exact-routing", settings={"paths": "all", "kappa": 2, "steps": 1000}))
    data, values = run.plan.problem, {name: np.array(array, dtype=float) for name, array in run.values.items()}
    assert max(path_flow.residuals(data, values).values()) == 0
    values["path_arcs"][1] = values["path_arcs"][0]
    assert path_flow.residuals(data, values)["paths"] == np.inf
    for change in (("Lambda", (), -1.0), ("x", (0,), -1.0)):
        broken = {name: np.array(array, dtype=float) for name, array in run.values.items()}
        broken[change[0]][change[1]] += change[2]
        assert max(path_flow.residuals(data, broken).values()) > 1e-6


@pytest.mark.parametrize(
    ("settings", "method", "word"),
    [
        ({"kappa": 3}, None, "smaller kappa"),
        ({"paths": "all", "kappa": 3}, None, "smaller kappa"),
        ({"paths": "all", "kappa": 2}, "sssp", "exact-routing"),
        ({"kappa": 2}, "lp-rounding", "exact-routing"),
    ],
)
def test_kappa_that_cannot_be_served_is_refused(settings, method, word):
    with pytest.raises(BadInput, match=word):
        solve.solve(Task(NAME, "ring:4", *([] if method is None else [method]), settings=settings))


@pytest.mark.parametrize("method", ["sssp", "certified-branching"])
def test_other_methods_split_equally(method):
    run = solve.solve(Task(NAME, "hypercube:3", method, settings={"kappa": 3}))
    assert run.verified
    assert run.objective >= run.bound >= 14 / 3
    assert method == "sssp" or run.proof is Proof.OPTIMAL


@pytest.mark.parametrize("settings", [{"paths": "all"}, {"paths": "disjoint"}])
def test_lp_rounding_is_feasible_and_bounded(settings):
    run = solve.solve(Task(NAME, "genkautz:n=12,d=4", method="lp-rounding", settings=settings))
    assert run.verified
    assert run.bound >= np.ceil(run.record["metrics"]["fluid_time"] - 1e-6) - 1e-9
    assert run.objective >= run.bound


@pytest.mark.parametrize(
    ("spec", "paths", "load"),
    [
        ("torus:3x3x3", "all", 9),
        pytest.param("torus:3x3x3", "disjoint", 9, marks=pytest.mark.slow),
        ("genkautz:n=16,d=4", "all", 8),
        ("mesh:3x3", "all", 6),
        pytest.param("genkautz:n=64,d=4", "disjoint", 47, marks=pytest.mark.slow),
    ],
)
def test_exact_routing_proves_the_optimum_over_all_paths(spec, paths, load):
    run = solve.solve(Task(NAME, spec, "exact-routing", settings={"paths": paths}))
    metrics = run.record["metrics"]
    assert (run.objective, run.proof) == (load, Proof.OPTIMAL)
    assert metrics["unrestricted_proven"] is True
    assert metrics["path_set"] == str(PathRule(paths))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "load"),
    [
        ("torus:4x4x4", 32),
        ("hypercube:6", 32),
        ("genkautz:n=64,d=4", 47),
        ("torus:8x8", 64),
        ("xpander:n=64,d=4,seed=1", None),
        ("random-regular:n=64,d=4,seed=1", None),
        ("genkautz:n=81,d=4", None),
    ],
)
def test_exact_routing_proves_large_ones(spec, load):
    run = solve.solve(Task(NAME, spec, settings={"paths": "all"}))
    assert run.proof is Proof.OPTIMAL, run.record
    assert run.record["metrics"]["unrestricted_proven"] is True
    assert load is None or run.objective == load


def test_a_restricted_optimum_says_that_it_is_one():
    """Over shortest paths alone the load is above the bound over all paths: proven of the set, not of all."""
    run = solve.solve(Task(NAME, "genkautz:n=16,d=4", settings={"paths": "shortest"}))
    assert (run.objective, run.proof) == (9, Proof.OPTIMAL)
    assert run.record["metrics"]["unrestricted_proven"] is False
    assert run.record["metrics"]["unrestricted_bound"] == 8
    exact = optimum(compiled(NAME, "genkautz:n=16,d=4", paths="shortest")[1])[0]
    assert round(exact) == 9


def test_the_tolerance_is_the_papers():
    """Within 30 % of the fluid bound the first routing is good enough."""
    run = solve.solve(Task(NAME, "torus:3x3x3", settings={"paths": "all"}, tol=0.3))
    assert run.proof is Proof.OPTIMAL
    assert run.record["gap"] <= 0.3


def test_rerouting_finds_a_routing_where_there_is_one():
    from opticoll.solvers.methods.flows.local_search import reroute

    paths = build_path_set(parse("torus:3x3x3"), PathRule("shortest"), "test")
    choice = paths.first[:-1].copy()
    over, steps = reroute(
        paths.first,
        paths.start,
        paths.arcs,
        np.ones(paths.pairs, dtype=np.int64),
        np.full(paths.topology.arcs, 9),
        choice,
        1,
        50_000,
    )
    assert (over, steps > 0) == (0, True)
    keep = np.zeros(paths.paths, dtype=bool)
    keep[choice] = True
    routes = subset(paths, keep)
    assert np.array_equal(routes.pair, np.arange(paths.pairs))
    assert np.bincount(routes.arcs).max() == 9
    over, _ = reroute(
        paths.first,
        paths.start,
        paths.arcs,
        np.ones(paths.pairs, dtype=np.int64),
        np.full(paths.topology.arcs, 8),
        choice,
        1,
        500,
    )
    assert over >= 27 * 26 * 54 // 26 - 8 * 162  # 1458 uses of 162 arcs do not fit under 8


@pytest.mark.parametrize(
    ("spec", "settings", "word"),
    [
        ("ring:8", {"paths": "all", "lmax": "3"}, "diameter"),
        ("path:4+fail=1,seed=0", {}, "disconnected"),
    ],
)
def test_bad_tasks_are_refused(spec, settings, word):
    with pytest.raises(BadInput, match=word):
        solve.solve(Task(NAME, spec, settings=settings))


@pytest.mark.parametrize(
    ("spec", "settings", "load"),
    [
        ("torus:4x4x4", {}, 32.0),
        ("torus:4x4", {"paths": "all"}, 8.0),
        ("hypercube:4", {"demand": "permutation:1"}, None),
    ],
)
def test_shortest_paths_that_attain_an_analytic_bound_need_no_linear_program(spec, settings, load, monkeypatch):
    monkeypatch.setattr(exact_routing, "bound_and_search", lambda *_: pytest.fail("no linear program is needed"))
    problem = formulation("alltoall.min-congestion").prepare(parse(spec), settings)
    context = Context(Task(problem.name, spec), problem, problem.topology, {}, None, None, lambda *_: None)
    answer = exact_routing.at_analytic_bound(context)
    assert max(problem.residuals(answer.values).values()) <= 0
    value = problem.objective(answer.values)
    assert value == pytest.approx(max(bound.value for bound in problem.bounds()))
    assert load in (None, value)


def test_many_pairs_have_routes_before_their_fluid_optimum_is_known(monkeypatch):
    problem = formulation(NAME).prepare(parse("random-regular:n=24,d=3,seed=1"), {"paths": "all"})
    saved: list[float] = []
    task = Task(NAME, "random-regular:n=24,d=3,seed=1", "exact-routing", settings={"paths": "all"})
    context = Context(
        task=task,
        data=problem,
        instance=problem.topology,
        parameters={},
        deadline=None,
        solve=solve.solve,
        save=lambda answer, load: saved.append((load, problem.objective(answer.values))),
    )
    assert exact_routing.at_analytic_bound(context) is None
    assert len(saved) == 1
    monkeypatch.setattr(exact_routing, "MANY_PAIRS", 0)
    saved.clear()
    assert exact_routing.at_analytic_bound(context) is None
    loads = [load for load, _ in saved]
    assert [worth for _, worth in saved] == loads == sorted(set(loads), reverse=True)
    assert len(loads) > 1


def test_a_bound_that_shortest_paths_miss_is_left_to_the_search():
    run = solve.solve(Task("alltoall.min-congestion", "genkautz:n=9,d=2", "exact-routing"))
    assert run.proof is Proof.OPTIMAL
    assert "column generation" in run.record["solver"]["algorithm"]
