"""Schedules of rounds, and their check by replay.

*Circuits* are light paths: in round r, wavelength w connects s to d over a chain of arcs. *Transfers* are chunks: in
round r, s sends chunk c to d over the circuits from s to d in that round, striped evenly over them where there are
several. A transfer either copies the chunk or adds the partial sum of s to that of d (``adds``).

Named arrays (values of the formulations whose solutions are schedules):

    circuit_round, circuit_source, circuit_target, circuit_wavelength      (K,)
    circuit_start (K + 1,), circuit_arcs                                   circuit k: arcs[start[k] : start[k + 1]]
    transfer_round, transfer_source, transfer_target, transfer_chunk       (T,)
    transfer_adds                                                          (T,), 0 or 1

The check (:func:`violations`) uses numpy alone. Each block counts its violations; a valid schedule has 0 everywhere.
In every round

    paths        every circuit is a simple chain of existing arcs from its source to its target, wavelength in range
    lasers       a vertex sends at most ``ports`` circuits of one wavelength
    photodiodes  a vertex receives at most ``ports`` circuits of one wavelength
    waveguides   an arc holds at most ``waveguides`` circuits of one wavelength, or ``fibres`` between wafers
    payload      every transfer has a circuit from its source to its target; a circuit carries at most ``load`` chunks
    causality    a chunk or partial sum is sent only if it was held before the round began
    redundant    no vertex receives a chunk that it holds or, unless it may forward it (``relays``), that it neither
                 contributes to nor requires; no contribution counts twice
    post         every (chunk, vertex) of Post is held at the end, sums complete
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from opticoll.formulations.rounds.segments import select
from opticoll.formulations.variables import Array, Axis, SolutionSize, arc_axis, members, vertex_axis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.instances.photonics import WaferFibres
    from opticoll.instances.topology import F64, I64, Mask, Topology


#: Largest wavelength number plus 1.
MOST_WAVELENGTHS = 2**20
#: Largest round number plus 1 in a valid array; the check has a smaller limit.
MOST_NUMBERED = 2**32
#: Names of the arrays, in the order of the dataclass.
CIRCUITS = ("circuit_round", "circuit_source", "circuit_target", "circuit_wavelength")
TRANSFERS = ("transfer_round", "transfer_source", "transfer_target", "transfer_chunk")
BLOCKS = ("paths", "lasers", "photodiodes", "waveguides", "payload", "causality", "redundant", "post")
#: Maximum number of rounds, unless there are more transfers and circuits.
MOST_ROUNDS = 2**20
#: Maximum number of (chunk, vertex, contribution) triples of sums replayed at a time.
MOST_STATES = 30_000_000


@dataclass(frozen=True)
class Limits:
    """Limits of the hardware in one round.

    Parameters
    ----------
    wavelengths
        Number of wavelengths: lasers of a LIGHTPATH tile, channels of a WDM fibre.
    waveguides
        Maximum number of circuits of one wavelength on an arc.
    fibres
        The arcs between wafers, and their maximum; None if there are no other arcs than those with ``waveguides``.
    ports
        Maximum number of circuits of one wavelength that a vertex sends, and that it receives; None for no limit.
    load
        Maximum number of chunks per circuit and round; None for no limit (the cost model then sets a round's length).
    """

    wavelengths: int
    waveguides: int = 1
    ports: int | None = 1
    load: int | None = 1
    fibres: WaferFibres | None = None

    def room(self, topology: Topology) -> I64:
        """Maximum number of circuits of one wavelength on every arc, ``(m,)``."""
        room = np.full(topology.arcs, self.waveguides)
        if self.fibres is not None:
            room[self.fibres.joins(topology)] = self.fibres.number
        return room


@dataclass(frozen=True, eq=False)
class RoundSchedule:
    """Circuits and transfers by round, see the module; rounds count from 0."""

    circuit_round: I64
    circuit_source: I64
    circuit_target: I64
    circuit_wavelength: I64
    circuit_start: I64
    circuit_arcs: I64
    transfer_round: I64
    transfer_source: I64
    transfer_target: I64
    transfer_chunk: I64
    transfer_adds: Mask

    @property
    def circuits(self) -> int:
        """Number of circuits in all rounds."""
        return int(self.circuit_round.size)

    @property
    def transfers(self) -> int:
        """Number of transfers in all rounds."""
        return int(self.transfer_round.size)

    @cached_property
    def rounds(self) -> int:
        """Number of rounds up to the last with a circuit or transfer."""
        last = [int(rounds.max()) for rounds in (self.circuit_round, self.transfer_round) if rounds.size]
        return max(last, default=-1) + 1

    @cached_property
    def hops(self) -> I64:
        """Arcs of every circuit, ``(K,)``."""
        return np.diff(self.circuit_start)

    @cached_property
    def circuit_of_arc(self) -> I64:
        """The circuit of every entry of ``circuit_arcs``."""
        return np.repeat(np.arange(self.circuits), self.hops)

    def path(self, circuit: int) -> list[int]:
        """Arcs of a circuit, in order."""
        return self.circuit_arcs[self.circuit_start[circuit] : self.circuit_start[circuit + 1]].tolist()

    def values(self) -> dict[str, F64]:
        """The named arrays."""
        return {name: np.asarray(getattr(self, name), dtype=np.float64) for name in _NAMES}

    def taken(self, circuits: ArrayLike, transfers: ArrayLike) -> RoundSchedule:
        """Only the given circuits and transfers (indices or masks), in that order."""
        circuit = np.arange(self.circuits)[np.asarray(circuits)]
        transfer = np.arange(self.transfers)[np.asarray(transfers)]
        start, arcs = select(self.circuit_start, self.circuit_arcs, circuit)
        fields: dict[str, Any] = {name: getattr(self, name)[circuit] for name in CIRCUITS}
        fields |= {name: getattr(self, name)[transfer] for name in (*TRANSFERS, "transfer_adds")}
        return RoundSchedule(**fields, circuit_start=start, circuit_arcs=arcs)

    def moved(self, rounds: int) -> RoundSchedule:
        """The schedule delayed by ``rounds``."""
        return replace(self, circuit_round=self.circuit_round + rounds, transfer_round=self.transfer_round + rounds)

    def backwards(self, arc_of: I64) -> RoundSchedule:
        """Reverse the schedule in time: every transfer runs the other way and adds.

        ``arc_of[a]`` is the arc opposite to arc a of this schedule's topology.
        """
        last = self.rounds - 1
        order = self.circuit_arcs.size - 1 - np.arange(self.circuit_arcs.size)
        start = self.circuit_arcs.size - self.circuit_start[::-1]
        return RoundSchedule(
            last - self.circuit_round[::-1],
            self.circuit_target[::-1],
            self.circuit_source[::-1],
            self.circuit_wavelength[::-1],
            start,
            arc_of[self.circuit_arcs[order]],
            last - self.transfer_round[::-1],
            self.transfer_target[::-1],
            self.transfer_source[::-1],
            self.transfer_chunk[::-1],
            np.ones(self.transfers, dtype=bool),
        )


_NAMES = (*CIRCUITS, "circuit_start", "circuit_arcs", *TRANSFERS, "transfer_adds")


def direct(
    rounds: ArrayLike,
    sources: ArrayLike,
    targets: ArrayLike,
    chunks: ArrayLike,
    wavelengths: ArrayLike,
    start: ArrayLike,
    arcs: ArrayLike,
    *,
    adds: ArrayLike | bool = False,
) -> RoundSchedule:
    """Return a schedule in which every circuit carries one chunk (all arrays ``(K,)``, paths as in the module)."""
    when, source, target = (np.asarray(a, dtype=np.int64) for a in (rounds, sources, targets))
    return RoundSchedule(
        when,
        source,
        target,
        np.asarray(wavelengths, dtype=np.int64),
        np.asarray(start, dtype=np.int64),
        np.asarray(arcs, dtype=np.int64),
        when,
        source,
        target,
        np.asarray(chunks, dtype=np.int64),
        np.broadcast_to(np.asarray(adds, dtype=bool), when.shape).copy(),
    )


def chained(schedules: Sequence[RoundSchedule]) -> RoundSchedule:
    """Concatenate schedules in time."""
    moved, rounds = [], 0
    for schedule in schedules:
        moved.append(schedule.moved(rounds))
        rounds += schedule.rounds
    return together(moved)


def together(schedules: Sequence[RoundSchedule]) -> RoundSchedule:
    """Join the circuits and transfers of schedules without changing their rounds."""
    starts, offset = [np.zeros(1, dtype=np.int64)], 0
    for schedule in schedules:
        starts.append(schedule.circuit_start[1:] + offset)
        offset += int(schedule.circuit_arcs.size)
    joined = {
        name: np.concatenate([getattr(schedule, name) for schedule in schedules])
        for name in _NAMES
        if name != "circuit_start"
    }
    return RoundSchedule(**joined, circuit_start=np.concatenate(starts))


def schedule_arrays(topology: Topology, chunks: int) -> dict[str, Array]:
    """Shapes and ranges of the named arrays."""
    circuit, hop = Axis("circuit", SolutionSize("circuits")), Axis("hop", SolutionSize("hops"))
    transfer, vertex = Axis("transfer", SolutionSize("transfers")), vertex_axis("vertex", topology)
    boundary = Axis("boundary", SolutionSize("circuits", plus=1))
    when = Axis("round", MOST_NUMBERED)
    return {
        "circuit_round": members(circuit, of=when),
        "circuit_source": members(circuit, of=vertex),
        "circuit_target": members(circuit, of=vertex),
        "circuit_wavelength": members(circuit, of=Axis("wavelength", MOST_WAVELENGTHS)),
        "circuit_start": members(boundary, of=Axis("hop", SolutionSize("hops", plus=1))),
        "circuit_arcs": members(hop, of=arc_axis(topology)),
        "transfer_round": members(transfer, of=when),
        "transfer_source": members(transfer, of=vertex),
        "transfer_target": members(transfer, of=vertex),
        "transfer_chunk": members(transfer, of=Axis("chunk", chunks)),
        "transfer_adds": members(transfer, of=Axis("flag", 2)),
    }


def from_values(values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """Read a schedule from named arrays; None if one is missing or not integer, or if sizes disagree."""
    arrays: dict[str, Any] = {}
    for name in _NAMES:
        if name not in values:
            return None
        array = np.asarray(values[name], dtype=np.float64)
        if array.ndim != 1 or not np.isfinite(array).all() or (np.abs(array) > 2**53).any():
            return None
        if (array != np.rint(array)).any():
            return None
        arrays[name] = array.astype(np.int64)
    circuits, transfers = arrays["circuit_round"].size, arrays["transfer_round"].size
    start = arrays["circuit_start"]
    sizes = all(arrays[name].size == circuits for name in CIRCUITS)
    sizes &= all(arrays[name].size == transfers for name in (*TRANSFERS, "transfer_adds"))
    if not sizes or start.size != circuits + 1 or start[0] != 0 or start[-1] != arrays["circuit_arcs"].size:
        return None
    if (np.diff(start) < 0).any() or not np.isin(arrays["transfer_adds"], (0, 1)).all():
        return None
    return RoundSchedule(**{**arrays, "transfer_adds": arrays["transfer_adds"] == 1})


def opposite_arcs(topology: Topology, reversed_copy: Topology) -> I64:
    """For every arc of ``reversed_copy``, the opposite arc of ``topology``, ``(m,)``."""
    of = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    return np.asarray(
        [of[v, u] for u, v in zip(reversed_copy.tail.tolist(), reversed_copy.head.tolist(), strict=True)],
        dtype=np.int64,
    )


def violations(
    topology: Topology, collective: Collective, limits: Limits, schedule: RoundSchedule | None, *, relays: bool = False
) -> dict[str, float]:
    """Number of violations of each block (see the module); infinite if there is no valid schedule.

    With ``relays``, copies may pass through vertices that do not require them.
    """
    if schedule is None or not _in_range(topology, collective, schedule):
        return dict.fromkeys(BLOCKS, np.inf)
    counts = dict.fromkeys(BLOCKS, 0.0)
    counts["paths"] = _path_violations(topology, limits, schedule)
    counts |= _circuit_violations(topology, limits, schedule)
    counts["payload"] = _payload_violations(topology.n, limits, schedule)
    counts |= _summed(collective, schedule) if collective.summing else _copied(collective, schedule, relays)
    return counts


def _in_range(topology: Topology, collective: Collective, schedule: RoundSchedule) -> bool:
    """Whether all numbers are in range."""
    n, most = topology.n, max(schedule.transfers, schedule.circuits, MOST_ROUNDS)
    limits = (
        (schedule.circuit_round, most),
        (schedule.circuit_source, n),
        (schedule.circuit_target, n),
        (schedule.circuit_arcs, topology.arcs),
        (schedule.transfer_round, most),
        (schedule.transfer_source, n),
        (schedule.transfer_target, n),
        (schedule.transfer_chunk, collective.chunks),
        (schedule.circuit_wavelength, MOST_WAVELENGTHS),
    )
    return collective.n == n and all(a.size == 0 or (a.min() >= 0 and a.max() < most) for a, most in limits)


def _path_violations(topology: Topology, limits: Limits, schedule: RoundSchedule) -> float:
    """Number of circuits that are not a simple chain from source to target, or have an invalid wavelength."""
    start, arcs = schedule.circuit_start, schedule.circuit_arcs
    bad = (schedule.circuit_wavelength >= limits.wavelengths) | (schedule.hops == 0)
    bad |= schedule.circuit_source == schedule.circuit_target
    some = np.flatnonzero(schedule.hops > 0)
    bad[some] |= topology.tail[arcs[start[:-1][some]]] != schedule.circuit_source[some]
    bad[some] |= topology.head[arcs[start[1:][some] - 1]] != schedule.circuit_target[some]
    owner = schedule.circuit_of_arc
    inner = np.flatnonzero(owner[1:] == owner[:-1])
    broken = topology.head[arcs[inner]] != topology.tail[arcs[inner + 1]]
    bad[owner[inner[broken]]] = True
    # A simple chain enters every vertex at most once and never its source.
    entered = owner * topology.n + topology.head[arcs]
    unique, count = np.unique(entered, return_counts=True)
    bad[unique[count > 1] // topology.n] = True
    bad[owner[topology.head[arcs] == schedule.circuit_source[owner]]] = True
    return float(bad.sum())


def _over(colours: I64, places: I64, room: I64) -> float:
    """Total number of circuits at arcs or vertices beyond the ``room`` of each, in every colour."""
    keys, count = np.unique(colours * room.size + places, return_counts=True)
    return float(np.maximum(count - room[keys % max(room.size, 1)], 0).sum())


def _circuit_violations(topology: Topology, limits: Limits, schedule: RoundSchedule) -> dict[str, float]:
    colour = schedule.circuit_round * (int(schedule.circuit_wavelength.max(initial=0)) + 1)
    colour = colour + schedule.circuit_wavelength
    counts = {"waveguides": _over(colour[schedule.circuit_of_arc], schedule.circuit_arcs, limits.room(topology))}
    if limits.ports is not None:
        ports = np.full(topology.n, limits.ports)
        counts["lasers"] = _over(colour, schedule.circuit_source, ports)
        counts["photodiodes"] = _over(colour, schedule.circuit_target, ports)
    return counts


def _payload_violations(n: int, limits: Limits, schedule: RoundSchedule) -> float:
    """Number of transfers without a circuit or beyond the capacity of their circuits."""
    connected = (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target
    sent = (schedule.transfer_round * n + schedule.transfer_source) * n + schedule.transfer_target
    pairs, circuits = np.unique(connected, return_counts=True)
    needed, transfers = np.unique(sent, return_counts=True)
    if pairs.size == 0:
        return float(schedule.transfers)
    at = np.minimum(np.searchsorted(pairs, needed), pairs.size - 1)
    available = np.where(pairs[at] == needed, circuits[at], 0)
    room = np.where(available > 0, transfers, 0) if limits.load is None else available * limits.load
    return float(np.maximum(transfers - room, 0).sum())


def _copied(collective: Collective, schedule: RoundSchedule, relays: bool) -> dict[str, float]:
    """Replay copies by the round in which each (chunk, vertex) is first held."""
    n = collective.n
    held = collective.key(collective.pre)
    received = schedule.transfer_chunk * n + schedule.transfer_target
    sent = schedule.transfer_chunk * n + schedule.transfer_source
    keys = np.concatenate([held, received])
    since = np.concatenate([np.full(held.size, -1), schedule.transfer_round])
    order = np.lexsort((since, keys))
    keys, since = keys[order], since[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if keys.size else order
    keys, since = keys[first], since[first]

    def held_since(pairs: I64) -> I64:
        """Round after which each pair is held; the largest integer if never."""
        if keys.size == 0:
            return np.full(pairs.size, np.iinfo(np.int64).max)
        at = np.minimum(np.searchsorted(keys, pairs), keys.size - 1)
        return np.asarray(np.where(keys[at] == pairs, since[at], np.iinfo(np.int64).max), dtype=np.int64)

    allowed = collective.key(collective.deliveries)
    unwanted = np.isin(received, held) if relays else ~np.isin(received, allowed)
    again = received.size - np.unique(received).size
    causality = (held_since(sent) >= schedule.transfer_round).sum() if sent.size else 0
    missing = (held_since(collective.key(collective.post)) == np.iinfo(np.int64).max).sum()
    return {
        "causality": float(causality),
        "redundant": float(unwanted.sum() + again + schedule.transfer_adds.sum()),
        "post": float(missing),
    }


def _summed(collective: Collective, schedule: RoundSchedule) -> dict[str, float]:
    """Replay sums by the multiplicity of every contribution in every partial sum.

    Adding uses the sender's sum at the beginning of the round; copying replaces the target's sum.
    """
    n, chunks = collective.n, collective.chunks
    counts = {"causality": 0.0, "redundant": 0.0, "post": 0.0}
    block = max(MOST_STATES // (n * n), 1)
    order = np.lexsort((schedule.transfer_round, schedule.transfer_chunk // block))
    whose = (schedule.transfer_chunk // block)[order]
    for first in range(0, chunks, block):
        members = order[np.searchsorted(whose, first // block) : np.searchsorted(whose, first // block, side="right")]
        last = min(first + block, chunks)
        for name, count in _replay_sums(collective, schedule, members, first, last).items():
            counts[name] += count
    return counts


def _replay_sums(
    collective: Collective, schedule: RoundSchedule, transfers: I64, first: int, last: int
) -> dict[str, float]:
    """Replay chunks ``first <= c < last``; ``transfers`` are those of these chunks, by round."""
    n = collective.n
    has = np.zeros((last - first, n, n), dtype=np.int16)

    def mine(pairs: I64) -> I64:
        inside = pairs[(pairs[:, 0] >= first) & (pairs[:, 0] < last)]
        return inside - np.array([first, 0], dtype=np.int64)

    pre, post = mine(collective.pre), mine(collective.post)
    has[pre[:, 0], pre[:, 1], pre[:, 1]] = 1
    causality = redundant = 0.0
    rounds = schedule.transfer_round[transfers]
    for moves in np.split(transfers, np.flatnonzero(np.diff(rounds)) + 1) if transfers.size else []:
        chunk, source = schedule.transfer_chunk[moves] - first, schedule.transfer_source[moves]
        target, adds = schedule.transfer_target[moves], schedule.transfer_adds[moves]
        sent = has[chunk, source]
        causality += float((~sent.any(axis=1)).sum())
        held = has[chunk, target].copy()
        # A copy onto a sum that already contains it is redundant, and so is the second of two simultaneous copies.
        redundant += float((~adds & (held >= sent).all(axis=1)).sum())
        copied = chunk[~adds] * n + target[~adds]
        redundant += float(copied.size - np.unique(copied).size)
        has[chunk[~adds], target[~adds]] = sent[~adds]
        np.add.at(has, (chunk[adds], target[adds]), sent[adds])
        np.minimum(has, 3, out=has)
        touched = has[chunk, target]
        redundant += float((touched > 1).any(axis=1).sum())
    contributed = np.zeros((last - first, n), dtype=np.int16)
    contributed[pre[:, 0], pre[:, 1]] = 1
    takes_part = contributed > 0
    takes_part[post[:, 0], post[:, 1]] = True
    redundant += float(
        (~takes_part[schedule.transfer_chunk[transfers] - first, schedule.transfer_target[transfers]]).sum()
    )
    missing = (has[post[:, 0], post[:, 1]] != contributed[post[:, 0]]).any(axis=1).sum()
    return {"causality": causality, "redundant": redundant, "post": float(missing)}


@runtime_checkable
class RoundFormulation(Protocol):
    """A formulation with a solution that is a :class:`~opticoll.formulations.rounds.round_schedule.RoundSchedule`."""

    def rounds(self, values: Mapping[str, F64]) -> RoundSchedule:
        """The schedule that a solution is; an error if the values contain none."""

    def replay(self, schedule: RoundSchedule) -> dict[str, float]:
        """The violations of an external schedule, by block."""
