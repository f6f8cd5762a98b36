"""Run one task: parse, prepare, build, solve in isolation, verify and record."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

import msgspec

from opticoll.errors import LimitSpent, NoSolution, OpticollError
from opticoll.formulations.model import Bound, read_parameters
from opticoll.formulations.registry import bounds_of
from opticoll.formulations.variables import NamedArrays
from opticoll.plugin_faults import exits_refused
from opticoll.solvers import auto, verify
from opticoll.solvers.auto import PROOF, PROOF_SHARE, continuations, joined, settled
from opticoll.solvers.judge import Checked, at_optimum, check_values, gather_bounds, judge, met
from opticoll.solvers.methods.registry import method_named
from opticoll.solvers.model_solve import kept, refuted_by, solve_model
from opticoll.solvers.plan import instance_of, make_plan, needed_task
from opticoll.solvers.procedure import call_procedure, run_procedure
from opticoll.solvers.process import memory, solver_log
from opticoll.solvers.process.budget import READING_S, Budget, LimitReached
from opticoll.solvers.record import properties, record_of
from opticoll.solvers.run import Continuation, Plan, Run
from opticoll.solvers.run_state import RunState
from opticoll.solvers.task import PROVEN, Task, Termination, joined_messages
from opticoll.solvers.warm_start import WarmStart

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from opticoll.instances import Instance
    from opticoll.solvers.methods.method import Answer
    from opticoll.solvers.process.budget import OnProgress
    from opticoll.solvers.process.messages import Report
    from opticoll.solvers.run import Solved

    Arrays = dict[str, NDArray[np.float64]]


def solve(
    task: Task,
    *,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    log: TextIO | None = None,
    known: WarmStart | None = None,
) -> Run:
    """Solve a task.

    Parameters
    ----------
    task
        What to solve and how.
    on_progress
        Called with the objective and the bound whenever they improve.
    stop
        Ends the solve when set, e.g. from another thread; the incumbent and the bound are kept.
    log
        Stream that shows the solvers' own logs while they run, with incumbents and bounds between their lines.
    known
        What the caller has already, such as a solution to start from.

    Returns
    -------
        The run, also when the solve failed: see its termination and proof.

    Raises
    ------
    BadInput
        For any input that can be refused before solving, and for unknown solver options.
    SolverUnavailable
        If the solver's package or licence is missing, or the licence is too small.
    TooLarge
        If the solve cannot fit in the memory limit or in the available memory; nothing is started.
    """
    with solver_log.streamed(log), exits_refused():
        budget = Budget(task, stop, on_progress)
        return _exactly(_solve(task, None, budget, known), budget)


def _solve(task: Task, instance: Instance | None, budget: Budget, known: WarmStart | None = None) -> Run:
    """The six steps: parse, prepare, build, solve, verify, record; then other methods, if ``auto`` continues."""
    plan, instance, needed, known, refutation = _prepared(task, instance, budget, known)
    if needed is None:
        budget.start_solving()
    state = RunState(task, plan, budget, budget.deadline, known)
    analytic: list[Bound] = []
    if refutation is not None:
        solved = refuted_by(refutation)
    else:
        with state.bounds_ahead(lambda: bounds_of(plan.problem)) as analytic:
            solved = solve_model(state) if plan.procedure is None else call_procedure(state, known.values)
    if known.values is not None:
        solved = kept(state, solved)
    run = finish(state, solved, needed, list(analytic) or None)
    if plan.choice is None:
        return auto.explained(run)
    misled = run.termination in (Termination.INFEASIBLE, Termination.TOLERANCE) and not run.verified
    if plan.method_name == auto.TIME_FORM and misled:  # no time is finite, F = 0 may be
        other = _solve(msgspec.structs.replace(task, method=auto.SIMPLEX), instance, budget, known)
        record = msgspec.structs.replace(other.record, key=run.record.key, requested=run.record.requested)
        return replace(other, task=task, record=record)
    return _continued(run, continuations(plan.choice, run), budget)


def _prepared(
    task: Task, instance: Instance | None, budget: Budget, known: WarmStart | None
) -> tuple[Plan, Instance, Run | None, WarmStart, Bound | None]:
    """The plan of a task, its instance, the run whose solution is its data, the checked start, and a refutation.

    Raises
    ------
    LimitSpent
        If a limit is reached.
    """

    def first() -> tuple[Instance, Plan]:
        read = instance_of(task) if instance is None else instance
        return read, make_plan(task, instance=read)

    def second() -> tuple[Plan, WarmStart, Bound | None]:
        made = plan if needed is None else make_plan(task, instance=read, needed=needed.values)
        start = WarmStart() if known is None else known.checked(made)
        refutation = made.problem.refute()
        if refutation is None:
            memory.refuse_plan(task, made)
        if refutation is None and task.exact and made.problem.needs is None:
            from opticoll.solvers.exact.prove import exact_problem, on_orbits

            if not on_orbits(made.problem):
                made = replace(made, stated=exact_problem(made.problem))
        return made, start, refutation

    try:
        read, plan = budget.limited(first, budget.deadline, least_s=READING_S)
        needed = solve_needed(task, read, plan, budget)
        plan, start, refutation = budget.limited(second, budget.deadline, least_s=READING_S)
    except LimitReached as reached:
        remedy = "; raise the limit or use a smaller instance"
        interrupted = reached.termination is Termination.INTERRUPTED
        msg = f"{reached} while {task.instance} was read and prepared{'' if interrupted else remedy}"
        raise LimitSpent(msg, reached.termination) from None
    return plan, read, needed, start, refutation


def finish(state: RunState, solved: Solved, needed: Run | None, analytic: list[Bound] | None = None) -> Run:
    """Verify, judge and record what a solver or a method returned.

    ``needed`` is the run whose solution is the data of this one, ``analytic`` are bounds computed before.
    """
    problem, start, before = state.plan.problem, time.monotonic(), state.times["exact_s"] or 0.0
    checked = state.asked("residuals, objective or repair", Checked(solved.values), check_values, state, solved)
    if state.budget.overdue and not checked.verified:
        solved = replace(solved, outcome=replace(solved.outcome, termination=Termination.TIME_LIMIT))
        state.notes.append("; no value is verified")
    gathered = gather_bounds(state, solved, checked.objective, analytic)
    best = verify.tightest(gathered.bounds, problem.sense)
    if checked.verified and best is not None and not met(state, checked.objective, best):
        checked = state.asked("objective", checked, at_optimum, problem, solved, checked, best, gathered.optimum)
    closed_forms: list[Bound] = []
    bounds = gathered.bounds
    if gathered.analytic is None:  # else they are among the analytic bounds
        closed_forms = state.asked("closed_forms", [], problem.closed_forms)
        if not met(state, checked.objective, best):  # the others took too long
            bounds = [*bounds, *closed_forms]
    judgement = judge(problem, state.task.tol, solved, checked, bounds, closed_forms, needed)
    state.notes += judgement.notes
    if judgement.proof in PROVEN and solved.outcome.termination is Termination.TOLERANCE:  # bounds reach it
        solved = replace(solved, outcome=replace(solved.outcome, termination=Termination.OPTIMAL))
    state.times["verify_s"] = time.monotonic() - start - ((state.times["exact_s"] or 0.0) - before)
    metrics = properties(state, solved, checked, judgement)
    record = record_of(state, solved, checked, judgement, metrics, needed)
    values = None if checked.values is None else NamedArrays(checked.values)
    duals = None if solved.duals is None else dict(solved.duals)
    basis = solved.outcome.basis if checked.repaired is None else None
    return Run(state.task, record, values, duals, state.plan, gathered.analytic, needed, basis=basis)


def _continued(run: Run, methods: Sequence[Continuation], budget: Budget) -> Run:
    """Continue with other methods, in order, a run that did not prove the optimum of the stated model."""
    plan = run.plan
    for following in methods:
        now = time.monotonic()
        if settled(run) or budget.stopped:
            break
        deadline = budget.deadline
        if deadline is not None and deadline <= now:
            break
        if following.limit_s is not None:
            most = following.limit_s
            deadline = now + (most if deadline is None else min(most, PROOF_SHARE * (deadline - now)))
        assert plan is not None
        run = _continued_by(following.method, run, plan, deadline, budget)
    return auto.explained(run)


def _continued_by(method: str, first: Run, plan: Plan, deadline: float | None, budget: Budget) -> Run:
    """Continue with another method after a run that did not prove the optimum of the stated model."""
    task, old = first.task, first.record
    left = None if deadline is None else deadline - time.monotonic()
    own = {name: value for name, value in task.settings.items() if name in plan.parameters}
    other = msgspec.structs.replace(task, method=method, form=plan.form, settings=own, time_limit_s=left)
    procedure = method_named(method)
    assert procedure is not None
    chosen = read_parameters(procedure.parameters, {}, method)
    next_plan = replace(plan, method=procedure, adapter=None, choice=None, options={}, method_parameters=chosen)
    state = RunState(other, next_plan, budget, deadline)
    bounds: tuple[Bound, ...] = ()
    if old.bound is not None:
        bounds = (Bound(str(old.bound_source), old.bound, "proven for the stated model"),)
    try:
        solved = call_procedure(state, first.values if first.verified else None, bounds)
    except OpticollError as error:
        message = joined_messages(old.message, f"{method} could not continue: {error}")
        return replace(first, record=msgspec.structs.replace(old, message=message))
    return joined(first, finish(state, solved, first.needed, first.bounds), method)


def _exactly(run: Run, budget: Budget) -> Run:
    """The run after the exact step, if its task asks for one and there is time left."""
    if not budget.task.exact or budget.overdue:
        return run
    from opticoll.solvers.exact.prove import proven_exactly

    return proven_exactly(run, budget.stop, lambda task, stop: solve(task, stop=stop))


def solve_needed(task: Task, instance: Instance, plan: Plan, caller: Budget) -> Run | None:
    """Solve the formulation whose solution the task's formulation takes as data, if any.

    Raises
    ------
    NoSolution
        If no verified solution of it is found within the limits.
    """
    if plan.problem.needs is None:
        return None
    basis = needed_task(task, plan)
    budget = Budget(basis, caller.stop, caller.on_progress)
    first = _solve(basis, instance, budget)
    default = next((p.default for p in plan.problem.parameters if p.name == plan.problem.needs.method), None)
    if task.method == "auto" and basis.method == default and auto.can_be_branched(first):
        if budget.deadline is not None:  # the task itself needs time too
            budget.deadline -= PROOF_SHARE * max(budget.deadline - time.monotonic(), 0.0)
        first = _continued(first, [Continuation(PROOF)], budget)
    first = _exactly(first, budget)
    if first.values is None or not first.verified:
        source = f"{task.formulation} takes its data from {basis.formulation}"
        msg = f"{source}, which ended with {first.termination}; raise the limits"
        raise NoSolution(msg)
    return first


def run_in_worker(sent: bytes, needed: Arrays, start: Arrays, report: Report) -> Answer:
    """Run a method's procedure; target of :func:`opticoll.solvers.process.isolation.call_isolated`."""
    return run_procedure(sent, needed, start, report, solve)
