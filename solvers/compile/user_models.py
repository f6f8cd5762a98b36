"""Pyomo and CVXPY models as programs that can be solved: the user's own, and ours after a change by hand."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput, ModelError
from opticoll.formulations.matrix.stated_model import StatedModel, StatedProgram
from opticoll.formulations.model import CvxpyModel, PyomoModel
from opticoll.formulations.standard_form import Block
from opticoll.solvers.compile.compilation import Compiled, from_cvxpy, from_pyomo
from opticoll.solvers.compile.write_back import Loader
from opticoll.solvers.process.memory import TooLarge
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Axis
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances import Instance
    from opticoll.solvers.compile.compilation import Built

#: Name of the array of columns that belong to no variable.
AUXILIARY = "auxiliary"


def layer_of(value: object) -> str | None:
    """``"pyomo"`` for a Pyomo block, ``"cvxpy"`` for a CVXPY problem, None for anything else. Nothing is imported."""
    for module, kind, layer in (
        ("pyomo.core.base.block", "BlockData", "pyomo"),
        ("cvxpy.problems.problem", "Problem", "cvxpy"),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(value, getattr(loaded, kind)):
            return layer
    return None


def program_of(
    form: StandardForm,
    spec: str,
    *,
    origin: Formulation | None = None,
    origin_instance: Instance | None = None,
    same_objective: bool = False,
    notes: tuple[str, ...] = (),
) -> StatedProgram:
    """A compiled model as an instance; ``spec`` is its name in records."""
    variables = dict(form.columns)
    taken = np.zeros(form.cost.size, dtype=bool)
    for block in variables.values():
        taken[block.index[block.index >= 0]] = True
    if not taken.all():
        rest = np.flatnonzero(~taken)
        name = AUXILIARY if AUXILIARY not in variables else f"{AUXILIARY} columns"
        variables[name] = Block(name, (rest.size,), rest)
    assert form.integer is not None
    return StatedProgram(
        indptr=form.A.indptr.astype(np.int64),
        indices=form.A.indices.astype(np.int64),
        data=form.A.data,
        row_lower=form.row_lower,
        row_upper=form.row_upper,
        col_lower=form.col_lower,
        col_upper=form.col_upper,
        cost=form.cost,
        offset=form.offset,
        integer=form.integer,
        sense=form.sense,
        column_names=tuple(form.column_names()),
        row_names=tuple(form.row_names()),
        notes=notes,
        spec=spec,
        variables=variables,
        constraints=form.rows,
        origin=origin,
        origin_instance=origin_instance,
        same_objective=same_objective,
    )


def compiled(stated: Any, built: Built | None = None, *, program: Any = None) -> Compiled:
    """Compile a Pyomo or CVXPY model; arrays that ``built`` names keep their names and shapes.

    ``program`` is that of :func:`~opticoll.solvers.compile.compilation.from_cvxpy`.

    Raises
    ------
    BadInput
        If it is not a linear or mixed-integer linear program; the message names the part that is not.
    """
    with as_found(stated):
        return _compiled(stated, built, program)


def as_found(stated: Any) -> AbstractContextManager[None]:
    """Keep what CVXPY notes in a user's problem only until the end of the block."""
    if layer_of(stated) != "cvxpy":
        return nullcontext()
    from opticoll.solvers.compile.cvxpy_models import untouched

    return untouched(stated)


def _compiled(stated: Any, built: Built | None = None, program: Any = None) -> Compiled:
    start = time.monotonic()
    with refused():
        now = named_model(stated, built)
        if isinstance(now, CvxpyModel):
            return Compiled(from_cvxpy(now, program), now, time.monotonic() - start)
        form, columns, rows = from_pyomo(now, labelled=True)
        return Compiled(form, now, time.monotonic() - start, columns, rows)


@contextmanager
def refused() -> Iterator[None]:
    """Refuse a model that is not linear in the words of an input."""
    try:
        yield
    except ModelError as error:
        msg = f"the model: {error}"
        raise BadInput(msg) from error
    except MemoryError:
        msg = "the model: there is not enough memory to compile it; use a smaller instance, or form='pyomo'"
        raise TooLarge(msg) from None


def named_model(stated: Any, built: Built | None = None) -> Built:
    """The model as it is now with the names of its variables; those of the build for everything that is still there."""
    if isinstance(stated, PyomoModel | CvxpyModel):
        return stated
    if layer_of(stated) == "cvxpy":
        from opticoll.solvers.compile.cvxpy_models import as_cvxpy_model, labelled_rows

        if not isinstance(built, CvxpyModel):
            return as_cvxpy_model(stated, numbered=True)
        present = {id(one) for one in stated.variables()}
        kept = {name: named for name, named in built.variables.items() if id(named.item) in present}
        known = {id(named.item) for named in kept.values()}
        others = as_cvxpy_model(stated, numbered=True).variables if present - known else {}
        variables = {**kept, **{name: one for name, one in others.items() if id(one.item) not in known}}
        rows = {id(one): one for one in stated.constraints}
        constraints = {name: named for name, named in built.constraints.items() if id(named.item) in rows}
        return CvxpyModel(stated, variables, labelled_rows(stated.constraints, "added", constraints))
    from opticoll.solvers.compile.pyomo_models import as_pyomo_model

    found = replace(as_pyomo_model(stated), labelled=True)
    if not isinstance(built, PyomoModel):
        return found

    def same(
        now: Mapping[str, tuple[Axis, ...]], before: Mapping[str, tuple[Axis, ...]]
    ) -> dict[str, tuple[Axis, ...]]:
        still = {name for name in now if name in before and _covers(before[name], stated, name)}
        return {name: before[name] if name in still else axes for name, axes in now.items()}

    return replace(
        found,
        variables=same(found.variables, built.variables),
        constraints=same(found.constraints, built.constraints),
    )


def _covers(axes: tuple[Axis, ...], model: Any, name: str) -> bool:
    """Whether all indices of a Pyomo component lie on the axes that its build states."""
    component = model.component(name)
    if not axes:
        return not component.is_indexed()
    sets = [{(i,) for i in range(one)} if isinstance(one, int) else {_as_tuple(label) for label in one} for one in axes]
    widths = [max(map(len, one), default=1) for one in sets]
    for key in component:
        left = _as_tuple(key)
        for members, width in zip(sets, widths, strict=True):
            if left[:width] not in members:
                return False
            left = left[width:]
        if left:
            return False
    return True


def _as_tuple(key: Any) -> tuple[Any, ...]:
    """An index of a Pyomo component as a tuple."""
    return key if isinstance(key, tuple) else (key,)


def stated_task(stated: Any, **request: Any) -> tuple[Task, Loader]:
    """The task of solving a Pyomo or CVXPY model from elsewhere, and what writes the result into the model.

    Both leave notes in it, which end with :func:`as_found`. ``request`` are fields of
    :class:`~opticoll.solvers.task.Task`.
    """
    one = _compiled(stated)
    layer = layer_of(stated)
    name = str(getattr(stated, "name", None) or "unknown") if layer == "pyomo" else "unknown"
    spec = f"{layer}:{'model' if name == 'unknown' else name}"
    return Task(StatedModel, program_of(one.form, spec), **request), Loader(one)
