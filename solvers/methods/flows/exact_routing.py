"""Minimum congestion to proven optimality: bounds, search, branch and bound.

1. Bounds. The fluid optimum over *all* paths (column generation), rounded up to whole paths, bounds every routing; for
   a restricted set, the fluid optimum of the set is a stronger bound. Both are recomputed from arc lengths.
2. Search. Commodities are rerouted (:mod:`opticoll.solvers.methods.flows.local_search`) until no arc carries more than
   the bound allows: first over shortest paths alone (if the bound leaves no slack, no others can attain it), then over
   all candidates, starting from a rounding of the fluid optimum. If that fails within its steps, the next possible
   load is tried.
3. HiGHS on the ILP over the candidates, if time and size allow, for a load below the best one.

The result is proven optimal if its load equals the bound of its set. If it equals the bound over all paths, it is
optimal over all paths, whatever the set (``metrics.unrestricted_proven``). The bound of branch and bound is reported
separately and not used as a proof (``metrics.mip_bound``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.flows.path_sets import subset
from opticoll.formulations.flows.single_path import quantum, round_up, unsplit_bounds
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.flows.column_generation import generate, pricing_for
from opticoll.solvers.methods.flows.routes import (
    SINGLE_PATH,
    candidates_for,
    pick,
    round_shares,
    route_metrics,
    union,
    values_of,
    worst_load,
)
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_flow import PathFlow
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.solvers.methods.flows.column_generation import Generated
    from opticoll.solvers.methods.method import Context

#: Steps of the search between two checks of the time limit.
STEPS = 100_000
#: Steps of the first tries.
QUICK = 20_000
#: Demands are rounded up to a part of the largest in the search, and it tries at most so many loads.
MOST_UNITS, TARGETS = 1e6, 8
#: Branch and bound takes matrices of at most this many non-zeros.
MOST_NONZEROS = 400_000


def run(context: Context) -> Answer:
    """Bound, search, branch and bound."""
    return bound_and_search(context, None)


def bound_and_search(context: Context, known: PathSet | None) -> Answer:
    """Bound, search, branch and bound, starting from known routes if they are better than rounding."""
    data: PathFlow = context.data
    topology, rule, pairs = data.topology, data.rule, data.commodities
    amount = data.amount / data.amount.mean()  # so that coefficients of the master are about 1
    over_all = generate(topology, pairs, pricing_for(topology, pairs, None), tol=1e-8, context=context, amount=amount)
    fluid = over_all
    if not rule.unrestricted:
        listed = None if rule.kind == "all" else data.paths
        pricing = pricing_for(topology, pairs, rule, listed)
        fluid = generate(topology, pairs, pricing, tol=1e-8, context=context, amount=amount)
    paths, share = fluid.used(1e-7)
    random = np.random.default_rng(context.task.seed)
    start = round_shares(paths, share, data.amount, random, tries=20)
    rounding, candidates = worst_load(start, data.amount), candidates_for(data, paths)
    if known is not None:
        candidates = union(candidates, known)
        if worst_load(known, data.amount) <= rounding:
            start = known
    state = _State(context, data, over_all, fluid, candidates, start, rounding)
    state.search(random)
    if not state.done:
        state.branch_and_bound()
    return state.answer()


def next_load(load: float, capacity: NDArray[np.float64], unit: float = 1.0) -> float:
    """The least multiple of some ``unit``/c_a above ``load``."""
    values = np.unique(capacity) / unit
    return float(((np.floor(load * values * (1 + 1e-9)) + 1.0) / values).min())


def sizes(amount: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    """A unit of load, and every amount ``(|K|,)`` in it, rounded up to a whole number; 1 each for equal amounts."""
    unit = float(quantum(amount))
    if amount.max() > MOST_UNITS * unit:
        unit = float(amount.max()) / MOST_UNITS
    return unit, np.ceil(amount / unit - 1e-9).astype(np.int64)


def _least_load(data: PathFlow, fluid: float) -> float:
    """The least possible load of unsplit demands, where ``fluid`` bounds that of split ones, in mean demands."""
    time = (
        float(outward.down(fluid * float(data.amount.mean()), 2 * data.amount.size))
        if data.traffic is not None
        else fluid
    )
    load = round_up(max(time, 0.0), data.topology.capacity, quantum(data.amount))
    return max([load, *(bound.value for bound in unsplit_bounds(data))])


class _State:
    """The best routes so far and the bounds they are compared with."""

    def __init__(
        self,
        context: Context,
        data: PathFlow,
        over_all: Generated,
        fluid: Generated,
        candidates: PathSet,
        start: PathSet,
        rounding: float,
    ) -> None:
        self.context, self.data, self.over_all, self.fluid = context, data, over_all, fluid
        self.candidates, self.best = candidates, start
        self.capacity = data.topology.capacity
        self.unit, self.size = sizes(data.amount)
        self.fluid_times = [result.time * float(data.amount.mean()) for result in (fluid, over_all)]
        self.bound, self.unrestricted = (_least_load(data, result.best.bound) for result in (fluid, over_all))
        self.load, self.rounding = worst_load(start, data.amount), rounding
        self.steps = 0
        self.mip_bound: float | None = None
        self.ended_by = "rounding" if self.load == rounding else "rerouting"
        self.out_of_time = False

    @property
    def done(self) -> bool:
        """Whether the load is within the tolerance of the bound."""
        return self.load <= self.bound * (1 + self.context.task.tol)

    def _time_is_up(self) -> bool:
        try:
            self.context.remaining()
        except TimeoutError:
            self.out_of_time = True
        return self.out_of_time

    def search(self, random: np.random.Generator) -> None:
        """Reroute towards the bound, then towards the loads above it that would still be better."""
        paths = self.candidates
        direct = subset(paths, paths.length == paths.length[paths.first[:-1]][paths.pair])
        steps, tries = int(self.context.parameters["steps"]), int(self.context.parameters["tries"])
        # Easy instances take hundreds of steps, so short tries come first.
        plan = [(direct, min(steps, QUICK)), (paths, min(steps, QUICK))]
        if self.data.traffic is None:  # other loads are rarely attained exactly
            plan += [(which, steps) for which in (paths, direct) for _ in range(tries)]
        target = self.bound
        least_step = 0.0 if self.data.traffic is None else (self.load - self.bound) / TARGETS
        while target < self.load * (1 - 1e-9) and not self.done:
            for which, most in plan:
                if self._try(which, target, most, int(random.integers(2**31))):
                    return
                if self.out_of_time:
                    return
            target = max(next_load(target, self.capacity, self.unit), target + least_step)

    def _try(self, paths: PathSet, target: float, most: int, seed: int) -> bool:
        """Whether rerouting over ``paths`` reaches a load of ``target`` within its steps."""
        from opticoll.solvers.methods.flows.local_search import reroute

        limit = np.floor(target * self.capacity / self.unit * (1 + 1e-9)).astype(np.int64)
        choice = _place(paths, self.best)
        left = most
        while left > 0 and not self._time_is_up():
            over, steps = reroute(
                paths.first, paths.start, paths.arcs, self.size, limit, choice, seed, min(left, STEPS)
            )
            self.steps += steps
            left -= max(steps, 1)
            seed += 1
            if over == 0:
                self._keep(pick(paths, choice), "rerouting")
                return True
        return False

    def _keep(self, routes: PathSet, by: str) -> None:
        load = worst_load(routes, self.data.amount)
        if load < self.load:
            self.best, self.load, self.ended_by = routes, load, by
            self.context.save(self.answer(), load)

    def branch_and_bound(self) -> None:
        """HiGHS on the ILP over the candidates, started from the best routes."""
        from opticoll.solvers.isolation import solve_here

        seconds = float(self.context.parameters["mip_s"])
        paths = self.candidates
        if seconds <= 0 or paths.arcs.size + paths.paths > MOST_NONZEROS or self._time_is_up():
            return
        left = self.context.remaining()
        outcome = solve_here(
            _program(paths, self.data.amount, self.bound, self.load), "highs",
            SolveRequest(
                min(seconds, left or seconds), self.context.task.threads, max(self.context.task.tol, 1e-9),
                self.context.task.seed,
            ),
        )  # fmt: skip
        self.mip_bound = outcome.bound
        if outcome.x is not None:
            order = np.lexsort((-outcome.x[: paths.paths], paths.pair))
            self._keep(pick(paths, order[paths.first[:-1]]), "branch and bound")

    def answer(self) -> Answer:
        """The best routes with their metrics."""
        ending = Termination.OPTIMAL if self.done else Termination.TOLERANCE
        if self.out_of_time and not self.done:
            ending = Termination.TIME_LIMIT
        metrics: dict[str, Any] = {
            **route_metrics(self.data, self.best),
            "fluid_time": self.fluid_times[0],
            "load_over_fluid": self.load / self.fluid_times[0],
            "unrestricted_fluid_time": self.fluid_times[1],
            "unrestricted_bound": self.unrestricted,
            "unrestricted_proven": bool(self.load <= self.unrestricted * (1 + 1e-9)),
            "candidates": self.candidates.paths,
            "rounding_load": self.rounding,
            "search_steps": self.steps,
            "found_by": self.ended_by,
            "mip_bound": self.mip_bound,
        }
        return Answer(
            ending,
            values=values_of(self.data, self.best),
            duals={"capacity": self.fluid.best.lengths},
            solver={
                "name": "highs", "version": self.fluid.master.version, "options": {},
                "algorithm": f"column generation, {self.ended_by}",
            },
            metrics=metrics,
        )  # fmt: skip


def _place(candidates: PathSet, routes: PathSet) -> NDArray[np.int64]:
    """The candidate that each route is, the commodity's first where it is not one of them."""
    choice = candidates.first[:-1].copy()
    for k in range(routes.paths):
        route = routes.path(k)
        listed = candidates.of_pair(k)
        choice[k] = next((p for p in listed if candidates.path(p) == route), int(choice[k]))
    return choice


def _program(paths: PathSet, amount: NDArray[np.float64], least: float, known: float) -> Any:
    """The ILP (29)-(33) over ``paths``, Lambda between ``least`` and the load below ``known``."""
    import scipy.sparse as sp

    from opticoll.solvers.standard_form import StandardForm

    m, capacity = paths.topology.arcs, paths.topology.capacity
    integral = bool((capacity == 1.0).all() and (amount == np.round(amount)).all())
    loads = paths.incidence @ sp.diags_array(amount[paths.pair])
    A = sp.block_array([[paths.membership, None], [loads, -capacity[:, None]]], format="csc")
    cost = np.zeros(paths.paths + 1)
    cost[-1] = 1.0
    return StandardForm(
        A,
        np.concatenate([np.ones(paths.pairs), np.full(m, -np.inf)]),
        np.concatenate([np.ones(paths.pairs), np.zeros(m)]),
        np.append(np.zeros(paths.paths), least),
        np.append(np.ones(paths.paths), max(least, known - 1.0 if integral else known)),
        cost,
        "min",
        integer=np.append(np.ones(paths.paths, dtype=bool), integral),
    )


METHODS = (
    Method(
        name="exact-routing",
        title="Fluid bound, rerouting, branch and bound",
        summary="one path per pair of proven least congestion: fluid bound, negotiated rerouting, then the ILP",
        applies=lambda formulation: formulation.name in SINGLE_PATH,
        parameters=(
            Parameter("steps", int, default=300_000, help="rerouting steps of one try"),
            Parameter("tries", int, default=4, help="tries at each load"),
            Parameter("mip_s", float, default=60.0, help="seconds for branch and bound; 0 for none"),
        ),
        run=run,
    ),
)
