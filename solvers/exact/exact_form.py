"""Programs with rational data, and answers that prove their optimum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from opticoll.errors import ModelError, refuse
from opticoll.formulations.rounding import decimal
from opticoll.formulations.rounds.segments import offsets
from opticoll.formulations.standard_form import entry_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.standard_form import Block, Sense, StandardForm
    from opticoll.instances.topology import F64, I64, Mask


#: A bound; None where it is infinite.
End: TypeAlias = "Fraction | None"
#: An array of Python integers of any size.
Whole: TypeAlias = "NDArray[np.object_]"
#: Bounds of columns that a branch changes, by column.
Changes: TypeAlias = "Mapping[int, tuple[End, End]]"


def common(values: Sequence[Fraction]) -> tuple[Whole, int]:
    """Numerators of fractions over their least common denominator, and that denominator."""
    below = math.lcm(*{value.denominator for value in values})
    above = np.empty(len(values), dtype=object)
    above[:] = [value.numerator * (below // value.denominator) for value in values]
    return above, below


def products(indptr: I64, indices: I64, data: Whole, vector: Whole) -> Whole:
    """Product of a compressed sparse matrix and a vector, both of Python integers."""
    total = np.zeros(indptr.size - 1, dtype=object)
    filled = np.flatnonzero(np.diff(indptr))
    if filled.size:
        total[filled] = np.add.reduceat(data * vector[indices], indptr[:-1][filled])
    return total


@dataclass(frozen=True, eq=False)
class ExactForm:
    """A program in rational numbers.

    Parameters
    ----------
    indptr, indices, values
        Nonzeros by row (CSR): row i has columns ``indices[indptr[i]:indptr[i + 1]]``, ascending, and the Fractions
        of the same positions in ``values``.
    row_lower, row_upper, col_lower, col_upper
        Bounds, None where infinite.
    cost, offset
        Objective coefficients by column, and constant.
    sense
        ``"min"`` or ``"max"``.
    integer
        Integrality of each column, ``(columns,)``, boolean.
    columns, rows
        Named blocks, see :class:`~opticoll.formulations.variables.Block`.
    """

    indptr: I64
    indices: I64
    values: tuple[Fraction, ...]
    row_lower: tuple[End, ...]
    row_upper: tuple[End, ...]
    col_lower: tuple[End, ...]
    col_upper: tuple[End, ...]
    cost: tuple[Fraction, ...]
    sense: Sense
    integer: Mask
    offset: Fraction = Fraction(0)
    columns: Mapping[str, Block] = field(default_factory=dict)
    rows: Mapping[str, Block] = field(default_factory=dict)

    @classmethod
    def of(cls, form: StandardForm, rational: Callable[[float], Fraction] = decimal) -> ExactForm:
        """Read a problem's floats as rational numbers, by default as shortest decimals.

        Raises
        ------
        ModelError
            If the objective is not finite.
        """
        import scipy.sparse as sp

        if not np.isfinite(form.cost).all() or not math.isfinite(form.offset):
            refuse("exact", "the objective has an infinite coefficient", ModelError)
        by_row = sp.csr_array(form.A)
        by_row.sort_indices()

        def read(array: F64) -> tuple[Any, ...]:
            distinct, place = np.unique(array, return_inverse=True)
            known = [rational(value) if math.isfinite(value) else None for value in distinct.tolist()]
            return tuple([known[i] for i in place.tolist()])

        return cls(
            by_row.indptr.astype(np.int64),
            by_row.indices.astype(np.int64),
            read(by_row.data),
            read(form.row_lower),
            read(form.row_upper),
            read(form.col_lower),
            read(form.col_upper),
            read(form.cost),
            form.sense,
            np.asarray(form.integer, dtype=bool),
            rational(form.offset),
            form.columns,
            form.rows,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.row_lower), len(self.cost)

    def row(self, i: int) -> Iterator[tuple[int, Fraction]]:
        """Columns and coefficients of row i."""
        first, last = int(self.indptr[i]), int(self.indptr[i + 1])
        return zip(self.indices[first:last].tolist(), self.values[first:last], strict=True)

    @cached_property
    def flip(self) -> int:
        """-1 for a maximization, whose minimization has the opposite objective, else 1."""
        return -1 if self.sense == "max" else 1

    @cached_property
    def contradiction(self) -> tuple[str, int] | None:
        """The first ``"column"`` or ``"row"`` whose bounds cross, with its number; None if none do."""
        columns, rows = (self.col_lower, self.col_upper), (self.row_lower, self.row_upper)
        for kind, ends in (("column", columns), ("row", rows)):
            if (number := crossed(zip(*ends, strict=True))) is not None:
                return kind, number
        return None

    def column_names(self) -> list[str]:
        """A name for every column, as :meth:`StandardForm.column_names`."""
        return entry_names(self.columns, len(self.cost), "x")

    def row_names(self) -> list[str]:
        """A name for every row, as :meth:`StandardForm.row_names`."""
        return entry_names(self.rows, len(self.row_lower), "r")

    def objective(self, x: Sequence[Fraction]) -> Fraction:
        """Objective value of ``x`` in the stated sense."""
        terms, below = common([c * value for c, value in zip(self.cost, x, strict=True) if c and value])
        return self.offset + Fraction(sum(terms.tolist()), below)

    @cached_property
    def integral(self) -> tuple[Whole, tuple[int, ...]]:
        """Coefficients of the rows, each row scaled to integers, and the scaling factors."""
        factors = []
        ends = self.indptr.tolist()
        for first, last in itertools.pairwise(ends):
            factors.append(math.lcm(*{value.denominator for value in self.values[first:last]}))
        data = np.empty(len(self.values), dtype=object)
        per_value = np.repeat(np.array(factors, dtype=object), np.diff(self.indptr)).tolist()
        data[:] = [v.numerator * (f // v.denominator) for v, f in zip(self.values, per_value, strict=True)]
        return data, tuple(factors)

    @cached_property
    def by_column(self) -> tuple[I64, I64, I64]:
        """The nonzeros by column: the start of each column, their rows, and their positions in ``values``."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        starts = offsets(np.bincount(self.indices, minlength=self.shape[1]))
        return starts.astype(np.int64), rows[order], order

    def activity(self, x: Sequence[Fraction]) -> list[Fraction]:
        """The value of every row, A x."""
        data, factors = self.integral
        values, below = common(x)
        total = products(self.indptr, self.indices, data, values)
        return [Fraction(v, below * f) for v, f in zip(total.tolist(), factors, strict=True)]

    def violated(self, x: Sequence[Fraction]) -> str | None:
        """Describe the first row or column that ``x`` violates; None if x is a solution."""
        if len(x) != self.shape[1]:
            return f"it has {len(x)} columns, not {self.shape[1]}"
        for j, (value, low, high) in enumerate(zip(x, self.col_lower, self.col_upper, strict=True)):
            if (low is not None and value < low) or (high is not None and value > high):
                return f"column {j} is {value}, outside [{low}, {high}]"
            if self.integer[j] and value.denominator != 1:
                return f"column {j} is {value}, not an integer"
        for i, (value, low, high) in enumerate(zip(self.activity(x), self.row_lower, self.row_upper, strict=True)):
            if (low is not None and value < low) or (high is not None and value > high):
                return f"row {i} is {value}, outside [{low}, {high}]"
        return None

    def reduced_costs(self, y: Mapping[int, Fraction], *, farkas: bool = False) -> dict[int, Fraction]:
        r"""The nonzeros of :math:`z = c - A^\top y`, by column, for the minimization; c is 0 with ``farkas``."""
        data, factors = self.integral
        starts, rows, order = self.by_column
        multipliers = [Fraction(0)] * self.shape[0]
        for i, value in y.items():
            multipliers[i] = value / factors[i]
        values, below = common(multipliers)
        priced = products(starts, rows, data[order], values)
        z = {j: Fraction(-value, below) for j, value in enumerate(priced.tolist()) if value}
        if not farkas:
            for j, c in enumerate(self.cost):
                if c:
                    z[j] = z.get(j, Fraction(0)) + self.flip * c
        return {j: value for j, value in z.items() if value}

    def dual_bound(self, y: Mapping[int, Fraction], changes: Changes | None = None, *, farkas: bool = False) -> End:
        """Lower bound on the minimization's optimum proven by y, within changed column bounds; None if infinite.

        With ``farkas``, objective and offset are taken as 0: no solution exists if the result is positive.
        """
        terms = [Fraction(0) if farkas else self.flip * self.offset]
        for i, multiplier in y.items():
            end = self.row_lower[i] if multiplier > 0 else self.row_upper[i]
            if multiplier and end is None:
                return None
            if end:
                terms.append(multiplier * end)
        changed = changes or {}
        for j, value in self.reduced_costs(y, farkas=farkas).items():
            low, high = changed[j] if j in changed else (self.col_lower[j], self.col_upper[j])
            end = low if value > 0 else high
            if end is None:
                return None
            if end:
                terms.append(value * end)
        values, below = common(terms)
        return Fraction(sum(values.tolist()), below)

    def within(self, branch: Mapping[int, tuple[int | None, int | None]]) -> Changes:
        """Column bounds of a subproblem: those of its branches where they are tighter than the problem's own."""
        changes = {}
        for j, (least, most) in branch.items():
            low, high = self.col_lower[j], self.col_upper[j]
            changes[j] = (
                low if least is None or (low is not None and low > least) else Fraction(least),
                high if most is None or (high is not None and high < most) else Fraction(most),
            )
        return changes

    @cached_property
    def step(self) -> Fraction | None:
        """A step such that every objective value is the offset plus an integer multiple of it; None if unknown."""
        priced = [j for j, c in enumerate(self.cost) if c]
        if not priced or not self.integer[priced].all():
            return None
        below = math.lcm(*(self.cost[j].denominator for j in priced))
        return Fraction(math.gcd(*(int(self.cost[j] * below) for j in priced)), below)

    def rounded(self, bound: Fraction) -> Fraction:
        """The smallest value of the minimization's objective, at least ``bound``, that integrality allows."""
        if self.step is None:
            return bound
        offset = self.flip * self.offset
        return offset + self.step * math.ceil((bound - offset) / self.step)

    def closes(self, proven: End, value: End, *, farkas: bool) -> bool:
        """Whether a :meth:`dual_bound` excludes what is better than ``value`` in the stated sense.

        With ``farkas``, whether it excludes every solution. A bound of None excludes nothing.
        """
        if proven is None or farkas:
            return proven is not None and proven > 0
        return value is not None and self.rounded(proven) >= self.flip * value


@dataclass(frozen=True)
class Leaf:
    """A subproblem with multipliers that prune it by bound or by infeasibility.

    ``y`` are multipliers of rows for the minimization, by row, without zeros. With ``farkas`` they prove that the
    subproblem is infeasible; otherwise that it has no solution better than the answer's objective, after rounding
    (:meth:`ExactForm.rounded`).
    """

    y: Mapping[int, Fraction]
    farkas: bool = False


@dataclass(frozen=True)
class Split:
    """A subproblem branched into ``x[column] <= at`` and ``x[column] >= at + 1``.

    ``below`` and ``above`` are positions of nodes in :attr:`ExactAnswer.nodes`, greater than that of this node.
    """

    column: int
    at: int
    below: int
    above: int


@dataclass(frozen=True, eq=False)
class ExactAnswer:
    """The exact answer to an :class:`ExactForm`, with its proof.

    Parameters
    ----------
    status
        ``"optimal"``, ``"infeasible"``, ``"unbounded"``, or ``"bounded"`` where only a bound is proven.
    objective
        The optimum in the stated sense; for a bounded answer the value of ``x``, None without one; else None.
    x
        A solution of that value, by column; for an unbounded problem one from which ``ray`` improves without limit;
        None if infeasible.
    nodes
        The proof as a tree, root first. A linear program has one leaf, whose multipliers prove the objective itself:
        with ``x`` they are an optimal primal-dual pair.
    ray
        For an unbounded problem, by column; else None.
    bound
        For a bounded answer, a value that no solution improves on; else None.
    """

    status: Literal["optimal", "infeasible", "unbounded", "bounded"]
    objective: Fraction | None = None
    x: tuple[Fraction, ...] | None = None
    nodes: tuple[Leaf | Split, ...] = ()
    ray: tuple[Fraction, ...] | None = None
    bound: Fraction | None = None

    @property
    def proven(self) -> Fraction | None:
        """Value that the nodes prove no solution improves on: the optimum or the bound; None if there is none."""
        return self.bound if self.status == "bounded" else self.objective

    def leaves(self) -> Iterator[tuple[Leaf, dict[int, tuple[int | None, int | None]]]]:
        """Every leaf with the column bounds of its branches (None: no bound on that side)."""
        stack: list[tuple[int, dict[int, tuple[int | None, int | None]]]] = [(0, {})] if self.nodes else []
        while stack:
            place, branch = stack.pop()
            node = self.nodes[place]
            if isinstance(node, Leaf):
                yield node, branch
                continue
            low, high = branch.get(node.column, (None, None))
            stack.append((node.above, {**branch, node.column: (node.at + 1, high)}))
            stack.append((node.below, {**branch, node.column: (low, node.at)}))


def fault(form: ExactForm, answer: ExactAnswer) -> str | None:
    """Explain why an answer's vectors do not prove it; None if they do. All is recomputed in rational numbers."""
    if answer.x is not None and (violated := form.violated(answer.x)) is not None:
        return f"the solution is invalid: {violated}"
    if answer.status == "unbounded":
        return _ray_fault(form, answer)
    complete = {"optimal": answer.x is not None, "infeasible": answer.x is None, "bounded": answer.bound is not None}
    if not complete[answer.status] or not answer.nodes:
        return "the solution or the proof is missing"
    if answer.x is not None and answer.objective != form.objective(answer.x):
        return f"the solution has objective {form.objective(answer.x)}, not {answer.objective}"
    for place, node in enumerate(answer.nodes):
        if isinstance(node, Split) and not _splits(form, node, place, len(answer.nodes)):
            return f"node {place} does not split its subproblem in two"
    if form.contradiction is not None:
        return None
    for leaf, branch in answer.leaves():
        changes = form.within(branch)
        if crossed(changes.values()) is not None:
            continue
        proven = form.dual_bound(leaf.y, changes, farkas=leaf.farkas)
        if not form.closes(proven, answer.proven, farkas=leaf.farkas):
            return f"the multipliers of a leaf prove only {proven}"
    return None


def crossed(ends: Iterable[tuple[End, End]]) -> int | None:
    """The number of the first lower bound that is above its upper bound; None if none is."""
    pairs = enumerate(ends)
    return next((k for k, (low, high) in pairs if low is not None and high is not None and low > high), None)


def _splits(form: ExactForm, node: Split, place: int, nodes: int) -> bool:
    """Whether a node splits its subproblem at an integer column into two of the later nodes."""
    return (
        0 <= node.column < len(form.cost)
        and bool(form.integer[node.column])
        and place < min(node.below, node.above)
        and max(node.below, node.above) < nodes
        and node.below != node.above
    )


def _ray_fault(form: ExactForm, answer: ExactAnswer) -> str | None:
    ray = answer.ray
    if ray is None or answer.x is None:
        return "the solution or the ray is missing"
    ends = [
        *zip(form.col_lower, form.col_upper, ray, strict=True),
        *zip(form.row_lower, form.row_upper, form.activity(ray), strict=True),
    ]
    if any((move < 0 and low is not None) or (move > 0 and high is not None) for low, high, move in ends):
        return "the ray leaves the bounds"
    better = form.flip * sum((c * move for c, move in zip(form.cost, ray, strict=True)), Fraction(0)) < 0
    return None if better else "the ray does not improve the objective"
