"""``auto`` without a limit ends with a proof on small instances of every integer formulation."""

from __future__ import annotations

import itertools
import threading
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from contexts import context_of
from integer_population import DRAWS, MOST_S, population, solved, without_bounds
from slow_cases import marked

from opticoll.formulations import formulation
from opticoll.formulations.model import build_model
from opticoll.instances import Topology
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.branching import certified_branching
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Outcome, Proof, Task, Termination

#: Cases of the whole population that end unproven, see docs/guide/auto.md.
OPEN = {("alltoall.min-congestion", number) for number in (4, 14, 73)}
#: Pods of six cubes, and a case that needs 22 s: up to twice the time of all others.
LATER = {*(("topology.pod", number) for number in (3, 5, 10)), ("alltoall.sccl", 6)}
SAMPLE = {name: draws.sample for name, draws in DRAWS.items()}
SAMPLED = [(name, number) for name, numbers in SAMPLE.items() for number in numbers]
WHOLE = [(name, number) for name in SAMPLE for number in range(DRAWS[name].count)]
ROUTED = "alltoall.min-congestion"


@cache
def cases(*, whole=False):
    return {(case.formulation, case.number): case for case in population(wanted=None if whole else SAMPLE)}


@pytest.mark.slow
def test_the_population_is_of_small_instances():
    whole = cases(whole=True)
    assert [*whole] == WHOLE
    assert all(case.instance.n <= 8 or case.formulation == "sipml.placement" for case in whole.values())
    assert {case.settings.get("kappa") for case in whole.values()} >= {1, 2, 3}
    assert all(str(whole[key]) == str(case) for key, case in cases().items())


def proven(run):
    return run.proof is Proof.OPTIMAL or run.record.infeasible_by is not None


@pytest.mark.parametrize(("name", "number"), SAMPLED)
def test_a_sample_is_proven(name, number):
    run = solve.solve(cases()[name, number].task())
    assert proven(run), run.record.message


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (ROUTED, 3),
        (ROUTED, 10),
        ("alltoall.sccl", 11),
        pytest.param(ROUTED, 5, marks=pytest.mark.slow),
        pytest.param(ROUTED, 16, marks=pytest.mark.slow),
    ],
)
def test_a_users_formulation_without_bounds_is_proven_too(name, number):
    case = cases(whole=number not in SAMPLE[name])[name, number]
    ours = solve.solve(case.task())
    own = solve.solve(Task(without_bounds(formulation(case.formulation)), case.instance, settings=case.settings))
    assert proven(own), own.record.message
    assert own.objective == pytest.approx(ours.objective, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), [case for case in WHOLE if case not in OPEN])
def test_the_whole_population_is_proven_in_time(name, number):
    run, used = solved(cases(whole=True)[name, number].task(), 3 * MOST_S)
    assert proven(run), run.record.message
    assert used <= (2 if (name, number) in LATER else 1) * MOST_S


def routed(topology, paths, kappa):
    """The least load of kappa paths of every pair, in fractions, by enumeration."""
    plan = make_plan(Task("alltoall.min-congestion", topology, settings={"paths": paths, "kappa": kappa}))
    listed, capacity = plan.problem.routing.paths, [Fraction(c) for c in topology.capacity.tolist()]
    arcs = [listed.arcs[listed.start[p] : listed.start[p + 1]].tolist() for p in range(listed.paths)]
    best = None
    for chosen in itertools.product(*(itertools.combinations(listed.of_pair(k), kappa) for k in range(listed.pairs))):
        load = [0] * topology.arcs
        for path in itertools.chain(*chosen):
            for arc in arcs[path]:
                load[arc] += 1
        worst = max(Fraction(count) / c for count, c in zip(load, capacity, strict=True)) / kappa
        best = worst if best is None else min(best, worst)
    return best


@pytest.mark.parametrize("seed", [marked(seed, slow=seed > 3) for seed in range(8)])
def test_bounds_stay_on_the_right_side_at_any_capacities(seed):
    random = np.random.default_rng(seed)
    ends = [(u, v) for u in range(3) for v in range(3) if u != v]
    capacity = 10.0 ** random.uniform(-3, 1, 6) if seed % 2 else random.choice([0.001, 0.1, 1.0, 10.0], 6)
    topology = Topology(3, [u for u, _ in ends], [v for _, v in ends], capacity)
    kappa = 1 + seed % 2
    run = solve.solve(Task("alltoall.min-congestion", topology, settings={"paths": "all", "kappa": kappa}))
    exact = routed(topology, "all", kappa)
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(float(exact), rel=1e-9)
    assert Fraction(run.bound) <= exact * (1 + Fraction(1, 10**12))
    assert run.bound >= float(exact) * (1 - 1e-6)


def test_a_small_file_of_three_vertices_ends(tmp_path):
    path = tmp_path / "three.txt"
    path.write_text("".join(f"{u} {v} 3\n" for u in range(3) for v in range(3) if u != v))
    run = solve.solve(Task("alltoall.min-congestion", f"file:{path}", settings={"paths": "all", "kappa": 2}))
    assert run.proof is Proof.OPTIMAL
    assert run.objective == 0.5
    assert run.bound == pytest.approx(0.5, rel=1e-6)


def test_a_proof_without_end_shows_progress_and_keeps_its_incumbent_when_stopped(monkeypatch):
    stop, begun, seen = threading.Event(), [], []
    continued = solve._continued

    def beginning(found, method, deadline):
        begun.append(method)
        return continued(found, method, deadline)

    def watch(progress):
        if begun and progress["objective"] is not None:
            seen.append(progress)
            stop.set()

    monkeypatch.setattr(solve, "_continued", beginning)
    run = solve.solve(Task("topology.design", "servers:n=17,degree=3,traffic=alltoall"), on_progress=watch, stop=stop)
    assert begun == ["certified-branching"]
    assert seen
    assert run.termination is Termination.INTERRUPTED
    assert run.verified
    assert run.proof is Proof.CERTIFIED_GAP
    assert run.record.model.reason.endswith(", continued by certified-branching")


def test_a_schedule_of_another_method_gives_branching_the_value_to_improve():
    """combined-rounds finds a schedule of six rounds, which is not written in the variables of the program."""
    settings = {"collective": "all-reduce", "bounds": False}
    run = solve.solve(Task("lumorph.sum-rounds", "lightpath:2x2,lasers=1", settings=settings))
    assert run.proof is Proof.OPTIMAL
    assert (run.objective, run.bound) == (6, 6)
    assert run.record.model.reason.endswith("proven optimal by certified-branching")


def test_cp_sat_finds_what_highs_does_not(monkeypatch):
    """Of a program over integers alone; a solution that HiGHS has found would be kept."""
    from opticoll.solvers.process import isolation

    asked, solve_isolated = [], isolation.solve_isolated

    def noted(form, adapter, request, **other):
        asked.append(adapter)
        return solve_isolated(form, adapter, request, **other)

    def nothing(form, adapter, request, on_progress=None):
        asked.append(adapter)
        return Outcome(Termination.TIME_LIMIT)

    monkeypatch.setattr(isolation, "solve_isolated", noted)
    monkeypatch.setattr(isolation, "solve_here", nothing)
    task = Task("lumorph.co-scheduling", "training:random,gpus=4,calls=5,seed=1", method="certified-branching")
    plan, context = make_plan(task), context_of(task)
    proof = certified_branching._Proof(context, compile_model(build_model(plan.problem, plan.form)))
    proof.search()
    assert asked == ["highs", "cp-sat"]
    assert proof.value < np.inf
    assert proof.x is not None
