"""A method's procedure across the process border: the task goes out, named arrays come back."""

from __future__ import annotations

import pickle
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.instances.readers.untrusted import PREFIX
from opticoll.solvers.methods.method import Answer, Context
from opticoll.solvers.task import Task, Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.solvers.scratch import Report


def send(
    task: Task, instance: Any, needed: Mapping[str, NDArray[Any]] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """JSON-able arguments and arrays that let a worker rebuild the task.

    An instance given by spec is rebuilt from it; one made in Python or read from a file travels whole, for the file may
    change. Settings that name files must be pinned. ``needed`` are the values that the formulation takes as data, if
    any.
    """
    data = {f"needed.{name}": np.asarray(array) for name, array in (needed or {}).items()}
    arguments: dict[str, Any] = {
        "formulation": task.formulation,
        "method": task.method,
        "form": task.form,
        "settings": dict(task.settings),
        "memory_limit_gib": task.memory_limit_gib,
        "tol": task.tol,
        "seed": task.seed,
        "threads": task.threads,
    }
    if isinstance(task.instance, str) and PREFIX not in task.instance:
        return {**arguments, "instance": task.instance}, data
    # Between our own processes, through a folder of ours: no file of anybody else is ever unpickled.
    return arguments, data | {"instance": np.frombuffer(pickle.dumps(instance), dtype=np.uint8)}


def _rebuild(arguments: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Task:
    if "instance" in arguments:
        instance: Any = arguments["instance"]
    else:
        instance = pickle.loads(arrays["instance"].tobytes())  # noqa: S301
    keys = (
        "formulation",
        "method",
        "form",
        "settings",
        "time_limit_s",
        "memory_limit_gib",
        "tol",
        "seed",
        "threads",
    )
    return Task(instance=instance, **{key: arguments[key] for key in keys})


def run_in_worker(
    arguments: dict[str, Any], arrays: dict[str, NDArray[Any]], report: Report
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Target of :func:`opticoll.solvers.isolation.call_isolated`: plan the task here and run its procedure."""
    from opticoll.solvers.plan import make_plan
    from opticoll.solvers.runner import solve

    start = time.monotonic()
    task = _rebuild(arguments, arrays)
    needed = {k.removeprefix("needed."): v for k, v in arrays.items() if k.startswith("needed.")}
    plan = make_plan(task, needed=needed or None)
    assert plan.procedure is not None
    assert plan.procedure.run is not None
    deadline = None if task.time_limit_s is None else start + task.time_limit_s

    def save(answer: Answer, objective: float | None = None) -> None:
        values, found = _pack(answer)
        # What this report leaves out stays as an earlier one gave it.
        kept = {name: value for name, value in values.items() if not (name.startswith("has_") and not value)}
        report({**kept, "objective": objective}, found)

    context = Context(
        task=task, formulation=plan.formulation, data=plan.data, instance=plan.instance,
        parameters=plan.method_parameters, deadline=deadline, solve=solve, save=save,
    )  # fmt: skip
    try:
        answer = plan.procedure.run(context)
    except TimeoutError:
        answer = Answer(Termination.TIME_LIMIT, message="the time limit ran out between two steps of the method")
    return _pack(answer)


def _pack(answer: Answer) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    values = asdict(answer)
    values["termination"] = str(answer.termination)
    arrays: dict[str, NDArray[Any]] = {}
    for kind in ("values", "duals"):
        named = values.pop(kind)
        values[f"has_{kind}"] = named is not None
        arrays |= {f"{kind}.{name}": np.asarray(array) for name, array in (named or {}).items()}
    return values, arrays


def receive(values: dict[str, Any], arrays: dict[str, NDArray[Any]], ending: Termination | None) -> Answer:
    """The answer of a worker, or what it had last saved when it ended as ``ending``."""
    if not values:
        return Answer(ending or Termination.ERROR)

    def named(kind: str) -> dict[str, NDArray[Any]] | None:
        prefix = f"{kind}."
        found = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        return found if values.get(f"has_{kind}") else None

    return Answer(
        termination=ending or Termination(values["termination"]),
        values=named("values"),
        duals=named("duals"),
        bound=values.get("bound"),
        bound_source=values.get("bound_source"),
        infeasible_by=values.get("infeasible_by"),
        solver=values.get("solver") or {},
        metrics=values.get("metrics") or {},
        message=values.get("message") or "",
    )
