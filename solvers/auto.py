"""Choose how ``auto`` solves a task: the stated model, or a certified method where the model is too large.

``auto`` builds the stated model and passes it to HiGHS if that is expected to take less than about ten seconds on two
cores. :data:`LARGEST` lists the largest such model of every formulation with a certified method, which solves larger
instances from their data without building the model.

An integer program whose optimum our own bounds do not prove by the time HiGHS ends or :data:`ATTEMPT_S` seconds have
passed is continued by others (:func:`continuations`): a small one by ``certified-branching``, then by the formulation's
certified method, and, without a time limit, by ``certified-branching`` until it ends.

``opticoll benchmark measure stated-models`` measures the figures behind :data:`LARGEST`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from opticoll.formulations.model import NotApplicable
from opticoll.formulations.registry import bounds_of
from opticoll.instances import Topology
from opticoll.solvers import verify
from opticoll.solvers.isolation import BOUNDS_S, LimitReached, OwnLimits
from opticoll.solvers.methods.registry import ANY_PROGRAM, method_named
from opticoll.solvers.task import PROVEN, ModelInfo, Proof, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.model import Bound, Formulation
    from opticoll.instances.types import Settings
    from opticoll.solvers.plan import Plan
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Outcome, Run, Task

    Size = Mapping[str, int]


#: Terminations that mean the solver has solved its problem.
ENDED = (Termination.OPTIMAL, Termination.INFEASIBLE)


#: Method that proves the optimum of small integer programs; where another method can continue, it comes first for this
#: time [s], and for at most this share of the time left.
PROOF, PROOF_S, PROOF_SHARE = "certified-branching", 10.0, 0.5
#: Largest integer program that counts as small.
SMALL_VARIABLES, SMALL_NONZEROS = 5_000, 50_000


@dataclass(frozen=True)
class Largest:
    """Largest stated model that ``auto`` solves, and the methods for larger instances.

    Parameters
    ----------
    variables, nonzeros
        Size of the model.
    beyond
        Method for larger instances. None where it depends on the instance and the tolerance (:func:`_certified_flow`).
    proof
        Method that continues if our bounds do not prove the optimum when HiGHS ends; by default ``beyond``.
    most
        Variables of the largest model whose data that method can hold in memory; None if the data are small.
    """

    variables: int
    nonzeros: int
    beyond: str | None
    proof: str | None = None
    most: int | None = None


#: By formulation, and by formulation and the value of a parameter where that makes the model harder or easier. Measured
#: with HiGHS 1.15 on 2 cores, CPU seconds of the whole run in a warm process; "not solved" is after 25 s:
#:
#: ==========================================  ===========================================  ============================
#: formulation                                 largest below (variables, seconds)           smallest above
#: ==========================================  ===========================================  ============================
#: alltoall.link-mcf                           random-regular n=28 84,673, 6.4              n=34 152,593, 11.9
#: alltoall.master                             random-regular n=135 72,901, 8.3;            n=156 97,345, 13.1
#:                                             n=100, d=8 80,001, 6.0; n=110 48,401, 5.7
#: alltoall.min-congestion                     GK(40,4) 6,241, 2.1; torus:6x6 5,041, 1.5    torus:8x8 16,129 not solved
#: alltoall.sccl                               hypercube:3 4,035, 2.1; GK(8,4) 3,138, 0.03  GK(16,4), 3 steps 43,203, 5
#: alltoall.virtual-channels                   torus:4x4, 4 layers, 1,880, 3.7
#: lumorph.co-scheduling                       32 GPUs, 128 random calls 1,305, 0.3
#: lumorph.min-overlap                         6x8 7,873, 2.8; 4x8 3,225, 0.9 to 1.5        8x8 14,113, 5.3;
#:                                                                                          4x8, all pairs, not solved
#: lumorph.rounds                              2x4 all-gather 3,783, 1.2                    3x3 all-gather 6,668, 1.7;
#:                                                                                          3x3 all-reduce not solved
#: lumorph.rounds collective=all-to-all        2x4 729 to 945, 3.7                          3x3 981 not solved
#: optree.one-stage                            ring 10 2,353, 0.7; line 10 2,275, 0.8       ring 11 3,536 not solved
#: optree.tree                                 n=1024 7,251, 3.5; n=1000 7,053, 3.6         n=2048 15,925 not solved
#: sipml.ocs-circuits                          n=32, D=32 993, 0.5; n=16, D=32 241, 0.9     n=64, D=64 4,033, 1.2
#: sipml.ocs-circuits model=switches           n=9, D=8 649, 0.5; n=6, D=8 271, 0.7         n=9, D=16 1,225, 7.1
#: sipml.placement                             8 layers in 2 parts 63, 0.5; 50, 1.1
#: sipml.ring-wavelengths                      n=12, W=128 971, 2.7                         n=14 1,459, 5.3;
#:                                                                                          n=16 2,083 not solved
#: sipml.ring-wavelengths model=arcs           n=8, W=32 3,641, 1.9                         n=8, W=64 7,225, 4.1;
#:                                                                                          n=8, W=128 not solved
#: topoopt.strategy                            n=128, VGG 32, 0.5
#: topoopt.topology                            n=5, D=2 161, 2.0                            n=6, D=2 271, 8.6;
#:                                                                                          n=7, D=2 421 not solved
#: topology.design                             n=7, D=2 295, 1.3; n=7, D=3 295, 8.3         n=8, D=3 449 not solved
#: ==========================================  ===========================================  ============================
LARGEST = {
    "alltoall.link-mcf": Largest(120_000, 400_000, None, most=100_000_000),
    "alltoall.master": Largest(75_000, 300_000, None),
    "alltoall.min-congestion": Largest(6_500, 30_000, "exact-routing"),
    "alltoall.sccl": Largest(4_500, 12_000, "source-flows"),
    "alltoall.virtual-channels": Largest(2_000, 8_000, "layer-assignment", PROOF),
    "lumorph.co-scheduling": Largest(1_400, 9_000, "independent-sets", PROOF),
    "lumorph.min-overlap": Largest(8_000, 40_000, "negotiated-rerouting", PROOF),
    "lumorph.rounds": Largest(6_000, 45_000, "certified-rounds"),
    "lumorph.rounds collective=all-to-all": Largest(950, 7_500, "certified-rounds"),
    "lumorph.sum-rounds": Largest(2_500, 20_000, "combined-rounds"),
    "optree.one-stage": Largest(2_500, 15_000, "cycle-cover"),
    "optree.tree": Largest(8_000, 16_000, "tree-search"),
    "sipml.ocs-circuits": Largest(1_000, 10_000, "koenig-bisection"),
    "sipml.ocs-circuits model=switches": Largest(700, 2_500, "koenig-bisection"),
    "sipml.placement": Largest(70, 800, "degree-aware", PROOF),
    "sipml.ring-wavelengths": Largest(1_000, 5_000, "ring-sets"),
    "sipml.ring-wavelengths model=arcs": Largest(4_000, 20_000, "ring-sets"),
    "topoopt.strategy": Largest(1_000, 2_000, "strategy-front"),
    "topoopt.topology": Largest(170, 1_000, "design-search"),
    "topology.design": Largest(300, 1_000, "symmetric-search", PROOF),
}
#: Time limit [s] of HiGHS on an integer program that another method can continue, without ``--form``; at most this
#: share of the whole time limit.
ATTEMPT_S, ATTEMPT_SHARE = 10.0, 0.5

#: LPs of up to this many variables are solved by simplex as stated, larger ones by interior point.
SIMPLEX, SIMPLEX_VARIABLES = "highs-simplex", 4000
#: LPs of more variables than this are certified faster by first-order methods than by interior point. Below this
#: tolerance, interior point finishes on the arcs that remain. Measured on GK(N,4), N = 64 ... 1000, see
#: notes/benchmarks-pdhg.md.
FIRST_ORDER_VARIABLES, FIRST_ORDER_TOL = 75_000, 1e-5
FIRST_ORDER, SCREENED = "certified-pdhg", "screened-lp"
#: The reduction to orbits is fastest up to this many flow variables (arcs times orbits of sources), see
#: notes/benchmarks-pdhg.md.
ORBIT, ORBIT_VARIABLES = "orbit-lp", 30_000

#: Method for larger commodity flows, except for the paper's relaxation of them (``printed``).
DECOMPOSED = "master-child"

#: Models of up to this many nonzeros are built in Pyomo, which is imported in half the time of CVXPY (0.4 s of 0.8 s),
#: larger ones in CVXPY, which takes 1 us per nonzero to build and compile them (Pyomo 5 us).
PYOMO_NONZEROS = 50_000


@dataclass(frozen=True)
class MethodChoice:
    """A method and the form of the stated model that it receives, or the reason why no model is built.

    ``beyond`` is the method that continues if HiGHS does not solve the model, ``proof`` the one that does if the
    optimum is not proven; ``variables`` and ``nonzeros`` the size of the stated model, None where it is unknown;
    ``reason`` why the model is not built, None where it is.
    """

    method: str
    form: str
    beyond: str | None = None
    proof: str | None = None
    variables: int | None = None
    nonzeros: int | None = None
    reason: str | None = None


def choose(
    model: Formulation, task: Task, instance: object, parameters: Settings, *, sized: bool = True
) -> MethodChoice:
    """Choose how ``auto`` solves a task, by formulation, parameters, size, structure and tolerance.

    The size is known (``sized``) only once the solution that the data depend on is available.
    """
    largest = largest_of(model.name, parameters)
    beyond = None if largest is None else largest.beyond
    if beyond is not None and (method := method_named(beyond)) is not None and method.refusal(model.data) is not None:
        largest = beyond = None
    if task.form is None and beyond is not None and (named := _parameter_of(beyond, model, task)):
        return MethodChoice(beyond, model.forms[0], reason=f"--set {named} is a parameter of {beyond}")
    size, reason = _size(model) if sized else (None, None)
    variables = None if size is None else size["variables"]
    form = task.form or fastest_form(model, size)
    nonzeros = None if size is None else size["nonzeros"]
    proof = beyond if largest is None else largest.proof or beyond
    if largest is None and model.problem == "MILP":
        proof = PROOF
    stated = MethodChoice(_solver(model, variables), form, beyond, proof, variables, nonzeros)
    if task.form is not None or largest is None or not sized or _within(size, largest):
        return stated
    certified = beyond or _certified_flow(model, task, variables)
    if certified is None:
        return stated
    reason = f"{certified} works on the {kind_of(instance)}; {reason or f'--form {form} builds it'}"
    return MethodChoice(certified, model.forms[0], variables=variables, nonzeros=nonzeros, reason=reason)


def largest_of(name: str, parameters: Settings) -> Largest | None:
    """The entry of :data:`LARGEST` for a formulation with these parameters; None if there is none."""
    special = (LARGEST.get(f"{name} {key}={value}") for key, value in parameters.items())
    return next((result for result in special if result is not None), LARGEST.get(name))


def kind_of(instance: object) -> str:
    """Name for the data that a method without a model works on."""
    return "topology" if isinstance(instance, Topology) else "instance"


def fastest_form(model: Formulation, size: Size | None) -> str:
    """The modelling layer that imports, builds and compiles a model of this size fastest."""
    if model.forms[0] == "matrix":  # the instance itself is the model
        return "matrix"
    first = "pyomo" if size is not None and size["nonzeros"] <= PYOMO_NONZEROS else "cvxpy"
    return next((form for form in (first, "cvxpy", "pyomo") if form in model.forms), model.forms[0])


def applies(name: str, model: Formulation | type[Formulation]) -> bool:
    """Whether a method applies to a formulation; imports only that method."""
    method = method_named(name)
    return method is not None and method.applies(model)


def _size(model: Formulation) -> tuple[Size | None, str | None]:
    """The size of the stated model, or None and the reason why it cannot be counted."""
    try:
        return model.estimate(), None
    except NotApplicable as error:
        return None, str(error).removeprefix(f"{model.name}: ")


def _within(size: Size | None, largest: Largest) -> bool:
    return size is not None and size["variables"] <= largest.variables and size["nonzeros"] <= largest.nonzeros


def _solver(model: Formulation, variables: int | None) -> str:
    """The adapter or reformulation for the stated model."""
    if model.problem == "MILP" or model.name == ANY_PROGRAM:
        return "highs"
    if variables is not None and variables <= SIMPLEX_VARIABLES:
        return SIMPLEX
    return "time-form" if model.concurrent else "highs-ipx"


def _certified_flow(model: Formulation, task: Task, variables: int | None) -> str | None:
    """The certified method for a concurrent flow, None where the stated model is solved fastest."""
    if variables is None:
        return None
    if applies(DECOMPOSED, model) and not task.settings.keys() & {"printed"}:
        return DECOMPOSED
    if applies(ORBIT, model) and _orbit_variables(model.data) <= min(ORBIT_VARIABLES, variables // 2):
        return ORBIT
    if variables > FIRST_ORDER_VARIABLES and applies(FIRST_ORDER, model):
        return FIRST_ORDER if task.tol >= FIRST_ORDER_TOL else SCREENED
    return None


def _orbit_variables(data: Any) -> int:
    """Arcs times orbits of sources under the verified symmetries that family and numbering suggest."""
    from opticoll.formulations.flows.flow_orbits import source_orbits

    return source_orbits(data) * int(data.topology.arcs)


def _parameter_of(name: str, model: Formulation, task: Task) -> str | None:
    """A setting of the task that is a parameter of a method and not of the formulation."""
    if not set(task.settings) - {parameter.name for parameter in model.parameters}:
        return None
    method = method_named(name)
    assert method is not None
    own = {parameter.name for parameter in model.parameters}
    return next((p.name for p in method.parameters if p.name in task.settings and p.name not in own), None)


def is_small(variables: int | None, nonzeros: int | None) -> bool:
    """Whether ``certified-branching`` is expected to suit an integer program of this size; not if it is unknown."""
    known = variables is not None and nonzeros is not None
    return known and variables <= SMALL_VARIABLES and nonzeros <= SMALL_NONZEROS  # type: ignore[operator]


def settled(run: Run) -> bool:
    """Whether there is nothing left to prove, or the run was stopped."""
    return (
        run.proof is Proof.OPTIMAL or run.record.infeasible_by is not None or run.termination is Termination.INTERRUPTED
    )


@dataclass(frozen=True)
class Continuation:
    """A method that continues a run, and whether it is limited to :data:`PROOF_S` or has all the time."""

    method: str
    brief: bool = False


def continuations(choice: MethodChoice, run: Run) -> list[Continuation]:
    """The methods that continue a run which did not prove the optimum, in order.

    On a small program, another method than ``certified-branching`` comes between two attempts of it, of which the
    second has all the time.
    """
    plan, size = run.plan, run.record.size
    if plan is None or plan.formulation.problem != "MILP":
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
        brief = [Continuation(PROOF, brief=True)] if special == PROOF and choice.beyond is not None else []
        return [branching] if small else brief
    other = Continuation(special)
    return [Continuation(PROOF, brief=True), other, branching] if small else [other]


def can_be_branched(run: Run) -> bool:
    """Whether a run of a method without a model can be continued by ``certified-branching`` on a small one."""
    plan = run.plan
    if plan is None or plan.formulation.problem != "MILP" or settled(run) or not run.verified:
        return False
    size, _ = _size(plan.formulation)
    return size is not None and is_small(size["variables"], size["nonzeros"])


def explained(run: Run) -> Run:
    """The run, with a message if the solver claims an optimum that our bounds do not prove."""
    plan, record = run.plan, run.record
    claimed = run.termination is Termination.OPTIMAL and run.proof in {Proof.CERTIFIED_GAP, Proof.FEASIBLE}
    own_data = run.needed is None or run.needed.proof in PROVEN  # otherwise the message says what limits the proof
    if plan is None or plan.adapter is None or not (claimed and own_data and run.verified and record.size.integers):
        return run
    if run.task.exact:  # the exact step says what is proven
        return run
    largest = largest_of(plan.formulation.name, plan.parameters)
    known = [] if largest is None else [largest.proof, largest.beyond]
    usable = {}
    for name in (*known, PROOF):
        method = None if name is None else method_named(name)
        if method is not None and method.applies(plan.formulation) and method.refusal(plan.data) is None:
            usable[method.name] = method
    message = f"{record.message or ''} the solver's own bound is not used as a proof"
    if usable:
        message += f"; --method {' or '.join(usable)} may close the gap"
    return replace(run, record=structs.replace(record, message=message.strip()))


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
    end = "proven optimal" if kept.proof is Proof.OPTIMAL else "continued"
    spent = {name: (old.time[name] or 0.0) + (new.time[name] or 0.0) for name in ("solve_s", "verify_s")}
    record = structs.replace(
        kept.record,
        key=old.key,
        form=old.form,
        settings=old.settings,
        size=old.size,
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
    if plan is None or run.bounds is not None or plan.formulation.own or plan.formulation.needs is not None:
        return run
    limits = OwnLimits(None if run.task.time_limit_s is None else time.monotonic(), None, None, BOUNDS_S)
    try:
        with limits:
            bounds, sense = bounds_of(plan.formulation), plan.formulation.sense
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
    if plan.choice.beyond is None and not is_small(form.size["variables"], form.size["nonzeros"]):
        return deadline
    if deadline is None:
        return time.monotonic() + ATTEMPT_S
    now = time.monotonic()
    return now + min(ATTEMPT_S, ATTEMPT_SHARE * max(deadline - now, 0.0))


def model_info(plan: Plan, outcome: Outcome, form: StandardForm | None, *, refuted: bool) -> ModelInfo:
    """Record of whether the stated model was built, and the reason."""
    choice = plan.choice
    if refuted:
        return ModelInfo(built=False, reason="a bound excludes every solution")
    if plan.builds:
        known = None if form is None else form.size["variables"]
        method = "" if plan.adapter is None or plan.adapter.name == plan.method else f" through {plan.method}"
        solver = (plan.method if plan.adapter is None else plan.adapter.name) + method
        ended = outcome.termination in ENDED
        reason = f"solved by {solver}" if ended else f"{solver} ended with {outcome.termination}"
        return ModelInfo(built=True, form=plan.form, reason=reason, variables=known)
    if choice is not None:
        return ModelInfo(built=False, reason=choice.reason, variables=choice.variables)
    return ModelInfo(built=False, reason=f"{plan.method} works on the {kind_of(plan.instance)}")
