r"""Primal-dual iteration on the time form of a concurrent flow, with restarts, bounds and polishing.

With unit flows y = x / F and arc weights :math:`\lambda_a = c_a \ell_a`,

.. math::

    T^* = \min_{y \ge 0} \max_{\lambda \in \Delta, \pi}
          \sum_a \lambda_a \frac{1}{c_a} \sum_s y_{as} + \sum_{u \ne s} \pi_{us} (D_{us} - (M y_s)_u).

For given lambda the best y routes every demand along shortest paths under :math:`\ell`, so every lambda bounds T*
from below. For any y that delivers D, the largest load per capacity bounds T* from above.

Steps are diagonal (Pock & Chambolle, ICCV 2011): :math:`\tau w_{as}` on flows, with w the throughflow expected at the
hop level of the arc's head (flows next to a source are N/d times those far from it), :math:`\sigma r_i` on rows, with
1/r the squared norm of the row scaled by w. Every column has three entries and every row scaled in this way has norm 1,
hence the operator's norm is at most :math:`\sqrt 3`, and :math:`\tau\sigma < 1/3` is safe for every instance.

The dual converges long before the primal: at N = 1000 the lower bound on T* is within 1e-4 after a few hundred steps,
the upper bound of a repaired flow only after thousands. When the lower bound L has settled, the flows are therefore
*polished*: the target of the loads is fixed at L (1 + tol/2), the objective is dropped, all duals are set to 0, and the
same iteration searches for any flow below that target. This takes 20 to 200 steps.

Restarts, bounds and polishing depend on counts of steps and on values, never on the clock, so runs are
reproducible unless a limit ends them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticoll.formulations.flows.single_source import unit_flow
from opticoll.solvers.methods.flows import pdhg_kernels as kernels
from opticoll.solvers.methods.flows.pdhg_kernels import LANES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.flows.pdhg_kernels import Team

    Array = NDArray[np.floating]


#: Largest number of chunks of a pass. Not a setting, because it changes the last digits of sums over blocks.
CHUNKS = 16
#: sqrt(tau sigma): slightly below one over the bound on the operator's norm.
STEP = 0.9995 / np.sqrt(3.0)
#: First primal weight, as a share of the ratio of the sizes of duals and flows at the start.
FIRST_WEIGHT = 0.5
#: Floor on the total width of an arc's columns, as a share of the largest, for arcs that carry nothing.
IDLE = 1e-9
#: Floor on step sizes of entries that do not move.
TINY = np.float32(1e-30)
#: Smallest throughflow in the width of a column, as a share of the mean demand.
LEAST_WIDTH = 0.25


class Duals(NamedTuple):
    """Potentials and arc weights, saved while :meth:`Saddle.polish` overwrites them."""

    price: Array
    weight: F64
    plain: F64
    root: float


class Saddle:
    """State of the iteration on one flow problem.

    Parameters
    ----------
    data
        The flow problem; groups are sources, and only arcs into a group's source are blocked.
    team
        Threads that share the passes.
    precision
        Of flows and potentials; arc weights, bounds and the repair are double in any case.
    orbits
        If given, ``data`` is :attr:`~opticoll.solvers.methods.flows.flow_orbits.Orbits.reduced`: every load is averaged
        over the orbit of its arc, so weights are equal on orbits, and both bounds are those of the whole problem.

    Attributes
    ----------
    flow, price
        y and pi, by ``(block, arc, lane)`` and ``(block, vertex, lane)``.
    weight, plain
        lambda of the Halpern iterate (perhaps negative) and of its plain step (on the simplex), shape ``(m,)``.
    primal_weight
        sqrt(sigma / tau).
    count
        Steps since the last restart.
    """

    def __init__(
        self,
        data: ConcurrentFlow,
        team: Team,
        precision: type[np.floating] = np.float32,
        orbits: Orbits | None = None,
    ) -> None:
        topology = data.topology
        self.data, self.team, self.precision = data, team, precision
        self.orbits = None if orbits is None or orbits.trivial else orbits
        self.n, self.m, self.groups = topology.n, topology.arcs, data.groups
        self.blocks = -(-self.groups // LANES)
        self.order = np.argsort(topology.head, kind="stable")
        self.start = np.searchsorted(topology.head[self.order], np.arange(self.n + 1))
        self.tail = topology.tail[self.order]
        self.capacity = np.asarray(data.capacity, dtype=float)[self.order]
        source = np.full(self.blocks * LANES, -1, dtype=np.int64)
        source[: self.groups] = data.sources
        self.source = source.reshape(self.blocks, LANES)
        edges = np.linspace(0, self.blocks, min(self.blocks, CHUNKS) + 1).astype(int).tolist()
        self.chunks = list(pairwise(edges))

        by_vertex, by_arc = (self.blocks, self.n, LANES), (self.blocks, self.m, LANES)
        self.demand, self.width, self.stiff, self.price = (np.zeros(by_vertex, precision) for _ in range(4))
        self.flow = np.zeros(by_arc, precision)
        self.load = np.zeros((len(self.chunks), self.m))

        self.weight: F64 = self.capacity / self.capacity.sum()
        self.plain = self.weight.copy()
        self._begin()
        self.price0, self.flow0, self.weight0 = (np.zeros_like(x) for x in (self.price, self.flow, self.weight))
        self.count = 0
        self.target: float | None = None
        self.root = 0.0
        moved, pushed = self.restart()  # from the origin: the sizes of flows and duals
        self.primal_weight = FIRST_WEIGHT * pushed / moved if moved > 0 else 1.0

    def _fold(self, by_arc: F64) -> F64:
        """Loads of the arcs (by head), averaged over orbits if there are any."""
        if self.orbits is None:
            return by_arc
        mean = np.empty_like(by_arc)
        mean[self.order] = by_arc
        return self.orbits.fold(mean)[self.order]

    def _lanes(self, block: int) -> slice:
        """The groups of a block."""
        return slice(block * LANES, min((block + 1) * LANES, self.groups))

    def _parts(self) -> Iterator[tuple[slice, slice]]:
        """The blocks of every chunk, and their groups."""
        for first, last in self.chunks:
            yield slice(first, last), slice(first * LANES, min(last * LANES, self.groups))

    def _blocked(self, values: F64) -> F64:
        """Values by (row, group) as blocks of lanes, ``(blocks, rows, LANES)``, 0 in lanes without a group."""
        rows, groups = values.shape
        blocks = -(-groups // LANES)
        padded = np.zeros((rows, blocks * LANES))
        padded[:, :groups] = values
        return padded.reshape(rows, blocks, LANES).swapaxes(0, 1)

    # Starting point

    def _begin(self) -> None:
        """Start from uniform lengths, hop distances as potentials and demands split evenly over fewest-hop paths."""
        unit = 1.0 / float(self.capacity.sum())
        amounts, least = self.data.amounts, LEAST_WIDTH
        if amounts is not None:
            least *= float(amounts.sum()) / max(int(np.count_nonzero(amounts)), 1)
        topology, hops = self.data.topology, self.data.distances(np.ones(self.m))
        for blocks, lanes in self._parts():
            demand, level = self.data.demand_of(lanes), np.where(np.isfinite(hops[:, lanes]), hops[:, lanes], 0.0)
            nearer = (hops[topology.tail, lanes] + 1.0 == hops[topology.head, lanes]).astype(float)
            flow = unit_flow(topology, self.data.sources[lanes], demand, nearer)
            assert flow is not None
            key = np.arange(level.shape[1]) * self.n + level.astype(np.int64)
            shape = level.shape[1], self.n
            count, due = (np.bincount(key.ravel(), one, key.size).reshape(shape) for one in (None, demand.ravel()))
            expected = np.cumsum(due[:, ::-1], axis=1)[:, ::-1] / np.maximum(count, 1)
            width = np.where(level > 0, np.maximum(least, expected.ravel()[key]), 0.0)
            values = (demand, flow[self.order], unit * level, width)
            for array, value in zip((self.demand, self.flow, self.price, self.width), values, strict=True):
                array[blocks] = self._blocked(value)
        self._norm_rows(topology.head[self.order])
        into = self._fold(np.repeat(self.width.sum(axis=(0, 2), dtype=np.float64), np.diff(self.start)))
        # With a single source, arcs into it carry nothing: any step is safe for their weights.
        self.arc_stiff = self.capacity**2 / np.maximum(into, IDLE * into.max())

    def _norm_rows(self, head: I64) -> None:
        """``stiff`` = 1 / squared norm of every balance row, scaled by the widths of its columns; 0 at sources."""
        self.stiff[:] = np.diff(self.start).astype(self.precision)[:, None] * self.width
        for norm, width, source in zip(self.stiff, self.width, self.source, strict=True):
            np.add.at(norm, self.tail, width[head])
            np.divide(1.0, norm, out=norm, where=norm > 0.0)
            lanes = np.flatnonzero(source >= 0)
            norm[source[lanes], lanes] = 0.0

    # Iterating

    def _steps(self) -> tuple[np.floating, np.floating, Array]:
        """Tau, sigma and the arc lengths, in the flows' precision."""
        kind = self.precision
        length = (self.weight / self.capacity).astype(kind)
        return kind(STEP / self.primal_weight), kind(STEP * self.primal_weight), length

    def advance(self) -> None:
        """Make one reflected Halpern step (Lu & Yang 2024; Chen et al. 2024)."""
        pull = (self.count + 1.0) / (self.count + 2.0)
        tau, sigma, length = self._steps()
        alpha = self.precision(pull)

        def job(chunk: int) -> None:
            first, last = self.chunks[chunk]
            kernels.advance(
                first,
                last,
                self.start,
                self.tail,
                length,
                self.flow,
                self.flow0,
                self.price,
                self.price0,
                self.demand,
                self.width,
                self.stiff,
                tau,
                sigma,
                alpha,
                np.empty((self.n, LANES), self.precision),
                np.empty(LANES, self.precision),
                self.load[chunk],
            )

        self.team.run(job, len(self.chunks))
        self._move_weights(self._fold(self.load.sum(axis=0)) / self.capacity, STEP * self.primal_weight, pull)
        self.count += 1

    def _move_weights(self, ratio: F64, sigma: float, pull: float) -> None:
        if self.target is None:
            self.root = kernels.price_simplex(
                self.weight, self.weight0, ratio, self.arc_stiff, sigma, pull, self.plain, self.root
            )
        else:
            self.plain[:] = np.maximum(self.weight + sigma * self.arc_stiff * (ratio - self.target), 0.0)
            self.weight[:] = pull * (2.0 * self.plain - self.weight) + (1.0 - pull) * self.weight0

    def restart(self) -> tuple[float, float]:
        """Move the anchor to the current point; return the distances of flows and duals from the last anchor."""
        moved = pushed = 0.0
        head = np.repeat(np.arange(self.n), np.diff(self.start))
        for first, last in self.chunks:
            part = slice(first, last)
            moved += _renewed(self.flow0[part], self.flow[part], self.width[part][:, head])
            pushed += _renewed(self.price0[part], self.price[part], self.stiff[part])
        pushed += float(((self.weight - self.weight0) ** 2 / self.arc_stiff).sum())
        self.weight0[:] = self.weight
        self.count = 0
        return float(np.sqrt(moved)), float(np.sqrt(pushed))

    # Polishing

    def polish(self, target: float) -> Duals:
        """Switch to searching for flows that deliver D with loads of at most ``target`` times the capacities.

        Without objective and with all duals 0, this is a feasibility problem, on which the primal weight has no
        influence. Returns the duals for :meth:`resume`.
        """
        duals = Duals(self.price.copy(), self.weight.copy(), self.plain.copy(), self.root)
        self.price[:], self.weight[:] = 0.0, 0.0
        self.target = target
        self.restart()
        return duals

    def resume(self, duals: Duals) -> None:
        """Continue the optimisation from the current flows and the duals before :meth:`polish`."""
        self.price[:], self.weight[:], self.plain[:] = duals.price, duals.weight, duals.plain
        self.root = duals.root
        self.target = None
        self.restart()

    # Bounds

    def lower(self) -> float:
        """Lower bound on T* that the arc weights prove, in double precision."""
        length = self.plain / self.capacity
        terms = np.zeros(self.blocks)

        def job(b: int) -> None:
            lanes, demand = self._lanes(b), np.zeros((self.n, LANES))
            demand[:, : lanes.stop - lanes.start] = self.data.demand_of(lanes)
            reach = np.empty((self.n, LANES))
            terms[b] = kernels.distance_sum(self.start, self.tail, length, demand, self.source[b], reach)

        self.team.run(job, self.blocks)
        return float(terms.sum() / self.plain.sum())

    def lengths(self) -> F64:
        """The arc lengths behind :meth:`lower`, in the topology's arc order, shape ``(m,)``."""
        length = np.empty(self.m)
        length[self.order] = self.plain / self.capacity
        return length

    def upper(self, out: F64) -> float:
        """Upper bound on T*: the largest load per capacity of the current flows, made exact in double precision.

        Parameters
        ----------
        out
            Becomes the unit flows in the topology's arc order, shape ``(m, K)``.

        Returns
        -------
        Infinity if some demand cannot be delivered. With orbits the flows are those of the representatives, settled,
        and w_r times a unit.
        """
        total = np.zeros(self.m)
        for blocks, lanes in self._parts():
            near, demand = np.empty((self.m, lanes.stop - lanes.start)), self.data.demand_of(lanes)
            near[self.order] = np.concatenate(self.flow[blocks], axis=1)[:, : near.shape[1]]
            exact = unit_flow(self.data.topology, self.data.sources[lanes], demand, near)
            if exact is None:
                return np.inf
            out[:, lanes] = exact
            total += exact.sum(axis=1)
        if self.orbits is not None:
            total = self.orbits.fold(total)
            self.orbits.settle(out)
        return float((total / self.data.capacity).max())


def _renewed(anchor: Array, now: Array, scale: Array) -> float:
    """The squared distance of an anchor from the current point in the norm of its step sizes; then move it there."""
    gone = now - anchor
    anchor[:] = now
    return float((gone * gone / np.maximum(scale, TINY)).sum(dtype=np.float64))


#: Restart when this share of all steps, and at least so many, were made since the last restart.
LONGEST, LEAST = 0.36, 36
#: Weight of the observed primal weight in its update at a restart (on a logarithmic scale).
SMOOTHING = 0.3
#: Growth factors of the step counts at which bounds are computed, flows repaired, and polished flows repaired.
LOOK, REPAIR, POLISH = 1.25, 4.0, 2.0
FIRST_LOOK, FIRST_POLISH = 40, 30
#: Polishing may take this share of the steps so far, and at least this many steps.
POLISH_SHARE, POLISH_LEAST = 0.35, 60
#: The precision is exhausted if the gap does not shrink by a tenth while the steps grow by this factor.
STALLED = 4.0


@dataclass
class TimeBounds:
    """The bounds on T* so far and what proves them.

    Parameters
    ----------
    saddle
        The iteration.
    tol
        Gap ``upper / lower - 1`` to reach.
    alive
        Called before every step; raises to stop.
    on_change
        Called when a bound improves: ``on_change(flows_changed)``.
    most_steps
        Limit on the steps.

    ``spare`` is the array of the next repair, free until then; None before the second flow.
    """

    saddle: Saddle
    tol: float
    alive: Callable[[], object]
    on_change: Callable[[bool], object]
    most_steps: int
    lower: float = 0.0
    upper: float = np.inf
    steps: int = 0
    restarts: int = 0
    polishes: int = 0
    lengths: F64 | None = None
    flows: F64 | None = None
    spare: F64 | None = None
    _gains: list[float] = field(default_factory=list)
    _best_gap: float = np.inf
    _best_at: int = 0

    @property
    def gap(self) -> float:
        """Relative gap between the bounds as the runner defines it, in terms of F."""
        return self.upper / self.lower - 1.0 if self.lower > 0 else np.inf

    @property
    def closed(self) -> bool:
        """Whether the gap is within the tolerance, with a margin for the runner's rounding."""
        return self.gap <= self.tol * 0.999

    def run(self) -> None:
        """Iterate until the gap is closed or the steps or the precision are exhausted."""
        saddle = self.saddle
        self.update_lower()
        self.repair()
        next_look, next_repair, next_polish = FIRST_LOOK, 2 * FIRST_LOOK, 0
        while not (self.closed or self.spent):
            self.alive()
            saddle.advance()
            self.steps += 1
            if saddle.count >= max(LONGEST * self.steps, LEAST):
                self.restart()
            if self.steps >= next_look:
                next_look = int(self.steps * LOOK)
                self.update_lower()
                if self.steps >= next_repair:
                    next_repair = int(self.steps * REPAIR)
                    self.repair()
                if not self.closed and self.steps >= next_polish and self.settled():
                    self.polish()
                    next_polish = int(self.steps * (1.0 + POLISH_SHARE))
                    next_look = max(next_look, int(self.steps * (LOOK - 1.0) / 2 + self.steps))

    @property
    def spent(self) -> bool:
        """Whether to stop: no steps left, or no progress."""
        if self.gap < 0.9 * self._best_gap:
            self._best_gap, self._best_at = self.gap, self.steps
        return self.steps >= self.most_steps or self.steps > STALLED * self._best_at + 20_000

    def restart(self) -> None:
        """Move the anchor to the current point and the primal weight towards the ratio of the distances covered."""
        saddle = self.saddle
        moved, pushed = saddle.restart()
        self.restarts += 1
        if moved > 0 and pushed > 0:
            saddle.primal_weight *= float((pushed / moved / saddle.primal_weight) ** SMOOTHING)

    def update_lower(self) -> None:
        """Compute the lower bound of the current arc weights; keep it if it is the best."""
        self.alive()
        bound = self.saddle.lower()
        before = self.lower
        if bound > before:
            self.lower, self.lengths = bound, self.saddle.lengths()
            self.on_change(False)
        self._gains.append(max(self.lower - before, 0.0))

    def repair(self) -> None:
        """Compute the upper bound of the current flows; keep them if they are the best."""
        self.alive()
        shape = (self.saddle.m, self.saddle.groups)
        out = np.empty(shape) if self.spare is None else self.spare
        self.spare = out
        bound = self.saddle.upper(out)
        if bound < self.upper:
            self.upper, self.flows, self.spare = bound, out, self.flows
            self.on_change(True)

    def settled(self) -> bool:
        """Whether the remaining gain of the lower bound, extrapolated as a geometric series, is below tol/2."""
        if len(self._gains) < 4:
            return False
        before, gain = max(self._gains[-3], self._gains[-2]), max(self._gains[-2], self._gains[-1])
        ratio = min(max(gain / before if before > 0 else 0.0, 0.3), 0.8)
        return gain * ratio / (1.0 - ratio) <= 0.5 * self.tol * self.lower

    def polish(self) -> None:
        """Search for flows below a target slightly above the lower bound; then continue from the result."""
        saddle = self.saddle
        duals: Duals = saddle.polish(self.lower * (1.0 + 0.5 * self.tol))
        self.polishes += 1
        try:
            most = max(POLISH_LEAST, int(POLISH_SHARE * self.steps))
            due, worst = FIRST_POLISH, self.upper
            for step in range(1, most + 1):
                self.alive()
                saddle.advance()
                self.steps += 1
                if step < due:
                    continue
                due = int(step * POLISH) + 1
                self.repair()
                if self.closed:
                    return
                if step > 3 * FIRST_POLISH and self.upper > 0.9999 * worst and self.gap > 3 * self.tol:
                    return  # the target is below the optimum, or out of reach
                worst = self.upper
        finally:
            saddle.resume(duals)
