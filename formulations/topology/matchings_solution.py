"""Solutions of ``topology.matchings``: arrays, repair, and the schedule of every switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology.matching_bounds import most_useful
from opticoll.formulations.topology.node_demand import pool_of_nodes, stated_demand
from opticoll.formulations.variables import SHARDS, TIME, Array, Axis, Links, SolutionSize
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.instances.topology import F64
    from opticoll.types import Json


#: Maximum numbers of switches and of configurations of a switch.
MOST_SWITCHES, MOST_CONFIGURATIONS = 1_024, 100_000
PARAMETERS = (
    Parameter("switches", int, 0, help="number of parallel switches; 0 for the ports of a node", least=0),
    Parameter("delay", float, default=1.0, help="time before a matching [shards / link bandwidth]", least=0),
    Parameter("first", bool, default=True, help="the first matching of a switch takes the delay, too"),
    Parameter("configurations", int, 0, help="most matchings of a switch; 0 for as many as can help", least=0),
    demand_parameter(),
)


def prepared(cls: type[TopologyMatchings], instance: object, **stated: Any) -> TopologyMatchings:
    """The problem of a pool of nodes."""
    pool = pool_of_nodes(instance, cls.name)
    demand = stated_demand(pool.n, stated, cls.name)
    return of_demand(cls, **{**stated, "demand": demand, "switches": stated["switches"] or pool.degree})


def of_demand(
    cls: type[TopologyMatchings],
    demand: F64,
    switches: int,
    delay: float,
    *,
    first: bool = True,
    configurations: int = 0,
) -> TopologyMatchings:
    """The problem for a demand with a diagonal of zeros; with 0 ``configurations``, as many as can help.

    Raises
    ------
    NotApplicable
        If the parameters are out of range.
    """
    if switches > MOST_SWITCHES or configurations > MOST_CONFIGURATIONS:
        most = f"at most {MOST_SWITCHES} switches, and {MOST_CONFIGURATIONS} configurations of each"
        refuse(cls.name, f"{switches} switches, {configurations} configurations: give {most}", NotApplicable)
    if configurations:
        return cls(len(demand), switches, configurations, demand, delay, first)
    number, total = most_useful(demand, switches, delay)
    return cls(len(demand), switches, number, demand, delay, first, total, enough=True)


def estimate(data: TopologyMatchings) -> dict[str, int] | None:
    """About the size of the model: circuits only where there is demand."""
    return size(data, variables=2 * data.switches * data.configurations * (len(data.pairs) + 1) + 1)


def arrays(data: TopologyMatchings, names: Collection[str]) -> dict[str, Array]:
    """Shapes of the variables; a solution may have fewer configurations. Amounts and T follow from the others."""
    size = SolutionSize("configurations", most=None if data.enough else data.configurations)
    slots = Axis("switch", data.switches), Axis("configuration", size)
    pair = Axis("src", data.n), Axis("dst", data.n)
    return {
        "x": Array((*slots, *pair)),
        "t": Array(slots, unit=TIME),
        "z": Array(slots, required=False),
        "w": Array((*slots, *pair), unit=SHARDS, required=False),
        "T": Array((), unit=TIME, required=False),
        "served": Array(pair, dual=True),
    }


def circuits_and_lengths(data: TopologyMatchings, values: Mapping[str, F64]) -> tuple[F64, F64, F64]:
    """Circuits as given and rounded, ``(s, K, n, n)``, and lengths, ``(s, K)``; none where nothing is due."""
    given = np.nan_to_num(np.asarray(values["x"], dtype=float)) * (data.demand > 0)
    return given, np.rint(np.clip(given, 0.0, 1.0)), np.nan_to_num(np.asarray(values["t"], dtype=float))


def repair(data: TopologyMatchings, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Round circuits, and hold all of them longer by the same factor until everything is served."""
    if {"x", "t"} - set(values):
        return None
    _, circuits, t = circuits_and_lengths(data, values)
    if circuits.sum(axis=3).max(initial=0.0) > 1 or circuits.sum(axis=2).max(initial=0.0) > 1:
        return None
    t = np.where(circuits.any(axis=(2, 3)), np.maximum(t, 0.0), 0.0)
    carried = np.einsum("hkij,hk->ij", circuits, t)
    due = data.demand > 0
    if (carried[due] <= 0).any():
        return None
    factor = max(float((data.demand[due] / carried[due]).max()), 1.0)
    return data.filled(circuits, t * factor * (1 + 4 * rounding.UNIT) if factor > 1 else t)


def schedule_values(data: TopologyMatchings, circuits: F64, lengths: F64) -> dict[str, F64]:
    """All arrays of a schedule in the model's order, from its circuits (s,K,n,n) and lengths (s,K)."""
    used = circuits.any(axis=(2, 3))
    t = np.where(used, lengths, 0.0)
    order = np.lexsort((~used, -t), axis=1)
    t = np.take_along_axis(t, order, axis=1)
    z = np.take_along_axis(used, order, axis=1).astype(float)
    x = np.take_along_axis(circuits, order[:, :, None, None], axis=1)
    by_longest = np.argsort(-t[:, 0], kind="stable")
    x, z, t = x[by_longest], z[by_longest], t[by_longest]
    room = x * t[:, :, None, None]
    before = np.cumsum(room.reshape(-1, data.n, data.n), axis=0).reshape(room.shape) - room
    charged = z if data.first else z[:, 1:]
    makespan = (t.sum(axis=1) + data.delay * charged.sum(axis=1)).max()
    return {"x": x, "z": z, "t": t, "w": np.clip(data.demand - before, 0.0, room), "T": np.array(makespan)}


def describe(data: TopologyMatchings, values: Mapping[str, F64]) -> dict[str, Json]:
    """Properties of a verified solution: every switch's matchings as circuits, when they begin and how long."""
    _, circuits, t = circuits_and_lengths(data, values)
    schedule: list[Json] = []
    for h in range(data.switches):
        now = 0.0
        for k in np.flatnonzero(circuits[h].any(axis=(1, 2))).tolist():
            now += data.delay if data.first or now > 0 else 0.0
            pairs = np.argwhere(circuits[h, k] > 0).tolist()
            schedule.append({"switch": h, "begin": now, "length": float(t[h, k]), "circuits": pairs})
            now += float(t[h, k])
    return {
        "matchings": len(schedule),
        "lengths": float(t.sum()),
        "schedule": schedule,
    }


def links(data: TopologyMatchings, values: Mapping[str, F64]) -> Links:
    """Load of every pair with demand, and what its circuits could carry."""
    _, circuits, t = circuits_and_lengths(data, values)
    room = np.einsum("hkij,hk->ij", circuits, t)
    tail, head = data.pairs.T
    return Links(Topology(data.n, tail, head), data.demand[tail, head], room[tail, head], 1.0, SHARDS, SHARDS)


def metrics(data: TopologyMatchings, value: float | None) -> Mapping[str, Json]:
    """Figures at a value."""
    return {} if value is None else {"T": value, "delay": data.delay}
