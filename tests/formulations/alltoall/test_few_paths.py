"""At most so many paths of every pair: values by hand, other models, the checker, repair."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest

import opticoll as oc
from opticoll.formulations.alltoall import path_mcf_solution
from opticoll.formulations.alltoall.few_paths import FewPaths
from opticoll.instances import parse
from opticoll.instances.topology import Topology
from opticoll.solvers.methods.alltoall import fullest_paths
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

NAME = "alltoall.few-paths"


def across(paths: int) -> Topology:
    """Node 0 and node 1 with nodes between them, on paths of capacity 1, 2, 3, ..."""
    between = np.arange(2, 2 + paths)
    tail, head = np.concatenate([0 * between, between]), np.concatenate([between, 0 * between + 1])
    back = np.concatenate([tail, head]), np.concatenate([head, tail])
    return Topology(2 + paths, *back, np.tile(np.arange(1.0, paths + 1), 4))


@pytest.mark.parametrize(("routes", "flow"), [(1, 3.0), (2, 5.0), (3, 6.0), (8, 6.0)])
def test_one_pair_takes_its_widest_paths(routes, flow):
    demand = np.zeros((5, 5))
    demand[0, 1] = 1.0
    run = solve(Task(NAME, across(3), settings={"routes_per_pair": routes, "demand": demand}))
    assert run.objective == pytest.approx(flow)
    assert run.proof == "optimal"
    assert run.record.metrics["most_routes"] == min(routes, 3)


@pytest.mark.parametrize("seed", range(3))
def test_one_path_of_every_pair_is_the_least_congestion(seed):
    spec = f"random-regular:n=6,d=2,seed={seed}"
    settings = {"paths": "shortest"}
    one = solve(Task(NAME, spec, settings={**settings, "routes_per_pair": 1}, time_limit_s=60))
    other = solve(Task("alltoall.min-congestion", spec, settings=settings, time_limit_s=60))
    assert one.objective == pytest.approx(1 / other.objective)


@pytest.mark.parametrize("spec", ["path:3", "ring:3", "genkautz:n=4,d=2"])
def test_the_optimum_is_that_of_all_choices_of_paths(spec):
    """Every choice of at most R paths of every pair is a linear program of its own."""
    from scipy.optimize import linprog

    data = FewPaths.prepare(parse(spec), {"routes_per_pair": 1})
    paths = data.routing.paths
    A, B, c = paths.incidence.toarray(), paths.membership.toarray(), data.topology.capacity
    choices = [list(combinations(range(paths.first[k], paths.first[k + 1]), 1)) for k in range(paths.pairs)]
    assert np.prod([len(each) for each in choices], dtype=float) <= 5000
    best = 0.0
    for chosen in product(*choices):
        kept = np.concatenate([np.array(own) for own in chosen])
        rows = np.block([[-B[:, kept], np.ones((paths.pairs, 1))], [A[:, kept], np.zeros((A.shape[0], 1))]])
        right = np.concatenate([np.zeros(paths.pairs), c])
        best = max(best, -linprog(np.append(np.zeros(kept.size), -1.0), A_ub=rows, b_ub=right).fun)
    assert solve(Task(NAME, spec, settings={"routes_per_pair": 1})).objective == pytest.approx(best)


def test_more_routes_never_cost_time_and_the_fluid_optimum_is_the_limit():
    spec = "random-regular:n=8,d=3,seed=1"
    values = [
        solve(
            Task(NAME, spec, "highs", settings={"paths": "shortest", "routes_per_pair": R}, time_limit_s=60)
        ).objective
        for R in (1, 2, 4)
    ]
    fluid = solve(Task("alltoall.path-mcf", spec, settings={"paths": "shortest"})).objective
    assert all(one <= more * (1 + 1e-9) for one, more in pairwise(values))
    assert values[-1] <= fluid * (1 + 1e-6)


@pytest.mark.parametrize(("routes", "flow"), [(1, 3.0), (2, 5.0), (3, 6.0)])
def test_the_fullest_paths_are_the_widest(routes, flow):
    demand = np.zeros((5, 5))
    demand[0, 1] = 1.0
    run = solve(Task(NAME, across(3), "fullest-paths", settings={"routes_per_pair": routes, "demand": demand}))
    assert run.objective == pytest.approx(flow)


def test_a_limit_ends_the_first_program_and_keeps_what_it_found_in_the_second(monkeypatch):
    demand = np.zeros((5, 5))
    demand[0, 1] = 1.0
    data, saved = FewPaths.prepare(across(3), {"routes_per_pair": 2, "demand": demand}), []
    with pytest.raises(TimeoutError):
        fullest_paths.best_flow(path_mcf_solution.flow_program(data), 1e-9)
    first, limits = fullest_paths.best_flow(path_mcf_solution.flow_program(data)), []

    def ends_once(_form, limit_s):
        limits.append(limit_s)
        if len(limits) > 1:
            raise TimeoutError
        return first

    monkeypatch.setattr(fullest_paths, "best_flow", ends_once)
    context = SimpleNamespace(data=data, remaining=lambda: 5.0, save=lambda *given: saved.append(given))
    with pytest.raises(TimeoutError):
        fullest_paths.run(context)
    assert limits == [5.0, 5.0]
    assert [F for _, F in saved] == pytest.approx([2.0, 5.0])  # equal flows on widths 1 and 2; 2 and 3
    for answer, _ in saved:
        assert max(data.residuals(answer.values).values()) <= 1e-9


def test_the_fullest_paths_are_no_better_than_the_optimum():
    settings = {"routes_per_pair": 1}
    kept = solve(Task(NAME, "genkautz:n=5,d=2", "fullest-paths", settings=settings))
    best = solve(Task(NAME, "genkautz:n=5,d=2", settings=settings, time_limit_s=60))
    assert kept.verified
    assert kept.objective <= best.objective * (1 + 1e-9) <= kept.bound * (1 + 1e-6)


def test_the_checker_counts_paths_and_repair_keeps_the_fullest():
    demand = np.zeros((5, 5))
    demand[0, 1] = 1.0
    data = FewPaths.prepare(across(3), {"routes_per_pair": 2, "demand": demand})
    shares = np.minimum.reduceat(data.topology.capacity[data.routing.paths.arcs], data.routing.paths.start[:-1])
    values = {"f": shares, "F": np.asarray(shares.sum())}
    assert data.residuals(values)["limit"] == 1.0
    for least, beyond in ((1e-17, 0.0), (1e-6, 1.0)):  # round-off of a solver, and a flow
        assert data.residuals({**values, "f": np.array([*shares[:2], least * shares[2]])})["limit"] == beyond
    repaired = data.repair(values)
    assert max(data.residuals(repaired).values()) <= 1e-12
    assert float(repaired["F"]) == pytest.approx(5.0)
    assert np.count_nonzero(repaired["f"]) == 2


@pytest.mark.parametrize("routes", [1, 2])
def test_written_routes_keep_to_the_limit(tmp_path, routes):
    """On a DGX-1 one route of every pair takes T = 3 and two the fluid optimum 8/3, cut into chunks."""
    settings = {"paths": "k", "k": 8, "routes_per_pair": routes}
    file = tmp_path / "dgx1.routes.json"
    result = oc.solve(NAME, "dgx1", method="fullest-paths", **settings)
    assert result.schedule().save(file)["delivers"]
    written = json.loads(file.read_text(encoding="utf-8"))
    count = Counter((route["source"], route["target"]) for route in written["routes"])
    assert len(count) == 56
    assert max(count.values()) <= routes
    assert result.objective == pytest.approx({1: 1 / 3, 2: 3 / 8}[routes])
