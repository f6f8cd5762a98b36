"""Verify what a solver or a method returned, gather the bounds, and judge what is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.formulations.model import Bound, is_own, states
from opticoll.formulations.registry import bounds_of
from opticoll.formulations.variables import check_arrays
from opticoll.solvers import auto, verify
from opticoll.solvers.auto import ENDED
from opticoll.solvers.compile.compilation import declared_arrays
from opticoll.solvers.relaxation import relaxation_bound, rounded
from opticoll.solvers.task import PROVEN, Kkt, Proof, Repaired, Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.exact.lp_bound import ExactRelaxation
    from opticoll.solvers.run import Run, Solved
    from opticoll.solvers.run_state import RunState

    Arrays = Mapping[str, NDArray[np.float64]]

#: A raw solution with a worst violation above this is repaired if possible: several of them stay below ``verify.PAST``.
EXACT = 1e-10
#: Errors of the optimality conditions up to which a gap that remains is due to rounding, not to the solver.
ACCURATE = 1e-8


# Checking the values ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """Values after the formulation's checker: ``verified`` if no violation is too large."""

    values: Arrays | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    objective: float | None = None
    verified: bool = False
    repaired: Repaired | None = None


def check_values(state: RunState, solved: Solved) -> Checked:
    """Check the values, after a repair if one exists and is needed."""
    problem, values, form = state.plan.problem, solved.values, solved.form
    if values is None:
        return Checked()
    try:
        check_arrays(declared_arrays(problem, values.keys(), form), values, "solution")
    except BadFile as wrong:
        hint = f"; correct the axes of {problem.name}" if is_own(problem) and problem.variables else ""
        state.notes.append(f"refused: {wrong}{hint}")
        return Checked(violations={"arrays": np.inf})
    raw = verify.residuals(problem, values)
    worst, on_matrix = max(raw.values(), default=0.0), on_the_matrix(form, values)
    repaired = None
    # Matrix violations are relative to other sizes: a violation negligible in ``raw`` may be too large there.
    good = worst <= EXACT and all(v <= verify.FEASIBLE for v in on_matrix.values())
    if not good and states(problem, "repair"):
        changed = problem.repair(values)
        if changed is not None:
            claimed = verify.objective(problem, values)
            repaired = Repaired(violation=max([worst, *on_matrix.values()]), claimed=claimed)
            values, raw = changed, verify.residuals(problem, changed)
            on_matrix = on_the_matrix(form, values)
    violations = {**raw, **on_matrix}
    missed = verify.violated(violations)
    if missed is not None:
        state.notes.append(f"not verified: {missed}")
    return Checked(values, violations, verify.objective(problem, values), missed is None, repaired)


def on_the_matrix(form: StandardForm | None, values: Arrays) -> dict[str, float]:
    """Violations of the compiled matrix by the values; none if there is no matrix or the values do not fit it."""
    x = None if form is None else verify.pack(form, values)
    return {} if form is None or x is None else verify.matrix_violations(form, x)


def accuracy(solved: Solved) -> Kkt | None:
    """Accuracy of a linear program's vectors as the solver returned them, before any repair."""
    form, out = solved.form, solved.outcome
    if form is None or form.is_mip or out.x is None:
        return None
    return Kkt(**verify.kkt(form, np.asarray(out.x, dtype=float), out.row_duals))


# Gathering the bounds --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gathered:
    """Recomputed bounds.

    ``analytic`` are those of the formulation, None if they were not needed or not computed in time; ``optimum`` is the
    optimum of the linear program in rational arithmetic, if it was needed.
    """

    bounds: list[Bound]
    analytic: list[Bound] | None = None
    optimum: ExactRelaxation | None = None


def gather_bounds(state: RunState, solved: Solved, objective: float | None, analytic: list[Bound] | None) -> Gathered:
    """All recomputed bounds: from duals, and analytic ones if those leave a gap or are the user's own.

    ``analytic`` are the bounds if they are computed already, as by the run that this one continues.
    """
    problem, form, out = state.plan.problem, solved.form, solved.outcome
    sense, tol = problem.sense, state.task.tol
    result = [*solved.bounds, *bounds_from_duals(state, solved)]
    open_ = not auto.closed(result, objective, sense, tol)
    # A wrong bound of the user's is reported, whatever the solver's duals prove.
    if analytic is None and (open_ or is_own(problem)):
        analytic = state.analytic(lambda: bounds_of(problem))
    if open_:
        result += analytic or []
    else:
        result += verify.differing_from(analytic or [], objective, sense)
    adapter = state.plan.adapter
    without_duals = out.row_duals is None or (adapter is not None and not adapter.capabilities.duals)
    if form is None or out.x is None:
        return Gathered(result, analytic)
    if (form.is_mip or without_duals) and not auto.closed(result, objective, sense, tol):
        relaxed = state.relaxed(form, relaxation_bound)
        result += [] if relaxed is None else [relaxed]
    if not left_open(state, solved, form, objective, result):
        return Gathered(result, analytic)
    exact = state.exact_relaxation(form, out.x)
    if exact is None:
        return Gathered(result, analytic)
    if exact.bound is None:
        state.notes.append(f"in rational arithmetic the relaxation is {exact.answer.status}: no bound")
        return Gathered(result, analytic)
    if form.is_mip:
        return Gathered([*result, attainable(form, exact.bound)], analytic)
    return Gathered([*result, exact.bound], analytic, exact if exact.x is not None else None)


def bounds_from_duals(state: RunState, solved: Solved) -> list[Bound]:
    """The bounds that the duals prove, by the formulation's certificate and by weak duality."""
    problem, form, duals = state.plan.problem, solved.form, solved.outcome.row_duals
    result = []
    if solved.duals is not None and states(problem, "certify"):
        try:
            certified = state.asked("certify", None, verify.certified, problem, solved.duals)
        except BadInput as error:
            certified = None
            state.notes.append(str(error))
        if certified is not None:
            result.append(certified)
    if form is not None and duals is not None and not form.is_mip:
        value = verify.dual_bound(form, duals)
        if np.isfinite(value):
            result.append(Bound("lp-dual", value, "weak duality from the solver's row duals, recomputed"))
    return result


def left_open(
    state: RunState, solved: Solved, form: StandardForm, objective: float | None, bounds: list[Bound]
) -> bool:
    """Whether the solver solved the program, and the duals prove no bound, or one that only rounding keeps away."""
    best = verify.tightest(bounds, state.plan.problem.sense)
    if state.task.exact or met(state, objective, best):
        return False
    if best is None:
        return True
    out = solved.outcome
    if out.termination is not Termination.OPTIMAL or objective is None:
        return False
    if abs(best.value - objective) <= verify.PAST * verify.size_of_terms(form, np.asarray(out.x, dtype=float)):
        return True
    kkt = accuracy(solved)
    return kkt is not None and max(kkt.primal or 0.0, kkt.dual or 0.0) <= ACCURATE


def met(state: RunState, objective: float | None, bound: Bound | None) -> bool:
    """Whether a bound proves that an objective is optimal."""
    gap = None if bound is None else verify.relative_gap(objective, bound.value, state.plan.problem.sense)
    return gap is not None and 0 <= gap <= state.task.tol


def attainable(form: StandardForm, bound: Bound) -> Bound:
    """A bound of an integer program, moved to a value that the objective can take."""
    value = rounded(form, bound.value)
    if value == bound.value:
        return bound
    reason = f"{bound.reason}: {bound.value:.9g}, rounded to a value that the objective can take"
    return Bound(bound.name, value, reason)


def at_optimum(
    problem: Formulation, solved: Solved, checked: Checked, bound: Bound, relaxed: ExactRelaxation | None
) -> Checked:
    """The exact solution in place of the values, if only rounding separates the two; else the values as they are.

    ``relaxed`` is that solution, None if it is not known. A value past the bound, or an optimum of 0, cannot be
    compared with a bound by their ratio.
    """
    form, objective = solved.form, checked.objective
    if relaxed is None or form is None or objective is None:
        return checked
    exact, optimum = relaxed.x, relaxed.answer.objective
    assert exact is not None
    assert optimum is not None
    past = (verify.relative_gap(objective, bound.value, problem.sense) or 0.0) < 0
    size = max(verify.size_of_terms(form, point) for point in (np.asarray(solved.outcome.x, dtype=float), exact))
    nil = abs(optimum) <= verify.PAST * size
    near = abs(objective - float(optimum)) <= verify.FEASIBLE * max(size, 1.0 if nil else 0.0)
    if not near or not (past or nil):
        return checked
    values = problem.unfold(form.values(exact))
    violations = {**verify.residuals(problem, values), **on_the_matrix(form, values)}
    agrees = abs(verify.objective(problem, values) - float(optimum)) <= verify.PAST * size
    if not agrees or verify.violated(violations) is not None:
        return checked
    repaired = Repaired(violation=max(checked.violations.values()), claimed=objective)
    return replace(checked, values=values, violations=violations, objective=float(optimum), repaired=repaired)


# Judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """What is proven: ``bound`` and ``gap`` are None, and the value not ``verified``, if results contradict each other.

    ``notes`` are the reasons for the record.
    """

    proof: Proof
    gap: float | None
    bound: Bound | None
    verified: bool
    infeasible_by: str | None
    notes: tuple[str, ...] = ()


def judge(
    problem: Formulation,
    tol: float,
    solved: Solved,
    checked: Checked,
    bounds: list[Bound],
    closed_forms: list[Bound],
    needed: Run | None,
) -> Judgement:
    """Judge what checked values and recomputed bounds prove, within a relative tolerance.

    ``closed_forms`` that are not among the bounds may only contradict the value; ``needed`` is the run whose solution
    is the data of this one.
    """
    sense, objective, verified = problem.sense, checked.objective, checked.verified
    bound = verify.tightest(bounds, sense)
    contradiction = verify.contradiction([*bounds, *closed_forms], objective if verified else None, sense)
    if verified and objective is not None and checked.values is not None and solved.outcome.termination in ENDED:
        contradiction = verify.misstated(problem, solved.form, checked.values, objective) or contradiction
    proof, gap = verify.prove(
        verified=verified, objective=objective, bound=None if bound is None else bound.value, sense=sense, tol=tol
    )
    notes: list[str] = []
    if contradiction is not None:  # one of our own results is wrong
        notes.append(f"{contradiction}; nothing is proven")
        proof, gap, bound, verified = Proof.NONE, None, None, False
    infeasible_by = solved.infeasible_by
    if needed is not None:
        own, (proof, gap) = proof, verify.capped(proof, gap, needed.proof, needed.record.gap)
        infeasible = None
        if needed.proof not in PROVEN:
            infeasible, infeasible_by = infeasible_by, None
        if proof is not own or infeasible is not None:
            notes.append(
                f"{own if infeasible is None else 'infeasible'} for its data, a solution of "
                f"{needed.task.formulation} that is only {needed.proof}: nothing stronger is proven"
            )
    return Judgement(proof, gap, bound, verified, infeasible_by, tuple(notes))
