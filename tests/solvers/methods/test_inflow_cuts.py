"""Cuts of fixed-charge flows: every solution of an enumeration satisfies them exactly, and gaps close."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.methods.inflow_cuts import inflows, with_inflow_cuts
from opticoll.solvers.methods.tightened_tree import reduced_tree


def fixed_charges(seed):
    """Flow from node 0 to random demands over arcs that binaries open, some two arcs by one; charges and costs."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 5))
    arcs = [pair for pair in itertools.permutations(range(n), 2) if pair[1] != 0]
    demand = random.integers(0, 3, n).astype(float)
    demand[0] = 0.0
    f, y = len(arcs), max(2, len(arcs) - int(random.integers(3)))
    opened = np.arange(f) % y
    rows, low, high = [], [], []
    for node in range(1, n):
        row = np.zeros(f + y)
        for k, (i, j) in enumerate(arcs):
            row[k] = float(j == node) - float(i == node)
        rows.append(row)
        low.append(demand[node])
        high.append(demand[node] if random.random() < 0.7 else np.inf)
    for k in range(f):
        row = np.zeros(f + y)
        row[k], row[f + opened[k]] = 1.0, -(demand.sum() + 1.0)
        rows.append(row)
        low.append(-np.inf)
        high.append(0.0)
    sign = np.where(random.random(len(rows)) < 0.5, -1.0, 1.0)  # either side of a row may be the one with the cut
    A = sign[:, None] * np.array(rows)
    low, high = np.where(sign > 0, low, -np.array(high)), np.where(sign > 0, high, -np.array(low))
    cost = np.concatenate([random.integers(0, 3, f), random.integers(1, 9, y)]).astype(float)
    upper = np.concatenate([np.full(f, np.inf), np.ones(y)])
    integer = np.arange(f + y) >= f
    return StandardForm(sp.csc_array(A), low, high, np.zeros(f + y), upper, cost, "min", integer=integer)


def enumerated(form):
    """The optimum: the least of the LPs for all choices of the binaries whose charges alone are not above another."""
    best, A = np.inf, form.A.toarray()
    up, down = np.isfinite(form.row_upper), np.isfinite(form.row_lower)
    f = int((~form.integer).sum())
    choices = np.array(list(itertools.product([0.0, 1.0], repeat=form.cost.size - f)))
    charges = choices @ form.cost[f:]
    for place in np.argsort(charges).tolist():
        if charges[place] >= best:  # flows cost nothing or more
            break
        bounds = [(0.0, None)] * f + [(value, value) for value in choices[place].tolist()]
        rows = np.concatenate([A[up], -A[down]]), np.concatenate([form.row_upper[up], -form.row_lower[down]])
        answer = linprog(form.cost, *rows, bounds=bounds)
        best = min(best, answer.fun if answer.status == 0 else np.inf)
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 100_000))
def test_every_solution_of_a_row_satisfies_its_cut_exactly(seed):
    random = np.random.default_rng(seed)
    k, out = int(random.integers(1, 4)), int(random.integers(0, 3))
    other = int(random.integers(0, 2))  # a column of the row that nothing switches
    f, y = k + out + other, int(random.integers(1, k + 1))
    row = np.concatenate([random.integers(1, 3, k), -random.integers(1, 3, out), np.ones(other), np.zeros(y)])
    opened, most = random.integers(0, y, k), 7.0
    switches = np.zeros((k, f + y))
    switches[np.arange(k), np.arange(k)], switches[np.arange(k), f + opened] = 1.0, -most
    end = float(random.integers(0, 4))
    columns = f + y
    form = StandardForm(
        sp.csc_array(np.vstack([row, switches])),
        np.full(k + 1, -np.inf),
        np.append(end, np.zeros(k)),
        np.zeros(columns),
        np.append(np.full(f, 3.0), np.full(y, 2.0)),
        np.zeros(columns),
        "min",
        integer=np.arange(columns) >= f,
    )
    point = np.append(random.uniform(0.0, 3.0, f), random.uniform(0.0, 0.3, y))
    cuts = [cut for inflow in inflows(form) if (cut := inflow.cut(point)) is not None]
    points = np.array([*itertools.product(*[range(4)] * f, *[range(3)] * y)], dtype=float)
    solutions = points[(points @ row <= end) & (points @ switches.T <= 0).all(axis=1)]
    assert len(solutions) > 1
    for _, at, entries in cuts:
        assert (solutions[:, at] @ entries <= 0.0).all()
    for violation, at, entries in cuts:
        assert entries @ point[at] == pytest.approx(violation)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 100_000))
def test_the_optimum_stays_that_of_an_enumeration(seed):
    form = fixed_charges(seed)
    best, found = enumerated(form), []
    tree = reduced_tree(form, flows=True, on_incumbent=lambda x, value: found.append(value))
    tree.run()
    assert tree.incumbent == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert tree.bound <= best + 1e-9 + 1e-9 * abs(best)
    again = enumerated(with_inflow_cuts(form))
    assert again == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_gaps_close():
    before, after = [], []
    for seed in range(8):
        form = fixed_charges(seed)
        larger = with_inflow_cuts(form)
        relaxed = [replace(one, integer=np.zeros(one.cost.size, dtype=bool)) for one in (form, larger)]
        values = []
        for one in relaxed:
            tree = reduced_tree(one)
            tree.run()
            values.append(tree.bound)
        best = enumerated(form)
        assert values[0] <= values[1] + 1e-6
        assert values[1] <= best + 1e-6
        before.append(best - values[0])
        after.append(best - values[1])
    assert sum(after) < 0.5 * sum(before)


def test_columns_that_may_be_negative_or_that_nothing_switches_give_no_cut():
    form = fixed_charges(0)
    assert inflows(form)
    assert not inflows(replace(form, col_lower=np.where(form.integer, 0.0, -1.0)))
    columns = form.cost.size  # one more, in all rows, that nothing switches
    column = np.zeros((form.A.shape[0], 1))
    column[np.diff(form.A.tocsr().indptr) > 2] = 1.0
    for low, count in ((0.0, len(inflows(form))), (-1.0, 0)):
        larger = replace(
            form,
            A=sp.csc_array(sp.hstack([form.A, column])),
            col_lower=np.append(form.col_lower, low),
            col_upper=np.append(form.col_upper, 1.0),
            cost=np.append(form.cost, 0.0),
            integer=np.append(form.integer, False),
        )
        assert larger.cost.size == columns + 1
        assert len(inflows(larger)) == count
    assert not inflows(replace(form, integer=np.zeros(form.cost.size, dtype=bool)))
    assert with_inflow_cuts(replace(form, integer=np.zeros(form.cost.size, dtype=bool))).A.shape == form.A.shape
