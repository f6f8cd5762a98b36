"""Choose how ``auto`` solves a task: the stated model, or a certified method where the model is too large.

``auto`` builds the stated model and passes it to HiGHS if that is expected to take less than about ten seconds on two
cores. A certified method that solves larger instances from their data, without building the model, states the size
beyond which it takes over (:class:`~opticoll.solvers.methods.method.Beyond`).

An integer program whose optimum our own bounds do not prove by the time HiGHS ends or reaches its limit
(:func:`attempt_until`) is continued by others (:func:`continuations`): a small one by ``certified-branching``, then by
the formulation's certified method, and, without a time limit, by ``certified-branching`` until it ends.

``make bench`` measures the figures behind these sizes (``stated-models``).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from opticoll.formulations.model import NotApplicable, forms_of, is_own
from opticoll.formulations.registry import bounds_of
from opticoll.instances import MatrixProgram, Topology
from opticoll.solvers import verify
from opticoll.solvers.methods.registry import method_named, taking_over
from opticoll.solvers.process.budget import BOUNDS_S, LimitReached, limited
from opticoll.solvers.relaxation import UNBOUNDED
from opticoll.solvers.run import Continuation, MethodChoice
from opticoll.solvers.task import PROVEN, ModelInfo, Proof, Termination, joined_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.model import Bound, Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.methods.method import Beyond, Method
    from opticoll.solvers.run import Plan, Run
    from opticoll.solvers.task import Outcome, Task

    Size = Mapping[str, int]


#: Terminations that mean the solver has solved its problem.
ENDED = (Termination.OPTIMAL, Termination.INFEASIBLE)

#: Method that proves the optimum of small integer programs; with a time limit of its own, for at most this share of the
#: time left.
PROOF, PROOF_SHARE = "certified-branching", 0.5
#: Largest integer program that counts as small.
SMALL_VARIABLES, SMALL_NONZEROS = 20_000, 200_000
#: Time limit [s] of HiGHS on an integer program that another method can continue, without ``--form``, and then of
#: :data:`PROOF` where it is not small; HiGHS has at most this share of the whole time limit.
ATTEMPT_S, ATTEMPT_SHARE = 10.0, 0.5
#: The same of HiGHS, and then of :data:`PROOF`, on a small program for which there is a certified method too.
SMALL_ATTEMPT_S, SMALL_PROOF_S = 4.0, 6.0

#: LPs of up to this many variables are solved by simplex as stated, larger ones by interior point.
SIMPLEX, SIMPLEX_VARIABLES = "highs-simplex", 4000
#: How concurrent flows are solved by interior point; F = 0 has no time.
TIME_FORM = "time-form"
#: Models of up to this many nonzeros are built in Pyomo, which is imported in half the time of CVXPY (0.4 s of 0.8 s),
#: larger ones in CVXPY, which takes 1 us per nonzero to build and compile them (Pyomo 5 us).
PYOMO_NONZEROS = 50_000


def choose(
    problem: Formulation, task: Task, instance: object, over: list[tuple[Method, Beyond]], *, sized: bool = True
) -> MethodChoice:
    """Choose how ``auto`` solves a task, by formulation, parameters, size, structure and tolerance.

    ``over`` are the methods that take over (:func:`~opticoll.solvers.methods.registry.taking_over`). The size is known
    (``sized``) only once the solution that the data depend on is available.
    """
    known = [(method, at) for method, at in over if method.refusal(problem) is None]
    always = next(((method, at) for method, at in known if at.suits is None), None)
    beyond = None if always is None else always[0].name
    if task.form is None and always is not None and (named := _parameter_of(always[0], problem, task)):
        return MethodChoice(always[0].name, forms_of(problem)[0], reason=f"{named} is a parameter of {beyond}")
    size, reason = _size(problem) if sized else (None, None)
    form = task.form or fastest_form(problem, size)
    variables, nonzeros = (None, None) if size is None else (size["variables"], size["nonzeros"])
    branched = problem.problem == "MILP" and (always is None or not always[1].proves)
    solver = _solver(problem, instance, variables)
    stated = MethodChoice(solver, form, beyond, PROOF if branched else beyond, variables, nonzeros)
    if task.form is not None or not sized:
        return stated
    certified = _certified(known, problem, task, size)
    if certified is None:
        return stated
    reason = f"{certified} works on the {kind_of(instance)}; {reason or f'form {form} builds it'}"
    return MethodChoice(certified, forms_of(problem)[0], variables=variables, nonzeros=nonzeros, reason=reason)


def _certified(known: list[tuple[Method, Beyond]], problem: Formulation, task: Task, size: Size | None) -> str | None:
    """The first method that takes over a model of this size and suits the problem; None if the model is solved."""
    for method, at in known:
        if not at.covers(size) and (at.suits is None or (size is not None and at.suits(problem, task, size))):
            return method.name
    return None


def kind_of(instance: object) -> str:
    """Name for the data that a method without a model works on."""
    return "topology" if isinstance(instance, Topology) else "instance"


def fastest_form(problem: Formulation, size: Size | None) -> str:
    """The modelling layer that imports, builds and compiles a model of this size fastest."""
    forms = forms_of(problem)
    if forms[0] == "matrix":  # the instance itself is the model
        return "matrix"
    first = "pyomo" if size is not None and size["nonzeros"] <= PYOMO_NONZEROS else "cvxpy"
    return next((form for form in (first, "cvxpy", "pyomo") if form in forms), forms[0])


def _size(problem: Formulation) -> tuple[Size | None, str | None]:
    """The size of the stated model, or None and the reason why it cannot be counted."""
    try:
        return problem.estimate(), None
    except NotApplicable as error:
        return None, str(error).removeprefix(f"{problem.name}: ")


def _solver(problem: Formulation, instance: object, variables: int | None) -> str:
    """The adapter or reformulation for the stated model.

    A program read from a file needs a finite method: interior point would not give sufficiently exact duals.
    """
    if problem.problem == "MILP" or isinstance(instance, MatrixProgram):
        return "highs"
    if variables is not None and variables <= SIMPLEX_VARIABLES:
        return SIMPLEX
    return TIME_FORM if problem.concurrent else "highs-ipx"


def _parameter_of(method: Method, problem: Formulation, task: Task) -> str | None:
    """A setting of the task that is a parameter of a method and not of the formulation."""
    own = {parameter.name for parameter in problem.parameters}
    return next((p.name for p in method.parameters if p.name in task.settings and p.name not in own), None)


def is_small(variables: int | None, nonzeros: int | None) -> bool:
    """Whether ``certified-branching`` is expected to suit an integer program of this size; not if it is unknown."""
    known = variables is not None and nonzeros is not None
    return known and variables <= SMALL_VARIABLES and nonzeros <= SMALL_NONZEROS  # type: ignore[operator]


def settled(run: Run) -> bool:
    """Whether there is nothing left to prove, or the run was stopped."""
    record = run.record
    proven = run.proof is Proof.OPTIMAL or record.infeasible_by is not None or UNBOUNDED in (record.message or "")
    return proven or run.termination is Termination.INTERRUPTED


def continuations(choice: MethodChoice, run: Run) -> list[Continuation]:
    """The methods that continue a run which did not prove the optimum, in order.

    On a small program, another method than ``certified-branching`` comes between two attempts of it, of which the
    second has all the time.
    """
    plan, size = run.plan, run.record.size
    if plan is None or not plan.integer:
        return []
    if run.termination in ENDED and not run.verified and run.termination is not Termination.INFEASIBLE:
        return []  # the build, the checker and the objective contradict each other
    variables, nonzeros = (size.variables, size.nonzeros) if plan.builds else (choice.variables, choice.nonzeros)
    branching = Continuation(PROOF)
    small = is_small(variables, nonzeros)
    if choice.reason is not None:  # a certified method has run, and the model was not built
        return [branching] if small else []
    special = choice.proof if run.termination in ENDED else choice.beyond
    if special is None or special == PROOF:
        brief = [Continuation(PROOF, ATTEMPT_S)] if special == PROOF and choice.beyond is not None else []
        return [branching] if small else brief
    other = Continuation(special)
    return [Continuation(PROOF, SMALL_PROOF_S), other, branching] if small else [other]


def can_be_branched(run: Run) -> bool:
    """Whether a run of a method without a model can be continued by ``certified-branching`` on a small one."""
    plan = run.plan
    if plan is None or not plan.integer or settled(run) or not run.verified:
        return False
    size, _ = _size(plan.problem)
    return size is not None and is_small(size["variables"], size["nonzeros"])


def explained(run: Run) -> Run:
    """The run, with a message if the solver claims an optimum that our bounds do not prove."""
    plan, record = run.plan, run.record
    claimed = run.termination is Termination.OPTIMAL and run.proof in {Proof.CERTIFIED_GAP, Proof.FEASIBLE}
    own_data = run.needed is None or run.needed.proof in PROVEN  # otherwise the message says what limits the proof
    if plan is None or plan.adapter is None or not (claimed and own_data and run.verified):
        return run
    if run.task.exact:  # the exact step says what is proven
        return run
    if not record.size.integers:
        inaccurate = (
            "the solver calls an inaccurate solution optimal, as it may where numbers differ by many magnitudes"
        )
        message = joined_messages(record.message, f"{inaccurate}; exact=true proves the optimum")
        return replace(run, record=structs.replace(record, message=message))
    known = taking_over(plan.problem.name, plan.parameters)
    usable = {}
    for name in (*(name for method, at in known for name in _provers(method, at)), PROOF):
        method = method_named(name)
        if method is not None and method.applies(plan.problem) and method.refusal(plan.problem) is None:
            usable[name] = method
    message = joined_messages(record.message, "the solver's own bound is not used as a proof")
    if usable:
        message += f"; method {' or '.join(usable)} may close the gap"
    return replace(run, record=structs.replace(record, message=message))


def _provers(method: Method, at: Beyond) -> tuple[str, ...]:
    """The methods that may prove an optimum which HiGHS has found, the more suitable one first."""
    return (method.name,) if at.proves else (PROOF, method.name)


def joined(first: Run, second: Run, method: str) -> Run:
    """Merge the run of the stated model with that of the method which continued it: the better solution of the two.

    ``second`` was given the bound of ``first``: its bound is the tighter of the two, or None where they contradict
    each other.
    """
    old, new, sense = first.record, second.record, str(first.record.sense)
    lead = verify.relative_gap(old.objective, new.objective, sense) if second.verified else -1.0
    better = lead is not None and (lead < 0 or (lead <= verify.PAST and second.proof is not Proof.OPTIMAL))
    kept = second
    if first.verified and better and not new.infeasible_by:
        proof, gap = verify.prove(
            verified=True, objective=old.objective, bound=new.bound, sense=sense, tol=first.task.tol
        )
        if first.needed is not None:
            proof, gap = verify.capped(proof, gap, first.needed.proof, first.needed.record.gap)
        record = structs.replace(old, bound=new.bound, bound_source=new.bound_source, proof=proof, gap=gap)
        kept = replace(first, record=record if new.bound is not None else structs.replace(record, message=new.message))
    if second.termination is Termination.INTERRUPTED and kept.proof is not Proof.OPTIMAL:
        record = structs.replace(kept.record, termination=second.termination, message=new.message)
        kept = replace(kept, record=record)
    if second.termination is Termination.ERROR and kept is not second:
        message = joined_messages(kept.record.message, f"{method} ended with an error: {new.message or 'unknown'}")
        kept = replace(kept, record=structs.replace(kept.record, message=message))
    end = "proven optimal" if kept.proof is Proof.OPTIMAL else "continued"
    spent = {name: (old.time[name] or 0.0) + (new.time[name] or 0.0) for name in ("solve_s", "verify_s")}
    record = structs.replace(
        kept.record,
        key=old.key,
        form=old.form,
        settings=old.settings,
        size=old.size,
        start=old.start or kept.record.start,
        requested=old.requested,
        time=structs.replace(old.time, **spent),
        model=structs.replace(old.model, reason=f"{old.model.reason}, {end} by {method}"),
    )
    return replace(kept, task=first.task, record=record, plan=first.plan)


def closed(bounds: list[Bound], objective: float | None, sense: str, tol: float) -> bool:
    """Whether the tightest of the bounds leaves no gap beyond the tolerance."""
    best = verify.tightest(bounds, sense)
    gap = None if best is None else verify.relative_gap(objective, best.value, sense)
    return gap is not None and gap <= tol


def compared(run: Run) -> Run:
    """The run with all analytic bounds that can be shown beside its value; if they contradict it, nothing is proven.

    A run computes the bounds of user-defined formulations always, and ours only where no other bound closes the gap.
    """
    plan, record = run.plan, run.record
    if plan is None or run.bounds is not None or is_own(plan.problem) or plan.problem.needs is not None:
        return run
    deadline, sense = None if run.task.time_limit_s is None else time.monotonic(), plan.problem.sense
    try:
        bounds = limited(partial(bounds_of, plan.problem), deadline, least_s=BOUNDS_S)
    except (LimitReached, MemoryError):  # the run is complete without them
        return run
    value = record.objective if run.verified else None
    wrong = verify.contradiction(verify.differing_from(bounds, value, sense), value, sense)
    if wrong is not None:
        record = structs.replace(
            record,
            proof=Proof.NONE,
            bound=None,
            bound_source=None,
            gap=None,
            verified=False,
            objective_exact=None,
            message=f"{record.message or ''} {wrong}; nothing is proven".strip(),
        )
    return replace(run, record=record, bounds=bounds, exact=run.exact if wrong is None else None)


def attempt_until(task: Task, plan: Plan, form: StandardForm, deadline: float | None) -> float | None:
    """Deadline of the attempt at the stated model: the whole one, or an earlier one if other methods can continue."""
    if plan.choice is None or not form.is_mip or task.form is not None:
        return deadline
    small, special = is_small(form.size["variables"], form.size["nonzeros"]), plan.choice.beyond
    if special is None and not small:
        return deadline
    most = SMALL_ATTEMPT_S if small and special not in {None, PROOF} else ATTEMPT_S
    now = time.monotonic()
    return now + (most if deadline is None else min(most, ATTEMPT_SHARE * max(deadline - now, 0.0)))


def model_info(plan: Plan, outcome: Outcome, form: StandardForm | None, *, refuted: bool) -> ModelInfo:
    """Record of whether the stated model was built, and the reason."""
    choice = plan.choice
    if refuted:
        return ModelInfo(built=False, reason="a bound excludes every solution")
    if plan.builds:
        known = None if form is None else form.size["variables"]
        method = "" if plan.adapter is None or plan.method is None else f" through {plan.method.name}"
        solver = (plan.method_name if plan.adapter is None else plan.adapter.name) + method
        ended = outcome.termination in ENDED
        reason = f"solved by {solver}" if ended else f"{solver} ended with {outcome.termination}"
        return ModelInfo(built=True, form=plan.form, reason=reason, variables=known)
    if choice is not None:
        return ModelInfo(built=False, reason=choice.reason, variables=choice.variables)
    return ModelInfo(built=False, reason=f"{plan.method_name} works on the {kind_of(plan.instance)}")
