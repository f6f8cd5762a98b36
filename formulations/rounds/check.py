r"""An independent check of a schedule of rounds, by numpy alone: it replays what the schedule says.

In every round r

    paths        every circuit is a simple chain of existing arcs from its source to its target, a wavelength in range
    lasers       a vertex sends at most ``ports`` circuits of one wavelength
    photodiodes  a vertex receives at most ``ports`` circuits of one wavelength
    waveguides   an arc holds at most ``waveguides`` circuits of one wavelength
    payload      every transfer has a circuit from its source to its target; a circuit carries at most ``load`` chunks
    causality    what is sent was held, or summed, before the round began
    redundant    nothing is received that is held, or by who neither contributes nor wants; no contribution counts twice
    post         every (chunk, vertex) of Post is there at the end, sums complete

Each block counts what violates it, so 0 everywhere is a valid schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.rounds.schedule import MOST_WAVELENGTHS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.rounds.collectives import Collective
    from formulations.rounds.schedule import RoundSchedule
    from instances import Topology

    I64 = NDArray[np.int64]

BLOCKS = ("paths", "lasers", "photodiodes", "waveguides", "payload", "causality", "redundant", "post")
#: Rounds may be idle; numbers beyond this, and beyond one round a transfer, are refused.
MOST_ROUNDS = 2**20
#: Sums are replayed for so many (chunk, vertex, contribution) at a time.
MOST_STATES = 30_000_000


@dataclass(frozen=True)
class Limits:
    """What a machine can do in one round.

    Parameters
    ----------
    wavelengths
        Wavelengths there are: lasers of a LIGHTPATH tile, channels of a WDM fibre.
    waveguides
        Circuits of one wavelength that an arc holds.
    ports
        Circuits of one wavelength that a vertex sends, and receives; None for any number.
    load
        Chunks that a circuit carries in a round; None for any number (the cost model then says how long it takes).
    """

    wavelengths: int
    waveguides: int = 1
    ports: int | None = 1
    load: int | None = 1


def violations(
    topology: Topology, collective: Collective, limits: Limits, schedule: RoundSchedule | None
) -> dict[str, float]:
    """How often each block is violated, see the module; all infinite where there is no schedule to read."""
    if schedule is None or not _in_range(topology, collective, schedule):
        return dict.fromkeys(BLOCKS, np.inf)
    found = dict.fromkeys(BLOCKS, 0.0)
    found["paths"] = _path_violations(topology, limits, schedule)
    found |= _circuit_violations(topology, limits, schedule)
    found["payload"] = _payload_violations(topology.n, limits, schedule)
    found |= (_summed if collective.summing else _copied)(collective, schedule)
    return found


def _in_range(topology: Topology, collective: Collective, schedule: RoundSchedule) -> bool:
    """Whether every number names something (rounds: as many as there are transfers, or ``MOST_ROUNDS``)."""
    n, most = topology.n, max(schedule.transfers, schedule.circuits, MOST_ROUNDS)
    limits = (
        (schedule.circuit_round, most), (schedule.circuit_source, n), (schedule.circuit_target, n),
        (schedule.circuit_arcs, topology.arcs), (schedule.transfer_round, most), (schedule.transfer_source, n),
        (schedule.transfer_target, n), (schedule.transfer_chunk, collective.chunks),
        (schedule.circuit_wavelength, MOST_WAVELENGTHS),
    )  # fmt: skip
    return collective.n == n and all(a.size == 0 or (a.min() >= 0 and a.max() < most) for a, most in limits)


def _path_violations(topology: Topology, limits: Limits, schedule: RoundSchedule) -> float:
    """Circuits that are no simple chain from source to target, or of a wavelength that there is not."""
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
    # A simple chain enters every vertex at most once, and its source never.
    entered = owner * topology.n + topology.head[arcs]
    unique, count = np.unique(entered, return_counts=True)
    bad[unique[count > 1] // topology.n] = True
    bad[owner[topology.head[arcs] == schedule.circuit_source[owner]]] = True
    return float(bad.sum())


def _over(keys: I64, most: int) -> float:
    """By how much keys appear more often than ``most`` times, in all."""
    _, count = np.unique(keys, return_counts=True)
    return float(np.maximum(count - most, 0).sum())


def _circuit_violations(topology: Topology, limits: Limits, schedule: RoundSchedule) -> dict[str, float]:
    colour = schedule.circuit_round * (int(schedule.circuit_wavelength.max(initial=0)) + 1)
    colour = colour + schedule.circuit_wavelength
    found = {
        "waveguides": _over(colour[schedule.circuit_of_arc] * topology.arcs + schedule.circuit_arcs, limits.waveguides)
    }
    if limits.ports is not None:
        found["lasers"] = _over(colour * topology.n + schedule.circuit_source, limits.ports)
        found["photodiodes"] = _over(colour * topology.n + schedule.circuit_target, limits.ports)
    return found


def _payload_violations(n: int, limits: Limits, schedule: RoundSchedule) -> float:
    """Transfers without a circuit, or beyond what their circuits carry."""
    stands = (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target
    sent = (schedule.transfer_round * n + schedule.transfer_source) * n + schedule.transfer_target
    pairs, circuits = np.unique(stands, return_counts=True)
    wanted, transfers = np.unique(sent, return_counts=True)
    if pairs.size == 0:
        return float(schedule.transfers)
    at = np.minimum(np.searchsorted(pairs, wanted), pairs.size - 1)
    there = np.where(pairs[at] == wanted, circuits[at], 0)
    room = np.where(there > 0, transfers, 0) if limits.load is None else there * limits.load
    return float(np.maximum(transfers - room, 0).sum())


def _copied(collective: Collective, schedule: RoundSchedule) -> dict[str, float]:
    """Replay of copies: when each (chunk, vertex) is first held decides everything."""
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
        """The round after which a pair is held; a very late one for never."""
        if keys.size == 0:
            return np.full(pairs.size, np.iinfo(np.int64).max)
        at = np.minimum(np.searchsorted(keys, pairs), keys.size - 1)
        return np.asarray(np.where(keys[at] == pairs, since[at], np.iinfo(np.int64).max), dtype=np.int64)

    wanted = collective.key(collective.deliveries)
    unwanted = ~np.isin(received, wanted)
    again = received.size - np.unique(received).size
    causality = (held_since(sent) >= schedule.transfer_round).sum() if sent.size else 0
    missing = (held_since(collective.key(collective.post)) == np.iinfo(np.int64).max).sum()
    return {
        "causality": float(causality),
        "redundant": float(unwanted.sum() + again + schedule.transfer_adds.sum()),
        "post": float(missing),
    }


def _summed(collective: Collective, schedule: RoundSchedule) -> dict[str, float]:
    """Replay of sums: how often every contribution is in what every vertex has of every chunk.

    Adding takes the sender's sum as it was when the round began; copying replaces what the target had.
    """
    n, chunks = collective.n, collective.chunks
    found = {"causality": 0.0, "redundant": 0.0, "post": 0.0}
    block = max(MOST_STATES // (n * n), 1)
    order = np.lexsort((schedule.transfer_round, schedule.transfer_chunk // block))
    whose = (schedule.transfer_chunk // block)[order]
    for first in range(0, chunks, block):
        here = order[np.searchsorted(whose, first // block) : np.searchsorted(whose, first // block, side="right")]
        last = min(first + block, chunks)
        for name, count in _replay_sums(collective, schedule, here, first, last).items():
            found[name] += count
    return found


def _replay_sums(
    collective: Collective, schedule: RoundSchedule, transfers: I64, first: int, last: int
) -> dict[str, float]:
    """Replay chunks ``first <= c < last``; ``transfers`` are theirs, by round."""
    n = collective.n
    has = np.zeros((last - first, n, n), dtype=np.int16)

    def mine(pairs: I64) -> I64:
        here = pairs[(pairs[:, 0] >= first) & (pairs[:, 0] < last)]
        return here - np.array([first, 0], dtype=np.int64)

    pre, post = mine(collective.pre), mine(collective.post)
    has[pre[:, 0], pre[:, 1], pre[:, 1]] = 1
    causality = redundant = 0.0
    rounds = schedule.transfer_round[transfers]
    for here in np.split(transfers, np.flatnonzero(np.diff(rounds)) + 1) if transfers.size else []:
        chunk, source = schedule.transfer_chunk[here] - first, schedule.transfer_source[here]
        target, adds = schedule.transfer_target[here], schedule.transfer_adds[here]
        sent = has[chunk, source]
        causality += float((~sent.any(axis=1)).sum())
        whole = has[chunk, target].copy()
        # A copy onto what already has all of it brings nothing; two copies at once are one too many.
        redundant += float((~adds & (whole >= sent).all(axis=1)).sum())
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
