"""The time of a training iteration over a network, by simulation, with lower bounds on it: ``opticoll iteration``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.rendering import Printed
from opticoll.analysis.training.circuit_iteration import (
    DELAY_S,
    LATENCY_S,
    WAVELENGTH,
    CircuitTimes,
    circuit_iteration,
    milliseconds,
)
from opticoll.analysis.training.flow_simulator import designed_network, simulate, simulate_circuits
from opticoll.analysis.training.network_iteration import ROUTINGS, ServerNetwork, bounds, flows_of, residuals
from opticoll.arguments import number, refused, whole_number
from opticoll.errors import BadInput
from opticoll.instances import LightpathMesh, Topology, parse
from opticoll.instances.duration import Duration
from opticoll.instances.families.machines import CircuitNetwork, ideal_switch
from opticoll.instances.topology import parse_rate
from opticoll.instances.training.task_graph import ALL_REDUCE, TRANSFER, TaskGraph, training_iteration
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.training.timed_rounds import AllReduce
    from opticoll.formulations.model import Bound
    from opticoll.types import Rate, Seconds


#: Bandwidth of a capacity of 1, or of an optical interface, if none is given.
LINK = "100Gb/s"
#: Latency of a hop [s].
HOP_S = 1e-6
RESOLUTION_S = 1e-6
#: Limit of the program that schedules all-reduces in rounds [s].
TIME_LIMIT_S = 20.0


class IterationTime(Printed, Fields, frozen=True, kw_only=True):
    """The simulated time of one iteration.

    ``seconds`` is the time of the schedule, ``computing_s`` that of the busiest server's computing. ``bound_s`` is the
    largest of ``bounds`` [s], each a lower bound on every schedule over these routes. ``changes`` counts changes of
    circuits. ``violation`` is the worst violation in the recorded rates; None if they were not recorded.

    ``link`` and ``latency_s`` are the rate of a capacity of 1, of an interface or of a wavelength, and the latency of a
    hop or a round [s].

    On a ``lightpath`` mesh, ``circuits`` has the parts of an iteration on circuits in rounds, ``events`` counts rounds,
    and there is no ``routing``; elsewhere ``circuits`` is None.
    """

    model: str
    network: str
    servers: int
    link: str
    latency_s: float
    section: str
    samples_per_gpu: int | None
    overlap: str
    routing: str | None
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
    circuits: CircuitTimes | None = None

    @property
    def _title(self) -> str:
        return "iteration"

    def lines(self) -> dict[str, str]:
        """The time of the iteration and the bounds on it, in words, by name of the line."""
        parts, latency = self.circuits, f"{1e6 * self.latency_s:.6g} us"
        if parts is None:
            way, proof = f"{self.link}, {latency} a hop, routing {self.routing}", self.bound
            rest = {"simulated": f"{self.tasks} tasks, {self.events} events, {self.changes} circuit changes"}
        else:
            way = f"{self.link} a wavelength, circuits in rounds of at least {latency}"
            proof = f"{self.bound}; {parts.proof}"
            proof += f", gap {100 * parts.gap:.3g} %" if parts.gap else ""
            rest = parts.lines(self.seconds, self.changes)
        return {
            "model": f"{self.model}, {self.servers} servers",
            "network": f"{self.network}, {way}",
            "time": milliseconds(self.seconds),
            "computing": f"{milliseconds(self.computing_s)} on the busiest server",
            "bound": f"{milliseconds(self.bound_s)}   ({proof})",
            "traffic": f"{self.all_reduce_bytes:.4g} bytes all-reduced, {self.transfer_bytes:.4g} bytes transferred",
            **rest,
            **({} if self.violation is None else {"check": f"worst violation {self.violation:.2g}"}),
        }


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
    latency: Seconds | None = None,
    ring_factor: float | None = None,
    resolution: Seconds | None = None,
    delay: str | Seconds | None = None,
    algorithm: AllReduce | None = None,
    time_limit: Seconds | None = None,
    check: bool = False,
) -> IterationTime:
    """Simulate one training iteration at flow level, or schedule it on circuits in rounds.

    Parameters
    ----------
    model
        ``bert``, ``candle``, ``dlrm``, ``ncf``, ``resnet50``, ``vgg``, or a task graph.
    network
        A spec or an instance: a topology (its terminals are the servers), ``circuits:..``, or ``lightpath:..``, whose
        circuits are set in rounds.
    link
        Rate of a capacity of 1, of an optical interface, or of a wavelength, such as ``100Gb/s``; the default is the
        unit of the topology's capacities, or 100 Gb/s; of a wavelength 150 Gb/s.
    servers
        Number of servers that train; by default all of the network.
    section, batch, overlap
        As for :func:`opticoll.instances.training.task_graph.training_iteration`.
    routing
        ``single`` or ``even`` (:class:`opticoll.analysis.training.network_iteration.ServerNetwork`); ``auto``: even
        over switches, single where servers forward. Not for rounds.
    latency
        Latency of a hop, 1e-6 s by default, or of a round, 0.7e-6 s.
    resolution
        Interval in which ends of flows may be merged, 1e-6 s by default. Not for rounds.
    ring_factor
        Bytes over every hop of a ring all-reduce per byte of its buffer; 2 (k-1)/k for k servers if None. Not for
        rounds.
    delay
        Time of a change of circuits, in seconds or as ``"3.7us"``, the default. For rounds alone, as are
    algorithm
        ``lumorph-4``, ``lumorph-2``, ``ring``, or ``auto``: the fastest for every all-reduce;
    time_limit
        and the limit of the program that schedules all-reduces, if a first schedule is not proven optimal: 20 s.
    check
        Record the rates, or all rounds, and check the schedule.

    Returns
    -------
    IterationTime
        Time, bounds, and facts of the simulation.

    Raises
    ------
    BadInput
        For settings out of range or of another kind of network, something that is not a network, or too few servers.
    NotApplicable
        If a GPU has too few lasers for the algorithm.
    NoSolution
        If some traffic has no route.
    """
    whole_number(batch, "iteration: batch", 0)
    _check_numbers({"servers": servers}, {"ring_factor": ring_factor, "resolution": resolution})
    if not isinstance(model, str | TaskGraph):
        raise refused(model, "iteration: model", "the name of a model or a task graph")
    place = _network(network)
    if routing not in ("auto", *ROUTINGS):
        msg = f"iteration: routing {routing!r}; use one of auto, {', '.join(ROUTINGS)}"
        raise BadInput(msg)
    settings = {
        "routing": None if routing == "auto" else routing,
        "ring_factor": ring_factor,
        "resolution": resolution,
    }
    rounds = {"delay": delay, "algorithm": algorithm, "time_limit": time_limit}
    _refuse_others(place, settings, rounds)
    count = place.num_ranks if isinstance(place, Topology) else place.n
    graph = (
        model
        if isinstance(model, TaskGraph)
        else training_iteration(model, servers or count, section=section, batch=batch, overlap=overlap)
    )
    facts = _facts(model, graph, section, batch, overlap)
    if isinstance(place, LightpathMesh):
        return _in_rounds(facts, graph, place, link or WAVELENGTH, latency, rounds, check)
    latency = _time(HOP_S if latency is None else latency, "latency")
    unit = link or (place.capacity_unit if isinstance(place, Topology) else None) or LINK
    rate, way = parse_rate(unit, "link") / 8, _routing_on(place, routing)
    apart = RESOLUTION_S if resolution is None else resolution
    changes = None
    if isinstance(place, CircuitNetwork) and place.periodic:
        schedule, changes = simulate_circuits(
            graph, place, rate, latency=latency, ring_factor=ring_factor, resolution=apart
        )
        # No circuits carry more than a switch with all circuits of a server on one link, without latency.
        built = ServerNetwork(ideal_switch(place.n, place.most_circuits), rate, 0.0, "even")
    else:
        if isinstance(place, Topology):
            built = ServerNetwork(place, rate, latency, way)
        else:
            built = designed_network(graph, place, rate, latency=latency, routing=way, ring_factor=ring_factor)
        schedule = simulate(graph, built, ring_factor=ring_factor, resolution=apart, record=check)
    flows = flows_of(graph, built, ring_factor=ring_factor, hopwise=changes is not None)
    below: list[Bound] = bounds(graph, flows, built.latency)
    tightest = max(below, key=lambda one: one.value)
    checked = residuals(graph, flows, schedule, latency) if check and changes is None else None
    return IterationTime(
        **facts,
        network=place.spec,
        link=unit,
        latency_s=latency,
        routing=way,
        seconds=schedule.length,
        bound_s=tightest.value,
        bound=tightest.name,
        bounds={one.name: one.value for one in below},
        events=schedule.events,
        changes=changes or 0,
        violation=None if checked is None else float(np.nanmax(list(checked.values()))),
    )


def _network(network: Any) -> Topology | CircuitNetwork:
    """The network of a spec, or the one given.

    Raises
    ------
    BadInput
        If it is something else.
    """
    place = parse(network) if isinstance(network, str) else network
    if not isinstance(place, Topology | CircuitNetwork):
        msg = f"iteration: {getattr(place, 'spec', place)} is not a network; use a topology or circuits:n=..,degree=.."
        raise BadInput(msg)
    return place


def _check_numbers(whole: Mapping[str, object], others: Mapping[str, object]) -> None:
    """Refuse arguments that are not whole numbers of at least 1, or not finite numbers; None is the default."""
    for name, value in whole.items():
        if value is not None:
            whole_number(value, f"iteration: {name}", 1)
    for name, value in others.items():
        if value is not None:
            number(value, f"iteration: {name}", positive=name == "ring_factor")


def _facts(model: str | TaskGraph, graph: TaskGraph, section: str, batch: int, overlap: str) -> dict[str, Any]:
    """What is known of an iteration before it is simulated."""
    return {
        "model": model if isinstance(model, str) else "custom",
        "servers": graph.servers,
        "section": section,
        "samples_per_gpu": batch or None,
        "overlap": overlap,
        "computing_s": float(graph.computing.max(initial=0.0)),
        "all_reduce_bytes": float(graph.amount[graph.kind == ALL_REDUCE].sum()),
        "transfer_bytes": float(graph.amount[graph.kind == TRANSFER].sum()),
        "tasks": graph.tasks,
    }


def _refuse_others(place: Topology | CircuitNetwork, flows: Mapping[str, object], rounds: Mapping[str, object]) -> None:
    """Refuse settings of the other kind of network, and meshes whose circuits do not end at servers."""
    mesh = isinstance(place, LightpathMesh)
    if not mesh and place.family == "lightpath":
        msg = f"iteration: {place.spec} has hosts behind its tiles, whose circuits are not modelled; remove +host"
        raise BadInput(msg)
    for name, value in (flows if mesh else rounds).items():
        if value is not None:
            kind = "sets circuits in rounds" if mesh else "does not set circuits in rounds, as lightpath:.. does"
            msg = f"iteration: {place.spec} {kind}; omit"
            raise BadInput(msg, remedy={name: None})


def _in_rounds(
    facts: dict[str, Any],
    graph: TaskGraph,
    mesh: LightpathMesh,
    link: Rate,
    latency: float | None,
    given: dict[str, Any],
    check: bool,
) -> IterationTime:
    """The iteration on circuits that are set in rounds."""
    if graph.servers > mesh.n:
        msg = f"iteration: {mesh.spec} has {mesh.n} servers, but the task graph needs {graph.servers}"
        raise BadInput(msg)
    latency = _time(LATENCY_S if latency is None else latency, "latency")
    result = circuit_iteration(
        graph,
        mesh,
        rate=parse_rate(link, "link") / 8,
        latency=latency,
        delay=_time(DELAY_S if given["delay"] is None else given["delay"], "delay"),
        algorithm=given["algorithm"] or "auto",
        time_limit=_time(TIME_LIMIT_S if given["time_limit"] is None else given["time_limit"], "time_limit"),
        check=check,
    )
    name = max(result.bounds, key=lambda one: result.bounds[one])
    return IterationTime(
        **facts,
        network=mesh.spec,
        link=link,
        latency_s=latency,
        routing=None,
        seconds=result.seconds,
        bound_s=result.bounds[name],
        bound=name,
        bounds=result.bounds,
        events=result.parts.rounds,
        changes=result.changes,
        violation=result.violation,
        circuits=result.parts,
    )


def _time(value: object, name: str) -> float:
    """A time in seconds, given as a number or with a unit.

    Raises
    ------
    BadInput
        For anything else, or a negative time.
    """
    seconds: float | None = None
    if isinstance(value, str):
        with suppress(ValueError):
            seconds = Duration(value).seconds
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if seconds is None or not 0 <= seconds < np.inf:
        msg = f"iteration: {name} {value!r} is not a time; write for example 3.7us"
        raise BadInput(msg)
    return seconds


def _routing_on(place: Topology | CircuitNetwork, routing: str) -> Any:
    """The routing on a network, where it is not chosen: even over switches, single where servers forward.

    Raises
    ------
    BadInput
        If the routing is not available there.
    """
    if routing != "auto":
        if isinstance(place, CircuitNetwork) and place.periodic and routing != "single":
            msg = f"iteration: routing {routing!r} is not available where circuits change; omit it"
            raise BadInput(msg)
        return routing
    return "even" if isinstance(place, Topology) and place.num_ranks < place.n else "single"
