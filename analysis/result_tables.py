"""Values of results as labelled tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.variables import Array

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from opticoll.formulations.variables import Names


def table(
    name: str, array: NDArray[np.float64], declared: Array | None, names: Mapping[str, Names], *, zeros: bool
) -> pd.DataFrame:
    """Entries of an array with the names of their indices."""
    import pandas as pd

    entries = None if declared is None else declared.entries
    axes = declared.axes if declared is not None and declared.axes else tuple(f"index_{i}" for i in range(array.ndim))
    if isinstance(entries, tuple):  # one column per entry of the last axis
        columns = _named(axes[0], np.arange(array.shape[0]), names)
        for i, member in enumerate(entries):
            columns |= _named(member, array[:, i].astype(np.int64), names)
        return pd.DataFrame(columns)
    base = 0 if declared is None else declared.base
    members = entries is not None
    kept = array >= base if members else (np.ones(array.shape, dtype=bool) if zeros or array.ndim == 0 else array != 0)
    where = np.nonzero(kept) if array.ndim else ()
    columns = {}
    for axis, index in zip(axes, where, strict=True):
        columns |= _named(axis, index, names)
    content = array[kept] if array.ndim else array.reshape(1)
    if entries is None:
        columns[name] = content
    else:
        described = list(_named(entries, content.astype(np.int64) - base, names).values())
        columns[name] = described[0] if len(described) == 1 else content.astype(np.int64) - base
    return pd.DataFrame(columns)


def labelled_axes(
    array: NDArray[np.float64], labels: Sequence[Sequence[Hashable] | None]
) -> tuple[Array, dict[str, Names]]:
    """An array's axes and the names along them by labels per axis; tuples of one length fill a column per part."""
    axes: list[str] = []
    names: dict[str, Names] = {}
    column = 0
    for size, along in zip(array.shape, labels, strict=True):
        axis = f"index_{column}"
        axes.append(axis)
        known: list[Hashable] = list(range(size) if along is None else along)
        widths = {len(one) if isinstance(one, tuple) else 0 for one in known}
        width = widths.pop() if len(widths) == 1 else 0
        parts = [[one[i] for one in known] for i in range(width)] if width else [known]  # type: ignore[index]
        names[axis] = {f"index_{column + i}": part for i, part in enumerate(parts)}
        column += len(parts)
    return Array(array.shape, axes=tuple(axes)), names


def _named(axis: str, index: NDArray[np.int64], names: Mapping[str, Names]) -> dict[str, Any]:
    """Columns with the names of indices along an axis."""
    known = names.get(axis)
    if known is None:
        return {axis: index}
    if isinstance(known, Mapping):
        return {column: _picked(labels, index) for column, labels in known.items()}
    return {axis: _picked(known, index)}


def _picked(labels: Any, index: NDArray[np.int64]) -> NDArray[Any]:
    if isinstance(labels, range):
        return np.asarray(labels)[index]
    return np.array(labels, dtype=object)[index] if len(labels) else np.zeros(0, dtype=object)
