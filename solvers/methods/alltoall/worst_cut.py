"""All-gather without an LP: the exact worst cut by Newton's method on max-flows, and flows that attain it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context


def run(context: Context) -> Answer:
    """Find the worst cut, which bounds T from below, and max-flows to each receiver, which attain it."""
    from opticoll.formulations.alltoall.all_gather import optimal_flows

    context.remaining()
    cut, flows = optimal_flows(context.instance)
    return Answer(
        Termination.OPTIMAL,
        values={"h": flows, "T": np.asarray(cut.time)},
        bound=cut.time,
        bound_source="worst-cut",
        solver={"name": "worst-cut", "algorithm": "Newton's method on cut ratios, max-flows in integers (NetworkX)"},
        metrics={"cut_ranks": cut.ranks, "cut_capacity": cut.capacity, "max_flows": cut.rounds},
    )


METHODS = (
    Method(
        name="worst-cut",
        title="Worst cut by max-flow",
        summary="the all-gather optimum and a cut that proves it, by max-flows in integers; no LP",
        applies=lambda formulation: formulation.name == "alltoall.all-gather",
        run=run,
    ),
)
