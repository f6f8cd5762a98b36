r"""The sparse matrix form that every solver accepts, and to which models are compiled.

.. math::
    \min / \max \; c^\top x + c_0 \quad \text{s.t.} \quad
    l_r \le A x \le u_r, \quad l_x \le x \le u_x, \quad x_j \in \mathbb{Z} \; (j \in I)

Rows and columns carry *blocks*: the names of constraints and variables in the formulation's docstring, with
the array shape they have there, so vectors can be converted back to named arrays. Infinite bounds are
``±inf``. The matrix is stored by column (CSC) because most solvers accept that without a copy.

A declarative model becomes a StandardForm by its modelling layer's own compiler. Rows keep the orientation that the
layer compiles them to: CVXPY turns ``lhs >= rhs`` into ``rhs - lhs <= 0``, Pyomo does not. Duals of a block have the
sign of the compiled row; those of ``<=`` and ``==`` rows agree.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opticoll.errors import ModelError
from opticoll.formulations.arrays import Array
from opticoll.formulations.model import CvxpyModel, MatrixModel, Named, PyomoModel
from opticoll.instances.plugins import place_of

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.formulations.model import Axis, Formulation


Sense = Literal["min", "max"]


@dataclass(frozen=True)
class Block:
    """Positions of a named array of variables or constraints among the columns or rows.

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
                at = int(np.argmax(np.isnan(array)))
                where = self.row_names()[at] if name.startswith("row") else self.column_names()[at]
                msg = f"StandardForm: {name} contains NaN at position {at} ({where}); correct the data there"
                raise ModelError(msg)
        if not np.isfinite(self.A.data).all():
            at = int(np.argmin(np.isfinite(self.A.data)))
            row = self.row_names()[self.A.indices[at]]
            column = self.column_names()[int(np.searchsorted(self.A.indptr, at, side="right")) - 1]
            msg = f"StandardForm: the constraint matrix contains NaN or infinity in row {row}, column {column}"
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
        """A name for every column: ``g[0,3]`` from its block, or ``x7`` if no block contains it."""
        return named(self.columns, self.A.shape[1], "x")

    def row_names(self) -> list[str]:
        """A name for every row, as :meth:`column_names`."""
        return named(self.rows, self.A.shape[0], "r")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the problem as named plain arrays, without its blocks; :func:`assemble` is the inverse."""
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
    """A name for each of ``count`` rows or columns: from its block, else ``letter`` and its number."""
    names = [f"{letter}{j}" for j in range(count)]
    for block in blocks.values():
        for position, where in enumerate(block.index):
            if where >= 0:
                at = ",".join(str(i) for i in np.unravel_index(position, block.shape)) if block.shape else ""
                names[where] = f"{block.name}[{at}]" if at else block.name
    return names


def import_layer(form: str) -> None:
    """Import a modelling layer, which takes up to a second the first time and is not part of building a model."""
    import_module("scipy.sparse")
    if form == "cvxpy":
        import_module("cvxpy")
    elif form == "pyomo" and "pyomo" not in sys.modules:
        # If SciPy is loaded, Pyomo also imports these parts of it, which take longer (0.7 s) than Pyomo itself and are
        # not used here. SciPy loads them on access.
        absent = [name for name in ("scipy.stats", "scipy.integrate", "scipy.spatial") if name not in sys.modules]
        sys.modules.update({name: ModuleType(name) for name in absent})
        try:
            import_module("pyomo.common.dependencies")
        finally:
            for name in absent:
                del sys.modules[name]
        import_module("pyomo.environ")


def compile_model(model: CvxpyModel | PyomoModel | MatrixModel) -> StandardForm:
    """Compile a built model to a StandardForm with blocks for its named variables and constraints.

    Variables of a bare CVXPY problem or Pyomo model keep their names, and so do Pyomo's constraints.

    Raises
    ------
    ModelError
        If the model is not linear, or its layer compiles it to something other than rows and columns.
    """
    layer = type(model).__module__.partition(".")[0]
    if layer == "cvxpy":
        return _from_cvxpy(_named_cvxpy(model))
    if layer == "pyomo":
        return _from_pyomo(_named_pyomo(model))
    if isinstance(model, PyomoModel):
        return _from_pyomo(model)
    if isinstance(model, CvxpyModel):
        return _from_cvxpy(model)
    if isinstance(model, MatrixModel):
        return _from_matrix(model)
    msg = (
        f"its build returned {type(model).__name__}; return a cp.Problem, a pyo.ConcreteModel, a CvxpyModel, a "
        "PyomoModel or a MatrixModel"
    )
    raise ModelError(msg)


def _named_cvxpy(problem: Any) -> CvxpyModel:
    """A CVXPY problem with its variables under their own names.

    Raises
    ------
    ModelError
        If a variable has no name, or two have the same name.
    """
    import cvxpy as cp

    if not isinstance(problem, cp.Problem):
        msg = f"its build returned {type(problem).__name__}; return a cp.Problem"
        raise ModelError(msg)
    named: dict[str, Named] = {}
    for variable in problem.variables():
        name = str(variable.name())
        if re.fullmatch(r"var\d+", name) or name in named:
            fault = "has no name" if name not in named else f"has the same name {name!r} as another"
            msg = f"a CVXPY variable of shape {variable.shape} {fault}; write cp.Variable(..., name='x')"
            raise ModelError(msg)
        named[name] = Named(variable, variable.shape)
    return CvxpyModel(problem, named, {})


def _named_pyomo(model: Any) -> PyomoModel:
    """A Pyomo model with the shapes of its variables and constraints.

    Raises
    ------
    ModelError
        If a variable is indexed by something other than numbers from 0.
    """
    import pyomo.environ as pyo

    variables = {item.local_name: _shape(item) for item in model.component_objects(pyo.Var, active=True)}
    constraints = {item.local_name: _shape(item) for item in model.component_objects(pyo.Constraint, active=True)}
    for name, shape in variables.items():
        if shape is None:
            msg = f"the Pyomo variable {name!r} is not indexed by numbers from 0; index it by range(n)"
            raise ModelError(msg)
    return PyomoModel(
        model, *({k: v for k, v in shapes.items() if v is not None} for shapes in (variables, constraints))
    )


def _shape(item: Any) -> tuple[int, ...] | None:
    """The shape of an array with an entry for every index of a Pyomo component; None if its indices are not numbers."""
    if not item.is_indexed():
        return ()
    keys = [key if isinstance(key, tuple) else (key,) for key in item]
    if not all(type(i) is int and i >= 0 for key in keys for i in key) or len({len(key) for key in keys}) > 1:
        return None
    return tuple(int(size) + 1 for size in np.max(keys, axis=0)) if keys else (0,)


def compile_built(formulation: Formulation, model: CvxpyModel | PyomoModel | MatrixModel) -> StandardForm:
    """Compile a model built by a formulation to a StandardForm.

    Raises
    ------
    ModelError
        As :func:`compile_model`; also if its sense or problem class differs from what the formulation states.
    """
    kinds = {CvxpyModel: "cvxpy", PyomoModel: "pyomo", MatrixModel: "matrix"}
    kind: Any = kinds.get(type(model), type(model).__module__.partition(".")[0])
    build = formulation.build.get(kind, formulation.build[formulation.forms[0]])
    where = f"{place_of(build)}formulation {formulation.name!r}"
    try:
        form = compile_model(model)
    except ModelError as error:
        msg = f"{where}: {error}"
        raise ModelError(msg) from error
    if form.sense != formulation.sense:
        msg = f"{where}: it states sense={formulation.sense!r}, but its build has {form.sense!r}; correct one of them"
        raise ModelError(msg)
    if form.is_mip and formulation.problem == "LP":
        msg = f"{where}: its build has {form.size['integers']} integer variables; state problem='MILP'"
        raise ModelError(msg)
    return form


def declared_arrays(
    formulation: Formulation, data: Any, names: Collection[str], form: StandardForm | None = None
) -> dict[str, Array]:
    """Shapes and ranges of the arrays of a solution; those of the variables of ``form`` if none are declared.

    Without ``form`` the formulation's first one is built.
    """
    if formulation.arrays is not None:
        return formulation.arrays(data, names)
    if form is None:
        form = compile_built(formulation, formulation.build[formulation.forms[0]](data))
    return {name: Array(tuple(block.shape)) for name, block in form.columns.items()}


def _from_matrix(model: MatrixModel) -> StandardForm:
    columns, rows = (
        {name: Block(name, shape, index) for name, (shape, index) in named.items()}
        for named in (model.variables, model.constraints)
    )
    integer = np.zeros(model.cost.size, dtype=bool) if model.integer is None else model.integer
    return _tidy(
        model.A, model.row_lower, model.row_upper, model.col_lower, model.col_upper, model.cost, model.sense,
        model.offset,
        integer, columns, rows,
    )  # fmt: skip


def _from_cvxpy(model: CvxpyModel) -> StandardForm:
    import cvxpy as cp
    import scipy.sparse as sp

    # The data of CVXPY's SCIPY interface is plain rows and columns with bounds and integrality; no solver runs.
    try:
        data, _, inverse = model.problem.get_problem_data(cp.SCIPY)
    except (cp.SolverError, cp.DCPError) as reason:
        text = str(reason).splitlines()[0]
        why = "its objective or constraints are not linear" if "SCIPY" in text else text
        msg = f"CVXPY cannot compile this problem to linear rows: {why}; state a linear or mixed-integer linear program"
        raise ModelError(msg) from reason
    program = data["param_prob"]
    count = program.x.size
    A, G = (data.get(key) for key in ("A", "G"))
    equal = A.shape[0] if A is not None else 0
    parts = [part for part in (A, G) if part is not None and part.shape[0]]
    matrix = sp.csc_array(sp.vstack(parts)) if parts else sp.csc_array((0, count))
    right = np.concatenate(
        [np.zeros(0), *(np.asarray(data[k]).ravel() for k, p in (("b", A), ("h", G)) if p is not None)]
    )
    lower = np.where(np.arange(right.size) < equal, right, -np.inf)
    maximise = isinstance(model.problem.objective, cp.Maximize)
    cost = np.asarray(data["c"], dtype=float).ravel()
    integer = np.zeros(count, dtype=bool)
    integer[list(data["bool_vars_idx"]) + list(data["int_vars_idx"])] = True
    low, high = (
        _bounds(data.get("lower_bounds"), count, -np.inf),
        _bounds(data.get("upper_bounds"), count, np.inf),
    )
    low[list(data["bool_vars_idx"])] = np.maximum(low[list(data["bool_vars_idx"])], 0.0)
    high[list(data["bool_vars_idx"])] = np.minimum(high[list(data["bool_vars_idx"])], 1.0)
    columns = {
        name: _named_block(name, named, program.var_id_to_col.get(named.item.id), named.item.size)
        for name, named in model.variables.items()
    }
    starts = _cvxpy_rows(program, equal)
    rows = {
        name: _named_block(name, named, starts.get(named.item.id), named.item.size)
        for name, named in model.constraints.items()
    }
    flip = -1.0 if maximise else 1.0
    offset = float(np.asarray(inverse[-1]["offset"]).ravel()[0])
    return _tidy(
        matrix, lower, right, low, high, flip * cost, "max" if maximise else "min", flip * offset, integer, columns,
        rows,
    )  # fmt: skip


def _bounds(values: Any, count: int, absent: float) -> NDArray[np.float64]:
    return np.full(count, absent) if values is None else np.array(values, dtype=float).ravel()


def _cvxpy_rows(program: Any, equal: int) -> dict[int, int]:
    """First row of every constraint: zero-cone rows come first, then the non-negative ones."""
    from cvxpy.constraints import NonNeg, Zero

    at = {Zero: 0, NonNeg: equal}
    starts = {}
    for constraint in program.constraints:
        kind = type(constraint)
        if kind not in at:
            msg = f"CVXPY compiled a constraint to {kind.__name__}; formulations must be linear"
            raise ModelError(msg)
        starts[constraint.id] = at[kind]
        at[kind] += constraint.size
    return starts


def _named_block(name: str, named: Named, start: int | None, size: int) -> Block:
    """Positions of a CVXPY object's entries (column-major from ``start``) in the named array."""
    total = int(np.prod(named.shape, dtype=np.int64))
    index = np.full(total, -1, dtype=np.int64)
    if start is not None:
        flat = np.arange(start, start + size)
        if named.index is None:
            index = flat.reshape(named.shape, order="F").ravel()
        else:
            index[named.index] = flat
    return Block(name, named.shape, index)


def _from_pyomo(model: PyomoModel) -> StandardForm:
    import scipy.sparse as sp
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    try:
        compiled = LinearStandardFormCompiler().write(model.model, mixed_form=True, set_sense=None)
    except (ValueError, RuntimeError) as reason:
        msg = f"Pyomo cannot compile this model to a linear form: {str(reason).splitlines()[0]}"
        raise ModelError(msg) from reason
    from pyomo.environ import maximize

    sense: Sense = "max" if compiled.objectives[0].sense == maximize else "min"
    right = np.asarray(compiled.rhs, dtype=float)
    kinds = np.array([row.bound_type for row in compiled.rows], dtype=np.int64)
    lower = np.where(kinds <= 0, right, -np.inf)  # 0 is equality, -1 is >=
    upper = np.where(kinds >= 0, right, np.inf)
    low = np.array([-np.inf if v.lb is None else v.lb for v in compiled.columns], dtype=float)
    high = np.array([np.inf if v.ub is None else v.ub for v in compiled.columns], dtype=float)
    integer = np.array([v.is_integer() for v in compiled.columns], dtype=bool)
    cost = np.asarray(compiled.c.toarray(), dtype=float).ravel()
    columns = _pyomo_blocks(model.variables, compiled.columns)
    rows = _pyomo_blocks(model.constraints, [row.constraint for row in compiled.rows])
    return _tidy(
        sp.csc_array(compiled.A), lower, upper, low, high, cost, sense, float(compiled.c_offset[0]), integer, columns,
        rows,
    )  # fmt: skip


def _pyomo_blocks(axes: Mapping[str, tuple[Axis, ...]], items: Sequence[Any]) -> dict[str, Block]:
    """Positions of Pyomo's items in the named arrays."""
    blocks = {}
    for name, sets in axes.items():
        shape = tuple(axis if isinstance(axis, int) else len(axis) for axis in sets)
        blocks[name] = Block(name, shape, np.full(int(np.prod(shape, dtype=np.int64)), -1, dtype=np.int64))
    places = {name: [None if isinstance(axis, int) else _places(axis) for axis in sets] for name, sets in axes.items()}
    for position, item in enumerate(items):
        name = item.parent_component().local_name
        if name in blocks:
            key = item.index()
            left = () if key is None else key if isinstance(key, tuple) else (key,)
            at = 0
            for size, place in zip(blocks[name].shape, places[name], strict=True):
                width, numbers = place or (1, None)
                at = at * size + (left[0] if numbers is None else numbers[left[:width]])
                left = left[width:]
            blocks[name].index[at] = position
    return blocks


def _places(axis: Sequence[Hashable]) -> tuple[int, dict[tuple[Hashable, ...], int]]:
    """Number of Pyomo indices per entry of an axis, and the position of each of its labels."""
    labels = [label if isinstance(label, tuple) else (label,) for label in axis]
    return len(labels[0]) if labels else 1, {label: i for i, label in enumerate(labels)}


def _tidy(
    matrix: Any,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    cost: NDArray[np.float64],
    sense: Sense,
    offset: float,
    integer: NDArray[np.bool_],
    columns: dict[str, Block],
    rows: dict[str, Block],
) -> StandardForm:
    """Canonical storage: duplicates summed, zeros dropped, indices sorted."""
    import scipy.sparse as sp

    matrix = sp.csc_array(matrix, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return StandardForm(matrix, lower, upper, low, high, cost, sense, offset, integer, columns, rows)
