"""Resolve a task to a plan: formulation, instance, method, adapter and every setting, before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from opticoll import plugins
from opticoll.errors import BadInput, BadOption, MethodMismatch, SolverUnavailable, refuse
from opticoll.formulations import Formulation
from opticoll.formulations.model import forms_of, is_own
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.registry import formulation as formulation_named
from opticoll.formulations.registry import formulations
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances import Topology, parse
from opticoll.instances.demands import DemandSpec
from opticoll.nearest_names import nearest
from opticoll.solvers.adapters import Adapter, adapter, adapters
from opticoll.solvers.auto import choose
from opticoll.solvers.methods import Method, method_named, methods_for, prepared, taking_over
from opticoll.solvers.process.isolation import solve_isolated
from opticoll.solvers.run import Plan
from opticoll.solvers.task import SolveRequest, Task

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from numpy.typing import NDArray

    from opticoll.formulations.parameters import Parameter
    from opticoll.instances import Instance
    from opticoll.instances.topology import F64
    from opticoll.types import Setting, Settings

    Arrays = dict[str, NDArray[Any]]
    Message = dict[str, Any]


def instance_of(task: Task) -> Instance:
    """The instance of a task, parsed if it is given by its spec."""
    return parse(task.instance) if isinstance(task.instance, str) else task.instance


def make_plan(
    task: Task,
    *,
    instance: Instance | None = None,
    needed: Mapping[str, F64] | None = None,
    recent: dict[Hashable, Formulation] | None = None,
) -> Plan:
    """Resolve a task, and refuse everything that can be refused without solving.

    Parameters
    ----------
    task
        What to solve and how.
    instance
        The task's instance, if it has already been parsed.
    needed
        The solution that the formulation takes as data, if any.
    recent
        Holds the formulation that the last plan of a caller has prepared: it serves again on the same instance with the
        same parameters, for another method.

    Raises
    ------
    BadInput
        Unknown formulation, instance, form, parameter; an instance the formulation does not apply to.
    MethodMismatch
        A method or solver that does not support the formulation.
    SolverUnavailable
        A solver whose package is not installed.
    """
    formulation = formulation_named(task.formulation)
    forms = forms_of(formulation)
    form = task.form or forms[0]
    if form not in forms:
        msg = f"{formulation.name} is not stated in {form!r}; it is in {', '.join(forms)}"
        raise BadInput(msg)
    _refuse_unknown_method(task.method, formulation)

    own, left = _divided(task.settings, formulation.parameters)
    instance = instance_of(task) if instance is None else instance
    parameters = parameters_on(instance, formulation, own)
    over = taking_over(formulation.name, parameters) if task.method == "auto" else []
    if recent is None or needed is not None:
        problem = prepared(formulation, instance, parameters, needed)
    else:
        place = (formulation, type(instance), instance._contents_and_names, *sorted(parameters.items()))
        if place not in recent:
            recent.clear()
            recent[place] = prepared(formulation, instance, parameters)
        problem = recent[place]
    if task.exact:
        problem._derived()  # raises an error for data that are not fractions

    sized = formulation._needs is None or needed is not None
    choice = choose(problem, task, instance, over, sized=sized) if task.method == "auto" else None
    name, form = (task.method, form) if choice is None else (choice.method, choice.form)
    method = method_named(name)
    if method is not None and (reason := method.refusal(problem)) is not None:
        msg = f"{formulation.name}: method {name!r} {reason}; use a solver, such as"
        raise MethodMismatch(msg, remedy={"method": "highs"})
    method_parameters: dict[str, Setting] = {}
    if method is not None:
        own, left = _divided(left, method.parameters)
        method_parameters = read_parameters(method.parameters, own, method.name)
    solver = _solver(problem, name, method, method_parameters)
    _refuse_unknown_settings(left, formulation, method, solver)
    return Plan(
        problem=problem,
        instance=instance,
        form=form,
        method=method,
        adapter=solver,
        parameters=parameters,
        method_parameters=method_parameters,
        options=left,
        needed=needed or {},
        choice=choice,
    )


def parameters_on(
    instance: Instance, formulation: type[Formulation], given: Mapping[str, object]
) -> dict[str, Setting]:
    """The parameters of a formulation, as given or their defaults; data of a demand are matched with the ranks."""
    parameters = read_parameters(formulation.parameters, given, formulation.name)
    demand = parameters.get("demand")
    if isinstance(demand, DemandSpec) and demand.data is not None and isinstance(instance, Topology):
        parameters["demand"] = demand.on(instance, formulation.name)
    return parameters


def _divided(
    settings: Mapping[str, object], parameters: Iterable[Parameter]
) -> tuple[dict[str, object], dict[str, object]]:
    """The settings of some parameters, and all others."""
    names = {parameter.name for parameter in parameters}
    own = {name: value for name, value in settings.items() if name in names}
    return own, {name: value for name, value in settings.items() if name not in names}


def shared_parameters(formulation: Formulation | type[Formulation], parameters: Settings) -> dict[str, Setting]:
    """What a formulation sets in the one it takes its data from: its fixed settings, and what it passes on.

    Values that are the default there are left out.
    """
    if formulation._needs is None:
        return {}
    basis = formulation_named(formulation._needs.formulation)
    defaults = {parameter.name: parameter.default for parameter in basis.parameters}
    passed = {
        name: parameters[name] for name in formulation._needs.passed_on if name in defaults and name in parameters
    }
    return dict(formulation._needs.settings) | {
        name: value for name, value in passed.items() if value is not None and value != defaults[name]
    }


def _refuse_unknown_method(name: str, formulation: type[Formulation]) -> None:
    if not isinstance(name, str):
        msg = f"method: must be the name of a solver or a method, not {name!r}; write for example method='highs'"
        raise MethodMismatch(msg)
    if name == "auto" or name in adapters():
        return
    if method_named(name) is None:
        plugins.load_installed()
        if name in adapters():
            return
    method = method_named(name)
    if method is not None and method.applies(formulation):
        return
    fitting = methods_for(formulation)
    if method is not None:
        options = ", ".join([*fitting, *(a for a in adapters())])
        msg = f"method {name!r} does not apply to {formulation.name}; it can be solved by {options}"
        unknown = [] if callable(method.serves) else [one for one in method.serves if one not in formulations()]
        msg += "".join(f"; it serves {one!r}, no formulation; {nearest(one, [*formulations()])}" for one in unknown)
        raise MethodMismatch(msg)
    of_package = [one for one, solver in adapters().items() if solver.package == name]
    near = (
        f"its solvers: {', '.join(of_package)}"
        if of_package
        else nearest(name, [*fitting, *adapters(), "auto"], least=0.7)
    )
    msg = f"no method or solver {name!r}; {near} (a command of your own: in a file that OPTICOLL_SOLVERS names)"
    raise MethodMismatch(msg)


def _solver(
    problem: Formulation, name: str, method: Method | None, method_parameters: Mapping[str, Any]
) -> Adapter | None:
    """The adapter behind a method, after checking that it supports the problem class and is installed."""
    wanted = name if method is None else method_parameters.get("solver")
    if wanted is None:
        return None
    chosen = adapter(str(wanted))
    can = chosen.capabilities
    if problem.problem == "MILP" and not can.mip and (method is None or method.run is None):
        able = ", ".join(a.name for a in adapters().values() if a.capabilities.mip)
        msg = f"{chosen.name} does not solve integer problems, but {problem.name} is one; use one of {able}"
        raise MethodMismatch(msg)
    if problem.problem == "LP" and not can.lp:
        able = ", ".join(a.name for a in adapters().values() if a.capabilities.lp)
        msg = f"{chosen.name} does not solve continuous LPs, but {problem.name} is one; use one of {able}"
        raise MethodMismatch(msg)
    if not chosen.installed():
        raise SolverUnavailable(chosen.missing())
    return chosen


#: Arguments of :func:`opticoll.topology`, as a spec states them; None for those that it does not.
OF_TOPOLOGY = {
    "ranks": "file:PATH,ranks=PATTERN",
    "switches": "file:PATH,switches=PATTERN",
    "capacity": "file:PATH,capacity=NAME",
    "directed": "file:PATH,directed=false",
    "unit": "INSTANCE+unit=100Gb/s",
    "loops": None,
}


def refuse_arguments_of_topology(
    settings: Mapping[str, Any], formulation: type[Formulation], method: Method | None
) -> None:
    """Refuse settings that describe the instance, unless they are parameters of the formulation or the method.

    Raises
    ------
    BadOption
        If there are such settings.
    """
    known = {p.name for p in (*formulation.parameters, *(method.parameters if method else ()))}
    wrong = [name for name in OF_TOPOLOGY if name in settings and name not in known]
    if wrong:
        python = ", ".join(f"{name}=..." for name in wrong)
        specs = " and ".join(filter(None, (OF_TOPOLOGY[name] for name in wrong)))
        msg = f"{formulation.name}: no setting {wrong[0]!r}, which describes the instance; write "
        msg += f"oc.topology(INSTANCE, {python})" + (f", or in a spec {specs}" if specs else "")
        raise BadOption(msg)


def _refuse_unknown_settings(
    left: Mapping[str, Any], formulation: type[Formulation], method: Method | None, solver: Adapter | None
) -> None:
    """Refuse remaining settings that look like misspelt parameters, or that no solver takes as options."""
    refuse_arguments_of_topology(left, formulation, method)
    known = [p.name for p in (*formulation.parameters, *(method.parameters if method else ()))]
    for name in left:
        if name == "solver":
            msg = f"{formulation.name}: no setting 'solver'; a solver is a method too:"
            raise BadOption(msg, remedy={"method": left[name]})
        if name == "demand":
            remedy = (
                f"; for one, give __init__ of {formulation.__name__} the argument demand" if is_own(formulation) else ""
            )
            refuse(formulation.name, f"no setting 'demand'; its traffic is fixed by the formulation{remedy}", BadOption)
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close or solver is None or (method is not None and method.run is not None):
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
            refuse(formulation.name, f"no setting {name!r}; {hint}", BadOption)
    if solver is not None:
        solver.refuse_options(left)


#: Options of a solve that are no settings.
_OWN = ("method", "form", "time_limit", "memory_limit", "tol", "seed", "threads", "exact", "start", "log", "shard")


@contextmanager
def parameters_named(plan: Plan) -> Iterator[None]:
    """Add the parameters to the error for an unknown solver option, since the user may have meant one of them."""
    try:
        yield
    except BadOption as error:
        text = str(error)
        unknown = next((name for name in plan.options if f"has no option {name!r}" in text), None)
        known = {name.lower(): name for name in (*plan.parameters, *plan.method_parameters)}
        if unknown is None or not known:
            raise
        meant = difflib.get_close_matches(unknown.lower(), list(known), n=1)
        named = [] if "did you mean" in text else _OWN
        own = difflib.get_close_matches(unknown.lower().replace("-", "_"), named, n=1, cutoff=0.75)
        closest = f"; did you mean {known[meant[0]]!r}?" if meant else "; did you mean" if own else ""
        owners = {plan.problem.name: plan.parameters, plan.method_name: plan.method_parameters}
        owner = " and ".join(name for name, stated in owners.items() if stated)
        msg = f"{text}; parameters of {owner}: {', '.join(known.values())}{closest}"
        raise BadOption(msg, remedy=None if meant or not own else {own[0]: None}) from None


def needed_task(task: Task, plan: Plan) -> Task:
    """The task whose solution the task's formulation takes as data."""
    problem = plan.problem
    assert problem._needs is not None
    needs = problem._needs
    method = "auto" if needs.method is None else str(plan.parameters[needs.method])
    basis = formulation_named(needs.formulation)
    exact = task.exact and basis.problem == "LP"  # other formulations have integer solutions
    return structs.replace(
        task,
        formulation=needs.formulation,
        method=method,
        form=None,
        settings=shared_parameters(problem, plan.parameters),
        repetition=0,
        exact=exact,
    )


def rehearse_options(plan: Plan) -> None:
    """Refuse options that the plan's solver does not have, and invalid values.

    Raises
    ------
    BadOption
        As the solve itself would raise it; an unavailable solver is only reported when it is about to run.
    """
    if plan.adapter is not None and plan.options:
        options = tuple(sorted((name, str(value)) for name, value in plan.options.items()))
        with parameters_named(plan):
            _try(plan.adapter.name, options, integer=plan.integer)


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
