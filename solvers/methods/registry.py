"""Methods found by name, and the data that formulations take from them."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from opticoll import plugins
from opticoll.solvers.adapters.registry import package_adapters
from opticoll.solvers.methods.index import MODULES, TAKING_OVER
from opticoll.solvers.methods.method import Beyond, Method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.model import Formulation
    from opticoll.instances.topology import F64
    from opticoll.types import Settings


def package_names() -> frozenset[str]:
    """Names that the package itself gives to methods and solvers."""
    return frozenset(("auto", *MODULES, *package_adapters()))


def methods() -> dict[str, Method]:
    """All methods by name, those of plug-ins last."""
    return {
        **{name: _our_method(name) for name in MODULES},
        **{method.name: method for method in plugins.contributed("METHOD")},
    }


@cache
def _our_method(name: str) -> Method:
    module = import_module(f"{__package__}.{MODULES[name]}")
    listed: tuple[Method, ...] = getattr(module, "METHODS", None) or (module.METHOD,)
    return next(method for method in listed if method.name == name)


def method_named(name: str) -> Method | None:
    """The method called ``name``, None if there is none; imports only its module."""
    if name in MODULES:
        return _our_method(name)
    return next((method for method in plugins.contributed("METHOD") if method.name == name), None)


def methods_for(formulation: Formulation | type[Formulation]) -> dict[str, Method]:
    """The methods that apply to a formulation, by name."""
    return {name: method for name, method in methods().items() if method.applies(formulation)}


def taking_over(formulation: str, parameters: Settings) -> list[tuple[Method, Beyond]]:
    """The methods that take over a formulation with these parameters beyond a size, smallest sizes first.

    Of a method's sizes, one for these parameters precedes one for all. Only these methods are imported.
    """
    stated = []
    ours = map(_our_method, TAKING_OVER.get(formulation, ()))
    for method in (*ours, *plugins.contributed("METHOD")):
        known = [one for one in method.takes_over if one.formulation == formulation and one.holds(parameters)]
        if known:
            stated.append((method, max(known, key=lambda one: len(one.where))))
    return sorted(stated, key=lambda pair: (pair[1].variables, pair[1].nonzeros or math.inf))


def prepared(
    formulation: Formulation | type[Formulation],
    instance: object,
    parameters: Settings,
    needed: Mapping[str, F64] | None = None,
) -> Formulation:
    """Prepare a formulation on an instance, with what it takes from a method's construction or a solution if needed."""
    kind = formulation if isinstance(formulation, type) else type(formulation)
    made: dict[str, Any] = {}
    for one in kind.parameters:
        if one.constructs:
            method = method_named(str(parameters[one.name]))
            assert method is not None
            made[one.name] = method.construct
    return kind.prepare(instance, {**parameters, **made}, *(() if needed is None else (needed,)))
