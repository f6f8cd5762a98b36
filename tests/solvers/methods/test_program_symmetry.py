"""Rows that break symmetries of a program: verified symmetries, the same optimum, and a search that ends."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from contexts import context_of

from opticoll.formulations import formulation
from opticoll.formulations.model import build_model
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances import parse
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods import certified_branching
from opticoll.solvers.methods.certified_branching import METHOD
from opticoll.solvers.methods.program_symmetry import ordered, symmetries
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Task


def program(A, low, high, cost, integer, upper=1.0):
    """A minimization with columns between 0 and ``upper``."""
    A = sp.csc_array(np.atleast_2d(np.array(A, dtype=float)))
    columns = A.shape[1]
    return StandardForm(
        A=A,
        row_lower=np.array(low, dtype=float),
        row_upper=np.array(high, dtype=float),
        col_lower=np.zeros(columns),
        col_upper=np.broadcast_to(np.array(upper, dtype=float), columns).copy(),
        cost=np.array(cost, dtype=float),
        sense="min",
        integer=np.array(integer, dtype=bool),
    )


def feasible(form):
    """All binary solutions of a program without continuous columns, and their values."""
    result = {}
    A = form.A.toarray()
    for x in itertools.product([0.0, 1.0], repeat=form.cost.size):
        activity = A @ x
        if (activity >= form.row_lower - 1e-9).all() and (activity <= form.row_upper + 1e-9).all():
            result[x] = float(form.cost @ x)
    return result


def circulant(random):
    """A program over nine binaries with a cyclic shift by three, the same rows shifted, and shifted costs."""
    rows = np.concatenate([[np.roll(row, 3 * k) for k in range(3)] for row in random.integers(-2, 3, (2, 9))])
    limit = np.repeat(random.integers(0, 4, 2), 3)
    return program(rows, np.full(6, -np.inf), limit, np.tile(random.integers(-3, 4, 3), 3), np.ones(9))


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_stays(seed):
    form = circulant(np.random.default_rng(seed))
    smaller = ordered(form)
    assert smaller is not None
    all_of, kept = feasible(form), feasible(smaller)
    assert min(kept.values()) == min(all_of.values())
    assert set(kept) <= set(all_of)
    assert max(x for x, value in all_of.items() if value == min(all_of.values())) in kept


@pytest.mark.parametrize("seed", range(6))
def test_a_symmetry_maps_solutions_to_solutions_of_equal_value(seed):
    form = circulant(np.random.default_rng(100 + seed))
    solutions = feasible(form)
    found = list(symmetries(form))
    assert found
    for image in found:
        assert sorted(image.tolist()) == list(range(9))
        assert all(solutions[tuple(np.array(x)[image])] == value for x, value in solutions.items())


def test_the_symmetric_group_gives_a_chain_of_inequalities():
    form = program(np.ones(4), [2.0], [2.0], np.zeros(4), np.ones(4))
    assert list(feasible(ordered(form))) == [(1.0, 1.0, 0.0, 0.0)]


def test_bounds_costs_entries_rows_and_integrality_distinguish_columns():
    plain = program(np.ones(2), [1.0], [1.0], np.zeros(2), np.ones(2))
    assert ordered(plain) is not None
    assert ordered(replace(plain, cost=np.array([0.0, 1.0]))) is None
    assert ordered(replace(plain, integer=np.array([True, False]))) is None
    assert ordered(replace(plain, col_lower=np.array([0.0, 1.0]))) is None
    assert ordered(replace(plain, A=sp.csc_array(np.array([[1.0, 2.0]])))) is None
    two = program([[1, 1], [1, 0], [0, 1]], [1.0, 0, 0], [1.0, 1, 1], np.zeros(2), np.ones(2))
    assert ordered(two) is not None
    assert ordered(replace(two, row_upper=np.array([1.0, 1.0, 2.0]))) is None


def test_integers_with_other_bounds_are_not_compared():
    assert ordered(program(np.ones(3), [2.0], [2.0], np.zeros(3), np.ones(3), upper=2.0)) is None


def test_continuous_columns_move_along():
    """Two copies of a binary and the flow that it opens."""
    A = [[-1, 1, 0, 0], [0, 0, -1, 1], [0, 1, 0, 1]]
    form = program(A, [-np.inf, -np.inf, 1], [0, 0, 1], [1, 0, 1, 0], [True, False, True, False])
    (image,) = symmetries(form)
    assert image.tolist() == [2, 1, 0, 3]
    row = ordered(form).A.toarray()[-1]
    assert row @ [1, 0, 0, 0] > 0 > row @ [0, 0, 1, 0]


def test_designs_of_equal_nodes_are_ordered():
    data = formulation("topology.design").prepare(parse("servers:n=5,degree=2,traffic=alltoall"), {"directed": True})
    form = compile_model(data.pyomo())
    smaller = ordered(form)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    # 19 images of the first link, then of the second, third under the symmetries that keep the ones before it.
    assert smaller.row_lower.size - form.row_lower.size == 19 + 2 + 1
    assert smaller.A.shape[1] == form.A.shape[1]
    assert len(pairs) == 20


def test_a_long_search_is_repeated_with_the_rows(monkeypatch):
    monkeypatch.setattr(certified_branching, "LONG", 5)
    settings = {"directed": True, "search_s": 1.0}
    task = Task("topology.design", "servers:n=5,degree=2,traffic=alltoall", settings=settings, method=METHOD.name)
    plan, context = make_plan(task), context_of(task)
    proof = certified_branching._Proof(context, compile_model(build_model(plan.problem, "pyomo")))
    proof.search()
    answer = proof.prove()
    assert answer.bound == pytest.approx(1 / 3, rel=1e-6)
    assert "verified symmetries" in answer.bound_source
