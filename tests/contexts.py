"""What a method is called with, so that it runs in the process of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.formulations.modelling_layers import import_layer
from opticoll.solvers import solve
from opticoll.solvers.methods.method import Context
from opticoll.solvers.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.solvers.task import Task


def context_of(task: Task, save: Callable[..., Any] = lambda *_: None) -> Context:
    """The context of a task of a method, without a deadline; ``save`` takes what the method keeps."""
    plan = make_plan(task)
    import_layer(plan.form)
    return Context(
        task=task,
        data=plan.problem,
        instance=plan.instance,
        parameters=plan.method_parameters,
        deadline=None,
        solve=solve.solve,
        save=save,
    )
