"""Routes of shards read off flows, and their division into whole chunks.

A route is a share of a commodity along one path, with or without time steps. Every formulation whose solutions hold the
flow of each commodity has a reader here.

Chunks. Every shard is cut into D equal chunks, and every route carries a whole number of them. With weights w_r of the
routes of a commodity (sum 1) and q_r chunks on route r (sum D), the time of the cut schedule is
sum_t max_a load_at(q / D) / c_a over the cells (arc, step), or max_a load_a / c_a for routes without steps. The
smallest D <= ``most`` that keeps every weight (up to round-off) costs nothing. If there is none, each D is rounded by
largest remainders, and for the best few D chunks are moved between routes of a commodity while that shortens the
schedule. The resulting loss is always reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.flows.concurrent_flow import commodities
from opticoll.formulations.flows.single_source import WeightedPath, strip_paths
from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.formulations.alltoall.timestep_mcf import StepFlow
    from opticoll.instances.digraph import Topology

    Values = Mapping[str, NDArray[np.float64]]


#: Smaller shares of a commodity are solver noise and go to the other routes.
NOISE = 1e-7
#: Relative increase in time up to which a division into chunks counts as free of loss.
KEPT = 1e-6
#: Most moves of single chunks, each of which must improve the schedule.
MOVES = 400
#: Most values of D that are improved by moves, and most routes of all of them together.
IMPROVED = 6
IMPROVED_ROUTES = 6000


@dataclass(frozen=True)
class Route:
    """A path from ``source`` to ``target`` (vertices) with its share of the commodity.

    ``arcs`` are arc numbers from the source on; ``steps`` the step (from 0, ascending) in which each is used, None for
    routes without time. The weights of a commodity's routes sum to 1.
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
        If solutions of the formulation do not hold the flow of every commodity.
    """
    refuse_without_routes(name)
    return _READERS[name](data, values)


def refuse_without_routes(name: str) -> None:
    """Refuse formulations whose solutions hold no routes.

    Raises
    ------
    NotApplicable
        If ``name`` is such a formulation.
    """
    if name not in _READERS:
        msg = f"{name}: its solutions hold no routes for a schedule; solve one of {', '.join(_READERS)}"
        raise NotApplicable(msg)


def timed_routes(data: StepFlow, values: Values) -> list[Route]:
    """Routes with steps: paths of the flow in the time-expanded graph, without the waiting arcs."""
    from opticoll.formulations.alltoall.timestep_mcf import unroll, waiting

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
    """Paths of a flow; a shortfall by round-off, up to NOISE, is corrected when weights are normalised."""
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
        If the demand is not uniform.
    """
    if not data.uniform:
        msg = "alltoall.master: schedules need equal shards between ranks; solve with demand=uniform, or use --paths"
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
    """Drop the steps, and join routes of a pair that differ only in their steps."""
    pairs: dict[tuple[int, int], list[Route]] = {}
    for r in routes:
        pairs.setdefault((r.source, r.target), []).append(Route(r.source, r.target, r.arcs, r.weight))
    return [route for ways in pairs.values() for route in _merged(ways)]


def _merged(routes: list[Route]) -> list[Route]:
    """The routes of one commodity with equal paths joined, noise dropped, and weights that sum to 1."""
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
    """One shortest path per pair, without steps; needs no flow."""
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
    from opticoll.formulations.alltoall.path_mcf import decode

    found: list[Route] = []
    for (source, target), ways in sorted(decode(data, values).items()):
        found += _merged([Route(source, target, tuple(way.arcs), way.amount) for way in ways])
    return found


def single_routes(data: Any, values: Values) -> list[Route]:
    """One path per pair (min-congestion), without steps."""
    from opticoll.formulations.alltoall.min_congestion import decode

    return [Route(s, t, tuple(arcs), 1.0) for (s, t), arcs in sorted(decode(data, values).items())]


_READERS: dict[str, Callable[[Any, Values], list[Route]]] = {
    "alltoall.timestep-mcf": timed_routes,
    "alltoall.master": source_routes,
    "alltoall.link-mcf": commodity_routes,
    "alltoall.path-mcf": path_routes,
    "alltoall.min-congestion": single_routes,
}


@dataclass(frozen=True)
class Chunked:
    """Routes and the number of chunks that each carries, of ``chunks`` per shard.

    ``fluid_time`` is the time with fractional shares, ``time`` with whole chunks; ``loss`` is time / fluid_time - 1.
    """

    routes: tuple[Route, ...]
    carried: NDArray[np.int64]
    chunks: int
    fluid_time: float
    time: float

    @property
    def loss(self) -> float:
        """Relative increase in time by whole chunks, at least 0."""
        return max(self.time / self.fluid_time - 1.0, 0.0) if self.fluid_time > 0 else 0.0


def cut(topology: Topology, routes: Sequence[Route], most: int = 24) -> Chunked:
    """Cut the routes into whole chunks, at most ``most`` per shard.

    Raises
    ------
    BadInput
        If ``most`` is less than 1, or there are no routes.
    """
    if most < 1 or not routes:
        msg = f"chunking: needs routes and at least one chunk per shard, not {len(routes)} routes and {most} chunks"
        raise BadInput(msg)
    cells = _Cells(topology, routes)
    weight = np.array([r.weight for r in routes])
    fluid = cells.time(weight)
    tried: list[tuple[float, int, NDArray[np.int64]]] = []
    for D in range(1, most + 1):
        carried = _rounded(weight, cells.commodity, D)
        time = cells.time(carried / D)
        if time <= fluid * (1 + KEPT):
            return Chunked(tuple(routes), carried, D, fluid, time)
        tried.append((time, D, carried))
    promising = sorted(tried, key=lambda one: one[:2])[: max(1, min(IMPROVED, IMPROVED_ROUTES // len(routes)))]
    moved = [(D, _move(cells, carried, D)) for _, D, carried in promising]
    times = [cells.time(carried / D) for D, carried in moved]
    # Among equally good divisions, use the coarsest.
    good = [i for i, time in enumerate(times) if time <= min(times) * (1 + KEPT)]
    chosen = min(good, key=lambda i: moved[i][0])
    return Chunked(tuple(routes), moved[chosen][1], moved[chosen][0], fluid, times[chosen])


def _rounded(weight: NDArray[np.float64], commodity: NDArray[np.int64], D: int) -> NDArray[np.int64]:
    """Round the shares to D chunks per commodity by largest remainders."""
    exact = weight * D
    whole = np.floor(exact + 1e-6).astype(np.int64)
    fraction = exact - whole
    rest = D - np.bincount(commodity, whole).astype(np.int64)
    order = np.lexsort((-fraction, commodity))
    start = np.searchsorted(commodity[order], np.arange(rest.size))
    position = np.arange(order.size) - start[commodity[order]]
    whole[order[position < rest[commodity[order]]]] += 1
    return whole


class _Cells:
    """The cells (arc, step) that every route uses, and the time of loads in them."""

    def __init__(self, topology: Topology, routes: Sequence[Route]) -> None:
        import scipy.sparse as sp

        m = topology.arcs
        timed = routes[0].steps is not None
        self.steps = 1 + max((r.steps[-1] for r in routes if r.steps), default=0) if timed else 1
        rows, columns = [], []
        for i, route in enumerate(routes):
            steps = route.steps or (0,) * len(route.arcs)
            rows += [t * m + a for a, t in zip(route.arcs, steps, strict=True)]
            columns += [i] * len(route.arcs)
        shape = (m * self.steps, len(routes))
        self.use: sp.csr_array = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        self.capacity = np.tile(topology.capacity, self.steps)
        pairs = np.array([(r.source, r.target) for r in routes])
        _, commodity = np.unique(pairs, axis=0, return_inverse=True)
        self.commodity: NDArray[np.int64] = np.asarray(commodity, dtype=np.int64).ravel()

    def relative(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Load divided by capacity, ``(steps, m)``."""
        return np.asarray((self.use @ shares) / self.capacity).reshape(self.steps, -1)

    def time(self, shares: NDArray[np.float64]) -> float:
        """Sum over the steps of the busiest arc's time."""
        return float(self.relative(shares).max(axis=1).sum())


def _move(cells: _Cells, carried: NDArray[np.int64], D: int) -> NDArray[np.int64]:
    """Move chunks off the busiest cells while that shortens the time, or reduces the number of busiest cells."""
    by_route, by_cell = cells.use.tocsc(), cells.use
    members = [np.flatnonzero(cells.commodity == k) for k in range(int(cells.commodity.max()) + 1)]
    carried = carried.copy()
    load = cells.relative(carried / D).ravel()
    m = load.size // cells.steps

    def cost(load: NDArray[np.float64]) -> tuple[float, int]:
        table = load.reshape(cells.steps, m)
        peak = table.max(axis=1)
        return round(float(peak.sum()), 12), int((table >= peak[:, None] - 1e-12).sum())

    def cells_of(r: int) -> NDArray[np.int64]:
        return np.asarray(by_route.indices[by_route.indptr[r] : by_route.indptr[r + 1]])

    now = cost(load)
    for _ in range(MOVES):
        table = load.reshape(cells.steps, m)
        busiest = np.flatnonzero((table >= table.max(axis=1, keepdims=True) - 1e-12).ravel() & (load > 0))
        better = None
        for cell in busiest.tolist():
            users = by_cell.indices[by_cell.indptr[cell] : by_cell.indptr[cell + 1]]
            for r in users[carried[users] > 0].tolist():
                for other in members[cells.commodity[r]].tolist():
                    if other == r or cell in cells_of(other):
                        continue
                    trial = load.copy()
                    trial[cells_of(r)] -= 1.0 / D / cells.capacity[cells_of(r)]
                    trial[cells_of(other)] += 1.0 / D / cells.capacity[cells_of(other)]
                    if cost(trial) < now:
                        better = (r, other, trial)
                        break
                if better:
                    break
            if better:
                break
        if better is None:
            break
        carried[better[0]] -= 1
        carried[better[1]] += 1
        load, now = better[2], cost(better[2])
    return carried
