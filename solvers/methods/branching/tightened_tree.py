r"""Branch and bound that also uses what integrality implies for rows, column bounds and objective values.

Small programs with large coefficients have weak relaxations: with :math:`\sum_j x_j \le c\,t` over binaries and c =
0.001, a bound on t says little, although at most :math:`\lfloor c\,t \rfloor` of the x can be 1. Four consequences of
an incumbent U and of the column bounds at a node are therefore added to the relaxation, each rounded outward:

*values*
    If every solution's value lies on finitely many lattices (all integer multiples of some step; or the largest of some
    loads :math:`\sum_j a_j x_j / c`), a bound counts as the next such value, and only solutions with at most the
    largest value P below U matter.
*rows*
    A row :math:`\sum_j a_j x_j - c\,t \le r` over integer x whose a are multiples of g implies :math:`\sum_j a_j x_j
    \le g \lfloor (r + c\,\bar t) / g \rfloor` for the node's upper bound :math:`\bar t` of t.
*columns*
    Bounds of columns that rows and the objective's limit P imply.
*reduced costs*
    Columns that cannot leave their bound in any solution of value at most P.

A leaf closed with these proves that it has no solution of value below the next possible value above P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from opticoll.compiled import compiled
from opticoll.formulations import rounding
from opticoll.formulations.rounding import TINY, UNIT
from opticoll.solvers.methods.branching.branching_tree import (
    LEAST_GAIN,
    WHOLE,
    BranchingTree,
    LeafBounds,
    Node,
    NodeSolver,
)
from opticoll.solvers.methods.branching.reduced_program import NEAR, ReducedProgram, common_step, reduced
from opticoll.solvers.verify import Inequalities, WeakDuality

if TYPE_CHECKING:
    from collections.abc import Callable

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


@dataclass(frozen=True, eq=False)
class Values:
    """Lattices ``(step k - shift) / slope`` over integers k, ``(lattices,)`` each, that contain every attained value.

    Or a ``least`` value. None of them if nothing is known: every value may then be attained.
    """

    step: F64
    slope: F64
    shift: F64
    least: float = math.inf

    @classmethod
    def of(cls, form: StandardForm, rows: IntegralRows) -> Values:
        """The values of a minimization, without its offset."""
        nothing = cls(np.empty(0), np.empty(0), np.empty(0))
        priced, integer = np.flatnonzero(form.cost), np.asarray(form.integer, dtype=bool)
        if priced.size and integer[priced].all():
            step = common_step(form.cost[priced])
            return nothing if step is None else cls(np.array([step]), np.ones(1), np.zeros(1))
        if priced.size != 1 or form.cost[priced[0]] < 0:
            return nothing
        t, price = int(priced[0]), float(form.cost[priced[0]])
        own, entries = rows.column == t, form.A[:, [t]].tocoo()
        upper, lower = form.row_upper[entries.row], form.row_lower[entries.row]
        from_below = (entries.data < 0) & np.isfinite(upper) | (entries.data > 0) & np.isfinite(lower)
        if np.count_nonzero(from_below) != np.count_nonzero(own) or not own.any():
            return nothing  # some row bounds t from below in another way
        least = price * float(form.col_lower[t])
        return cls(rows.step[own] * price, rows.slope[own], rows.limit[own] * price, least)

    def __bool__(self) -> bool:
        return self.step.size > 0

    def below(self, value: float) -> float:
        """No attained value lies between this and ``value``, excluded."""
        if not self:
            return value
        k = (value * self.slope + self.shift) / self.step
        k = np.ceil(k - NEAR * (1.0 + np.abs(k))) - 1.0
        ends = (self.step * k - self.shift) / self.slope
        ends += 4.0 * UNIT * (np.abs(self.step * k) + np.abs(self.shift)) / self.slope
        best = max(float(ends.max()), self.least if self.least < value else -math.inf)
        return min(best, value)

    def above(self, value: float) -> float:
        """Lower bound on all attained values that are at least ``value``, itself at least that."""
        if not self or not np.isfinite(value):
            return value
        k = (value * self.slope + self.shift) / self.step
        k = np.ceil(k - NEAR * (1.0 + np.abs(k)))
        ends = (self.step * k - self.shift) / self.slope
        ends -= 4.0 * UNIT * (np.abs(self.step * k) + np.abs(self.shift)) / self.slope
        first = np.flatnonzero(ends <= ends.min() + NEAR * np.abs(ends.min()))
        return max(value, min([*(self._exactly(i, k[i]) for i in first.tolist()), self.least_from(value)]))

    def least_from(self, value: float) -> float:
        """The value outside the lattices if it is at least ``value``, else infinite."""
        return self.least if self.least >= value else math.inf

    def _exactly(self, lattice: int, k: float) -> float:
        """The k-th value of a lattice, rounded down."""
        step, slope, shift = (Fraction(float(part[lattice])) for part in (self.step, self.slope, self.shift))
        return rounding.fraction_down((step * int(k) - shift) / slope)


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


class TightenedLeaves(LeafBounds):
    """Bounds on the leaves of a program with integral rows appended, whose limits follow from the column bounds."""

    def __init__(self, form: StandardForm, rows: IntegralRows) -> None:
        super().__init__(WeakDuality.of(form), form.offset)
        self.rows = rows
        self._base = form.row_upper[: form.row_upper.size - rows.step.size]

    def row_upper(self, upper: F64) -> F64:
        """Upper row bounds under upper column bounds, ``(rows,)``."""
        return np.concatenate([self._base, self.rows.limits(upper)])

    def bound(self, y: F64, lower: F64, upper: F64) -> float:
        """As in the plain problem, with the integral rows."""
        return self.problem.bound(y, lower, upper, self.offset, self.row_upper(upper))

    def holds_none(self, ray: F64, lower: F64, upper: F64) -> bool:
        """As in the plain problem, with the integral rows."""
        return self.problem.empty(ray, lower, upper, self.row_upper(upper))


class TightenedNodeSolver(NodeSolver):
    """HiGHS's dual simplex, which also moves the limits of the integral rows."""

    def __init__(self, form: StandardForm, leaves: TightenedLeaves) -> None:
        super().__init__(form)
        self._leaves = leaves
        self._row_lower, self._row_upper = form.row_lower, form.row_upper.copy()

    def _move(self, lower: F64, upper: F64) -> None:
        super()._move(lower, upper)
        now = self._leaves.row_upper(upper)
        moved = np.flatnonzero(now != self._row_upper)
        for row in moved.tolist():
            self._highs.changeRowBounds(row, self._row_lower[row], now[row])
        self._row_upper = now


class TightenedTree(BranchingTree):
    """Best-first branch and bound on the program tightened as in the module's docstring; parameters as there."""

    leaf: TightenedLeaves

    def __init__(
        self,
        form: StandardForm,
        *,
        incumbent: float = np.inf,
        x: F64 | None = None,
        tol: float = 1e-6,
        tick: Callable[[float, float, int, int], None] = lambda *_: None,
        on_incumbent: Callable[[F64, float], None] = lambda *_: None,
        remaining: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.rows = IntegralRows.of(form)
        self.values = Values.of(form, self.rows)
        self.propagation = Propagation(form)
        limit = np.full(self.rows.step.size, np.inf)
        larger = replace(form, columns={}).with_rows(self.rows.matrix, -limit, limit)
        super().__init__(
            larger, incumbent=incumbent, x=x, tol=tol, tick=tick, on_incumbent=on_incumbent, remaining=remaining
        )
        self._limited_at = np.inf
        self._root: tuple[float, F64] | None = None
        self._limit_to_incumbent()

    def leaves_of(self, form: StandardForm) -> LeafBounds:
        """What bounds the leaves, with the integral rows."""
        return TightenedLeaves(form, self.rows)

    def solver_of(self, form: StandardForm) -> NodeSolver:
        """What solves the relaxations, with the integral rows."""
        return TightenedNodeSolver(form, self.leaf)

    def _limit_to_incumbent(self) -> None:
        """Set the largest value that matters, and the bound of leaves without such solutions."""
        if self.incumbent >= self._limited_at:
            return
        self._limited_at = self.incumbent
        target = self.incumbent - SHARE * self.tol * abs(self.incumbent) - self.form.offset
        self.most = self.values.below(target)
        self.beyond = self.values.above(target) + self.form.offset
        self._fix_by_reduced_costs()

    most, beyond = np.inf, np.inf

    def _fix_by_reduced_costs(self) -> None:
        """Tighten the columns that the root's duals keep from moving far in a solution that matters."""
        if self._root is None or not np.isfinite(self.most):
            return
        bound, duals = self._root
        least, most = self.leaf.problem.reduced(duals, self.form.cost)
        room = max(self.most - (bound - self.form.offset), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.floor(room * (1.0 + NEAR) / np.maximum(least, -most) + WHOLE)
        whole = np.asarray(self.form.integer, dtype=bool)
        up, down = whole & (least > 0) & np.isfinite(steps), whole & (most < 0) & np.isfinite(steps)
        lower, upper = self._root_box
        self._upper = np.where(up, np.minimum(self._upper, lower + steps), self._upper)
        self._lower = np.where(down, np.maximum(self._lower, upper - steps), self._lower)

    @property
    def bound(self) -> float:
        """The bound of the tree, moved up to the next value that a solution can have."""
        open_ones = [node.bound for node in (self._current, *self._open[:1]) if node is not None]
        least = min([*open_ones, self.closed, self.incumbent])
        if least >= self.incumbent or not np.isfinite(least):
            return least
        return min(self.values.above(least - self.form.offset) + self.form.offset, self.incumbent)

    def _cut(self, bound: float) -> bool:
        self._limit_to_incumbent()
        if not np.isfinite(self.incumbent):
            return bool(bound == np.inf)
        return bound - self.form.offset > self.most or bound >= self.beyond

    def _close(self, node: Node, bound: float, duals: F64 | None) -> None:
        super()._close(node, min(bound, self.beyond) if bound - self.form.offset <= self.most else self.beyond, duals)

    def _discard(self, node: Node, ray: F64 | None) -> None:
        super()._discard(node, ray)
        self.closed = min(self.closed, self.beyond)

    def root_box(self) -> tuple[F64, F64] | None:
        """Column bounds of all solutions that matter, by the relaxation's duals too; None if there are none."""
        box = self.propagation.tightened(self._lower, self._upper, self.most)
        if box is None:
            return None
        state, _, duals = self._solver.solve(*box)
        bound = -np.inf if duals is None or state == "infeasible" else self.leaf.bound(duals, *box)
        if duals is None or not np.isfinite(bound):
            return box
        self._lower, self._upper = box
        self._root, self._root_box = (bound, duals), box
        self._fix_by_reduced_costs()
        priced = np.flatnonzero(self.form.cost)
        if priced.size == 1 and self.form.cost[priced[0]] > 0:  # every value is at least the bound
            least = (bound - self.form.offset) / float(self.form.cost[priced[0]])
            least -= 4.0 * UNIT * abs(least)
            self._lower[priced] = np.clip(least, self._lower[priced], self._upper[priced])
        return self.propagation.tightened(self._lower, self._upper, self.most)

    def _branch(self, node: Node, bound: float, x: F64 | None, candidates: I64, lower: F64, upper: F64) -> Node:
        if node.order == 0 and node.duals is not None and np.isfinite(bound):
            self._root, self._root_box = (bound, node.duals), (lower, upper)
            self._fix_by_reduced_costs()
        split = None if x is None else self._split_of_a_row(x, lower, upper)
        if split is not None and x is not None:
            column, at = split
            x, candidates = x.copy(), np.array([column])
            x[column] = at - 0.5
        return super()._branch(node, bound, x, candidates, lower, upper)

    def _split_of_a_row(self, x: F64, lower: F64, upper: F64) -> tuple[int, float] | None:
        """A whole t and the least value that it needs for an integral row's next multiple; the dearest such step.

        In ``x``, the row then lies between two multiples, and t below that value: it is whole, so nothing else would
        branch on it.
        """
        rows = self.rows
        at = np.flatnonzero(np.asarray(self.form.integer, dtype=bool)[rows.column])
        if at.size == 0:
            return None
        t = rows.column[at]
        multiple = (rows.matrix @ x)[at] / rows.step[at]
        below = np.floor(multiple + WHOLE)
        need = np.ceil((rows.step[at] * (below + 1.0) - rows.limit[at]) / rows.slope[at] - WHOLE)
        usable = (multiple - below > WHOLE) & (need > x[t] + WHOLE) & (need > lower[t]) & (need <= upper[t])
        if not usable.any():
            return None
        gain = np.where(usable, (need - x[t]) * np.maximum(self.form.cost[t], LEAST_GAIN), -1.0)
        best = int(np.argmax(gain))
        return int(t[best]), float(need[best])

    def box(self, node: Node) -> tuple[F64, F64] | None:
        """The column bounds at a node, tightened by rows and the limit of the objective."""
        lower, upper = super().box(node) or (self._lower, self._upper)
        self._limit_to_incumbent()
        return self.propagation.tightened(lower, upper, self.most)


#: Most rounds of solving the relaxation at the root, fixing columns by its duals and reducing the program, and the part
#: of the columns that one must remove for another to follow.
ROUNDS, REMOVED = 6, 0.02


def reduced_tree(
    form: StandardForm,
    *,
    incumbent: float = np.inf,
    tol: float = 1e-6,
    tick: Callable[[float, float, int, int], None] = lambda *_: None,
    on_incumbent: Callable[[F64, float], None] = lambda *_: None,
    remaining: Callable[[], float | None] = lambda: None,
) -> TightenedTree:
    """The tree on a smaller program with the same optimum, if that is below the ``incumbent``.

    Its bound holds for ``form``, and ``on_incumbent`` is called with solutions of ``form``; its own ``x`` is of the
    smaller program.
    """
    whole = np.asarray(form.integer, dtype=bool)
    now = replace(
        form,
        col_lower=np.where(whole, np.ceil(form.col_lower - WHOLE), form.col_lower),
        col_upper=np.where(whole, np.floor(form.col_upper + WHOLE), form.col_upper),
        columns={},
        rows={},
    )
    steps: list[ReducedProgram] = []

    def found(x: F64, value: float) -> None:
        for step in reversed(steps):
            x = step.expanded(x)
        on_incumbent(x, value)

    while True:
        tree = TightenedTree(now, incumbent=incumbent, tol=tol, tick=tick, on_incumbent=found, remaining=remaining)
        box = tree.root_box() if len(steps) < ROUNDS else None
        if box is None:
            return tree
        smaller = reduced(now, *box)
        if smaller.form.cost.size > (1.0 - REMOVED) * now.cost.size and steps:
            return tree
        steps.append(smaller)
        now = smaller.form
