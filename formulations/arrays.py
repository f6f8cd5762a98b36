"""Declared shapes and ranges of the arrays of a solution.

Every formulation declares its arrays (:attr:`opticoll.formulations.model.Formulation.arrays`). Arrays from a file or a
solver are checked against that declaration before any other use, because an index out of range fails inside numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Size:
    """A size that depends on the solution, such as its number of paths; equal in all arrays that refer to it.

    ``plus`` is added to it where it is used; ``most`` is its largest value, None for no limit of its own.
    """

    name: str
    plus: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Array:
    """An array of a solution: finite real numbers, or integers with ``low <= value < high``.

    Parameters
    ----------
    shape
        Its size along every axis.
    low, high
        Range of whole numbers; ``high`` may differ by column (a tuple along the last axis), or be a size. Both None
        for real numbers.
    required
        Whether a solution must have it.
    """

    shape: tuple[int | Size, ...] = ()
    low: int | None = None
    high: int | Size | tuple[int, ...] | None = None
    required: bool = True


def check_arrays(declared: Mapping[str, Array], given: Mapping[str, NDArray[Any]], where: str) -> None:
    """Check names, shapes, finiteness, and ranges of integers against the declaration.

    Raises
    ------
    BadFile
        With ``where`` and the name of the first array that differs.
    """
    sizes = check_shapes(declared, {name: np.shape(array) for name, array in given.items()}, where)
    for name, array in given.items():
        _check_entries(declared[name], np.asarray(array), sizes, f"{where}.{name}")


def check_shapes(
    declared: Mapping[str, Array], given: Mapping[str, tuple[int, ...]], where: str, most: int | None = None
) -> dict[str, int]:
    """Check names and shapes against the declaration.

    Parameters
    ----------
    declared, where
        As in :func:`check_arrays`.
    given
        Shape of every array.
    most
        Largest size that the solution may choose along an axis, None for no limit.

    Returns
    -------
    The sizes that the solution chooses, by name.

    Raises
    ------
    BadFile
        For an unknown or missing array, or a wrong shape.
    """
    for name in given:
        if name not in declared:
            msg = f"{where}: there is no array {name[:60]!r} in this formulation; it has {', '.join(declared)}"
            raise BadFile(msg)
    for name, array in declared.items():
        if array.required and name not in given:
            msg = f"{where}: the array {name!r} is missing; a solution needs it"
            raise BadFile(msg)
    sizes: dict[str, int] = {}
    for name, shape in given.items():
        wanted = declared[name].shape
        good = len(shape) == len(wanted)
        for have, size in zip(shape, wanted, strict=False):
            if isinstance(size, Size):
                number = have - size.plus
                limits = [limit for limit in (size.most, most) if limit is not None]
                good &= 0 <= number <= min(limits, default=number) and sizes.setdefault(size.name, number) == number
            else:
                good &= have == size
        if not good:
            msg = f"{where}.{name}: its shape is {_shape_text(shape)}, expected {_shape_text(wanted, sizes)}"
            raise BadFile(msg)
    return sizes


def _shape_text(shape: tuple[int | Size, ...], sizes: Mapping[str, int] | None = None) -> str:
    words = []
    for size in shape:
        if isinstance(size, int):
            words.append(str(size))
        elif sizes and size.name in sizes:
            words.append(str(sizes[size.name] + size.plus))
        else:
            words.append(f"{size.name}+{size.plus}" if size.plus else size.name)
    return f"({', '.join(words)})"


def _check_entries(declared: Array, array: NDArray[Any], sizes: Mapping[str, int], where: str) -> None:
    if array.dtype.kind not in "fiub":
        msg = f"{where}: its entries are of type {array.dtype}, expected numbers"
        raise BadFile(msg)
    if array.dtype.kind == "f":
        # A finite sum implies finite entries, and needs no temporary array.
        with np.errstate(all="ignore"):
            finite = bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())
        if not finite:
            msg = f"{where}: an entry is not finite"
            raise BadFile(msg)
    if declared.high is None:
        return
    high: Any = declared.high
    if isinstance(high, Size):
        high = sizes[high.name] + high.plus
    wrong = (array < declared.low) | (array >= np.asarray(high))
    if array.dtype.kind == "f":
        wrong |= array != np.rint(array)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        top = high[place[-1]] if isinstance(high, tuple) else high
        msg = (
            f"{where}: entry {list(place)} is {array[place]:.16g}, expected a whole number in {declared.low}..{top - 1}"
        )
        raise BadFile(msg)
