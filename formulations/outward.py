r"""Floating-point sums, products and quotients rounded outward, so that bounds stay on the safe side.

Every function returns numbers that are provably at most (``_down``) or at least (``_up``) the exact result of the
stated operation on the given floats. The error terms are the standard ones of rounding-error analysis (N. Higham,
*Accuracy and Stability of Numerical Algorithms*, 2nd ed., sections 3.1 and 4.2): with unit round-off
:math:`u = 2^{-53}`, a sum or inner product of k terms in any order differs from the exact one by at most
:math:`\gamma_k = k u / (1 - k u)` times the sum of absolute values, plus at most one smallest denormal a product for
underflow. Overflow gives an infinite, hence useless but valid, result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

UNIT = 2.0**-53
#: Smallest positive (denormal) float: what one product may lose by underflow.
TINY = 5e-324


def gamma(terms: int) -> float:
    """Relative error of ``terms`` successive roundings, itself rounded up; infinite beyond 2^52."""
    loss = terms * UNIT
    return np.inf if loss >= 0.5 else float(loss / (1.0 - loss) * (1.0 + 4 * UNIT))


def up(value: ArrayLike, roundings: int = 1) -> NDArray[Any]:
    """At least the exact result that ``value`` approximates after ``roundings`` additions, products or quotients.

    Only for values built without cancellation (terms of one sign); nan becomes +inf.
    """
    value = np.asarray(value, dtype=float)
    with np.errstate(all="ignore"):
        wider = value + (gamma(roundings + 1) * np.abs(value) + roundings * TINY)
        return np.where(np.isnan(value), np.inf, np.nextafter(wider, np.inf))


def down(value: ArrayLike, roundings: int = 1) -> NDArray[Any]:
    """At most the exact result that ``value`` approximates; see :func:`up`. nan becomes -inf."""
    return -up(-np.asarray(value, dtype=float), roundings)


def sum_up(terms: ArrayLike) -> float:
    """At least the exact sum of ``terms``, whatever their signs."""
    terms = np.asarray(terms, dtype=float).ravel()
    with np.errstate(all="ignore"):
        total = float(terms.sum())
        if not np.isfinite(total):
            return -np.inf if np.isneginf(terms).any() and not (np.isposinf(terms) | np.isnan(terms)).any() else np.inf
        size = float(np.abs(terms).sum())
        return float(np.nextafter(total + gamma(2 * terms.size + 4) * size, np.inf))


def sum_down(terms: ArrayLike) -> float:
    """At most the exact sum of ``terms``, whatever their signs."""
    return -sum_up(-np.asarray(terms, dtype=float))


def dot_up(a: ArrayLike, b: ArrayLike) -> float:
    """At least the exact inner product of ``a`` and ``b``; a product of 0 and infinity counts as 0."""
    a, b = np.asarray(a, dtype=float).ravel(), np.asarray(b, dtype=float).ravel()
    with np.errstate(all="ignore"):
        terms = np.where((a == 0) | (b == 0), 0.0, a * b)
        return sum_up(np.where(terms == 0, np.where((a == 0) | (b == 0), 0.0, TINY), up(terms)))


def dot_down(a: ArrayLike, b: ArrayLike) -> float:
    """At most the exact inner product of ``a`` and ``b``; a product of 0 and infinity counts as 0."""
    return -dot_up(-np.asarray(a, dtype=float), b)


def quotient_up(numerator: float, denominator: float) -> float:
    """At least ``numerator / denominator`` for ``denominator`` > 0; infinite where that is 0 or not a number."""
    if not denominator > 0:
        return np.inf
    with np.errstate(all="ignore"):
        return float(up(np.float64(numerator) / np.float64(denominator)))


def quotient_down(numerator: float, denominator: float) -> float:
    """At most ``numerator / denominator`` for ``denominator`` > 0; -infinite where that is 0 or not a number."""
    return -quotient_up(-numerator, denominator)
