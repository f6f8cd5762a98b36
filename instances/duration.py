"""Times as settings: relative to the time of a shard over a link, or in seconds."""

from __future__ import annotations

import math
import re

from opticoll.errors import BadInput
from opticoll.instances.topology import parse_rate, parse_size

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
        For a time in seconds if that is not known.
    """
    if value.seconds is None:
        return float(value)
    if unit_s is None:
        msg = f"{where}={value} is in seconds: give it in shards / link bandwidth, or add"
        raise BadInput(msg, remedy={"shard": "64MB", "bandwidth": "100Gb/s"})
    return value.seconds / unit_s
