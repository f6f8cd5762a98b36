"""Run one task: parse, prepare, build, solve in isolation, verify and record."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

import msgspec

from opticoll.errors import LimitSpent, NoSolution, OpticollError
from opticoll.formulations.model import Bound
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.variables import NamedArrays
from opticoll.solvers import auto
from opticoll.solvers.adapters import adapter
from opticoll.solvers.auto import PROOF_SHARE
from opticoll.solvers.evidence import Evidence, evidence_of
from opticoll.solvers.judge import best_of, judge
from opticoll.solvers.methods.registry import method_named
from opticoll.solvers.model_solve import kept, refuted_by, solve_model
from opticoll.solvers.plan import instance_of, make_plan, needed_task
from opticoll.solvers.procedure import call_procedure, run_procedure
from opticoll.solvers.process import memory, solver_log
from opticoll.solvers.process.budget import READING_S, Budget, LimitReached
from opticoll.solvers.record import properties, record_of
from opticoll.solvers.run import Continuation, Plan, Run
from opticoll.solvers.run_state import RunState
from opticoll.solvers.task import Task, Termination
from opticoll.solvers.warm_start import WarmStart

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from opticoll.instances import Instance
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Answer
    from opticoll.solvers.process.budget import OnProgress
    from opticoll.solvers.process.messages import Report
    from opticoll.solvers.task import Progress

    Arrays = dict[str, F64]


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
    with solver_log.streamed(log):
        budget = Budget(task, stop, on_progress)
        return _exactly(_solve(task, None, budget, known), budget)


def _solve(
    task: Task, instance: Instance | None, budget: Budget, known: WarmStart | None = None, *, proving: bool = False
) -> Run:
    """The six steps: parse, prepare, build, solve, verify, record; ``auto`` solves and verifies by several methods.

    A method that ``auto`` did not choose is continued only if the run is ``proving``.
    """
    plan, instance, needed, known, refutation = _prepared(task, instance, budget, known)
    if needed is None:
        budget.start_solving()
    state = RunState(task, plan, budget, auto.first_until(plan, budget.deadline), known)
    if refutation is not None:
        solved = refuted_by(refutation)
    else:
        solved = solve_model(state) if plan.procedure is None else call_procedure(state, known.values)
    if known.values is not None:
        solved = kept(state, solved)
    found = [evidence_of(state, solved)]
    for following in auto.continuations(found[0], proving=proving):
        deadline = _deadline_of(following, budget)
        if auto.settled(found) or budget.stopped or (deadline is not None and deadline <= time.monotonic()):
            break
        found += _continued(found, following.method, deadline)
    return auto.explained(finish(found, needed))


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
        refutation = made.problem._refute()
        if refutation is None:
            memory.refuse_plan(task, made)
        if refutation is None and task.exact and made.problem._needs is None:
            from opticoll.solvers.exact.prove import exact_problem

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


def _deadline_of(following: Continuation, budget: Budget) -> float | None:
    """When a method ends that continues a run; one with a limit of its own has a share of the time left at most."""
    now, most = time.monotonic(), following.limit_s
    if most is None or (budget.deadline is None and most == math.inf):
        return budget.deadline
    return now + (most if budget.deadline is None else min(most, PROOF_SHARE * (budget.deadline - now)))


def _continued(found: Sequence[Evidence], method: str, deadline: float | None) -> list[Evidence]:
    """What another method finds from the best solution and bound so far; nothing, with a note, if it is refused."""
    first, (lead, bound) = found[0], best_of(found)
    task, plan = first.state.task, first.state.plan
    left = None if deadline is None else deadline - time.monotonic()
    own = {name: value for name, value in task.settings.items() if name in plan.parameters}
    other = msgspec.structs.replace(task, method=method, form=plan.form, settings=own, time_limit_s=left)
    procedure = method_named(method)
    solver = adapter(method) if procedure is None else None
    chosen = {} if procedure is None else read_parameters(procedure.parameters, {}, method)
    plan = replace(plan, method=procedure, adapter=solver, choice=None, options={}, method_parameters=chosen)
    state = RunState(other, plan, first.state.budget, deadline, replace(first.state.known, form=first.solved.form))
    try:
        if procedure is None:
            solved = solve_model(state)
        else:
            solved = call_procedure(state, lead.checked.values if lead.checked.verified else None)
    except OpticollError as error:
        lead.state.notes.append(f"{method} could not continue: {error}")
        return []
    known = () if bound is None else (bound,)
    return [evidence_of(state, replace(solved, bounds=(*known, *solved.bounds)), first.analytic)]


def finish(found: Sequence[Evidence], needed: Run | None) -> Run:
    """Judge and record what was found; ``needed`` is the run whose solution is the data of this one."""
    judgement = judge(found, needed)
    state, lead = found[0].state, judgement.lead
    metrics = properties(judgement)
    record = record_of(found, judgement, metrics, needed)
    values = None if lead.checked.values is None else NamedArrays(lead.checked.values)
    duals = None if lead.solved.duals is None else dict(lead.solved.duals)
    basis = lead.solved.outcome.basis if lead.checked.repaired is None else None
    return Run(state.task, record, values, duals, state.plan, lead.analytic, needed, basis=basis)


def _exactly(run: Run, budget: Budget) -> Run:
    """The run after the exact step, if its task asks for one and there is time left."""
    if not budget.task.exact or budget.overdue:
        return run
    from opticoll.solvers.exact.prove import proven_exactly

    return proven_exactly(run, budget.stop)


def solve_needed(task: Task, instance: Instance, plan: Plan, caller: Budget) -> Run | None:
    """Solve the formulation whose solution the task's formulation takes as data, if any.

    Raises
    ------
    NoSolution
        If no verified solution of it is found within the limits.
    """
    needs = plan.problem._needs
    if needs is None:
        return None
    basis, show = needed_task(task, plan), caller.on_progress

    def told(progress: Progress) -> None:
        if show is not None:
            show({**progress, "of": progress.get("of", needs.formulation)})

    budget = Budget(basis, caller.stop, None if show is None else told)
    default = next((p.default for p in plan.problem.parameters if p.name == needs.method), None)
    proving = task.method == "auto" and basis.method == default
    first = _exactly(_solve(basis, instance, budget, proving=proving), budget)
    if first.values is None or not first.verified:
        source = f"{task.formulation} takes its data from {basis.formulation}"
        msg = f"{source}, which ended with {first.termination}; raise the limits"
        raise NoSolution(msg)
    return first


def run_in_worker(sent: bytes, needed: Arrays, start: Arrays, report: Report) -> Answer:
    """Run a method's procedure; target of :func:`opticoll.solvers.process.isolation.call_isolated`."""
    return run_procedure(sent, needed, start, report, solve)
