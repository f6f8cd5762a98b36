"""A collective step by step: times of steps, all choices, the checker."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from case_families import each

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.topology import pattern_times
from opticoll.formulations.topology.pattern_times import PatternFlow, achieved, differences, least
from opticoll.formulations.topology.steps import TopologySteps
from opticoll.formulations.topology.timed_steps import capacities
from opticoll.instances import parse
from opticoll.instances.collective_steps import collective_steps
from opticoll.solvers.methods.topology.steps import best_choice, step_flow, step_flows

NAME = "topology.steps"


def data_of(spec, **given):
    parameters = {one.name: one.default for one in TopologySteps.parameters} | given
    return TopologySteps.prepare(parse(spec), {**parameters, "times": step_flows})


def by_all_choices(data):
    """Least time over every sequence of topologies, the standing one before the first step."""
    m, topologies = data.time.shape
    best = np.inf
    for chosen in product(range(topologies), repeat=m):
        if all(data.allowed[i, q] for i, q in enumerate(chosen)):
            changes = sum(a != b for a, b in zip((0, *chosen), chosen, strict=False))
            total = sum(data.time[i, q] + data.startup for i, q in enumerate(chosen)) + data.delay * changes
            best = min(best, total)
    return best


#: Instance and settings with few enough choices to try all.
EVERY = [
    ("ring:4", {}),
    ("ring:8", {"delay": 0.75, "startup": 0.5}),
    ("ring:4,directed", {"algorithm": "bruck:2", "delay": 0.5}),
    ("genkautz:n=5,d=2", {"algorithm": "shifts", "delay": 0.25}),
    ("ring:9", {"algorithm": "retri", "delay": 1.0, "between": "genkautz:n=9,d=2;complete:9"}),
    ("path:6", {"algorithm": "bruck:3", "delay": 2.0, "ports": 1}),
    ("hypercube:3", {"algorithm": "optree:4x2", "delay": 0.1, "collective": "all-gather"}),
    ("ring:8", {"algorithm": "bruck:2", "delay": 4.0, "reuse": False}),
    ("ring:5", {"algorithm": "ring", "delay": 0.3, "collective": "all-gather"}),
]


@pytest.mark.parametrize(("spec", "given"), EVERY)
def test_dynamic_programming_against_all_choices(spec, given):
    data = data_of(spec, **given)
    expected = by_all_choices(data)
    total, chosen = best_choice(data.time + data.startup, data.delay)
    assert total == pytest.approx(expected, rel=1e-12)
    assert data.objective({"topology": chosen.astype(float)}) == pytest.approx(expected, rel=1e-12)
    assert max(bound.value for bound in data.bounds()) <= expected * (1 + 1e-9)


@pytest.mark.parametrize(("spec", "given"), [EVERY[1], EVERY[3], EVERY[4]])
def test_the_stated_model_and_the_method_agree(spec, given):
    runs = [
        oc.solve(oc.Task(NAME, spec, method, form=form, settings=given))
        for method, form in (("highs", "pyomo"), ("highs", "cvxpy"), ("step-choice", None), ("auto", None))
    ]
    values = [run.objective for run in runs]
    assert values == pytest.approx([values[2]] * 4, rel=1e-7)
    assert runs[2].proof == runs[3].proof == "optimal"


@pytest.mark.parametrize("delay", [0.05, 0.5, 3.0])
def test_choices_that_are_left_out_do_not_help(delay):
    """With a huge delay nothing is left out; the times are the same, so they are judged at the smaller delay."""
    given = {"algorithm": "shifts"}
    few, every = data_of("ring:6", delay=delay, **given), data_of("ring:6", delay=1e6, **given)
    assert few.allowed.sum() <= every.allowed.sum()
    assert best_choice(few.time, delay)[0] == pytest.approx(best_choice(every.time, delay)[0])
    assert np.allclose(few.time[few.allowed], every.time[few.allowed], rtol=1e-6)


@each("seed", range(20))
def test_dynamic_programming_on_random_times(seed):
    draw = np.random.default_rng(seed)
    time = np.where(draw.random((4, 3)) < 0.2, np.inf, draw.random((4, 3)) * 3)
    time[:, int(draw.integers(3))] = 2.0
    delay = float(draw.random())
    data = TopologySteps(3, tuple("abcd"), tuple("xyz"), time, time, delay)
    total, chosen = best_choice(time, delay)
    assert total == pytest.approx(by_all_choices(data))
    assert data.objective({"topology": chosen}) == pytest.approx(total)


# times of steps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "algorithm"),
    [("ring:5", "shifts"), ("genkautz:n=6,d=2", "retri"), ("hypercube:3", "recursive:2"), ("mesh:2x3", "bruck:2")],
)
def test_times_are_those_of_concurrent_flows(spec, algorithm):
    topology = parse(spec)
    for step in collective_steps(algorithm, topology.n)[:3]:
        flow = step_flow(capacities(topology), step.demand)
        reached = achieved(capacities(topology), step.demand, flow)
        run = oc.solve("alltoall.master", spec, demand=step.demand)
        assert reached == pytest.approx(1 / run.objective, rel=1e-6)
        assert least(capacities(topology), step.demand, flow.lengths) == pytest.approx(reached, rel=1e-9)


@pytest.mark.parametrize(
    ("spec", "algorithm", "times"),
    [
        ("ring:6,directed", "ring", [1.0] * 10),
        ("ring:6,directed", "shifts", [1.0, 2.0, 3.0, 4.0, 5.0]),  # hops on one-way circuits
        ("complete:4", "shifts", [1 / 2, 1 / 2, 1 / 2]),  # 3 links and 2 hops but for the direct one
        ("hypercube:3", "recursive:2", [4.0, 2.0, 1.0, 1.0, 2.0, 4.0]),  # every path crosses the dimension once
    ],
)
def test_times_in_closed_form(spec, algorithm, times):
    data = data_of(spec, algorithm=algorithm)
    assert data.time[:, 0] == pytest.approx(times)


def test_groups_are_recognized():
    assert differences(capacities(parse("ring:6")), collective_steps("shifts", 6)[1].demand) is not None
    assert differences(capacities(parse("hypercube:3")), collective_steps("recursive:2", 8)[0].demand)[3, 5] == 6
    assert differences(capacities(parse("path:6")), collective_steps("shifts", 6)[1].demand) is None


def test_one_source_stands_for_all():
    """The flow of a symmetric step takes the same time when every source is routed on its own."""
    capacity, demand = capacities(parse("ring:6")), collective_steps("retri", 6)[1].demand
    alike = step_flow(capacity, demand)
    table = differences(capacity, demand)
    nodes = range(6)
    flows = np.array([[[alike.flows[0][table[s, u], table[s, v]] for v in nodes] for u in nodes] for s in nodes])
    whole = PatternFlow(flows, alike.lengths)
    assert achieved(capacity, demand, whole) == pytest.approx(achieved(capacity, demand, alike))


def test_wrong_flows_and_lengths_prove_nothing():
    capacity, demand = capacities(parse("ring:5")), collective_steps("shifts", 5)[1].demand
    flow = step_flow(capacity, demand)
    time = achieved(capacity, demand, flow)
    assert achieved(capacity, demand, PatternFlow(flow.flows * 0.5, flow.lengths)) == pytest.approx(time)
    assert achieved(capacity, demand, PatternFlow(flow.flows * 0.0, flow.lengths)) == np.inf
    assert achieved(capacity * 0.0 + np.roll(np.eye(5), 1, axis=1), demand, flow) == np.inf
    draw = np.random.default_rng(0)
    for _ in range(20):
        assert least(capacity, demand, draw.random((5, 5))) <= time * (1 + 1e-9)
    assert pattern_times.hops(capacity, demand) <= time
    assert step_flow(np.roll(np.eye(4), 2, axis=1), collective_steps("shifts", 4)[0].demand) is None


def test_flows_that_duals_do_not_prove_are_refused():
    def slow(pairs):
        return [PatternFlow(flow.flows, flow.lengths * 0) for flow in step_flows(pairs)]

    with pytest.raises(BadInput, match="prove only 0"):
        TopologySteps.prepare(parse("ring:4"), {"delay": 1.0, "times": slow})


# the checker ----------------------------------------------------------------------------------------------------------


def test_corrupted_choices_are_rejected():
    data = data_of("ring:8", delay=0.1)
    assert not data.allowed.all()
    _, chosen = best_choice(data.time, data.delay)
    y = np.zeros(data.time.shape)
    y[np.arange(len(chosen)), chosen] = 1.0
    assert max(data.residuals({"y": y}).values()) == 0.0
    i, q = np.argwhere(~data.allowed)[0].tolist()
    wrong = y.copy()
    wrong[i] = 0.0
    wrong[i, q] = 1.0
    assert data.residuals({"y": wrong})["allowed"] == 1.0
    twice = y.copy()
    twice[0] = 1.0
    assert data.residuals({"y": twice})["one"] >= 1.0
    assert data.residuals({"y": y * 0.7})["integrality"] == pytest.approx(0.3)


def test_what_a_solution_says():
    run = oc.solve(NAME, "ring:8", delay=2.0, algorithm="ring", ports=2)
    assert run.metrics["changes"] == 1  # two circuits to the next node halve 14 steps of 7/8
    assert run.objective == pytest.approx(2.0 + 14 * 0.5)
    assert run.metrics["T_standing"] == pytest.approx(14 * 7 / 8)


@pytest.mark.parametrize(
    ("spec", "given", "words"),
    [
        ("servers:n=4,degree=2", {}, "needs a standing topology"),
        ("ring:6", {}, "topology.steps: recursive:2: 6 nodes"),
        ("ring:4", {"delay": -1.0}, "at least 0"),
        ("ring:4", {"between": "ring:5"}, "topology of 4 nodes"),
        ("ring:4", {"collective": "all-to-all"}, "performs no all-to-all"),
    ],
)
def test_refusals(spec, given, words):
    with pytest.raises(BadInput, match=words):
        oc.solve(NAME, spec, **given)
