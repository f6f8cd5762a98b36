r"""Verify solutions on the matrix and recompute bounds from duals, using only numpy.

Bounds from approximate duals. For :math:`\min c^\top x` over :math:`l_r \le A x \le u_r`, :math:`l_x \le x \le u_x`,
any row duals y give

.. math:: \sum_i \min_{l_i \le r \le u_i} y_i r + \sum_j \min_{l_j \le x \le u_j} z_j x, \qquad z = c - A^\top y.

Here z is only known as an interval, since :math:`c - A^\top y` is computed in floating point; the bound uses the worst
z in it, and every product and sum is rounded down. A solver's z rarely has the right sign everywhere, so a column
without a finite bound on the side where z may be wrong gets an implied one, from the rows and the bounds of the other
columns (A. Neumaier & O. Shcherbina, *Math. Programming* 99, 2004; C. Jansson, *SIAM J. Optim.* 14, 2004).

If the rows do not imply one, the objective does: for any number v the optimum is at least v, or attained where
:math:`c^\top x \le v`. With v the value of the duals in ordinary arithmetic, the smaller of v and of the bound over
:math:`\{c^\top x \le v\}` holds, whatever v is.

Where nothing bounds a column, as where it is free, z must have the right sign exactly: it is computed in rational
arithmetic for these columns. Where that does not have it either, :mod:`opticoll.solvers.exact.lp_bound` finds
multipliers that do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Number, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import declared_axes
from opticoll.formulations.model import Bound, is_own
from opticoll.formulations.registry import in_floats
from opticoll.formulations.rounding import TINY, UNIT, fraction_down, fraction_up
from opticoll.formulations.standard_form import packed
from opticoll.formulations.variables import is_finite, stored
from opticoll.plugin_faults import place_of
from opticoll.solvers.task import PROVEN, Fields, Proof

if TYPE_CHECKING:
    import scipy.sparse as sp

    from opticoll.formulations import Formulation
    from opticoll.formulations.standard_form import Columns, StandardForm
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Json


#: Most passes over the matrix that look for implied column bounds.
PASSES = 12
#: Relative distance of the objective's cutoff above the value of the duals in ordinary arithmetic.
SLACK = 1e-9
#: Most nonzeros of columns whose reduced costs are computed in rational arithmetic (about 1 us each).
EXACT_NONZEROS = 200_000


@dataclass(frozen=True, eq=False)
class WeakDuality:
    """The bounds that duals prove on a problem written as a minimization, without its offset.

    ``cost`` is that of the minimization, ``(columns,)``; ``A`` is CSC, ``(rows, columns)``.
    """

    A: Columns | sp.csc_array
    row_lower: F64
    row_upper: F64
    col_lower: F64
    col_upper: F64
    cost: F64

    @classmethod
    def of(cls, form: StandardForm) -> WeakDuality:
        """Prepare a problem; the objective of a maximization changes its sign."""
        cost = -form.cost if form.sense == "max" else form.cost
        return cls(form.stored, form.row_lower, form.row_upper, form.col_lower, form.col_upper, cost)

    @cached_property
    def _absolute(self) -> Any:
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

    def bound(
        self,
        y: F64,
        lower: F64 | None = None,
        upper: F64 | None = None,
        offset: float = 0.0,
        row_upper: F64 | None = None,
    ) -> float:
        """Lower bound on ``cost @ x + offset``, valid in exact arithmetic, from row duals ``y``; -inf if none.

        Parameters
        ----------
        y
            Any floats, ``(rows,)``; entries that are not finite count as 0, as do those whose sign an infinite row
            bound forbids.
        lower, upper
            Column bounds at least as tight as the problem's own, ``(columns,)``; None for the problem's own.
        row_upper
            Upper row bounds at least as tight as the problem's own, ``(rows,)``; None for the problem's own.
        """
        return _sum_down([self._bound(y, self.cost, lower, upper, row_upper), offset])

    def empty(self, y: F64, lower: F64 | None = None, upper: F64 | None = None, row_upper: F64 | None = None) -> bool:
        """Whether the ray ``y`` proves that no x satisfies the rows and the column bounds (Farkas)."""
        return self._bound(y, np.zeros(self.cost.size), lower, upper, row_upper) > 0.0

    def _bound(self, y: F64, cost: F64, lower: F64 | None, upper: F64 | None, row_upper: F64 | None) -> float:
        low = self.col_lower if lower is None else lower
        high = self.col_upper if upper is None else upper
        most_of_row = self.row_upper if row_upper is None else row_upper
        y = np.where(np.isfinite(y), y, 0.0)
        y = np.where((y > 0) & np.isneginf(self.row_lower) | (y < 0) & np.isposinf(most_of_row), 0.0, y)
        with np.errstate(all="ignore"):
            least, most = self.reduced(y, cost)
            rows = _least_products(y, y, self.row_lower, most_of_row)

            def unbounded() -> Mask:
                return (most > 0) & np.isneginf(low) | (least < 0) & np.isposinf(high)

            def total() -> float:
                return _total(rows, _least_products(least, most, low, high))

            if not unbounded().any():
                return total()
            implied = self._implied
            low, high = np.where(np.isneginf(low), implied[0], low), np.where(np.isposinf(high), implied[1], high)
            if not (unknown := unbounded()).any():
                return total()
            # The duals' value in ordinary arithmetic, with infinite terms counted as 0, is the cutoff v.
            z = least / 2 + most / 2
            end = np.where(z > 0, low, high)
            cutoff = float(rows.sum() + np.where(np.isfinite(end), z * end, 0.0).sum())
            cutoff += SLACK * abs(cutoff)
            cut = bool(cost.any() and np.isfinite(cutoff))
            without = low, high
            if cut:
                low, high = self._inequalities.and_cost(cost, cutoff).fill(low, high)
                if not unbounded().any():
                    return min(cutoff, total())
            self._replace_by_exact(np.flatnonzero(unknown), y, cost, least, most)
            best = min(cutoff, total()) if cut and not unbounded().any() else -np.inf
            low, high = without
            return best if unbounded().any() else max(best, total())

    def _replace_by_exact(self, columns: I64, y: F64, cost: F64, least: F64, most: F64) -> None:
        """Narrow the intervals of reduced costs at ``columns`` in place, unless their nonzeros are very many."""
        starts, rows, values = self.A.indptr, self.A.indices, self.A.data
        if self._entries[columns].sum() > EXACT_NONZEROS:
            return
        for j in columns.tolist():
            part = slice(starts[j], starts[j + 1])
            z = Fraction(float(cost[j]))
            for price, value in zip(y[rows[part]].tolist(), values[part].tolist(), strict=True):
                if price and value:
                    z -= Fraction(price) * Fraction(value)
            least[j], most[j] = fraction_down(z), fraction_up(z)

    def reduced(self, y: F64, cost: F64) -> tuple[F64, F64]:
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

    row: I64
    column: I64
    value: F64
    limit: F64

    @classmethod
    def of(cls, A: Columns | sp.csc_array, lower: F64, upper: F64) -> Inequalities:
        """The finite sides of every row."""
        row, value = A.indices.astype(np.int64), A.data
        column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
        below, above = np.isfinite(upper)[row], np.isfinite(lower)[row]
        return cls(
            np.concatenate([row[below], row[above] + upper.size]),
            np.concatenate([column[below], column[above]]),
            np.concatenate([value[below], -value[above]]),
            np.concatenate([upper, -lower]),
        )

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

        Rounded outward, so they are valid for every x within rows and bounds; still infinite if nothing is implied
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
                # The other terms of the row add up to at least this.
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
    """Lower bound on ``z x`` over ``least <= z <= most``, ``lower <= x <= upper``; 0 times infinity is 0."""
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
    """Lower bound on the exact sum of the terms, tight if that is a float; -inf if it overflows."""
    try:
        total = math.fsum(terms)  # correctly rounded
        left = math.fsum([*terms, -total]) if math.isfinite(total) else 0.0
    except (OverflowError, ValueError):
        return -math.inf
    if math.isnan(total):
        return -math.inf
    return math.nextafter(total, -math.inf) if left < 0 else total


#: Largest violation, relative to the size of the row or block, that counts as feasible.
FEASIBLE = 1e-6
#: Relative amount by which the value of a point that is feasible within tolerances may exceed a valid bound.
PAST = 1e-9


def residuals(formulation: Formulation, values: Mapping[str, F64]) -> dict[str, float]:
    """The worst violation of every block of constraints by the formulation's own checker; 0 if there is none.

    Infinite where an entry is not finite, which a checker need not read.

    Raises
    ------
    BadInput
        If the checker does not return a number for each block.
    """
    if not all(map(is_finite, stored(values).values())):
        return {"finite": math.inf}
    result = formulation.residuals(values)
    if not isinstance(result, Mapping) or not result or not all(map(_is_number, result.values())):
        what = f"{_hook(formulation, 'residuals')} returned {str(result)[:60]}"
        msg = f"{what}; return the worst violation of every block of constraints, by its name"
        raise BadInput(msg)
    if is_own(formulation):
        result = {**declared_axes.negative(formulation, values), **result}
    return {str(block): 0.0 if worst <= 0 else float(worst) for block, worst in result.items()}


def violated(violations: Mapping[str, float]) -> str | None:
    """Describe the block of constraints that a solution violates most; None if it satisfies all within tolerance."""
    if all(worst <= FEASIBLE for worst in violations.values()):
        return None
    block, worst = max(violations.items(), key=lambda item: math.inf if math.isnan(item[1]) else item[1])
    if math.isnan(worst):
        return f"residuals returned nan for {block!r}"
    return f"{block} is violated by {worst:.3g} (relative; {FEASIBLE:g} allowed)"


def objective(formulation: Formulation, values: Mapping[str, F64]) -> float:
    """The objective of a solution, by the formulation's own function.

    Raises
    ------
    BadInput
        If it does not return a number.
    """
    result = formulation.objective(values)
    if not _is_number(result):
        msg = f"{_hook(formulation, 'objective')} returned {str(result)[:60]}; return a number"
        raise BadInput(msg)
    return float(result) + 0.0  # no -0.0


def certified(formulation: Formulation, duals: Mapping[str, F64]) -> Bound | None:
    """The bound that duals prove by the formulation's own certificate; None if they prove nothing.

    Raises
    ------
    BadInput
        If the certificate cannot read them.
    """
    try:
        bound = formulation.certify(duals)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        msg = f"{_hook(formulation, 'certify')} rejected the duals: {type(error).__name__}: {error}"
        raise BadInput(msg) from error
    undefined = isinstance(bound, Bound) and is_own(formulation) and math.isnan(bound.value)
    if not isinstance(bound, Bound | None) or undefined:
        returned = bound.value if isinstance(bound, Bound) else str(bound)[:60]
        msg = f"{_hook(formulation, 'certify')} returned {returned!r}; return a Bound or None"
        raise BadInput(msg)
    return bound if bound is None or not is_own(formulation) else in_floats(bound, formulation.sense)


def _is_number(value: object) -> bool:
    """Whether a value is a real number, of Python or of numpy, or an array without axes that holds one."""
    held = isinstance(value, np.ndarray | np.generic) and value.ndim == 0 and value.dtype.kind in "biuf"
    return held or isinstance(value, Real)


def properties(formulation: Formulation, hook: Literal["metrics", "describe"], *arguments: Any) -> dict[str, Json]:
    """The result of the formulation's own function ``metrics`` or ``describe``; empty if it has none.

    Raises
    ------
    BadInput
        If it does not return a mapping of names to JSON values.
    """
    if hook == "metrics":
        # Without a value, a formulation from outside the package is not asked.
        result = {} if is_own(formulation) and arguments == (None,) else formulation.metrics(*arguments)
    else:
        result = formulation.describe(*arguments)
    try:
        if not isinstance(result, Mapping) or not all(isinstance(name, str) for name in result):
            raise TypeError(result)
        json.dumps(dict(result), default=_held, skipkeys=True)
    except (TypeError, ValueError, AttributeError) as error:
        what = f"{_hook(formulation, hook)} returned {str(result)[:60]}"
        msg = f"{what}; return a mapping of names to numbers, strings or lists of these"
        raise BadInput(msg) from error
    return dict(result)


def _held(value: Any) -> Any:
    """A value that :func:`~opticoll.solvers.task.plain` converts, for the ``json`` module."""
    if isinstance(value, Mapping | Fields):
        return dict(value.items())
    return str(value) if isinstance(value, (set, frozenset, Number)) else value.tolist()


def _hook(formulation: Formulation, hook: str) -> str:
    return f"{place_of(getattr(formulation, hook))}formulation {formulation.name!r}: {hook}"


def matrix_violations(form: StandardForm, x: F64) -> dict[str, float]:
    """Worst violation of rows, column bounds and integrality by ``x``, shape ``(columns,)``.

    A row's violation is relative to ``max(1e-3, |bound|, largest |A_ij x_j| in the row)``, a column's to
    ``max(1, |bound|)``. In an integer program whose rows or continuous columns are smaller than 1 by their data
    (:class:`opticoll.formulations.term_sizes.TermSizes`), 1e-3 and 1 are multiplied by that size: the units of the
    program do not matter. Anything that is not a finite vector of the right length violates infinitely.
    """
    if x.shape != (form.stored.shape[1],) or not np.isfinite(x).all():
        return {"matrix.rows": np.inf, "matrix.columns": np.inf, "matrix.integrality": np.inf}
    A = form.stored
    activity = A @ x
    largest = np.zeros(activity.size)
    np.maximum.at(largest, A.indices, np.abs(A.data) * np.repeat(np.abs(x), np.diff(A.indptr)))
    row_size, column_size = np.ones(activity.size), np.ones(x.size)
    if form.is_mip:
        row_size, column_size = (np.minimum(size, 1.0) for size in (form.sizes.row, form.sizes.most))
    rows = _outside(activity, form.row_lower, form.row_upper, np.maximum(largest, 1e-3 * row_size))
    columns = _outside(x, form.col_lower, form.col_upper, column_size)
    fractions = np.abs(x - np.round(x))[np.asarray(form.integer)]
    return {
        "matrix.rows": rows,
        "matrix.columns": columns,
        "matrix.integrality": float(fractions.max(initial=0.0)),
    }


def crossed(form: StandardForm) -> str | None:
    """Describe a row or column whose bounds no finite number satisfies, or no integer for an integer column."""
    integer = np.asarray(form.integer, dtype=bool)
    for kind, lower, upper, whole, names in (
        ("row", form.row_lower, form.row_upper, np.zeros(form.row_lower.size, dtype=bool), form.row_names),
        ("column", form.col_lower, form.col_upper, integer, form.column_names),
    ):
        least, most = np.where(whole, np.ceil(lower), lower), np.where(whole, np.floor(upper), upper)
        wrong = (least > most) | (lower == np.inf) | (upper == -np.inf)
        if wrong.any():
            at = int(np.argmax(wrong))
            ends = f"at least {float(lower[at])!r} and at most {float(upper[at])!r}"
            return f"the bounds of {kind} {names()[at]}: {'an integer ' if whole[at] else ''}{ends}"
    return None


def whole(form: StandardForm, x: F64) -> F64:
    """``x`` with its integer columns rounded, unless that violates the matrix more: solvers return 4.999999999."""
    rounded = np.where(np.asarray(form.integer), np.round(x), x) if x.shape == (form.stored.shape[1],) else x
    if not np.isfinite(x).all() or np.array_equal(rounded, x):
        return x
    before, after = (max(matrix_violations(form, point).values()) for point in (x, rounded))
    return rounded if after <= before else x


def _outside(value: F64, lower: F64, upper: F64, size: F64) -> float:
    missed = np.concatenate([lower - value, value - upper])
    ends = np.concatenate([lower, upper])
    wrong = missed > 0
    size = np.concatenate([size, size])[wrong]
    with np.errstate(divide="ignore"):  # a row without terms
        share = missed[wrong] / np.maximum(size, np.where(np.isfinite(ends[wrong]), np.abs(ends[wrong]), 0.0))
    return float(share.max(initial=0.0))


def dual_bound(form: StandardForm, duals: F64) -> float:
    r"""The bound that row duals prove on the objective of the problem's continuous relaxation, by weak duality.

    It holds in exact arithmetic for any floats, see :mod:`opticoll.solvers.verify`; infinite if they prove
    nothing.

    Parameters
    ----------
    form
        The problem.
    duals
        Shape ``(rows,)``, d(objective)/d(rhs).
    """
    problem, y = WeakDuality.of(form), np.asarray(duals, dtype=float)
    if form.sense == "max":
        return -problem.bound(-y, offset=-form.offset)
    return problem.bound(y, offset=form.offset)


def _cheapest(price: F64, lower: F64, upper: F64) -> float:
    end = np.where(price > 0, lower, upper)
    return float((price[price != 0] * end[price != 0]).sum())


def kkt(form: StandardForm, x: F64, duals: F64 | None) -> dict[str, float | None]:
    r"""Accuracy of a linear program's answer: relative residuals of its optimality conditions.

    With the rows' duals y and the reduced costs :math:`z = c - A^\top y` (signs turned for max), an exact optimum has
    all three at 0:

    ``primal``
        worst violation of a row over the largest of :math:`|A_{ij} x_j|` and the bounds violated; of a column over
        the largest of :math:`|x_j|` and the bounds violated; the greater of the two.
    ``dual``
        worst reduced cost whose sign an infinite column bound forbids, over the largest of :math:`|c_j|` and
        :math:`|A_{ij} y_i|`; worst dual whose sign an infinite row bound forbids, over the largest :math:`|y_i|`.
    ``gap``
        :math:`|p - d| / \max(|p|, |d|)`, p the objective at x, d that of y and z with forbidden signs set to 0.

    All are taken over norms of the data and the vectors themselves, without a ``1 +``: stating the problem in other
    units does not change them.

    Parameters
    ----------
    form
        The problem; integrality is ignored.
    x
        Shape ``(columns,)``, as the solver returned it.
    duals
        Shape ``(rows,)``, d(objective)/d(rhs); None leaves ``dual`` and ``gap`` unknown.

    Returns
    -------
    dict
        Keys ``primal``, ``dual``, ``gap``; infinite for a vector of wrong length or with entries that are not finite.
    """
    rows, columns = form.stored.shape
    if x.shape != (columns,) or not np.isfinite(x).all():
        return {"primal": np.inf, "dual": None if duals is None else np.inf, "gap": None if duals is None else np.inf}
    activity = form.stored @ x
    primal = max(
        _left_over(activity, form.row_lower, form.row_upper, _largest_term(form, x, np.ones(rows))),
        _left_over(x, form.col_lower, form.col_upper, float(np.abs(x).max(initial=0.0))),
    )
    if duals is None:
        return {"primal": primal, "dual": None, "gap": None}
    if duals.shape != (rows,) or not np.isfinite(duals).all():
        return {"primal": primal, "dual": np.inf, "gap": np.inf}
    flip = -1.0 if form.sense == "max" else 1.0
    y = flip * np.asarray(duals, dtype=float)
    z = flip * form.cost - form.stored.T @ y
    y_wrong, z_wrong = _forbidden(y, form.row_lower, form.row_upper), _forbidden(z, form.col_lower, form.col_upper)
    size = max(float(np.abs(form.cost).max(initial=0.0)), _largest_term(form, np.ones(columns), y))
    dual = max(_over(y_wrong, float(np.abs(y).max(initial=0.0))), _over(z_wrong, size))
    y, z = np.where(y_wrong > 0, 0.0, y), np.where(z_wrong > 0, 0.0, z)
    proven = _cheapest(y, form.row_lower, form.row_upper) + _cheapest(z, form.col_lower, form.col_upper)
    value, bound = form.objective(x), flip * proven + form.offset
    return {"primal": primal, "dual": dual, "gap": abs(value - bound) / max(abs(value), abs(bound), 1e-12)}


def _largest_term(form: StandardForm, x: F64, y: F64) -> float:
    """Largest ``|y_i A_ij x_j|``."""
    A = form.stored
    terms = A.data * y[A.indices] * np.repeat(x, np.diff(A.indptr))
    return float(np.abs(terms).max(initial=0.0))


def size_of_terms(form: StandardForm, x: F64) -> float:
    """The sum of the sizes of the objective's terms at ``x``, (columns,): what its rounding errors are relative to."""
    return float(np.abs(form.cost * x).sum()) + abs(form.offset)


def _left_over(value: F64, lower: F64, upper: F64, size: float) -> float:
    """Worst step outside the bounds, over ``size`` or the largest bound that is violated."""
    missed = np.concatenate([lower - value, value - upper])
    ends = np.concatenate([lower, upper])[missed > 0]
    return _over(missed, max(size, float(np.abs(ends).max(initial=0.0))))


def _forbidden(price: F64, lower: F64, upper: F64) -> F64:
    """Size of the prices whose sign an infinite bound forbids, 0 for the others."""
    wrong = ((price > 0) & np.isneginf(lower)) | ((price < 0) & np.isposinf(upper))
    return np.where(wrong, np.abs(price), 0.0)


def _over(values: F64, size: float) -> float:
    worst = float(values.max(initial=0.0))
    return worst / size if worst > 0 else 0.0


def pack(form: StandardForm, values: Mapping[str, F64]) -> F64 | None:
    """The column vector of named arrays; None if some column has no name, or no value as in another form of a model."""
    x = packed(form.columns, form.stored.shape[1], values)
    return None if np.isnan(x).any() else x


def relative_gap(objective: float | None, bound: float | None, sense: str) -> float | None:
    """``(bound - objective) / |objective|`` signed so that a valid bound gives >= 0; None if either is missing.

    An objective of 0 has gap 0 to a bound of 0 and an infinite gap to any other. An objective beyond the bound by at
    most :data:`PAST` of the larger of the two has gap 0: its point is feasible only within a tolerance.
    """
    if objective is None or bound is None or not np.isfinite([objective, bound]).all():
        return None
    difference = bound - objective if sense == "max" else objective - bound
    if -PAST * max(abs(objective), abs(bound)) <= difference <= 0:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.float64(difference) / abs(objective))


def closes(bound: Bound | None, objective: float | None, sense: str, tol: float) -> bool:
    """Whether a bound proves that an objective is optimal, within a relative tolerance."""
    gap = None if bound is None else relative_gap(objective, bound.value, sense)
    return gap is not None and 0 <= gap <= tol


def prove(
    *, verified: bool, objective: float | None, bound: float | None, sense: str, tol: float
) -> tuple[Proof, float | None]:
    """The proof status that a verified value and a bound of our own allow, and the gap.

    A negative gap means that value and bound contradict each other, so nothing is proven. Nothing is proven either by
    an infinite gap, that of an objective of 0.
    """
    have_bound = bound is not None and bool(np.isfinite(bound))
    if not verified or objective is None:
        return (Proof.BOUND_ONLY if have_bound else Proof.NONE), None
    gap = relative_gap(objective, bound, sense)
    if gap is None or not 0 <= gap < np.inf:
        return Proof.FEASIBLE, gap if gap is not None and np.isfinite(gap) else None
    return (Proof.OPTIMAL if gap <= tol else Proof.CERTIFIED_GAP), gap


def capped(proof: Proof, gap: float | None, data_proof: Proof, data_gap: float | None) -> tuple[Proof, float | None]:
    """The proof and gap of a value whose data are another run's solution: the weaker proof and the wider gap.

    Value and bound are valid for these data only; the proof of the data limits how far these may be from optimal ones.
    """
    if data_proof in PROVEN:
        return proof, gap
    wider = None if gap is None or data_gap is None else max(gap, data_gap)
    return max(proof, data_proof, key=list(Proof).index), wider


def contradiction(bounds: list[Bound], objective: float | None, sense: str) -> str | None:
    """Describe two of our own numbers that cannot both be right; None if there are none.

    No bound may be tighter than an exact one, and no verified value better than any bound, except by :data:`PAST`.
    """
    best = tightest(bounds, sense)
    if best is None:
        return None
    for exact in bounds:
        if exact.exact and (relative_gap(exact.value, best.value, sense) or 0.0) < 0:
            return (
                f"bounds contradict each other: {best.name} gives {best.value:.12g}, but according to {exact.name} "
                f"the optimum is {exact.value:.12g}"
            )
    if (relative_gap(objective, best.value, sense) or 0.0) < 0:
        return (
            f"value and bound contradict each other: the value {objective:.12g} satisfies every constraint, but "
            f"{best.name} gives {best.value:.12g}"
        )
    return None


def differing_from(bounds: list[Bound], objective: float | None, sense: str) -> list[Bound]:
    """The bounds that differ from a value by more than the violation that it may have."""
    gaps = (relative_gap(objective, bound.value, sense) for bound in bounds)
    return [bound for bound, gap in zip(bounds, gaps, strict=True) if gap is not None and abs(gap) > FEASIBLE]


def misstated(
    formulation: Formulation, form: StandardForm | None, values: Mapping[str, F64], objective: float
) -> str | None:
    """Describe how a user-defined build's objective differs from the formulation's function; None if it agrees.

    Bounds come from the build and the value from the function, so they can only be compared if both agree.
    """
    x = None if form is None or not is_own(formulation) else pack(form, values)
    if form is None or x is None:
        return None
    built = float(form.cost @ x) + form.offset
    if abs(built - objective) <= FEASIBLE * max(1.0, abs(built), abs(objective)):
        return None
    return (
        f"objectives contradict each other: that of the build is {built:.12g} at this solution, but objective() "
        f"returns {objective:.12g}"
    )


def tightest(bounds: list[Bound], sense: str) -> Bound | None:
    """The tightest of the finite bounds, of equal ones an exact one; None if there is none."""
    finite = [b for b in bounds if np.isfinite(b.value)]
    if not finite:
        return None
    if sense == "max":
        return min(finite, key=lambda b: (b.value, not b.exact))
    return max(finite, key=lambda b: (b.value, b.exact))
