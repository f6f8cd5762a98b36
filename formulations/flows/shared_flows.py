"""Flows towards several ends that share arcs, because copies or sums are free: checker, bounds, figures.

A flow h_v for every end v (``ends``) is sent by all vertices u with supply b_u (``supply``); with ``away`` it leads
from v to them: the same on reversed arcs. ``most`` bounds h, and T times the smallest capacity. Any lengths l_av >= 0
of one end v prove T >= sum_u b_u dist_l(u, v) / sum_a c_a l_av.

The functions take the formulation, ``problem``, and are its methods.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.flows.concurrent_flow import all_to_all_topology
from opticoll.formulations.flows.worst_cuts import least_time, reversed_arcs
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, TIME, Axis, Links, vertex_axis

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.alltoall.all_gather import AllGather
    from opticoll.formulations.alltoall.all_reduce import AllReduction
    from opticoll.formulations.alltoall.broadcast import Broadcast
    from opticoll.formulations.alltoall.reduce_scatter import ReduceScatter
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64, Mask, Topology
    from opticoll.types import Json, Settings

    SharedFlows: TypeAlias = AllGather | Broadcast | ReduceScatter

#: Units of the variables.
UNITS = {"h": SHARDS, "T": TIME}


def between_all(cls: type[Any], instance: object, given: Settings) -> Any:
    """The problem between all ranks: the ends v, ``(N,)``, the supply b, ``(n,)``, and the largest flow."""
    topology = all_to_all_topology(instance, cls.name)
    supply = topology.is_terminal.astype(float)
    return cls(topology, topology.terminals, supply, topology.num_ranks - 1)


def from_root(cls: type[Broadcast], instance: object, given: Settings) -> Broadcast:
    """The problem from one rank: its vertex, the other ranks ``(N-1,)``, and the supply b, ``(n,)``.

    Raises
    ------
    BadInput
        If there is no rank of this number, or no path from it to some rank.
    """
    number = int(given["root"])
    topology = all_to_all_topology(instance, cls.name, number)
    if not 0 <= number < topology.num_ranks:
        refuse(cls.name, f"root={number} is not a rank of {topology.spec}; use 0..{topology.num_ranks - 1}")
    root = int(topology.terminals[number])
    return cls(topology, root, np.delete(topology.terminals, number), np.eye(topology.n)[root])


def sets(problem: SharedFlows) -> dict[str, Axis]:
    """The ends, as the axis of h beside its arcs."""
    role = problem.variables["h"][1]
    return {role: vertex_axis(role, problem.topology, problem.ends)}


def barred(problem: SharedFlows) -> Mask:
    """Flows that lead back to their end, or from it with ``away``, ``(m, K)``: they are 0."""
    return (problem.topology.head if problem.away else problem.topology.tail)[:, None] == problem.ends


def shared_residuals(problem: SharedFlows, values: Mapping[str, F64]) -> dict[str, float]:
    """Worst violation of every block, from numpy alone; flows are relative to one shard, capacities to T."""
    topology, ends = problem.topology, problem.ends
    h, T = np.asarray(values["h"], dtype=float), float(np.asarray(values["T"]))
    net = (1.0 if problem.away else -1.0) * topology.net(h) - problem.supply[:, None]
    net[ends, np.arange(ends.size)] = 0.0
    over = (h / topology.capacity[:, None] - T).max(initial=0.0)
    return {
        "nonnegative": float(max(0.0, -h.min(initial=0.0), -T)),
        "blocked": float(np.abs(h[barred(problem)]).max(initial=0.0)),
        "balance": float(np.abs(net).max(initial=0.0)),
        "capacity": float(max(over, 0.0)) / max(abs(T), np.finfo(float).tiny),
    }


def objective(_problem: object, values: Mapping[str, F64]) -> float:
    """The given T."""
    return float(np.asarray(values["T"]))


# Bounds ---------------------------------------------------------------------------------------------------------------


def length_bound(problem: SharedFlows, lengths: F64) -> float:
    """Lower bound on T proven by lengths ``(m, K)``, rounded down: the best over the ends.

    Lengths are read as by :func:`opticoll.formulations.flows.concurrent_flow.ConcurrentFlow.length_bound`.
    """
    from scipy.sparse.csgraph import dijkstra

    sends, topology = problem.supply > 0, problem.topology
    best, scale = 0.0, rounding.exponent(topology.capacity)
    capacity = rounding.scaled_up(topology.capacity, -scale)
    for j, v in enumerate(problem.ends.tolist()):
        mine = rounding.usable_lengths(topology.capacity, lengths[:, j])
        if mine.size:
            matrix = topology.length_matrix(mine)
            reach = dijkstra(matrix if problem.away else matrix.T, indices=v)
            paid = rounding.dot_down(problem.supply[sends], reach[sends])
            distances = float(rounding.down(paid, topology.n))
            best = max(best, rounding.quotient_down(distances, rounding.dot_up(capacity, mine)))
    return max(float(rounding.scaled_down(best, -scale)), 0.0)


def certify(problem: SharedFlows, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by the duals of ``capacity``, read as lengths towards or away from every end."""
    values = np.asarray(duals.get("capacity", np.zeros(0)), dtype=float)
    if values.shape != (problem.topology.arcs, problem.ends.size):
        return None
    role = "contributor" if problem.away else "receiver"
    reason = "lengths from the duals, shortest paths recomputed"
    return Bound(f"{role}-lengths", length_bound(problem, -values), reason)


def bounds(problem: SharedFlows) -> list[Bound]:
    """Bounds of the worst cut, which is the optimum between all ranks, and of the links of one rank."""
    topology, away = problem.topology, problem.away
    node = "what leaves the rank that can send least" if away else "what enters the rank that gets least"
    passing = np.bincount(topology.tail if away else topology.head, topology.capacity, topology.n)
    slowest = int(topology.terminals[int(np.argmin(passing[topology.terminals]))])
    time, inside = least_time(reversed_arcs(topology) if away else topology, [1] * topology.num_ranks)
    held = int(np.isin(topology.terminals, list(inside)).sum())
    what = f"{'sums of ' if away else ''}{held} ranks"
    reason = f"{what} behind a capacity of {float(held / time):g}, found by max-flows"
    worst = link_bound(topology, "worst-cut", held, reason, cut_detail(topology, inside, away=away))
    alone = cut_detail(topology, set(range(topology.n)) - {slowest}, away=away)
    return [
        link_bound(topology, "node-cut", problem.most, node, alone),
        replace(worst, value=rounding.fraction_down(time), exact=True),
    ]


def root_bounds(problem: Broadcast) -> list[Bound]:
    """Bounds of the minimum cut, which is the optimum, and of the arcs out of the root."""
    topology, root = problem.topology, problem.root
    time, inside = least_time(topology, (topology.terminals == root).astype(int).tolist())
    reason = f"a cut of capacity {float(1 / time):g} around the root, by max-flows"
    least = link_bound(topology, "least-cut", 1, reason, cut_detail(topology, inside))
    return [
        link_bound(topology, "node-cut", 1, "what leaves the root", cut_detail(topology, {root})),
        replace(least, value=rounding.fraction_down(time), exact=True),
    ]


def link_bound(topology: Topology, name: str, shards: int, reason: str, detail: Mapping[str, list[int]]) -> Bound:
    """Bound of shards that take one of the ``links`` of the detail each."""
    capacity = topology.capacity[detail["links"]]
    value = max(rounding.quotient_down(shards, rounding.sum_up(capacity)), 0.0)
    fraction = rounding.quotient(Fraction(shards), rounding.exact_sum(capacity))
    return Bound(name, value, reason, detail=detail, fraction=fraction)


def cut_detail(topology: Topology, inside: Collection[int], *, away: bool = False) -> dict[str, list[int]]:
    """The ``links`` out of a set of vertices, or into it with ``away``, and the vertices from which they lead."""
    sends = np.isin(np.arange(topology.n), list(inside)) != away
    crossing = sends[topology.tail] & ~sends[topology.head]
    return {"inside": np.flatnonzero(sends).tolist(), "links": np.flatnonzero(crossing).tolist()}


# Figures --------------------------------------------------------------------------------------------------------------


def metrics(problem: SharedFlows | AllReduction, value: float | None) -> dict[str, Json]:
    """T, its inverse, and the number of ranks."""
    F = 1.0 / value if value is not None and value > 0 else None
    return {"T": value, "F": F, "ranks": problem.topology.num_ranks}


def links(problem: SharedFlows | AllReduction, values: Mapping[str, F64]) -> Links:
    """Shards over every arc: the largest flow of any end, because copies and sums are free."""
    load, topology = np.asarray(values["h"], dtype=float).max(axis=1, initial=0.0), problem.topology
    return Links(topology, load, topology.capacity, float(np.asarray(values["T"])), SHARDS, BANDWIDTHS)


def arrays(problem: SharedFlows, names: Collection[str]) -> dict[str, Array]:
    """The flows h, the time T and the duals of ``capacity``."""
    return axes_arrays(problem, "capacity")


def derived(problem: SharedFlows) -> list[Fraction]:
    """The upper bound on T as a fraction."""
    return [Fraction(problem.most) / rounding.entered(float(problem.topology.capacity.min()))]
