"""Data of ``topoopt.routing``: the design whose circuits are given, and its demand as a flow by source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import CircuitDesign, ports_left, server_pool
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Callable

#: Maximum number of servers: larger flow matrices are too large for any solver here.
MOST_SERVERS = 512
#: Parameters of ``topoopt.routing``.
PARAMETERS = (
    Parameter(
        "circuits",
        str,
        default="topology-finder",
        help="method that chooses the circuits",
        choices=("topology-finder", "ocs-reconfig"),
        constructs=True,
    ),
    Parameter(
        "traffic",
        str,
        default="all",
        help="traffic to route: all, or point-to-point only",
        choices=("all", "point-to-point"),
    ),
)


def chosen_design(
    instance: object, name: str, *, circuits: Callable[[ServerPool], CircuitDesign], traffic: str
) -> CircuitDesign:
    """The design with the circuits of a method, for all traffic of a pool or what is sent point to point.

    Raises
    ------
    NotApplicable
        For anything but a pool of at most ``MOST_SERVERS`` servers with such traffic.
    """
    pool = server_pool(instance, name)
    if pool.n > MOST_SERVERS:
        refuse(name, f"{pool.n} servers have too many flows; use at most {MOST_SERVERS}", NotApplicable)
    design = circuits(pool)
    if traffic == "all":
        return design
    if not pool.point_to_point.any():
        refuse(name, f"{pool.spec} has no point-to-point traffic; route all traffic with traffic=all", NotApplicable)
    alone = ServerPool(pool.n, pool.degree, pool.point_to_point, spec=pool.spec)
    return routed_design(alone, design.circuits, ())


def flow_over(design: CircuitDesign) -> tuple[ConcurrentFlow, CircuitDesign, float]:
    """The demand of a design over its circuits in units of Lambda_0, the design, and Lambda_0 [bytes]."""
    topology, n, demand = design.topology, design.pool.n, design.demand
    out, into = (np.maximum(-free, 1) for free in ports_left(n, 0, design.circuits))
    unit = float(max((demand.sum(axis=1) / out).max(), (demand.sum(axis=0) / into).max()))
    sources = np.flatnonzero(demand.sum(axis=1) > 0)
    scaled = demand[sources].T / unit
    return ConcurrentFlow(topology, sources, scaled, topology.capacity, None, equality=False), design, unit
