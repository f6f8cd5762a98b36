"""Bounds on the iteration time of every strategy."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import Array, Axis

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.topoopt.strategy import Plane
    from opticoll.instances.topology import F64
    from opticoll.types import Json


def derived(data: Plane) -> list[Fraction]:
    """Time of one part in every way, and its share of the memory."""
    rate = data.pool.n * data.pool.degree * rounding.entered(data.bandwidth)
    slow = rounding.entered(data.alpha) if data.alpha > 0 else Fraction(1)
    moved = data.direct if data.alpha > 0 else data.hops
    parts = (array[data.allowed].tolist() for array in (data.work, data.reduced, moved))
    results = [
        rounding.measured(t) + (rounding.entered(r) + slow * rounding.entered(a)) / rate
        for t, r, a in zip(*parts, strict=True)
    ]
    if data.memory:
        each = rounding.entered(data.weight_bytes) / rounding.entered(data.memory / 2**30) / 2**30
        results += [each * data.weights(k, c) for k, c in np.argwhere(data.allowed).tolist()]
    return results


def estimate(data: Plane) -> dict[str, int] | None:
    """About the size of the model: a variable for every way that is allowed."""
    return size(data, variables=int(data.allowed.sum()))


def arrays(data: Plane, names: Collection[str]) -> dict[str, Array]:
    """Shape of x, by kinds of parts and ways to place one."""
    parts = [
        *(f"layer of {one.weights} weights" for kind in data.kinds for one in kind.layers),
        *(f"{one.count} tables of {one.rows} x {one.columns}" for kind in data.kinds for one in kind.tables),
    ]
    axes = Axis("part", data.allowed.shape[0], parts), Axis("placement", data.allowed.shape[1], data.ways)
    return {"x": Array(axes, unit="parts")}


def bounds(data: Plane) -> list[Bound]:
    """Bound of every kind in its cheapest way, and a Lagrangian bound with the best memory price of all ratios."""
    cost, held = (np.where(data.allowed, array, np.inf) for array in (data.cost, data.held))
    cheapest = rounding.sum_down([data.computing, rounding.dot_down(data.count, cost.min(axis=1))])
    pick = np.argmin(cost, axis=1)
    fits = data.memory <= 0 or float(data.count @ held[np.arange(len(pick)), pick]) <= data.memory
    result = [Bound("separable", cheapest, "every kind is placed in its cheapest way", "topoopt", exact=fits)]
    if not fits:

        def priced(price: float) -> F64:
            return np.where(data.allowed, rounding.down(data.cost + price * data.held, 2), np.inf)

        prices = [0.0]
        for k in range(len(data.kinds)):
            c, h = data.cost[k, data.allowed[k]], data.held[k, data.allowed[k]]
            rise, fall = c[:, None] - c[None, :], h[None, :] - h[:, None]
            prices += (rise[fall > 0] / fall[fall > 0]).tolist()
        best = max(
            rounding.sum_down(
                [
                    data.computing,
                    rounding.dot_down(data.count, priced(price).min(axis=1)),
                    -float(rounding.up(price * data.memory)),
                ]
            )
            for price in prices
            if price >= 0
        )
        result.append(Bound("lagrangian", best, "Lagrangian relaxation of the memory limit", "topoopt"))
    return result


closed_forms = bounds


def describe(data: Plane, values: Mapping[str, F64]) -> dict[str, Json]:
    """Summary of a verified strategy: bytes, memory, and parts by way."""
    x = np.where(data.allowed, np.rint(np.nan_to_num(np.asarray(values["x"], dtype=float))), 0.0)
    return {
        "all_reduce_bytes": float((data.reduced * x).sum()),
        "direct_bytes": float((data.direct * x).sum()),
        "memory_gib": float((data.held * x).sum()) / 2**30,
        "computing_time": data.computing + float((data.work * x).sum()),
        **{f"parts {way}": int(total) for way, total in zip(data.ways, x.sum(axis=0), strict=True) if total},
    }
