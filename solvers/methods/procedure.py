"""Run a method's procedure in a worker: the task is sent as JSON and arrays, the answer comes back the same way."""

from __future__ import annotations

import pickle
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.instances import parse
from opticoll.instances.readers.untrusted import PREFIX
from opticoll.solvers.methods.method import Answer, Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Json, Task, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from opticoll.instances import Instance
    from opticoll.solvers.scratch import Report
    from opticoll.solvers.task import Run

    Arrays = dict[str, NDArray[Any]]
    Message = dict[str, Json]

_ARRAYS = ("values", "duals")


def send(task: Task, instance: Instance, needed: Mapping[str, NDArray[Any]] | None = None) -> tuple[Message, Arrays]:
    """JSON-able arguments and arrays that let a worker rebuild the task.

    An instance given by its spec is rebuilt from it. One made in Python or read from a file is sent whole, since the
    file may change. Settings that name files must be pinned. ``needed`` are the values that the formulation takes as
    data, if any.
    """
    data = {f"needed.{name}": np.asarray(array) for name, array in (needed or {}).items()}
    arguments = {name: getattr(task, name) for name in task.__struct_fields__ if name != "instance"}
    if isinstance(task.instance, str) and PREFIX not in task.instance:
        return {**arguments, "instance": task.instance}, data
    # Only between our own processes, through a private folder: nothing else is ever unpickled.
    return arguments, data | {"instance": np.frombuffer(pickle.dumps(instance), dtype=np.uint8)}


def rebuild(arguments: Mapping[str, Json], arrays: Mapping[str, NDArray[Any]]) -> Task:
    """The task that :func:`send` sent, with its instance."""
    spec = arguments.get("instance")
    instance = pickle.loads(arrays["instance"].tobytes()) if spec is None else parse(spec)  # noqa: S301
    return Task(**{**arguments, "instance": instance})


def run_procedure(
    arguments: Message, arrays: Arrays, report: Report, solve: Callable[..., Run]
) -> tuple[Message, Arrays]:
    """Plan the task in this worker and run its procedure, with ``solve`` for sub-problems."""
    start = time.monotonic()
    task = rebuild(arguments, arrays)
    needed = {k.removeprefix("needed."): v for k, v in arrays.items() if k.startswith("needed.")}
    plan = make_plan(task, needed=needed or None)
    assert plan.procedure is not None
    assert plan.procedure.run is not None
    deadline = None if task.time_limit_s is None else start + task.time_limit_s

    def save(answer: Answer, objective: float | None = None) -> None:
        values, named = _pack(answer)
        # Whatever this report leaves out stays as an earlier one gave it.
        kept = {name: value for name, value in values.items() if not (name.startswith("has_") and not value)}
        report({**kept, "objective": objective}, named)

    context = Context(
        task=task, formulation=plan.formulation, data=plan.data, instance=plan.instance,
        parameters=plan.method_parameters, deadline=deadline, solve=solve, save=save,
    )  # fmt: skip
    try:
        answer = plan.procedure.run(context)
    except TimeoutError:
        answer = Answer(Termination.TIME_LIMIT, message="the time limit ran out between two steps of the method")
    return _pack(answer)


def _pack(answer: Answer) -> tuple[Message, Arrays]:
    message = {one.name: getattr(answer, one.name) for one in fields(answer) if one.name not in _ARRAYS}
    arrays: Arrays = {}
    for kind in _ARRAYS:
        named = getattr(answer, kind)
        message[f"has_{kind}"] = named is not None
        arrays |= {f"{kind}.{name}": np.asarray(array) for name, array in (named or {}).items()}
    return message, arrays


def receive(message: Mapping[str, Json], arrays: Arrays, ending: Termination | None) -> Answer:
    """The answer of a worker, or the last one that it saved if it ended as ``ending``."""
    if not message:
        return Answer(ending or Termination.ERROR)
    named = {
        kind: {k.removeprefix(f"{kind}."): v for k, v in arrays.items() if k.startswith(f"{kind}.")}
        if message.get(f"has_{kind}")
        else None
        for kind in _ARRAYS
    }
    sent = {one.name: message[one.name] for one in fields(Answer) if one.name in message}
    return Answer(**{**sent, **named, "termination": ending or Termination(message["termination"])})
