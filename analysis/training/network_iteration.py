r"""Training iterations over a network: flows of a task graph, checker of their schedule, lower bounds on its length.

Source  flow-level simulation as in TopoOpt, section 5.1 (FlexNet); max-min fairness: Bertsekas & Gallager, Data
        Networks, section 6.5.2
Data    a task graph (:mod:`opticoll.instances.training.task_graph`); arcs a with capacity c_a [bytes/s]; latency
        of a hop [s]; routes: a transfer from s to t uses a share x_a of its rate on arc a, with sum 1 out of s and
        into t
Flows   a transfer of b bytes is one flow of b bytes with those shares. An all-reduce of a buffer of S bytes among k
        servers sends 2 (k-1)/k S bytes over every hop of a one-way ring (``ring_factor`` replaces 2 (k-1)/k). Its rings
        share the buffer. All hops of a ring progress at one rate, since a step starts when the previous one has
        arrived: the ring is one flow whose share of an arc is the number of hops that use it. If circuits change,
        every hop of a ring is a separate flow.
Rates   r_f(t) >= 0 with sum_f x_fa r_f <= c_a for all a; max-min fair: every flow uses a full arc on which no flow
        has a larger rate

A schedule has the start and end of every task, and optionally rates: rows (from, to, flow, rate). It is valid if
    order      no task starts before the tasks that it waits for end
    computing  computing tasks take their time, and a server runs one at a time
    bytes      every flow carries all its bytes between start and end of its task
    capacity   no arc carries more than its capacity
    latency    a communication ends at least its latency after its last byte: hops of the route, for an all-reduce
               2 (k-1) times those of its ring's longest hop
    fairness   rates are max-min fair

Bounds on the length of every valid schedule. With h_t the longest chain of tasks before t, each as fast as if it ran
alone, and q_t the longest chain after it:
    chain      max_t h_t + p_t + q_t, with p_t the time of t alone
    server     min_t h_t + sum_t p_t + min_t q_t over the computing tasks of a server
    link       min_t h_t + bytes / c_a + min_t q_t over the tasks that use an arc; likewise for all arcs out of a server
               together, and into it (cut)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.compiled import compiled
from opticoll.errors import BadInput, refuse
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.segments import offsets, positions
from opticoll.instances.training.task_graph import ALL_REDUCE, COMPUTING, TRANSFER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.instances.training.task_graph import TaskGraph

Routing = Literal["single", "even"]
Rings = tuple[tuple[float, tuple[int, ...]], ...]
ROUTINGS = ("single", "even")


@dataclass(frozen=True, eq=False)
class ServerNetwork:
    """Servers on a topology, its bandwidth, and the routing of traffic.

    Parameters
    ----------
    topology
        Topology whose s-th terminal is server s; parallel arcs become one arc of their total capacity.
    bandwidth
        Bandwidth of capacity 1 [bytes/s].
    latency
        Latency of a hop [s].
    routing
        ``single``: one shortest path, ties by a hash. ``even``: all shortest paths, every vertex splits evenly.
    rings
        Share and order of the rings of a group; the default is one ring in the order of its members.
    forwarding
        Whether vertices forward traffic; otherwise only neighbours have a route.

    Raises
    ------
    BadInput
        For a bandwidth or latency out of range.
    """

    topology: Topology
    bandwidth: float
    latency: float = 1e-6
    routing: Routing = "single"
    rings: Mapping[tuple[int, ...], Rings] | None = None
    forwarding: bool = True

    def __post_init__(self) -> None:
        if not (0 < self.bandwidth < np.inf and 0 <= self.latency < np.inf):
            msg = f"network: {self.bandwidth} bytes/s, latency {self.latency} s; give finite numbers, bandwidth above 0"
            raise BadInput(msg)
        if self.routing not in ROUTINGS:
            refuse("network", f"routing {self.routing!r}; use one of {', '.join(ROUTINGS)}")
        object.__setattr__(self, "topology", self.topology.joined())

    @property
    def capacity(self) -> F64:
        """Capacity of every arc [bytes/s], ``(m,)``."""
        return self.topology.capacity * self.bandwidth

    def rings_of(self, members: tuple[int, ...]) -> Rings:
        """Share and order of the rings of a group."""
        return (self.rings or {}).get(members, ((1.0, members),))

    @cached_property
    def _hops(self) -> I64:
        """Hops between all vertices, ``(n, n)``; -1 if there is no path."""
        values = self.topology.distances(np.ones(self.topology.arcs))
        reached = np.isfinite(values) if self.forwarding else values <= 1
        return np.where(reached, values, -1).astype(np.int64)

    def routes(self, source: I64, target: I64) -> tuple[I64, I64, F64]:
        """Routes of pairs of servers: start ``(P+1,)``, arcs, shares; empty for a pair without a path.

        Parameters
        ----------
        source, target
            Servers, ``(P,)`` each.
        """
        topology = self.topology
        s, t = topology.terminals[source], topology.terminals[target]
        first = np.searchsorted(topology.tail, np.arange(topology.n + 1))
        result: tuple[I64, I64, F64] = _spread(s, t, self._hops, first, topology.head, self.routing == "even")
        return result


@compiled(nogil=True)
def _spread(
    source: I64, target: I64, hops: I64, first: I64, head: I64, even: bool
) -> tuple[I64, I64, F64]:  # pragma: no cover  compiled
    """Shortest routes of pairs of vertices: start, arcs, shares."""
    count, n = source.size, first.size - 1
    start = np.zeros(count + 1, dtype=np.int64)
    arcs, shares = np.empty(1024, dtype=np.int64), np.empty(1024)
    amount, queue = np.zeros(n), np.empty(n, dtype=np.int64)
    used = 0
    for p in range(count):
        s, t = source[p], target[p]
        if s != t and hops[s, t] >= 0:
            queue[0], amount[s] = s, 1.0
            low, high = 0, 1
            while low < high:
                v = queue[low]
                low += 1
                if v == t:
                    amount[v] = 0.0
                    continue
                fits = 0
                for a in range(first[v], first[v + 1]):
                    if hops[head[a], t] == hops[v, t] - 1:
                        fits += 1
                mixed = ((s * 73856093) ^ (t * 19349663) ^ (v * 83492791)) * 2654435761 % 4294967296
                chosen, seen = mixed % fits, 0
                for a in range(first[v], first[v + 1]):
                    w = head[a]
                    if hops[w, t] != hops[v, t] - 1:
                        continue
                    if even or seen == chosen:
                        part = amount[v] / fits if even else amount[v]
                        if amount[w] == 0.0:
                            queue[high] = w
                            high += 1
                        amount[w] += part
                        if used == arcs.size:
                            arcs = np.concatenate((arcs, np.empty(used, dtype=np.int64)))
                            shares = np.concatenate((shares, np.empty(used)))
                        arcs[used], shares[used] = a, part
                        used += 1
                    seen += 1
                amount[v] = 0.0
        start[p + 1] = used
    return start, arcs[:used].copy(), shares[:used].copy()


# flows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Flows:
    """Flows of a task graph over a network, in the order of their tasks.

    Parameters
    ----------
    task, size
        Task and bytes of every flow, ``(F,)``.
    start, arc, share
        Arcs of flow f, and its share on each, at ``start[f] .. start[f+1]``; empty for a flow without a path.
    hops
        Latency of every flow in hops, ``(F,)``.
    capacity
        Capacity of the arcs [bytes/s], ``(m,)``.
    leaves, enters
        Server of an arc's tail, and of its head; -1 for a switch, ``(m,)`` each.
    source, target
        Ends of a flow between two servers; -1 for a ring, ``(F,)`` each.
    """

    task: I64
    size: F64
    start: I64
    arc: I64
    share: F64
    hops: I64
    capacity: F64
    leaves: I64
    enters: I64
    source: I64
    target: I64

    @property
    def count(self) -> int:
        """Number of flows."""
        return int(self.task.size)

    @cached_property
    def owner(self) -> I64:
        """Flow of every entry of ``arc``."""
        return np.repeat(np.arange(self.count), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class Hops:
    """The hops of all communication, sorted by task: a transfer has one, a ring one for every member.

    ``flow`` numbers transfers and rings; ``steps`` is the number of times that a hop's latency counts. ``(H,)`` each.
    """

    task: I64
    flow: I64
    source: I64
    target: I64
    size: F64
    steps: I64


def hops_of(graph: TaskGraph, network: ServerNetwork, ring_factor: float | None = None) -> Hops:
    """Hops of transfers and of the rings of all-reduces, see :class:`Hops`."""
    moved = np.flatnonzero(graph.kind == TRANSFER)
    single = np.zeros(moved.size, dtype=np.int64)
    columns: list[list[NDArray[np.generic]]] = [
        [moved],
        [single],
        [graph.server[moved]],
        [graph.target[moved]],
        [graph.amount[moved]],
        [single + 1],
    ]
    for task in np.flatnonzero(graph.kind == ALL_REDUCE).tolist():
        members = graph.groups[graph.group[task]]
        k = len(members)
        factor = 2 * (k - 1) / k if ring_factor is None else ring_factor
        for number, (share, listed) in enumerate(network.rings_of(members)):
            order = np.array(listed, dtype=np.int64)
            size = np.full(k, share * factor * float(graph.amount[task]))
            row = (np.full(k, task), np.full(k, number), order, np.roll(order, -1), size, np.full(k, 2 * (k - 1)))
            for column, values in zip(columns, row, strict=True):
                column.append(values)
    task_, ring, source, target, size_, steps = (np.concatenate(column) for column in columns)
    sort = np.argsort(task_, kind="stable")
    task_, ring = task_[sort], ring[sort]
    new = (np.diff(task_, prepend=-1) != 0) | (np.diff(ring, prepend=-1) != 0)
    return Hops(task_, np.cumsum(new) - 1, source[sort], target[sort], size_[sort], steps[sort])


def flows_of(
    graph: TaskGraph, network: ServerNetwork, *, ring_factor: float | None = None, hopwise: bool = False
) -> Flows:
    """Build the flows of a task graph.

    Parameters
    ----------
    graph, network
        Tasks, and the network with at least as many servers.
    ring_factor
        Bytes over every hop of a ring per byte of the buffer; 2 (k-1)/k if None.
    hopwise
        Whether every hop of a ring is a flow, instead of the whole ring.
    """
    topology = network.topology
    hops = hops_of(graph, network, ring_factor)
    pairs, back = np.unique(np.stack([hops.source, hops.target], axis=1), axis=0, return_inverse=True)
    start, arc, share = network.routes(pairs[:, 0], pairs[:, 1])
    pair, length = back.ravel(), np.diff(start)
    long = np.bincount(np.repeat(np.arange(length.size), length), share, length.size)
    levels = np.maximum(np.ceil(long - 1e-9), 1).astype(np.int64)[pair] * hops.steps
    place = np.full(topology.n, -1, dtype=np.int64)
    place[topology.terminals] = np.arange(topology.num_ranks)
    _, entry = positions(start, pair)
    first = offsets(length[pair])
    made = Flows(
        hops.task,
        hops.size,
        first,
        arc[entry],
        share[entry],
        levels,
        network.capacity,
        place[topology.tail],
        place[topology.head],
        hops.source,
        hops.target,
    )
    return made if hopwise else _joined(made, hops.flow)


def _joined(hops: Flows, flow: I64) -> Flows:
    """Join the hops of each flow by adding their shares of every arc; a flow with an unroutable hop gets no arcs."""
    if not flow.size:
        return hops
    first, arcs, length = np.flatnonzero(np.diff(flow, prepend=-1)), hops.capacity.size, np.diff(hops.start)
    key, which = np.unique(np.repeat(flow, length) * arcs + hops.arc, return_inverse=True)
    whole = np.minimum.reduceat(length, first) > 0
    kept = whole[key // arcs]
    share = np.bincount(which.ravel(), hops.share, key.size).astype(np.float64)[kept]
    start = np.searchsorted(key[kept] // arcs, np.arange(first.size + 1))
    alone = np.diff(np.append(first, flow.size)) == 1
    return Flows(
        hops.task[first],
        hops.size[first],
        start,
        key[kept] % arcs,
        share,
        np.maximum.reduceat(hops.hops, first),
        hops.capacity,
        hops.leaves,
        hops.enters,
        np.where(alone, hops.source[first], -1),
        np.where(alone, hops.target[first], -1),
    )


# schedules ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TaskSchedule:
    """Start and end of every task [s], and the rates of flows if they were recorded.

    Parameters
    ----------
    start, end
        Start and end of every task [s], ``(T,)`` each.
    rates
        Rows (from, to, flow, rate) [s, s, -, bytes/s], ``(., 4)``; None if they were not recorded.
    events
        Number of times that a flow began or ended.
    """

    start: F64
    end: F64
    rates: F64 | None = None
    events: int = 0

    @property
    def length(self) -> float:
        """Length of the iteration [s]."""
        return float(self.end.max(initial=0.0))


#: Blocks of :func:`residuals`.
BLOCKS = ("order", "computing", "bytes", "capacity", "latency", "fairness")


def residuals(graph: TaskGraph, flows: Flows, schedule: TaskSchedule, latency: float) -> dict[str, float]:
    """Worst violation of every block, relative to the length, bytes or capacity; from numpy alone.

    Blocks that depend on rates are NaN without recorded rates.
    """
    scale = max(schedule.length, 1e-30)
    waits, result = graph.waits, dict.fromkeys(BLOCKS, np.nan)
    late = schedule.end[waits[:, 0]] - schedule.start[waits[:, 1]] if waits.size else np.zeros(1)
    result["order"] = max(float(late.max()), float((schedule.start - schedule.end).max(initial=0.0)), 0.0) / scale
    computing = graph.kind == COMPUTING
    worst = float(np.abs(schedule.end - schedule.start - graph.amount)[computing].max(initial=0.0))
    for server in range(graph.servers):
        own = np.flatnonzero(computing & (graph.server == server))
        own = own[np.lexsort((schedule.end[own], schedule.start[own]))]
        worst = max(worst, float((schedule.end[own][:-1] - schedule.start[own][1:]).max(initial=0.0)))
    result["computing"] = worst / scale
    if schedule.rates is None:
        return result
    begin, until, which, rate = schedule.rates.T
    flow = which.astype(np.int64)
    sent = np.bincount(flow, rate * (until - begin), flows.count)
    off = np.abs(sent - flows.size) / np.maximum(flows.size, 1.0)
    early = (schedule.start[flows.task[flow]] - begin).max(initial=0.0) / scale
    result["bytes"] = max(float(off.max(initial=0.0)), float(early), 0.0)
    last = np.full(flows.count, -np.inf)
    np.maximum.at(last, flow, until)
    lag = last + latency * flows.hops - schedule.end[flows.task]
    result["latency"] = max(float(lag.max(initial=0.0)), 0.0) / scale
    moments, moment = np.unique(begin, return_inverse=True)
    result["capacity"] = result["fairness"] = 0.0
    order = np.argsort(moment.ravel(), kind="stable")
    for rows in np.split(order, np.searchsorted(moment.ravel()[order], np.arange(1, moments.size))):
        over, unfair = _shares(flows, flow[rows], rate[rows])
        result["capacity"] = max(result["capacity"], over)
        result["fairness"] = max(result["fairness"], unfair)
    return result


def _shares(flows: Flows, which: I64, rate: F64) -> tuple[float, float]:
    """Relative overload of the worst arc, and largest distance of a flow from a full arc on which it is the fastest."""
    load = np.zeros(flows.capacity.size)
    fastest = np.zeros(flows.capacity.size)
    for f, r in zip(which.tolist(), rate.tolist(), strict=True):
        own = slice(flows.start[f], flows.start[f + 1])
        np.add.at(load, flows.arc[own], flows.share[own] * r)
        np.maximum.at(fastest, flows.arc[own], r)
    used = load / flows.capacity
    worst = 0.0
    for f, r in zip(which.tolist(), rate.tolist(), strict=True):
        arcs = flows.arc[flows.start[f] : flows.start[f + 1]]
        if arcs.size:
            worst = max(worst, float(np.maximum(1.0 - used[arcs], 1.0 - r / np.maximum(fastest[arcs], 1e-300)).min()))
    return max(float(used.max(initial=0.0)) - 1.0, 0.0), worst


# bounds ---------------------------------------------------------------------------------------------------------


def _alone(graph: TaskGraph, flows: Flows, latency: float) -> F64:
    """Time of every task if it ran alone [s], ``(T,)``."""
    time = np.where(graph.kind == COMPUTING, graph.amount, 0.0)
    rate = np.full(flows.count, np.inf)
    np.minimum.at(rate, flows.owner, flows.capacity[flows.arc] / flows.share)
    rate[np.diff(flows.start) == 0] = np.inf
    np.maximum.at(time, flows.task, flows.size / rate + latency * flows.hops)
    return time


def _chains(graph: TaskGraph, time: F64) -> tuple[F64, F64]:
    """Longest chain before every task, and after it [s], ``(T,)`` each."""
    before, after = np.zeros(graph.tasks), np.zeros(graph.tasks)
    order = np.argsort(graph.waits[:, 1], kind="stable")
    for first, then in graph.waits[order].tolist():
        before[then] = max(before[then], before[first] + time[first])
    order = np.argsort(-graph.waits[:, 0], kind="stable")
    for first, then in graph.waits[order].tolist():
        after[first] = max(after[first], after[then] + time[then])
    return before, after


def bounds(graph: TaskGraph, flows: Flows, latency: float) -> list[Bound]:
    """Lower bounds on the length of every schedule over these routes [s]: chain, server, link, cut."""
    time = _alone(graph, flows, latency)
    before, after = _chains(graph, time)
    computing = np.flatnonzero((graph.kind == COMPUTING) & (graph.server >= 0))
    busy = _one_by_one(graph.server[computing], graph.amount[computing], before[computing], after[computing])
    owner, lag = flows.owner, latency * flows.hops
    task = flows.task[owner]
    seconds = flows.size[owner] * flows.share / flows.capacity[flows.arc]
    link = _one_by_one(flows.arc, seconds, before[task], (after + 0.0)[task] + lag[owner])
    cut = 0.0
    for ends in (flows.leaves, flows.enters):
        at = ends[flows.arc]
        limit = np.bincount(ends[ends >= 0], flows.capacity[ends >= 0], graph.servers)
        moved = at >= 0
        if moved.any():
            spent = flows.size[owner][moved] * flows.share[moved] / limit[at[moved]]
            cut = max(cut, _one_by_one(at[moved], spent, before[task[moved]], (after[task] + lag[owner])[moved]))
    chain = float((before + time + after).max(initial=0.0))
    return [
        Bound("chain", chain, "the longest chain of tasks, each as fast as if it ran alone", "flows"),
        Bound("server", busy, "the computing of the busiest server, with what must precede and follow it", "flows"),
        Bound(
            "link", link, "the bytes of the busiest arc at full capacity, with what must precede and follow", "flows"
        ),
        Bound("cut", cut, "the bytes out of a server, or into it, over all its arcs", "flows"),
    ]


def _one_by_one(resource: I64, seconds: F64, before: F64, after: F64) -> float:
    """Largest sum, over all resources, of its work and the shortest times before and after any of it."""
    if not resource.size:
        return 0.0
    count = int(resource.max()) + 1
    head, tail = np.full(count, np.inf), np.full(count, np.inf)
    np.minimum.at(head, resource, before)
    np.minimum.at(tail, resource, after)
    work = np.bincount(resource, seconds, count)
    return float((head + work + tail)[work > 0].max(initial=0.0))
