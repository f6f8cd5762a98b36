"""HTML that cannot be broken by what it shows: text is escaped unless it was made here.

:func:`tag` is the only way to an element; it escapes every child that is not :class:`Markup`, and every attribute.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_EMPTY = {"meta", "br", "hr"}
_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Escape a value; None is a dash. Markup stays as it is."""
    if isinstance(value, Markup):
        return value
    shown = "–" if value is None else str(value)
    return Markup(escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", shown), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Make an element.

    Parameters
    ----------
    name
        Element name.
    children
        Escaped unless they are :class:`Markup`; None children are left out.
    attributes
        ``class_`` for ``class``, underscores for hyphens; True for a bare attribute, None for none.

    Raises
    ------
    ValueError
        For a name that is no element or attribute name: names never come from data.
    """
    if not _NAME.match(name):
        msg = f"{name!r} is no element name"
        raise ValueError(msg)
    words = [name]
    for key, value in attributes.items():
        word = key.rstrip("_").replace("_", "-")
        if not _NAME.match(word):
            msg = f"{word!r} is no attribute name"
            raise ValueError(msg)
        if value is True:
            words.append(word)
        elif value is not None and value is not False:
            words.append(f'{word}="{text(value)}"')
    opening = f"<{' '.join(words)}>"
    if name in _EMPTY:
        return Markup(opening)
    return Markup(f"{opening}{''.join(text(child) for child in children if child is not None)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Put parts together, each escaped unless it is markup."""
    return Markup(text(between).join(text(part) for part in parts))
