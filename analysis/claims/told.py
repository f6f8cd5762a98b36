"""Numbers as a paper prints them, and how near to one a measurement must come: fixed before anything is measured.

A printed number stands for all that round to its last digit: 1.11 for 1.105 to 1.115. One that the paper calls about,
nearly or roughly so much stands for all within :data:`ABOUT` of it, and at least for what rounds to its last digit that
is no trailing zero: about 10 for 5 to 15. Orders of magnitude are rounded like digits: two are all from 10^1.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from analysis.claims.base import Verdict

#: Share of a number that "about" leaves open.
ABOUT = 0.1
#: Ratios within this of 1 are called similar, equal, near or close.
SIMILAR = (1 - ABOUT, 1 + ABOUT)
#: What is called two orders of magnitude is at least this many times.
TWO_ORDERS = 10**1.5
#: Slack of the ends of an interval, for floating-point numbers.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Told:
    """A number in print.

    Parameters
    ----------
    text
        As it is printed, "1.11".
    about
        Whether the paper calls it about so much.
    """

    text: str
    about: bool = False

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def half_width(self) -> float:
        """How far from the number counts as the number."""
        number = Decimal(self.text)
        if not self.about:
            return 0.5 * 10.0 ** int(number.as_tuple().exponent)
        return max(ABOUT * abs(self.value), 0.5 * 10.0 ** int(number.normalize().as_tuple().exponent))

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest number that it stands for."""
        return self.value - self.half_width, self.value + self.half_width

    @property
    def tolerance(self) -> str:
        """The rule in words, for a claim."""
        low, high = self.ends
        return f"{'told as about' if self.about else 'its printed digits'}: {low:.6g} to {high:.6g}"

    def holds(self, measured: float) -> bool:
        """Whether a measurement is what the paper says."""
        return abs(measured - self.value) <= self.half_width + _ROUNDING * abs(self.value)

    def verdict(self, measured: float, otherwise: Verdict = Verdict.NOT_REPRODUCED) -> Verdict:
        """Reproduced if :meth:`holds`."""
        return Verdict.REPRODUCED if self.holds(measured) else otherwise

    def off(self, measured: float) -> str:
        """The deviation in words."""
        return f"{100 * (measured / self.value - 1):+.2g} % off what is told"


def similar(ratio: float) -> bool:
    """Whether a ratio is 1 to what "similar" or "near" leaves open."""
    return SIMILAR[0] - _ROUNDING <= ratio <= SIMILAR[1] + _ROUNDING


def at_least(measured: float, told: Told) -> bool:
    """Whether a measurement is the number told or more."""
    return measured >= told.ends[0] - _ROUNDING * abs(told.value)
