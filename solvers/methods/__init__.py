"""Methods: decompositions, reformulations, heuristics and certifications, one module each, found by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from solvers.methods.base import Method

if TYPE_CHECKING:
    from formulations.base import Formulation


@cache
def methods() -> dict[str, Method]:
    """All methods by name."""
    found: dict[str, Method] = {}
    for module in iter_modules(__path__):
        method = getattr(import_module(f"{__name__}.{module.name}"), "METHOD", None)
        if method is not None:
            found[method.name] = method
    return found


def methods_for(formulation: Formulation) -> dict[str, Method]:
    """The methods that take a formulation, by name."""
    return {name: method for name, method in methods().items() if method.applies(formulation)}


__all__ = ["Method", "methods", "methods_for"]
