"""Bounds and figures of :mod:`opticoll.formulations.alltoall.child`, which ``problem`` is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.child import Child
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Links
    from opticoll.types import Json


def metrics(problem: Child, value: float | None) -> dict[str, Json]:
    """F_s, the number of ranks and their largest distance; no T, which only all sources together have."""
    known = checks.metrics(problem, value)
    return {"F_s": value, "ranks": known["ranks"], "diameter": known["diameter"]}


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
