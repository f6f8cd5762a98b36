"""Checkers and bounds against the stated models, which another solver solves.

A solution with a wrong entry breaks, in the model and for the checker, the same constraints: of formulations whose
checker reads all variables of the model as they are; others decode a schedule or circuits first. No bound is beyond the
optimum of any case, and every bound is the optimum of some case: a bound that became weaker would still hold.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from builds import builds, problem_of
from cases import CASES
from reference import optimum, refused
from scipy.optimize import linprog
from scipy.sparse import vstack

from opticoll.formulations import formulation
from opticoll.formulations.model import states
from opticoll.solvers import verify
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.verify import FEASIBLE, matrix_violations

FLOWS = ("all-gather", "all-reduce", "broadcast", "child", "link-mcf", "master", "min-congestion", "path-mcf")
STEPS = ("reduce-scatter", "sccl", "timestep-child", "timestep-mcf")
CHECKED = (
    *(f"alltoall.{name}" for name in FLOWS + STEPS),
    *("lumorph.co-scheduling", "lumorph.iteration", "lumorph.min-overlap", "topoopt.routing"),
)
#: Wrong entries of a solution: so many, and by how much.
CHANGES, STEP = 24, (-1.0, -0.5, 0.5, 1.0)


@cache
def solved(name, case):
    """A case as stated, and an optimal solution of it."""
    spec, settings = CASES[name][case]
    problem = problem_of(name, spec, tuple(settings.items()))
    form = compile_built(problem, next(iter(builds(name, spec, settings).values())))
    _, x = optimum(form)
    return problem, form, np.where(form.integer, np.round(x), x)


@pytest.mark.parametrize("name", CHECKED)
def test_a_wrong_entry_is_refused_by_the_block_whose_rows_it_breaks(name):
    random = np.random.default_rng(0)
    broken = set()
    for problem, form, right in (solved(name, case) for case in range(len(CASES[name]))):
        assert max(problem.residuals(problem._unfold(form.values(right))).values()) <= FEASIBLE
        for number in range(CHANGES):
            wrong = right.copy()
            used = np.flatnonzero(right) if number % 2 else np.arange(right.size)
            wrong[random.choice(used)] += random.choice(STEP)
            off = np.maximum(form.row_lower - form.A @ wrong, form.A @ wrong - form.row_upper)
            found = problem.residuals(problem._unfold(form.values(wrong)))
            rows = {key for key, block in form.rows.items() if off[block.index[block.index >= 0]].max(initial=0) > 1e-3}
            assert rows <= {key for key, value in found.items() if value > FEASIBLE}
            broken |= rows
            if (wrong < form.col_lower - 1e-3).any():
                assert max(found.values()) > FEASIBLE
            if max(matrix_violations(form, wrong).values()) <= FEASIBLE / 10:
                assert max(found.values()) <= FEASIBLE
        values = problem._unfold(form.values(right))
        for key, array in ((key, array) for key, array in values.items() if array.size):
            for wrong in (
                np.full(array.shape, np.nan),
                np.full(array.shape, np.inf),
                *([array[:-1]] if array.ndim else []),
            ):
                assert refused(problem, {**values, key: wrong}), key
    assert len(broken) > 1


#: Bounds that no case attains.
LOOSE = {
    ("alltoall.channels", "path-lengths"),
    ("alltoall.channels", "widest-path"),
    ("alltoall.child", "distance"),
    ("alltoall.child", "inflow"),
    ("alltoall.timestep-child", "distance"),
    ("optree.tree", "receptions"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_bound_holds_and_is_attained_in_some_case(name):
    stated = [problem_of(name, spec, tuple(settings.items())).bounds() for spec, settings in CASES[name]]
    missing = {bound.name for bounds in stated for bound in bounds} - {bound for model, bound in LOOSE if model == name}
    for case, bounds in enumerate(stated):
        if not missing & {bound.name for bound in bounds}:
            continue
        problem, form, x = solved(name, case)
        best = form.objective(x)
        for bound in bounds:
            past = best - bound.value if problem.sense == "max" else bound.value - best
            assert past <= 1e-6 * max(1.0, abs(best)), bound
            if past >= -1e-6 * max(1.0, abs(best)):
                missing.discard(bound.name)
    assert not missing, f"no case in tests/problems has an optimum that is the bound {missing}"


def of_linear(form):
    """The optimum of a linear program, and duals of its rows, d(objective)/d(rhs)."""
    A, flip = form.A.tocsr(), 1.0 if form.sense == "min" else -1.0
    equal = form.row_lower == form.row_upper
    below, above = np.isfinite(form.row_upper) & ~equal, np.isfinite(form.row_lower) & ~equal
    found = linprog(
        flip * form.cost,
        A_ub=vstack([A[below], -A[above]]),
        b_ub=np.concatenate([form.row_upper[below], -form.row_lower[above]]),
        A_eq=A[equal],
        b_eq=form.row_upper[equal],
        bounds=np.column_stack([form.col_lower, form.col_upper]),
        method="highs-ds",
    )
    duals = np.zeros(form.A.shape[0])
    duals[equal] = found.eqlin.marginals
    duals[below] = found.ineqlin.marginals[: below.sum()]
    duals[above] = -found.ineqlin.marginals[below.sum() :]
    return flip * found.fun + form.offset, flip * duals


@pytest.mark.parametrize(
    "name", [name for name in CASES if states(formulation(name), "certify") and formulation(name).problem == "LP"]
)
def test_duals_of_another_solver_certify_the_optimum(name):
    for case in range(len(CASES[name])):
        problem, form, _ = solved(name, case)
        value, duals = of_linear(form)
        assert verify.dual_bound(form, duals) == pytest.approx(value, rel=1e-6)
        assert problem.certify(form.duals(duals)).value == pytest.approx(value, rel=1e-6)
