"""Branch and bound whose every leaf has a bound proven from duals, in floating point with directed rounding."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution
from opticoll.solvers.adapters.highs import pass_form, quiet_highs
from opticoll.solvers.relaxation import rounded
from opticoll.solvers.verify import WeakDuality

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64


@dataclass(eq=False)
class LeafBounds:
    """Fast rigorous bounds on the leaves of a minimization problem.

    ``limits`` gives upper bounds of the last rows under upper bounds of the columns; without it, none of them moves.
    """

    problem: WeakDuality
    offset: float
    limits: Callable[[F64], F64] | None = None

    @classmethod
    def of(cls, form: StandardForm, limits: Callable[[F64], F64] | None = None) -> LeafBounds:
        """Prepare a problem (a minimization)."""
        assert form.sense == "min"
        return cls(WeakDuality.of(form), form.offset, limits)

    def row_upper(self, upper: F64) -> F64:
        """Upper row bounds under upper column bounds, ``(rows,)``."""
        stated = self.problem.row_upper
        if self.limits is None:
            return stated
        moved = self.limits(upper)
        return np.concatenate([stated[: stated.size - moved.size], moved])

    def bound(self, y: F64, lower: F64, upper: F64) -> float:
        """The bound that row duals y, ``(rows,)``, prove under the given column bounds, ``(columns,)``."""
        return self.problem.bound(y, lower, upper, self.offset, self.row_upper(upper))

    def empty(self, ray: F64, lower: F64, upper: F64) -> bool:
        """Whether the ray, or its opposite, proves that no x satisfies rows and column bounds."""
        scale = float(np.abs(ray).max(initial=0.0))
        if not 0 < scale < np.inf:
            return False
        rows = self.row_upper(upper)
        return any(self.problem.empty(sign * ray / scale, lower, upper, rows) for sign in (1.0, -1.0))


#: Integrality tolerance of a column.
WHOLE = 1e-6
#: A column's pseudo-costs are used once each side was observed this often; until then both children are tried.
RELIABLE = 4
#: Largest number of columns tried at a node, and of simplex iterations for each.
TRIED, TRIAL_ITERATIONS = 8, 60
#: Smallest improvement of the bound that counts in the product of gains, so that products do not vanish.
LEAST_GAIN = 1e-6
#: Part of the largest cost by which rounding may change an objective.
ROUNDING = 1e-13


@dataclass(order=True)
class Node:
    """A subproblem: its changed column bounds, and the bound that its parent proved, with row duals and basis."""

    bound: float
    order: int
    changes: dict[int, tuple[float, float]] = field(compare=False)
    branched: tuple[int, bool, float, float] | None = field(compare=False, default=None)
    duals: F64 | None = field(compare=False, default=None)
    basis: Any = field(compare=False, default=None)


class BranchingTree:
    """Best-first branch and bound with dives.

    Parameters
    ----------
    form
        A minimization.
    incumbent, x
        A known objective and solution, if any.
    tol
        Relative gap that counts as closed.
    tick
        Called before every node with (incumbent, bound, nodes, open nodes); raises TimeoutError to end the search.
    on_incumbent
        Called with every better x and its value.
    remaining
        Seconds left, or None; raises TimeoutError when no time is left.
    limits
        As of :class:`LeafBounds`.
    """

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
        limits: Callable[[F64], F64] | None = None,
    ) -> None:
        self.form, self.leaf = form, LeafBounds.of(form, limits)
        self.incumbent, self.x, self.tol = incumbent, x, tol
        self.tick, self.on_incumbent, self.remaining = tick, on_incumbent, remaining
        self.whole = np.flatnonzero(np.asarray(form.integer))
        self.nodes = self.unproven = self.exact = 0
        self.closed = np.inf  # the smallest bound among closed leaves
        self._order = 0
        self._solver = NodeSolver(form, self.leaf)
        self._lower = np.where(np.asarray(form.integer), np.ceil(form.col_lower - WHOLE), form.col_lower)
        self._upper = np.where(np.asarray(form.integer), np.floor(form.col_upper + WHOLE), form.col_upper)
        self._gain = np.zeros((2, form.cost.size))
        self._seen = np.zeros((2, form.cost.size))
        self._open: list[Node] = []
        self._current: Node | None = None
        self._begun = False

    def box(self, node: Node) -> tuple[F64, F64] | None:
        """The column bounds at a node, ``(columns,)`` each; None if they are proven to leave no better solution."""
        lower, upper = self._lower.copy(), self._upper.copy()
        for column, (low, high) in node.changes.items():
            lower[column], upper[column] = max(low, lower[column]), min(high, upper[column])
        return lower, upper

    @property
    def bound(self) -> float:
        """The bound of the tree: the smallest of the bounds of open and closed leaves and the incumbent."""
        open_ones = [node.bound for node in (self._current, *self._open[:1]) if node is not None]
        return rounded(self.form, min([*open_ones, self.closed, self.incumbent]))

    def run(self) -> None:
        """Search until no node is open; the tick may end it earlier, and ``bound`` is valid in any case.

        A search that the tick has ended can be continued by another call.

        Raises
        ------
        TimeoutError
            From the tick.
        Unbounded
            If the relaxation is unbounded, proven in rational arithmetic.
        """
        if not self._begun:
            heapq.heappush(self._open, Node(-np.inf, 0, {}))
        self._begun = True
        while self._open or self._current is not None:
            if self._current is None:
                self._current = heapq.heappop(self._open)
                self._solver.start_from(self._current.basis)  # the last one belongs to another part of the tree
            while self._current is not None:
                self.tick(self.incumbent, self.bound, self.nodes, len(self._open))
                self._current = self._process(self._current)

    def _cut(self, bound: float) -> bool:
        """Whether a leaf with this bound has no solution that improves the incumbent by more than the tolerance."""
        if not np.isfinite(self.incumbent):
            return bool(bound == np.inf)
        return rounded(self.form, bound) >= self.incumbent - self.tol * abs(self.incumbent)

    def _close(self, node: Node, bound: float, duals: F64 | None) -> None:
        """Close a leaf by the bound that the row duals proved."""
        self.closed = min(self.closed, bound)

    def _discard(self, node: Node, ray: F64 | None) -> None:
        """Close a leaf that the ray, its column bounds, or rational arithmetic proved infeasible."""
        self._update_pseudo_costs(node, np.inf)

    def _process(self, node: Node) -> Node | None:
        """Bound a node; close it, or branch, put one child on the heap and return the other to dive on."""
        if self._cut(node.bound):
            self._close(node, node.bound, node.duals)
            return None
        self.nodes += 1
        box = self.box(node)
        if box is None:
            self._discard(node, None)
            return None
        lower, upper = box
        state, x, duals = self._solver.solve(lower, upper)
        bound, proof, empty = self._proven(node, state, duals, lower, upper)
        if empty:
            self._discard(node, duals)
            return None
        if self._cut(bound):
            self._close(node, bound, proof)
            return None
        fraction = np.abs(x[self.whole] - np.rint(x[self.whole])) if x is not None else np.ones(self.whole.size)
        free = lower[self.whole] < upper[self.whole]
        if x is not None and state == "optimal" and (fraction <= WHOLE).all():
            self._accept(x, lower, upper)
            if not free.any() and not self._cut(bound):
                bound = max(bound, self._exact_bound(lower, upper))
            if self._cut(bound) or not free.any():
                self._close(node, bound, proof)
                return None
        candidates = self.whole[free & (fraction > WHOLE)]
        binary = candidates[upper[candidates] - lower[candidates] <= 1.0]
        candidates = binary if binary.size else candidates
        if candidates.size == 0:
            candidates = self.whole[free]
        if candidates.size == 0:
            self.unproven += 1  # no column to branch on, but no vector closes the leaf
            self._close(node, bound, proof)
            return None
        return self._branch(replace(node, duals=proof), bound, x, candidates, lower, upper)

    def _proven(
        self, node: Node, state: str, duals: F64 | None, lower: F64, upper: F64
    ) -> tuple[float, F64 | None, bool]:
        """The bound of a node after its relaxation, the duals that prove it, and whether it is proven to be empty."""
        bound, proof = node.bound, node.duals
        empty = state == "infeasible" and duals is not None and self.leaf.empty(duals, lower, upper)
        own = -np.inf
        if duals is not None and state != "infeasible":
            own = self.leaf.bound(duals, lower, upper)
            bound, proof = (own, duals) if own > bound else (bound, proof)
            self._update_pseudo_costs(node, own)
        if not empty and (not np.isfinite(own) or self._rounded_off(bound)):
            bound = max(bound, self._exact_bound(lower, upper))
            empty = bound == np.inf
        return bound, proof, empty

    def _rounded_off(self, bound: float) -> bool:
        """Whether only rounding may leave a gap: at an incumbent of 0, the relative tolerance allows for none."""
        return not self._cut(bound) and self.incumbent - bound <= rounding_of(self.form)

    def _exact_bound(self, lower: F64, upper: F64) -> float:
        """The bound of a leaf's relaxation in rational arithmetic; infinite if it is empty, -inf if nothing is proven.

        Raises
        ------
        Unbounded
            If the relaxation is unbounded.
        """
        from opticoll.solvers.exact.lp_bound import exact_relaxation_here

        try:
            leaf = replace(self.form, col_lower=lower, col_upper=upper)
            relaxed = exact_relaxation_here(leaf, self.remaining)
        except NoSolution:
            return -np.inf
        if relaxed.answer.status == "unbounded":
            raise Unbounded
        self.exact += 1
        return np.inf if relaxed.bound is None else relaxed.bound.value

    @property
    def reasons(self) -> str:
        """How the leaves are closed."""
        return "by recomputed duals or rays" + (f", {self.exact} in rational arithmetic" if self.exact else "")

    def _accept(self, x: F64, lower: F64, upper: F64) -> None:
        """Round the integer columns of a solution, solve for the others again, and keep the result if it improves."""
        again = self._solver.solve_at(x, self.whole, lower, upper)
        if again is None:
            return
        again[self.whole] = np.rint(again[self.whole])
        value = float(self.form.cost @ again) + self.form.offset
        if value < self.incumbent - 1e-12 * abs(value):
            self.incumbent, self.x = value, again
            self.on_incumbent(again, value)

    def _branch(self, node: Node, bound: float, x: F64 | None, candidates: I64, lower: F64, upper: F64) -> Node:
        at = _middle(lower, upper) if x is None else np.clip(x, lower, upper)
        column = self._choose(bound, at, candidates, lower, upper) if x is not None else int(candidates[0])
        below = float(np.floor(at[column] + WHOLE)) if at[column] < upper[column] else upper[column] - 1.0
        fraction = float(np.clip(at[column] - below, 0.0, 1.0))
        children, basis = [], self._solver.basis()
        for up, ends in ((False, (lower[column], below)), (True, (below + 1.0, upper[column]))):
            self._order += 1
            branched = (column, up, fraction, bound)
            children.append(Node(bound, -self._order, {**node.changes, column: ends}, branched, node.duals, basis))
        dive = 1 if fraction > 0.5 else 0
        heapq.heappush(self._open, children[1 - dive])
        return children[dive]

    def _update_pseudo_costs(self, node: Node, bound: float) -> None:
        """Enter a child's gain into the pseudo-costs of the column it was branched on."""
        if node.branched is None or not np.isfinite(node.branched[3]):
            return
        column, up, fraction, before = node.branched
        self._observe(column, up, fraction, bound - before)

    def _observe(self, column: int, up: bool, fraction: float, gain: float) -> None:
        """Record the gain of branching a column up or down; an infeasible child counts as a large one."""
        if not np.isfinite(gain):
            if not np.isfinite(self.incumbent):
                return
            gain = abs(self.incumbent) * 0.1
        self._gain[int(up), column] += max(gain, 0.0) / max(1.0 - fraction if up else fraction, WHOLE)
        self._seen[int(up), column] += 1

    def _choose(self, bound: float, x: F64, candidates: I64, lower: F64, upper: F64) -> int:
        """The column whose children promise the largest product of gains; unknown ones are tried."""
        fraction = np.clip(x[candidates] - np.floor(x[candidates] + WHOLE), 0.0, 1.0)
        typical = self._gain.sum(axis=1) / np.maximum(self._seen.sum(axis=1), 1.0)
        rate = np.where(
            self._seen[:, candidates] > 0,
            self._gain[:, candidates] / np.maximum(self._seen[:, candidates], 1.0),
            typical[:, None],
        )
        score = np.maximum(rate[0] * fraction, LEAST_GAIN) * np.maximum(rate[1] * (1 - fraction), LEAST_GAIN)
        order = np.argsort(-(score + 1e-9 * np.minimum(fraction, 1 - fraction)), kind="stable")
        unsure = [k for k in order.tolist() if self._seen[:, candidates[k]].min() < RELIABLE][:TRIED]
        for k in unsure:
            column, gains = int(candidates[k]), []
            below = float(np.floor(x[column] + WHOLE))
            for up in (False, True):
                low, high = lower.copy(), upper.copy()
                low[column], high[column] = (below + 1.0, high[column]) if up else (low[column], below)
                gain = self._solver.try_out(low, high, self.leaf, bound)
                self._observe(column, up, float(fraction[k]), gain)
                gains.append(min(max(gain, LEAST_GAIN), 1e6))
            score[k] = gains[0] * gains[1]
        return int(candidates[int(np.argmax(score))])


class Unbounded(Exception):
    """The relaxation is unbounded."""


def rounding_of(form: StandardForm) -> float:
    """The size of differences between objectives that rounding alone may explain."""
    return ROUNDING * float(np.abs(form.cost).max(initial=0.0))


def _middle(lower: F64, upper: F64) -> F64:
    """A point between the bounds, ``(columns,)``: the middle, or the one nearest to 0 where they are infinite."""
    nearest = np.clip(0.0, lower, upper)
    return np.where(np.isfinite(lower) & np.isfinite(upper), 0.5 * lower + 0.5 * upper, nearest)


class NodeSolver:
    """HiGHS's dual simplex on one LP with changing column bounds, and row bounds that follow from them for a leaf."""

    def __init__(self, form: StandardForm, leaf: LeafBounds | None = None) -> None:
        import highspy

        precise = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        self._highs = quiet_highs(highspy, presolve="off", solver="simplex", threads=1, **precise)
        pass_form(highspy, self._highs, replace(form, integer=np.zeros(form.cost.size, dtype=bool)))
        self._lower, self._upper = form.col_lower.copy(), form.col_upper.copy()
        self._leaf, self._row_lower, self._row_upper = leaf, form.row_lower, form.row_upper
        self._most = 2**31 - 1
        self._answers = 0

    def solve(self, lower: F64, upper: F64) -> tuple[str, F64 | None, F64 | None]:
        """Return the state, x, and row duals (a dual ray if infeasible)."""
        self._move(lower, upper)
        self._highs.run()
        status = self._highs.getModelStatus().name
        if status == "kNotset":  # it failed from the last basis
            self._highs.clearSolver()
            self._highs.run()
            status = self._highs.getModelStatus().name
        if status == "kInfeasible":
            return "infeasible", None, self._ray()
        if status in ("kUnbounded", "kUnboundedOrInfeasible"):
            return "unbounded", None, None
        solution = self._highs.getSolution()
        duals = np.array(solution.row_dual, dtype=float) if solution.dual_valid else None
        if status == "kOptimal":
            self._answers += 1
            return "optimal", np.array(solution.col_value, dtype=float), duals
        if not self._answers and duals is None:
            msg = f"HiGHS did not solve the relaxation (status {status}), so no bound can be proven"
            raise NoSolution(msg)
        return "unknown", None, duals

    def solve_at(self, x: F64, whole: I64, lower: F64, upper: F64) -> F64 | None:
        """The best solution whose columns ``whole`` are those of ``x``, rounded; None if there is none."""
        low, high = lower.copy(), upper.copy()
        low[whole] = high[whole] = np.rint(x[whole])
        state, solution, _ = self.solve(low, high)
        return solution if state == "optimal" else None

    def basis(self) -> Any:
        """The last basis, from which :meth:`start_from` continues."""
        return self._highs.getBasis()

    def start_from(self, basis: Any) -> None:
        """Start the next solve from a basis; from the last one if it is None."""
        if basis is not None:
            self._highs.setBasis(basis)

    def try_out(self, lower: F64, upper: F64, leaf: LeafBounds, before: float) -> float:
        """Gain of a child's bound after a few iterations; infinite if it is proven infeasible."""
        basis = self.basis()
        self._highs.setOptionValue("simplex_iteration_limit", TRIAL_ITERATIONS)
        try:
            state, _, duals = self.solve(lower, upper)
        finally:
            self._highs.setOptionValue("simplex_iteration_limit", self._most)
            self.start_from(basis)
        if duals is None:
            return 0.0
        if state == "infeasible":
            return float(np.inf) if leaf.empty(duals, lower, upper) else 0.0
        return max(leaf.bound(duals, lower, upper) - before, 0.0)

    def _move(self, lower: F64, upper: F64) -> None:
        moved = np.flatnonzero((lower != self._lower) | (upper != self._upper)).astype(np.int32)
        if moved.size:
            self._highs.changeColsBounds(moved.size, moved, lower[moved], upper[moved])
            self._lower, self._upper = lower.copy(), upper.copy()
        if self._leaf is not None:
            now = self._leaf.row_upper(upper)
            for row in np.flatnonzero(now != self._row_upper).tolist():
                self._highs.changeRowBounds(row, self._row_lower[row], now[row])
            self._row_upper = now

    def _ray(self) -> F64 | None:
        highs: Any = self._highs
        _, has, values = highs.getDualRay()
        return np.array(values, dtype=float) if has else None
