"""Blocks of documents: the text between the comments ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``; tables.

Blocks may be nested.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterable

_BEGIN = re.compile(r"<!-- ([\w-]+):begin -->")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]], *, numbers: int = 0) -> list[str]:
    """The lines of a Markdown table, whose last columns are aligned as ``numbers``."""
    heads = [*heads]
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (heads, *rows)]
    return [lines[0], "|" + "---|" * (len(heads) - numbers) + "---:|" * numbers, *lines[1:]]


def begin(name: str) -> str:
    """Comment before a block."""
    return f"<!-- {name}:begin -->"


def end(name: str) -> str:
    """Comment after a block."""
    return f"<!-- {name}:end -->"


def names(text: str) -> list[str]:
    """Names of all blocks of a document, nested ones included, in order."""
    return _BEGIN.findall(text)


def content(text: str, name: str) -> str | None:
    """Text of a block without the line ends around it; None if the document has no such block.

    Raises
    ------
    BadInput
        If the block begins twice, or does not end.
    """
    parts = _split(text, name)
    return None if parts is None else parts[1].strip("\n")


def wrapped(name: str, body: str) -> str:
    """Block with its comments."""
    return f"{begin(name)}\n{body}\n{end(name)}"


def replaced(text: str, name: str, body: str) -> str:
    """Replace the text of a block; a document without the block is unchanged.

    Raises
    ------
    BadInput
        As :func:`content`.
    """
    parts = _split(text, name)
    return text if parts is None else f"{parts[0]}{wrapped(name, body)}{parts[2]}"


def _split(text: str, name: str) -> tuple[str, str, str] | None:
    if begin(name) not in text and end(name) not in text:
        return None
    before, _, rest = text.partition(begin(name))
    inside, _, after = rest.partition(end(name))
    if text.count(begin(name)) != 1 or rest.count(end(name)) != 1 or text.count(end(name)) != 1:
        msg = f"block {name!r} must begin and end once: write {begin(name)}, then {end(name)}"
        raise BadInput(msg)
    return before, inside, after
