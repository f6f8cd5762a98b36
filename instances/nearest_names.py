"""Hints for names that do not exist: the one that was probably meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, TypeVar

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

Item = TypeVar("Item")

#: Maximum number of names in a hint.
MOST_NAMED = 40


def nearest(word: str, known: Mapping[str, object] | list[str]) -> str:
    """Return a hint for an error message: the closest known name, or a list of the known names."""
    last = [name for name in known if name.rpartition(".")[2] == word or name.lower() == str(word).lower()]
    close = last if len(last) == 1 else difflib.get_close_matches(str(word), list(known), n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    names = sorted(known)
    more = f", ... ({len(names)} in total)" if len(names) > MOST_NAMED else ""
    return "known: " + ", ".join(names[:MOST_NAMED]) + more


class UnknownName(BadInput, KeyError):
    """A name that a mapping does not have."""

    __str__ = BadInput.__str__


class NamedItems(dict[str, Item]):
    """A dict that, asked for a name that it does not have, names the one that was probably meant; ``what`` it holds."""

    def __init__(self, items: Mapping[str, Item], what: str) -> None:
        super().__init__(items)
        self.what = what

    def __missing__(self, name: str) -> Item:
        hint = nearest(name, self) if self else f"there are no {self.what}"
        msg = f"{self.what}: none is called {name!r}; {hint}"
        raise UnknownName(msg)


class NamesAttributes:
    """An object that, asked for an attribute that it does not have, names the one that was probably meant."""

    __slots__ = ()

    def _place(self, name: str) -> str | None:
        """Where something of this name is to be found, in words, or None."""
        return None

    if not TYPE_CHECKING:  # type checkers would take every attribute for one that exists

        def __getattr__(self, name: str) -> object:
            if name in dir(type(self)):  # a property that failed inside: its own error says more
                return object.__getattribute__(self, name)
            if name.startswith("_"):  # copying, pickling and notebooks ask for many of them
                raise AttributeError(lacks(type(self).__name__, name), name=name, obj=None)
            hint = self._place(name) or nearest(name, [one for one in dir(self) if not one.startswith("_")])
            msg = f"{lacks(type(self).__name__, name)}; {hint}"
            raise AttributeError(msg, name=name, obj=None)  # without the object, Python adds no second hint


def lacks(kind: str, name: str) -> str:
    """What Python says of an attribute that an object does not have."""
    return f"{kind!r} object has no attribute {name!r}"
