"""The rows that are read from CVXPY are those that CVXPY gives SciPy's solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.solvers.compile.compilation import from_cvxpy
from opticoll.solvers.compile.cvxpy_models import as_cvxpy_model


def problem(seed: int, size: int) -> tuple[cp.Problem, list[cp.Parameter]]:
    """A random problem with equations, inequalities both ways, bounds, whole numbers, parameters and a constant."""
    rng = np.random.default_rng(seed)
    x = cp.Variable((size, 3), name="x", bounds=[0, rng.integers(1, 9, (size, 3)).astype(float)])
    y = cp.Variable(size, name="y", integer=True)
    z = cp.Variable(name="z", boolean=True)
    w = cp.Variable((3, 3), name="w", symmetric=True)
    b, c = cp.Parameter(size, name="b", value=rng.random(size)), cp.Parameter(name="c", value=2.0)
    M = sp.random_array((size, size), density=0.5, rng=rng)
    rows = [
        M @ x == rng.integers(-2, 3, (size, 3)),
        cp.sum(x, axis=1) + y <= b + c,
        y >= M @ y - c * z,
        -cp.trace(w) - z <= -1,
        cp.abs(w) <= 4,
    ]
    return cp.Problem(cp.Maximize(cp.sum(x) - c * z + cp.sum(w) + 7), rows[: rng.integers(0, 6)]), [b, c]


@pytest.mark.parametrize("size", [2, 5, 60])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_another_solver_of_cvxpy(seed, size):
    stated, parameters = problem(seed, size)
    kept = cp.Problem(stated.objective, stated.constraints)
    for value in (2.0, 3.0):
        parameters[1].value = value
        data, _, inverse = stated.get_problem_data(cp.SCIPY)
        blocks = [data[name] for name in ("A", "G") if data[name] is not None]
        right = [data[name] for name in ("b", "h") if data[name] is not None]
        equations = 0 if data["A"] is None else data["A"].shape[0]
        for program in (None, kept):  # read once, and with what CVXPY keeps for the next values of the parameters
            form = from_cvxpy(as_cvxpy_model(stated), program)
            if blocks:
                assert np.array_equal(form.A.toarray(), sp.vstack(blocks).toarray())
                assert np.array_equal(form.row_upper, np.concatenate(right))
            assert np.array_equal(form.row_lower[:equations], form.row_upper[:equations])
            assert np.isneginf(form.row_lower[equations:]).all()
            assert np.array_equal(-form.cost, data["c"])
            assert form.offset == -float(np.squeeze(inverse[-1]["offset"]))
            assert np.array_equal(np.flatnonzero(form.integer), np.sort(data["bool_vars_idx"] + data["int_vars_idx"]))
            low, high = np.array(data["lower_bounds"], dtype=float), np.array(data["upper_bounds"], dtype=float)
            low[data["bool_vars_idx"]], high[data["bool_vars_idx"]] = 0.0, 1.0
            assert np.array_equal(form.col_lower, low)
            assert np.array_equal(form.col_upper, high)
