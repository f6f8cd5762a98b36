"""Solutions of ``topology.steps``: arrays, the topology of every step, and a bound on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import Array, Axis

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from fractions import Fraction

    from opticoll.formulations.topology.steps import TopologySteps
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


def derived(data: TopologySteps) -> list[Fraction]:
    """Times of the choices, with the start-up."""
    return [rounding.decimal(float(value)) for value in np.unique((data.time + data.startup)[data.allowed])]


def estimate(data: TopologySteps) -> dict[str, int] | None:
    """About the size of the model: two variables a choice."""
    return size(data, variables=2 * int(data.allowed.sum()))


def arrays(data: TopologySteps, names: Collection[str]) -> dict[str, Array]:
    """Shapes of y, or of the number of every step's topology, and of v, which follows."""
    step = Axis("step", len(data.steps), [f"{i}: {name}" for i, name in enumerate(data.steps)])
    if "topology" in names:
        return {"topology": Array((step,), low=0, high=len(data.topologies))}
    axes = step, Axis("topology", len(data.topologies), list(data.topologies))
    return {"y": Array(axes), "v": Array(axes, required=False)}


def chosen_topologies(data: TopologySteps, values: Mapping[str, F64]) -> I64:
    """Topology of every step, ``(m,)``."""
    if "topology" in values:
        return np.asarray(values["topology"], dtype=float).astype(np.int64)
    return np.asarray(np.nan_to_num(np.asarray(values["y"], dtype=float)).argmax(axis=1), dtype=np.int64)


def bounds(data: TopologySteps) -> list[Bound]:
    """Every step at its fastest; one change at least, or none."""
    least = rounding.sum_down(data.least.min(axis=1) + data.startup)
    stay = rounding.sum_down(data.least[:, 0] + data.startup) if data.allowed[:, 0].all() else np.inf
    once = rounding.sum_down([least, data.delay])
    word = "every step on its fastest topology"
    return [Bound("stay-or-change", min(stay, max(once, least)), f"{word}, with one change or none", "topology")]


def describe(data: TopologySteps, values: Mapping[str, F64]) -> dict[str, Json]:
    """Properties of a verified solution: the topology and time of every step, and the time on the standing one."""
    chosen = data.chosen(values)
    time = data.time[np.arange(len(chosen)), chosen]
    stay = float((data.time[:, 0] + data.startup).sum())
    return {
        "changes": int((np.diff(chosen, prepend=0) != 0).sum()),
        "T_flow": float(time.sum()),
        "T_standing": stay if np.isfinite(stay) else None,
        "steps": [
            {"step": name, "topology": data.topologies[q], "time": float(one)}
            for name, q, one in zip(data.steps, chosen.tolist(), time, strict=True)
        ],
    }


def metrics(data: TopologySteps, value: float | None) -> Mapping[str, Json]:
    """Figures at a value."""
    return {} if value is None else {"T": value, "delay": data.delay}
