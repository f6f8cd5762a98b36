"""Method ``channel-search``: routes and layers of virtual channels by local search."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_bounds import share_bounds
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.instances.topology import I64
    from opticoll.solvers.methods.method import Context

    Dependency = tuple[int, int]

#: Exponent of the loads in the potential that a move lowers; fraction of moves at the busiest arcs.
POWER, BUSY = 8.0, 0.7
#: Most pairs that are placed again at a time, and relative rise of the potential that is common at first.
MOST_MOVED, HOT = 12, 0.05
#: Relative tolerance of loads.
TOLERANCE = 1e-9


class ChannelLayer:
    """The dependencies of one layer, each with its number of routes."""

    def __init__(self) -> None:
        self.routes: dict[Dependency, int] = {}
        self.after: dict[int, set[int]] = {}

    def add(self, dependencies: list[Dependency]) -> bool:
        """Add those of a route; undo it and return False if they close a cycle."""
        for e in dependencies:
            self.routes[e] = self.routes.get(e, 0) + 1
            if self.routes[e] == 1:
                self.after.setdefault(e[0], set()).add(e[1])
        if all(self.routes[e] > 1 or not self._reaches(e[1], e[0]) for e in dependencies):
            return True
        self.remove(dependencies)
        return False

    def remove(self, dependencies: list[Dependency]) -> None:
        """Remove those of a route."""
        for e in dependencies:
            self.routes[e] -= 1
            if self.routes[e] == 0:
                del self.routes[e]
                self.after[e[0]].discard(e[1])

    def _reaches(self, start: int, goal: int) -> bool:
        seen, stack = {start}, [start]
        while stack:
            a = stack.pop()
            if a == goal:
                return True
            new = self.after.get(a, set()) - seen
            seen |= new
            stack += new
        return False


class Search:
    """Routes within some number of layers, and moves of one of them."""

    def __init__(self, data: RoutedChannels, layers: int, seed: int) -> None:
        self.data, self.paths = data, data.paths
        self.arcs = [self.paths.path(p) for p in range(self.paths.paths)]
        self.dependencies = [list(pairwise(arcs)) for arcs in self.arcs]
        self.amount = data.routing.amount
        self.random = np.random.default_rng([seed, layers])
        self.layers = [ChannelLayer() for _ in range(layers)]
        self.load = np.zeros(data.topology.arcs)
        self.path = np.full(self.paths.pairs, -1)
        self.layer = np.full(self.paths.pairs, -1)
        self.over = self.paths.incidence.toarray().astype(bool)
        self.unit = float(max(data.routing.amount.sum() / data.topology.capacity.sum(), 1e-300))

    def place(self, k: int, sparse: bool = False) -> bool:
        """Give a pair the path and layer of least potential that close no cycle; False if there is none.

        ``sparse``: those with fewest new dependencies come first.
        """
        options = []
        for p in self.paths.of_pair(k):
            arcs, room = self.arcs[p], self.data.topology.capacity[self.arcs[p]]
            now = self.load[arcs] / room / self.unit
            more = self.amount[k] / room / self.unit
            rise = float(((now + more) ** POWER - now**POWER).sum())
            for level, layer in enumerate(self.layers):
                new = sum(e not in layer.routes for e in self.dependencies[p]) if sparse else 0
                options.append((new, rise, self.random.random(), p, level))
        for *_, p, level in sorted(options):
            if self.layers[level].add(self.dependencies[p]):
                self._take(k, p, level)
                return True
        return False

    def _take(self, k: int, p: int, level: int) -> None:
        self.path[k], self.layer[k] = p, level
        self.load[self.arcs[p]] += self.amount[k]

    def drop(self, k: int) -> tuple[int, int]:
        """Remove the route of a pair and return its path and layer."""
        p, level = int(self.path[k]), int(self.layer[k])
        self.layers[level].remove(self.dependencies[p])
        self.load[self.arcs[p]] -= self.amount[k]
        self.path[k] = self.layer[k] = -1
        return p, level

    def restore(self, k: int, p: int, level: int) -> None:
        """Undo :meth:`drop`."""
        self.layers[level].add(self.dependencies[p])
        self._take(k, p, level)

    def begin(self, attempts: int) -> bool:
        """Place all pairs, those that found no place before first; False if no attempt succeeds.

        Every second attempt keeps the dependencies few.
        """
        priority = np.zeros(self.paths.pairs)
        longest = np.array([self.paths.length[self.paths.of_pair(k)].min() for k in range(self.paths.pairs)])
        for attempt in range(attempts):
            order = np.lexsort((self.random.random(self.paths.pairs), -longest, -priority))
            failed = [k for k in order.tolist() if not self.place(k, sparse=attempt % 2 == 1)]
            if not failed:
                return True
            priority[failed] += 1.0
            for k in np.flatnonzero(self.path >= 0).tolist():
                self.drop(k)
        return False

    @property
    def worst(self) -> float:
        """Largest load per capacity."""
        return float((self.load / self.data.topology.capacity).max(initial=0.0))

    @property
    def potential(self) -> float:
        """Sum of the loads to the power that prefers low peaks."""
        return float(((self.load / self.data.topology.capacity / self.unit) ** POWER).sum())

    def move(self, temperature: float) -> None:
        """Place a few pairs again, most often some over a busiest arc; undo it if the potential rises too much."""
        before, potential = (self.path.copy(), self.layer.copy()), self.potential
        count = 1 + int(self.random.integers(MOST_MOVED))
        pool = np.arange(self.paths.pairs)
        if self.random.random() < BUSY:
            share = self.load / self.data.topology.capacity
            busiest = int(self.random.choice(np.flatnonzero(share >= share.max() * (1 - TOLERANCE))))
            pool = np.flatnonzero(self.over[busiest][self.path])
        moved = self.random.permutation(pool)[:count].tolist()
        for k in moved:
            self.drop(k)
        placed = sum(self.place(k) for k in self.random.permutation(moved).tolist()) == len(moved)
        rise = self.potential / potential - 1.0
        if placed and (rise <= 0 or self.random.random() < np.exp(-rise / temperature)):
            return
        for k in moved:
            if self.path[k] >= 0:
                self.drop(k)
        for k in moved:
            self.restore(k, int(before[0][k]), int(before[1][k]))


def searched(
    data: RoutedChannels, layers: int, enough: float, moves: int, seed: int, deadline: float | None
) -> tuple[float, I64, I64] | None:
    """Least load found, and the path and the layer of every pair; None if some pair finds no place.

    It ends at a load of at most ``enough``, after ``moves`` moves, or at the deadline.
    """
    search = Search(data, layers, seed)
    if not search.begin(attempts=50):
        return None
    best = search.worst, search.path.copy(), search.layer.copy()
    for number in range(moves):
        if best[0] <= enough * (1 + TOLERANCE) or (deadline is not None and time.monotonic() > deadline):
            break
        search.move(HOT * (1.0 - number / moves) + 1e-9)
        if search.worst < best[0] * (1 - TOLERANCE):
            best = search.worst, search.path.copy(), search.layer.copy()
    return best


def run(context: Context) -> Answer:
    """Routes and layers by local search: one pair at a time takes the path and layer of least potential.

    Pairs are placed longest first, each on the path, and in the layer, that raise a potential of the loads least and
    close no cycle of dependencies; pairs that find no place come first in the next attempt. Then pairs, most often
    those over a busiest arc, are placed again. With ``objective=channels`` this is repeated with one layer more until
    the load is small enough.
    """
    from opticoll.formulations.alltoall.channels_routes import filled

    data: RoutedChannels = context.data
    moves, seed = int(context.parameters["moves"]), context.task.seed
    by_load = data.chosen == "load"
    enough = max((bound.value for bound in share_bounds(data)), default=0.0) if by_load else data.limit or np.inf
    found: tuple[float, I64, I64] | None = None
    for layers in [data.layers] if by_load else range(1, data.layers + 1):
        found = searched(data, layers, enough, moves, seed, context.deadline)
        if found is not None and (by_load or found[0] <= enough * (1 + TOLERANCE)):
            break
        found = None
    if found is None:
        return Answer(Termination.TOLERANCE, message="no routes were found within the layers and load")
    return Answer.heuristic(filled(data, found[1], found[2]), "local search")


METHOD = Method(
    name="channel-search",
    title="Routes and layers by local search",
    summary="one pair at a time takes the path and layer that raise the loads least and close no cycle",
    serves=("alltoall.channels",),
    parameters=(Parameter("moves", int, default=2000, help="routes that are placed again, for each number of layers"),),
    takes_over=(Beyond("alltoall.channels", 600, 4_000, proves=False),),
    run=run,
)
