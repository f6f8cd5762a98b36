"""Sparse index sets: tables of whole numbers, whose sums over one another are sparse matrices.

An :class:`Index` has a line for every member: its ``key`` columns are the index, others are data. As the members of an
axis, or as ``over=`` of variables and rows (:mod:`opticoll.formulations.builders`), it leaves out what the mathematics
leaves out. Sets are made of sets as tables are (``where``, ``by``, ``join``); every sum over a set is one operation:

    laser = transfers.by("round source wavelength")   # the rows laser[r,s,w]
    laser.of(transfers) @ C                           # sum of C over the transfers with this r, s and w
    rows.of(moves, head="vertex") @ f                 # sum of f over the moves whose head is the row's vertex
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import ModelError
from opticoll.formulations.rounds.segments import offsets

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

    from opticoll.instances.topology import I64


@dataclass(frozen=True, eq=False)
class Index(Sequence[Any]):
    """Lines of whole numbers by name.

    Parameters
    ----------
    key
        Names of the columns that are the index.
    columns
        The columns, each ``(lines,)``.
    entry, width
        For lines that were selected or joined: the line that each comes from, ``(lines,)``, in the set of ``width``
        lines which has a variable for every line.
    """

    key: tuple[str, ...]
    columns: Mapping[str, I64]
    entry: I64
    width: int

    @classmethod
    def table(cls, key: str, *parts: Mapping[str, ArrayLike]) -> Index:
        """The lines of all parts, one part after the other.

        Parameters
        ----------
        key
            Names of the columns that are the index, separated by blanks.
        parts
            Columns by name, the same names in every part; a number stands in every line of its part.
        """
        spread = [np.broadcast_arrays(*(np.asarray(x, dtype=np.int64) for x in part.values())) for part in parts]
        columns = {name: np.concatenate([np.atleast_1d(one[i]) for one in spread]) for i, name in enumerate(parts[0])}
        size = len(next(iter(columns.values())))
        return cls(tuple(key.split()), columns, np.arange(size), size)

    @classmethod
    def grid(cls, **sizes: int) -> Index:
        """All indices of an array, in C order: the length of every axis by its name."""
        places = np.indices(tuple(sizes.values())).reshape(len(sizes), -1)
        width = places.shape[1]
        return cls(tuple(sizes), dict(zip(sizes, places, strict=True)), np.arange(width), width)

    @classmethod
    def of_mask(cls, key: str, mask: ArrayLike) -> Index:
        """The indices, in C order, at which an array is true."""
        return cls.table(key, dict(zip(key.split(), np.nonzero(np.asarray(mask)), strict=True)))

    def __len__(self) -> int:
        return len(self.entry)

    def __getitem__(self, name: Any) -> Any:
        """A column by its name; a label, or several, by position."""
        if not isinstance(name, str):
            return self.labels[name]
        if name not in self.columns:
            msg = f"the index set of {', '.join(self.key)} has no column {name!r}; it has {', '.join(self.columns)}"
            raise ModelError(msg)
        return self.columns[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    @cached_property
    def labels(self) -> list[Any]:
        """The index of every line: a tuple, or a number if the key is one column."""
        columns = [self.columns[name].tolist() for name in self.key]
        return list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]

    # sets made of sets

    def where(self, kept: ArrayLike) -> Index:
        """The lines that are ``kept``, in their order."""
        at = np.flatnonzero(np.broadcast_to(kept, len(self)))
        columns = {name: column[at] for name, column in self.columns.items()}
        return replace(self, columns=columns, entry=self.entry[at])

    def given(self, **columns: ArrayLike) -> Index:
        """The lines with further columns, or others in their place."""
        more = {name: np.broadcast_to(np.asarray(one, dtype=np.int64), len(self)) for name, one in columns.items()}
        return replace(self, columns={**self.columns, **more})

    def known_by(self, names: str) -> Index:
        """The lines with these columns alone, as entries that are compared in no other."""
        return replace(self, key=(), columns={name: self[name] for name in names.split()})

    def by(self, key: str, *also: str) -> Index:
        """The distinct keys, sorted, with the columns ``also``, which depend on the key, and the ``count`` of lines."""
        names = tuple(key.split())
        code, _, _ = _codes([(self[name], self[name]) for name in names], len(self), len(self))
        _, first, count = np.unique(code, return_index=True, return_counts=True)
        columns = {name: self[name][first] for name in (*names, *also)} | {"count": count}
        return Index(names, columns, np.arange(len(first)), len(first))

    def join(self, other: Index) -> Index:
        """A line for every pair of lines that agree in all names that both have: still entries, and keys, of this."""
        names = sorted(self.columns.keys() & other.columns.keys())
        left, right = _pairs([self[name] for name in names], [other[name] for name in names], len(self), len(other))
        columns = {name: column[right] for name, column in other.columns.items()}
        columns |= {name: column[left] for name, column in self.columns.items()}
        return replace(self, columns=columns, entry=self.entry[left])

    def keyed(self, key: str) -> Index:
        """These lines as a set of their own, with another key."""
        return Index.table(key, self.columns)

    # sums over sets

    def of(
        self,
        entries: Index,
        *,
        where: Callable[[Mapping[str, I64], Mapping[str, I64]], ArrayLike] | None = None,
        **equal: str | ArrayLike,
    ) -> sp.csr_array:
        """Matrix of these lines by entries: 1 where they agree in the names of the key that the entries have too.

        Parameters
        ----------
        entries
            Lines with a variable each.
        where
            Function of the columns of two matching lines, this one's and the entry's: whether the entry counts.
        equal
            For a column of the entries, what it must equal: a column of these lines, or numbers, one a line. A column
            that is named here is compared with nothing else.

        Raises
        ------
        ModelError
            If no column is compared, or a set lacks one.
        """
        from scipy.sparse import csr_array

        used = {one for one in equal.values() if isinstance(one, str)}
        names = [name for name in self.key if name in entries.columns and name not in equal and name not in used]
        if not names and not equal:
            msg = f"the index sets of {', '.join(self.key)} and of {', '.join(entries.key)} share no name; "
            msg += "say what is equal, as in rows.of(entries, head='vertex')"
            raise ModelError(msg)
        ours = [self[name] for name in names]
        ours += [self[one] if isinstance(one, str) else np.broadcast_to(one, len(self)) for one in equal.values()]
        row, line = _pairs(ours, [entries[name] for name in (*names, *equal)], len(self), len(entries))
        if where is not None:
            both = [
                {name: column[at] for name, column in index.columns.items()}
                for index, at in ((self, row), (entries, line))
            ]
            counts = np.flatnonzero(where(*both))
            row, line = row[counts], line[counts]
        start = offsets(np.bincount(row, minlength=len(self)))  # rows are in order
        matrix = csr_array((np.ones(len(row)), entries.entry[line], start), shape=(len(self), entries.width))
        matrix.sum_duplicates()
        return matrix


def _codes(columns: Sequence[tuple[I64, I64]], left: int, right: int) -> tuple[I64, I64, int]:
    """One number a line of two tables, equal where their columns are, in the order of the columns; and what exceeds."""
    code, other, most = np.zeros(left, dtype=np.int64), np.zeros(right, dtype=np.int64), 1
    for ours, theirs in columns:
        low = min(ours.min(initial=0), theirs.min(initial=0))
        span = int(max(ours.max(initial=0), theirs.max(initial=0)) - low + 1)
        code, other, most = code * span + (ours - low), other * span + (theirs - low), most * span
    if most >= 2**63:
        msg = "the keys of an index set do not fit into 64 bits"
        raise OverflowError(msg)
    return code, other, most


def _pairs(ours: Sequence[I64], theirs: Sequence[I64], left: int, right: int) -> tuple[I64, I64]:
    """All pairs of lines of two tables whose columns agree, in the order of the first table."""
    code, other, most = _codes(list(zip(ours, theirs, strict=True)), left, right)
    order = np.argsort(other, kind="stable")
    if most <= 32 * (left + right):  # where every key is, is a short list
        start = offsets(np.bincount(other, minlength=most))
        first, count = start[code], start[code + 1] - start[code]
    else:
        first, end = (np.searchsorted(other[order], code, side=side) for side in ("left", "right"))
        count = end - first
    line = np.repeat(np.arange(left), count)
    return line, order[np.arange(len(line)) - np.repeat(np.cumsum(count) - count - first, count)]
