"""Solutions of ``lumorph.min-overlap``: arrays, and the routes of circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.path_flow import arc_load, known_paths
from opticoll.formulations.flows.path_sets import assemble
from opticoll.formulations.variables import Array, Axis, Links, arc_axis, pair_labels

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.lumorph.min_overlap import Overlap
    from opticoll.formulations.variables import Names
    from opticoll.instances.topology import F64
    from opticoll.types import Json

#: Maximum number of variables x for which the arc form is built.
MOST_VARIABLES = 4_000_000


def arrays(data: Overlap, names: Collection[str]) -> dict[str, Array]:
    """Shapes of x and Lambda, on arcs or on paths; equal circuits are numbered by the list."""
    if data.model == "arc" and "path_arcs" not in names:
        count = data.circuits.count

        def circuits(_values: object) -> Names:
            return {"circuit": range(count), "commodity": pair_labels(data.topology, *data.commodities)}

        x = Array((arc_axis(data.topology), Axis("circuit", count, circuits)))
        return {"x": x, "Lambda": Array(unit="circuits"), **path_flow.dual_arrays(data.routing)}
    return path_flow.arrays(data, names)


def links(data: Overlap, values: Mapping[str, F64]) -> Links:
    """Number of circuits over every arc, relative to the busiest arc."""
    x = np.asarray(values["x"], dtype=float)
    load = x.sum(axis=1) if is_on_arcs(data, values) else arc_load(known_paths(data.routing, values), x)
    capacity = data.topology.capacity
    return Links(data.topology, load, capacity, float((load / capacity).max(initial=0.0)), "circuits", "arcs")


def repair(data: Overlap, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Trace integral routes in x, without cycles, with their overlap as Lambda; None if x contains no routes."""
    if not is_on_arcs(data, values):
        return path_flow.repair(data, values)
    routes = traced(data, np.asarray(values["x"], dtype=float))
    if routes is None:
        return None
    return values_on_arcs(data, routes)


def unfold(data: Overlap, values: Mapping[str, F64]) -> dict[str, F64]:
    """The arc form of a solution that lists its own routes, if it is not too large; else the values."""
    size = data.topology.arcs * data.circuits.count
    if data.model != "arc" or is_on_arcs(data, values) or size > MOST_VARIABLES:
        return dict(values)
    try:
        return values_on_arcs(data, path_flow.chosen_paths(data.routing, values))
    except NotApplicable:  # no routes, which the checker reports
        return dict(values)


def metrics(data: Overlap, value: float | None) -> dict[str, Json]:
    """The overlap, the number of circuits, and every analytic bound by name; the bounds hold for all routes."""
    bounds = data.bounds()
    proven = value is not None and bool(value <= max((bound.value for bound in bounds), default=-np.inf))
    return {
        "max_load": value,
        "circuits": data.circuits.count,
        "path_set": str(data.routing.rule),
        "bounds": {b.name: int(b.value) if b.value.is_integer() else b.value for b in bounds},
        "unrestricted_proven": None if value is None else proven,
        "conditional_on": None if proven or data.model == "arc" else path_flow.restriction(data.routing),
    }


def is_on_arcs(data: Overlap, values: Mapping[str, F64]) -> bool:
    """Whether x has one entry per arc and circuit."""
    return data.model == "arc" and "path_arcs" not in values


def values_on_arcs(data: Overlap, routes: PathSet) -> dict[str, F64]:
    """The variables of the arc form for the routes of all circuits."""
    x = np.zeros((data.topology.arcs, data.circuits.count))
    x[routes.arcs, np.repeat(routes.pair, routes.length)] = 1.0
    return {"x": x, "Lambda": np.asarray(overlap(routes))}


def traced(data: Overlap, x: F64) -> PathSet | None:
    """Trace the path of every circuit from s_k to d_k in x, ``(m, |L|)``, and drop disjoint cycles.

    None if the arcs of some circuit do not lead from its source to its target.
    """
    topology, (s, d), count = data.topology, data.commodities, data.circuits.count
    arc, circuit = np.nonzero(x > 0.5)
    following = np.full((topology.n, count), -1, dtype=np.int64)
    following[topology.tail[arc], circuit] = arc
    at, k, steps = s.copy(), np.arange(count), []
    for _ in range(topology.n):
        step = np.where(at == d, -1, following[at, k])
        if ((step < 0) & (at != d)).any():
            return None
        steps.append(step)
        at = np.where(step >= 0, topology.head[step], at)
        if (at == d).all():
            break
    else:
        return None
    table = np.stack(steps, axis=1)
    return assemble(topology, table[table >= 0], (table >= 0).sum(axis=1), k, (s, d))


def overlap(paths: PathSet) -> float:
    """Number of circuits over capacity on the busiest arc, given one path per circuit."""
    load = np.bincount(paths.arcs, minlength=paths.topology.arcs)
    return float((load / paths.topology.capacity).max(initial=0.0))
