r"""Branch and bound that also uses what integrality implies for rows and column bounds.

Small programs with large coefficients have weak relaxations: with :math:`\sum_j x_j \le c\,t` over binaries and c =
0.001, a bound on t says little, although at most :math:`\lfloor c\,t \rfloor` of the x can be 1. Two consequences of
an incumbent U and of the column bounds at a node are therefore added to the relaxation, each rounded outward:

*rows*
    A row :math:`\sum_j a_j x_j - c\,t \le r` over integer x whose a are multiples of g implies :math:`\sum_j a_j x_j
    \le g \lfloor (r + c\,\bar t) / g \rfloor` for the node's upper bound :math:`\bar t` of t.
*columns*
    Bounds of columns that the rows imply for solutions of value at most P, a little below U.

A leaf closed with these proves that it has no solution of value at most P.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from opticoll.compiled import compiled
from opticoll.formulations.rounding import TINY, UNIT
from opticoll.solvers.methods.branching.branching_tree import WHOLE, BranchingTree, Node
from opticoll.solvers.methods.branching.whole_sides import NEAR, common_step
from opticoll.solvers.relaxation import rounded
from opticoll.solvers.verify import Inequalities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64

Mask: TypeAlias = "NDArray[np.bool_]"

#: Part of the tolerance by which better solutions must improve the incumbent.
SHARE = 0.1
#: Most passes over the rows that tighten column bounds at a node, and the least share of its range that a continuous
#: column must lose for another pass.
PASSES, PROGRESS = 8, 1e-3


@dataclass(frozen=True, eq=False)
class IntegralRows:
    """Rows ``sum of a x - c t <= r``, a multiple of ``step`` in every solution but for t, ``(rows,)`` each.

    ``matrix`` holds the a, ``(rows, columns)``; ``column`` is the number of t, ``slope`` is c > 0.
    """

    matrix: sp.csc_array
    column: I64
    slope: F64
    limit: F64
    step: F64

    @classmethod
    def of(cls, form: StandardForm) -> IntegralRows:
        """All such rows of a program, with at most one t each."""
        columns = form.A.shape[1]
        integer, A = np.asarray(form.integer, dtype=bool), sp.csr_array(form.A)
        rows, column, slope, limit, steps = [], [], [], [], []
        for row in range(A.shape[0]):
            at = slice(A.indptr[row], A.indptr[row + 1])
            for sign, end in ((1.0, form.row_upper[row]), (-1.0, -form.row_lower[row])):
                found = None if not np.isfinite(end) else _lattice(A.indices[at], sign * A.data[at], integer)
                if found is not None:
                    t, kept, step = found
                    inside = A.indices[at][kept]
                    rows.append(sp.csr_array((sign * A.data[at][kept], ([0] * inside.size, inside)), (1, columns)))
                    column.append(int(A.indices[at][t]))
                    slope.append(-sign * float(A.data[at][t]))
                    limit.append(float(end))
                    steps.append(step)
        matrix = sp.csc_array(sp.vstack(rows)) if rows else sp.csc_array((0, columns))
        return cls(matrix, np.array(column, dtype=np.int64), np.array(slope), np.array(limit), np.array(steps))

    def limits(self, upper: F64) -> F64:
        """What the a x can be at most under upper bounds of the columns, ``(rows,)``; infinite if t has none."""
        with np.errstate(invalid="ignore", over="ignore"):
            room = (self.limit + self.slope * upper[self.column]) / self.step
            room += NEAR * (1.0 + np.abs(self.limit / self.step) + np.abs(room))
            result = np.nextafter(self.step * np.floor(room), np.inf)
        return np.where(np.isfinite(room), result, np.inf)


def _lattice(columns: I64, values: F64, integer: Mask) -> tuple[int, Mask, float] | None:
    """Position of t in a row, the other positions as a mask, and their step; None if the row has no such form."""
    loose = np.flatnonzero(~integer[columns])
    if loose.size > 1 or columns.size < 2:
        return None
    candidates = loose if loose.size else np.flatnonzero(values < 0)
    if loose.size == 0 and (candidates.size != 1 or common_step(values) is not None):
        return None  # a row of whole columns only is as strong as its own rounding
    t = int(candidates[0])
    if values[t] >= 0:
        return None
    kept = np.arange(columns.size) != t
    step = common_step(values[kept])
    return None if step is None else (t, kept, step)


class Propagation:
    """Column bounds that rows and the limit of the objective imply, rounded outward."""

    def __init__(self, form: StandardForm) -> None:
        self.integer = np.asarray(form.integer, dtype=bool)
        rows = Inequalities.of(form.A, form.row_lower, form.row_upper)
        finite = np.isfinite(rows.limit)
        assert finite[rows.row].all()
        priced = np.flatnonzero(form.cost)
        self.row = np.concatenate([rows.row, np.full(priced.size, rows.limit.size)])
        self.column = np.concatenate([rows.column, priced])
        self.value = np.concatenate([rows.value, form.cost[priced]])
        self.limit = np.append(np.where(finite, rows.limit, np.inf), np.inf)
        self._terms = np.bincount(self.row, minlength=self.limit.size).astype(np.float64) + 4.0
        share = UNIT * 2.0 * self._terms
        self._share = share / (1.0 - share) * (1.0 + 8.0 * UNIT)

    def tightened(self, lower: F64, upper: F64, most: float) -> tuple[F64, F64] | None:
        """The bounds ``(columns,)`` of every solution with ``cost @ x <= most``; None if there is none."""
        limit = self.limit.copy()
        limit[-1] = most
        lower, upper = lower.copy(), upper.copy()
        entries = self.row, self.column, self.value
        empty = _tighten(*entries, limit, self._terms, self._share, self.integer, lower, upper)
        return None if empty else (lower, upper)


@compiled(error_model="numpy")
def _tighten(
    row: I64, column: I64, value: F64, limit: F64, terms: F64, share: F64, integer: Mask, lower: F64, upper: F64
) -> bool:
    """Tighten the column bounds in place by rows ``value @ x[column] <= limit``; whether no x satisfies all.

    In every pass, all rows imply bounds from those of the pass before. ``terms`` and ``share`` bound the rounding
    errors of a row's sum, ``(rows,)`` each: absolute ones in units of the smallest number, and relative ones.
    """
    for _ in range(PASSES):
        least, size = np.zeros(limit.size), np.zeros(limit.size)
        many = np.zeros(limit.size, np.int64)
        for e in range(row.size):
            term = value[e] * (lower[column[e]] if value[e] > 0 else upper[column[e]])
            if np.isfinite(term):
                least[row[e]] += term
                size[row[e]] += abs(term)
            else:
                many[row[e]] += 1
        loss = size * share + 4.0 * TINY * terms
        for r in range(limit.size):
            if many[r] == 0 and least[r] - loss[r] > limit[r]:
                return True
        low, high = lower.copy(), upper.copy()
        for e in range(row.size):
            r, j, up = row[e], column[e], value[e] > 0
            term = value[e] * (lower[j] if up else upper[j])
            alone = not np.isfinite(term)
            if not np.isfinite(limit[r]) or many[r] != (1 if alone else 0):
                continue
            others = least[r] - (0.0 if alone else term) - loss[r]
            room = limit[r] - others
            room += UNIT * 4.0 * (abs(limit[r]) + abs(others))
            end = room / value[e]
            outward = UNIT * 4.0 * abs(end)
            end += outward if up else -outward
            if integer[j]:
                near = WHOLE * max(1.0, abs(end) * 1e-3)
                end = np.floor(end + near) if up else np.ceil(end - near)
            if not np.isfinite(end):
                continue
            if up:
                high[j] = min(high[j], end)
            else:
                low[j] = max(low[j], end)
        moved = False
        for j in range(lower.size):
            if low[j] > high[j] + WHOLE * max(1.0, abs(high[j])):
                return True
            low[j] = min(low[j], high[j])  # they differ by round-off
            gained = (upper[j] - high[j]) + (low[j] - lower[j])
            moved |= gained > 0.5 if integer[j] else gained > PROGRESS * (upper[j] - lower[j])
        lower[:], upper[:] = low, high
        if not moved:
            break
    return False


class TightenedTree(BranchingTree):
    """Best-first branch and bound on the program tightened as in the module's docstring; parameters as there."""

    def __init__(self, form: StandardForm, **options: Any) -> None:
        self.rows, self.propagation = IntegralRows.of(form), Propagation(form)
        limit = np.full(self.rows.step.size, np.inf)
        tightened = replace(form, columns={}).with_rows(self.rows.matrix, -limit, limit)
        super().__init__(tightened, limits=self.rows.limits, **options)

    @property
    def target(self) -> float:
        """The largest value that matters, P."""
        return self.incumbent - SHARE * self.tol * abs(self.incumbent) if np.isfinite(self.incumbent) else np.inf

    @property
    def bound(self) -> float:
        """The bound of the tree, which excludes only solutions of value at most P."""
        return rounded(self.form, min(super().bound, self.target))

    def _cut(self, bound: float) -> bool:
        return rounded(self.form, bound) >= self.target

    def _close(self, node: Node, bound: float, duals: F64 | None) -> None:
        super()._close(node, min(bound, self.target), duals)

    def _discard(self, node: Node, ray: F64 | None) -> None:
        super()._discard(node, ray)
        self.closed = min(self.closed, self.target)

    def box(self, node: Node) -> tuple[F64, F64] | None:
        """The column bounds at a node, tightened by rows and the limit of the objective."""
        lower, upper = super().box(node) or (self._lower, self._upper)
        return self.propagation.tightened(lower, upper, self.target - self.form.offset)
