"""Pairs of GPUs: the chords of their times, their names, and the loads of their circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations.index import Index
from opticoll.formulations.rounds.segments import offsets
from opticoll.formulations.rounds.wavelengths import arcs_taken
from opticoll.formulations.variables import Axis, Links
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from opticoll.formulations.sipml.transfers import Transfers
    from opticoll.instances.topology import F64, I64, Mask


#: Names of the directions of a ring.
WAYS = ("clockwise", "anticlockwise")
#: Maximum number of chords that are built.
MOST_CHORDS = 5_000_000


def pair_axis(moves: Transfers) -> Axis:
    """The pairs ``i->j``, by server numbers."""
    return Axis("pair", moves.pairs, lambda _: _names(moves))


def _names(moves: Transfers) -> list[str]:
    return [f"{i}->{j}" for i, j in zip(moves.source.tolist(), moves.target.tolist(), strict=True)]


def pair_links(moves: Transfers, circuits: F64, time: float) -> Links:
    """Bytes of every pair over its own circuits, within the time of the slowest transfer [s]."""
    topology = Topology(moves.n, moves.source, moves.target, spec="circuits")
    return Links(topology, moves.volume, circuits * moves.bandwidth, time, "bytes", "bytes/s")


def ring_links(n: int, source: I64, target: I64, clockwise: Mask, wavelengths: int) -> Links:
    """Load of every segment and direction of a ring by circuits, ``(E,)`` each."""
    spans, _, owner = arcs_taken(n, source, target, clockwise)
    onward, nodes = clockwise[owner], np.arange(n)
    after = (nodes + 1) % n
    topology = Topology(n, np.concatenate([nodes, after]), np.concatenate([after, nodes]), spec=f"ring:{n}")
    key = topology.tail * n + topology.head
    at = np.where(onward, spans * n + after[spans], after[spans] * n + spans)
    load = np.bincount(np.searchsorted(key, at), minlength=topology.arcs).astype(float)
    return Links(topology, load, np.full(load.size, float(wavelengths)), 1.0, "circuits", "wavelengths")


def chord_index(high: I64, where: str) -> Index:
    """The chords (pair, count) of every pair, h = count + 1 below its largest number of circuits, but at least one.

    Raises
    ------
    BadInput
        For more than ``MOST_CHORDS`` chords.
    """
    each = np.maximum(high - 1, 1)
    if each.sum() > MOST_CHORDS:
        refuse(
            where,
            f"the model would have {each.sum():,} chords; use fewer circuits or pairs, or a method without a matrix",
        )
    pair = np.repeat(np.arange(high.size), each)
    return Index.table("pair count", {"pair": pair, "count": np.arange(pair.size) - offsets(each)[pair]})
