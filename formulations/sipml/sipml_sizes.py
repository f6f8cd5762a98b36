"""Sizes of the models of this room, counted from their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import NotApplicable
from opticoll.formulations.rounds.wavelengths import arcs_taken
from opticoll.formulations.sipml.chords import chord_count

if TYPE_CHECKING:
    from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
    from opticoll.formulations.sipml.placement import Placement
    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.instances.topology import I64


#: Maximum size of a matrix that is built [nonzeros].
RING_NONZEROS = 20_000_000


def ring_size(data: RingTraffic) -> dict[str, int]:
    """Size of the model."""
    pairs, n, W = data.transfers.pairs, data.n, data.wavelengths
    rows = chord_count(np.ones(pairs, dtype=np.int64), data.high)
    if data.model == "arcs":
        uses = pairs * n
        used = np.unique(arc_uses(data)[0]).size
        x = 2 * pairs * W
        return {
            "variables": pairs + 1 + x,
            "constraints": rows + used * W + pairs,
            "nonzeros": 2 * rows + uses * W + pairs + x,
            "integers": pairs + x,
        }
    walk = data.walks
    whole = len(walk.circuits) + len(walk.crossings)
    legs, ends = (walk.circuits, walk.idle, walk.crossings), ("tail", "head")
    entries = sum(int((walk.row_of(one, end) >= 0).sum()) for one in legs for end in ends)
    entries += sum(int(((one["start"] == 0) & (one["tail"] == 0)).sum()) for one in (walk.circuits, walk.idle))
    entries += len(walk.circuits) + 2 * len(walk.crossings)
    return {
        "variables": int(pairs + 1 + whole + len(walk.idle)),
        "constraints": rows + len(walk.nodes) + 2 + pairs,
        "nonzeros": int(2 * rows + pairs + entries),
        "integers": int(pairs + whole),
    }


def arc_uses(data: RingTraffic) -> tuple[I64, I64]:
    """For ``model=arcs``: (direction, segment) as d n + s, and (pair, direction) as 2 p + d, of every use."""
    moves = data.transfers
    source, target = np.repeat(moves.source, 2), np.repeat(moves.target, 2)
    onward = np.tile([True, False], moves.pairs)
    span, _, owner = arcs_taken(data.n, source, target, onward)
    return np.where(onward[owner], span, data.n + span), owner


def refuse_large_ring(data: RingTraffic) -> None:
    """Refuse a matrix that is too large to build."""
    nonzeros = data.estimate()["nonzeros"]
    if nonzeros > RING_NONZEROS:
        msg = (
            f"{data.name}: the model would have {nonzeros:,} non-zeros; model=sets or method ring-first-fit needs less"
        )
        raise NotApplicable(msg)


#: Maximum number of sub-operations whose pairs are listed for a matrix, and of its nonzeros.
MOST_MODELLED, MOST_NONZEROS = 2000, 5_000_000


def placement_size(data: Placement) -> dict[str, int]:
    """Size of the model; with more than ``MOST_MODELLED`` sub-operations as if no pair were ordered."""
    n, k, m = data.n, data.devices, data.graph.dependencies
    pairs = data.unordered[0].size if n <= MOST_MODELLED else n * (n - 1) // 2
    rows, entries, integers = 2 * n, n * k + 2 * n, n * k + pairs
    rows += m * (k if data.bandwidth else 1) + 2 * pairs * k
    entries += m * (4 * k if data.bandwidth else 2) + 10 * pairs * k
    if data.crowded:
        rows += k
        entries += k * int(np.count_nonzero(data.occupied))
    if m and not data.free:
        if data.rule == "degree":
            rows += m * k * (k - 1) + 2 * k
            entries += 3 * m * k * (k - 1) + 2 * k * (k - 1)
            integers += k * (k - 1)
        else:
            rows += m * k
            entries += m * k * (k - data.delta)
    return {"variables": integers + n + 1, "constraints": rows, "nonzeros": entries, "integers": integers}


def refuse_large_placement(data: Placement) -> None:
    """Refuse a matrix that is too large to build."""
    if data.n > MOST_MODELLED or data.estimate()["nonzeros"] > MOST_NONZEROS:
        msg = f"{data.name}: the matrix of {data.n} sub-operations is too large; use fewer, or method degree-aware"
        raise NotApplicable(msg)


def ocs_size(data: OcsCircuits) -> dict[str, int]:
    """Size of the model."""
    pairs, d = data.transfers.pairs, data.degree
    rows = chord_count(np.ones(pairs, dtype=np.int64), data.high)
    used = sum(int((count > 0).sum()) for count in data.peers)
    split = data.model == "switches"
    return {
        "variables": pairs + 1 + split * pairs * d,
        "constraints": rows + (pairs + used * d if split else used),
        "nonzeros": 2 * rows + (pairs + 3 * pairs * d if split else 2 * pairs),
        "integers": pairs + split * pairs * d,
    }
