"""Method ``equal-split``: every pair divides its demand equally among its paths, as ECMP does among shortest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_flow import arc_load
from opticoll.solvers.methods.method import Answer, Method

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.path_mcf import PathConcurrentFlow
    from opticoll.solvers.methods.method import Context


def run_equal_split(context: Context) -> Answer:
    """Equal shares of all paths of a pair: F is the least capacity over the load of a full demand.

    With ``paths=shortest`` it is the time of equal-cost multi-path routing whose weights count paths; a switch that
    divides among next hops alone differs where these lead to different numbers of shortest paths.
    """
    data: PathConcurrentFlow = context.data
    paths, amount = data.routing.paths, data.routing.amount
    share = (amount / np.bincount(paths.pair, minlength=paths.pairs))[paths.pair]
    load = arc_load(paths, share)
    used = load > 0
    F = float((data.topology.capacity[used] / load[used]).min())
    return Answer.heuristic({"f": share * F, "F": np.asarray(F)}, "equal shares of all paths of a pair")


METHOD = Method(
    name="equal-split",
    title="equal split over the paths of every pair (ECMP)",
    summary="every pair divides its demand equally among its paths; with paths=shortest, equal-cost multi-path routing",
    serves=("alltoall.path-mcf",),
    run=run_equal_split,
)
