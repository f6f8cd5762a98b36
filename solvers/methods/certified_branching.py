r"""Branch and bound whose bound is ours: HiGHS finds solutions, a tree of our own proves them.

1. HiGHS's branch and bound looks for a good solution for ``search_s`` seconds. Its bound is its word, and is not used.
2. A best-first tree on the same matrix (:mod:`solvers.branching.tree`) closes every leaf by row duals or a Farkas ray
   whose bound we recompute. So ``proof: optimal`` does not rest on any solver's word; it costs many more seconds.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.base import Parameter
from solvers.compile import compile_model
from solvers.methods.base import Answer, Method
from solvers.outcome import SolveRequest, Termination
from solvers.verify import FEASIBLE, matrix_violations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from solvers.methods.base import Context
    from solvers.standard_form import StandardForm

#: Seconds between two saved states.
SAVE_S = 1.0


def run(context: Context) -> Answer:
    """Search, then prove."""
    form = compile_model(context.formulation.build[context.task.form or context.formulation.forms[0]](context.data))  # type: ignore[index]
    proof = _Proof(context, form)
    proof.search()
    return proof.prove()


class _Proof:
    """The problem turned into a minimization, the best solution so far, and what the tree proves."""

    def __init__(self, context: Context, form: StandardForm) -> None:
        self.context, self.stated = context, form
        flip = -1.0 if form.sense == "max" else 1.0
        self.flip = flip
        self.form = replace(form, cost=flip * form.cost, offset=flip * form.offset, sense="min")
        self.x: NDArray[np.float64] | None = None
        self.value = np.inf
        self.searched: dict[str, Any] = {}
        self.nodes = self.open = self.unproven = 0
        self.bound = -np.inf
        self.saved = time.monotonic()

    def search(self) -> None:
        """HiGHS on the whole problem, for its solution."""
        from solvers.isolation import solve_here

        seconds = float(self.context.parameters["search_s"])
        left = self.context.remaining()
        if seconds <= 0:
            return
        limit = seconds if left is None else min(seconds, 0.5 * left)
        request = SolveRequest(limit, self.context.task.threads, self.context.task.tol, self.context.task.seed)
        outcome = solve_here(self.form, "highs", request)
        self.searched = {"search_ended": str(outcome.termination), "search_bound": _turned(outcome.bound, self.flip)}
        if outcome.x is not None and max(matrix_violations(self.form, outcome.x).values()) <= FEASIBLE:
            self.x = outcome.x
            self.value = float(self.form.cost @ outcome.x) + self.form.offset
            self.context.save(self.answer(Termination.TOLERANCE), self.flip * self.value)

    def prove(self) -> Answer:
        """Run the tree to its end, or to the limit."""
        from solvers.branching.tree import Tree

        tree = Tree(self.form, incumbent=self.value, x=self.x, tol=self.context.task.tol, tick=self._tick,
                    found=self._found)  # fmt: skip
        ending = Termination.OPTIMAL
        try:
            tree.run()
        except TimeoutError:
            ending = Termination.TIME_LIMIT
        self.bound, self.nodes, self.unproven = tree.bound, tree.nodes, tree.unproven
        if ending is Termination.OPTIMAL and self.x is None:
            if self.bound < np.inf:
                message = f"no solution was found, and {tree.unproven} leaves were not shown to be empty"
                return Answer(Termination.TOLERANCE, metrics=self._metrics(), message=message)
            return Answer(
                Termination.INFEASIBLE, infeasible_by=f"branch and bound, {tree.nodes} nodes, every leaf by a ray",
                metrics=self._metrics(), message="every leaf was shown to be empty",
            )  # fmt: skip
        return self.answer(ending)

    def _found(self, x: NDArray[np.float64], value: float) -> None:
        self.x, self.value = x, value
        self.context.save(self.answer(Termination.TOLERANCE), self.flip * value)

    def _tick(self, incumbent: float, bound: float, nodes: int, opened: int) -> None:
        self.nodes, self.open, self.bound = nodes, opened, bound
        self.context.remaining()
        if time.monotonic() - self.saved > SAVE_S and np.isfinite(incumbent):
            self.saved = time.monotonic()
            self.context.save(self.answer(Termination.TOLERANCE), self.flip * incumbent)

    def _metrics(self) -> dict[str, Any]:
        return {**self.searched, "nodes": self.nodes, "unproven_leaves": self.unproven}

    def answer(self, ending: Termination) -> Answer:
        """The best solution with the tree's bound."""
        values = None
        if self.x is not None:
            values = self.stated.values(self.x)
            unfold = self.context.formulation.unfold
            values = values if unfold is None else unfold(self.context.data, values)
        return Answer(
            ending,
            values=values,
            bound=_turned(self.bound, self.flip),
            bound_source=f"branch and bound, {self.nodes} nodes, every leaf by recomputed duals",
            solver={"name": "highs", "version": None, "algorithm": "certified branch and bound", "options": {}},
            metrics=self._metrics(),
        )


def _turned(value: float | None, flip: float) -> float | None:
    return None if value is None or not np.isfinite(value) else flip * value


METHOD = Method(
    name="certified-branching",
    title="Branch and bound with certified leaves",
    summary="integer programs to proof by our own tree over LP duals that are recomputed; HiGHS finds the solutions",
    applies=lambda formulation: formulation.problem == "MILP",
    parameters=(Parameter("search_s", float, default=30.0, help="seconds for HiGHS to find a solution; 0 for none"),),
    run=run,
)
