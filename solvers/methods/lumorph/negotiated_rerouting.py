"""Method ``negotiated-rerouting``: circuits rerouted under negotiated congestion, with a fluid bound."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.lumorph.overlap_solution import overlap
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.flows import exact_routing
from opticoll.solvers.methods.flows.exact_routing import route_metrics, values_of
from opticoll.solvers.methods.lumorph.overlap_search import EQUAL, min_overlap_routes, negotiated
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.methods.lumorph.overlap_search import OverlapRoutes
    from opticoll.solvers.methods.method import Context


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
                self.first_out,
                self.topology.tail,
                self.topology.head,
                self.starts,
                self.first,
                self.targets,
                self.topology.capacity,
                self.exponent,
                self.best,
                self.ratio,
                rounds,
                rate,
            )
        )


# Methods -------------------------------------------------------------------------------------------------------

#: Rounds of weights between two evaluations of their bound.
ROUNDS = 10
#: Most rounds before column generation, and reroutings per circuit in one attempt after the bound has improved.
MOST_ROUNDS, LATER_EFFORT = 150, 60


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
    from opticoll.formulations.lumorph.mesh_cuts import length_bound

    data: Overlap = context.data
    if data.model != "arc":
        return exact_routing.run(context)
    topology, (sources, targets) = data.topology, data.commodities
    begun = time.monotonic()
    routes = min_overlap_routes(topology, sources, targets, seed=context.task.seed, go_on=lambda: _in_time(context))
    best, load, bound = routes.routes, routes.load, routes.bound
    steps: dict[str, Any] = {"cut_bound": _plain(bound), "cut": routes.cut, "rerouting_load": _plain(load)}
    if load <= bound * (1 + EQUAL):
        return _answer(data, best, routes, steps, "cuts and rerouting", begun)
    context.save(_answer(data, best, routes, steps, "rerouting", begun, Termination.TIME_LIMIT), float(load))
    fluid = FluidLengths(topology, sources, targets)
    while load > bound * (1 + EQUAL) and fluid.rounds < MOST_ROUNDS and _in_time(context):
        fluid.improve(ROUNDS)
        proven = max(bound, length_bound(data, fluid.best))
        if bound < proven < load * (1 - EQUAL):
            most = LATER_EFFORT * sources.size
            tried = negotiated(topology, best, proven, seed=context.task.seed + fluid.rounds, most=most)
            if overlap(tried) < load:
                best, load = tried, overlap(tried)
        bound = proven
    steps |= {"length_bound": _plain(bound), "weight_rounds": fluid.rounds}
    met = load <= bound * (1 + EQUAL)
    if met or not _in_time(context):
        ending = Termination.OPTIMAL if met else Termination.TIME_LIMIT
        return _answer(data, best, routes, steps, "rerouting, multiplicative weights", begun, ending, fluid)
    answer = exact_routing.bound_and_search(context, best)
    answer.metrics = {**steps, **answer.metrics}
    return answer


def _plain(value: float) -> float:
    """An integer where the value is one."""
    return int(value) if value.is_integer() else value


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
        values=values_of(data.routing, routes),
        duals=None if fluid is None else {"congestion": fluid.best},
        solver={"algorithm": algorithm},
        metrics={**route_metrics(data.routing, routes), **steps, "routing_s": time.monotonic() - begun},
    )


METHOD = Method(
    name="negotiated-rerouting",
    title="Cuts, negotiated rerouting, duality",
    summary="cuts, XY routes, rerouting by negotiated congestion, arc lengths as proof; LP and MIP if needed",
    serves=("lumorph.min-overlap",),
    # 6x8 7,873 variables in 2.8 s, 4x8 3,225 in 0.9 to 1.5 s; 8x8 14,113 in 5.3 s, 4x8 with all pairs not solved.
    takes_over=(Beyond("lumorph.min-overlap", 8_000, 40_000, proves=False),),
    parameters=tuple(
        Parameter(p.name, p.kind, p.default, f"{p.help}, in the last stage") for p in exact_routing.METHOD.parameters
    ),
    run=run_negotiated_rerouting,
)
