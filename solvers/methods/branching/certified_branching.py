"""Method ``certified-branching``: branch and bound with certified leaves."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import OpticollError
from opticoll.formulations.model import build_model, forms_of
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.compile.scaling import in_units
from opticoll.solvers.methods.branching.branching_tree import BranchingTree, NodeSolver, Unbounded, rounding_of
from opticoll.solvers.methods.branching.whole_sides import with_whole_sides
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.relaxation import UNBOUNDED
from opticoll.solvers.task import Outcome, SolveRequest, Termination
from opticoll.solvers.verify import FEASIBLE, matrix_violations, objective, pack, residuals, violated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context

#: Seconds between two saved states.
SAVE_S = 1.0
#: Shares of the search for a solution of a program with integer columns only: HiGHS, CP-SAT if it has found none, and
#: HiGHS with the rest.
FIRST, SECOND = 0.1, 0.5


def run(context: Context) -> Answer:
    """Branch and bound with certified bounds: HiGHS finds solutions, and a separate tree proves them optimal.

    1. Unless a solution is known, HiGHS's branch and bound searches for one for ``search_s`` seconds; if all columns
       are integer and it has none after a tenth of them, CP-SAT does. Their bounds are not used. A known solution that
       is not written in the variables of the program, such as a schedule, gives the value that a better one must
       improve.
    2. A best-first tree with dives solves LP relaxations, tightened by what integrality implies
       (:mod:`opticoll.solvers.methods.branching.tightened_tree`), with HiGHS's dual simplex from the parent's basis.

    Only dual vectors close a leaf. For min c'x with rows ``l <= A x <= u`` and the leaf's column bounds, any y bounds
    the leaf's optimum from below; a ray y whose bound with c = 0 is positive proves that the leaf is infeasible
    (Farkas). Both are recomputed rigorously (:mod:`opticoll.solvers.verify`). Where they bound nothing, as with free
    columns, the leaf is solved in rational arithmetic (:mod:`opticoll.solvers.exact.lp_bound`), which also proves that
    a relaxation is unbounded. A leaf that is not closed keeps the bound of its parent. So ``proof: optimal`` does not
    depend on a solver's claim, at the cost of much more time.
    """
    layer = context.task.form or forms_of(context.formulation)[0]
    form = compile_model(build_model(context.formulation, layer))
    proof = _Proof(context, form)
    crossed = np.flatnonzero(proof.form.row_lower > proof.form.row_upper)
    if crossed.size:
        row = int(crossed[0])
        name, low, high = form.row_names()[row], form.row_lower[row], form.row_upper[row]
        reason = f"row {name}: integers give it only values that are not in [{low:g}, {high:g}]"
        return Answer(Termination.INFEASIBLE, infeasible_by=reason, metrics={"nodes": 0}, message=reason)
    proof.search()
    return proof.prove()


class _Proof:
    """The problem as a minimization, scaled, the best solution so far, and the tree that bounds it.

    A value of the stated problem is ``flip`` times that of the minimization.
    """

    def __init__(self, context: Context, form: StandardForm) -> None:
        self.context, self.stated = context, form
        step = in_units(form)
        self.scaling, unit = step, 1.0
        if step is not None:
            form, unit = step.form, step.value(1.0)
        flip = -1.0 if form.sense == "max" else 1.0
        self.flip = flip * unit
        self.form = with_whole_sides(form.minimized())
        self.x: F64 | None = None
        self.value = np.inf
        self.known: dict[str, F64] | None = None
        self.searched: dict[str, Any] = {}
        self.nodes = self.unproven = 0
        self.reasons = "by recomputed duals or rays"
        self.bound = -np.inf
        self.saved = time.monotonic()

    def search(self) -> None:
        """Solve the whole problem to find a solution: by HiGHS, or by CP-SAT if that has found none after a while."""
        seconds = float(self.context.parameters["search_s"])
        left = self.context.remaining()
        if self._known() or seconds <= 0:
            return
        limit = seconds if left is None else min(seconds, 0.5 * left)
        if not np.all(self.form.integer):
            self._search_by("highs", limit)
            return
        if self._search_by("highs", FIRST * limit):
            return
        if self.x is None:
            self._search_by("cp-sat", SECOND * limit)
            if self.x is not None:
                return
        self._search_by("highs", (1.0 - FIRST - SECOND) * limit)

    def _search_by(self, solver: str, limit: float) -> bool:
        """Search for at most ``limit`` seconds; return whether the solver has ended before, by its own account."""
        from opticoll.solvers.process.isolation import solve_here, solve_isolated

        request = SolveRequest(limit, self.context.task.threads, self.context.task.tol, self.context.task.seed)
        if solver == "highs":
            outcome = solve_here(self.form, solver, request, self._searched)
        else:  # it cannot be imported beside HiGHS
            try:
                outcome = solve_isolated(self.form, solver, request, on_progress=self._searched)
            except OpticollError:  # not installed, or coefficients that it does not take
                return False
        self.searched = {"search_ended": str(outcome.termination), "search_bound": _turned(outcome.bound, self.flip)}
        if outcome.x is not None and max(matrix_violations(self.form, outcome.x).values()) <= FEASIBLE:
            self.x = outcome.x
            self.value = float(self.form.cost @ outcome.x) + self.form.offset
            self.context.save(self.answer(Termination.TOLERANCE), self.flip * self.value)
        return outcome.termination is not Termination.TIME_LIMIT

    def _known(self) -> bool:
        """Start from the known solution, if there is one."""
        if self.context.start is None:
            return False
        x = pack(self.stated, self.context.start)
        if x is not None and self.scaling is not None and self.scaling.begin is not None:
            x = self.scaling.begin(x)
        if x is None or max(matrix_violations(self.form, x).values()) > FEASIBLE:
            return self._known_value(self.context.start)
        self._found(x, float(self.form.cost @ x) + self.form.offset)
        return True

    def _known_value(self, start: Mapping[str, F64]) -> bool:
        """Take the value of a solution that the formulation's checker accepts, as one to improve."""
        formulation = self.context.formulation
        value = objective(formulation, start)
        if violated(residuals(formulation, start)) or not np.isfinite(value):
            return False
        self.known, self.value = dict(start), value / self.flip
        return True

    def _searched(self, objective: float | None, bound: float | None, x: F64 | None = None) -> None:
        """Keep an incumbent of HiGHS's search, which may be stopped at any time."""
        if x is not None and max(matrix_violations(self.form, x).values()) <= FEASIBLE:
            self._found(np.array(x), float(self.form.cost @ x) + self.form.offset)

    def prove(self) -> Answer:
        """Run the tree to its end, or to the limit."""
        from opticoll.solvers.methods.branching.tightened_tree import TightenedTree

        self._settle()
        tree = TightenedTree(
            self.form,
            incumbent=self.value,
            tol=self.context.task.tol,
            tick=self._tick,
            on_incumbent=self._found,
            remaining=self.context.remaining,
        )
        ending, message = Termination.OPTIMAL, ""
        try:
            tree.run()
        except TimeoutError:
            ending, message = Termination.TIME_LIMIT, self._endless()
        except Unbounded:
            return self._unbounded()
        self.bound, self.nodes, self.unproven, self.reasons = tree.bound, tree.nodes, tree.unproven, tree.reasons
        if ending is Termination.OPTIMAL and self.x is None and self.known is None:
            return self._no_solution(tree)
        return replace(self.answer(ending), message=message)

    def _endless(self) -> str:
        """Why branching may never end, if an integer column has an infinite bound."""
        ends = np.isinf(self.stated.col_lower) | np.isinf(self.stated.col_upper)
        open_ones = np.flatnonzero(ends & np.asarray(self.stated.integer, dtype=bool))
        if not open_ones.size:
            return ""
        shown = ", ".join(str(name) for name in self.stated.column_names()[open_ones[0] : open_ones[0] + 1])
        more = f" and {open_ones.size - 1} more" if open_ones.size > 1 else ""
        return f"the integer column {shown}{more} has an infinite bound, so that branching may never end: state bounds"

    def _no_solution(self, tree: BranchingTree) -> Answer:
        """The answer of a tree that has ended without a solution."""
        if tree.bound < np.inf:
            message = f"no solution was found, and {tree.unproven} leaves were not proven infeasible"
            return Answer(Termination.TOLERANCE, metrics=self._metrics(), message=message)
        return Answer(
            Termination.INFEASIBLE,
            infeasible_by=f"branch and bound, {tree.nodes} nodes, every leaf {tree.reasons}",
            metrics=self._metrics(),
            message="every leaf was proven infeasible",
        )

    def _unbounded(self) -> Answer:
        """The answer if the relaxation is unbounded: with rational data the program is, too, or it has no solution.

        If no solution is known, a tree for the same program without costs finds one or proves that there is none.
        """
        if self.x is None:
            free = replace(self.form, cost=np.zeros(self.form.cost.size), offset=0.0)
            tree = BranchingTree(free, tick=self._tick, remaining=self.context.remaining)
            try:
                tree.run()
            except TimeoutError:
                message = (
                    "the relaxation is unbounded; no solution was found, which would show that the program is, too"
                )
                message += f"; {endless}" if (endless := self._endless()) else ""
                return Answer(Termination.TIME_LIMIT, metrics=self._metrics(), message=message)
            self.x, self.nodes, self.unproven = tree.x, tree.nodes, tree.unproven
            if self.x is None:
                return self._no_solution(tree)
        return Answer(Termination.UNBOUNDED, metrics=self._metrics(), message=UNBOUNDED)

    def _settle(self) -> None:
        """Move the integer columns of the solution found to integers, and solve for the others again."""
        if self.x is None:
            return
        whole = np.flatnonzero(np.asarray(self.form.integer))
        x = NodeSolver(self.form).solve_at(self.x, whole, self.form.col_lower, self.form.col_upper)
        if x is not None and max(matrix_violations(self.form, x).values()) <= FEASIBLE:
            value = float(self.form.cost @ x) + self.form.offset
            # A bound that rounding alone puts past the value that was found would contradict it.
            self.x, self.value = x, self.value if 0 < value - self.value <= rounding_of(self.form) else value

    def _found(self, x: F64, value: float) -> None:
        self.x, self.value = x, value
        self.context.save(self.answer(Termination.TOLERANCE), self.flip * value)

    def _tick(self, incumbent: float, bound: float, nodes: int, opened: int) -> None:
        self.nodes, self.bound = nodes, bound
        self.context.remaining()
        if time.monotonic() - self.saved > SAVE_S and np.isfinite(incumbent):
            self.saved = time.monotonic()
            self.context.save(self.answer(Termination.TOLERANCE), self.flip * incumbent)

    def _metrics(self) -> dict[str, Any]:
        return {**self.searched, "nodes": self.nodes, "unproven_leaves": self.unproven}

    def answer(self, ending: Termination) -> Answer:
        """The best solution with the tree's bound."""
        values = self.known
        if self.x is not None:
            found = Outcome(ending, x=self.x)
            x = found.x if self.scaling is None else self.scaling.recover(found).x
            assert x is not None
            values = self.context.formulation._unfold(self.stated.values(x))
        return Answer(
            ending,
            values=values,
            bound=_turned(self.bound, self.flip),
            bound_source=f"branch and bound, {self.nodes} nodes, every leaf {self.reasons}",
            solver={"name": "highs", "algorithm": "certified branch and bound"},
            metrics=self._metrics(),
        )


def _turned(value: float | None, flip: float) -> float | None:
    return None if value is None or not np.isfinite(value) else flip * value


METHOD = Method(
    name="certified-branching",
    title="Branch and bound with certified leaves",
    summary="branch and bound with every leaf closed by recomputed LP duals; HiGHS finds the incumbents",
    serves=lambda formulation: formulation.problem == "MILP",
    parameters=(Parameter("search_s", float, default=30.0, help="seconds for HiGHS to find a solution; 0 for none"),),
    run=run,
    starts=True,
    builds=True,
)
