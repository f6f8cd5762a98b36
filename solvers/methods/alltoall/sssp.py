"""Method ``sssp``: one load-aware shortest path for every pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.exact_routing import (
    SINGLE_PATH,
    route_metrics,
    routes_from,
    single_only,
    values_of,
    worst_load,
)
from opticoll.solvers.methods.method import Answer, Method

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
            arcs = buffer[:count].copy()
        else:
            allowed = [p for p in listed.of_pair(k) if not taken[p]]
            path = min(allowed, key=lambda p: float(weight[listed.arcs[listed.start[p] : listed.start[p + 1]]].sum()))
            arcs = listed.arcs[listed.start[path] : listed.start[path + 1]]
            taken[path] = True
        weight[arcs] += data.share[k] / topology.capacity[arcs]
        routes[route] = arcs.tolist()
    return routes_from(data, routes)


METHOD = Method(
    name="sssp",
    title="Load-aware shortest paths (METHOD)",
    summary="the paper's greedy heuristic: pairs in random order take a lightest path, whose arcs gain weight; seeded",
    serves=SINGLE_PATH,
    parameters=(Parameter("orders", int, default=1, help="random orders, by consecutive seeds; the best is kept"),),
    run=run_sssp,
    refuse=lambda data: single_only(data.routing, "sssp over all paths") if data.routing.rule.unrestricted else None,
)
