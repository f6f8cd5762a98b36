"""Loads and iteration times of a circuit design under traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.topoopt.circuit_design import circuits_between

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.circuit_design import CircuitDesign
    from opticoll.instances.topology import F64


@dataclass(frozen=True)
class Slowdown:
    """Slow-down by forwarding: alpha and mean hops of point-to-point bytes, bandwidth tax of all traffic."""

    alpha: float
    mean_hops: float
    tax: float


def slowdown(design: CircuitDesign) -> Slowdown:
    """Alpha and mean hops of a design's point-to-point traffic, and its bandwidth tax."""
    pool = design.pool
    direct = float(pool.point_to_point.sum())
    load = point_to_point_loads(design)
    alpha = float(load.max()) * pool.n * pool.degree / direct
    return Slowdown(alpha, float(load.sum()) / direct, design.bandwidth_tax)


def point_to_point_loads(design: CircuitDesign) -> F64:
    """Point-to-point bytes over every circuit, ``(m,)``: the loads minus those of ring hops, which take one circuit."""
    pool, circuits = design.pool, design.circuits
    ringed = design.demand - pool.point_to_point
    number = circuits_between(pool.n, circuits)
    own = np.divide(ringed, number, out=np.zeros_like(ringed), where=number > 0)
    return np.maximum(design.loads - own[circuits[:, 0], circuits[:, 1]], 0.0)


def iteration_time(reduce: float, direct: float, alpha: float, servers: int, bandwidth: float) -> float:
    """Eq. (1) without computing [s]: ``reduce`` R, ``direct`` A [bytes], ``bandwidth`` B of a server [bytes/s]."""
    return (reduce + alpha * direct) / (servers * bandwidth)
