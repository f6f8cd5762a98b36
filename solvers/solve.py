"""Run one task: build, compile, solve in isolation, verify, prove and record."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import msgspec
import numpy as np

from opticoll.errors import BadFile, BadInput, LimitSpent, NoSolution, OpticollError
from opticoll.formulations.model import Bound, read_parameters, states
from opticoll.formulations.registry import bounds_of
from opticoll.formulations.variables import check_arrays
from opticoll.instances import MatrixProgram, plugins
from opticoll.solvers import auto, memory, solver_log, verify
from opticoll.solvers.adapters.interface import NO_SOLUTION
from opticoll.solvers.auto import (
    ENDED,
    PROOF,
    PROOF_S,
    PROOF_SHARE,
    Continuation,
    attempt_until,
    continuations,
    joined,
    model_info,
    settled,
)
from opticoll.solvers.isolation import BOUNDS_S, Budget, LimitReached, call_isolated, modules_of, write_isolated
from opticoll.solvers.methods.method import Answer
from opticoll.solvers.methods.registry import METHOD_PARAMETERS, method_named
from opticoll.solvers.plan import (
    Plan,
    digests_after_run,
    instance_of,
    make_plan,
    needed_task,
    parameters_named,
    plan_key,
    receive,
    run_procedure,
    send,
)
from opticoll.solvers.relaxation import (
    CLAIMED,
    FARKAS,
    UNBOUNDED,
    crossed,
    has_solution,
    infeasibility,
    relaxation_bound,
    rounded,
    scaling_steps,
    solve_scaled,
)
from opticoll.solvers.standard_form import compile_built, declared_arrays, import_layer
from opticoll.solvers.task import (
    NOTE,
    Kkt,
    Needed,
    Outcome,
    Proof,
    Record,
    Repaired,
    Requested,
    Run,
    Size,
    SolverClaims,
    SolveRequest,
    SolverInfo,
    Task,
    Termination,
    Times,
    one_line,
    texts,
)
from opticoll.solvers.worker import start_ahead

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.formulations.model import Formulation
    from opticoll.instances import Instance
    from opticoll.instances.types import Settings
    from opticoll.solvers.exact.lp_bound import ExactRelaxation
    from opticoll.solvers.messages import Report
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Progress

    OnProgress = Callable[[Progress], None]
    Arrays = dict[str, NDArray[np.float64]]


_Result = TypeVar("_Result")

#: A raw solution with a worst violation above this is repaired if possible.
EXACT = 1e-9
#: Errors of the optimality conditions up to which a gap that remains is due to rounding, not to the solver.
ACCURATE = 1e-8


def solve(
    task: Task,
    *,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    log: TextIO | None = None,
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
    with solver_log.streamed(log), plugins.exits_refused():
        return _exactly(_solve(task, None, on_progress, stop, budget := Budget(task, stop)), budget)


def _solve(
    task: Task, instance: Instance | None, on_progress: OnProgress | None, stop: threading.Event | None, budget: Budget
) -> Run:
    try:
        with budget.reading() as limits:
            instance = instance_of(task) if instance is None else instance
            first = make_plan(task, instance=instance)
        needed = _solve_needed(task, instance, first, on_progress, stop)
        with budget.reading() as limits:
            plan = first if needed is None else make_plan(task, instance=instance, needed=needed.values)
            refuted = plan.formulation.refute()
            if refuted is None:
                memory.refuse_plan(task, plan)
            if refuted is None and task.exact and plan.formulation.needs is None:
                from opticoll.solvers.exact.prove import exact_problem

                plan = replace(plan, stated=exact_problem(plan.formulation))
    except LimitReached:
        assert limits.ending is not None
        msg = f"{limits.message} while {task.instance} was read and prepared; raise the limit or use a smaller instance"
        raise LimitSpent(msg, limits.ending) from None
    if needed is None:
        budget.start_solving()
    work = _Work(task, plan, budget.deadline, on_progress, stop, budget)
    if refuted is not None:
        work.refuted(refuted)
    elif plan.procedure is not None:
        work.call_procedure()
    else:
        work.solve_matrix()
    run = work.finish(needed)
    if plan.choice is None:
        return auto.explained(run)
    return _continued(run, continuations(plan.choice, run), on_progress, stop, budget)


def _continued(
    run: Run,
    methods: Sequence[Continuation],
    on_progress: OnProgress | None,
    stop: threading.Event | None,
    budget: Budget,
) -> Run:
    """Continue with other methods, in order, a run that did not prove the optimum of the stated model."""
    plan = run.plan
    for following in methods:
        now = time.monotonic()
        if settled(run) or (stop is not None and stop.is_set()):
            break
        deadline = budget.deadline
        if deadline is not None and deadline <= now:
            break
        if following.brief:
            left = PROOF_S if deadline is None else min(PROOF_S, PROOF_SHARE * (deadline - now))
            deadline = now + left
        assert plan is not None
        run = _continued_by(following.method, run, plan, deadline, on_progress, stop, budget)
    return auto.explained(run)


def _continued_by(
    method: str,
    first: Run,
    plan: Plan,
    deadline: float | None,
    on_progress: OnProgress | None,
    stop: threading.Event | None,
    budget: Budget,
) -> Run:
    """Continue with another method after a run that did not prove the optimum of the stated model."""
    task, old = first.task, first.record
    left = None if deadline is None else deadline - time.monotonic()
    own = {name: value for name, value in task.settings.items() if name in plan.parameters}
    other = msgspec.structs.replace(task, method=method, form=plan.form, settings=own, time_limit_s=left)
    procedure = method_named(method)
    assert procedure is not None
    next_plan = replace(
        plan,
        method=method,
        reformulation=None,
        procedure=procedure,
        adapter=None,
        choice=None,
        options={},
        method_parameters=read_parameters(procedure.parameters, {}, method),
    )
    try:
        work = _Work(other, next_plan, deadline, on_progress, stop, budget)
        work.analytic = first.bounds
        work.start = first.values if first.verified else None
        if old.bound is not None:
            work.bounds.append(Bound(str(old.bound_source), old.bound, "proven for the stated model"))
        work.call_procedure()
    except OpticollError as error:
        message = f"{old.message} {method} could not continue: {error}".strip()
        return replace(first, record=msgspec.structs.replace(old, message=message))
    return joined(first, work.finish(first.needed), method)


def _exactly(run: Run, budget: Budget) -> Run:
    """The run after the exact step, if its task asks for one and there is time left."""
    if not budget.task.exact or budget.overdue:
        return run
    from opticoll.solvers.exact.prove import proven_exactly

    return proven_exactly(run, budget.stop)


def _solve_needed(
    task: Task, instance: Instance, plan: Plan, on_progress: OnProgress | None, stop: threading.Event | None
) -> Run | None:
    """Solve the formulation whose solution the task's formulation takes as data, if any.

    Raises
    ------
    NoSolution
        If no verified solution of it is found within the limits.
    """
    if plan.formulation.needs is None:
        return None
    basis = needed_task(task, plan)
    first = _solve(basis, instance, on_progress, stop, budget := Budget(basis, stop))
    parameter = METHOD_PARAMETERS.get(plan.formulation.name)
    default = next((p.default for p in plan.formulation.parameters if p.name == parameter), None)
    if task.method == "auto" and basis.method == default and auto.can_be_branched(first):
        if budget.deadline is not None:  # the task itself needs time too
            budget.deadline -= PROOF_SHARE * max(budget.deadline - time.monotonic(), 0.0)
        first = _continued(first, [Continuation(PROOF)], on_progress, stop, budget)
    first = _exactly(first, budget)
    if first.values is None or not first.verified:
        source = f"{task.formulation} takes its data from {basis.formulation}"
        msg = f"{source}, which ended with {first.termination}; raise the limits"
        raise NoSolution(msg)
    return first


def export(
    formulation_name: str | type[Formulation],
    instance: str,
    path: Path,
    form: str | None = None,
    settings: Settings | None = None,
) -> None:
    """Write the matrix of a formulation on an instance as MPS or LP, with the names in its docstring or its own file.

    Raises
    ------
    BadInput
        If the file name ends in neither ``.mps`` nor ``.lp``, its folder is missing, or the task is refused.
    """
    if path.suffix not in {".mps", ".lp"}:
        msg = f"export: {path.name} must end in .mps or .lp"
        raise BadInput(msg)
    if not path.parent.is_dir():
        msg = f"export: the folder {path.parent} does not exist; create it first"
        raise BadInput(msg)
    task = Task(formulation_name, instance, method="highs", form=form, settings=settings or {})
    value = instance_of(task)
    plan = make_plan(task, instance=value)
    needed = _solve_needed(task, value, plan, None, None)
    plan = plan if needed is None else make_plan(task, instance=value, needed=needed.values)
    built = plan.formulation.build(plan.form)
    names = None
    if isinstance(value, MatrixProgram) and plan.form == "matrix":
        names = (list(value.column_names), list(value.row_names))
    write_isolated(compile_built(plan.formulation, built), "highs", path, names=names)


def run_in_worker(arguments: dict[str, Any], arrays: Arrays, report: Report) -> tuple[dict[str, Any], Arrays]:
    """Run a method's procedure; target of :func:`opticoll.solvers.isolation.call_isolated`."""
    return run_procedure(arguments, arrays, report, solve)


class _Work:
    """The state of one run between its steps."""

    def __init__(
        self,
        task: Task,
        plan: Plan,
        deadline: float | None,
        on_progress: OnProgress | None,
        stop: threading.Event | None,
        budget: Budget,
    ) -> None:
        self.budget = budget
        self.task, self.plan, self.deadline, self.on_progress, self.stop = task, plan, deadline, on_progress, stop
        parts = ("load_s", "build_s", "compile_s", "solve_s", "solver_s", "solver_cpu_s", "verify_s", "exact_s")
        self.times: dict[str, float | None] = dict.fromkeys(parts)
        self.form: StandardForm | None = None
        self.outcome = Outcome(Termination.ERROR)
        self.values: Arrays | None = None
        self.duals: Arrays | None = None
        self.bounds: list[Bound] = []
        self.start: Arrays | None = None  # a known solution
        self.violations: dict[str, float] = {}
        self.analytic: list[Bound] | None = None
        self.metrics: dict[str, Any] = {}
        self.solver = SolverInfo()
        self.infeasible_by: str | None = None
        self.refuted_by: str | None = None
        self.repaired: Repaired | None = None
        self.at_optimum: ExactRelaxation | None = None
        self.began = time.monotonic()
        self.log_line = solver_log.ProgressLines()

    def refuted(self, bound: Bound) -> None:
        """End the run without solving: a bound shows that there is no solution."""
        self.outcome = Outcome(Termination.INFEASIBLE, message=f"infeasible by a bound: {bound.reason}")
        self.infeasible_by = self.refuted_by = bound.name
        self.bounds.append(bound)
        self.solver = SolverInfo(name=bound.name, algorithm="analytic bound", options={})

    # Solving

    def solve_matrix(self) -> None:
        """Build and compile the model, and pass the matrix to the adapter, through a reformulation if there is one."""
        plan, task = self.plan, self.task
        assert plan.adapter is not None
        begun = time.monotonic()
        start_ahead(modules_of(plan.adapter.name), task.threads)
        import_layer(plan.form)
        start = time.monotonic()
        self.times["load_s"] = start - begun
        if self.deadline is not None:
            self.deadline += start - begun  # importing a modelling layer is not part of the solve
        try:
            with self.budget.own_limits(self.deadline) as limits:
                model = plan.formulation.build(plan.form)
                built = time.monotonic()
                self.form = compile_built(plan.formulation, model)
                del model
                steps = scaling_steps(self.form)
                if plan.reformulation is not None and plan.reformulation.reformulate is not None:
                    target = steps[-1].form if steps else self.form
                    steps.append(plan.reformulation.reformulate(target, plan.formulation))
                compiled = time.monotonic()
        except (LimitReached, MemoryError):
            self.form = None
            ending = limits.ending or Termination.MEMORY_LIMIT
            self.outcome = Outcome(ending, message=f"{limits.message or 'out of memory'} while the model was built")
            return
        self.times["build_s"], self.times["compile_s"] = built - start, compiled - built
        deadline = attempt_until(task, plan, self.form, self.deadline)
        left = None if deadline is None else deadline - compiled
        if left is not None and left <= 0:
            self.outcome = Outcome(Termination.TIME_LIMIT, message="the time limit was used up by building the model")
            return
        request = SolveRequest(left, task.threads, task.tol, task.seed, dict(plan.options))
        with parameters_named(plan):
            self.outcome = solve_scaled(
                self.form,
                plan.adapter.name,
                request,
                steps=steps,
                memory_limit_gib=self.budget.memory_left_gib(),
                on_progress=self._progress,
                stop=self.stop,
            )
        self.times["solve_s"] = time.monotonic() - compiled
        self.times["solver_s"], self.times["solver_cpu_s"] = self.outcome.solve_s, self.outcome.cpu_s
        out = self.outcome
        self.solver = SolverInfo(
            name=plan.adapter.name,
            version=out.version or plan.adapter.version(),
            algorithm=out.algorithm,
            options=out.options,
        )
        if out.x is not None:
            self.values = self.form.values(verify.whole(self.form, out.x))
            self.values = self._ask("unfold", plan.formulation.unfold, self.values)
        if out.row_duals is not None:
            self.duals = self.form.duals(out.row_duals)
        if out.termination in NO_SOLUTION:
            self._prove_no_solution()

    def _prove_no_solution(self) -> None:
        """Try to prove the solver's claim that there is no solution, or none that is best."""
        assert self.form is not None
        out, possible = self.outcome, True
        self.infeasible_by = crossed(self.form)
        if self.infeasible_by is not None:
            out.termination, out.message = Termination.INFEASIBLE, ""
            return
        if out.termination is Termination.INFEASIBLE:
            self.infeasible_by, possible = self._relaxed(infeasibility) or (None, True)
            if self.infeasible_by is not None:
                return
        relaxed = self._exact_relaxation() if possible else None
        status = None if relaxed is None else relaxed.answer.status
        if status == "infeasible":
            out.termination, self.infeasible_by = Termination.INFEASIBLE, FARKAS
        elif status == "unbounded" and (not self.form.is_mip or self._relaxed(has_solution)):
            out.termination = Termination.UNBOUNDED
            out.message += f" {UNBOUNDED}"
        elif status in ("optimal", "unbounded") and not self.form.is_mip and out.termination is Termination.INFEASIBLE:
            out.message += f" {CLAIMED}: there is one in rational arithmetic"
        elif out.termination is Termination.INFEASIBLE:
            out.message += f" {CLAIMED}"

    def _relaxed(self, function: Callable[[StandardForm, SolveRequest, float | None], _Result]) -> _Result | None:
        """The result of a function that solves something simpler than the program; None if there is no time left."""
        assert self.form is not None
        start = time.monotonic()
        left = None if self.deadline is None else self.deadline - start
        if left is not None and left <= 0:
            return None
        request = SolveRequest(left, self.task.threads, self.task.tol, self.task.seed)
        result = function(self.form, request, self.budget.memory_left_gib())
        self.times["solve_s"] = (self.times["solve_s"] or 0.0) + time.monotonic() - start
        return result

    def _exact_relaxation(self) -> ExactRelaxation | None:
        """The optimum of the linear relaxation in rational arithmetic; None, with a message, if it is not found."""
        from opticoll.solvers.exact.lp_bound import exact_relaxation

        assert self.form is not None
        start = time.monotonic()
        left = None if self.deadline is None else self.deadline - start
        try:
            if left is not None and left <= 0:
                return None
            return exact_relaxation(
                self.form, self.outcome.x, left, self.task.threads, self.budget.memory_left_gib(), self.stop
            )
        except NoSolution as error:
            self.outcome.message += f" no bound in rational arithmetic: {error}"
            return None
        finally:
            self.times["exact_s"] = (self.times["exact_s"] or 0.0) + time.monotonic() - start

    def call_procedure(self) -> None:
        """Run a method's procedure in a separate worker."""
        plan, task = self.plan, self.task
        assert plan.procedure is not None
        start = time.monotonic()
        pinned = {name: plan.settings[name] for name in task.settings}
        sent = msgspec.structs.replace(task, settings=pinned, method=plan.method, exact=False)
        arguments, arrays = send(sent, plan.instance, plan.needed, self.start)

        def relay(values: dict[str, Any], _arrays: dict[str, NDArray[Any]]) -> None:
            self._progress(values.get("objective"), values.get("bound"))

        left = None if self.deadline is None else max(self.deadline - start, 0.01)
        call = call_isolated(
            "opticoll.solvers.solve:run_in_worker",
            {**arguments, "time_limit_s": left},
            arrays,
            wall_limit_s=None if left is None else left * 1.05 + 3.0,
            memory_limit_gib=self.budget.memory_left_gib(),
            threads=task.threads,
            modules=("opticoll.solvers.solve",),
            on_progress=relay,
            stop=self.stop,
        )
        self.times["solve_s"] = time.monotonic() - start
        try:
            answer = receive(call.values, call.arrays, call.ending)
        except (TypeError, ValueError, OverflowError) as error:
            answer = Answer(Termination.ERROR, message=f"method {plan.method!r} returned an invalid answer: {error}")
        self.outcome = Outcome(
            answer.termination, message=call.message or answer.message, peak_memory_mb=call.peak_memory_mb
        )
        self.values, self.duals, self.metrics = answer.values, answer.duals, dict(answer.metrics)
        self.solver = SolverInfo.read({"name": plan.method, "options": {}, **answer.solver})
        self.infeasible_by = answer.infeasible_by
        if answer.bound is not None and answer.bound_source is not None:
            self.bounds.append(Bound(answer.bound_source, answer.bound, "recomputed by the method's certificate"))

    def _progress(self, objective: float | None, bound: float | None) -> None:
        elapsed = time.monotonic() - self.began
        self.log_line(objective, bound, verify.relative_gap(objective, bound, self.plan.formulation.sense), elapsed)
        if self.on_progress is not None:
            self.on_progress({"objective": objective, "bound": bound, "elapsed_s": elapsed})

    # Proving

    def finish(self, needed: Run | None) -> Run:
        """Verify, prove and record."""
        start, before = time.monotonic(), self.times["exact_s"] or 0.0
        objective, verified = self._verify()
        if self.budget.overdue and not verified:
            self.outcome.termination = Termination.TIME_LIMIT
            self.outcome.message += "; no value is verified"
        formulation, task = self.plan.formulation, self.task
        bounds = self._all_bounds(objective)
        bound = verify.tightest(bounds, formulation.sense)
        if verified and objective is not None and bound is not None and not self._met(objective, bound):
            objective = self._at_optimum(objective, bound)
        exact: list[Bound] = []
        if self.analytic is None:  # otherwise already among the bounds
            exact = self._ask("closed_forms", formulation.closed_forms) or []
        contradiction = verify.contradiction([*bounds, *exact], objective if verified else None, formulation.sense)
        if verified and objective is not None and self.values is not None and self.outcome.termination in ENDED:
            contradiction = verify.misstated(formulation, self.form, self.values, objective) or contradiction
        proof, gap = verify.prove(
            verified=verified,
            objective=objective,
            bound=None if bound is None else bound.value,
            sense=formulation.sense,
            tol=task.tol,
        )
        if contradiction is not None:
            # One of our own results is wrong: no bound is reported, and the value does not count as verified.
            self.outcome.message += f" {contradiction}; nothing is proven"
            proof, gap, bound, verified = Proof.NONE, None, None, False
        if needed is not None:
            own, (proof, gap) = proof, verify.capped(proof, gap, needed.proof, needed.record.gap)
            infeasible = None
            if needed.proof not in verify.PROVEN:
                infeasible, self.infeasible_by = self.infeasible_by, None
            if proof is not own or infeasible is not None:
                self.outcome.message += (
                    f" {own if infeasible is None else 'infeasible'} for its data, a solution of "
                    f"{needed.task.formulation} that is only {needed.proof}: nothing stronger is proven"
                )
        self.times["verify_s"] = time.monotonic() - start - ((self.times["exact_s"] or 0.0) - before)
        value = objective if verified else None
        stated = self._ask("metrics", verify.properties, formulation, "metrics", value) or {}
        self.metrics = {**stated, **self.metrics}
        if verified and self.values is not None:
            self.metrics |= self._ask("describe", verify.properties, formulation, "describe", self.values) or {}
        if states(formulation, "restriction"):
            free = self.metrics.get("unrestricted_proven") is True
            condition = None if free else self._ask("restriction", formulation.restriction)
            self.metrics["conditional_on"] = "unknown" if self.budget.overdue and not free else condition
        record = self._record(objective, bound, gap, proof, verified, needed)
        return Run(task, record, self.values, self.duals, self.plan, self.analytic, needed)

    def _ask(self, hook: str, function: Callable[..., _Result], *given: Any) -> _Result | None:
        """The result of a function of the formulation; None after one of them has not returned in time."""
        if self.budget.overdue:
            return None
        limits, least_s = self.budget.checking()
        try:
            with limits:
                return function(*given)
        except LimitReached:
            if limits.ending is None:  # the limit of a solve whose hook calls this one
                raise
            self.budget.overdue = True
        where = f"{plugins.place_of(getattr(self.plan.formulation, hook))}formulation {self.plan.formulation.name!r}"
        limit = f"the time limit of {self.budget.task.time_limit_s:g} s"
        self.outcome.message += f" {where}: {hook} did not return within {least_s:g} s of work, and {limit} has passed"
        return None

    def _verify(self) -> tuple[float | None, bool]:
        """Check the values, after a repair if one exists and is needed."""
        formulation = self.plan.formulation
        if self.values is None:
            return None, False
        try:
            declared = self._ask("arrays", declared_arrays, formulation, self.values.keys(), self.form)
            if declared is None:
                return None, False
            check_arrays(declared, self.values, "solution")
        except BadFile as wrong:
            self.violations, self.values = {"arrays": np.inf}, None
            self.outcome.message += f" refused: {wrong}"
            return None, False
        raw = self._ask("residuals", verify.residuals, formulation, self.values) or {}
        worst, on_matrix = max(raw.values(), default=0.0), self._on_matrix()
        # Matrix violations are relative to other sizes: a violation negligible in ``raw`` may be too large there.
        good = worst <= EXACT and all(v <= verify.FEASIBLE for v in on_matrix.values())
        if not good and states(formulation, "repair"):
            repaired = self._ask("repair", formulation.repair, self.values)
            if repaired is not None:
                claimed = self._ask("objective", verify.objective, formulation, self.values)
                self.repaired = Repaired(violation=max([worst, *on_matrix.values()]), claimed=claimed)
                self.values = repaired
                raw = self._ask("residuals", verify.residuals, formulation, repaired) or {}
                on_matrix = self._on_matrix()
        self.violations = {**raw, **on_matrix}
        missed = verify.violated(self.violations)
        if missed is not None and not self.budget.overdue:
            self.outcome.message += f" not verified: {missed}"
        objective = self._ask("objective", verify.objective, formulation, self.values)
        return objective, missed is None and not self.budget.overdue

    def _on_matrix(self) -> dict[str, float]:
        """Violations of the compiled matrix by the values; none if there is no matrix or the values do not fit it."""
        x = None if self.form is None or self.values is None else verify.pack(self.form, self.values)
        return {} if self.form is None or x is None else verify.matrix_violations(self.form, x)

    def _all_bounds(self, objective: float | None) -> list[Bound]:
        """All recomputed bounds: from duals, and analytic ones if those leave a gap or are the user's own."""
        formulation = self.plan.formulation
        result = list(self.bounds)
        if self.duals is not None and states(formulation, "certify"):
            try:
                certified = self._ask("certify", formulation.certify, self.duals)
            except (TypeError, ValueError, IndexError, KeyError) as error:
                certified = None
                self.outcome.message += f" the duals were rejected: {error}"
            if certified is not None:
                result.append(certified)
        out = self.outcome
        if self.form is not None and out.row_duals is not None and not self.form.is_mip:
            value = verify.dual_bound(self.form, out.row_duals)
            if np.isfinite(value):
                result.append(Bound("lp-dual", value, "weak duality from the solver's row duals, recomputed"))
        if not self._closed(objective, result):
            result += self._analytic_bounds()
        elif self.analytic is not None or formulation.own:  # a wrong bound is reported, whatever the solver's duals
            result += verify.differing_from(self._analytic_bounds(), objective, formulation.sense)
        adapter = self.plan.adapter
        without_duals = out.row_duals is None or (adapter is not None and not adapter.capabilities.duals)
        unproven = self.form is not None and (self.form.is_mip or without_duals)
        if unproven and out.x is not None and not self._closed(objective, result):
            relaxed = self._relaxed(relaxation_bound)
            result += [] if relaxed is None else [relaxed]
        if self._left_open(objective, result):
            result += self._exact_bound()
        return result

    def _left_open(self, objective: float | None, bounds: list[Bound]) -> bool:
        """Whether the solver solved the program, and the duals prove no bound, or one that only rounding keeps away."""
        form, out = self.form, self.outcome
        best = verify.tightest(bounds, self.plan.formulation.sense)
        if form is None or out.x is None or self.task.exact or self._met(objective, best):
            return False
        if best is None:
            return True
        if out.termination is not Termination.OPTIMAL or objective is None:
            return False
        if abs(best.value - objective) <= verify.PAST * verify.size_of_terms(form, np.asarray(out.x, dtype=float)):
            return True
        kkt = self._kkt()
        return kkt is not None and max(kkt.primal or 0.0, kkt.dual or 0.0) <= ACCURATE

    def _met(self, objective: float | None, bound: Bound | None) -> bool:
        """Whether a bound proves that an objective is optimal."""
        gap = None if bound is None else verify.relative_gap(objective, bound.value, self.plan.formulation.sense)
        return gap is not None and 0 <= gap <= self.task.tol

    def _exact_bound(self) -> list[Bound]:
        """The bound of the linear relaxation's optimum in rational arithmetic; none, with a message, if it has none."""
        relaxed = self._exact_relaxation()
        if relaxed is None or relaxed.bound is None:
            if relaxed is not None:
                self.outcome.message += f" in rational arithmetic the relaxation is {relaxed.answer.status}: no bound"
            return []
        assert self.form is not None
        if not self.form.is_mip:
            self.at_optimum = relaxed if relaxed.x is not None else None
            return [relaxed.bound]
        value = rounded(self.form, relaxed.bound.value)
        reason = relaxed.bound.reason
        if value != relaxed.bound.value:
            reason += f": {relaxed.bound.value:.9g}, rounded to a value that the objective can take"
        return [Bound(relaxed.bound.name, value, reason)]

    def _at_optimum(self, objective: float, bound: Bound) -> float:
        """The objective after the values are replaced by the exact solution, if only rounding separates the two.

        A value past the bound, or an optimum of 0, cannot be compared with a bound by their ratio.
        """
        form, relaxed, formulation = self.form, self.at_optimum, self.plan.formulation
        if form is None or relaxed is None or self.outcome.x is None:
            return objective
        x, exact, optimum = np.asarray(self.outcome.x, dtype=float), relaxed.x, relaxed.answer.objective
        assert exact is not None
        assert optimum is not None
        past = (verify.relative_gap(objective, bound.value, formulation.sense) or 0.0) < 0
        size = max(verify.size_of_terms(form, point) for point in (x, exact))
        nil = abs(optimum) <= verify.PAST * size
        near = abs(objective - float(optimum)) <= verify.FEASIBLE * max(size, 1.0 if nil else 0.0)
        if not near or not (past or nil):
            return objective
        kept = self.values, self.violations
        self.values = form.values(exact)
        self.values = self._ask("unfold", formulation.unfold, self.values)
        if self.values is not None:
            raw = self._ask("residuals", verify.residuals, formulation, self.values) or {}
            self.violations = {**raw, **self._on_matrix()}
            stated = self._ask("objective", verify.objective, formulation, self.values)
            agrees = stated is not None and abs(stated - float(optimum)) <= verify.PAST * size
            if agrees and verify.violated(self.violations) is None:
                self.repaired = Repaired(violation=max(kept[1].values()), claimed=objective)
                return float(optimum)
        self.values, self.violations = kept
        return objective

    def _analytic_bounds(self) -> list[Bound]:
        """The analytic bounds, unless they take longer than a few seconds beyond the limit."""
        if self.analytic is not None:  # computed by the run that this one continues
            return self.analytic
        stopped = self.stop is not None and self.stop.is_set()
        deadline = time.monotonic() if stopped else self.deadline
        limits = self.budget.own_limits(deadline, least_s=BOUNDS_S, interruptible=not stopped)
        try:
            with limits:
                self.analytic = bounds_of(self.plan.formulation)
        except LimitReached:
            self.outcome.message += f" {limits.message} before the analytic bounds were computed"
        return self.analytic or []

    def _closed(self, objective: float | None, bounds: list[Bound]) -> bool:
        """Whether the bounds leave no gap beyond the tolerance."""
        return auto.closed(bounds, objective, self.plan.formulation.sense, self.task.tol)

    def _kkt(self) -> Kkt | None:
        """Accuracy of a linear program's vectors as the solver returned them, before any repair."""
        x = self.outcome.x
        if self.form is None or self.form.is_mip or x is None:
            return None
        return Kkt(**verify.kkt(self.form, np.asarray(x, dtype=float), self.outcome.row_duals))

    def _record(
        self,
        objective: float | None,
        bound: Bound | None,
        gap: float | None,
        proof: Proof,
        verified: bool,
        needed: Run | None,
    ) -> Record:
        plan, task, out = self.plan, self.task, self.outcome
        refuted = self.infeasible_by is not None and self.infeasible_by == self.refuted_by
        model = model_info(plan, out, self.form, refuted=refuted)
        told = plan.instance.notes if isinstance(plan.instance, MatrixProgram) else ()
        message = " ".join([*([out.message] if out.message else []), *(f"{NOTE}{note}." for note in told)])
        return Record(
            key=plan_key(task, plan, None if needed is None else needed.record.key),
            formulation=plan.formulation.name,
            paper=plan.formulation.paper,
            instance=plan.instance.spec,
            instance_hash=plan.instance.hash,
            n=plan.instance.n,
            arcs=getattr(plan.instance, "arcs", None),
            method=plan.method,
            form=model.form,
            model=model,
            solver=self.solver,
            termination=out.termination,
            proof=proof,
            sense=plan.formulation.sense,
            objective=objective,
            bound=None if bound is None else bound.value,
            bound_source=None if bound is None else bound.name,
            gap=gap,
            verified=verified,
            infeasible_by=self.infeasible_by,
            violations=self.violations,
            kkt=self._kkt(),
            metrics=self.metrics,
            settings=texts(plan.settings),
            solver_claims=SolverClaims(objective=out.objective, bound=out.bound, status=out.raw),
            time=Times(**self.times),
            size=Size() if self.form is None else Size(**self.form.size),
            peak_memory_mb=out.peak_memory_mb,
            message=one_line(message),
            incumbents=out.incumbents,
            requested=Requested.of(task),
            needed=None if needed is None else Needed.of(needed.record),
            repaired=self.repaired,
            plugins=digests_after_run(plan) or None,
        )
