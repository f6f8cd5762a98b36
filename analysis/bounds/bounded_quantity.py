"""What a bound function bounds: the objective, T or a metric, as it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from opticoll.errors import refuse

#: Whether the optimum is at least, or at most, the bound.
Sense = Literal["lower", "upper"]
#: A function of an instance, or of an instance and the data of a formulation.
Function = TypeVar("Function", bound=Callable[..., Any])


def bound_on(quantity: str, sense: Sense | None = None) -> Callable[[Function], Function]:
    """Decorate a bound function with what it bounds, so that ``sweep`` compares it with nothing else.

    It sets the attributes ``on`` and ``sense`` of the function, which may also be set without it.

    Parameters
    ----------
    quantity
        ``"objective"``, ``"T"`` (= 1/F, the time of a concurrent flow), or a metric of the solution.
    sense
        ``"lower"`` or ``"upper"``; by default that of a relaxation.
    """
    if not (isinstance(quantity, str) and quantity):
        refuse(f"bound_on({quantity!r})", "name what is bounded: 'objective', 'T' or a metric")
    if sense not in (None, "lower", "upper"):
        refuse("bound_on", f"sense={sense!r} must be 'lower' or 'upper'")

    def declare(function: Function) -> Function:
        function.on = quantity  # type: ignore[attr-defined]
        function.sense = sense  # type: ignore[attr-defined]
        return function

    return declare


def declaration(function: object) -> tuple[str | None, Sense | None]:
    """Quantity and sense that a bound function declares by :func:`bound_on`, or by its attributes; None if it does not.

    Raises
    ------
    BadInput
        If the attribute ``on`` is not a name, or ``sense`` is neither ``"lower"`` nor ``"upper"``.
    """
    on, sense = getattr(function, "on", None), getattr(function, "sense", None)
    if on is not None:
        bound_on(on, sense)
    return on, sense
