"""Paths with steps: of flows in time steps, and of the chunks of :mod:`opticoll.formulations.alltoall.sccl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.alltoall.time_expansion import over_time
from opticoll.formulations.flows.single_source import WeightedPath, strip_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.formulations.alltoall.timestep_mcf import StepFlow
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64, Topology

#: Relative shortfall of a flow that counts as round-off.
NOISE = 1e-7


class TimedPath(NamedTuple):
    """Arcs of a path, the steps (from 0) in which they are used, and the amount that takes it."""

    arcs: tuple[int, ...]
    steps: tuple[int, ...]
    amount: float


def stripped(topology: Topology, source: int, flow: F64, targets: I64, amount: F64) -> list[list[WeightedPath]]:
    """Paths of a flow that may lack a share of :data:`NOISE`, by which their amounts are then smaller."""
    try:
        return strip_paths(topology, source, flow, targets, amount)
    except BadInput:
        return strip_paths(topology, source, flow, targets, amount * (1.0 - NOISE))


def timed_paths(data: StepFlow, flow: F64, column: int) -> Iterator[tuple[int, list[TimedPath]]]:
    """Every destination of a group, and the paths of its flow in the time-expanded graph, ``(arcs, |K|)``.

    A path that returns to a vertex that holds data waits there instead, and one that passes its destination ends.
    """
    groups, unrolled = data.groups, data.unrolled
    source, targets = int(groups.sources[column]), np.flatnonzero(groups.demand[:, column] > 0)
    ends, amounts = targets + data.topology.n * data.steps, groups.demand[targets, column]
    found = stripped(unrolled.graph, source, flow[:, column], ends, amounts)
    for target, paths in zip(targets.tolist(), found, strict=True):
        yield target, [_straight(data, source, target, path) for path in paths]


def _straight(data: StepFlow, source: int, target: int, path: WeightedPath) -> TimedPath:
    """The moves of a path, without its cycles."""
    moves = [a for a in path.arcs if data.unrolled.arc[a] >= 0]
    way: list[tuple[int, int]] = []
    seen = [source]
    for a, t in zip(data.unrolled.arc[moves].tolist(), data.unrolled.step[moves].tolist(), strict=True):
        if seen[-1] == target:
            break
        v = int(data.topology.head[a])
        if v in seen and data.holds[v]:
            way, seen = way[: seen.index(v)], seen[: seen.index(v) + 1]
        else:
            way.append((a, t))
            seen.append(v)
    return TimedPath(tuple(a for a, _ in way), tuple(t for _, t in way), path.amount)


def ways(data: ChunkSteps, values: Values) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
    """Source, destination, arcs and steps (from 0) of every chunk, by source and destination."""
    flow, topology = data.flow, data.flow.topology
    if data.model == "sources":
        moving = over_time(flow, np.rint(np.asarray(values["f"], dtype=float)))
        return [
            (source, target, path.arcs, path.steps)
            for k, source in enumerate(flow.groups.sources.tolist())
            for target, paths in timed_paths(flow, moving, k)
            for path in paths
            for _ in range(round(path.amount))
        ]
    sent = np.asarray(values["f"], dtype=float) > 0.5
    results = []
    for k, source in enumerate(flow.groups.sources.tolist()):
        target = at = int(np.argmax(flow.groups.demand[:, k]))
        by = {int(topology.head[a]): (int(a), int(t)) for a, t in np.argwhere(sent[:, k])}
        way = []
        while at != source:  # back from the destination, which received exactly one copy
            way.append(by[at])
            at = int(topology.tail[by[at][0]])
        arcs, steps = zip(*way[::-1], strict=True)
        results.append((source, target, arcs, steps))
    return results


def chunk_values(data: ChunkSteps, by_source: ChunkSteps, values: Values) -> dict[str, F64]:
    """The variables of ``model=chunks`` from those of ``model=sources`` with the same steps and chunks."""
    f = np.zeros(data.flow.shape)
    for k, (_, _, arcs, steps) in enumerate(ways(by_source, values)):
        f[list(arcs), k, list(steps)] = 1.0
    return {"f": f, "U": np.asarray(values["U"], dtype=float)}
