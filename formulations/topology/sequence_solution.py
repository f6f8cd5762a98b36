"""Solutions of ``topology.sequence``: arrays, repair, loads of circuits, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.declared_axes import axes_arrays, size
from opticoll.formulations.variables import SHARDS, Links
from opticoll.instances.families.regular_graphs import circuits_spec
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64
    from opticoll.types import Json


#: Variables that follow from the others.
FOLLOW = {"w", "b", "e"}
#: Part of its demand that a solver may leave out within its tolerance.
SHORT = 1e-5


def estimate(data: TopologySequence) -> dict[str, int] | None:
    """About the size of the model, with the variables that its parameters give it."""
    n, K, changing = data.n, data.configurations, data.charge == "changed"
    circuits, flows = 2 * K * n * (n - 1) * data.parallel, data.phases * int(data.sends.sum()) * n * (n - 1)
    changes = (K - 1) * (n * (n - 1) * data.overlap + changing)
    return size(data, variables=circuits + flows + changes + K * (1 + (data.startup > 0)))


def arrays(data: TopologySequence, names: Collection[str]) -> dict[str, Array]:
    """Shapes of the variables; capacities, stocks and kept circuits follow from the others."""
    several = data.configurations > 1
    given = {"z": several and data.charge == "changed", "y": data.startup > 0, "e": several and data.overlap}
    return {
        name: replace(array, required=name not in FOLLOW)
        for name, array in axes_arrays(data).items()
        if given.get(name, True)
    }


def repair(data: TopologySequence, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Round circuits, drop what flows where none is, serve all demand, and make configurations as long as loads.

    A program may let a circuit that is not set carry its tolerance times L, which is too much in its rows. What is
    dropped is missing in the end, as is what a solver left out within its tolerance: the flow of a source that
    serves its demand but for a part of :data:`SHORT` grows by as much; of more, the checker decides. None without
    the arrays.
    """
    declared = arrays(data, ())
    if set(declared) - set(values) - FOLLOW:
        return None
    result = {name: np.rint(np.clip(values[name], 0.0, 1.0)) for name in ("x", "y", "z") if name in values}
    x = result["x"] = result["x"] * data.off[None, :, :, None]
    counts, stride = x.sum(axis=3), 2 if data.overlap else 1
    t, moved = np.maximum(values["t"], 0.0), np.maximum(moved_flows(data, values), 0.0)
    g = np.where(phase_capacities(data, counts, np.ones_like(t))[:, None] > 0, moved, 0.0)
    g *= shortfall(data, g)[:, None, None]
    load = g[::stride].sum(axis=1) / np.maximum(counts, 1.0)
    t = np.maximum(t, load.max(axis=(1, 2)))
    stock = np.cumsum(g.sum(axis=2) - g.sum(axis=3), axis=0) * (data.off & data.sends[:, None])
    result |= {"t": t, "g": g, "w": x * t[:, None, None, None], "b": np.maximum(stock, 0.0)}
    if "e" in declared:
        e = np.minimum(counts[:-1], counts[1:])
        result["e"] = e * result["z"][:, None, None] if "z" in result else e
    return result


def shortfall(data: TopologySequence, g: F64) -> F64:
    """Demand over what is served, at the worst of a source's targets, ``(n,)``; 1 if more than SHORT is missing."""
    served = (g.sum(axis=2) - g.sum(axis=3)).sum(axis=0)
    ratio = np.divide(data.demand, served, out=np.ones_like(served), where=(data.demand > 0) & (served > 0))
    worst = ratio.max(axis=1)
    return np.where((worst > 1.0) & (worst <= 1.0 + SHORT), worst, 1.0)


def moved_flows(data: TopologySequence, values: Mapping[str, F64]) -> F64:
    """Flows without entries that no variable has, ``(P, n, n, n)``."""
    g = np.nan_to_num(np.asarray(values["g"], dtype=float))
    into_source = np.arange(data.n)[:, None, None] == np.arange(data.n)[None, None, :]
    return np.where(into_source | ~data.off | ~data.sends[:, None, None], 0.0, g)


def phase_capacities(data: TopologySequence, counts: F64, t: F64) -> F64:
    """Capacity of every pair in every phase [shards], ``(P, n, n)``, for circuits ``(K, n, n)``."""
    room = counts * t[:, None, None]
    if not data.overlap or data.configurations == 1:
        return room
    result = np.zeros((data.phases, data.n, data.n))
    result[::2] = room
    result[1::2] = data.delay * np.minimum(counts[:-1], counts[1:])
    return result


def describe(data: TopologySequence, values: Mapping[str, F64]) -> dict[str, Json]:
    """Properties of a verified solution: its configurations, their lengths and topologies."""
    counts = np.rint(np.asarray(values["x"], dtype=float)).sum(axis=3).astype(np.int64)
    t = np.asarray(values["t"], dtype=float)
    runs = [[0]]
    for k in range(1, data.configurations):
        if data.charge == "changed" and (counts[k] <= counts[k - 1]).all():
            runs[-1].append(k)
        else:
            runs.append([k])
    return {
        "configurations": len(runs),
        "T_flow": float(t.sum()),
        "lengths": [float(t[run].sum()) for run in runs],
        "topologies": [circuits_spec(counts[run[0]]) or "" for run in runs],
    }


def links(data: TopologySequence, values: Mapping[str, F64]) -> Links:
    """What the circuits of every phase carry, in the order of the phases, and what they could."""
    counts = np.rint(np.asarray(values["x"], dtype=float)).sum(axis=3)
    room = phase_capacities(data, counts, np.asarray(values["t"], dtype=float))
    phase, tail, head = np.nonzero(room)
    load = moved_flows(data, values).sum(axis=1)[phase, tail, head]
    return Links(Topology(data.n, tail, head), load, room[phase, tail, head], 1.0, SHARDS, SHARDS)


def metrics(data: TopologySequence, value: float | None) -> Mapping[str, Json]:
    """Figures at a value."""
    return {} if value is None else {"T": value, "delay": data.delay}
