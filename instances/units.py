"""Sizes and rates as text: ``64MB``, ``64 MiB``, ``100Gb/s``.

``B`` is a byte, ``b`` or ``bit`` a bit. Decimal prefixes are powers of 1000 (k, K, M, G, T, P), binary ones of 1024
(Ki, Mi, Gi, Ti, Pi): ``1MB`` is 10^6 bytes, ``1MiB`` 2^20 bytes, ``1Mb`` 10^6 bits. A rate ends in ``/s`` or ``ps``
(``Gb/s``, ``Gbit/s``, ``Gbps``, ``GB/s``); its number may be left out, which means 1.
"""

from __future__ import annotations

import math
import re

from opticoll.errors import BadInput

_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_UNIT = r"(?P<prefix>[KMGTP]i|[kKMGTP])?(?P<unit>B|bit|b)"
_SIZE = re.compile(rf"{_NUMBER}\s?{_UNIT}")
_RATE = re.compile(rf"(?:{_NUMBER}\s?)?{_UNIT}(?:/s|ps)")
_POWER = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def _bits(match: re.Match[str] | None, text: str, where: str, examples: str) -> float:
    number = math.nan
    if match is not None:
        prefix = match["prefix"] or ""
        base = 1024.0 if prefix.endswith("i") else 1000.0
        scale = base ** _POWER[prefix[0]] if prefix else 1.0
        number = float(match["number"] or 1) * scale * (8.0 if match["unit"] == "B" else 1.0)
    if not (math.isfinite(number) and number > 0):
        msg = f"{where}: {text[:40]!r} is not a positive {examples}"
        raise BadInput(msg)
    return number


def split_rate(text: object) -> tuple[float, str] | None:
    """Number and unit of a rate such as ``400Gbps``; None for anything else, also for a unit without a number."""
    if not isinstance(text, str) or text[-1:].isdigit():  # by far the most texts are plain numbers
        return None
    match = _RATE.fullmatch(text.strip())
    if match is None or match["number"] is None:
        return None
    return float(match["number"]), match.string[match.end("number") :].strip()


def parse_size(text: str | float, where: str = "size") -> float:
    """Bytes that ``text`` stands for; a number is one of bytes.

    Raises
    ------
    BadInput
        Unless it is a positive size with a unit.
    """
    examples = "size; write for example 64MB (10^6 bytes), 64MiB (2^20 bytes) or 512Mb (bits)"
    if isinstance(text, int | float) and not isinstance(text, bool):
        if math.isfinite(text) and text > 0:
            return float(text)
        msg = f"{where}: {text!r} is not a positive {examples}"
        raise BadInput(msg)
    word = str(text).strip()
    return _bits(_SIZE.fullmatch(word), word, where, examples) / 8.0


def parse_rate(text: str, where: str = "rate") -> float:
    """Bits per second that ``text`` stands for.

    Raises
    ------
    BadInput
        Unless it is a positive rate.
    """
    word = str(text).strip()
    return _bits(_RATE.fullmatch(word), word, where, "rate; write for example 100Gb/s (bits) or 12.5GB/s (bytes)")
