"""SCCL's program: one matrix in both builds, the optimum by source is the same, wrong solutions, schedules, bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import compiled, optimum
from strategies import topologies

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall import sccl as model
from opticoll.instances import Topology, parse
from opticoll.solvers import solve
from opticoll.solvers.schedules.shard_routes import routes_of
from opticoll.solvers.schedules.timed_paths import chunk_values
from opticoll.solvers.task import Task

relaxed = settings(max_examples=5)


def solved(spec, **parameters):
    data, form = compiled(model.ChunkSteps.name, spec, **parameters)
    value, x = optimum(form)
    return data, round(value), {name: np.rint(array) for name, array in form.values(x).items()}


@pytest.mark.parametrize(("spec", "rounds"), [("hypercube:3", 4), ("bipartite:2x2", 2), ("ring:4,directed", 6)])
def test_known_optima(spec, rounds):
    """Closed forms of the fluid time, which whole chunks attain here: N/2, and the sum of distances over links."""
    run = solve.solve(Task(model.ChunkSteps.name, spec, "cp-sat"))
    assert (run.objective, run.proof) == (rounds, "optimal")


@relaxed
@given(topologies(4), st.integers(1, 2), st.integers(0, 1))
def test_one_flow_for_each_source_has_the_same_optimum(topology, chunks, extra):
    """Copies of chunks, which SCCL allows, and distinguishing chunks do not help an all-to-all."""
    steps = int(topology.diameter) + extra
    data, value, values = solved(topology, steps=steps, chunks=chunks)
    other, least, flows = solved(topology, steps=steps, chunks=chunks, model="sources")
    assert value == least
    assert max(data.residuals(values).values()) == 0
    assert max(other.residuals(flows).values()) <= 1e-9
    split = chunk_values(data, other, flows)
    assert max(data.residuals(split).values()) == 0
    assert all(bound.value <= value for bound in data.bounds())
    for one, result in ((data, values), (other, flows)):
        routes = routes_of(model.ChunkSteps.name, one, result).rows()
        assert sum(route.weight for route in routes) == pytest.approx(topology.num_ranks * (topology.num_ranks - 1))
        assert all(route.amount == 1 and list(route.steps) == sorted(set(route.steps)) for route in routes)


def test_more_chunks_come_nearer_to_the_fluid_time():
    """Three rounds for whole shards, five for halves of them, seven for thirds."""
    assert [solved("bipartite:2x3", chunks=C, model="sources")[1] for C in (1, 2, 3)] == [3, 5, 7]


def test_a_chunk_that_arrives_twice_is_detected():
    data, _, values = solved("ring:4")
    k = next(k for k in range(12) if values["f"][:, k].sum() == 2)
    a, t = np.argwhere(values["f"][:, k])[0]
    v = data.flow.topology.head[a]
    other = next(b for b in np.flatnonzero(data.flow.topology.head == v) if b != a)
    values["f"][other, k, t] = 1.0
    assert data.residuals(values)["once"] == 1


def test_the_program_stops_where_flows_by_source_go_on():
    """The method proves what our bounds prove, in the variables of SCCL's program."""
    run = solve.solve(Task(model.ChunkSteps.name, "ring:4", "source-flows", settings={"chunks": 2}))
    assert (run.objective, run.proof, run.verified) == (4, "optimal", True)
    assert run.values["f"].shape == (8, 24, 2)


def test_two_way_lines_of_sources_are_straightened():
    """A chunk that runs in a circle while others use its way waits instead."""
    topology = Topology(3, [0, 1, 1, 2, 2], [1, 0, 2, 1, 0])
    by_source = model.ChunkSteps.prepare(topology, {"model": "sources", "steps": 4})
    flows = solved(topology, model="sources", steps=4)[2]
    go, back = (int(np.flatnonzero((topology.tail == u) & (topology.head == v))[0]) for u, v in ((1, 2), (2, 1)))
    at = next(t for t in range(4) if flows["f"][:, 0, t:].sum(axis=0).max() > 0)
    flows["f"][go, 0, at + 1] += 1
    flows["f"][back, 0, at + 2] += 1
    flows["f"][go, 0, at + 3] += 1
    first = next(t for t in range(4) if flows["f"][go, 0, t] > 0)
    flows["f"][go, 0, first] -= 1
    flows["U"][:] = 9
    data = model.ChunkSteps.prepare(topology, {"steps": 4})
    split = chunk_values(data, by_source, flows)
    assert {b: v for b, v in data.residuals(split).items() if v > 0} == {}


@pytest.mark.parametrize(
    ("spec", "parameters", "words"),
    [
        ("hypercube:3", {"steps": 2}, "largest distance of a demand is 3"),
        ("ring:4", {"chunks": 65}, "use at most 64"),
        ("ring:4+host=2", {}, "not ranks"),
    ],
)
def test_refusals(spec, parameters, words):
    with pytest.raises(NotApplicable, match=words):
        model.ChunkSteps.prepare(parse(spec), parameters)
