"""Pickles of models whose rules are functions that cannot be pickled.

Pyomo keeps the rule of a component after the component has been built. A rule inside another function, or a lambda,
has no name under which another process would find it, so it is replaced by one that says so if it is called again.
"""

from __future__ import annotations

import io
import pickle
import sys
from types import FunctionType
from typing import Any

from opticoll.errors import BadInput


def pickled(state: object) -> bytes:
    """The pickle of an object without the rules that no other process would find."""
    stream = io.BytesIO()
    _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(state)
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, one: Any) -> Any:
        if not isinstance(one, FunctionType):
            return NotImplemented
        place: Any = sys.modules.get(one.__module__)
        for part in one.__qualname__.split("."):
            place = getattr(place, part, None)
        return NotImplemented if place is one else (_without_rule, ())


def _without_rule() -> Any:
    return _rule


def _rule(*arguments: object) -> object:
    msg = "model: the rule of this component was not pickled, so no further entries can be made; build the model again"
    raise BadInput(msg)
