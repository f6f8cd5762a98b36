r"""The sparse matrix form to which every modelling layer compiles and that every solver accepts.

.. math::
    \min / \max \; c^\top x + c_0 \quad \text{s.t.} \quad
    l_r \le A x \le u_r, \quad l_x \le x \le u_x, \quad x_j \in \mathbb{Z} \; (j \in I)

Rows and columns carry *blocks*: the names of constraints and variables in the formulation's docstring, with
the array shape they have there, so that vectors can be converted back to named arrays. Infinite bounds are
``±inf``. Columns are stored by column (CSC) because that is what most solvers take without a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import scipy.sparse as sp
    from numpy.typing import NDArray

Sense = Literal["min", "max"]


@dataclass(frozen=True)
class Block:
    """Where a named array of variables or constraints lives in the columns or rows.

    ``index`` holds positions in C order of ``shape``; -1 marks an entry that the model does not have
    (a variable that no constraint mentions, a constraint that is skipped).
    """

    name: str
    shape: tuple[int, ...]
    index: NDArray[np.int64]

    def gather(self, vector: NDArray[np.float64], absent: float = 0.0) -> NDArray[np.float64]:
        """The named array from a flat vector, ``absent`` where the model has no entry."""
        values = np.where(self.index >= 0, vector[np.maximum(self.index, 0)] if vector.size else absent, absent)
        return values.reshape(self.shape)


@dataclass(frozen=True, eq=False)
class StandardForm:
    """A linear or mixed-integer problem in matrix form.

    Parameters
    ----------
    A
        Constraint matrix, shape ``(rows, columns)``, CSC, float64, no stored zeros or duplicates.
    row_lower, row_upper
        Row bounds, shape ``(rows,)``.
    col_lower, col_upper
        Column bounds, shape ``(columns,)``.
    cost, offset
        Objective coefficients, shape ``(columns,)``, and constant.
    sense
        ``"min"`` or ``"max"``.
    integer
        Integrality of each column, shape ``(columns,)``, boolean.
    columns, rows
        Blocks by name, see :class:`Block`.
    """

    A: sp.csc_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    col_lower: NDArray[np.float64]
    col_upper: NDArray[np.float64]
    cost: NDArray[np.float64]
    sense: Sense
    offset: float = 0.0
    integer: NDArray[np.bool_] | None = None
    columns: Mapping[str, Block] = field(default_factory=dict)
    rows: Mapping[str, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        m, n = self.A.shape
        if self.integer is None:
            object.__setattr__(self, "integer", np.zeros(n, dtype=bool))
        for name, size in (
            ("row_lower", m), ("row_upper", m), ("col_lower", n), ("col_upper", n), ("cost", n), ("integer", n),
        ):  # fmt: skip
            array = np.asarray(getattr(self, name))
            if array.shape != (size,):
                msg = f"StandardForm: {name} has shape {array.shape}, expected ({size},)"
                raise ModelError(msg)
            if np.isnan(array.astype(float)).any():
                msg = f"StandardForm: {name} holds NaN at position {int(np.argmax(np.isnan(array)))}"
                raise ModelError(msg)
        if not np.isfinite(self.A.data).all():
            msg = "StandardForm: the constraint matrix holds NaN or infinity"
            raise ModelError(msg)

    @property
    def size(self) -> dict[str, int]:
        """Numbers of variables, constraints, nonzeros and integer variables."""
        return {
            "variables": int(self.A.shape[1]),
            "constraints": int(self.A.shape[0]),
            "nonzeros": int(self.A.nnz),
            "integers": int(np.count_nonzero(np.asarray(self.integer))),
        }

    @property
    def is_mip(self) -> bool:
        """Whether some column must be integer."""
        return bool(np.any(self.integer))

    def objective(self, x: NDArray[np.float64]) -> float:
        """Objective value of ``x``, shape ``(columns,)``."""
        return float(self.cost @ x + self.offset)

    def values(self, x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Named variable arrays from a column vector."""
        return {name: block.gather(x) for name, block in self.columns.items()}

    def duals(self, y: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Named dual arrays from a row vector."""
        return {name: block.gather(y) for name, block in self.rows.items()}

    def column_names(self) -> list[str]:
        """A name for every column: ``g[0,3]`` from its block, ``x7`` where none names it."""
        return named(self.columns, self.A.shape[1], "x")

    def row_names(self) -> list[str]:
        """A name for every row, as :meth:`column_names`."""
        return named(self.rows, self.A.shape[0], "r")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """List the problem as named plain arrays, without its blocks; :func:`assemble` is the inverse."""
        return {
            "indptr": self.A.indptr, "indices": self.A.indices, "data": self.A.data,
            "row_lower": self.row_lower, "row_upper": self.row_upper,
            "col_lower": self.col_lower, "col_upper": self.col_upper,
            "cost": self.cost, "integer": self.integer,
            "scalars": np.array([self.A.shape[0], self.A.shape[1], self.offset, self.sense == "max"], dtype=float),
        }  # fmt: skip


def assemble(arrays: Mapping[str, NDArray[Any]]) -> StandardForm:
    """Rebuild the problem from :meth:`StandardForm.arrays`, without copies."""
    import scipy.sparse as sp

    m, n, offset, is_max = (float(value) for value in arrays["scalars"])
    A = sp.csc_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(int(m), int(n)))
    return StandardForm(
        A, arrays["row_lower"], arrays["row_upper"], arrays["col_lower"], arrays["col_upper"], arrays["cost"],
        "max" if is_max else "min", offset, arrays["integer"],
    )  # fmt: skip


def named(blocks: Mapping[str, Block], count: int, letter: str) -> list[str]:
    """A name for each of ``count`` rows or columns, from its block; ``letter`` and its number where none names it."""
    names = [f"{letter}{j}" for j in range(count)]
    for block in blocks.values():
        for position, where in enumerate(block.index):
            if where >= 0:
                at = ",".join(str(i) for i in np.unravel_index(position, block.shape)) if block.shape else ""
                names[where] = f"{block.name}[{at}]" if at else block.name
    return names
