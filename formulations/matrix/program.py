r"""A linear or mixed-integer program given by its matrix, such as one read from an MPS file.

Source  the file itself; MPS: IBM, *Mathematical Programming System/360*, 1969; instances: MIPLIB, Netlib
Sets    i in R rows; j in J columns; I, a subset of J, integer columns
Data    A_ij coefficients, (|R|,|J|), sparse; l_i, u_i row bounds, (|R|,); a_j, b_j column bounds, (|J|,);
        c_j costs, (|J|,); c_0 constant; sense min or max; infinite bounds are +-inf
Vars    x_j, (|J|,), whole for j in I

min or max  c_0 + sum_j c_j x_j   s.t.
    row[i]      l_i <= sum_j A_ij x_j <= u_i
    column[j]   a_j <= x_j <= b_j

Integer columns for which an MPS file gives no bounds lie in [0, 1], as in all readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from opticoll.formulations.matrix import contradictions
from opticoll.formulations.model import CvxpyModel, Formulation, Named, PyomoModel, of_kind
from opticoll.formulations.standard_form import StandardForm, blocks
from opticoll.formulations.variables import Array, Axis
from opticoll.instances.matrix_program import MatrixProgram

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from opticoll.instances.topology import F64

    Values = Mapping[str, F64]


#: Minimum size to which a row's violation is relative.
LEAST_SIZE = 1e-3


def most_violated(program: MatrixProgram, values: Values, block: str) -> str:
    """Name of the most violated row or column, measured as in :func:`residuals`.

    ``block`` is ``row``, ``column`` or ``integrality``.
    """
    x = np.asarray(values["x"], dtype=float)
    if block == "integrality":
        return program.column_names[int(np.where(program.integer, np.abs(x - np.rint(x)), -1.0).argmax())]
    rows, columns = _excesses(program, x)
    return program.row_names[int(rows.argmax())] if block == "row" else program.column_names[int(columns.argmax())]


def _excesses(program: MatrixProgram, x: F64) -> tuple[F64, F64]:
    """Relative bound violation of every row, ``(rows,)``, and column, ``(n,)``."""
    terms = program.data * np.repeat(x, np.diff(program.indptr))
    activity = np.bincount(program.indices, weights=terms, minlength=program.rows)
    largest = np.full(program.rows, LEAST_SIZE)
    np.maximum.at(largest, program.indices, np.abs(terms))
    return (
        _excess(activity, program.row_lower, program.row_upper, largest),
        _excess(x, program.col_lower, program.col_upper, np.ones(x.size)),
    )


def _excess(value: NDArray[Any], lower: F64, upper: F64, size: F64) -> F64:
    """Relative bound violation of every value, at least 0."""
    worst = np.zeros(value.size)
    for bound, step in ((lower, lower - value), (upper, value - upper)):
        scale = np.maximum(size, np.abs(np.where(np.isfinite(bound), bound, 0.0)))
        worst = np.maximum(worst, step / scale)
    return worst


class FileProgram(Formulation):
    """The problem: the program itself, with its sense and class."""

    name = "matrix.program"
    where = "the file"
    example = "mps:program.mps"
    problem: Literal["LP", "MILP"] = "MILP"

    def __init__(self, program: MatrixProgram) -> None:
        self.program = program
        self.sense = program.sense
        self.problem = "MILP" if program.integer.any() else "LP"

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The problem of a program."""
        return cls(of_kind(MatrixProgram, instance, cls.name, "a program in matrix form, mps:FILE"))

    def matrix(self) -> StandardForm:
        """Return the matrix of the program unchanged."""
        program = self.program
        return StandardForm(
            program.A,
            program.row_lower,
            program.row_upper,
            program.col_lower,
            program.col_upper,
            program.cost,
            program.sense,
            program.offset,
            program.integer,
            columns=blocks({"x": ((program.n,), np.arange(program.n))}),
            rows=blocks({"row": ((program.rows,), np.arange(program.rows))}),
        )

    def cvxpy(self) -> CvxpyModel:
        """Build the program in CVXPY's matrix form; a row with two bounds counts as two constraints."""
        program = self.program
        import cvxpy as cp

        A = program.A.tocsr()
        whole = np.flatnonzero(program.integer)
        column_bounds = [program.col_lower, program.col_upper]
        x = cp.Variable(program.n, name="x", integer=(whole,) if whole.size else False, bounds=column_bounds)
        equal = np.flatnonzero(program.row_lower == program.row_upper)
        ranged = program.row_lower < program.row_upper
        below = np.flatnonzero(ranged & np.isfinite(program.row_upper))
        above = np.flatnonzero(ranged & np.isfinite(program.row_lower))
        rows, columns = (program.rows,), (program.n,)
        named = {}
        if equal.size:
            named["row"] = Named(A[equal] @ x == program.row_lower[equal], rows, equal)
        if below.size:
            named["row_upper"] = Named(A[below] @ x <= program.row_upper[below], rows, below)
        if above.size:
            named["row_lower"] = Named(A[above] @ x >= program.row_lower[above], rows, above)
        objective = program.cost @ x + program.offset
        goal = cp.Maximize(objective) if program.sense == "max" else cp.Minimize(objective)
        problem = cp.Problem(goal, [one.item for one in named.values()])
        return CvxpyModel(problem, {"x": Named(x, columns)}, named)

    def pyomo(self) -> PyomoModel:
        """Build the program in Pyomo, over columns 0, 1, ... and rows 0, 1, ..."""
        program = self.program
        import pyomo.core as pyo

        def bound(value: Any) -> float | None:
            return float(value) if np.isfinite(value) else None

        model = pyo.ConcreteModel()
        model.J, model.R = pyo.RangeSet(0, program.n - 1), pyo.RangeSet(0, program.rows - 1)
        model.x = pyo.Var(
            model.J,
            domain=lambda m, j: pyo.Integers if program.integer[j] else pyo.Reals,
            bounds=lambda m, j: (bound(program.col_lower[j]), bound(program.col_upper[j])),
        )
        model.objective = pyo.Objective(
            expr=float(program.offset) + sum(float(program.cost[j]) * model.x[j] for j in np.flatnonzero(program.cost)),
            sense=pyo.maximize if program.sense == "max" else pyo.minimize,
        )
        by_row = program.A.tocsr()

        def row(m: Any, i: int) -> Any:
            part = slice(by_row.indptr[i], by_row.indptr[i + 1])
            low, high = bound(program.row_lower[i]), bound(program.row_upper[i])
            if part.start == part.stop or (low is None and high is None):
                return pyo.Constraint.Skip if (low or 0.0) <= 0.0 <= (high or 0.0) else pyo.Constraint.Infeasible
            pairs = zip(by_row.indices[part].tolist(), by_row.data[part].tolist(), strict=True)
            return (low, sum(value * m.x[j] for j, value in pairs), high)

        model.row = pyo.Constraint(model.R, rule=row)
        return PyomoModel(model, {"x": (program.n,)}, {"row": (program.rows,)})

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violations; a row's is relative to its largest term and its bounds, a column's to 1 and its bounds."""
        program = self.program
        x = np.asarray(values["x"], dtype=float)
        whole = x[program.integer]
        rows, columns = _excesses(program, x)
        return {
            "row": float(rows.max(initial=0.0)),
            "column": float(columns.max(initial=0.0)),
            "integrality": float(np.abs(whole - np.rint(whole)).max(initial=0.0)),
        }

    def objective(self, values: Values) -> float:
        """c_0 + c x."""
        program = self.program
        return float(program.offset + program.cost @ np.asarray(values["x"], dtype=float))

    def _estimate(self) -> dict[str, int]:
        """Size of the matrix."""
        program = self.program
        return {
            "variables": program.n,
            "constraints": program.rows,
            "nonzeros": program.data.size,
            "integers": int(program.integer.sum()),
        }

    def _arrays(self, names: Collection[str]) -> dict[str, Array]:
        """One value per column."""
        return {"x": Array((Axis("column", self.program.n),))}

    _refute = contradictions.contradiction
    _unfold = contradictions.with_absent_columns


FORMULATION = FileProgram
