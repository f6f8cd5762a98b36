"""Bounds from linear relaxations.

A branch-and-bound solver's bound cannot be checked, but the relaxation's row duals can: weak duality turns any of them
into a bound (:func:`opticoll.solvers.verify.dual_bound`). If only integer columns have costs, and these are integer
multiples of some step, the bound is rounded to the next value that the objective can take; if that equals the
incumbent, the incumbent is optimal.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Bound
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers import verify
from opticoll.solvers.compile.scaling import in_units, scaling_steps, solve_scaled

if TYPE_CHECKING:
    from opticoll.solvers.task import Outcome, SolveRequest


#: A bound beyond an attainable value by at most this part of a step counts as that value. This only weakens the bound:
#: solvers accept columns this far from integers, and their values must not contradict it.
ROUND_OFF = Fraction(1, 10**6)
#: The LP solver that provides the duals; the proof does not depend on it.
SOLVER = "highs"
#: Description of an exact proof of infeasibility, and the message if there is no proof at all.
FARKAS = "multipliers of the rows in rational arithmetic"
CLAIMED = "only the solver claims that there is no solution; this is not verified"
#: Message where a method calls a concurrent flow infeasible: F = 0 always has one, and so has every long enough time.
NO_FLOW = (
    "the solver called this flow infeasible, which no concurrent flow is, as it may where numbers differ by many "
    "magnitudes; another method may solve it, or exact solving (--exact, exact=True)"
)
#: Message about a program that has solutions, but no best one.
UNBOUNDED = "the objective is unbounded: proven by a solution and a ray in rational arithmetic"


def rounded(form: StandardForm, bound: float) -> float:
    """Round a bound to the next value that the objective can take, in exact arithmetic."""
    steps = form.objective_steps
    if steps is None or not np.isfinite(bound):
        return bound
    unit, missed = steps
    flip = -1 if form.sense == "max" else 1
    offset = flip * Fraction(form.offset)
    value = offset + unit * math.ceil((flip * Fraction(bound) - offset) / unit - ROUND_OFF) - missed
    nearest = float(value)
    return flip * (nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf))


def has_solution(form: StandardForm, request: SolveRequest, memory_limit_gib: float | None) -> bool:
    """Whether the solver finds a solution that satisfies the program within tolerances, whatever its value."""
    outcome = solve_scaled(
        replace(form, cost=np.zeros(form.cost.size)), SOLVER, request, memory_limit_gib=memory_limit_gib
    )
    return outcome.x is not None and max(verify.matrix_violations(form, outcome.x).values()) <= verify.FEASIBLE


def least_violation(
    form: StandardForm, request: SolveRequest, memory_limit_gib: float | None
) -> tuple[StandardForm, Outcome]:
    """The program of the smallest total violation of the rows (:func:`infeasibility`), and what its solver found."""
    import scipy.sparse as sp

    rows, columns = form.A.shape
    slack = sp.eye_array(rows, format="csc")
    elastic = StandardForm(
        sp.csc_array(sp.hstack([form.A, slack, -slack])),
        form.row_lower,
        form.row_upper,
        np.concatenate([form.col_lower, np.zeros(2 * rows)]),
        np.concatenate([form.col_upper, np.full(2 * rows, np.inf)]),
        np.concatenate([np.zeros(columns), np.ones(2 * rows)]),
        "min",
    )
    outcome = solve_scaled(elastic, SOLVER, request, memory_limit_gib=memory_limit_gib)
    if outcome.row_duals is not None:
        outcome = replace(outcome, row_duals=np.clip(outcome.row_duals, -1.0, 1.0))
    return elastic, outcome


def infeasibility(form: StandardForm, request: SolveRequest, memory_limit_gib: float | None) -> tuple[str | None, bool]:
    r"""Describe a proof that not even the relaxation has a solution, or None; and whether there may be another proof.

    The smallest total violation of the rows,

    .. math:: \min \sum_i (s_i + t_i) \quad \text{s.t.} \quad l \le A x + s - t \le u, \quad s, t \ge 0,

    with x within its bounds, is bounded from below by :func:`opticoll.solvers.verify.dual_bound` of any duals; if that
    exceeds :data:`opticoll.solvers.verify.FEASIBLE`, there is no solution. The rows of an integer program are scaled.
    """
    step = in_units(form) if form.is_mip else None
    form = form if step is None else step.form
    elastic, outcome = least_violation(form, request, memory_limit_gib)
    if outcome.row_duals is None:
        return None, True
    least = verify.dual_bound(elastic, outcome.row_duals)
    if least > verify.FEASIBLE:
        return f"rows violated by at least {least:.3g}, from recomputed duals", True
    return None, not form.is_mip or outcome.objective is None or outcome.objective > verify.FEASIBLE


def relaxation_bound(form: StandardForm, request: SolveRequest, memory_limit_gib: float | None) -> Bound | None:
    """Solve the relaxation and recompute its bound from the duals; None if none is found in time."""
    continuous = np.zeros(form.cost.size, dtype=bool)
    relaxed = replace(form, integer=continuous)
    # What is integer in the program tells the sizes of its columns and rows.
    steps = [replace(one, form=replace(one.form, integer=continuous)) for one in scaling_steps(form)]
    outcome = solve_scaled(relaxed, SOLVER, request, steps=steps, memory_limit_gib=memory_limit_gib)
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
