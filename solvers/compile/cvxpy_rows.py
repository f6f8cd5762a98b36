"""The rows of a CVXPY problem, read where CVXPY hands its compiled program to a solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from cvxpy.constraints import NonNeg, Zero
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver

from opticoll.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RowData(TypedDict):
    """Minimise ``cost x + offset``, ``lower <= A x <= upper``, ``low <= x <= high``, x whole where ``integer``."""

    param_prob: Any  # the compiled program, which CVXPY keeps for other values of the parameters
    A: Any
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    cost: NDArray[np.float64]
    offset: float
    integer: NDArray[np.bool_]


class Rows(ConicSolver):
    """A solver that solves nothing: what CVXPY gives it are the rows of a program."""

    MIP_CAPABLE = True
    BOUNDED_VARIABLES = True
    MI_SUPPORTED_CONSTRAINTS = ConicSolver.SUPPORTED_CONSTRAINTS  # Zero and NonNeg

    def name(self) -> str:
        """A name that no solver of CVXPY has."""
        return "ROWS"

    def import_solver(self) -> None:
        """Nothing to import."""

    def cite(self, data: Any) -> str:
        """Nothing to cite."""
        return ""

    def solve_via_data(self, *_args: Any, **_options: Any) -> Any:
        """Never called: opticoll's adapters solve."""
        raise NotImplementedError

    def apply(self, problem: Any) -> tuple[RowData, dict[str, object]]:
        """The program in arrays; CVXPY states ``A x + b = 0`` and, behind, ``A x + b >= 0``."""
        count = problem.x.size
        if problem.parameters:
            cost, offset, A, b = problem.apply_parameters()
            A = A.tocsc()
        else:  # what CVXPY prepares for other values of the parameters takes as long as all the rest
            costs = problem.q.toarray().ravel()
            cost, offset = costs[:count], costs[count]
            whole = problem.A.reshape((problem.constr_size, count + 1), order="F").tocsc()
            A, b = whole[:, :count], whole[:, [count]].toarray().ravel()
        equations = problem.cone_dims.zero
        A.data[A.indices >= equations] *= -1.0
        b[:equations] = 0.0 - b[:equations]
        lower = np.where(np.arange(b.size) < equations, b, -np.inf)
        low, high = _bounds(problem.lower_bounds, count, -np.inf), _bounds(problem.upper_bounds, count, np.inf)
        binary, whole_numbers = (
            [int(one[0]) for one in part] for part in (problem.x.boolean_idx, problem.x.integer_idx)
        )
        low[binary], high[binary] = np.maximum(low[binary], 0.0), np.minimum(high[binary], 1.0)
        integer = np.zeros(count, dtype=bool)
        integer[binary + whole_numbers] = True
        data = RowData(
            param_prob=problem,
            A=A,
            lower=lower,
            upper=b,
            low=low,
            high=high,
            cost=cost,
            offset=float(offset),
            integer=integer,
        )
        return data, {}


def _bounds(values: NDArray[np.float64] | None, count: int, absent: float) -> NDArray[np.float64]:
    return np.full(count, absent) if values is None else np.array(values, dtype=float).ravel()


#: One object, since CVXPY keeps what it has compiled for a solver.
ROWS = Rows()


def row_places(program: Any) -> dict[int, NDArray[np.int64]]:
    """Rows of every constraint by its id: equations come first, then inequalities."""
    at = {Zero: 0, NonNeg: program.cone_dims.zero}
    rows = {}
    for constraint in program.constraints:
        kind = type(constraint)
        if kind not in at:
            msg = f"CVXPY compiled a constraint to {kind.__name__}; formulations must be linear"
            raise ModelError(msg)
        rows[constraint.id] = np.arange(at[kind], at[kind] + constraint.size)
        at[kind] += constraint.size
    return rows
