"""Build and compile a model: in the worker that will solve it, where its layer would have to be imported here.

Importing Pyomo or CVXPY takes longer than most first solves. A worker leaves out the parts that our models do not use
(:mod:`opticoll.solvers.process.worker_imports`), which would be seen by others in this process. A solve with limits
builds there in any case, since a worker can be killed.
"""

from __future__ import annotations

import pickle
import signal
import time
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from opticoll.formulations import modelling_layers
from opticoll.formulations.model import build_model, is_own
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.process.budget import LimitReached
from opticoll.solvers.process.isolation import call_isolated, modules_of, timer
from opticoll.solvers.process.worker import FORKS, start_ahead
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from opticoll.formulations.model import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.process.messages import Report
    from opticoll.solvers.run_state import RunState

#: Seconds beyond the limit after which a worker that still imports is killed.
OVERDUE_S = 30.0
#: Memory of a worker that has imported a layer [GiB], which does not count against the limit.
LAYER_GIB = 0.25
#: Why a build has ended.
WHY = {
    Termination.INTERRUPTED: "stopped",
    Termination.TIME_LIMIT: "the time limit was reached",
    Termination.MEMORY_LIMIT: "out of memory",
}


@dataclass(frozen=True)
class BuiltForm:
    """A compiled model, and how long its build and its compilation took [s]."""

    form: StandardForm
    build_s: float = 0.0
    compile_s: float = 0.0


def compiled(state: RunState) -> BuiltForm | Outcome:
    """The compiled model of a run, or the outcome if a limit was reached; importing a layer is not part of it."""
    plan, start = state.plan, time.monotonic()
    assert plan.adapter is not None
    start_ahead(modules_of(plan.adapter.name), state.task.threads)
    if state.known.form is not None:
        return BuiltForm(state.known.form)
    elsewhere = is_built_elsewhere(plan.problem, plan.form, limited=not state.budget.unlimited)
    built = by_worker(state) if elsewhere else None
    if isinstance(built, Outcome):
        return built
    if built is None:
        modelling_layers.import_layer(plan.form)
    loaded_s = time.monotonic() - start - (0.0 if built is None else built.build_s + built.compile_s)
    state.times["load_s"] = loaded_s
    if state.deadline is not None:
        state.deadline += loaded_s
    if built is not None:
        return built
    try:
        return state.budget.limited(partial(build_here, plan.problem, plan.form), state.deadline)
    except (LimitReached, MemoryError) as reached:
        return unbuilt(reached)


def is_built_elsewhere(problem: Formulation, layer: str, *, limited: bool) -> bool:
    """Whether a worker builds the model: its layer is not loaded here or it is limited, and the problem is one of ours.

    A build of one's own may leave in its object what its checks read.
    """
    return FORKS and layer != "matrix" and (limited or not modelling_layers.is_loaded(layer)) and not is_own(problem)


def unbuilt(reached: LimitReached | MemoryError) -> Outcome:
    """The outcome of a run whose build a limit has ended."""
    ending, why = Termination.MEMORY_LIMIT, "out of memory"
    if isinstance(reached, LimitReached):
        ending, why = reached.termination, str(reached)
    return Outcome(ending, message=f"{why} while the model was built")


def by_worker(state: RunState) -> BuiltForm | Outcome | None:
    """The model as a worker has built it; None if it must be built here.

    That is where the problem cannot be sent, and where the build raises an error that is not one of ours: building it
    here raises that again, as it is.
    """
    plan, task = state.plan, state.task
    assert plan.adapter is not None
    import_module("scipy.sparse")  # for the matrix that returns, while the worker imports its modules
    try:
        sent = pickle.dumps(plan.problem, protocol=5)
    except Exception:  # noqa: BLE001 - any type, by the objects
        return None
    left_s, left_gib = state.left_s(), state.budget.memory_left_gib()
    call = call_isolated(
        "opticoll.solvers.compile.building:build_in_worker",
        {"sent": sent, "layer": plan.form, "left_s": left_s},
        wall_limit_s=None if left_s is None else max(left_s, 0.0) + OVERDUE_S,
        memory_limit_gib=None if left_gib is None else left_gib + LAYER_GIB,
        threads=task.threads,
        modules=modules_of(plan.adapter.name),
        stop=state.budget.stop,
    )
    if call.ending is None:
        built: BuiltForm = call.values
        return built
    if call.ending is Termination.ERROR:
        return None
    why = WHY.get(call.ending, call.message)
    return Outcome(call.ending, message=f"{why} while the model was built")


def build_in_worker(sent: bytes, layer: str, left_s: float | None, report: Report) -> BuiltForm:
    """Build and compile in the worker, in so much time after its imports; target of :func:`by_worker`."""
    del report
    modelling_layers.import_layer(layer)
    problem = pickle.loads(sent)  # noqa: S301 - from our own parent
    with timer(signal.ITIMER_REAL, left_s):
        return build_here(problem, layer)


def build_here(problem: Formulation, layer: str) -> BuiltForm:
    """Build and compile in this process."""
    start = time.monotonic()
    model = build_model(problem, layer)
    built = time.monotonic()
    form = compile_built(problem, model)
    return BuiltForm(form, built - start, time.monotonic() - built)
