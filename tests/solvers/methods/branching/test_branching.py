"""The certified tree: its optimum is that of another solver, its bound holds whenever it stops, no leaf is trusted."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.methods.branching.branching_tree import BranchingTree, LeafBounds, NodeSolver
from opticoll.solvers.methods.branching.certified_branching import _Proof
from opticoll.solvers.relaxation import rounded
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task


def program(seed, *, rows=4, columns=6, continuous=2, equalities=1):
    """A random bounded program, sometimes without a solution."""
    random = np.random.default_rng(seed)
    A = random.integers(-4, 6, (rows, columns)).astype(float) * (random.random((rows, columns)) < 0.7)
    upper = random.integers(2, 12, rows).astype(float)
    lower = np.where(np.arange(rows) < equalities, upper, upper - random.integers(1, 9, rows))
    integer = np.arange(columns) >= continuous
    cost = random.integers(-5, 9, columns).astype(float) + (0.0 if seed % 2 else random.random(columns))
    return StandardForm(
        sp.csc_array(A),
        lower,
        upper,
        random.integers(-2, 1, columns).astype(float),
        random.integers(1, 5, columns).astype(float),
        cost,
        "min",
        offset=1.5,
        integer=integer,
    )


def answer_of(form):
    result = milp(
        form.cost,
        constraints=LinearConstraint(form.A, form.row_lower, form.row_upper),
        bounds=Bounds(form.col_lower, form.col_upper),
        integrality=np.asarray(form.integer, dtype=int),
        options={"mip_rel_gap": 0.0},
    )
    return result.fun + form.offset if result.success else np.inf


@settings(max_examples=24, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 3), st.integers(0, 2))
def test_the_optimum_is_another_solvers(seed, continuous, equalities):
    form = program(seed, continuous=continuous, equalities=equalities)
    tree = BranchingTree(form, tol=1e-9)
    tree.run()
    best = answer_of(form)
    assert tree.incumbent == pytest.approx(best, abs=1e-5)
    if np.isfinite(best):
        assert tree.bound == pytest.approx(best, abs=1e-5)
        assert tree.x is not None
        assert (form.A @ tree.x <= form.row_upper + 1e-6).all()
        assert (form.A @ tree.x >= form.row_lower - 1e-6).all()
    elif not tree.unproven:
        assert tree.bound == np.inf


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12))
def test_a_stopped_tree_proves_no_more_than_is_true(seed, most):
    form = program(seed, rows=6, columns=9)

    def tick(_incumbent, _bound, nodes, _open):
        if nodes >= most:
            raise TimeoutError

    tree = BranchingTree(form, tick=tick)
    with contextlib.suppress(TimeoutError):
        tree.run()
    assert tree.bound <= answer_of(form) + 1e-6


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_any_duals_bound_and_no_ray_empties_what_is_not_empty(seed, other):
    form = program(seed, equalities=0)
    leaf, best = LeafBounds.of(form), answer_of(form)
    y = np.random.default_rng(other).normal(size=form.A.shape[0])
    assert leaf.bound(y, form.col_lower, form.col_upper) <= best + 1e-7
    if np.isfinite(best):
        assert not leaf.empty(y, form.col_lower, form.col_upper)
        assert not leaf.empty(np.full(y.size, np.inf), form.col_lower, form.col_upper)
    assert not leaf.empty(0 * y, form.col_lower, form.col_upper)


def test_a_wrong_node_solver_proves_nothing():
    form = program(3, rows=3, columns=5)
    best = answer_of(form)
    tree = BranchingTree(form)
    honest = tree._solver.solve
    random = np.random.default_rng(0)

    def lies(lower, upper):
        state, x, duals = honest(lower, upper)
        return state, x, None if duals is None else random.normal(size=duals.size) * 10

    tree._solver.solve = lies
    tree.run()
    assert tree.bound <= best + 1e-6


def test_whole_objectives_round():
    form = program(1, continuous=0)
    assert form.objective_steps is not None
    assert rounded(form, 2.1) >= 2.1
    mixed = program(1, continuous=2)
    assert mixed.objective_steps is None
    assert rounded(mixed, 2.1) == 2.1
    assert rounded(form, 3.5 + 1e-9) == 3.5, "round-off is no step"


def test_a_formulation_is_proven_by_certified_leaves():
    task = Task(
        "lumorph.rounds",
        "lightpath:2x2,lasers=1",
        method="certified-branching",
        form="cvxpy",
        settings={"collective": "broadcast", "bounds": "false", "search_s": "600"},
    )
    run = solve(task)
    assert (run.objective, run.bound, run.proof) == (2, 2, "optimal")
    assert "recomputed duals" in run.record["bound_source"]
    assert run.record["metrics"]["unproven_leaves"] == 0


def test_a_relaxation_that_fails_from_the_last_basis_is_solved_from_none():
    """HiGHS ends some hot starts with an error and no status."""
    form = StandardForm(
        sp.csc_array(np.array([[1.0, 1.0]])),
        np.ones(1),
        np.full(1, np.inf),
        np.zeros(2),
        np.ones(2),
        np.array([1.0, 2.0]),
        "min",
    )
    solver = NodeSolver(form)
    highs, states = solver._highs, ["kNotset"]

    class Failing:
        def __getattr__(self, name):
            return getattr(highs, name)

        def getModelStatus(self):
            return SimpleNamespace(name=states.pop()) if states else highs.getModelStatus()

    solver._highs = Failing()
    state, x, duals = solver.solve(form.col_lower, form.col_upper)
    assert (state, x.tolist(), duals.tolist()) == ("optimal", [1.0, 0.0], [1.0])


def with_optimum_zero():
    """min y  s.t.  y >= 2 (x_1 + ... + x_8) - 16,  x_1 + ... + x_8 >= 7.5: y = 0 also for fractional x."""
    columns = 8
    sums = np.ones(columns)
    return StandardForm(
        sp.csc_array(np.vstack([np.append(-2.0 * sums, 1.0), np.append(sums, 0.0)])),
        np.array([-16.0, 7.5]),
        np.full(2, np.inf),
        np.zeros(columns + 1),
        np.append(sums, 9.0),
        np.append(0.0 * sums, 1.0),
        "min",
        integer=np.arange(columns + 1) < columns,
    )


def test_an_optimum_of_zero_is_proven_although_bounds_are_rounded(monkeypatch):
    exact = LeafBounds.bound
    monkeypatch.setattr(LeafBounds, "bound", lambda self, *args: exact(self, *args) - 4e-14)
    tree = BranchingTree(with_optimum_zero(), incumbent=0.0)
    tree.run()
    assert (tree.bound, tree.nodes, tree.exact) == (0.0, 1, 1)


@pytest.mark.parametrize(("found", "kept"), [(-2e-15, -2e-15), (-1e-7, 0.0), (1e-15, 0.0)])
def test_a_value_is_not_excluded_by_a_bound_that_only_rounding_puts_past_it(found, kept):
    search = SimpleNamespace(form=with_optimum_zero(), x=np.append(np.ones(8), found), value=found)
    _Proof._settle(search)
    assert search.value == kept
    assert search.x[-1] == 0
