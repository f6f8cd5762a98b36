"""Data, bounds and figures of :mod:`opticoll.formulations.alltoall.child`, which ``problem`` is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows import concurrent_flow
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.child import Child
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Links
    from opticoll.types import Json, Settings


def under_master(cls: type[Child], instance: object, given: Settings, needed: Values | None = None) -> Child:
    """The problem under ``needed``, the values of a solution of ``alltoall.master``; without, g are capacities."""
    topology, traffic = concurrent_flow.demanded_traffic(instance, given, cls.name)
    senders = np.arange(topology.num_ranks) if traffic is None else np.flatnonzero(traffic.any(axis=1))
    s = concurrent_flow.numbered_source(int(given["source"]), topology, senders, cls.name)
    shards = 1.0 * (senders != s) if traffic is None else traffic[s]
    g = topology.capacity if needed is None else needed["g"][:, np.searchsorted(senders, s)]
    return cls(ConcurrentFlow.from_rank(topology, s, shards, g))


def metrics(problem: Child, value: float | None) -> dict[str, Json]:
    """F_s and the number of ranks; no T, which only all sources together have."""
    return {"F_s": value, "ranks": problem.topology.num_ranks}


def links(problem: Child, values: Values) -> Links:
    """Flow of the source over every arc, relative to the capacity of the arc (and not to the share g)."""
    return replace(checks.links(problem, values), capacity=problem.topology.capacity)


def bounds(problem: Child) -> list[Bound]:
    """Bounds of hop distances under g, and of the inflow of g into each destination."""
    inflow = np.bincount(problem.topology.head, problem.flow.capacity, problem.topology.n)[problem.flow.targets]
    least = rounding.up((inflow / problem.flow.demand.max(axis=0)).min(), int(problem.topology.in_degree.max()) + 1)
    hop = problem.flow.length_bound(np.ones(problem.topology.arcs))
    return [
        Bound("distance", hop, "Theorem 1 under the capacities g", "alltoall"),
        Bound("inflow", float(least), "what g brings to the destination that gets least", "alltoall"),
    ]
