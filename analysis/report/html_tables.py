"""Tables of the report: how every kind of value is written, and sortable HTML tables of them.

HTML that cannot be broken by what it shows: text is escaped unless it was made here.

:func:`tag` is the only way to an element; it escapes every child that is not :class:`Markup`, and every attribute.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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


Kind = Literal["text", "name", "long", "number", "count", "seconds", "gap", "ratio", "proof"]

_NUMBERS = {"number", "count", "seconds", "gap", "ratio"}
#: Standing of a proof status: colour and words that do without the colour.
PROOFS = {
    "optimal": ("good", "✓ optimal"),
    "certified-gap": ("fair", "≈ certified gap"),
    "feasible": ("fair", "○ feasible"),
    "bound-only": ("bad", "✗ bound only"),
    "none": ("bad", "✗ none"),
}


@dataclass(frozen=True)
class Column:
    """A column: the field it shows, its heading, and what kind of value it holds."""

    field: str
    heading: str
    kind: Kind = "text"


def missing(value: Any) -> bool:
    """Whether a cell of a data frame holds nothing."""
    return value is None or value != value or str(value) == "NaT"


def written(value: Any, kind: Kind = "number") -> str:
    """Write a value the way its kind is written; nothing is a dash."""
    if missing(value):
        return "–"
    if kind not in _NUMBERS:
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        return "∞" if number > 0 else "−∞"
    if kind == "count":
        return f"{int(number)}"
    if kind == "seconds":
        return f"{number:.2f}" if number < 100 else f"{number:.0f}"
    if kind == "gap":
        return "0" if number == 0 else f"{number:.1e}"
    if kind == "ratio":
        return f"{number:.4f}"
    return f"{number:.6g}"


def badge(proof: Any) -> Markup:
    """Write a proof status so that it is read without its colour."""
    colour, words = PROOFS.get(str(proof), ("bad", written(proof, "text")))
    return tag("span", words, class_=f"badge {colour}")


def table(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    caption: str,
    *,
    sortable: bool = True,
    cells: Mapping[str, Any] | None = None,
) -> Markup:
    """Make a table that scrolls inside its own box.

    Parameters
    ----------
    rows
        Values by field.
    columns
        What to show; the first one heads its row.
    caption
        What a screen reader says of the table.
    sortable
        Whether headings sort.
    cells
        By field, a function of a row that makes the content of its cell, in place of :func:`written`.
    """
    heads = [
        tag(
            "th",
            tag("button", column.heading, type="button") if sortable else column.heading,
            scope="col",
            class_="number" if column.kind in _NUMBERS else None,
        )
        for column in columns
    ]
    body = [
        tag("tr", *(_cell(row, column, place == 0, cells or {}) for place, column in enumerate(columns)))
        for row in rows
    ]
    grid = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *body), class_="sortable" if sortable else None,
               aria_label=caption)  # fmt: skip
    tall = " tall" if len(body) > 20 else ""
    return tag("div", grid, class_=f"scroll{tall}", role="region", aria_label=caption, tabindex="0")


def _cell(row: Mapping[str, Any], column: Column, first: bool, cells: Mapping[str, Any]) -> Markup:
    value = row.get(column.field)
    content = cells[column.field](row) if column.field in cells else written(value, column.kind)
    if column.kind == "proof" and column.field not in cells:
        content = badge(value)
    sort = None
    if column.kind in _NUMBERS:
        sort = "" if value is None or missing(value) else repr(float(value))
    look = "number" if column.kind in _NUMBERS else column.kind if column.kind in ("long", "name") else None
    if first:
        return tag("th", content, scope="row", data_sort=sort, class_=look)
    return tag("td", content, data_sort=sort, class_=look)


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Make a list of named facts; those that are not known are left out."""
    shown = [(name, value) for name, value in pairs if not missing(value) and value not in ("", {}, [])]
    return tag("dl", *(_fact(name, value) for name, value in shown), class_="facts")


def _fact(name: str, value: Any) -> Markup:
    return Markup(tag("dt", name) + tag("dd", text(value)))
