r"""Rows over integers whose sums take few values: their limits, lowered to the largest sum that is attained.

For a row :math:`\sum_j a_j x_j - c\,t \le r` over integer x, and an upper bound of t, only the sums up to a limit
matter. If few x are free within the column bounds at a node, all their sums are listed. Columns with the same entry in
the row, and in a row :math:`\sum_j x_j \in [\kappa_1, \kappa_2]`, form a group: only their number matters, which both
rows bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from opticoll.compiled import compiled
from opticoll.solvers.methods.reduced_program import NEAR, common_step

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64, Mask

#: Most sums of each half of a row that are listed, and the most units that its free columns can add to their bounds.
MOST_SUMS, MOST_UNITS = 8192, 100
#: Rows whose largest entry is at most this many times the step of all are left to rounding: also those of
#: :mod:`opticoll.solvers.methods.program_symmetry`, whose entries are powers of 2 up to 2**7.
MOST_STEPS = 128


@dataclass(frozen=True, eq=False)
class SumRows:
    """Rows ``sum of a x - c t <= r`` whose entries have no large step in common, ``(rows,)`` each.

    ``matrix`` holds the a, ``(rows, columns)``; ``column`` is the number of t, -1 if there is none, ``slope`` is c,
    ``limit`` is r. Of every group, ``row`` and ``entry`` are its row and the entry of its columns, ``member`` its
    columns, ``(groups, columns)``, and ``choice`` the row of ``choices`` with the sum of its columns and others, -1 if
    there is none; ``least`` and ``most`` bound these sums.
    """

    matrix: sp.csr_array
    column: I64
    slope: F64
    limit: F64
    row: I64
    entry: F64
    member: sp.csr_array
    choice: I64
    choices: sp.csr_array
    least: F64
    most: F64

    @classmethod
    def of(cls, form: StandardForm) -> SumRows:
        """All such rows of a program, with at most one continuous t each."""
        integer, A = np.asarray(form.integer, dtype=bool), sp.csr_array(form.A)
        rows, columns = A.shape
        entries = A.tocoo()
        other = (entries.data != 1.0) | ~integer[entries.col]
        plain = np.bincount(entries.row, other, rows) == 0
        chosen = np.flatnonzero(plain)
        of_column = np.full(columns, -1)
        for number, row in enumerate(chosen.tolist()):
            of_column[A.indices[A.indptr[row] : A.indptr[row + 1]]] = number
        parts = []
        for row in np.flatnonzero(~plain).tolist():
            at = slice(A.indptr[row], A.indptr[row + 1])
            for sign, end in ((1.0, form.row_upper[row]), (-1.0, -form.row_lower[row])):
                if np.isfinite(end):
                    part = _row_of(A.indices[at], sign * A.data[at], float(end), integer, of_column)
                    parts += [] if part is None else [part]
        kinds = np.array([part.entry.size for part in parts], dtype=np.int64)
        nothing, whole = sp.csr_array((0, columns)), np.empty(0, np.int64)
        return cls(
            sp.csr_array(sp.vstack([part.matrix for part in parts])) if parts else nothing,
            np.array([part.column for part in parts], dtype=np.int64),
            np.array([part.slope for part in parts]),
            np.array([part.limit for part in parts]),
            np.repeat(np.arange(len(parts)), kinds),
            np.concatenate([np.empty(0), *(part.entry for part in parts)]),
            sp.csr_array(sp.vstack([part.member for part in parts])) if parts else nothing,
            np.concatenate([whole, *(part.choice for part in parts)]),
            A[chosen],
            form.row_lower[chosen],
            form.row_upper[chosen],
        )

    def limits(self, lower: F64, upper: F64) -> F64:
        """What the a x can be at most under these column bounds, ``(rows,)``; infinite if that is not known."""
        if not self.limit.size:
            return self.limit
        with np.errstate(invalid="ignore"):
            limit = self.limit + np.where(self.column >= 0, self.slope * upper[self.column], 0.0)
        least, most = self._numbers(lower, upper)
        size = np.abs(self.entry) * np.maximum(np.abs(least), np.abs(most))
        near = NEAR * (1.0 + np.abs(limit) + np.bincount(self.row, size, limit.size))
        first = np.bincount(self.row, np.minimum(self.entry * least, self.entry * most), limit.size)
        last = np.bincount(self.row, np.maximum(self.entry * least, self.entry * most), limit.size)
        result = np.where(np.isfinite(limit), limit + near, np.inf)
        free = most > least
        units = np.where(free, most - least, 0.0)
        combinations = np.bincount(self.row, np.log2(units + 1.0), limit.size)
        few = (combinations <= 2 * np.log2(MOST_SUMS)) & (np.bincount(self.row, units, limit.size) <= MOST_UNITS)
        listed = np.isfinite(limit) & np.isfinite(last - first) & (last > limit) & (first <= limit)
        for row in np.flatnonzero(listed & few).tolist():
            at = np.flatnonzero((self.row == row) & free)
            steps, times = np.abs(self.entry[at]), (most - least)[at].astype(np.int64)
            best = largest_sum(steps, times, float(limit[row] + near[row] - first[row]))
            if best >= 0:
                result[row] = min(result[row], first[row] + best + near[row])
        return result

    def _numbers(self, lower: F64, upper: F64) -> tuple[F64, F64]:
        """Least and largest sum of the columns of every group, ``(groups,)``."""
        least, most = self.member @ lower, self.member @ upper
        chosen = np.flatnonzero(self.choice >= 0)
        q = self.choice[chosen]
        others_least, others_most = (self.choices @ lower)[q] - least[chosen], (self.choices @ upper)[q] - most[chosen]
        least[chosen] = np.maximum(least[chosen], np.ceil(self.least[q] - others_most - NEAR))
        most[chosen] = np.minimum(most[chosen], np.floor(self.most[q] - others_least + NEAR))
        return least, np.maximum(least, most)


def _dense(values: F64) -> bool:
    """Whether sums of these entries are most multiples of a step, so that listing them says little."""
    step = common_step(values)
    return step is not None and float(np.abs(values).max()) <= MOST_STEPS * step


class _Row(NamedTuple):
    """One row, as in :class:`SumRows`."""

    matrix: sp.csr_array
    column: int
    slope: float
    limit: float
    entry: F64
    member: sp.csr_array
    choice: I64


def _row_of(columns: I64, values: F64, limit: float, integer: Mask, of_column: I64) -> _Row | None:
    """The row ``values @ x[columns] <= limit`` if it has the form; ``of_column`` is the choice of every column."""
    loose = np.flatnonzero(~integer[columns])
    kept = np.flatnonzero(integer[columns])
    slope = -float(values[loose[0]]) if loose.size else 0.0
    if loose.size > 1 or slope < 0 or kept.size < 2 or _dense(values[kept]):
        return None
    inside, entries = columns[kept], values[kept]
    kinds, which = np.unique(np.stack([entries, of_column[inside].astype(float)], axis=1), axis=0, return_inverse=True)
    width = integer.size
    return _Row(
        sp.csr_array((entries, (np.zeros(inside.size, np.int64), inside)), (1, width)),
        int(columns[loose[0]]) if loose.size else -1,
        slope,
        limit,
        kinds[:, 0],
        sp.csr_array((np.ones(inside.size), (which.ravel(), inside)), (len(kinds), width)),
        kinds[:, 1].astype(np.int64),
    )


@compiled()
def largest_sum(steps: F64, times: I64, most: float) -> float:
    """The largest ``steps @ k`` that is at most ``most``, over integers 0 <= k <= ``times``; -1 if that is unknown.

    The steps are divided into two halves, whose sums are listed in increasing order; unknown if one has more than
    :data:`MOST_SUMS`.
    """
    if most < 0.0:
        return -1.0
    halves, size = np.zeros((2, MOST_SUMS)), np.ones(2, np.int64)
    merged = np.empty(MOST_SUMS)
    for i in range(steps.size):
        half = 0 if size[0] <= size[1] else 1
        for _ in range(times[i]):
            # Sums without and with one more step, in order, each once.
            a, b, count = 0, 0, 0
            sums, old = halves[half], size[half]
            while a < old or b < old:
                if a < old and (b == old or sums[a] <= sums[b] + steps[i]):
                    value = sums[a]
                    a += 1
                else:
                    value = sums[b] + steps[i]
                    b += 1
                if value > most:
                    break
                if count and value <= merged[count - 1]:
                    continue
                if count == MOST_SUMS:
                    return -1.0
                merged[count] = value
                count += 1
            sums[:count], size[half] = merged[:count], count
    best, b = 0.0, size[1] - 1
    for a in range(size[0]):
        while b >= 0 and halves[0, a] + halves[1, b] > most:
            b -= 1
        if b < 0:
            break
        best = max(best, halves[0, a] + halves[1, b])
    return best
