"""Method ``exact-routing``: fluid bound, rerouting, branch and bound.

Routes, kappa paths per commodity, are converted to the variables x and Lambda of models that choose paths, and back.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import rounding as outward
from opticoll.formulations.flows.path_flow import PathFlow, arc_load, largest, quantum, round_up, unsplit_bounds
from opticoll.formulations.flows.path_sets import (
    MOST_PATHS,
    PathRule,
    PathSet,
    build_path_set,
    count_all,
    path_set_of,
    subset,
    to_arrays,
)
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.column_generation import generate, pricing_for
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.flows.column_generation import Generated
    from opticoll.solvers.methods.method import Context
    from opticoll.types import Json


#: Formulations with kappa paths per commodity in the variables x and Lambda, whose data are a path flow.
SINGLE_PATH = ("alltoall.min-congestion", "lumorph.min-overlap")
#: Candidates of a search over all paths are at most this many arcs longer than a shortest path.
DETOUR = 1


def worst_load(routes: PathSet, share: F64) -> float:
    """Largest load per capacity of routes, each of which carries the ``share`` ``(|K|,)`` of its commodity."""
    return float((arc_load(routes, share[routes.pair]) / routes.topology.capacity).max())


def single_only(data: PathFlow, method: str) -> str | None:
    """Explain why a method for one path per commodity does not apply to the data; None if it does."""
    if data.kappa == 1:
        return None
    return f"{method} gives one path per pair, not kappa={data.kappa}; use exact-routing or sssp over listed paths"


def values_of(data: PathFlow, routes: PathSet) -> dict[str, F64]:
    """The variables of the formulation for ``routes``, kappa paths per commodity in their order."""
    worst = np.asarray(worst_load(routes, data.amount))
    if data.rule.kind == "all":
        return {"x": np.ones(routes.paths), "Lambda": worst, **to_arrays(routes)}
    listed = data.paths
    x = np.zeros(listed.paths)
    for number, k in enumerate(routes.pair.tolist()):
        listed_paths = listed.of_pair(k)
        route = routes.path(number)
        x[next(p for p in listed_paths if listed.path(p) == route)] = 1.0
    return {"x": x, "Lambda": worst}


def pick(candidates: PathSet, choice: I64) -> PathSet:
    """The chosen candidates, kappa per commodity, ``choice`` ``(kappa |K|,)``."""
    keep = np.zeros(candidates.paths, dtype=bool)
    keep[choice] = True
    return subset(candidates, keep)


def candidates_for(data: PathFlow, generated: PathSet) -> PathSet:
    """Candidates of a search: the set itself if it is listed, else short paths and generated ones.

    For rules that allow all paths, these are the paths of a fluid optimum and the first of the following sets that has
    at most :data:`MOST_PATHS` paths: all at most :data:`DETOUR` arcs longer than the kappa-th, all shortest ones, or
    four of these.
    """
    topology, rule = data.topology, data.rule
    if rule.kind != "all":
        return data.paths
    pairs = data.commodities
    if data.traffic is None:
        far = topology.diameter
    else:
        far = topology.hops[np.searchsorted(topology.terminals, pairs[0]), pairs[1]].max()
    longest = min(rule.lmax or topology.n, int(far) + DETOUR)
    most_alike = int(np.unique(pairs[0] * topology.n + pairs[1], return_counts=True)[1].max())
    for short in (PathRule("all", lmax=longest), PathRule("shortest"), PathRule("k", 4, rule.lmax)):
        # A pair that occurs several times is counted once and listed as often as it occurs.
        count, _, complete = count_all(topology, short, MOST_PATHS * 2, pairs)
        if short.kind == "k" or (complete and count * most_alike <= MOST_PATHS):
            listed = build_path_set(topology, short, data.name, pairs)
            break
    listed = shortest_of(listed, data.kappa, DETOUR)
    if (np.diff(listed.first) < data.kappa).any():
        listed = union(listed, build_path_set(topology, PathRule("k", data.kappa, rule.lmax), data.name, pairs))
    return union(listed, generated)


def union(first: PathSet, second: PathSet) -> PathSet:
    """The paths of both sets, each once."""
    known = {(int(s.pair[p]), tuple(s.path(p))) for s in (first, second) for p in range(s.paths)}
    return path_set_of(
        first.topology, [path for _, path in known], [k for k, _ in known], (first.sources, first.targets)
    )


def draw_different(
    paths: PathSet, weight: F64, share: F64, kappa: int, random: np.random.Generator, tries: int
) -> PathSet:
    """The best of ``tries`` draws of ``kappa`` different paths per commodity, with probability by their ``weight``.

    A weighted sample without replacement (Efraimidis & Spirakis, Information Processing Letters 97, 2006); each path
    carries the ``share`` ``(|K|,)`` of its commodity.
    """
    best: PathSet | None = None
    for _ in range(max(tries, 1)):
        keys = np.log(random.random(paths.paths)) / np.maximum(weight, 1e-6)
        routes = pick(paths, largest(paths, keys, kappa))
        if best is None or worst_load(routes, share) < worst_load(best, share):
            best = routes
    assert best is not None
    return best


def route_metrics(data: PathFlow, routes: PathSet) -> dict[str, Json]:
    """Metrics of all routing methods: mean load and path lengths."""
    return {
        "mean_load": float((arc_load(routes, data.share[routes.pair]) / data.topology.capacity).mean()),
        "mean_length": float(routes.length.mean()),
        "longest_path": int(routes.length.max()),
    }


def routes_from(data: PathFlow, paths: Sequence[Sequence[int]]) -> PathSet:
    """One path per commodity, or kappa consecutive ones, in the commodities' order, as a path set."""
    return path_set_of(data.topology, paths, np.arange(len(paths)) // data.kappa, data.commodities)


#: Steps of the search between two checks of the time limit.
STEPS = 100_000
#: Steps of the first tries, and how many of them start from other roundings.
QUICK, ROUNDINGS = 20_000, 6
#: Pairs for each step of the first try where there are many; from how many on loads above the bound are tried at once.
QUICK_PAIRS, MANY_PAIRS = 4, 50_000
#: In the search, demands are rounded up to multiples of the largest over this number; most target loads tried, of the
#: demands in general and of equal ones.
MOST_UNITS, TARGETS, EQUAL_TARGETS = 1e6, 8, 50
#: Branch and bound is used for matrices of at most this many nonzeros.
MOST_NONZEROS = 400_000


def run(context: Context) -> Answer:
    """Minimum congestion to proven optimality: bounds, search, branch and bound.

    For one path per commodity, shortest paths are first rerouted to the best analytic bound; if they attain it, that is
    all. Else:

    1. Bounds. The fluid optimum over *all* paths (column generation), rounded up to whole paths, bounds every routing;
       for a restricted set, the fluid optimum of the set is a stronger bound, and for kappa > 1 over a listed set the
       linear relaxation, which keeps the paths of a pair apart. All are recomputed from arc lengths.
    2. Search. Commodities are rerouted (:mod:`opticoll.solvers.methods.flows.local_search`) until no arc carries more
       than the bound allows: first over shortest paths alone (if the bound leaves no slack, no others can attain it),
       then over all candidates, starting from a rounding of the fluid optimum (of the relaxation for kappa > 1). If
       that fails within its steps, it starts from other roundings: the paths of largest share, then random ones. If
       none succeeds, the next possible load is tried.
    3. HiGHS on the ILP over the candidates, if time and size allow, for a load below the best one.

    The result is proven optimal if its load equals the bound of its set. If it equals the bound over all paths, it is
    optimal over all paths, whatever the set (``metrics.unrestricted_proven``). The bound of branch and bound is
    reported separately and not used as a proof (``metrics.mip_bound``).
    """
    return at_analytic_bound(context) or bound_and_search(context, None)


def at_analytic_bound(context: Context) -> Answer | None:
    """Shortest paths whose load is the best analytic bound; None where quick rerouting finds none.

    The best routes found are kept for the case that time ends before the fluid optimum is known; of many pairs, for
    which that takes long, also those that attain loads between the bound and what was found, by bisection.
    """
    from opticoll.solvers.methods.flows.local_search import reroute

    data: PathFlow = context.data.routing
    unit, size = sizes(data.amount)
    bound = max(bound.value for bound in context.formulation.bounds())
    for paths in _shortest_candidates(data, context.task.seed) if data.kappa == 1 else ():
        choice, best, target, tried = paths.first[:-1].copy(), np.inf, bound, 0
        most = max(QUICK, paths.pairs // QUICK_PAIRS)
        while target < best * (1 - 1e-9) and tried <= (TARGETS if paths.pairs > MANY_PAIRS else 0):
            limit, new = units_within(target, data.topology.capacity, unit), choice.copy()
            seed = context.task.seed + tried
            over, steps = reroute(paths.first, paths.start, paths.arcs, size, limit, new, seed, most)
            routes = pick(paths, new)
            load = worst_load(routes, data.amount)
            if load < best:
                choice, best = new, load
                metrics = {**route_metrics(data, routes), "candidates": paths.paths, "search_steps": steps}
                ended = Termination.OPTIMAL if load <= bound * (1 + context.task.tol) else Termination.TOLERANCE
                answer = Answer(
                    ended,
                    values=values_of(data, routes),
                    solver={"algorithm": "rerouting towards an analytic bound"},
                    metrics=metrics,
                )
                if ended is Termination.OPTIMAL:
                    return answer
                context.save(answer, load)
            low = target if over else bound
            target, tried = max(next_load(low, data.topology.capacity, unit), (low + best) / 2), tried + 1
            context.remaining()
    return None


def _shortest_candidates(data: PathFlow, seed: int) -> Iterator[PathSet]:
    """Shortest paths: those in the order of dimensions, whose dependencies have few cycles, then all if listed."""
    if data.rule.kind != "all":
        yield shortest_of(data.paths, 1)
        return
    from opticoll.solvers.methods.flows.dimension_order import arc_groups, dimension_ordered

    group = arc_groups(data.topology)
    listed = count_all(data.topology, PathRule("shortest"), MOST_PATHS, data.commodities)[2]
    if group.any() or not listed:
        yield dimension_ordered(data.topology, data.commodities, group, seed)
    if listed:
        yield build_path_set(data.topology, PathRule("shortest"), data.name, data.commodities)


def bound_and_search(context: Context, known: PathSet | None) -> Answer:
    """Bound, search, branch and bound, starting from known routes if they are better than rounding."""
    data: PathFlow = context.data.routing
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
    candidates = candidates_for(data, paths)
    relaxed: F64 | None = None
    drawn, weight = paths, share
    if data.kappa > 1:
        weight, relaxed = relaxation(context, data, candidates)
        drawn = candidates
    likeliest = pick(drawn, largest(drawn, weight, data.kappa))

    def draw(tries: int) -> PathSet:
        return draw_different(drawn, weight, data.share, data.kappa, random, tries)

    start = draw(20)
    rounding = worst_load(start, data.share)
    if known is not None:
        candidates = union(candidates, known)
        if worst_load(known, data.share) <= rounding:
            start = known
    state = _State(context, data, over_all, fluid, candidates, start, rounding)
    if data.kappa > 1:
        state.tighten(relaxed)
    context.save(state.answer(), state.load)
    state.search(random, itertools.chain([likeliest], (draw(1) for _ in itertools.count())))
    if not state.done:
        state.branch_and_bound()
    return state.answer()


def relaxation(context: Context, data: PathFlow, paths: PathSet) -> tuple[F64, F64 | None]:
    """The linear relaxation over ``paths``: x, ``(|P|,)``, all equal if it is not solved, and its arc lengths."""
    from opticoll.solvers.process.isolation import solve_here

    program = _program(paths, data.amount, data.kappa, 0.0, np.inf)
    relaxed = replace(program, integer=np.zeros(paths.paths + 1, dtype=bool))
    outcome = solve_here(relaxed, "highs", context.request())
    x = np.ones(paths.paths) if outcome.x is None else np.clip(outcome.x[:-1], 0.0, 1.0)
    return x, None if outcome.row_duals is None else np.abs(outcome.row_duals[paths.pairs :])


def next_load(load: float, capacity: F64, unit: float = 1.0) -> float:
    """The smallest multiple of some ``unit``/c_a above ``load``."""
    values = np.unique(capacity) / unit
    return float(((np.floor(load * values * (1 + 1e-9)) + 1.0) / values).min())


def sizes(amount: F64) -> tuple[float, I64]:
    """A unit of load, and all amounts ``(|K|,)`` in this unit, rounded up to integers; 1 each for equal amounts."""
    unit = float(quantum(amount))
    if amount.max() > MOST_UNITS * unit:
        unit = float(amount.max()) / MOST_UNITS
    return unit, np.ceil(amount / unit - 1e-9).astype(np.int64)


def units_within(load: float, capacity: F64, unit: float) -> I64:
    """Units of amounts that every arc carries at a load, ``(m,)``."""
    return np.floor(load * capacity / unit * (1 + 1e-9)).astype(np.int64)


def shortest_of(paths: PathSet, kappa: int, detour: int = 0) -> PathSet:
    """The paths at most ``detour`` arcs longer than the kappa-th of their commodity, in order of length."""
    nth = np.minimum(paths.first[:-1] + kappa, paths.first[1:]) - 1
    return subset(paths, paths.length <= paths.length[nth][paths.pair] + detour)


def _least_load(data: PathFlow, fluid: float) -> float:
    """Lower bound on the load of unsplit demands, where ``fluid`` bounds that of split ones, in mean demands."""
    time = (
        float(outward.down(fluid * float(data.amount.mean()), 2 * data.amount.size))
        if data.traffic is not None
        else fluid
    )
    load = round_up(max(time, 0.0), data.topology.capacity, quantum(data.amount) / data.kappa)
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
        self.context, self.data, self.fluid = context, data, fluid
        self.candidates, self.best = candidates, start
        self.capacity = data.topology.capacity
        unit, self.size = sizes(data.amount)
        self.unit = unit / data.kappa
        self.fluid_times = [result.time * float(data.amount.mean()) for result in (fluid, over_all)]
        self.bound, self.unrestricted = (_least_load(data, result.best.bound) for result in (fluid, over_all))
        self.load, self.rounding = worst_load(start, data.amount), rounding
        self.steps = 0
        self.lengths = fluid.best.lengths
        self.mip_bound: float | None = None
        self.ended_by = "rounding" if self.load == rounding else "rerouting"
        self.out_of_time = False

    @property
    def done(self) -> bool:
        """Whether the load is within the tolerance of the bound."""
        return self.load <= self.bound * (1 + self.context.task.tol)

    def tighten(self, lengths: F64 | None) -> None:
        """Raise the bound by the lengths of the relaxation, if they prove more, and by analytic bounds."""
        model = self.context.formulation
        proven = None if lengths is None else model.certify({"capacity": lengths})
        if lengths is not None and proven is not None and proven.value > self.bound:
            self.bound, self.lengths = proven.value, lengths
        self.bound = max([self.bound, *(bound.value for bound in model.bounds())])

    def _time_is_up(self) -> bool:
        self.out_of_time |= self.context.expired
        return self.out_of_time

    def search(self, random: np.random.Generator, roundings: Iterator[PathSet]) -> None:
        """Reroute towards the bound, then towards the loads above it that would still be better."""
        paths = self.candidates
        direct = shortest_of(paths, self.data.kappa)
        steps, tries = int(self.context.parameters["steps"]), int(self.context.parameters["tries"])
        # Easy instances take hundreds of steps, so short tries come first: from the best routes, then from others.
        quick = min(steps, QUICK)
        plan = [(direct, quick, False), (paths, quick, False), *[(paths, quick, True)] * ROUNDINGS]
        if self.data.traffic is None:  # other loads are rarely attained exactly
            plan += [(which, steps, False) for which in (paths, direct) for _ in range(tries)]
        target = self.bound
        least_step = (self.load - self.bound) / (EQUAL_TARGETS if self.data.traffic is None else TARGETS)
        while target < self.load * (1 - 1e-9) and not self.done:
            for which, most, anew in plan:
                start = next(roundings) if anew else self.best
                if self._try(which, start, target, most, int(random.integers(2**31))):
                    return
                if self.out_of_time:
                    return
            target = max(next_load(target, self.capacity, self.unit), target + least_step)

    def _try(self, paths: PathSet, start: PathSet, target: float, most: int, seed: int) -> bool:
        """Whether rerouting over ``paths`` from ``start`` reaches a load of ``target`` within its steps."""
        from opticoll.solvers.methods.flows.local_search import reroute

        limit = units_within(target, self.capacity, self.unit)
        choice = placed(paths, start, self.data.kappa)
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
        load = worst_load(routes, self.data.share)
        if load < self.load:
            self.best, self.load, self.ended_by = routes, load, by
            self.context.save(self.answer(), load)

    def branch_and_bound(self) -> None:
        """HiGHS on the ILP over the candidates, started from the best routes."""
        from opticoll.solvers.process.isolation import solve_here

        seconds = float(self.context.parameters["mip_s"])
        paths = self.candidates
        if seconds <= 0 or paths.arcs.size + paths.paths > MOST_NONZEROS or self._time_is_up():
            return
        left = self.context.remaining()
        outcome = solve_here(
            _program(paths, self.data.amount, self.data.kappa, self.bound, self.load),
            "highs",
            SolveRequest(
                min(seconds, left or seconds),
                self.context.task.threads,
                max(self.context.task.tol, 1e-9),
                self.context.task.seed,
            ),
        )
        self.mip_bound = None if outcome.bound is None else outcome.bound / self.data.kappa
        if outcome.x is not None:
            chosen = largest(paths, outcome.x[: paths.paths], self.data.kappa)
            self._keep(pick(paths, chosen), "branch and bound")

    def answer(self) -> Answer:
        """The best routes with their metrics."""
        ending = Termination.OPTIMAL if self.done else Termination.TOLERANCE
        if self.out_of_time and not self.done:
            ending = Termination.TIME_LIMIT
        proven = bool(self.load <= self.unrestricted * (1 + 1e-9))
        metrics: dict[str, Any] = {
            **route_metrics(self.data, self.best),
            "fluid_time": self.fluid_times[0],
            "load_over_fluid": self.load / self.fluid_times[0],
            "unrestricted_fluid_time": self.fluid_times[1],
            "unrestricted_bound": self.unrestricted,
            "unrestricted_proven": proven,
            **({"conditional_on": None} if proven else {}),
            "candidates": self.candidates.paths,
            "rounding_load": self.rounding,
            "search_steps": self.steps,
            "found_by": self.ended_by,
            "mip_bound": self.mip_bound,
        }
        return Answer(
            ending,
            values=values_of(self.data, self.best),
            duals={"capacity": self.lengths},
            solver=self.fluid.master.solver(self.ended_by),
            metrics=metrics,
        )


def placed(candidates: PathSet, routes: PathSet, kappa: int) -> I64:
    """Candidate numbers of the routes, ``(kappa |K|,)``, with the commodity's first ones for routes not among them."""
    choice: list[int] = []
    for k in range(routes.pairs):
        listed = candidates.of_pair(k)
        wanted = [routes.path(p) for p in routes.of_pair(k)]
        results = [p for p in listed if candidates.path(p) in wanted]
        choice += [*results, *(p for p in listed if p not in results)][:kappa]
    return np.array(choice, dtype=np.int64)


def _program(paths: PathSet, amount: F64, kappa: int, least: float, known: float) -> Any:
    """The ILP (29)-(33) over ``paths``: minimize Lambda, at least ``least`` and less than ``known``."""
    import scipy.sparse as sp

    from opticoll.formulations.standard_form import StandardForm

    m, capacity = paths.topology.arcs, paths.topology.capacity
    integral = bool((capacity == 1.0).all() and (amount == np.round(amount)).all())
    low, high = kappa * least, kappa * known
    if integral:
        low, high = np.ceil(low - 1e-6), np.round(high) - 1.0
    loads = paths.incidence @ sp.diags_array(amount[paths.pair])
    A = sp.block_array([[paths.membership, None], [loads, -capacity[:, None]]], format="csc")
    cost = np.zeros(paths.paths + 1)
    cost[-1] = 1.0
    return StandardForm(
        A,
        np.concatenate([np.full(paths.pairs, kappa), np.full(m, -np.inf)]),
        np.concatenate([np.full(paths.pairs, kappa), np.zeros(m)]),
        np.append(np.zeros(paths.paths), low),
        np.append(np.ones(paths.paths), max(low, high)),
        cost,
        "min",
        integer=np.append(np.ones(paths.paths, dtype=bool), integral),
    )


METHOD = Method(
    name="exact-routing",
    title="Fluid bound, rerouting, branch and bound",
    summary="one or kappa paths per pair with proven minimum congestion: fluid bound, rerouting, then the ILP",
    serves=SINGLE_PATH,
    takes_over=(
        # GK(40,4) 6,241 variables in 2.1 s, torus:6x6 5,041 in 1.5 s; torus:8x8 16,129 not solved.
        Beyond("alltoall.min-congestion", 6_500, 30_000, where={"kappa": 1}),
        # With kappa > 1 the bound from column generation is weak.
        Beyond("alltoall.min-congestion", 60_000, 500_000),
    ),
    parameters=(
        Parameter("steps", int, default=300_000, help="rerouting steps of one try"),
        Parameter("tries", int, default=4, help="tries at each load"),
        Parameter("mip_s", float, default=60.0, help="seconds for branch and bound; 0 for none"),
    ),
    run=run,
)
