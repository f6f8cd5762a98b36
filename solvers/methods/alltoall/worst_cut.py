"""Method ``worst-cut``: all-gather and reduce-scatter by their worst cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context


def run_worst_cut(context: Context) -> Answer:
    """The all-gather optimum without an LP, from the worst cut.

    Newton's method on max-flows finds the cut, which bounds T from below; max-flows to each receiver attain it.
    """
    from opticoll.formulations.flows.shared_flows import optimal_flows

    context.remaining()
    topology = context.instance
    exact, inside, flows = optimal_flows(topology)
    time, held = rounding.fraction_down(exact), int(np.isin(topology.terminals, list(inside)).sum())
    return Answer(
        Termination.OPTIMAL,
        values={"h": flows, "T": np.asarray(time)},
        bound=time,
        bound_source="worst-cut",
        solver={"name": "worst-cut", "algorithm": "Newton's method on cut ratios, max-flows in integers (NetworkX)"},
        metrics={"cut_ranks": held, "cut_capacity": float(held / exact)},
    )


METHOD = Method(
    name="worst-cut",
    title="Worst cut by max-flow",
    summary="the all-gather optimum and a cut that proves it, by max-flows in integers; no LP",
    serves=("alltoall.all-gather",),
    run=run_worst_cut,
)
