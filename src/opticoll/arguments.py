"""Arguments of public functions: refused in one line if they are of another kind."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from opticoll.errors import BadInput, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike, NDArray


_Function = TypeVar("_Function", bound="Callable[..., Any]")


def read_text(text: str, kind: type) -> Any:
    """The value that a word states: ASCII digits of a whole number, a number, a truth value, or what its type reads.

    Raises
    ------
    ValueError
        If it states none of this kind; NaN and underscores between digits are refused.
    """
    if kind is bool:
        if text.lower() not in {"true", "false", "yes", "no", "1", "0"}:
            raise ValueError(text)
        return text.lower() in {"true", "yes", "1"}
    if kind is int and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", text, re.ASCII) is None:
        raise ValueError(text)
    value = kind(text)
    if kind is float and ("_" in text or math.isnan(value)):
        raise ValueError(text)
    return value


def whole_number(value: object, what: str, least: int | None = None, most: int | None = None) -> int:
    """A whole number of at least ``least`` and at most ``most``; a number with ``most`` has ``least`` too.

    Raises
    ------
    BadInput
        If it is something else; the message begins with ``what``.
    """
    span = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise refused(value, what, f"a whole number{span}")
    whole = int(value)
    if (least is not None and whole < least) or (most is not None and whole > most):
        raise refused(value, what, f"a whole number{span}")
    return whole


def number(value: object, what: str, *, positive: bool = False) -> float:
    """A finite number, positive if asked.

    Raises
    ------
    BadInput
        If it is something else; the message begins with ``what``.
    """
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not isinstance(value, Real) or not good or (positive and value <= 0):
        raise refused(value, what, "a positive number" if positive else "a finite number")
    return float(value)


def flag(value: object, what: str) -> bool:
    """True or False.

    Raises
    ------
    BadInput
        If it is something else; the message begins with ``what``.
    """
    if not isinstance(value, bool | np.bool_):
        raise refused(value, what, "True or False")
    return bool(value)


def flags_checked(function: _Function) -> _Function:
    """A public function that refuses, for its arguments that are true or false, anything else.

    One with an argument ``settings`` names it where a parameter of a formulation is given as an argument of its own.
    """
    kinds = {"bool": False, "bool | None": True}
    parameters = signature(function).parameters
    flags = {name: kinds[str(one.annotation)] for name, one in parameters.items() if str(one.annotation) in kinds}
    settings = "settings" in parameters and parameters["settings"].kind is not Parameter.VAR_KEYWORD

    @wraps(function)
    def called(*positional: Any, **named: Any) -> Any:
        if settings and (unknown := sorted(named.keys() - parameters)):
            remedy = f"give parameters of the formulation as settings={{{unknown[0]!r}: ...}}"
            refuse(function.__name__, f"has no argument {unknown[0]!r}; {remedy}")
        for name in flags.keys() & named.keys():
            if named[name] is not None or not flags[name]:
                named[name] = flag(named[name], f"{function.__name__}: {name}")
        return function(*positional, **named)

    return cast("_Function", called)


def refuse_masked(value: object, what: str) -> None:
    """Refuse an array with masked entries, whose values NumPy would use.

    Raises
    ------
    BadInput
        For such an array; the message begins with ``what``.
    """
    if np.any(getattr(value, "_mask", False)):  # as np.ma.is_masked does, whose module takes longer than a small LP
        refuse(what, "the array has masked entries; replace them, for example by array.filled(0)")


def check_mapping(value: object, what: str) -> None:
    """Refuse what is no mapping from names to values.

    Raises
    ------
    BadInput
        If it is something else; the message begins with ``what``.
    """
    if not isinstance(value, Mapping):
        raise refused(value, what, "a mapping of names to values, such as {'name': 1}")


def array_of(value: object, what: str, dtype: DTypeLike) -> NDArray[Any]:
    """An array of real numbers.

    Raises
    ------
    BadInput
        If the value is none, or has masked entries; the message begins with ``what``.
    """
    refuse_masked(value, what)
    entries: Any = value
    try:
        if np.iscomplexobj(entries):
            raise TypeError  # NumPy would drop the imaginary parts
        return np.asarray(entries, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise refused(value, what, "an array of real numbers") from None


def refused(value: object, what: str, kind: str) -> BadInput:
    """The error that an argument is not of its kind."""
    text = repr(value)
    shown = text if len(text) <= 40 and "\n" not in text else f"an object of type {type(value).__name__}"
    return BadInput(f"{what}: must be {kind}, not {shown}")
