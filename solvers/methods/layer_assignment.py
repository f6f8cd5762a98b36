"""Virtual channels by the three heuristics of the all-to-all paper's Appendix D.1; by default the best of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.virtual_channels import values_of
from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from formulations.alltoall.virtual_channels import LayeredRoutes
    from solvers.methods.base import Context

HEURISTICS = ("breaking-cycles", "random", "conflict-colouring")


def run(context: Context) -> Answer:
    """Assign layers by one heuristic or all, and keep the fewest."""
    from solvers.routing.layering import breaking_cycles, conflict_colouring, random_assignment

    data: LayeredRoutes = context.data
    ways: dict[str, Callable[[], NDArray[np.int64]]] = {
        "breaking-cycles": lambda: breaking_cycles(data),
        "random": lambda: random_assignment(data, context.task.seed),
        "conflict-colouring": lambda: conflict_colouring(data),
    }
    asked = str(context.parameters["heuristic"])
    found: dict[str, NDArray[np.int64]] = {}
    for name in HEURISTICS if asked == "best" else (asked,):
        found[name] = ways[name]()
        if context.deadline is not None:
            context.remaining()
    best = min(found, key=lambda name: int(found[name].max(initial=0)))
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, found[best]),
        solver={"name": "layer-assignment", "version": None, "algorithm": best, "options": {}},
        metrics={
            "layers_by_heuristic": {name: int(layer.max(initial=0)) + 1 for name, layer in found.items()},
            "found_by": best,
        },
        message="a heuristic: it stops without trying to prove anything",
    )


METHOD = Method(
    name="layer-assignment",
    title="Layers by the heuristics of App. D.1",
    summary="breaking cycles, random assignment by usage, colouring of a growing conflict graph; seeded",
    applies=lambda formulation: formulation.name == "alltoall.virtual-channels",
    parameters=(Parameter("heuristic", str, default="best", help="which one", choices=("best", *HEURISTICS)),),
    run=run,
)
