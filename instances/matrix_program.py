"""Linear and mixed-integer programs in matrix form.

A program is identified by its numbers; names of rows and columns only label results.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.instances.topology import Instance

if TYPE_CHECKING:
    import scipy.sparse as sp

    from opticoll.instances.topology import F64, I64, Mask


@dataclass(frozen=True, eq=False, repr=False)
class MatrixProgram(Instance):
    r"""A program :math:`\min/\max \; c^\top x + c_0` over rows :math:`l_r \le A x \le u_r` and column bounds.

    Parameters
    ----------
    indptr, indices, data
        Constraint matrix A by column (CSC), ``rows`` rows and ``n`` columns.
    row_lower, row_upper
        Row bounds, shape ``(rows,)``; ``-inf`` and ``inf`` for none.
    col_lower, col_upper
        Column bounds, shape ``(n,)``.
    cost, offset
        Objective coefficients, shape ``(n,)``, and constant.
    integer
        Integrality of each column, shape ``(n,)``, boolean.
    sense
        ``"min"`` or ``"max"``.
    column_names, row_names
        Names in the file.
    notes
        What a user should know about the file, one sentence each.
    sense_stated
        Whether the file states the sense.
    spec, parameters
        As for every instance.
    """

    indptr: I64
    indices: I64
    data: F64
    row_lower: F64
    row_upper: F64
    col_lower: F64
    col_upper: F64
    cost: F64
    offset: float
    integer: Mask
    sense: Literal["min", "max"]
    column_names: tuple[str, ...]
    row_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sense_stated: bool = True
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return self.cost.size

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.row_lower.size

    @property
    def A(self) -> sp.csc_array:
        """A copy of the constraint matrix, shape ``(rows, n)``."""
        import scipy.sparse as sp

        return sp.csc_array((self.data, self.indices, self.indptr), shape=(self.rows, self.n), copy=True)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the numbers; names are not included."""
        digest = hashlib.sha256(f"matrix {self.rows} {self.n} {self.sense} {float(self.offset)!r}".encode())
        for whole in (self.indptr, self.indices, self.integer):
            digest.update(np.asarray(whole, dtype=np.int64).tobytes())
        for real in (self.data, self.row_lower, self.row_upper, self.col_lower, self.col_upper, self.cost):
            digest.update((np.asarray(real, dtype=np.float64) + 0.0).tobytes())  # no -0.0
        return digest.hexdigest()
