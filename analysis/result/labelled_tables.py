"""Values of results as labelled tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.variables import Array, Axis

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from opticoll.formulations.variables import Names
    from opticoll.instances.topology import F64, I64


def table(
    name: str, array: F64, declared: Array, names: Callable[[Axis], Names | None], *, zeros: bool
) -> pd.DataFrame:
    """Entries of an array with the names of their indices."""
    import pandas as pd

    def named(axis: Axis, index: I64) -> dict[str, Any]:
        known = names(axis)
        if known is None:
            return {axis.name: index}
        columns = known if isinstance(known, Mapping) else {axis.name: known}
        return {column: _picked(labels, index) for column, labels in columns.items()}

    entries, axes, base = declared.entries, declared.axes, declared.base
    if isinstance(entries, tuple):  # one column per entry of the last axis
        columns = named(axes[0], np.arange(array.shape[0]))
        for i, member in enumerate(entries):
            columns |= named(member, array[:, i].astype(np.int64))
        return pd.DataFrame(columns)
    members = entries is not None
    kept = array >= base if members else (np.ones(array.shape, dtype=bool) if zeros or array.ndim == 0 else array != 0)
    where = np.nonzero(kept) if array.ndim else ()
    columns = {}
    for axis, index in zip(axes, where, strict=True):
        columns |= named(axis, index)
    content = array[kept] if array.ndim else array.reshape(1)
    if entries is None:
        columns[name] = content
    else:
        described = list(named(entries, content.astype(np.int64) - base).values())
        columns[name] = described[0] if len(described) == 1 else content.astype(np.int64) - base
    return pd.DataFrame(columns)


def labelled_axes(array: F64, labels: Sequence[Sequence[Hashable] | None]) -> Array:
    """An array's axes by labels per axis; tuples of one length fill a column per part."""
    axes: list[Axis] = []
    column = 0
    for size, along in zip(array.shape, labels, strict=True):
        known: list[Hashable] = list(range(size) if along is None else along)
        widths = {len(one) if isinstance(one, tuple) else 0 for one in known}
        width = widths.pop() if len(widths) == 1 else 0
        parts = [[one[i] for one in known] for i in range(width)] if width else [known]  # type: ignore[index]
        names = {f"index_{column + i}": part for i, part in enumerate(parts)}
        axes.append(Axis(f"index_{column}", size, names))
        column += len(parts)
    return Array(tuple(axes))


def _picked(labels: Any, index: I64) -> NDArray[Any]:
    if isinstance(labels, range):
        return np.asarray(labels)[index]
    return np.fromiter(labels, dtype=object, count=len(labels))[index]  # a label may be a tuple
