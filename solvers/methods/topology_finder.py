"""TopologyFinder as a method of the topology design: rings for all-reduce, matchings for the rest, few hops."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from formulations.topoopt.circuits import Matching
    from formulations.topoopt.topology_finder import Forwarding
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Algorithm 1 end to end."""
    from formulations.topoopt.topology_finder import topology_finder

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


METHOD = Method(
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
    run=run,
)  # fmt: skip
