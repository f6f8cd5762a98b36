r"""Fewest rounds to proven optimality: bounds first, constructions next, search after that, branch and bound last.

1. Bounds: the formulation's own (:mod:`formulations.lumorph.round_bounds`), for every phase of the collective; where
   these leave a gap to direct sends, arc prices by multiplicative weights (:mod:`solvers.rounds.prices`).
2. Constructions: balanced permutations of the mesh, the ring, first fit (:mod:`solvers.rounds.search`).
3. Search while there is time: ejections for direct sends, rounds of nearest rarest chunks for copies.
4. HiGHS on the formulation's own program with one round less, where that is small.

It ends as soon as every phase meets its bound. Routes are any; ``wavelengths=fixed`` keeps to the candidate routes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination
from solvers.rounds.prices import tight_bound
from solvers.rounds.search import PhaseSearch, TiedRoutes, compile_search
from solvers.task import Task

if TYPE_CHECKING:
    from formulations.lumorph.rounds import RoundModel
    from formulations.rounds.schedule import RoundSchedule
    from solvers.methods.base import Context

#: The program is tried up to this many variables.
MOST_VARIABLES = 60_000
#: Share of the search's time that arc prices may take.
PRICE_SHARE = 0.2


def run(context: Context) -> Answer:
    """Bound, construct, search, branch and bound."""
    state = _State(context)
    state.construct()
    state.search()
    if not state.done:
        state.branch_and_bound()
    return state.answer()


class _State:
    """A search for every phase, and what all of them say together."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.data: RoundModel = context.data
        self.least = list(self.data.least)
        self.priced = False
        self.out_of_time = False
        self.program = "not tried"
        self.phases = [
            PhaseSearch(
                self.data.arena(phase), phase.copying, self.data.limits, least, tied_routes(self.data, k),
                context.task.seed,
            )
            for k, (phase, least) in enumerate(zip(self.data.phases, self.least, strict=True))
        ]  # fmt: skip
        self.twin = [self._first_equal(k) for k in range(len(self.phases))]

    @property
    def rounds(self) -> int:
        """Rounds of all phases."""
        return sum(phase.rounds for phase in self.phases)

    @property
    def done(self) -> bool:
        """Whether every phase meets its bound."""
        return all(phase.done for phase in self.phases)

    def _first_equal(self, k: int) -> int:
        """The first phase that is the same problem as phase k: its schedule serves both (both halves of all-reduce)."""
        mine = self.phases[k]
        for other, phase in enumerate(self.phases[:k]):
            same = phase.topology.hash == mine.topology.hash and all(
                np.array_equal(getattr(phase.collective, name), getattr(mine.collective, name))
                for name in ("pre", "post")
            )
            if same:
                return other
        return k

    def construct(self) -> None:
        """A first schedule of every phase."""
        for k, phase in enumerate(self.phases):
            if self.twin[k] == k:
                phase.construct()
        self._save()

    def _save(self) -> None:
        for k, other in enumerate(self.twin):
            if other != k:
                self.phases[k].take(self.phases[other])
                self.least[k] = self.least[other]
        self.context.save(self.answer(), float(self.rounds))

    def _left(self, until: float) -> float:
        try:
            left = self.context.remaining()
        except TimeoutError:
            self.out_of_time = True
            return 0.0
        mine = until - time.monotonic()
        return mine if left is None else min(mine, left)

    def search(self) -> None:
        """Share the time among the phases that have not met their bounds."""
        open_ones = [k for k, phase in enumerate(self.phases) if not phase.done and self.twin[k] == k]
        for copies in {self.phases[k].copies for k in open_ones}:
            compile_search(copies=copies)
        end = time.monotonic() + float(self.context.parameters["search_s"])
        for number, k in enumerate(open_ones):
            phase = self.phases[k]
            share = time.monotonic() + max(self._left(end), 0.0) / (len(open_ones) - number)
            if not phase.copies:
                self._price(k, time.monotonic() + PRICE_SHARE * max(self._left(share), 0.0))
            phase.search(lambda share=share: self._left(share), self._save)  # type: ignore[misc]
        self._save()

    def _price(self, k: int, until: float) -> None:
        phase = self.phases[k]
        bound = tight_bound(
            phase.topology, phase.collective, phase.limits, phase.rounds, lambda: self._left(until)
        )  # fmt: skip
        if bound.value > self.least[k]:
            self.least[k] = phase.least = int(bound.value)
            self.priced = True

    def branch_and_bound(self) -> None:
        """The formulation's program with one round less, where it is small and of one phase."""
        seconds = float(self.context.parameters["mip_s"])
        left = self._left(time.monotonic() + seconds)
        size = self.context.formulation.estimate
        if len(self.phases) != 1 or left <= 1.0 or size is None or self.rounds <= 1:
            return
        smaller = replace(self.data, rmax=self.rounds - 1)
        if size(smaller)["variables"] > MOST_VARIABLES:
            return
        found = solve_program(self.context, self.rounds - 1, left)
        self.program = "no better schedule found"
        if found is not None:
            self.phases[0].best, self.phases[0].found_by = found, "branch and bound"
            self.program = "improved"
            self._save()

    def answer(self) -> Answer:
        """The best schedule with what is known of it."""
        schedules = [phase.best for phase in self.phases]
        ending = Termination.OPTIMAL if self.done else Termination.TOLERANCE
        if self.out_of_time and not self.done:
            ending = Termination.TIME_LIMIT
        whole = self.data.composed([each for each in schedules if each is not None])
        by = ", ".join(phase.found_by for phase in self.phases)
        return Answer(
            ending,
            values=whole.values(),
            bound=float(sum(self.least)) if self.priced else None,
            bound_source="priced arc use" if self.priced else None,
            solver={"name": "certified-rounds", "version": None, "algorithm": by, "options": {}},
            metrics={
                "phase_rounds": [phase.rounds for phase in self.phases],
                "phase_bounds": self.least,
                "found_by": by,
                "attempts": sum(phase.attempts for phase in self.phases),
                "program": self.program,
            },
        )


def tied_routes(data: RoundModel, k: int) -> TiedRoutes | None:
    """The routes of phase k with their wavelengths, if these are fixed."""
    if not data.fixed:
        return None
    program = data.program_of_one(data.phases[k])
    routes = program.routes
    index = np.arange(routes.paths) - routes.first[routes.pair]
    wave = program.wave(routes.source[routes.pair], routes.target[routes.pair], index)
    return TiedRoutes(routes, wave)


def solve_program(context: Context, rounds: int, seconds: float) -> RoundSchedule | None:
    """A schedule of at most so many rounds by HiGHS on the formulation's program; None if it finds none in time."""
    task, formulation = context.task, context.formulation
    own = {parameter.name for parameter in formulation.parameters}
    settings = {name: value for name, value in task.settings.items() if name in own}
    run = context.solve(
        Task(
            task.formulation, task.instance, method="highs", settings={**settings, "rmax": rounds, "rmin": 0},
            time_limit_s=seconds, memory_limit_gib=task.memory_limit_gib, tol=task.tol, seed=task.seed,
            threads=task.threads,
        )
    )  # fmt: skip
    if not run.verified or run.values is None or formulation.decode is None:
        return None
    schedule: RoundSchedule = formulation.decode(context.data, run.values)
    return schedule if schedule.rounds <= rounds else None


METHOD = Method(
    name="certified-rounds",
    title="Bounds, constructions, search, branch and bound",
    summary="rounds of circuits by constructions that meet the bounds, ejection search and rarest-chunk spreading",
    applies=lambda formulation: formulation.name == "lumorph.rounds",
    parameters=(
        Parameter("search_s", float, default=30.0, help="seconds of search where no construction meets the bound"),
        Parameter("mip_s", float, default=20.0, help="seconds for branch and bound on small cases; 0 for none"),
    ),
    run=run,
)
