"""Errors of plug-ins, in one line: which file, which line, what is wrong there."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadInput, OpticollError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What a fault in the code of a plug-in raises, next to classes derived from BaseException itself.
FAULTS = (Exception, SystemExit, GeneratorExit)
#: Places of the plug-ins by their files; kept by :mod:`opticoll.plugins`.
places: dict[str, str] = {}


def blame(error: BaseException) -> str | None:
    """Where an exception left a plug-in: ``plug-in FILE, line N``; None if no plug-in is in its traceback."""
    lines = [(one.filename, one.lineno) for one in extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        lines.append((error.filename or "", error.lineno))
    return next((f"plug-in {places[file]}, line {line}" for file, line in reversed(lines) if file in places), None)


def place_of(function: object) -> str:
    """Prefix of messages about a function of a plug-in, ``plug-in FILE, line N:``; empty for other functions."""
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    place = places.get(str(getattr(module, "__file__", None)))
    code = getattr(function, "__code__", None)
    line = f", line {code.co_firstlineno}" if code is not None else ""
    return "" if place is None else f"plug-in {place}{line}: "


@contextmanager
def blaming(function: object) -> Iterator[None]:
    """Add file and line to exceptions raised inside a function of a plug-in.

    An opticoll error that the plug-in itself raises is passed on unchanged: it is about the user's input.

    Raises
    ------
    BadInput
        Instead of any exception that is not opticoll's own.
    """
    try:
        yield
    except FAULTS as error:
        place = place_of(function).removesuffix(": ")
        if not place or isinstance(error, MemoryError):
            raise
        where = blame(error) or place
        if not isinstance(error, OpticollError):
            raise BadInput(_message(where, error)) from error
        raised_there = extract_tb(error.__traceback__)[-1].filename in places
        if not raised_there and not str(error).startswith("plug-in "):
            error.args = (f"{where}: {error}",)
        raise


def called(
    function: Callable[..., Any], wanted: type | tuple[type, ...], remedy: str, /, *given: Any, **named: Any
) -> Any:
    """Call a function that may be a plug-in's, as in :func:`blaming`, and check the type of what it returns.

    Raises
    ------
    BadInput
        If it returns anything else; ``remedy`` says what to return.
    """
    with blaming(function):
        result = function(*given, **named)
    if not isinstance(result, wanted):
        what = f"{place_of(function)}{getattr(function, '__name__', 'a function')} returned {type(result).__name__}"
        msg = f"{what}; return {remedy}"
        raise BadInput(msg)
    return result


def fault(error: BaseException) -> str | None:
    """Message about an exception that left a plug-in; None for others, and for Ctrl-C."""
    where = None if isinstance(error, KeyboardInterrupt) else blame(error)
    return None if where is None else _message(where, error)


def _message(where: str, error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    if isinstance(error, SystemExit):
        return f"{where}: {text}; a plug-in must not end the program; raise an exception instead"
    return f"{where}: {text}; correct it there (OPTICOLL_DEBUG=1 shows the traceback)"
