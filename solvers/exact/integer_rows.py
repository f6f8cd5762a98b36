r"""Equations that no integers satisfy.

Let :math:`A x = b` be the equations of a program whose columns are all integer, with columns that are fixed moved to
the right. They have no integer solution if and only if some rational y makes :math:`y A` integer and :math:`y b` not,
as for 2 x + 2 y = 3 with y = 1/2. Such a y is a row of :math:`H^{-1}`, where :math:`A U = (H\ 0)` is the Hermite normal
form of independent equations (Schrijver, Theory of Linear and Integer Programming, 1986, section 4.1).

Branching shows the same only by trying all values within the bounds of the columns.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounding import decimal
from opticoll.solvers.verify import FEASIBLE

if TYPE_CHECKING:
    import scipy.sparse as sp

    from opticoll.formulations.standard_form import StandardForm

#: Most equations, and most entries of the matrix of all equations and their columns.
MOST_ROWS, MOST_ENTRIES = 100, 50_000
#: Multipliers shown.
MOST_SHOWN = 4


def contradiction(form: StandardForm) -> str | None:
    """Describe a multiple of the equations that no integers satisfy; None if there is none, or too many equations.

    Numbers are read as the shortest decimals that they are written as. Solutions within the tolerance of rows are
    excluded, too: y b must be farther from an integer than such solutions can move it.
    """
    import scipy.sparse as sp

    rows, fixed = _equations(form)
    if not rows.size or rows.size > MOST_ROWS:
        return None
    A = sp.csr_array(form.A)[rows]
    columns = np.setdiff1d(np.unique(A.indices), np.flatnonzero(fixed))
    if not columns.size or columns.size * rows.size > MOST_ENTRIES:
        return None
    entries, right = _in_fractions(form, A, rows, columns)
    y = _multipliers(entries, right, columns.size)
    if y is None:
        return None
    product = _product(y, entries)
    value = sum((factor * side for factor, side in zip(y, right, strict=True)), Fraction(0))
    scale = sum(abs(factor) * max(Fraction(1), abs(side)) for factor, side in zip(y, right, strict=True))
    if any(total.denominator != 1 for total in product.values()) or abs(value - round(value)) <= scale * Fraction(
        FEASIBLE
    ):
        return None
    names = form.row_names()
    shown = [f"{factor} {names[row]}" for factor, row in zip(y, rows.tolist(), strict=True) if factor]
    more = f" + {len(shown) - MOST_SHOWN} more" if len(shown) > MOST_SHOWN else ""
    total = " + ".join(shown[:MOST_SHOWN]) + more
    return f"rows {total}: an integer on the left, {value} on the right"


def _equations(form: StandardForm) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the equations whose columns are integer or fixed, and which columns are fixed."""
    import scipy.sparse as sp

    integer = np.asarray(form.integer, dtype=bool)
    fixed = (form.col_lower == form.col_upper) & np.isfinite(form.col_lower)
    entries = sp.coo_array(form.A)
    loose = np.zeros(form.row_lower.size, dtype=bool)
    loose[entries.row[~(integer | fixed)[entries.col]]] = True
    used = np.zeros(form.row_lower.size, dtype=bool)
    used[entries.row[~fixed[entries.col]]] = True
    equal = (form.row_lower == form.row_upper) & np.isfinite(form.row_lower)
    return np.flatnonzero(equal & used & ~loose), fixed


def _in_fractions(
    form: StandardForm, A: sp.csr_array, rows: np.ndarray, columns: np.ndarray
) -> tuple[list[dict[int, Fraction]], list[Fraction]]:
    """Entries of the equations A by place in ``columns``, and right-hand sides, to which other columns are moved."""
    place = {int(column): k for k, column in enumerate(columns)}
    entries: list[dict[int, Fraction]] = []
    right: list[Fraction] = []
    for k, row in enumerate(rows.tolist()):
        at = slice(A.indptr[k], A.indptr[k + 1])
        terms = {int(j): decimal(value) for j, value in zip(A.indices[at], A.data[at], strict=True)}
        moved = sum(value * decimal(form.col_lower[j]) for j, value in terms.items() if j not in place)
        entries.append({place[j]: value for j, value in terms.items() if j in place})
        right.append(decimal(form.row_lower[row]) - moved)
    return entries, right


def _multipliers(entries: list[dict[int, Fraction]], right: list[Fraction], columns: int) -> list[Fraction] | None:
    """The y of the module's docstring; None if the equations have an integer solution."""
    from flint import fmpq, fmpq_mat, fmpz_mat

    # Whole numbers, by a factor of every row.
    factors = [math.lcm(*(value.denominator for value in terms.values())) for terms in entries]
    across = fmpz_mat(columns, len(entries))
    for k, (terms, factor) in enumerate(zip(entries, factors, strict=True)):
        for j, value in terms.items():
            across[j, k] = int(value * factor)
    reduced, _, rank = across.rref()
    independent, k = [], 0
    for i in range(rank):
        while reduced[i, k] == 0:
            k += 1
        independent.append(k)
    chosen = fmpz_mat(columns, rank)
    for new, old in enumerate(independent):
        for j in range(columns):
            chosen[j, new] = across[j, old]
    form = chosen.hnf()
    H = fmpq_mat(rank, rank, [fmpq(form[j, i]) for i in range(rank) for j in range(rank)])
    inverse = H.inv()
    for i in range(rank):
        y = [Fraction(0)] * len(entries)
        for new, old in enumerate(independent):
            part = inverse[i, new]
            y[old] = Fraction(int(part.p), int(part.q)) * factors[old]
        if sum((factor * side for factor, side in zip(y, right, strict=True)), Fraction(0)).denominator != 1:
            return y
    return None


def _product(y: list[Fraction], entries: list[dict[int, Fraction]]) -> dict[int, Fraction]:
    total: dict[int, Fraction] = {}
    for factor, terms in zip(y, entries, strict=True):
        for j, value in terms.items():
            total[j] = total.get(j, Fraction(0)) + factor * value
    return total
