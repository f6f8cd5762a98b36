"""Method ``step-choice``: the topology of every step by dynamic programming."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.topology.step_flows import step_flows
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topology.steps import TopologySteps
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


def best_choice(time: F64, delay: float) -> tuple[float, I64]:
    """Least time of all steps and changes, and the topology of every step, for times ``(m, |Q|)``.

    Before a step the value of a topology is the least of its own so far and of any other's plus the delay.
    """
    m, Q = time.shape
    value = np.where(np.arange(Q) == 0, 0.0, np.inf)
    came = np.zeros((m, Q), dtype=np.int64)
    for i in range(m):
        best = int(value.argmin())
        moved = value[best] + delay < value
        came[i] = np.where(moved, best, np.arange(Q))
        value = np.where(moved, value[best] + delay, value) + time[i]
    chosen = np.zeros(m, dtype=np.int64)
    last = int(value.argmin())
    total = float(value[last])
    for i in range(m - 1, -1, -1):
        chosen[i] = last
        last = int(came[i, last])
    return total, chosen


def run(context: Context) -> Answer:
    """Dynamic programming over steps and topologies: m |Q| operations.

    The value of a topology before a step is the least of staying on it and of a change from the best other one. The
    bound is the same recursion over the times that the duals of every step's flow prove, rounded down.
    """
    data: TopologySteps = context.data
    _, chosen = best_choice(data.time + data.startup, data.delay)
    bound, _ = best_choice(data.least + data.startup, data.delay)
    return Answer(
        Termination.OPTIMAL,
        values={"topology": chosen.astype(float)},
        bound=float(rounding.down(bound, 3 * len(data.steps))),
        bound_source="dynamic programming over bounds from the duals of every step",
        solver={"name": "step-choice", "version": None, "algorithm": "dynamic programming", "options": {}},
    )


METHOD = Method(
    name="step-choice",
    title="Dynamic programming over steps and topologies",
    summary="the topology of every step of a collective by dynamic programming; also routes the steps",
    serves=("topology.steps",),
    # times drawn at random: 63 steps and 64 topologies 8,064 variables in 0.2 s, 100 and 100 20,000 in 0.7 s.
    takes_over=(Beyond("topology.steps", 20_000, 40_000),),
    run=run,
    construct=step_flows,
)
