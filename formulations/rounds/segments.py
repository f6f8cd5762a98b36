"""Positions in concatenated lists of different lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.instances.topology import I64


def offsets(length: ArrayLike) -> I64:
    """Starts of rows with these lengths, ``(rows + 1,)``; the last is the number of entries."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length, dtype=np.int64)])


def splits(start: I64, items: int, total: int) -> bool:
    """Whether ``start`` splits ``total`` entries into ``items`` rows, none of them empty."""
    return start.shape == (items + 1,) and start[0] == 0 and start[-1] == total and bool((np.diff(start) > 0).all())


def positions(start: I64, rows: I64) -> tuple[I64, I64]:
    """Concatenated entries of the selected rows: index into ``rows`` and index into ``entries``."""
    length = np.diff(start)[rows]
    owner = np.repeat(np.arange(length.size), length)
    return owner, np.arange(owner.size) + (start[:-1][rows] - offsets(length)[:-1])[owner]


def turns(group: I64) -> I64:
    """How many earlier elements have the same group, for every element."""
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    result = np.empty(group.size, dtype=np.int64)
    result[order] = np.arange(group.size) - np.repeat(begins, np.diff(np.append(begins, group.size)))
    return result


def select(start: I64, entries: I64, rows: I64) -> tuple[I64, I64]:
    """Start and entries of the selected rows, in that order."""
    return offsets(np.diff(start)[rows]), entries[positions(start, rows)[1]]
