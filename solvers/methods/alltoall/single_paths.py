"""Methods ``sssp`` and ``lp-rounding``: one path for every pair, load-aware or rounded from the fractional optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.column_generation import generate, pricing_for
from opticoll.solvers.methods.flows.exact_routing import (
    SINGLE_PATH,
    draw_different,
    route_metrics,
    routes_from,
    single_only,
    values_of,
    worst_load,
)
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.flows.path_flow import PathFlow
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.solvers.methods.method import Context


def run_sssp(context: Context) -> Answer:
    """Load-aware shortest paths for the all-to-all, one path per pair.

    Source  Domke, Hoefler & Nagel, IPDPS 2011; all-to-all paper, Appendix D (2)

    Every arc has weight sum_k D_k + 1 at first, so detours are expensive in any order. Pairs are routed in random
    order (``seed``) on a lightest path, whose arcs then gain D_k/c_a (1 on unit links for demands of 1). Over a listed
    set, the lightest path of the pair's set is taken; for kappa > 1 every pair is routed kappa times, in one random
    order of all these routes, each on the lightest path that the pair does not use yet, whose arcs gain
    D_k/(kappa c_a).
    """
    data: PathFlow = context.data.routing
    best: PathSet | None = None
    orders = int(context.parameters["orders"])
    for number in range(max(orders, 1)):
        routes = load_aware_routes(data, seed=context.task.seed + number)
        if best is None or worst_load(routes, data.share) < worst_load(best, data.share):
            best = routes
        if context.deadline is not None and number + 1 < orders:
            context.remaining()
    assert best is not None
    metrics = {**route_metrics(data, best), "orders": orders, "seed": context.task.seed}
    return Answer.heuristic(values_of(data, best), "load-aware shortest paths", metrics)


def load_aware_routes(data: PathFlow, seed: int) -> PathSet:
    """The routes of one random order of pairs."""
    from opticoll.solvers.methods.flows.local_search import lightest_path

    topology = data.topology
    sources, targets = data.commodities
    weight = np.full(topology.arcs, float(data.amount.sum() + 1))
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    listed = None if data.rule.unrestricted else data.paths
    routes: list[list[int]] = [[] for _ in range(sources.size * data.kappa)]
    taken = np.zeros(0 if listed is None else listed.paths, dtype=bool)
    buffer = np.empty(topology.n, dtype=np.int64)
    for route in np.random.default_rng(seed).permutation(sources.size * data.kappa).tolist():
        k = route // data.kappa
        if listed is None:
            count = lightest_path(first_out, topology.head, topology.tail, weight, sources[k], targets[k], buffer)
            arcs = buffer[:count].tolist()
        else:
            allowed = [p for p in listed.of_pair(k) if not taken[p]]
            path = allowed[int(np.argmin([weight[listed.path(p)].sum() for p in allowed]))]
            arcs = listed.path(path)
            taken[path] = True
        weight[arcs] += data.share[k] / topology.capacity[arcs]
        routes[route] = arcs
    return routes_from(data, routes)


SSSP = Method(
    name="sssp",
    title="Load-aware shortest paths (METHOD)",
    summary="the paper's greedy heuristic: pairs in random order take a lightest path, whose arcs gain weight; seeded",
    serves=SINGLE_PATH,
    parameters=(Parameter("orders", int, default=1, help="random orders, by consecutive seeds; the best is kept"),),
    run=run_sssp,
    refuse=lambda data: single_only(data.routing, "sssp over all paths") if data.routing.rule.unrestricted else None,
)


def run_lp_rounding(context: Context) -> Answer:
    """Randomised rounding of a concurrent flow to one path per pair.

    Source  Raghavan & Thompson, Combinatorica 7, 1987

    The concurrent flow over the same paths is solved by column generation. Every pair then takes one of its paths
    with its share as probability, ``tries`` times, and the best routing is kept. The fluid optimum, rounded up to whole
    paths, is the bound.
    """
    data: PathFlow = context.data.routing
    listed = None if data.rule.kind == "all" else data.paths
    fluid = generate(
        data.topology,
        data.commodities,
        pricing_for(data.topology, data.commodities, data.rule, listed),
        tol=1e-7,
        context=context,
        algorithm="auto",
        amount=data.amount / data.amount.mean(),
    )
    paths, share = fluid.used(1e-7)
    fluid_time = fluid.time * float(data.amount.mean())
    tries = int(context.parameters["tries"])
    routes = draw_different(paths, share, data.amount, 1, np.random.default_rng(context.task.seed), tries)
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, routes),
        duals={"capacity": fluid.best.lengths},
        solver=fluid.master.solver("randomised rounding"),
        metrics={
            **route_metrics(data, routes),
            "fluid_time": fluid_time,
            "load_over_fluid": worst_load(routes, data.amount) / fluid_time,
            "tries": tries,
            "seed": context.task.seed,
        },
        message="a heuristic: it stops without trying to prove anything",
    )


LP_ROUNDING = Method(
    name="lp-rounding",
    title="Column generation, then randomised rounding",
    summary="one path per pair, drawn with probability equal to its share of the LP optimum; best of several; seeded",
    serves=SINGLE_PATH,
    parameters=(Parameter("tries", int, default=50, help="independent roundings; the best is kept"),),
    run=run_lp_rounding,
    refuse=lambda data: single_only(data.routing, "lp-rounding"),
)


METHODS = (
    SSSP,
    LP_ROUNDING,
)
