"""Layers of a solution of :mod:`opticoll.formulations.alltoall.virtual_channels`, bounds, size and figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall.dependencies import acyclic
from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Axis, Links, listed_axis, pair_names, path_names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from opticoll.formulations.alltoall.virtual_channels import LayeredRoutes
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


def known_routes(problem: LayeredRoutes) -> PathSet:
    """The routes; refused before they are known."""
    if problem.routes is None:
        msg = f"{problem.name}: layers are assigned to routes; solve alltoall.min-congestion first and pass its values"
        raise NotApplicable(msg)
    return problem.routes


def sets(problem: LayeredRoutes) -> dict[str, Axis | Sequence[Any]]:
    """Routes by their pair (s,t), dependencies (a,b), their occurrences (s,t,a,b), and layers from 1."""
    routes, L, E = known_routes(problem), range(1, problem.layers + 1), problem.dependencies.axis()
    owner, of = problem.dependencies.uses

    def occurrences() -> list[Any]:
        return [(*route.members[r], *E.members[e]) for r, e in zip(owner.tolist(), of.tolist(), strict=True)]

    def named(_values: object) -> dict[str, list[str]]:
        known = path_names(routes)
        return {"commodity": known["commodity"], "route": known["path"]}

    route = Axis("route", routes.paths, named, lambda: pair_names(problem.topology, routes.sources, routes.targets))
    uses = listed_axis("occurrence", of.size, occurrences)
    return {"route": route, "dependency": E, "occurrence": uses, "layer": L, "lower": L[:-1]}


def metrics(problem: LayeredRoutes, value: float | None) -> dict[str, Json]:
    """Layers, and the load of the routes."""
    return {"layers": value, "max_load": links(problem).time, "conditional_on": "for the given routes"}


def links(problem: LayeredRoutes, values: object = None) -> Links:
    """Load of every arc by the given routes, one shard each."""
    load, capacity = arc_load(problem.known_routes, np.ones(problem.known_routes.paths)), problem.topology.capacity
    return Links(problem.topology, load, capacity, float((load / capacity).max(initial=0.0)), SHARDS, BANDWIDTHS)


def bounds(problem: LayeredRoutes) -> list[Bound]:
    """Bound of one layer, or of two if all routes in one layer have a cycle."""
    if acyclic(problem.topology.arcs, problem.dependencies.pairs):
        return [Bound("one-layer", 1.0, "every route has a layer", "alltoall")]
    return [Bound("cycle", 2.0, "the dependencies of all routes have a cycle", "alltoall")]


def arrays(problem: LayeredRoutes, names: Collection[str]) -> dict[str, Array]:
    """y, and the other variables of the program, which are optional."""
    return {name: replace(array, required=name == "y") for name, array in axes_arrays(problem).items()}


def layers_of(data: LayeredRoutes, values: Values) -> I64:
    """The layer of every route, ``(|R|,)``: the one of the largest y."""
    return np.argmax(np.asarray(values["y"], dtype=float), axis=1)


def values_of(data: LayeredRoutes, layer: I64) -> dict[str, F64]:
    """The variable y, given the layer of every route.

    Raises
    ------
    NotApplicable
        If more layers are used than the model has.
    """
    needed = int(layer.max(initial=0)) + 1
    if needed > data.layers:
        msg = f"{data.name}: the assignment needs {needed} layers, but layers={data.layers}; use layers={needed}"
        raise NotApplicable(msg)
    y = np.zeros((layer.size, data.layers))
    y[np.arange(layer.size), layer] = 1.0
    return {"y": y}
