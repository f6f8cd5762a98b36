"""Route circuits with small overlap: straight or shortest routes, rerouted under negotiated congestion.

Source  McMurchie & Ebeling, PathFinder, FPGA 1995
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import MethodMismatch, NotApplicable, refuse
from opticoll.formulations.flows.path_sets import MOST_PATHS, PathRule, PathSet, build_path_set, path_set_of
from opticoll.formulations.lumorph.mesh_cuts import cut_bounds, grid_shape
from opticoll.formulations.lumorph.min_overlap import in_circuits
from opticoll.formulations.lumorph.overlap_solution import overlap
from opticoll.formulations.lumorph.route_sets import straight_routes
from opticoll.formulations.rounds.segments import offsets
from opticoll.solvers.methods.flows.exact_routing import next_load, pick, placed, union, units_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.methods.method import Context


#: Most reroutings per circuit in one attempt, and the smallest limit on their total.
EFFORT, LEAST_EFFORT = 30, 4000
#: Steps between two checks of the clock.
SLICE = 10_000
#: Most shortest paths of a circuit among which it is rerouted.
CANDIDATES = 8
#: Relative difference up to which two overlaps are equal.
EQUAL = 1e-9


@dataclass(frozen=True)
class OverlapRoutes:
    """One route per circuit as a path set in circuit order, its overlap, and the bound and name of the best cut."""

    routes: PathSet
    load: float
    bound: float
    cut: str


def min_overlap_routes(
    topology: Topology,
    sources: I64,
    targets: I64,
    *,
    seed: int = 0,
    go_on: Callable[[], bool] | None = None,
) -> OverlapRoutes:
    """Routes of small overlap for circuits ``sources[k] -> targets[k]``, vertices, each ``(K,)``.

    XY routes on a grid (shortest ones where those are broken, or there is no grid); unless these meet the best cut,
    rerouting under negotiated congestion towards that cut, then towards each load above it. The search stops when
    ``go_on()`` is false. Deterministic for a ``seed`` unless it is stopped.

    Raises
    ------
    NotApplicable
        If a circuit has no path, or there are too many circuits for this graph.
    """
    topology = in_circuits(topology)
    cut = cut_bounds(topology, (sources, targets))[0]
    routes = straight_or_shortest(topology, sources, targets)
    load, least = overlap(routes), max(cut.value, 1.0 / float(topology.capacity.max(initial=1.0)))
    goal, number = least, 0
    paths: PathSet | None = None
    most = max(EFFORT * sources.size, LEAST_EFFORT)
    few = min(CANDIDATES, MOST_PATHS // max(sources.size, 1))
    while goal < load * (1 - EQUAL) and few > 1 and (go_on is None or go_on()):
        if paths is None:
            paths = union(build_path_set(topology, PathRule("k", few), "overlap", (sources, targets)), routes)
        candidate = negotiated(paths, routes, goal, seed=seed + number, most=most, go_on=go_on)
        if overlap(candidate) < load:
            routes, load = candidate, overlap(candidate)
        if load <= goal * (1 + EQUAL):
            break
        goal, number = next_load(goal, topology.capacity), number + 1
    return OverlapRoutes(routes, load, least, cut.name)


def straight_or_shortest(topology: Topology, sources: I64, targets: I64) -> PathSet:
    """Row-first (XY) routes on a grid, a shortest path wherever that is broken or there is no grid.

    Raises
    ------
    NotApplicable
        If a circuit has no path.
    """
    shape = grid_shape(topology)
    if shape is None:
        length, arcs = np.zeros(sources.size, dtype=np.int64), np.zeros(0, dtype=np.int64)
        is_straight = np.zeros(sources.size, dtype=bool)
    else:
        start, arcs, is_straight = straight_routes(topology, sources, targets, "columns", columns=shape[1])
        length = np.diff(start)
    if is_straight.all():
        return _in_order(topology, sources, targets, arcs, length)
    rest = np.flatnonzero(~is_straight)
    straight = _in_order(topology, sources, targets, arcs, length)
    shortest = shortest_routes(topology, sources[rest], targets[rest], None)
    paths = [list(straight.path(k)) for k in range(straight.paths)]
    for i, k in enumerate(rest.tolist()):
        paths[k] = shortest.path(i)
    return path_set_of(topology, paths, np.arange(len(paths)), (sources, targets))


def shortest_routes(topology: Topology, sources: I64, targets: I64, random: np.random.Generator | None) -> PathSet:
    """A shortest path per circuit: uniform among all of them with ``random``, else the first by arc numbers.

    Paths with the fewest arcs are counted back from the target; each step takes an arc in proportion to the number of
    shortest paths that continue from it.

    Raises
    ------
    NotApplicable
        If a circuit has no path.
    """
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    paths: list[list[int]] = [[] for _ in range(sources.size)]
    tails, heads = topology.tail, topology.head
    distances = topology.distances(np.ones(topology.arcs))
    for k in np.flatnonzero(np.isinf(distances[sources, targets]))[:1]:
        u, v = topology.labels[sources[k]], topology.labels[targets[k]]
        refuse(topology.spec, f"no path from {u} to {v}", NotApplicable)
    for target in np.unique(targets).tolist():
        hops, routed = distances[:, target], np.flatnonzero(targets == target)
        closer = np.isfinite(hops[tails]) & (hops[heads] == hops[tails] - 1)
        ways = np.zeros(topology.n)
        ways[target] = 1.0
        for distance in range(1, int(hops[sources[routed]].max()) + 1):
            steps = np.flatnonzero(closer & (hops[tails] == distance))
            ways += np.bincount(tails[steps], ways[heads[steps]], topology.n)
        for k in routed.tolist():
            v = int(sources[k])
            while v != target:
                out = np.arange(first_out[v], first_out[v + 1])
                out = out[closer[out]]
                arc = int(out[0])
                if random is not None and out.size > 1:
                    share = np.cumsum(ways[heads[out]])
                    arc = int(out[np.searchsorted(share, random.random() * share[-1], side="right")])
                paths[k].append(arc)
                v = int(heads[arc])
    return path_set_of(topology, paths, np.arange(len(paths)), (sources, targets))


def _in_order(topology: Topology, sources: I64, targets: I64, arcs: I64, length: I64) -> PathSet:
    return PathSet(topology, sources, targets, arcs, offsets(length), np.arange(sources.size))


def negotiated(
    paths: PathSet, routes: PathSet, goal: float, *, seed: int, most: int, go_on: Callable[[], bool] | None = None
) -> PathSet:
    """Routes among ``paths`` of smaller total overload above an overlap of ``goal`` (0 if it is met).

    ``go_on`` is checked after every :data:`SLICE` of at most ``most`` steps.
    """
    from opticoll.solvers.methods.flows.local_search import reroute

    limit, choice = units_within(goal, paths.topology.capacity, 1.0), placed(paths, routes, 1)
    one, left, over = np.ones(paths.pairs, dtype=np.int64), most, 1
    while left > 0 and over > 0 and (go_on is None or go_on()):
        over, steps = reroute(paths.first, paths.start, paths.arcs, one, limit, choice, seed, min(left, SLICE))
        left, seed = left - max(steps, 1), seed + 1
    return pick(paths, choice)


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
