"""Fillings of the rows that bind, against enumerations: sums, bounds and solutions of random load programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.methods import row_fillings
from opticoll.solvers.methods.row_fillings import LoadProgram, bound_by_fillings, list_sums
from opticoll.solvers.verify import matrix_violations


def load_program(seed, equal=False):
    """Groups that choose columns with random loads; with ``equal``, loads that are 0 or 1, of which many are equal."""
    random = np.random.default_rng(seed)
    groups, rows = int(random.integers(4, 7)), int(random.integers(2, 5))
    group = np.repeat(np.arange(groups), random.integers(2, 5, groups))
    size = group.size
    weight = np.ones(groups) if equal else random.uniform(0.1, 2.0, groups)
    loads = random.integers(0, 2, (rows, size)) * weight[group]
    loads[:, random.random(size) < 0.2] *= 1.5
    upper = random.integers(1, 3, size).astype(float)
    count = np.minimum(random.integers(1, 3, groups), np.bincount(group, upper)).astype(float)
    slope = random.choice([0.5, 1.0, 2.0], rows)
    limit = random.uniform(-0.5, 0.0, rows)
    sign = np.where(random.random(rows) < 0.5, -1.0, 1.0)  # rows are stated "at most" or "at least"
    A = np.vstack([sign[:, None] * np.column_stack([loads, -slope]), np.eye(groups)[:, group] @ np.eye(size, size + 1)])
    low = np.concatenate([np.where(sign > 0, -np.inf, -limit), count])
    high = np.concatenate([np.where(sign > 0, limit, np.inf), count])
    price, whole = float(random.choice([1.0, 0.25])), np.arange(size + 1) < size
    cost, ends = np.where(whole, 0.0, price), np.append(upper, np.inf)
    return StandardForm(sp.csc_array(A), low, high, np.zeros(size + 1), ends, cost, "min", offset=0.5, integer=whole)


def optimum(form):
    """The least value over all choices of the columns, group by group."""
    A, t = form.A.toarray(), form.cost.size - 1
    loaded = A[:, t] != 0
    sums = np.zeros((1, int(loaded.sum())))
    for row in np.flatnonzero(~loaded).tolist():
        columns = np.flatnonzero(A[row])
        choices = itertools.product(*(range(int(u) + 1) for u in form.col_upper[columns]))
        chosen = np.array([x for x in choices if sum(x) == form.row_upper[row]], dtype=float)
        sums = (sums[:, None] + (chosen @ A[loaded][:, columns].T)[None]).reshape(-1, sums.shape[1])
    end = np.where(np.isfinite(form.row_upper), form.row_upper, form.row_lower)[loaded]
    return float(((sums - end) / -A[loaded, t]).max(axis=1).min()) * form.cost[t] + form.offset


def checked(form, above):
    """Whether bound and incumbent meet for a program whose incumbent is this far above its optimum; both hold."""
    best, found = optimum(form), []
    incumbent = best + above * abs(best) + 1e-9
    bound = bound_by_fillings(LoadProgram.of(form), incumbent, on_incumbent=lambda x, value: found.append((x, value)))
    assert bound <= best + 1e-7 * abs(best)
    for x, value in found:
        assert value >= best - 1e-7 * abs(best)
        assert max(matrix_violations(form, x).values()) <= 1e-6
        incumbent = min(incumbent, value)
    return incumbent - bound <= 2e-6 * abs(best)


@pytest.mark.parametrize("first", [1 / 64, 1.0])
def test_bounds_hold_and_meet_the_solutions_of_most_programs_with_real_loads(monkeypatch, first):
    monkeypatch.setattr(row_fillings, "FIRST", first)
    met = [checked(load_program(seed), (0.0, 0.02, 0.5)[seed % 3]) for seed in range(60)]
    assert sum(met) >= 50


def none(solution, program, rows, load, most):
    """No solution is found."""


def worse(solution, program, rows, load, most):
    """A solution with a larger t than it needs."""
    x = solution(program, rows, load, most)
    return None if x is None else x + 0.3 * (np.arange(x.size) == program.t)


@pytest.mark.parametrize("found", [LoadProgram.solution, none, worse])
@pytest.mark.parametrize("filled", [1, 5])
@pytest.mark.parametrize("most_returned", [20_000, 1])
def test_bounds_hold_whatever_is_found_and_listed(monkeypatch, found, filled, most_returned):
    solution = LoadProgram.solution
    if found is not solution:
        monkeypatch.setattr(LoadProgram, "solution", lambda *given: found(solution, *given))
    for name, value in (("FIRST", 1.0), ("MOST_FILLED", filled), ("MOST", most_returned)):
        monkeypatch.setattr(row_fillings, name, value)
    random = np.random.default_rng(0)
    monkeypatch.setattr(LoadProgram, "multipliers", lambda program: random.dirichlet(np.ones(program.row.size)))
    for seed in range(16):
        checked(load_program(seed, equal=seed % 4 > 0), 0.5)


def test_choices_with_the_same_sums_are_not_taken_for_all(monkeypatch):
    monkeypatch.setattr(row_fillings, "FIRST", 1.0)
    monkeypatch.setattr(LoadProgram, "multipliers", lambda _: np.full(3, 1 / 3))
    monkeypatch.setattr(row_fillings.Fillings, "sets", lambda *_: [np.array([0])])
    # Every column adds 3 to the three rows together. The first two groups can share their load of row 0 in two ways.
    alike = [np.array([[1, 2, 0], [0, 1.5, 1.5]]), np.array([[0, 1.5, 1.5], [1, 1, 1]])]
    random = np.random.default_rng(0)
    for _ in range(40):
        others = [np.column_stack([x, y, 3.0 - x - y]) for x, y in random.uniform(0.0, 0.9, (2, 2, 2))]
        loads = np.vstack([*alike, *others, [[random.uniform(1.0, 3.0), 0.0, random.uniform(0.0, 1.0)]]]).T
        A = np.zeros((8, 10))
        A[:3] = np.column_stack([loads, -np.ones(3)])
        A[[3, 3, 4, 4, 5, 5, 6, 6, 7], np.arange(9)] = 1.0
        ends = np.array([0.0] * 3 + [1.0] * 5)
        low, upper, whole = np.where(ends > 0, ends, -np.inf), np.append(np.ones(9), np.inf), np.arange(10) < 9
        checked(StandardForm(sp.csc_array(A), low, ends, np.zeros(10), upper, 1.0 - whole, "min", integer=whole), 0.5)


@pytest.mark.parametrize("most_returned", [20_000, 5])
def test_all_sums_within_a_limit_are_listed(monkeypatch, most_returned):
    monkeypatch.setattr(row_fillings, "MOST", most_returned)
    for seed in range(30):
        random = np.random.default_rng(seed)
        parts = [random.uniform(0.0, 1.0, (int(random.integers(1, 5)), 3)) for _ in range(6)]
        limit, y = random.uniform(-0.2, 0.2, 3), random.uniform(0.1, 1.0, 3)
        sums = np.array([sum(rows) for rows in itertools.product(*parts)])
        value = np.sort((sums - limit).max(axis=1))
        most = float(np.quantile(value, 0.1))
        found = list_sums(parts, limit, y / y.sum(), most, 10**6)
        assert found is not None
        assert found.distinct
        expected = value[value <= most]
        assert found.value == pytest.approx(expected[: found.value.size], abs=1e-12)
        assert found.value.size == min(expected.size, found.value.size if found.limit < most else expected.size)
        assert (value < found.limit - 1e-9).sum() <= found.value.size
        chosen = sum(part[found.choice[:, k]] for k, part in enumerate(parts))
        assert (chosen - limit).max(axis=1) == pytest.approx(found.value, abs=1e-12)


def test_other_programs_have_no_fillings():
    form = load_program(1)
    t = int(np.flatnonzero(~form.integer)[0])
    assert LoadProgram.of(form) is not None
    continuous = np.zeros(form.cost.size, dtype=bool)
    priced = np.ones(form.cost.size)
    for changed in ({"integer": continuous}, {"cost": priced}, {"row_lower": np.full(form.row_lower.size, -np.inf)}):
        other = StandardForm(**{**{k: getattr(form, k) for k in FIELDS}, **changed})
        assert LoadProgram.of(other) is None
    assert form.cost[t] > 0


def test_loads_that_cancel_large_ones_are_not_listed():
    for large, bounded in ((1e3, True), (1e6, False)):
        A = sp.csc_array(np.array([[large, 1.0 - large, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
        low, high, whole = np.array([-np.inf, 1.0, 1.0]), np.array([0.0, 1.0, 1.0]), np.arange(3) < 2
        form = StandardForm(A, low, high, np.zeros(3), np.array([1.0, 1.0, np.inf]), 1.0 - whole, "min", integer=whole)
        program = LoadProgram.of(form)
        assert program is not None
        assert np.isfinite(bound_by_fillings(program, 2.0)) == bounded


FIELDS = ("A", "row_lower", "row_upper", "col_lower", "col_upper", "cost", "sense", "offset", "integer")
