"""Simulation of a training iteration at flow level: an event engine with max-min fair rates.

Source  progressive filling: Bertsekas & Gallager, Data Networks, section 6.5.2; circuits that change: TopoOpt, section
        5.1 and appendix E.4

Computing tasks of a server run one at a time, the ready one with the smallest number first. Flows of a communication
start when it is ready. Rates are recomputed whenever a flow starts or ends, by water-filling: the arc with the smallest
remaining capacity per unit of share fixes the rates of its flows, and so on. A communication ends one latency after its
last byte. Nothing is random: the same input gives the same schedule.

``resolution``: flows that would end at most this much later than the first one end at the same event, at unchanged
rates until then. All bytes are carried and no arc is overloaded; other flows get the freed capacity that much later.
The rule "at once" of the model is resolution 0. ``precision`` is the same as a fraction of the time since the start;
the larger of the two applies.

Reconfigurable circuits (:class:`CircuitNetwork`): the first circuits are chosen for the traffic of the whole iteration,
as if measured in the previous iteration. At every interval they are chosen for the remaining bytes of the flows that
have started; if there are none, the circuits stay. After a change nothing is sent during the pause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.training.network_iteration import Flows, ServerNetwork, TaskSchedule, flows_of
from opticoll.compiled import compiled
from opticoll.errors import NoSolution, refuse
from opticoll.instances.topology import Topology
from opticoll.instances.training.task_graph import COMPUTING, TRANSFER
from opticoll.instances.training.task_pool import TaskPool
from opticoll.solvers.methods.sipml.ring_first_fit import ring_circuits
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import connected, topology_finder
from opticoll.solvers.methods.topoopt.utility_circuits import geometric, greedy_circuits
from opticoll.solvers.schedules.schedule_kernels import fair_rates

if TYPE_CHECKING:
    from opticoll.analysis.training.network_iteration import Routing
    from opticoll.instances.families.machines import CircuitNetwork
    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.task_graph import TaskGraph

#: Changes of circuits without progress after which a simulation is aborted.
MOST_CHANGES = 100_000
_WAITING, _READY, _RUNNING, _DONE = 0, 1, 2, 3


@compiled(nogil=True)
def _advance(  # noqa: C901 - compiled
    tasks: tuple[I64, I64, F64, F64, I64, I64, I64],
    servers: tuple[I64, I64, I64, I64],
    state: tuple[I64, I64, F64, F64, I64],
    flows: tuple[I64, I64, I64, F64, F64, F64],
    progress: tuple[F64, F64, I64, F64, I64],
    due: tuple[F64, I64],
    clock: F64,
    sizes: I64,
    until: float,
    silent: bool,
    record: bool,
) -> F64:  # pragma: no cover  compiled
    """Run to the time ``until``, or to the end; return the rows of rates.

    tasks     kind, server, computing time, latency, successors (start, list), first flow of every task
    servers   first of a server's tasks, its tasks, the first that may wait; 0 busy, 1 idle, 2 to be checked
    sizes     completed tasks, tasks that end at a known time (due), active flows, events, tasks to be checked
    """
    kind, server, seconds, lag, succ_start, succ, flow_start = tasks
    own_start, own, cursor, idle = servers
    status, waits, begin, end, todo = state
    start, arc, owner, share, capacity, size = flows
    left, rate, active, lasted, missing = progress
    due_time, due_item = due
    rows, used = np.empty((1024 if record else 1, 4)), 0
    done, timers, busy, events, fresh = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    resolution, precision = clock[1], clock[2]
    stale = True
    while True:
        now = clock[0]
        while fresh > 0:
            fresh -= 1
            t = todo[fresh]
            if status[t] == _WAITING:  # becomes ready
                status[t] = _READY
                if kind[t] == 0 and server[t] >= 0:
                    s = server[t]
                    if idle[s] == 0:
                        continue
                    idle[s] = 2  # others may become ready at this moment
                elif kind[t] == 0:
                    status[t], begin[t] = _RUNNING, now
                    due_time[timers], due_item[timers] = now + seconds[t], t
                    timers += 1
                else:
                    status[t], begin[t] = _RUNNING, now
                    missing[t] = 0
                    for f in range(flow_start[t], flow_start[t + 1]):
                        if size[f] > 0.0:
                            left[f] = size[f]
                            active[busy] = f
                            busy += 1
                            missing[t] += 1
                            stale = True
                            events += 1
                    if missing[t] == 0:
                        due_time[timers], due_item[timers] = now + lag[t], t
                        timers += 1
            else:  # has ended
                status[t], end[t] = _DONE, now
                done += 1
                if kind[t] == 0 and server[t] >= 0:
                    idle[server[t]] = 2
                for e in range(succ_start[t], succ_start[t + 1]):
                    then = succ[e]
                    waits[then] -= 1
                    if waits[then] == 0:
                        todo[fresh] = then
                        fresh += 1
        for s in range(idle.size):
            if idle[s] != 2:
                continue
            idle[s] = 1
            while cursor[s] < own_start[s + 1] and status[own[cursor[s]]] >= _RUNNING:
                cursor[s] += 1
            for k in range(cursor[s], own_start[s + 1]):
                t = own[k]
                if status[t] == _READY:
                    status[t], begin[t], idle[s] = _RUNNING, now, 0
                    due_time[timers], due_item[timers] = now + seconds[t], t
                    timers += 1
                    break
        if stale and busy > 0:
            if silent:
                for i in range(busy):
                    rate[active[i]] = 0.0
            else:
                fair_rates(active[:busy], start, arc, share, capacity, rate)
            stale = False
        soonest = np.inf
        for i in range(busy):
            f = active[i]
            if rate[f] > 0.0:
                soonest = min(soonest, left[f] / rate[f])
        timed = np.inf
        for i in range(timers):
            timed = min(timed, due_time[i])
        together = max(resolution, precision * now)
        if soonest < np.inf and together > 0.0:
            latest = soonest
            for i in range(busy):
                f = active[i]
                if rate[f] > 0.0 and left[f] / rate[f] <= soonest + together:
                    latest = max(latest, left[f] / rate[f])
            if timed > now + soonest:
                latest = min(latest, timed - now)
            soonest = latest
        moment = min(now + soonest, timed)
        if moment > until or moment == np.inf:
            span = min(moment, until) - now
            ended = False
        else:
            span = moment - now
            ended = True
        if span < np.inf and span > 0.0 and busy > 0:
            for i in range(busy):
                f = active[i]
                if record and rate[f] > 0.0:
                    if used == rows.shape[0]:
                        rows = np.concatenate((rows, np.empty((used, 4))))
                    carried = min(left[f] / rate[f], span)
                    rows[used, 0], rows[used, 1], rows[used, 2], rows[used, 3] = now, now + carried, f, rate[f]
                    used += 1
        if not ended:
            for i in range(busy):
                if until < np.inf:
                    left[active[i]] = max(left[active[i]] - rate[active[i]] * span, 0.0)
            if until < np.inf:
                clock[0] = until
            break
        # a flow ends when less is left than it sends in a billionth of the span, or in 1e-15 s
        limit = soonest * (1.0 + 1e-9) + 1e-15
        kept = 0
        over = now + soonest <= timed
        clock[0] = moment
        for i in range(busy):
            f = active[i]
            if over and rate[f] > 0.0 and left[f] <= rate[f] * limit:
                left[f], lasted[f], stale = 0.0, moment, True
                events += 1
                t = owner[f]
                missing[t] -= 1
                if missing[t] == 0:
                    due_time[timers], due_item[timers] = moment + lag[t], t
                    timers += 1
            else:
                left[f] = max(left[f] - rate[f] * span, 0.0)
                active[kept] = f
                kept += 1
        busy = kept
        ended = False
        while not ended:  # those that are due, by time and number
            first = -1
            for i in range(timers):
                if due_time[i] <= moment and (
                    first < 0
                    or due_time[i] < due_time[first]
                    or (due_time[i] == due_time[first] and due_item[i] < due_item[first])
                ):
                    first = i
            ended = first < 0
            if not ended:
                timers -= 1
                todo[fresh] = due_item[first]
                fresh += 1
                due_time[first], due_item[first] = due_time[timers], due_item[timers]
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = done, timers, busy, events, fresh
    return rows[:used].copy()


class _Engine:
    """The arrays and the progress of a simulation."""

    def __init__(
        self, graph: TaskGraph, flows: Flows, latency: float, resolution: float, precision: float, *, record: bool
    ) -> None:
        count, waits = graph.tasks, graph.waits
        sort = np.argsort(waits[:, 0], kind="stable")
        succ_start = np.searchsorted(waits[sort, 0], np.arange(count + 1))
        lag = np.zeros(count)
        np.maximum.at(lag, flows.task, latency * flows.hops)
        flow_start = np.searchsorted(flows.task, np.arange(count + 1))
        seconds = np.where(graph.kind == COMPUTING, graph.amount, 0.0)
        self.tasks = (graph.kind, graph.server, seconds, lag, succ_start, waits[sort, 1].copy(), flow_start)
        own = np.flatnonzero((graph.kind == COMPUTING) & (graph.server >= 0))
        own = own[np.argsort(graph.server[own], kind="stable")]
        own_start = np.searchsorted(graph.server[own], np.arange(graph.servers + 1))
        self.servers = (own_start, own, own_start[:-1].copy(), np.ones(graph.servers, dtype=np.int64))
        left = np.bincount(waits[:, 1], minlength=count).astype(np.int64)
        todo = np.zeros(2 * count + 1, dtype=np.int64)
        ready = np.flatnonzero(left == 0)[::-1]
        todo[: ready.size] = ready
        self.state = (np.zeros(count, dtype=np.int64), left, np.zeros(count), np.full(count, np.inf), todo)
        self.flows, self.graph, self.record = flows, graph, record
        none = np.zeros(flows.count)
        self.progress = (
            none,
            none.copy(),
            np.zeros(flows.count, dtype=np.int64),
            none.copy(),
            np.zeros(count, dtype=np.int64),
        )
        self.due = (np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64))
        self.clock = np.array([0.0, _checked(resolution, "resolution"), _checked(precision, "precision")])
        self.sizes = np.array([0, 0, 0, 0, ready.size], dtype=np.int64)
        self.rows: list[F64] = []

    @property
    def over(self) -> bool:
        """Whether all tasks have ended."""
        return bool(self.sizes[0] == self.graph.tasks)

    @property
    def active(self) -> I64:
        """Flows that have started and not ended."""
        return self.progress[2][: self.sizes[2]]

    def run(self, until: float = np.inf, *, silent: bool = False) -> None:
        """Advance to a time, or to the end; ``silent``: nothing is sent."""
        one = self.flows
        flows = (one.start, one.arc, one.task, one.share, one.capacity, one.size)
        rows = _advance(
            self.tasks,
            self.servers,
            self.state,
            flows,
            self.progress,
            self.due,
            self.clock,
            self.sizes,
            until,
            silent,
            self.record,
        )
        if self.record:
            self.rows.append(rows)

    def _stuck(self, end: F64) -> str:
        """The first task that does not end although all for which it waits have ended, in words."""
        graph, endless = self.graph, ~np.isfinite(end)
        first, then = graph.waits.T
        waiting = np.isin(np.arange(graph.tasks), then[endless[first]])
        task = int(np.argmax(endless & ~waiting))
        if graph.kind[task] == TRANSFER:
            return f"the transfer from server {graph.server[task]} to server {graph.target[task]} (task {task})"
        members = graph.groups[graph.group[task]]
        named = ", ".join(map(str, members[:8])) + (", ..." if len(members) > 8 else "")
        return f"the all-reduce among servers {named} (task {task})"

    def schedule(self) -> TaskSchedule:
        """The simulated schedule.

        Raises
        ------
        NoSolution
            If some task never ends.
        """
        _, _, begin, end, _ = self.state
        if not self.over:
            refuse("iteration", f"the network has no route for {self._stuck(end)}", NoSolution)
        rates = np.concatenate(self.rows) if self.record else None
        return TaskSchedule(begin, end, rates, int(self.sizes[3]))


def _checked(value: float, name: str) -> float:
    if not 0 <= value < np.inf:
        refuse("iteration", f"{name} {value}; give a finite number of at least 0")
    return value


def simulate_flows(
    graph: TaskGraph,
    flows: Flows,
    latency: float,
    *,
    resolution: float = 0.0,
    precision: float = 0.0,
    record: bool = False,
) -> TaskSchedule:
    """Simulate a task graph over a fixed network.

    Parameters
    ----------
    graph, flows
        Tasks, and their flows over the network.
    latency
        Of a hop [s].
    resolution, precision
        See the module [s], [-].
    record
        Keep the rates, for :func:`opticoll.analysis.training.network_iteration.residuals`.

    Raises
    ------
    BadInput
        For a resolution or precision out of range.
    NoSolution
        If some traffic has no route.
    """
    engine = _Engine(graph, flows, latency, resolution, precision, record=record)
    engine.run()
    return engine.schedule()


# circuits ---------------------------------------------------------------------------------------------------------


def circuit_topology(n: int, circuits: I64) -> Topology:
    """The circuits as arcs; parallel ones form one arc, with their number as capacity."""
    key, number = np.unique(circuits[:, 0] * n + circuits[:, 1], return_counts=True)
    return Topology(n, key // n, key % n, number.astype(float))


def designed_network(
    graph: TaskGraph,
    circuits: CircuitNetwork,
    bandwidth: float,
    *,
    latency: float = 1e-6,
    routing: Routing = "single",
    ring_factor: float | None = None,
) -> ServerNetwork:
    """Choose circuits once for the traffic of a task graph and return their network.

    Rule ``topoopt`` uses TopologyFinder, which also chooses the rings; rule ``sip-ocs`` chooses by demand.

    Parameters
    ----------
    graph, circuits
        Tasks, and the network's rule.
    bandwidth
        Of an interface [bytes/s].
    latency, routing
        As for :class:`Network`.
    ring_factor
        As for :func:`flows_of`.
    """
    pool = TaskPool(graph, circuits.degree, ring_factor=ring_factor)
    result = circuits.rule == "topoopt"
    design = topology_finder(pool) if result else ocs_reconfig(pool, discount=circuits.discount)
    rings: dict[tuple[int, ...], list[tuple[float, tuple[int, ...]]]] = {}
    for ring in design.rings:
        rings.setdefault(pool.groups[ring.group].members, []).append((ring.share, ring.order))
    topology = circuit_topology(pool.n, design.circuits)
    chosen = {members: tuple(those) for members, those in rings.items()}
    return ServerNetwork(topology, bandwidth, latency, routing, chosen)


def simulate_circuits(
    graph: TaskGraph,
    circuits: CircuitNetwork,
    bandwidth: float,
    *,
    latency: float = 1e-6,
    ring_factor: float | None = None,
    resolution: float = 0.0,
    precision: float = 0.0,
) -> tuple[TaskSchedule, int]:
    """Simulate a task graph over circuits that may change at every interval; return schedule and number of changes.

    Parameters
    ----------
    graph, circuits
        Tasks, and the network's rule with a finite interval.
    bandwidth
        Of an interface, or of a wavelength of a ring [bytes/s].
    latency, ring_factor, resolution, precision
        As for :func:`designed_network` and :func:`simulate_flows`.

    Raises
    ------
    BadInput
        For a network of another size, or a resolution out of range.
    NoSolution
        If it makes no progress.
    """
    if circuits.n != graph.servers:
        refuse("iteration", f"{circuits.spec} has {circuits.n} servers, the task graph {graph.servers}")
    demand = TaskPool(graph, circuits.degree, ring_factor=ring_factor).traffic
    network = _circuits_for(demand, circuits, bandwidth, latency)
    flows = flows_of(graph, network, ring_factor=ring_factor, hopwise=True)
    engine = _Engine(graph, flows, latency, resolution, precision, record=False)
    pairs, back = np.unique(np.stack([flows.source, flows.target], axis=1), axis=0, return_inverse=True)
    changes = 0
    for tick in range(1, MOST_CHANGES):
        engine.run(tick * circuits.interval)
        if engine.over:
            break
        active = engine.active
        if not active.size:
            continue
        demand = np.zeros((graph.servers, graph.servers))
        np.add.at(demand, (flows.source[active], flows.target[active]), engine.progress[0][active])
        network = _circuits_for(demand, circuits, bandwidth, latency)
        start, arc, share = network.routes(pairs[:, 0], pairs[:, 1])
        length = np.diff(start)[back.ravel()]
        first = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        entry = np.repeat(start[:-1][back.ravel()] - first[:-1], length) + np.arange(first[-1])
        engine.flows = replace(flows, start=first, arc=arc[entry], share=share[entry], capacity=network.capacity)
        changes += 1
        engine.run(tick * circuits.interval + circuits.pause, silent=True)
    return engine.schedule(), changes


def _circuits_for(demand: F64, circuits: CircuitNetwork, bandwidth: float, latency: float) -> ServerNetwork:
    """Choose circuits for the remaining demand by Algorithm 5, or the wavelengths of a ring."""
    if circuits.rule == "sip-ring-wavelengths":
        chosen = ring_circuits(demand, circuits.degree)
        return ServerNetwork(circuit_topology(circuits.n, chosen), bandwidth, latency, forwarding=circuits.forwarding)
    chosen = greedy_circuits(demand, circuits.degree, geometric(circuits.degree, circuits.discount))
    if circuits.forwarding:
        chosen = connected(circuits.n, chosen, circuits.degree, demand)
    return ServerNetwork(circuit_topology(circuits.n, chosen), bandwidth, latency, forwarding=circuits.forwarding)
