"""Stages of a task graph: computing of all servers, then transfers that all of them wait for.

A task graph (:mod:`opticoll.instances.training.task_graph`) lets every server run ahead of the others. Where circuits
are set for all servers at a time, transfers are sent in turns. *Stage* b = 0 .. B-1 is computing, then turn b of the
transfers:

    turn      of a transfer: the most transfers in a chain of tasks before it
    stage     of a computing task: the last one that delays no transfer, the turn of the first transfer or the stage of
              the first computing that waits for it
    begin     of a computing task in its stage: servers run their tasks of a stage in the order of their numbers, each
              as soon as its predecessors of the same stage have ended
    ready     of an all-reduce: the stage and the time in it at which the last of its predecessors has ended

All servers begin a stage together, when the transfers of the stage before have arrived. So every schedule of the stages
is one of the graph; one of the graph may be shorter, since servers could begin at different times, and computing that
needs no transfer could run beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.training.task_graph import ALL_REDUCE, COMPUTING, TRANSFER

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.task_graph import TaskGraph


@dataclass(frozen=True, eq=False)
class IterationStages:
    """Stages of a task graph (see the module docstring).

    Parameters
    ----------
    graph
        Tasks.
    stage
        Stage of every computing task, turn of every transfer, stage in which an all-reduce is ready, ``(T,)``.
    begin
        Time from the beginning of its stage to the beginning of a computing task, or to that at which an all-reduce is
        ready; 0 for transfers [s], ``(T,)``.
    computing
        Time of the computing of every stage [s], ``(B,)``.
    """

    graph: TaskGraph
    stage: I64
    begin: F64
    computing: F64

    @property
    def count(self) -> int:
        """B."""
        return int(self.computing.size)

    def turn(self, stage: int) -> I64:
        """Numbers of the transfers at the end of a stage."""
        return np.flatnonzero((self.graph.kind == TRANSFER) & (self.stage == stage))


def _turns(graph: TaskGraph, first: list[list[int]]) -> I64:
    """The most transfers in a chain before every task."""
    turn, moved = [0] * graph.tasks, (graph.kind == TRANSFER).tolist()
    for task, before in enumerate(first):
        turn[task] = max((turn[one] + moved[one] for one in before), default=0)
    return np.array(turn, dtype=np.int64)


def _latest(graph: TaskGraph, first: list[list[int]], turn: I64) -> I64:
    """The last stage of every computing task that delays no transfer; the turn of every other task."""
    latest: list[int] = np.where(graph.kind == COMPUTING, int(turn.max(initial=0)), turn).tolist()
    kind = graph.kind.tolist()
    for task in range(graph.tasks - 1, -1, -1):
        for one in first[task] if kind[task] != ALL_REDUCE else ():
            if kind[one] == COMPUTING:
                latest[one] = min(latest[one], latest[task])
    return np.array(latest, dtype=np.int64)


def iteration_stages(graph: TaskGraph) -> IterationStages:
    """Divide a task graph into stages.

    Raises
    ------
    BadInput
        If a task waits for an all-reduce: those have no place among the stages.
    """
    first: list[list[int]] = [[] for _ in range(graph.tasks)]
    for one, task in graph.waits.tolist():
        first[task].append(one)
    late = np.flatnonzero(graph.kind[graph.waits[:, 0]] == ALL_REDUCE) if graph.waits.size else np.zeros(0, dtype=int)
    if late.size:
        one, task = graph.waits[late[0]].tolist()
        msg = f"iteration: task {task} waits for all-reduce {one}; on circuits in rounds, all-reduces end an iteration"
        raise BadInput(msg)
    turn = _turns(graph, first)
    stage = _latest(graph, first, turn)
    kind, amount, server = graph.kind.tolist(), graph.amount.tolist(), graph.server.tolist()
    count = int(stage.max(initial=0)) + 1
    begin, end = [0.0] * graph.tasks, [0.0] * graph.tasks
    of, length = stage.tolist(), [0.0] * count
    free = np.zeros((count, graph.servers)).tolist()
    for task, before in enumerate(first):
        if kind[task] == TRANSFER:
            continue
        if kind[task] == ALL_REDUCE:
            of[task] = max((of[one] + (kind[one] == TRANSFER) for one in before), default=0)
        here = of[task]
        ready = max((end[one] for one in before if of[one] == here and kind[one] == COMPUTING), default=0.0)
        if kind[task] == ALL_REDUCE:
            begin[task] = ready
            continue
        begin[task] = ready if server[task] < 0 else max(ready, free[here][server[task]])
        end[task] = begin[task] + amount[task]
        length[here] = max(length[here], end[task])
        if server[task] >= 0:
            free[here][server[task]] = end[task]
    beyond = max(of, default=0) + 1 - count  # all-reduces that wait for the last transfers
    return IterationStages(
        graph, np.array(of, dtype=np.int64), np.array(begin), np.array([*length, *[0.0] * beyond], dtype=np.float64)
    )
