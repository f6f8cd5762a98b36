"""Solutions of ``lumorph.co-scheduling``: arrays, and batches of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import Array, Axis

if TYPE_CHECKING:
    from collections.abc import Collection

    from opticoll.formulations.lumorph.co_scheduling import CallBatches
    from opticoll.instances.topology import F64
    from opticoll.types import Json


def arrays(data: CallBatches, names: Collection[str]) -> dict[str, Array]:
    """The choice x, of the first call of the batch and the call, by their numbers in the instance."""
    first, call = (data.call[one].tolist() for one in data.pairs)
    return {"x": Array((Axis("pair", len(call), {"first": first, "call": call}),))}


def bounds(data: CallBatches) -> list[Bound]:
    """Bound from the calls of the busiest GPU, which run sequentially."""
    busy = data.time @ data.member
    worst = int(busy.argmax())
    value = float(rounding.down(busy[worst], data.time.size + 1))
    reason = f"the {int(data.member[:, worst].sum())} calls of GPU {worst} take turns"
    return [Bound("busiest-gpu", value, reason, "lumorph")]


def metrics(data: CallBatches, value: float | None) -> dict[str, Json]:
    """The share of the sequential time that is saved."""
    return {"saved": None if value is None else round(max(0.0, 1.0 - value / float(data.time.sum())), 9)}


def values_of(data: CallBatches, batches: list[list[int]]) -> dict[str, F64]:
    """The values x of batches, given as lists of calls by their numbers in the model."""
    j, k = data.pairs
    first = np.full(data.time.size, -1)
    for batch in batches:
        first[batch] = min(batch)
    return {"x": (first[k] == j).astype(float)}
