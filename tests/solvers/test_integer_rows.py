"""Equations without integer solutions: compared with greatest common divisors of minors, and with all solvers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import opticoll as oc
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.exact.integer_rows import contradiction
from opticoll.solvers.task import Termination

INF = np.inf


def equations(A, b, lower=-INF, upper=INF, integer=None):
    A = np.array(A, dtype=float)
    columns = A.shape[1]
    whole = np.ones(columns, dtype=bool) if integer is None else np.array(integer, dtype=bool)
    ends = np.broadcast_to(lower, columns).astype(float), np.broadcast_to(upper, columns).astype(float)
    side = np.array(b, dtype=float)
    return StandardForm(sp.csc_array(A), side, side, *ends, np.ones(columns), "min", integer=whole)


def minors(A):
    """Rank of an integer matrix, and the greatest common divisor of its minors of that size."""
    for size in range(min(A.shape), 0, -1):
        found = [
            round(np.linalg.det(A[np.ix_(rows, columns)]))
            for rows in itertools.combinations(range(A.shape[0]), size)
            for columns in itertools.combinations(range(A.shape[1]), size)
        ]
        if any(found):
            return size, math.gcd(*found)
    return 0, 0


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 300), marks=pytest.mark.slow)])
def test_it_is_the_theorem_of_heger(seeds):
    """A x = b with integer data has an integer x if and only if A and (A b) have the same rank and divisor."""
    for seed in seeds:
        follows_heger(seed)


def follows_heger(seed):
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(1, 4)), int(random.integers(1, 5))
    A, b = random.integers(-4, 5, (rows, columns)), random.integers(-9, 10, rows)
    if seed % 3 == 0:
        b = A @ random.integers(-5, 6, columns)
    used = A.any(axis=1)
    (rank, divisor), (larger, common) = minors(A[used]), minors(np.column_stack([A, b])[used])
    found = contradiction(equations(A, b))
    if rank == larger:  # else the relaxation has no solution
        assert (found is None) == (divisor == common)
    if (A @ random.integers(-5, 6, columns) == b).all():
        assert found is None


def test_the_multiple_is_named():
    triangle = equations([[1, 1, 0, -2, 0], [0, 1, 1, 0, -2], [1, 0, -1, 0, 0]], [0, 0, 1])
    assert "1/2 on the right" in contradiction(triangle)
    assert contradiction(equations([[6, 10, 15]], [1])) is None
    assert contradiction(equations([[6, 10, 14]], [1])) == "rows 1/2 r0: an integer on the left, 1/2 on the right"


@pytest.mark.parametrize(
    ("form", "proven"),
    [
        (equations([[2, 2, 1]], [3], integer=[1, 1, 0]), False),  # a continuous column
        (equations([[2, 2, 1]], [3], [0, 0, 2], [9, 9, 2], integer=[1, 1, 0]), True),  # one that is fixed
        (equations([[2, 2, 1]], [3], [0, 0, 1], [9, 9, 1]), False),
        (equations([[0.1, 0.2]], [0.3]), False),  # decimals
        (equations([[0.2, 0.2]], [0.3]), True),
        (equations([[1 / 3, 1 / 3]], [1]), False),  # within the tolerance of rows
        (equations([[0.1 * 3, 0.1 * 3]], [0.3]), False),
        (equations([[2, 2]], [INF]), False),
        (equations(np.ones((1, 0)), [1]), False),
    ],
)
def test_what_counts(form, proven):
    assert (contradiction(form) is not None) == proven


@pytest.mark.parametrize("method", ["auto", "highs", "scip", "cp-sat", "certified-branching"])
def test_every_solver_and_method_ends_with_the_proof(method, tmp_path):
    file = tmp_path / "parity.lp"
    rows = "a: x + y - 2 u = 0\n b: y + z - 2 v = 0\n c: x + z - 2 w = 1"
    bounds = "\n ".join(f"{name} <= 1000" for name in "xyzuvw")
    file.write_text(f"Minimize\n obj: x\nSubject To\n {rows}\nBounds\n {bounds}\nGeneral\n x y z u v w\nEnd\n")
    record = oc.solve("matrix.program", f"mps:{file}", method=method).record
    assert record.termination is Termination.INFEASIBLE
    assert "an integer on the left, 1/2 on the right" in record.infeasible_by
    assert "only the solver claims" not in (record.message or "")
