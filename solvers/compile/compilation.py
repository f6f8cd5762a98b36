"""Compilation of a declarative model to the matrix of all solvers, by its modelling layer's own compiler.

Rows keep the orientation that the layer compiles them to: CVXPY turns ``lhs >= rhs`` into ``rhs - lhs <= 0``, Pyomo
does not. Duals of a block have the sign of the compiled row; those of ``<=`` and ``==`` rows agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput, ModelError
from opticoll.formulations import declared_axes
from opticoll.formulations.matrix.stated_model import StatedModel
from opticoll.formulations.model import CvxpyModel, Named, PyomoModel, build_model, forms_of, is_own, states
from opticoll.formulations.modelling_layers import many_objects
from opticoll.formulations.standard_form import Block, StandardForm, canonical
from opticoll.formulations.variables import Array, check_shapes, numbered
from opticoll.plugin_faults import place_of

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    import cvxpy as cp

    from opticoll.formulations.model import Axis, Formulation
    from opticoll.formulations.standard_form import Sense
    from opticoll.instances.topology import F64, I64

    Built = PyomoModel | CvxpyModel


@dataclass(frozen=True)
class Compiled:
    """A model that was compiled: its matrix, and itself with the names of all its variables and constraints.

    ``compile_s`` is the time that it took [s]; ``columns`` and ``rows`` are Pyomo's variable of every column, and its
    constraint of every row.
    """

    form: StandardForm
    built: Built
    compile_s: float
    columns: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)


def compile_model(model: CvxpyModel | PyomoModel | StandardForm) -> StandardForm:
    """Compile a built model to a StandardForm with blocks for its named variables and constraints.

    Variables of a bare CVXPY problem or Pyomo model keep their names, as do constraints, in CVXPY those with a label.

    Raises
    ------
    ModelError
        If the model is not linear, or its layer compiles it to something other than rows and columns.
    """
    layer = type(model).__module__.partition(".")[0]
    if layer == "cvxpy":
        from opticoll.solvers.compile.cvxpy_models import as_cvxpy_model

        return from_cvxpy(as_cvxpy_model(model))
    if layer == "pyomo":
        from opticoll.solvers.compile.pyomo_models import as_pyomo_model

        return from_pyomo(as_pyomo_model(model), labelled=True)[0]
    if isinstance(model, PyomoModel):
        return from_pyomo(model, labelled=model.labelled)[0]
    if isinstance(model, CvxpyModel):
        return from_cvxpy(model)
    if isinstance(model, StandardForm):
        return replace(model, A=canonical(model.stored))
    msg = (
        f"its build returned {type(model).__name__}; return a cp.Problem, a pyo.ConcreteModel, a CvxpyModel, a "
        "PyomoModel or a StandardForm"
    )
    raise ModelError(msg)


def compile_built(formulation: Formulation, model: CvxpyModel | PyomoModel | StandardForm) -> StandardForm:
    """Compile a model built by a formulation to a StandardForm.

    Raises
    ------
    ModelError
        As :func:`compile_model`; also if its sense or problem class differs from what the formulation states.
    """
    if is_own(formulation) and isinstance(model, PyomoModel):
        from opticoll.solvers.compile.pyomo_models import with_added

        model = with_added(model)
    try:
        with many_objects():
            form = compile_model(model)
    except ModelError as error:
        raise _misbuilt(formulation, model, str(error)) from error
    if form.sense != formulation.sense and not form.cost.any():  # the minimum of a constant is its maximum
        form = replace(form, sense=formulation.sense)
    if form.sense != formulation.sense:
        why = f"it states sense={formulation.sense!r}, but its build has {form.sense!r}; correct one of them"
        raise _misbuilt(formulation, model, why)
    if form.is_mip and formulation.problem == "LP":
        why = f"its build has {form.size['integers']} integer variables; state problem='MILP'"
        raise _misbuilt(formulation, model, why)
    refuse_other_axes(formulation, form)
    return form


def _misbuilt(formulation: Formulation, model: object, why: str) -> ModelError:
    """The error for a model that a formulation has built, with the place of the build."""
    kinds = {CvxpyModel: "cvxpy", PyomoModel: "pyomo", StandardForm: "matrix"}
    kind: Any = kinds.get(type(model), type(model).__module__.partition(".")[0])
    build = getattr(formulation, kind if kind in forms_of(formulation) else forms_of(formulation)[0])
    return ModelError(f"{place_of(build)}formulation {formulation.name!r}: {why}")


def refuse_other_axes(formulation: Formulation, form: StandardForm) -> None:
    """Refuse a build whose variables have other shapes than the axes that a formulation of one's own declares.

    Raises
    ------
    ModelError
        With the variable, its axes and their sizes.
    """
    if type(formulation)._arrays is not declared_axes.arrays or states(formulation, "_unfold"):
        return
    wrong = _misstated(formulation, {name: block.shape for name, block in form.columns.items()})
    if wrong is not None:
        msg = f"{place_of(getattr(formulation, forms_of(formulation)[0]))}formulation {formulation.name!r}: {wrong}"
        raise ModelError(msg)


def declared_arrays(
    formulation: Formulation, names: Collection[str], form: StandardForm | None = None
) -> dict[str, Array]:
    """Axes and ranges of the arrays of a solution, without duals; the variables of ``form`` if none are declared.

    Without ``form`` the formulation's first one is built.
    """
    declared = formulation._arrays(names)
    if declared is not None:
        return {name: array for name, array in declared.items() if not array.dual}
    if form is None:
        form = compile_built(formulation, build_model(formulation))
    return {name: Array(numbered(block.shape)) for name, block in form.columns.items()}


def declared_duals(formulation: Formulation, names: Collection[str]) -> dict[str, Array]:
    """The duals that a certificate reads, beside a solution of these names.

    Those of a formulation that declares none are those of all named constraints of its first form.
    """
    declared = {name: array for name, array in (formulation._arrays(names) or {}).items() if array.dual}
    if declared:
        return declared
    rows = compile_built(formulation, build_model(formulation)).rows
    return {name: Array(numbered(block.shape), required=False, dual=True) for name, block in rows.items()}


def index_labels(formulation: Formulation, form: str | None) -> dict[str, tuple[Sequence[Hashable] | None, ...]]:
    """Labels of the indices of a user's variables that are not numbered 0, 1, ..., by axis (:class:`Block`).

    The model is built again; models of the package, and those with declared arrays, have no such labels.
    """
    if isinstance(formulation, StatedModel):
        return formulation.index_labels()
    if not is_own(formulation) or states(formulation, "_arrays") or (form or forms_of(formulation)[0]) != "pyomo":
        return {}
    blocks = compile_built(formulation, formulation.pyomo()).columns
    return {name: block.labels for name, block in blocks.items() if block.labels}


def from_cvxpy(model: CvxpyModel, program: cp.Problem | None = None) -> StandardForm:
    """Compile a CVXPY problem, in a problem of its own: what CVXPY keeps of a compilation does not stay with the model.

    ``program`` is such a problem that keeps it for the next time, with other values of the parameters: the first time
    then takes twice as long, the next ones a tenth (disciplined parametrized programming).
    """
    import cvxpy as cp

    from opticoll.solvers.compile.cvxpy_models import (
        back_end,
        labelled_rows,
        positions,
        refuse_incomplete,
        turned,
        unwarned,
        why_not_linear,
    )
    from opticoll.solvers.compile.cvxpy_rows import ROWS, row_places

    try:
        with unwarned(model.problem):
            refuse_incomplete(model.problem)
            if not model.problem.variables():
                return _without_variables(model)
            own = program or cp.Problem(model.problem.objective, model.problem.constraints)
            backend = back_end(model.problem, once=program is None)
            data, chain, inverse = own.get_problem_data(ROWS, ignore_dpp=program is None, canon_backend=backend)
    except ModelError:
        raise
    except MemoryError:
        raise
    except Exception as reason:  # CVXPY raises many types
        why = why_not_linear(model.problem, reason)
        msg = f"CVXPY cannot compile this problem to linear rows: {why}; state a linear or mixed-integer linear program"
        raise ModelError(msg) from reason
    compiled, matrix, lower, upper = data["param_prob"], data["A"], data["lower"], data["upper"]
    places = positions(compiled, chain.reductions, inverse, [named.item for named in model.variables.values()])
    columns = {name: _named_block(name, named, places) for name, named in model.variables.items()}
    starts = row_places(compiled)
    constraints = labelled_rows(model.problem.constraints, "added", model.constraints)
    rows = {name: _named_block(name, named, starts) for name, named in constraints.items()}
    if model.as_stated:
        stated = [starts[one] for one in turned(model.problem.constraints) if one in starts]
        matrix, lower, upper = _turned_back(matrix, lower, upper, stated)
    maximise = isinstance(model.problem.objective, cp.Maximize)
    flip = -1.0 if maximise else 1.0
    return StandardForm(
        canonical(matrix),
        lower,
        upper,
        data["low"],
        data["high"],
        flip * data["cost"],
        "max" if maximise else "min",
        flip * data["offset"],
        data["integer"],
        columns,
        rows,
    )


def _without_variables(model: CvxpyModel) -> StandardForm:
    """A CVXPY problem without variables: rows without entries, violated as its constraints are."""
    import scipy.sparse as sp

    excess: list[F64] = []
    rows, count = {}, 0
    for name, named in model.constraints.items():
        violation = np.asarray(named.item.violation(), dtype=float)
        rows[name] = Block(name, violation.shape, np.arange(count, count + violation.size))
        excess.append(violation.ravel())
        count += violation.size
    upper = -np.concatenate([np.zeros(0), *excess])
    none = np.zeros(0)
    goal = model.problem.objective
    sense: Sense = "max" if goal.NAME == "maximize" else "min"
    value = float(goal.args[0].value)
    A = canonical(sp.csc_array((count, 0)))
    return StandardForm(
        A, np.full(count, -np.inf), upper, none, none, none, sense, value, np.zeros(0, dtype=bool), {}, rows
    )


def _turned_back(matrix: Any, lower: F64, upper: F64, rows: list[I64]) -> tuple[Any, F64, F64]:
    """The rows of -a x <= -b as a x >= b."""
    import scipy.sparse as sp

    chosen = np.zeros(lower.size, dtype=bool)
    for part in rows:
        chosen[part] = True
    if not chosen.any():
        return matrix, lower, upper
    entries = matrix.data * np.where(chosen, -1.0, 1.0)[matrix.indices]
    matrix = sp.csc_array((entries, matrix.indices, matrix.indptr), shape=matrix.shape)
    return matrix, np.where(chosen, 0.0 - upper, lower), np.where(chosen, np.inf, upper)


def _named_block(name: str, named: Named, places: Mapping[int, I64]) -> Block:
    """Positions of a CVXPY object's entries in the named array; ``places`` has them by id, in column-major order."""
    index = np.full(int(np.prod(named.shape, dtype=np.int64)), -1, dtype=np.int64)
    flat = places.get(named.item.id)
    if flat is not None:
        if named.index is None:
            index = flat.reshape(named.shape, order="F").ravel()
        else:
            index[named.index] = flat
    return Block(name, named.shape, index)


def from_pyomo(model: PyomoModel, *, labelled: bool = False) -> tuple[StandardForm, list[Any], list[Any]]:
    """Compile a Pyomo model; also returns the Pyomo variable of every column and the constraint of every row."""
    import scipy.sparse as sp
    from pyomo.core import maximize

    from opticoll.solvers.compile import pyomo_models

    linear, impossible = pyomo_models.compiled(model.model)
    found = list(linear.columns)
    variables = dict(model.variables) | (pyomo_models.elsewhere(model, found) if labelled else {})
    columns = pyomo_blocks(variables, found, labelled=labelled)
    if any((block.index < 0).any() for block in columns.values()) and (more := pyomo_models.unused(model, found)):
        found += more
        columns = pyomo_blocks(variables, found, labelled=labelled)
    A = sp.csc_array(linear.A)
    A.resize((A.shape[0] + len(impossible), len(found)))
    cost = np.zeros(len(found))
    sense: Sense = "min"
    offset = 0.0
    if linear.objectives:
        sense = "max" if linear.objectives[0].sense == maximize else "min"
        cost[: len(linear.columns)] = linear.c.toarray().ravel()
        offset = float(linear.c_offset[0])
    right = np.asarray(linear.rhs, dtype=float)
    kinds = np.array([row.bound_type for row in linear.rows], dtype=np.int64)
    empty = np.array([pyomo_models.constant_row(one) for one in impossible], dtype=float).reshape(-1, 3)
    lower = np.concatenate([np.where(kinds <= 0, right, -np.inf), empty[:, 0] - empty[:, 1]])  # 0 is ==, -1 is >=
    upper = np.concatenate([np.where(kinds >= 0, right, np.inf), empty[:, 2] - empty[:, 1]])
    integer = np.array(pyomo_models.integrality(found), dtype=bool)
    bounds = pyomo_models.bounds(found)
    low = np.array([-np.inf if lb is None else lb for lb, _ in bounds], dtype=float)
    high = np.array([np.inf if ub is None else ub for _, ub in bounds], dtype=float)
    listed = [row.constraint for row in linear.rows] + impossible
    again = [one is before for one, before in zip(listed[1:], listed, strict=False)]
    if any(again):  # Pyomo states two sides as two rows
        first = np.flatnonzero(~np.array([False, *again]))
        A, lower, upper = A.tocsr()[first], np.maximum.reduceat(lower, first), np.minimum.reduceat(upper, first)
        listed = [listed[row] for row in first]
    rows = pyomo_blocks(model.constraints, listed, labelled=labelled)
    form = StandardForm(canonical(A), lower, upper, low, high, cost, sense, offset, integer, columns, rows)
    return form, found, listed


def pyomo_blocks(
    axes: Mapping[str, tuple[Axis, ...]], items: Sequence[Any], *, labelled: bool = False
) -> dict[str, Block]:
    """Positions of Pyomo's items in the named arrays; with labels on the axes whose indices are not 0, 1, ..."""
    blocks = {}
    for name, sets in axes.items():
        shape = tuple(axis if isinstance(axis, int) else len(axis) for axis in sets)
        labels = tuple(None if isinstance(axis, int) else axis for axis in sets) if labelled else ()
        index = np.full(int(np.prod(shape, dtype=np.int64)), -1, dtype=np.int64)
        blocks[name] = Block(name, shape, index, labels if any(one is not None for one in labels) else ())
    #: Indices of the items of every named component, and their numbers.
    found: dict[int, tuple[list[Any], list[int]]] = {}
    named: dict[str, tuple[list[Any], list[int]]] = {}
    before, keys, numbers = None, list[Any](), list[int]()
    for number, item in enumerate(items):
        component = item.parent_component()
        if component is not before:
            if id(component) not in found:
                name = component.name if component.name in blocks else component.local_name
                found[id(component)] = named.setdefault(name, ([], []))
            before, (keys, numbers) = component, found[id(component)]
        keys.append(item.index())
        numbers.append(number)
    for name, (keys, numbers) in named.items():
        if name in blocks:
            blocks[name].index[_places(axes[name], keys)] = numbers
    return blocks


def _places(axes: Sequence[Axis], keys: Sequence[Any]) -> I64:
    """Positions of Pyomo's indices in the array along the axes, in C order.

    The labels of an only axis may have different lengths; those of several are of one length along each.
    """
    at = np.zeros(len(keys), dtype=np.int64)
    parts = iter(zip(*keys, strict=True)) if len(axes) > 1 else iter(())
    for axis in axes:
        width = len(axis[0]) if not isinstance(axis, int) and isinstance(axis[0], tuple) else 1
        column: Any = keys if len(axes) == 1 else next(parts) if width == 1 else zip(*islice(parts, width), strict=True)
        if isinstance(axis, int):
            at = at * axis + np.fromiter(column, np.int64, len(keys))
        else:
            place = {
                label[0] if isinstance(label, tuple) and len(label) == 1 else label: i for i, label in enumerate(axis)
            }
            at = at * len(axis) + np.fromiter(map(place.__getitem__, column), np.int64, len(keys))
    return at


def _misstated(problem: Any, shapes: Mapping[str, tuple[int, ...]]) -> str | None:
    """Describe a variable whose shape in a build differs from its declared axes; None if there is none."""
    declared = declared_axes.arrays(problem, shapes.keys())
    if declared is None:
        return None
    for name, shape in shapes.items():
        one, along = {name: declared[name]}, tuple(problem.variables[name])
        if _fits(one, {name: shape}):
            continue
        sizes = [
            f"{axis} ({size if isinstance(size, int) else 'any'})"
            for axis, size in zip(along, one[name].shape, strict=True)
        ]
        text = f"{name} is declared with the axes {', '.join(sizes) or 'none'}, but has the shape {shape} in the build"
        for order in permutations(range(len(along))):
            other = replace(one[name], axes=tuple(one[name].axes[i] for i in order))
            if _fits({name: other}, {name: shape}):
                names = ", ".join(repr(along[i]) for i in order)
                return f"{text}; write variables = {{{name!r}: ({names}), ...}}"
        return f"{text}; correct one of them"
    return None


def _fits(declared: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    try:
        check_shapes(declared, shapes, "build")
    except BadInput:
        return False
    return True
