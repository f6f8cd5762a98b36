r"""Least overlap to proven optimality: cuts and straight routes first, negotiated rerouting, then bounds by duality.

1. Cut bounds, and row-first (XY) routes. On intact meshes these agree for every step of a recursive exchange.
2. Rerouting under negotiated congestion (:mod:`solvers.routing.negotiation`) towards the best cut.
3. Arc lengths by multiplicative weights, a few rounds at a time, until what they prove, rounded up to whole circuits,
   is the overlap found; rerouting again whenever that bound has moved closer.
4. The fluid optimum by column generation, its rounding, rerouting over its paths, branch and bound
   (:mod:`solvers.methods.exact_routing`). A route set goes there at once: its routes are listed.

The bound reported is recomputed by the formulation, from cuts or from the arc lengths.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from formulations.base import Parameter
from solvers.methods import exact_routing
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination
from solvers.routing.routes import route_metrics, values_of

if TYPE_CHECKING:
    from formulations.alltoall.path_sets import PathSet
    from formulations.lumorph.min_overlap import Overlap
    from solvers.methods.base import Context
    from solvers.routing.min_overlap import FluidLengths, OverlapRoutes

#: Rounds of weights between two looks at what they prove.
ROUNDS = 10
#: Most rounds without column generation, and reroutings of a try a circuit once the bound has moved.
MOST_ROUNDS, EFFORT = 150, 60


def run(context: Context) -> Answer:
    """Cuts, rerouting, weights; then what is left by column generation."""
    from solvers.routing.min_overlap import FluidLengths, load_of, min_overlap_routes, negotiated

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
    from formulations.lumorph.min_overlap import length_bound

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


METHOD = Method(
    name="negotiated-rerouting",
    title="Cuts, negotiated rerouting, duality",
    summary="cuts, XY routes, rerouting by negotiated congestion, arc lengths as proof; LP and MIP if needed",
    applies=lambda formulation: formulation.name == "lumorph.min-overlap",
    parameters=tuple(
        Parameter(p.name, p.kind, p.default, f"{p.help}, in the last stage") for p in exact_routing.METHOD.parameters
    ),
    run=run,
)
