"""The record of a run, made of what its steps found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll import plugins
from opticoll.errors import one_line
from opticoll.formulations.registry import paper_of
from opticoll.instances import MatrixProgram, Topology
from opticoll.solvers import verify
from opticoll.solvers.auto import model_info
from opticoll.solvers.judge import accuracy
from opticoll.solvers.resume_key import plan_key, plugin_digests, versions_of
from opticoll.solvers.task import (
    NOTE,
    Needed,
    Record,
    Requested,
    Size,
    SolverClaims,
    Times,
    joined_messages,
    texts,
)

if TYPE_CHECKING:
    from opticoll.solvers.judge import Checked, Judgement
    from opticoll.solvers.run import Run, Solved
    from opticoll.solvers.run_state import RunState
    from opticoll.types import Json


def properties(state: RunState, solved: Solved, checked: Checked, judgement: Judgement) -> dict[str, Json]:
    """The metrics of a run: those of the formulation, of its values if they are verified, and of the method."""
    problem = state.plan.problem
    value = checked.objective if judgement.verified else None
    unknown: dict[str, Json] = {"conditional_on": "unknown"}
    nothing: dict[str, Json] = {}
    metrics = {**state.asked("metrics", unknown, verify.properties, problem, "metrics", value), **solved.metrics}
    if judgement.verified and checked.values is not None:
        metrics |= state.asked("describe", nothing, verify.properties, problem, "describe", checked.values)
    return metrics


def record_of(
    state: RunState,
    solved: Solved,
    checked: Checked,
    judgement: Judgement,
    metrics: dict[str, Json],
    needed: Run | None,
) -> Record:
    """The record of a run; ``needed`` is the one whose solution is its data."""
    plan, task, out, form = state.plan, state.task, solved.outcome, solved.form
    plugins.check_imports()
    model = model_info(plan, out, form, refuted=solved.refuted and judgement.infeasible_by is not None)
    used = plugin_digests(plan)
    told = plan.instance.notes if isinstance(plan.instance, MatrixProgram | Topology) else ()
    message = joined_messages(out.message, *state.notes, *(f"{NOTE}{note}." for note in told))
    return Record(
        key=plan_key(task, plan, None if needed is None else needed.record.key, used),
        formulation=plan.problem.name,
        paper=paper_of(plan.problem),
        instance=plan.instance.spec,
        instance_hash=plan.instance.hash,
        n=plan.instance.n,
        arcs=getattr(plan.instance, "arcs", None),
        method=plan.method_name,
        form=model.form,
        model=model,
        solver=solved.solver,
        termination=out.termination,
        proof=judgement.proof,
        sense=plan.problem.sense,
        objective=checked.objective,
        bound=None if judgement.bound is None else judgement.bound.value,
        bound_source=None if judgement.bound is None else judgement.bound.name,
        gap=judgement.gap,
        verified=judgement.verified,
        infeasible_by=judgement.infeasible_by,
        violations=checked.violations,
        kkt=accuracy(solved),
        metrics=metrics,
        settings=texts(plan.settings),
        solver_claims=SolverClaims(objective=out.objective, bound=out.bound, status=out.raw),
        time=Times(**state.times),
        size=Size() if form is None else Size(**form.size),
        peak_memory_mb=out.peak_memory_mb,
        message=one_line(message),
        incumbents=out.incumbents,
        requested=Requested.of(task),
        needed=None if needed is None else Needed.of(needed.record),
        repaired=checked.repaired,
        start=state.start,
        plugins=used or None,
        versions=versions_of(task, plan, used),
    )
