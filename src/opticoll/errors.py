"""Exceptions shared by every layer, with their exit status on the command line.

A message states what is wrong, where, and how to fix it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Longest message that is kept [characters].
MOST_TEXT = 4000


class OpticollError(Exception):
    """Base class of all errors raised by opticoll; ``exit_status`` is that of the command line.

    Attributes
    ----------
    option, value
        The argument at fault, by its name in Python, and its value, with which the text begins; None for none.
    remedy
        Arguments that would help, into which the message reads on; None for none.
    """

    exit_status = 2

    def __init__(
        self,
        message: object = "",
        *,
        option: str | None = None,
        value: object = None,
        remedy: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(" ".join(str(message).splitlines()))  # file names may contain line breaks
        self.option, self.value, self.remedy = option, value, remedy

    def said(self, argument: Callable[[str, object], str]) -> str:
        """The error on one line, with arguments (name, value; None where only the name is meant) as a door says them.

        The command line says ``--jobs 2``, Python ``jobs=2``.
        """
        place = "" if self.option is None else f"{argument(self.option, self.value)}: "
        advice = " and ".join(argument(name, value) for name, value in (self.remedy or {}).items())
        return f"{place}{self.args[0]}{advice and ' ' + advice}"

    def __str__(self) -> str:
        return self.said(lambda name, value: name if value is None else f"{name}={value!r}")

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows, as IPython asks an exception for: the caller's own lines, then the message."""
        from itertools import takewhile
        from pathlib import Path
        from traceback import extract_tb, format_list

        ours = str(Path(__file__).parent)
        frames = takewhile(lambda one: not one.filename.startswith(ours), extract_tb(self.__traceback__))
        own = [one for one in frames if "IPython" not in one.filename]
        return [*"".join(format_list(own)).splitlines(), f"{type(self).__name__}: {self}"]


class BadInput(OpticollError, ValueError):
    """Invalid input; nothing has been run or stored."""


def refuse(where: object, reason: str, kind: type[OpticollError] = BadInput) -> NoReturn:
    """Refuse input because of what stands at a place of it, or is given for an argument.

    Raises
    ------
    OpticollError
        Of the given kind, with the place, the reason, and the remedy that it states.
    """
    msg = f"{where}: {reason}"
    raise kind(msg)


class BadSpec(BadInput):
    """An instance spec that cannot be parsed, or whose arguments are invalid."""


class BadFile(BadInput):
    """A file that is malformed, too large, or describes something impossible."""


class SolverUnavailable(OpticollError):
    """A solver that cannot be used: its package or licence is missing, or the licence is too small."""

    exit_status = 4


class BadOption(BadInput):
    """An unknown solver option or limit, or one with an invalid value."""


class MethodMismatch(BadInput):
    """A method or solver that does not support this formulation or problem class."""


class NoSolution(OpticollError):
    """The solve ended without a solution that passes verification."""

    exit_status = 3


class LimitSpent(NoSolution):
    """A limit that was reached before solving began; ``termination`` states which one."""

    def __init__(self, message: str, termination: str = "time-limit") -> None:
        super().__init__(message)
        self.termination = termination


class ModelError(OpticollError):
    """A model that cannot be compiled to a :class:`~opticoll.formulations.standard_form.StandardForm`."""


def debugging() -> bool:
    """Whether ``OPTICOLL_DEBUG`` asks for tracebacks: any value but an empty one, 0, false and no does."""
    return os.environ.get("OPTICOLL_DEBUG", "").lower() not in {"", "0", "false", "no"}


def one_line(text: object, most: int = MOST_TEXT) -> str:
    """Convert text to one line that can be stored and printed: of limited length, without control characters."""
    words = str(text)[: 4 * most].encode("utf-8", "replace").decode()
    line = " ".join(words.split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if len(line) <= most else f"{line[:most]} ... ({len(str(text))} characters)"


class NotApplicable(BadInput):
    """The formulation does not make sense for this instance or parameter."""
