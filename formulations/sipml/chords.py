"""Chords of a ring: pairs of GPUs, their links, and candidate circuits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.rounds.wavelengths import arcs_taken
from opticoll.formulations.variables import Axis, Links, Names
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.sipml.transfers import Transfers
    from opticoll.formulations.sipml.walks import Walks
    from opticoll.instances.topology import F64, I64


#: Names of the directions of a ring.
WAYS = ("clockwise", "anticlockwise")
#: Maximum number of chords that are built.
MOST_CHORDS = 5_000_000


@dataclass(frozen=True, eq=False)
class Chords:
    """Rows ``t + slope_r c_{pair_r} >= level_r``, ``(rows,)`` each, by pair, then j."""

    pair: I64
    j: I64
    slope: F64
    level: F64


def pair_axis(moves: Transfers) -> Axis:
    """The pairs ``i->j``, by server numbers."""
    return Axis("pair", moves.pairs, lambda _: _names(moves))


def walk_axes(moves: Transfers, walk: Walks) -> tuple[Axis, Axis, Axis]:
    """The circuits of walks, their idle segments, and their circuits that cross the cut."""

    def along(way: I64, start: I64) -> dict[str, list[object]]:
        return {"direction": [WAYS[i] for i in way.tolist()], "walk": start.tolist()}

    def pairs(pair: I64) -> list[object]:
        names = _names(moves)
        return [names[p] for p in pair.tolist()]

    def circuits(_values: object) -> Names:
        return {**along(walk.circuits["way"], walk.circuits["start"]), "pair": pairs(walk.circuits["pair"])}

    def idle(_values: object) -> Names:
        return {**along(walk.idle["way"], walk.idle["start"]), "segment": walk.idle["tail"].tolist()}

    def crossing(_values: object) -> Names:
        return {**along(walk.crossings["way"], walk.crossings["head"]), "pair": pairs(walk.crossings["pair"])}

    return (
        Axis("circuit of a walk", len(walk.circuits), circuits),
        Axis("idle segment", len(walk.idle), idle),
        Axis("crossing circuit", len(walk.crossings), crossing),
    )


def _names(moves: Transfers) -> list[str]:
    return [f"{i}->{j}" for i, j in zip(moves.source.tolist(), moves.target.tolist(), strict=True)]


def pair_links(moves: Transfers, circuits: F64, time: float) -> Links:
    """Bytes of every pair over its own circuits, within the time of the slowest transfer [s]."""
    topology = Topology(moves.n, moves.source, moves.target, spec="circuits")
    return Links(topology, moves.volume, circuits * moves.bandwidth, time, "bytes", "bytes/s")


def ring_links(n: int, circuits: Sequence[tuple[int, int, bool, int]], wavelengths: int) -> Links:
    """Load of every segment and direction of a ring by circuits (source, target, clockwise, wavelength)."""
    source, target, clockwise, _ = np.array(circuits, dtype=np.int64).reshape(-1, 4).T
    spans, _, owner = arcs_taken(n, source, target, clockwise == 1)
    onward, nodes = clockwise[owner] == 1, np.arange(n)
    after = (nodes + 1) % n
    topology = Topology(n, np.concatenate([nodes, after]), np.concatenate([after, nodes]), spec=f"ring:{n}")
    key = topology.tail * n + topology.head
    at = np.where(onward, spans * n + after[spans], after[spans] * n + spans)
    load = np.bincount(np.searchsorted(key, at), minlength=topology.arcs).astype(float)
    return Links(topology, load, np.full(load.size, float(wavelengths)), 1.0, "circuits", "wavelengths")


def chord_count(low: I64, high: I64) -> int:
    """Number of chords between the bounds of c."""
    return int(np.maximum(high - low, 1).sum())


def chords(shares: F64, low: I64, high: I64, where: str) -> Chords:
    """Build the chords of every pair between the bounds of its c (one if they are equal).

    Raises
    ------
    BadInput
        For more than ``MOST_CHORDS`` chords.
    """
    count = np.maximum(high - low, 1)
    rows = chord_count(low, high)
    if rows > MOST_CHORDS:
        msg = (
            f"{where}: the model would have {rows:,} chords; use fewer circuits or pairs, or a method without a matrix"
        )
        raise BadInput(msg)
    pair = np.repeat(np.arange(shares.size), count)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)[:-1]])
    j = np.arange(rows) - first[pair] + low[pair]
    slope = shares[pair] / (j * (j + 1.0))
    return Chords(pair, j, slope, slope * (2.0 * j + 1.0))
