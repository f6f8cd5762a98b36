"""Judge what checked values and recomputed bounds prove."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from opticoll.formulations.model import is_own
from opticoll.formulations.registry import bounds_of, numbers
from opticoll.solvers import verify
from opticoll.solvers.process.budget import BOUNDS_S, LimitReached, limited
from opticoll.solvers.task import ENDED, PROVEN, Proof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.model import Bound
    from opticoll.solvers.evidence import Evidence
    from opticoll.solvers.run import Run


@dataclass(frozen=True)
class Judgement:
    """What is proven: ``bound`` and ``gap`` are None, and the value not ``verified``, if results contradict each other.

    ``lead`` is the evidence whose solution is the result; ``notes`` are the reasons for the record.
    """

    lead: Evidence
    proof: Proof
    gap: float | None
    bound: Bound | None
    verified: bool
    infeasible_by: str | None
    notes: tuple[str, ...] = ()


def judge(found: Sequence[Evidence], needed: Run | None = None) -> Judgement:
    """Judge what all methods of a run have found: the best value, the tightest bound, and whether they agree.

    ``needed`` is the run whose solution is the data of this one.
    """
    state = found[0].state
    problem, tol = state.plan.problem, state.task.tol
    sense = problem.sense
    bounds = [bound for one in found for bound in one.bounds]
    lead, bound = best_of(found)
    checked, verified, infeasible_by = lead.checked, lead.checked.verified, lead.solved.infeasible_by
    objective = checked.objective
    notes: list[str] = []
    contradiction = verify.contradiction(
        [*bounds, *(one for part in found for one in part.closed_forms)], objective if verified else None, sense
    )
    if verified and objective is not None and checked.values is not None and lead.solved.outcome.termination in ENDED:
        contradiction = verify.misstated(problem, lead.solved.form, checked.values, objective) or contradiction
    if verified and (excluded := next((one.solved.infeasible_by for one in found if one.solved.infeasible_by), None)):
        contradiction = contradiction or (
            f"results contradict each other: a value satisfies every constraint, but {excluded} excludes all solutions"
        )
    proof, gap = verify.prove(
        verified=verified, objective=objective, bound=None if bound is None else bound.value, sense=sense, tol=tol
    )
    if contradiction is not None:  # one of our own results is wrong
        notes.append(f"{contradiction}; nothing is proven")
        proof, gap, bound, verified = Proof.NONE, None, None, False
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
    return Judgement(lead, proof, gap, bound, verified, infeasible_by, tuple(notes))


def best_of(found: Sequence[Evidence]) -> tuple[Evidence, Bound | None]:
    """The evidence with the best verified value, and the tightest bound of all.

    Of equal values a later one is taken only if the bound proves it; without a verified value the last evidence is.
    """
    best, sense, tol = found[0], found[0].state.plan.problem.sense, found[0].state.task.tol
    bound = verify.tightest([bound for one in found for bound in one.bounds], sense)
    for one in found[1:]:
        if not best.checked.verified:
            best = one
        elif one.checked.verified:
            lead = verify.relative_gap(best.checked.objective, one.checked.objective, sense)
            proves = verify.closes(bound, one.checked.objective, sense, tol)
            if lead is None or lead > verify.PAST or (proves and lead >= 0):
                best = one
    return best, bound


def compared(run: Run) -> Run:
    """The run with all analytic bounds that can be shown beside its value; if they contradict it, nothing is proven.

    A run computes the bounds of user-defined formulations always, and ours only where no other bound closes the gap.
    """
    plan, record = run.plan, run.record
    if plan is None or run.bounds is not None or is_own(plan.problem) or plan.problem._needs is not None:
        return run
    deadline, sense = None if run.task.time_limit_s is None else time.monotonic(), plan.problem.sense
    ready: dict[str, Bound | None] = {}
    try:
        bounds = limited(partial(bounds_of, plan.problem, ready), deadline, least_s=BOUNDS_S)
    except (LimitReached, MemoryError):  # the run is complete without the others
        if not ready:
            return run
        bounds = numbers(dict(ready).values())
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
