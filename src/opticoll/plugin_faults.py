"""Errors of plug-ins, in one line: which file, which line, what is wrong there."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from inspect import unwrap
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, TypeVar

from opticoll.errors import BadInput, OpticollError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Function = TypeVar("_Function", bound="Callable[..., Any]")

#: What a fault in the code of a plug-in raises, next to classes derived from BaseException itself.
FAULTS = (Exception, SystemExit, GeneratorExit)
#: Places of the plug-ins by the names of their modules; kept by :mod:`opticoll.plugins`.
places: dict[str, str] = {}


def line_of(error: BaseException, module: str) -> int | None:
    """The last line of a plug-in in the traceback of an exception, None if it is not there."""
    file = _file_of(module)
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return lines[-1] if lines else None


def _file_of(module: str) -> str:
    return str(getattr(sys.modules.get(module), "__file__", None) or places[module])


def blame(error: BaseException) -> str | None:
    """Where an exception left a plug-in: ``plug-in FILE, line N``; None if no plug-in is in its traceback."""
    for module, place in places.items():
        line = line_of(error, module)
        if line is not None:
            return f"plug-in {place}, line {line}"
    return None


def place_of(function: object) -> str:
    """Prefix of messages about a function of a plug-in, ``plug-in FILE, line N:``; empty for other functions."""
    place = places.get(_module_of(function))
    code = getattr(unwrap(function) if callable(function) else function, "__code__", None)
    line = f", line {code.co_firstlineno}" if code is not None else ""
    return "" if place is None else f"plug-in {place}{line}: "


def _module_of(function: object) -> str:
    return str(getattr(function, "__module__", ""))


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
        module = _module_of(function)
        if module not in places or isinstance(error, MemoryError):
            raise
        where = blame(error) or place_of(function).removesuffix(": ")
        if isinstance(error, OpticollError):
            *_, (frame, _) = walk_tb(error.__traceback__)
            if not str(error).startswith("plug-in ") and frame.f_code.co_filename != _file_of(module):
                error.args = (f"{where}: {error}",)
            raise
        raise BadInput(_message(where, error)) from error


def blamed(function: _Function) -> _Function:
    """A function whose errors :func:`blaming` explains if a plug-in defines it; any other one as it is."""
    return blaming(function)(function) if _module_of(function) in places else function


@contextmanager
def exits_refused() -> Iterator[None]:
    """Turn ``sys.exit()`` and the like in a plug-in into an error; other exceptions, and Ctrl-C, are passed on.

    Raises
    ------
    BadInput
        Instead of any exception that is not an :class:`Exception` and left a plug-in.
    """
    try:
        yield
    except BaseException as error:
        message = None if isinstance(error, Exception) else fault(error)
        if message is None:
            raise
        raise BadInput(message) from error


def fault(error: BaseException) -> str | None:
    """Message about an exception that left a plug-in; None for others, Ctrl-C and our own limits."""
    where = None if passes(error) else blame(error)
    return None if where is None else _message(where, error)


def passes(error: BaseException) -> bool:
    """Whether an exception is no fault of the code that it interrupts: Ctrl-C, a limit."""
    ours = type(error).__module__.startswith("opticoll.") and not isinstance(error, Exception)
    return ours or isinstance(error, KeyboardInterrupt)


def _message(where: str, error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    if isinstance(error, SystemExit):
        return f"{where}: {text}; a plug-in must not end the program; raise an exception instead"
    return f"{where}: {text}; correct it there (OPTICOLL_DEBUG=1 shows the traceback)"
