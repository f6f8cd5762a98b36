"""Bounds, size and figures of :mod:`opticoll.formulations.alltoall.channels`, which ``problem`` is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.alltoall.dependencies import acyclic
from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.flow_checks import demand_metrics
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from collections.abc import Collection

    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Array
    from opticoll.types import Json

#: Relative tolerance of the stated load.
TOLERANCE = 1e-9


def metrics(problem: RoutedChannels, value: float | None) -> dict[str, Json]:
    """The value under the name of the objective, ranks and the path set."""
    restricted = [path_flow.restriction(problem.routing)]
    if problem.chosen == "load":
        restricted.insert(0, f"with {problem.layers} layer{'s' * (problem.layers > 1)}")
    return {
        "max_load": value if problem.chosen == "load" else None,
        "layers": value if problem.chosen == "channels" else None,
        "T": value if problem.chosen == "load" else None,
        "ranks": problem.topology.num_ranks,
        **({} if problem.routing.traffic is None else demand_metrics(problem.routing.flow)),
        "path_set": str(problem.routing.rule),
        "paths": problem.paths.paths,
        "dependencies": problem.dependencies.size,
        "conditional_on": ", ".join(filter(None, restricted)) or None,
    }


def arrays(problem: RoutedChannels, names: Collection[str]) -> dict[str, Array]:
    """y, the other variables of the program, which are optional, and the duals of the routing."""
    values = {name: replace(array, required=name == "y") for name, array in axes_arrays(problem).items()}
    return values | path_flow.dual_arrays(problem.routing)


def bounds(problem: RoutedChannels) -> list[Bound]:
    """Bounds of the load over these paths, or 1 layer, or 2 if forced dependencies have a cycle."""
    if problem.chosen == "load":
        return path_bounds.share_bounds(problem)
    if acyclic(problem.topology.arcs, problem.dependencies.forced):
        return [Bound("one-layer", 1.0, "every route has a layer", "alltoall")]
    return [Bound("forced-cycle", 2.0, "dependencies of all paths of some pairs have a cycle", "alltoall")]


def refute(problem: RoutedChannels) -> Bound | None:
    """Bound that excludes every solution: a forced cycle with one layer, or too small a load."""
    if problem.layers == 1 and not acyclic(problem.topology.arcs, problem.dependencies.forced):
        return Bound("forced-cycle", np.inf, "dependencies of all paths of some pairs have a cycle", "alltoall")
    if problem.limit:
        best = max(path_bounds.share_bounds(problem), key=lambda bound: bound.value)
        if best.value > rounding.up(problem.limit * (1 + TOLERANCE)):
            return Bound(best.name, np.inf, f"the load is at least {best.value:g}: {best.reason}", "alltoall")
    return None


def certify(problem: RoutedChannels, duals: Values) -> Bound | None:
    """Bound on the load proven by the duals of ``congestion`` as arc lengths."""
    return path_bounds.share_certificate(problem, duals) if problem.chosen == "load" else None
