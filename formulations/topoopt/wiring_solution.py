"""Solutions of ``topoopt.topology``: arrays, and the design of circuits, rings and routes that they describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.declared_axes import axes_arrays, size
from opticoll.formulations.topoopt import circuit_design, circuit_design_solution
from opticoll.formulations.topoopt.circuit_design import Ring
from opticoll.formulations.topoopt.routing_solution import routed_by_flow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.topoopt.circuit_design import CircuitDesign
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.formulations.variables import Array, Links
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


def unfold(data: Wiring, values: Mapping[str, F64]) -> dict[str, F64]:
    """Add the design that the values describe, if any."""
    result = design_of_program(data, kept := {name: np.asarray(array, dtype=float) for name, array in values.items()})
    return kept if result is None else {**kept, **result.values()}


def estimate(data: Wiring) -> dict[str, int] | None:
    """About the size of the model, with the variables that its objective needs."""
    loads, circuits = data.goal == "max-load", data.n * (data.n - 1) * data.copies
    return size(data, variables=(1 + loads) * circuits + data.flows[0].size + len(data.orders) + loads)


def arrays(data: Wiring, names: Collection[str]) -> dict[str, Array]:
    """Shapes of a design, and of the program's variables if given."""
    design = circuit_design_solution.arrays(data.pool, lambda values: decode(data, values))
    if data.variables.keys().isdisjoint(names):
        return design
    return design | {name: replace(array, required=False) for name, array in axes_arrays(data).items()}


def describe(data: Wiring, values: Mapping[str, F64]) -> Mapping[str, Json]:
    """Summary of a verified design."""
    read = circuit_design_solution.read_design(data.pool, values)
    assert read is not None
    return circuit_design_solution.describe(read)


def links(data: Wiring, values: Mapping[str, F64]) -> Links:
    """Load of every link."""
    return circuit_design_solution.links(decode(data, values))


def design_of_program(data: Wiring, values: Mapping[str, F64]) -> CircuitDesign | None:
    """The design of the program's circuits, shares and flows; None if they serve nothing."""
    y, f = values.get("y"), values.get("f")
    if y is None or f is None or not np.isfinite(f[:, *data.pairs]).any():
        return None
    tail, head = data.pairs
    count = np.zeros((data.n, data.n), dtype=np.int64)
    count[tail, head] = np.rint(np.clip(np.nan_to_num(y[tail, head]), 0.0, 1.0)).sum(axis=1).astype(np.int64)
    rings: tuple[Ring, ...] = data.by_default
    if data.orders and "share" not in values:
        return None
    if data.orders:
        rings = rings_of(data, np.asarray(values["share"], dtype=float))
    source = data.commodities[0]
    left = np.zeros((data.n, data.n, data.n))
    np.add.at(left, source, np.maximum(np.nan_to_num(f), 0.0))
    return design_from_flow(data, count, rings, left)


def design_from_flow(data: Wiring, count: I64, rings: tuple[Ring, ...], flow: F64) -> CircuitDesign | None:
    """Build the design of circuits ``count``, ``(n, n)``, and flows of every server over them, ``(n, n, n)``.

    A pair's circuits share its flow evenly. None if some demand is not served.
    """
    tail, head = np.nonzero(count)
    number = count[tail, head]
    circuits = np.repeat(np.stack([tail, head], axis=1), number, axis=0)
    sources = np.flatnonzero(circuit_design.ring_demand(data.pool, rings).sum(axis=1) > 0)
    shared = flow[sources][:, tail, head] / number
    return routed_by_flow(data.pool, circuits, rings, sources, np.repeat(shared.T, number, axis=0))


def rings_of(data: Wiring, share: F64) -> tuple[Ring, ...]:
    """Assign the candidate rings these shares, ``(R,)``, normalized to add up to 1 for every group."""
    share = np.where(share > 1e-9, share, 0.0)
    group = np.array([ring.group for ring in data.candidates])
    share = share / np.maximum(np.bincount(group, share), np.finfo(float).tiny)[group]
    return tuple(
        Ring(ring.group, float(part), ring.order, ring.trees)
        for ring, part in zip(data.candidates, share, strict=True)
        if part > 0
    )


def decode(data: Wiring, values: Mapping[str, F64]) -> CircuitDesign:
    """Return the typed design.

    Raises
    ------
    NotApplicable
        If the values are malformed.
    """
    read = circuit_design_solution.read_design(data.pool, values)
    if read is None:
        refuse(data.name, "the values are not a design; give circuits, rings and routes", NotApplicable)
    return read
