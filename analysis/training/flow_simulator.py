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
from opticoll.formulations.rounds.segments import offsets, positions
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

    #: Kind, server, computing time, latency, successors (start, list), first flow of every task.
    Tasks = tuple[I64, I64, F64, F64, I64, I64, I64]
    #: First of a server's tasks, its tasks, the first that may wait; busy, idle or to be examined.
    Servers = tuple[I64, I64, I64, I64]
    #: Status of a task, tasks that it waits for, begin, end; tasks that are ready or have ended, to be treated.
    State = tuple[I64, I64, F64, F64, I64]
    #: First arc of a flow, its arcs, its task, shares; capacity of an arc; bytes of a flow.
    Sent = tuple[I64, I64, I64, F64, F64, F64]
    #: Bytes left, rate, flows that are being sent, end of a flow; flows of a task that have not ended.
    Progress = tuple[F64, F64, I64, F64, I64]
    #: Times at which tasks end, those tasks.
    Due = tuple[F64, I64]

#: Changes of circuits without progress after which a simulation is aborted.
MOST_CHANGES = 100_000
#: Status of a task, and of a server.
_WAITING, _READY, _RUNNING, _DONE = 0, 1, 2, 3
_BUSY, _IDLE, _EXAMINE = 0, 1, 2
#: What a simulation counts: tasks that have ended, tasks whose end is known, flows that are being sent, starts and ends
#: of flows, tasks to be treated.
_ENDED, _TIMED, _ACTIVE, _EVENTS, _FRESH = 0, 1, 2, 3, 4


@compiled(nogil=True)
def _advance(
    tasks: Tasks,
    servers: Servers,
    state: State,
    flows: Sent,
    progress: Progress,
    due: Due,
    clock: F64,
    counts: I64,
    until: float,
    silent: bool,
    record: bool,
) -> F64:  # pragma: no cover  compiled
    """Run to the time ``until``, or to the end; return the rows of rates.

    ``clock`` is now, resolution and precision, ``counts`` as :data:`_ENDED` says.
    """
    start, arc, _, share, capacity, _ = flows
    left, rate, active, _, _ = progress
    rows, used, rated = np.empty((1024 if record else 1, 4)), 0, -1
    while True:
        _treat(tasks, servers, state, flows, progress, due, counts, clock[0])
        _serve(tasks, servers, state, due, counts, clock[0])
        sent = active[: counts[_ACTIVE]]
        if rated != counts[_EVENTS]:
            rated = counts[_EVENTS]
            if silent:
                rate[sent] = 0.0
            elif sent.size > 0:
                fair_rates(sent, start, arc, share, capacity, rate)
        timed = np.inf
        for i in range(counts[_TIMED]):
            timed = min(timed, due[0][i])
        now = clock[0]
        soonest = _next_end(sent, left, rate, timed - now, max(clock[1], clock[2] * now))
        moment = min(now + soonest, timed)
        span = min(moment, until) - now
        if record and 0.0 < span < np.inf:
            for f in sent:
                if rate[f] > 0.0:
                    if used == rows.shape[0]:
                        rows = np.concatenate((rows, np.empty((used, 4))))
                    rows[used, 0], rows[used, 1] = now, now + min(left[f] / rate[f], span)
                    rows[used, 2], rows[used, 3] = f, rate[f]
                    used += 1
        if moment > until or moment == np.inf:
            if until < np.inf:
                for f in sent:
                    left[f] = max(left[f] - rate[f] * span, 0.0)
                clock[0] = until
            return rows[:used].copy()
        clock[0] = moment
        # a flow ends when less is left than it sends in a billionth of the span, or in 1e-15 s
        limit = soonest * (1.0 + 1e-9) + 1e-15 if now + soonest <= timed else -1.0
        _send(tasks, flows, progress, due, counts, moment, span, limit)
        _take_due(state, due, counts, moment)


@compiled(nogil=True)
def _treat(
    tasks: Tasks,
    servers: Servers,
    state: State,
    flows: Sent,
    progress: Progress,
    due: Due,
    counts: I64,
    now: float,
) -> None:  # pragma: no cover  compiled
    """Begin what is ready, but for the tasks of servers; when a task has ended, make those ready that waited."""
    kind, server, seconds, lag, succ_start, succ, flow_start = tasks
    idle, size = servers[3], flows[5]
    status, waits, begin, end, todo = state
    left, _, active, _, missing = progress
    while counts[_FRESH] > 0:
        counts[_FRESH] -= 1
        t = todo[counts[_FRESH]]
        served = kind[t] == COMPUTING and server[t] >= 0
        if status[t] != _WAITING:
            status[t], end[t] = _DONE, now
            counts[_ENDED] += 1
            if served:
                idle[server[t]] = _EXAMINE
            for e in range(succ_start[t], succ_start[t + 1]):
                waits[succ[e]] -= 1
                if waits[succ[e]] == 0:
                    todo[counts[_FRESH]] = succ[e]
                    counts[_FRESH] += 1
        elif served:
            status[t] = _READY
            if idle[server[t]] != _BUSY:
                idle[server[t]] = _EXAMINE  # others may become ready at this moment
        else:
            status[t], begin[t] = _RUNNING, now
            missing[t] = 0
            for f in range(flow_start[t], flow_start[t + 1]):
                if size[f] > 0.0:
                    left[f] = size[f]
                    active[counts[_ACTIVE]] = f
                    counts[_ACTIVE] += 1
                    counts[_EVENTS] += 1
                    missing[t] += 1
            if missing[t] == 0:
                _end_at(t, now + (seconds[t] if kind[t] == COMPUTING else lag[t]), due, counts)


@compiled(nogil=True)
def _serve(
    tasks: Tasks,
    servers: Servers,
    state: State,
    due: Due,
    counts: I64,
    now: float,
) -> None:  # pragma: no cover  compiled
    """Begin the first task that is ready of every server to be examined."""
    served_start, served, cursor, idle = servers
    status, _, begin, _, _ = state
    for s in range(idle.size):
        if idle[s] != _EXAMINE:
            continue
        idle[s] = _IDLE
        while cursor[s] < served_start[s + 1] and status[served[cursor[s]]] >= _RUNNING:
            cursor[s] += 1
        for k in range(cursor[s], served_start[s + 1]):
            if status[served[k]] == _READY:
                status[served[k]], begin[served[k]], idle[s] = _RUNNING, now, _BUSY
                _end_at(served[k], now + tasks[2][served[k]], due, counts)
                break


@compiled(nogil=True)
def _next_end(sent: I64, left: F64, rate: F64, timed: float, together: float) -> float:  # pragma: no cover  compiled
    """Time until a flow ends, with those at most ``together`` later, unless a task ends before, after ``timed``."""
    soonest = np.inf
    for f in sent:
        if rate[f] > 0.0:
            soonest = min(soonest, left[f] / rate[f])
    if soonest == np.inf or together <= 0.0:
        return soonest
    latest = soonest
    for f in sent:
        if rate[f] > 0.0 and left[f] / rate[f] <= soonest + together:
            latest = max(latest, left[f] / rate[f])
    return min(latest, timed) if timed > soonest else latest


@compiled(nogil=True)
def _send(
    tasks: Tasks,
    flows: Sent,
    progress: Progress,
    due: Due,
    counts: I64,
    moment: float,
    span: float,
    limit: float,
) -> None:  # pragma: no cover  compiled
    """Send for ``span`` seconds; a flow ends that has at most ``limit`` left, a task one latency after its last."""
    owner = flows[2]
    left, rate, active, lasted, missing = progress
    kept = 0
    for i in range(counts[_ACTIVE]):
        f = active[i]
        if rate[f] > 0.0 and left[f] <= rate[f] * limit:
            left[f], lasted[f] = 0.0, moment
            counts[_EVENTS] += 1
            missing[owner[f]] -= 1
            if missing[owner[f]] == 0:
                _end_at(owner[f], moment + tasks[3][owner[f]], due, counts)
        else:
            left[f] = max(left[f] - rate[f] * span, 0.0)
            active[kept] = f
            kept += 1
    counts[_ACTIVE] = kept


@compiled(nogil=True)
def _end_at(task: int, moment: float, due: Due, counts: I64) -> None:  # pragma: no cover  compiled
    """Note when a task ends."""
    due[0][counts[_TIMED]], due[1][counts[_TIMED]] = moment, task
    counts[_TIMED] += 1


@compiled(nogil=True)
def _take_due(state: State, due: Due, counts: I64, moment: float) -> None:  # pragma: no cover  compiled
    """Move the tasks that end by now to those to be treated, by time and number."""
    todo, (time, task) = state[4], due
    while True:
        first = -1
        for i in range(counts[_TIMED]):
            if time[i] <= moment and (first < 0 or (time[i], task[i]) < (time[first], task[first])):
                first = i
        if first < 0:
            return
        todo[counts[_FRESH]] = task[first]
        counts[_FRESH] += 1
        counts[_TIMED] -= 1
        time[first], task[first] = time[counts[_TIMED]], task[counts[_TIMED]]


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
        served = np.flatnonzero((graph.kind == COMPUTING) & (graph.server >= 0))
        served = served[np.argsort(graph.server[served], kind="stable")]
        served_start = np.searchsorted(graph.server[served], np.arange(graph.servers + 1))
        self.servers = (served_start, served, served_start[:-1].copy(), np.ones(graph.servers, dtype=np.int64))
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
        self.counts = np.array([0, 0, 0, 0, ready.size], dtype=np.int64)
        self.rows: list[F64] = []

    @property
    def over(self) -> bool:
        """Whether all tasks have ended."""
        return bool(self.counts[_ENDED] == self.graph.tasks)

    @property
    def active(self) -> I64:
        """Flows that have started and not ended."""
        return self.progress[2][: self.counts[_ACTIVE]]

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
            self.counts,
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
        return TaskSchedule(begin, end, rates, int(self.counts[_EVENTS]))


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
        _, entry = positions(start, back.ravel())
        first = offsets(np.diff(start)[back.ravel()])
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
