"""Sizes of a program's columns and rows, estimated from its data, so that nothing absolute depends on units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64


#: Largest value of an integer column that counts: larger bounds often stand for none.
REACH = 1e6


@dataclass(frozen=True)
class TermSizes:
    r"""Sizes of values, in the units of the program.

    An integer column moves by steps of 1, within its bounds. A continuous column is as large as the terms that it meets
    in a row: integer columns, right-hand sides, and other columns whose size is known.

    Parameters
    ----------
    least, most
        Smallest and largest estimate for each column, ``(columns,)``; 1 where nothing tells.
    row
        Largest term, or right-hand side, of each row, ``(rows,)``; 0 for an empty row.
    side
        Largest finite right-hand side of each row, ``(rows,)``.
    """

    least: F64
    most: F64
    row: F64
    side: F64

    @classmethod
    def of(cls, form: StandardForm) -> TermSizes:
        """Estimate the sizes of a program."""
        A = form.stored
        rows, columns = A.shape
        whole = np.asarray(form.integer, dtype=bool)
        row, column, value = A.indices, np.repeat(np.arange(columns), np.diff(A.indptr)), np.abs(A.data)
        side, ends = (
            np.maximum(*(np.where(np.isfinite(end), np.abs(end), 0.0) for end in pair))
            for pair in ((form.row_lower, form.row_upper), (form.col_lower, form.col_upper))
        )
        step, reach = whole.astype(float), np.where(whole, np.clip(ends, 1.0, REACH), 0.0)
        least, most = np.where(whole, 1.0, np.where(ends > 0, ends, np.inf)), np.where(whole, reach, 0.0)
        alone = np.bincount(row, minlength=rows) == 1  # such a row is a bound, which may be loose
        for sizes, known, keep in ((step, least, np.minimum), (reach, most, np.maximum)):
            size, open_ = sizes, ~whole
            counted = np.ones(row.size, dtype=bool) if known is least else ~alone[row]
            while True:
                largest = side.copy()
                np.maximum.at(largest, row, value * size[column])
                used = counted & open_[column] & (largest[row] > 0)
                if not used.any():
                    break
                keep.at(known, column[used], largest[row[used]] / value[used])
                found = np.zeros(columns, dtype=bool)
                found[column[used]] = True
                size, open_ = np.where(open_ & found, known, size), open_ & ~found
        least = np.where(np.isfinite(least), least, 1.0)
        most = np.maximum(most, least)
        largest = side.copy()
        np.maximum.at(largest, row, value * most[column])
        return cls(least, most, largest, side)


#: Largest denominator of the costs in multiples of the smallest, and largest part of a step by which values may miss
#: its multiples, as the costs are rounded.
DENOMINATOR, MISSED = 1000, Fraction(1, 10**7)


def objective_steps(form: StandardForm) -> tuple[Fraction, Fraction] | None:
    """A step, and how far every solution's value may be from ``offset`` plus a multiple of it; None if unknown.

    Costs of 3e-8 and 5e-8 are multiples of 1e-8 but for rounding errors: within finite column bounds, values are too.
    """
    priced = np.flatnonzero(form.cost)
    costs = np.abs(form.cost[priced])
    if priced.size == 0 or not np.asarray(form.integer)[priced].all():
        return None
    if priced.size == 1:
        return Fraction(float(costs[0])), Fraction(0)
    if costs.max() <= 2**53 and (costs == np.rint(costs)).all():
        return Fraction(int(np.gcd.reduce(costs.astype(np.int64)))), Fraction(0)
    distinct, which = np.unique(costs, return_inverse=True)
    ratios = [Fraction(float(one / distinct[0])).limit_denominator(DENOMINATOR) for one in distinct]
    step = Fraction(float(distinct[0])) / math.lcm(*(ratio.denominator for ratio in ratios))
    smallest = Fraction(float(distinct[0]))
    errors = [abs(float(Fraction(float(one)) - ratio * smallest)) for one, ratio in zip(distinct, ratios, strict=True)]
    off = np.array(errors)[which]
    reach = np.maximum(np.abs(form.col_lower), np.abs(form.col_upper))[priced]
    missed = float((off[off > 0] * reach[off > 0]).sum()) * (1.0 + 1e-9)
    return (step, Fraction(missed)) if missed <= MISSED * step else None
