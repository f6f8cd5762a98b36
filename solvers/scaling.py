r"""Unit right-hand sides and columns: what solvers find must not depend on the unit that capacities are stated in.

An LP whose columns are bounded by nothing but 0 and infinity is homogeneous in (x, row bounds): with s the largest
finite row bound, x = s y turns it into one whose row bounds are at most 1. Duals do not change. Without this,
capacities of 1e-7 drown in a feasibility tolerance of 1e-9 (measured: a certified gap of 5e-3 on GK(27,4)).

Where capacities are coefficients (load <= c T) a column of tiny ones is worse off: solvers drop entries of 1e-9 and
call what is left infeasible. Such a column is measured in another unit, x_j = y_j / k_j with k_j a power of 2, and the
objective in one in which its largest cost is about 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.methods.base import Reformulation

if TYPE_CHECKING:
    from solvers.outcome import Outcome
    from solvers.standard_form import StandardForm

#: Columns are rescaled if all their coefficients are smaller.
TINY = 1e-5


def unit_rows(form: StandardForm) -> Reformulation | None:
    """The problem with row bounds of at most 1 in size, or None where it already has them or does not scale."""
    ends = np.concatenate([form.row_lower, form.row_upper])
    size = float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))
    scales = all(np.isin(bound, (0.0, np.inf, -np.inf)).all() for bound in (form.col_lower, form.col_upper))
    if form.is_mip or not scales or size in (0.0, 1.0):
        return None
    scaled = replace(form, row_lower=form.row_lower / size, row_upper=form.row_upper / size, offset=0.0)

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) * size
        values = [None if v is None else v * size + form.offset for v in (outcome.objective, outcome.bound)]
        return replace(outcome, x=x, objective=values[0], bound=values[1])

    return Reformulation(scaled, recover)


def unit_columns(form: StandardForm) -> Reformulation | None:
    """The problem with continuous columns of coefficients near 1 where they were all tiny; None if there is no such."""
    largest = np.asarray(abs(form.A).max(axis=0).todense(), dtype=float).ravel() if form.A.nnz else np.zeros(0)
    tiny = (largest > 0) & (largest < TINY) & ~np.asarray(form.integer, dtype=bool)
    if not tiny.any():
        return None
    k = np.where(tiny, np.exp2(np.round(np.log2(np.where(tiny, largest, 1.0)))), 1.0)
    matrix = form.A.tocsc(copy=True)
    matrix.data /= np.repeat(k, np.diff(matrix.indptr))
    cost = form.cost / k
    most = float(np.abs(cost).max(initial=0.0))
    unit = float(np.exp2(np.round(np.log2(most)))) if most > 0 else 1.0
    scaled = replace(
        form, A=matrix, cost=cost / unit, col_lower=form.col_lower * k, col_upper=form.col_upper * k, offset=0.0
    )

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) / k
        duals = None if outcome.row_duals is None else np.asarray(outcome.row_duals) * unit
        values = [None if v is None else v * unit + form.offset for v in (outcome.objective, outcome.bound)]
        return replace(outcome, x=x, row_duals=duals, objective=values[0], bound=values[1])

    return Reformulation(scaled, recover)
