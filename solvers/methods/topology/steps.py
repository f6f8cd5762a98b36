"""Method ``step-choice``: the topology of every step by dynamic programming, and flows by linear programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.topology.pattern_times import PatternFlow, differences
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.topology.steps import TopologySteps
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


def step_flow(capacity: F64, demand: F64) -> PatternFlow | None:
    """Flow of least time for a demand within capacities, ``(n, n)`` each, and lengths that prove it.

    Minimize T, with flows by source, or of node 0 alone where a group makes all nodes alike. The lengths are the duals
    of the capacities. None where nothing serves the demand.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n = len(capacity)
    tail, head = np.nonzero(capacity)
    table = differences(capacity, demand)
    sources = np.arange(1) if table is not None else np.flatnonzero(demand.any(axis=1))
    m, S = len(tail), len(sources)
    which, arc = np.repeat(np.arange(S), m), np.tile(np.arange(m), S)
    inward = head[arc] != sources[which]
    which, arc = which[inward], arc[inward]
    F = len(arc)
    out = tail[arc] != sources[which]
    place = np.arange(F)
    # what other nodes receive less what they send is at least their demand
    rows = np.concatenate([which * n + head[arc], (which * n + tail[arc])[out]])
    columns = np.concatenate([place, place[out]])
    signs = np.concatenate([-np.ones(F), np.ones(int(out.sum()))])
    others = np.flatnonzero((np.arange(n)[None, :] != sources[:, None]).ravel())
    stock = sp.csr_array((signs, (rows, columns)), shape=(S * n, F + 1))[others]
    group = np.arange(m) if table is None else np.unique(table[tail, head], return_inverse=True)[1]
    groups = int(group.max()) + 1
    room = np.zeros(groups)
    room[group] = capacity[tail, head]
    load = sp.csr_array(
        (
            np.concatenate([np.ones(F), -room]),
            (np.concatenate([group[arc], np.arange(groups)]), np.concatenate([place, np.full(groups, F)])),
        ),
        shape=(groups, F + 1),
    )
    right = np.concatenate([-demand[sources].ravel()[others], np.zeros(groups)])
    cost = np.append(np.zeros(F), 1.0)
    solved = linprog(cost, A_ub=sp.vstack([stock, load]), b_ub=right, method="highs")
    if solved.status != 0:
        return None
    flows = np.zeros((1 if table is not None else n, n, n))
    flows[sources[which] if table is None else which, tail[arc], head[arc]] = solved.x[:F]
    lengths = np.zeros((n, n))
    lengths[tail, head] = np.maximum(-solved.ineqlin.marginals[len(others) :], 0.0)[group]
    return PatternFlow(flows, lengths)


def step_flows(pairs: Sequence[tuple[F64, F64]]) -> list[PatternFlow | None]:
    """Flows of many steps, see :func:`step_flow`."""
    return [step_flow(capacity, demand) for capacity, demand in pairs]


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
        solver={"algorithm": "dynamic programming"},
    )


STEP_CHOICE = Method(
    name="step-choice",
    title="Dynamic programming over steps and topologies",
    summary="the topology of every step of a collective by dynamic programming; also routes the steps",
    serves=("topology.steps",),
    # times drawn at random: 63 steps and 64 topologies 8,064 variables in 0.2 s, 100 and 100 20,000 in 0.7 s.
    takes_over=(Beyond("topology.steps", 20_000),),
    run=run,
    construct=step_flows,
)


METHODS = (STEP_CHOICE,)
