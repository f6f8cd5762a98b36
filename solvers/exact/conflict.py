"""Rows and bounds that contradict each other: an irreducible infeasible subset of a program.

Deletion filter (Chinneck, *Feasibility and Infeasibility in Optimization*, Springer 2008, chapter 6): each row in turn
is dropped, and comes back only if the rest then has a solution. After every drop, only the rows with a multiplier in
the proof of infeasibility are kept, so that few of them are tried. Bounds of columns, and integrality, follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution, refuse
from opticoll.solvers.compile.scaling import in_units
from opticoll.solvers.process.isolation import call_isolated, modules_of

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.process.messages import Report

#: Largest number of rows whose subsets are tried.
MOST_ROWS = 10_000
#: Seconds for one subset of an integer program; an undecided row is kept.
STEP_S = 10.0


@dataclass(frozen=True)
class Conflict:
    """Rows and bounds that no values satisfy together.

    Parameters
    ----------
    rows
        Numbers of the rows.
    lower, upper
        Numbers of the columns whose lower (upper) bounds take part.
    integer
        Whether the integrality of columns takes part.
    irreducible
        Whether every row and bound is needed: without it the rest has a solution.
    """

    rows: list[int]
    lower: list[int]
    upper: list[int]
    integer: bool
    irreducible: bool


def find_conflict(form: StandardForm, *, time_limit: float | None = None) -> Conflict:
    """An irreducible subset of the rows and bounds of a program without solution.

    Parameters
    ----------
    form
        The program.
    time_limit
        Seconds after which what is left is returned, not irreducible.

    Raises
    ------
    BadInput
        If it has more than :data:`MOST_ROWS` rows.
    NoSolution
        If the program has a solution, or the solver cannot tell.
    """
    if form.A.shape[0] > MOST_ROWS:
        refuse("conflict", f"the program has {form.A.shape[0]:,} rows; at most {MOST_ROWS:,} are searched")
    answer = call_isolated(
        "opticoll.solvers.exact.conflict:search_in_worker",
        {"form": form.without_blocks(), "time_limit_s": time_limit},
        wall_limit_s=None if time_limit is None else 2 * time_limit + STEP_S,
        threads=1,
        modules=modules_of("highs"),
    )
    if not answer.finished:
        refuse("conflict", answer.message, NoSolution)
    found: Conflict = answer.values
    return found


def search_in_worker(form: StandardForm, time_limit_s: float | None, report: Report) -> Conflict:
    """Search in the worker; target of :func:`find_conflict`."""
    return _Search(form, time_limit_s).found()


class _Search:
    """The deletion filter on one program, in HiGHS."""

    def __init__(self, form: StandardForm, time_limit_s: float | None) -> None:
        import time

        import highspy

        from opticoll.solvers.adapters.highs import pass_form, quiet_highs

        scaled = in_units(form)  # sides may be below the solver's tolerances; the same rows contradict each other
        form = form if scaled is None else scaled.form
        self.highspy, self.form, self.clock = highspy, form, time.monotonic
        self.until = None if time_limit_s is None else self.clock() + time_limit_s
        self.highs: Any = quiet_highs(highspy, time_limit=STEP_S)
        pass_form(highspy, self.highs, form)
        count = form.cost.size
        self.highs.changeColsCost(count, np.arange(count, dtype=np.int32), np.zeros(count))
        self.integer = bool(form.is_mip)
        self.decided = True

    def found(self) -> Conflict:
        """The subset; NoSolution if there is none."""
        if self.integer:  # first without integrality, which needs fewer rows to contradict each other
            self._require(integers=False)
            if not self._infeasible():
                self._require(integers=True)
        if not self._infeasible():
            status = self.highs.modelStatusToString(self.highs.getModelStatus())
            refuse("conflict", f"the solver does not find the program infeasible ({status})", NoSolution)
        rows = self._rows()
        return Conflict(sorted(rows), *self._bounds(rows), self.integer, self.decided)

    def _require(self, *, integers: bool) -> None:
        """Require integer columns to be whole numbers, or do not."""
        kinds, whole = self.highspy.HighsVarType, np.flatnonzero(np.asarray(self.form.integer)).astype(np.int32)
        kind = kinds.kInteger if integers else kinds.kContinuous
        self.highs.changeColsIntegrality(whole.size, whole, np.full(whole.size, kind))
        self.integer = integers

    def _infeasible(self) -> bool:
        self.highs.run()
        status = self.highs.getModelStatus()
        known = self.highspy.HighsModelStatus
        if status in (known.kTimeLimit, known.kUnknown, known.kIterationLimit):
            self.decided = False
        return bool(status in (known.kInfeasible, known.kUnboundedOrInfeasible))

    def _late(self) -> bool:
        if self.until is not None and self.clock() > self.until:
            self.decided = False
            return True
        return False

    def _free(self, row: int) -> None:
        self.highs.changeRowBounds(row, -self.highspy.kHighsInf, self.highspy.kHighsInf)

    def _put_back(self, row: int) -> None:
        self.highs.changeRowBounds(row, float(self.form.row_lower[row]), float(self.form.row_upper[row]))

    def _rows(self) -> set[int]:
        """Rows that contradict each other, within the bounds of the columns."""
        limited = np.isfinite(self.form.row_lower) | np.isfinite(self.form.row_upper)
        kept = self._in_proof(set(np.flatnonzero(limited).tolist()))
        needed: set[int] = set()
        while kept - needed:
            row = min(kept - needed)
            if self._late():
                break
            self._free(row)
            if self._infeasible():
                kept = self._in_proof(kept - {row})
            else:
                self._put_back(row)
                needed.add(row)
        return kept

    def _in_proof(self, rows: set[int]) -> set[int]:
        """The rows with a multiplier in the proof of infeasibility just found; all if HiGHS has none."""
        if self.integer:
            return rows
        self._infeasible()
        _, *rest = self.highs.getDualRay()
        ray = np.asarray(rest[-1], dtype=float) if rest else np.zeros(0)
        size = np.abs(ray).max(initial=0.0)
        if not size > 0 or ray.size != self.form.A.shape[0]:
            return rows
        part = rows & set(np.flatnonzero(np.abs(ray) > 1e-9 * size).tolist())
        for row in rows - part:
            self._free(row)
        if part and self._infeasible():
            return part
        for row in rows - part:
            self._put_back(row)
        return rows

    def _bounds(self, rows: set[int]) -> tuple[list[int], list[int]]:
        """Columns whose lower, and whose upper, bounds are needed."""
        form, infinite = self.form, self.highspy.kHighsInf
        used = np.zeros(form.cost.size, dtype=bool)
        used[form.A.tocsr()[sorted(rows)].indices] = True
        low, high = form.col_lower.copy(), form.col_upper.copy()
        idle = np.flatnonzero(~used & (low <= high))
        for j in idle.tolist():
            low[j], high[j] = -np.inf, np.inf
            self.highs.changeColBounds(j, -infinite, infinite)
        for j in np.flatnonzero(used | (form.col_lower > form.col_upper)).tolist():
            for ends, free in ((low, -np.inf), (high, np.inf)):
                before = ends[j]
                if not np.isfinite(before) or self._late():
                    continue
                ends[j] = free
                self.highs.changeColBounds(j, low[j], high[j])
                if not self._infeasible():
                    ends[j] = before
                    self.highs.changeColBounds(j, low[j], high[j])
        return np.flatnonzero(np.isfinite(low)).tolist(), np.flatnonzero(np.isfinite(high)).tolist()
