r"""Branch and bound that also uses what integrality implies for rows and column bounds.

Small programs with large coefficients have weak relaxations: with :math:`\sum_j x_j \le c\,t` over binaries and c =
0.001, a bound on t says little, although at most :math:`\lfloor c\,t \rfloor` of the x can be 1. Two consequences of
an incumbent U and of the column bounds at a node are therefore added to the relaxation, each rounded outward:

*rows*
    A row :math:`\sum_j a_j x_j - c\,t \le r` over integer x whose a are multiples of g implies :math:`\sum_j a_j x_j
    \le g \lfloor (r + c\,\bar t) / g \rfloor` for the node's upper bound :math:`\bar t` of t.
*columns*
    Bounds that the objective implies for solutions of value at most P, a little below U: of t, if it has a cost.

A leaf closed with these proves that it has no solution of value at most P.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from opticoll.formulations.rounding import TINY, UNIT
from opticoll.solvers.methods.branching.branching_tree import WHOLE, BranchingTree, Node
from opticoll.solvers.methods.branching.whole_sides import NEAR, common_step
from opticoll.solvers.relaxation import rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64

Mask: TypeAlias = "NDArray[np.bool_]"

#: Part of the tolerance by which better solutions must improve the incumbent.
SHARE = 0.1


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


def capped(form: StandardForm, lower: F64, upper: F64, most: float) -> tuple[F64, F64]:
    """The column bounds ``(columns,)`` with those that ``cost @ x <= most`` implies, rounded outward."""
    priced = np.flatnonzero(form.cost)
    cost = form.cost[priced]
    least = cost * np.where(cost > 0, lower[priced], upper[priced])
    if not np.isfinite(most) or not np.isfinite(least).all():
        return lower, upper
    size = abs(most) + float(np.abs(least).sum())
    end = (most - (least.sum() - least) + UNIT * 4.0 * (priced.size + 4.0) * size + TINY) / cost
    end += np.sign(cost) * UNIT * 4.0 * np.abs(end)
    whole = np.asarray(form.integer, dtype=bool)[priced]
    near = np.sign(cost) * WHOLE * np.maximum(1.0, np.abs(end) * 1e-3)
    end = np.where(whole, np.where(cost > 0, np.floor(end + near), np.ceil(end + near)), end)
    lower, upper = lower.copy(), upper.copy()
    upper[priced] = np.where(cost > 0, np.minimum(upper[priced], end), upper[priced])
    lower[priced] = np.where(cost > 0, lower[priced], np.maximum(lower[priced], end))
    return lower, upper


class TightenedTree(BranchingTree):
    """Best-first branch and bound on the program tightened as in the module's docstring; parameters as there."""

    def __init__(self, form: StandardForm, **options: Any) -> None:
        self.rows = IntegralRows.of(form)
        limit = np.full(self.rows.step.size, np.inf)
        tightened = replace(
            form,
            columns={},
            rows={},
            A=sp.csc_array(sp.vstack([form.A, self.rows.matrix])),
            row_lower=np.concatenate([form.row_lower, -limit]),
            row_upper=np.concatenate([form.row_upper, limit]),
        )
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
        """The column bounds at a node, and what the limit of the objective implies."""
        box = super().box(node)
        if box is None:
            return None
        lower, upper = capped(self.form, *box, self.target - self.form.offset)
        return None if (lower > upper).any() else (lower, upper)
