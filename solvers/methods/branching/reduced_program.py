r"""A smaller integer program with the same optimum: redundant rows, equal columns, and columns that others dominate.

Each step is valid for some optimal solution, if there is one within the given column bounds:

*rows*      A side of a row that no x within the column bounds violates is dropped.
*equal*     Columns with the same cost and entries become one, whose bounds are the sums of theirs.
*dominated* Let k and the columns J be in a row :math:`\sum x \le \kappa` over whole columns with lower bounds 0, let
            no column of J cost more than k or have an entry that makes a row harder to satisfy, and let their upper
            bounds add up to at least :math:`\kappa`. If :math:`x_k \ge 1`, some column of J is below its bound, and a
            unit can move there from k. So :math:`x_k = 0`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from opticoll.formulations.rounding import TINY, UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64

Mask: TypeAlias = "NDArray[np.bool_]"

#: A value this close to an integer, relatively, counts as that integer, whichever is weaker.
NEAR = 1e-9
#: Coefficients whose largest is more than this multiple of their greatest common divisor have no useful lattice.
MOST_UNITS = 10**7
#: Most entries of a dense comparison of the columns of one row.
MOST_COMPARED = 20_000_000
#: Most passes over all steps.
PASSES = 5


def common_step(values: F64) -> float | None:
    """Largest number of which all values are exact integer multiples; None if it is too small to be of use."""
    parts = [abs(Fraction(value)) for value in np.unique(np.abs(values)).tolist() if value]
    if not parts:
        return None
    step = Fraction(math.gcd(*(p.numerator for p in parts)), math.lcm(*(p.denominator for p in parts)))
    if max(parts) > MOST_UNITS * step or Fraction(float(step)) != step:
        return None
    return float(step)


@dataclass(frozen=True, eq=False)
class ReducedProgram:
    """A program ``form`` and how its columns represent those of the original.

    ``group`` is the column of ``form`` to which every original column belongs, ``(columns,)``, -1 for those at 0.
    """

    form: StandardForm
    group: I64
    lower: F64
    upper: F64

    def expanded(self, x: F64) -> F64:
        """A solution of the original program from one of this program."""
        result = np.zeros(self.group.size)
        for column, value in enumerate(x.tolist()):
            members = np.flatnonzero(self.group == column)
            if members.size == 1:
                result[members[0]] = value
                continue
            left = value
            for member in members.tolist():  # all have the lower bound 0
                result[member] = min(left, self.upper[member])
                left -= result[member]
        return result


def reduced(form: StandardForm, lower: F64, upper: F64) -> ReducedProgram:
    """Reduce a minimization under column bounds ``lower`` and ``upper``, ``(columns,)``, no looser than its own."""
    integer = np.asarray(form.integer, dtype=bool)
    group = np.arange(form.cost.size)
    now = replace(form, col_lower=lower, col_upper=upper, columns={}, rows={})
    now, group = _select(now, group, ~((lower == 0) & (upper == 0)))
    for _ in range(PASSES):
        before = now.A.shape
        now = _without_redundant_rows(now)
        now, group = _merged(now, group)
        now, group = _select(now, group, ~_dominated(now))
        if now.A.shape == before:
            break
    assert integer.size == group.size
    return ReducedProgram(now, group, lower, upper)


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


def _select(form: StandardForm, group: I64, kept: Mask) -> tuple[StandardForm, I64]:
    """The program without columns at 0."""
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    smaller = replace(
        form,
        A=sp.csc_array(form.A[:, np.flatnonzero(kept)]),
        col_lower=form.col_lower[kept],
        col_upper=form.col_upper[kept],
        cost=form.cost[kept],
        integer=np.asarray(form.integer)[kept],
    )
    return smaller, np.where(group >= 0, number[group], -1)


def _without_redundant_rows(form: StandardForm) -> StandardForm:
    A = sp.csr_array(form.A)
    entries, rows = A.tocoo(), A.shape[0]
    with np.errstate(all="ignore"):
        ends = [entries.data * form.col_lower[entries.col], entries.data * form.col_upper[entries.col]]
        size = np.bincount(entries.row, np.maximum(np.abs(ends[0]), np.abs(ends[1])), rows)
        loss = size * UNIT * 4.0 * (np.diff(A.indptr) + 4.0) + TINY * 8.0
        least = np.bincount(entries.row, np.minimum(*ends), rows) - loss
        most = np.bincount(entries.row, np.maximum(*ends), rows) + loss
        row_upper = np.where(most <= form.row_upper, np.inf, form.row_upper)
        row_lower = np.where(least >= form.row_lower, -np.inf, form.row_lower)
    kept = np.isfinite(row_upper) | np.isfinite(row_lower)
    return replace(form, A=sp.csc_array(A[np.flatnonzero(kept)]), row_lower=row_lower[kept], row_upper=row_upper[kept])


def _merged(form: StandardForm, group: I64) -> tuple[StandardForm, I64]:
    A, integer = form.A.sorted_indices(), np.asarray(form.integer, dtype=bool)
    first: dict[bytes, int] = {}
    leader = np.arange(form.cost.size)
    upper = form.col_upper.copy()
    for column in np.flatnonzero(form.col_lower == 0).tolist():
        at = slice(A.indptr[column], A.indptr[column + 1])
        key = b"".join(
            (A.indices[at].tobytes(), A.data[at].tobytes(), form.cost[column].tobytes(), bytes([bool(integer[column])]))
        )
        same = first.setdefault(key, column)
        if same != column:
            leader[column] = same
            upper[same] += upper[column]
    kept = leader == np.arange(leader.size)
    smaller, _ = _select(replace(form, col_upper=upper), group, kept)
    number = np.cumsum(kept) - 1
    return smaller, np.where(group >= 0, number[leader[group]], -1)


def _dominated(form: StandardForm) -> Mask:
    """The columns that can be 0 in some optimal solution since others are at least as good, ``(columns,)``."""
    A, integer = sp.csr_array(form.A), np.asarray(form.integer, dtype=bool)
    result = np.zeros(form.cost.size, dtype=bool)
    up, down = np.isfinite(form.row_upper), np.isfinite(form.row_lower)
    columns_of = form.A
    for row in np.flatnonzero(up).tolist():
        at = slice(A.indptr[row], A.indptr[row + 1])
        inside = A.indices[at]
        plain = (A.data[at] == 1.0).all() and integer[inside].all() and (form.col_lower[inside] == 0).all()
        if not plain or inside.size < 2:
            continue
        room = np.floor(form.row_upper[row] + 1e-6)
        part = sp.csr_array(columns_of[:, inside])
        touched = np.flatnonzero(np.diff(part.indptr))
        if inside.size**2 * touched.size > MOST_COMPARED:
            continue
        entries = part[touched].toarray()
        # Every row in the form "at most": both sides of an equation must be no harder to satisfy.
        sides = np.concatenate([entries[up[touched]], -entries[down[touched]], form.cost[None, inside]])
        for k in range(inside.size):
            better = (sides <= sides[:, k : k + 1]).all(axis=0)
            better &= (sides < sides[:, k : k + 1]).any(axis=0)  # equal columns are merged, not compared
            result[inside[k]] |= bool(form.col_upper[inside[better]].sum() >= room)
    return result
