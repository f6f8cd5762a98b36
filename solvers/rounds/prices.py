r"""Arc prices whose bound on the rounds is tight: multiplicative weights on the fluid routing problem.

Prices grow with the load that shortest paths under them put on the arcs (Plotkin, Shmoys & Tardos, Mathematics of
Operations Research 20, 1995). Whatever they are, :func:`formulations.lumorph.round_bounds.priced_bound` is rigorous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.lumorph.round_bounds import priced_bound, single_demand

if TYPE_CHECKING:
    from collections.abc import Callable

    from formulations.base import Bound
    from formulations.rounds.check import Limits
    from formulations.rounds.collectives import Collective
    from instances import Topology

#: Steps without a better bound after which the search ends.
STALE = 60


def tight_bound(
    topology: Topology, collective: Collective, limits: Limits, enough: int, left: Callable[[], float], steps: int = 400
) -> Bound:
    """The best priced bound found; stops at ``enough`` rounds, when time is up, or when it no longer grows.

    Only chunks that go from one vertex to one other shape the prices.
    """
    from solvers.rounds.trees import loads_by_trees

    demand, _ = single_demand(collective)
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    logarithm = np.zeros(topology.arcs)
    price = np.ones(topology.arcs)
    best = priced_bound(topology, collective, limits, price)
    level, stale = 0.0, 0
    for step in range(steps if demand.any() else 0):
        if best.value >= enough or left() <= 0 or stale >= STALE:
            break
        load = loads_by_trees(first_out, topology.head, topology.tail, price, demand)
        value = float((load * price).sum() / price.sum())
        stale = 0 if value > level * (1 + 1e-4) else stale + 1
        if value > level:
            level = value
            best = max(best, priced_bound(topology, collective, limits, price), key=lambda bound: bound.value)
        logarithm += load / load.max(initial=1e-300) / np.sqrt(1.0 + step / 4.0)
        price = np.exp(logarithm - logarithm.max())
    return best
