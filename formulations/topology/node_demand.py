"""The demand between the nodes of a server pool, as the parameter ``demand`` states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.model import of_kind
from opticoll.instances import parse
from opticoll.instances.demands import read_demand
from opticoll.instances.servers import ServerPool
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from opticoll.instances.topology import F64
    from opticoll.types import Settings


def pool_of_nodes(
    instance: object, name: str, why: str = "takes its demand from demand=, not from the servers"
) -> ServerPool:
    """A server pool without traffic of its own; ``why`` it must have none.

    Raises
    ------
    NotApplicable
        For anything else.
    """
    pool = of_kind(ServerPool, instance, name, "nodes with ports, such as servers:n=8,degree=3,traffic=alltoall")
    between = pool.point_to_point[~np.eye(pool.n, dtype=bool)]
    if pool.groups or between.min() <= 0 or between.min() != between.max():
        refuse(name, f"{why}; write traffic=alltoall", NotApplicable)
    return pool


def stated_demand(nodes: int | Topology, parameters: Settings, name: str) -> F64:
    """The demand of n nodes [shards], ``(n, n)``; ``nodes`` is n, or a topology whose labels a table may use.

    Raises
    ------
    NotApplicable
        For a demand that needs the distances of a topology.
    BadInput
        For a demand that cannot be read.
    """
    stated = parameters["demand"]
    if str(stated).startswith("longest"):
        refuse(name, "demand=longest-matching needs the distances of a topology; use another demand", NotApplicable)
    labelled = parse(f"ring:{nodes}") if isinstance(nodes, int) else nodes
    assert isinstance(labelled, Topology)
    return read_demand(stated, labelled, name)


def amount_unit(demand: F64) -> float:
    """The amount that violations are relative to: the largest demand, at most 100,000 times the smallest positive one.

    A tolerance of 1e-6 of it is then a tenth of any demand at most: a pair that gets nothing is never within it.
    """
    return float(min(demand.max(), 1e5 * demand[demand > 0].min()))


def refuse_racks(name: str, n: int, rack: int, cables: int, uplinks: int) -> None:
    """Refuse limits of racks that are out of range or without racks.

    Raises
    ------
    NotApplicable
        If they are.
    """
    if min(rack, cables, uplinks) < 0 or rack >= n:
        msg = f"{name}: racks of {rack} of {n} nodes, {cables} cables and {uplinks} uplinks are inconsistent; "
        raise NotApplicable(msg + "use racks of 1 to n-1 nodes and limits of at least 1")
    if bool(rack) != bool(cables or uplinks):
        msg = f"{name}: racks need a limit on cables, and vice versa; give rack= with cables=, uplinks= or both"
        raise NotApplicable(msg)
