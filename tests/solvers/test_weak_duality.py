"""Bounds from duals hold in exact arithmetic, whatever the duals: compared with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers import verify
from opticoll.solvers.verify import WeakDuality

INF = np.inf


def form_of(A, rows, columns, cost, sense="min", offset=0.0, integer=None):
    A = np.asarray(A, dtype=float)
    arrays = [np.asarray(side, dtype=float) for side in (*rows, *columns, cost)]
    return StandardForm(sp.csc_array(A), *arrays, sense, offset, integer)


def exact_dot(a, b):
    return sum((Fraction(float(u)) * Fraction(float(v)) for u, v in zip(a, b, strict=True)), Fraction(0))


def holds(bound, value, sense):
    """Whether a bound is on the right side of an exact value."""
    if not np.isfinite(bound):
        return bound == (INF if sense == "max" else -INF)
    return Fraction(bound) >= value if sense == "max" else Fraction(bound) <= value


def numbers(random, size, spread):
    """Floats over ``spread`` orders of magnitude, some of them 0, half of them negative."""
    result = random.choice([-1.0, 1.0], size) * 10.0 ** random.uniform(-spread / 2, spread / 2, size)
    return np.where(random.random(size) < 0.2, 0.0, result)


def adversarial(random, y, null):
    """Duals that a faulty solver might return."""
    which = random.integers(0, 10)
    if which == 0:
        return y
    if which <= 3:
        return y + null * random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(0, 16)
    if which == 4:
        return -y
    if which == 5:
        return np.where(random.random(y.size) < 0.5, random.choice([1e200, -1e200, 1e308]), y)
    if which == 6:
        return np.where(random.random(y.size) < 0.5, random.choice([5e-324, -3e-310]), y)
    if which == 7:
        return np.where(random.random(y.size) < 0.4, random.choice([np.nan, INF, -INF]), y)
    if which == 8:
        return y * (1.0 + 1e-12 * random.normal(size=y.size))
    return numbers(random, y.size, 32.0)


def solve_exactly(rows, right):
    """The only solution of a square system of fractions; None if there is none or more."""
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    size = len(table)
    for k in range(size):
        pivot = next((i for i in range(k, size) if table[i][k] != 0), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [value / table[k][k] for value in table[k]]
        for i in range(size):
            if i != k and table[i][k] != 0:
                table[i] = [a - table[i][k] * b for a, b in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


def exact_optimum(form):
    """The least objective over all vertices; None if there is no vertex. The columns are bounded."""
    n = form.A.shape[1]
    dense = [*form.A.toarray().tolist(), *np.eye(n).tolist()]
    normals = [[Fraction(value) for value in row] for row in dense]
    low = [*form.row_lower.tolist(), *form.col_lower.tolist()]
    high = [*form.row_upper.tolist(), *form.col_upper.tolist()]
    faces = [
        (normal, Fraction(end))
        for normal, one, two in zip(normals, low, high, strict=True)
        for end in {one, two}
        if np.isfinite(end)
    ]
    best = None
    for chosen in combinations(faces, n):
        x = solve_exactly([face[0] for face in chosen], [face[1] for face in chosen])
        if x is None:
            continue
        for normal, one, two in zip(normals, low, high, strict=True):
            value = sum((a * b for a, b in zip(normal, x, strict=True)), Fraction(0))
            if value < one or value > two:
                break
        else:
            value = sum((Fraction(c) * v for c, v in zip(form.cost.tolist(), x, strict=True)), Fraction(0))
            best = value if best is None else min(best, value)
    return best


def test_no_bound_is_beyond_the_exact_optimum():
    random = np.random.default_rng(5)
    solved = 0
    for _ in range(30):
        A = numbers(random, (3, 2), 16.0)
        A[2] = 4.0 * A[0]
        low, high = -np.abs(numbers(random, 3, 8.0)), np.abs(numbers(random, 3, 8.0))
        form = form_of(A, (low, high), ([0.0, -1.0], [10.0 ** random.uniform(-8, 8), 2.0]), numbers(random, 2, 16.0))
        best = exact_optimum(form)
        if best is None:
            continue
        solved += 1
        for _ in range(20):
            y = adversarial(random, numbers(random, 3, 16.0), np.array([4.0, 0.0, -1.0]))
            assert holds(verify.dual_bound(form, y), best, "min")
    assert solved > 15


def test_optimal_duals_with_noise_prove_almost_the_optimum():
    """max x + y over x + 2y <= 4, 3x + y <= 6, plus 5: 7.8; the rows bound the columns."""
    form = form_of([[1, 2], [3, 1]], ([-INF, -INF], [4, 6]), ([0, 0], [INF, INF]), [1, 1], "max", 5.0)
    for noise in (0.0, 1e-13, -1e-13):
        bound = verify.dual_bound(form, np.array([0.4, 0.2 + noise]))
        assert holds(bound, Fraction(39, 5), "max")
        assert bound == pytest.approx(7.8, rel=1e-11)


def test_the_objective_bounds_columns_that_the_rows_leave_open():
    """min t with f1 + f2 >= 1, f_i <= t: 1/2. Nothing but the objective bounds t, and with it the flows."""
    A = [[1, 1, 0], [1, 0, -1], [0, 1, -1]]
    form = form_of(A, ([1, -INF, -INF], [INF, 0, 0]), ([0, 0, 0], [INF] * 3), [0, 0, 1])
    for noise in (0.0, 1e-13, -1e-13):
        bound = verify.dual_bound(form, np.array([0.5, -0.5, -0.5 - noise]))
        assert 0.5 * (1 - 1e-11) <= bound <= 0.5


def test_where_no_column_bound_is_implied_there_is_no_bound():
    """min -x with x >= 0 is unbounded: no duals bound it."""
    form = form_of([[1.0]], ([0.0], [INF]), ([0.0], [INF]), [-1.0])
    assert all(verify.dual_bound(form, np.array([y])) == -INF for y in (0.0, 1.0, -1.0, 1e300, np.nan))


def test_a_ray_proves_emptiness_only_if_there_is_none():
    form = form_of([[1.0, 1.0]], ([3.0], [INF]), ([0.0, 0.0], [1.0, 1.0]), [1.0, 1.0])
    problem = WeakDuality.of(form)
    assert problem.empty(np.array([1.0]))
    assert not problem.empty(np.array([1.0]), upper=np.array([1.0, 2.0]))
    assert not problem.empty(np.array([-1.0]))


def test_an_exact_value_is_not_moved():
    form = form_of([[1.0]], ([2.0], [INF]), ([0.0], [INF]), [3.0], offset=-6.0)
    assert verify.dual_bound(form, np.array([0.0])) == -6.0
    zero = form_of([[1.0]], ([0.0], [0.0]), ([0.0], [1.0]), [0.0])
    assert verify.dual_bound(zero, np.array([0.0])) == 0.0


def test_intervals_of_reduced_costs_contain_them():
    """Costs that cancel against the duals: what is left of c - A' y is below the rounding of its terms."""
    random = np.random.default_rng(3)
    missed = 0
    for _ in range(200):
        m, n = random.integers(2, 8, 2)
        A, y = numbers(random, (m, n), 6.0), numbers(random, m, 6.0)
        cost = A.T @ y * random.choice([1.0, 1.0 + 2.0**-52], n)
        problem = WeakDuality.of(form_of(A, ([0.0] * m, [1.0] * m), ([0.0] * n, [1.0] * n), cost))
        exact = [Fraction(float(c)) - exact_dot(column, y) for c, column in zip(cost, A.T, strict=True)]
        least, most = problem.reduced(y, cost)
        assert all(Fraction(low) <= z <= Fraction(high) for low, z, high in zip(least, exact, most, strict=True))
        missed += sum(Fraction(z) != true for z, true in zip(cost - A.T @ y, exact, strict=True))
    assert missed > 100  # ordinary arithmetic alone is wrong
