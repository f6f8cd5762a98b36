r"""Shares as whole chunks: every shard is cut into D equal chunks, and every route carries a whole number of them.

With weights w_r of the routes of a commodity (sum 1), D chunks a shard and q_r chunks on route r (sum D), the time of
the cut schedule is sum_t max_a load_at(q / D) / c_a over the cells (arc, step), or max_a load_a / c_a for routes
without steps. The smallest D <= ``most`` that keeps every weight (up to round-off) loses nothing. Where none does,
each D is rounded by largest remainders, and for the best few D chunks are moved between routes of a commodity while
that shortens the worst cells. The loss is reported, never hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from instances.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from formulations.schedules.routes import Route
    from instances.topology import Topology

#: Cut shares within this of the fluid ones count as kept.
KEPT = 1e-6
#: Rounds of moving chunks, each of which must shorten the schedule.
MOVES = 400
#: How many values of D are improved by moves, at most, and on how many routes together.
IMPROVED = 6
IMPROVED_ROUTES = 6000


@dataclass(frozen=True)
class Chunked:
    """Routes and how many of the ``chunks`` of its shard each carries.

    ``fluid_time`` and ``time`` are those of the shares and of the chunks, ``loss`` is time / fluid_time - 1.
    """

    routes: tuple[Route, ...]
    carried: NDArray[np.int64]
    chunks: int
    fluid_time: float
    time: float

    @property
    def loss(self) -> float:
        """What whole chunks cost, relative; 0 if nothing."""
        return max(self.time / self.fluid_time - 1.0, 0.0) if self.fluid_time > 0 else 0.0


def cut(topology: Topology, routes: Sequence[Route], most: int = 24) -> Chunked:
    """The routes with whole chunks, at most ``most`` a shard.

    Raises
    ------
    BadInput
        If ``most`` is less than 1, or there are no routes.
    """
    if most < 1 or not routes:
        msg = f"chunking: needs routes and at least one chunk a shard, not {len(routes)} and {most}"
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
    # Of cuts that are as good as the best, the coarsest.
    good = [i for i, time in enumerate(times) if time <= min(times) * (1 + KEPT)]
    chosen = min(good, key=lambda i: moved[i][0])
    return Chunked(tuple(routes), moved[chosen][1], moved[chosen][0], fluid, times[chosen])


def _rounded(weight: NDArray[np.float64], commodity: NDArray[np.int64], D: int) -> NDArray[np.int64]:
    """Whole parts, and the rest of every commodity to its largest fractions."""
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
    """Which cells (arc, step) every route uses, and what loads in them take."""

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
        """Load over capacity, shape ``(steps, m)``."""
        return np.asarray((self.use @ shares) / self.capacity).reshape(self.steps, -1)

    def time(self, shares: NDArray[np.float64]) -> float:
        """Sum over the steps of the busiest arc's time."""
        return float(self.relative(shares).max(axis=1).sum())


def _move(cells: _Cells, carried: NDArray[np.int64], D: int) -> NDArray[np.int64]:
    """Move single chunks off the busiest cells while that shortens the time, or empties busiest cells at equal time."""
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
