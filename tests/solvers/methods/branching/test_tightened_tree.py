"""The tightened tree: the optimum of an enumeration in fractions, and bounds that never pass it, at any capacities."""

from __future__ import annotations

import contextlib
import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.methods.branching.tightened_tree import IntegralRows, TightenedTree, capped
from opticoll.solvers.methods.branching.whole_sides import common_step


def routing(seed):
    """A choice of kappa of a few options per group; capacities over four orders of magnitude, t the largest load."""
    random = np.random.default_rng(seed)
    groups, arcs, kappa = int(random.integers(2, 5)), int(random.integers(2, 5)), int(random.integers(1, 4))
    sizes = random.integers(kappa, kappa + 3, groups)
    columns = int(sizes.sum())
    choose = np.zeros((groups, columns))
    choose[np.repeat(np.arange(groups), sizes), np.arange(columns)] = 1.0
    amount = [np.ones(groups), random.choice([0.5, 1.0, 3.0], groups), random.uniform(0.0, 2.0, groups)][seed % 3]
    load = (random.random((arcs, columns)) < 0.5) * np.repeat(amount, sizes)
    capacity = 10.0 ** random.uniform(-3, 1, arcs)
    A = np.block([[choose, np.zeros((groups, 1))], [load, -capacity[:, None]]])
    most = kappa * amount.sum() / capacity.min()
    equal = np.full(groups, float(kappa))
    return StandardForm(
        sp.csc_array(A),
        np.concatenate([equal, np.full(arcs, -np.inf)]),
        np.concatenate([equal, np.zeros(arcs)]),
        np.zeros(columns + 1),
        np.append(np.ones(columns), most),
        np.append(np.zeros(columns), 1.0),
        "min",
        integer=np.append(np.ones(columns, dtype=bool), False),
    )


def enumerated(form):
    """The optimum of :func:`routing` in exact arithmetic."""
    A, columns = form.A.toarray(), form.cost.size - 1
    groups = int(np.isfinite(form.row_lower).sum())
    choices = [
        itertools.combinations(np.flatnonzero(A[row, :columns]).tolist(), int(form.row_upper[row]))
        for row in range(groups)
    ]
    loads = [[Fraction(value) for value in row] for row in A[groups:].tolist()]
    return min(
        max(sum(load[j] for part in chosen for j in part) / -load[-1] for load in loads)
        for chosen in itertools.product(*choices)
    )


@settings(max_examples=24, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from([np.inf, 1.5, 1.0]))
def test_the_optimum_is_that_of_an_enumeration_in_fractions(seed, above):
    form, found = routing(seed), []
    best = enumerated(form)
    incumbent = np.inf if above == np.inf else above * float(best)
    tree = TightenedTree(form, incumbent=incumbent, on_incumbent=lambda x, value: found.append((x, value)))
    tree.run()
    assert tree.incumbent == pytest.approx(float(best), rel=1e-9)
    assert Fraction(tree.bound) <= best
    assert tree.bound >= float(best) * (1 - 1e-6)
    for x, value in found:
        assert value >= float(best) * (1 - 1e-9)
        assert (form.A @ x <= form.row_upper + 1e-7 * np.maximum(1.0, value)).all()
        assert (form.A @ x >= form.row_lower - 1e-7).all()
        assert np.array_equal(x[:-1], np.rint(x[:-1]))


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 100_000), st.integers(0, 8))
def test_a_stopped_tree_proves_no_more_than_is_true(seed, most):
    form = routing(seed)

    def tick(_incumbent, _bound, nodes, _open):
        if nodes >= most:
            raise TimeoutError

    tree = TightenedTree(form, incumbent=2.0 * float(enumerated(form)), tick=tick)
    with contextlib.suppress(TimeoutError):
        tree.run()
    assert not np.isfinite(tree.bound) or Fraction(tree.bound) <= enumerated(form)


def test_a_wrong_node_solver_proves_nothing():
    form = routing(3)
    best = enumerated(form)
    tree = TightenedTree(form, incumbent=2.0 * float(best))
    honest, random = tree._solver.solve, np.random.default_rng(0)

    def lies(lower, upper):
        state, x, duals = honest(lower, upper)
        return state, x, None if duals is None else random.normal(size=duals.size) * 10

    tree._solver.solve = lies
    tree.run()
    assert Fraction(tree.bound) <= best


def test_rows_limit_what_is_whole():
    form = replace_capacities(routing(0), [0.7, 0.03])
    rows = IntegralRows.of(form)
    assert rows.step.tolist() == [1.0, 1.0]
    upper = np.append(np.ones(form.cost.size - 1), 40.0)
    assert rows.limits(upper) == pytest.approx([28.0, 1.0])


def replace_capacities(form, capacity):
    """The first rows of a routing problem with demands of 1 and other capacities."""
    columns = form.cost.size - 1
    load = np.ones((len(capacity), columns))
    A = sp.csc_array(np.hstack([load, -np.array(capacity)[:, None]]))
    return StandardForm(
        A,
        np.full(len(capacity), -np.inf),
        np.zeros(len(capacity)),
        form.col_lower,
        form.col_upper,
        form.cost,
        "min",
        integer=form.integer,
    )


def test_steps():
    assert common_step(np.array([0.5, 3.0, -1.0])) == 0.5
    assert common_step(np.array([6.0, 4.0])) == 2.0
    assert common_step(np.array([0.1, 0.3])) is None, "0.3 is no multiple of 0.1 in binary"
    assert common_step(np.array([])) is None


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000))
def test_the_limit_of_the_objective_cuts_off_no_point_below_it(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 6))
    cost, integer = random.choice([-2.0, -0.1, 0.0, 0.3, 1.0], n), random.random(n) < 0.5
    lower = random.integers(-3, 1, n).astype(float)
    upper = lower + random.integers(0, 5, n)
    form = StandardForm(sp.csc_array((0, n)), np.zeros(0), np.zeros(0), lower, upper, cost, "min", integer=integer)
    x = random.uniform(lower, upper)
    x[integer] = np.rint(x[integer])
    low, high = capped(form, lower, upper, float(cost @ x))
    assert (low >= lower).all()
    assert (high <= upper).all()
    assert (low <= x + 1e-6).all()
    assert (x <= high + 1e-6).all()
    least = np.where(cost > 0, lower, upper)
    low, high = capped(form, lower, upper, float(cost @ least) - 1.0)
    assert not cost.any() or (low > high).any()
