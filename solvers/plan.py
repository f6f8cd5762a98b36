"""Resolve a task to a plan: formulation, instance, method, adapter and every setting, before anything runs.

The procedure of a method runs in a worker, to which the task is sent as JSON and arrays; the answer is returned in the
same way.
"""

from __future__ import annotations

import difflib
import pickle
import re
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from dis import get_instructions
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from opticoll.errors import BadInput, BadOption, MethodMismatch, SolverUnavailable
from opticoll.formulations import Formulation, formulation, named
from opticoll.formulations.model import read_parameters
from opticoll.instances import Topology, parse, plugins
from opticoll.instances.demands import UNIFORM, DemandSpec
from opticoll.instances.outside_modules import modules_of
from opticoll.instances.readers.reading import names_file
from opticoll.instances.spec import modules_behind, nearest
from opticoll.solvers import memory
from opticoll.solvers.adapters import Adapter, adapter, adapters
from opticoll.solvers.adapters.interface import distribution_version
from opticoll.solvers.auto import MethodChoice, choose
from opticoll.solvers.isolation import solve_isolated
from opticoll.solvers.methods import Method, method_named, methods_for, prepared, taking_over
from opticoll.solvers.methods.method import Answer, Context, names
from opticoll.solvers.standard_form import StandardForm
from opticoll.solvers.task import LIMITS, SolveRequest, Task, Termination, digest, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from opticoll.instances import Instance
    from opticoll.instances.types import Setting, Settings
    from opticoll.solvers.exact.exact_form import ExactForm
    from opticoll.solvers.shared_files import Report
    from opticoll.solvers.task import Run

    Arrays = dict[str, NDArray[Any]]
    Message = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A task with every choice made.

    ``method`` is the name under which the run is recorded; ``reformulation`` or ``procedure`` is the method
    behind it if it is not a plain adapter; ``adapter`` the solver that gets a matrix, None for procedures that
    name their own solvers. ``choice`` is what ``auto`` chose, None for a method that the task names. ``stated`` is the
    program in rational numbers for an exact task, None where its data are another run's solution.
    """

    formulation: Formulation
    instance: Instance
    form: str
    method: str
    reformulation: Method | None
    procedure: Method | None
    adapter: Adapter | None
    parameters: Settings
    method_parameters: Settings
    options: Mapping[str, object]
    needed: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    choice: MethodChoice | None = None
    stated: ExactForm | None = None

    @property
    def data(self) -> Any:
        """The data of the formulation."""
        return self.formulation.data

    @property
    def builds(self) -> bool:
        """Whether the stated model is built in ``form``: by the runner, or by the method's procedure."""
        return self.procedure is None or self.procedure.builds

    @property
    def settings(self) -> dict[str, object]:
        """All effective settings, as they enter the resume key."""
        return {**self.parameters, **self.method_parameters, **self.options}


def instance_of(task: Task) -> Instance:
    """The instance of a task, parsed if it is given by its spec."""
    return parse(task.instance) if isinstance(task.instance, str) else task.instance


@plugins.exits_refused()
def make_plan(
    task: Task, *, instance: Instance | None = None, needed: Mapping[str, NDArray[np.float64]] | None = None
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

    Raises
    ------
    BadInput
        Unknown formulation, instance, form, parameter; an instance the formulation does not apply to.
    MethodMismatch
        A method or solver that does not support the formulation.
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
    demand = parameters.get("demand")
    if isinstance(demand, DemandSpec) and isinstance(instance, Topology):
        parameters["demand"] = demand.on(instance, model.name)
    _refuse_too_large(task, model, instance, parameters, form)
    problem = prepared(model, instance, parameters, needed)
    if task.exact:
        problem.derived()  # raises an error for data that are not fractions

    sized = model.needs is None or needed is not None
    choice = choose(problem, task, instance, parameters, sized=sized) if task.method == "auto" else None
    name, form = (task.method, form) if choice is None else (choice.method, choice.form)
    method = method_named(name)
    if method is not None and (reason := method.refusal(problem.data)) is not None:
        msg = f"{model.name}: method {name!r} {reason}; use a solver, such as --method highs"
        raise MethodMismatch(msg)
    left = {k: v for k, v in settings.items() if k not in own}
    method_parameters: dict[str, Setting] = {}
    if method is not None:
        named = {p.name for p in method.parameters}
        method_parameters = read_parameters(
            method.parameters, {k: v for k, v in left.items() if k in named}, method.name
        )
        left = {k: v for k, v in left.items() if k not in named}
    solver = _solver(problem, name, method, method_parameters)
    _refuse_unknown_settings(left, model, method, solver)
    return Plan(
        formulation=problem,
        instance=instance,
        form=form,
        method=name,
        reformulation=method if method is not None and method.reformulate is not None else None,
        procedure=method if method is not None and method.run is not None else None,
        adapter=solver,
        parameters=parameters,
        method_parameters=method_parameters,
        options=left,
        needed=needed or {},
        choice=choice,
    )


def shared_parameters(model: Formulation | type[Formulation], parameters: Settings) -> dict[str, Setting]:
    """The demand that a formulation passes on to the one it takes its data from; empty if it is the default."""
    if model.needs is None or parameters.get("demand") in (None, UNIFORM):
        return {}
    known = {parameter.name for parameter in formulation(model.needs).parameters}
    return {"demand": parameters["demand"]} if "demand" in known else {}


def _refuse_too_large(
    task: Task, model: type[Formulation], instance: Instance, parameters: Mapping[str, Any], form: str
) -> None:
    """Refuse what the instance alone shows to be too large, before the data of the model take memory themselves.

    Where ``auto`` may choose a method that builds no matrix, :func:`opticoll.solvers.memory.refuse_plan` decides later.
    """
    size = model.early_estimate(instance, parameters)
    if size is None:
        return
    method, solver = task.method, task.method
    if method == "auto":
        over = taking_over(model.name, parameters)
        if task.form is None and any(at.most is None or size["variables"] <= at.most for _, at in over):
            return
        method = solver = "highs-ipx"
    elif (procedure := method_named(method)) is not None:
        known = {parameter.name: parameter.default for parameter in procedure.parameters}
        solver = str(task.settings.get("solver", known.get("solver")))
    memory.refuse(task, model, size, form=form, method=method, solver=solver, spec=instance.spec)


def _refuse_unknown_method(name: str, model: type[Formulation]) -> None:
    if name == "auto" or name in adapters():
        return
    if method_named(name) is None:
        plugins.load_installed()
        if name in adapters():
            return
    method = method_named(name)
    if method is not None and method.applies(model):
        return
    fitting = methods_for(model)
    if method is not None:
        options = ", ".join([*fitting, *(a for a in adapters())])
        msg = f"method {name!r} does not apply to {model.name}; it can be solved by {options}"
        raise MethodMismatch(msg)
    near = nearest(name, [*fitting, *adapters(), "auto"])
    msg = f"no method or solver {name!r}; {near} (a command of your own: --solver-config FILE or OPTICOLL_SOLVERS)"
    raise MethodMismatch(msg)


def _solver(
    model: Formulation, name: str, method: Method | None, method_parameters: Mapping[str, Any]
) -> Adapter | None:
    """The adapter behind a method, after checking that it supports the problem class and is installed."""
    wanted = name if method is None else method_parameters.get("solver")
    if wanted is None:
        return None
    chosen = adapter(str(wanted))
    can = chosen.capabilities
    if model.problem == "MILP" and not can.mip and (method is None or method.run is None):
        able = ", ".join(a.name for a in adapters().values() if a.capabilities.mip)
        msg = f"{chosen.name} does not solve integer problems, but {model.name} is one; use one of {able}"
        raise MethodMismatch(msg)
    if model.problem == "LP" and not can.lp:
        able = ", ".join(a.name for a in adapters().values() if a.capabilities.lp)
        msg = f"{chosen.name} does not solve continuous LPs, but {model.name} is one; use one of {able}"
        raise MethodMismatch(msg)
    if not chosen.installed():
        raise SolverUnavailable(chosen.missing())
    return chosen


def _refuse_unknown_settings(
    left: Mapping[str, Any], model: type[Formulation], method: Method | None, solver: Adapter | None
) -> None:
    """Refuse remaining settings that look like misspelt parameters, or that no solver takes as options."""
    known = [p.name for p in (*model.parameters, *(method.parameters if method else ()))]
    for name in left:
        if name == "demand":
            msg = f"{model.name}: no setting 'demand'; its traffic is fixed by the formulation"
            raise BadOption(msg)
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close or solver is None or (method is not None and method.run is not None):
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
            msg = f"{model.name}: no setting {name!r}; {hint}"
            raise BadOption(msg)
    if solver is not None:
        solver.refuse_options(left)


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
        closest = f"; did you mean {known[meant[0]]!r}?" if meant else ""
        msg = f"{text}; parameters of {plan.formulation.name}: {', '.join(known.values())}{closest}"
        raise BadOption(msg) from None


def resume_key(task: Task) -> str:
    """SHA-256 of everything that may change the answer or the time; studies use it to resume."""
    return plan_key(task, make_plan(task))


def plan_key(task: Task, plan: Plan, needed: str | None = None) -> str:
    """The resume key of a task whose plan is already made.

    ``needed`` is the key of the run whose solution the formulation takes as data, if there is one and it is known.
    """
    settings = texts(plan.settings)
    chosen: dict[str, str | None] = {}
    if plan.choice is not None and plan.formulation.needs is not None:  # the key is known before the choice
        settings = texts({**task.settings, **plan.parameters})
        chosen = {"method": "auto", "form": task.form}
    elif plan.choice is not None and plan.choice.beyond is not None:
        chosen = {"beyond": plan.choice.beyond}
    if plan.formulation.needs is not None and needed is None:
        basis = needed_task(task, plan)
        needed = plan_key(basis, make_plan(basis, instance=plan.instance))
    return digest(
        {
            "formulation": plan.formulation.name,
            "instance": plan.instance.hash,
            "method": plan.method,
            "form": plan.form,
            **chosen,
            "settings": settings,
            "opticoll": distribution_version("opticoll"),
            "solvers": versions_of(plan, exact=task.exact),
            **{name: getattr(task, name) for name in LIMITS},
            **({"exact": True} if task.exact else {}),
            **({} if needed is None else {"needed": needed}),
            **({"plugins": taking_part} if (taking_part := digests_of(plan)) else {}),
        }
    )


def needed_task(task: Task, plan: Plan) -> Task:
    """The task whose solution the task's formulation takes as data."""
    model = plan.formulation
    assert model.needs is not None
    method = "auto" if model.needed_by is None else str(plan.parameters[model.needed_by])
    exact = task.exact and formulation(model.needs).problem == "LP"  # other formulations have integer solutions
    return structs.replace(
        task,
        formulation=model.needs,
        method=method,
        form=None,
        settings=shared_parameters(model, plan.parameters),
        repetition=0,
        exact=exact,
    )


#: Distributions that every run may use: HiGHS solves relaxations, subproblems of methods and proofs of infeasibility.
ALWAYS_USED = ("highspy",)
#: Those with which plug-ins compute; what our own code computes is verified, whatever their versions.
PLUGINS_USE = ("numpy", "scipy")
#: Those of the exact step.
EXACT_USED = ("python-flint",)


def versions_of(plan: Plan, *, exact: bool = False) -> dict[str, str | None]:
    """Versions of the solvers and numerical libraries that a run may use, by distribution or command.

    Our own methods use HiGHS and the solver that a parameter names; a method of a plug-in may use any, and plug-ins use
    the libraries of arrays.
    """
    used = [plan.adapter] if plan.adapter is not None else []
    if plan.procedure is not None and plan.procedure.name not in names():
        used += adapters().values()
    always = ALWAYS_USED + (EXACT_USED if exact else ()) + (PLUGINS_USE if digests_of(plan) else ())
    return {one.distribution: one.version() for one in used} | {name: distribution_version(name) for name in always}


def digests_of(plan: Plan) -> dict[str, str]:
    """The plug-ins that a plan uses and the modules they load, with their SHA-256.

    A formulation that belongs neither to the package nor to a plug-in is listed by name, with a digest of its code.
    """
    return {**plugins.digests(_plugins_of(plan)), **_own_code(type(plan.formulation))}


def digests_after_run(plan: Plan) -> dict[str, str]:
    """As :func:`digests_of`, with the modules that the plug-ins have imported under computed names."""
    return {**plugins.digests_after(_plugins_of(plan)), **_own_code(type(plan.formulation))}


def _plugins_of(plan: Plan) -> list[plugins.Plugin]:
    model = type(plan.formulation)
    data_method = None if model.given_by is None else method_named(str(plan.parameters[model.given_by]))
    basis = None if model.needs is None else formulation(model.needs)
    objects = (model, plan.reformulation, plan.procedure, plan.adapter, data_method, basis)
    return plugins.involved(objects, modules_behind(plan.instance.spec))


def _own_code(model: type[Formulation]) -> dict[str, str]:
    return {} if named(model) else {model.name: code_digest(model)}


_READS = ("LOAD_GLOBAL", "LOAD_NAME")


def code_digest(value: object) -> str:
    """SHA-256 of an object defined in a main script or a notebook, the same in every process.

    For its functions it covers the bytecode, the constants, and the values that they refer to; for functions of other
    modules the source file; and every module from outside installed packages that any of them uses or imports.
    Objects that are neither functions nor plain data count by their representation.
    """
    content, seen = sha256(), set[object]()

    def add(*items: object) -> None:
        for item in items:
            if isinstance(item, (FunctionType, type)):
                if id(item) not in seen:
                    seen.add(id(item))
                    (add_function if isinstance(item, FunctionType) else add_class)(item)
            elif isinstance(item, CodeType):
                content.update(item.co_code)
                add(item.co_names, item.co_consts)
            elif isinstance(item, Mapping):
                add(*(part for pair in item.items() for part in pair))
            elif isinstance(item, (tuple, list)):
                add(f"{len(item)} items", *item)
            elif isinstance(item, (set, frozenset)):
                add(*sorted(map(repr, item)))
            elif is_dataclass(item):
                add(type(item).__qualname__, *(getattr(item, field.name) for field in fields(item)))
            elif isinstance(item, partial):
                add(item.func, item.args, item.keywords)
            elif hasattr(item, "tobytes"):
                content.update(item.tobytes())
            elif isinstance(item, ModuleType):
                add(item.__name__)
                add_modules(item.__name__)
            else:
                content.update(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(item)).encode() + b"\0")

    def add_function(function: Any) -> None:
        file = getattr(sys.modules.get(function.__module__), "__file__", None)
        if function.__module__ != "__main__" and file is not None and Path(file).is_file():
            add(function.__qualname__)
            content.update(Path(file).read_bytes())
            add_modules(function.__module__)
            return
        add(function.__code__, function.__defaults__, function.__kwdefaults__)
        add(*(cell.cell_contents for cell in function.__closure__ or ()))
        add(*(function.__globals__[name] for name in _names_in(function.__code__) if name in function.__globals__))
        for name in _imported_in(function.__code__):
            add_modules(name)

    def add_modules(name: str) -> None:
        if name not in seen:
            seen.add(name)
            add(modules_of(f"import {name}"))

    def add_class(kind: Any) -> None:
        add(kind.__module__, kind.__qualname__)
        add_modules(kind.__module__)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if kind.__module__ != "__main__" and file is not None and Path(file).is_file():
            content.update(Path(file).read_bytes())
            return
        add(*(base for base in kind.__bases__ if base.__module__.partition(".")[0] not in ("opticoll", "builtins")))
        for name, member in sorted(vars(kind).items()):
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(function, FunctionType) or not name.startswith("_"):
                add(name, function)

    add(value)
    return content.hexdigest()


def _names_in(code: CodeType, operations: tuple[str, ...] = _READS) -> list[str]:
    """Names of the globals that a function reads, without attributes of the same names."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names_in(part, operations)]
    return sorted({*(step.argval for step in get_instructions(code) if step.opname in operations), *inner})


def _imported_in(code: CodeType) -> list[str]:
    """Modules, and their members, that a function imports."""
    members = _names_in(code, ("IMPORT_FROM",))
    return [
        name
        for module in _names_in(code, ("IMPORT_NAME",))
        if module
        for name in (module, *(f"{module}.{one}" for one in members))
    ]


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


_ARRAYS = ("values", "duals")
#: Fields of a task that are sent as names or pickles.
_SENT_APART = ("formulation", "instance")


def send(
    task: Task,
    instance: Instance,
    needed: Mapping[str, NDArray[Any]] | None = None,
    start: Mapping[str, NDArray[Any]] | None = None,
) -> tuple[Message, Arrays]:
    """JSON-able arguments and arrays that let a worker rebuild the task.

    A formulation that is unknown to other processes is sent with its code. An instance given by its spec is rebuilt
    from the spec. An instance made in Python, of a family of the user's script, or read from a file is sent whole,
    since the file may change. Settings that name files must be pinned; settings that hold data are sent whole.
    ``needed`` are the values that the formulation takes as data, if any, ``start`` those of a known solution.
    """
    data = {f"needed.{name}": np.asarray(array) for name, array in (needed or {}).items()}
    data |= {f"start.{name}": np.asarray(array) for name, array in (start or {}).items()}
    arguments = {name: getattr(task, name) for name in task.__struct_fields__ if name not in _SENT_APART}
    for name, value in task.settings.items():
        if getattr(value, "data", None) is not None:  # a demand given as data
            data[f"setting.{name}"] = _pickled(value)
    model = formulation(task.formulation)
    if named(model):
        arguments["formulation"] = model.name
    else:
        data["formulation"] = _pickled(model)
    known = plugins.everywhere(modules_behind(instance.spec))
    if isinstance(task.instance, str) and not names_file(task.instance) and known:
        return {**arguments, "instance": task.instance}, data
    return arguments, data | {"instance": _pickled(instance)}


def _pickled(value: object) -> NDArray[np.uint8]:
    """Pickle a value for another of our own processes, through a private folder; nothing else is ever unpickled."""
    if not type(value).__module__.startswith("opticoll.") or isinstance(value, Formulation):
        import cloudpickle

        return np.frombuffer(cloudpickle.dumps(value), dtype=np.uint8)
    return np.frombuffer(pickle.dumps(value), dtype=np.uint8)


def rebuild(arguments: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Task:
    """The task that :func:`send` sent, with its instance."""
    spec, model = arguments.get("instance"), arguments.get("formulation")
    if model is None:
        model = pickle.loads(arrays["formulation"].tobytes())  # noqa: S301
    sent = {k.removeprefix("setting."): v for k, v in arrays.items() if k.startswith("setting.")}
    settings = {**arguments["settings"], **{k: pickle.loads(v.tobytes()) for k, v in sent.items()}}  # noqa: S301
    instance = pickle.loads(arrays["instance"].tobytes()) if spec is None else parse(spec)  # noqa: S301
    return Task(**{**arguments, "formulation": model, "instance": instance, "settings": settings})


def run_procedure(
    arguments: Message, arrays: Arrays, report: Report, solve: Callable[..., Run]
) -> tuple[Message, Arrays]:
    """Plan the task in this worker and run its procedure, with ``solve`` for sub-problems."""
    start = time.monotonic()
    task = rebuild(arguments, arrays)
    needed = {k.removeprefix("needed."): v for k, v in arrays.items() if k.startswith("needed.")}
    known = {k.removeprefix("start."): v for k, v in arrays.items() if k.startswith("start.")}
    plan = make_plan(task, needed=needed or None)
    assert plan.procedure is not None
    assert plan.procedure.run is not None
    deadline = None if task.time_limit_s is None else start + task.time_limit_s

    def save(answer: Answer, objective: float | None = None) -> None:
        values, named = _pack(answer)
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
    where = f"{plugins.place_of(plan.procedure.run)}method {plan.method!r}: run returned"
    if not isinstance(answer, Answer):
        msg = f"{where} {type(answer).__name__}; return an Answer"
        raise BadInput(msg)
    if not isinstance(answer.termination, Termination):
        msg = f"{where} an Answer with termination {answer.termination!r}; use Termination, such as Termination.OPTIMAL"
        raise BadInput(msg)
    return _pack(answer)


def _pack(answer: Answer) -> tuple[Message, Arrays]:
    message = {item.name: getattr(answer, item.name) for item in fields(answer) if item.name not in _ARRAYS}
    arrays: Arrays = {}
    for kind in _ARRAYS:
        named = getattr(answer, kind)
        message[f"has_{kind}"] = named is not None
        arrays |= {f"{kind}.{name}": np.asarray(array) for name, array in (named or {}).items()}
    return message, arrays


def receive(message: Mapping[str, Any], arrays: Arrays, ending: Termination | None) -> Answer:
    """The answer of a worker, or the last one that it saved if it ended as ``ending``."""
    if not message:
        return Answer(ending or Termination.ERROR)
    named = {
        kind: {k.removeprefix(f"{kind}."): v for k, v in arrays.items() if k.startswith(f"{kind}.")}
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
