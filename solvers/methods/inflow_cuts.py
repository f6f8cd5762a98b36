r"""Cuts of fixed-charge flows: what enters over switched columns passes on, or is part of one demand.

Let a row :math:`\sum_j a_j x_j \le e` have columns with lower bounds of at least 0, and e >= 0. Let some columns j with
:math:`a_j > 0` be switched by integer columns y(j) >= 0, as rows :math:`x_j \le B_j\,y_{y(j)}` say: they are 0 unless
y(j) >= 1. For every set C of them, with Y = y(C), and N the columns with :math:`a_j < 0` (Van Roy & Wolsey, Operations
Research Letters 4, 1985, for networks: inflow, outflow and the demand e of a node)

.. math:: \sum_{j \in C} a_j x_j + \sum_{j \in N} a_j x_j \le e \sum_{y \in Y} x_y .

If all of Y are 0, the first sum is, and the second is at most 0. Otherwise the right-hand side is at least e, and the
row without its other columns, none of which is negative, is the cut. With large B the relaxation opens switches by
small fractions, and these cuts open them by the part of the demand that does not pass on. The coefficients are those
of the row, so nothing is rounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from opticoll.errors import NoSolution
from opticoll.solvers.methods.branching_tree import NodeSolver

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64

#: Most rounds, and most cuts of a round.
ROUNDS, MOST_CUTS = 20, 200
#: Least violation of a cut, relative to the size of its terms.
LEAST_VIOLATION = 1e-5


class Inflow(NamedTuple):
    """A row, in the form "at most": the columns C could have with their entries and switches, those of N, and e."""

    inside: I64
    entries: F64
    switches: I64
    passing: I64
    passed: F64
    demand: float

    def cut(self, x: F64) -> tuple[float, I64, F64] | None:
        """The cut that x violates most: its violation, columns and entries, which sum to at most 0; None if none is."""
        flow = self.entries * x[self.inside]
        leader, at = np.unique(self.switches, return_inverse=True)
        gain = np.bincount(at, flow, leader.size) - self.demand * x[leader]
        chosen = gain > 0
        out = self.passed * x[self.passing]
        violation = float(gain[chosen].sum() + out.sum())
        kept = chosen[at]
        if violation <= LEAST_VIOLATION * (float(np.abs(flow[kept]).sum()) - float(out.sum())):
            return None
        opened = leader[chosen]
        columns = np.concatenate([self.inside[kept], self.passing, opened])
        return violation, columns, np.concatenate([self.entries[kept], self.passed, np.full(opened.size, -self.demand)])


def with_inflow_cuts(form: StandardForm) -> StandardForm:
    """The program with cuts that are tight at the optimum of its relaxation; itself if there are none."""
    rows = inflows(form)
    if not rows:
        return form
    solver, lower, upper = NodeSolver(form), form.col_lower, form.col_upper
    added, x = [], None
    for _ in range(ROUNDS):
        try:
            state, x, _ = solver.solve(lower, upper)
        except NoSolution:
            return form
        if state != "optimal" or x is None:
            return form
        found = [cut for cut in (row.cut(x) for row in rows) if cut is not None]
        found.sort(key=lambda cut: -cut[0])
        if not found:
            break
        new = sp.vstack([_row(columns, entries, x.size) for _, columns, entries in found[:MOST_CUTS]], format="csr")
        added.append(new)
        solver.add_rows(new, np.zeros(new.shape[0]))
    if not added or x is None:
        return form
    cuts = sp.csr_array(sp.vstack(added))
    slack, size = -(cuts @ x), abs(cuts) @ np.abs(x)
    cuts = cuts[np.flatnonzero(slack <= 1e-7 * (1.0 + size))]
    return form.with_rows(cuts, np.full(cuts.shape[0], -np.inf), np.zeros(cuts.shape[0]))


def _row(columns: I64, entries: F64, width: int) -> sp.csr_array:
    return sp.csr_array(sp.coo_array((entries, (np.zeros(columns.size, np.int64), columns)), (1, width)))


def inflows(form: StandardForm) -> list[Inflow]:
    """All rows that give cuts: some switch must allow more than the row does."""
    A, integer = sp.csr_array(form.A), np.asarray(form.integer, dtype=bool)
    switch, most = _switches(form)
    result = []
    for row in range(A.shape[0]):
        at = slice(A.indptr[row], A.indptr[row + 1])
        columns, values = A.indices[at].astype(np.int64), A.data[at]
        if columns.size < 2 or integer[columns].any() or (form.col_lower[columns] < 0).any():
            continue
        for entries, end in ((values, form.row_upper[row]), (-values, -form.row_lower[row])):
            if not 0 <= end < np.inf:
                continue
            usable = (entries > 0) & (switch[columns] >= 0)
            usable &= entries * most[columns] > end
            passing = entries < 0
            if usable.any():
                inside = columns[usable]
                result.append(
                    Inflow(inside, entries[usable], switch[inside], columns[passing], entries[passing], float(end))
                )
    return result


def _switches(form: StandardForm) -> tuple[I64, F64]:
    """The integer column that switches every continuous one, -1 if there is none, and B, ``(columns,)`` each."""
    A, integer = sp.csr_array(form.A), np.asarray(form.integer, dtype=bool)
    switch, most = np.full(form.cost.size, -1), np.full(form.cost.size, np.inf)
    for row in np.flatnonzero(np.diff(A.indptr) == 2).tolist():
        at = slice(A.indptr[row], A.indptr[row + 1])
        columns, values = A.indices[at], A.data[at]
        if integer[columns].sum() != 1:
            continue
        first = int(np.argmin(integer[columns]))
        x, y = int(columns[first]), int(columns[1 - first])
        for sign, end in ((1.0, form.row_upper[row]), (-1.0, -form.row_lower[row])):
            a, b = sign * values[first], sign * values[1 - first]
            if end == 0 and a > 0 > b and form.col_lower[x] == 0 and form.col_lower[y] >= 0:
                switch[x], most[x] = y, -b / a
    return switch, most
