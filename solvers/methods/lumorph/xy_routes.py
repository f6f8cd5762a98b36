"""Method ``xy-routes``: straight routes of a mesh, shortest ones elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.solvers.methods.flows.exact_routing import route_metrics, values_of
from opticoll.solvers.methods.lumorph.overlap_search import arc_form, straight_or_shortest
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context


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


METHOD = Method(
    name="xy-routes",
    title="XY routes",
    summary="row first, then column; shortest paths where links are missing",
    serves=("lumorph.min-overlap",),
    run=run_xy_routes,
)
