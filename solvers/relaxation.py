"""Bounds and proofs of infeasibility from a program's linear relaxation.

A branch-and-bound solver's bound cannot be checked, but the relaxation's row duals can: weak duality turns any of them
into a bound (:func:`opticoll.solvers.verify.dual_bound`). Where only integer columns have costs, in whole multiples of
some step, the bound is rounded to the next value that the objective can take; where that equals the incumbent, the
incumbent is optimal.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Bound
from opticoll.solvers import verify
from opticoll.solvers.scaling import solve_scaled
from opticoll.solvers.standard_form import StandardForm

if TYPE_CHECKING:
    from opticoll.solvers.task import SolveRequest

#: A bound this little beyond an attainable value, in steps, counts as that value. It only weakens the bound: solvers
#: accept columns this far from whole numbers, and their values must not contradict it.
ROUND_OFF = Fraction(1, 10**6)
#: The LP solver that provides the duals; which one does not matter for their proof.
SOLVER = "highs"


def objective_step(form: StandardForm) -> float | None:
    """The step of the objective, if every solution's value is ``offset`` plus a whole multiple of one; else None."""
    assert form.integer is not None
    priced = np.flatnonzero(form.cost)
    costs = form.cost[priced]
    if priced.size == 0 or not form.integer[priced].all():
        return None
    if priced.size == 1:
        return float(abs(costs[0]))
    if (costs != np.rint(costs)).any():
        return None
    if np.abs(costs).max() > 2**53:
        return None
    return float(np.gcd.reduce(np.abs(costs).astype(np.int64)))


def rounded(form: StandardForm, bound: float) -> float:
    """A bound on the objective, moved to the next value that the objective can take; in exact arithmetic."""
    step = objective_step(form)
    if step is None or not np.isfinite(bound):
        return bound
    flip = -1 if form.sense == "max" else 1
    offset, unit = flip * Fraction(form.offset), Fraction(step)
    value = offset + unit * math.ceil((flip * Fraction(bound) - offset) / unit - ROUND_OFF)
    nearest = float(value)
    return flip * (nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf))


def infeasibility(form: StandardForm, request: SolveRequest, memory_limit_gib: float | None) -> str | None:
    r"""Proof that not even the relaxation has a solution, as text; None if none is found in time.

    The least total violation of the rows,

    .. math:: \min \sum_i (s_i + t_i) \quad \text{s.t.} \quad l \le A x + s - t \le u, \quad s, t \ge 0,

    with x within its bounds is bounded from below by :func:`opticoll.solvers.verify.dual_bound` of any duals; above
    :data:`opticoll.solvers.verify.FEASIBLE` there is no solution.
    """
    import scipy.sparse as sp

    rows, columns = form.A.shape
    slack = sp.eye_array(rows, format="csc")
    elastic = StandardForm(
        sp.csc_array(sp.hstack([form.A, slack, -slack])), form.row_lower, form.row_upper,
        np.concatenate([form.col_lower, np.zeros(2 * rows)]),
        np.concatenate([form.col_upper, np.full(2 * rows, np.inf)]),
        np.concatenate([np.zeros(columns), np.ones(2 * rows)]), "min"
    )  # fmt: skip
    outcome = solve_scaled(elastic, SOLVER, request, memory_limit_gib=memory_limit_gib)
    if outcome.row_duals is None:
        return None
    least = verify.dual_bound(elastic, np.clip(outcome.row_duals, -1.0, 1.0))
    return f"rows violated by at least {least:.3g}, from recomputed duals" if least > verify.FEASIBLE else None


def relaxation_bound(form: StandardForm, request: SolveRequest, memory_limit_gib: float | None) -> Bound | None:
    """Solve the relaxation and recompute its bound from the duals; None if there is none in time."""
    relaxed = replace(form, integer=np.zeros(form.cost.size, dtype=bool))
    outcome = solve_scaled(relaxed, SOLVER, request, memory_limit_gib=memory_limit_gib)
    if outcome.row_duals is None:
        return None
    value = verify.dual_bound(form, outcome.row_duals)
    if not np.isfinite(value):
        return None
    integral = rounded(form, value)
    reason = "weak duality from the relaxation's row duals, recomputed"
    if integral != value:
        reason += f": {value:.9g}, rounded to a value that the objective can take"
    return Bound("relaxation", integral, reason)
