"""Maximum concurrent flow with commodities in groups.

Source  Shahrokhi & Matula, J. ACM 37(2), 1990; the all-to-all paper, (1)-(14) and (25)-(28)
Sets    u in V vertices (n); a in A arcs (m); k in K groups, each with one source s_k
Data    c_a >= 0 capacity [link bandwidths], (m,); D_uk >= 0 demand of u from s_k [shards], (n, |K|),
        D_{s_k,k} = 0; M incidence, (n, m), +1 where an arc enters a vertex and -1 where it leaves
Vars    x_ak >= 0 flow of group k over arc a [shards per unit time], (m, |K|); F >= 0 served fraction
        (concurrent flow) [shards per unit time]; x_ak = 0 on arcs into s_k and, where k is one commodity (s,t), on
        arcs out of t

max F  s.t.
    balance[u,k]   (M x)_uk - F D_uk  >= 0 (or = 0 with ``equality``)      u != s_k
    capacity[a]    sum_k x_ak <= c_a

The time of the collective is T = 1/F. A group per commodity gives the link MCF, a group per source the master LP.
Both have the same optimum, because a single-source flow splits by destination (flow decomposition). Arcs into s_k are
blocked: an optimal solution does not need them.

Certificate. For any lengths l >= 0,

    F <= sum_a c_a l_a / sum_uk D_uk dist_l(s_k, u),

because a flow of value F D_uk over distance dist_l uses at least F D_uk dist_l of sum_a c_a l_a (Theorem 1 of the paper
with lengths in place of hops). Equality holds at the optimal duals of ``capacity``. The bound is rigorous for every l,
so that approximate duals of any solver are sufficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.model import of_kind
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.variables import rank_pairs
from opticoll.instances.demands import FORMS, UNIFORM, DemandSpec, read_demand
from opticoll.instances.symmetry import MANY_VERTICES, one_of_each_orbit
from opticoll.instances.topology import Topology, connecting_remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.alltoall.link_mcf import LinkFlow
    from opticoll.formulations.alltoall.master import Master
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Settings

#: Checks process about this many entries at a time.
CHECK_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class ConcurrentFlow:
    """The data of a concurrent flow, with the distances and bounds of arc lengths.

    Parameters
    ----------
    topology
        Vertices and arcs.
    sources
        s_k, shape ``(|K|,)``.
    amounts
        D, shape ``(n, |K|)``; None if every rank is a source, in order, and has demand 1 from all others. With
        ``targets`` D_k, ``(|K|,)``.
    capacity
        c, shape ``(m,)``; the topology's own unless a child LP replaces it.
    barred
        Arcs on which x_ak = 0, shape ``(m, |K|)``; None for the arcs into the group's source, and out of its target.
    equality
        Whether surplus must not be dropped on the way; every group is then one commodity.
    targets
        t_k where every group is one commodity, shape ``(|K|,)``.

    What is None is not stored: at 32,768 ranks D has 8.6 GB. :meth:`demand_of` and :meth:`blocked_of` give a few
    groups, :attr:`demand` and :attr:`blocked` all of them.
    """

    topology: Topology
    sources: I64
    amounts: F64 | None
    capacity: F64
    barred: Mask | None
    equality: bool
    targets: I64 | None = None

    @classmethod
    def by_source(cls, topology: Topology, traffic: F64 | None = None) -> Self:
        """One group per source (the master LP): unit all-to-all demand, or ``traffic``.

        Parameters
        ----------
        topology
            Its terminals are the ranks.
        traffic
            Amount that each rank (row) sends to each other rank (column) [shards], ``(N, N)``, >= 0, diagonal 0. Ranks
            that send nothing have no group.

        Raises
        ------
        NotApplicable
            If some traffic has no path.
        """
        ends = topology.terminals
        if traffic is None:
            return cls(topology, ends, None, topology.capacity, None, equality=False)
        refuse_unreached(topology, traffic)
        sends = traffic.any(axis=1)
        amounts = np.zeros((topology.n, int(sends.sum())))
        amounts[ends] = traffic[sends].T
        return cls(topology, ends[sends], amounts, topology.capacity, None, equality=False)

    @classmethod
    def by_commodity(
        cls,
        topology: Topology,
        sources: I64,
        targets: I64,
        amount: F64 | None = None,
        *,
        capacity: F64 | None = None,
    ) -> Self:
        """One group per given pair, with demand 1 or ``amount`` ``(|K|,)`` (link MCF and child LPs)."""
        caps = topology.capacity if capacity is None else capacity
        amounts = np.ones(sources.size) if amount is None else amount
        return cls(topology, sources, amounts, caps, None, equality=True, targets=targets)

    @property
    def groups(self) -> int:
        """Number of groups |K|."""
        return int(self.sources.size)

    @property
    def commodities(self) -> tuple[I64, F64]:
        """Targets and amounts, ``(|K|,)`` each, where every group is one commodity."""
        assert self.targets is not None
        assert self.amounts is not None
        return self.targets, self.amounts

    @cached_property
    def demand(self) -> F64:
        """D of all groups, ``(n, |K|)``."""
        return self.demand_of(slice(None))

    @cached_property
    def blocked(self) -> Mask:
        """Arcs on which x_ak = 0, of all groups, ``(m, |K|)``."""
        return self.blocked_of(slice(None))

    @classmethod
    def from_rank(cls, topology: Topology, number: int, shards: F64, capacity: F64) -> Self:
        """One group per destination of the ``shards`` ``(N,)`` of a rank, under the given capacities (child LPs)."""
        t = np.flatnonzero(shards)
        sources, targets = np.full(t.size, topology.terminals[number]), topology.terminals[t]
        return cls.by_commodity(topology, sources, targets, shards[t], capacity=np.maximum(capacity, 0.0))

    @cached_property
    def most(self) -> F64:
        """Upper bounds of x, ``(m, |K|)``: 0 where it is blocked, else infinite."""
        return np.where(self.blocked, 0.0, np.inf)

    @cached_property
    def served(self) -> Mask:
        """Rows of ``balance``, ``(n, |K|)``: every vertex except the group's own source, and those without any arc.

        A vertex without arcs has a row if it has demand, which then nothing can meet.
        """
        return self.served_of(slice(None))

    def demand_of(self, groups: slice | I64) -> F64:
        """D of some groups, ``(n, k)``."""
        if self.targets is not None:
            targets, amounts = (each[groups] for each in self.commodities)
            demand = np.zeros((self.topology.n, targets.size))
            demand[targets, np.arange(targets.size)] = amounts
            return demand
        if self.amounts is not None:
            return self.amounts[:, groups]
        sources = self.sources[groups]
        demand = np.empty((self.topology.n, sources.size))
        for rows in blocks_of_rows(self.topology.n, sources.size):
            demand[rows] = self.topology.is_terminal[rows, None]
        demand[sources, np.arange(sources.size)] = 0.0
        return demand

    def blocked_of(self, groups: slice | I64) -> Mask:
        """Arcs on which x_ak = 0, of some groups, ``(m, k)``."""
        if self.barred is not None:
            return self.barred[:, groups]
        sources = self.sources[groups]
        blocked = np.empty((self.topology.arcs, sources.size), dtype=bool)
        for rows in blocks_of_rows(self.topology.arcs, sources.size):
            np.equal(self.topology.head[rows, None], sources[None, :], out=blocked[rows])
            if self.targets is not None:
                blocked[rows] |= self.topology.tail[rows, None] == self.targets[groups][None, :]
        return blocked

    def served_of(self, groups: slice | I64) -> Mask:
        """Rows of ``balance`` of some groups, ``(n, k)``."""
        sources = self.sources[groups]
        mask = np.repeat(self._touched[:, None], sources.size, axis=1)
        mask[sources, np.arange(sources.size)] = False
        return mask

    @cached_property
    def _touched(self) -> Mask:
        """Vertices with an arc or with demand, ``(n,)``."""
        touched = self.topology.in_degree + self.topology.out_degree > 0
        if self.targets is not None:
            return touched | np.isin(np.arange(self.topology.n), self.targets)
        if self.amounts is not None:
            return touched | self.amounts.any(axis=1)
        return touched | (self.groups > 1) & self.topology.is_terminal

    @cached_property
    def amount_range(self) -> tuple[float, float]:
        """The smallest positive demand and the mean of the positive ones; 0 without any."""
        if self.amounts is None:
            return (1.0, 1.0) if self.groups > 1 else (0.0, 0.0)
        positive = self.amounts[self.amounts > 0]
        return (float(positive.min()), float(positive.mean())) if positive.size else (0.0, 0.0)

    @cached_property
    def traffic(self) -> F64:
        """Demand between ranks, all groups together: rows are sources, columns destinations, shape ``(N, N)``."""
        ends = self.topology.terminals
        place, wanted = np.searchsorted(ends, self.sources), np.zeros((ends.size, ends.size))
        if self.targets is not None:
            targets, amounts = self.commodities
            np.add.at(wanted, (place, np.searchsorted(ends, targets)), amounts)
            return wanted
        if np.unique(place).size == place.size:
            wanted[place] = self.demand[ends].T
        else:
            np.add.at(wanted, place, self.demand[ends].T)
        return wanted

    @cached_property
    def uniform(self) -> bool:
        """Whether the demand is 1 for every ordered pair of ranks: an all-to-all."""
        if self.amounts is None:
            return True
        wanted = self.traffic
        return bool((wanted == 1.0).sum() == wanted.size - len(wanted) and not np.diagonal(wanted).any())

    def demanded(self) -> tuple[I64, I64, F64]:
        """Pairs with positive demand in a flow by source: sources and targets, ascending, and shards, each ``(K,)``."""
        group, target = np.nonzero(self.demand.T)
        return self.sources[group], target, self.demand[target, group]

    def distances(self, lengths: F64) -> F64:
        """Shortest distance from every group's source to every vertex under ``lengths``, shape ``(n, |K|)``."""
        return self._distances(lengths, np.arange(self.groups))

    def reduced_costs(self, lengths: F64) -> F64:
        """``l_a + dist(s_k, tail) - dist(s_k, head)``, shape ``(m, |K|)``; NaN where no end of the arc is reached."""
        reach, topology = self.distances(lengths), self.topology
        with np.errstate(invalid="ignore"):  # inf - inf
            return np.asarray(lengths[:, None] + reach[topology.tail] - reach[topology.head])

    def length_bound(self, lengths: F64) -> float:
        """``sum c l / sum D dist_l``, rounded up: a bound on F for any lengths, shape ``(m,)``; ``inf`` if none is > 0.

        An automorphism that keeps the lengths keeps the distances, so an all-to-all needs one source for each orbit.
        """
        lengths = rounding.usable_lengths(self.capacity, lengths)
        if not lengths.size:
            return np.inf
        power = self.demand_power()
        groups, weight = self._one_of_each_orbit(lengths)
        parts = []
        for batch in blocks_of_rows(groups.size, self.topology.n):
            demand = self.demand_of(groups[batch])
            wanted = rounding.scaled_down(demand, -power) if power else demand
            reach = self._distances(lengths, groups[batch])
            for size in np.unique(weight[batch]).tolist():
                alike = weight[batch] == size
                needed = wanted[:, alike] > 0
                parts.append(size * rounding.dot_down(wanted[:, alike][needed], reach[:, alike][needed]))
        # A distance is the sum of at most n - 1 lengths, too long by at most the rounding of their additions.
        times = int(weight.max(initial=1) > 1)
        cost = float(rounding.down(rounding.sum_down(parts), self.topology.n + times))
        return rounding.weighted_capacity(self.capacity, lengths, cost, power)

    def hop_sum(self) -> Fraction | None:
        """Sum of the hop distances between all ranks; None if some rank cannot reach another."""
        topology, total = self.topology, 0
        if self.amounts is not None or topology.n < MANY_VERTICES:
            return rounding.exact_sum(topology.hops[:, topology.terminals])
        ones = np.ones(topology.arcs)
        groups, weight = self._one_of_each_orbit(ones)
        for batch in blocks_of_rows(groups.size, topology.n):
            hops = self._distances(ones, groups[batch])[topology.terminals].sum(axis=0)
            if not np.isfinite(hops).all():
                return None
            total += int(hops.astype(np.int64) @ weight[batch])
        return Fraction(total)

    def _one_of_each_orbit(self, lengths: F64) -> tuple[I64, I64]:
        """Groups that stand for all others of the same distances under ``lengths``, and how many each stands for."""
        if self.amounts is not None or self.topology.n < MANY_VERTICES:
            return np.arange(self.groups), np.ones(self.groups, dtype=np.int64)
        return one_of_each_orbit(self.topology, lengths)

    def _distances(self, lengths: F64, groups: I64) -> F64:
        """Shortest distance from the source of each of some groups to every vertex, ``(n, k)``."""
        topology = self.topology
        unique, inverse = np.unique(self.sources[groups], return_inverse=True)
        if topology.n < MANY_VERTICES and np.ptp(lengths) == 0.0:
            reach = lengths[0] * topology.hops[np.searchsorted(topology.terminals, unique)]
        else:
            reach = topology.distances(lengths, unique)
        return reach[inverse].T

    def demand_power(self) -> int:
        """The power of two by which D is divided, rounded down, in bounds; 0 if D is of normal magnitude."""
        power = 0 if self.amounts is None else rounding.exponent(self.amounts)
        return 0 if abs(power) < 256 else power

    def scaled_demand(self) -> tuple[F64, int]:
        """D divided by a power of two, rounded down, ``(n, |K|)``, and the exponent (:meth:`demand_power`)."""
        power = self.demand_power()
        return (rounding.scaled_down(self.demand, -power) if power else self.demand), power


def ranks_of(instance: object, formulation: str) -> Topology:
    """Return the instance if it is a topology of at least two ranks.

    Raises
    ------
    NotApplicable
        If it is not a topology or has fewer than two ranks.
    """
    topology = of_kind(Topology, instance, formulation, "a topology, such as ring:8")
    if topology.num_ranks < 2:
        msg = f"{formulation}: {topology.spec} has {topology.num_ranks} rank; an all-to-all needs at least 2"
        raise NotApplicable(msg)
    return topology


def all_to_all_topology(instance: object, formulation: str, root: int | None = None) -> Topology:
    """Return the instance if it is a topology with a path between all ranks, or from the rank ``root`` to all.

    Raises
    ------
    NotApplicable
        If it is not a topology, has fewer than two ranks, or some rank cannot reach another.
    """
    topology = ranks_of(instance, formulation)
    if not topology.connected:
        sends = np.zeros((topology.num_ranks, topology.num_ranks))
        sends[slice(None) if root is None else slice(root, root + 1)] = 1.0
        refuse_unreached(topology, sends, f"{formulation}: {topology.spec} is disconnected")
    return topology


def numbered_source(number: int, topology: Topology, senders: I64, formulation: str) -> int:
    """Return the number of a rank that sends.

    Raises
    ------
    NotApplicable
        If it is not one of the ranks, or not one of ``senders``.
    """
    if not 0 <= number < topology.num_ranks:
        msg = f"{formulation}: source={number} is not a rank of {topology.spec}; ranks are 0..{topology.num_ranks - 1}"
        raise NotApplicable(msg)
    if number not in senders:
        some = str(senders[:20].tolist())[1:-1]
        refuse(formulation, f"source={number} sends nothing under this demand; choose one of {some}", NotApplicable)
    return number


def source_parameter() -> Parameter:
    """The ``--set`` parameter ``source`` of a child LP."""
    return Parameter("source", int, default=0, help="number of the rank whose flow is split")


def demand_parameter() -> Parameter:
    """The ``--set`` parameter ``demand``."""
    return Parameter("demand", DemandSpec, default=DemandSpec(UNIFORM), help=f"amounts sent: {FORMS}")


def equal_demands(parameters: Settings) -> bool:
    """Whether all ranks send the same amount to all others, so that isomorphic topologies have the same optimum."""
    return bool(parameters["demand"] == UNIFORM)


def demanded_traffic(instance: object, parameters: Settings, formulation: str) -> tuple[Topology, F64 | None]:
    """Topology of a model, and its demand D ``(N, N)``; None for one shard between all ranks.

    Raises
    ------
    NotApplicable
        If the instance is not a topology of at least two ranks with a path for every demand.
    BadInput
        For a demand that cannot be read (:func:`opticoll.instances.demands.read_demand`).
    """
    if parameters["demand"] == UNIFORM:
        return all_to_all_topology(instance, formulation), None
    topology = ranks_of(instance, formulation)
    traffic = read_demand(parameters["demand"], topology, formulation)
    refuse_unreached(topology, traffic)
    return topology, traffic


def by_source(cls: type[Master], instance: object, given: Settings) -> Master:
    """The formulation of a flow by source; errors as :func:`demanded_traffic`."""
    return cls(ConcurrentFlow.by_source(*demanded_traffic(instance, given, cls.name)))


def by_commodity(cls: type[LinkFlow], instance: object, given: Settings) -> LinkFlow:
    """The formulation of a flow by commodity; errors as :func:`demanded_traffic`."""
    topology, traffic = demanded_traffic(instance, given, cls.name)
    return cls(ConcurrentFlow.by_commodity(topology, *pairs_of(topology, traffic)), bool(given["printed"]))


def refuse_unreached(topology: Topology, traffic: F64, where: str = "") -> None:
    """Refuse traffic ``(N, N)`` between ranks without a connecting path.

    Raises
    ------
    NotApplicable
        Naming the first such pair, and ``where``, by default the topology.
    """
    ends = topology.terminals
    cut_off = np.argwhere((traffic > 0) & ~np.isfinite(topology.hops[:, ends]))
    if cut_off.size:
        source, target = (topology.labels[ends[i]] for i in cut_off[0])
        reason = f"no path from {source} to {target} ({len(cut_off)} such pairs); {connecting_remedy(topology)}"
        refuse(where or topology.spec, reason, NotApplicable)


def blocks_of_rows(rows: int, columns: int) -> Iterator[slice]:
    """Yield blocks of rows: an array of all rows may take gigabytes, and a time limit takes effect between blocks."""
    step = max(1, CHECK_ENTRIES // max(columns, 1))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


def pairs_of(topology: Topology, traffic: F64 | None) -> tuple[I64, I64, F64]:
    """Commodities of a demand ``(N, N)`` or of the uniform demand: sources, targets and amounts, each ``(|K|,)``.

    Pairs without demand are omitted; ascending by source, then target.
    """
    if traffic is None:
        sources, targets = rank_pairs(topology)
        return sources, targets, np.ones(sources.size)
    source, target = np.nonzero(traffic)
    return topology.terminals[source], topology.terminals[target], traffic[source, target]
