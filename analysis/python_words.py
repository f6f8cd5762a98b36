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

#: A command of a message, which stays as it is.
_COMMAND = re.compile(r"(`opticoll [^`]*`)")
#: Options that are arguments of public functions; those of other programs stay as they are.
_OPTIONS = (
    "algorithm|bandwidth|bound|cables|chunks|dask|delay|demand|form|jobs|memory-limit|method|on|over|paths|period|rack|"
    "reach|resolution|ring-factor|routing|seed|sense|shard|start|starts|store|threads|time-limit|tol|uplinks|variables"
)
#: Options of commands and how Python says the same, in order.
_WORDS = (
    (re.compile(r"that solve --solution wrote"), "that result.save wrote"),
    (re.compile(r"--plugin FILE\.py or oc\.load_plugin"), "oc.load_plugin, or pass your class"),
    (re.compile(r"--solver-config FILE or "), ""),
    (re.compile(r"write FILE\.py:FUNCTION"), "give a function"),
    (re.compile(r"a function FILE\.py:FUNCTION"), "a function"),
    (re.compile(r"--set ([A-Za-z_][\w.]*)=([^\s;,()]+)"), r"\1='\2'"),
    (re.compile(r"--set ([A-Za-z_][\w.]*)\b"), r"\1="),
    (re.compile(r"--in\b"), "--variables"),
    (re.compile(r"--(memory-limit) ([A-Z]{2,})\b"), lambda found: f"{_argument(found[1])}={found[2]}"),
    (re.compile(rf"--({_OPTIONS}) ([A-Z]{{2,}})\b(?!\.)"), lambda found: f"{_argument(found[1])}='{found[2]}'"),
    (re.compile(r"--(bound|dask|variables) (\S+):(?=\s)"), r"\1='\2':"),
    (re.compile(r"--over '([^']+)'"), r"over='\1'"),
    (re.compile(r"--(method|form|demand|shard|routing) ([^\s;,()]+)( or [a-z][\w-]*)?"), r"\1='\2'\3"),
    (re.compile(r"--(on|sense) ([^\s;,:()]+)"), r"\1='\2'"),
    (re.compile(rf"--({_OPTIONS}) ([\d.]*\d)"), lambda found: f"{_argument(found[1])}={found[2]}"),
    (re.compile(r"--(directed|compare|exact|log)\b"), r"\1=True"),
    (re.compile(rf"--({_OPTIONS})\b(?!-)"), lambda found: _argument(found[1])),
)


def _argument(option: str) -> str:
    return option.replace("-", "_")


def in_python(message: str) -> str:
    """A message with the options of the command line as arguments of :func:`opticoll.solve`."""
    parts = _COMMAND.split(message)
    for pattern, words in _WORDS:
        parts[::2] = [pattern.sub(words, part) for part in parts[::2]]
    return "".join(parts)


def python_door(function: _Function) -> _Function:
    """A public function whose errors speak of arguments rather than of options, and whose flags are true or false."""
    kinds = {"bool": False, "bool | None": True}
    found = ((name, str(one.annotation)) for name, one in signature(function).parameters.items())
    flags = {name: kinds[kind] for name, kind in found if kind in kinds}

    @wraps(function)
    def called(*positional: Any, **named: Any) -> Any:
        for name in flags.keys() & named.keys():
            if not (isinstance(named[name], bool) or (named[name] is None and flags[name])):
                from opticoll.arguments import flag

                named[name] = flag(named[name], f"{function.__name__}: {name}")
        try:
            return function(*positional, **named)
        except OpticollError as error:
            error.args = tuple(in_python(one) if isinstance(one, str) else one for one in error.args)
            raise

    return cast("_Function", called)
