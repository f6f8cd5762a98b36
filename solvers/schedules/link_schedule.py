"""All-to-alls in steps, from routes; routes: check them.

In step t, chunk c of the shard from s to d moves over an arc. Steps are synchronous: a chunk that moves in a step was
held by the tail of its arc before that step. Vertices that are not ranks (switches, NICs) forward without storing:
whatever reaches one leaves it in the same step. A chunk is 1/D of the amount that s sends to d, 1 shard in an
all-to-all. With loads in shards, step t takes U_t = max_a load_at / c_a, and the schedule takes sum_t (alpha + beta
U_t).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta

from opticoll.formulations.alltoall.dependencies import circle
from opticoll.formulations.alltoall.moved_routes import MovedRoutes
from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.rounds.segments import offsets, positions, select
from opticoll.solvers.schedules.collective_steps import (
    CollectiveSchedule,
    CollectiveSteps,
    Listed,
    pair_capacity,
    per_step,
    shortest,
)
from opticoll.solvers.schedules.schedule_check import FREE_STEPS, Cost, ScheduleCheck, refused
from opticoll.solvers.schedules.shard_routes import LOSSY, amounts_of, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.schedules.shard_routes import Chunked, Routes

Link = tuple[int, int]

#: Chunks per step on the slowest arc that list scheduling tries, in addition to no limit.
BUDGETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
#: Budgets tried for schedules with more transfers than ``LARGE``.
LARGE_BUDGETS, LARGE = (1, 4), 200_000
#: Classes into which chunks of equal urgency are divided at random.
MIXED = 8
#: Maximum number of chunks per shard where fewer lose time because links wait for what others send.
MOST_FINE = 64
#: Maximum number of ways between two ranks, and of paths from a rank to forwarding vertices, that are followed.
MOST_WAYS, MOST_PARTIAL = 8, 10_000
#: Tolerance on the sum of the shares of a pair, which must be 1.
WHOLE = 1e-6


class VertexRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route as a file states it: the vertices of its path, its share of the pair's shard, its virtual channel."""

    source: Annotated[int, Meta(ge=0)]
    target: Annotated[int, Meta(ge=0)]
    path: tuple[Annotated[int, Meta(ge=0)], ...]
    weight: Annotated[float, Meta(ge=0, le=sys.float_info.max)]
    chunks: Annotated[int, Meta(ge=0)] | None = None
    layer: Annotated[int, Meta(ge=1, le=1 << 20)] | None = None


@dataclass(frozen=True)
class RouteTable:
    """All routes of an all-to-all; ``chunks`` is None where the weights are not cut.

    With ``images`` of all vertices, ``(g, n)``, the routes stand for those to which these move them, and ``orders`` of
    links are the layers.
    """

    chunks: int | None
    routes: list[VertexRoute]
    demand: dict[tuple[int, int], float] | None = None
    images: list[list[int]] | None = None
    orders: list[list[Link]] | None = None


def schedule_routes(
    topology: Topology,
    routes: Routes,
    *,
    chunks: int | Sequence[int] | None = None,
    cost: Cost = FREE_STEPS,
    budgets: Sequence[int | None] | None = None,
) -> CollectiveSchedule:
    """All-to-all along routes: cut into chunks, then scheduled in the steps of the routes or by list scheduling.

    List scheduling: in every step each arc sends waiting chunks up to its budget (in units of the largest chunk),
    those with most remaining hops first. Ties are broken by order of arrival or at random: consecutive chunks of one
    source leave other arcs idle. Small budgets pipeline well but take many steps; the
    budget and order with the shortest alpha-beta time are used.

    Parameters
    ----------
    topology, routes
        The graph, and the shares of every commodity on its routes.
    chunks
        Chunks per shard, see :func:`opticoll.solvers.schedules.shard_routes.cut`. By default that number is doubled
        while the schedule takes more than 1 % longer than the flow, up to :data:`MOST_FINE` chunks.
    cost
        Of steps and shards.
    budgets
        Budgets to try; None for no limit.
    """
    chunked = cut(topology, routes, chunks)
    best = _Hops(topology, chunked)
    if chunked.routes.steps is not None:
        step = chunked.routes.steps[best.place]
    else:
        time, step = best.scheduled(cost, budgets)
        finest = min(MOST_FINE // chunked.chunks, LARGE // max(best.arcs.size, 1)) if chunks is None else 1
        times = 2
        while times <= finest and time > (1 + LOSSY) * cost.beta * chunked.fluid_time:
            finer = replace(chunked, carried=chunked.carried * times, chunks=chunked.chunks * times)
            hops = _Hops(topology, finer)
            shorter, other = hops.scheduled(cost, budgets)
            if shorter < time:
                best, time, step = hops, shorter, other
            times *= 2
    steps = best.moves(step)
    alone = steps.time(topology)
    return CollectiveSchedule(steps, chunked.fluid_time, alone, cost.time(steps.steps, alone), chunked.prices)


class _Hops:
    """Moves of chunks along their routes, from a rank to the next one, by (source, target, number of the chunk).

    Move i crosses ``arcs[first[i] : first[i + 1]]``, which are the entries from ``place[i]`` on of the routes.
    """

    def __init__(self, topology: Topology, chunked: Chunked) -> None:
        self.topology, self.chunked, routes = topology, chunked, chunked.routes
        order = np.argsort(routes.commodity, kind="stable")
        route = np.repeat(order, chunked.carried[order])
        token, place = positions(routes.first, route)
        self.arcs = routes.arcs[place]
        begins = np.flatnonzero(np.isin(topology.tail[self.arcs], topology.terminals))  # routes start at ranks
        self.first, self.token, self.place = np.append(begins, self.arcs.size), token[begins], place[begins]
        self.route = route[self.token]
        self.chunk = self.token - chunked.chunks * routes.commodity[self.route]

    def scheduled(self, cost: Cost, budgets: Sequence[int | None] | None) -> tuple[float, I64]:
        """Time and steps of the shortest list schedule."""
        routes, capacity = self.chunked.routes, self.topology.capacity
        large = self.arcs.size > LARGE
        left = np.repeat(routes.first[1:], np.diff(routes.first)) - np.arange(routes.arcs.size) - 1
        mixed = MIXED * left + np.random.default_rng(0).integers(0, MIXED, left.size)
        waiting = (np.diff(self.token, prepend=-1) == 0).astype(np.int64)
        begin, behind = np.append(0, np.cumsum(np.append(waiting[1:], 0))), np.flatnonzero(waiting)
        largest, urgencies = float(routes.amount.max()), (left[self.place], mixed[self.place])
        size = routes.amount[self.route] / largest
        listed = Listed(self.first, self.arcs, size, waiting, begin, behind, urgencies)
        few = LARGE_BUDGETS if cost.alpha == 0.0 else (*LARGE_BUDGETS, None)
        tried = budgets or (few if large else (*BUDGETS, None))
        trials = ((listed, rule, per_step(capacity, one)) for one, rule in product(tried, (1,) if large else (0, 1)))
        time, _, step = shortest(trials, self.chunked.chunks * capacity / largest, cost)
        return time, step

    def moves(self, step: I64) -> CollectiveSteps:
        """The moves in these steps, without empty ones."""
        routes, tail, head = self.chunked.routes, self.topology.tail, self.topology.head
        _, step = np.unique(step, return_inverse=True)
        source, target = routes.source[self.route], routes.target[self.route]
        order = np.lexsort((self.chunk, target, source, self.arcs[self.first[:-1]], step))
        start, arcs = select(self.first, self.arcs, order)
        shards = np.column_stack([source, target])[order]
        return CollectiveSteps(
            "alltoall",
            self.chunked.chunks,
            step[order],
            start + np.arange(start.size),
            np.insert(head[arcs], start[:-1], tail[arcs[start[:-1]]]),
            shards,
            self.chunk[order],
            np.zeros(order.size, dtype=bool),
            demand=amounts_of(self.topology, self.chunked),
        )


def ways_between(topology: Topology) -> dict[tuple[int, int], list[list[tuple[int, int]]]]:
    """Ways of a message between ranks: the arc, or shortest paths through forwarding vertices.

    Returns
    -------
    For every connected pair of ranks, up to :data:`MOST_WAYS` lists of vertex pairs.
    """
    ranks = set(topology.terminals.tolist())
    leaving: dict[int, list[int]] = defaultdict(list)
    for u, v in sorted(set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))):
        leaving[u].append(v)
    result: dict[tuple[int, int], list[list[tuple[int, int]]]] = {}
    for source in sorted(ranks):
        level = {source: 0}
        queue: list[list[int]] = [[source]]
        for path in queue:
            for v in leaving[path[-1]]:
                if level.setdefault(v, len(path)) < len(path):
                    continue
                if v not in ranks:
                    if len(queue) < MOST_PARTIAL:
                        queue.append([*path, v])
                elif len(those := result.setdefault((source, v), [])) < MOST_WAYS:
                    those.append(list(pairwise([*path, v])))
    return result


def dependency_cycle(paths: Sequence[tuple[int, ...]]) -> list[Link]:
    """Links (from, to) each of which follows the one before on some path of vertices, in a circle; empty if none do."""
    after: dict[Link, set[Link]] = {}
    for path in paths:
        for link, following in pairwise(pairwise(path)):
            after.setdefault(link, set()).add(following)
    return circle(after)


def _share(route: VertexRoute, table: RouteTable) -> float:
    """The share of its pair that a route carries, exactly if it is stated in chunks."""
    if table.chunks is None or route.chunks is None:
        return route.weight
    return route.chunks / table.chunks


def _impossible(
    route: VertexRoute, table: RouteTable, capacity: dict[tuple[int, int], float], ranks: set[int]
) -> tuple[str, str, int] | None:
    """Reason, message and vertex if a route is impossible on the topology; None if it is possible."""
    path, pair = route.path, (route.source, route.target)
    if not {*pair} <= ranks or pair[0] == pair[1]:
        return "no-route", "does not connect two distinct ranks", route.source
    if len(path) < 2 or (path[0], path[-1]) != pair or len(set(path)) < len(path):
        return "no-route", f"{list(path)[:12]} is not a simple path between them", route.source
    if abs(_share(route, table) - route.weight) > WHOLE:
        return "weights", f"weight {route.weight:g} is not {route.chunks} of {table.chunks} chunks", route.source
    arc = next((arc for arc in pairwise(path) if arc not in capacity), None)
    return None if arc is None else ("no-arc", f"there is no arc {arc[0]}->{arc[1]}", arc[0])


def run_routes(table: RouteTable, topology: Topology) -> ScheduleCheck:
    """Check routes and weights; a valid table has metrics ``time`` (busiest link), ``paths``, ``longest_path``."""
    capacity = pair_capacity(topology)
    ends = topology.terminals.tolist()
    ranks = set(ends)
    share: dict[tuple[int, int], float] = defaultdict(float)
    load: dict[tuple[int, int], float] = defaultdict(float)
    moved = table.images is not None
    for i, route in enumerate(table.routes):
        wrong = _impossible(route, table, capacity, ranks)
        if wrong is not None:
            reason, message, rank = wrong
            return refused(reason, f"route {i} ({route.source}->{route.target}): {message}", rank=rank, step=i)
        pair, amount = (route.source, route.target), _share(route, table)
        if moved and abs(amount - 1.0) > WHOLE:
            return refused("weights", f"route {i}: with images, every route carries a whole shard", rank=pair[0])
        if moved:
            continue
        for arc in pairwise(route.path):
            load[arc] += amount * (1.0 if table.demand is None else table.demand.get(pair, 0.0))
        share[pair] += amount
    if moved:
        return _run_moved(table, topology)
    for s, d in permutations(ends, 2):
        demand = 1.0 if table.demand is None or (s, d) in table.demand else 0.0
        if abs(share.get((s, d), 0.0) - demand) > WHOLE:
            msg = f"the routes {s}->{d} carry {share.get((s, d), 0.0):g} of the shard"
            return refused("weights", msg, rank=s)
    layers = {route.layer for route in table.routes if route.layer is not None}
    for layer in sorted(layers):
        circle = dependency_cycle([route.path for route in table.routes if route.layer == layer])
        if circle:
            shown = ", ".join(f"{u}->{v}" for u, v in circle[:8])
            return refused("cycle", f"layer {layer}: {shown} wait for each other", rank=circle[0][0])
    return ScheduleCheck(
        True,
        metrics={
            **({"layers": len(layers)} if layers else {}),
            "time": max((q / capacity[arc] for arc, q in load.items()), default=0.0),
            "paths": len(table.routes),
            "longest_path": max((len(r.path) - 1 for r in table.routes), default=0),
            "ranks": len(ends),
            "chunks": table.chunks,
        },
    )


def _run_moved(table: RouteTable, topology: Topology) -> ScheduleCheck:
    """As :func:`run_routes`, for possible routes that images move to those of all pairs; layers are orders of links."""
    key, n = topology.tail * topology.n + topology.head, topology.n
    if np.unique(key).size < key.size:
        return refused("symmetry", "with images, no two links may join the same vertices")
    sizes = [len(route.path) - 1 for route in table.routes]
    sources, targets = (np.array([route.path[end] for route in table.routes]) for end in (0, -1))
    arcs = np.searchsorted(key, [u * n + v for route in table.routes for u, v in pairwise(route.path)])
    place = np.full((topology.arcs, len(table.orders or ())), np.inf)
    for level, order in enumerate(table.orders or ()):
        links = np.array(order, dtype=np.int64).reshape(-1, 2) @ [n, 1]
        if not np.isin(links, key).all() or np.unique(links).size < links.size:
            return refused("no-arc", f"orders[{level}] lists a link twice, or one that does not exist")
        place[np.searchsorted(key, links), level] = np.arange(links.size)
    paths = PathSet(topology, sources, targets, arcs, offsets(sizes), np.arange(len(sizes)))
    load, layers = MovedRoutes(paths, np.array(table.images), place).examined()
    if isinstance(load, str) or isinstance(layers, str):
        return refused(str(load), str(layers))
    return ScheduleCheck(
        True,
        metrics={
            "layers": int((layers > 0).sum()),
            "time": float((load / topology.capacity).max()),
            "paths": int(layers.sum()),
            "longest_path": max(sizes),
            "ranks": topology.num_ranks,
            "chunks": table.chunks,
        },
    )
