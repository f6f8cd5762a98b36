"""Scaling of programs, so that results do not depend on units; bounds from their linear relaxations.

Scaling. An LP whose column bounds are all 0 or infinite is homogeneous in (x, row bounds): with s the largest finite
row bound, x = s y turns it into one whose row bounds are at most 1. Duals do not change. Without this, capacities of
1e-7 are lost in a feasibility tolerance of 1e-9 (measured: a certified gap of 5e-3 on GK(27,4)).

If capacities are coefficients (load <= c T), a column of tiny ones is worse: solvers drop entries of 1e-9 and declare
the remaining problem infeasible. A column of large ones is as bad: with demands of D bytes, F has the coefficient D and
the duals have the size 1 / D, which a solver's dual tolerance of 1e-7 does not distinguish from 0, so F = 0 passes for
optimal. Such columns are measured in another unit, x_j = y_j / k_j with k_j a power of 2, and the objective in a unit
in which its largest cost is about 1.

Every adapter gets the scaled matrix; x, duals, objective and bound are returned in the units of the stated problem.

Bounds, and proofs of infeasibility. A branch-and-bound solver's bound cannot be checked, but the relaxation's row duals
can: weak duality turns any of them into a bound (:func:`opticoll.solvers.verify.dual_bound`). If only integer columns
have costs, and these are integer multiples of some step, the bound is rounded to the next value that the objective can
take; if that equals the incumbent, the incumbent is optimal.
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
from opticoll.solvers.isolation import solve_here, solve_isolated
from opticoll.solvers.methods.method import Reformulation

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from opticoll.solvers.task import Outcome, SolveRequest


#: Continuous columns are rescaled if all their coefficients are smaller than TINY, or one is larger than LARGE.
TINY, LARGE = 1e-5, 1e3
#: Rescaling leaves no coefficient smaller than this: solvers drop smaller ones.
SMALLEST = 1e-8


def scaling_steps(form: StandardForm) -> list[Reformulation]:
    """The reformulations that scale a problem's rows and columns, in order; none if they are well scaled."""
    steps: list[Reformulation] = []
    for unit in (unit_integers if form.is_mip else unit_rows, unit_columns):
        step = unit(steps[-1].form if steps else form)
        steps += [] if step is None else [step]
    return steps


def solve_scaled(
    form: StandardForm,
    adapter: str,
    request: SolveRequest,
    *,
    steps: Sequence[Reformulation] | None = None,
    memory_limit_gib: float | None = None,
    on_progress: Callable[[float | None, float | None], None] | None = None,
    stop: threading.Event | None = None,
    in_process: bool = False,
) -> Outcome:
    """Solve a problem through its reformulations; outcome and progress are of ``form`` itself.

    ``steps`` are by default :func:`scaling_steps`. ``in_process`` solves in this process, without limit on memory. The
    other parameters and the errors are those of :func:`opticoll.solvers.isolation.solve_isolated`. A start that a
    reformulation cannot convert is omitted.
    """
    chain = scaling_steps(form) if steps is None else steps
    if any(step.begin is None for step in chain):
        request = replace(request, warm_start=None, basis=None, want_basis=False)
    for step in chain:
        if request.warm_start is not None and step.begin is not None:
            request = replace(request, warm_start=step.begin(request.warm_start))

    def relay(objective: float | None, bound: float | None, x: NDArray[np.float64] | None = None) -> None:
        del x  # of the scaled problem
        for step in reversed(chain):
            objective, bound = (None if v is None else step.value(v) for v in (objective, bound))
        if on_progress is not None:
            on_progress(objective, bound)

    target, report = chain[-1].form if chain else form, None if on_progress is None else relay
    if in_process:
        outcome = solve_here(target, adapter, request, report)
    else:
        outcome = solve_isolated(
            target, adapter, request, memory_limit_gib=memory_limit_gib, on_progress=report, stop=stop
        )
    for step in reversed(chain):
        outcome = step.recover(outcome)
    return outcome


def unit_rows(form: StandardForm) -> Reformulation | None:
    """The linear program with row bounds of at most 1 in size; None if it needs no scaling.

    The unit is the largest row bound, or the largest column bound if all row bounds are 0. A program with column bounds
    other than 0 and infinity is left unchanged if the unit lies between TINY and LARGE.
    """
    rows, columns = (
        np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0)
        for bounds in (
            np.concatenate([form.row_lower, form.row_upper]),
            np.concatenate([form.col_lower, form.col_upper]),
        )
    )
    size = float(rows or columns)
    if size in (0.0, 1.0) or (columns > 0 and TINY <= size <= LARGE):
        return None
    scaled = replace(
        form,
        row_lower=form.row_lower / size,
        row_upper=form.row_upper / size,
        col_lower=form.col_lower / size,
        col_upper=form.col_upper / size,
        offset=0.0,
    )

    def value(scaled_value: float) -> float:
        return scaled_value * size + form.offset

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) * size
        return replace(_with_values(outcome, value), x=x)

    return Reformulation(scaled, recover, value, begin=lambda x: x / size)


def _with_values(outcome: Outcome, value: Callable[[float], float]) -> Outcome:
    """The outcome with every objective value and bound in it converted."""
    objective, bound = (None if v is None else value(v) for v in (outcome.objective, outcome.bound))
    incumbents = [(seconds, value(v)) for seconds, v in outcome.incumbents]
    return replace(outcome, objective=objective, bound=bound, incumbents=incumbents)


def unit_integers(form: StandardForm) -> Reformulation | None:
    """The integer program with rows scaled down if coefficients of integer columns exceed LARGE; None if none do.

    A row with a continuous column that also occurs in other rows is left unchanged: if a large coefficient only
    switches a row off, the others would be lost in the tolerance.
    """
    import scipy.sparse as sp

    if not form.is_mip:
        return None
    matrix, integer = sp.csr_array(abs(form.A)), np.asarray(form.integer, dtype=bool)
    size = np.asarray(matrix[:, integer].max(axis=1).todense(), dtype=float).ravel()
    large = size > LARGE
    pattern = (matrix[:, ~integer] != 0).astype(np.int64)
    while True:
        outside = (pattern.T @ (~large).astype(np.int64)) > 0
        kept = large & ((pattern @ outside.astype(np.int64)) == 0)
        if np.array_equal(kept, large):
            break
        large = kept
    if not large.any():
        return None
    factor = np.where(large, np.exp2(-np.round(np.log2(size[large].max()))), 1.0)
    scaled = replace(
        form,
        A=sp.csc_array(sp.dia_array((factor[None, :], 0), shape=(factor.size, factor.size)) @ form.A),
        row_lower=form.row_lower * factor,
        row_upper=form.row_upper * factor,
    )

    def recover(outcome: Outcome) -> Outcome:
        duals = None if outcome.row_duals is None else np.asarray(outcome.row_duals) * factor
        return replace(outcome, row_duals=duals)

    return Reformulation(scaled, recover, value=lambda value: value, begin=lambda x: x)


def unit_columns(form: StandardForm) -> Reformulation | None:
    """The problem with continuous columns rescaled if their coefficients are all tiny or some are large, else None.

    None also if the objective's largest cost lies between TINY and LARGE.
    """
    size = abs(form.A)
    largest, smallest = np.zeros(form.cost.size), np.zeros(form.cost.size)
    filled = np.diff(size.indptr) > 0
    if filled.any():
        starts = size.indptr[:-1][filled]
        largest[filled], smallest[filled] = (
            np.maximum.reduceat(size.data, starts),
            np.minimum.reduceat(size.data, starts),
        )
    off = (largest > 0) & ((largest < TINY) | (largest > LARGE)) & ~np.asarray(form.integer, dtype=bool)
    k = np.ones(form.cost.size)
    k[off] = np.exp2(np.round(np.log2(np.minimum(largest[off], np.maximum(smallest[off] / SMALLEST, 1.0)))))
    cost = form.cost / k
    most = float(np.abs(cost).max(initial=0.0))
    unit = float(np.exp2(np.round(np.log2(most)))) if most > 0 and (off.any() or not TINY <= most <= LARGE) else 1.0
    if not off.any() and unit == 1.0:
        return None
    matrix = form.A.tocsc(copy=True)
    matrix.data /= np.repeat(k, np.diff(matrix.indptr))
    scaled = replace(
        form, A=matrix, cost=cost / unit, col_lower=form.col_lower * k, col_upper=form.col_upper * k, offset=0.0
    )

    def value(scaled_value: float) -> float:
        return scaled_value * unit + form.offset

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) / k
        duals = None if outcome.row_duals is None else np.asarray(outcome.row_duals) * unit
        return replace(_with_values(outcome, value), x=x, row_duals=duals)

    return Reformulation(scaled, recover, value, begin=lambda x: x * k)


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
    "magnitudes; another method may solve it, with --exact in rational arithmetic"
)
#: Message about a program that has solutions, but no best one.
UNBOUNDED = "the objective is unbounded: proven by a solution and a ray in rational arithmetic"


def objective_step(form: StandardForm) -> float | None:
    """A step such that every solution's value is ``offset`` plus an integer multiple of it; None if unknown."""
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
    """Round a bound to the next value that the objective can take, in exact arithmetic."""
    step = objective_step(form)
    if step is None or not np.isfinite(bound):
        return bound
    flip = -1 if form.sense == "max" else 1
    offset, unit = flip * Fraction(form.offset), Fraction(step)
    value = offset + unit * math.ceil((flip * Fraction(bound) - offset) / unit - ROUND_OFF)
    nearest = float(value)
    return flip * (nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf))


def crossed(form: StandardForm) -> str | None:
    """Describe a row or column whose bounds no finite number satisfies, or no integer for an integer column."""
    integer = np.asarray(form.integer, dtype=bool)
    for kind, lower, upper, whole, names in (
        ("row", form.row_lower, form.row_upper, np.zeros(form.row_lower.size, dtype=bool), form.row_names),
        ("column", form.col_lower, form.col_upper, integer, form.column_names),
    ):
        least, most = np.where(whole, np.ceil(lower), lower), np.where(whole, np.floor(upper), upper)
        wrong = (least > most) | (lower == np.inf) | (upper == -np.inf)
        if wrong.any():
            at = int(np.argmax(wrong))
            ends = f"at least {float(lower[at])!r} and at most {float(upper[at])!r}"
            return f"the bounds of {kind} {names()[at]}: {'an integer ' if whole[at] else ''}{ends}"
    return None


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
    exceeds :data:`opticoll.solvers.verify.FEASIBLE`, there is no solution.
    """
    elastic, outcome = least_violation(form, request, memory_limit_gib)
    if outcome.row_duals is None:
        return None, True
    least = verify.dual_bound(elastic, outcome.row_duals)
    if least > verify.FEASIBLE:
        return f"rows violated by at least {least:.3g}, from recomputed duals", True
    return None, not form.is_mip or outcome.objective is None or outcome.objective > verify.FEASIBLE


def relaxation_bound(form: StandardForm, request: SolveRequest, memory_limit_gib: float | None) -> Bound | None:
    """Solve the relaxation and recompute its bound from the duals; None if none is found in time."""
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
