"""Method ``certified-rounds``: proven numbers of rounds by bounds, constructions and search."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph.rounds_solution import candidate_routes, corrected_only
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.lumorph.round_search import AllowedRoutes, PhaseSearch
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.rounds.collectives import Phase
    from opticoll.solvers.methods.method import Context


#: Deliveries that the search time is meant for; more get proportionally more time.
DELIVERIES = 300_000


def run_certified_rounds(context: Context) -> Answer:
    """Proven numbers of rounds by bounds, constructions and search.

    Stops as soon as every phase meets its bound:

    1. Bounds of the formulation (:mod:`opticoll.formulations.lumorph.collective_bounds`) for every phase.
    2. Constructions: balanced permutations of the mesh, the ring, first fit
       (:mod:`opticoll.solvers.methods.lumorph.round_search`).
    3. Search within the time limit: ejections for direct sends, nearest rarest chunks round by round for copies.

    Routes are arbitrary, unless they are stated (``paths``, ``routes``) or have fixed wavelengths
    (``wavelengths=fixed``): then every step takes candidate routes alone.
    """
    state = _State(context)
    state.construct()
    state.search()
    return state.answer()


class _State:
    """The searches of all phases, their bounds, and the current answer."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.data: RoundModel = context.data
        self.out_of_time = False
        self.phases = [
            PhaseSearch(
                self.data.arena(phase),
                phase.copying,
                self.data.limits,
                least,
                allowed_routes(self.data, phase),
                context.task.seed,
            )
            for phase, least in zip(self.data.phases, self.data.least, strict=True)
        ]
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
        """The first phase with the same problem as phase k, whose schedule serves both (halves of an all-reduce)."""
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
        """Construct a schedule of every phase."""
        for k, phase in enumerate(self.phases):
            if self.twin[k] == k:
                phase.construct()
        self._save()

    def _save(self) -> None:
        for k, other in enumerate(self.twin):
            if other != k:
                self.phases[k].take(self.phases[other])
        self.context.save(self.answer(), float(self.rounds))

    def _left(self, until: float) -> float:
        self.out_of_time |= self.context.expired
        return min(until, self.context.deadline or np.inf) - time.monotonic()

    def search(self) -> None:
        """Divide the search time among the phases that have not met their bounds."""
        if self.done:
            return
        open_ones = [k for k, phase in enumerate(self.phases) if not phase.done and self.twin[k] == k]
        deliveries = sum(len(self.phases[k].collective.deliveries) for k in open_ones)
        end = time.monotonic() + float(self.context.parameters["search_s"]) * max(deliveries / DELIVERIES, 1.0)
        for number, k in enumerate(open_ones):
            phase = self.phases[k]
            share = time.monotonic() + max(self._left(end), 0.0) / (len(open_ones) - number)
            phase.search(lambda share=share: self._left(share), self._save)  # type: ignore[misc]
        self._save()

    def answer(self) -> Answer:
        """The best schedule, its bound and its metrics."""
        schedules = [phase.best for phase in self.phases]
        ending = Termination.OPTIMAL if self.done else Termination.TOLERANCE
        if self.out_of_time and not self.done:
            ending = Termination.TIME_LIMIT
        composed = self.data.composed([schedule for schedule in schedules if schedule is not None])
        by = ", ".join(phase.found_by for phase in self.phases)
        return Answer(
            ending,
            values=composed.values(),
            solver={"algorithm": by},
            metrics={
                "phase_rounds": [phase.rounds for phase in self.phases],
                "phase_bounds": list(self.data.least),
                "found_by": by,
                "attempts": sum(phase.attempts for phase in self.phases),
            },
        )


def allowed_routes(data: RoundModel, phase: Phase) -> AllowedRoutes | None:
    """The candidate routes of a phase, if these are stated or have fixed wavelengths; None if any are allowed."""
    return AllowedRoutes(*candidate_routes(data, phase)) if data.fixed or data.routes_stated else None


METHOD = Method(
    name="certified-rounds",
    title="Bounds, constructions, search",
    summary="rounds of circuits by constructions that meet the bounds, ejection search and rarest-chunk spreading",
    serves=("lumorph.rounds",),
    # 2x4 all-gather 3,783 variables in 1.2 s; 3x3 all-gather 6,668 in 1.7 s, 3x3 all-reduce not solved.
    # All-to-all: 2x4 729 to 945 in 3.7 s; 3x3 981 not solved.
    takes_over=(
        Beyond("lumorph.rounds", 6_000, 45_000, first=True),
        Beyond("lumorph.rounds", 950, 7_500, where={"collective": "all-to-all"}, first=True),
    ),
    refuse=corrected_only,
    parameters=(
        Parameter(
            "search_s",
            float,
            default=30.0,
            help="seconds of search per 300,000 deliveries (or fewer) if no construction meets the bound",
        ),
    ),
    run=run_certified_rounds,
)
