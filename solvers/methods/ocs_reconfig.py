"""OCS-reconfig as a method of the topology design: circuits where the demand is highest, rings as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """Algorithm 5 on the whole demand."""
    from formulations.topoopt.topology_finder import ocs_reconfig

    given = context.parameters
    design = ocs_reconfig(context.instance, discount=float(given["discount"]), paths=int(given["split"]))
    return Answer(
        Termination.TOLERANCE,
        values=design.values(),
        solver={"name": "ocs-reconfig", "version": None, "algorithm": "highest demand first", "options": {}},
        message="a heuristic: it stops without trying to prove anything",
    )


METHOD = Method(
    name="ocs-reconfig",
    title="OCS-reconfig (Algorithm 5)",
    summary="a circuit for the highest demand left again and again, its worth halved each time; connected by exchange",
    applies=lambda formulation: formulation.name == "topoopt.topology",
    parameters=(
        Parameter("discount", float, default=0.5, help="what is left of a demand once it has a circuit"),
        Parameter("split", int, default=1, help="shortest paths that forwarded traffic is split over"),
    ),
    run=run,
)
