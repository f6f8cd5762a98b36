"""Routes of shards read off flows, and their division into whole chunks.

A route is a share of a commodity along one path, with or without time steps. Every formulation whose solutions hold the
flow of each commodity has a reader here.

Chunks. Every shard (of a demand, the amount of a pair) is cut into D equal chunks, and every route carries a whole
number of them. With weights w_r of the routes of a commodity (sum 1) and q_r chunks on route r (sum D), the time of the
cut schedule is sum_t max_a load_at(q / D) / c_a over the cells (arc, step), or max_a load_a / c_a for routes without
steps. For every allowed D the weights are rounded by largest remainders, and chunks are moved between routes of a
commodity while that lowers the peaks (:func:`opticoll.solvers.schedules.schedule_kernels.balance`). If the best
division still loses more than 1 %, shortest paths are added to the routes and everything is tried again. The smallest D
whose time is within 0.1 % of the best is used. The loss of every D that was tried is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import declared_axes
from opticoll.formulations.alltoall.time_expansion import over_time
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.path_sets import subset
from opticoll.formulations.model import Formulation, is_own
from opticoll.formulations.variables import rank_pairs
from opticoll.instances.topology import Topology
from opticoll.instances.translations import moved_arcs, translations
from opticoll.solvers.schedules.timed_paths import NOISE, timed_paths, ways

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opticoll.formulations.alltoall.timestep_mcf import StepFlow
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.topology import F64, I64

    Values = Mapping[str, F64]


#: Relative increase in time up to which a division into chunks counts as free of loss, and up to which a smaller number
#: of chunks is preferred; above the last one, shortest paths are added.
KEPT, PREFERRED, LOSSY = 1e-6, 1e-3, 1e-2
#: Loss at which more chunks are not tried when there are this many.
ENOUGH, LARGE = 5e-3, 100_000
#: Numbers of chunks that are tried: powers of two divide buffers; others where each of them loses more than LOSSY.
POWERS = (1, 2, 4, 8, 16)
OTHERS = tuple(D for D in range(3, 25) if D not in POWERS)
#: Steepness of the potential in the sweeps of a descent, relative to the largest load; restarts for small instances.
SWEEPS = (10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0)
RESTARTS, SMALL = 4, 20_000
#: Transfers of chunks above which a loss of :data:`LOSSY` is enough.
MANY_TRANSFERS = 1_000_000
#: Transfers of chunks above which a division is not tried, routes above which none are added, most added for a pair.
MOST_TRANSFERS, MOST_ROUTES, ADDED = 4_000_000, 100_000, 8
_pair = attrgetter("source", "target")


@dataclass(frozen=True)
class Route:
    """A path from ``source`` to ``target`` (vertices) with its share of the commodity.

    ``arcs`` are arc numbers from the source on; ``steps`` the step (from 0, ascending) in which each is used, None for
    routes without time. The weights of a commodity's routes sum to 1; ``amount`` is what the commodity sends [shards].
    ``layer`` is the virtual channel that it takes on all its arcs, from 1; None if the solution assigns none.
    """

    source: int
    target: int
    arcs: tuple[int, ...]
    weight: float
    steps: tuple[int, ...] | None = None
    amount: float = 1.0
    layer: int | None = None


@dataclass(frozen=True, eq=False)
class Routes(Sequence[Route]):
    """Routes in flat arrays: route r has ``arcs[first[r] : first[r + 1]]``, and ``steps`` there if it is timed.

    ``layer``, ``(routes,)``, has the virtual channels, if all routes have one.
    """

    source: I64
    target: I64
    first: I64
    arcs: I64
    weight: F64
    amount: F64
    steps: I64 | None = None
    layer: I64 | None = None

    @classmethod
    def of(cls, routes: Sequence[Route]) -> Routes:
        """The arrays of any sequence of routes."""
        if isinstance(routes, Routes):
            return routes
        ends = np.array([(r.source, r.target) for r in routes], dtype=np.int64).reshape(-1, 2)
        first = np.concatenate([[0], np.cumsum([len(r.arcs) for r in routes], dtype=np.int64)])
        timed = bool(routes) and routes[0].steps is not None
        layers = [r.layer for r in routes if r.layer is not None]
        return cls(
            ends[:, 0],
            ends[:, 1],
            first,
            np.array([a for r in routes for a in r.arcs], dtype=np.int64),
            np.array([r.weight for r in routes], dtype=float),
            np.array([r.amount for r in routes], dtype=float),
            np.array([t for r in routes for t in r.steps or ()], dtype=np.int64) if timed else None,
            np.array(layers, dtype=np.int64) if len(layers) == len(routes) > 0 else None,
        )

    @classmethod
    def along(cls, paths: PathSet, weight: F64, amount: F64, layer: I64 | None = None) -> Routes:
        """Routes along paths, with their weights ``(|P|,)`` and what the commodities send ``(|K|,)``."""
        pair = paths.pair
        return cls(paths.sources[pair], paths.targets[pair], paths.start, paths.arcs, weight, amount[pair], None, layer)

    def __len__(self) -> int:
        return self.source.size

    @overload
    def __getitem__(self, index: int) -> Route: ...
    @overload
    def __getitem__(self, index: slice) -> list[Route]: ...
    def __getitem__(self, index: int | slice) -> Route | list[Route]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        r = range(len(self))[index]
        part = slice(self.first[r], self.first[r + 1])
        return Route(
            int(self.source[r]),
            int(self.target[r]),
            tuple(self.arcs[part].tolist()),
            float(self.weight[r]),
            None if self.steps is None else tuple(self.steps[part].tolist()),
            float(self.amount[r]),
            None if self.layer is None else int(self.layer[r]),
        )

    def of_source(self, source: int) -> Routes:
        """The routes of one source."""
        which = np.flatnonzero(self.source == source)
        return self.only(which, self.weight[which])

    def only(self, which: I64, weight: F64) -> Routes:
        """These routes, with these weights, without virtual channels."""
        length = np.diff(self.first)[which]
        first = np.concatenate([[0], np.cumsum(length)])
        part = np.arange(first[-1]) - np.repeat(first[:-1] - self.first[which], length)
        steps = None if self.steps is None else self.steps[part]
        source, target, amount = self.source[which], self.target[which], self.amount[which]
        return Routes(source, target, first, self.arcs[part], weight, amount, steps)

    def moved(self, vertices: I64, arcs: I64) -> Routes:
        """The routes under every translation, given as images of vertices and arcs, ``(g, n)`` and ``(g, m)``."""
        g = len(vertices)
        length = np.tile(np.diff(self.first), g)
        return Routes(
            vertices[:, self.source].ravel(),
            vertices[:, self.target].ravel(),
            np.concatenate([[0], np.cumsum(length)]),
            arcs[:, self.arcs].ravel(),
            np.tile(self.weight, g),
            np.tile(self.amount, g),
            None if self.steps is None else np.tile(self.steps, g),
        )

    @cached_property
    def commodity(self) -> I64:
        """Number of the pair (source, target) of every route, ascending by pair."""
        key = self.source * (int(self.target.max(initial=0)) + 1) + self.target
        return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)


def routes_of(name: str, data: Any, values: Values) -> Sequence[Route]:
    """The routes of a solution of formulation ``name``, commodity by commodity.

    Raises
    ------
    NotApplicable
        If solutions of the formulation do not hold the flow of every commodity.
    """
    if isinstance(data, Formulation) and is_own(data) and isinstance(data.instance, Topology):
        flow = _source_flow(data, values)
        if flow is not None:
            traffic = declared_axes.stated_traffic(data)
            grouped = ConcurrentFlow.by_source(data.instance, traffic)
            sent = flow if traffic is None else flow[:, traffic.any(axis=1)]
            return _by_source(grouped, sent)
    refuse_without_routes(name)
    return _READERS[name](data, values)


def routes_in_steps(name: str, data: Any, topology: Topology, values: Values) -> Sequence[Route]:
    """As :func:`routes_of`, for a schedule in steps, between which a vertex that only forwards may hold data."""
    routes = routes_of(name, data, values)
    stored = topology.num_ranks < topology.n and getattr(data, "relays", None) != "pass"
    return without_steps(routes) if stored else routes


def refuse_without_routes(name: str) -> None:
    """Refuse formulations whose solutions hold no routes.

    Raises
    ------
    NotApplicable
        If ``name`` is such a formulation.
    """
    if name not in _READERS:
        refuse(name, f"its solutions hold no routes for a schedule; solve one of {', '.join(_READERS)}", NotApplicable)


def timed_routes(data: StepFlow, values: Values) -> Sequence[Route]:
    """Routes with steps: paths of the flow in the time-expanded graph, without the waiting arcs.

    If translations take the flow of the first source to those of all others, its routes are translated.
    """
    f = np.maximum(np.asarray(values["f"], dtype=float), 0.0)
    topology, sources = data.topology, data.groups.sources
    images = translations(topology) if np.array_equal(sources, np.arange(topology.n)) else None
    if images is not None and len(images) == topology.n and data.groups.uniform:
        arcs = moved_arcs(topology, images)
        most = NOISE * f.max(initial=0.0)
        if all(np.abs(f[moved, image[0]] - f[:, 0]).max() <= most for image, moved in zip(images, arcs, strict=True)):
            mine = Routes.of(_stripped_steps(data, f, [0]))
            return mine.moved(images, arcs)
    return sorted(_stripped_steps(data, f, range(sources.size)), key=_pair)


def _stripped_steps(data: StepFlow, f: F64, columns: Sequence[int]) -> list[Route]:
    """Routes with steps of these groups of sources, in the flow ``(m, K, L)``."""
    flow = over_time(data, f)
    routes: list[Route] = []
    for k in columns:
        source = int(data.groups.sources[k])
        for target, paths in timed_paths(data, flow, k):
            listed = [Route(source, target, path.arcs, path.amount, path.steps) for path in paths]
            routes += merged(listed, float(data.groups.demand[target, k]))
    return routes


def chunk_routes(data: Any, values: Values) -> list[Route]:
    """Routes of whole chunks with steps (SCCL's program)."""
    routes = sorted((Route(way[0], way[1], way[2], 1.0, way[3]) for way in ways(data, values)), key=_pair)
    return [route for _, group in groupby(routes, key=_pair) for route in merged(list(group), 1.0)]


def source_routes(data: Any, values: Values) -> Sequence[Route]:
    """Routes of a flow grouped by source (the master LP), without steps."""
    return _by_source(data.flow, np.asarray(values["g"], dtype=float))


def commodity_routes(data: Any, values: Values) -> Sequence[Route]:
    """Routes of per-commodity flows (the link MCF), without steps: those of the master's flow, which is their sum.

    Raises
    ------
    NotApplicable
        For the sink-inflow reading of the link MCF, whose flows may start at a destination.
    """
    flow = data.flow
    if data.printed:
        msg = "alltoall.link-mcf: flows of printed=true need not start at their source; solve without printed=true"
        raise NotApplicable(msg)
    sources, group = np.unique(flow.sources, return_inverse=True)
    g, f = np.zeros((flow.topology.arcs, sources.size)), np.asarray(values["f"], dtype=float)
    np.add.at(g.T, group, f.T)
    return _by_source(ConcurrentFlow.by_source(flow.topology, flow.traffic), g)


def _by_source(data: ConcurrentFlow, g: F64) -> Routes:
    """The routes of :mod:`opticoll.solvers.schedules.weighted_paths`, without noise."""
    from opticoll.solvers.schedules.weighted_paths import from_flow

    paths, rate, F = from_flow(data, g)
    shards = data.demanded()[2]
    weight = rate / (F * shards[paths.pair])
    kept, weight = subset(paths, weight > NOISE), weight[weight > NOISE]
    return Routes.along(kept, weight / np.bincount(kept.pair, weight)[kept.pair], shards)


def without_steps(routes: Sequence[Route]) -> Sequence[Route]:
    """Drop the steps, and join routes of a pair that differ only in their steps."""
    if isinstance(routes, Routes) and routes.steps is None:
        return routes
    pairs: dict[tuple[int, int], list[Route]] = {}
    for r in routes:
        pairs.setdefault((r.source, r.target), []).append(Route(r.source, r.target, r.arcs, r.weight, amount=r.amount))
    return [route for ways in pairs.values() for route in merged(ways, ways[0].amount)]


def merged(routes: list[Route], amount: float) -> list[Route]:
    """The routes of one commodity with equal paths joined, noise dropped, and weights that sum to 1."""
    weight: dict[tuple[tuple[int, ...], tuple[int, ...] | None], float] = {}
    for route in routes:
        key = (route.arcs, route.steps)
        weight[key] = weight.get(key, 0.0) + route.weight
    total = sum(weight.values())
    heavy = {key: w for key, w in weight.items() if w > NOISE * total} or weight
    total = sum(heavy.values())
    first = routes[0]
    return [Route(first.source, first.target, arcs, w / total, steps, amount) for (arcs, steps), w in heavy.items()]


def path_routes(data: Any, values: Values) -> list[Route]:
    """Routes of path variables (path MCF), without steps, largest flow of a pair first.

    Raises
    ------
    NotApplicable
        If the values do not give one number for every path.
    """
    from opticoll.formulations.flows.path_flow import known_paths

    paths, f = known_paths(data.routing, values), np.asarray(values["f"], dtype=float)
    if f.shape != (paths.paths,):
        refuse(data.name, "the values do not give one number for every path", NotApplicable)
    ends = zip(paths.sources.tolist(), paths.targets.tolist(), data.routing.amount.tolist(), strict=True)
    routes: list[Route] = []
    for k, (s, t, amount) in enumerate(ends):
        ways = sorted((p for p in paths.of_pair(k) if f[p] > 0), key=lambda p: -f[p])
        routes += merged([Route(s, t, tuple(paths.path(p)), float(f[p])) for p in ways], amount)
    return routes


def single_routes(data: Any, values: Values) -> Routes:
    """One path per pair, or kappa with equal shares (min-congestion), without steps."""
    from opticoll.formulations.flows.path_flow import chosen_paths

    routes = chosen_paths(data.routing, values)
    return Routes.along(routes, np.full(routes.paths, 1.0 / data.routing.kappa), data.routing.amount)


def layered_routes(data: Any, values: Values) -> Routes:
    """One path per pair with its virtual channel (channels, virtual-channels), without steps."""
    from opticoll.formulations.alltoall import channels_routes
    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.formulations.alltoall.virtual_channels_solution import layers_of

    if isinstance(data, RoutedChannels):
        found = channels_routes.taken(data, values)
        if found is None:
            refuse(data.name, "the values do not give every pair exactly one path and layer", NotApplicable)
        given, layer = found
        amount = data.routing.amount
    else:
        given, assigned = data.known_routes, layers_of(data, values)
        assert assigned is not None
        layer, amount = assigned, np.ones(given.paths)
    return Routes.along(given, np.ones(given.paths), amount, layer + 1)


_READERS: dict[str, Callable[[Any, Values], Sequence[Route]]] = {
    "alltoall.timestep-mcf": timed_routes,
    "alltoall.sccl": chunk_routes,
    "alltoall.master": source_routes,
    "alltoall.link-mcf": commodity_routes,
    "alltoall.path-mcf": path_routes,
    "alltoall.few-paths": path_routes,
    "alltoall.min-congestion": single_routes,
    "alltoall.virtual-channels": layered_routes,
    "alltoall.channels": layered_routes,
}


#: Formulations that limit the routes of a pair, so that cutting may not take others.
LIMITED = frozenset({"alltoall.few-paths"})


@dataclass(frozen=True, eq=False)
class Chunked:
    """Routes and the number of chunks that each carries, of ``chunks`` per shard.

    ``fluid_time`` is the time with fractional shares, ``time`` with whole chunks; ``loss`` is time / fluid_time - 1.
    ``prices`` is the time for every number of chunks that was tried.
    """

    routes: Routes
    carried: I64
    chunks: int
    fluid_time: float
    time: float
    prices: dict[int, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """Relative increase in time by whole chunks, at least 0."""
        return max(self.time / self.fluid_time - 1.0, 0.0) if self.fluid_time > 0 else 0.0


def amounts_of(topology: Topology, chunked: Chunked) -> dict[tuple[int, int], float] | None:
    """What every pair sends; None if it is 1 between all ranks."""
    routes = chunked.routes
    pairs = int(routes.commodity.max(initial=-1)) + 1
    if pairs == topology.num_ranks * (topology.num_ranks - 1) and (routes.amount == 1.0).all():
        return None
    ends = zip(routes.source.tolist(), routes.target.tolist(), strict=True)
    return dict(zip(ends, routes.amount.tolist(), strict=True))


def uncut(topology: Topology, routes: Sequence[Route], chunks: int | Sequence[int] | None = None) -> Chunked:
    """Routes that are kept as they are, one for every pair, each with all chunks of its shard.

    ``chunks`` per shard as in :func:`cut`, the smallest of several; 1 if None. No division loses anything.
    """
    D = 1 if chunks is None else chunks if isinstance(chunks, int) else min(chunks)
    given = Routes.of(routes)
    time = float(_Cells(topology, given, None).fluid.sum())
    return Chunked(given, np.full(len(given), D), D, time, time, {D: time})


def cut(
    topology: Topology, routes: Sequence[Route], chunks: int | Sequence[int] | None = None, *, fixed: bool = False
) -> Chunked:
    """Cut the routes into whole chunks.

    Parameters
    ----------
    topology, routes
        The graph, and the shares of every commodity on its routes.
    chunks
        Chunks per shard: this many, one of these numbers, or (None) a power of two up to 16, and other numbers up to 24
        if every power of two loses more than 1 %.
    fixed
        No other routes are taken, however much that loses.
    """
    given = Routes.of(routes)
    fluid = _Cells(topology, given, None).fluid
    moves = None if fixed else _moves(topology, given)
    numbers = POWERS if chunks is None else (chunks,) if isinstance(chunks, int) else chunks
    alike = None if moves is None else _translated(topology, given, fluid, moves, numbers)
    enough = LOSSY if len(given) > MOST_ROUTES else KEPT
    if alike is not None and alike.loss <= enough:
        return alike
    best = _divided(topology, given, fluid, numbers)
    best = best if alike is None else _better(best, alike)
    if best.loss > LOSSY and not fixed and given.steps is None and len(given) <= MOST_ROUTES:
        best = _better(best, _divided(topology, _with_shortest(topology, given), fluid, sorted(best.prices)))
    if best.loss > LOSSY and chunks is None:
        best = _better(best, _divided(topology, best.routes, fluid, OTHERS))
    return best


def _better(first: Chunked, second: Chunked) -> Chunked:
    """The shorter one, with the prices of both."""
    prices = {
        D: min(first.prices.get(D, np.inf), second.prices.get(D, np.inf))
        for D in sorted({*first.prices, *second.prices})
    }
    return replace(second if second.time < first.time * (1 - PREFERRED) else first, prices=prices)


def _divided(
    topology: Topology, routes: Routes, fluid: F64, allowed: Sequence[int], label: I64 | None = None
) -> Chunked:
    """The best division among these numbers of chunks; the first one is always tried."""
    cells = _Cells(topology, routes, fluid, label)
    whole = float(fluid.sum())
    results: list[Chunked] = []
    pairs, hops = int(routes.commodity.max()) + 1, float(routes.weight @ np.diff(routes.first))
    for D in sorted(allowed):
        if results and D * hops * (1 if label is None else topology.n) > MOST_TRANSFERS:
            break
        carried = _rounded(routes.weight, routes.commodity, D)
        time = cells.time(carried / D)
        if time > whole * (1 + KEPT):
            carried, time = cells.balanced(carried, D, time)
        results.append(Chunked(routes, carried, D, whole, time))
        sent = D * hops * (1 if label is None else topology.n)
        enough = LOSSY if sent > MANY_TRANSFERS else ENOUGH if D * pairs > LARGE else KEPT
        if results[-1].loss <= enough:
            break
    shortest = min(one.time for one in results)
    chosen = next(one for one in results if one.time <= max(shortest, whole) * (1 + PREFERRED))
    return replace(chosen, prices={one.chunks: one.time for one in results})


def _moves(topology: Topology, routes: Routes) -> tuple[I64, I64] | None:
    """Images of vertices and arcs under translations that take the first rank to every rank; None if there are none.

    They are used where every pair of vertices has routes for an equal amount.
    """
    ranks, amount = topology.terminals, routes.amount
    pairs = int(routes.commodity.max(initial=-1)) + 1
    if ranks.size != topology.n or pairs != ranks.size * (ranks.size - 1) or amount.min() < amount.max():
        return None
    images = translations(topology)
    return (images, moved_arcs(topology, images)) if len(images) == topology.n else None


def _translated(
    topology: Topology, routes: Routes, fluid: F64, moves: tuple[I64, I64], allowed: Sequence[int]
) -> Chunked:
    """The best division in which every source does what the first one does, moved by translations.

    Every arc of a class then has the same load, and the search has one source and one cell for every class and step.
    """
    label = moves[1].min(axis=0)
    mine = routes.of_source(0)
    if mine.steps is None:
        mine = _with_shortest(topology, mine)
    alone = _divided(topology, mine, fluid, allowed, label)
    used = np.flatnonzero(alone.carried)
    everywhere = mine.only(used, alone.carried[used] / alone.chunks).moved(*moves)
    carried = np.tile(alone.carried[used], topology.n)
    time = _Cells(topology, everywhere, fluid).time(carried / alone.chunks)
    return Chunked(everywhere, carried, alone.chunks, float(fluid.sum()), time, alone.prices)


def _with_shortest(topology: Topology, routes: Routes) -> Routes:
    """The routes and up to :data:`ADDED` shortest paths of every pair, those with weight 0."""
    key = np.unique(np.column_stack([routes.source, routes.target]), axis=0, return_index=True)[1]
    distances = topology.distances(np.ones(topology.arcs))
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(topology.n)]
    for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        leaving[u].append((a, v))
    known = {(r.source, r.target, r.arcs) for r in routes}
    added: list[Route] = []
    for r in key.tolist():
        s, t, amount = int(routes.source[r]), int(routes.target[r]), float(routes.amount[r])
        left = distances[:, t]
        ways: list[tuple[tuple[int, ...], int]] = [((), s)]
        while ways and ways[0][1] != t:
            grown = [((*way, a), v) for way, u in ways for a, v in leaving[u] if left[v] == left[u] - 1]
            ways = [grown[i] for i in np.linspace(0, len(grown) - 1, min(len(grown), ADDED)).astype(int).tolist()]
        added += [Route(s, t, way, 0.0, amount=amount) for way, _ in ways if (s, t, way) not in known]
    return Routes.of([*routes, *added])


def _rounded(weight: F64, commodity: I64, D: int) -> I64:
    """Round the shares to D chunks per commodity by largest remainders."""
    exact = weight * D
    floor = np.floor(exact + 1e-6).astype(np.int64)
    fraction = exact - floor
    rest = D - np.bincount(commodity, floor).astype(np.int64)
    order = np.lexsort((-fraction, commodity))
    start = np.searchsorted(commodity[order], np.arange(rest.size))
    position = np.arange(order.size) - start[commodity[order]]
    floor[order[position < rest[commodity[order]]]] += 1
    return floor


class _Cells:
    """The cells (arc, step) that every route uses, and the time of loads in them; ``fluid`` is U_t of the weights.

    With classes of arcs (``label``), the routes are those of one source among ``n``, and the loads those of all.
    """

    def __init__(self, topology: Topology, routes: Routes, fluid: F64 | None, label: I64 | None = None) -> None:
        m = topology.arcs
        self.routes = routes
        self.steps = 1 if routes.steps is None else int(routes.steps.max(initial=0)) + 1
        self.cells = routes.arcs if routes.steps is None else routes.steps * m + routes.arcs
        self.owner = np.repeat(np.arange(len(routes)), np.diff(routes.first))
        self.capacity = np.tile(topology.capacity, self.steps)
        if label is not None:
            self.cells = self.cells - routes.arcs + label[routes.arcs]
            self.capacity = np.tile(topology.capacity * np.bincount(label, minlength=m)[label] / topology.n, self.steps)
        self.fluid = self.peaks(routes.weight) if fluid is None else fluid

    def load(self, shares: F64) -> F64:
        """Load of every cell, ``(steps m,)``."""
        amount = (shares * self.routes.amount)[self.owner]
        return np.asarray(np.bincount(self.cells, amount, minlength=self.capacity.size), dtype=float)

    def peaks(self, shares: F64) -> F64:
        """Time of the busiest arc of every step."""
        return np.asarray((self.load(shares) / self.capacity).reshape(self.steps, -1).max(axis=1))

    def time(self, shares: F64) -> float:
        """Sum over the steps of the busiest arc's time."""
        return float(self.peaks(shares).sum())

    def balanced(self, carried: I64, D: int, time: float) -> tuple[I64, float]:
        """Move chunks towards lower peaks; what was given if nothing is gained."""
        routes = self.routes
        members = np.argsort(routes.commodity, kind="stable")
        first_member = np.concatenate([[0], np.cumsum(np.bincount(routes.commodity))])
        order = np.flatnonzero(np.diff(first_member) > 1)
        if not order.size:
            return carried, time
        from opticoll.solvers.schedules.schedule_kernels import balance

        peaks = np.maximum(self.fluid, 1e-3 * self.fluid.sum())
        room = np.repeat(peaks, self.capacity.size // self.steps) * self.capacity
        best = carried
        for seed in range(RESTARTS if len(routes) * D <= SMALL else 1):
            moved = carried.copy()
            for beta in SWEEPS:
                load = self.load(moved / D)
                balance(
                    members,
                    first_member,
                    routes.first,
                    self.cells,
                    routes.amount / D,
                    moved,
                    load,
                    room,
                    np.full(2, beta),
                    order,
                    seed,
                )
                if (trial := self.time(moved / D)) < time * (1 - 1e-12):
                    best, time = moved.copy(), trial
        return best, time


def _source_flow(problem: Any, values: Values) -> F64 | None:
    """The flow of every source over every arc, ``(m, N)``, where the variables hold it."""
    if not declared_axes.has_routes(problem):
        return None
    name = str(declared_axes.flow_of(problem))
    along, topology = tuple(problem.variables[name]), declared_axes.topology_of(problem)
    flow = np.asarray(values[name], dtype=float)
    kept = (along.index("arc"), along.index("source" if "source" in along else "pair"))
    summed = np.moveaxis(flow, kept, (0, 1)).reshape(flow.shape[kept[0]], flow.shape[kept[1]], -1).sum(axis=2)
    if "source" in along:
        return summed
    senders = np.searchsorted(topology.terminals, rank_pairs(topology)[0])
    result = np.zeros((topology.arcs, topology.num_ranks))
    np.add.at(result.T, senders, summed.T)
    return result
