r"""Unit right-hand sides: absolute tolerances of solvers must not depend on the unit that capacities are stated in.

An LP whose columns are bounded by nothing but 0 and infinity is homogeneous in (x, row bounds): with s the largest
finite row bound, x = s y turns it into one whose row bounds are at most 1. Duals do not change. Without this,
capacities of 1e-7 drown in a feasibility tolerance of 1e-9 (measured: a certified gap of 5e-3 on GK(27,4)).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.methods.base import Reformulation

if TYPE_CHECKING:
    from solvers.outcome import Outcome
    from solvers.standard_form import StandardForm


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
