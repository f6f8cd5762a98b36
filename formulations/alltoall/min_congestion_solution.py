"""Loads and figures of a solution of :mod:`opticoll.formulations.alltoall.min_congestion`, which ``problem`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.flow_checks import demand_metrics
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.min_congestion import ChosenPaths
    from opticoll.formulations.model import Values
    from opticoll.types import Json


def metrics(problem: ChosenPaths, value: float | None) -> dict[str, Json]:
    """The load, the path set, and whether the load meets an analytic bound that holds for every path set.

    ``paths_per_pair`` is kappa, the paths that a pair takes; ``paths`` is |P|, all that may be taken.
    """
    over_all = path_bounds.share_bound_over_all(problem.routing)
    proven = None if value is None else bool(value <= over_all * (1 + 1e-9))
    ranks = {"max_load": value, "T": value, "ranks": problem.topology.num_ranks}
    demand = {} if problem.routing.traffic is None else demand_metrics(problem.routing.flow)
    paths = path_flow.set_metrics(problem.routing, over_all, proven)
    return {**ranks, **demand, "paths_per_pair": problem.routing.kappa, **paths}


def links(problem: ChosenPaths, values: Values) -> Links:
    """Load of every arc, with every route carrying its share of the demand, within the time Lambda / kappa."""
    paths, capacity = path_flow.known_paths(problem.routing, values), problem.topology.capacity
    load = path_flow.carried(problem.routing, paths, np.asarray(values["x"], dtype=float)) * capacity
    return Links(problem.topology, load, capacity, float((load / capacity).max(initial=0.0)), SHARDS, BANDWIDTHS)
