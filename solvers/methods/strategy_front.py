"""The exact method of the strategy plane: every combination of time and memory that no other beats, kind by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.outward import down
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.topoopt.strategy import Plane
    from solvers.methods.base import Context

    F64 = NDArray[np.float64]


def _splits(parts: int, ways: int) -> NDArray[np.int64]:
    """Every way to split ``parts`` equal parts among ``ways``, ``(., ways)``."""
    if ways == 1:
        return np.array([[parts]])
    return np.concatenate([
        np.column_stack([np.full(len(rest), here), rest])
        for here in range(parts + 1) for rest in [_splits(parts - here, ways - 1)]
    ])  # fmt: skip


def _kept(time: F64, memory: F64) -> NDArray[np.int64]:
    """Places that no other beats in both, by rising time."""
    order = np.lexsort((memory, time))
    best = np.minimum.accumulate(memory[order])
    first = np.concatenate([[True], memory[order][1:] < best[:-1]])
    return np.asarray(order[first], dtype=np.int64)


def front(data: Plane) -> tuple[F64, F64, list[NDArray[np.int64]]]:
    """Seconds and bytes of every strategy that no other beats in both, by rising time, and their parts.

    Returns
    -------
    Times and memories, ``(S,)``, and strategies, ``(K, C)`` each.
    """
    time, memory = np.array([data.computing]), np.zeros(1)
    chosen: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    splits: list[NDArray[np.int64]] = []
    for k, parts in enumerate(data.count.tolist()):
        allowed = np.flatnonzero(data.allowed[k])
        own = _splits(parts, allowed.size)
        own_time, own_memory = own @ data.cost[k, allowed], own @ data.held[k, allowed]
        good = _kept(own_time, own_memory)
        splits.append(own[good])
        grid_time = (time[:, None] + own_time[good][None, :]).ravel()
        grid_memory = (memory[:, None] + own_memory[good][None, :]).ravel()
        fits = grid_memory <= (data.memory * (1 + 1e-12) if data.memory > 0 else np.inf)
        if not fits.any():
            return np.zeros(0), np.zeros(0), []
        keep = np.flatnonzero(fits)[_kept(grid_time[fits], grid_memory[fits])]
        chosen.append((keep // good.size, keep % good.size))
        time, memory = grid_time[keep], grid_memory[keep]
    found = []
    for place in range(time.size):
        x, at = np.zeros(data.allowed.shape, dtype=np.int64), place
        for k in range(len(data.kinds) - 1, -1, -1):
            before, own_at = chosen[k]
            x[k, data.allowed[k]] = splits[k][own_at[at]]
            at = int(before[at])
        found.append(x)
    return time, memory, found


def run(context: Context) -> Answer:
    """The fastest of the front."""
    time, _, strategies = front(context.data)
    if not time.size:
        return Answer(
            Termination.INFEASIBLE, infeasible_by="dynamic program over time and memory",
            message="no combination of ways fits the memory",
        )  # fmt: skip
    return Answer(
        Termination.OPTIMAL,
        values={"x": strategies[0].astype(np.float64)},
        bound=float(down(time[0], 2 * int(context.data.count.sum()) + 4 * len(context.data.kinds) + 4)),
        bound_source="dynamic program over time and memory",
        solver={"name": "strategy-front", "version": None, "algorithm": "dynamic program", "options": {}},
        metrics={"front": len(strategies)},
    )


METHOD = Method(
    name="strategy-front",
    title="Front of time and memory",
    summary="all strategies that no other beats in both time and memory, by dynamic programming",
    applies=lambda formulation: formulation.name == "topoopt.strategy",
    run=run,
)
