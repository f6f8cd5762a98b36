r"""Bounds on a largest load, from lists of what can be put into the rows that bind.

.. math:: \min t \quad\text{s.t.}\quad \sum_j a_{rj} x_j - c_r t \le b_r, \quad \sum_{j \in k} x_j = \kappa_k, \quad x
          \text{ whole}

where every x is in one group k. If the a have no step in common, relaxations say little: fractions fill the rows that
bind exactly, and branching closes no gap. But few *fillings*, sums of what every group puts into some rows R, are below
a given t (markets that must be split are the hard case of branching: Cornuéjols & Dawande, INFORMS Journal on Computing
11, 1999).

Let rows be divided by their c, and y >= 0 be multipliers with :math:`\sum_r y_r = 1`. A filling of R has the value

.. math:: \max\Big(\max_{r \in R} (a_r x - b_r), \;
          \frac{\sum_{r \notin R} y_r (a_r x - b_r)}{\sum_{r \notin R} y_r}\Big)

which no solution with these loads of R is below, whatever y. All fillings of value at most U are listed: sums of the
first groups and of the last ones, without those that exceed U with any others, and the pairs of them that fit. The
least value bounds t. Then the other rows are filled for the fillings of least value, in their order, and solutions with
these fillings are searched for. Values within rounding of U count as at most U.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from opticoll.solvers.methods.branching_tree import NodeSolver
from opticoll.solvers.task import SolveRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64

#: In units of the bound: what rounding changes of values, and the side of the cells in which loads count as equal.
NEAR, SAME = 1e-9, 1e-11
#: In the same units, the largest number that sums may cancel: their rounding stays well below :data:`NEAR`.
MOST_UNITS = 1e4
#: Least share of a multiplier of a row that binds; most of these rows, most rows of R, and how many R are tried.
LEAST_SHARE, MOST_ROWS, MOST_FILLED, TRIED = 1e-7, 12, 5, 4
#: Most fillings by one group; sums of each half of the groups for R, and for the other rows; fillings returned.
MOST_OF_GROUP, MOST_OF_HALF, MOST_OF_REST, MOST = 20_000, 100_000, 1_000_000, 20_000
#: Most pairs of sums that are compared, and how many at a time.
MOST_COMPARED, BLOCK = 50_000_000, 1_000_000
#: The first U leaves this share of the gap above the bound, and every other one that many times its share.
FIRST, GROWTH = 1 / 64, 2
#: Most fillings for which a solution is searched for, and the seconds for each.
MOST_LIFTS, LIFT_S = 50, 2.0


@dataclass(frozen=True, eq=False)
class LoadProgram:
    """A program as in the module's docstring.

    ``row`` are the rows with c > 0, ``loads`` their a / c, ``(rows, columns)``, and ``limit`` their b / c, ``(rows,)``;
    ``group`` is that of every column, ``(columns,)``, -1 for t; ``count`` is kappa, ``(groups,)``; ``t`` is t's column.
    """

    form: StandardForm
    row: I64
    loads: sp.csr_array
    limit: F64
    group: I64
    count: I64
    t: int

    @classmethod
    def of(cls, form: StandardForm) -> LoadProgram | None:
        """The program of a minimization, or None if it has another structure; other rows "at most" may be there too."""
        whole, A = np.asarray(form.integer, dtype=bool), sp.csr_array(form.A)
        t = int(np.argmin(whole))
        priced = np.flatnonzero(form.cost)
        if whole.sum() != whole.size - 1 or priced.tolist() != [t] or form.cost[t] <= 0:
            return None
        entries, rows = A.tocoo(), A.shape[0]
        plain = np.bincount(entries.row, (entries.data != 1.0) | (entries.col == t), rows) == 0
        choice = np.flatnonzero(plain & (form.row_lower == form.row_upper))
        once = np.bincount(A[choice].tocoo().col, minlength=whole.size)
        other = np.setdiff1d(np.arange(rows), choice)
        up = np.isfinite(form.row_upper[other])
        slope = np.where(up, -1.0, 1.0) * A[:, [t]].toarray().ravel()[other]
        count = np.rint(form.row_lower[choice])
        if (once != whole).any() or (up & np.isfinite(form.row_lower[other])).any() or (slope < 0).any():
            return None
        if (count != form.row_lower[choice]).any() or not slope.any():
            return None
        bind = slope > 0
        row, sign, slope = other[bind], np.where(up, 1.0, -1.0)[bind], slope[bind]
        limit = np.where(sign > 0, form.row_upper[row], -form.row_lower[row]) / slope
        loads = sp.csr_array(sp.diags_array(sign / slope) @ A[row] @ sp.diags_array(whole.astype(float)))
        chosen = A[choice].tocoo()
        group = np.full(whole.size, -1)
        group[chosen.col] = chosen.row
        return cls(form, row, loads, limit, group, count.astype(np.int64), t)

    def multipliers(self) -> F64 | None:
        """Multipliers y, ``(rows,)``: duals of the relaxation without bounds of t; None if it is not solved."""
        lower = self.form.col_lower.copy()
        lower[self.t] = -np.inf
        state, _, duals = NodeSolver(self.form).solve(lower, self.form.col_upper)
        if state != "optimal" or duals is None:
            return None
        y = np.abs(duals[self.row] * self.form.A[:, [self.t]].toarray().ravel()[self.row])
        y = np.where(y < LEAST_SHARE * y.max(), 0.0, y)
        return y / y.sum() if y.any() else None

    def solution(self, rows: I64, load: F64, most: float) -> F64 | None:
        """A solution with t <= ``most`` whose groups put ``load``, ``(groups, rows)``, there; None if none is found."""
        from opticoll.solvers.process.isolation import solve_here

        entries = self.loads[rows].tocoo()
        where = self.group[entries.col] * rows.size + entries.row
        sums = sp.csr_array((entries.data, (where, entries.col)), (load.size, self.group.size))
        near = NEAR * (1.0 + np.abs(load.ravel()))
        upper = self.form.col_upper.copy()
        upper[self.t] = min(upper[self.t], most)
        form = replace(self.form, col_upper=upper, columns={}, rows={})
        form = form.with_rows(sums, load.ravel() - near, load.ravel() + near)
        outcome = solve_here(form, "highs", SolveRequest(LIFT_S))
        if outcome.x is None:
            return None
        whole = np.flatnonzero(np.asarray(self.form.integer))
        return NodeSolver(self.form).solve_at(outcome.x, whole, self.form.col_lower, self.form.col_upper)

    def value(self, t: float) -> float:
        """The value of solutions with this t."""
        return float(self.form.cost[self.t] * t + self.form.offset)


class Listed(NamedTuple):
    """Fillings by their ``value``, least first; ``choice`` is that of every group, ``(fillings, groups)``.

    All of value below ``limit`` are listed; if they are not ``distinct``, some with equal sums are left out.
    """

    value: F64
    choice: I64
    limit: float
    distinct: bool


class Fillings:
    """What the groups of a program can put into its binding rows, in units of the bound that the multipliers y prove.

    ``rows`` are the numbers of the binding rows in the program, ``y`` their multipliers, ``unit`` is that bound.
    """

    def __init__(self, program: LoadProgram, y: F64) -> None:
        form = program.form
        self.rows = np.flatnonzero(y)
        self.y, self._limit = y[self.rows], program.limit[self.rows]
        self._columns = [np.flatnonzero(program.group == k) for k in range(program.count.size)]
        self._loads, self._count = sp.csr_array(program.loads[self.rows].T), program.count
        self._lower, self._upper = form.col_lower, form.col_upper
        self._least = np.array([self._least_length(k) for k in range(program.count.size)])
        self.unit = float(self._least.sum() - self.y @ self._limit)
        if self.unit > 0:
            self._least, self._limit, self._loads = (
                part / self.unit for part in (self._least, self._limit, self._loads)
            )
        #: The largest number that larger loads may cancel.
        self.largest = max(float(np.abs(self._limit).max()), -float(self._loads.min()))

    def _least_length(self, k: int) -> float:
        """The least y-weighted load of a group."""
        columns = self._columns[k]
        length, lower = self._loads[columns] @ self.y, self._lower[columns]
        left = max(float(self._count[k] - lower.sum()), 0.0)
        order = np.argsort(length, kind="stable")
        room = np.minimum(self._upper[columns] - lower, left)[order]
        taken = np.clip(left - (np.cumsum(room) - room), 0.0, room)
        return float(length @ lower + length[order] @ taken)

    def by_group(self, most: float) -> list[F64] | None:
        """Of every group, its fillings if t <= ``most``, ``(fillings, rows)`` each; None if there are too many."""
        result = []
        for k in range(self._count.size):
            load = self._of_group(k, most - 1.0 + NEAR)
            if load is None:
                return None
            result.append(load)
        return result

    def _of_group(self, k: int, room: float) -> F64 | None:
        """The fillings of a group whose y-weighted load exceeds the least one by at most ``room``."""
        columns = self._columns[k]
        lower, entries = self._lower[columns], self._loads[columns].toarray()
        kinds, which = np.unique(entries, axis=0, return_inverse=True)
        most = np.bincount(which.ravel(), self._upper[columns] - lower, len(kinds))
        length = kinds @ self.y
        order = np.argsort(length, kind="stable")
        load, left = (lower @ entries)[None], np.array([self._count[k] - round(lower.sum())])
        for i, kind in enumerate(order.tolist()):
            times = range(int(min(most[kind], left.max(initial=0))) + 1)
            fits = [left >= n for n in times]
            load = np.concatenate([load[fit] + n * kinds[kind] for n, fit in zip(times, fits, strict=True)])
            left = np.concatenate([left[fit] - n for n, fit in zip(times, fits, strict=True)])
            ahead = length[order[i + 1]] if i + 1 < len(order) else np.inf
            further = np.multiply(left, ahead, out=np.zeros(left.size), where=left > 0)
            kept = load @ self.y + further <= self._least[k] + room
            load, left = load[kept], left[kept]
            if len(load) > MOST_OF_GROUP:
                return None
        return load[_first_of_cells(load)]

    def listed(self, groups: list[F64], chosen: I64, most: float, half: int) -> Listed | None:
        """The fillings of the binding rows number ``chosen`` with t <= ``most``; None if there are too many.

        The other rows are added up: of what a group can put there beside the same loads of ``chosen``, the least.
        """
        others = np.setdiff1d(np.arange(self.rows.size), chosen)
        weight = self.y[others] / self.y[others].sum() if others.size else np.empty(0)
        parts, numbers = [], []
        for load in groups:
            rest = load[:, others] @ weight
            order = np.argsort(rest, kind="stable")
            first = order[np.sort(_first_of_cells(load[order][:, chosen]))]
            parts.append(np.column_stack([load[first][:, chosen], rest[first]]))
            numbers.append(first)
        limit = np.append(self._limit[chosen], weight @ self._limit[others])
        found = list_sums(parts, limit, np.append(self.y[chosen], self.y[others].sum()), most, half)
        if found is None:
            return None
        choice = np.column_stack([number[found.choice[:, k]] for k, number in enumerate(numbers)])
        return found._replace(choice=choice)

    def sets(self, groups: list[F64], most: float) -> list[I64]:
        """Sets R of binding rows, by their room for t <= ``most`` beside what every filling puts there."""
        size = self.rows.size
        sets = [rows for n in range(1, MOST_FILLED + 1) for rows in itertools.combinations(range(size), n)]
        member = np.array([np.isin(np.arange(size), rows) for rows in sets], dtype=float).T
        first = np.cumsum([0, *(len(load) for load in groups[:-1])])
        least = np.minimum.reduceat(np.concatenate(groups) @ member, first, axis=0).sum(axis=0)
        order = np.argsort((most + self._limit) @ member - least, kind="stable")
        return [np.array(sets[number]) for number in order.tolist()]


def cells(load: F64) -> F64:
    """The cell of every load; what is in one differs by rounding only."""
    return np.rint(load / SAME)


def _first_of_cells(load: F64) -> I64:
    """Numbers of rows of ``load``, the first of those whose loads are all in one cell."""
    cell = cells(load)
    order = np.argsort(cell @ (1.0 + np.arange(load.shape[1]) / np.pi), kind="stable")
    same = (np.diff(cell[order], axis=0) == 0).all(axis=1)
    return order[np.concatenate([np.ones(min(len(order), 1), dtype=bool), ~same])]


def list_sums(parts: list[F64], limit: F64, y: F64, most: float, half: int) -> Listed | None:
    """All sums s of one row of every part with ``s - limit <= most``, by the largest of these differences.

    ``parts`` are ``(rows of the part, sums)``; the multipliers ``y`` ``(sums,)``, at least 0, only save time. None if
    more than ``half`` sums of half of the parts are needed.
    """
    size = limit.size
    sets = [rows for n in range(1, size) for rows in itertools.combinations(range(size - 1), n)]
    multipliers = np.vstack(
        [y, np.arange(size) == size - 1, *(np.isin(np.arange(size), rows) for rows in sets)]
    ).astype(float)
    start = np.array([part.min(axis=0) for part in parts])
    room = most + limit + NEAR - start.sum(axis=0)
    shifted = [part - low for part, low in zip(parts, start, strict=True)]
    least = np.array([(part @ multipliers.T).min(axis=0) for part in shifted])
    excess = multipliers @ room - least.sum(axis=0)
    if (room < 0).any() or (excess < 0).any():
        return Listed(np.empty(0), np.empty((0, len(parts)), dtype=np.int64), most, True)
    # First those that put much into the rows in any case, then those that can put much there.
    free = [k for k, part in enumerate(parts) if len(part) > 1]
    free.sort(key=lambda k: (-float(least[k, -1]), -float(shifted[k][:, :-1].sum(axis=1).max())))
    halves = [_Half(room, multipliers, excess, half), _Half(room, multipliers, excess, half)]
    while free:
        front = len(halves[0].sums) * len(parts[free[0]]) <= len(halves[1].sums) * len(parts[free[-1]])
        k = free.pop(0 if front else -1)
        if not halves[0 if front else 1].extended(k, shifted[k], least[k]):
            return None
    width = np.divide(excess[0], y, out=np.full(size, np.inf), where=y > 0)
    base = start.sum(axis=0) - limit
    pairs = _fitting_pairs(halves[0].sums, halves[1].sums, room, width, lambda sums: (sums + base).max(axis=1), most)
    if pairs is None:
        return None
    order = np.argsort(pairs.value, kind="stable")
    choice = np.zeros((order.size, len(parts)), dtype=np.int64)
    for part, which in zip(halves, (pairs.first, pairs.second), strict=True):
        part.trace(which[order], choice)
    return Listed(pairs.value[order], choice, pairs.limit, all(part.distinct for part in halves))


class _Half:
    """Sums of one row of each of some parts, at least 0, that can be completed, and how they are made up."""

    def __init__(self, room: F64, multipliers: F64, excess: F64, most: int) -> None:
        self._room, self._multipliers, self._excess, self._most = room, multipliers, excess, most
        self.sums, self.distinct = np.zeros((1, room.size)), True
        self._least = np.zeros(excess.size)
        self._steps: list[tuple[int, I64, I64]] = []

    def extended(self, k: int, part: F64, least: F64) -> bool:
        """Add part ``k`` with its ``least`` multiplied rows; whether the sums are few enough."""
        if len(self.sums) * len(part) > 10 * self._most:
            return False
        before, taken = np.divmod(np.arange(len(self.sums) * len(part)), len(part))
        sums = self.sums[before] + part[taken]
        self._least = self._least + least
        fit = np.flatnonzero((sums <= self._room).all(axis=1))
        fit = fit[(sums[fit] @ self._multipliers.T - self._least <= self._excess + NEAR).all(axis=1)]
        first = _first_of_cells(sums[fit])
        self.distinct &= first.size == fit.size
        kept = fit[first]
        self.sums = sums[kept]
        self._steps.append((k, before[kept], taken[kept]))
        return kept.size <= self._most

    def trace(self, which: I64, choice: I64) -> None:
        """Enter the rows of the parts that make up the sums number ``which`` into ``choice``, ``(which, parts)``."""
        for k, before, taken in reversed(self._steps):
            choice[:, k] = taken[which]
            which = before[which]


class _Pairs(NamedTuple):
    """Numbers of sums of the two halves, and the values of their pairs; all of value below ``limit``."""

    first: I64
    second: I64
    value: F64
    limit: float


def _fitting_pairs(
    ones: F64, others: F64, room: F64, width: F64, value_of: Callable[[F64], F64], most: float
) -> _Pairs | None:
    """Pairs of sums within ``room``, which all are at most ``width`` below it; None if too many must be compared.

    The others are ordered by cells of the sum of least width, and within them by that of second least.
    """
    a, b = np.argsort(width / np.maximum(room, NEAR), kind="stable")[:2].tolist()
    size, span = max(width[a], NEAR), room[b] + 3.0
    key = np.floor(others[:, a] / size) * span + others[:, b]
    order = np.argsort(key, kind="stable")
    near = NEAR * (1.0 + float(key.max(initial=0.0)))
    key, others = key[order], others[order]
    last = room - ones + NEAR
    least = np.maximum(last - width - 2.0 * NEAR, -1.0)  # the sums are at least 0
    found, limit, compared = _Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), most), most, 0
    for step in range(4):
        cell = np.floor(least[:, a] / size) + step
        begin = np.searchsorted(key, cell * span + least[:, b] - near)
        end = np.searchsorted(key, cell * span + last[:, b] + near, side="right")
        pairs = np.where(cell * size <= last[:, a], np.maximum(end - begin, 0), 0)
        compared += int(pairs.sum())
        if compared > MOST_COMPARED:
            return None
        blocks = np.unique(np.searchsorted(np.cumsum(pairs), np.arange(0, pairs.sum() + 1, BLOCK), side="right"))
        for start, stop in itertools.pairwise([*blocks.tolist(), len(ones)]):
            many = pairs[start:stop]
            one = np.repeat(np.arange(start, stop), many)
            other = np.arange(one.size) + np.repeat(begin[start:stop] - (np.cumsum(many) - many), many)
            sums = ones[one] + others[other]
            value = np.where((sums <= room).all(axis=1), value_of(sums), np.inf)
            kept = np.flatnonzero(value <= limit + NEAR)
            found = _Pairs(
                np.concatenate([found.first, one[kept]]),
                np.concatenate([found.second, order[other[kept]]]),
                np.concatenate([found.value, value[kept]]),
                limit,
            )
            if found.value.size > MOST:
                best = np.argpartition(found.value, MOST - 1)[:MOST]
                limit = float(found.value[best].max())
                found = _Pairs(found.first[best], found.second[best], found.value[best], limit)
    return found


def bound_by_fillings(
    program: LoadProgram,
    incumbent: float,
    *,
    tol: float = 1e-6,
    on_incumbent: Callable[[F64, float], None] = lambda *_: None,
    on_bound: Callable[[float], None] = lambda _: None,
    remaining: Callable[[], float | None] = lambda: None,
) -> float:
    """A lower bound on all solutions of a minimization, or its ``incumbent`` if none is below; -inf if none is known.

    ``on_incumbent`` is called with every better solution and its value, ``on_bound`` with every better bound. The
    search goes on until both meet, or there are too many fillings.

    Raises
    ------
    TimeoutError
        From ``remaining``.
    """
    y = program.multipliers() if np.isfinite(incumbent) else None
    if y is None:
        return -np.inf
    fillings = Fillings(program, y)
    if fillings.unit <= 0 or fillings.rows.size > MOST_ROWS or fillings.largest > MOST_UNITS:
        return -np.inf
    search = _Search(program, fillings, incumbent, tol, on_incumbent, on_bound, remaining)
    search.run()
    return search.bound


class _Search:
    """Fillings in the order of their values, up to limits U that grow."""

    def __init__(
        self,
        program: LoadProgram,
        fillings: Fillings,
        incumbent: float,
        tol: float,
        on_incumbent: Callable[[F64, float], None],
        on_bound: Callable[[float], None],
        remaining: Callable[[], float | None],
    ) -> None:
        self._program, self._fillings, self._tol = program, fillings, tol
        self._on_incumbent, self._on_bound, self._remaining = on_incumbent, on_bound, remaining
        self._incumbent = incumbent
        #: Values from which on fillings may have solutions that were not found, and below which none has any.
        self._open, self._closed = np.inf, 1.0
        self._lifts, self._failed = MOST_LIFTS, set[tuple[int, ...]]()

    @property
    def bound(self) -> float:
        """The bound of the program."""
        return min(self._program.value((self._closed - NEAR) * self._fillings.unit), self._incumbent)

    @property
    def _most(self) -> float:
        """The value of the incumbent."""
        form, t = self._program.form, self._program.t
        return float((self._incumbent - form.offset) / form.cost[t] / self._fillings.unit)

    @property
    def _done(self) -> bool:
        return self._incumbent - self.bound <= self._tol * abs(self._incumbent)

    def run(self) -> None:
        """Search until bound and incumbent meet, or nothing more is found."""
        share = FIRST
        while not self._done and share <= 1.0 and self._settled(1.0 + share * (self._most - 1.0)):
            share *= GROWTH

    def _settled(self, most: float) -> bool:
        """Whether no filling of value at most ``most`` has a solution, or the gap is closed."""
        fillings = self._fillings
        groups = fillings.by_group(most)
        if groups is None:
            return False
        if not all(len(load) for load in groups):
            self._close(most)
            return True
        rows, listed = self._rows_that_bound(groups, most)
        if listed is None:
            return False
        others = np.setdiff1d(np.arange(fillings.rows.size), rows)
        limit, number = listed.limit, itertools.count()
        heap = [(value, next(number), True, choice) for value, choice in zip(listed.value, listed.choice, strict=True)]
        while heap and heap[0][0] < limit:
            self._remaining()
            value, _, first, choice = heapq.heappop(heap)
            self._close(value)
            if self._done:
                return True
            if first and others.size:
                if not listed.distinct:  # other choices with the same sums are not known
                    self._open = min(self._open, value)
                rest = self._with_others(groups, rows, others, choice, most)
                if rest is None:  # so many that one should do
                    load = np.array([load[at, rows] for load, at in zip(groups, choice, strict=True)])
                    if not self._lifted(fillings.rows[rows], load, value):
                        return False
                    continue
                # Those left out are of no less value than those listed, each of which gives a solution or stays open.
                for further, whole in zip(rest.value, rest.choice, strict=True):
                    heapq.heappush(heap, (further, next(number), False, whole))
                continue
            load = np.array([load[at] for load, at in zip(groups, choice, strict=True)])
            if not self._lifted(fillings.rows, load, value):
                return False
        self._close(limit)
        return self._done or (limit >= most and self._open >= most)

    def _close(self, value: float) -> None:
        self._closed = max(self._closed, min(value, self._open))
        self._on_bound(self.bound)

    def _rows_that_bound(self, groups: list[F64], most: float) -> tuple[I64, Listed | None]:
        """Of some rows with little room, those whose fillings bound t best, and these; None if all have too many."""
        best: tuple[I64, Listed | None] = (np.empty(0, np.int64), None)
        sets = [rows for rows in self._fillings.sets(groups, most) if tuple(rows.tolist()) not in self._failed]
        for rows in sets[:TRIED]:
            self._remaining()
            found = self._fillings.listed(groups, rows, most, MOST_OF_HALF)
            if found is None:
                self._failed.add(tuple(rows.tolist()))
            elif not found.value.size:
                return rows, found
            elif best[1] is None or found.value[0] > best[1].value[0]:
                best = rows, found
        return best

    def _with_others(self, groups: list[F64], rows: I64, others: I64, choice: I64, most: float) -> Listed | None:
        """The fillings of the ``others`` beside the choice of what is put into ``rows``, with choices of ``groups``."""
        which = [
            np.flatnonzero((cells(load[:, rows]) == cells(load[at, rows])).all(axis=1))
            for load, at in zip(groups, choice, strict=True)
        ]
        if sum(np.log(number.size) for number in which) > 2.0 * np.log(MOST_OF_REST):
            return None
        parts = [load[number] for load, number in zip(groups, which, strict=True)]
        rest = self._fillings.listed(parts, others, most, MOST_OF_REST)
        if rest is None:
            return None
        back = np.column_stack([number[rest.choice[:, k]] for k, number in enumerate(which)])
        return rest._replace(choice=back)

    def _lifted(self, rows: I64, load: F64, value: float) -> bool:
        """Search for a solution of about this value with a filling; whether others may be tried if there is none."""
        self._lifts -= 1
        program, unit, near = self._program, self._fillings.unit, value * (1.0 + 0.5 * self._tol)
        most = self._most if rows.size == self._fillings.rows.size else near
        x = program.solution(rows, load * unit, most * unit)
        if x is None or x[program.t] > near * unit:
            self._open = min(self._open, value)
        if x is not None and program.value(x[program.t]) < self._incumbent:
            self._incumbent = program.value(x[program.t])
            self._on_incumbent(x, self._incumbent)
        return self._lifts > 0
