"""Integer programs have the same answer in seconds, milliseconds, microseconds, nanoseconds, bytes and gigabytes."""

from __future__ import annotations

import itertools
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from slow_cases import marked

import opticoll as oc
from opticoll.formulations.standard_form import StandardForm
from opticoll.formulations.term_sizes import MISSED
from opticoll.solvers import verify
from opticoll.solvers.adapters.registry import adapters
from opticoll.solvers.compile.scaling import in_units, solve_scaled
from opticoll.solvers.process.isolation import probe
from opticoll.solvers.relaxation import rounded
from opticoll.solvers.task import SolveRequest, Termination

MIXED = [name for name, one in adapters().items() if one.capabilities.mip and one.capabilities.lp]
UNITS = [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e6, 1e9, 8e-9, 2.0**30, 2.0**-30]


def pairs(solvers):
    """Every solver with every unit; quick are three or four units of each solver, and all units among them."""
    every = itertools.product(enumerate(solvers), enumerate(UNITS))
    return [marked(solver, unit, slow=(i + k) % 3 > 0) for (i, solver), (k, unit) in every]


def machines(seed, unit):
    """Jobs on two machines: a makespan after a set-up time, in any unit, and prices in that unit; and its optimum.

    Columns z[j,m], T, s[m]; every fifth program has a job a thousand times as long as the others.
    """
    random = np.random.default_rng(seed)
    jobs = int(random.integers(3, 6))
    length = random.integers(1, 30, jobs) * unit
    length[0] *= 1000 if seed % 5 == 4 else 1
    setup = int(random.integers(1, 15)) * unit
    price = random.integers(0, 9, 2 * jobs) * unit / 2 * (seed % 3 == 1)
    z, T = 2 * jobs, 2 * jobs
    A, low, high = np.zeros((jobs + 5, z + 3)), np.full(jobs + 5, -np.inf), np.zeros(jobs + 5)
    for j in range(jobs):
        A[j, 2 * j : 2 * j + 2], low[j], high[j] = 1.0, 1.0, 1.0
    for m in range(2):
        A[jobs + m, m:z:2], A[jobs + m, [T, T + 1 + m]] = length, [-1.0, 1.0]
        A[jobs + 2 + m, [m, T + 1 + m]] = [setup, -1.0]
    A[jobs + 4, T + 1 :], high[jobs + 4] = 1.0, setup + length.sum()
    upper = np.full(z + 3, np.inf)
    upper[:z] = 1.0
    whole = np.arange(z + 3) < z
    cost = np.concatenate([price, [1.0, 0.0, 0.0]])
    form = StandardForm(sp.csc_array(A), low, high, np.zeros(z + 3), upper, cost, "min", 7 * unit, whole)
    ways = (np.array(way) for way in itertools.product((0, 1), repeat=jobs))
    best = min(
        max(length[way == m].sum() + setup * (way[0] == m) for m in (0, 1)) + price[2 * np.arange(jobs) + way].sum()
        for way in ways
    )
    return form, best + 7 * unit


@pytest.mark.parametrize(("solver", "unit"), pairs(MIXED))
def test_random_programs_in_any_unit(solver, unit):
    if not (adapters()[solver].installed() and probe(solver).usable):
        pytest.skip(f"{solver} is not installed, or has no licence")
    for seed in range(6):
        form, best = machines(seed, unit)
        outcome = solve_scaled(form, solver, SolveRequest(rel_tol=1e-9))
        assert outcome.termination is Termination.OPTIMAL
        assert outcome.objective == pytest.approx(best, rel=1e-6, abs=0)
        assert outcome.bound == pytest.approx(best, rel=2e-5, abs=0)
        assert outcome.bound <= best * (1 + 1e-9)
        assert max(verify.matrix_violations(form, verify.whole(form, outcome.x)).values()) <= verify.FEASIBLE


def knapsack(unit):
    """max 3 x + 5 y + 4 z, 2 x + 3 y + 2 z <= 10, x, y, z in 0..3: 18 at (1, 0, 3), weights and values in a unit."""
    A, cost = sp.csc_array(np.array([[2.0, 3.0, 2.0]]) * unit), np.array([3.0, 5.0, 4.0]) * unit
    ends = np.zeros(3), np.full(3, 3.0)
    return StandardForm(A, np.array([-np.inf]), np.array([10.0]) * unit, *ends, cost, "max", integer=np.ones(3, bool))


@pytest.mark.parametrize(("solver", "unit"), pairs(["cp-sat", "highs", "scip", "gurobi"]))
def test_integer_data_in_any_unit(solver, unit):
    form = knapsack(unit)
    room = form.row_upper * (1 + 1e-9)
    best = max(form.cost @ x for x in itertools.product(range(4), repeat=3) if (form.A @ x <= room).all())
    outcome = solve_scaled(form, solver, SolveRequest())
    assert outcome.termination is Termination.OPTIMAL
    assert outcome.objective == pytest.approx(best, rel=1e-9, abs=0)
    assert outcome.bound == pytest.approx(best, rel=1e-9, abs=0)


@pytest.mark.parametrize("unit", UNITS)
def test_values_of_integer_columns_are_multiples_of_a_step_in_any_unit(unit):
    form = knapsack(unit)
    step, missed = form.objective_steps
    assert float(step) == pytest.approx(unit, rel=1e-9, abs=0)
    assert missed <= MISSED * step
    assert rounded(form, 18.9 * unit) == pytest.approx(18 * unit, rel=1e-12, abs=0)
    for x in itertools.product(range(4), repeat=3):
        value = sum(Fraction(float(c)) * count for c, count in zip(form.cost, x, strict=True))
        assert Fraction(rounded(form, float(value))) >= value, "no value is cut off"


@pytest.mark.parametrize("seed", range(4))
def test_scaling_rounds_nothing_and_its_way_back_is_exact(seed):
    form, best = machines(seed, 1e-9)
    step = in_units(form)
    scaled = step.form
    filled = scaled.A.data[np.abs(scaled.A.data) > 0]
    assert np.abs(filled).min() >= 1e-3
    assert np.abs(filled).max() <= 1e3
    mantissas = [np.sort(np.frexp(one.A.data)[0]) for one in (form, scaled)]
    assert np.array_equal(*mantissas)
    outcome = solve_scaled(form, "highs", SolveRequest())
    assert step.value(step.form.objective(step.begin(outcome.x))) == pytest.approx(best, rel=1e-9, abs=0)


def schedule_in_pyomo(unit):
    """The same three jobs on two machines as :func:`schedule_in_cvxpy`."""
    model = pyo.ConcreteModel()
    lengths = [3.0 * unit, 4.0 * unit, 5.0 * unit]
    model.z = pyo.Var(range(3), range(2), domain=pyo.Binary)
    model.T = pyo.Var(domain=pyo.NonNegativeReals)
    model.one = pyo.Constraint(range(3), rule=lambda m, j: m.z[j, 0] + m.z[j, 1] == 1)
    model.end = pyo.Constraint(range(2), rule=lambda m, k: sum(lengths[j] * m.z[j, k] for j in range(3)) <= m.T)
    model.least = pyo.Objective(expr=model.T)
    return model


def schedule_in_cvxpy(unit):
    """Three jobs of 3, 4 and 5 on two machines: 7."""
    z, T = cp.Variable((3, 2), boolean=True, name="z"), cp.Variable(nonneg=True, name="T")
    rows = [cp.sum(z, axis=1) == 1, np.array([3.0, 4.0, 5.0]) * unit @ z <= T]
    return cp.Problem(cp.Minimize(T), rows)


@pytest.mark.parametrize(
    ("stated", "method"),
    [
        marked(stated, method, slow=method in others)
        for stated, others in ((schedule_in_pyomo, {"highs", "gurobi"}), (schedule_in_cvxpy, {"auto", "scip"}))
        for method in ("auto", "highs", "scip", "gurobi", "certified-branching")
    ],
)
def test_stated_models_have_the_same_answer_and_proof_in_any_unit(stated, method):
    answers = {unit: oc.solve(stated(unit), method=method) for unit in (1.0, 1e-3, 1e-8, 1e-11, 1e9)}
    for unit, result in answers.items():
        assert result.value == pytest.approx(7 * unit, rel=1e-6, abs=0)
        assert result.proof == answers[1.0].proof
        assert result.bound == pytest.approx(answers[1.0].bound * unit, rel=1e-6, abs=0)


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_a_program_without_solution_is_proven_so_in_any_unit(unit):
    model = schedule_in_pyomo(unit)
    model.soon = pyo.Constraint(expr=5.9 * unit >= model.T)
    result = oc.solve(model, method="highs")
    assert result.record.termination is Termination.INFEASIBLE
    assert "rows violated by at least" in result.record.infeasible_by


def test_a_value_that_is_too_small_in_a_tiny_unit_is_a_violation():
    """A makespan of two thirds passed for one at 1e-12 s."""
    for unit in (1.0, 1e-12):
        form, best = machines(0, unit)
        x = solve_scaled(form, "highs", SolveRequest()).x
        x[2 * form.integer.sum() // 2] = (best - form.offset) * 2 / 3
        assert max(verify.matrix_violations(form, x).values()) > 1e-2
