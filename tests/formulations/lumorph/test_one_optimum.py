"""One problem has one optimum, whatever method, build, bounds and symmetry breaking it is solved with."""

from __future__ import annotations

import pytest
from case_families import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opticoll.errors import MethodMismatch, NotApplicable
from opticoll.formulations import formulation
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.instances import parse
from opticoll.solvers.methods import methods_for
from opticoll.solvers.solve import solve
from opticoll.solvers.task import PROVEN, Task

NAME = "lumorph.rounds"

COLLECTIVES = ("broadcast", "scatter", "gather", "all-gather", "all-to-all", "reduce", "reduce-scatter", "all-reduce")
#: Solvers and forms of the stated model, and settings that must not change its optimum.
STATED = (
    ("highs", "pyomo", {}),
    ("highs", "cvxpy", {"symmetry": False}),
    ("highs", "pyomo", {"bounds": False}),
    ("highs", "cvxpy", {"symmetry": False, "bounds": False}),
    ("auto", None, {}),
    ("auto", None, {"bounds": False}),
)
#: Limit of a run [s]; what is not proven by then is compared as a solution.
LIMIT_S = 20


def answers(spec, chosen):
    """The runs of all methods that do not refuse the problem, by method, form and settings."""
    tasks = [
        Task(NAME, spec, method, form=form, settings={**chosen, **switch}, time_limit_s=LIMIT_S)
        for method, form, switch in STATED
    ]
    for name, method in methods_for(formulation(NAME)).items():
        short = {"search_s": 0.5} if "search_s" in {parameter.name for parameter in method.parameters} else {}
        tasks.append(Task(NAME, spec, name, settings={**chosen, **short}, time_limit_s=LIMIT_S))
    result = {}
    for task in tasks:
        try:
            result[task.method, task.form, str(task.settings)] = solve(task)
        except (MethodMismatch, NotApplicable):
            continue
    return result


def assert_one_optimum(spec, chosen):
    runs = answers(spec, chosen)
    solved_by = {method for method, *_ in runs}
    assert {"auto", "highs", "certified-rounds"} <= solved_by
    if not runs:
        return
    runs = {key: run for key, run in runs.items() if run.values is not None}
    assert all(run.verified for run in runs.values()), {key: run.record.violations for key, run in runs.items()}
    proven = {run.objective for run in runs.values() if run.proof in PROVEN}
    assert len(proven) <= 1, {key: run.objective for key, run in runs.items() if run.proof in PROVEN}
    best = min(run.objective for run in runs.values())
    assert proven <= {best}
    for key, run in runs.items():
        assert run.bound is None or run.bound <= best, key


@st.composite
def problems(draw):
    """A small wafer, a collective and settings that are part of the problem."""
    shape = draw(st.sampled_from(["1x2", "1x3", "1x4", "2x2"]))
    spec = f"lightpath:{shape},lasers={draw(st.sampled_from([1, 2, 3, 4, 12]))},waveguides={draw(st.integers(1, 3))}"
    chosen = {"collective": draw(st.sampled_from(COLLECTIVES))}
    for name, values in (
        ("wavelengths", ["fixed"]),
        ("paths", [1, 2]),
        ("routes", ["yen"]),
    ):
        if draw(st.sampled_from([True, False, False])):
            chosen[name] = draw(st.sampled_from(values))
    return spec, chosen


@pytest.mark.parametrize("examples", [2, pytest.param(150, marks=pytest.mark.slow)])
def test_every_method_has_the_same_optimum(examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(problems())
    def check(problem):
        assert_one_optimum(*problem)

    check()


@pytest.mark.parametrize("method", ["tree", "double-binary-tree"])
def test_algorithms_of_another_composition_are_refused(method):
    spec = "lightpath:2x2,lasers=2"
    with pytest.raises(NotApplicable, match=r"not a reduce-scatter followed by an all-gather; use lumorph\.sum-rounds"):
        solve(Task(NAME, spec, method, settings={"collective": "all-reduce"}))
    assert solve(Task("lumorph.sum-rounds", spec, method)).verified


@each(
    ("name", "method"),
    [
        (NAME, "ring"),
        ("lumorph.sum-rounds", "combined-rounds"),
        ("lumorph.sum-rounds", "squares"),
    ],
)
@each("routes", [{"paths": 1}, {"routes": "yen"}])
def test_methods_that_choose_their_routes_refuse_stated_ones(name, method, routes):
    with pytest.raises(MethodMismatch, match="chooses its own routes, not among the stated ones"):
        solve(Task(name, "lightpath:2x2,lasers=2", method, settings=routes))


@pytest.mark.parametrize("name", [NAME, "lumorph.sum-rounds"])
@pytest.mark.parametrize("routes", [{"paths": 1}, {"routes": "yen"}])
def test_stated_routes_are_checked(name, routes):
    spec = "lightpath:1x3,lasers=2"
    assert "candidates" not in solve(Task(name, spec, "highs")).record.violations
    assert solve(Task(name, spec, "highs", settings=routes)).record.violations["candidates"] == 0


def test_a_schedule_off_the_stated_routes_is_refused():
    """Between neighbours of a square, the one route of the program is the arc, and not the way round."""
    spec, model = "lightpath:2x2,lasers=1", formulation(NAME)
    mesh = parse(spec)
    arc_of = {ends: a for a, ends in enumerate(zip(mesh.tail.tolist(), mesh.head.tolist(), strict=True))}
    for path, off in (([(0, 1)], 0), ([(0, 2), (2, 3), (3, 1)], 1)):
        route = [arc_of[ends] for ends in path]
        schedule = direct([0], [0], [1], [0], [0], [0, len(route)], route)
        data = model.prepare(mesh, {"collective": "broadcast", "paths": 1})
        assert model.residuals(data, schedule.values())["candidates"] == off
