"""Route circuits with small overlap: straight or shortest routes, rerouted under negotiated congestion.

Source  McMurchie & Ebeling, PathFinder, FPGA 1995
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.lumorph import cut_bounds, grid_shape
from opticoll.formulations.lumorph.min_overlap import overlap
from opticoll.formulations.lumorph.route_sets import straight_routes
from opticoll.formulations.model import NotApplicable, Parameter
from opticoll.formulations.rounds import offsets
from opticoll.solvers.methods.flows import exact_routing
from opticoll.solvers.methods.flows.exact_routing import route_metrics, values_of
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.instances.digraph import F64, I64, Topology
    from opticoll.solvers.methods.method import Context

#: Most reroutings in plain Python, and most vertices that they search; above these a compiled search is faster.
FIRST_REROUTINGS, FIRST_VERTICES = 600, 200_000
#: Most reroutings per circuit in one attempt, and the smallest limit on their total.
EFFORT, LEAST_EFFORT = 30, 4000
#: Reroutings between two checks of the clock.
SLICE = 100_000
#: Largest table of routes: circuits times vertices.
MOST_ENTRIES = 400_000_000


#: Weight of the relative load beside a length of 1; initial pressure and its growth per sweep.
FULLNESS, FIRST_PRESSURE, GROWTH = 0.05, 0.5, 1.5


@dataclass(frozen=True)
class OverlapRoutes:
    """One route per circuit as a path set in circuit order, its overlap, and the bound and name of the best cut."""

    routes: PathSet
    load: int
    bound: int
    cut: str


def min_overlap_routes(
    topology: Topology,
    sources: I64,
    targets: I64,
    *,
    seed: int = 0,
    effort: int = EFFORT,
    go_on: Callable[[], bool] | None = None,
) -> OverlapRoutes:
    """Routes of small overlap for circuits ``sources[k] -> targets[k]``, vertices, each ``(K,)``.

    XY routes on a grid (shortest ones where those are broken, or there is no grid); unless these meet the best cut,
    rerouting under negotiated congestion towards that cut, first without compiled code, then towards each load above
    it. ``effort`` is the average number of reroutings per circuit in one attempt; the search stops when ``go_on()`` is
    false. Deterministic for a ``seed`` unless it is stopped.

    Raises
    ------
    NotApplicable
        If a circuit has no path, or there are too many circuits for this graph.
    """
    cut = cut_bounds(topology, (sources, targets))[0]
    routes = straight_or_shortest(topology, sources, targets)
    load, least = overlap(routes), max(int(cut.value), 1)
    if load > least and (go_on is None or go_on()):
        paths, ends = _paths_of(routes), list(zip(sources.tolist(), targets.tolist(), strict=True))
        most = min(FIRST_REROUTINGS, FIRST_VERTICES // topology.n)
        if reroute_first(topology, ends, paths, least, seed=seed, most=most):
            routes = routes_of(topology, sources, targets, paths)
            load = overlap(routes)
    for number, goal in enumerate(range(least, load)):
        if go_on is not None and not go_on():
            break
        most = max(effort * sources.size, LEAST_EFFORT)
        candidate = negotiated(topology, routes, goal, seed=seed + number, most=most, go_on=go_on)
        if overlap(candidate) < load:
            routes, load = candidate, overlap(candidate)
        if load <= goal:
            break
    return OverlapRoutes(routes, load, least, cut.name)


def straight_or_shortest(topology: Topology, sources: I64, targets: I64) -> PathSet:
    """Row-first (XY) routes on a grid, a shortest path wherever that is broken or there is no grid.

    Raises
    ------
    NotApplicable
        If a circuit has no path.
    """
    shape = grid_shape(topology)
    if shape is None:
        length, arcs = np.zeros(sources.size, dtype=np.int64), np.zeros(0, dtype=np.int64)
        is_straight = np.zeros(sources.size, dtype=bool)
    else:
        start, arcs, is_straight = straight_routes(topology, sources, targets, "columns", columns=shape[1])
        length = np.diff(start)
    if is_straight.all():
        return _in_order(topology, sources, targets, arcs, length)
    rest = np.flatnonzero(~is_straight)
    straight = _in_order(topology, sources, targets, arcs, length)
    shortest = shortest_routes(topology, sources[rest], targets[rest], None)
    paths = _paths_of(straight)
    for i, k in enumerate(rest.tolist()):
        paths[k] = shortest.path(i)
    return routes_of(topology, sources, targets, paths)


def shortest_routes(topology: Topology, sources: I64, targets: I64, random: np.random.Generator | None) -> PathSet:
    """A shortest path per circuit: uniform among all of them with ``random``, else the first by arc numbers.

    Paths with the fewest arcs are counted back from the target; each step takes an arc in proportion to the number of
    shortest paths that continue from it.

    Raises
    ------
    NotApplicable
        If a circuit has no path.
    """
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    paths: list[list[int]] = [[] for _ in range(sources.size)]
    tails, heads = topology.tail, topology.head
    for target in np.unique(targets).tolist():
        hops = _hops_to(topology, target)
        closer = np.isfinite(hops[tails]) & (hops[heads] == hops[tails] - 1)
        ways = np.zeros(topology.n)
        ways[target] = 1.0
        for distance in range(1, int(hops[np.isfinite(hops)].max()) + 1):
            steps = np.flatnonzero(closer & (hops[tails] == distance))
            ways += np.bincount(tails[steps], ways[heads[steps]], topology.n)
        for k in np.flatnonzero(targets == target).tolist():
            v = int(sources[k])
            if not np.isfinite(hops[v]):
                msg = f"{topology.spec}: no path from {topology.labels[v]} to {topology.labels[target]}"
                raise NotApplicable(msg)
            while v != target:
                out = np.arange(first_out[v], first_out[v + 1])
                out = out[closer[out]]
                arc = int(out[0])
                if random is not None and out.size > 1:
                    share = np.cumsum(ways[heads[out]])
                    arc = int(out[np.searchsorted(share, random.random() * share[-1], side="right")])
                paths[k].append(arc)
                v = int(heads[arc])
    return routes_of(topology, sources, targets, paths)


def _hops_to(topology: Topology, target: int) -> F64:
    """Fewest arcs from every vertex to ``target``, ``(n,)``."""
    from scipy.sparse.csgraph import dijkstra

    graph = topology.length_matrix(np.ones(topology.arcs)).T.tocsr()
    return np.asarray(dijkstra(graph, indices=target, unweighted=True))


def _paths_of(routes: PathSet) -> list[list[int]]:
    return [list(routes.path(k)) for k in range(routes.paths)]


def routes_of(topology: Topology, sources: I64, targets: I64, paths: list[list[int]]) -> PathSet:
    """A path set with one path per circuit, in circuit order."""
    length = np.array([len(path) for path in paths], dtype=np.int64)
    arcs = np.array([arc for path in paths for arc in path], dtype=np.int64)
    return _in_order(topology, sources, targets, arcs, length)


def _in_order(topology: Topology, sources: I64, targets: I64, arcs: I64, length: I64) -> PathSet:
    return PathSet(topology, sources, targets, arcs, offsets(length), np.arange(sources.size))


def reroute_first(
    topology: Topology, ends: list[tuple[int, int]], paths: list[list[int]], limit: int, *, seed: int, most: int
) -> bool:
    """Reroute circuits, in place, until no arc carries more than ``limit`` of them or ``most`` reroutings are made.

    Parameters
    ----------
    ends
        Source and target of every circuit.
    paths
        Arcs of every circuit's route, replaced by those of its new one.

    Returns
    -------
    Whether the limit is met. Deterministic for a ``seed``.
    """
    random = np.random.default_rng(seed)
    tail = topology.tail.tolist()
    out: list[list[tuple[int, int]]] = [[] for _ in range(topology.n)]
    for arc, (u, v) in enumerate(zip(tail, topology.head.tolist(), strict=True)):
        out[u].append((arc, v))
    load, pressure = [0] * topology.arcs, FIRST_PRESSURE
    for path in paths:
        for arc in path:
            load[arc] += 1
    over, steps = sum(max(count - limit, 0) for count in load), 0
    while over:
        # Cost of an arc by the number of circuits on it.
        cost = [1.0 + FULLNESS * count / limit + pressure * max(0, count + 1 - limit) for count in range(max(load) + 2)]
        for k in random.permutation(len(paths)).tolist():
            if not any(load[arc] > limit for arc in paths[k]):
                continue
            if steps >= most:
                return False
            steps += 1
            for arc in paths[k]:
                over -= load[arc] > limit
                load[arc] -= 1
            paths[k] = _lightest_path(out, tail, load, cost, *ends[k])
            for arc in paths[k]:
                load[arc] += 1
                over += load[arc] > limit
                if load[arc] >= len(cost):
                    cost.append(1.0 + FULLNESS * load[arc] / limit + pressure * (load[arc] + 1 - limit))
        pressure *= GROWTH
    return True


def _lightest_path(
    out: list[list[tuple[int, int]]], tail: list[int], load: list[int], cost: list[float], source: int, target: int
) -> list[int]:
    """Dijkstra's algorithm; the target is reachable, since the circuit has a route."""
    distance, into, settled = {source: 0.0}, dict[int, int](), set[int]()
    heap = [(0.0, source)]
    while True:
        length, u = heapq.heappop(heap)
        if u == target:
            break
        if u in settled:
            continue
        settled.add(u)
        for arc, v in out[u]:
            reach = length + cost[load[arc]]
            if reach < distance.get(v, np.inf):
                distance[v], into[v] = reach, arc
                heapq.heappush(heap, (reach, v))
    path = []
    while u != source:
        path.append(into[u])
        u = tail[into[u]]
    return path[::-1]


def negotiated(
    topology: Topology, routes: PathSet, limit: int, *, seed: int, most: int, go_on: Callable[[], bool] | None = None
) -> PathSet:
    """Routes of smaller total overload above ``limit`` (0 if it is met), after at most ``most`` reroutings.

    ``go_on`` is checked after every :data:`SLICE` reroutings, where prices are reset.

    Raises
    ------
    NotApplicable
        If the table of routes would be too large.
    """
    from opticoll.solvers.methods.lumorph.search_kernels import negotiate

    count = routes.pairs
    if count * topology.n > MOST_ENTRIES:
        msg = f"{topology.spec}: {count:,} circuits are too many to reroute; use fewer circuits"
        raise NotApplicable(msg)
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    table, length = np.zeros((count, topology.n), dtype=np.int32), routes.length.copy()
    owner = np.repeat(np.arange(count), length)
    table[owner, np.arange(routes.arcs.size) - routes.start[owner]] = routes.arcs
    left, over = most, 1
    while left > 0 and over > 0 and (go_on is None or go_on()):
        over, steps = negotiate(
            first_out, topology.tail, topology.head, routes.sources, routes.targets, limit, table, length, seed,
            left if go_on is None else min(left, SLICE),
        )  # fmt: skip
        left -= max(steps, 1)
        seed += 1
    arcs = table[np.arange(topology.n)[None, :] < length[:, None]].astype(np.int64)
    return _in_order(topology, routes.sources, routes.targets, arcs, length)


class FluidLengths:
    """Arc lengths that bound the fluid optimum, improved by multiplicative weights (:func:`route_kernels.weigh`)."""

    def __init__(self, topology: Topology, sources: I64, targets: I64) -> None:
        self.topology = topology
        order = np.lexsort((targets, sources))
        self.starts, first = np.unique(sources[order], return_index=True)
        self.first = np.append(first, sources.size).astype(np.int64)
        self.targets = targets[order]
        self.first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
        self.exponent, self.best = np.zeros(topology.arcs), np.ones(topology.arcs)
        self.ratio = np.zeros(1)
        self.rounds = 0

    def improve(self, rounds: int) -> float:
        """Run more rounds; return the best ratio so far, a lower bound on the fluid optimum up to round-off."""
        from opticoll.solvers.methods.lumorph.search_kernels import weigh

        rate = 1.0 / (1.0 + 0.02 * self.rounds)
        self.rounds += rounds
        return float(
            weigh(
                self.first_out, self.topology.tail, self.topology.head, self.starts, self.first, self.targets,
                self.exponent, self.best, self.ratio, rounds, rate,
            )
        )  # fmt: skip


# Methods -------------------------------------------------------------------------------------------------------

#: Rounds of weights between two evaluations of their bound.
ROUNDS = 10
#: Most rounds before column generation, and reroutings per circuit in one attempt after the bound has improved.
MOST_ROUNDS, LATER_EFFORT = 150, 60


def run_xy_routes(context: Context) -> Answer:
    """Row-first (XY) routes on a mesh; a shortest path where these are broken or there is no mesh."""
    data = arc_form(context, "xy-routes")
    routes = straight_or_shortest(data.topology, *data.commodities)
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, routes),
        solver={"name": "xy-routes", "version": None, "algorithm": "row first, then column", "options": {}},
        metrics=route_metrics(data, routes),
        message="a heuristic without an optimality proof",
    )


def arc_form(context: Context, method: str) -> Overlap:
    """The data of the arc form, which allows any routes.

    Raises
    ------
    MethodMismatch
        For the path form, whose routes must be in a listed set.
    """
    data: Overlap = context.data
    if data.model != "arc":
        msg = f"{method} computes its own routes, which need not be in the route set of model=path; remove model=path"
        raise MethodMismatch(msg)
    return data


XY_ROUTES = Method(
    name="xy-routes",
    title="XY routes",
    summary="row first, then column; shortest paths where links are missing",
    applies=lambda formulation: formulation.name == "lumorph.min-overlap",
    run=run_xy_routes,
)


def run_random_shortest(context: Context) -> Answer:
    """One shortest path per circuit, uniform among all (the paper's "LUMORPH + Random"), seeded.

    The best of ``draws`` draws is kept.
    """
    data = arc_form(context, "random-shortest")
    best: PathSet | None = None
    loads = []
    for number in range(max(int(context.parameters["draws"]), 1)):
        random = np.random.default_rng([context.task.seed, number])
        routes = shortest_routes(data.topology, *data.commodities, random)
        loads.append(overlap(routes))
        if best is None or loads[-1] < overlap(best):
            best = routes
        context.remaining()
    assert best is not None
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, best),
        solver={"name": "random-shortest", "version": None, "algorithm": "uniform over shortest paths", "options": {}},
        metrics={**route_metrics(data, best), "seed": context.task.seed, "mean_draw_load": float(np.mean(loads))},
        message="a heuristic without an optimality proof",
    )


RANDOM_SHORTEST = Method(
    name="random-shortest",
    title="Random shortest paths",
    summary="one of the shortest paths of every circuit, uniformly at random; the paper's baseline",
    applies=lambda formulation: formulation.name == "lumorph.min-overlap",
    parameters=(Parameter("draws", int, default=1, help="independent draws; the best is kept"),),
    run=run_random_shortest,
)


def run_negotiated_rerouting(context: Context) -> Answer:
    """Route circuits with small overlap, and a proof of optimality: rerouting under negotiated congestion.

    Source  McMurchie & Ebeling, PathFinder, FPGA 1995

    1. Cut bounds and XY routes. On intact meshes these agree for every step of a recursive exchange.
    2. Rerouting under negotiated congestion towards the best cut; where the load equals the bound, the routes are
       optimal (LuMorph, Algorithm 2).
    3. Arc lengths by multiplicative weights, a few rounds at a time, until their bound, rounded up to whole circuits,
       equals the overlap; rerouting again whenever the bound improves.
    4. The fluid optimum by column generation, rounding, rerouting over its paths, and branch and bound
       (:mod:`opticoll.solvers.methods.flows.exact_routing`). A route set goes there directly, since its routes are
       listed.

    The reported bound is recomputed by the formulation, from cuts or from the arc lengths.

    The first reroutings run in plain Python, since a few dozen of them usually suffice and take less time than loading
    numba. All arcs have one price there: an arc that carries ``load`` circuits and may carry ``limit`` costs ``1 +
    FULLNESS load / limit + pressure max(0, load + 1 - limit)``, and the pressure grows from sweep to sweep. Further
    reroutings are compiled (:mod:`opticoll.solvers.methods.lumorph.search_kernels`).
    """
    from opticoll.formulations.lumorph.min_overlap import length_bound

    data: Overlap = context.data
    if data.model != "arc":
        return exact_routing.run(context)
    topology, (sources, targets) = data.topology, data.commodities
    begun = time.monotonic()
    routes = min_overlap_routes(topology, sources, targets, seed=context.task.seed, go_on=lambda: _in_time(context))
    best, load, bound = routes.routes, routes.load, routes.bound
    steps: dict[str, Any] = {"cut_bound": routes.bound, "cut": routes.cut, "rerouting_load": routes.load}
    if load <= bound:
        return _answer(data, best, routes, steps, "cuts and rerouting", begun)
    context.save(_answer(data, best, routes, steps, "rerouting", begun, Termination.TIME_LIMIT), float(load))
    fluid = FluidLengths(topology, sources, targets)
    while load > bound and fluid.rounds < MOST_ROUNDS and _in_time(context):
        fluid.improve(ROUNDS)
        proven = max(bound, length_bound(data, fluid.best))
        if bound < proven < load:
            most = LATER_EFFORT * sources.size
            tried = negotiated(topology, best, proven, seed=context.task.seed + fluid.rounds, most=most)
            if overlap(tried) < load:
                best, load = tried, overlap(tried)
        bound = proven
    steps |= {"length_bound": bound, "weight_rounds": fluid.rounds}
    if load <= bound or not _in_time(context):
        ending = Termination.OPTIMAL if load <= bound else Termination.TIME_LIMIT
        return _answer(data, best, routes, steps, "rerouting, multiplicative weights", begun, ending, fluid)
    answer = exact_routing.bound_and_search(context, best)
    answer.metrics = {**steps, **answer.metrics}
    return answer


def _in_time(context: Context) -> bool:
    try:
        context.remaining()
    except TimeoutError:
        return False
    return True


def _answer(
    data: Overlap,
    routes: PathSet,
    result: OverlapRoutes,
    steps: dict[str, Any],
    algorithm: str,
    begun: float,
    ending: Termination = Termination.OPTIMAL,
    fluid: FluidLengths | None = None,
) -> Answer:
    return Answer(
        ending,
        values=values_of(data, routes),
        duals=None if fluid is None else {"congestion": fluid.best},
        solver={"name": "negotiated-rerouting", "version": None, "algorithm": algorithm, "options": {}},
        metrics={**route_metrics(data, routes), **steps, "routing_s": time.monotonic() - begun},
    )


NEGOTIATED_REROUTING = Method(
    name="negotiated-rerouting",
    title="Cuts, negotiated rerouting, duality",
    summary="cuts, XY routes, rerouting by negotiated congestion, arc lengths as proof; LP and MIP if needed",
    applies=lambda formulation: formulation.name == "lumorph.min-overlap",
    parameters=tuple(
        Parameter(p.name, p.kind, p.default, f"{p.help}, in the last stage")
        for p in exact_routing.METHODS[0].parameters
    ),
    run=run_negotiated_rerouting,
)


METHODS = (XY_ROUTES, RANDOM_SHORTEST, NEGOTIATED_REROUTING)
