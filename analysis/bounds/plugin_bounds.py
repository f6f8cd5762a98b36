"""Bounds that plug-ins contribute to formulations: shown, and never used as a proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from inspect import getdoc, signature
from numbers import Rational, Real

from opticoll import plugins
from opticoll.analysis.bounds.bounded_quantity import declaration
from opticoll.contributions import functions
from opticoll.errors import BadInput, refuse
from opticoll.formulations.model import Bound, Formulation, is_own
from opticoll.formulations.registry import in_floats, is_number, package_names
from opticoll.nearest_names import nearest
from opticoll.plugin_faults import place_of


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
        if isinstance(value, Bound) and is_number(value.value):
            results.append(in_floats(replace(value, paper=value.paper or "own"), model.sense))
        elif isinstance(value, Real) and is_number(value):
            summary = (getdoc(function) or "a bound from a plug-in").split("\n")[0].rstrip(".")
            fraction = Fraction(value) if isinstance(value, Rational) else None
            results.append(Bound(name, float(value), summary, "own", fraction=fraction))
        elif value is not None:
            where = f"{place_of(function)}bound {name!r} of {model.name}"
            returned = value.value if isinstance(value, Bound) else value
            refuse(where, f"returned {returned!r}; return a number, a Bound or None")
    return results


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
        refuse(where, f"on={on!r}; BOUNDS takes bounds on {kinds}, use `opticoll sweep --bound FILE.py:FUNCTION`")
    given = (value.rational or value.value) if isinstance(value, Bound) else value
    if not isinstance(given, Real) or not float(given) >= 0:
        return value
    exact = 1 / Fraction(given) if isinstance(given, Rational) and given else None
    inverse = float(exact) if exact is not None else 1 / float(given) if given else math.inf
    if isinstance(value, Bound):
        return replace(value, value=inverse, fraction=exact)
    return inverse if exact is None else exact


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
