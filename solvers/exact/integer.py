r"""Exact optima of integer programs: a tree found in floating point is closed leaf by leaf in rational numbers.

1. The tree of :mod:`~opticoll.solvers.methods.branching.branching_tree` is built in floating point and recorded.
2. The incumbent's integer columns are rounded, and the others solved exactly.
3. A leaf's row duals, or its ray, are rounded to nearby fractions, which prove a bound in exact arithmetic. If that is
   not enough, the leaf's linear program is solved exactly; if its optimum is fractional, the leaf is branched.

The bound of a leaf is rounded up to the next value that the objective can take. An exact optimum that improves the
incumbent replaces it, and every leaf that was closed stays closed.

With a time limit, the tree takes the share ``SEARCH`` of it. If it is not finished then, or its leaves are not all
closed in time, the exact optimum of the relaxation proves a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NoSolution, refuse
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, Leaf, Split, crossed
from opticoll.solvers.exact.linear import floating_form, solve_linear
from opticoll.solvers.methods.branching.branching_tree import BranchingTree, Unbounded

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.exact.exact_form import Changes
    from opticoll.solvers.methods.branching.branching_tree import Node

    Branch = dict[int, tuple[int | None, int | None]]


#: Relative gap at which the tree in floating point closes a leaf; the exact step closes the rest.
NEAR = 1e-9
#: Shares of the time after which the tree search stops, and after which its leaves are abandoned for the relaxation.
SEARCH, CLOSE = 0.6, 0.85
#: Time limit of HiGHS's search for a first solution [s].
SEARCH_S = 30.0
#: Columns with a cost are branched on first if at most one integer column in this many has a cost.
FEW = 10
#: Largest denominators to which multipliers are rounded, tried in turn, and the largest change allowed.
DENOMINATORS, MOVED = (1, 60, 5040, 10**6), 1e-6


def solve_integer(
    form: ExactForm, incumbent: F64 | None = None, remaining: Callable[[], float | None] = lambda: None
) -> ExactAnswer:
    """The exact optimum of an integer program, the proof that it has no solution, or a bound if time runs out.

    Parameters
    ----------
    form
        The program.
    incumbent
        A solution in floating point to start from, ``(columns,)``; HiGHS completes values that are nan.
    remaining
        Returns the seconds left, None without a limit; raises TimeoutError when no time is left.

    Raises
    ------
    NoSolution
        If the optimum is not proven: the relaxation is unbounded, or HiGHS fails on it.
    TimeoutError
        When no time is left, and no bound is proven.
    """
    total = remaining() or 0.0
    searching, closing = (partial(_left, remaining, (1 - part) * total) for part in (SEARCH, CLOSE))
    proof = _Proof(form, closing)
    if incumbent is None or np.isnan(incumbent).any():
        incumbent = _completed(form, incumbent, searching())
    if incumbent is not None:
        proof.offer(incumbent)
    return proof.run(incumbent, searching, remaining)


def _left(remaining: Callable[[], float | None], spared: float) -> float | None:
    """The seconds left, less those held back for later steps; raises TimeoutError if there are none."""
    left = remaining()
    if left is not None and left <= spared:
        raise TimeoutError
    return None if left is None else left - spared


def _completed(form: ExactForm, known: F64 | None, left: float | None) -> F64 | None:
    """A solution found by HiGHS with the known integer columns fixed; None if it finds none in time."""
    from opticoll.solvers.process.isolation import solve_here
    from opticoll.solvers.task import SolveRequest

    floating = floating_form(form)
    lower, upper = floating.col_lower.copy(), floating.col_upper.copy()
    if known is not None:
        fixed = form.integer & np.isfinite(known)
        lower[fixed] = upper[fixed] = np.rint(known[fixed])
    wanted = replace(floating, col_lower=lower, col_upper=upper, integer=form.integer)
    limit = SEARCH_S if left is None else min(SEARCH_S, left / 4)
    outcome = solve_here(wanted, "highs", SolveRequest(limit, 1, NEAR, 0), lambda *_: None)
    return outcome.x


class _Recording(BranchingTree):
    """Tree that records the split or the closing vector of every node, by its number."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.splits: dict[int, tuple[int, int, int, int]] = {}
        self.leaves: dict[int, tuple[F64 | None, bool]] = {}
        self.root: F64 | None = None

    def _choose(self, bound: float, x: F64, candidates: I64, lower: F64, upper: F64) -> int:
        """Prefer columns with a cost if they are few: fixing one moves the bound by a step of the objective."""
        priced = candidates[self.form.cost[candidates] != 0]
        few = FEW * np.count_nonzero(self.form.cost) <= self.whole.size
        return super()._choose(bound, x, priced if few and priced.size else candidates, lower, upper)

    def _close(self, node: Node, bound: float, duals: F64 | None) -> None:
        super()._close(node, bound, duals)
        self.leaves[node.order] = (duals, False)

    def _discard(self, node: Node, ray: F64 | None) -> None:
        super()._discard(node, ray)
        self.leaves[node.order] = (ray, True)

    def _branch(self, node: Node, bound: float, x: F64 | None, candidates: I64, lower: F64, upper: F64) -> Node:
        if node.order == 0:
            self.root = node.duals
        child = super()._branch(node, bound, x, candidates, lower, upper)
        column = child.branched[0] if child.branched is not None else int(candidates[0])
        first = -self._order + 1  # the two children have the last two numbers, the lower child first
        low, high = child.changes[column]
        at = int(high) if child.order == first else int(low) - 1
        self.splits[node.order] = (column, at, first, first - 1)
        return child


@dataclass
class _Proof:
    """The best exact solution so far, and the nodes of the proof."""

    form: ExactForm
    remaining: Callable[[], float | None]
    x: tuple[Fraction, ...] | None = None
    value: Fraction | None = None  # of the minimization
    nodes: list[Leaf | Split] = field(default_factory=list)

    def run(
        self, incumbent: F64 | None, searching: Callable[[], float | None], remaining: Callable[[], float | None]
    ) -> ExactAnswer:
        form = self.form
        floating = replace(floating_form(form).minimized(), integer=form.integer)
        value = np.inf if self.value is None else float(self.value)
        tree = _Recording(
            floating, incumbent=value, x=incumbent, tol=NEAR, tick=lambda *_: searching(), remaining=searching
        )
        finished = False
        with suppress(TimeoutError):
            try:
                tree.run()
            except Unbounded:
                msg = "exact: for an integer program with an unbounded relaxation, this step proves nothing more"
                raise NoSolution(msg) from None
            finished = True
        if tree.x is not None and tree.x is not incumbent:
            self.offer(tree.x)
        if finished:
            with suppress(TimeoutError):
                self._close(tree)
                status = "infeasible" if self.value is None else "optimal"
                return ExactAnswer(status, self._objective, self.x, tuple(self.nodes))  # type: ignore[arg-type]
        return self._relaxed(tree.root, remaining)

    @property
    def _objective(self) -> Fraction | None:
        return None if self.value is None else self.form.flip * self.value

    def _relaxed(self, root: F64 | None, remaining: Callable[[], float | None]) -> ExactAnswer:
        """The bound of the relaxation: its exact optimum if there is time, else by multipliers near its duals."""
        form, tried = self.form, nearby(self.form, root, rays=False)
        with suppress(TimeoutError, NoSolution):
            solved = solve_linear(form, remaining)
            if solved.status == "optimal" and isinstance(leaf := solved.nodes[0], Leaf):
                tried.append(dict(leaf.y))
        proven = [(end, -k) for k, y in enumerate(tried) if (end := form.dual_bound(y)) is not None]
        if not proven:
            raise TimeoutError
        end, place = max(proven)
        bound, nodes = form.rounded(end), (Leaf(tried[-place]),)
        if self.value is not None and bound >= self.value:
            return ExactAnswer("optimal", self._objective, self.x, nodes)
        return ExactAnswer("bounded", self._objective, self.x, nodes, bound=form.flip * bound)

    def offer(self, x: F64) -> None:
        """Round the integer columns of a solution, solve for the others exactly, and keep the result if it improves."""
        form = self.form
        whole = np.flatnonzero(form.integer).tolist()
        fixed: dict[int, tuple[Fraction, Fraction]] = {j: (Fraction(round(x[j])), Fraction(round(x[j]))) for j in whole}
        if len(whole) == len(form.cost):
            self._take(tuple(fixed[j][0] for j in range(len(form.cost))))
            return
        with suppress(TimeoutError):
            answer = solve_linear(restricted(form, fixed), self.remaining)
            if answer.x is not None and answer.status == "optimal":
                self._take(answer.x)

    def _take(self, x: tuple[Fraction, ...]) -> bool:
        value = self.form.flip * self.form.objective(x)
        better = (self.value is None or value < self.value) and self.form.violated(x) is None
        if better:
            self.x, self.value = x, value
        return better

    def _close(self, tree: _Recording) -> None:
        """Close every leaf of the recorded tree in depth-first order."""
        self.nodes.append(Leaf({}))
        stack: list[tuple[int, int | None, Branch]] = [(0, 0, {})]
        while stack:
            place, order, branch = stack.pop()
            self.remaining()
            split = None if order is None else tree.splits.get(order)
            if split is None:
                vector, empty = (None, False) if order is None else tree.leaves.get(order, (None, False))
                node = self._leaf(branch, vector, empty=empty)
            else:
                node = Split(split[0], split[1], 0, 0)
            if isinstance(node, Leaf):
                self.nodes[place] = node
                continue
            below, above = len(self.nodes), len(self.nodes) + 1
            self.nodes[place] = replace(node, below=below, above=above)
            self.nodes += [Leaf({}), Leaf({})]
            low, high = branch.get(node.column, (None, None))
            children = (None, None) if split is None else split[2:]
            stack.append((above, children[1], {**branch, node.column: (node.at + 1, high)}))
            stack.append((below, children[0], {**branch, node.column: (low, node.at)}))

    def _leaf(self, branch: Branch, vector: F64 | None, *, empty: bool) -> Leaf | Split:
        """The leaf with multipliers that close it, or a split if its optimum is fractional."""
        form = self.form
        changes = form.within(branch)
        if crossed(changes.values()) is not None:
            return Leaf({})
        for y in nearby(form, vector, rays=empty):
            if form.closes(form.dual_bound(y, changes, farkas=empty), self._objective, farkas=empty):
                return Leaf(y, farkas=empty)
        answer = solve_linear(restricted(form, changes), self.remaining)
        if answer.status == "unbounded" or not answer.nodes:
            refuse("exact", "the relaxation of a branch is unbounded; the optimum is not proven exactly", NoSolution)
        leaf = answer.nodes[0]
        assert isinstance(leaf, Leaf)
        if answer.status == "infeasible":
            return leaf
        assert answer.x is not None
        assert answer.objective is not None
        if form.closes(form.flip * answer.objective, self._objective, farkas=False):
            return leaf
        fractional = [j for j in np.flatnonzero(form.integer).tolist() if answer.x[j].denominator != 1]
        if not fractional:
            self._take(answer.x)
            return leaf
        middle = min(fractional, key=lambda j: abs(answer.x[j] % 1 - Fraction(1, 2)))  # type: ignore[index]
        return Split(middle, math.floor(answer.x[middle]), 0, 0)


def restricted(form: ExactForm, changes: Changes) -> ExactForm:
    """The program with changed bounds of some columns."""
    lower, upper = list(form.col_lower), list(form.col_upper)
    for j, (low, high) in changes.items():
        lower[j], upper[j] = low, high
    part = replace(form, col_lower=tuple(lower), col_upper=tuple(upper))
    for name in ("integral", "by_column", "step"):  # they do not depend on bounds
        part.__dict__[name] = getattr(form, name)
    return part


def nearby(form: ExactForm, vector: F64 | None, *, rays: bool) -> list[dict[int, Fraction]]:
    """Rational multipliers near a floating-point vector, small denominators first."""
    if vector is None or not np.isfinite(vector).all() or not vector.any():
        return []
    size = float(np.abs(vector).max()) if rays else 1.0
    results: list[dict[int, Fraction]] = []
    for sign in (1.0, -1.0) if rays else (1.0,):
        used = [(int(i), sign * float(vector[i]) / size) for i in np.flatnonzero(np.abs(vector) > 1e-12 * size)]
        used = [(i, v) for i, v in used if (form.row_lower if v > 0 else form.row_upper)[i] is not None]
        for near in _rounded(used):
            if near not in results:
                results.append(near)
    return results


def _rounded(used: list[tuple[int, float]]) -> Iterator[dict[int, Fraction]]:
    """Numbers rounded to fractions of small denominators that hardly move them, then exactly as they are."""
    for most in DENOMINATORS:
        near = {i: Fraction(v).limit_denominator(most) for i, v in used}
        if max((abs(float(near[i]) - v) for i, v in used), default=0.0) <= MOVED:
            yield {i: value for i, value in near.items() if value}
    yield {i: Fraction(v) for i, v in used}
