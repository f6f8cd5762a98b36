r"""A schedule of rounds: which circuits stand in every round, and which chunks they carry.

*Circuits* are light paths: in round r, wavelength w goes from s to d over a chain of arcs. *Transfers* are chunks: in
round r, s sends chunk c to d over the circuits that stand from s to d in that round, evenly striped over them where
there are several. A transfer either copies the chunk, or adds what s has summed so far to what d has (``adds``).

Named arrays (values of the formulations that have a schedule as solution):

    circuit_round, circuit_source, circuit_target, circuit_wavelength      (K,)
    circuit_start (K + 1,), circuit_arcs                                   circuit k: arcs[start[k] : start[k + 1]]
    transfer_round, transfer_source, transfer_target, transfer_chunk       (T,)
    transfer_adds                                                          (T,), 0 or 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.arrays import Array, Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from instances import Topology

    I64 = NDArray[np.int64]

#: No machine has so many wavelengths.
MOST_WAVELENGTHS = 2**20
#: Round numbers below this are read; how many rounds may be idle is for the check to say.
MOST_NUMBERED = 2**32
#: Names of the arrays, in the order of the dataclass.
CIRCUITS = ("circuit_round", "circuit_source", "circuit_target", "circuit_wavelength")
TRANSFERS = ("transfer_round", "transfer_source", "transfer_target", "transfer_chunk")


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
    transfer_adds: NDArray[np.bool_]

    @property
    def circuits(self) -> int:
        """How many circuits are set up, over all rounds."""
        return int(self.circuit_round.size)

    @property
    def transfers(self) -> int:
        """How many chunks are sent, over all rounds."""
        return int(self.transfer_round.size)

    @cached_property
    def rounds(self) -> int:
        """Rounds from the first to the last in which anything stands or is sent."""
        last = [int(rounds.max()) for rounds in (self.circuit_round, self.transfer_round) if rounds.size]
        return max(last, default=-1) + 1

    @cached_property
    def hops(self) -> I64:
        """Arcs of every circuit, ``(K,)``."""
        return np.diff(self.circuit_start)

    @cached_property
    def circuit_of_arc(self) -> I64:
        """The circuit that every entry of ``circuit_arcs`` belongs to."""
        return np.repeat(np.arange(self.circuits), self.hops)

    def path(self, circuit: int) -> list[int]:
        """Arcs of a circuit in order."""
        return self.circuit_arcs[self.circuit_start[circuit] : self.circuit_start[circuit + 1]].tolist()

    def values(self) -> dict[str, NDArray[np.float64]]:
        """The named arrays."""
        return {name: np.asarray(getattr(self, name), dtype=np.float64) for name in _NAMES}

    def taken(self, circuits: ArrayLike, transfers: ArrayLike) -> RoundSchedule:
        """These circuits and transfers only, in this order (indices or masks)."""
        circuit = np.arange(self.circuits)[np.asarray(circuits)]
        transfer = np.arange(self.transfers)[np.asarray(transfers)]
        start, arcs = taken_paths(self.circuit_start, self.circuit_arcs, circuit)
        fields: dict[str, Any] = {name: getattr(self, name)[circuit] for name in CIRCUITS}
        fields |= {name: getattr(self, name)[transfer] for name in (*TRANSFERS, "transfer_adds")}
        return RoundSchedule(**fields, circuit_start=start, circuit_arcs=arcs)

    def moved(self, rounds: int) -> RoundSchedule:
        """The same, later by ``rounds``."""
        return replace(self, circuit_round=self.circuit_round + rounds, transfer_round=self.transfer_round + rounds)

    def backwards(self, arc_of: I64) -> RoundSchedule:
        """Run it backwards in time, every transfer turned round and adding.

        ``arc_of[a]`` is the arc that runs against arc a of this schedule's topology.
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
    """A schedule in which every circuit carries one chunk (all arrays ``(K,)``, paths as in the module)."""
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
    """One after the other in time."""
    moved, rounds = [], 0
    for schedule in schedules:
        moved.append(schedule.moved(rounds))
        rounds += schedule.rounds
    return together(moved)


def together(schedules: Sequence[RoundSchedule]) -> RoundSchedule:
    """All at once, each in its own rounds."""
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


def schedule_arrays(n: int, arcs: int, chunks: int) -> dict[str, Array]:
    """Shapes and ranges of the named arrays, for n vertices and so many arcs and chunks."""
    circuits, transfers = Size("circuits"), Size("transfers")
    return {
        "circuit_round": Array((circuits,), low=0, high=MOST_NUMBERED),
        "circuit_source": Array((circuits,), low=0, high=n),
        "circuit_target": Array((circuits,), low=0, high=n),
        "circuit_wavelength": Array((circuits,), low=0, high=MOST_WAVELENGTHS),
        "circuit_start": Array((Size("circuits", plus=1),), low=0, high=Size("hops", plus=1)),
        "circuit_arcs": Array((Size("hops"),), low=0, high=arcs),
        "transfer_round": Array((transfers,), low=0, high=MOST_NUMBERED),
        "transfer_source": Array((transfers,), low=0, high=n),
        "transfer_target": Array((transfers,), low=0, high=n),
        "transfer_chunk": Array((transfers,), low=0, high=chunks),
        "transfer_adds": Array((transfers,), low=0, high=2),
    }


def from_values(values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """The schedule that named arrays hold; None if one is missing, is no array of whole numbers, or sizes disagree."""
    found: dict[str, Any] = {}
    for name in _NAMES:
        if name not in values:
            return None
        given = np.asarray(values[name], dtype=np.float64)
        if given.ndim != 1 or not np.isfinite(given).all() or (np.abs(given) > 2**53).any():
            return None
        if (given != np.rint(given)).any():
            return None
        found[name] = given.astype(np.int64)
    circuits, transfers = found["circuit_round"].size, found["transfer_round"].size
    start = found["circuit_start"]
    sizes = all(found[name].size == circuits for name in CIRCUITS)
    sizes &= all(found[name].size == transfers for name in (*TRANSFERS, "transfer_adds"))
    if not sizes or start.size != circuits + 1 or start[0] != 0 or start[-1] != found["circuit_arcs"].size:
        return None
    if (np.diff(start) < 0).any() or not np.isin(found["transfer_adds"], (0, 1)).all():
        return None
    return RoundSchedule(**{**found, "transfer_adds": found["transfer_adds"] == 1})


def opposite_arcs(topology: Topology, other: Topology) -> I64:
    """For every arc of ``other`` (the topology turned round) the arc of ``topology`` that it is, ``(m,)``."""
    of = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    return np.asarray([of[v, u] for u, v in zip(other.tail.tolist(), other.head.tolist(), strict=True)], dtype=np.int64)


def taken_paths(start: I64, arcs: I64, which: I64) -> tuple[I64, I64]:
    """Pick paths: those numbered ``which`` out of ``arcs[start[p] : start[p + 1]]``, in that order."""
    length = np.diff(start)[which]
    out = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
    at = np.arange(out[-1]) - np.repeat(out[:-1], length) + np.repeat(start[:-1][which], length)
    return out, arcs[at]
