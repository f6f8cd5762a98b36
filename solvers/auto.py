"""Choose how ``auto`` solves a task: the stated model, or a certified method where the model is too large.

``auto`` builds the stated model and passes it to HiGHS if that is expected to take less than about ten seconds on two
cores. A certified method that solves larger instances from their data, without building the model, states the size
beyond which it takes over (:class:`~opticoll.solvers.methods.method.Beyond`), or that it begins at any size: on a small
integer program for a few seconds, after which the others continue as they do after HiGHS.

An integer program whose optimum our own bounds do not prove by the time HiGHS ends or reaches its limit
(:func:`attempt_until`) is continued by others (:func:`continuations`): a small one by ``certified-branching``, then by
the formulation's certified method, and, without a time limit, by ``certified-branching`` until it ends.

``make bench`` measures the figures behind these sizes (``stated-models``).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from opticoll.errors import NotApplicable
from opticoll.formulations.model import forms_of
from opticoll.instances import MatrixProgram, Topology
from opticoll.solvers import verify
from opticoll.solvers.judge import best_of
from opticoll.solvers.relaxation import UNBOUNDED
from opticoll.solvers.run import Continuation, MethodChoice
from opticoll.solvers.task import ENDED, PROVEN, ModelInfo, Proof, Termination, joined_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.formulations.model import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.evidence import Evidence
    from opticoll.solvers.methods.method import Beyond, Method
    from opticoll.solvers.run import Plan, Run
    from opticoll.solvers.task import Outcome, Task

    Size = Mapping[str, int]


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
    found = _certified(known, problem, task, size)
    if found is None:
        return stated
    certified, at = found[0].name, found[1]
    layer = forms_of(problem)[0] if form == "matrix" else form  # a form that shows the mathematics
    reason = f"{certified} works on the {kind_of(instance)}; {reason or f'form {layer} builds it'}"
    again = certified if at.covers(size) else None
    return MethodChoice(certified, forms_of(problem)[0], again, None, variables, nonzeros, reason)


def _certified(
    known: list[tuple[Method, Beyond]], problem: Formulation, task: Task, size: Size | None
) -> tuple[Method, Beyond] | None:
    """The first method that takes over a model of this size and suits the problem; None if the model is solved."""
    for method, at in known:
        taken = at.first or not at.covers(size)
        if taken and (at.suits is None or (size is not None and at.suits(problem, task, size))):
            return method, at
    return None


def kind_of(instance: object) -> str:
    """Name for the data that a method without a model works on."""
    return "topology" if isinstance(instance, Topology) else "instance"


def fastest_form(problem: Formulation, size: Size | None) -> str:
    """The form that is imported, built and compiled fastest at this size; the matrix alone, where it is stated."""
    forms = forms_of(problem)
    first = "pyomo" if size is not None and size["nonzeros"] <= PYOMO_NONZEROS else "cvxpy"
    return next(form for form in ("matrix", first, *forms) if form in forms)


def _size(problem: Formulation) -> tuple[Size | None, str | None]:
    """The size of the stated model, or None and the reason why it cannot be counted."""
    try:
        return problem._estimate(), None
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


def settled(found: Sequence[Evidence]) -> bool:
    """Whether there is nothing left to prove, or the run was stopped."""
    if any(one.solved.infeasible_by is not None or UNBOUNDED in one.state.notes for one in found):
        return True
    (lead, bound), state = best_of(found), found[0].state
    proven = lead.checked.verified and verify.closes(
        bound, lead.checked.objective, state.plan.problem.sense, state.task.tol
    )
    return proven or found[-1].solved.outcome.termination is Termination.INTERRUPTED


def continuations(first: Evidence, *, proving: bool) -> list[Continuation]:
    """The methods that continue a run in which the first one did not prove the optimum, in order; or a solver.

    On a small program, another method than ``certified-branching`` comes between two attempts of it, of which the
    second has all the time. A method that ``auto`` did not choose is continued if the run is ``proving``.
    """
    plan, form, ended = first.state.plan, first.solved.form, first.solved.outcome.termination
    choice, verified = plan.choice, first.checked.verified
    if not plan.integer:
        chosen = choice is not None and plan.method_name == TIME_FORM
        misled = ended in (Termination.INFEASIBLE, Termination.TOLERANCE) and not verified
        return [Continuation(SIMPLEX)] if chosen and misled else []  # no time is finite, F = 0 may be
    if choice is None:
        return [Continuation(PROOF, math.inf)] if proving and verified and _is_small(plan.problem) else []
    if ended is Termination.OPTIMAL and not verified:
        return []  # the build, the checker and the objective contradict each other
    known = {"variables": choice.variables, "nonzeros": choice.nonzeros}
    size = known if not plan.builds else dict.fromkeys(known) if form is None else form.size
    variables, nonzeros = size["variables"], size["nonzeros"]
    branching = Continuation(PROOF)
    small = is_small(variables, nonzeros)
    if choice.reason is not None:  # a certified method has run, and the model was not built
        again = [Continuation(PROOF, SMALL_PROOF_S), Continuation(choice.beyond)] if choice.beyond is not None else []
        return [*again, branching] if small else []
    special = choice.proof if ended in ENDED else choice.beyond
    if special is None or special == PROOF:
        brief = [Continuation(PROOF, ATTEMPT_S)] if special == PROOF and choice.beyond is not None else []
        return [branching] if small else brief
    other = Continuation(special)
    return [Continuation(PROOF, SMALL_PROOF_S), other, branching] if small else [other]


def _is_small(problem: Formulation) -> bool:
    size, _ = _size(problem)
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
    told = (
        "the solver calls an inaccurate solution optimal, as it may where numbers differ by many magnitudes; exact "
        "solving (--exact, exact=True) proves the optimum"
    )
    if record.size.integers:
        told = "the solver's own bound is not used as a proof"
        told += "" if plan.choice is not None else "; method auto may close the gap"
    return replace(run, record=structs.replace(record, message=joined_messages(record.message, told)))


def first_until(plan: Plan, deadline: float | None) -> float | None:
    """Deadline of the first method: an earlier one for a certified method that begins on a small integer program."""
    begins = plan.choice is not None and plan.choice.reason is not None and plan.choice.beyond is not None
    return _earlier(SMALL_ATTEMPT_S, deadline) if plan.integer and begins else deadline


def _earlier(most_s: float, deadline: float | None) -> float:
    now = time.monotonic()
    return now + (most_s if deadline is None else min(most_s, ATTEMPT_SHARE * max(deadline - now, 0.0)))


def attempt_until(task: Task, plan: Plan, form: StandardForm, deadline: float | None) -> float | None:
    """Deadline of the attempt at the stated model: the whole one, or an earlier one if other methods can continue."""
    if plan.choice is None or not form.is_mip or task.form is not None:
        return deadline
    small, special = is_small(form.size["variables"], form.size["nonzeros"]), plan.choice.beyond
    if special is None and not small:
        return deadline
    return _earlier(SMALL_ATTEMPT_S if small and special not in {None, PROOF} else ATTEMPT_S, deadline)


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
