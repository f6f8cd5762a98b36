"""Method ``strategy-front``: the exact front of time and memory over parallelization strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.rounding import down
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.strategy import Plane
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


def _splits(parts: int, ways: int) -> I64:
    """All splits of ``parts`` equal parts among ``ways``, ``(., ways)``."""
    if ways == 1:
        return np.array([[parts]])
    return np.concatenate(
        [
            np.column_stack([np.full(len(rest), first), rest])
            for first in range(parts + 1)
            for rest in [_splits(parts - first, ways - 1)]
        ]
    )


def _kept(time: F64, memory: F64) -> I64:
    """Indices of the Pareto-optimal entries, by increasing time."""
    order = np.lexsort((memory, time))
    best = np.minimum.accumulate(memory[order])
    first = np.concatenate([[True], memory[order][1:] < best[:-1]])
    return np.asarray(order[first], dtype=np.int64)


def front(data: Plane) -> tuple[F64, F64, list[I64]]:
    """Time [s] and memory [bytes] of every Pareto-optimal strategy, by increasing time, and its parts.

    Returns
    -------
    Times and memories, ``(S,)``, and strategies, ``(K, C)`` each.
    """
    time, memory = np.array([data.computing]), np.zeros(1)
    chosen: list[tuple[I64, I64]] = []
    splits: list[I64] = []
    for k, parts in enumerate(data.count.tolist()):
        allowed = np.flatnonzero(data.allowed[k])
        own = _splits(parts, allowed.size)
        own_time, own_memory = own @ data.cost[k, allowed], own @ data.held[k, allowed]
        efficient = _kept(own_time, own_memory)
        splits.append(own[efficient])
        grid_time = (time[:, None] + own_time[efficient][None, :]).ravel()
        grid_memory = (memory[:, None] + own_memory[efficient][None, :]).ravel()
        fits = grid_memory <= (data.memory * (1 + 1e-12) if data.memory > 0 else np.inf)
        if not fits.any():
            return np.zeros(0), np.zeros(0), []
        keep = np.flatnonzero(fits)[_kept(grid_time[fits], grid_memory[fits])]
        chosen.append((keep // efficient.size, keep % efficient.size))
        time, memory = grid_time[keep], grid_memory[keep]
    strategies = []
    for place in range(time.size):
        x, at = np.zeros(data.allowed.shape, dtype=np.int64), place
        for k in range(len(data.kinds) - 1, -1, -1):
            before, own_at = chosen[k]
            x[k, data.allowed[k]] = splits[k][own_at[at]]
            at = int(before[at])
        strategies.append(x)
    return time, memory, strategies


def run_strategy_front(context: Context) -> Answer:
    """The exact front of time and memory of parallelization strategies.

    Source  TopoOpt, section 4.1

    A dynamic program over kinds keeps every Pareto-optimal combination of time and memory.
    """
    time, _, strategies = front(context.data)
    if not time.size:
        return Answer(
            Termination.INFEASIBLE,
            infeasible_by="dynamic program over time and memory",
            message="no combination of ways fits the memory",
        )
    return Answer(
        Termination.OPTIMAL,
        values={"x": strategies[0].astype(np.float64)},
        bound=float(down(time[0], 2 * int(context.data.count.sum()) + 4 * len(context.data.kinds) + 4)),
        bound_source="dynamic program over time and memory",
        solver={"algorithm": "dynamic program"},
        metrics={"front": len(strategies)},
    )


METHOD = Method(
    name="strategy-front",
    title="Front of time and memory",
    summary="all Pareto-optimal strategies in time and memory, by dynamic programming",
    serves=("topoopt.strategy",),
    # n=128, VGG: 32 variables in 0.5 s.
    takes_over=(Beyond("topoopt.strategy", 1_000),),
    run=run_strategy_front,
)
