"""Parameters that name a file: the name is pinned to what the file holds, so that a changed file is another task.

``file:PATH`` becomes ``file:PATH#sha256=DIGEST``. Whoever reads the pinned text gets those bytes or a refusal, and the
resume key of a task, which has the text among its settings, changes with the content.

Files of others: read only if they are regular files of a stated size, and JSON in them only if it is unambiguous.
"""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile

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


PREFIX = "file:"
_PIN = "#sha256="


def pinned(text: str, most: int) -> str:
    """``file:PATH`` with the digest of what it holds now; any other text as it is.

    A file that cannot be read, or has more than ``most`` bytes, is left unpinned: :func:`read_pinned` says what is
    wrong with it.
    """
    word = text.strip()
    if not word.startswith(PREFIX) or _PIN in word:
        return word
    path = Path(word.removeprefix(PREFIX))
    try:
        if not path.is_file() or path.stat().st_size > most:
            return word
        return f"{word}{_PIN}{hashlib.sha256(path.read_bytes()).hexdigest()}"
    except (OSError, ValueError):
        return word


def same_text(one: str, other: str) -> bool:
    """Whether two texts say the same: files by their contents where both are pinned, anything else by the words."""
    first, second = (text.partition(_PIN)[2] if text.startswith(PREFIX) else "" for text in (one, other))
    return one == other or bool(first and first == second)


def read_pinned(text: str, most: int, what: str, remedy: str) -> tuple[Path, str]:
    """Path and contents of the file that ``file:PATH``, pinned or not, names.

    Parameters
    ----------
    text
        With its prefix.
    most
        Larger files are refused [bytes], before they are read.
    what, remedy
        ``formulation: circuit file``, and what to do if it cannot be read.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, no UTF-8 text, or not what it was when it was pinned.
    """
    name, _, digest = text.strip().removeprefix(PREFIX).partition(_PIN)
    path = Path(name)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            msg = f"{what} {path} is no regular file; {remedy}"
            raise BadFile(msg)
        size = path.stat().st_size
        if size > most:
            msg = f"{what} {path} has {size} bytes, more than the {most} that are read; give a smaller one"
            raise BadFile(msg)
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
        contents = raw.decode("utf-8-sig")
    except (OSError, ValueError) as reason:
        if isinstance(reason, BadFile):
            raise
        why = reason.strerror if isinstance(reason, OSError) else "it is no UTF-8 text"
        if isinstance(reason, ValueError) and not isinstance(reason, UnicodeDecodeError):
            why = "it is no path"
        msg = f"{what} {path!s} cannot be read ({why}); {remedy}"
        raise BadFile(msg) from None
    if digest and hashlib.sha256(raw).hexdigest() != digest:
        msg = f"{what} {path} has changed since it was named; solve again with the new one"
        raise BadFile(msg)
    return path, contents
