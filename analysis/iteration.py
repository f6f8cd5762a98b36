"""The time of a training iteration over a network, by simulation, with lower bounds on it: ``opticoll iteration``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.flows.iteration import ROUTINGS, ServerNetwork, bounds, flows_of, residuals
from opticoll.instances import Topology, parse
from opticoll.instances.families.machines import CircuitNetwork, ideal_switch
from opticoll.instances.task_graph import ALL_REDUCE, TRANSFER, TaskGraph, training_iteration
from opticoll.instances.topology import parse_rate
from opticoll.solvers.methods.flows.flow_simulator import designed_network, simulate, simulate_circuits
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from opticoll.formulations.flows.iteration import TaskSchedule
    from opticoll.formulations.model import Bound
    from opticoll.instances.types import Rate, Seconds


#: Bandwidth of a capacity of 1, or of an optical interface, if none is given.
LINK = "100Gb/s"


class IterationTime(Fields, frozen=True, kw_only=True):
    """The simulated time of one iteration.

    ``seconds`` is the time of the schedule, ``computing_s`` that of the busiest server's computing. ``bound_s`` is the
    largest of ``bounds`` [s], each a lower bound on every schedule over these routes. ``changes`` counts changes of
    circuits. ``violation`` is the worst violation in the recorded rates; None if they were not recorded.
    """

    model: str
    network: str
    servers: int
    link: str
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


def iteration(
    model: str | TaskGraph,
    network: Any,
    *,
    link: Rate | None = None,
    servers: int | None = None,
    section: str = "5.3",
    batch: int = 0,
    overlap: str = "backward",
    routing: str = "auto",
    paths: int = 4,
    latency: Seconds = 1e-6,
    ring_factor: float | None = None,
    resolution: Seconds = 1e-6,
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
        Rate of a capacity of 1, or of an optical interface, such as ``100Gb/s``; the default is the unit of the
        topology's capacities, or 100 Gb/s.
    servers
        Number of servers that train; by default all of the network.
    section, batch, overlap
        As for :func:`opticoll.instances.task_graph.training_iteration`.
    routing, paths
        ``single``, ``even`` or ``k`` (:class:`opticoll.formulations.flows.iteration.ServerNetwork`); ``auto``: even
        over switches, single where servers forward.
    latency, resolution
        Latency of a hop, and the interval in which ends of flows may be merged [s].
    ring_factor
        Bytes over every hop of a ring all-reduce per byte of its buffer; 2 (k-1)/k for k servers if None.
    check
        Record the rates and check the schedule.

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
    place = parse(network) if isinstance(network, str) else network
    if not isinstance(place, Topology | CircuitNetwork):
        msg = f"iteration: {getattr(place, 'spec', place)} is not a network; use a topology or circuits:n=..,degree=.."
        raise BadInput(msg)
    if routing not in ("auto", *ROUTINGS):
        msg = f"iteration: routing {routing!r}; use one of auto, {', '.join(ROUTINGS)}"
        raise BadInput(msg)
    count = place.num_ranks if isinstance(place, Topology) else place.n
    graph = (
        model
        if isinstance(model, TaskGraph)
        else training_iteration(model, servers or count, section=section, batch=batch, overlap=overlap)
    )
    unit = link or (place.capacity_unit if isinstance(place, Topology) else None) or LINK
    schedule, changes, built, way = _simulated(
        graph, place, parse_rate(unit, "link") / 8, routing, paths, latency, ring_factor, resolution, check
    )
    flows = flows_of(graph, built, ring_factor=ring_factor, hopwise=changes is not None)
    below: list[Bound] = bounds(graph, flows, built.latency)
    tightest = max(below, key=lambda one: one.value)
    violation = None
    if check and changes is None:
        violation = float(np.nanmax(list(residuals(graph, flows, schedule, latency).values())))
    return IterationTime(
        model=model if isinstance(model, str) else "custom",
        network=place.spec,
        servers=graph.servers,
        link=unit,
        section=section,
        samples_per_gpu=batch or None,
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
        changes=changes or 0,
        violation=violation,
    )


def _simulated(
    graph: TaskGraph,
    place: Topology | CircuitNetwork,
    rate: float,
    routing: str,
    paths: int,
    latency: float,
    ring_factor: float | None,
    resolution: float,
    record: bool,
) -> tuple[TaskSchedule, int | None, ServerNetwork, str]:
    """The schedule, the changes of circuits (None if they stay), the network for its bounds, the routing."""
    if isinstance(place, Topology):
        way: Any = ("even" if place.num_ranks < place.n else "single") if routing == "auto" else routing
        network = ServerNetwork(place, rate, latency, way, paths)
    else:
        way = "single" if routing == "auto" else routing
        if place.periodic:
            if way != "single":
                msg = f"iteration: routing {way!r} is not available where circuits change; omit it"
                raise BadInput(msg)
            schedule, changes = simulate_circuits(
                graph, place, rate, latency=latency, ring_factor=ring_factor, resolution=resolution
            )
            # No circuits carry more than a switch with all circuits of a server on one link, without latency.
            return schedule, changes, ServerNetwork(ideal_switch(place.n, place.most_circuits), rate, 0.0, "even"), way
        network = designed_network(
            graph, place, rate, latency=latency, routing=way, paths=paths, ring_factor=ring_factor
        )
    schedule = simulate(graph, network, ring_factor=ring_factor, resolution=resolution, record=record)
    return schedule, None, network, way
