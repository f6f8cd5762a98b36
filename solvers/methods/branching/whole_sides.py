"""Sides of rows over integer columns, rounded to what these rows can attain."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64

#: A value this close to an integer, relatively, counts as that integer, whichever is weaker.
NEAR = 1e-9
#: Coefficients whose largest is more than this multiple of their greatest common divisor have no useful lattice.
MOST_UNITS = 10**7


def common_step(values: F64) -> float | None:
    """Largest number of which all values are exact integer multiples; None if it is too small to be of use."""
    parts = [abs(Fraction(value)) for value in np.unique(np.abs(values)).tolist() if value]
    if not parts:
        return None
    step = Fraction(math.gcd(*(p.numerator for p in parts)), math.lcm(*(p.denominator for p in parts)))
    if max(parts) > MOST_UNITS * step or Fraction(float(step)) != step:
        return None
    return float(step)


def with_whole_sides(form: StandardForm) -> StandardForm:
    """The program with sides of rows over integer columns, one without a bound, rounded to what the row can attain.

    If all entries of such a row are multiples of g, so is its value. So ``2 x - 2 y = 1`` has no solution, which
    branching shows only within bounds of x and y.
    """
    A, integer = sp.csr_array(form.A), np.asarray(form.integer, dtype=bool)
    loose = np.zeros(A.shape[0], dtype=bool)
    entries = A.tocoo()
    loose[entries.row[~integer[entries.col]]] = True
    endless = np.zeros(A.shape[0], dtype=bool)
    endless[entries.row[np.isinf(form.col_lower[entries.col]) | np.isinf(form.col_upper[entries.col])]] = True
    row_lower, row_upper = form.row_lower.copy(), form.row_upper.copy()
    for row in np.flatnonzero(~loose & endless).tolist():
        step = common_step(A.data[A.indptr[row] : A.indptr[row + 1]])
        if step is None:
            continue
        low, high = row_lower[row] / step, row_upper[row] / step
        near = NEAR * (1.0 + np.abs(np.nan_to_num([low, high], posinf=0.0, neginf=0.0)))
        low, high = np.ceil(low - near[0]), np.floor(high + near[1])
        row_lower[row], row_upper[row] = max(row_lower[row], low * step), min(row_upper[row], high * step)
    return replace(form, row_lower=row_lower, row_upper=row_upper)
