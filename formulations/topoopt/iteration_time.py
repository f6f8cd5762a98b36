r"""Iteration time of a training job on a wired pool: Eq. (1).

Source  TopoOpt, section 5.4, Eq. (1)

    T = R / (n B) + alpha A / (n B) + C

R all-reduce bytes and A point-to-point bytes of all servers together, n B the bandwidth of all servers, C the time of
computing. alpha is measured: the point-to-point traffic is done when its busiest circuit is, so that with d circuits a
server alpha = Lambda n d / A, where Lambda is the greatest point-to-point load of a circuit. By any routing alpha is at
least the mean hops of a byte, and equal to that where all circuits carry the same; an ideal switch has alpha = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.base import NotApplicable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.topoopt.design import TopologyDesign


@dataclass(frozen=True)
class Slowdown:
    """What forwarding does to point-to-point traffic: alpha, mean hops of a byte, bandwidth tax of all traffic."""

    alpha: float
    mean_hops: float
    tax: float


def slowdown(design: TopologyDesign) -> Slowdown:
    """Alpha and mean hops of a design's point-to-point traffic, and the tax of all of it.

    Ring hops take one circuit each, so what is left of the loads after taking those off is point-to-point.

    Raises
    ------
    NotApplicable
        Without point-to-point traffic, or where some ring hop has no circuit of its own.
    """
    pool = design.pool
    direct = float(pool.point_to_point.sum())
    if direct == 0:
        msg = f"slow-down: {pool.spec} has no point-to-point traffic; take a hybrid placement"
        raise NotApplicable(msg)
    load = point_to_point_loads(design)
    alpha = float(load.max()) * pool.n * pool.degree / direct
    return Slowdown(alpha, float(load.sum()) / direct, design.bandwidth_tax)


def point_to_point_loads(design: TopologyDesign) -> NDArray[np.float64]:
    """Point-to-point bytes over every circuit, ``(m,)``.

    Raises
    ------
    NotApplicable
        Where some ring hop has no circuit of its own.
    """
    pool, circuits = design.pool, design.circuits
    ringed = design.demand - pool.point_to_point
    number = np.zeros((pool.n, pool.n))
    np.add.at(number, (circuits[:, 0], circuits[:, 1]), 1.0)
    if ((ringed > 0) & (number == 0)).any():
        msg = f"slow-down: a ring hop of {pool.spec} has no circuit of its own; its load cannot be told apart"
        raise NotApplicable(msg)
    own = np.divide(ringed, number, out=np.zeros_like(ringed), where=number > 0)
    return np.maximum(design.loads - own[circuits[:, 0], circuits[:, 1]], 0.0)


def iteration_time(
    reduce: float, direct: float, alpha: float, servers: int, bandwidth: float, computing: float = 0.0
) -> float:
    """Eq. (1) [s]: ``reduce`` R, ``direct`` A [bytes], ``bandwidth`` B of a server [bytes/s], ``computing`` C [s]."""
    return (reduce + alpha * direct) / (servers * bandwidth) + computing
