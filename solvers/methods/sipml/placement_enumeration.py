"""Method ``placement-enumeration``: every placement of the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.sipml.degree_aware import Unrolled, measured
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.solvers.methods.method import Context


class Enumeration:
    """Depth-first search over (next sub-operation, GPU)."""

    def __init__(self, data: Placement, nodes: int, context: Context | None = None) -> None:
        graph = data.graph
        self.data, self.left, self.context = data, nodes, context
        self.p, self.tails = graph.duration.tolist(), data.tails.tolist()
        ends = list(zip(graph.tail.tolist(), graph.head.tolist(), data.delay.tolist(), strict=True))
        self.into: list[list[tuple[int, float]]] = [[] for _ in range(data.n)]
        for u, v, delay in ends:
            self.into[v].append((u, delay))
        self.occupied = data.occupied.tolist()
        self.room = data.memory * (1 + 1e-9) if data.memory else np.inf
        first = Unrolled(data, 0)
        self.device, self.start, self.best = np.zeros(0, dtype=np.int64), np.zeros(0), np.inf
        if first.place():
            self.best, self.device, self.start = measured(data, first)
        self.floor = max(bound.value for bound in data.bounds())

    def search(self) -> bool:
        """Search; return whether the search was completed. The best placement is kept either way."""
        k, n = self.data.devices, self.data.n
        self.at, self.end, self.begun = [-1] * n, [0.0] * n, [0.0] * n
        self.free, self.sends, self.receives, self.held = [0.0] * k, [0] * k, [0] * k, [0.0] * k
        return self._append(0, (0.0, -1), sum(self.p), 0.0)

    def _allowed(self, u: int, g: int) -> bool:
        h, delta = self.at[u], self.data.delta
        if self.data.rule == "distance":
            return (g - h) % self.data.devices <= delta
        return h == g or (
            (self.sends[h] | 1 << g).bit_count() <= delta and (self.receives[g] | 1 << h).bit_count() <= delta
        )

    def _append(self, count: int, last: tuple[float, int], work: float, latest: float) -> bool:
        if count == self.data.n:
            if latest < self.best * (1 - 1e-12):
                self.best = latest
                self.device, self.start = np.array(self.at), np.array(self.begun)
                if self.context is not None:
                    self.context.save(answer(self, Termination.TIME_LIMIT), self.best)
            return True
        self.left -= 1
        if self.left < 0:
            return False
        if self.context is not None and self.left % 4096 == 0:
            self.context.remaining()
        if self.best <= self.floor * (1 + 1e-9):
            return True
        # Nothing starts before the last start, so this is the remaining time of all GPUs until the incumbent's end.
        room = sum(max(self.best - max(free, last[0]), 0.0) for free in self.free)
        if work >= room * (1 + 1e-12) + 1e-12 * self.best:
            return True
        complete = True
        for v, g, start in self._choices(last, first=count == 0):
            saved = self.free[g], self.receives[g], [(self.at[u], self.sends[self.at[u]]) for u, _ in self.into[v]]
            if self._connect(v, g):
                self.at[v], self.begun[v], self.end[v] = g, start, start + self.p[v]
                self.free[g] = self.end[v]
                self.held[g] += self.occupied[v]
                complete &= self._append(count + 1, (start, v), work - self.p[v], max(latest, self.end[v]))
                self.at[v] = -1
                self.held[g] -= self.occupied[v]
            self.free[g], self.receives[g] = saved[0], saved[1]
            for h, mask in reversed(saved[2]):
                self.sends[h] = mask
            if self.left < 0:
                return False
        return complete

    def _choices(self, last: tuple[float, int], *, first: bool) -> Iterator[tuple[int, int, float]]:
        """Sub-operation, GPU and start that may follow, in view of the search when the next one is asked for."""
        for v in range(self.data.n):
            if self.at[v] >= 0 or any(self.at[u] < 0 for u, _ in self.into[v]):
                continue
            fresh = False
            for g in range(self.data.devices):
                unused = self.free[g] == 0.0
                if unused and (fresh if self.data.rule == "degree" else first and g > 0):
                    continue
                fresh |= unused
                if self.held[g] + self.occupied[v] > self.room:
                    continue
                if not all(self._allowed(u, g) for u, _ in self.into[v]):
                    continue
                ready = max((self.end[u] + (d if self.at[u] != g else 0.0) for u, d in self.into[v]), default=0.0)
                start = max(self.free[g], ready)
                if (start, v) > last and start + self.p[v] + self.tails[v] < self.best * (1 - 1e-12):
                    yield v, g, start

    def _connect(self, v: int, g: int) -> bool:
        """Connect the inputs of a sub-operation to a GPU; return whether no GPU then has too many peers."""
        for u, _ in self.into[v]:
            if self.at[u] != g:
                self.sends[self.at[u]] |= 1 << g
                self.receives[g] |= 1 << self.at[u]
        delta = self.data.delta
        return self.data.rule == "distance" or (
            self.receives[g].bit_count() <= delta
            and all(self.sends[self.at[u]].bit_count() <= delta for u, _ in self.into[v])
        )


def run_enumeration(context: Context) -> Answer:
    """Optimal placements of small graphs by exhaustive search.

    Appending sub-operations in the order of their starts reaches every schedule in which nothing can start earlier. A
    branch is pruned if the longest chain after its sub-operations, or the remaining work over all GPUs, ends no sooner
    than the incumbent. Under rule=degree unused GPUs are interchangeable, under rule=distance all rotations are
    equivalent.
    """
    search = Enumeration(context.data, int(context.parameters["nodes"]), context)
    if np.isfinite(search.best):
        context.save(answer(search, Termination.TIME_LIMIT), search.best)
    try:
        complete, ending = search.search(), Termination.OPTIMAL
    except TimeoutError:
        complete, ending = False, Termination.TIME_LIMIT
    if not complete and ending == Termination.OPTIMAL:
        ending = Termination.ITERATION_LIMIT
    return answer(search, ending, complete=complete)


def answer(search: Enumeration, ending: Termination, *, complete: bool = False) -> Answer:
    """The best placement so far."""
    if complete and not search.device.size:
        return Answer(
            Termination.INFEASIBLE,
            infeasible_by="exhaustive search",
            message="no placement fits the memory within reach; raise memory, degree or k",
        )
    return Answer(
        ending,
        values={"device": search.device.astype(float), "start": search.start} if search.device.size else None,
        bound=search.best * (1 - 1e-12) if complete else None,
        bound_source="exhaustive-search" if complete else None,
        solver={"algorithm": "depth-first search"},
        metrics={"nodes_left": max(search.left, 0)},
    )


METHOD = Method(
    name="placement-enumeration",
    title="Exhaustive placement",
    summary="the optimal placement of about a dozen sub-operations by exhaustive search",
    serves=("sipml.placement",),
    parameters=(Parameter("nodes", int, default=2_000_000, help="limit on nodes of the search"),),
    run=run_enumeration,
)
