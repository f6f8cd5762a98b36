"""Schedules of circuits that change: chunks over the circuits of configurations, with their times.

A solution of ``topology.sequence`` holds the flow of every source in every phase. In time it is a flow of one source on
the graph of (phase, node), which splits into paths: pieces of a shard, the chunks of the schedule. In every phase a
piece flows over its circuits there at a constant rate, all the time that the phase lasts; a piece that passes through
nodes is not stored in them. Circuits take no time to fill, as with chunks of size 0. The schedule takes the time of the
solution.

A change takes the delay if the problem charges it. With ``overlap``, circuits of both configurations transmit
meanwhile; the next configuration waits for the last of their chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.topology import Topology
from opticoll.solvers.schedules.shard_routes import Route, Routes
from opticoll.solvers.schedules.timed_paths import stripped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True)
class TimedTransfer:
    """A chunk that flows over circuits along ``path``, nodes in order, at a constant rate from ``start`` to ``end``."""

    path: tuple[int, ...]
    chunk: int
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class LitCircuits:
    """Circuits ``(n, n)``, set from ``start`` to ``end``, and the transfers that begin then or in the next change.

    Times in shards / link bandwidth, from the start of the collective. In the start-up, the first part of a
    configuration that is used, nothing is sent.
    """

    start: float
    end: float
    circuits: I64
    transfers: list[TimedTransfer]


@dataclass(frozen=True, eq=False)
class SequenceSchedule:
    """Configurations in turn and the chunks that they carry.

    Parameters
    ----------
    configurations
        Circuits, times and transfers.
    chunks
        Source, target and amount [shards] of every chunk.
    fluid_time
        Time of the flow from which the schedule was made [shards / link bandwidth]; None for that of a file.
    """

    configurations: list[LitCircuits]
    chunks: list[tuple[int, int, float]]
    fluid_time: float | None = None

    @property
    def time(self) -> float:
        """End of the last configuration."""
        return self.configurations[-1].end

    @property
    def transfers(self) -> int:
        """Number of transfers."""
        return sum(len(one.transfers) for one in self.configurations)


@dataclass(frozen=True, eq=False)
class _Phases:
    """Circuits and length of every phase of a solution, and its flow.

    ``counts`` are the circuits of the configurations ``(K, n, n)``, ``room`` those of the phases ``(P, n, n)``,
    ``moved`` the flows ``(P, n, n, n)``. ``charged`` is the time of every change.
    """

    data: TopologySequence
    counts: I64
    room: I64
    lengths: F64
    charged: F64
    moved: F64

    @property
    def stride(self) -> int:
        """Number of phases from a configuration to the next."""
        return 2 if len(self.room) > len(self.counts) else 1


def _phases(data: TopologySequence, values: Mapping[str, F64]) -> _Phases:
    counts = np.rint(np.asarray(values["x"], dtype=float)).sum(axis=3).astype(np.int64)
    t = np.maximum(np.asarray(values["t"], dtype=float), 0.0)
    used, K = len(counts), data.configurations
    moved = np.maximum(np.nan_to_num(np.asarray(values["g"], dtype=float)), 0.0)
    stride = 2 if data.phases > K else 1
    if data.charge == "changed":  # configurations at the end that nobody waits for
        while used > 1 and t[used - 1] == 0 and not moved[stride * (used - 2) + 1 :].any():
            moved, used = moved[: stride * (used - 2) + 1], used - 1
    counts, t = counts[:used], t[:used]
    changes = np.ones(used - 1, dtype=bool)
    if data.charge == "changed" and used > 1:
        changes = (np.diff(counts, axis=0) > 0).any(axis=(1, 2)) | (np.asarray(values["z"])[: used - 1] > 0.5)
    charged = data.delay * changes
    room = np.zeros((stride * (used - 1) + 1, data.n, data.n), dtype=np.int64)
    room[::stride] = counts
    if stride == 2:
        room[1::2] = np.minimum(counts[:-1], counts[1:])
    lengths = np.zeros(len(room))
    lengths[::stride] = t
    if stride == 2:
        lengths[1::2] = charged
    return _Phases(data, counts, room, lengths, np.asarray(charged, dtype=float), moved * (room > 0)[:, None])


def _routes(phases: _Phases) -> tuple[Topology, Routes]:
    """The flow as routes in phases, over an arc for the circuits from a node to another in a phase."""
    data, n, P = phases.data, phases.data.n, len(phases.room)
    later = 1 if data.relays == "step" else 0
    phase, tail, head = np.nonzero(phases.moved.any(axis=1))
    capacity = phases.room[phase, tail, head].astype(float)
    order = np.lexsort((capacity, head, tail))  # the order of the arcs of a topology
    phase, tail, head = phase[order], tail[order], head[order]
    lines = Topology(n, tail, head, capacity[order])
    waits = np.arange(P * n)
    tails = np.concatenate([phase * n + tail, waits])
    heads = np.concatenate([(phase + later) * n + head, waits + n])
    number = np.concatenate([np.arange(phase.size), np.full(waits.size, -1)])
    order = np.lexsort((heads, tails))
    number, graph = number[order], Topology((P + 1) * n, tails, heads)
    routes: list[Route] = []
    for s in np.flatnonzero(data.sends).tolist():
        flow = phases.moved[:, s]
        stock = np.cumsum(flow.sum(axis=1) - flow.sum(axis=2), axis=0)
        kept = stock - later * flow.sum(axis=1)  # with ``step``, what arrives in a phase is not there to be kept
        kept[:, s] = flow[:, s].sum() * 2  # a source stores what it has not sent yet
        carried = np.concatenate([flow[phase, tail, head], np.maximum(kept, 0.0).ravel()])[order]
        targets = np.flatnonzero(data.demand[s])
        amounts = np.minimum(data.demand[s, targets], stock[-1, targets])
        found = stripped(graph, s, carried, targets + P * n, amounts)
        for v, amount, ways in zip(targets.tolist(), data.demand[s, targets].tolist(), found, strict=True):
            hops = [[int(number[a]) for a in way.arcs if number[a] >= 0] for way in ways]
            routes += [
                Route(s, v, tuple(arcs), way.amount, tuple(phase[arcs].tolist()), amount)
                for arcs, way in zip(hops, ways, strict=True)
            ]
    return lines, Routes.joined(routes)


def _timed(phases: _Phases, lengths: F64) -> list[tuple[float, float]]:
    """When every phase, of these lengths, begins to carry data, and its end."""
    at, result = 0.0, []
    for p, length in enumerate(lengths.tolist()):
        at += _before(phases, p, used=length > 0)
        result.append((at, at + length))
        at += length
    return result


def _before(phases: _Phases, p: int, *, used: bool) -> float:
    """Time after the phase before until this one carries data: a change that has no phase, and the start-up."""
    change = float(phases.charged[p - 1]) if p and phases.stride == 1 else 0.0
    return change + (phases.data.startup if used and p % phases.stride == 0 else 0.0)


def _configurations(
    phases: _Phases, times: list[tuple[float, float]], moves: list[list[TimedTransfer]]
) -> list[LitCircuits]:
    """The configurations; transfers of a change stand with the configuration before it."""
    stride = phases.stride
    return [
        LitCircuits(
            times[stride * k][0] - (phases.data.startup if times[stride * k][1] > times[stride * k][0] else 0.0),
            times[stride * k][1],
            circuits,
            sorted((one for p in range(stride * k, min(stride * (k + 1), len(times))) for one in moves[p]), key=_order),
        )
        for k, circuits in enumerate(phases.counts)
    ]


def _order(transfer: TimedTransfer) -> tuple[float, float, int]:
    return transfer.start, transfer.end, transfer.chunk


def _stretches(route: Route, heads: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Phases of a route, and its nodes in each."""
    assert route.steps is not None
    at = route.source
    for phase, hops in groupby(zip(route.steps, route.arcs, strict=True), key=itemgetter(0)):
        path = (at, *(heads[arc] for _, arc in hops))
        yield phase, path
        at = path[-1]


def sequence_schedule(data: TopologySequence, values: Mapping[str, F64]) -> SequenceSchedule:
    """The schedule whose chunks are the pieces of the flow of a solution; it takes the time of the solution."""
    phases = _phases(data, values)
    lines, routes = _routes(phases)
    load = np.zeros((len(phases.room), lines.arcs))
    carried = routes.weight * routes.amount
    assert routes.steps is not None
    np.add.at(load, (routes.steps, routes.arcs), np.repeat(carried, np.diff(routes.first)))
    needed = (load / lines.capacity).max(axis=1, initial=0.0)
    lengths = phases.lengths.copy()
    lengths[:: phases.stride] = np.maximum(lengths, needed)[:: phases.stride]
    times = _timed(phases, lengths)
    heads, moves = lines.head.tolist(), [[] for _ in times]  # type: tuple[list[int], list[list[TimedTransfer]]]
    for number, route in enumerate(routes.rows()):
        for p, path in _stretches(route, heads):
            moves[p].append(TimedTransfer(path, number, *times[p]))
    chunks = list(zip(routes.source.tolist(), routes.target.tolist(), carried.tolist(), strict=True))
    return SequenceSchedule(_configurations(phases, times, moves), chunks, data.objective(values))
