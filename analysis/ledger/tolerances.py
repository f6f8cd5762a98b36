"""When a measured number agrees with the one that a paper prints: one table for all claims.

The kind of a claim's number follows from where the paper takes it from (``docs/reference/readings.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

#: What every kind of number stands for.
TOLERANCES = {
    "exact": "equal to 1e-6",
    "printed": "rounds, or is cut, to the printed digits",
    "about": "within 10 %, or rounds to the last digit that is not 0",
    "simulated": "within 10 %, or as printed; a sample by its mean",
    "drawn": "within 1 %",
    "fitted": "within 1 % at every point",
    "order": "within a factor of 10^(1/2)",
}
#: Relative difference up to which two numbers are equal.
SAME = 1e-6
#: Relative deviation of a number called "about", and of one read off a plot.
ABOUT, DRAWN = 0.1, 0.01
#: Factor within which two numbers have the same order of magnitude.
ORDER = 10**0.5
#: Relative slack of interval ends, for rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PrintedNumber:
    """A number as a paper prints it.

    Parameters
    ----------
    text
        Its digits, for example "1.11".
    kind
        Where the paper takes it from, a key of :data:`TOLERANCES`.
    whole
        For a saving, the number at which nothing is left (100 %): "about" is relative to what is left if that is less.
    """

    text: str
    kind: str = "printed"
    whole: float | None = None

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest number it stands for; one that is cut to the printed digits lies below the next one."""
        value, number = self.value, Decimal(self.text)
        unit, round_unit = (10.0 ** int(one.as_tuple().exponent) for one in (number, number.normalize()))
        if self.kind == "order":
            return value / ORDER, value * ORDER
        size = abs(value) if self.whole is None else min(abs(value), abs(self.whole - value))
        share = {"exact": SAME, "printed": 0.0, "drawn": DRAWN, "fitted": DRAWN}.get(self.kind, ABOUT)
        below, above = (unit / 2, unit * (1 - _ROUNDING)) if self.kind in ("printed", "about", "simulated") else (0, 0)
        if self.kind == "about":
            below, above = max(below, round_unit / 2), max(above, round_unit / 2)
        return value - max(share * size, below), value + max(share * size, above)

    def holds(self, measured: float) -> bool:
        """Whether a measurement agrees with the printed number."""
        low, high = self.ends
        slack = _ROUNDING * abs(self.value)
        return low - slack <= measured <= high + (0.0 if self.kind == "printed" else slack)


def similar(ratio: float) -> bool:
    """Whether a ratio is close enough to 1 to be called similar."""
    return abs(ratio - 1) <= ABOUT + _ROUNDING
