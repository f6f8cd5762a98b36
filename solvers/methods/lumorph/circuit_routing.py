"""Methods ``negotiated-rerouting``, ``xy-routes`` and ``random-shortest``: routes of circuits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.lumorph.overlap_solution import overlap
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows import exact_routing
from opticoll.solvers.methods.flows.exact_routing import route_metrics, values_of
from opticoll.solvers.methods.lumorph.overlap_search import (
    EQUAL,
    arc_form,
    min_overlap_routes,
    shortest_routes,
    straight_or_shortest,
)
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.solvers.methods.lumorph.overlap_search import OverlapRoutes
    from opticoll.solvers.methods.method import Context


def run_negotiated_rerouting(context: Context) -> Answer:
    """Route circuits with small overlap, and a proof of optimality: rerouting under negotiated congestion.

    Source  McMurchie & Ebeling, PathFinder, FPGA 1995

    1. Cut bounds and XY routes. On intact meshes these agree for every step of a recursive exchange.
    2. Rerouting under negotiated congestion towards the best cut; where the load equals the bound, the routes are
       optimal (LuMorph, Algorithm 2).
    3. The fluid optimum by column generation, rounding, rerouting over its paths, and branch and bound
       (:mod:`opticoll.solvers.methods.flows.exact_routing`). A route set goes there directly, since its routes are
       listed.

    The reported bound is recomputed by the formulation, from cuts or from the arc lengths.
    """
    data: Overlap = context.data
    if data.model != "arc":
        return exact_routing.run(context)
    topology, (sources, targets) = data.topology, data.commodities
    begun = time.monotonic()
    routes = min_overlap_routes(topology, sources, targets, seed=context.task.seed, go_on=lambda: not context.expired)
    load, bound = routes.load, routes.bound
    steps: dict[str, Any] = {"cut_bound": _plain(bound), "cut": routes.cut, "rerouting_load": _plain(load)}
    if load <= bound * (1 + EQUAL):
        return _answer(data, routes, steps, "cuts and rerouting", begun, Termination.OPTIMAL)
    first = _answer(data, routes, steps, "rerouting", begun, Termination.TIME_LIMIT)
    context.save(first, float(load))
    if context.expired:
        return first
    answer = exact_routing.bound_and_search(context, routes.routes)
    answer.metrics = {**steps, **answer.metrics}
    return answer


def _plain(value: float) -> float:
    """An integer where the value is one."""
    return int(value) if value.is_integer() else value


def _answer(
    data: Overlap, found: OverlapRoutes, steps: dict[str, Any], algorithm: str, begun: float, ending: Termination
) -> Answer:
    return Answer(
        ending,
        values=values_of(data.routing, found.routes),
        solver={"algorithm": algorithm},
        metrics={**route_metrics(data.routing, found.routes), **steps, "routing_s": time.monotonic() - begun},
    )


NEGOTIATED_REROUTING = Method(
    name="negotiated-rerouting",
    title="Cuts, negotiated rerouting, duality",
    summary="cuts, XY routes, rerouting by negotiated congestion; LP and MIP if needed",
    serves=("lumorph.min-overlap",),
    # 6x8 7,873 variables in 2.8 s, 4x8 3,225 in 0.9 to 1.5 s; 8x8 14,113 in 5.3 s, 4x8 with all pairs not solved.
    takes_over=(Beyond("lumorph.min-overlap", 8_000, 40_000, proves=False),),
    parameters=tuple(
        Parameter(p.name, p.kind, p.default, f"{p.help}, in the last stage") for p in exact_routing.METHOD.parameters
    ),
    run=run_negotiated_rerouting,
)


def run_xy_routes(context: Context) -> Answer:
    """Row-first (XY) routes on a mesh; a shortest path where these are broken or there is no mesh."""
    data = arc_form(context, "xy-routes")
    routes = straight_or_shortest(data.topology, *data.commodities)
    values, metrics = values_of(data.routing, routes), route_metrics(data.routing, routes)
    return Answer.heuristic(values, "row first, then column", metrics)


XY_ROUTES = Method(
    name="xy-routes",
    title="XY routes",
    summary="row first, then column; shortest paths where links are missing",
    serves=("lumorph.min-overlap",),
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
    drawn = {"seed": context.task.seed, "mean_draw_load": float(np.mean(loads))}
    metrics = {**route_metrics(data.routing, best), **drawn}
    return Answer.heuristic(values_of(data.routing, best), "uniform over shortest paths", metrics)


RANDOM_SHORTEST = Method(
    name="random-shortest",
    title="Random shortest paths",
    summary="one of the shortest paths of every circuit, uniformly at random; the paper's baseline",
    serves=("lumorph.min-overlap",),
    parameters=(Parameter("draws", int, default=1, help="independent draws; the best is kept"),),
    run=run_random_shortest,
)


METHODS = (NEGOTIATED_REROUTING, XY_ROUTES, RANDOM_SHORTEST)
