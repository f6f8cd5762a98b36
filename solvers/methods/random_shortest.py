"""One shortest path a circuit, drawn at random among all of them (the paper's "LUMORPH + Random"), seeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.methods.xy_routes import arc_form
from solvers.outcome import Termination
from solvers.routing.routes import route_metrics, values_of

if TYPE_CHECKING:
    from formulations.alltoall.path_sets import PathSet
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Draw ``draws`` times, keep the best."""
    from solvers.routing.min_overlap import load_of, shortest_routes

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
        message="a heuristic: it stops without trying to prove anything",
    )


METHOD = Method(
    name="random-shortest",
    title="Random shortest paths",
    summary="one of the shortest paths of every circuit, uniformly at random; the paper's baseline",
    applies=lambda formulation: formulation.name == "lumorph.min-overlap",
    parameters=(Parameter("draws", int, default=1, help="independent draws; the best is kept"),),
    run=run,
)
