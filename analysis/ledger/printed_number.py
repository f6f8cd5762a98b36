"""Numbers as papers print them, and what agrees with them.

A printed number stands for every number that rounds to it: 1.11 for
1.105 to 1.115. If the paper says "about", "nearly" or "roughly", the number stands for everything within :data:`ABOUT`
of it, and at least for everything that rounds to its last nonzero digit: about 10 for 5 to 15. Orders of magnitude are
rounded in the same way: two orders of magnitude start at 10^1.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

#: Relative deviation that "about" allows.
ABOUT = 0.1
#: Ratios in this range count as "similar", "equal", "near" or "close".
SIMILAR = (1 - ABOUT, 1 + ABOUT)
#: Relative slack of interval ends, for rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PrintedNumber:
    """A number as a paper prints it.

    Parameters
    ----------
    text
        Its digits, for example "1.11".
    about
        Whether the paper says "about", "nearly" or "roughly".
    """

    text: str
    about: bool = False

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def half_width(self) -> float:
        """Largest deviation that still counts as this number."""
        number = Decimal(self.text)
        if not self.about:
            return 0.5 * 10.0 ** int(number.as_tuple().exponent)
        return max(ABOUT * abs(self.value), 0.5 * 10.0 ** int(number.normalize().as_tuple().exponent))

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest number it stands for."""
        return self.value - self.half_width, self.value + self.half_width

    @property
    def tolerance(self) -> str:
        """The tolerance in words."""
        low, high = self.ends
        return f"{'stated as about' if self.about else 'rounds to the printed digits'}: {low:.6g} to {high:.6g}"

    def holds(self, measured: float) -> bool:
        """Whether a measurement agrees with the printed number."""
        return abs(measured - self.value) <= self.half_width + _ROUNDING * abs(self.value)


def similar(ratio: float) -> bool:
    """Whether a ratio is close enough to 1 to be called similar."""
    return SIMILAR[0] - _ROUNDING <= ratio <= SIMILAR[1] + _ROUNDING
