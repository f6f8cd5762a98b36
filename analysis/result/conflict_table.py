"""The rows and bounds that leave a problem without a solution, as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NoSolution, refuse
from opticoll.formulations.model import build_model
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances import MatrixProgram
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.exact.conflict import find_conflict
from opticoll.solvers.relaxation import infeasibility
from opticoll.solvers.task import SolveRequest

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.solvers.exact.conflict import Conflict
    from opticoll.solvers.run import Run

#: Terms of a row that its statement shows.
_TERMS = 6


def conflict(run: Run, time_limit: float | None = 60.0) -> pd.DataFrame:
    """Rows and bounds of a run's problem that no values satisfy together, without any that could be left out.

    Parameters
    ----------
    run
        A run without a solution.
    time_limit
        Seconds for the search; what is left then is not irreducible. None for no limit.

    Returns
    -------
    A row each: ``kind`` (row, lower bound, upper bound or integrality), ``name``, ``statement``. ``attrs`` has
    ``irreducible`` and ``proof``, the description of a recomputed proof that the table has no solution, None where only
    the solver says so.

    Raises
    ------
    NoSolution
        If the problem has a solution, or was not prepared.
    BadInput
        If it has more than 10,000 rows.
    """
    import pandas as pd

    if run.plan is None or run.verified:
        reason = "it has a solution" if run.verified else "it was never prepared"
        refuse("conflict", f"{run.record.formulation} on {run.record.instance}: {reason}", NoSolution)
    problem = run.plan.problem
    form = compile_built(problem, build_model(problem, run.plan.form))
    found = find_conflict(form, time_limit=time_limit)
    columns, rows = form.column_names(), form.row_names()
    if isinstance(run.plan.instance, MatrixProgram) and len(run.plan.instance.column_names) == len(columns):
        columns, rows = list(run.plan.instance.column_names), list(run.plan.instance.row_names)
    entries = form.A.tocsr()
    table = [("row", rows[i], _statement(form, entries, columns, i)) for i in found.rows]
    table += [("lower bound", columns[j], f"{columns[j]} >= {form.col_lower[j]:.15g}") for j in found.lower]
    table += [("upper bound", columns[j], f"{columns[j]} <= {form.col_upper[j]:.15g}") for j in found.upper]
    if found.integer:
        whole = np.unique(entries[found.rows].indices)
        names = [columns[j] for j in whole.tolist() if np.asarray(form.integer)[j]]
        table.append(("integrality", ", ".join(names[:_TERMS]), f"{len(names)} columns are whole numbers"))
    frame = pd.DataFrame(table, columns=["kind", "name", "statement"])
    proof, _ = (None, True) if found.integer else infeasibility(_part(form, found), SolveRequest(time_limit), None)
    frame.attrs = {"irreducible": found.irreducible, "proof": proof}
    return frame


def _part(form: StandardForm, found: Conflict) -> StandardForm:
    """The program of the rows and bounds of a conflict alone."""
    low, high = np.full(form.cost.size, -np.inf), np.full(form.cost.size, np.inf)
    low[found.lower], high[found.upper] = form.col_lower[found.lower], form.col_upper[found.upper]
    return replace(
        form,
        A=form.A.tocsr()[found.rows].tocsc(),
        row_lower=form.row_lower[found.rows],
        row_upper=form.row_upper[found.rows],
        col_lower=low,
        col_upper=high,
        integer=np.zeros(form.cost.size, dtype=bool),
        columns={},
        rows={},
    )


def _statement(form: StandardForm, entries: object, columns: list[str], row: int) -> str:
    """A row in words: its first terms and its bounds."""
    part = entries[[row]]  # type: ignore[index]
    terms = [
        f"{'-' if value < 0 else '+'} {'' if abs(value) == 1 else f'{abs(value):.6g} '}{columns[j]}"
        for j, value in zip(part.indices.tolist(), part.data.tolist(), strict=True)
    ]
    left = " ".join(terms[:_TERMS]).removeprefix("+ ") or "0"
    if len(terms) > _TERMS:
        left += f" + ... ({len(terms)} terms)"
    low, high = float(form.row_lower[row]), float(form.row_upper[row])
    if low == high:
        return f"{left} = {low:.15g}"
    if np.isfinite(low) and np.isfinite(high):
        return f"{low:.15g} <= {left} <= {high:.15g}"
    return f"{left} >= {low:.15g}" if np.isfinite(low) else f"{left} <= {high:.15g}"
