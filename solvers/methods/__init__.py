"""Methods: decompositions, reformulations, heuristics and certifications, one module each, found by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from opticoll.instances.registry import contributed, held
from opticoll.solvers.adapters import adapters
from opticoll.solvers.methods.method import Method

if TYPE_CHECKING:
    from opticoll.formulations.model import Formulation


@cache
def methods() -> dict[str, Method]:
    """All methods by name."""
    return {one.name: one for one in contributed(__name__, "METHOD")}


@cache
def method_named(name: str) -> Method | None:
    """The method called ``name``, None if there is none; its own module alone is imported where that has its name."""
    found = held(f"{__name__}.{name.replace('-', '_')}", "METHOD")
    if isinstance(found, Method) and found.name == name:
        return found
    return None if name in adapters() else methods().get(name)


def methods_for(formulation: Formulation) -> dict[str, Method]:
    """The methods that take a formulation, by name."""
    return {name: method for name, method in methods().items() if method.applies(formulation)}


__all__ = ["Method", "method_named", "methods", "methods_for"]
