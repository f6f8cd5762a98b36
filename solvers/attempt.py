"""Build and solve: the stated model by a solver, or the task by a method's procedure."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from opticoll.formulations.model import Bound
from opticoll.solvers import verify
from opticoll.solvers.adapters.interface import NO_SOLUTION
from opticoll.solvers.auto import PROOF, attempt_until
from opticoll.solvers.compile.building import compiled, unbuilt
from opticoll.solvers.compile.scaling import scaling_steps, solve_scaled
from opticoll.solvers.exact.integer_rows import contradiction
from opticoll.solvers.methods.method import Answer
from opticoll.solvers.plan import parameters_named
from opticoll.solvers.procedure import last_saved, send
from opticoll.solvers.process.budget import LimitReached
from opticoll.solvers.process.isolation import call_isolated
from opticoll.solvers.relaxation import (
    CLAIMED,
    FARKAS,
    NO_FLOW,
    UNBOUNDED,
    crossed,
    has_solution,
    infeasibility,
)
from opticoll.solvers.run import Solved
from opticoll.solvers.task import Outcome, SolveRequest, SolverInfo, StartRecord, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.course import Course
    from opticoll.solvers.methods.method import Reformulation

    Arrays = Mapping[str, NDArray[np.float64]]

#: What workers import before they run a procedure; its method imports the rest.
PROCEDURE_MODULES = ("opticoll.solvers.solve",)


def refuted_by(bound: Bound) -> Solved:
    """The end of a run without solving: a bound shows that there is no solution."""
    return Solved(
        Outcome(Termination.INFEASIBLE, message=f"infeasible by a bound: {bound.reason}"),
        SolverInfo(name=bound.name, algorithm="analytic bound", options={}),
        bounds=(bound,),
        infeasible_by=bound.name,
        refuted=True,
    )


def solve_model(course: Course) -> Solved:
    """Build and compile the model, and pass the matrix to the adapter, through a reformulation if there is one."""
    plan, task = course.plan, course.task
    assert plan.adapter is not None
    built = build(course)
    if isinstance(built, Outcome):
        return Solved(built)
    form, steps = built
    start = time.monotonic()
    deadline = attempt_until(task, plan, form, course.deadline)
    left = None if deadline is None else deadline - start
    if left is not None and left <= 0:
        out = Outcome(Termination.TIME_LIMIT, message="the time limit was used up by building the model")
        return Solved(out, form=form)
    with parameters_named(plan), course.spent_on("solve_s"):
        out = solve_scaled(
            form,
            plan.adapter.name,
            starting(course, form, SolveRequest(left, task.threads, task.tol, task.seed, dict(plan.options))),
            steps=steps,
            memory_limit_gib=course.budget.memory_left_gib(),
            on_progress=course.tell,
            stop=course.budget.stop,
        )
    course.times["solver_s"], course.times["solver_cpu_s"] = out.solve_s, out.cpu_s
    version = out.version or plan.adapter.version()
    solver = SolverInfo(name=plan.adapter.name, version=version, algorithm=out.algorithm, options=out.options)
    values = duals = None
    if out.x is not None:
        values = course.asked("unfold", None, plan.problem.unfold, form.values(verify.whole(form, out.x)))
    if out.row_duals is not None:
        duals = form.duals(out.row_duals)
    solved = Solved(out, solver, form, values, duals)
    return without_solution(course, form, solved) if out.termination in NO_SOLUTION else solved


def starting(course: Course, form: StandardForm, request: SolveRequest) -> SolveRequest:
    """The request, with the start that the caller has, if the solver takes one for this problem."""
    known, adapter = course.known, course.plan.adapter
    assert adapter is not None
    x = None if known.values is None else verify.pack(form, known.values)
    if x is not None and adapter.capabilities.warm_start and (form.is_mip or not adapter.capabilities.exact):
        course.start_used.append(adapter.name)
        request = replace(request, warm_start=x)
    return replace(request, basis=known.basis, want_basis=known.want_basis)


def build(course: Course) -> tuple[StandardForm, list[Reformulation]] | Outcome:
    """The compiled matrix and the steps in which it is solved, or the outcome if a limit was reached."""
    plan, made = course.plan, compiled(course)
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
        steps = course.budget.limited(reformulated, course.deadline)
    except (LimitReached, MemoryError) as reached:
        return unbuilt(reached)
    course.times["build_s"], course.times["compile_s"] = made.build_s, made.compile_s + time.monotonic() - start
    return form, steps


def without_solution(course: Course, form: StandardForm, solved: Solved) -> Solved:
    """What remains of the solver's claim that there is no solution, or none that is best, after trying to prove it."""
    out, possible = solved.outcome, True
    reason = crossed(form) or contradiction(form)
    if reason is not None:
        return replace(
            solved, outcome=replace(out, termination=Termination.INFEASIBLE, message=""), infeasible_by=reason
        )
    if out.termination is Termination.INFEASIBLE:
        reason, possible = course.relaxed(form, infeasibility) or (None, True)
        if reason is not None:
            return replace(solved, infeasible_by=reason)
    relaxed = course.exact_relaxation(form, out.x) if possible else None
    status = None if relaxed is None else relaxed.answer.status
    if status == "infeasible":
        return replace(solved, outcome=replace(out, termination=Termination.INFEASIBLE), infeasible_by=FARKAS)
    if status == "unbounded" and (not form.is_mip or course.relaxed(form, has_solution)):
        course.notes.append(UNBOUNDED)
        return replace(solved, outcome=replace(out, termination=Termination.UNBOUNDED))
    if status in ("optimal", "unbounded") and not form.is_mip:
        where = "" if course.task.exact else ", which exact=true returns"
        course.notes.append(f"{CLAIMED}: there is one in rational arithmetic{where}")
        return replace(solved, outcome=replace(out, termination=Termination.TOLERANCE))
    if out.termination is Termination.INFEASIBLE:
        course.notes.append(CLAIMED + (f"; method {PROOF} may prove it" if form.is_mip else ""))
    return solved


def call_procedure(course: Course, start: Arrays | None = None, bounds: tuple[Bound, ...] = ()) -> Solved:
    """Run a method's procedure in a separate worker, from a known solution and beside known bounds, if any."""
    plan, task = course.plan, course.task
    if start is not None and plan.method is not None and plan.method.starts:
        course.start_used.append(plan.method_name)
    pinned = {name: plan.settings[name] for name in task.settings}

    def relay(reported: dict[str, Any]) -> None:
        course.tell(reported["objective"], reported["answer"].bound)

    with course.spent_on("solve_s"):
        left = course.left_s()
        left = None if left is None else max(left, 0.01)
        sent = msgspec.structs.replace(task, settings=pinned, method=plan.method_name, exact=False, time_limit_s=left)
        call = call_isolated(
            "opticoll.solvers.solve:run_in_worker",
            send(sent, plan.instance, plan.needed, start),
            wall_limit_s=None if left is None else left * 1.05 + 3.0,
            memory_limit_gib=course.budget.memory_left_gib(),
            threads=task.threads,
            modules=PROCEDURE_MODULES,
            on_progress=relay,
            stop=course.budget.stop,
        )
    answer: Answer = call.values if call.ending is None else last_saved(call.values, call.ending)
    if answer.termination in NO_SOLUTION and answer.infeasible_by is None and plan.problem.concurrent is not None:
        answer.termination = Termination.TOLERANCE
        course.notes += [] if answer.values is not None else [NO_FLOW]
    if answer.bound is not None and answer.bound_source is not None:
        bounds += (Bound(answer.bound_source, answer.bound, "recomputed by the method's certificate"),)
    return Solved(
        Outcome(answer.termination, message=call.message or answer.message, peak_memory_mb=call.peak_memory_mb),
        SolverInfo.read({"name": plan.method_name, "options": {}, **answer.solver}),
        values=answer.values,
        duals=answer.duals,
        bounds=bounds,
        metrics=dict(answer.metrics),
        infeasible_by=answer.infeasible_by,
    )


def kept(course: Course, solved: Solved) -> Solved:
    """What was solved, or the given start if nothing better was found; the record says what became of it."""
    known, problem = course.known, course.plan.problem
    assert known.values is not None
    given = verify.objective(problem, known.values)
    found = None if solved.values is None else verify.objective(problem, solved.values)
    lead = None if found is None else verify.relative_gap(given, found, problem.sense)
    if solved.infeasible_by is not None:
        course.notes.append(f"{known.source} satisfies every constraint, against {solved.infeasible_by}")
        solved = replace(solved, infeasible_by=None, refuted=False)
    better = found is None or (lead is not None and lead < 0)
    course.start = StartRecord(source=known.source, objective=given, kept=better, used=course.start_used)
    if not better:
        return solved
    ended = solved.outcome.termination
    outcome = replace(
        solved.outcome, x=None, termination=Termination.ERROR if ended is Termination.INFEASIBLE else ended
    )
    return replace(solved, outcome=outcome, values=dict(known.values))
