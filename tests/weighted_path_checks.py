"""The check of weighted paths, from numpy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounds.segments import splits

if TYPE_CHECKING:
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.solvers.schedules.weighted_paths import WeightedPaths


def violations(data: ConcurrentFlow, paths: WeightedPaths) -> dict[str, float]:
    """Worst violations, from numpy alone; 0 for valid paths, infinite for anything that is not a path.

    ``commodities``: all ordered pairs of ranks with demand, once; ``path``: arcs connect and lead from source to
    target; ``rate``: rates are positive and add up to F D, relative to F D; ``capacity``: relative to the arc's.
    """
    topology = data.topology
    result = dict.fromkeys(("commodities", "path", "rate", "capacity"), np.inf)
    sources, targets, shards = data.demanded()
    listed, rate = paths.paths, paths.rate
    first_arc, arcs, owner = listed.start, listed.arcs, listed.pair
    if np.array_equal(listed.sources, sources) and np.array_equal(listed.targets, targets):
        result["commodities"] = 0.0
    sound = (
        np.array_equal(np.unique(owner), np.arange(sources.size))
        and (np.diff(owner) >= 0).all()
        and owner.size == rate.size
        and splits(first_arc, rate.size, arcs.size)
        and arcs.size > 0
        and 0 <= arcs.min() <= arcs.max() < topology.arcs
        and np.isfinite(rate).all()
        and 0 < paths.F < np.inf
    )
    if not sound or result["commodities"]:
        return result
    joined = topology.head[arcs[:-1]] == topology.tail[arcs[1:]]
    joined[first_arc[1:-1] - 1] = True  # arcs of different paths need not join
    begins = np.array_equal(topology.tail[arcs[first_arc[:-1]]], sources[owner])
    ends = np.array_equal(topology.head[arcs[first_arc[1:] - 1]], targets[owner])
    result["path"] = 0.0 if joined.all() and begins and ends else np.inf
    served = np.bincount(owner, rate, sources.size)
    least = float((rate / shards[owner]).min())
    result["rate"] = max(float(np.abs(served / shards / paths.F - 1.0).max()), -least / paths.F, 0.0)
    load = np.bincount(arcs, np.repeat(rate, np.diff(first_arc)), topology.arcs)
    result["capacity"] = max(float((load / topology.capacity).max()) - 1.0, 0.0)
    return result
