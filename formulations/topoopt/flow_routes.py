"""Routes out of flows: a design from circuits, rings and what every source sends over each circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.path_stripping import strip_paths
from formulations.alltoall.single_source import unit_flow
from formulations.topoopt.design import TopologyDesign, build_design, ring_demand
from instances.errors import BadInput
from instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from formulations.topoopt.design import Ring
    from instances.servers import ServerPool

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]


def routed_by_flow(
    pool: ServerPool, circuits: I64, rings: Sequence[Ring], sources: I64, flow: F64
) -> TopologyDesign | None:
    """The design whose routes share flows as these do, every byte of its demand served exactly.

    Parameters
    ----------
    pool, circuits, rings
        As for :func:`formulations.topoopt.design.build_design`.
    sources
        Servers that send, ``(K,)``.
    flow
        What left each of them over every circuit, in any unit, ``(m, K)``; need not be exact.

    Returns
    -------
    None if the flow does not reach every server.
    """
    topology = Topology(pool.n, circuits[:, 0], circuits[:, 1])
    demand = ring_demand(pool, rings)
    unit = float(demand.max(initial=0.0)) or 1.0
    wanted = np.ascontiguousarray(demand[sources].T) / unit
    exact = unit_flow(topology, sources, wanted, flow)
    if exact is None or not np.isfinite(exact).all():
        return None
    routes: list[tuple[list[int], float]] = []
    for k, source in enumerate(sources.tolist()):
        targets = np.flatnonzero(wanted[:, k] > 0)
        try:
            found = strip_paths(topology, source, exact[:, k], targets, wanted[targets, k])
        except BadInput:
            return None
        routes += [(path.arcs, path.amount * unit) for paths in found for path in paths]
    return build_design(pool, circuits, rings, routes)
