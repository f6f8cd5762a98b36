"""Routes and layers of a solution of :mod:`opticoll.formulations.alltoall.channels`, which ``problem`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall.dependencies import positions
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


def taken(problem: RoutedChannels, values: Values) -> tuple[I64, I64] | None:
    """The path and the layer (from 0) of every pair, ``(|K|,)``; None unless y gives every pair exactly one."""
    y = np.asarray(values.get("y", ()), dtype=float)
    if y.shape != (problem.paths.paths, problem.layers) or not np.isfinite(y).all():
        return None
    path, layer = np.nonzero(y > 0.5)
    return (path, layer) if np.array_equal(problem.paths.pair[path], np.arange(problem.paths.pairs)) else None


def loads(problem: RoutedChannels, path: I64) -> F64:
    """Load of every arc with these paths taken, ``(|K|,)``, [shards / link bandwidth], ``(m,)``."""
    weight = np.zeros(problem.paths.paths)
    weight[path] = problem.routing.amount[problem.paths.pair[path]]
    return arc_load(problem.paths, weight) / problem.topology.capacity


def repair(problem: RoutedChannels, values: Values) -> dict[str, F64] | None:
    """Round y, and give the other variables the values that follow; layers in use come first."""
    found = taken(problem, values)
    return None if found is None else filled(problem, *found)


def filled(problem: RoutedChannels, path: I64, layer: I64) -> dict[str, F64]:
    """All arrays of a solution, given the path and the layer (from 0) of every pair, ``(|K|,)``."""
    used, place = np.unique(layer, return_inverse=True)
    of, arcs, every = problem.dependencies, problem.topology.arcs, np.arange(problem.paths.paths)
    y = np.zeros((every.size, problem.layers))
    y[path, place] = 1.0
    w, u = np.zeros((of.size, problem.layers)), np.zeros((arcs, problem.layers))
    for level in range(used.size):
        w[of.of_paths(np.isin(every, path[place == level])), level] = 1.0
        u[:, level] = positions(arcs, of.pairs[w[:, level] > 0])
    values = {"y": y, "w": w, "u": u}
    if problem.chosen == "load":
        return {**values, "Lambda": np.array(loads(problem, path).max(initial=0.0))}
    return {**values, "z": (np.arange(problem.layers) < used.size).astype(float)}


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
