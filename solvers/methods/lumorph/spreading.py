r"""Schedule copies round by round: every receiver takes its rarest missing chunks from nearby holders.

Schedules one phase of copies on any topology; circuits are routed when they are chosen
(:mod:`opticoll.solvers.methods.lumorph.spreading_kernel`). Several policies are tried in turn, each with its own seed:

    rare   number of rarest missing chunks of which a receiver takes the nearest: few spread chunks far, many save arcs
    near   distance in arcs within which it looks for these before it takes any missing chunk
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds import offsets
from opticoll.formulations.rounds.round_schedule import direct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from opticoll.formulations.rounds import Collective
    from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule
    from opticoll.instances import Topology

    I64 = NDArray[np.int64]

#: Turns with ejections per possible reception of a round.
PATIENCE = 3
#: Consecutive rounds without transfers after which an attempt ends.
IDLE = 2


@dataclass(frozen=True)
class Policy:
    """Choice of chunks by receivers, see the module."""

    rare: int
    near: int


def policies(n: int, random: np.random.Generator) -> Iterator[Policy]:
    """Infinite sequence of policies: first those that perform best on meshes, then random ones."""
    yield from (Policy(16, 4), Policy(64, n), Policy(4, 6), Policy(n, n), Policy(32, 3))
    while True:
        rare = int(2 ** random.uniform(0.0, np.log2(max(n, 2)) + 0.5))
        yield Policy(max(rare, 1), int(random.choice([2, 3, 4, 5, 6, 8, 12, n])))


def bit_sets(pairs: I64, n: int, chunks: int) -> NDArray[np.uint64]:
    """Bit sets of the chunks of every vertex, ``(n, words)``, from pairs (chunk, vertex)."""
    bits = np.zeros((n, max((chunks + 63) // 64, 1)), dtype=np.uint64)
    np.bitwise_or.at(bits, (pairs[:, 1], pairs[:, 0] // 64), np.uint64(1) << (pairs[:, 0] % 64).astype(np.uint64))
    return bits


def spread_copies(
    topology: Topology, collective: Collective, limits: Limits, policy: Policy, seed: int, most: int,
    left: Callable[[], float],
) -> RoundSchedule | None:  # fmt: skip
    """A schedule of a copying collective in at most ``most`` rounds; None if it needs more, or time is up.

    A vertex receives at most one circuit of a wavelength, whatever ``limits.ports``.
    """
    from opticoll.solvers.methods.lumorph.spreading_kernel import one_round

    random = np.random.default_rng(seed)
    n, waves = topology.n, limits.wavelengths
    in_arc = np.argsort(topology.head, kind="stable")
    first_in = np.searchsorted(topology.head[in_arc], np.arange(n + 1))
    ports = n if limits.ports is None else limits.ports
    room = min(limits.waveguides, n * ports)
    holds = bit_sets(collective.pre, n, collective.chunks)
    wants = bit_sets(collective.deliveries, n, collective.chunks)
    holders = np.zeros(64 * wants.shape[1], dtype=np.int64)
    holders[: collective.chunks] = collective.holders
    hops = topology.hops
    longest = int(min(n - 1, max(64, 4 * np.max(hops, where=np.isfinite(hops), initial=1.0))))
    source, chunk, length = (np.empty((waves, n), dtype=np.int32) for _ in range(3))
    path = np.empty((waves, n, longest), dtype=np.int32)
    rounds: list[tuple[I64, I64, I64, I64, I64, I64]] = []
    idle = 0
    left_over = np.bitwise_count(wants).sum(axis=1).astype(np.int64)
    while left_over.any():
        need = -(-int(left_over.max()) // waves)
        if len(rounds) + need > most or left() <= 0:
            return None
        quota = np.minimum(left_over, waves)
        total = int(quota.sum())
        one_round(
            first_in, in_arc, topology.tail, topology.head, room, ports, holds, wants, holders, quota,
            policy.rare, policy.near, PATIENCE * total + 100, int(random.integers(2**31)), source, chunk, length, path,
        )  # fmt: skip
        entry = np.nonzero(source >= 0)
        wave, target = entry
        got = chunk[entry].astype(np.int64)
        np.bitwise_or.at(holds, (target, got // 64), np.uint64(1) << (got % 64).astype(np.uint64))
        on_path = np.arange(longest) < length[entry][:, None]
        rounds.append(
            (wave, source[entry].astype(np.int64), target, got, length[entry].astype(np.int64),
             path[entry][on_path].astype(np.int64))
        )  # fmt: skip
        idle = 0 if wave.size else idle + 1
        if idle >= IDLE:
            return None
        left_over = np.bitwise_count(wants).sum(axis=1).astype(np.int64)
    when = np.repeat(np.arange(len(rounds)), [columns[0].size for columns in rounds])
    wave, sources, targets, chunks, lengths, arcs = (np.concatenate(columns) for columns in zip(*rounds, strict=True))
    return direct(when, sources, targets, chunks, wave, offsets(lengths), arcs)
