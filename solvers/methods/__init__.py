"""Methods: decompositions, reformulations, heuristics and certifications, one module each, found by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from instances.registry import contributed
from solvers.methods.base import Method

if TYPE_CHECKING:
    from formulations.base import Formulation


@cache
def methods() -> dict[str, Method]:
    """All methods by name."""
    return {one.name: one for one in contributed(__name__, "METHOD")}


def methods_for(formulation: Formulation) -> dict[str, Method]:
    """The methods that take a formulation, by name."""
    return {name: method for name, method in methods().items() if method.applies(formulation)}


__all__ = ["Method", "methods", "methods_for"]
