"""The record of a run, made of what its steps found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from opticoll.errors import one_line
from opticoll.formulations.registry import paper_of
from opticoll.instances import MatrixProgram, Topology
from opticoll.solvers import verify
from opticoll.solvers.auto import model_info
from opticoll.solvers.evidence import accuracy
from opticoll.solvers.resume_key import plan_key, plugin_digests, versions_of
from opticoll.solvers.task import (
    NOTE,
    PROVEN,
    Needed,
    Proof,
    Record,
    Requested,
    Size,
    SolverClaims,
    Termination,
    Times,
    joined_messages,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances import Instance
    from opticoll.solvers.evidence import Evidence
    from opticoll.solvers.judge import Judgement
    from opticoll.solvers.run import Run
    from opticoll.types import Json


def properties(judgement: Judgement) -> dict[str, Json]:
    """The metrics of a run: those of the formulation, of its values if they are verified, and of the method."""
    state, checked = judgement.lead.state, judgement.lead.checked
    problem, value = state.plan.problem, checked.objective if judgement.verified else None
    unknown: dict[str, Json] = {"conditional_on": "unknown"}
    nothing: dict[str, Json] = {}
    metrics = {
        **state.asked("metrics", unknown, verify.properties, problem, "metrics", value),
        **judgement.lead.solved.metrics,
    }
    if judgement.verified and checked.values is not None:
        metrics |= state.asked("describe", nothing, verify.properties, problem, "describe", checked.values)
    return metrics


def notes_on(instance: Instance) -> list[str]:
    """What a reader of a record should know of its instance, as parts of the message."""
    told = instance.notes if isinstance(instance, MatrixProgram | Topology) else ()
    return [f"{NOTE}{note}." for note in told]


def record_of(found: Sequence[Evidence], judgement: Judgement, metrics: dict[str, Json], needed: Run | None) -> Record:
    """The record of a run: what its first method was asked, and the solution in the lead.

    ``needed`` is the run whose solution is its data.
    """
    first, lead = found[0].state, judgement.lead
    plan, task, checked, out, form = first.plan, first.task, lead.checked, lead.solved.outcome, found[0].solved.form
    refuted = found[0].solved.refuted and judgement.infeasible_by is not None
    model = model_info(plan, found[0].solved.outcome, form, refuted=refuted)
    proven = judgement.proof is Proof.OPTIMAL
    for one in found[1:]:
        end = "proven optimal" if proven and one is found[-1] else "continued"
        model = replace(model, reason=f"{model.reason}, {end} by {one.state.plan.method_name}")
    used = plugin_digests(plan)
    termination, message = _ending(found, judgement)
    spent = {
        name: sum(one.state.times[name] or 0.0 for one in found) if len(found) > 1 else first.times[name]
        for name in ("solve_s", "verify_s")
    }
    return Record(
        key=plan_key(task, plan, None if needed is None else needed.record.key, used),
        formulation=plan.problem.name,
        paper=paper_of(plan.problem),
        instance=plan.instance.spec,
        instance_hash=plan.instance.hash,
        n=plan.instance.n,
        arcs=getattr(plan.instance, "arcs", None),
        method=lead.state.plan.method_name,
        form=model.form,
        model=model,
        solver=lead.solved.solver,
        termination=termination,
        proof=judgement.proof,
        sense=plan.problem.sense,
        objective=checked.objective,
        bound=None if judgement.bound is None else judgement.bound.value,
        bound_source=None if judgement.bound is None else judgement.bound.name,
        gap=judgement.gap,
        verified=judgement.verified,
        infeasible_by=judgement.infeasible_by,
        violations=checked.violations,
        kkt=accuracy(lead.solved),
        metrics=metrics,
        settings=texts(plan.settings),
        solver_claims=SolverClaims(objective=out.objective, bound=out.bound, status=out.raw),
        time=Times(**{**first.times, **spent}),
        size=Size() if form is None else Size(**form.size),
        peak_memory_mb=out.peak_memory_mb,
        message=one_line(joined_messages(message, *judgement.notes, *notes_on(plan.instance))),
        incumbents=out.incumbents,
        requested=Requested.of(task),
        needed=None if needed is None else Needed.of(needed.record),
        repaired=checked.repaired,
        start=first.start or lead.state.start,
        plugins=used or None,
        versions=versions_of(task, plan, used),
    )


def _ending(found: Sequence[Evidence], judgement: Judgement) -> tuple[Termination, str]:
    """How a run ended, and the solvers' words: of the solution in the lead, unless the last method was interrupted."""
    lead, last = judgement.lead, found[-1]
    out, message = lead.solved.outcome, joined_messages(lead.solved.outcome.message, *lead.state.notes)
    if last is lead:
        reached = judgement.proof in PROVEN and out.termination is Termination.TOLERANCE
        return Termination.OPTIMAL if reached else out.termination, message
    for one in found:
        if one is not lead and one.solved.outcome.termination is Termination.ERROR:
            words = one.solved.outcome.message or "unknown"
            message = joined_messages(message, f"{one.state.plan.method_name} ended with an error: {words}")
    if last.solved.outcome.termination is Termination.INTERRUPTED and judgement.proof is not Proof.OPTIMAL:
        return Termination.INTERRUPTED, joined_messages(last.solved.outcome.message, *last.state.notes)
    return out.termination, message
