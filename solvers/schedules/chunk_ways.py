"""The ways of chunks in a solution of :mod:`opticoll.formulations.alltoall.sccl`, read from either model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall.time_expansion import waiting
from opticoll.formulations.flows.single_source import strip_paths

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, Topology


def ways(data: ChunkSteps, values: Values) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
    """Source, destination, arcs and steps (from 0) of every chunk, by source and destination."""
    flow, topology = data.flow, data.flow.topology
    if data.model == "sources":
        return _split(data, values)
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


def _split(data: ChunkSteps, values: Values) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
    """Split integer flows of sources into chunk paths; a chunk that returns to a vertex waits or ends there instead."""
    flow, topology, unrolled = data.flow, data.flow.topology, data.flow.unrolled
    f = np.rint(np.asarray(values["f"], dtype=float))
    over_time = np.zeros((unrolled.graph.arcs, flow.groups.groups))
    over_time[unrolled.moving] = f.transpose(0, 2, 1)
    over_time[unrolled.waiting] = waiting(flow, f).transpose(0, 2, 1)
    results = []
    for k, source in enumerate(flow.groups.sources.tolist()):
        targets = np.delete(topology.terminals, k)
        amounts = np.full(targets.size, float(data.chunks))
        ends = targets + topology.n * flow.steps
        paths = strip_paths(unrolled.graph, source, over_time[:, k], ends, amounts)
        for target, split in zip(targets.tolist(), paths, strict=True):
            for path in split:
                moves = [a for a in path.arcs if unrolled.arc[a] >= 0]
                way = straight(topology, source, target, unrolled.arc[moves].tolist(), unrolled.step[moves].tolist())
                results += [(source, target, *way)] * round(path.amount)
    return results


def straight(
    topology: Topology, source: int, target: int, arcs: list[int], steps: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Remove the cycles of a path and end it at its destination."""
    way: list[tuple[int, int]] = []
    seen = [source]
    for a, t in zip(arcs, steps, strict=True):
        if seen[-1] == target:
            break
        v = int(topology.head[a])
        if v in seen:
            way, seen = way[: seen.index(v)], seen[: seen.index(v) + 1]
        else:
            way.append((a, t))
            seen.append(v)
    return tuple(a for a, _ in way), tuple(t for _, t in way)


def chunk_values(data: ChunkSteps, by_source: ChunkSteps, values: Values) -> dict[str, F64]:
    """The variables of ``model=chunks`` from those of ``model=sources`` with the same steps and chunks."""
    f = np.zeros(data.flow.shape)
    for k, (_, _, arcs, steps) in enumerate(ways(by_source, values)):
        f[list(arcs), k, list(steps)] = 1.0
    return {"f": f, "U": np.asarray(values["U"], dtype=float)}
