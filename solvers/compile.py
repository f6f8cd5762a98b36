"""From a declarative model to the StandardForm, by each modelling layer's own compiler.

Rows keep the orientation that the layer compiles them to: CVXPY turns ``lhs >= rhs`` into ``rhs - lhs <= 0``, Pyomo
does not. Duals of a block have the sign of the compiled row; those of ``<=`` and ``==`` rows agree.

Unit right-hand sides and columns: what solvers find must not depend on the unit that capacities are stated in.

An LP whose columns are bounded by nothing but 0 and infinity is homogeneous in (x, row bounds): with s the largest
finite row bound, x = s y turns it into one whose row bounds are at most 1. Duals do not change. Without this,
capacities of 1e-7 drown in a feasibility tolerance of 1e-9 (measured: a certified gap of 5e-3 on GK(27,4)).

Where capacities are coefficients (load <= c T) a column of tiny ones is worse off: solvers drop entries of 1e-9 and
call what is left infeasible. Such a column is measured in another unit, x_j = y_j / k_j with k_j a power of 2, and the
objective in one in which its largest cost is about 1.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import ModelError
from opticoll.formulations.model import CvxpyModel, MatrixModel, PyomoModel
from opticoll.solvers.methods.method import Reformulation
from opticoll.solvers.standard_form import Block, Sense, StandardForm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from opticoll.formulations.model import Named
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Outcome


def import_layer(form: str) -> None:
    """Import a modelling layer, which takes a second or two the first time and is no part of building a model."""
    import_module({"cvxpy": "cvxpy", "pyomo": "pyomo.environ", "matrix": "scipy.sparse"}[form])


def compile_model(model: CvxpyModel | PyomoModel | MatrixModel) -> StandardForm:
    """The StandardForm of a built model, with blocks for its named variables and constraints.

    Raises
    ------
    ModelError
        If the model is not linear, or its layer compiles it to something else than rows and columns.
    """
    if isinstance(model, PyomoModel):
        return _from_pyomo(model)
    if isinstance(model, CvxpyModel):
        return _from_cvxpy(model)
    if isinstance(model, MatrixModel):
        return _from_matrix(model)
    msg = f"cannot compile a {type(model).__name__}; build returns CvxpyModel, PyomoModel or MatrixModel"
    raise ModelError(msg)


def _from_matrix(model: MatrixModel) -> StandardForm:
    columns, rows = (
        {name: Block(name, shape, index) for name, (shape, index) in named.items()}
        for named in (model.variables, model.constraints)
    )
    integer = np.zeros(model.cost.size, dtype=bool) if model.integer is None else model.integer
    return _tidy(
        model.A, model.row_lower, model.row_upper, model.col_lower, model.col_upper, model.cost, model.sense, 0.0,
        integer, columns, rows,
    )  # fmt: skip


def _from_cvxpy(model: CvxpyModel) -> StandardForm:
    import cvxpy as cp
    import scipy.sparse as sp

    # The data of CVXPY's SCIPY interface is plain rows and columns with bounds and integrality; no solver runs.
    try:
        data, _, _ = model.problem.get_problem_data(cp.SCIPY)
    except (cp.SolverError, cp.DCPError) as reason:
        msg = f"CVXPY cannot compile this problem to linear rows: {str(reason).splitlines()[0]}"
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
    offset = (
        float(np.asarray(program.apply_parameters()[1]).ravel()[0]) if hasattr(program, "apply_parameters") else 0.0
    )
    return _tidy(
        matrix, lower, right, low, high, flip * cost, "max" if maximise else "min", flip * offset, integer, columns,
        rows,
    )  # fmt: skip


def _bounds(values: Any, count: int, absent: float) -> NDArray[np.float64]:
    return np.full(count, absent) if values is None else np.array(values, dtype=float).ravel()


def _cvxpy_rows(program: Any, equal: int) -> dict[int, int]:
    """First row of every constraint: zero cone rows stand first, then the non-negative ones."""
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


def _pyomo_blocks(shapes: Any, items: Sequence[Any]) -> dict[str, Block]:
    index = {name: np.full(int(np.prod(shape, dtype=np.int64)), -1, dtype=np.int64) for name, shape in shapes.items()}
    strides = {name: _strides(shape) for name, shape in shapes.items()}
    for position, item in enumerate(items):
        name = item.parent_component().local_name
        if name in index:
            key = item.index()
            at = () if key is None else key if isinstance(key, tuple) else (key,)
            index[name][sum(i * s for i, s in zip(at, strides[name], strict=True))] = position
    return {name: Block(name, tuple(shape), index[name]) for name, shape in shapes.items()}


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]


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


#: Columns are rescaled if all their coefficients are smaller.
TINY = 1e-5


def unit_rows(form: StandardForm) -> Reformulation | None:
    """The problem with row bounds of at most 1 in size, or None where it already has them or does not scale."""
    ends = np.concatenate([form.row_lower, form.row_upper])
    size = float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))
    scales = all(np.isin(bound, (0.0, np.inf, -np.inf)).all() for bound in (form.col_lower, form.col_upper))
    if form.is_mip or not scales or size in (0.0, 1.0):
        return None
    scaled = replace(form, row_lower=form.row_lower / size, row_upper=form.row_upper / size, offset=0.0)

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) * size
        values = [None if v is None else v * size + form.offset for v in (outcome.objective, outcome.bound)]
        return replace(outcome, x=x, objective=values[0], bound=values[1])

    return Reformulation(scaled, recover)


def unit_columns(form: StandardForm) -> Reformulation | None:
    """The problem with continuous columns of coefficients near 1 where they were all tiny; None if there is no such."""
    largest = np.asarray(abs(form.A).max(axis=0).todense(), dtype=float).ravel() if form.A.nnz else np.zeros(0)
    tiny = (largest > 0) & (largest < TINY) & ~np.asarray(form.integer, dtype=bool)
    if not tiny.any():
        return None
    k = np.where(tiny, np.exp2(np.round(np.log2(np.where(tiny, largest, 1.0)))), 1.0)
    matrix = form.A.tocsc(copy=True)
    matrix.data /= np.repeat(k, np.diff(matrix.indptr))
    cost = form.cost / k
    most = float(np.abs(cost).max(initial=0.0))
    unit = float(np.exp2(np.round(np.log2(most)))) if most > 0 else 1.0
    scaled = replace(
        form, A=matrix, cost=cost / unit, col_lower=form.col_lower * k, col_upper=form.col_upper * k, offset=0.0
    )

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) / k
        duals = None if outcome.row_duals is None else np.asarray(outcome.row_duals) * unit
        values = [None if v is None else v * unit + form.offset for v in (outcome.objective, outcome.bound)]
        return replace(outcome, x=x, row_duals=duals, objective=values[0], bound=values[1])

    return Reformulation(scaled, recover)
