"""Formulations found by name, with their bounds and those of plug-ins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from inspect import getdoc, signature
from numbers import Rational, Real

from opticoll import plugins
from opticoll.contributions import functions
from opticoll.errors import BadInput
from opticoll.formulations import rounding
from opticoll.formulations.bounded_quantity import declaration
from opticoll.formulations.model import Bound, Formulation, is_own
from opticoll.instances.spec import contributed, is_spec, modules_of
from opticoll.instances.topology import Instance
from opticoll.nearest_names import nearest
from opticoll.plugin_faults import place_of

#: Titles of the papers; each has a sub-package of formulations.
PAPERS = {
    "alltoall": "Efficient all-to-all collective communication schedules for direct-connect topologies",
    "lumorph": "LuMorph: programmable optical interconnects for server-scale multi-GPU systems",
    "optree": "OpTree: an efficient algorithm for all-gather operation in optical interconnect systems",
    "sipml": "SiP-ML: high-bandwidth optical network interconnects for machine learning training",
    "topoopt": "TopoOpt: co-optimizing network topology and parallelization strategy for distributed training jobs",
}
#: Sub-packages whose modules are formulations, named ``room.module``; the others are shared mathematics.
ROOMS = (*PAPERS, "matrix", "topology")


def _modules() -> list[str]:
    return [module for room in ROOMS for module in modules_of(f"opticoll.formulations.{room}")]


@cache
def _ours() -> dict[str, type[Formulation]]:
    return {model.name: model for model in contributed(_modules(), "FORMULATION")}


@cache
def package_names() -> frozenset[str]:
    """Names that formulations of the package have or may have, without importing them: those of their modules."""
    return frozenset(module.removeprefix("opticoll.formulations.").replace("_", "-") for module in _modules())


def formulations() -> dict[str, type[Formulation]]:
    """All formulations by name.

    They are defined as ``FORMULATION`` by the modules of the papers' sub-packages, and by plug-ins
    (:mod:`opticoll.plugins`).
    """
    return {**_ours(), **{model.name: model for model in plugins.contributed("FORMULATION")}}


def formulation(name: str | type[Formulation]) -> type[Formulation]:
    """Return the formulation called ``name``; a formulation itself is returned unchanged.

    Raises
    ------
    BadInput
        If there is no such formulation; the message suggests the closest name. Also if a user-defined formulation
        has no name, or that of another one.
    """
    if isinstance(name, type) and issubclass(name, Formulation):
        if not name.name:
            msg = f"the class {name.__name__} has no name; state one, such as name = 'own.model'"
            raise BadInput(msg)
        known = _lookup(name.name)
        if known is not None and known is not name:
            msg = f"formulation {name.name!r}: opticoll or a plug-in already uses this name; choose another name"
            raise BadInput(msg)
        return name
    if not isinstance(name, str):
        of = f"; pass its class {type(name).__name__}" if isinstance(name, Formulation) else ""
        of = "; the formulation comes first, then the instance" if isinstance(name, Instance) else of
        msg = f"a formulation must be a name or a subclass of Formulation, not an object of {type(name).__name__}{of}"
        raise BadInput(msg)
    result = _lookup(name)
    if result is None:
        plugins.load_installed()
        known_names = formulations()
        if name not in known_names and is_spec(name):
            msg = f"{name[:60]!r} is an instance, not a formulation; the formulation comes first, then the instance"
            raise BadInput(msg)
        if name not in known_names:
            hint = nearest(name, known_names)
            own = "; load your own file with oc.load_plugin (--plugin FILE.py)" if hint.startswith("known") else ""
            msg = f"unknown formulation {name!r}; {hint}{own}"
            raise BadInput(msg)
        return known_names[name]
    return result


def _lookup(name: str) -> type[Formulation] | None:
    """Look up a formulation; None if there is none."""
    ours = _our_formulation(name)
    if ours is not None:
        return ours
    return next((model for model in plugins.contributed("FORMULATION") if model.name == name), None)


@cache
def _our_formulation(name: str) -> type[Formulation] | None:
    """Look up a formulation of the package, importing only its module; None if there is none."""
    room, _, module = name.replace("-", "_").partition(".")
    path = f"opticoll.formulations.{room}.{module}"
    if room in ROOMS and module.isidentifier() and find_spec(path) is not None:
        for model in contributed((path,), "FORMULATION"):  # only this module, without importing all others
            found: type[Formulation] = model
            if found.name == name:
                return found
    return None


def paper_of(model: Formulation | type[Formulation]) -> str:
    """The title of the paper of a formulation, or its room if it is of none.

    For one from outside the package, the ``paper`` that its class states, or "own".
    """
    room = str(getattr(model, "paper", "own")) if is_own(model) else model.name.partition(".")[0]
    return PAPERS.get(room, room)


def is_registered(model: type[Formulation]) -> bool:
    """Whether a formulation can be looked up by name, including in another process."""
    return _lookup(model.name) is model


def bounds_of(model: Formulation) -> list[Bound]:
    """Compute the analytic bounds of a formulation.

    Raises
    ------
    BadInput
        If a user-defined formulation's function returns anything but a list of bounds whose values are numbers.
    """
    result = model.bounds()
    if not is_own(model):  # ours are NaN only where rounding overflows, which bounds nothing
        return [bound for bound in result if not math.isnan(bound.value)]
    listed = isinstance(result, list) and all(isinstance(bound, Bound) for bound in result)
    wrong = next((bound for bound in result if not _is_number(bound.value)), None) if listed else None
    if not listed or wrong is not None:
        where = f"{place_of(model.bounds)}formulation {model.name!r}"
        returned = str(result)[:60] if wrong is None else f"{str(wrong.value)[:60]} for {wrong.name!r}"
        msg = f"{where}: bounds returned {returned}; return a list of Bound objects whose values are numbers"
        raise BadInput(msg)
    return [_in_floats(one, model.sense) for one in result]


def _on_objective(model: Formulation, function: Callable[..., object], name: str, value: object) -> object:
    """The value of a bound on the objective: F for one that declares a bound on T.

    Raises
    ------
    BadInput
        If it declares a bound on anything else.
    """
    on, _ = declaration(function)
    if on in (None, "objective") or value is None or (on == "F" and model.concurrent is not None):
        return value
    if on != "T" or "T" not in model.metrics(1.0) or model.concurrent is None:
        kinds = "'objective' or 'T'" if model.concurrent is not None else "'objective'"
        where = f"{place_of(function)}bound {name!r} of {model.name}"
        msg = f"{where}: on={on!r}; BOUNDS takes bounds on {kinds}, use `opticoll sweep --bound FILE.py:FUNCTION`"
        raise BadInput(msg)
    given = (value.rational or value.value) if isinstance(value, Bound) else value
    if not isinstance(given, Real) or not float(given) >= 0:
        return value
    exact = 1 / Fraction(given) if isinstance(given, Rational) and given else None
    inverse = float(exact) if exact is not None else 1 / float(given) if given else math.inf
    if isinstance(value, Bound):
        return replace(value, value=inverse, fraction=exact)
    return inverse if exact is None else exact


def _in_floats(bound: Bound, sense: str) -> Bound:
    """A bound of a user, whose value may be a fraction or a whole number, with the float on its safe side."""
    if isinstance(bound.value, bool) or not isinstance(bound.value, Rational):
        return bound
    fraction = Fraction(bound.value)
    nearest = rounding.fraction_up(fraction) if sense == "max" else rounding.fraction_down(fraction)
    return replace(bound, value=nearest, fraction=fraction)


def _is_number(value: object) -> bool:
    """Whether a bound may have this value: an infinite one is valid, and proves nothing."""
    return isinstance(value, Real) and bool(value == value)


def check_bounds(bounds: object, names: Iterable[str]) -> None:
    """Check the ``BOUNDS`` of a plug-in; ``names`` are the formulations of plug-ins.

    Raises
    ------
    BadInput
        If it names an unknown formulation, or contains anything but functions of the instance, or of it and the data.
    """
    if not isinstance(bounds, Mapping) or not bounds:
        msg = f'BOUNDS is of type {type(bounds).__name__}; write BOUNDS = {{"alltoall.master": function}}'
        raise BadInput(msg)
    known = package_names() | set(names)
    for name in bounds:
        if name not in known:
            hint = nearest(str(name), sorted(known))
            hint = f"{hint} If" if hint.startswith("did") else "see `opticoll list formulations`; if"
            named = f"BOUNDS names the formulation {name!r}, which is unknown"
            msg = f"{named}; {hint} another plug-in defines it, name that one first"
            raise BadInput(msg)
        for function in functions(bounds, name):
            if not callable(function):
                msg = f"BOUNDS[{name!r}] contains {function!r}, not a function of the instance"
                raise BadInput(msg)
            try:
                taken = signature(function)
                taken.bind(*[None] * (2 if len(taken.parameters) > 1 else 1))
            except (TypeError, ValueError) as error:
                named = f"{place_of(function)}BOUNDS[{name!r}]: {getattr(function, '__name__', 'a function')}"
                msg = f"{named} must take the instance, or the instance and the data ({error}); correct its arguments"
                raise BadInput(msg) from error


def plugin_bounds(model: Formulation, instance: object, others: Iterable[Bound] = ()) -> list[Bound]:
    """Compute the bounds contributed by plug-ins; they are shown but never used as a proof.

    A bound is a function of the instance, or of the instance and the formulation's data. It returns a number, a
    :class:`~opticoll.formulations.model.Bound`, or None where it does not apply. ``others`` are the formulation's own.

    Raises
    ------
    BadInput
        If a function returns anything else, or a bound with the name of another one.
    """
    results: list[Bound] = []
    taken = {bound.name: "opticoll" if not is_own(model) else "the formulation" for bound in others}
    for function in plugins.bounds_on(model.name):
        own = getattr(function, "__name__", "<lambda>")
        name = "bound" if own == "<lambda>" else own
        value = function(instance, model) if len(signature(function).parameters) > 1 else function(instance)
        value = _on_objective(model, function, own, value)
        name = value.name if isinstance(value, Bound) else name
        named = isinstance(value, Bound) or own != "<lambda>"
        if named and name in taken:
            where = f"{place_of(function)}the bound name {name!r} of {model.name}"
            msg = f"{where} is already used by {taken[name]}; choose another name"
            raise BadInput(msg)
        if named:
            taken[name] = "another bound of a plug-in"
        if isinstance(value, Bound) and _is_number(value.value):
            results.append(_in_floats(replace(value, paper=value.paper or "own"), model.sense))
        elif isinstance(value, Real) and _is_number(value):
            summary = (getdoc(function) or "a bound from a plug-in").split("\n")[0].rstrip(".")
            fraction = Fraction(value) if isinstance(value, Rational) else None
            results.append(Bound(name, float(value), summary, "own", fraction=fraction))
        elif value is not None:
            where = f"{place_of(function)}bound {name!r} of {model.name}"
            returned = value.value if isinstance(value, Bound) else value
            msg = f"{where}: returned {returned!r}; return a number, a Bound or None"
            raise BadInput(msg)
    return results
