"""Sizes, rates and times as strings.

Sizes and rates, ``64MB``, ``64 MiB``, ``100Gb/s``
    ``B`` is a byte, ``b`` or ``bit`` a bit. Decimal prefixes are powers of 1000 (k, K, M, G, T, P), binary ones of 1024
    (Ki, Mi, Gi, Ti, Pi): ``1MB`` is 10^6 bytes, ``1MiB`` 2^20 bytes, ``1Mb`` 10^6 bits. A rate ends in ``/s`` or ``ps``
    (``Gb/s``, ``Gbit/s``, ``Gbps``, ``GB/s``); its number may be omitted and is then 1.

Times as settings, ``3.7us``, ``1.5``
    In ns, us, ms or s; without a unit relative to the time of a shard over a link.
"""

from __future__ import annotations

import math
import re

from opticoll.errors import BadInput, refuse

#: Patterns of a number and of a unit with its prefix.
NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_UNIT = r"(?P<prefix>[KMGTP]i|[kKMGTP])?(?P<unit>B|bit|b)"
_SIZE = re.compile(rf"{NUMBER}\s?{_UNIT}")
_RATE = re.compile(rf"(?:{NUMBER}\s?)?{_UNIT}(?:/s|ps)")
_POWER = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def _bits(match: re.Match[str] | None, text: str, where: str, examples: str) -> float:
    number = math.nan
    if match is not None:
        prefix = match["prefix"] or ""
        base = 1024.0 if prefix.endswith("i") else 1000.0
        scale = base ** _POWER[prefix[0]] if prefix else 1.0
        number = float(match["number"] or 1) * scale * (8.0 if match["unit"] == "B" else 1.0)
    if not (math.isfinite(number) and number > 0):
        refuse(where, f"{text[:40]!r} is not a positive {examples}")
    return number


def split_rate(text: object) -> tuple[float, str] | None:
    """Number and unit of a rate such as ``400Gbps``; None for anything else, including a unit without a number."""
    if not isinstance(text, str) or text[-1:].isdigit():  # most strings by far are plain numbers
        return None
    match = _RATE.fullmatch(text.strip())
    if match is None or match["number"] is None:
        return None
    return float(match["number"]), match.string[match.end("number") :].strip()


def is_size(text: object) -> bool:
    """Whether a string is a number with a unit of size, such as ``3GB``."""
    return isinstance(text, str) and not text[-1:].isdigit() and _SIZE.fullmatch(text.strip()) is not None


def parse_size(text: str | float, where: str = "size") -> float:
    """Convert ``text`` to bytes; a plain number already counts bytes.

    Raises
    ------
    BadInput
        If it is not a positive size with a unit.
    """
    examples = "size; write for example 64MB (10^6 bytes), 64MiB (2^20 bytes) or 512Mb (bits)"
    if isinstance(text, int | float) and not isinstance(text, bool):
        if math.isfinite(text) and text > 0:
            return float(text)
        refuse(where, f"{text!r} is not a positive {examples}")
    word = str(text).strip()
    return _bits(_SIZE.fullmatch(word), word, where, examples) / 8.0


def parse_rate(text: str, where: str = "rate") -> float:
    """Convert ``text`` to bits per second.

    Raises
    ------
    BadInput
        If it is not a positive rate.
    """
    word = str(text).strip()
    return _bits(_RATE.fullmatch(word), word, where, "rate; write for example 100Gb/s (bits) or 12.5GB/s (bytes)")


_SECONDS = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s?(?P<unit>ns|us|µs|μs|ms|s)")
#: Reconfiguration latencies of optical switches (TopoOpt, Table 1, which has minutes for patch panels).
TECHNOLOGIES = {
    "3d-mems": "10ms",
    "2d-mems": "11.5us",
    "rotornet": "10us",
    "silicon-photonics": "900ns",
    "tunable-lasers": "3.8ns",
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Duration(str):
    """A time in canonical form: a number in the unit of the setting, or a number with a unit, such as ``3.7us``.

    Parameters
    ----------
    value
        A number, or a string of either form; units are ns, us, ms and s. A name of :data:`TECHNOLOGIES` is its time.

    Raises
    ------
    ValueError
        For anything else.
    """

    described = f"a time, such as 3.7us, 1.5 (in the unit of the setting), or {', '.join(TECHNOLOGIES)}"

    def __new__(cls, value: object) -> Duration:
        """Return the canonical form."""
        text = "" if isinstance(value, bool) else str(value).strip()
        text = TECHNOLOGIES.get(text, text)
        match = _SECONDS.fullmatch(text)
        if match is not None:
            return super().__new__(cls, match["number"] + re.sub("[µμ]", "u", match["unit"]))
        number = float(text)
        if math.isnan(number):
            raise ValueError(text)
        return super().__new__(cls, repr(number))

    @property
    def seconds(self) -> float | None:
        """The time in seconds; None if it is relative."""
        match = _SECONDS.fullmatch(self)
        return None if match is None else float(match["number"]) * _UNITS[match["unit"]]


def shard_seconds(shard: str, bandwidth: str, where: str) -> float | None:
    """Time of a shard over a link [s]; None if its size or the bandwidth is not given.

    Raises
    ------
    BadInput
        For a size or a rate that cannot be read.
    """
    size = parse_size(_number_or_text(shard), f"{where}: shard") if shard else None
    rate = parse_rate(bandwidth, f"{where}: bandwidth") if bandwidth else None
    return None if size is None or rate is None else 8.0 * size / rate


def _number_or_text(size: str) -> str | float:
    """A size in bytes without a unit as a number."""
    try:
        return float(size)
    except ValueError:
        return size


def relative(value: Duration, unit_s: float | None, where: str) -> float:
    """A time in the unit of the setting, which is ``unit_s`` seconds: those of a shard over a link, for example.

    Raises
    ------
    BadInput
        For a time in seconds if that is not known, and for one that is negative or infinite.
    """
    if value.seconds is not None and unit_s is None:
        msg = f"{where}={value} is in seconds: give it in shards / link bandwidth, or add"
        raise BadInput(msg, remedy={"shard": "64MB", "bandwidth": "100Gb/s"})
    time = float(value) if value.seconds is None or unit_s is None else value.seconds / unit_s
    if not 0 <= time < math.inf:
        msg = f"{where}={value}; give a finite time of at least 0"
        raise BadInput(msg)
    return time
