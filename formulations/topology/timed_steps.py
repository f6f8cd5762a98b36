"""Steps of a collective, the topologies that may serve them, and the times of the choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology import pattern_times
from opticoll.instances import parse
from opticoll.instances.collective_steps import COLLECTIVES, FORMS, collective_steps
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opticoll.formulations.topology.steps import TopologySteps
    from opticoll.instances.topology import F64


#: Largest relative distance of a time that a flow achieves from the bound that its duals prove.
TOLERANCE = 1e-6
#: Word for the collective that an algorithm performs by default.
USUAL = "usual"
#: Parameters of ``topology.steps``.
PARAMETERS = (
    Parameter("algorithm", str, default="recursive:2", help=FORMS),
    Parameter(
        "collective",
        str,
        default=USUAL,
        help="the collective; usual: all-to-all for shifts, bruck and retri, all-reduce for the others",
        choices=(USUAL, *COLLECTIVES),
    ),
    Parameter("delay", float, default=1.0, help="time of a change of topology [shards / link bandwidth]", least=0),
    Parameter("startup", float, default=0.0, help="time before every step [shards / link bandwidth]", least=0),
    Parameter("ports", int, default=0, help="one-way circuits out of and into a node; 0 for the degree", least=0),
    Parameter("between", str, default="", help="specs of other topologies to choose from, separated by ;"),
    Parameter("reuse", bool, default=True, help="circuits set for a step may stay for others"),
    Parameter("times", str, "step-choice", "method that routes the steps", ("step-choice",), constructs=True),
)
#: Maximum number of flow variables of all steps and topologies together.
MOST_FLOWS = 4_000_000


def capacities(topology: Topology) -> F64:
    """Capacities between the nodes of a topology, ``(n, n)``."""
    result = np.zeros((topology.n, topology.n))
    np.add.at(result, (topology.tail, topology.head), topology.capacity)
    np.fill_diagonal(result, 0.0)
    return result


def capacities_of_spec(where: str, spec: str, n: int) -> F64:
    """Capacities of a topology named by a spec.

    Raises
    ------
    NotApplicable
        If it has other nodes.
    """
    topology = parse(spec)
    if not isinstance(topology, Topology) or topology.n != n or topology.num_ranks != n:
        refuse(where, f"between={spec} must be a topology of {n} nodes, all of them ranks", NotApplicable)
    return capacities(topology)


def prepared(
    cls: type[TopologySteps],
    instance: object,
    *,
    algorithm: str,
    collective: str,
    delay: float,
    startup: float,
    ports: int,
    between: str,
    reuse: bool,
    times: Callable[[Sequence[tuple[F64, F64]]], list[pattern_times.PatternFlow | None]],
) -> TopologySteps:
    """The problem; ``times`` is the function that routes the steps.

    It returns a flow and lengths for every pair (capacities, demand), or None where nothing serves it.

    Raises
    ------
    NotApplicable
        For anything but a topology all of whose nodes are ranks, parameters out of range, steps without a topology, too
        many flows, or times that cannot be proven.
    BadInput
        For an algorithm that is unknown or does not fit the number of nodes.
    """
    where = cls.name
    if not isinstance(instance, Topology) or instance.num_ranks != instance.n:
        refuse(where, "needs a standing topology all of whose nodes are ranks, such as ring:8", NotApplicable)
    n = instance.n
    try:
        steps = collective_steps(algorithm, n, "" if collective == USUAL else collective)
    except BadInput as reason:
        msg = f"{where}: {reason}"
        raise BadInput(msg) from None
    others = [word.strip() for word in between.split(";") if word.strip()]
    ports = ports or int(max(np.bincount(instance.tail).max(), np.bincount(instance.head).max()))
    stated = {"standing": capacities(instance), **{spec: capacities_of_spec(where, spec, n) for spec in others}}
    topologies: dict[bytes, tuple[str, F64]] = {}  # equal ones are one
    for name, capacity in stated.items():
        topologies.setdefault(capacity.tobytes(), (name, capacity))
    general = len(topologies)
    exchanges = [step.circuits(ports).astype(float) for step in steps]
    for i, capacity in enumerate(exchanges):
        topologies.setdefault(capacity.tobytes(), (f"circuits of step {i}", capacity))
    number = {key: q for q, key in enumerate(topologies)}
    own = [number[capacity.tobytes()] for capacity in exchanges]
    names, circuits = zip(*topologies.values(), strict=True)
    patterns: dict[bytes, int] = {}
    which = [patterns.setdefault(step.demand.tobytes(), len(patterns)) for step in steps]
    demands = [steps[which.index(p)].demand for p in range(len(patterns))]
    mine = {p: {own[i] for i in range(len(steps)) if which[i] == p} for p in range(len(patterns))}
    time, least = times_of_choices(where, demands, circuits, mine, range(general), delay, times, reuse=reuse)
    missing = np.flatnonzero(np.isinf(time).all(axis=1))
    if missing.size:
        i = which.index(int(missing[0]))
        msg = f"{where}: no topology serves step {i} ({steps[i].name}); give more ports, or a topology between"
        raise NotApplicable(msg)
    every = np.array(which)
    labels = tuple(step.name for step in steps)
    return cls(n, labels, names, time[every], least[every], delay, startup, circuits)


def times_of_choices(
    where: str,
    demands: Sequence[F64],
    capacities: Sequence[F64],
    own: Mapping[int, set[int]],
    general: range,
    delay: float,
    route: Callable[[Sequence[tuple[F64, F64]]], list[pattern_times.PatternFlow | None]],
    *,
    reuse: bool,
) -> tuple[F64, F64]:
    """Times that flows achieve and bounds that lengths prove, by pattern and topology, infinite where not chosen.

    Raises
    ------
    NotApplicable
        For more than :data:`MOST_FLOWS`, and times that the duals do not prove.
    """
    time = np.full((len(demands), len(capacities)), np.inf)
    least, offered, total = time.copy(), range(len(capacities)) if reuse else general, 0
    for p, demand in enumerate(demands):
        for q in {*offered, *own[p]}:
            alike = pattern_times.differences(capacities[q], demand) is not None
            total += int((capacities[q] > 0).sum()) * (1 if alike else len(demand))
    if total > MOST_FLOWS:
        msg = f"{where}: the steps have {total:,} flows on all topologies; use fewer nodes, or reuse=false"
        raise NotApplicable(msg)

    def fill(choices: list[tuple[int, int]]) -> None:
        pairs = [(capacities[q], demands[p]) for p, q in choices]
        for (p, q), (capacity, demand), flow in zip(choices, pairs, route(pairs), strict=True):
            if flow is None:
                continue
            reached = pattern_times.achieved(capacity, demand, flow)
            proven = pattern_times.least(capacity, demand, flow.lengths)
            if not proven <= reached <= proven * (1 + TOLERANCE):
                msg = (
                    f"{where}: the flow of a step takes {reached:g}, but its duals prove only {proven:g}; "
                    "use capacities that differ less"
                )
                raise NotApplicable(msg)
            time[p, q], least[p, q] = reached, proven

    fill([(p, q) for p in own for q in sorted(own[p])])
    later = []
    for p, demand in enumerate(demands):
        for q in offered:
            if q not in own[p]:
                far = pattern_times.hops(capacities[q], demand)
                if np.isfinite(far) and (q == 0 or far < time[p].min() + 2 * delay):
                    later.append((p, q))
    fill(later)
    return time, least
