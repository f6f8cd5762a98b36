"""Bounds, size and figures of :mod:`opticoll.formulations.alltoall.channels`, which ``problem`` is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import TIME, Array, Axis, SolutionSize, arc_axis, members, vertex_axis

if TYPE_CHECKING:
    from collections.abc import Collection

    from opticoll.formulations.alltoall.channels import RoutedChannels
    from opticoll.formulations.model import Values
    from opticoll.types import Json

#: Relative tolerance of the stated load.
TOLERANCE = 1e-9
#: Why routes are longer than distances.
CYCLES = "every layer lacks some dependency of each cycle, and pairs whose paths have it take others"


def metrics(problem: RoutedChannels, value: float | None) -> dict[str, Json]:
    """The value under the name of the objective, and the number of ranks."""
    restricted = [path_flow.restriction(problem.routing)]
    if problem.chosen == "load":
        restricted.insert(0, f"with {problem.layers} layer{'s' * (problem.layers > 1)}")
    return {
        "max_load": value if problem.chosen == "load" else None,
        "layers": value if problem.chosen == "channels" else None,
        "T": value if problem.chosen == "load" else None,
        "ranks": problem.topology.num_ranks,
        "conditional_on": ", ".join(filter(None, restricted)) or None,
    }


def arrays(problem: RoutedChannels, names: Collection[str]) -> dict[str, Array]:
    """y, the routes if the solution contains its own, other variables, which are optional, and duals of the routing.

    A solution whose routes are moved has ``images`` and u instead of y.
    """
    if "path_arcs" in names and problem.routing.rule.kind == "all":
        own = path_flow.path_arrays(problem.routing, "y", "Lambda", names, ("", TIME))
        layer = Axis("layer", problem.layers, range(1, problem.layers + 1), range(1, problem.layers + 1))
        own |= {"y": Array((*own["y"].axes, layer)), "z": Array((layer,), required=False)}
        if "images" in names:
            vertex, image = vertex_axis("vertex", problem.topology), Axis("image", SolutionSize("images"))
            own |= {"images": members(image, vertex, of=vertex), "u": Array((arc_axis(problem.topology), layer))}
            del own["y"]
        values = {name: replace(array, required=name not in {"Lambda", "z"}) for name, array in own.items()}
    else:
        values = {name: replace(array, required=name == "y") for name, array in axes_arrays(problem).items()}
    return values | path_flow.dual_arrays(problem.routing)


def bounds(problem: RoutedChannels) -> list[Bound]:
    """Bounds of the load over these paths, of routes in any layers and in these; or of the number of layers."""
    if problem.chosen == "load":
        return [*path_bounds.share_bounds(problem), *cycle_bounds(problem, problem.layers)]
    return [Bound("cycles", float(least_layers(problem)), CYCLES, "alltoall")]


def cycle_bounds(problem: RoutedChannels, layers: int) -> list[Bound]:
    """Bound of the load on so many layers from cycles of dependencies (:mod:`.layer_bounds`); none if it is 0."""
    more = problem.layer_bound.excess_arcs(layers)
    if more <= 0:
        return []
    if more == np.inf:
        return [Bound("cycles", np.inf, CYCLES, "alltoall")]
    topology, (sources, targets) = problem.topology, problem.routing.commodities
    hops = topology.hops[np.searchsorted(topology.terminals, sources), targets]
    # Hops and excesses are exact; products, sums and the quotient round down.
    work = rounding.down(rounding.dot_down(problem.routing.amount, hops) + more, problem.routing.amount.size + 2)
    value = float(rounding.down(float(work) / float(np.sum(topology.capacity)), topology.arcs + 1))
    value = path_flow.round_up(value, topology.capacity, path_flow.quantum(problem.routing.amount))
    return [Bound("cycles", value, CYCLES, "alltoall")]


def load_on(problem: RoutedChannels, layers: int) -> float:
    """The best bound of the load on so many layers."""
    return max(bound.value for bound in [*path_bounds.share_bounds(problem), *cycle_bounds(problem, layers)])


def least_layers(problem: RoutedChannels, start: int = 1, most: int | None = None) -> int:
    """The fewest layers from ``start``, up to one more than ``most``, whose bound of the load the limit admits."""
    limit = rounding.up(problem.limit * (1 + TOLERANCE)) if problem.limit else np.finfo(float).max
    most = problem.layers if most is None else most
    return next((one for one in range(start, most + 1) if load_on(problem, one) <= limit), most + 1)


def refute(problem: RoutedChannels) -> Bound | None:
    """Bound that excludes every solution: no routes on these layers, or none of so small a load; with what helps."""
    shares = path_bounds.share_bounds(problem)
    best = max([*shares, *cycle_bounds(problem, problem.layers)], key=lambda one: one.value)
    if best.value < np.inf and not (problem.limit and best.value > rounding.up(problem.limit * (1 + TOLERANCE))):
        return None
    ways = [f"load={best.value:.12g}"] if best.value < np.inf else []
    if max(bound.value for bound in shares) <= problem.limit * (1 + TOLERANCE) or not problem.limit:
        ways.append(f"layers={least_layers(problem, problem.layers + 1, problem.layers + problem.topology.arcs)}")
    known = "" if best.value == np.inf else f"the load is at least {best.value:g}: "
    return Bound(best.name, np.inf, f"{known}{best.reason}; the bound admits {' or '.join(ways)}", "alltoall")


def certify(problem: RoutedChannels, duals: Values) -> Bound | None:
    """Bound on the load proven by the duals of ``congestion`` as arc lengths."""
    return path_bounds.share_certificate(problem, duals) if problem.chosen == "load" else None
