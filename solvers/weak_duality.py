r"""Rigorous bounds on linear programs from approximate duals.

For :math:`\min c^\top x` over :math:`l_r \le A x \le u_r`, :math:`l_x \le x \le u_x`, any row duals y give

.. math:: \sum_i \min_{l_i \le r \le u_i} y_i r + \sum_j \min_{l_j \le x \le u_j} z_j x, \qquad z = c - A^\top y.

Here z is known as an interval only, since :math:`c - A^\top y` is computed in floating point; the bound takes the worst
z in it, and every product and sum is rounded down. A solver's z is rarely of the right sign everywhere, so a column
without a finite bound on the side where z may be wrong gets an implied one, from the rows and the bounds of the other
columns (A. Neumaier & O. Shcherbina, *Math. Programming* 99, 2004; C. Jansson, *SIAM J. Optim.* 14, 2004).

Where the rows do not imply one, the objective does: for any number v the optimum is at least v, or attained where
:math:`c^\top x \le v`. With v the value of the duals in ordinary arithmetic, the smaller of v and of the bound over
:math:`\{c^\top x \le v\}` holds, whatever v is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.outward import TINY, UNIT

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.solvers.standard_form import StandardForm

    F64 = NDArray[np.float64]


#: Most passes over the matrix that look for implied column bounds.
PASSES = 12
#: The objective's cutoff is this much, relative, above what the duals give in ordinary arithmetic.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class WeakDuality:
    """The bounds that duals prove on a problem turned into a minimization, without its offset.

    ``cost`` is that of the minimization, ``(columns,)``; ``A`` is CSC, ``(rows, columns)``.
    """

    A: sp.csc_array
    row_lower: F64
    row_upper: F64
    col_lower: F64
    col_upper: F64
    cost: F64

    @classmethod
    def of(cls, form: StandardForm) -> WeakDuality:
        """Prepare a problem; the objective of a maximization changes its sign."""
        cost = -form.cost if form.sense == "max" else form.cost
        return cls(form.A, form.row_lower, form.row_upper, form.col_lower, form.col_upper, cost)

    @cached_property
    def _absolute(self) -> sp.csr_array:
        return abs(self.A).T

    @cached_property
    def _entries(self) -> F64:
        """Nonzeros of every column."""
        return np.diff(self.A.indptr).astype(float)

    @cached_property
    def _inequalities(self) -> Inequalities:
        return Inequalities.of(self.A, self.row_lower, self.row_upper)

    @cached_property
    def _implied(self) -> tuple[F64, F64]:
        """The problem's own column bounds, infinite ones replaced by what the rows imply."""
        return self._inequalities.fill(self.col_lower, self.col_upper)

    def bound(self, y: F64, lower: F64 | None = None, upper: F64 | None = None, offset: float = 0.0) -> float:
        """What row duals ``y`` prove: at most the least ``cost @ x + offset`` in exact arithmetic, -inf if nothing.

        Parameters
        ----------
        y
            Any floats, ``(rows,)``; entries that are not finite count as 0, as do those whose sign an infinite row
            bound forbids.
        lower, upper
            Column bounds at least as tight as the problem's own, ``(columns,)``; None for those.
        """
        return _sum_down([self._bound(y, self.cost, lower, upper), offset])

    def empty(self, y: F64, lower: F64 | None = None, upper: F64 | None = None) -> bool:
        """Whether the ray ``y`` shows that nothing lies within the rows and the column bounds (Farkas)."""
        return self._bound(y, np.zeros(self.cost.size), lower, upper) > 0.0

    def _bound(self, y: F64, cost: F64, lower: F64 | None, upper: F64 | None) -> float:
        low = self.col_lower if lower is None else lower
        high = self.col_upper if upper is None else upper
        y = np.where(np.isfinite(y), y, 0.0)
        y = np.where((y > 0) & np.isneginf(self.row_lower) | (y < 0) & np.isposinf(self.row_upper), 0.0, y)
        with np.errstate(all="ignore"):
            least, most = self._reduced(y, cost)
            rows = _least_products(y, y, self.row_lower, self.row_upper)

            def complete() -> bool:
                return not ((most > 0) & np.isneginf(low) | (least < 0) & np.isposinf(high)).any()

            if not complete():
                implied = self._implied
                low, high = np.where(np.isneginf(low), implied[0], low), np.where(np.isposinf(high), implied[1], high)
            if complete():
                return _total(rows, _least_products(least, most, low, high))
            if not cost.any():
                return -np.inf
            # The duals' value in ordinary arithmetic, with infinite terms counted as 0, is the cutoff v.
            z = least / 2 + most / 2
            end = np.where(z > 0, low, high)
            cutoff = float(rows.sum() + np.where(np.isfinite(end), z * end, 0.0).sum())
            cutoff += SLACK * abs(cutoff)
            if not np.isfinite(cutoff):
                return -np.inf
            low, high = self._inequalities.and_cost(cost, cutoff).fill(low, high)
            if not complete():
                return -np.inf
            return min(cutoff, _total(rows, _least_products(least, most, low, high)))

    def _reduced(self, y: F64, cost: F64) -> tuple[F64, F64]:
        """Ends of intervals that contain ``cost - A.T @ y``, each ``(columns,)``."""
        z = cost - self.A.T @ y
        size = np.abs(cost) + self._absolute @ np.abs(y)
        # As many roundings as products and additions, and as many again in ``size`` itself.
        share = UNIT * (2.0 * self._entries + 8.0)
        error = size * (share / (1.0 - share)) * (1.0 + 8.0 * UNIT)
        used = y != 0
        if self.A.nnz and used.any() and np.abs(y[used]).min() * self._smallest < 1e-290:
            error += (4.0 * TINY) * (self._entries + 1.0)  # products may have lost everything by underflow
        error = np.where(np.isnan(error), np.inf, error)
        least = np.where(error > 0, np.nextafter(z - error, -np.inf), z)
        most = np.where(error > 0, np.nextafter(z + error, np.inf), z)
        return np.where(np.isnan(least), -np.inf, least), np.where(np.isnan(most), np.inf, most)

    @cached_property
    def _smallest(self) -> float:
        return float(np.abs(self.A.data).min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class Inequalities:
    """Rows ``sum of value * x[column] <= limit``, by their nonzeros."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: F64
    limit: F64

    @classmethod
    def of(cls, A: sp.csc_array, lower: F64, upper: F64) -> Inequalities:
        """Both sides of every row that are finite."""
        entries = A.tocoo()
        row, column, value = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
        below, above = np.isfinite(upper)[row], np.isfinite(lower)[row]
        return cls(
            np.concatenate([row[below], row[above] + upper.size]), np.concatenate([column[below], column[above]]),
            np.concatenate([value[below], -value[above]]), np.concatenate([upper, -lower]),
        )  # fmt: skip

    def and_cost(self, cost: F64, cutoff: float) -> Inequalities:
        """These and ``cost @ x <= cutoff``."""
        priced = np.flatnonzero(cost)
        return Inequalities(
            np.concatenate([self.row, np.full(priced.size, self.limit.size)]),
            np.concatenate([self.column, priced]),
            np.concatenate([self.value, cost[priced]]),
            np.append(self.limit, cutoff),
        )

    def fill(self, lower: F64, upper: F64) -> tuple[F64, F64]:
        """Column bounds, infinite ones replaced by finite ones that the rows and the other columns imply.

        Rounded outward, so that they hold for every x within rows and bounds; still infinite where nothing is implied
        within a few passes.
        """
        lower, upper = lower.copy(), upper.copy()
        rows = self.limit.size
        terms = np.bincount(self.row, minlength=rows) + 4.0
        share = UNIT * 2.0 * terms
        share = share / (1.0 - share) * (1.0 + 8.0 * UNIT)
        up_entry = self.value > 0
        for _ in range(PASSES):
            with np.errstate(all="ignore"):
                missing = np.where(up_entry, np.isposinf(upper[self.column]), np.isneginf(lower[self.column]))
                if not missing.any():
                    break
                term = self.value * np.where(up_entry, lower[self.column], upper[self.column])
                open_end = ~np.isfinite(term)
                term = np.where(open_end, 0.0, term)
                least = np.bincount(self.row, term, rows)
                size = np.bincount(self.row, np.abs(term), rows)
                loss = size * share + 4.0 * TINY * terms
                many = np.bincount(self.row, open_end, rows)
                usable = np.flatnonzero(missing & (many[self.row] == open_end))
                row, column, value = self.row[usable], self.column[usable], self.value[usable]
                # The others of the row add up to at least this.
                others = np.nextafter(np.nextafter(least[row] - term[usable], -np.inf) - loss[row], -np.inf)
                room = np.nextafter(self.limit[row] - others, np.inf)
                end = np.nextafter(room / np.abs(value), np.inf)
                finite = np.isfinite(end)
                above, below = finite & (value > 0), finite & (value < 0)
                before = np.isfinite(lower).sum() + np.isfinite(upper).sum()
                np.minimum.at(upper, column[above], end[above])
                np.maximum.at(lower, column[below], -end[below])
                if np.isfinite(lower).sum() + np.isfinite(upper).sum() == before:
                    break
        return lower, upper


def _least_products(least: F64, most: F64, lower: F64, upper: F64) -> F64:
    """At most the smallest ``z x`` over ``least <= z <= most``, ``lower <= x <= upper``; 0 times infinity is 0."""
    # z x is bilinear: its minimum lies at a corner.
    products = np.full(least.shape, np.inf)
    for z in (least,) if least is most else (least, most):
        for x in (lower, upper):
            zero = (z == 0) | (x == 0)
            products = np.minimum(products, np.where(zero, 0.0, np.nextafter(z * x, -np.inf)))
    return products


def _total(rows: F64, columns: F64) -> float:
    return _sum_down([*rows[rows != 0].tolist(), *columns[columns != 0].tolist()])


def _sum_down(terms: list[float]) -> float:
    """At most the exact sum of the terms, and that itself if it is a float; -inf where it overflows."""
    try:
        total = math.fsum(terms)  # correctly rounded
        left = math.fsum([*terms, -total]) if math.isfinite(total) else 0.0
    except (OverflowError, ValueError):
        return -math.inf
    if math.isnan(total):
        return -math.inf
    return math.nextafter(total, -math.inf) if left < 0 else total
