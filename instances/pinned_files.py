"""Parameters that name a file: the name is pinned to what the file holds, so that a changed file is another task.

``file:PATH`` becomes ``file:PATH#sha256=DIGEST``. Whoever reads the pinned text gets those bytes or a refusal, and the
resume key of a task, which has the text among its settings, changes with the content.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from instances.errors import BadFile

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
