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

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import declared_axes
from opticoll.formulations.alltoall.time_expansion import over_time
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.path_sets import subset
from opticoll.formulations.model import Formulation, is_own
from opticoll.formulations.rounds.segments import offsets, positions
from opticoll.formulations.variables import rank_pairs
from opticoll.instances.topology import Topology
from opticoll.instances.translations import moved_arcs, translations
from opticoll.solvers.schedules.timed_paths import NOISE, timed_paths, ways

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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


@dataclass(frozen=True)
class Route:
    """A path from ``source`` to ``target`` (vertices) with its share of the commodity.

    ``arcs`` are arc numbers from the source on; ``steps`` the step (from 0, ascending) in which each is used, None for
    routes without time. The weights of a commodity's routes sum to 1; ``amount`` is what the commodity sends [shards].
    """

    source: int
    target: int
    arcs: tuple[int, ...]
    weight: float
    steps: tuple[int, ...] | None = None
    amount: float = 1.0


@dataclass(frozen=True, eq=False)
class Routes:
    """Routes in flat arrays: route r has ``arcs[first[r] : first[r + 1]]``, and ``steps`` there if it is timed.

    ``layer``, ``(routes,)``, has the virtual channels that routes take on all their arcs, from 1, if they have any.
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
    def of(cls, rows: Sequence[Route]) -> Self:
        """The arrays of routes."""
        ends = np.array([(r.source, r.target) for r in rows], dtype=np.int64).reshape(-1, 2)
        timed = bool(rows) and rows[0].steps is not None
        return cls(
            ends[:, 0],
            ends[:, 1],
            offsets([len(r.arcs) for r in rows]),
            np.array([a for r in rows for a in r.arcs], dtype=np.int64),
            np.array([r.weight for r in rows], dtype=float),
            np.array([r.amount for r in rows], dtype=float),
            np.array([t for r in rows for t in r.steps or ()], dtype=np.int64) if timed else None,
        )

    @classmethod
    def joined(cls, rows: Iterable[Route]) -> Self:
        """The routes with those of a pair that are equal joined, noise dropped, and weights that sum to 1."""
        pairs: dict[tuple[int, int, float], dict[tuple[tuple[int, ...], tuple[int, ...] | None], float]] = {}
        for r in rows:
            mine = pairs.setdefault((r.source, r.target, r.amount), {})
            mine[r.arcs, r.steps] = mine.get((r.arcs, r.steps), 0.0) + r.weight
        result: list[Route] = []
        for (s, t, amount), mine in pairs.items():
            total = sum(mine.values())
            heavy = {path: w for path, w in mine.items() if w > NOISE * total} or mine
            total = sum(heavy.values())
            result += [Route(s, t, arcs, w / total, steps, amount) for (arcs, steps), w in heavy.items()]
        return cls.of(result)

    @classmethod
    def along(cls, paths: PathSet, weight: F64, amount: F64, layer: I64 | None = None) -> Routes:
        """Routes along paths, with their weights ``(|P|,)`` and what the commodities send ``(|K|,)``."""
        pair = paths.pair
        return cls(paths.sources[pair], paths.targets[pair], paths.start, paths.arcs, weight, amount[pair], None, layer)

    def __len__(self) -> int:
        return self.source.size

    def rows(self) -> list[Route]:
        """The routes one by one."""
        parts = [slice(*ends) for ends in pairwise(self.first.tolist())]
        arcs = [tuple(self.arcs[part].tolist()) for part in parts]
        steps = [None if self.steps is None else tuple(self.steps[part].tolist()) for part in parts]
        columns = (self.source.tolist(), self.target.tolist(), arcs, self.weight.tolist(), steps, self.amount.tolist())
        return [Route(*row) for row in zip(*columns, strict=True)]

    def of_source(self, source: int) -> Routes:
        """The routes of one source."""
        which = np.flatnonzero(self.source == source)
        return self.only(which, self.weight[which])

    def only(self, which: I64, weight: F64) -> Routes:
        """These routes, with these weights, without virtual channels."""
        part = positions(self.first, which)[1]
        steps = None if self.steps is None else self.steps[part]
        source, target, amount = self.source[which], self.target[which], self.amount[which]
        return Routes(source, target, offsets(np.diff(self.first)[which]), self.arcs[part], weight, amount, steps)

    def moved(self, vertices: I64, arcs: I64) -> Routes:
        """The routes under every translation, given as images of vertices and arcs, ``(g, n)`` and ``(g, m)``."""
        g = len(vertices)
        return Routes(
            vertices[:, self.source].ravel(),
            vertices[:, self.target].ravel(),
            offsets(np.tile(np.diff(self.first), g)),
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


def routes_of(name: str, data: Any, values: Values) -> Routes:
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


def routes_in_steps(name: str, data: Any, topology: Topology, values: Values) -> Routes:
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


def timed_routes(data: StepFlow, values: Values) -> Routes:
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
            return _stripped_steps(data, f, [0]).moved(images, arcs)
    return _stripped_steps(data, f, range(sources.size))


def _stripped_steps(data: StepFlow, f: F64, columns: Sequence[int]) -> Routes:
    """Routes with steps of these groups of sources, ascending, in the flow ``(m, K, L)``."""
    flow, sources, demand = over_time(data, f), data.groups.sources.tolist(), data.groups.demand
    return Routes.joined(
        Route(sources[k], target, path.arcs, path.amount, path.steps, float(demand[target, k]))
        for k in columns
        for target, paths in timed_paths(data, flow, k)
        for path in paths
    )


def chunk_routes(data: Any, values: Values) -> Routes:
    """Routes of whole chunks with steps (SCCL's program)."""
    listed = sorted(ways(data, values), key=itemgetter(0, 1))
    return Routes.joined(Route(source, target, arcs, 1.0, steps) for source, target, arcs, steps in listed)


def source_routes(data: Any, values: Values) -> Routes:
    """Routes of a flow grouped by source (the master LP), without steps."""
    return _by_source(data.flow, np.asarray(values["g"], dtype=float))


def commodity_routes(data: Any, values: Values) -> Routes:
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


def without_steps(routes: Routes) -> Routes:
    """Drop the steps, and join routes of a pair that differ only in their steps."""
    return routes if routes.steps is None else Routes.joined(replace(row, steps=None) for row in routes.rows())


def path_routes(data: Any, values: Values) -> Routes:
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
    return Routes.joined(
        Route(s, t, tuple(paths.path(p)), float(f[p]), amount=amount)
        for k, (s, t, amount) in enumerate(ends)
        for p in sorted((p for p in paths.of_pair(k) if f[p] > 0), key=lambda p: -f[p])
    )


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
        given, layer = data.known_routes, layers_of(data, values)
        amount = np.ones(given.paths)
    return Routes.along(given, np.ones(given.paths), amount, layer + 1)


_READERS: dict[str, Callable[[Any, Values], Routes]] = {
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


def uncut(topology: Topology, routes: Routes, chunks: int | Sequence[int] | None = None) -> Chunked:
    """Routes that are kept as they are, one for every pair, each with all chunks of its shard.

    ``chunks`` per shard as in :func:`cut`, the smallest of several; 1 if None. No division loses anything.
    """
    D = 1 if chunks is None else chunks if isinstance(chunks, int) else min(chunks)
    time = float(_Cells(topology, routes, None).fluid.sum())
    return Chunked(routes, np.full(len(routes), D), D, time, time, {D: time})


def cut(
    topology: Topology, routes: Routes, chunks: int | Sequence[int] | None = None, *, fixed: bool = False
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
    fluid = _Cells(topology, routes, None).fluid
    moves = None if fixed else _moves(topology, routes)
    numbers = POWERS if chunks is None else (chunks,) if isinstance(chunks, int) else chunks
    alike = None if moves is None else _translated(topology, routes, fluid, moves, numbers)
    enough = LOSSY if len(routes) > MOST_ROUTES else KEPT
    if alike is not None and alike.loss <= enough:
        return alike
    best = _divided(topology, routes, fluid, numbers)
    best = best if alike is None else _better(best, alike)
    if best.loss > LOSSY and not fixed and routes.steps is None and len(routes) <= MOST_ROUTES:
        best = _better(best, _divided(topology, _with_shortest(topology, routes), fluid, sorted(best.prices)))
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
    rows = routes.rows()
    known = {(r.source, r.target, r.arcs) for r in rows}
    added: list[Route] = []
    for r in key.tolist():
        s, t, amount = int(routes.source[r]), int(routes.target[r]), float(routes.amount[r])
        left = distances[:, t]
        ways: list[tuple[tuple[int, ...], int]] = [((), s)]
        while ways and ways[0][1] != t:
            grown = [((*way, a), v) for way, u in ways for a, v in leaving[u] if left[v] == left[u] - 1]
            ways = [grown[i] for i in np.linspace(0, len(grown) - 1, min(len(grown), ADDED)).astype(int).tolist()]
        added += [Route(s, t, way, 0.0, amount=amount) for way, _ in ways if (s, t, way) not in known]
    return Routes.of([*rows, *added])


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
        first_member = offsets(np.bincount(routes.commodity))
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
