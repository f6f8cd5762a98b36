r"""Link schedules: in step t chunk c of what s sends to d moves over an arc.

Steps are synchronous: what moves in a step was held by the tail before it. With loads in chunks of 1/D shard, step t
takes U_t = max_a load_at / (D c_a), and the schedule sum_t (alpha + beta U_t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.schedules.chunking import Chunked, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from formulations.schedules.routes import Route
    from instances.topology import Topology

#: Chunks per step and slowest arc that list scheduling tries, besides no limit.
BUDGETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)


@dataclass(frozen=True, eq=False)
class LinkSchedule:
    """Transfers of an all-to-all over the arcs of a topology.

    Parameters
    ----------
    topology
        Where it runs.
    chunks
        Chunks D of every shard.
    transfers
        Rows (step, arc, source, target, chunk) in ascending order, shape ``(., 5)``; source and target are vertices.
    fluid_time
        Time of the flow it was made from, None where there was none.
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
        """The alpha-beta time: alpha a step, beta a shard over a link."""
        return alpha * self.steps + beta * float(self.utilisation().sum())


def schedule_routes(
    topology: Topology, routes: Sequence[Route], *, most: int = 24, alpha: float = 0.0, beta: float = 1.0
) -> LinkSchedule:
    """A link schedule along routes: cut into chunks, then in their own steps or, where they have none, listed.

    List scheduling: in every step each arc sends up to its budget of the chunks that wait for it, those with
    most hops to go first. Small budgets pipeline well and take many steps; the budget of least alpha-beta time wins.
    """
    chunked = cut(topology, routes, most)
    if routes[0].steps is not None:
        return _in_their_steps(topology, chunked)
    best: tuple[float, int, LinkSchedule] | None = None
    for budget in (*BUDGETS, None):
        found = _listed(topology, chunked, budget)
        key = (found.time(alpha, beta), found.steps)
        if best is None or (key[0] < best[0] * (1 - 1e-9)) or (key[0] <= best[0] * (1 + 1e-9) and key[1] < best[1]):
            best = (*key, found)
    assert best is not None
    return best[2]


def _chunk_numbers(chunked: Chunked) -> list[range]:
    """Which chunks of its shard every route carries: consecutive numbers within a commodity."""
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
    _, table[:, 0] = np.unique(table[:, 0], return_inverse=True)  # steps in which nothing moves take no time
    return table


def _listed(topology: Topology, chunked: Chunked, budget: int | None) -> LinkSchedule:
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
