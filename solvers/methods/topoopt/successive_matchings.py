"""Method ``successive-matchings``: TopologyFinder's circuits for point-to-point traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.greedy_circuits import counted
from opticoll.solvers.methods.topoopt.topology_finder import MATCHINGS, matched_circuits
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.utility import CircuitUtility
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.methods.topoopt.topology_finder import Matching


def run(context: Context) -> Answer:
    """Successive maximum-weight matchings, as in TopologyFinder, for the discounts of the model.

    Source  TopoOpt, Algorithm 1, lines 11-16

    Each matching has the greatest sum of demands times the gain of the next circuit of each pair. ``blossom`` matches
    servers, with a circuit each way; ``assignment`` matches senders with receivers.
    """
    data: CircuitUtility = context.data
    ports = np.full(data.n, data.degree)
    kind = cast("Matching", context.parameters["matching"])
    circuits = matched_circuits(data.demand, ports, ports, kind, gains=data.gains)
    return Answer(
        Termination.TOLERANCE,
        values=data.filled(counted(data, circuits)),
        solver={"name": "successive-matchings", "version": None, "algorithm": f"{kind} matchings", "options": {}},
        message="a heuristic: it proves no bound",
    )


METHOD = Method(
    name="successive-matchings",
    title="Successive matchings (Algorithm 1)",
    summary="one maximum-weight matching after the other, of servers or of senders with receivers",
    serves=("topoopt.utility",),
    parameters=(
        Parameter(
            "matching",
            str,
            default="blossom",
            help="matching of pairs, or of senders with receivers",
            choices=MATCHINGS,
        ),
    ),
    run=run,
)
