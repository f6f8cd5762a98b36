"""Methods for routes of least overlap: ``xy-routes``, ``random-shortest`` and ``negotiated-rerouting``.

xy-routes             row-first (XY) routes on a mesh; a shortest path where these are broken or there is no mesh
random-shortest       one shortest path per circuit, uniform among all (the paper's "LUMORPH + Random"), seeded
negotiated-rerouting  routes with a proof of optimality:

1. Cut bounds and XY routes. On intact meshes these agree for every step of a recursive exchange.
2. Rerouting under negotiated congestion (:mod:`opticoll.solvers.methods.lumorph.route_kernels`) towards the best cut.
3. Arc lengths by multiplicative weights, a few rounds at a time, until their bound, rounded up to whole circuits,
   equals the overlap found; rerouting again whenever the bound improves.
4. The fluid optimum by column generation, rounding, rerouting over its paths, and branch and bound
   (:mod:`opticoll.solvers.methods.flows.exact_routing`). A route set goes there directly, since its routes are listed.

The reported bound is recomputed by the formulation, from cuts or from the arc lengths.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.flows import exact_routing
from opticoll.solvers.methods.flows.routes import route_metrics, values_of
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.solvers.methods.lumorph.overlap_search import FluidLengths, OverlapRoutes
    from opticoll.solvers.methods.method import Context


#: Rounds of weights between two evaluations of their bound.
ROUNDS = 10
#: Most rounds before column generation, and reroutings per circuit in one attempt after the bound has improved.
MOST_ROUNDS, EFFORT = 150, 60


def run_xy_routes(context: Context) -> Answer:
    """Route every circuit along its row, then along its column."""
    from opticoll.solvers.methods.lumorph.overlap_search import straight_or_shortest

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
    """Draw random shortest paths ``draws`` times and keep the best."""
    from opticoll.solvers.methods.lumorph.overlap_search import load_of, shortest_routes

    data = arc_form(context, "random-shortest")
    best: PathSet | None = None
    loads = []
    for number in range(max(int(context.parameters["draws"]), 1)):
        random = np.random.default_rng([context.task.seed, number])
        routes = shortest_routes(data.topology, *data.commodities, random)
        loads.append(load_of(routes))
        if best is None or loads[-1] < load_of(best):
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
    """Run cuts, rerouting and multiplicative weights; close a remaining gap by column generation."""
    from opticoll.solvers.methods.lumorph.overlap_search import FluidLengths, load_of, min_overlap_routes, negotiated

    data: Overlap = context.data
    if data.model != "arc":
        return exact_routing.run(context)
    topology, (sources, targets) = data.topology, data.commodities
    begun = time.monotonic()
    found = min_overlap_routes(topology, sources, targets, seed=context.task.seed, go_on=lambda: _in_time(context))
    best, load, bound = found.routes, found.load, found.bound
    steps: dict[str, Any] = {"cut_bound": found.bound, "cut": found.cut, "rerouting_load": found.load}
    if load <= bound:
        return _answer(data, best, found, steps, "cuts and rerouting", begun)
    context.save(_answer(data, best, found, steps, "rerouting", begun, Termination.TIME_LIMIT), float(load))
    fluid = FluidLengths(topology, sources, targets)
    while load > bound and fluid.rounds < MOST_ROUNDS and _in_time(context):
        fluid.improve(ROUNDS)
        proven = max(bound, _proven(data, fluid))
        if bound < proven < load:
            most = EFFORT * sources.size
            tried = negotiated(topology, best, proven, seed=context.task.seed + fluid.rounds, most=most)
            if load_of(tried) < load:
                best, load = tried, load_of(tried)
        bound = proven
    steps |= {"length_bound": bound, "weight_rounds": fluid.rounds}
    if load <= bound or not _in_time(context):
        ending = Termination.OPTIMAL if load <= bound else Termination.TIME_LIMIT
        return _answer(data, best, found, steps, "rerouting, multiplicative weights", begun, ending, fluid)
    answer = exact_routing.bound_and_search(context, best)
    answer.metrics = {**steps, **answer.metrics}
    return answer


def _in_time(context: Context) -> bool:
    try:
        context.remaining()
    except TimeoutError:
        return False
    return True


def _proven(data: Overlap, fluid: FluidLengths) -> int:
    from opticoll.formulations.lumorph.min_overlap import length_bound

    return length_bound(data, fluid.best)


def _answer(
    data: Overlap,
    routes: PathSet,
    found: OverlapRoutes,
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


METHODS = (
    XY_ROUTES,
    RANDOM_SHORTEST,
    NEGOTIATED_REROUTING,
)
