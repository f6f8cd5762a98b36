"""Sizes of the models of this room, counted from their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.strategy import Plane
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.formulations.topoopt.utility import CircuitUtility


def wiring_size(data: Wiring) -> dict[str, int]:
    """Size of the model."""
    n, p, groups, rings = data.n, data.copies, data.commodities[0].size, len(data.orders)
    m, loads = n * (n - 1), data.goal == "max-load"
    flows = groups * (n - 1) * (n - 1)
    split = len(data.pool.groups) if rings else 0
    hops = sum(ring.hops[0].size if data.trees else len(ring.order) for ring in data.orders)
    rows = 2 * n + m * (p - 1) + groups * (n - 1) + flows + 1 + split
    nonzeros = 2 * m * p + 2 * m * (p - 1) + flows * 2 - groups * (n - 1) + 2 * flows + flows + hops + rings
    if loads:
        rows += m + 2 * m * p + 1
        nonzeros += flows + m * p + 2 * m * p + 3 * m * p + flows + 1
    columns = m * p + flows + rings + (m * p + 1 if loads else 0)
    return {"variables": columns, "constraints": rows, "nonzeros": nonzeros, "integers": m * p}


def strategy_size(data: Plane) -> dict[str, int]:
    """Size of the model."""
    cells, limit = int(data.allowed.sum()), int(data.memory > 0)
    held = int((data.held[data.allowed] != 0).sum()) * limit
    return {
        "variables": cells,
        "constraints": len(data.kinds) + limit,
        "nonzeros": cells + held,
        "integers": cells,
    }


#: Maximum number of circuits of a stated model.
MOST_CIRCUITS = 2_000_000


def utility_size(data: CircuitUtility) -> dict[str, int]:
    """Size of the model."""
    circuits = len(data.pairs) * data.gains.size
    ends = sum(np.unique(data.pairs[:, end]).size for end in (0, 1))
    return {"variables": circuits, "constraints": ends, "nonzeros": 2 * circuits, "integers": circuits}


def refuse_large_utility(data: CircuitUtility) -> None:
    """Refuse a model that is too large to state."""
    circuits = len(data.pairs) * data.gains.size
    if circuits > MOST_CIRCUITS:
        msg = f"{data.name}: {circuits:,} circuits are too many for a stated model; use method transportation"
        raise NotApplicable(msg)
