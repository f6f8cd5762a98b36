r"""Exact optima of integer programs, closed leaf by leaf, and of flow problems, lifted from smaller programs.

Integer programs: a tree found in floating point is closed leaf by leaf in rational numbers.

1. The tree of :mod:`~opticoll.solvers.methods.branching_tree` is built in floating point and recorded.
2. The incumbent's integer columns are rounded, and the others solved exactly.
3. A leaf's row duals, or its ray, are rounded to nearby fractions, which prove a bound in exact arithmetic. If that is
   not enough, the leaf's linear program is solved exactly; if its optimum is fractional, the leaf is branched.

The bound of a leaf is rounded up to the next value that the objective can take. An exact optimum that improves the
incumbent replaces it, and every leaf that was closed stays closed.

With a time limit, the tree takes the share ``SEARCH`` of it. A tree that is not finished, or whose leaves cannot all be
closed in time, proves a bound: the smallest bound of its leaves, where open ones have that of their parents' duals.

Exact answers to large flow problems are lifted from smaller programs. A master LP with symmetries is solved on its
orbits (:mod:`opticoll.formulations.flows.flow_orbits`). The flow is lifted to all sources and the arc lengths to all
arcs, with shortest distances as the other multipliers.

A link MCF has the optimum of its master LP. The flow of a source is divided among its targets path by path, and the
arc lengths are the same.

Everything is checked on the whole problem (:func:`opticoll.solvers.exact.exact_form.fault`): no property of the
symmetries, and no equality of optima, is taken on trust.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution
from opticoll.formulations.rounding import decimal
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, Leaf, Split, common
from opticoll.solvers.exact.linear import floating_form, solve_linear
from opticoll.solvers.methods.branching_tree import BranchingTree, Unbounded
from opticoll.solvers.standard_form import compile_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.formulations import Formulation
    from opticoll.formulations.alltoall.link_mcf import LinkFlow
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.formulations.flows.flow_orbits import Orbits
    from opticoll.instances.types import Json
    from opticoll.solvers.exact.exact_form import Changes
    from opticoll.solvers.methods.branching_tree import Node

    F64 = NDArray[np.float64]
    Branch = dict[int, tuple[int | None, int | None]]


#: Relative gap at which the tree in floating point closes a leaf; the exact step closes the rest.
NEAR = 1e-9
#: Shares of the time after which the tree search stops, after which no linear program is solved exactly, and after
#: which the tree is abandoned for the bound of the relaxation.
SEARCH, CLOSE, COUNT = 0.6, 0.8, 0.95
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
    searching, closing, counting = (partial(_left, remaining, (1 - part) * total) for part in (SEARCH, CLOSE, COUNT))
    proof = _Proof(form, closing, counting)
    if incumbent is None or np.isnan(incumbent).any():
        incumbent = _completed(form, incumbent, searching())
    if incumbent is not None:
        proof.offer(incumbent)
    return proof.run(incumbent, searching)


def _left(remaining: Callable[[], float | None], spared: float) -> float | None:
    """The seconds left, less those held back for later steps; raises TimeoutError if there are none."""
    left = remaining()
    if left is not None and left <= spared:
        raise TimeoutError
    return None if left is None else left - spared


def _completed(form: ExactForm, known: F64 | None, left: float | None) -> F64 | None:
    """A solution found by HiGHS with the known integer columns fixed; None if it finds none in time."""
    from opticoll.solvers.isolation import solve_here
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
        self.complete = True

    def leave(self) -> None:
        """Record the open nodes as leaves, with the duals of their parents."""
        self.complete = False
        for node in (self._current, *self._open):
            if node is not None:
                self.leaves[node.order] = (node.duals, False)

    def _choose(self, bound: float, x: F64, candidates: NDArray[np.int64], lower: F64, upper: F64) -> int:
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

    def _branch(
        self, node: Node, bound: float, x: F64 | None, candidates: NDArray[np.int64], lower: F64, upper: F64
    ) -> Node:
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
    counting: Callable[[], float | None]
    x: tuple[Fraction, ...] | None = None
    value: Fraction | None = None  # of the minimization
    nodes: list[Leaf | Split] = field(default_factory=list)
    root: dict[int, Fraction] = field(default_factory=dict)  # multipliers of the relaxation
    least: list[Fraction | None] = field(default_factory=list)  # bounds of the leaves that are not closed
    late: bool = False

    def run(self, incumbent: F64 | None, searching: Callable[[], float | None]) -> ExactAnswer:
        form = self.form
        floating = floating_form(form)
        flip = float(form.flip)
        floating = replace(
            floating, cost=flip * floating.cost, offset=flip * floating.offset, sense="min", integer=form.integer
        )
        value = np.inf if self.value is None else float(self.value)
        tree = _Recording(
            floating, incumbent=value, x=incumbent, tol=NEAR, tick=lambda *_: searching(), remaining=searching
        )
        try:
            tree.run()
        except TimeoutError:
            tree.leave()
        except Unbounded:
            return self._unbounded(searching)
        if tree.x is not None and tree.x is not incumbent:
            self.offer(tree.x)
        self._prepare(tree)
        try:
            self._close(tree)
        except TimeoutError:
            self.nodes, self.least = [Leaf(self.root)], [self.form.dual_bound(self.root)]
        objective = None if self.value is None else form.flip * self.value
        if None in self.least:
            raise TimeoutError
        bound = min((form.rounded(end) for end in self.least if end is not None), default=None)
        if bound is None or (self.value is not None and bound >= self.value):
            return ExactAnswer("infeasible" if self.value is None else "optimal", objective, self.x, tuple(self.nodes))
        if self.value is not None:
            bound = min(bound, self.value)
        return ExactAnswer("bounded", objective, self.x, tuple(self.nodes), bound=form.flip * bound)

    def _unbounded(self, searching: Callable[[], float | None]) -> ExactAnswer:
        """The answer if the relaxation is unbounded: a solution, and a ray that improves it without limit.

        Some multiple of the ray, which is rational, is an integer vector.
        """
        form = self.form
        if self.x is None:
            found = _completed(replace(form, cost=(Fraction(0),) * len(form.cost)), None, searching())
            if found is not None:
                self.offer(found)
        relaxed = solve_linear(form, self.remaining)
        if self.x is None or relaxed.status != "unbounded":
            msg = "exact: the relaxation is unbounded, and no solution was found; nothing is proven exactly"
            raise NoSolution(msg)
        return ExactAnswer("unbounded", x=self.x, ray=relaxed.ray)

    def _prepare(self, tree: _Recording) -> None:
        """Find multipliers of the relaxation, exact ones if the tree is not finished and there is time."""
        near = [
            (end, -k, y)
            for k, y in enumerate(nearby(self.form, tree.root, rays=False))
            if (end := self.form.dual_bound(y)) is not None
        ]
        self.root = max(near)[2] if near else {}
        if not tree.complete and (first := self._solved({})) is not None and first.status == "optimal":
            leaf = first.nodes[0]
            assert isinstance(leaf, Leaf)
            self.root = dict(leaf.y)

    def offer(self, x: F64) -> None:
        """Round the integer columns of a solution, solve for the others exactly, and keep the result if it improves."""
        form = self.form
        whole = np.flatnonzero(form.integer).tolist()
        fixed: dict[int, tuple[Fraction, Fraction]] = {j: (Fraction(round(x[j])), Fraction(round(x[j]))) for j in whole}
        if len(whole) == len(form.cost):
            self._take(tuple(fixed[j][0] for j in range(len(form.cost))))
            return
        try:
            answer = solve_linear(restricted(form, fixed), self.remaining)
        except TimeoutError:
            self.late = True
            return
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
            self.counting()
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
        """The leaf with multipliers that close it, or a split if its optimum is fractional.

        If there is no time to find its optimum, the leaf has the multipliers that prove the best bound.
        """
        form = self.form
        changes = form.within(branch)
        if any(low is not None and high is not None and low > high for low, high in changes.values()):
            return Leaf({})
        best, multipliers = form.dual_bound(self.root, changes), self.root
        for y in nearby(form, vector, rays=empty):
            proven = form.dual_bound(y, changes, farkas=empty)
            if self._closes(proven, empty=empty):
                return Leaf(y, farkas=empty)
            if not empty and proven is not None and (best is None or proven > best):
                best, multipliers = proven, y
        answer = self._solved(changes)
        if answer is None:
            self.least.append(best)
            return Leaf(multipliers)
        if answer.status == "unbounded" or not answer.nodes:
            msg = "exact: the relaxation of a branch is unbounded; the optimum is not proven exactly"
            raise NoSolution(msg)
        leaf = answer.nodes[0]
        assert isinstance(leaf, Leaf)
        if answer.status == "infeasible":
            return leaf
        assert answer.x is not None
        assert answer.objective is not None
        if self._closes(form.flip * answer.objective, empty=False):
            return leaf
        fractional = [j for j in np.flatnonzero(form.integer).tolist() if answer.x[j].denominator != 1]
        if not fractional:
            self._take(answer.x)
            return leaf
        middle = min(fractional, key=lambda j: abs(answer.x[j] % 1 - Fraction(1, 2)))  # type: ignore[index]
        return Split(middle, math.floor(answer.x[middle]), 0, 0)

    def _solved(self, changes: Changes) -> ExactAnswer | None:
        """The exact optimum of a leaf's linear program; None if time runs out or no optimum is proven."""
        if not self.late:
            try:
                return solve_linear(restricted(self.form, changes), self.remaining)
            except TimeoutError:
                self.late = True
            except NoSolution:
                return None
        return None

    def _closes(self, proven: Fraction | None, *, empty: bool) -> bool:
        if proven is None:
            return False
        if empty:
            return proven > 0
        return self.value is not None and self.form.rounded(proven) >= self.value


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
    results = []
    for sign in (1.0, -1.0) if rays else (1.0,):
        used = [(i, sign * v / size) for i, v in enumerate(vector.tolist()) if abs(v) > 1e-12 * size]
        used = [(i, v) for i, v in used if (form.row_lower if v > 0 else form.row_upper)[i] is not None]
        for most in DENOMINATORS:
            near = {i: Fraction(v).limit_denominator(most) for i, v in used}
            if max((abs(float(near[i]) - v) for i, v in used), default=0.0) <= MOVED:
                results.append({i: value for i, value in near.items() if value})
        results.append({i: Fraction(v) for i, v in used})
    return [y for k, y in enumerate(results) if y not in results[:k]]


#: Flow problems with fewer columns are solved as stated.
LIFTED_COLUMNS = 1000


def answer_of(
    formulation: Formulation, form: ExactForm, solve: Callable[[ExactForm], ExactAnswer]
) -> tuple[ExactAnswer, dict[str, Json]]:
    """The exact answer to a formulation's program, lifted from a smaller one if possible, and metrics of the solve.

    Raises
    ------
    NoSolution
        If it is not proven.
    """
    data: Any = formulation.data
    if len(form.cost) >= LIFTED_COLUMNS:
        if formulation.name == "alltoall.master":
            from opticoll.formulations.flows import flow_orbits

            orbits = flow_orbits.find(data)
            if not orbits.trivial:
                return _on_orbits(orbits, form, solve)
        if formulation.name == "alltoall.link-mcf" and not data.printed:
            return _by_commodity(data, form, solve)
    answer = solve(form)
    return answer, {"exact_nodes": len(answer.nodes)} if form.integer.any() else {}


def _on_orbits(
    orbits: Orbits, form: ExactForm, solve: Callable[[ExactForm], ExactAnswer]
) -> tuple[ExactAnswer, dict[str, Any]]:
    """The optimum of the reduced master LP, lifted: flows by the orbits, lengths by arcs, distances for the rest."""
    from opticoll.formulations.flows import flow_orbits

    data, small = orbits.data, compile_model(flow_orbits.model(orbits))
    # Capacity rows have the coefficients w_r |p| / |P|: whole numbers after multiplication by |P|.
    sizes, first = orbits.arcs_in_orbit, small.A.shape[0] - orbits.arcs_in_orbit.size
    matrix = small.A.tocsr()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    flows = (rows >= first) & (matrix.indices < matrix.shape[1] - 1)
    whole = matrix.data.copy()
    whole[flows] = np.rint(whole[flows] * sizes[rows[flows] - first])
    values = [decimal(value) for value in whole.tolist()]
    for place in np.flatnonzero((rows >= first) & ~flows).tolist():
        values[place] *= int(sizes[rows[place] - first])
    read = ExactForm.of(small)
    reduced = replace(read, values=tuple(values))
    best = solve(reduced)
    if best.objective is None or best.x is None or best.objective <= 0:
        msg = f"exact: the program on orbits is {best.status}; nothing is proven exactly"
        raise NoSolution(msg)
    time_ = best.objective
    column = small.columns["y"].index.reshape(small.columns["y"].shape).astype(float)
    lifted = orbits.lift(column).astype(np.int64)
    share: list[Fraction] = [value / time_ for value in best.x]
    x = [Fraction(0)] * len(form.cost)
    for place, source in zip(form.columns[data.flow].index.tolist(), lifted.ravel().tolist(), strict=True):
        if place >= 0 and source >= 0:
            x[place] = share[source]
    x[int(form.columns["F"].index[0])] = 1 / time_

    leaf = best.nodes[0]
    assert isinstance(leaf, Leaf)
    lengths = [-leaf.y.get(first + orbit, Fraction(0)) for orbit in orbits.arc_orbit.tolist()]
    return ExactAnswer("optimal", 1 / time_, tuple(x), (_priced(data, form, lengths),)), {
        "exact_columns": len(reduced.cost)
    }


def _by_commodity(
    data: LinkFlow, form: ExactForm, solve: Callable[[ExactForm], ExactAnswer]
) -> tuple[ExactAnswer, dict[str, Any]]:
    """The optimum of the master LP, its flow divided among the commodities."""
    from opticoll.formulations.alltoall.master import Master
    from opticoll.formulations.flows.concurrent_flow import by_source
    from opticoll.formulations.model import of_data
    from opticoll.solvers.standard_form import compile_built

    grouped = of_data(Master, by_source(data.flow.topology, data.flow.traffic))
    whole = ExactForm.of(compile_built(grouped, grouped.matrix()))
    answer, figures = answer_of(grouped, whole, solve)
    if answer.x is None or answer.objective is None:
        msg = f"exact: the master LP is {answer.status}; nothing is proven exactly"
        raise NoSolution(msg)
    place = {int(s): k for k, s in enumerate(grouped.sources)}
    flows = whole.columns[grouped.flow].index.reshape(grouped.blocked.shape)
    columns = form.columns[data.flow.flow].index.reshape(data.flow.blocked.shape)
    amounts = [decimal(float(amount)) for amount in data.amount.tolist()]
    x = [Fraction(0)] * len(form.cost)
    x[int(form.columns["F"].index[0])] = answer.objective
    for source in np.unique(data.flow.sources).tolist():
        mine = np.flatnonzero(data.flow.sources == source).tolist()
        flow = {a: answer.x[j] for a, j in enumerate(flows[:, place[source]].tolist()) if j >= 0 and answer.x[j] > 0}
        wanted = {int(data.targets[k]): answer.objective * amounts[k] for k in mine}
        parts = _divided(data.flow, source, flow, wanted)
        for k in mine:
            for a, value in parts[int(data.targets[k])].items():
                x[int(columns[a, k])] = value
    leaf = answer.nodes[0]
    assert isinstance(leaf, Leaf)
    prices = whole.rows["capacity"].index.tolist()
    lengths = [-leaf.y.get(row, Fraction(0)) for row in prices]
    figures = {"exact_columns": len(whole.cost)} | figures
    return ExactAnswer("optimal", answer.objective, tuple(x), (_priced(data.flow, form, lengths),)), figures


def _divided(
    data: ConcurrentFlow, source: int, flow: dict[int, Fraction], wanted: dict[int, Fraction]
) -> dict[int, dict[int, Fraction]]:
    """The flow of a source by target and arc, split along successive shortest paths; surplus is dropped."""
    head, tail = data.topology.head.tolist(), data.topology.tail.tolist()
    out: list[list[int]] = [[] for _ in range(data.topology.n)]
    for a in flow:
        out[tail[a]].append(a)
    parts: dict[int, dict[int, Fraction]] = {target: {} for target in wanted}
    for target, total in wanted.items():
        part, left = parts[target], total
        while left > 0:
            entered: dict[int, int] = {source: -1}
            queue = deque([source])
            while queue and target not in entered:
                for a in out[queue.popleft()]:
                    if flow[a] > 0 and head[a] not in entered:
                        entered[head[a]] = a
                        queue.append(head[a])
            if target not in entered:
                msg = f"exact: the flow from vertex {source} does not reach vertex {target}"
                raise NoSolution(msg)
            path, at = [], target
            while at != source:
                path.append(entered[at])
                at = tail[entered[at]]
            amount = min(left, *(flow[a] for a in path))
            left -= amount
            for a in path:
                flow[a] -= amount
                part[a] = part.get(a, Fraction(0)) + amount
    return parts


def _priced(data: ConcurrentFlow, form: ExactForm, lengths: list[Fraction]) -> Leaf:
    """Leaf with arc lengths and shortest distances as multipliers, scaled so that the demand has price 1."""
    reach = _distances(data, lengths)
    scale = sum((demand * reach[k][u] for k in range(data.groups) for u, demand in _demands(data, k)), Fraction(0))
    y: dict[int, Fraction] = {}
    balance = form.rows["balance"].index.reshape(form.rows["balance"].shape)
    for k in range(data.groups):
        for u, row in enumerate(balance[:, k].tolist()):
            if row >= 0 and reach[k][u]:
                y[row] = reach[k][u] / scale
    for a, row in enumerate(form.rows["capacity"].index.tolist()):
        if lengths[a]:
            y[row] = -lengths[a] / scale
    return Leaf(y)


def bounded_by(
    formulation: Formulation, data: Any, form: ExactForm, duals: Mapping[str, NDArray[np.float64]]
) -> ExactAnswer | None:
    """The best bound on a linear program that multipliers near the given row duals prove; None if they prove none.

    For a master LP or a link MCF only the arc lengths are used, with shortest distances as the other multipliers.
    """
    lengths = duals.get("capacity")
    by_commodity = formulation.name == "alltoall.link-mcf" and not data.printed
    if lengths is not None and (lengths != 0).any() and (by_commodity or formulation.name == "alltoall.master"):
        flow = data.flow if by_commodity else data
        leaf = _priced(flow, form, [Fraction(abs(float(length))) for length in np.ravel(lengths)])
        tried: list[Mapping[int, Fraction]] = [leaf.y]
    else:
        vector = np.zeros(form.shape[0])
        for name, block in form.rows.items():
            if name in duals and np.size(duals[name]) == block.index.size:
                mask = block.index.ravel() >= 0
                vector[block.index.ravel()[mask]] = form.flip * np.ravel(duals[name])[mask]
        tried = [*nearby(form, vector, rays=False)]
    bounds = [(bound, -k) for k, y in enumerate(tried) if (bound := form.dual_bound(y)) is not None]
    if not bounds:
        return None
    bound, place = max(bounds)
    return ExactAnswer("bounded", nodes=(Leaf(tried[-place]),), bound=form.flip * bound)


def _demands(data: ConcurrentFlow, k: int) -> list[tuple[int, Fraction]]:
    return [(u, decimal(float(data.demand[u, k]))) for u in np.flatnonzero(data.demand[:, k]).tolist()]


def _distances(data: ConcurrentFlow, lengths: list[Fraction]) -> list[list[Fraction]]:
    """Exact shortest distances from every source to every vertex; 0 where there is no path."""
    whole, below = common(lengths)
    out: list[list[tuple[int, int]]] = [[] for _ in range(data.topology.n)]
    ends = zip(data.topology.tail.tolist(), data.topology.head.tolist(), whole.tolist(), strict=True)
    for tail, head, length in ends:
        out[tail].append((head, length))
    results = []
    for source in data.sources.tolist():
        best: dict[int, int] = {}
        heap = [(0, source)]
        while heap:
            distance, u = heapq.heappop(heap)
            if u in best:
                continue
            best[u] = distance
            for v, length in out[u]:
                if v not in best:
                    heapq.heappush(heap, (distance + length, v))
        results.append([Fraction(best.get(u, 0), below) for u in range(data.topology.n)])
    return results
