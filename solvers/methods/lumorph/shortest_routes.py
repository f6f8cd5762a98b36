"""Methods ``xy-routes`` and ``random-shortest``: straight or random shortest routes of circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.lumorph.overlap_solution import overlap
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.exact_routing import route_metrics, values_of
from opticoll.solvers.methods.lumorph.overlap_search import arc_form, shortest_routes, straight_or_shortest
from opticoll.solvers.methods.method import Answer, Method

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context


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


METHODS = (XY_ROUTES, RANDOM_SHORTEST)
