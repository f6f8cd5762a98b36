"""Shares of a commodity along paths, read off flows of any formulation that has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.alltoall.concurrent_flow import commodities
from formulations.alltoall.path_stripping import WeightedPath, strip_paths
from formulations.base import NotApplicable
from instances.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from formulations.alltoall.timestep_mcf import StepFlow
    from instances.topology import Topology

    Values = Mapping[str, NDArray[np.float64]]

#: Shares below this of a commodity are noise of the solver and go to the other routes.
NOISE = 1e-7


@dataclass(frozen=True)
class Route:
    """A share of what ``source`` sends to ``target`` (vertices), and its way.

    ``arcs`` are arc numbers from the source on; ``steps`` the step (from 0, ascending) in which each is used, None
    where the route says nothing about time. The weights of a commodity's routes add up to 1.
    """

    source: int
    target: int
    arcs: tuple[int, ...]
    weight: float
    steps: tuple[int, ...] | None = None


def routes_of(name: str, data: Any, values: Values) -> list[Route]:
    """The routes of a solution of formulation ``name``, commodity by commodity.

    Raises
    ------
    NotApplicable
        If the formulation's solutions hold no flow of every commodity.
    """
    refuse_without_routes(name)
    return _READERS[name](data, values)


def refuse_without_routes(name: str) -> None:
    """Refuse formulations whose solutions hold no routes.

    Raises
    ------
    NotApplicable
        Naming those that do.
    """
    if name not in _READERS:
        msg = f"{name}: its solutions hold no routes for a schedule; solve one of {', '.join(_READERS)}"
        raise NotApplicable(msg)


def timed_routes(data: StepFlow, values: Values) -> list[Route]:
    """Routes with steps: paths of the flow in the graph unrolled over time, waiting left out."""
    from formulations.alltoall.time_expanded import unroll
    from formulations.alltoall.timestep_mcf import waiting

    topology, (_, groups, steps) = data.topology, data.shape
    f = np.maximum(np.asarray(values["f"], dtype=float), 0.0)
    unrolled = unroll(topology, steps)
    flow = np.zeros((unrolled.graph.arcs, groups))
    flow[unrolled.moving] = f.transpose(0, 2, 1)
    flow[unrolled.waiting] = np.maximum(waiting(data, f), 0.0).transpose(0, 2, 1)
    found: list[Route] = []
    for k, source in enumerate(data.groups.sources.tolist()):
        targets = np.flatnonzero(data.groups.demand[:, k] > 0)
        paths = _stripped(unrolled.graph, source, flow[:, k], targets + topology.n * steps, 1.0)
        for target, ways in zip(targets.tolist(), paths, strict=True):
            found += _merged([_timed(unrolled.arc, unrolled.step, source, target, way) for way in ways])
    return sorted(found, key=lambda r: (r.source, r.target))


def _stripped(
    topology: Topology, source: int, flow: NDArray[np.float64], targets: NDArray[np.int64], amount: float
) -> list[list[WeightedPath]]:
    """Paths of a flow that may bring a target too little by round-off: less than NOISE is scaled away in the routes."""
    try:
        return strip_paths(topology, source, flow, targets, amount)
    except BadInput:
        return strip_paths(topology, source, flow, targets, amount * (1.0 - NOISE))


def _timed(arc: NDArray[np.int64], step: NDArray[np.int64], source: int, target: int, way: WeightedPath) -> Route:
    moves = [a for a in way.arcs if arc[a] >= 0]
    return Route(source, target, tuple(arc[moves].tolist()), way.amount, tuple(step[moves].tolist()))


def source_routes(data: Any, values: Values) -> list[Route]:
    """Routes of a flow grouped by source (the master LP), without steps.

    Raises
    ------
    NotApplicable
        If what is sent is no all-to-all of equal shards.
    """
    if not data.uniform:
        msg = "alltoall.master: a schedule is of equal shards between all ranks; solve with demand=uniform, or --paths"
        raise NotApplicable(msg)
    topology, F = data.topology, float(np.asarray(values["F"]))
    found: list[Route] = []
    for i, source in enumerate(topology.terminals.tolist()):
        targets = np.delete(topology.terminals, i)
        ways = _stripped(topology, source, np.asarray(values["g"], dtype=float)[:, i], targets, F)
        found += _commodities(source, targets, ways)
    return found


def commodity_routes(data: Any, values: Values) -> list[Route]:
    """Routes of per-commodity flows (the link MCF), without steps."""
    topology, F = data.flow.topology, float(np.asarray(values["F"]))
    found: list[Route] = []
    for k, (source, target) in enumerate(zip(*(ends.tolist() for ends in commodities(topology)), strict=True)):
        flow = np.asarray(values["f"], dtype=float)[:, k]
        ways = _stripped(topology, source, flow, np.array([target]), F)
        found += _commodities(source, np.array([target]), ways)
    return found


def _commodities(source: int, targets: NDArray[np.int64], ways: list[list[WeightedPath]]) -> list[Route]:
    found: list[Route] = []
    for target, paths in zip(targets.tolist(), ways, strict=True):
        found += _merged([Route(source, target, tuple(p.arcs), p.amount) for p in paths])
    return found


def without_steps(routes: list[Route]) -> list[Route]:
    """The same shares as mere paths: those of a pair that differ only in their steps become one."""
    pairs: dict[tuple[int, int], list[Route]] = {}
    for r in routes:
        pairs.setdefault((r.source, r.target), []).append(Route(r.source, r.target, r.arcs, r.weight))
    return [route for ways in pairs.values() for route in _merged(ways)]


def _merged(routes: list[Route]) -> list[Route]:
    """One commodity's routes, equal ways joined and noise dropped, with weights that add up to 1."""
    weight: dict[tuple[tuple[int, ...], tuple[int, ...] | None], float] = {}
    for route in routes:
        key = (route.arcs, route.steps)
        weight[key] = weight.get(key, 0.0) + route.weight
    total = sum(weight.values())
    kept = {key: w for key, w in weight.items() if w > NOISE * total} or weight
    total = sum(kept.values())
    first = routes[0]
    return [Route(first.source, first.target, arcs, w / total, steps) for (arcs, steps), w in kept.items()]


def shortest_routes(topology: Topology) -> list[Route]:
    """One shortest path a pair, without steps: a schedule that needs no flow at all."""
    from scipy.sparse.csgraph import dijkstra

    graph = topology.length_matrix(np.ones(topology.arcs))
    _, parent = dijkstra(graph, indices=topology.terminals, unweighted=True, return_predecessors=True)
    first: dict[tuple[int, int], int] = {}
    for a, ends in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        first.setdefault(ends, a)
    found = []
    for i, source in enumerate(topology.terminals.tolist()):
        for target in np.delete(topology.terminals, i).tolist():
            arcs, v = [], target
            while v != source:
                u = int(parent[i, v])
                arcs.append(first[u, v])
                v = u
            found.append(Route(source, target, tuple(arcs[::-1]), 1.0))
    return found


def path_routes(data: Any, values: Values) -> list[Route]:
    """Routes of path variables (path MCF), without steps."""
    from formulations.alltoall.path_mcf import decode

    found: list[Route] = []
    for (source, target), ways in sorted(decode(data, values).items()):
        found += _merged([Route(source, target, tuple(way.arcs), way.amount) for way in ways])
    return found


def single_routes(data: Any, values: Values) -> list[Route]:
    """One path a pair (min-congestion), without steps."""
    from formulations.alltoall.min_congestion import decode

    return [Route(s, t, tuple(arcs), 1.0) for (s, t), arcs in sorted(decode(data, values).items())]


_READERS: dict[str, Callable[[Any, Values], list[Route]]] = {
    "alltoall.timestep-mcf": timed_routes,
    "alltoall.master": source_routes,
    "alltoall.link-mcf": commodity_routes,
    "alltoall.path-mcf": path_routes,
    "alltoall.min-congestion": single_routes,
}
