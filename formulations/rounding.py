r"""Floating-point sums, products and quotients rounded outward, so that bounds remain valid.

Every function returns numbers that are provably at most (``_down``) or at least (``_up``) the exact result of the
stated operation on the given floats. The error terms are the standard ones of rounding-error analysis (N. Higham,
*Accuracy and Stability of Numerical Algorithms*, 2nd ed., sections 3.1 and 4.2): with unit round-off
:math:`u = 2^{-53}`, a sum or inner product of k terms in any order differs from the exact one by at most
:math:`\gamma_k = k u / (1 - k u)` times the sum of absolute values, plus at most one smallest denormal per product for
underflow. Overflow gives an infinite, hence useless but valid, result.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from opticoll.instances.topology import F64


UNIT = 2.0**-53
#: Smallest positive (denormal) float: the largest error of one product by underflow.
TINY = 5e-324
#: Number of terms per block of a long sum, which keeps the error term small.
BLOCK = 64

#: Maximum significant digits of a decimal that counts as entered. Up to 15, its float identifies the decimal;
#: with 12, a computed float passes for one in at most one case in a thousand.
DIGITS = 12


def decimal(value: float) -> Fraction:
    """Shortest decimal that rounds to a finite float, as a fraction."""
    whole = int(value)
    return Fraction(whole) if whole == value and abs(whole) < 2**53 else Fraction(repr(float(value)))


def least(value: float) -> Fraction:
    """The smaller of a float and the shortest decimal that it stands for."""
    return min(decimal(value), Fraction(value))


def as_decimals(values: ArrayLike) -> bool:
    """Whether :func:`least` reads all numbers as the decimals that they stand for, whole numbers for example."""
    distinct = np.unique(np.asarray(values, dtype=float)).tolist()
    return all(math.isfinite(value) and least(value) == decimal(value) for value in distinct)


def largest(value: float) -> Fraction:
    """The larger of a float and the shortest decimal that it stands for."""
    return max(decimal(value), Fraction(value))


def is_entered(value: float) -> bool:
    """Whether a float stands for a decimal of at most 12 digits, or is a whole number below 2^53."""
    return (value == int(value) and abs(value) < 2**53) or float(f"{value:.{DIGITS}g}") == value


def measured(value: float) -> Fraction:
    """Decimal of at most 12 digits within the round-off of a few operations of a float, else its shortest decimal."""
    near = Fraction(f"{value:.{DIGITS}g}")
    return near if abs(near - Fraction(value)) <= 8 * UNIT * abs(near) else decimal(value)


def entered(value: float) -> Fraction:
    """Decimal of at most 12 digits that a float stands for.

    Raises
    ------
    BadInput
        If there is none: the number was computed, or written with more digits.
    """
    if not is_entered(value):
        msg = f"exact: {value!r} is not a decimal of at most {DIGITS} digits; give fewer digits, or solve without exact"
        raise BadInput(msg)
    return decimal(value)


def digits_up(value: float, digits: int) -> float:
    """Round ``value`` up to a float that stands for a decimal of at most ``digits`` <= 12 digits."""
    near = float(f"{value:.{digits - 1}e}")
    if decimal(near) >= Fraction(value):
        return near
    return float(Fraction(repr(near)) + Fraction(10) ** (math.floor(math.log10(abs(value))) - digits + 1))


def decimals(values: ArrayLike) -> list[Fraction]:
    """Distinct shortest decimals that round to the numbers of an array: the values meant by seeded random data."""
    return [decimal(value) for value in np.unique(np.asarray(values, dtype=float)).tolist()]


def gamma(terms: int) -> float:
    """Relative error of ``terms`` successive roundings, itself rounded up; infinite beyond 2^52."""
    loss = terms * UNIT
    return np.inf if loss >= 0.5 else float(loss / (1.0 - loss) * (1.0 + 4 * UNIT))


def up(value: ArrayLike, roundings: int = 1) -> NDArray[Any]:
    """Upper bound on the exact result that ``value`` approximates after ``roundings`` additions, products or quotients.

    Only for values built without cancellation (terms of one sign); nan becomes +inf.
    """
    value = np.asarray(value, dtype=float)
    with np.errstate(all="ignore"):
        wider = value + (gamma(roundings + 1) * np.abs(value) + roundings * TINY)
        return np.where(np.isnan(value), np.inf, np.nextafter(wider, np.inf))


def float_up(value: float, roundings: int = 1) -> float:
    """:func:`up` of one number, which is computed ten times as fast without numpy."""
    value = float(value)
    wider = value + (gamma(roundings + 1) * abs(value) + roundings * TINY)
    return math.inf if math.isnan(value) else math.nextafter(wider, math.inf)


def float_down(value: float, roundings: int = 1) -> float:
    """:func:`down` of one number."""
    return -float_up(-value, roundings)


def down(value: ArrayLike, roundings: int = 1) -> NDArray[Any]:
    """Lower bound on the exact result that ``value`` approximates; see :func:`up`. nan becomes -inf."""
    return -up(-np.asarray(value, dtype=float), roundings)


def whole(terms: F64) -> bool:
    """Whether terms are whole numbers with an exact sum in any order: their sizes add up to less than 2^53."""
    with np.errstate(all="ignore"):
        return bool(np.abs(terms).sum() < 2**53 and (terms == np.rint(terms)).all())


#: Maximum number of distinct numbers in an exact sum of bounds.
MOST_DISTINCT = 20_000


def exact_sum(terms: ArrayLike) -> Fraction | None:
    """Sum of the decimals that the numbers stand for; None for more than 20,000 distinct or infinite ones."""
    terms = np.asarray(terms, dtype=float).ravel()
    if whole(terms):
        return Fraction(int(terms.sum()))
    values, counts = np.unique(terms, return_counts=True)
    if values.size > MOST_DISTINCT or not np.isfinite(values).all():
        return None
    parts = [decimal(value) * count for value, count in zip(values.tolist(), counts.tolist(), strict=True)]
    below = math.lcm(*(part.denominator for part in parts))
    return Fraction(sum(part.numerator * (below // part.denominator) for part in parts), below)


def quotient(numerator: Fraction | None, denominator: Fraction | None) -> Fraction | None:
    """The quotient of two sums of :func:`exact_sum`; None if one is unknown or the denominator is not positive."""
    if numerator is None or denominator is None or denominator <= 0:
        return None
    return numerator / denominator


def sum_up(terms: ArrayLike) -> float:
    """Upper bound on the exact sum of ``terms`` of any sign; the sum itself for :func:`whole` terms."""
    terms = np.asarray(terms, dtype=float).ravel()
    if whole(terms):
        return float(terms.sum())
    with np.errstate(all="ignore"):
        total, roundings = _sum(terms)
        if not np.isfinite(total):
            return -np.inf if np.isneginf(terms).any() and not (np.isposinf(terms) | np.isnan(terms)).any() else np.inf
        size = abs(total) if terms.size == 0 or terms.min() >= 0 or terms.max() <= 0 else _sum(np.abs(terms))[0]
        return float(np.nextafter(total + gamma(2 * roundings + 4) * size, np.inf)) if size > 0 else 0.0


def _sum(terms: F64) -> tuple[float, int]:
    """The sum of ``terms``, ``(k,)``, by blocks, and the largest number of additions that involve one term."""
    roundings = 0
    while terms.size > BLOCK:
        whole = terms.size // BLOCK * BLOCK
        terms = np.concatenate([terms[:whole].reshape(-1, BLOCK).sum(axis=1), terms[whole:]])
        roundings += BLOCK - 1
    return float(terms.sum()), roundings + max(terms.size - 1, 0)


def sum_down(terms: ArrayLike) -> float:
    """Lower bound on the exact sum of ``terms`` of any sign."""
    return -sum_up(-np.asarray(terms, dtype=float))


def dot_up(a: ArrayLike, b: ArrayLike) -> float:
    """Upper bound on the exact inner product of ``a`` and ``b``; a product of 0 and infinity counts as 0."""
    a, b = np.asarray(a, dtype=float).ravel(), np.asarray(b, dtype=float).ravel()
    with np.errstate(all="ignore"):
        terms = a * b
        if terms.size == 0 or terms.min() >= 0 or terms.max() <= 0:  # excludes nan, too
            total, roundings = _sum(terms)
            if np.isfinite(total):
                lost = TINY * np.count_nonzero((a != 0) & (b != 0))
                return math.nextafter(float_up(total, roundings + 2) + lost, math.inf) if lost else 0.0
        terms = np.where((a == 0) | (b == 0), 0.0, terms)
        return sum_up(np.where(terms == 0, np.where((a == 0) | (b == 0), 0.0, TINY), up(terms)))


def dot_down(a: ArrayLike, b: ArrayLike) -> float:
    """Lower bound on the exact inner product of ``a`` and ``b``; a product of 0 and infinity counts as 0."""
    return -dot_up(-np.asarray(a, dtype=float), b)


def quotient_up(numerator: float, denominator: float) -> float:
    """Upper bound on ``numerator / denominator`` for ``denominator`` > 0; infinite if that is 0 or not a number."""
    if not denominator > 0:
        return np.inf
    with np.errstate(all="ignore"):
        return float_up(np.float64(numerator) / np.float64(denominator))


def quotient_down(numerator: float, denominator: float) -> float:
    """Lower bound on ``numerator / denominator`` for ``denominator`` > 0; -infinite if that is 0 or not a number."""
    return -quotient_up(-numerator, denominator)


def exponent(values: ArrayLike) -> int:
    """Exponent e with ``2^(e-1) <= max |values| < 2^e``, over finite values; 0 if all of them are 0."""
    size = np.abs(np.asarray(values, dtype=float))
    return int(np.frexp(np.max(size, where=np.isfinite(size), initial=0.0))[1])


def scaled_up(values: ArrayLike, power: int) -> NDArray[Any]:
    """Upper bound on ``values * 2^power``; exact except for overflow and underflow."""
    values = np.asarray(values, dtype=float)
    with np.errstate(all="ignore"):
        result = np.ldexp(values, power)
        return np.where(np.ldexp(result, -power) < values, np.nextafter(result, np.inf), result)


def scaled_down(values: ArrayLike, power: int) -> NDArray[Any]:
    """Lower bound on ``values * 2^power``; see :func:`scaled_up`."""
    return -scaled_up(-np.asarray(values, dtype=float), power)


def fraction_up(value: Fraction) -> float:
    """Smallest float that is at least ``value``."""
    try:
        result = float(value)
    except OverflowError:
        result = np.inf if value > 0 else -float(np.finfo(float).max)
    return result if np.isinf(result) or Fraction(result) >= value else float(np.nextafter(result, np.inf))


def fraction_down(value: Fraction) -> float:
    """Largest float that is at most ``value``."""
    return -fraction_up(-value)


def usable_lengths(capacity: F64, lengths: F64) -> F64:
    """Positive lengths with the largest in [1/2, 1), ``(m,)``; empty if the shape is wrong or none is positive.

    Any lengths prove a bound. Negative and non-finite lengths count as 0, and zeros are replaced by lengths too small
    to matter relative to the capacities ``(m,)``: the shortest-path code would treat a zero as no arc.
    """
    lengths = np.asarray(lengths, dtype=float)
    if lengths.shape != capacity.shape:
        return np.zeros(0)
    lengths = np.where(np.isfinite(lengths) & (lengths > 0), lengths, 0.0)
    if not lengths.any():
        return np.zeros(0)
    lengths = np.ldexp(lengths, -exponent(lengths))
    sizes = np.maximum(np.ldexp(capacity, -exponent(capacity)), 1e-300)
    return np.maximum(lengths, np.clip(1e-16 * (sizes * lengths).max() / sizes, 1e-290, 1e-15))


def weighted_capacity(capacity: F64, lengths: F64, cost: float, power: int = 0) -> float:
    """``sum c l / (cost 2^power)`` rounded up, for a ``cost`` that is rounded down; infinite if it is not positive."""
    scale = exponent(capacity)
    total = dot_up(scaled_up(capacity, -scale), lengths)
    return float(scaled_up(quotient_up(total, cost), scale - power))
