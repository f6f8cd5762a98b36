"""Time-stepped children: one matrix in both builds, F_s = 1, and the decomposition has the value of the whole model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import optimum
from strategies import topologies

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall.timestep_child import StepChild
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.alltoall import timestep_children
from opticoll.solvers.process.memory import TooLarge
from opticoll.solvers.task import Task

relaxed = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def optimal(data):
    form = compile_model(data.cvxpy())
    value, x = optimum(form)
    return value, form.values(x)


def by_source(topology, **parameters):
    master = StepFlow.prepare(topology, {**parameters, "aggregate": "source"})
    return master, *optimal(master)


@relaxed
@given(topologies(5), st.integers(0, 1))
def test_the_children_together_are_the_model_by_commodity(topology, extra):
    steps = int(topology.diameter) + extra
    _, value, values = by_source(topology, steps=steps)
    whole = StepFlow.prepare(topology, {"steps": steps})
    columns = []
    for number in range(topology.num_ranks):
        data = StepChild.prepare(topology, {"source": number, "steps": steps}, values)
        served, found = optimal(data)
        assert served == pytest.approx(1.0, abs=1e-6), "the closed form"
        assert max(data.residuals(found).values()) < 1e-6
        assert all(bound.value >= served * (1 - 1e-7) for bound in data.bounds())
        columns.append(data.by_step(found))
    f = np.concatenate(columns, axis=1)
    U = (f.sum(axis=1) / topology.capacity[:, None]).max(axis=0)
    assert max(whole.residuals({"f": f, "U": U}).values()) < 1e-6, "the checker of the undecomposed model"
    assert U.sum() == pytest.approx(optimal(whole)[0], rel=1e-6)
    assert U.sum() == pytest.approx(value, rel=1e-6)


def test_a_directed_ring_by_hand():
    """On a one-way 3-ring, two shards leave 0 over its one arc, and that for 2 goes on: in step 2 at the earliest."""
    topology = parse("ring:3,directed")
    flow = np.zeros((3, 3, 2))
    for s in range(3):
        flow[s, s] = (2.0, 0.0)
        flow[(s + 1) % 3, s] = (0.0, 1.0)
    master = StepFlow.prepare(topology, {"aggregate": "source"})
    values = {"f": flow, "U": np.array([2.0, 1.0])}
    assert max(master.residuals(values).values()) == 0.0
    data = StepChild.prepare(topology, {}, values)
    value, found = optimal(data)
    assert value == pytest.approx(1.0)
    assert {bound.name: bound.value for bound in data.bounds()}["source"] == pytest.approx(1.0)
    assert data.by_step(found)[:, :, 0] == pytest.approx(np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]))
    assert data.by_step(found)[:, :, 1] == pytest.approx(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    halved = StepChild.prepare(topology, {}, {"f": flow * np.array([1.0, 0.5]), "U": np.array([2.0, 1.0])})
    assert optimal(halved)[0] == pytest.approx(0.5), "what is not forwarded is not served"


@pytest.mark.parametrize(
    ("spec", "demand", "time", "split"),
    [
        pytest.param("path:4", {}, 4.0, "paths", marks=pytest.mark.slow),
        pytest.param("hypercube:3", {}, 4.0, "lp", marks=pytest.mark.slow),
        # 3 shards of its own and 1 forwarded leave a host at 1.5
        *(("hypercube:2+host=1.5", {"steps": 3}, 8 / 3, split) for split in ("lp", "paths")),
        ("ring:5", {"demand": "permutation:2"}, None, "lp"),
    ],
)
def test_the_method_has_the_value_of_the_whole_model(spec, demand, time, split):
    whole = solve.solve(Task("alltoall.timestep-mcf", spec, method="highs", settings=demand))
    task = Task("alltoall.timestep-mcf", spec, "timestep-children", settings={**demand, "split": split, "jobs": 1})
    run = solve.solve(task)
    assert (run.verified, str(run.proof)) == (True, "optimal"), run.record
    assert run.objective == pytest.approx(whole.objective, rel=1e-7)
    if time is not None:
        assert run.objective == pytest.approx(time, rel=1e-7)


def test_flows_of_pairs_that_no_memory_holds_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(timestep_children, "available_bytes", lambda: 100.0)
    with pytest.raises(TooLarge, match=r"12 commodities need .* set aggregate=source"):
        timestep_children.run_timestep_children(SimpleNamespace(data=StepFlow.prepare(parse("ring:4"), {})))
    run = solve.solve(Task("alltoall.timestep-mcf", "ring:4", settings={"aggregate": "source"}))
    assert run.objective == pytest.approx(2.0)


def test_refusals():
    with pytest.raises(NotApplicable, match="is not a rank"):
        StepChild.prepare(parse("ring:3"), {"source": -1})
    with pytest.raises(NotApplicable, match="one hop per step"):
        StepChild.prepare(parse("path:4"), {"steps": 2})
