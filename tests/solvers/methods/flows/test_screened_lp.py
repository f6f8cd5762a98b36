"""Screening affects only the time: whatever is left out, flow and bound are those of the whole problem."""

from __future__ import annotations

import time

import networkx as nx
import numpy as np
import pytest
from reference import optimum

from opticoll.formulations import formulation
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.flows import flow_orbits as reduction
from opticoll.solvers.methods.flows import screened_lp
from opticoll.solvers.methods.flows.orbit_lp import solve_reduced
from opticoll.solvers.methods.flows.screened_lp import run_screened_lp
from opticoll.solvers.methods.method import Context
from opticoll.solvers.task import Proof, Task, Termination

SPECS = (
    "genkautz:n=30,d=3",
    "genkautz:n=16,d=4+fail=3,seed=0",
    "mesh:4x4",
    "genkautz:n=12,d=4+host=2.0",
    "random-regular:n=20,d=4,seed=3",
    "debruijn:d=3,D=3",
)


def context_of(spec, *, tol=1e-8, limit=None, **parameters):
    task = Task("alltoall.master", spec, method="screened-lp", tol=tol, threads=1)
    topology = parse(spec)
    data = formulation(task.formulation).prepare(topology, {})
    settings = {"threshold": screened_lp.THRESHOLD, "rounds": 5, "steps": 100_000} | parameters
    return Context(
        task=task,
        data=data,
        instance=topology,
        parameters=settings,
        deadline=None if limit is None else time.monotonic() + limit,
        solve=solve.solve,
        save=lambda answer, objective: None,
    )


def assert_proven(data, answer, tol):
    assert max(data.residuals(answer.values).values()) < 1e-9
    F = float(answer.values["F"])
    bound = data.certify(answer.duals).value
    assert bound * (1 + 1e-12) >= F
    assert bound / F - 1 <= tol


@pytest.mark.parametrize("spec", SPECS)
def test_ten_digits(spec):
    context = context_of(spec)
    answer = run_screened_lp(context)
    assert answer.termination == Termination.OPTIMAL
    assert_proven(context.data, answer, 1e-8)
    F, _ = optimum(compile_model(context.data.matrix()))
    assert float(answer.values["F"]) == pytest.approx(F, rel=1e-7)


@pytest.fixture
def unsharpened(monkeypatch):
    """Interior point alone; its equations would make up for arcs that the threshold leaves out."""
    monkeypatch.setattr(screened_lp, "sharpened", lambda orbits, near, tol: near)


def test_too_few_arcs_come_back(unsharpened):
    """A threshold of nothing leaves the shortest paths only; rounds add what is missing."""
    context = context_of("genkautz:n=30,d=3", threshold=1e-9, rounds=30)
    answer = run_screened_lp(context)
    assert answer.metrics["rounds"] > 1
    assert answer.metrics["kept"] < 1
    assert_proven(context.data, answer, 1e-8)


def test_rounds_that_run_out_leave_what_is_proven(unsharpened):
    context = context_of("genkautz:n=30,d=3", threshold=1e-9, rounds=1)
    answer = run_screened_lp(context)
    assert answer.termination != Termination.OPTIMAL
    assert_proven(context.data, answer, 1e-4)


def test_a_limit_leaves_what_is_proven(monkeypatch, unsharpened):
    context = context_of("genkautz:n=30,d=3")

    def late(*_):
        raise TimeoutError

    monkeypatch.setattr(screened_lp, "solve_reduced", late)
    answer = run_screened_lp(context)
    assert answer.termination == Termination.TIME_LIMIT
    assert_proven(context.data, answer, 1e-4)


def test_reduced_costs_are_zero_on_what_an_optimum_uses():
    context = context_of("genkautz:n=24,d=3")
    orbits = reduction.find(context.data.flow)
    result = solve_reduced(context, orbits, None, "highs-simplex")
    assert result.gap <= 1e-9
    kept = screened_lp.screened(orbits, result.lengths, 1e-6)
    assert kept[result.flows > 1e-9].all()
    assert not kept.all()
    again = solve_reduced(context, orbits, kept, "highs-simplex")
    assert again.upper == pytest.approx(result.upper, rel=1e-9)
    assert 1.0 / again.lower >= 1.0 / again.upper * (1 - 1e-12)


@pytest.mark.parametrize("spec", ["genkautz:n=60,d=4", "genkautz:n=40,d=4+fail=3,seed=1"])
def test_the_runner_certifies_it_by_its_own_means(spec):
    run = solve.solve(Task("alltoall.master", spec, method="screened-lp", tol=1e-8))
    assert run.proof == Proof.OPTIMAL
    assert run.record["bound_source"] == "any-lengths"
    assert "rounds" in run.record["metrics"]
    assert np.isfinite(run.bound)


@pytest.mark.slow
def test_a_thousand_nodes_to_seven_digits():
    run = solve.solve(Task("alltoall.master", "genkautz:n=1000,d=4", tol=1e-7))
    assert run.record["method"] == "screened-lp"
    assert run.proof == Proof.OPTIMAL
    assert run.record["gap"] <= 1e-7
    assert run.record["peak_memory_mb"] < 2048


@pytest.mark.parametrize("spec", SPECS[:3])
def test_shortest_paths_under_prices_are_kept_as_trees(spec):
    orbits = reduction.find(context_of(spec).data.flow)
    rng, topology = np.random.default_rng(0), orbits.reduced.topology
    lengths, preferred = (orbits.fold(rng.integers(0, 4, topology.arcs).astype(float)) for _ in range(2))
    kept = screened_lp.shortest(orbits, lengths, preferred)
    for group, source in enumerate(orbits.reduced.sources.tolist()):
        arcs = np.flatnonzero(kept[:, group])
        assert sorted(topology.head[arcs].tolist()) == [v for v in range(topology.n) if v != source]
        graph, tree = nx.DiGraph(), nx.DiGraph()
        for network, chosen in ((graph, range(topology.arcs)), (tree, arcs.tolist())):
            for a in chosen:
                ends = int(topology.tail[a]), int(topology.head[a])
                old = network.get_edge_data(*ends, default={"weight": np.inf})["weight"]
                network.add_edge(*ends, weight=min(old, float(lengths[a])))
        expected = nx.single_source_dijkstra_path_length(graph, source)
        found = nx.single_source_dijkstra_path_length(tree, source)
        assert found == pytest.approx(expected)


def test_prices_bring_back_what_the_first_lengths_leave_out(unsharpened):
    """Without them it takes 14 rounds, until the threshold is large."""
    answer = run_screened_lp(context_of("genkautz:n=60,d=3", threshold=1e-9, rounds=40))
    assert answer.termination == Termination.OPTIMAL
    assert answer.metrics["rounds"] <= 10
