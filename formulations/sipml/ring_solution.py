"""Solutions of ``sipml.ring-wavelengths``: arrays, repair, and circuits with their wavelengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.declared_axes import size
from opticoll.formulations.sipml.chords import WAYS, pair_axis, ring_links
from opticoll.formulations.sipml.walks import circuits_of_sets, strip
from opticoll.formulations.variables import Array, Axis, SolutionSize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.sipml.ring_wavelengths import RingTraffic
    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


#: Maximum number of circuits that are checked or decomposed.
MOST_CIRCUITS = 20_000_000
#: Limits on nodes and wavelengths.
MOST_NODES, MOST_WAVELENGTHS = 256, 100_000


def arrays(data: RingTraffic, names: Collection[str]) -> dict[str, Array]:
    """Shapes of ``circuits``, x, or the walks of the model; with c and t if given, and of the duals of ``serve``."""
    pair, direction = pair_axis(data.transfers), Axis("direction", 2, WAYS)
    result = {
        "c": Array((pair,), required=False),
        "t": Array(required=False),
        "serve": Array((pair,), dual=True),
    }
    alone = {"circuits", "x"}.isdisjoint(names)
    if "circuits" in names:
        fields = pair, direction, Axis("wavelength", MOST_WAVELENGTHS + 1)
        axes = Axis("circuit", SolutionSize("circuits", most=MOST_CIRCUITS)), Axis("field", 3)
        columns = (data.transfers.pairs, 2, MOST_WAVELENGTHS + 1)
        result["circuits"] = Array(axes, low=0, high=columns, entries=fields)
    if "x" in names or (alone and data.model == "arcs"):
        result["x"] = Array((pair, direction, Axis("wavelength", data.wavelengths)))
    if data.model == "sets" and (alone or not {"f", "idle", "over"}.isdisjoint(names)):
        sets = data.sets()
        for name, axis in (("f", "circuit"), ("idle", "idle"), ("over", "crossing")):
            result[name] = Array((Axis(axis, len(sets[axis]), sets[axis]),), required=alone and name == "f")
    return result


def repair(data: RingTraffic, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Round to integer flows (or x) and recompute c and t; None if they are malformed."""
    read = circuits_of(data, values)
    if read is None:
        return None
    there = np.bincount(read[0][:, 0], minlength=data.transfers.pairs)
    if (there < 1).any():
        return None
    whole = {name: np.rint(values[name]) for name in ("circuits", "x", "f", "idle", "over") if name in values}
    c = np.minimum(there, data.high).astype(float)
    return {**whole, "c": c, "t": np.asarray(data.transfers.slowest(c) / data.transfers.unit_time)}


def describe(data: RingTraffic, values: Mapping[str, F64]) -> dict[str, Json]:
    """Circuits, wavelengths in use, and the fraction of (segment, wavelength) in use."""
    read = circuits_of(data, values)
    if read is None:
        return {}
    pair, way, wavelength = read[0].T
    return {
        "circuits": int(pair.size),
        "wavelengths": int(wavelength.max(initial=-1) + 1),
        "use": float(data.hops[pair, way].sum() / (2 * data.n * data.wavelengths)),
    }


def links(data: RingTraffic, values: Mapping[str, F64]) -> Links:
    """Circuits over every segment, in both directions."""
    read = circuits_of(data, values)
    assert read is not None
    pair, way, _ = read[0].T
    return ring_links(data.n, data.transfers.source[pair], data.transfers.target[pair], way == 0, data.wavelengths)


def circuits_of(data: RingTraffic, values: Mapping[str, F64]) -> tuple[I64, float] | None:
    """Circuits (pair, direction, wavelength), ``(E, 3)``, and their distance from integers; None if no walks."""
    if "circuits" in values:
        return np.asarray(values["circuits"]).astype(np.int64), 0.0
    if "x" in values:
        x = np.asarray(values["x"], dtype=float)
        return np.argwhere(x > 0.5), float(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0))
    walk = data.walks
    flows, fraction = [], 0.0
    for name, count in (("f", len(walk.circuits)), ("idle", len(walk.idle)), ("over", len(walk.crossings))):
        given = np.asarray(values.get(name, np.zeros(count)), dtype=float)
        if (given < -0.5).any() or given.sum() > MOST_CIRCUITS:
            return None
        flows.append(np.rint(given).astype(np.int64))
        fraction = max(fraction, float(np.abs(given - np.rint(given)).max(initial=0.0)))
    sets = strip(walk, *flows)
    return None if sets is None else (circuits_of_sets(sets), fraction)


def metrics(data: RingTraffic, value: float | None) -> dict[str, Json]:
    """The slowest transfer, in time and in bytes a circuit."""
    return {"transfer_s": value, "max_load": None if value is None else value * data.transfers.bandwidth}


def estimate(data: RingTraffic) -> dict[str, int] | None:
    """About the size of the model: circuits in the two directions of a pair take n segments together."""
    if data.model == "sets":
        return size(data, without=("x", "free"))
    segments = data.transfers.pairs * data.n * data.wavelengths
    return size(data, without=("f", "idle", "over", "walk", "light"), nonzeros=segments)
