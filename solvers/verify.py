r"""Verify solutions on the matrix and recompute bounds from duals, with numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.solvers.task import PROVEN, Proof
from opticoll.solvers.weak_duality import WeakDuality

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Bound
    from opticoll.solvers.standard_form import StandardForm

#: Largest violation, relative to the size of the row or block, that counts as feasible.
FEASIBLE = 1e-6
#: Relative amount by which the value of a point that is feasible within tolerances may exceed a valid bound.
PAST = 1e-9


def residuals(formulation: Formulation, data: Any, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """The worst violation of every block of constraints, by the formulation's own checker.

    Raises
    ------
    BadInput
        If the checker does not return a number for each block.
    """
    found = formulation.residuals(data, values)
    if not isinstance(found, Mapping) or not found or not all(np.ndim(v) == 0 for v in found.values()):
        what = f"formulation {formulation.name!r}: residuals returned {str(found)[:60]}"
        msg = f"{what}; return the worst violation of every block of constraints, by its name"
        raise BadInput(msg)
    return {str(block): float(worst) for block, worst in found.items()}


def objective(formulation: Formulation, data: Any, values: Mapping[str, NDArray[np.float64]]) -> float:
    """The objective of a solution, by the formulation's own function.

    Raises
    ------
    BadInput
        If it does not return a number.
    """
    found = formulation.objective(data, values)
    if np.ndim(found) != 0 or not isinstance(found, (Real, np.ndarray)):
        msg = f"formulation {formulation.name!r}: objective returned {str(found)[:60]}; return a number"
        raise BadInput(msg)
    return float(found)


def matrix_violations(form: StandardForm, x: NDArray[np.float64]) -> dict[str, float]:
    """Worst violation of rows, column bounds and integrality by ``x``, shape ``(columns,)``.

    A row's violation is relative to ``max(1e-3, |bound|, largest |A_ij x_j| in the row)``, a column's to
    ``max(1, |bound|)``. Anything that is not a finite vector of the right length violates infinitely.
    """
    if x.shape != (form.A.shape[1],) or not np.isfinite(x).all():
        return {"matrix.rows": np.inf, "matrix.columns": np.inf, "matrix.integrality": np.inf}
    activity = form.A @ x
    terms = abs(form.A).multiply(np.abs(x)[None, :]) if x.size else form.A
    largest = np.zeros(activity.size)
    if form.A.nnz:
        largest = np.asarray(terms.tocsr().max(axis=1).todense(), dtype=float).ravel()
    rows = _outside(activity, form.row_lower, form.row_upper, np.maximum(largest, 1e-3))
    columns = _outside(x, form.col_lower, form.col_upper, np.ones(x.size))
    fractions = np.abs(x - np.round(x))[np.asarray(form.integer)]
    return {
        "matrix.rows": rows,
        "matrix.columns": columns,
        "matrix.integrality": float(fractions.max(initial=0.0)),
    }


def whole(form: StandardForm, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """``x`` with its integer columns rounded, unless that violates the matrix more: solvers return 4.999999999."""
    rounded = np.where(np.asarray(form.integer), np.round(x), x) if x.shape == (form.A.shape[1],) else x
    if not np.isfinite(x).all() or np.array_equal(rounded, x):
        return x
    before, after = (max(matrix_violations(form, point).values()) for point in (x, rounded))
    return rounded if after <= before else x


def _outside(
    value: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    size: NDArray[np.float64],
) -> float:
    below = np.maximum(lower - value, 0.0) / np.maximum(size, np.where(np.isfinite(lower), np.abs(lower), 0.0))
    above = np.maximum(value - upper, 0.0) / np.maximum(size, np.where(np.isfinite(upper), np.abs(upper), 0.0))
    return float(max(below.max(initial=0.0), above.max(initial=0.0)))


def dual_bound(form: StandardForm, duals: NDArray[np.float64]) -> float:
    r"""The bound that row duals prove on the objective of the problem's continuous relaxation, by weak duality.

    It holds in exact arithmetic for any floats, see :mod:`opticoll.solvers.weak_duality`; infinite if they prove
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


def _cheapest(price: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
    end = np.where(price > 0, lower, upper)
    return float((price[price != 0] * end[price != 0]).sum())


def kkt(form: StandardForm, x: NDArray[np.float64], duals: NDArray[np.float64] | None) -> dict[str, float | None]:
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
    rows, columns = form.A.shape
    if x.shape != (columns,) or not np.isfinite(x).all():
        return {"primal": np.inf, "dual": None if duals is None else np.inf, "gap": None if duals is None else np.inf}
    activity = form.A @ x
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
    z = flip * form.cost - form.A.T @ y
    y_wrong, z_wrong = _forbidden(y, form.row_lower, form.row_upper), _forbidden(z, form.col_lower, form.col_upper)
    size = max(float(np.abs(form.cost).max(initial=0.0)), _largest_term(form, np.ones(columns), y))
    dual = max(_over(y_wrong, float(np.abs(y).max(initial=0.0))), _over(z_wrong, size))
    y, z = np.where(y_wrong > 0, 0.0, y), np.where(z_wrong > 0, 0.0, z)
    proven = _cheapest(y, form.row_lower, form.row_upper) + _cheapest(z, form.col_lower, form.col_upper)
    value, bound = form.objective(x), flip * proven + form.offset
    return {"primal": primal, "dual": dual, "gap": abs(value - bound) / max(abs(value), abs(bound), 1e-12)}


def _largest_term(form: StandardForm, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Largest ``|y_i A_ij x_j|``."""
    entries = form.A.tocoo()
    return float(np.abs(entries.data * y[entries.row] * x[entries.col]).max(initial=0.0))


def _left_over(
    value: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64], size: float
) -> float:
    """Worst step outside the bounds, over ``size`` or the largest bound that is violated."""
    missed = np.concatenate([lower - value, value - upper])
    ends = np.concatenate([lower, upper])[missed > 0]
    return _over(missed, max(size, float(np.abs(ends).max(initial=0.0))))


def _forbidden(
    price: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Size of the prices whose sign an infinite bound forbids, 0 for the others."""
    wrong = ((price > 0) & np.isneginf(lower)) | ((price < 0) & np.isposinf(upper))
    return np.where(wrong, np.abs(price), 0.0)


def _over(values: NDArray[np.float64], size: float) -> float:
    worst = float(values.max(initial=0.0))
    return worst / size if worst > 0 else 0.0


def pack(form: StandardForm, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64] | None:
    """The column vector of named arrays; None if some column has no name."""
    x = np.full(form.A.shape[1], np.nan)
    for name, block in form.columns.items():
        here = block.index >= 0
        x[block.index[here]] = np.asarray(values[name], dtype=float).ravel()[here]
    return None if np.isnan(x).any() else x


def relative_gap(objective: float | None, bound: float | None, sense: str) -> float | None:
    """``(bound - objective) / |objective|`` signed so that a valid bound gives >= 0; None if either is missing.

    An objective of 0 has gap 0 to a bound of 0 and an infinite one to any other. An objective beyond the bound by no
    more than :data:`PAST` of the larger of the two gives 0: it is that of a point which is feasible within a tolerance.
    """
    if objective is None or bound is None or not np.isfinite([objective, bound]).all():
        return None
    difference = bound - objective if sense == "max" else objective - bound
    if -PAST * max(abs(objective), abs(bound)) <= difference <= 0:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.float64(difference) / abs(objective))


def prove(
    *, verified: bool, objective: float | None, bound: float | None, sense: str, tol: float
) -> tuple[Proof, float | None]:
    """The proof status that a verified value and a bound of our own allow, and the gap.

    A negative gap means that value and bound contradict each other: nothing is proven then. Nor does an infinite one,
    of an objective of 0, prove anything.
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
    """Two of our own numbers that cannot both be right, as a message; None if there are none.

    A bound may be no tighter than one that is exact, and a verified value no better than any bound, except by
    :data:`PAST`.
    """
    best = tightest(bounds, sense)
    if best is None:
        return None
    for exact in bounds:
        if exact.exact and (relative_gap(exact.value, best.value, sense) or 0.0) < 0:
            return (
                f"bounds contradict each other: {best.name} says {best.value:.12g}, but {exact.name} says that "
                f"the optimum is {exact.value:.12g}"
            )
    if (relative_gap(objective, best.value, sense) or 0.0) < 0:
        return (
            f"value and bound contradict each other: the value {objective:.12g} is verified, but {best.name} says "
            f"{best.value:.12g}"
        )
    return None


def misstated(
    formulation: Formulation, form: StandardForm | None, values: Mapping[str, NDArray[np.float64]], objective: float
) -> str | None:
    """A build from outside the package whose objective is not that of the formulation's function, as a message.

    Bounds come from the build and the value from the function: they bound each other only if both are the same.
    """
    x = None if form is None or not formulation.own else pack(form, values)
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
    """The tightest of the finite bounds; None if there is none."""
    finite = [b for b in bounds if np.isfinite(b.value)]
    if not finite:
        return None
    return min(finite, key=lambda b: b.value) if sense == "max" else max(finite, key=lambda b: b.value)
