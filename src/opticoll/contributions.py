"""What a plug-in contributes: the objects that its module names, and the check of their types and names.

The package itself stands above its four layers, so it may name them all. Their modules are imported only when a
plug-in contributes such an object.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadInput, refuse
from opticoll.extensions import Extension, Kind, extensions, part, shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

#: Contributions by the name of the module attribute; its plural is a list of them.
KINDS = {
    "FORMULATION": Kind(
        "opticoll.formulations.model:Formulation",
        "opticoll.formulations.registry:package_names",
        ("name",),
        subclass=True,
    ),
    "ADAPTER": Kind(
        "opticoll.solvers.adapters.interface:Adapter",
        "opticoll.solvers.methods.registry:package_names",
        ("name", "title", "package", "distribution", "algorithm", "capabilities"),
    ),
    "METHOD": Kind("opticoll.solvers.methods.method:Method", "opticoll.solvers.methods.registry:package_names"),
    "EXTENSION": Kind("opticoll.extensions:Extension", "opticoll.extensions:package_names"),
    **{name: kind for one in shipped() for name, kind in one.kinds.items()},
}
#: Methods and solvers share one name space, ``--method``.
SHARED = {"ADAPTER": ("ADAPTER", "METHOD"), "METHOD": ("ADAPTER", "METHOD")}
#: Where opticoll's own names stand that an extension may add to.
_OWN = {
    "commands": "opticoll.analysis.cli.main:COMMANDS",
    "functions": "opticoll:__all__",
    "lists": "opticoll.analysis.catalog:KINDS",
}
#: Types of the parts of an extension; the others are functions.
_PARTS = {"commands": "click:Command", "schedules": "opticoll.solvers.schedules.schedule_check:ScheduleFormat"}
#: Bounds on formulations, ``{formulation: function or list of functions}``, and the function that checks them.
BOUNDS, CHECK_BOUNDS = "BOUNDS", "opticoll.analysis.bounds.plugin_bounds:check_bounds"


def items(module: ModuleType, attribute: str) -> list[Any]:
    """The contributions of a kind, a key of :data:`~opticoll.contributions.KINDS`, that a module names."""
    results: list[Any] = []
    for name in (attribute, f"{attribute}S"):
        value = getattr(module, name, None)
        results += value if isinstance(value, (tuple, list)) else [] if value is None else [value]
    return results


def check(module: ModuleType, others: Mapping[str, ModuleType], *, contributes: bool) -> None:
    """Check the types and names of everything that a plug-in contributes.

    Parameters
    ----------
    module
        The plug-in.
    others
        The modules of the other plug-ins, by their places.
    contributes
        Whether to refuse a plug-in that contributes nothing.

    Raises
    ------
    BadInput
        If anything is wrong.
    """
    count = len(part("opticoll.instances.spec:registered_by")(module.__name__))
    for attribute, kind in KINDS.items():
        given = items(module, attribute)
        count += len(given)
        for item in given:
            _check_type(item, attribute, kind)
        _check_names(attribute, [_name(item) for item in given], others)
        for item in given if attribute == "EXTENSION" else ():
            _check_extension(item)
    bounds = getattr(module, BOUNDS, None)
    if bounds is not None:
        count += 1
        own = [_name(item) for one in (module, *others.values()) for item in items(one, "FORMULATION")]
        part(CHECK_BOUNDS)(bounds, own)
    if contributes and not count:
        kinds = ", ".join([*KINDS, BOUNDS])
        msg = f"it defines nothing for opticoll; define one of {kinds}, or a family; `opticoll new` writes an example"
        raise BadInput(msg)


def _check_type(item: object, attribute: str, kind: Kind) -> None:
    path, _, name = kind.type.partition(":")
    wanted: type = part(kind.type)
    given, an_object = (item, False) if isinstance(item, type) else (type(item), True)
    fits = issubclass(given, wanted) and given is not wanted if kind.subclass else issubclass(given, wanted)
    if fits and an_object is not kind.subclass:
        missing = [name for name in kind.attributes if not (getattr if kind.subclass else hasattr)(item, name)]
        if missing:
            msg = f"the class {given.__name__} does not set {', '.join(missing)}; see {kind.type.replace(':', '.')}"
            raise BadInput(msg)
        return
    if kind.subclass:
        of = f"an object of {given.__name__}" if an_object else f"the class {given.__name__}"
        remedy = f"write {attribute} = {given.__name__}" if fits else f"it must be a subclass of {name} ({path})"
        msg = f"{attribute} is {of}; {remedy}"
    elif fits:
        msg = f"{attribute} is the class {given.__name__}; write {attribute} = {given.__name__}()"
    else:
        msg = f"{attribute} is of type {type(item).__name__}; it must be a {name} ({path})"
    raise BadInput(msg)


def _check_names(attribute: str, names: list[Any], others: Mapping[str, ModuleType]) -> None:
    if not names:
        return
    word = attribute.lower()
    for position, name in enumerate(names):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            msg = f"the {word} {name!r} needs a name of letters, digits, '.', '-' and '_'"
            raise BadInput(msg)
        if name in names[:position]:
            msg = f"the {word} {name!r} is defined twice; choose another name"
            raise BadInput(msg)
    users = {
        _name(item): f"the plug-in {place}"
        for kind in SHARED.get(attribute, (attribute,))
        for place, module in others.items()
        for item in items(module, kind)
    } | dict.fromkeys(part(KINDS[attribute].taken)(), "opticoll")
    for name in names:
        if name in users:
            msg = f"the {word} name {name!r} is already used by {users[name]}; choose another name"
            raise BadInput(msg)


def _check_extension(one: Extension) -> None:
    """Refuse parts that are missing or of another type, names in use, and what only opticoll's own folders can add."""
    for kind in ("examples", "kinds"):
        if getattr(one, kind):
            msg = f"EXTENSION states {kind}, which a plug-in cannot add; leave them out"
            raise BadInput(msg)
    for kind in ("commands", "functions", "lists", "describe", "sections", "schedules"):
        try:
            named = one.named(kind)
            made = [(name, target, part(target)) for name, target in named]
        except (AttributeError, ImportError, TypeError, ValueError) as error:
            msg = f"EXTENSION: {kind} must name what is in a module, as f'{{__name__}}:name' is in the file: {error}"
            raise BadInput(msg) from error
        taken = {name for other in extensions() for name, _ in other.named(kind)} if kind in _OWN else set()
        wanted: type = part(_PARTS.get(kind, "collections.abc:Callable"))
        for name, target, item in made:
            if kind in _OWN and name in taken.union(part(_OWN[kind])):
                refuse("EXTENSION", f"{kind} has {name!r}, which is already in use; choose another name")
            if not isinstance(item, wanted):
                msg = f"EXTENSION: {kind} has {target}, of type {type(item).__name__}; it must be a {wanted.__name__}"
                raise BadInput(msg)


def _name(item: Any) -> Any:
    return getattr(item, "name", None) or getattr(item, "id", None)


def functions(bounds: Mapping[str, object], formulation: str) -> list[Callable[..., Any]]:
    """The functions that ``BOUNDS`` gives for a formulation."""
    given: Any = bounds.get(formulation, [])
    return list(given) if isinstance(given, (tuple, list)) else [given]
