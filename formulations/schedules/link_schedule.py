"""Link schedules: construct them from routes, time them, and check them step by step.

In step t, chunk c of the shard from s to d moves over an arc. Steps are synchronous: a chunk that moves in a step was
held by the tail of its arc before that step. With loads in chunks of 1/D shard, step t takes
U_t = max_a load_at / (D c_a), and the schedule sum_t (alpha + beta U_t).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.schedules.program import Verdict, refused
from opticoll.formulations.schedules.shard_routes import Chunked, cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.schedules.schedule_json import LinkSteps, RouteTable
    from opticoll.formulations.schedules.shard_routes import Route
    from opticoll.instances.digraph import Topology


#: Chunks per step on the slowest arc that list scheduling tries, besides no limit.
BUDGETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
#: Tolerance on the sum of the shares of a pair, which must be 1.
WHOLE = 1e-6


@dataclass(frozen=True, eq=False)
class LinkSchedule:
    """Transfers of an all-to-all over the arcs of a topology.

    Parameters
    ----------
    topology
        Where it runs.
    chunks
        Chunks D per shard.
    transfers
        Rows (step, arc, source, target, chunk) in ascending order, shape ``(., 5)``; source and target are vertices.
    fluid_time
        Time of the flow that the schedule was made from, if any.
    """

    topology: Topology
    chunks: int
    transfers: NDArray[np.int64]
    fluid_time: float | None = None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.transfers[:, 0].max(initial=-1)) + 1

    def utilisation(self) -> NDArray[np.float64]:
        """U_t, shape ``(steps,)``."""
        m = self.topology.arcs
        cell = self.transfers[:, 0] * m + self.transfers[:, 1]
        load = np.bincount(cell, minlength=self.steps * m).reshape(self.steps, m)
        return np.asarray((load / (self.chunks * self.topology.capacity)).max(axis=1, initial=0.0))

    def time(self, alpha: float = 0.0, beta: float = 1.0) -> float:
        """The alpha-beta time: alpha per step, beta per shard over a link of capacity 1."""
        return alpha * self.steps + beta * float(self.utilisation().sum())


def schedule_routes(
    topology: Topology, routes: Sequence[Route], *, most: int = 24, alpha: float = 0.0, beta: float = 1.0
) -> LinkSchedule:
    """A link schedule along routes: cut into chunks, then scheduled in the steps of the routes or by list scheduling.

    List scheduling: in every step each arc sends up to its budget of the waiting chunks, those with most remaining hops
    first. Small budgets pipeline well but take many steps; the budget with the least alpha-beta time is used.
    """
    chunked = cut(topology, routes, most)
    if routes[0].steps is not None:
        return _in_their_steps(topology, chunked)
    best: tuple[float, int, LinkSchedule] | None = None
    for budget in (*BUDGETS, None):
        schedule = _list_schedule(topology, chunked, budget)
        key = (schedule.time(alpha, beta), schedule.steps)
        if best is None or (key[0] < best[0] * (1 - 1e-9)) or (key[0] <= best[0] * (1 + 1e-9) and key[1] < best[1]):
            best = (*key, schedule)
    assert best is not None
    return best[2]


def _chunk_numbers(chunked: Chunked) -> list[range]:
    """The chunk numbers that every route carries, consecutive within a commodity."""
    used: dict[tuple[int, int], int] = {}
    numbers = []
    for route, count in zip(chunked.routes, chunked.carried.tolist(), strict=True):
        first = used.get((route.source, route.target), 0)
        numbers.append(range(first, first + count))
        used[route.source, route.target] = first + count
    return numbers


def _in_their_steps(topology: Topology, chunked: Chunked) -> LinkSchedule:
    rows = [
        (t, a, route.source, route.target, c)
        for route, numbers in zip(chunked.routes, _chunk_numbers(chunked), strict=True)
        for c in numbers
        for a, t in zip(route.arcs, route.steps or (), strict=True)
    ]
    return LinkSchedule(topology, chunked.chunks, _sorted(rows), chunked.fluid_time)


def _sorted(rows: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    table = table[np.lexsort(table.T[::-1])]
    _, table[:, 0] = np.unique(table[:, 0], return_inverse=True)  # drop empty steps
    return table


def _list_schedule(topology: Topology, chunked: Chunked, budget: int | None) -> LinkSchedule:
    ways, ends = [], []
    for route, numbers in zip(chunked.routes, _chunk_numbers(chunked), strict=True):
        for c in numbers:
            ways.append(route.arcs)
            ends.append((route.source, route.target, c))
    length = np.array([len(way) for way in ways])
    arcs = np.full((len(ways), int(length.max())), -1, dtype=np.int64)
    for i, way in enumerate(ways):
        arcs[i, : len(way)] = way
    who = np.array(ends, dtype=np.int64)
    share = topology.capacity / topology.capacity.min()
    limit = np.full(topology.arcs, len(ways)) if budget is None else np.maximum(np.floor(budget * share + 1e-9), 1)
    done = np.zeros(len(ways), dtype=np.int64)
    tables, step = [], 0
    while True:
        waiting = np.flatnonzero(done < length)
        if not waiting.size:
            break
        here = arcs[waiting, done[waiting]]
        order = np.lexsort((waiting, -(length - done)[waiting], here))
        arc = here[order]
        position = np.arange(arc.size) - np.searchsorted(arc, arc)
        go = waiting[order[position < limit[arc]]]
        tables.append(np.column_stack([np.full(go.size, step), arcs[go, done[go]], who[go]]))
        done[go] += 1
        step += 1
    table = np.concatenate(tables)
    return LinkSchedule(topology, chunked.chunks, table[np.lexsort(table.T[::-1])], chunked.fluid_time)


def pair_capacity(topology: Topology) -> dict[tuple[int, int], float]:
    """Capacity between adjacent vertices, summed over parallel arcs."""
    joint: dict[tuple[int, int], float] = defaultdict(float)
    for u, v, c in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        joint[u, v] += c
    return dict(joint)


def run_links(schedule: LinkSteps, topology: Topology, *, alpha: float = 0.0, beta: float = 1.0) -> Verdict:
    """Execute a link schedule; a valid one has metrics ``time`` (alpha-beta), ``steps``, ``transfers``, ``chunks``."""
    capacity = pair_capacity(topology)
    ranks = set(topology.terminals.tolist())
    gathering = schedule.collective == "allgather"
    held: dict[int, set[tuple[int, int, int]]] = defaultdict(set)
    last: dict[tuple[int, int, int], tuple[int, int]] = {}
    time, transfers = 0.0, 0
    for t, step in enumerate(schedule.steps):
        load: dict[tuple[int, int], int] = defaultdict(int)
        arriving: list[tuple[int, tuple[int, int, int]]] = []
        for u, v, chunk in step:
            source, target, number = chunk
            name = f"chunk {number} of {source}" + ("" if gathering else f"->{target}")
            violation = None
            if (u, v) not in capacity:
                violation = ("no-arc", f"{name} moves {u}->{v}, which is not an arc")
            elif source not in ranks or number >= schedule.chunks or (not gathering and target not in ranks - {source}):
                violation = ("no-chunk", f"{name}: a shard has {schedule.chunks} chunks, and only ranks have shards")
            elif source != u and chunk not in held[u]:
                violation = ("not-held", f"{u} sends {name} to {v} before receiving it")
            elif source == v or chunk in held[v]:
                violation = ("duplicate", f"{name} moves {u}->{v}, but {v} already has it")
            if violation is not None:
                reason, message = violation
                rank = v if reason == "duplicate" else u
                return refused(reason, f"step {t}: {message}", rank=rank, chunk=number, step=t)
            load[u, v] += 1
            arriving.append((v, chunk))
        for v, chunk in arriving:
            if chunk in held[v]:
                msg = f"step {t}: {v} receives chunk {chunk[2]} of {chunk[0]} more than once"
                return refused("duplicate", msg, rank=v, chunk=chunk[2], step=t)
            held[v].add(chunk)
            last[chunk] = (t, v)
        if step:
            time += alpha + beta * max(q / (schedule.chunks * capacity[arc]) for arc, q in load.items())
            transfers += len(step)
    missing = _missing(schedule, topology, held, last)
    if missing is not None:
        return missing
    return Verdict(
        True,
        metrics={
            "time": time, "steps": sum(1 for step in schedule.steps if step), "transfers": transfers,
            "chunks": schedule.chunks, "ranks": len(ranks),
        },
    )  # fmt: skip


def _missing(
    schedule: LinkSteps,
    topology: Topology,
    held: Mapping[int, set[tuple[int, int, int]]],
    last: Mapping[tuple[int, int, int], tuple[int, int]],
) -> Verdict | None:
    ends = topology.terminals.tolist()
    for target in ends:
        for source in ends:
            if source == target:
                continue
            for number in range(schedule.chunks):
                chunk = (source, -1 if schedule.collective == "allgather" else target, number)
                if chunk not in held.get(target, ()):
                    t, v = last.get(chunk, (None, source))
                    msg = f"rank {target}: chunk {number} of {source} never arrives; its last receiver is {v}"
                    return refused("missing-chunk", msg, rank=target, chunk=number, step=t)
    return None


def run_routes(table: RouteTable, topology: Topology) -> Verdict:
    """Check routes and weights; a valid table has metrics ``time`` (busiest link), ``paths``, ``longest_path``."""
    capacity = pair_capacity(topology)
    ends = topology.terminals.tolist()
    ranks = set(ends)
    share: dict[tuple[int, int], float] = defaultdict(float)
    load: dict[tuple[int, int], float] = defaultdict(float)
    for i, route in enumerate(table.routes):
        path, pair = route.path, (route.source, route.target)
        name = f"route {i} ({route.source}->{route.target})"
        if not {*pair} <= ranks or pair[0] == pair[1]:
            return refused("no-route", f"{name}: does not connect two distinct ranks", rank=route.source, step=i)
        if len(path) < 2 or (path[0], path[-1]) != pair or len(set(path)) < len(path):
            return refused(
                "no-route", f"{name}: {list(path)[:12]} is not a simple path between them", rank=route.source, step=i
            )
        amount = route.weight
        if table.chunks is not None and route.chunks is not None:
            amount = route.chunks / table.chunks
            if abs(amount - route.weight) > WHOLE:
                msg = f"{name}: weight {route.weight:g} is not {route.chunks} of {table.chunks} chunks"
                return refused("weights", msg, rank=route.source, step=i)
        for arc in pairwise(path):
            if arc not in capacity:
                return refused("no-arc", f"{name}: there is no arc {arc[0]}->{arc[1]}", rank=arc[0], step=i)
            load[arc] += amount
        share[pair] += amount
    for s in ends:
        for d in ends:
            if s != d and abs(share.get((s, d), 0.0) - 1.0) > WHOLE:
                msg = f"the routes {s}->{d} carry {share.get((s, d), 0.0):g} of the shard"
                return refused("weights", msg, rank=s)
    return Verdict(
        True,
        metrics={
            "time": max((q / capacity[arc] for arc, q in load.items()), default=0.0), "paths": len(table.routes),
            "longest_path": max((len(r.path) - 1 for r in table.routes), default=0), "ranks": len(ends),
            "chunks": table.chunks,
        },
    )  # fmt: skip
