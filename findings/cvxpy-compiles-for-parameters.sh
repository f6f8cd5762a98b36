#!/usr/bin/env bash
# cvxpy 1.9.3, compiling a large linear problem without parameters, or with `ignore_dpp=True`.
# Belief: `get_problem_data(solver)` costs what building the matrix from the expressions costs; the interface of a solver
#   that takes rows (SciPy, HiGHS) only passes them on.
# Behaviour: the interface first prepares the matrix for other values of parameters, although there are none: it sorts
#   all entries twice and copies the matrix several times, about half of the time. A solver of one's own, the documented
#   door for custom solvers, is given the compiled program before that; with one column in its tensor, reshaping that
#   is the matrix.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cvxpy==1.9.3 numpy==2.3.5 scipy==1.16.3
venv/bin/python - <<'PYTHON'
import time

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver


class Rows(ConicSolver):
    MIP_CAPABLE = True
    BOUNDED_VARIABLES = True
    MI_SUPPORTED_CONSTRAINTS = ConicSolver.SUPPORTED_CONSTRAINTS

    def name(self):
        return "ROWS"

    def import_solver(self):
        pass

    def cite(self, data):
        return ""

    def solve_via_data(self, *_, **__):
        raise NotImplementedError

    def apply(self, problem):
        columns = problem.x.size
        whole = problem.A.reshape((-1, columns + 1), order="F").tocsc()
        return {"A": whole[:, :columns], "b": whole[:, [columns]].toarray().ravel()}, {}


M = sp.random_array((300, 300), density=0.01, rng=np.random.default_rng(1))
x = cp.Variable((300, 1000), nonneg=True)
rows = [M @ x <= 1, cp.sum(x, axis=1) >= 2]


def compiled(solver):
    least = np.inf
    for _ in range(5):
        problem = cp.Problem(cp.Minimize(cp.sum(x)), rows)
        start = time.process_time()
        data = problem.get_problem_data(solver, ignore_dpp=True, canon_backend=cp.SCIPY_CANON_BACKEND)[0]
        least = min(least, time.process_time() - start)
    return data, least


(scipys, long), (own, short) = compiled(cp.SCIPY), compiled(Rows())
same = abs(scipys["G"] + own["A"]).max() == 0 and np.array_equal(scipys["h"], own["b"])
print(f"{own['A'].nnz} nonzeros: SciPy's interface {long:.2f} s, the same rows by a custom solver {short:.2f} s")
assert same
assert long > 1.3 * short
PYTHON
