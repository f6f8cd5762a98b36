"""Matrix, loads and figures of :mod:`opticoll.formulations.alltoall.min_congestion`, which ``problem`` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.flow_checks import demand_metrics
from opticoll.formulations.rounds.segments import offsets
from opticoll.formulations.standard_form import Columns, StandardForm, blocks
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.min_congestion import ChosenPaths
    from opticoll.formulations.model import Values
    from opticoll.types import Json


def matrix(problem: ChosenPaths) -> StandardForm:
    """The program without a modelling layer: Lambda, then x; ``congestion`` of arcs on some path, then ``choose``."""
    data = problem.routing
    paths, capacity = data.paths, data.topology.capacity
    used, P = paths.used, paths.paths
    x = 1 + np.arange(P)
    rows = np.concatenate([np.searchsorted(used, paths.arcs), used.size + paths.pair, np.arange(used.size)])
    columns = np.concatenate([np.repeat(x, paths.length), x, np.zeros(used.size, dtype=np.int64)])
    entries = np.concatenate([np.repeat(data.amount[paths.pair], paths.length), np.ones(P), -capacity[used]])
    order = np.lexsort((rows, columns))
    congestion = np.full(capacity.size, -1)
    congestion[used] = np.arange(used.size)
    kappa = np.full(paths.pairs, float(data.kappa))
    most = data.kappa * data.amount.sum() / capacity.min()
    whole = not (data.amount % 1).any() and (capacity == 1).all()
    return StandardForm(
        A=Columns(entries[order], rows[order], offsets(np.bincount(columns)), (used.size + paths.pairs, P + 1)),
        row_lower=np.append(np.full(used.size, -np.inf), kappa),
        row_upper=np.append(np.zeros(used.size), kappa),
        col_lower=np.zeros(P + 1),
        col_upper=np.append(most, np.ones(P)),
        cost=np.append(1 / data.kappa, np.zeros(P)),
        sense="min",
        integer=np.append(whole, np.ones(P, dtype=bool)),
        columns=blocks({"x": ((P,), x), "Lambda": ((), np.zeros(1, dtype=np.int64))}),
        rows=blocks(
            {
                "congestion": ((capacity.size,), congestion),
                "choose": ((paths.pairs,), used.size + np.arange(paths.pairs)),
            }
        ),
    )


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
