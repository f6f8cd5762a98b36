"""Hints for names that do not exist: the one that was probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from opticoll.errors import BadInput, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

Item = TypeVar("Item")

#: Maximum number of names in a hint.
MOST_NAMED = 40


def nearest(word: str, known: Mapping[str, object] | list[str], *, least: float = 0.6) -> str:
    """Return a hint for an error message: the names that were probably meant, or a list of the known names.

    In turn: names that differ in case and punctuation alone, also in their last part (``theorem-1`` of every paper);
    the names of a group (``all-to-all``: every ``alltoall.…``); one spelt nearly alike; names with all words of it; one
    that is alike by ``least`` (:mod:`difflib`); the only one that begins with it.
    """
    import difflib

    names, plain = sorted(known), _plain(word)
    near = [name for name in names if plain in (_plain(name), _plain(name.rpartition(".")[2]))]
    near = near or [name for name in names if "." in name and plain == _plain(name.partition(".")[0])]
    near = near or difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.8)
    near = near or [name for name in names if plain and _words(word) <= _words(name)]
    near = near or difflib.get_close_matches(str(word), list(known), n=1, cutoff=least)
    begun = [] if near else [name for name in names if plain and _plain(name).startswith(plain)]
    near = near or begun * (len(begun) == 1)
    if len(near) == 1:
        return f"did you mean {near[0]!r}?"
    if near:
        return f"did you mean one of {_listed([repr(name) for name in near])}?"
    return "known: " + _listed(names)


def _listed(names: list[str]) -> str:
    more = f", ... ({len(names)} in total)" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", str(name).lower())


def _words(name: str) -> set[str]:
    return set(re.split(r"[\W_]+", str(name).lower()))


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
        refuse(self.what, f"none is called {name!r}; {hint}", UnknownName)
