"""Blocks of a document that are written by a program.

A block is what stands between the comments ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``; blocks may hold others.
"""

from __future__ import annotations

import re

from instances.errors import BadInput

_BEGIN = re.compile(r"<!-- ([\w-]+):begin -->")


def begin(name: str) -> str:
    """The comment before a block."""
    return f"<!-- {name}:begin -->"


def end(name: str) -> str:
    """The comment after a block."""
    return f"<!-- {name}:end -->"


def names(text: str) -> list[str]:
    """Names of all blocks of a document, also of those within others, in their order."""
    return _BEGIN.findall(text)


def content(text: str, name: str) -> str | None:
    """What stands in a block, without the line ends around it; None where the document has no such block.

    Raises
    ------
    BadInput
        If the block begins twice, or does not end.
    """
    parts = _split(text, name)
    return None if parts is None else parts[1].strip("\n")


def wrapped(name: str, body: str) -> str:
    """A block with its comments."""
    return f"{begin(name)}\n{body}\n{end(name)}"


def replaced(text: str, name: str, body: str) -> str:
    """Put ``body`` into a block; a document without it stays as it is.

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
