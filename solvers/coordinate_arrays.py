"""Named arrays in coordinate form, as JSON documents have them, read as a formulation declares them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile
from opticoll.formulations.variables import Array, check_arrays, check_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from opticoll.instances.topology import F64
    from opticoll.types import Json

#: Size limit of an array that is read [entries].
MAX_ENTRIES = 200_000_000
#: Maximum number of axes of an array.
MAX_AXES = 8


def named_arrays(
    document: Mapping[str, Json], key: str, path: Path, declare: Callable[[Collection[str]], Mapping[str, Array]]
) -> dict[str, F64]:
    """Read named arrays in coordinate form, as declared (:mod:`opticoll.formulations.variables`).

    Shapes are compared before anything is allocated; sizes that the solution chooses are at most one more than the
    entries that the document lists.

    Parameters
    ----------
    document, key, path
        The document, the key of its arrays, and its file.
    declare
        Function that maps the names in the document to the declared arrays.

    Raises
    ------
    BadFile
        For anything other than numbers at distinct positions of the declared shapes.
    """
    named = document.get(key)
    if not isinstance(named, dict) or not named:
        msg = f"{path}: {key!r} must be an object of named arrays"
        raise BadFile(msg)
    shapes = {name: _stated_shape(entry, f"{path}: {key}.{name[:60]}") for name, entry in named.items()}
    declared = declare(named.keys())
    listed = sum(len(entry["index"]) for entry in named.values())
    check_shapes(declared, shapes, f"{path}: {key}", most=listed + 1)
    arrays = {name: _filled(shapes[name], entry, f"{path}: {key}.{name}") for name, entry in named.items()}
    check_arrays(declared, arrays, f"{path}: {key}")
    return arrays


def _stated_shape(entry: Any, where: str) -> tuple[int, ...]:
    """The shape of an array in coordinate form; raises BadFile if there is none or it has too many entries."""
    if not isinstance(entry, dict) or not {"shape", "index", "value"} <= entry.keys():
        msg = f"{where} needs 'shape', 'index' and 'value'"
        raise BadFile(msg)
    shape, index, value = entry["shape"], entry["index"], entry["value"]
    sizes = [_whole(s) for s in shape] if isinstance(shape, list) and len(shape) <= MAX_AXES else [None]
    if not all(s is not None and 0 <= s <= MAX_ENTRIES for s in sizes):
        msg = f"{where}: 'shape' must be a list of at most {MAX_AXES} sizes"
        raise BadFile(msg)
    result = tuple(s for s in sizes if s is not None)
    if math.prod(result) > MAX_ENTRIES:
        msg = f"{where}: {math.prod(result)} entries exceed the limit of {MAX_ENTRIES}"
        raise BadFile(msg)
    if not isinstance(index, list) or not isinstance(value, list) or len(index) != len(value):
        msg = f"{where}: 'index' and 'value' must be lists of the same length"
        raise BadFile(msg)
    return result


def _filled(shape: tuple[int, ...], entry: Mapping[str, Any], where: str) -> F64:
    array = np.zeros(shape)
    seen: set[tuple[int | None, ...]] = set()
    for at, v in zip(entry["index"], entry["value"], strict=True):
        place = tuple(_whole(i) for i in at) if isinstance(at, list) else ()
        inside = len(place) == len(shape) and isinstance(at, list)
        if not inside or not all(i is not None and 0 <= i < s for i, s in zip(place, shape, strict=True)):
            msg = f"{where}: entry {str(at)[:60]} is outside the shape {list(shape)}"
            raise BadFile(msg)
        if place in seen:
            msg = f"{where}: entry {at!r} is given twice"
            raise BadFile(msg)
        number = finite_number(v)
        if number is None:
            msg = f"{where}: value {str(v)[:60]!r} at {at!r} is not a finite number"
            raise BadFile(msg)
        seen.add(place)
        array[place] = number
    return array


def _whole(value: Any) -> int | None:
    """Read a whole number, ``3`` or, as some tools write it, ``3.0``; None for anything else."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def finite_number(value: Any) -> float | None:
    """Read a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
