"""Send a task to the worker that runs a method's procedure, and receive its answer."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from opticoll.errors import BadInput
from opticoll.formulations import formulation, named
from opticoll.formulations.flows.symmetric_flow import from_parts, in_parts
from opticoll.instances import parse, plugins
from opticoll.instances.plugin_faults import place_of
from opticoll.instances.readers.reading import names_file
from opticoll.instances.spec import modules_behind
from opticoll.solvers.methods.method import Answer, Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from opticoll.instances import Instance
    from opticoll.solvers.messages import Report
    from opticoll.solvers.task import Run, Task

    Arrays = dict[str, NDArray[Any]]
    Message = dict[str, Any]

_ARRAYS = ("values", "duals")


def send(
    task: Task,
    instance: Instance,
    needed: Mapping[str, NDArray[Any]] | None = None,
    start: Mapping[str, NDArray[Any]] | None = None,
) -> Arrays:
    """Arrays that let a worker rebuild the task.

    A formulation that is unknown to other processes is sent with its code. An instance given by its spec is rebuilt
    from the spec. An instance made in Python, of a family of the user's script, or read from a file is sent whole,
    since the file may change. Settings that name files must be pinned.
    ``needed`` are the values that the formulation takes as data, if any, ``start`` those of a known solution.
    """
    import cloudpickle

    data = {f"needed.{name}": np.asarray(array) for name, array in (needed or {}).items()}
    data |= {f"start.{name}": np.asarray(array) for name, array in (start or {}).items()}
    model = formulation(task.formulation)
    known = plugins.everywhere(modules_behind(instance.spec))
    if not isinstance(task.instance, str) or names_file(task.instance) or not known:
        task = replace(task, instance=instance)
    task = replace(task, formulation=model.name if named(model) else model)
    return data | {"task": np.frombuffer(cloudpickle.dumps(task), dtype=np.uint8)}


def rebuild(arrays: Mapping[str, NDArray[Any]]) -> Task:
    """The task that :func:`send` sent, with its instance; nothing else is ever unpickled."""
    task: Task = pickle.loads(arrays["task"].tobytes())  # noqa: S301 - from our own parent
    return replace(task, instance=parse(task.instance) if isinstance(task.instance, str) else task.instance)


def run_procedure(arrays: Arrays, report: Report, solve: Callable[..., Run]) -> tuple[Message, Arrays]:
    """Plan the task in this worker and run its procedure, with ``solve`` for sub-problems."""
    start = time.monotonic()
    task = rebuild(arrays)
    needed = {k.removeprefix("needed."): v for k, v in arrays.items() if k.startswith("needed.")}
    known = {k.removeprefix("start."): v for k, v in arrays.items() if k.startswith("start.")}
    plan = make_plan(task, needed=needed or None)
    assert plan.procedure is not None
    assert plan.procedure.run is not None
    deadline = None if task.time_limit_s is None else start + task.time_limit_s

    where = f"{place_of(plan.procedure.run)}method {plan.method!r}: run"

    def save(answer: Answer, objective: float | None = None) -> None:
        values, named = _pack(answer, f"{where} saved")
        # Fields that this report omits keep the values of an earlier one.
        changed = {name: value for name, value in values.items() if not (name.startswith("has_") and not value)}
        report({**changed, "objective": objective}, named)

    context = Context(
        task=task,
        data=plan.data,
        instance=plan.instance,
        parameters=plan.method_parameters,
        deadline=deadline,
        solve=solve,
        save=save,
        start=known or None,
    )
    try:
        answer = plan.procedure.run(context)
    except TimeoutError:
        answer = Answer(Termination.TIME_LIMIT, message="the time limit was reached between two steps of the method")
    return _pack(answer, f"{where} returned")


def _pack(answer: Answer, where: str) -> tuple[Message, Arrays]:
    if not isinstance(answer, Answer):
        msg = f"{where} {type(answer).__name__}; write Answer(termination, values)"
        raise BadInput(msg)
    if not isinstance(answer.termination, Termination):
        msg = f"{where} an Answer with termination {answer.termination!r}; use Termination, such as Termination.OPTIMAL"
        raise BadInput(msg)
    message = {item.name: getattr(answer, item.name) for item in fields(answer) if item.name not in _ARRAYS}
    arrays: Arrays = {}
    for kind in _ARRAYS:
        named = getattr(answer, kind)
        message[f"has_{kind}"] = named is not None
        arrays |= in_parts({f"{kind}.{name}": array for name, array in (named or {}).items()})
    return message, arrays


def receive(message: Mapping[str, Any], arrays: Arrays, ending: Termination | None) -> Answer:
    """The answer of a worker, or the last one that it saved if it ended as ``ending``."""
    if not message:
        return Answer(ending or Termination.ERROR)
    named = {
        kind: from_parts({k.removeprefix(f"{kind}."): v for k, v in arrays.items() if k.startswith(f"{kind}.")})
        if message.get(f"has_{kind}")
        else None
        for kind in _ARRAYS
    }
    sent = {item.name: message[item.name] for item in fields(Answer) if item.name in message}
    bound = sent.get("bound")
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, (int, float))):
        msg = f"bound = {str(bound)[:60]!r}, expected a number"
        raise TypeError(msg)
    for name, kind in (("metrics", dict), ("solver", dict), ("message", str)):
        if not isinstance(sent.get(name, kind()), kind):
            msg = f"{name} of type {type(sent[name]).__name__}, expected {kind.__name__}"
            raise TypeError(msg)
    return Answer(**{**sent, **named, "termination": ending or Termination(message["termination"])})
