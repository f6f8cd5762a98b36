"""What a solver or a method returned, verified, with all bounds that its answer and the formulation prove."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.formulations.model import Bound, is_own, states
from opticoll.formulations.variables import check_arrays
from opticoll.solvers import verify
from opticoll.solvers.compile.compilation import declared_arrays
from opticoll.solvers.relaxation import relaxation_bound, rounded
from opticoll.solvers.task import Kkt, Repaired, Termination

if TYPE_CHECKING:
    from opticoll.formulations import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.exact.lp_bound import ExactRelaxation
    from opticoll.solvers.run import Solved
    from opticoll.solvers.run_state import RunState

    Arrays = Mapping[str, F64]

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
    if values is None or (problem.variables and not values):
        return Checked()
    try:
        check_arrays(declared_arrays(problem, values.keys(), form), values, "solution")
    except BadFile as wrong:
        hint = f"; correct the axes of {problem.name}" if is_own(problem) and problem.variables else ""
        state.notes.append(f"refused: {wrong}{hint}")
        return Checked(violations={"arrays": np.inf})
    raw, on_matrix = verify.residuals(problem, values), on_the_matrix(form, values)
    violations, repaired = {**raw, **on_matrix}, None
    # Matrix violations are relative to other sizes: a violation negligible in ``raw`` may be too large there.
    good = max(raw.values(), default=0.0) <= EXACT and all(v <= verify.FEASIBLE for v in on_matrix.values())
    if not good and states(problem, "repair"):
        changed = problem.repair(values)
        if changed is not None:
            after = {**verify.residuals(problem, changed), **on_the_matrix(form, changed)}
            # A repair that a derived class inherits may not know the rows that it adds.
            if verify.violated(after) is None or max(after.values()) < max(violations.values()):
                repaired = Repaired(violation=max(violations.values()), claimed=verify.objective(problem, values))
                values, violations = changed, after
    if is_own(problem) and (unchecked := [name for name in problem.constraints if name not in raw]):
        state.notes.append(
            f"the checker of {problem.name} has no block {', '.join(unchecked)}: nothing checks these rows"
        )
    absent = [] if form is None or not is_own(problem) else [one for one in problem.constraints if one not in form.rows]
    if absent:
        state.notes.append(f"the model of {problem.name} has no row of {', '.join(absent)}")
    missed = verify.violated(violations)
    if missed is not None:
        state.notes.append(f"not verified: {missed}")
    elif is_own(problem) and _accepts_anything(problem, values):
        state.notes.append(f"the checker of {problem.name} accepts values far from these: it may check nothing")
    return Checked(values, violations, verify.objective(problem, values), missed is None, repaired)


def _accepts_anything(problem: Formulation, values: Arrays) -> bool:
    """Whether a checker accepts values moved far in a random direction and in the opposite one: no row allows both."""
    random = np.random.default_rng(0)
    far = {name: 1e3 * (1 + np.abs(array)) * random.normal(size=np.shape(array)) for name, array in values.items()}
    try:
        with np.errstate(all="ignore"):
            moved = ({name: values[name] + sign * far[name] for name in values} for sign in (1, -1))
            return all(worst <= verify.FEASIBLE for point in moved for worst in problem.residuals(point).values())
    except Exception:  # noqa: BLE001 - it refuses them
        return False


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
    result = [*solved.bounds, *bounds_from_duals(state, solved, objective)]
    open_ = _leave_gap(result, objective, sense, tol)
    # A wrong bound of the user's is reported, whatever the solver's duals prove.
    if analytic is None and (open_ or is_own(problem)):
        analytic = state.analytic()
    known = state.ready if analytic is None else analytic
    result += known if open_ else verify.differing_from(known, objective, sense)
    adapter = state.plan.adapter
    without_duals = out.row_duals is None or (adapter is not None and not adapter.capabilities.duals)
    if form is None or out.x is None:
        return Gathered(result, analytic)
    if (form.is_mip or without_duals) and _leave_gap(result, objective, sense, tol):
        relaxed = state.relaxed(form, relaxation_bound)
        result += [] if relaxed is None else [relaxed]
    if not left_open(state, solved, form, objective, result):
        return Gathered(result, analytic)
    exact = state.exact_relaxation(form)
    if exact is None:
        return Gathered(result, analytic)
    if exact.bound is None:
        state.notes.append(f"in rational arithmetic the relaxation is {exact.answer.status}: no bound")
        return Gathered(result, analytic)
    if form.is_mip:
        return Gathered([*result, attainable(form, exact.bound)], analytic)
    return Gathered([*result, exact.bound], analytic, exact if exact.x is not None else None)


def _leave_gap(bounds: list[Bound], objective: float | None, sense: str, tol: float) -> bool:
    """Whether the tightest of the bounds leaves a gap beyond the tolerance; one that is past the objective does not."""
    best = verify.tightest(bounds, sense)
    gap = None if best is None else verify.relative_gap(objective, best.value, sense)
    return gap is None or gap > tol


def bounds_from_duals(state: RunState, solved: Solved, objective: float | None) -> list[Bound]:
    """The bounds that the duals prove, by the formulation's certificate, else by weak duality.

    A certificate outside the package is not relied on alone.
    """
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
    open_ = is_own(problem) or _leave_gap(result, objective, problem.sense, verify.PAST)
    if form is not None and duals is not None and not form.is_mip and open_:
        value = verify.dual_bound(form, duals)
        if np.isfinite(value):
            result.append(Bound("lp-dual", value, "weak duality from the solver's row duals, recomputed"))
    return result


def left_open(
    state: RunState, solved: Solved, form: StandardForm, objective: float | None, bounds: list[Bound]
) -> bool:
    """Whether the solver solved the program, and the duals prove no bound, or one that only rounding keeps away."""
    best = verify.tightest(bounds, state.plan.problem.sense)
    if state.task.exact or verify.closes(best, objective, state.plan.problem.sense, state.task.tol):
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
    values = problem._unfold(form.values(exact))
    violations = {**verify.residuals(problem, values), **on_the_matrix(form, values)}
    agrees = abs(verify.objective(problem, values) - float(optimum)) <= verify.PAST * size
    if not agrees or verify.violated(violations) is not None:
        return checked
    repaired = Repaired(violation=max(checked.violations.values()), claimed=objective)
    return replace(checked, values=values, violations=violations, objective=float(optimum), repaired=repaired)


# Both ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What one solver or method contributes to a run.

    ``bounds`` are all recomputed bounds, ``closed_forms`` those that may only contradict the value, ``analytic`` the
    formulation's own among them, None if they were not needed or not computed in time.
    """

    state: RunState
    solved: Solved
    checked: Checked
    bounds: list[Bound]
    closed_forms: list[Bound]
    analytic: list[Bound] | None


def evidence_of(state: RunState, solved: Solved, analytic: list[Bound] | None = None) -> Evidence:
    """Verify what a solver or a method returned and gather the bounds; ``analytic`` are bounds computed before."""
    problem, start, before = state.plan.problem, time.monotonic(), state.times["exact_s"] or 0.0
    checked = state.asked("residuals, objective or repair", Checked(solved.values), check_values, state, solved)
    if state.budget.overdue and not checked.verified:
        solved = replace(solved, outcome=replace(solved.outcome, termination=Termination.TIME_LIMIT))
        state.notes.append("; no value is verified")
    gathered = gather_bounds(state, solved, checked.objective, analytic)
    bounds, sense, tol = gathered.bounds, problem.sense, state.task.tol
    best = verify.tightest(bounds, sense)
    if checked.verified and best is not None and not verify.closes(best, checked.objective, sense, tol):
        checked = state.asked("objective", checked, at_optimum, problem, solved, checked, best, gathered.optimum)
    closed_forms: list[Bound] = []
    if gathered.analytic is None:  # else they are among the analytic bounds
        closed_forms = state.asked("closed_forms", [], problem._closed_forms)
        if not verify.closes(best, checked.objective, sense, tol):  # the others took too long
            bounds = [*bounds, *closed_forms]
    state.times["verify_s"] = time.monotonic() - start - ((state.times["exact_s"] or 0.0) - before)
    return Evidence(state, solved, checked, bounds, closed_forms, gathered.analytic)
