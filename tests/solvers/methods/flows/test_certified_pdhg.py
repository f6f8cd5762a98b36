"""The matrix-free first-order method: valid bounds, flows that deliver, the same result every time, limits."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import MEDIUM, SMALL, optimum
from slow_cases import marked
from strategies import topologies

from opticoll.errors import MethodMismatch
from opticoll.formulations import formulation
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.formulations.flows import single_source
from opticoll.formulations.flows.flow_bounds import bounds
from opticoll.instances import Topology, parse
from opticoll.solvers import solve, verify
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.flows import certified_pdhg
from opticoll.solvers.methods.flows.certified_pdhg import refuse
from opticoll.solvers.methods.flows.flow_orbits import find
from opticoll.solvers.methods.flows.pdhg_iteration import Saddle, TimeBounds
from opticoll.solvers.methods.flows.pdhg_kernels import Team
from opticoll.solvers.methods.method import Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Proof, Task, Termination

relaxed = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def prepared(spec):
    topology = parse(spec) if isinstance(spec, str) else spec
    return formulation("alltoall.master").prepare(topology, {})


def exact(data):
    return optimum(compile_model(data.matrix()))[0]


def closed(data, tol=1e-4, *, threads=1, precision=np.float32, steps=100_000, alive=lambda: None):
    with Team(threads) as team:
        closing = TimeBounds(Saddle(data.flow, team, precision), tol, alive, lambda _: None, steps)
        closing.run()
    return closing


def values_of(data, closing):
    return {"g": closing.flows / closing.upper, "F": np.asarray(1.0 / closing.upper)}


def assert_certified(data, closing, tol, F=None):
    """Flow and lengths hold by means that share no code with the solver."""
    result = values_of(data, closing)
    assert max(data.residuals(result).values()) < 1e-9
    bound = data.certify({"capacity": closing.lengths}).value
    assert bound == pytest.approx(1.0 / closing.lower, rel=1e-9)
    assert bound / float(result["F"]) - 1.0 <= tol
    if F is not None:
        assert float(result["F"]) <= F * (1 + 1e-7)
        assert bound >= F * (1 - 1e-7)


@pytest.mark.parametrize(
    "spec",
    [marked(spec, slow=place % 3 > 0) for place, spec in enumerate((*SMALL, *MEDIUM))],
)
def test_the_optimum_of_the_lp_lies_between_the_bounds(spec):
    data = prepared(spec)
    assert_certified(data, closed(data), 1e-4, exact(data))


@pytest.mark.parametrize("spec", ["genkautz:n=16,d=4", "mesh:4x4", "random-regular:n=20,d=4,seed=3", "path:4"])
def test_double_precision_reaches_what_simplex_does(spec):
    data = prepared(spec)
    assert_certified(data, closed(data, 1e-7, precision=np.float64), 1e-7, exact(data))


@st.composite
def problems(draw, most=8):
    """A strongly connected multigraph with uneven capacities, some vertices only relays, any demand by source."""
    topology = draw(topologies(most, [0.01, 0.25, 1.0, 3.0, 50.0], relays=True))
    data = Master(model.ConcurrentFlow.by_source(topology))
    weights = draw(
        st.lists(st.sampled_from([0.0, 0.1, 1.0, 20.0]), min_size=data.flow.demand.size, max_size=data.flow.demand.size)
    )
    weighted = data.flow.demand * np.reshape(weights, data.flow.demand.shape)
    return Master(replace(data.flow, amounts=weighted)) if weighted.sum() > 0 else data


@relaxed
@given(problems(), st.sampled_from([1, 30, 500, 100_000]))
def test_bounds_hold_whenever_it_stops(data, steps):
    """After one step, thirty or as many as it takes: flow and lengths are what they claim to be."""
    F = exact(data)
    closing = closed(data, 1e-3, steps=steps)
    tol = 1e-3 if closing.closed else np.inf
    assert_certified(data, closing, tol, F)
    assert closing.steps <= steps or closing.steps <= 2 * steps + 100
    if steps == 100_000:
        assert closing.closed


def test_parallel_arcs_and_host_bottlenecks():
    doubled = Topology(4, [0, 0, 1, 1, 2, 3, 3], [1, 1, 2, 2, 3, 0, 0], [1.0, 2.0, 0.5, 0.5, 3.0, 1.0, 1.0])
    for topology in (doubled, parse("genkautz:n=12,d=4+host=2.0"), parse("ring:6+host=0.5")):
        data = prepared(topology)
        assert_certified(data, closed(data), 1e-4, exact(data))


def test_what_scales():
    """Capacities in other units change F by the factor and nothing else."""
    topology = parse("genkautz:n=30,d=3")
    one, other = closed(prepared(topology)), closed(prepared(topology.scaled(1e-3)))
    assert other.lower == pytest.approx(1e3 * one.lower, rel=1e-3)
    assert_certified(prepared(topology.scaled(1e6)), closed(prepared(topology.scaled(1e6))), 1e-4)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_result_does_not_depend_on_the_run_or_the_threads(precision):
    data = prepared("random-regular:n=100,d=3,seed=1")
    runs = [closed(data, 1e-3, threads=threads, precision=precision) for threads in (1, 1, 3)]
    for other in runs[1:]:
        assert (other.steps, other.lower, other.upper) == (runs[0].steps, runs[0].lower, runs[0].upper)
        np.testing.assert_array_equal(other.flows, runs[0].flows)
        np.testing.assert_array_equal(other.lengths, runs[0].lengths)


def test_a_limit_leaves_the_best_so_far():
    data = prepared("genkautz:n=60,d=3")
    calls = 0

    def alive():
        nonlocal calls
        calls += 1
        if calls > 200:
            raise TimeoutError

    with Team(1) as team:
        closing = TimeBounds(Saddle(data.flow, team), 1e-9, alive, lambda _: None, 100_000)
        with pytest.raises(TimeoutError):
            closing.run()
    assert_certified(data, closing, 0.5)


def test_it_stops_at_the_limit_of_its_precision():
    closing = closed(prepared("genkautz:n=20,d=3"), 1e-13, steps=3000)
    assert not closing.closed
    assert closing.gap < 1e-5


def test_the_start_is_already_optimal_on_tori():
    assert closed(prepared("torus:6x6")).steps == 0


def test_errors_of_helpers_reach_the_caller():
    def fails(chunk):
        if chunk == 5:
            raise ValueError

    with Team(3) as team:
        with pytest.raises(ValueError):  # noqa: PT011 - any of it
            team.run(fails, 16)
        seen = []
        team.run(lambda chunk: seen.append(chunk), 16)
        assert sorted(seen) == list(range(16))


# On orbits


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("genkautz:n=40,d=4", marks=pytest.mark.slow),
        "genkautz:n=27,d=3",
        "circulant:n=12,offsets=1x3",
        "mesh:4x4",
        "torus:3x4+fail=1,seed=0",
        "kautz:d=2,D=3",
        "slimfly:q=3",
        "star:6",
        "ring:7+host=1.5",
    ],
)
def test_representatives_stand_for_all(spec):
    """Bounds of the representatives are bounds of the whole problem; their flow, lifted, is a flow of it."""
    data = prepared(spec)
    orbits = find(data.flow)
    assert not orbits.trivial
    with Team(1) as team:
        closing = TimeBounds(
            Saddle(orbits.reduced, team, np.float32, orbits), 1e-4, lambda: None, lambda _: None, 100_000
        )
        closing.run()
    assert closing.closed
    lifted = orbits.lift(closing.flows / orbits.weight) / closing.upper
    F = exact(data)
    assert max(data.residuals({"g": lifted, "F": 1.0 / closing.upper}).values()) < 1e-9
    bound = data.certify({"capacity": closing.lengths}).value
    assert bound == pytest.approx(1.0 / closing.lower, rel=1e-9)
    assert 1.0 / closing.upper <= F * (1 + 1e-7)
    assert F * (1 - 1e-7) <= bound <= (1 + 1e-4) / closing.upper


def test_symmetry_changes_only_the_work():
    records = []
    for symmetry in (True, False):
        task = Task(
            "alltoall.master", "genkautz:n=27,d=3", method="certified-pdhg", tol=1e-4, settings={"symmetry": symmetry}
        )
        records.append(solve.solve(task).record)
    one, other = records
    assert one["metrics"]["source_orbits"] == 5
    assert "source_orbits" not in other["metrics"]
    assert one["proof"] == other["proof"] == Proof.OPTIMAL
    assert one["objective"] == pytest.approx(other["objective"], rel=1e-4)


# Through the runner


def test_the_runner_certifies_it_by_its_own_means():
    progress = []
    run = solve.solve(
        Task("alltoall.master", "genkautz:n=60,d=3", method="certified-pdhg", tol=1e-4), on_progress=progress.append
    )
    assert (run.proof, run.termination, run.exit_status) == (Proof.OPTIMAL, Termination.OPTIMAL, 0)
    assert run.record["bound_source"] == "any-lengths"
    assert 0 <= run.record["gap"] <= 1e-4
    assert run.record.repaired is None
    assert run.record["metrics"]["iterations"] > 0
    assert run.bound >= run.objective
    shown = [p["bound"] for p in progress if p["bound"] is not None]
    assert shown
    assert min(shown) >= run.objective


def compiled():
    """Compile what is not in the cache yet, so limits are spent on solving."""
    for precision in (np.float32, np.float64):
        closed(prepared("genkautz:n=12,d=4"), 1e-6, precision=precision, steps=300)


def test_a_time_limit_keeps_flow_and_bound():
    compiled()
    data = prepared("genkautz:n=300,d=4")
    task = Task("alltoall.master", "genkautz:n=300,d=4", method="certified-pdhg", tol=1e-9)
    saved = []

    def save(answer, objective):
        saved.append((answer, objective))
        if answer.values is not None and len(saved) > 10:  # however fast the machine: now the time is over
            context.deadline = time.monotonic()

    context = Context(
        task=task,
        data=data,
        instance=data.topology,
        parameters={"precision": "auto", "steps": 10**6, "symmetry": False},
        deadline=time.monotonic() + 600.0,
        solve=solve.solve,
        save=save,
    )
    answer = certified_pdhg.run(context)
    assert answer.termination == Termination.TIME_LIMIT
    assert any(kept.values is not None for kept, _ in saved)
    for kept in (answer, *(kept for kept, _ in saved if kept.values is not None)):
        assert max(data.residuals(kept.values).values()) < 1e-9
        F = float(kept.values["F"])
        assert 0 < F <= data.certify(kept.duals).value
    assert sorted(objective for _, objective in saved if objective) == [o for _, o in saved if o]


def test_a_value_is_not_told_without_a_flow(monkeypatch):
    """However long saving takes: an interruption then would lose the value."""
    monkeypatch.setattr(certified_pdhg, "SAVING", -1.0)
    data, saved = prepared("genkautz:n=20,d=3"), []
    context = Context(
        task=Task("alltoall.master", "genkautz:n=20,d=3", method="certified-pdhg", tol=1e-4),
        data=data,
        instance=data.topology,
        parameters={"precision": "auto", "steps": 10**6, "symmetry": False},
        deadline=None,
        solve=solve.solve,
        save=lambda answer, objective: saved.append((answer.values is not None, objective is not None)),
    )
    certified_pdhg.run(context)
    assert (True, True) in saved
    assert (False, True) not in saved[: saved.index((True, True))]


def test_an_interruption_keeps_flow_and_bound():
    compiled()
    stop = threading.Event()

    def when_both(state):
        if state["objective"] is not None and state["bound"] is not None:
            stop.set()

    task = Task("alltoall.master", "genkautz:n=150,d=4", method="certified-pdhg", tol=1e-9, time_limit_s=600)
    run = solve.solve(task, on_progress=when_both, stop=stop)
    assert run.termination == Termination.INTERRUPTED
    assert run.verified
    assert run.bound is not None
    assert run.bound >= run.objective


def test_auto_takes_it_for_large_instances_only():
    def chosen(spec, **more):
        return make_plan(Task("alltoall.master", spec, **more)).method_name

    assert chosen("genkautz:n=400,d=4", tol=1e-4) == "certified-pdhg"
    assert chosen("genkautz:n=400,d=4", tol=1e-9) == "screened-lp"
    assert chosen("genkautz:n=400,d=4", tol=1e-4, form="pyomo") == "time-form"
    assert chosen("genkautz:n=40,d=4+fail=2,seed=0", tol=1e-4) == "time-form"


def test_it_refuses_what_it_is_not_made_for():
    with pytest.raises(MethodMismatch):
        make_plan(Task("alltoall.link-mcf", "ring:5", method="certified-pdhg"))
    data = prepared("ring:5").flow
    refuse(data, "certified-pdhg")
    with pytest.raises(MethodMismatch):
        refuse(replace(data, barred=~data.blocked), "certified-pdhg")
    with pytest.raises(MethodMismatch):
        refuse(replace(data, equality=True), "certified-pdhg")


# The compiled repair


def test_repair_of_circulations_loses_nothing():
    topology = Topology(4, [0, 1, 1, 2, 3, 2, 3, 1], [1, 0, 2, 3, 1, 1, 2, 3], [1.0] * 2 + [100.0] * 6)
    data = prepared(topology)
    F, x = optimum(compile_model(data.matrix()))
    flow = compile_model(data.matrix()).values(x)["g"]
    wheel = np.isin(topology.tail * 4 + topology.head, [1 * 4 + 2, 2 * 4 + 3, 3 * 4 + 1])
    unit = single_source.unit_flow(topology, data.flow.sources, data.flow.demand, flow + 20.0 * wheel[:, None])
    assert 1 / (unit.sum(axis=1) / topology.capacity).max() == pytest.approx(F, rel=1e-6)


def test_checks_in_batches_see_everything(monkeypatch):
    """A violation in any group is found, however few groups a batch has."""
    data = prepared("genkautz:n=12,d=3")
    good = values_of(data, closed(data))
    monkeypatch.setattr(model, "CHECK_ENTRIES", 1)
    assert max(data.residuals(good).values()) < 1e-9
    flow, ones = data.flow, np.ones(data.topology.arcs)
    assert flow.length_bound(ones) == pytest.approx(flow.capacity.sum() / (flow.demand * flow.distances(ones)).sum())
    for k in range(flow.groups):
        bad = {"g": good["g"].copy(), "F": good["F"]}
        bad["g"][np.argmax(good["g"][:, k]), k] = 0.0
        assert data.residuals(bad)["balance"] > verify.FEASIBLE


@pytest.mark.slow
@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_a_thousand_nodes(tol):
    run = solve.solve(Task("alltoall.master", "genkautz:n=1000,d=4", method="certified-pdhg", tol=tol))
    assert run.proof == Proof.OPTIMAL
    assert run.record["gap"] <= tol
    assert run.record["peak_memory_mb"] < 2048
    assert run.objective <= 0.00084212
    assert run.bound >= 0.000842
    assert all(b.value >= run.objective for b in bounds(prepared("genkautz:n=1000,d=4")) if b.name != "any-lengths")
