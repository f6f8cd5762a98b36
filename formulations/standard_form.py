r"""The sparse matrix form that every solver accepts, and to which models are compiled.

.. math::
    \min / \max \; c^\top x + c_0 \quad \text{s.t.} \quad
    l_r \le A x \le u_r, \quad l_x \le x \le u_x, \quad x_j \in \mathbb{Z} \; (j \in I)

Rows and columns carry *blocks*: the names of constraints and variables in the formulation's docstring, with
the array shape they have there, so vectors can be converted back to named arrays. Infinite bounds are
``±inf``. The matrix is stored by column (CSC) because most solvers accept that without a copy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import ModelError, refuse
from opticoll.formulations.term_sizes import TermSizes, objective_steps

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from fractions import Fraction

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.instances.topology import F64, I64, Mask

Sense = Literal["min", "max"]
#: Entries of a matrix from which SciPy's products are worth its import.
_MANY_ENTRIES = 200_000
#: Strings that are quoted where they are an index in a name.
_QUOTED = re.compile(r"""[][(),.'":\\]|^[-+]?\d+([eE][-+]?\d+)?$|^-?inf$|^nan$""")


@dataclass(frozen=True)
class Block:
    """Positions of a named array of variables or constraints among the columns or rows.

    ``index`` holds positions in C order of ``shape``; -1 marks an entry that the model does not have
    (a variable that no constraint mentions, a constraint that is skipped). ``labels`` names the indices along every
    axis, None those that are 0, 1, ...; no labels at all if all are.
    """

    name: str
    shape: tuple[int, ...]
    index: I64
    labels: tuple[Sequence[Hashable] | None, ...] = ()

    def gather(self, vector: F64, absent: float = 0.0) -> F64:
        """The named array from a flat vector, ``absent`` where the model has no entry."""
        values = np.where(self.index >= 0, vector[np.maximum(self.index, 0)] if vector.size else absent, absent)
        return values.reshape(self.shape)

    def names(self) -> list[str]:
        """Names of the entries in C order: ``g[0,3]``, or ``g[a,b]`` by their labels."""
        axes = [
            [str(i) for i in range(size)] if labels is None else [_index_words(label) for label in labels]
            for size, labels in zip(self.shape, self.labels or (None,) * len(self.shape), strict=True)
        ]
        return [f"{self.name}[{','.join(key)}]" if key else self.name for key in product(*axes)]


def _index_words(label: object) -> str:
    """An index in a name, as in Pyomo: in quotes if its bare words would be those of a number or of several indices."""
    if isinstance(label, tuple):
        return ",".join(map(_index_words, label))
    return repr(label) if isinstance(label, str) and _QUOTED.search(label) else str(label)


class Columns:
    """A sparse matrix by column in plain arrays, for which SciPy need not be imported.

    ``shape`` is (rows, columns); entries ``indptr[j]`` to ``indptr[j + 1]`` of ``indices`` and ``data`` are column j's.
    Products are SciPy's to the last bit: terms are added in the order of the entries.
    """

    def __init__(self, data: F64, indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, shape
        self.nnz = data.size

    def __matmul__(self, x: F64) -> F64:
        terms = self.data * np.repeat(x, np.diff(self.indptr))
        return np.bincount(self.indices, terms, self.shape[0]).astype(float)

    def __abs__(self) -> Columns:
        return Columns(np.abs(self.data), self.indices, self.indptr, self.shape)

    @property
    def T(self) -> _Transposed:
        """The transposed matrix, for products alone."""
        return _Transposed(self)

    def by_scipy(self) -> sp.csc_array:
        """The same as SciPy's array."""
        import scipy.sparse as sp

        return sp.csc_array((self.data, self.indices, self.indptr), shape=self.shape)

    def is_canonical(self) -> bool:
        """Whether the rows of every column ascend, and no entry is 0."""
        ascends = np.diff(self.indices) > 0
        ascends[self.indptr[(self.indptr > 0) & (self.indptr < self.nnz)] - 1] = True
        return bool(ascends.all() and self.data.all())


class _Transposed:
    def __init__(self, of: Columns) -> None:
        self.of = of

    def __matmul__(self, y: F64) -> F64:
        A = self.of
        column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
        return np.bincount(column, A.data * y[A.indices], A.shape[1]).astype(float)


@dataclass(frozen=True, eq=False)
class StandardForm:
    """A linear or mixed-integer problem in matrix form.

    Parameters
    ----------
    A
        Constraint matrix, shape ``(rows, columns)``, CSC, float64, no stored zeros or duplicates; may be given as
        :class:`Columns`.
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
    row_lower: F64
    row_upper: F64
    col_lower: F64
    col_upper: F64
    cost: F64
    sense: Sense
    offset: float = 0.0
    integer: Mask | None = None
    columns: Mapping[str, Block] = field(default_factory=dict)
    rows: Mapping[str, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        A = self.stored
        m, n = A.shape
        if self.integer is None:
            object.__setattr__(self, "integer", np.zeros(n, dtype=bool))
        for name, size in (
            ("row_lower", m),
            ("row_upper", m),
            ("col_lower", n),
            ("col_upper", n),
            ("cost", n),
            ("integer", n),
        ):
            array = np.asarray(getattr(self, name))
            if array.shape != (size,):
                refuse("StandardForm", f"{name} has shape {array.shape}, expected ({size},)", ModelError)
            if np.isnan(array.astype(float)).any():
                at = int(np.argmax(np.isnan(array)))
                where = self.row_names()[at] if name.startswith("row") else self.column_names()[at]
                msg = f"StandardForm: {name} contains NaN at position {at} ({where}); correct the data there"
                raise ModelError(msg)
        if not np.isfinite(A.data).all():
            at = int(np.argmin(np.isfinite(A.data)))
            row = self.row_names()[A.indices[at]]
            column = self.column_names()[int(np.searchsorted(A.indptr, at, side="right")) - 1]
            msg = f"StandardForm: the constraint matrix contains NaN or infinity in row {row}, column {column}"
            raise ModelError(msg)

    @property
    def stored(self) -> Columns | sp.csc_array:
        """The matrix as it was given, if that is small: what needs no method of SciPy's reads this."""
        given: Columns | sp.csc_array = self.__dict__["A"]
        return given if given.nnz < _MANY_ENTRIES else self.A

    @cached_property
    def sizes(self) -> TermSizes:
        """Sizes of the columns and rows, estimated from the data."""
        return TermSizes.of(self)

    @cached_property
    def objective_steps(self) -> tuple[Fraction, Fraction] | None:
        """A step, and how far every value may be from ``offset`` plus a multiple of it; None if unknown."""
        return objective_steps(self)

    @property
    def size(self) -> dict[str, int]:
        """Numbers of variables, constraints, nonzeros and integer variables."""
        return {
            "variables": int(self.stored.shape[1]),
            "constraints": int(self.stored.shape[0]),
            "nonzeros": int(self.stored.nnz),
            "integers": int(np.count_nonzero(np.asarray(self.integer))),
        }

    @cached_property
    def is_mip(self) -> bool:
        """Whether some column must be integer."""
        return bool(np.any(self.integer))

    def objective(self, x: F64) -> float:
        """Objective value of ``x``, shape ``(columns,)``."""
        return float(self.cost @ x + self.offset)

    def minimized(self) -> StandardForm:
        """The same problem as a minimization: a maximization with its objective negated."""
        if self.sense == "min":
            return self
        return replace(self, A=self.stored, cost=-self.cost, offset=-self.offset, sense="min")

    def values(self, x: F64) -> dict[str, F64]:
        """Named variable arrays from a column vector."""
        return {name: block.gather(x) for name, block in self.columns.items()}

    def duals(self, y: F64) -> dict[str, F64]:
        """Named dual arrays from a row vector."""
        return {name: block.gather(y) for name, block in self.rows.items()}

    def column_names(self) -> list[str]:
        """A name for every column: ``g[0,3]`` from its block, or ``x7`` if no block contains it."""
        return entry_names(self.columns, self.stored.shape[1], "x")

    def row_names(self) -> list[str]:
        """A name for every row, as :meth:`column_names`."""
        return entry_names(self.rows, self.stored.shape[0], "r")

    def without_blocks(self) -> StandardForm:
        """The problem itself, as solvers in other processes get it; labels may be of classes unknown there."""
        return replace(self, A=self.stored, columns={}, rows={})


class _Matrix:
    """The attribute ``A``: as SciPy's array, which is made when it is first read."""

    def __get__(self, form: StandardForm, owner: type | None = None) -> sp.csc_array:
        given = form.__dict__["A"]
        if isinstance(given, Columns):
            given = form.__dict__["A"] = given.by_scipy()
        return given

    def __set__(self, form: StandardForm, given: object) -> None:
        form.__dict__["A"] = given


StandardForm.A = _Matrix()


def entry_names(blocks: Mapping[str, Block], count: int, letter: str) -> list[str]:
    """A name for each of ``count`` rows or columns: from its block, else ``letter`` and its number."""
    names = [f"{letter}{j}" for j in range(count)]
    for block in blocks.values():
        for name, where in zip(block.names(), block.index.tolist(), strict=True):
            if where >= 0:
                names[where] = name
    return names


def packed(blocks: Mapping[str, Block], size: int, values: Mapping[str, F64]) -> F64:
    """The flat vector of named arrays, nan where they give nothing: the opposite of :meth:`Block.gather`."""
    vector = np.full(size, np.nan)
    for name, block in blocks.items():
        kept = block.index >= 0
        if name in values and np.size(values[name]) == kept.size:
            vector[block.index[kept]] = np.ravel(values[name])[kept]
    return vector


def blocks(named: Mapping[str, tuple[tuple[int, ...], I64]]) -> dict[str, Block]:
    """Blocks by name, from their shapes and positions."""
    return {name: Block(name, shape, index) for name, (shape, index) in named.items()}


def canonical(matrix: Any) -> Any:
    """A sparse matrix by column, with duplicates summed, zeros dropped and indices sorted."""
    if isinstance(matrix, Columns):
        if matrix.is_canonical():
            return matrix
        matrix = matrix.by_scipy()
    import scipy.sparse as sp

    matrix = sp.csc_array(matrix, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
