"""TopoOpt's alternating optimisation as a method of the strategy plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Parameter
from instances.errors import BadInput
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from solvers.methods.base import Context
    from solvers.wiring.alternation import Planned


def run(context: Context) -> Answer:
    """Alternate; the iteration time over the circuits found is a metric, beside the objective of the formulation."""
    from solvers.methods.strategy_front import front
    from solvers.wiring.alternation import alternate

    given, data = context.parameters, context.data
    rounds, steps = int(given["rounds"]), int(given["steps"])
    if rounds < 1 or steps < 1:
        msg = f"alternating: rounds={rounds}, steps={steps}; take at least one of each"
        raise BadInput(msg)

    def answer(best: Planned, made: int) -> Answer:
        least = data.time(best.x.astype(float))
        return Answer(
            Termination.TOLERANCE,
            values={"x": best.x.astype(np.float64)},
            solver={"name": "alternating", "version": None, "algorithm": "MCMC and TopologyFinder", "options": {}},
            metrics={
                "iteration_time": best.time, "over_any_topology": best.time / least if least > 0 else None,
                "rounds_made": made, "max_load": best.design.max_load, "bandwidth_tax": best.design.bandwidth_tax,
            },
            message="a heuristic: it stops without trying to prove anything",
        )  # fmt: skip

    def tick(best: Planned) -> None:
        context.save(answer(best, 0), data.time(best.x.astype(float)))
        context.remaining()

    start = front(data)[2][0] if given["start"] == "ideal" else None
    return answer(*alternate(data, rounds=rounds, steps=steps, seed=context.task.seed, tick=tick, start=start))


METHOD = Method(
    name="alternating",
    title="Alternating optimisation (section 4.1)",
    summary="MCMC over strategies for fixed circuits, TopologyFinder for a fixed strategy, in turn",
    applies=lambda formulation: formulation.name == "topoopt.strategy",
    parameters=(
        Parameter("rounds", int, default=10, help="most rounds of both planes, k in the paper"),
        Parameter("steps", int, default=2000, help="moves of the chain in one round"),
        Parameter("start", str, default="replicated", help="first strategy: replicated, or the best over any topology",
                  choices=("replicated", "ideal")),
    ),
    run=run,
)  # fmt: skip
