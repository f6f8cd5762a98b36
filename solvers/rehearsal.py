"""Solver options tried on a trivial problem before anything long starts: only a solver knows its own options."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from solvers.errors import SolverUnavailable
from solvers.isolation import solve_isolated
from solvers.outcome import SolveRequest
from solvers.standard_form import StandardForm

if TYPE_CHECKING:
    from solvers.plan import Plan


def rehearse_options(plan: Plan) -> None:
    """Refuse options that the plan's solver does not have or does not take.

    Raises
    ------
    BadOption
        As the solve itself would; a solver that is unavailable says so when it is its turn.
    """
    if plan.adapter is not None and plan.options:
        options = tuple(sorted((name, str(value)) for name, value in plan.options.items()))
        _try(plan.adapter.name, options, integer=plan.formulation.problem == "MILP")


@cache
def _try(solver: str, options: tuple[tuple[str, str], ...], *, integer: bool) -> None:
    import scipy.sparse as sp

    one = np.ones(1)
    trivial = StandardForm(
        sp.csc_array([[1.0]]), np.zeros(1), one, np.zeros(1), one, one, "max", integer=np.array([integer])
    )
    try:
        solve_isolated(trivial, solver, SolveRequest(time_limit_s=20.0, options=dict(options)))
    except SolverUnavailable:
        return
