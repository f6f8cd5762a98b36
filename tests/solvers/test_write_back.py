"""The user's model after a solve: what its layer's own solver would set, and nothing of an earlier solve or of ours."""

from __future__ import annotations

import copy
import pickle

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

import opticoll as oc
from opticoll.analysis.result import result as results
from opticoll.solvers.run import Run
from opticoll.solvers.task import Proof, Record, Termination


def cvxpy_problem():
    """A problem whose rows are two sides of x, with a parameter that makes it infeasible."""
    x, most = cp.Variable(2, name="x"), cp.Parameter(name="most", value=4.0)
    return cp.Problem(cp.Maximize(cp.sum(x) + cp.abs(-3)), [x[0] + 2 * x[1] <= most, x[0] <= 3, x >= 0]), most


def pyomo_model(**domain):
    """The same as a Pyomo model, of which a block and another model have a variable each."""
    other, model = pyo.ConcreteModel("other"), pyo.ConcreteModel("one")
    other.x = pyo.Var(bounds=(0, 3), **domain)
    model.most = pyo.Param(initialize=4, mutable=True)
    model.part = pyo.Block()
    model.part.y = pyo.Var(bounds=(0, None))
    model.part.row = pyo.Constraint(expr=other.x + 2 * model.part.y <= model.most)
    model.goal = pyo.Objective(expr=other.x + model.part.y, sense=pyo.maximize)
    model.part.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    for name in ("dual", "rc", "slack", "urc"):
        model.add_component(name, pyo.Suffix(direction=pyo.Suffix.IMPORT))
    return model, other


def test_variables_without_a_name_of_their_own_are_numbered():
    x, y, first, second = cp.Variable(3), cp.Variable(nonneg=True), cp.Variable(name="z"), cp.Variable(name="z")
    problem = cp.Problem(cp.Minimize(cp.sum(x) + 2 * y + first + 3 * second), [x >= 1, first >= 4, second >= 5, y >= 2])
    result = oc.solve(problem)
    assert result.value == problem.value == pytest.approx(3 + 4 + 4 + 15)
    assert list(result.values) == ["variable0", "variable1", "z", "z_2"]
    assert [one.value.tolist() for one in (x, y, first, second)] == [[1, 1, 1], 2, 4, 5]


def numbers(model):
    """All numbers that a solve leaves in a model."""
    if isinstance(model, cp.Problem):
        return [
            model.value,
            *(one.value for one in model.variables()),
            *(one.dual_value for one in model.constraints),
            model.solver_stats,
        ]
    return [
        *(one.value for one in (model.part.y, model.part.row.body.arg(0))),
        *(number for suffix in model.component_objects(pyo.Suffix) for number in suffix.values()),
    ]


def test_duals_reduced_costs_and_slacks_have_the_signs_of_the_layers():
    problem, most = cvxpy_problem()
    oc.solve(problem)
    most.value = 2.0
    oc.solve(problem)
    assert (problem.status, problem.value) == ("optimal", 5.0)
    assert [np.asarray(one.dual_value).tolist() for one in problem.constraints] == [1.0, 0.0, [0.0, 1.0]]
    assert problem.solver_stats.solver_name == "highs"
    model, other = pyomo_model()
    oc.solve(model)
    assert (other.x.value, model.part.y.value) == (3.0, 0.5)
    assert model.dual[model.part.row] == 0.5
    assert (model.rc[other.x], model.rc[model.part.y]) == (0.5, 0.0)
    assert model.slack[model.part.row] == 0.0
    assert not model.part.dual


def test_both_sides_of_a_pyomo_range_are_one_row_with_one_dual():
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], bounds=(0, 9))
    model.range = pyo.Constraint([0, 1], rule=lambda m, i: pyo.inequality(1 + i, m.x[i], 3))
    model.goal = pyo.Objective(expr=2 * model.x[0] - model.x[1])
    for name in ("dual", "slack"):
        model.add_component(name, pyo.Suffix(direction=pyo.Suffix.IMPORT))
    result = oc.solve(model)
    assert result.record.size.constraints == 2
    assert result.duals["range"].tolist() == list(model.dual.values()) == [2.0, -1.0]
    assert [model.slack[row] for row in model.range.values()] == [2.0, -1.0]


ENDINGS = {
    "infeasible": (Termination.INFEASIBLE, "infeasible"),
    "unbounded": (Termination.UNBOUNDED, "unbounded"),
    "unknown": (Termination.INFEASIBLE_OR_UNBOUNDED, "infeasible_or_unbounded"),
    "limit": (Termination.TIME_LIMIT, "user_limit"),
    "stopped": (Termination.INTERRUPTED, "user_limit"),
    "crash": (Termination.CRASHED, None),
}


def ended(termination, values=None, proof=Proof.NONE):
    """A solve that ends so."""

    def run_task(task, **_options):
        record = Record(termination=termination, proof=proof, verified=values is not None)
        return results.Result.of(Run(task, record, values))

    return run_task


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_a_solution_all_numbers_are_gone(ending, monkeypatch):
    termination, status = ENDINGS[ending]
    problem, model = cvxpy_problem()[0], pyomo_model()[0]
    for one in (problem, model):
        oc.solve(one)
        assert all(number is not None for number in numbers(one))
    monkeypatch.setattr(results, "run_task", ended(termination))
    for one in (problem, model):
        oc.solve(one)
    infinite = {"infeasible": -np.inf, "unbounded": np.inf}.get(status)
    value, *others, stats = numbers(problem)
    assert (problem.status, value, stats is None) == (status, infinite, False)
    assert [*others, *numbers(model)] == [None] * 6
    assert model.part.y.stale


def test_an_incumbent_at_a_limit_is_no_optimum(monkeypatch):
    problem, _ = cvxpy_problem()
    values = {"x": np.array([1.0, 0.5])}
    monkeypatch.setattr(results, "run_task", ended(Termination.TIME_LIMIT, values, Proof.FEASIBLE))
    oc.solve(problem)
    assert (problem.status, problem.value) == ("user_limit", 4.5)
    assert [one.dual_value for one in problem.constraints] == [None] * 3
    monkeypatch.setattr(results, "run_task", ended(Termination.OPTIMAL, values, Proof.FEASIBLE))
    oc.solve(problem)
    assert problem.status == "optimal_inaccurate"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_solve_that_breaks_off_leaves_no_numbers_and_a_refusal_changes_nothing(error, monkeypatch):
    problem, model = cvxpy_problem()[0], pyomo_model()[0]
    for one in (problem, model):
        oc.solve(one)
        before = numbers(one)
        with pytest.raises(oc.BadInput):
            oc.solve(one, method="no-such-method")
        assert repr(numbers(one)) == repr(before)

    def broken(*_arguments, **_options):
        raise error

    monkeypatch.setattr(results, "run_task", broken)
    for one in (problem, model):
        with pytest.raises(error):
            oc.solve(one)
        assert set(numbers(one)) == {None}
    assert problem.status is None


def test_integer_programs_have_no_duals():
    model, _ = pyomo_model(domain=pyo.Integers)
    model.dual[model.part.row] = 7.0
    oc.solve(model)
    assert not model.dual
    assert not model.rc
    assert model.slack[model.part.row] == 0.0


def test_results_that_a_layer_kept_in_the_model_are_gone():
    model, _ = pyomo_model()
    model.solutions.solutions.append("of an earlier solve")
    oc.solve(model)
    assert len(model.solutions) == 0


def test_a_block_is_solved_alone():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 2))
    model.part = pyo.Block([1, 2])
    model.part[1].y = pyo.Var(initialize=5)
    model.part[1].row = pyo.Constraint(expr=model.part[1].y >= 2 - model.x)
    model.part[1].cost = pyo.Objective(expr=model.part[1].y + 2 * model.x)
    oc.solve(model.part[1])
    assert (model.x.value, model.part[1].y.value) == (0.0, 2.0)


@pytest.mark.parametrize("form", ["pyomo", "cvxpy"])
def test_a_changed_model_of_ours_forgets_its_solution(form):
    model = oc.model("alltoall.master", "ring:4", form=form)
    assert model.solve().proof == "optimal"
    if form == "pyomo":
        model.pyomo.much = pyo.Constraint(expr=model.pyomo.F >= 100)
    else:
        model.cvxpy = cp.Problem(model.cvxpy.objective, [*model.cvxpy.constraints, model.cvxpy.var_dict["F"] >= 100])
    assert model.solve().termination == "infeasible"
    F = model.pyomo.F if form == "pyomo" else model.cvxpy.var_dict["F"]
    assert F.value is None


# what stays behind


def attributes(problem):
    """Names of the attributes of every object of a CVXPY problem."""
    found, left = {}, [problem]
    while left:
        one = left.pop()
        if id(one) not in found:
            found[id(one)] = sorted(vars(one))
            left += (part for part in vars(one).values() if hasattr(part, "args"))
            left += (
                (part for part in (one.objective, *one.constraints) if one is problem) if one is problem else one.args
            )
    return found


def outcome(problem):
    """What CVXPY finds."""
    problem.solve(solver="CLARABEL")
    return [round(float(problem.value), 6), *(np.round(one.value, 6).tolist() for one in problem.variables())]


def test_a_cvxpy_problem_holds_nothing_of_ours():
    problem, most = cvxpy_problem()
    before = attributes(problem)
    oc.solve(problem)
    assert attributes(problem) == before
    assert problem._cache.param_prog is None
    assert problem._solver_cache == {}
    untouched = cvxpy_problem()[0]
    for copied in (copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):  # noqa: S301
        copied.param_dict["most"].value = untouched.param_dict["most"].value = 2.0
        assert outcome(copied) == outcome(untouched)
        assert most.value == 4.0
    assert problem.value == 6.5  # that of the problem itself, not of a copy


def test_a_compiled_problem_stays_with_cvxpy():
    problem, most = cvxpy_problem()
    problem.solve(solver="CLARABEL")
    kept = problem._cache.param_prog
    most.value = 2.0
    oc.solve(problem)
    assert problem._cache.param_prog is kept
    most.value = 4.0
    assert problem.solve(solver="CLARABEL") == pytest.approx(6.5)


def test_a_pyomo_model_holds_nothing_of_ours():
    model, _ = pyomo_model()
    before = list(vars(model)), [one.name for one in model.component_objects()]
    oc.solve(model)
    assert (list(vars(model)), [one.name for one in model.component_objects()]) == before
    for copied in (model.clone(), pickle.loads(pickle.dumps(model))):  # noqa: S301
        copied.most.value = 6
        assert oc.solve(copied).value == pytest.approx(4.5)
    assert oc.solve(model).value == pytest.approx(3.5)


# without variables


@pytest.mark.parametrize(("left", "termination", "value"), [(1.0, "optimal", 5.0), (3.0, "infeasible", -np.inf)])
def test_a_model_without_variables_is_answered(left, termination, value):
    problem = cp.Problem(cp.Maximize(5), [cp.Constant([0, left]) <= 2, cp.Constant(1) == 1])
    assert oc.solve(problem).termination == termination
    assert (problem.status, problem.value) == (termination, value)
    model = pyo.ConcreteModel()
    model.left = pyo.Param(initialize=left, mutable=True)
    model.row = pyo.Constraint(expr=model.left <= 2)
    model.goal = pyo.Objective(expr=model.left)
    assert oc.solve(model).termination == termination


def test_a_variable_that_nothing_active_mentions_is_left_alone() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], bounds=(0, 4))
    model.z, model.w = pyo.Var(initialize=7.0), pyo.Var(bounds=(3, 9), initialize=5.0)
    model.profit = pyo.Objective(expr=model.x[1] + 2 * model.x[2], sense=pyo.maximize)
    model.total = pyo.Constraint(expr=model.x[1] + model.x[2] <= 5)
    model.off = pyo.Constraint(expr=model.z >= 3)
    model.off.deactivate()
    model.rc = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    assert oc.solve(model).value == pytest.approx(9.0)
    assert (model.z.value, model.w.value, model.z.stale, model.w.stale) == (7.0, 5.0, True, True)
    assert {one.name for one in model.rc} == {"x[1]", "x[2]"}
    model.total.set_value(model.x[1] + model.x[2] >= 50)
    oc.solve(model)
    assert (model.x[1].value, model.z.value) == (None, 7.0)
