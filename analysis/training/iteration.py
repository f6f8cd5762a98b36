"""The time of a training iteration over a network, by simulation, with lower bounds on it: ``opticoll iteration``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.rendering import Printed
from opticoll.analysis.training.flow_simulator import designed_network, simulate_circuits, simulate_flows
from opticoll.analysis.training.network_iteration import ROUTINGS, Rings, ServerNetwork, bounds, flows_of, residuals
from opticoll.arguments import number, refused, whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances import Topology, parse
from opticoll.instances.families.machines import CircuitNetwork, ideal_switch
from opticoll.instances.quantities import parse_rate
from opticoll.instances.servers import AllReduceGroup
from opticoll.instances.training.task_graph import ALL_REDUCE, TRANSFER, TaskGraph, training_iteration
from opticoll.solvers.methods.topoopt.ring_permutations import selected
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from opticoll.formulations.model import Bound
    from opticoll.types import Rate, Seconds


#: Bandwidth of a capacity of 1, or of an optical interface, if none is given.
LINK = "100Gb/s"
#: Latency of a hop [s].
HOP_S = 1e-6
RESOLUTION_S = 1e-6


class IterationTime(Printed, Fields, frozen=True, kw_only=True):
    """The simulated time of one iteration.

    ``seconds`` is the time of the schedule, ``computing_s`` that of the busiest server's computing. ``bound_s`` is the
    largest of ``bounds`` [s], each a lower bound on every schedule over these routes. ``changes`` counts changes of
    circuits. ``violation`` is the worst violation in the recorded rates; None if they were not recorded.

    ``link`` and ``latency_s`` are the rate of a capacity of 1, of an interface or of a wavelength, and the latency of a
    hop [s].
    """

    model: str
    network: str
    servers: int
    link: str
    latency_s: float
    section: str
    samples_per_gpu: int | None
    overlap: str
    routing: str
    seconds: float
    computing_s: float
    bound_s: float
    bound: str
    bounds: dict[str, float]
    all_reduce_bytes: float
    transfer_bytes: float
    tasks: int
    events: int
    changes: int
    violation: float | None

    _title = "iteration"

    def lines(self) -> dict[str, str]:
        """The time of the iteration and the bounds on it, in words, by name of the line."""
        way = f"{self.link}, {1e6 * self.latency_s:.6g} us a hop, routing {self.routing}"
        return {
            "model": f"{self.model}, {self.servers} servers",
            "network": f"{self.network}, {way}",
            "time": f"{1e3 * self.seconds:.6g} ms",
            "computing": f"{1e3 * self.computing_s:.6g} ms on the busiest server",
            "bound": f"{1e3 * self.bound_s:.6g} ms   ({self.bound})",
            "traffic": f"{self.all_reduce_bytes:.4g} bytes all-reduced, {self.transfer_bytes:.4g} bytes transferred",
            "simulated": f"{self.tasks} tasks, {self.events} events, {self.changes} circuit changes",
            **({} if self.violation is None else {"check": f"worst violation {self.violation:.2g}"}),
        }


def iteration(
    model: str | TaskGraph,
    network: Any,
    *,
    link: Rate | None = None,
    servers: int | None = None,
    section: str = "5.3",
    batch: int | None = None,
    overlap: str = "backward",
    routing: str = "auto",
    latency: Seconds = HOP_S,
    ring_factor: float | None = None,
    rings: int = 1,
    resolution: Seconds = RESOLUTION_S,
    check: bool = False,
) -> IterationTime:
    """Simulate one training iteration at flow level.

    Parameters
    ----------
    model
        ``bert``, ``candle``, ``dlrm``, ``ncf``, ``resnet50``, ``vgg``, or a task graph.
    network
        A spec or an instance: a topology (its terminals are the servers), or ``circuits:..``.
    link
        Rate of a capacity of 1, of an optical interface, or of a wavelength, such as ``100Gb/s``; the default is the
        unit of the topology's capacities, or 100 Gb/s.
    servers
        Number of servers that train; by default all of the network.
    section, batch, overlap
        As for :func:`opticoll.instances.training.task_graph.training_iteration`.
    routing
        ``single`` or ``even`` (:class:`opticoll.analysis.training.network_iteration.ServerNetwork`); ``auto``: even
        over switches, single where servers forward.
    latency
        Latency of a hop [s].
    resolution
        Interval in which ends of flows may be merged [s].
    ring_factor
        Bytes over every hop of a ring all-reduce per byte of its buffer; 2 (k-1)/k for k servers if None.
    rings
        Rings that share every all-reduce on a topology, of the steps that TotientPerms and SelectPermutations choose
        (TopoOpt, section 7); over ``circuits:..`` TopologyFinder chooses them.
    check
        Record the rates, and check the schedule.

    Returns
    -------
    IterationTime
        Time, bounds, and facts of the simulation.

    Raises
    ------
    BadInput
        For settings out of range, something that is not a network, or too few servers.
    NoSolution
        If some traffic has no route.
    """
    if batch is not None:
        whole_number(batch, "iteration: batch", 1)
    if servers is not None:
        whole_number(servers, "iteration: servers", 1)
    if ring_factor is not None:
        number(ring_factor, "iteration: ring_factor", positive=True)
    whole_number(rings, "iteration: rings", 1)
    number(resolution, "iteration: resolution")
    number(latency, "iteration: latency")
    if not isinstance(model, str | TaskGraph):
        raise refused(model, "iteration: model", "the name of a model or a task graph")
    place = _network(network)
    if rings > 1 and isinstance(place, CircuitNetwork):
        msg = f"iteration: rings={rings} is for topologies; the rings over {place.spec} are part of its rule; omit it"
        raise BadInput(msg)
    if routing not in ("auto", *ROUTINGS):
        refuse("iteration", f"routing {routing!r}; use one of auto, {', '.join(ROUTINGS)}")
    count = place.num_ranks if isinstance(place, Topology) else place.n
    graph = (
        model
        if isinstance(model, TaskGraph)
        else training_iteration(model, servers or count, section=section, batch=batch or 0, overlap=overlap)
    )
    if graph.servers > count:
        refuse("iteration", f"{place.spec} has {count} servers, but the task graph needs {graph.servers}")
    unit = link or (place.capacity_unit if isinstance(place, Topology) else None) or LINK
    rate, way = parse_rate(unit, "link") / 8, _routing_on(place, routing)
    circuits = place if isinstance(place, CircuitNetwork) and place.periodic else None
    if circuits is not None:
        # No circuits carry more than a switch with all circuits of a server on one link, without latency.
        built = ServerNetwork(ideal_switch(circuits.n, circuits.most_circuits), rate, 0.0, "even")
    elif isinstance(place, Topology):
        built = ServerNetwork(place, rate, latency, way, totient_rings(graph, rings))
    else:
        built = designed_network(graph, place, rate, latency=latency, routing=way, ring_factor=ring_factor)
    flows = flows_of(graph, built, ring_factor=ring_factor, hopwise=circuits is not None)
    if circuits is None:
        schedule, changes = simulate_flows(graph, flows, latency, resolution=resolution, record=check), 0
    else:
        schedule, changes = simulate_circuits(
            graph, circuits, rate, latency=latency, ring_factor=ring_factor, resolution=resolution
        )
    below: list[Bound] = bounds(graph, flows, built.latency)
    tightest = max(below, key=lambda one: one.value)
    checked = residuals(graph, flows, schedule, latency) if check and circuits is None else None
    return IterationTime(
        model=model if isinstance(model, str) else "custom",
        network=place.spec,
        servers=graph.servers,
        link=unit,
        latency_s=latency,
        section=section,
        samples_per_gpu=batch,
        overlap=overlap,
        routing=way,
        seconds=schedule.length,
        computing_s=float(graph.computing.max(initial=0.0)),
        bound_s=tightest.value,
        bound=tightest.name,
        bounds={one.name: one.value for one in below},
        all_reduce_bytes=float(graph.amount[graph.kind == ALL_REDUCE].sum()),
        transfer_bytes=float(graph.amount[graph.kind == TRANSFER].sum()),
        tasks=graph.tasks,
        events=schedule.events,
        changes=changes,
        violation=None if checked is None else float(np.nanmax(list(checked.values()))),
    )


def totient_rings(graph: TaskGraph, count: int) -> dict[tuple[int, ...], Rings]:
    """Shares and orders of ``count`` rings of every group, of the steps that SelectPermutations chooses."""
    return {
        members: tuple(
            (1 / count, tuple(AllReduceGroup(members, 1.0).ring(step).tolist()))
            for step in selected(len(members), count)
        )
        for members in graph.groups
    }


def _network(network: Any) -> Topology | CircuitNetwork:
    """The network of a spec, or the one given.

    Raises
    ------
    BadInput
        If it is something else.
    """
    place = parse(network) if isinstance(network, str) else network
    if isinstance(place, Topology) and place.family == "lightpath":
        msg = f"iteration: {place.spec} sets circuits for all GPUs at a time, which flows do not model; use mesh:4x8"
        raise BadInput(msg)
    if not isinstance(place, Topology | CircuitNetwork):
        msg = f"iteration: {getattr(place, 'spec', place)} is not a network; use a topology or circuits:n=..,degree=.."
        raise BadInput(msg)
    return place


def _routing_on(place: Topology | CircuitNetwork, routing: str) -> Any:
    """The routing on a network, where it is not chosen: even over switches, single where servers forward.

    Raises
    ------
    BadInput
        If the routing is not available there.
    """
    if routing != "auto":
        if isinstance(place, CircuitNetwork) and place.periodic and routing != "single":
            refuse("iteration", f"routing {routing!r} is not available where circuits change; omit it")
        return routing
    return "even" if isinstance(place, Topology) and place.num_ranks < place.n else "single"
