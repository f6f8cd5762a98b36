"""TopologyFinder as a method of the topology design: rings for all-reduce, matchings for the rest, few hops.

OCS-reconfig as a method of the topology design: circuits where the demand is highest, rings as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.finder import Forwarding
    from opticoll.formulations.topoopt.server_circuits import Matching
    from opticoll.solvers.methods.method import Context


def run_topology_finder(context: Context) -> Answer:
    """Algorithm 1 end to end."""
    from opticoll.formulations.topoopt.finder import topology_finder

    given = context.parameters
    design = topology_finder(
        context.instance,
        primes=bool(given["primes"]),
        matching=cast("Matching", given["matching"]),
        paths=int(given["split"]),
        forwarding=cast("Forwarding", given["forwarding"]),
    )
    return Answer(
        Termination.TOLERANCE,
        values=design.values(),
        solver={
            "name": "topology-finder",
            "version": None,
            "algorithm": f"{given['matching']} matchings",
            "options": {},
        },
        message="a heuristic: it stops without trying to prove anything",
    )


TOPOLOGY_FINDER = Method(
    name="topology-finder",
    title="TopologyFinder (Algorithm 1)",
    summary="TotientPerms rings for all-reduce, matchings for point-to-point traffic, coin change or shortest paths",
    applies=lambda formulation: formulation.name == "topoopt.topology",
    parameters=(
        Parameter("primes", bool, default=False, help="prime ring steps (and +1) alone"),
        Parameter("matching", str, default="blossom", help="of pairs, or of senders with receivers",
                  choices=("blossom", "assignment")),
        Parameter("split", int, default=1, help="shortest paths that forwarded traffic is split over"),
        Parameter("forwarding", str, default="shortest", help="routes of what has no circuit",
                  choices=("shortest", "coin-change")),
    ),
    run=run_topology_finder,
)  # fmt: skip


def run_ocs_reconfig(context: Context) -> Answer:
    """Algorithm 5 on the whole demand."""
    from opticoll.formulations.topoopt.finder import ocs_reconfig

    given = context.parameters
    design = ocs_reconfig(context.instance, discount=float(given["discount"]), paths=int(given["split"]))
    return Answer(
        Termination.TOLERANCE,
        values=design.values(),
        solver={"name": "ocs-reconfig", "version": None, "algorithm": "highest demand first", "options": {}},
        message="a heuristic: it stops without trying to prove anything",
    )


OCS_RECONFIG = Method(
    name="ocs-reconfig",
    title="OCS-reconfig (Algorithm 5)",
    summary="a circuit for the highest demand left again and again, its worth halved each time; connected by exchange",
    applies=lambda formulation: formulation.name == "topoopt.topology",
    parameters=(
        Parameter("discount", float, default=0.5, help="what is left of a demand once it has a circuit"),
        Parameter("split", int, default=1, help="shortest paths that forwarded traffic is split over"),
    ),
    run=run_ocs_reconfig,
)


METHODS = (
    TOPOLOGY_FINDER,
    OCS_RECONFIG,
)
