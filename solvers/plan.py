"""Resolve a task to a plan: formulation, instance, method, adapter and every setting, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput, BadOption, MethodMismatch, SolverUnavailable
from opticoll.formulations import Formulation, formulation
from opticoll.formulations.model import read_parameters
from opticoll.instances import parse
from opticoll.instances.spec import nearest
from opticoll.solvers import memory
from opticoll.solvers import methods as table
from opticoll.solvers.adapters import Adapter, adapter, adapters
from opticoll.solvers.isolation import solve_isolated
from opticoll.solvers.methods import Method, method_named, methods_for, prepared
from opticoll.solvers.standard_form import StandardForm
from opticoll.solvers.task import LIMITS, SolveRequest, digest, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.instances import Instance
    from opticoll.solvers.task import Task


@dataclass(frozen=True)
class Plan:
    """A task with every choice made.

    ``method`` is the name under which the run is recorded; ``reformulation`` or ``procedure`` is the method
    behind it if it is no plain adapter; ``adapter`` the solver that gets a matrix, None for procedures that
    name their own solvers.
    """

    formulation: Formulation
    instance: Instance
    data: Any
    form: str
    method: str
    reformulation: Method | None
    procedure: Method | None
    adapter: Adapter | None
    parameters: Mapping[str, Any]
    method_parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    needed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """All effective settings, as they enter the resume key."""
        return {**self.parameters, **self.method_parameters, **self.options}


def instance_of(task: Task) -> Instance:
    """The instance of a task, parsed if it is given by its spec."""
    return parse(task.instance) if isinstance(task.instance, str) else task.instance


def make_plan(
    task: Task, *, instance: Instance | None = None, needed: Mapping[str, NDArray[np.float64]] | None = None
) -> Plan:
    """Resolve a task, and refuse everything that can be refused without solving.

    Parameters
    ----------
    task
        What to solve and how.
    instance
        The task's instance where it has been parsed already.
    needed
        The solution that the formulation takes as data, where it does.

    Raises
    ------
    BadInput
        Unknown formulation, instance, form, parameter; an instance the formulation does not apply to.
    MethodMismatch
        A method or solver that cannot take the formulation.
    SolverUnavailable
        A solver whose package is not installed.
    TooLarge
        If the instance alone shows that the solve cannot fit in memory.
    """
    model = formulation(task.formulation)
    form = task.form or model.forms[0]
    if form not in model.forms:
        msg = f"{model.name} is not stated in {form!r}; it is in {', '.join(model.forms)}"
        raise BadInput(msg)
    _refuse_unknown_method(task.method, model)

    settings = dict(task.settings)
    own = {p.name for p in model.parameters}
    parameters = read_parameters(model.parameters, {k: v for k, v in settings.items() if k in own}, model.name)
    instance = instance_of(task) if instance is None else instance
    _refuse_too_large(task, model, instance, parameters, form)
    data = prepared(model, instance, parameters, needed)

    name = choose(model, data, task) if task.method == "auto" else task.method
    if task.method == "auto" and task.form is None and name == table.SIMPLEX and "matrix" in model.build:
        form = "matrix"  # importing a modelling layer takes longer than a small solve
    method = method_named(name)
    left = {k: v for k, v in settings.items() if k not in own}
    method_parameters: dict[str, Any] = {}
    if method is not None:
        named = {p.name for p in method.parameters}
        method_parameters = read_parameters(
            method.parameters, {k: v for k, v in left.items() if k in named}, method.name
        )
        left = {k: v for k, v in left.items() if k not in named}
    solver = _solver(model, name, method, method_parameters)
    _refuse_unknown_settings(left, model, method, solver)
    return Plan(
        formulation=model,
        instance=instance,
        data=data,
        form=form,
        method=name,
        reformulation=method if method is not None and method.reformulate is not None else None,
        procedure=method if method is not None and method.run is not None else None,
        adapter=solver,
        parameters=parameters,
        method_parameters=method_parameters,
        options=left,
        needed=needed or {},
    )


def _refuse_too_large(
    task: Task, model: Formulation, instance: Instance, parameters: Mapping[str, Any], form: str
) -> None:
    """Refuse what the instance alone shows to be too large, before the data of the model take memory themselves.

    Where ``auto`` may choose a method that builds no matrix, :func:`opticoll.solvers.memory.refuse_plan` decides later.
    """
    size = None if model.early_estimate is None else model.early_estimate(instance, parameters)
    if size is None:
        return
    method, solver = task.method, task.method
    if method == "auto":
        if model.name in table.PREFERRED_METHODS or any(
            _applies(name, model) for name in (table.FIRST_ORDER, table.ORBIT)
        ):
            return
        method = solver = "highs-ipx"
    elif (found := method_named(method)) is not None:
        known = {parameter.name: parameter.default for parameter in found.parameters}
        solver = str(task.settings.get("solver", known.get("solver")))
    memory.refuse(task, model, size, form=form, method=method, solver=solver, spec=instance.spec)


def _applies(name: str, model: Formulation) -> bool:
    """Whether a method takes a formulation; imports that method alone."""
    method = method_named(name)
    return method is not None and method.applies(model)


def choose(model: Formulation, data: Any, task: Task) -> str:
    """The method that ``auto`` stands for: by formulation, problem class, structure, size and tolerance."""
    if model.name in table.PREFERRED_METHODS:
        return table.PREFERRED_METHODS[model.name]
    if model.problem == "MILP":
        return "highs"
    size = None if model.estimate is None else model.estimate(data)["variables"]
    if size is not None and size <= table.SIMPLEX_VARIABLES:
        return table.SIMPLEX
    if size is not None and task.form not in {"cvxpy", "pyomo"}:  # a form that is asked for is built and solved
        if _applies(table.ORBIT, model) and _orbit_variables(data) <= min(table.ORBIT_VARIABLES, size // 2):
            return table.ORBIT
        if size > table.FIRST_ORDER_VARIABLES and _applies(table.FIRST_ORDER, model):
            return table.FIRST_ORDER if task.tol >= table.FIRST_ORDER_TOL else table.SCREENED
    return "time-form" if model.concurrent else "highs-ipx"


def _orbit_variables(data: Any) -> int:
    """Arcs times orbits of sources under the verified symmetries that family and numbering suggest."""
    from opticoll.formulations.flows.flow_orbits import source_orbits

    return source_orbits(data) * int(data.topology.arcs)


def _refuse_unknown_method(name: str, model: Formulation) -> None:
    if name == "auto" or name in adapters():
        return
    found = method_named(name)
    if found is not None and found.applies(model):
        return
    fitting = methods_for(model)
    if found is not None:
        options = ", ".join([*fitting, *(a for a in adapters())])
        msg = f"method {name!r} does not take {model.name}; it can be solved by {options}"
        raise MethodMismatch(msg)
    msg = f"no method or solver {name!r}; {nearest(name, [*fitting, *adapters(), 'auto'])}"
    raise MethodMismatch(msg)


def _solver(
    model: Formulation, name: str, method: Method | None, method_parameters: Mapping[str, Any]
) -> Adapter | None:
    """The adapter behind a method, checked against the problem class and for its package."""
    wanted = name if method is None else method_parameters.get("solver")
    if wanted is None:
        return None
    found = adapter(str(wanted))
    can = found.capabilities
    if model.problem == "MILP" and not can.mip and (method is None or method.run is None):
        able = ", ".join(a.name for a in adapters().values() if a.capabilities.mip)
        msg = f"{found.name} solves no integer problems and {model.name} is one; use one of {able}"
        raise MethodMismatch(msg)
    if model.problem == "LP" and not can.lp:
        able = ", ".join(a.name for a in adapters().values() if a.capabilities.lp)
        msg = f"{found.name} solves no continuous LPs and {model.name} is one; use one of {able}"
        raise MethodMismatch(msg)
    if not found.installed():
        msg = f"{found.name}: the package {found.distribution!r} is not installed; {found.install}"
        raise SolverUnavailable(msg)
    return found


def _refuse_unknown_settings(
    left: Mapping[str, Any], model: Formulation, method: Method | None, solver: Adapter | None
) -> None:
    """Solvers behind a matrix take what is left, and near misses of parameters are named as such; nothing else can."""
    import difflib

    known = [p.name for p in (*model.parameters, *(method.parameters if method else ()))]
    for name in left:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close or solver is None or (method is not None and method.run is not None):
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
            msg = f"{model.name}: no setting {name!r}; {hint}"
            raise BadOption(msg)


def resume_key(task: Task) -> str:
    """SHA-256 over everything that may change the answer or the time: what a study resumes by."""
    return plan_key(task, make_plan(task))


def plan_key(task: Task, plan: Plan) -> str:
    """The resume key of a task whose plan is already made."""
    from importlib.metadata import version

    solver = plan.adapter
    return digest(
        {
            "formulation": plan.formulation.name,
            "instance": plan.instance.hash,
            "method": plan.method,
            "form": plan.form,
            "settings": texts(plan.settings),
            "opticoll": version("opticoll"),
            "solver": None if solver is None else [solver.name, solver.version()],
            **{name: getattr(task, name) for name in LIMITS},
        }
    )


def rehearse_options(plan: Plan) -> None:
    """Refuse options that the plan's solver does not have or does not take.

    Raises
    ------
    BadOption
        As the solve itself would; a solver that is unavailable says so when it is its turn.
    """
    if plan.adapter is not None and plan.options:
        options = tuple(sorted((name, str(value)) for name, value in plan.options.items()))
        _try(plan.adapter.name, options, integer=plan.formulation.problem == "MILP")


@cache
def _try(solver: str, options: tuple[tuple[str, str], ...], *, integer: bool) -> None:
    import scipy.sparse as sp

    one = np.ones(1)
    trivial = StandardForm(
        sp.csc_array([[1.0]]), np.zeros(1), one, np.zeros(1), one, one, "max", integer=np.array([integer])
    )
    try:
        solve_isolated(trivial, solver, SolveRequest(time_limit_s=20.0, options=dict(options)))
    except SolverUnavailable:
        return
