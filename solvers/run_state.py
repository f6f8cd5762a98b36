"""The state of one run: its limits, whom it tells of its progress, what each part took, and notes for the record."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from opticoll.errors import NoSolution
from opticoll.formulations.registry import bounds_of, numbers
from opticoll.plugin_faults import place_of
from opticoll.solvers import verify
from opticoll.solvers.process import solver_log
from opticoll.solvers.process.budget import BOUNDS_S, LimitReached, limited
from opticoll.solvers.task import SolveRequest, Times
from opticoll.solvers.warm_start import WarmStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.formulations.model import Bound
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.exact.lp_bound import ExactRelaxation
    from opticoll.solvers.process.budget import Budget
    from opticoll.solvers.run import Plan
    from opticoll.solvers.task import StartRecord, Task

_Result = TypeVar("_Result")

#: Seconds that a relaxation may take when the limit has passed.
RELAXED_S = 1.0


@dataclass
class RunState:
    """The circumstances of a run, shared by its steps.

    ``deadline`` is on the clock of ``time.monotonic``; the run that this one belongs to may have a later one, and the
    ``budget``. ``known`` is what the caller has already, ``start`` what became of a solution in it and ``start_used``
    who began with it. ``times`` are the seconds of each part by the names of :class:`opticoll.solvers.task.Times`,
    ``notes`` the sentences that follow the solver's own message in the record,
    ``ready`` the analytic bounds that were computed when a limit ended the others.
    """

    task: Task
    plan: Plan
    budget: Budget
    deadline: float | None
    known: WarmStart = field(default_factory=WarmStart)
    start: StartRecord | None = None
    start_used: list[str] = field(default_factory=list)
    times: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(Times.__struct_fields__))
    notes: list[str] = field(default_factory=list)
    ready: list[Bound] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._bound: float | None = None
        self._log_line = solver_log.ProgressLines()

    def tell(self, objective: float | None, bound: float | None) -> None:
        """Show a new incumbent or bound to the user; of the bounds the tightest one so far."""
        if bound is not None and not math.isnan(bound):
            tighter = max if self.plan.problem.sense == "min" else min
            self._bound = bound if self._bound is None else tighter(bound, self._bound)
            bound = self._bound
        elapsed = time.monotonic() - self._began
        self._log_line(objective, bound, verify.relative_gap(objective, bound, self.plan.problem.sense), elapsed)
        if self.budget.on_progress is not None:
            self.budget.on_progress({"objective": objective, "bound": bound, "elapsed_s": elapsed})

    def left_s(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    @contextmanager
    def spent_on(self, part: str) -> Iterator[None]:
        """Add the time of the block to a part."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.times[part] = (self.times[part] or 0.0) + time.monotonic() - start

    def asked(self, what: str, otherwise: _Result, step: Callable[..., _Result], *given: object) -> _Result:
        """The result of a step that calls functions of the formulation; ``otherwise`` if it does not return in time.

        After that, no further step is taken. ``what`` names the functions.
        """
        if self.budget.overdue:
            return otherwise
        least_s = self.budget.least_check_s()
        try:
            return limited(partial(step, *given), self.budget.deadline, least_s=least_s)
        except LimitReached:
            self.budget.overdue = True
        problem, limit = self.plan.problem, f"the time limit of {self.budget.task.time_limit_s:g} s"
        where = f"{place_of(type(problem))}formulation {problem.name!r}: {what}"
        self.notes.append(f"{where} did not return within {least_s:g} s of work, and {limit} has passed")
        return otherwise

    def analytic(self) -> list[Bound] | None:
        """The analytic bounds; None if they take longer than a few seconds beyond the limit: some may be ``ready``."""
        stopped, problem = self.budget.stopped, self.plan.problem
        deadline = time.monotonic() if stopped else self.deadline
        found: dict[str, Bound | None] = {}
        try:
            return self.budget.limited(
                partial(bounds_of, problem, found), deadline, least_s=BOUNDS_S, interruptible=not stopped
            )
        except LimitReached as reached:
            known = dict(found)  # its thread goes on
            left = "".join(f" {name}," for name in problem._bound_parts() if name not in known).rstrip(",")
            self.notes.append(f"{reached} before the analytic bounds{left} were computed")
            self.ready = numbers(known.values())
        return None

    def relaxed(
        self, form: StandardForm, function: Callable[[StandardForm, SolveRequest, float | None], _Result]
    ) -> _Result | None:
        """The result of a function that solves something simpler than the program, at most a second past the limit.

        Without it, a run that its limit ends would often have a value and no bound.
        """
        left = self.left_s()
        if left is not None:
            left = max(left, RELAXED_S)
        with self.spent_on("solve_s"):
            request = SolveRequest(left, self.task.threads, self.task.tol, self.task.seed)
            return function(form, request, self.budget.memory_left_gib())

    def exact_relaxation(self, form: StandardForm) -> ExactRelaxation | None:
        """The optimum of the linear relaxation in rational arithmetic; None, with a note, if it is not found."""
        from opticoll.solvers.exact.lp_bound import exact_relaxation

        with self.spent_on("exact_s"):
            left = self.left_s()
            if left is not None and left <= 0:
                return None
            most_gib = self.budget.memory_left_gib()
            try:
                return exact_relaxation(form, left, self.task.threads, most_gib, self.budget.stop)
            except NoSolution as error:
                self.notes.append(f"no bound in rational arithmetic: {error}")
                return None
