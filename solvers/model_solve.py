"""Build the stated model and solve it by a solver."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Bound
from opticoll.formulations.standard_form import packed
from opticoll.solvers import verify
from opticoll.solvers.adapters.interface import NO_SOLUTION
from opticoll.solvers.auto import PROOF, SIMPLEX, attempt_until
from opticoll.solvers.compile.building import compiled, unbuilt
from opticoll.solvers.compile.scaling import scaling_steps, solve_scaled
from opticoll.solvers.plan import parameters_named
from opticoll.solvers.process.budget import LimitReached
from opticoll.solvers.relaxation import CLAIMED, FARKAS, UNBOUNDED, has_solution, infeasibility
from opticoll.solvers.run import Solved
from opticoll.solvers.task import (
    BASIC,
    LOWER,
    UPPER,
    ZERO,
    Outcome,
    SimplexBasis,
    SolveRequest,
    SolverInfo,
    StartRecord,
    Termination,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, Mask
    from opticoll.solvers.methods.method import Reformulation
    from opticoll.solvers.run_state import RunState

    Arrays = Mapping[str, F64]


def refuted_by(bound: Bound) -> Solved:
    """The end of a run without solving: a bound shows that there is no solution."""
    return Solved(
        Outcome(Termination.INFEASIBLE, message=f"infeasible by a bound: {bound.reason}"),
        SolverInfo(name=bound.name, algorithm="analytic bound", options={}),
        bounds=(bound,),
        infeasible_by=bound.name,
        refuted=True,
    )


def solve_model(state: RunState) -> Solved:
    """Build and compile the model, and pass the matrix to the adapter, through a reformulation if there is one."""
    plan, task = state.plan, state.task
    assert plan.adapter is not None
    built = build(state)
    if isinstance(built, Outcome):
        return Solved(built)
    form, steps = built
    start = time.monotonic()
    deadline = attempt_until(task, plan, form, state.deadline)
    left = None if deadline is None else deadline - start
    if left is not None and left <= 0:
        out = Outcome(Termination.TIME_LIMIT, message="the time limit was used up by building the model")
        return Solved(out, form=form)
    with parameters_named(plan), state.spent_on("solve_s"):
        out = solve_scaled(
            form,
            plan.adapter.name,
            starting(state, form, SolveRequest(left, task.threads, task.tol, task.seed, dict(plan.options))),
            steps=steps,
            memory_limit_gib=state.budget.memory_left_gib(),
            on_progress=state.tell,
            stop=state.budget.stop,
        )
    state.times["solver_s"], state.times["solver_cpu_s"] = out.solve_s, out.cpu_s
    version = out.version or plan.adapter.version()
    solver = SolverInfo(name=plan.adapter.name, version=version, algorithm=out.algorithm, options=out.options)
    values = duals = None
    if out.x is not None:
        values = state.asked("unfold", None, plan.problem._unfold, form.values(verify.whole(form, out.x)))
    if out.row_duals is not None:
        duals = form.duals(out.row_duals)
    solved = Solved(out, solver, form, values, duals)
    return without_solution(state, form, solved) if out.termination in NO_SOLUTION else solved


def starting(state: RunState, form: StandardForm, request: SolveRequest) -> SolveRequest:
    """The request, with the start that the caller has, if the solver takes one for this problem."""
    known, adapter = state.known, state.plan.adapter
    assert adapter is not None
    x = None if known.values is None else verify.pack(form, known.values)
    if adapter.capabilities.warm_start and (form.is_mip or not adapter.capabilities.exact):
        if x is not None:
            state.start_used.append(adapter.name)
            request = replace(request, warm_start=x)
        elif known.values is not None:
            state.notes.append(f"{known.source} has no value for some variable of the stated model")
    basis = feasible_basis(state, form) if known.basis is None else known.basis
    return replace(request, basis=basis, want_basis=known.want_basis)


def feasible_basis(state: RunState, form: StandardForm) -> SimplexBasis | None:
    """The basis from which ``auto`` starts the simplex method on the stated model; None if none is known."""
    plan = state.plan
    if plan.choice is None or plan.options or plan.method_name != SIMPLEX:
        return None
    entries = plan.problem._feasible_basis()
    return None if entries is None else basis_of(form, entries)


def basis_of(form: StandardForm, entries: Mapping[str, Mask]) -> SimplexBasis | None:
    """The basis with these basic entries of variables and constraints; None if they are too many or too few.

    Such as those of a class from which the formulation is derived, where it has rows of its own.
    """
    (rows, columns), named = form.stored.shape, {name: mask.astype(float) for name, mask in entries.items()}
    basic = np.concatenate([packed(form.columns, columns, named), packed(form.rows, rows, named)]) == 1.0
    lower, upper = np.r_[form.col_lower, form.row_lower], np.r_[form.col_upper, form.row_upper]
    at_bound = np.where(np.isfinite(lower), LOWER, np.where(np.isfinite(upper), UPPER, ZERO))
    status = np.where(basic, BASIC, at_bound).astype(np.int8)
    return SimplexBasis(status[:columns], status[columns:], feasible=True) if basic.sum() == rows else None


def build(state: RunState) -> tuple[StandardForm, list[Reformulation]] | Outcome:
    """The compiled matrix and the steps in which it is solved, or the outcome if a limit was reached."""
    plan, made = state.plan, compiled(state)
    if isinstance(made, Outcome):
        return made
    form, start = made.form, time.monotonic()

    def reformulated() -> list[Reformulation]:
        assert plan.adapter is not None
        steps = scaling_steps(form, integer_data=plan.adapter.capabilities.integer_data_only)
        if plan.method is not None and plan.method.reformulate is not None:
            target = steps[-1].form if steps else form
            steps.append(plan.method.reformulate(target, plan.problem))
        return steps

    try:
        steps = state.budget.limited(reformulated, state.deadline)
    except (LimitReached, MemoryError) as reached:
        return unbuilt(reached)
    state.times["build_s"], state.times["compile_s"] = made.build_s, made.compile_s + time.monotonic() - start
    return form, steps


def without_solution(state: RunState, form: StandardForm, solved: Solved) -> Solved:
    """What remains of the solver's claim that there is no solution, or none that is best, after trying to prove it."""
    out, possible = solved.outcome, True
    reason = verify.crossed(form)
    if reason is not None:
        return replace(
            solved, outcome=replace(out, termination=Termination.INFEASIBLE, message=""), infeasible_by=reason
        )
    if out.termination is Termination.INFEASIBLE:
        reason, possible = state.relaxed(form, infeasibility) or (None, True)
        if reason is not None:
            return replace(solved, infeasible_by=reason)
    relaxed = state.exact_relaxation(form) if possible else None
    status = None if relaxed is None else relaxed.answer.status
    if status == "infeasible":
        return replace(solved, outcome=replace(out, termination=Termination.INFEASIBLE), infeasible_by=FARKAS)
    if status == "unbounded" and (not form.is_mip or state.relaxed(form, has_solution)):
        state.notes.append(UNBOUNDED)
        return replace(solved, outcome=replace(out, termination=Termination.UNBOUNDED))
    if status in ("optimal", "unbounded") and not form.is_mip:
        where = "" if state.task.exact else ", which exact solving (--exact, exact=True) returns"
        state.notes.append(f"{CLAIMED}: there is one in rational arithmetic{where}")
        return replace(solved, outcome=replace(out, termination=Termination.TOLERANCE))
    if out.termination is Termination.INFEASIBLE:
        state.notes.append(CLAIMED + (f"; method {PROOF} may prove it" if form.is_mip else ""))
    return solved


#: How much better a start may be, for every unit by which it violates rows, to count as better by that alone.
MULTIPLIER = 1e3


def kept(state: RunState, solved: Solved) -> Solved:
    """What was solved, or the given start if nothing better was found; the record says what became of it."""
    known, problem = state.known, state.plan.problem
    assert known.values is not None
    given = verify.objective(problem, known.values)
    found = None if solved.values is None else verify.objective(problem, solved.values)
    lead = None if found is None else verify.relative_gap(given, found, problem.sense)
    if solved.infeasible_by is not None:
        state.notes.append(f"{known.source} satisfies every constraint, against {solved.infeasible_by}")
        solved = replace(solved, infeasible_by=None, refuted=False)
    better = found is None or (lead is not None and lead < 0)
    if solved.values is not None and lead is not None and lead < 0:
        start, own = (
            max(verify.residuals(problem, one).values(), default=0.0) for one in (known.values, solved.values)
        )
        if own < start and -lead <= MULTIPLIER * start:
            state.notes.append(f"{known.source} is better only by its violation of {start:.2g}, and is not kept")
            better = False
    state.start = StartRecord(source=known.source, objective=given, kept=better, used=state.start_used)
    if not better:
        return solved
    ended = solved.outcome.termination
    outcome = replace(
        solved.outcome, x=None, termination=Termination.ERROR if ended is Termination.INFEASIBLE else ended
    )
    return replace(solved, outcome=outcome, values=dict(known.values))
