"""Named arrays in coordinate form, as JSON documents have them, read as a formulation declares them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta

from opticoll.formulations.variables import Array, check_arrays, check_shapes
from opticoll.instances.readers.reading import as_struct, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from opticoll.instances.topology import F64
    from opticoll.types import Json

#: Size limit of an array that is read [entries].
MAX_ENTRIES = 200_000_000
#: Maximum number of axes of an array.
MAX_AXES = 8


class Coordinates(msgspec.Struct):
    """An array in coordinate form: its shape, and positions and values of its nonzeros.

    Some tools write whole numbers with a point.
    """

    shape: Annotated[list[Annotated[float, Meta(ge=0, le=MAX_ENTRIES, multiple_of=1)]], Meta(max_length=MAX_AXES)]
    index: list[list[Annotated[float, Meta(multiple_of=1)]]]
    value: list[float]


def coordinates(array: F64) -> dict[str, Json]:
    """An array in coordinate form."""
    where = np.argwhere(array != 0)
    return {
        "shape": list(array.shape),
        "index": where.tolist(),
        "value": array[array != 0].tolist() if array.shape else [float(array)] * len(where),
    }


def named_arrays(
    named: Mapping[str, Json], key: str, path: Path, declare: Callable[[Collection[str]], Mapping[str, Array]]
) -> dict[str, F64]:
    """Read named arrays in coordinate form, as declared (:mod:`opticoll.formulations.variables`).

    Shapes are compared before anything is allocated; sizes that the solution chooses are at most one more than the
    entries that the document lists.

    Parameters
    ----------
    named, key, path
        The arrays by name, their key in the document, and its file.
    declare
        Function that maps the names in the document to the declared arrays.

    Raises
    ------
    BadFile
        For anything other than numbers at distinct positions of the declared shapes.
    """
    if not named:
        refuse(path, f"{key!r} must be an object of named arrays")
    read = {name: as_struct(entry, Coordinates, f"{path}: {key}.{name[:60]}") for name, entry in named.items()}
    shapes = {name: tuple(map(int, entry.shape)) for name, entry in read.items()}
    for name, shape in shapes.items():
        if math.prod(shape) > MAX_ENTRIES:
            refuse(path, f"{key}.{name[:60]}: {math.prod(shape)} entries exceed the limit of {MAX_ENTRIES}")
    declared, listed = declare(named.keys()), sum(len(entry.index) for entry in read.values())
    check_shapes(declared, shapes, f"{path}: {key}", most=listed + 1)
    arrays = {name: _filled(shapes[name], entry, f"{path}: {key}.{name}") for name, entry in read.items()}
    check_arrays(declared, arrays, f"{path}: {key}")
    return arrays


def _filled(shape: tuple[int, ...], entry: Coordinates, where: str) -> F64:
    if len(entry.index) != len(entry.value):
        refuse(where, "'index' and 'value' must be lists of the same length")
    for at in entry.index:
        if len(at) != len(shape) or not all(0 <= i < s for i, s in zip(at, shape, strict=True)):
            refuse(where, f"entry {str(at)[:60]} is outside the shape {list(shape)}")
    places = np.array(entry.index, dtype=np.int64).reshape(len(entry.index), len(shape))
    strides = np.array([math.prod(shape[k + 1 :]) for k in range(len(shape))], dtype=np.int64)
    flat = places @ strides
    _, first = np.unique(flat, return_index=True)
    if first.size < flat.size:
        refuse(where, f"entry {entry.index[int(np.setdiff1d(np.arange(flat.size), first)[0])]} is given twice")
    values = np.array(entry.value, dtype=float)
    if not np.isfinite(values).all():
        refuse(where, f"value {values[~np.isfinite(values)][0]} is not a finite number")
    array = np.zeros(shape)
    array.reshape(-1)[flat] = values
    return array
