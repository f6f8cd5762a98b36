"""Messages in the words of Python: what a message says for the command line, as arguments of functions."""

from __future__ import annotations

import re
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from opticoll.errors import OpticollError

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")

#: Options of commands and how Python says the same, in order.
_WORDS = (
    (re.compile(r"that solve --solution wrote"), "that result.save wrote"),
    (re.compile(r"--set ([A-Za-z_][\w.]*)=([^\s;,()]+)"), r"\1='\2'"),
    (re.compile(r"--set ([A-Za-z_][\w.]*)\b"), r"\1="),
    (re.compile(r"--(method|form|demand|shard) ([^\s;,()]+)( or [a-z][\w-]*)?"), r"\1='\2'\3"),
    (re.compile(r"--(time|memory)-limit ([\d.]+)"), r"\1_limit=\2"),
    (re.compile(r"--(time|memory)-limit\b"), r"\1_limit"),
    (re.compile(r"--bound ([^\s;,:()]+):"), r"bound='\1':"),
    (re.compile(r"--over '([^']+)'"), r"over='\1'"),
    (re.compile(r"--(on|sense) ([^\s;,:()]+)"), r"\1='\2'"),
    (re.compile(r"--over\b"), r"over"),
    (re.compile(r"--plugin FILE\.py or oc\.load_plugin"), "oc.load_plugin, or pass your class"),
    (re.compile(r"write FILE\.py:FUNCTION"), "give a function"),
    (re.compile(r"a function FILE\.py:FUNCTION"), "a function"),
    (re.compile(r"--(directed|compare)\b"), r"\1=True"),
    (re.compile(r"--(starts|rack|cables|uplinks|bandwidth|chunks)\b"), r"\1"),
    (re.compile(r"--(exact|log)\b"), r"\1=True"),
    (re.compile(r"--(on|sense)(?=,)"), r"\1"),
    (re.compile(r"--(on|sense) ([^\s;,():]+)"), r"\1='\2'"),
    (re.compile(r"--(tol|seed|threads|start|method|form|demand|shard)\b"), r"\1"),
    (re.compile(r"--ring-factor\b"), "ring_factor"),
    (re.compile(r"--(routing|paths|resolution|delay|algorithm)\b"), r"\1"),
)


def in_python(message: str) -> str:
    """A message with the options of the command line as arguments of :func:`opticoll.solve`."""
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message


def python_door(function: _Function) -> _Function:
    """A public function whose errors speak of arguments rather than of options, and whose flags are true or false."""
    kinds = {"bool": False, "bool | None": True}
    found = ((name, str(one.annotation)) for name, one in signature(function).parameters.items())
    flags = {name: kinds[kind] for name, kind in found if kind in kinds}

    @wraps(function)
    def called(*positional: Any, **named: Any) -> Any:
        for name in flags.keys() & named.keys():
            if not (isinstance(named[name], bool) or (named[name] is None and flags[name])):
                from opticoll.instances.arguments import flag

                named[name] = flag(named[name], f"{function.__name__}: {name}")
        try:
            return function(*positional, **named)
        except OpticollError as error:
            error.args = tuple(in_python(one) if isinstance(one, str) else one for one in error.args)
            raise

    return cast("_Function", called)
