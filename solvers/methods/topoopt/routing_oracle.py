r"""The best routing over given circuits: a small LP with a recomputed bound, or shortest paths for the bandwidth tax.

For circuits ``count (n,n)`` and the problem's demand, any lengths l >= 0 of circuits prove

    Lambda >= (sum_st D_st dist_l(s,t) + sum_g S_g min over cyclic orders of g (length of its ring)) / sum count l.

For groups too large to list their rings, the sum of every member's least distance to another one bounds the last
minimum, and routings share their bytes over the +p rings: the bound may then be below the design's value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topoopt.design import default_rings, sorted_circuits
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.formulations.topoopt.topology import MOST_MEMBERS, design_from_flow, rings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.topoopt.design import Ring, TopologyDesign
    from opticoll.formulations.topoopt.topology import Wiring

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Routed:
    """A lower bound on the objective over given circuits, a design (None: not routed), and its value."""

    bound: float
    design: TopologyDesign | None
    value: float


def distances(lengths: F64) -> F64:
    """All shortest distances of a matrix of lengths (infinite where there is no circuit), ``(n, n)``."""
    dist = lengths.copy()
    np.fill_diagonal(dist, 0.0)
    for k in range(len(dist)):
        np.minimum(dist, dist[:, k : k + 1] + dist[k : k + 1, :], out=dist)
    return dist


class Oracle:
    """Routings of least objective for one problem."""

    def __init__(self, data: Wiring) -> None:
        self.data = data
        self.fixed = np.ascontiguousarray(data.fixed)
        self.sources = np.flatnonzero(data.most.sum(axis=1) > 0)
        rings = data.candidates
        self.group = np.array([ring.group for ring in rings], dtype=np.int64)
        self.transfer = np.array([data.pool.groups[g].transfer for g in self.group.tolist()])
        listed = [group.size <= MOST_MEMBERS for group in data.pool.groups]
        #: Groups all of whose rings are candidates; the others have only a bound per member.
        self.listed = [g for g in range(len(listed)) if listed[g]] if data.free_rings else []
        self.unlisted = [g for g in range(len(listed)) if not listed[g]] if data.free_rings else []
        self.solved = 0

    def ring_cost(self, dist: F64) -> F64:
        """Length of every listed ring, times its group's bytes, ``(R,)``."""
        return np.array([
            size * float(dist[list(ring.order), np.roll(ring.order, -1)].sum())
            for ring, size in zip(self.data.candidates, self.transfer.tolist(), strict=True)
        ])  # fmt: skip

    def paid(self, dist: F64) -> float:
        """Lower bound on the total length of the demand's routes under these distances."""
        wanted = self.fixed > 0
        total = float((self.fixed[wanted] * dist[wanted]).sum())
        if self.listed:
            cost = self.ring_cost(dist)
            total += sum(float(cost[self.group == g].min()) for g in self.listed)
        for g in self.unlisted:
            group = self.data.pool.groups[g]
            here = dist[np.ix_(group.members, group.members)].copy()
            np.fill_diagonal(here, np.inf)
            total += group.transfer * max(float(here.min(axis=1).sum()), float(here.min(axis=0).sum()))
        return total

    def proven(self, count: I64, lengths: F64) -> float:
        """The bound of the module for these lengths, ``(n, n)``."""
        here = count > 0
        price = float((count[here] * lengths[here]).sum())
        if not price > 0:
            return 0.0
        return self.paid(distances(np.where(here, np.maximum(lengths, 0.0), np.inf))) / price

    def route(self, count: I64, target: float = np.inf) -> Routed:
        """The least objective over these circuits [bytes, or tax].

        A design is made only if it is better than ``target``.
        """
        self.solved += 1
        if self.data.objective == "bandwidth-tax":
            return self._shortest(count, target)
        return self._least_load(count, target)

    def _shortest(self, count: I64, target: float) -> Routed:
        dist = distances(np.where(count > 0, 1.0, np.inf))
        value = self.paid(dist) / self.data.total
        if not value < target:
            return Routed(value, None, value)
        rings: tuple[Ring, ...] = default_rings(self.data.pool)
        if self.group.size:
            cost, share = self.ring_cost(dist), np.zeros(self.group.size)
            for g in np.unique(self.group).tolist():
                members = np.flatnonzero(self.group == g)
                share[members[int(np.argmin(cost[members]))]] = 1.0
            rings = rings_of(self.data, share)
        tail, head = np.nonzero(count)
        circuits = np.repeat(np.stack([tail, head], axis=1), count[tail, head], axis=0)
        found = routed_design(self.data.pool, sorted_circuits(circuits), rings)
        return Routed(value, found, found.bandwidth_tax)

    def _least_load(self, count: I64, target: float) -> Routed:
        """The LP: min t, sum_s f_sa <= count_a t, flows balanced, rings shared; in the model's unit."""
        import highspy
        import scipy.sparse as sp

        data, n, sources = self.data, self.data.n, self.sources
        tail, head = np.nonzero(count)
        m, groups, rings = tail.size, sources.size, self.group.size
        unit = data.unit
        commodity, arc = np.nonzero(head[None, :] != sources[:, None])
        flows = commodity.size
        row_in, row_out = head[arc] * groups + commodity, tail[arc] * groups + commodity
        kept = np.flatnonzero((np.arange(n)[:, None] != sources[None, :]).ravel())
        place = np.full(n * groups, -1)
        place[kept] = np.arange(kept.size)
        sent = place[row_out] >= 0
        each = np.arange(flows)
        rows = [place[row_in], place[row_out][sent], kept.size + arc, kept.size + np.arange(m)]
        columns = [each, each[sent], each, np.full(m, flows)]
        entries = [np.ones(flows), -np.ones(int(sent.sum())), np.ones(flows), -count[tail, head].astype(float)]
        if rings:
            number = np.full(n, -1)
            number[sources] = np.arange(groups)
            for r, ring in enumerate(data.candidates):
                order = np.array(ring.order)
                rows.append(place[np.roll(order, -1) * groups + number[order]])
                columns.append(np.full(order.size, flows + 1 + r))
                entries.append(np.full(order.size, -self.transfer[r] / unit))
            _, of = np.unique(self.group, return_inverse=True)
            rows.append(kept.size + m + of)
            columns.append(flows + 1 + np.arange(rings))
            entries.append(np.ones(rings))
            splits = int(of.max()) + 1
        else:
            splits = 0
        total = kept.size + m + splits
        matrix = sp.csc_array(
            (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(total, flows + 1 + rings)
        )
        right = np.concatenate([self.fixed[sources].T.ravel()[kept] / unit, np.zeros(m), np.ones(splits)])
        low = right.copy()
        low[kept.size : kept.size + m] = -np.inf
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = flows + 1 + rings, total
        lp.col_cost_ = np.bincount([flows], minlength=flows + 1 + rings).astype(float)
        lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.full(lp.num_col_, np.inf)
        lp.row_lower_, lp.row_upper_ = low, right
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        highs = highspy.Highs()
        highs.resetGlobalScheduler(True)  # an earlier run with other threads in this process would make this one fail
        for name, setting in (("output_flag", False), ("solver", "simplex"), ("threads", 1)):
            highs.setOptionValue(name, setting)
        highs.passModel(lp)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return Routed(self.proven(count, np.ones((n, n))), None, np.inf)  # infinite if some demand has no way
        found = highs.getSolution()
        x, dual = np.array(found.col_value), np.array(found.row_dual)
        lengths = np.zeros((n, n))
        lengths[tail, head] = np.maximum(-dual[kept.size : kept.size + m], 0.0)
        bound, value = self.proven(count, lengths), float(x[flows]) * unit
        if not value < target:
            return Routed(bound, None, value)
        flow = np.zeros((n, n, n))
        flow[sources[commodity], tail[arc], head[arc]] = np.maximum(x[:flows], 0.0)
        chosen = rings_of(data, x[flows + 1 :]) if rings else default_rings(data.pool)
        made = design_from_flow(data, count, chosen, flow)
        return Routed(bound, made, np.inf if made is None else made.max_load)
