"""Why a wish added to a model has no solution: what the problem that the model was before it was changed allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.rendering import number
from opticoll.analysis.result.sensitivity import best_cut
from opticoll.formulations import bounds_of
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.matrix.stated_model import StatedProgram
from opticoll.formulations.model import Bound
from opticoll.solvers import verify
from opticoll.solvers.relaxation import least_violation
from opticoll.solvers.task import SolveRequest

if TYPE_CHECKING:
    from opticoll.formulations import Formulation
    from opticoll.formulations.standard_form import StandardForm

#: Names of vertices of a cut that are shown.
MOST_NAMED = 8
#: Bounds that name no cut, port or path.
UNNAMED = ("closed-form", "any-lengths")


def original_limit(program: object, form: StandardForm, time_limit_s: float | None = None) -> str | None:
    """Describe the bound of the original problem that a row or bound on its objective exceeds; None if none is known.

    It is a bound of the problem before the change, which the change may have altered: an explanation, not a proof.

    Parameters
    ----------
    program, form
        The changed model, and its matrix. Any other instance has no original problem.
    time_limit_s
        Limit on the search for lengths of links, if no analytic bound is exceeded [s].
    """
    problem = program.origin if isinstance(program, StatedProgram) else None
    wish = _wish(program, form) if isinstance(program, StatedProgram) else None
    if problem is None or wish is None:
        return None
    row, variable, asked, bounded = wish
    up = form.sense == "max"

    def exceeded(bound: Bound) -> bool:
        short = asked - bound.value if up else bound.value - asked
        return short > verify.FEASIBLE * max(abs(asked), abs(bound.value))

    known = [one for one in bounds_of(problem) if exceeded(one)]
    bound = verify.tightest([one for one in known if one.name not in UNNAMED], form.sense)
    if bound is None:
        found = [one for one in _by_lengths(problem, form, time_limit_s) if exceeded(one)]
        bound = next((one for one in found if one.name not in UNNAMED), verify.tightest([*known, *found], form.sense))
    if bound is None:
        return None
    relation, limit = (">=", "at most") if up else ("<=", "at least")
    time = f" (T >= {number(1 / bound.value)})" if problem.concurrent is not None and bound.value > 0 else ""
    return (
        f"{row} asks for {variable} {relation} {number(bounded)}, but {problem.name} itself allows {limit} "
        f"{number(bound.value)}{time}, by {bound.name}: {bound.reason}"
    )


def _wish(program: StatedProgram, form: StandardForm) -> tuple[str, str, float, float] | None:
    """The row or bound that alone limits the objective most against its sense, if the objective is one column.

    Returns
    -------
    Its name, that of the column, and the value of the objective and of the column that it asks for.
    """
    priced = np.flatnonzero(form.cost)
    if not program.same_objective or priced.size != 1:
        return None
    j, cost = int(priced[0]), float(form.cost[priced[0]])
    rows = form.A.tocsr()
    entries = form.A[:, [j]].tocoo()
    alone = np.diff(rows.indptr) == 1
    column, names = form.column_names()[j], form.row_names()
    ends = [(f"the bound of {column}", 1.0, float(form.col_lower[j]), float(form.col_upper[j]))]
    ends += [
        (names[i], float(a), float(form.row_lower[i]), float(form.row_upper[i]))
        for i, a in zip(entries.row.tolist(), entries.data.tolist(), strict=True)
        if alone[i]
    ]
    found: tuple[str, str, float, float] | None = None
    for name, factor, low, high in ends:
        upward = (factor * cost > 0) == (form.sense == "max")
        end = (low if upward else high) / factor
        value = cost * end + form.offset
        if np.isfinite(value) and (found is None or (value - found[2]) * (1 if form.sense == "max" else -1) > 0):
            found = name, column, value, end
    return found


def _by_lengths(problem: Formulation, form: StandardForm, time_limit_s: float | None) -> list[Bound]:
    """The cut, and the bound, of the lengths that capacities have in a proof of infeasibility."""
    if not isinstance(problem, ConcurrentFlow):
        return []
    _, outcome = least_violation(form, SolveRequest(time_limit_s), None)
    lengths = None if outcome.row_duals is None else form.duals(outcome.row_duals).get("capacity")
    if lengths is None or lengths.shape != (problem.topology.arcs,):
        return []
    found = [problem.certify({"capacity": np.abs(lengths)})]
    side, value = best_cut(problem, np.abs(lengths))
    if side is not None:
        labels = [str(label) for label, inside in zip(problem.topology.labels, side.tolist(), strict=True) if inside]
        more = f" and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else ""
        found.insert(0, Bound("cut", float(value), f"the links out of {', '.join(labels[:MOST_NAMED])}{more}"))
    return [bound for bound in found if bound is not None]
