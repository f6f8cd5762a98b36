"""Send a task to the worker that runs a method's procedure, and receive its answer."""

from __future__ import annotations

import dataclasses
import math
import pickle
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from opticoll import plugins
from opticoll.errors import BadInput
from opticoll.formulations import formulation, is_registered
from opticoll.formulations.flows.symmetric_flow import SymmetricFlow
from opticoll.formulations.model import Bound
from opticoll.instances import parse
from opticoll.instances.readers.reading import names_file
from opticoll.instances.spec import modules_behind
from opticoll.plugin_faults import place_of
from opticoll.solvers.adapters.interface import NO_SOLUTION
from opticoll.solvers.methods.method import Answer, Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.process.isolation import call_isolated
from opticoll.solvers.relaxation import NO_FLOW
from opticoll.solvers.run import Solved
from opticoll.solvers.task import Outcome, SolverInfo, Termination, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.instances import Instance
    from opticoll.solvers.process.messages import Report
    from opticoll.solvers.run import Run
    from opticoll.solvers.run_state import RunState
    from opticoll.solvers.task import Task

    Arrays = Mapping[str, NDArray[Any]]

#: What workers import before they run a procedure; its method imports the rest.
PROCEDURE_MODULES = ("opticoll.solvers.solve",)


def send(
    task: Task,
    instance: Instance,
    needed: Arrays | None = None,
    start: Arrays | None = None,
) -> dict[str, Any]:
    """Arguments for :func:`run_procedure` in a worker.

    A formulation that is unknown to other processes is sent with its code. An instance given by its spec is rebuilt
    from the spec. An instance made in Python, of a family of the user's script, or read from a file is sent whole,
    since the file may change. Settings that name files must be pinned.
    ``needed`` are the values that the formulation takes as data, if any, ``start`` those of a known solution.
    """
    import cloudpickle

    model = formulation(task.formulation)
    known = plugins.everywhere(modules_behind(instance.spec))
    if not isinstance(task.instance, str) or names_file(task.instance) or not known:
        task = replace(task, instance=instance)
    task = replace(task, formulation=model.name if is_registered(model) else model)
    return {
        "sent": cloudpickle.dumps(task),
        "needed": {name: np.asarray(array) for name, array in (needed or {}).items()},
        "start": {name: np.asarray(array) for name, array in (start or {}).items()},
    }


def rebuild(sent: bytes) -> Task:
    """The task that :func:`send` sent, with its instance."""
    plugins.load_known()
    task: Task = pickle.loads(sent)  # noqa: S301 - from our own parent
    return replace(task, instance=parse(task.instance) if isinstance(task.instance, str) else task.instance)


def run_procedure(sent: bytes, needed: Arrays, start: Arrays, report: Report, solve: Callable[..., Run]) -> Answer:
    """Plan the task in this worker and run its procedure, with ``solve`` for sub-problems."""
    begun = time.monotonic()
    task = rebuild(sent)
    plan = make_plan(task, needed=needed or None)
    assert plan.procedure is not None
    deadline = None if task.time_limit_s is None else begun + task.time_limit_s

    where = f"{place_of(plan.procedure)}method {plan.method_name!r}: run"
    kept: dict[str, Any] = {}

    def save(answer: Answer, objective: float | None = None) -> None:
        answer = checked(answer, f"{where} saved")
        saved: dict[str, Any] = {"answer": dataclasses.replace(answer, values=None, duals=None), "objective": objective}
        if answer.values is not None:  # else those of an earlier one remain
            saved["values"] = answer.values
        if answer.duals is not None:
            saved["duals"] = answer.duals
        kept.update(saved)
        report(saved)

    context = Context(
        task=task,
        data=plan.problem,
        instance=plan.instance,
        parameters=plan.method_parameters,
        deadline=deadline,
        solve=solve,
        save=save,
        start=start or None,
    )
    try:
        answer = plan.procedure(context)
    except TimeoutError:
        message = "the time limit was reached between two steps of the method"
        answer = dataclasses.replace(last_saved(kept, Termination.TIME_LIMIT), message=message)
    return checked(answer, f"{where} returned")


def checked(answer: object, where: str) -> Answer:
    """The answer of a procedure as plain numbers, words and arrays.

    Raises
    ------
    BadInput
        If it is none, or a field of it has another type.
    """
    if not isinstance(answer, Answer):
        msg = f"{where} {type(answer).__name__}; write Answer(termination, values)"
        raise BadInput(msg)
    if not isinstance(answer.termination, Termination):
        msg = f"{where} an Answer with termination {answer.termination!r}; use Termination, such as Termination.OPTIMAL"
        raise BadInput(msg)
    bound = answer.bound.item() if isinstance(answer.bound, np.generic) else answer.bound
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, (int, float))):
        msg = f"{where} an Answer with bound = {str(bound)[:60]!r}, expected a number"
        raise BadInput(msg)
    if bound is not None and math.isnan(bound):
        msg = f"{where} an Answer with bound = nan; leave it None where there is none"
        raise BadInput(msg)
    for name, kind in (("metrics", Mapping), ("solver", Mapping), ("message", str)):
        if not isinstance(getattr(answer, name), kind):
            wrong = type(getattr(answer, name)).__name__
            msg = f"{where} an Answer with {name} of type {wrong}, expected {kind.__name__}"
            raise BadInput(msg)
    return dataclasses.replace(
        answer,
        values=None if answer.values is None else _arrays(answer.values),
        duals=None if answer.duals is None else _arrays(answer.duals),
        bound=bound,
        metrics=plain(answer.metrics),
        solver=plain(answer.solver),
    )


def _arrays(given: Arrays) -> dict[str, Any]:
    """What may be stored in other shapes, as arrays; a :class:`SymmetricFlow` stays as it is."""
    return {name: one if isinstance(one, SymmetricFlow) else np.asarray(one) for name, one in given.items()}


def last_saved(reported: Mapping[str, Any], ending: Termination) -> Answer:
    """The last answer that a procedure saved before its worker ended as ``ending``."""
    saved: Answer = reported.get("answer") or Answer(ending)
    return dataclasses.replace(saved, termination=ending, values=reported.get("values"), duals=reported.get("duals"))


def _unproven(answer: Answer) -> list[str]:
    """What a method from outside the package claims without duals, as notes: nobody else recomputes it."""
    notes = []
    if answer.bound is not None and answer.bound_source is not None:
        notes.append(
            f"the method claims the bound {answer.bound:.9g} ({answer.bound_source}), which proves nothing here: "
            "return duals, or state it in the bounds of a formulation"
        )
    if answer.infeasible_by is not None:
        notes.append(f"only the method claims that there is no solution ({answer.infeasible_by})")
    return notes


def call_procedure(state: RunState, start: Arrays | None = None) -> Solved:
    """Run a method's procedure in a separate worker, from a known solution, if any."""
    plan, task = state.plan, state.task
    if start is not None and plan.method is not None and plan.method.starts:
        state.start_used.append(plan.method_name)
    pinned = {name: plan.settings[name] for name in task.settings}

    def relay(reported: dict[str, Any]) -> None:
        state.tell(reported["objective"], reported["answer"].bound)

    with state.spent_on("solve_s"):
        left = state.left_s()
        left = None if left is None else max(left, 0.01)
        sent = replace(task, settings=pinned, method=plan.method_name, exact=False, time_limit_s=left)
        call = call_isolated(
            "opticoll.solvers.solve:run_in_worker",
            send(sent, plan.instance, plan.needed, start),
            wall_limit_s=None if left is None else left * 1.05 + 3.0,
            memory_limit_gib=state.budget.memory_left_gib(),
            threads=task.threads,
            modules=PROCEDURE_MODULES,
            on_progress=relay,
            stop=state.budget.stop,
        )
    answer: Answer = call.values if call.ending is None else last_saved(call.values, call.ending)
    if answer.termination in NO_SOLUTION and answer.infeasible_by is None and plan.problem.concurrent is not None:
        answer.termination = Termination.TOLERANCE
        state.notes += [] if answer.values is not None else [NO_FLOW]
    if plan.method is not None and not str(plan.method.run.__module__).startswith("opticoll."):
        state.notes += _unproven(answer)
        answer = dataclasses.replace(answer, bound=None, infeasible_by=None)
    bounds: tuple[Bound, ...] = ()
    if answer.bound is not None and answer.bound_source is not None:
        bounds = (Bound(answer.bound_source, answer.bound, "recomputed by the method's certificate"),)
    return Solved(
        Outcome(answer.termination, message=call.message or answer.message, peak_memory_mb=call.peak_memory_mb),
        SolverInfo.read({"name": plan.method_name, "options": {}, **answer.solver}),
        values=answer.values,
        duals=answer.duals,
        bounds=bounds,
        metrics=dict(answer.metrics),
        infeasible_by=answer.infeasible_by,
    )
