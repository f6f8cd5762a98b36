"""Transfers of a task graph, what they wait for, and the computing between them: data of ``topoopt.circuits``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, NotApplicable
from opticoll.instances.servers import AllReduceGroup
from opticoll.instances.training.task_graph import ALL_REDUCE, COMPUTING

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.task_graph import TaskGraph

#: Decimals of times in milliseconds: all are multiples of a nanosecond.
DECIMALS = 6
#: Largest number of tasks times transfers.
_MOST = 40_000_000


@dataclass(frozen=True, eq=False)
class TaskTransfers:
    """The transfers of a task graph, E of them, and the W pairs of which one waits for the other; times in ms.

    ``source``, ``target``, ``size`` (over one circuit), ``head`` (computing before it that waits for no transfer),
    ``tail`` (computing after it until the end), ``(E,)`` each; ``before``, ``after`` and ``lag``, the computing between
    the end of one and the start of the other, ``(W,)`` each; ``computing``, the longest chain without a transfer.
    """

    source: I64
    target: I64
    size: F64
    head: F64
    tail: F64
    before: I64
    after: I64
    lag: F64
    computing: float

    @property
    def count(self) -> int:
        """E."""
        return int(self.source.size)

    def between(self, n: int, amount: F64) -> F64:
        """Amounts ``(E,)`` from each of n servers to each, ``(n, n)``."""
        sent = np.zeros((n, n))
        np.add.at(sent, (self.source, self.target), amount)
        return sent

    @cached_property
    def into(self) -> list[I64]:
        """The pairs in which each is the one that waits."""
        return lines_of(self.after, self.count)

    @cached_property
    def out_of(self) -> list[I64]:
        """The pairs in which each is waited for."""
        return lines_of(self.before, self.count)

    @cached_property
    def wave(self) -> I64:
        """Number of transfers before each in the longest chain, ``(E,)``."""
        wave = np.zeros(self.count, dtype=np.int64)
        for i, lines in enumerate(self.into):  # a transfer waits for earlier ones
            wave[i] = wave[self.before[lines]].max(initial=-1) + 1
        return wave

    @cached_property
    def following(self) -> I64:
        """Number of transfers in the longest chain from each on, itself included, ``(E,)``."""
        chain = np.ones(self.count, dtype=np.int64)
        for i in range(self.count - 1, -1, -1):
            chain[i] += chain[self.after[self.out_of[i]]].max(initial=0)
        return chain


def lines_of(member: I64, count: int) -> list[I64]:
    """The lines of a column that hold each of ``count`` members."""
    ends = np.cumsum(np.bincount(member, minlength=count))[:-1]
    return np.split(np.argsort(member, kind="stable"), ends)


def ring_strides(text: str) -> tuple[int, ...]:
    """Strides of rings, from ``1+5``.

    Raises
    ------
    BadInput
        For anything but different positive whole numbers.
    """
    words = text.split("+")
    if not all(word.isdigit() and int(word) for word in words) or len(set(words)) < len(words):
        msg = f"topoopt.circuits: rings={text}; give different strides separated by +, such as 1 or 1+5"
        raise BadInput(msg)
    return tuple(int(word) for word in words)


def transfers_of(graph: TaskGraph, bandwidth: float, strides: tuple[int, ...]) -> TaskTransfers:
    """The transfers of a graph, all-reduces as hops of rings, and the longest chains of computing between them.

    Raises
    ------
    NotApplicable
        If the graph is too large, sends nothing, or sends something in less than a nanosecond.
    BadInput
        For a stride that gives a group no ring, or rings without an all-reduce.
    """
    hops: list[list[tuple[int, int, float]]] = [[] for _ in range(graph.tasks)]
    for task in range(graph.tasks):
        amount = float(graph.amount[task])
        if graph.kind[task] == ALL_REDUCE and amount > 0:
            members = graph.groups[graph.group[task]]
            hop = 2 * (len(members) - 1) / len(members) * amount / len(strides)
            for stride in strides:
                ring = AllReduceGroup(members, hop).ring(stride).tolist()
                hops[task] += [(s, t, hop) for s, t in zip(ring, ring[1:] + ring[:1], strict=True)]
        elif graph.kind[task] != COMPUTING and graph.kind[task] != ALL_REDUCE and amount > 0:
            hops[task] = [(int(graph.server[task]), int(graph.target[task]), amount)]
    listed = [hop for each in hops for hop in each]
    count = len(listed)
    if strides != (1,) and not (graph.kind == ALL_REDUCE).any():
        msg = "topoopt.circuits: rings are of all-reduces, of which the task graph has none; omit rings"
        raise BadInput(msg)
    if not count or graph.tasks * count > _MOST:
        msg = f"topoopt.circuits: {graph.tasks} tasks with {count} transfers; use a graph with some, and at most "
        raise NotApplicable(msg + f"{_MOST:,} tasks times transfers")
    waits: list[list[int]] = [[] for _ in range(graph.tasks)]
    for first, then in graph.waits.tolist():
        waits[then].append(first)
    last = np.full(graph.servers + 1, -1)
    # the longest chain of computing from the end of every transfer, and from the start, to the end of every task
    ends = np.full((graph.tasks, count + 1), -np.inf)
    begin, place = np.full((count, count + 1), -np.inf), 0
    for task in range(graph.tasks):
        computes, server = graph.kind[task] == COMPUTING, int(graph.server[task])
        if computes and server >= 0 and last[server] >= 0:
            waits[task].append(int(last[server]))
        row = ends[waits[task]].max(axis=0) if waits[task] else np.append(np.full(count, -np.inf), 0.0)
        if computes:
            ends[task] = row + round(1e3 * float(graph.amount[task]), DECIMALS)
            last[server if server >= 0 else graph.servers] = task if server >= 0 else -1
        elif hops[task]:
            own = np.arange(place, place + len(hops[task]))
            begin[own], ends[task, own], place = row, 0.0, place + len(own)
        else:
            ends[task] = row
    final = ends.max(axis=0)
    after, before = np.nonzero(np.isfinite(begin[:, :-1]))
    source, target = (np.array([hop[i] for hop in listed], dtype=np.int64) for i in (0, 1))
    size = np.round(1e3 * np.array([hop[2] for hop in listed]) / bandwidth, DECIMALS)
    if (short := np.flatnonzero(size <= 0)).size:
        s, t, amount = listed[short[0]]
        msg = f"topoopt.circuits: {amount:g} bytes from server {s} to {t} take less than a nanosecond; leave them "
        raise NotApplicable(msg + "out, or send them with others")
    chains = (np.round(np.maximum(each, 0.0), DECIMALS) for each in (begin[:, -1], final[:-1], begin[after, before]))
    head, tail, lag = chains
    return TaskTransfers(
        source, target, size, head, tail, before, after, lag, max(round(float(final[-1]), DECIMALS), 0.0)
    )
