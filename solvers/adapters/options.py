"""Options by the solver's own names: every adapter refuses what does not exist in the same words."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from solvers.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterable

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def unknown(solver: str, name: str, known: Iterable[str]) -> BadOption:
    """Make the error for an option that the solver does not have, naming the nearest that it has."""
    forms = {}  # also without their prefixes, which are easily forgotten; of two alike the shorter
    for full in sorted(known, key=len, reverse=True):
        forms[re.split(r"[./]|PAR_", full)[-1].lower()] = full
        forms[full.lower()] = full
    close = difflib.get_close_matches(name.lower(), list(forms), n=1, cutoff=0.7)
    hint = f"did you mean {forms[close[0]]!r}?" if close else "see the solver's list of parameters"
    return BadOption(f"solver {solver!r} has no option {name!r}; {hint}")


def refused(solver: str, name: str, value: Any, why: str = "") -> BadOption:
    """Make the error for a value that the solver does not accept."""
    reason = f": {why}" if why else ""
    return BadOption(f"solver {solver!r} refuses {name} = {value!r}{reason}; see its documentation for the range")


def typed(solver: str, name: str, value: Any, kind: type) -> Any:
    """``value``, perhaps written as text, as a value of ``kind`` (bool, int, float or str).

    Raises
    ------
    BadOption
        If it is no such value.
    """
    text = str(value).strip()
    if kind is str:
        return text
    if kind is bool and text.lower() in _TRUE + _FALSE:
        return text.lower() in _TRUE
    try:
        number = float("nan" if kind is bool else text)
    except ValueError:
        number = float("nan")
    if kind is float and number == number:
        return number
    if kind is int and number.is_integer():
        return int(text) if text.lstrip("+-").isdigit() else int(number)
    raise refused(solver, name, value, f"it wants {_WANTS[kind]}")


_WANTS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
