"""Files of others: read only if they are regular files of a stated size, and JSON in them only if it is unambiguous."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

from instances.errors import BadFile

if TYPE_CHECKING:
    from pathlib import Path


def check_file(path: Path, most: int, remedy: str) -> None:
    """Refuse what is no regular file (a pipe or a device may have no end) and what has more than ``most`` bytes.

    Raises
    ------
    BadFile
        With ``remedy``, such as ``name a solution file``.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else "it is no path"
        msg = f"{path}: cannot be read ({why}); {remedy}"
        raise BadFile(msg) from None
    if not stat.S_ISREG(status.st_mode):
        why = "Is a directory" if stat.S_ISDIR(status.st_mode) else "it is no regular file"
        msg = f"{path}: cannot be read ({why}); {remedy}"
        raise BadFile(msg)
    if status.st_size > most:
        msg = f"{path}: {status.st_size} bytes are more than the {most} that are read"
        raise BadFile(msg)


def read_json(path: Path, most: int, remedy: str) -> Any:
    """The JSON in a file, in which no key may stand twice and no number may be NaN or infinite.

    Raises
    ------
    BadFile
        If it cannot be read, is too large (:func:`check_file`), or is no such JSON.
    """
    check_file(path, most, remedy)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as reason:
        msg = f"{path}: cannot be read ({reason.strerror}); {remedy}"
        raise BadFile(msg) from None
    except UnicodeDecodeError as reason:
        msg = f"{path}: is no JSON ({reason}); {remedy}"
        raise BadFile(msg) from None
    return parse_json(text, path, remedy)


def parse_json(text: str, path: Path, remedy: str) -> Any:
    """The JSON in a file's text, as :func:`read_json`.

    Raises
    ------
    BadFile
        If it is no such JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError) as reason:
        msg = f"{path}: is no JSON ({str(reason).splitlines()[0][:200]}); {remedy}"
        raise BadFile(msg) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            msg = f"the key {name[:60]!r} is there twice"
            raise ValueError(msg)
        found[name] = value
    return found


def _no_number(word: str) -> Any:
    msg = f"{word} is no number"
    raise ValueError(msg)
