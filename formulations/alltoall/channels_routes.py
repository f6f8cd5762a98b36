"""Routes and layers of a solution of :mod:`opticoll.formulations.alltoall.channels`, which ``problem`` is.

A solution has y for every listed path. Over all simple paths (``paths=all``) it may contain its routes instead, as in
:mod:`opticoll.formulations.flows.path_flow`: y then has a row for each of them. Or it contains routes of some pairs,
``images`` ``(g, n)`` and the positions u, and no y (:mod:`opticoll.formulations.alltoall.moved_routes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.alltoall.dependencies import Dependencies, acyclic, positions
from opticoll.formulations.alltoall.moved_routes import MovedRoutes
from opticoll.formulations.flows.path_flow import arc_load, prepare_paths
from opticoll.formulations.flows.path_sets import count_all, path_violations, subset, to_arrays
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Setting

#: Most simple paths that are listed to write down a solution or to bound it.
MOST_LISTED = 20_000
#: Most pairs whose routes are written one by one.
MOST_WRITTEN = 4_000_000


def prepared(
    cls: type[RoutedChannels], instance: object, *, layers: int, objective: str, load: float, **rule: Setting
) -> RoutedChannels:
    """The problem on a topology; errors as :func:`.path_flow.prepare_paths`."""
    return cls(prepare_paths(cls.name, instance, rule), layers, objective, load)


def listed(problem: RoutedChannels) -> bool:
    """Whether the paths are so few that they are listed, or a rule lists them in any case."""
    routing = problem.routing
    if routing.rule.kind != "all":
        return True
    count, _, complete = count_all(routing.topology, routing.rule, 4 * MOST_LISTED, routing.commodities)
    return complete and count <= MOST_LISTED


def taken(problem: RoutedChannels, values: Values) -> tuple[PathSet, I64] | None:
    """The route and the layer (from 0) of every pair; None unless y, or the images, give every pair exactly one.

    Raises
    ------
    NotApplicable
        If images give routes to more than :data:`MOST_WRITTEN` pairs.
    """
    if "images" in values:
        moved = moved_routes(problem, values)
        if moved is None or isinstance(moved.examined()[0], str):
            return None
        if (pairs := problem.routing.amount.size) > MOST_WRITTEN:
            msg = f"{problem.name}: routes of {pairs:,} pairs are too many to write one by one; use a .routes.json file"
            raise NotApplicable(msg)
        return moved.whole()
    y, paths = np.asarray(values.get("y", ()), dtype=float), problem.routing.paths_of(values)
    if paths is None:
        return None
    path, layer = np.nonzero(y > 0.5)
    if not np.array_equal(paths.pair[path], np.arange(paths.pairs)):
        return None
    routes = subset(paths, np.isin(np.arange(paths.paths), path))
    return None if path_violations(routes, problem.routing.rule) else (routes, layer)


def moved_routes(problem: RoutedChannels, values: Values) -> MovedRoutes | None:
    """The routes of some pairs with their images; None if they are malformed, or the demands or capacities not equal.

    What they make of all pairs is checked by :meth:`~opticoll.formulations.alltoall.moved_routes.MovedRoutes.examined`.
    """
    paths = problem.routing.paths_of(values)
    if paths is None or not equal_demands(problem) or path_violations(paths, problem.routing.rule):
        return None
    return MovedRoutes(paths, np.asarray(values["images"]).astype(np.int64), np.asarray(values["u"], dtype=float))


def equal_demands(problem: RoutedChannels) -> bool:
    """Whether all pairs of ranks have the same demand, and no arcs are parallel."""
    topology, amount = problem.topology, problem.routing.amount
    alone = np.unique(topology.tail * topology.n + topology.head).size == topology.arcs
    return bool(alone and amount.size == topology.num_ranks * (topology.num_ranks - 1) and np.ptp(amount) == 0)


class RouteLoads(NamedTuple):
    """Load of every arc [shards / link bandwidth], ``(m,)``, routes of every layer, ``(L,)``; whether none cycles."""

    load: F64
    layers: I64
    acyclic: bool


def routed(problem: RoutedChannels, values: Values) -> RouteLoads | None:
    """What the routes of a solution make of the network; None unless every pair has exactly one, on one layer."""
    capacity, amount = problem.topology.capacity, problem.routing.amount
    if "images" in values:
        moved = moved_routes(problem, values)
        if moved is None:
            return None
        load, layers = moved.examined()
        if isinstance(load, str) or isinstance(layers, str):
            return None
        return RouteLoads(load * amount[0] / capacity, layers, acyclic=True)
    found = taken(problem, values)
    if found is None:
        return None
    routes, layer = found
    layers = np.bincount(layer, minlength=problem.layers)
    return RouteLoads(arc_load(routes, amount) / capacity, layers, deadlock_free(routes, layer))


def deadlock_free(routes: PathSet, layer: I64) -> bool:
    """Whether the dependencies of the routes of every layer have no cycle."""
    arcs = routes.topology.arcs
    return all(acyclic(arcs, Dependencies(subset(routes, layer == level)).pairs) for level in np.unique(layer).tolist())


def repair(problem: RoutedChannels, values: Values) -> dict[str, F64] | None:
    """Round y, and give the other variables the values that follow; layers in use come first."""
    if "images" in values:
        return {**values}
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
        load = arc_load(routes, problem.routing.amount) / problem.topology.capacity
        values = {"Lambda": np.array(load.max(initial=0.0))}
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


def moved_load(problem: RoutedChannels, moved: MovedRoutes) -> F64:
    """Load of every arc by the routes of all pairs [shards / link bandwidth], ``(m,)``, of equal demands."""
    return moved.load * problem.routing.amount[0] / problem.topology.capacity


def describe(problem: RoutedChannels, values: Values) -> dict[str, Json]:
    """Load and layers of a verified solution, and routes by layer."""
    found = routed(problem, values)
    assert found is not None
    load, layers = float(found.load.max()), found.layers
    return {"max_load": load, "T": load, "layers": int((layers > 0).sum()), "routes_by_layer": layers.tolist()}


def links(problem: RoutedChannels, values: Values) -> Links:
    """Load of every arc, within the time of the largest load."""
    found = routed(problem, values)
    assert found is not None
    load, capacity = found.load, problem.topology.capacity
    return Links(problem.topology, load * capacity, capacity, float(load.max(initial=0.0)), SHARDS, BANDWIDTHS)
