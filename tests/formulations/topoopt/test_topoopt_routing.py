"""topoopt.routing: builds agree, closed forms, bounds, routes of the optimum as a design."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import optimum

from opticoll.errors import NotApplicable
from opticoll.formulations import formulation
from opticoll.formulations.model import build_model
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.topoopt import routing, routing_solution
from opticoll.formulations.topoopt.circuit_design import CircuitDesign
from opticoll.formulations.topoopt.circuit_design_solution import residuals
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.formulations.topoopt.routing_data import flow_over
from opticoll.instances import ServerPool, parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods import registry
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.task import Proof, Task

NAME = "topoopt.routing"
MODEL = formulation(NAME)


def data_of(instance, parameters):
    return registry.prepared(MODEL, parse(instance), read_parameters(MODEL.parameters, parameters, NAME))


def prepared(spec, **parameters):
    return data_of(f"servers:{spec}", parameters)


def best(data, form="matrix"):
    compiled = compile_model(build_model(data, form))
    value, x = optimum(compiled)
    return value, compiled.values(x)


@pytest.mark.parametrize("parameters", [{}, {"traffic": "point-to-point"}, {"circuits": "ocs-reconfig"}])
def test_builds_agree_and_keep_to_the_bounds(parameters):
    data = prepared("n=8,degree=2,traffic=dlrm,section=5.4", **parameters)
    results = [best(data, form) for form in ("cvxpy", "pyomo", "matrix")]
    assert [value for value, _ in results] == pytest.approx([results[0][0]] * 3, rel=1e-9)
    for value, values in results:
        repaired = data.repair(values)
        assert max(data.residuals(repaired).values()) < 1e-9
        assert data.objective(repaired) == pytest.approx(value, rel=1e-7)
        assert all(bound.value >= value * (1 - 1e-9) for bound in data.bounds())
    metrics = data.metrics(results[0][0])
    assert metrics["heuristic_over_optimum"] >= 1 - 1e-9
    assert metrics["max_load"] == pytest.approx(data.unit / results[0][0])


@pytest.mark.parametrize("n", [3, 5, 8])
def test_a_ring_has_no_choice(n):
    """One port: every circuit carries all n (n-1) / 2 distances; a server sends n - 1."""
    data = prepared(f"n={n},degree=1,traffic=alltoall,volume=1")
    value, _ = best(data)
    assert value == pytest.approx(2 / n)
    assert data.metrics(value)["max_load"] == pytest.approx(n * (n - 1) / 2)
    assert data.design.max_load == pytest.approx(n * (n - 1) / 2)


def test_rings_of_data_parallel_jobs_are_optimal():
    data = prepared("n=12,degree=4,traffic=vgg")
    assert best(data)[0] == pytest.approx(1.0)
    assert data.design.max_load == pytest.approx(data.unit)


@pytest.mark.parametrize("spec", ["n=8,degree=2,traffic=dlrm", "n=6,degree=2,traffic=random"])
@pytest.mark.parametrize("traffic", ["all", "point-to-point"])
def test_the_optimum_as_a_design(spec, traffic):
    data = prepared(spec, traffic=traffic)
    value, values = best(data)
    repaired = data.repair(values)
    result = routing_solution.decode(data, repaired)
    assert isinstance(result, CircuitDesign)
    assert max(residuals(result.pool, result.values()).values()) < 1e-8
    assert result.max_load == pytest.approx(data.unit / value, rel=1e-6)
    described = data.describe(repaired)
    assert max(described["load_quantiles"]) == pytest.approx(data.unit / value, rel=1e-6)
    assert described["bandwidth_tax"] >= 1 - 1e-9


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(7)), st.integers(0, 10**6))
def test_the_optimum_does_not_depend_on_names(order, seed):
    demand = np.random.default_rng(seed).uniform(0, 1, (7, 7)) * ~np.eye(7, dtype=bool)
    pool = ServerPool(7, 2, demand)
    result = topology_finder(pool)
    new = np.asarray(order)
    moved = new[result.circuits]
    moved = moved[np.lexsort((moved[:, 1], moved[:, 0]))]
    one, other = (
        routing.FixedCircuits(*flow_over(d)) for d in (result, routed_design(pool.relabelled(order), moved, ()))
    )
    assert best(one)[0] == pytest.approx(best(other)[0], rel=1e-7)


def test_from_the_command_to_the_proof():
    run = solve.solve(Task(NAME, "servers:n=12,degree=4,traffic=dlrm", settings={"traffic": "point-to-point"}))
    assert (run.proof, run.verified) == (Proof.OPTIMAL, True)
    metrics = run.record["metrics"]
    assert metrics["max_load"] == pytest.approx(metrics["unit_load"] / run.objective)
    assert metrics["max_load"] == pytest.approx(max(metrics["load_quantiles"]), rel=1e-6)
    assert metrics["heuristic_load"] >= metrics["max_load"] * (1 - 1e-9)
    assert metrics["heuristic_load"] == pytest.approx(max(metrics["heuristic_quantiles"]))


@pytest.mark.parametrize(
    ("instance", "given_", "says"),
    [
        ("ring:8", {}, "server pool"),
        ("servers:n=8,degree=2,traffic=vgg", {"traffic": "point-to-point"}, "no point-to"),
        ("servers:n=600,degree=2,traffic=vgg", {}, "too many flows"),
    ],
)
def test_bad_tasks_are_refused(instance, given_, says):
    with pytest.raises(NotApplicable, match=says):
        data_of(instance, given_)
