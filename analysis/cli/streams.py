"""The standard streams of the command: closed ones, and those that cannot print every character."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TextIO

_ERRORS = "opticoll.readable"
_ASCII = "opticoll_ascii"
#: What is printed for symbols that a stream does not have; of letters, the accents are left out.
_PLAIN = {
    **dict.fromkeys("–—−─━", "-"),
    **dict.fromkeys("·•●○", "*"),
    **{"×": "x", "÷": "/", "±": "+-", "√": "sqrt", "∞": "inf", "→": "->", "←": "<-", "✓": "yes", "✗": "no"},
    **{"≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "…": "...", "’": "'", "“": '"', "”": '"'},
    **{"α": "alpha", "β": "beta", "δ": "delta", "ε": "eps", "θ": "theta", "κ": "kappa", "λ": "lambda", "µ": "u"},
    **{"μ": "u", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "Δ": "Delta", "Σ": "Sum"},
}
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))


def prepare() -> None:
    """Give the process streams that take whatever the commands print.

    A standard stream that is closed becomes the null device: otherwise the next file that is opened would take its
    number, and what is printed. Characters that a stream cannot print are replaced by similar ones.
    """
    codecs.register_error(_ERRORS, _replaced)
    codecs.register(_plain_ascii)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            mode = "w" if number else "r"
            while (opened := os.open(os.devnull, os.O_RDWR)) < number:
                pass
            setattr(sys, name, open(opened, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        elif number and hasattr(stream, "reconfigure"):
            ascii_only = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=_ASCII if ascii_only else None, errors=_ERRORS)


def closed_by_reader() -> int:
    """Print no more, since the reader of standard output has gone; returns the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 141  # as of a process that SIGPIPE ends


def prints_unicode() -> bool:
    """Whether standard output can print every character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def _plain_ascii(name: str) -> codecs.CodecInfo | None:
    """ASCII by another name: click takes that encoding for a mistake and prints UTF-8 instead."""
    if name != _ASCII:
        return None
    known = codecs.lookup("ascii")
    return codecs.CodecInfo(known.encode, known.decode, None, None, known.incrementalencoder, name=_ASCII)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import unicodedata

    text, before = "", ""
    for character in error.object[error.start : error.end]:
        letters = "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))
        if character in _RAISED:
            text += ("" if before in _RAISED else "^") + _RAISED[character]
        elif character in _PLAIN or letters.isascii():
            text += _PLAIN.get(character, letters)
        else:
            text += character.encode("ascii", "backslashreplace").decode()
        before = character
    return text, error.end
