"""All-gather: the worst cut is the LP's optimum, closed forms are attained, corrupted flows are refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from case_families import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import SMALL, solved
from strategies import topologies

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall import all_gather as model
from opticoll.formulations.flows.shared_flows import length_bound
from opticoll.formulations.flows.worst_cuts import least_time
from opticoll.instances import Topology, parse
from opticoll.solvers import solve
from opticoll.solvers.task import Task

relaxed = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CLOSED = {
    "ring:8": 3.5,
    "ring:7,directed": 6,
    "complete:6": 1,
    "hypercube:3": 7 / 3,
    "hypercube:4": 15 / 4,
    "path:4": 3,
    "star:5": 4,
    "torus:4x4": 15 / 4,
    "petersen": 3,
}


def enumerated(topology):
    """The worst cut of a small topology by trying every set."""
    best, ranks = 0.0, set(topology.terminals.tolist())
    for size in range(1, topology.n):
        for inside in map(set, combinations(range(topology.n), size)):
            if ranks <= inside or not ranks & inside:
                continue
            leaving = sum(
                c
                for u, v, c in zip(topology.tail, topology.head, topology.capacity, strict=True)
                if u in inside and v not in inside
            )
            best = max(best, len(ranks & inside) / leaving)
    return best


def worst_cut(topology):
    """The optimum by cuts, and a set that attains it."""
    time, inside = least_time(topology, [1] * topology.num_ranks)
    return float(time), inside


@pytest.mark.parametrize(("spec", "time"), CLOSED.items())
def test_closed_forms(spec, time):
    assert worst_cut(parse(spec))[0] == pytest.approx(time, rel=1e-12)
    if parse(spec).n <= 10:
        assert solved("alltoall.all-gather", spec)[1] == pytest.approx(time, rel=1e-8)


@each("spec", SMALL)
def test_the_worst_cut_is_the_optimum_of_the_flow_model(spec):
    topology = parse(spec)
    time, inside = worst_cut(topology)
    data, value, values = solved("alltoall.all-gather", spec)
    assert time == pytest.approx(value, rel=1e-8)
    assert max(data.residuals(values).values()) < 1e-8
    leaving = sum(
        c
        for u, v, c in zip(topology.tail, topology.head, topology.capacity, strict=True)
        if u in inside and v not in inside
    )
    assert time == pytest.approx(len(inside & set(topology.terminals.tolist())) / leaving, rel=1e-12)
    assert not set(topology.terminals.tolist()) <= inside


@relaxed
@given(topologies(6))
def test_every_set_tried_gives_the_same_cut(topology):
    assert float(worst_cut(topology)[0]) == pytest.approx(enumerated(topology), rel=1e-12)


@relaxed
@given(topologies(6), st.integers(0, 2**32 - 1))
def test_any_lengths_bound_the_time(topology, seed):
    data, time = model.AllGather.prepare(topology), worst_cut(topology)[0]
    lengths = np.random.default_rng(seed).exponential(size=(topology.arcs, topology.num_ranks)) ** 3
    assert length_bound(data, lengths) <= time * (1 + 1e-9)


@pytest.mark.parametrize("method", ["auto", "tree-packing"])
@pytest.mark.parametrize("spec", ["genkautz:n=7,d=3", "hypercube:2+host=1.5", "torus:3x3+fail=2,seed=1"])
def test_solved_and_proven(spec, method):
    run = solve.solve(Task(model.AllGather.name, spec, method=method))
    assert run.proof == "optimal", run.record
    assert run.record["metrics"]["T"] == pytest.approx(worst_cut(parse(spec))[0])


def test_refusals():
    for topology in (Topology(1, [], []), Topology(3, [0, 1], [1, 0]), Topology(3, [0, 1], [1, 2])):
        with pytest.raises(NotApplicable):
            model.AllGather.prepare(topology)


@pytest.mark.parametrize("method", ["highs", "receiver-flows", "tree-packing"])
def test_a_broadcast_needs_paths_from_its_root_alone(method):
    one_way = Topology(4, [0, 0, 1, 2, 1], [1, 2, 2, 3, 3], [2.0, 1.0, 0.5, 4.0, 0.25])
    run = solve.solve(Task("alltoall.broadcast", one_way, method=method))
    assert run.record["proof"] == "optimal"
    assert run.record["objective"] == pytest.approx(1 / 1.5)  # into vertex 2
    with pytest.raises(NotApplicable, match=r"no path from 1 to 0 \(1 such pairs\)"):
        solve.solve(Task("alltoall.broadcast", one_way, settings={"root": 1}))


@pytest.mark.slow
def test_a_large_topology():
    assert worst_cut(parse("genkautz:n=200,d=4"))[0] >= 199 / 4 - 1e-9
