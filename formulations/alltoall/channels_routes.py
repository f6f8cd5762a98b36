"""Routes and layers of a solution of :mod:`opticoll.formulations.alltoall.channels`, which ``problem`` is.

A solution has y for every listed path. Over all simple paths (``paths=all``) it may contain its routes instead, as in
:mod:`opticoll.formulations.flows.path_flow`: y then has a row for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall.dependencies import Dependencies, acyclic, positions
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.formulations.flows.path_sets import count_all, path_violations, subset, to_arrays
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json

#: Most simple paths that are listed to write down a solution or to bound it.
MOST_LISTED = 20_000


def listed(problem: RoutedChannels) -> bool:
    """Whether the paths are so few that they are listed, or a rule lists them in any case."""
    routing = problem.routing
    if routing.rule.kind != "all":
        return True
    count, _, complete = count_all(routing.topology, routing.rule, 4 * MOST_LISTED, routing.commodities)
    return complete and count <= MOST_LISTED


def taken(problem: RoutedChannels, values: Values) -> tuple[PathSet, I64] | None:
    """The route and the layer (from 0) of every pair; None unless y gives every pair exactly one."""
    y, paths = np.asarray(values.get("y", ()), dtype=float), problem.routing.paths_of(values)
    if paths is None or y.shape != (paths.paths, problem.layers) or not np.isfinite(y).all():
        return None
    path, layer = np.nonzero(y > 0.5)
    if not np.array_equal(paths.pair[path], np.arange(paths.pairs)):
        return None
    routes = subset(paths, np.isin(np.arange(paths.paths), path))
    return None if path_violations(routes, problem.routing.rule) else (routes, layer)


def loads(problem: RoutedChannels, routes: PathSet) -> F64:
    """Load of every arc by a route of each pair [shards / link bandwidth], ``(m,)``."""
    return arc_load(routes, problem.routing.amount) / problem.topology.capacity


def deadlock_free(routes: PathSet, layer: I64) -> bool:
    """Whether the dependencies of the routes of every layer have no cycle."""
    arcs = routes.topology.arcs
    return all(acyclic(arcs, Dependencies(subset(routes, layer == level)).pairs) for level in np.unique(layer).tolist())


def repair(problem: RoutedChannels, values: Values) -> dict[str, F64] | None:
    """Round y, and give the other variables the values that follow; layers in use come first."""
    found = taken(problem, values)
    if found is None:
        return None
    return solution(problem, *found, own="path_arcs" in values)


def solution(problem: RoutedChannels, routes: PathSet, layer: I64, *, own: bool | None = None) -> dict[str, F64]:
    """All arrays of a solution, given the route and the layer (from 0) of every pair.

    With ``own`` it contains its routes, by default where the paths are not listed.
    """
    used, place = np.unique(layer, return_inverse=True)
    if own is None:
        own = not listed(problem)
    if problem.chosen == "load":
        values = {"Lambda": np.array(loads(problem, routes).max(initial=0.0))}
    else:
        values = {"z": (np.arange(problem.layers) < used.size).astype(float)}
    if own:
        return {"y": (place[:, None] == np.arange(problem.layers)).astype(float), **to_arrays(routes), **values}
    of, arcs, every = problem.dependencies, problem.topology.arcs, np.arange(problem.paths.paths)
    number = {(int(k), *problem.paths.path(p)): p for p, k in enumerate(problem.paths.pair)}
    path = np.array([number[(k, *routes.path(k))] for k in range(routes.paths)])
    y = np.zeros((every.size, problem.layers))
    y[path, place] = 1.0
    w, u = np.zeros((of.size, problem.layers)), np.zeros((arcs, problem.layers))
    for level in range(used.size):
        w[of.of_paths(np.isin(every, path[place == level])), level] = 1.0
        u[:, level] = positions(arcs, of.pairs[w[:, level] > 0])
    return {"y": y, "w": w, "u": u, **values}


def describe(problem: RoutedChannels, values: Values) -> dict[str, Json]:
    """Load and layers of a verified solution, and routes by layer."""
    found = taken(problem, values)
    assert found is not None
    load = float(loads(problem, found[0]).max())
    return {
        "max_load": load,
        "T": load,
        "layers": int(np.unique(found[1]).size),
        "routes_by_layer": np.bincount(found[1], minlength=problem.layers).tolist(),
    }


def links(problem: RoutedChannels, values: Values) -> Links:
    """Load of every arc, within the time of the largest load."""
    found = taken(problem, values)
    assert found is not None
    load, capacity = loads(problem, found[0]), problem.topology.capacity
    return Links(problem.topology, load * capacity, capacity, float(load.max(initial=0.0)), SHARDS, BANDWIDTHS)
