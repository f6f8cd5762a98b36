"""Method ``matching-search``: matchings by exchanges of pairs, judged by linear programs; bound by prices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology import matching_bounds
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.matching_enumeration import MatchingEnumeration
from opticoll.solvers.methods.topology.matching_prices import MatchingColumns
from opticoll.solvers.methods.topology.matching_schedules import (
    MatchingSchedule,
    assigned,
    equalized,
    extended,
    fitted,
    heads_of,
    polished,
    schedule_of,
    values_of,
)
from opticoll.solvers.methods.topology.permutations import fewest_permutations, permutations_of
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import I64
    from opticoll.solvers.methods.method import Context

#: Pairs with demand above which prices are not generated, and permutations of Birkhoff are no start.
MOST_PRICED, MOST_DECOMPOSED = 600, 300
#: Share of the makespan by which an exchange may be worse at first.
THRESHOLD = 0.05
#: First lengths, and linear programs from each, in the search for few of the generated matchings.
THINNED, REWEIGHTED = 30, 6
#: Most of the generated matchings among which few are sought, per node.
MOST_POOLED = 40
#: Partial assignments that are enumerated before the bound and the search, times the square of the number of pairs.
FIRST_WORK = 80_000_000


def exchanged(heads: I64, a: int, b: int, start: int) -> I64:
    """Two matchings with their circuits exchanged on the alternating path or cycle through one sender."""
    result = heads.copy()
    first, second = heads[a], heads[b]
    at_first = {int(j): i for i, j in enumerate(first.tolist()) if j >= 0}
    at_second = {int(j): i for i, j in enumerate(second.tolist()) if j >= 0}
    pending, done = [start], set[int]()
    while pending:
        i = pending.pop()
        if i in done:
            continue
        done.add(i)
        result[a, i], result[b, i] = second[i], first[i]
        for target, owners in ((int(second[i]), at_first), (int(first[i]), at_second)):
            if target >= 0 and target in owners:
                pending.append(owners[target])
    return result


class MatchingSearch:
    """Search for the best schedule of one problem."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.data: TopologyMatchings = context.data
        self.random = np.random.default_rng(context.task.seed)
        self.best: MatchingSchedule | None = None
        self.bound = max(bound.value for bound in self.data.bounds())
        self.source: str | None = None
        self.moves = self.columns = 0

    @property
    def value(self) -> float:
        """Makespan of the best schedule."""
        return np.inf if self.best is None else self.best.makespan(self.data)

    def proven(self) -> bool:
        """Whether the best schedule meets the bound."""
        return bool(self.value <= self.bound * (1 + self.context.task.tol))

    def keep(self, schedule: MatchingSchedule) -> None:
        """Remember the schedule if it is the best one."""
        if schedule.makespan(self.data) < self.value and self.fits(schedule):
            self.best = schedule
            self.context.save(self.answer(Termination.TOLERANCE), self.value)

    def fits(self, schedule: MatchingSchedule) -> bool:
        """Whether the schedule keeps to the number of configurations."""
        data = self.data
        return data.enough or int(np.bincount(schedule.switch).max()) <= data.configurations

    def begin(self) -> list[MatchingSchedule]:
        """Known schedules, polished."""
        data, started = self.data, list[MatchingSchedule]()
        if self.context.start is not None:
            given = schedule_of(data, self.context.start)
            self.keep(given)
            started.append(given)
        heads, lengths = fewest_permutations(data)
        started.append(equalized(data, assigned(data, heads, lengths)))
        started.append(assigned(data, heads, lengths))
        if len(data.pairs) <= MOST_DECOMPOSED:
            started.append(assigned(data, *permutations_of(data)))
        for listed in (matching_bounds.first_fit(data.demand), matching_bounds.shifts(data.demand)):
            heads = heads_of(listed, data.n)
            lengths = np.array([max(data.demand[pair] for pair in pairs) for pairs in listed])
            started.append(assigned(data, extended(data, heads), lengths))
        return [polished(data, one) for one in started]

    def price(self, seconds: float, iterations: int) -> None:
        """Generate columns for a bound, and round its solution to a schedule."""
        if len(self.data.pairs) > MOST_PRICED or iterations <= 0:
            return
        end, columns = time.monotonic() + seconds, MatchingColumns(self.data)
        if self.best is not None:
            for heads, length in zip(self.best.heads, self.best.lengths.tolist(), strict=True):
                columns.add(heads, length)
        bound = columns.run(lambda: end - time.monotonic(), iterations)
        self.columns = len(columns.cost)
        if bound > self.bound:
            self.bound, self.source = bound, "prices of pairs: the weight of every matching is bounded anew"
        self.thin(columns)

    def thin(self, columns: MatchingColumns) -> None:
        """Schedules of few of the generated matchings: the delay is charged by length, more for short ones each time.

        That is, weights 1 + delay / length of the last solution in a linear program, a reweighted l1 norm (Candes,
        Wakin & Boyd, J. Fourier Analysis and Applications 14, 2008), from random first lengths.
        """
        from scipy.optimize import linprog

        data = self.data
        order = np.argsort(columns.weights <= 0, kind="stable")  # those in the solution first
        first, rest = np.split(order, [int((columns.weights > 0).sum())])
        chosen = np.concatenate([first, rest[::-1]])[: MOST_POOLED * data.n]
        pool = np.unique(extended(data, np.array([columns.heads[c] for c in chosen.tolist()])), axis=0)
        tails, heads = data.pairs.T
        serve = -(pool[:, tails] == heads).T.astype(float)
        due = data.demand[tuple(data.pairs.T)]
        for _ in range(THINNED):
            if self.proven():
                return
            lengths = self.random.uniform(0.0, 2.0, len(pool)) * due.mean()
            for _ in range(REWEIGHTED):
                self.context.remaining()
                cost = 1.0 + data.delay / (lengths + 1e-3 * due.mean())
                solved = linprog(cost, A_ub=serve, b_ub=-due, method="highs")
                if solved.x is None:
                    return
                lengths = np.maximum(solved.x, 0.0)
            used = lengths > 1e-9 * due.max()
            schedule = equalized(data, assigned(data, pool[used], lengths[used]))
            if schedule.makespan(data) < self.value * (1 + THRESHOLD):
                self.keep(polished(data, schedule))

    def changed(self, now: MatchingSchedule) -> MatchingSchedule:
        """A neighbour: two matchings exchange circuits, one moves to another switch, or one more is set."""
        heads, switch, m = now.heads, now.switch, len(now.heads)
        kind = self.random.random()
        if kind < 0.75 and m > 1:
            a, b = self.random.choice(m, 2, replace=False).tolist()
            apart = np.flatnonzero(heads[a] != heads[b])
            if apart.size:
                heads = exchanged(heads, a, b, int(self.random.choice(apart)))
        elif kind < 0.9 and self.data.switches > 1:
            switch = switch.copy()
            a, b = (int(self.random.integers(m)) for _ in range(2))
            if self.random.random() < 0.5:
                switch[a] = int(self.random.integers(self.data.switches))
            else:
                switch[a], switch[b] = switch[b], switch[a]
        else:
            longest = int(now.lengths.argmax()) if self.random.random() < 0.5 else int(self.random.integers(m))
            heads = np.concatenate([heads, heads[longest][None]])
            switch = np.append(switch, int(now.loads(self.data).argmin()))
        return MatchingSchedule(heads, np.zeros(len(heads)), switch)

    def descend(self, start: MatchingSchedule, moves: int) -> None:
        """Exchanges from one schedule, at first also some that make it a little worse."""
        now = start
        for move in range(moves):
            if self.proven():
                return
            self.context.remaining()
            self.moves += 1
            other = self.changed(now)
            judged = fitted(self.data, other.heads, other.switch)
            if judged is None or not self.fits(judged):
                continue
            if judged.makespan(self.data) <= now.makespan(self.data) * (1 + THRESHOLD * (1 - move / moves) ** 2):
                now = judged
                self.keep(judged)

    def enumerate(self, most: int) -> None:
        """Enumerate the schedules that may be shorter, in at most this many partial assignments."""
        if most <= 0 or self.best is None or self.proven():
            return

        def better(schedule: MatchingSchedule) -> float:
            self.keep(schedule)
            return self.value

        rest = MatchingEnumeration(self.data, self.value, self.context.task.tol)
        if rest.run(better, self.context.remaining, most) and rest.least > self.bound:
            self.bound = rest.least
            self.source = f"enumeration of {rest.tally[0]} partial assignments of pairs, by lengths that lines need"

    def answer(self, ending: Termination) -> Answer:
        """The best schedule as arrays of the model."""
        return Answer(
            ending,
            values=None if self.best is None else values_of(self.data, self.best),
            bound=self.bound if self.source else None,
            bound_source=self.source,
            solver={"algorithm": "exchanges"},
            metrics={"moves": self.moves, "columns": self.columns},
        )


def run(context: Context) -> Answer:
    """Matchings by exchanges; their lengths by linear programs; a bound by column generation over matchings.

    1. Starts: a known schedule (``start``), Spectra's and Birkhoff's, shifts, first fit by decreasing demand. For
       given matchings on given switches the best lengths are a linear program; matchings of length 0 are left out,
       which saves their delay.
    2. Enumeration of all schedules that may be shorter
       (:mod:`opticoll.solvers.methods.topology.matching_enumeration`), if few partial assignments suffice.
    3. Bound, for at most 600 pairs with demand: column generation over matchings and lengths
       (:mod:`opticoll.solvers.methods.topology.matching_prices`); the bound is recomputed from its prices, with every
       largest matching bounded by potentials. Few of the generated matchings that serve the demand, found by reweighted
       linear programs, are further schedules.
    4. Exchanges from the best schedule: two matchings exchange the circuits of an alternating path, a matching moves to
       another switch, or one is set once more; each judged by the linear program.
    5. The enumeration again, up to ``assignments``.

    A value is proven where it meets a bound.
    """
    search = MatchingSearch(context)
    settings = context.parameters
    ending = Termination.TOLERANCE
    try:
        starts = sorted(search.begin(), key=lambda one: one.makespan(search.data))
        for one in starts:
            search.keep(one)
        search.enumerate(min(FIRST_WORK // len(search.data.pairs) ** 2, int(settings["assignments"])))
        if not search.proven():
            search.price(float(settings["price_s"]), int(settings["iterations"]))
        if search.best is not None:
            search.descend(search.best, int(settings["moves"]))
            search.enumerate(int(settings["assignments"]))
    except TimeoutError:
        ending = Termination.TIME_LIMIT
    if search.best is None:
        return Answer(ending, message="no schedule was found; give more configurations or time")
    if search.proven():
        ending = Termination.OPTIMAL
    return search.answer(ending)


METHOD = Method(
    name="matching-search",
    title="Matchings by exchanges, bounded by prices of pairs and enumeration",
    summary="matchings from known schedules, improved by exchanges that linear programs judge; bound by column "
    "generation over matchings, and by enumeration of small problems",
    serves=("topology.matchings",),
    # n=4 .. 6, s=1 .. 3: 29 of 30 proven in 15 s each, by certified-branching 20; in a tenth of its time for n=4.
    takes_over=(Beyond("topology.matchings", 36, proves=False),),
    parameters=(
        Parameter("moves", int, default=400, help="exchanges from the best schedule"),
        Parameter("iterations", int, default=1_000, help="most rounds of column generation; 0 for no prices"),
        Parameter("assignments", int, default=1_000_000, help="most partial assignments enumerated; 0 for no proof"),
        Parameter("price_s", float, default=10.0, help="time limit of column generation [s]"),
    ),
    run=run,
    starts=True,
)
