"""Method ``ocs-reconfig``: TopoOpt's greedy circuits for a fabric that is reconfigured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import default_rings, ring_demand
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.topology_finder import HALF, connected, topology_finder
from opticoll.solvers.methods.topoopt.utility_circuits import geometric, greedy_circuits

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.circuit_design import CircuitDesign
    from opticoll.formulations.topoopt.topology import Wiring
    from opticoll.instances.servers import ServerPool
    from opticoll.solvers.methods.method import Context


def ocs_reconfig(pool: ServerPool, *, discount: float = HALF, paths: int = 1, trees: bool = False) -> CircuitDesign:
    """OCS-reconfig's design (Algorithm 5): circuits by demand, default rings, shortest paths.

    Parameters
    ----------
    pool
        Servers and their traffic, all of which counts as unsatisfied.
    discount
        Factor on a pair's demand after each circuit (one half in the paper), above 0 and at most 1.
    paths
        Number of shortest paths that a forwarded demand is split over.
    trees
        All-reduce over the default pair of double binary trees of every group.

    Raises
    ------
    NotApplicable
        For a discount out of range.
    """
    if not 0 < discount <= 1:
        refuse("ocs-reconfig", f"discount={discount}; use a factor above 0 and at most 1", NotApplicable)
    rings = default_rings(pool, trees=trees)
    traffic = ring_demand(pool, rings)
    circuits = greedy_circuits(traffic, pool.degree, geometric(pool.degree, discount))
    linked = connected(pool.n, circuits, pool.degree, traffic)
    return routed_design(pool, linked, rings, paths=paths)


def starting_design(data: Wiring) -> CircuitDesign:
    """The best design of the heuristics and a directed ring that keeps to the limits of ``topoopt.topology``."""
    pool, servers = data.pool, np.arange(data.n)
    circuits = np.stack([servers, (servers + 1) % data.n], axis=1)
    designs = (topology_finder(pool), ocs_reconfig(pool), routed_design(pool, circuits, default_rings(pool)))
    allowed = [design for design in designs if max(data.residuals(design.values()).values()) <= 1e-6]
    return min(allowed, key=data.value_of)


def run_ocs_reconfig(context: Context) -> Answer:
    """OCS-reconfig: circuits where the demand is highest, with every group on its default ring.

    Source  TopoOpt, Algorithm 5

    The demand that remains of a pair falls by ``discount`` with each of its circuits. The network is connected at the
    end (:func:`connected`).
    """
    settings = context.parameters
    design = ocs_reconfig(
        context.instance,
        discount=float(settings["discount"]),
        paths=int(settings["split"]),
        trees=context.data.trees,
    )
    return Answer.heuristic(design.values(), "highest demand first")


METHOD = Method(
    name="ocs-reconfig",
    title="OCS-reconfig (Algorithm 5)",
    summary="repeatedly gives the highest demand a circuit and halves that demand; connected by exchanges",
    serves=("topoopt.topology",),
    parameters=(
        Parameter("discount", float, default=0.5, help="factor on a demand after each of its circuits"),
        Parameter("split", int, default=1, help="number of shortest paths that forwarded traffic is split over"),
    ),
    run=run_ocs_reconfig,
    construct=ocs_reconfig,
)
