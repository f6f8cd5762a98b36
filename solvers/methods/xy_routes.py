"""Row-first (XY) routes on a mesh; a shortest path wherever these are broken, or there is no mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solvers.errors import MethodMismatch
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination
from solvers.routing.routes import route_metrics, values_of

if TYPE_CHECKING:
    from formulations.lumorph.min_overlap import Overlap
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Every circuit along its row, then along its column."""
    from solvers.routing.min_overlap import straight_or_shortest

    data = arc_form(context, "xy-routes")
    routes = straight_or_shortest(data.topology, *data.commodities)
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, routes),
        solver={"name": "xy-routes", "version": None, "algorithm": "row first, then column", "options": {}},
        metrics=route_metrics(data, routes),
        message="a heuristic: it stops without trying to prove anything",
    )


def arc_form(context: Context, method: str) -> Overlap:
    """The data, whose routes may be any.

    Raises
    ------
    MethodMismatch
        If routes are to come from a listed set.
    """
    data: Overlap = context.data
    if data.model != "arc":
        msg = f"{method} makes its own routes, which need not be in the route set of model=path; leave model out"
        raise MethodMismatch(msg)
    return data


METHOD = Method(
    name="xy-routes",
    title="XY routes",
    summary="row first, then column; shortest paths where links are missing",
    applies=lambda formulation: formulation.name == "lumorph.min-overlap",
    run=run,
)
