r"""The time form of a concurrent flow as a saddle point, and its iteration.

With unit flows y = x / F and arc weights :math:`\lambda_a = c_a \ell_a`,

.. math::

    T^* = \min_{y \ge 0} \max_{\lambda \in \Delta, \pi}
          \sum_a \lambda_a \frac{1}{c_a} \sum_s y_{as} + \sum_{u \ne s} \pi_{us} (D_{us} - (M y_s)_u).

Given lambda the best y routes every demand along shortest paths of :math:`\ell`: every lambda bounds T* from below.
Given y that delivers D, the largest load per capacity bounds it from above.

Steps are diagonal: :math:`\tau w_{as}` on flows, with w the throughflow expected at the hop level of the arc's head
(flows next to a source are N/d times those far from it), :math:`\sigma r_i` on rows, with 1/r the squared norm of
the row so scaled. Every column has three entries and every row so scaled norm 1, hence the operator's norm is at most
:math:`\sqrt 3`, and :math:`\tau\sigma \le 1/3` is safe for every instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.compiled_flow import Adjacency
from formulations.alltoall.compiled_flow import unit_flows as _unit_flows
from solvers.pdhg import kernels
from solvers.pdhg.kernels import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.alltoall.concurrent_flow import ConcurrentFlow
    from solvers.pdhg.team import Team

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]

#: A pass is cut into at most this many chunks; part of the result's last digits, so no setting.
CHUNKS = 16
#: sqrt(tau sigma): a hair below 1 over the bound on the operator's norm.
STEP = 0.9995 / np.sqrt(3.0)
#: Of what a vertex receives, an arc that brings less than this share is noise.
NOISE = 1e-7
#: Columns where hardly any demand lies beyond are as wide as if this share of a mean demand did.
LEAST_WIDTH = 0.25


@dataclass
class Anchor:
    """Arc weights where the Halpern iteration started, and how far the flows and prices have moved since."""

    weight: F64
    guess: float = 0.0


class Saddle:
    """State and passes of the iteration on one flow problem.

    Parameters
    ----------
    data
        The flow problem; groups are sources.
    team
        Threads that share the passes.
    """

    def __init__(self, data: ConcurrentFlow, team: Team) -> None:
        topology = data.topology
        self.data, self.team = data, team
        self.graph = Adjacency.of(topology)
        self.n, self.m, self.groups = topology.n, topology.arcs, data.groups
        self.blocks = -(-self.groups // LANES)
        self.order = self.graph.entering
        self.start = self.graph.first_in
        self.tail = topology.tail[self.order]
        self.capacity = np.asarray(data.capacity, dtype=float)[self.order]
        self.source = np.full(self.blocks * LANES, -1, dtype=np.int64)
        self.source[: self.groups] = data.sources
        self.source = self.source.reshape(self.blocks, LANES)
        chunks = min(self.blocks, CHUNKS)
        edges = np.linspace(0, self.blocks, chunks + 1).astype(int).tolist()
        self.chunks = list(zip(edges[:-1], edges[1:], strict=True))

        shape = (self.blocks, self.n, LANES)
        self.demand = np.zeros(shape, dtype=np.float32)
        self.width, self.price = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
        self.stiff = np.zeros(shape, dtype=np.float32)
        self.flow = np.zeros((self.blocks, self.m, LANES), dtype=np.float32)
        self.net = [np.zeros((self.n, LANES), dtype=np.float32) for _ in range(team.size)]
        self.buffer = [np.zeros(LANES, dtype=np.float32) for _ in range(team.size)]
        self.load = np.zeros((chunks, self.m))
        self.sums = np.zeros((chunks, 2))

        self.weight = self.capacity / self.capacity.sum()
        self.plain = self.weight.copy()
        self._begin()
        self.price0, self.flow0, self.weight0 = self.price.copy(), self.flow.copy(), self.weight.copy()
        self.primal_weight = 1.0
        self.count = 0  # steps since the anchor
        self.target: float | None = None
        self.root = 0.0

    # Starting point

    def _begin(self) -> None:
        unit = 1.0 / float(self.capacity.sum())
        head = self.data.topology.head.copy()
        positive = self.data.demand[self.data.demand > 0]
        least = LEAST_WIDTH * float(positive.mean()) if positive.size else 1.0
        sent = [np.zeros(self.blocks), np.zeros((len(self.chunks), self.n))]

        def job(chunk: int, _worker: int) -> None:
            queue, level = np.empty(self.n, dtype=np.int64), np.empty(self.n, dtype=np.int64)
            through = np.empty(self.n)
            first, last = self.chunks[chunk]
            for b in range(first, last):
                lanes = slice(b * LANES, min((b + 1) * LANES, self.groups))
                count = lanes.stop - lanes.start
                self.demand[b, :, :count] = self.data.demand[:, lanes]
                kernels.start_block(
                    b, count, self.start, self.tail, self.graph.first_out, np.arange(self.m), head, self.source,
                    self.demand, self.flow, self.price, self.width, queue, level, through, unit, least,
                )  # fmt: skip
            kernels.row_norms(
                first, last, self.start, self.tail, self.source, self.width, self.stiff, sent[1][chunk]
            )

        self.team.run(job, len(self.chunks))
        total = sent[1].sum(axis=0)[np.repeat(np.arange(self.n), np.diff(self.start))]
        self.arc_stiff = self.capacity**2 / np.maximum(total, 1e-300)

    # Iterating

    def advance(self) -> None:
        """One reflected Halpern step."""
        pull = (self.count + 1.0) / (self.count + 2.0)
        tau, sigma = STEP / self.primal_weight, STEP * self.primal_weight
        length = (self.weight / self.capacity).astype(np.float32)
        alpha = np.float32(pull)

        def job(chunk: int, worker: int) -> None:
            first, last = self.chunks[chunk]
            kernels.advance(
                first, last, self.start, self.tail, length, self.flow, self.flow0, self.price, self.price0,
                self.demand, self.width, self.stiff, np.float32(tau), np.float32(sigma), alpha,
                self.net[worker], self.buffer[worker], self.load[chunk],
            )  # fmt: skip

        self.team.run(job, len(self.chunks))
        ratio = self.load.sum(axis=0) / self.capacity
        self._move_weights(ratio, sigma, pull)
        self.count += 1

    def _move_weights(self, ratio: F64, sigma: float, pull: float) -> None:
        if self.target is None:
            self.root = kernels.price_simplex(
                self.weight, self.weight0, ratio, self.arc_stiff, sigma, pull, self.plain, self.root
            )
        else:
            kernels.price_cone(
                self.weight, self.weight0, ratio, self.arc_stiff, sigma, pull, self.plain, self.target
            )

    def residual(self) -> float:
        """Length of the next plain step in the norm of the step sizes (without its cross term)."""
        tau, sigma = STEP / self.primal_weight, STEP * self.primal_weight
        length = (self.weight / self.capacity).astype(np.float32)

        def job(chunk: int, worker: int) -> None:
            first, last = self.chunks[chunk]
            self.sums[chunk] = kernels.movement(
                first, last, self.start, self.tail, length, self.flow, self.price, self.demand, self.width,
                self.stiff, np.float32(tau), np.float32(sigma), self.net[worker], self.buffer[worker],
            )  # fmt: skip

        self.team.run(job, len(self.chunks))
        moved, pushed = self.sums.sum(axis=0)
        pushed += float(((self.plain - self.weight) ** 2 / self.arc_stiff).sum())
        return float(np.sqrt(moved * self.primal_weight + pushed / self.primal_weight))

    def restart(self) -> tuple[float, float]:
        """Move the anchor here; returns how far flows and duals came since the last one."""

        def job(chunk: int, worker: int) -> None:
            first, last = self.chunks[chunk]
            self.sums[chunk] = kernels.travelled(
                first, last, self.start, self.flow, self.flow0, self.price, self.price0, self.width, self.stiff,
                self.buffer[worker],
            )  # fmt: skip

        self.team.run(job, len(self.chunks))
        moved, pushed = self.sums.sum(axis=0)
        pushed += float(((self.weight - self.weight0) ** 2 / self.arc_stiff).sum())
        self.weight0[:] = self.weight
        self.count = 0
        return float(np.sqrt(moved)), float(np.sqrt(pushed))

    # Bounds

    def time_bound(self, weight: F64) -> float:
        """Lower bound on T* that arc weights on the simplex prove (ours, in the solver; certified elsewhere)."""
        length = weight / self.capacity
        found = np.zeros(len(self.chunks))

        def job(chunk: int, _worker: int) -> None:
            first, last = self.chunks[chunk]
            reach = np.empty((self.n, LANES))
            found[chunk] = kernels.distance_sum(
                first, last, self.start, self.tail, length, self.demand, self.source, reach
            )

        self.team.run(job, len(self.chunks))
        return float(found.sum() / (length @ self.capacity))

    def delivered(self, out: F64 | None = None) -> float:
        """Upper bound on T*: the largest load per capacity of the current flow, made exact.

        Parameters
        ----------
        out
            Filled with the unit flows in the topology's arc order, ``(m, K)``, if given.
        """
        load = np.zeros((len(self.chunks), self.m))
        good = np.zeros(len(self.chunks), dtype=bool)
        graph = self.graph

        def job(chunk: int, _worker: int) -> None:
            whole, real = graph.workspace()
            block = np.empty((LANES, self.m))
            ok = True
            for b in range(*self.chunks[chunk]):
                lanes = slice(b * LANES, min((b + 1) * LANES, self.groups))
                count = lanes.stop - lanes.start
                block[:, self.order] = self.flow[b].T
                demand = np.ascontiguousarray(self.data.demand[:, lanes].T, dtype=float)
                ok &= bool(_unit_flows(
                    block, demand, self.data.sources[lanes], NOISE, graph.tail, graph.head, graph.first_out,
                    graph.first_in, graph.entering, whole, real,
                ))  # fmt: skip
                load[chunk] += block[:count].sum(axis=0)
                if out is not None:
                    out[:, lanes] = block[:count].T
            good[chunk] = ok

        self.team.run(job, len(self.chunks))
        if not good.all():
            return np.inf
        return float((load.sum(axis=0) / self.data.capacity).max())
