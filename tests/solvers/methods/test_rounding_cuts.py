"""Cuts of the tableau: exactly valid at any coefficients, and a search that they shorten."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from contexts import context_of

from opticoll.formulations.matrix.program import NAME
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances import MatrixProgram
from opticoll.solvers import solve
from opticoll.solvers.exact.exact_form import ExactForm
from opticoll.solvers.exact.linear import solve_linear
from opticoll.solvers.methods import certified_branching, rounding_cuts
from opticoll.solvers.methods.certified_branching import METHOD
from opticoll.solvers.methods.tightened_tree import reduced_tree
from opticoll.solvers.task import Proof, Task


def program(random, integers, continuous, rows=4):
    """A minimization with bounded columns and coefficients without a step in common, some of them huge or tiny."""
    columns = integers + continuous
    A = random.uniform(-3, 3, (rows, columns)) * 10.0 ** random.integers(-2, 3, (rows, 1))
    A[random.random(A.shape) < 0.3] = 0.0
    if random.random() < 0.3:
        A = np.rint(A)
    lower = random.integers(-2, 1, columns).astype(float)
    upper = lower + random.integers(1, 4, columns)
    inside = A @ (lower + (upper - lower) * random.random(columns))
    return StandardForm(
        A=sp.csc_array(A),
        row_lower=np.where(random.random(rows) < 0.3, inside - 1.0, -np.inf),
        row_upper=inside + random.random(rows),
        col_lower=lower,
        col_upper=upper,
        cost=random.uniform(-2, 2, columns),
        sense="min",
        integer=np.arange(columns) < integers,
    )


def fractions(values):
    return [Fraction(value) for value in values.tolist()]


def solutions(form):
    """All solutions of a program over integers, as fractions."""
    A = [fractions(row) for row in form.A.toarray()]
    ends = zip(form.col_lower.astype(int).tolist(), form.col_upper.astype(int).tolist(), strict=True)
    for x in itertools.product(*(range(low, high + 1) for low, high in ends)):
        activity = [sum(a * v for a, v in zip(row, x, strict=True)) for row in A]
        if all(low <= r <= high for low, r, high in zip(form.row_lower, activity, form.row_upper, strict=True)):
            yield x


def largest(form, coefficients):
    """The largest value of the coefficients over all solutions, in fractions, or None without solutions."""
    best, integers = None, int(np.sum(form.integer))
    ends = zip(form.col_lower[:integers].astype(int), form.col_upper[:integers].astype(int), strict=True)
    for x in itertools.product(*(range(low, high + 1) for low, high in ends)):
        lower, upper = form.col_lower.copy(), form.col_upper.copy()
        lower[:integers] = upper[:integers] = x
        fixed = replace(form, cost=-coefficients, col_lower=lower, col_upper=upper, integer=np.zeros(lower.size, bool))
        answer = solve_linear(ExactForm.of(fixed, Fraction))
        if answer.objective is not None:
            best = -answer.objective if best is None else max(best, -answer.objective)
    return best


def all_cuts(form, random):
    """Cuts of several rounds, and those of random weights at random points."""
    found = rounding_cuts.rounding_cuts(form)
    if found is not None:
        yield from zip(found.matrix.toarray(), found.limit, strict=True)
    system = rounding_cuts._System.of(form)
    for _ in range(20):
        x = form.col_lower + (form.col_upper - form.col_lower) * random.random(form.cost.size)
        weights = random.normal(size=form.row_lower.size) * 10.0 ** random.integers(-14, 3, form.row_lower.size)
        cut = system.cut(weights, np.concatenate([x, form.A @ x]))
        if cut is not None:
            yield cut


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 40))])
def test_every_solution_over_integers_satisfies_every_cut_exactly(seed):
    random = np.random.default_rng(seed)
    form = program(random, integers=4, continuous=0)
    points = list(solutions(form))
    for coefficients, limit in all_cuts(form, random):
        exact = fractions(coefficients)
        assert all(sum(a * v for a, v in zip(exact, x, strict=True)) <= Fraction(float(limit)) for x in points)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_every_mixed_solution_satisfies_every_cut_exactly(seed):
    random = np.random.default_rng(100 + seed)
    form = program(random, integers=2, continuous=2, rows=3)
    for coefficients, limit in itertools.islice(all_cuts(form, random), 8):
        most = largest(form, coefficients)
        assert most is None or most <= Fraction(float(limit))


def test_cuts_are_found_and_close_gaps():
    """The random programs have fractional vertices, so that the tests above check something."""
    counts, closed = 0, 0
    for seed in range(40):
        found = rounding_cuts.rounding_cuts(program(np.random.default_rng(seed), integers=4, continuous=0))
        if found is not None:
            counts += found.limit.size
            closed += found.after > found.before + 1e-6
            assert found.after >= found.before - 1e-9
    assert counts > 20
    assert closed > 8


def test_a_fixed_charge_is_paid_whole():
    """min y with 3 <= f <= 10 y: the relaxation pays 0.3."""
    A = sp.csc_array(np.array([[-10.0, 1.0], [0.0, 1.0]]))
    rows = np.array([-np.inf, 3.0]), np.array([0.0, np.inf])
    form = StandardForm(A, *rows, np.zeros(2), np.array([1.0, 10.0]), np.array([1.0, 0.0]), "min", 0.0, [True, False])
    found = rounding_cuts.rounding_cuts(form)
    assert (found.before, found.after) == (pytest.approx(0.3), pytest.approx(1.0))


def test_a_column_without_a_bound_gives_no_cut():
    A = sp.csc_array(np.array([[2.0, 1.0]]))
    form = StandardForm(
        A, np.ones(1), np.ones(1), np.array([0.0, -np.inf]), np.array([1.0, np.inf]), np.ones(2), "min", 0.0, [True] * 2
    )
    assert rounding_cuts._System.of(form).cut(np.array([0.5]), np.array([0.5, 0.0, 1.0])) is None


def covering(customers=12, plants=8):
    """Plants that serve customers nearby, with one row for each plant: its share of all customers' demand."""
    random = np.random.default_rng(3)
    near = random.random((customers, plants)) < 0.35
    near[np.arange(customers), random.integers(0, plants, customers)] = True
    pairs = np.argwhere(near)
    A = np.zeros((customers + plants, plants + len(pairs)))
    for column, (customer, plant) in enumerate(pairs.tolist(), start=plants):
        A[customer, column] = A[customers + plant, column] = 1.0
    A[customers + np.arange(plants), np.arange(plants)] = -float(customers)
    low = np.append(np.ones(customers), np.full(plants, -np.inf))
    high = np.append(np.ones(customers), np.zeros(plants))
    cost = np.append(np.sqrt(np.arange(2.0, plants + 2)), np.zeros(len(pairs)))
    lower, upper = np.zeros(cost.size), np.ones(cost.size)
    return StandardForm(sp.csc_array(A), low, high, lower, upper, cost, "min", 0.0, np.arange(cost.size) < plants), near


def test_a_tree_with_cuts_needs_fewer_nodes():
    form, near = covering()
    optimum = min(
        form.cost[: near.shape[1]] @ chosen
        for chosen in map(np.array, itertools.product([0, 1], repeat=near.shape[1]))
        if (near @ chosen > 0).all()
    )
    plain = reduced_tree(form, incumbent=optimum * 1.001)
    plain.run()
    tree = reduced_tree(form, incumbent=optimum * 1.001, cut=True)
    tree.run()
    assert tree.cuts > 0 == plain.cuts
    assert tree.nodes < plain.nodes
    assert (tree.incumbent, tree.bound) == (pytest.approx(optimum), pytest.approx(optimum, rel=1e-6))


def test_a_search_that_does_not_move_is_repeated_with_cuts(monkeypatch):
    monkeypatch.setattr(certified_branching, "LONG", 2)
    monkeypatch.setattr(certified_branching, "LONGER", 4)
    monkeypatch.setattr(certified_branching, "PROGRESS", 2.0)
    form, _ = covering()
    A = sp.csc_array(form.A)
    A.sort_indices()
    instance = MatrixProgram(
        indptr=A.indptr.astype(np.int64),
        indices=A.indices.astype(np.int64),
        data=A.data,
        row_lower=form.row_lower,
        row_upper=form.row_upper,
        col_lower=form.col_lower,
        col_upper=form.col_upper,
        cost=form.cost,
        offset=0.0,
        integer=np.asarray(form.integer),
        sense="min",
        column_names=tuple(f"x{j}" for j in range(A.shape[1])),
        row_names=tuple(f"r{i}" for i in range(A.shape[0])),
    )
    answer = run_here(instance)
    assert "rounding cuts" in answer.bound_source
    record = solve.solve(Task(NAME, instance)).record
    assert record.proof is Proof.OPTIMAL
    assert answer.bound == pytest.approx(record.objective, rel=1e-6)


def run_here(instance):
    """``certified-branching`` in this process."""
    task = Task(NAME, instance, settings={"search_s": 1.0}, method=METHOD.name)
    return certified_branching.run(context_of(task))
