"""The program that a model from elsewhere, or one changed by hand, states: as a JSON document, and read from one.

A solution of such a model is saved with its matrix, without which nothing could check it. The model itself is not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from opticoll.formulations.matrix.stated_model import StatedProgram
from opticoll.formulations.standard_form import Block
from opticoll.instances.readers.reading import as_struct, refuse
from opticoll.solvers.task import plain

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json

#: What a result says that was loaded from such a document.
ONLY_MATRIX = "note: checked against the matrix in the file alone; the model that stated it is not kept"


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    """Places of a named array; ``labels`` of its axes, lists for tuples."""

    shape: list[int]
    index: list[int]
    labels: list[list[Any] | None] = []


class _Program(msgspec.Struct, forbid_unknown_fields=True):
    """A program by columns; a bound of null is infinite."""

    indptr: list[int]
    indices: list[int]
    data: list[float]
    row_lower: list[float | None]
    row_upper: list[float | None]
    col_lower: list[float | None]
    col_upper: list[float | None]
    cost: list[float]
    offset: float
    integer: list[bool]
    sense: Literal["min", "max"]
    column_names: list[str]
    row_names: list[str]
    notes: list[str]
    variables: dict[str, _Named]
    constraints: dict[str, _Named]


def program_document(program: StatedProgram) -> dict[str, Json]:
    """The program as JSON."""
    fields: dict[str, Any] = {name: getattr(program, name) for name in _Program.__struct_fields__}
    for name in ("variables", "constraints"):
        fields[name] = {
            key: {field: getattr(block, field) for field in _Named.__struct_fields__}
            for key, block in fields[name].items()
        }
    return plain(fields)


def read_program(stated: Any, spec: str, path: Path) -> StatedProgram:
    """The program in a solution document, under the name of its instance.

    Raises
    ------
    BadFile
        If there is none, or its numbers do not fit together.
    """
    if stated is None:
        refuse(path, "has no 'program', the matrix of the model that it solves; save it again with result.save")
    read = as_struct(stated, _Program, f"{path}: 'program'")
    columns, rows = len(read.cost), len(read.row_lower)
    sizes = {
        "row_upper": rows,
        "row_names": rows,
        **dict.fromkeys(("col_lower", "col_upper", "integer", "column_names"), columns),
        "indptr": columns + 1,
        "data": len(read.indices),
    }
    for name, size in sizes.items():
        if len(getattr(read, name)) != size:
            refuse(path, f"'program': {name} has {len(getattr(read, name))} entries, expected {size}")
    starts, entries = np.array(read.indptr), np.array(read.indices, dtype=np.int64)
    if starts[0] != 0 or starts[-1] != entries.size or (np.diff(starts) < 0).any():
        refuse(path, f"'program': indptr must rise from 0 to the {entries.size} entries")
    _refuse_outside(entries, rows, "indices", path)
    variables, constraints = (
        {name: _block(name, one, size, path) for name, one in named.items()}
        for named, size in ((read.variables, columns), (read.constraints, rows))
    )
    covered = np.concatenate([np.zeros(0, dtype=np.int64), *(block.index for block in variables.values())])
    if not np.array_equal(np.unique(covered[covered >= 0]), np.arange(columns)):
        refuse(path, f"'program': its variables must name each of the {columns} columns")
    return StatedProgram(
        indptr=starts,
        indices=entries,
        data=np.array(read.data, dtype=float),
        row_lower=_bounds(read.row_lower, -np.inf),
        row_upper=_bounds(read.row_upper, np.inf),
        col_lower=_bounds(read.col_lower, -np.inf),
        col_upper=_bounds(read.col_upper, np.inf),
        cost=np.array(read.cost, dtype=float),
        offset=read.offset,
        integer=np.array(read.integer, dtype=bool),
        sense=read.sense,
        column_names=tuple(read.column_names),
        row_names=tuple(read.row_names),
        notes=tuple(read.notes),
        spec=spec,
        variables=variables,
        constraints=constraints,
    )


def _bounds(values: list[float | None], infinite: float) -> F64:
    return np.array([infinite if value is None else value for value in values], dtype=float)


def _refuse_outside(index: I64, size: int, name: str, path: Path, least: int = 0) -> None:
    if index.size and not least <= index.min() <= index.max() < size:
        refuse(path, f"'program': {name} has an entry outside {least} to {size - 1}")


def _block(name: str, read: _Named, size: int, path: Path) -> Block:
    """The places of a named array among ``size`` columns or rows."""
    index, shape = np.array(read.index, dtype=np.int64), tuple(read.shape)
    if min(shape, default=0) < 0 or index.size != int(np.prod(shape, dtype=object)):
        refuse(path, f"'program': {name[:60]!r} has {index.size} places, and the shape {shape}")
    _refuse_outside(index, size, f"the index of {name[:60]!r}", path, -1)
    labels = tuple(None if axis is None else [_hashable(one) for one in axis] for axis in read.labels)
    if labels and [len(axis) for axis in labels if axis is not None] != [
        extent for axis, extent in zip(labels, shape, strict=False) if axis is not None
    ]:
        refuse(path, f"'program': the labels of {name[:60]!r} do not fit its shape {shape}")
    return Block(name, shape, index, labels)


def _hashable(label: object) -> Hashable:
    if isinstance(label, list):
        return tuple(_hashable(one) for one in label)
    return label if label is None or isinstance(label, str | int | float) else str(label)
