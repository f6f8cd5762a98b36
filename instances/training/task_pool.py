"""Server pools with the task graph of an iteration, and task graphs of mixtures of experts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import refuse
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.instances.training.task_graph import TaskGraphDraft

if TYPE_CHECKING:
    from opticoll.instances.training.task_graph import TaskGraph
    from opticoll.types import Settings

#: Hidden size, experts of a token, and bytes of a number sent to experts and back: DeepSeek-V3 (arXiv 2412.19437,
#: section 3.2.2 and 3.3.2).
_HIDDEN, _EXPERTS, _DISPATCH_BYTES, _COMBINE_BYTES = 7168, 8, 1, 2
#: Computing of a layer on a server, attention and experts [s]: round numbers, not measured.
_ATTENTION, _EXPERT = 2e-3, 1e-3


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TaskPool(ServerPool):
    """A pool whose traffic is that of a task graph: transfers, and a group for all all-reduces of the same servers.

    Parameters
    ----------
    graph
        Tasks of one iteration.
    degree
        Optical interfaces of each server.
    ring_factor
        Bytes over a hop of a ring per byte of the buffer; None for 2 (k - 1) / k among k servers.
    spec, parameters
        As for every instance.

    Raises
    ------
    BadInput
        For a graph that sends nothing, or as for :class:`~opticoll.instances.servers.ServerPool`.
    """

    graph: TaskGraph  # type: ignore[misc]  # after fields with defaults, but there is an __init__

    def __init__(
        self,
        graph: TaskGraph,
        degree: int,
        *,
        ring_factor: float | None = None,
        spec: str = "custom",
        parameters: Settings | tuple[tuple[str, Any], ...] = (),
    ) -> None:
        groups = [
            AllReduceGroup(members, (2 * (len(members) - 1) / len(members) if ring_factor is None else ring_factor) * b)
            for members, b in graph.reduced.items()
            if b > 0
        ]
        super().__init__(graph.servers, degree, graph.transferred, groups=groups, spec=spec, parameters=parameters)
        self._put(graph=graph)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the pool and of the tasks and what they wait for."""
        graph, digest = self.graph, hashlib.sha256(b"opticoll-tasks-1")
        digest.update(super().hash.encode())
        for column in (graph.kind, graph.server, graph.target, graph.group, graph.waits.ravel()):
            digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(graph.amount, dtype="<f8").tobytes())
        for members in graph.groups:
            digest.update(np.array([len(members), *members], dtype="<i8").tobytes())
        return digest.hexdigest()


def expert_iteration(servers: int, layers: int, tokens: int, seed: int) -> TaskGraph:
    """Forward pass of a mixture of experts: in every layer attention, dispatch, experts, combine.

    Every server has ``tokens`` tokens and an equal part of the experts. It sends each token to 8 experts and gets their
    results back, 7168 bytes there (FP8) and 14336 back (BF16), as in DeepSeek-V3; experts compute once all tokens have
    arrived, and the next layer begins once all results have. Attention takes 2 ms, and the experts of a server 1 ms by
    even loads, in proportion to its tokens otherwise. With a ``seed`` above 0 the experts of a server get a share of
    all tokens that is uniform on [1/2, 3/2) before scaling.
    """
    random = np.random.default_rng(seed)
    draft = TaskGraphDraft(servers)
    waits: list[list[int]] = [[] for _ in range(servers)]
    for _ in range(layers):
        share = random.uniform(0.5, 1.5, servers) if seed else np.ones(servers)
        sent = np.rint(tokens * _EXPERTS * share / share.sum())  # from every server to each
        ready = [draft.compute(s, _ATTENTION, waits[s]) for s in range(servers)]
        sizes = [(sent * _HIDDEN * width).tolist() for width in (_DISPATCH_BYTES, _COMBINE_BYTES)]
        others = [[s for s in range(servers) if s != e] for e in range(servers)]
        there = [[draft.transfer(s, e, sizes[0][e], [ready[s]]) for s in others[e]] for e in range(servers)]
        ends = [
            draft.compute(e, _EXPERT * float(sent[e]) * servers / float(sent.sum()), [ready[e], *there[e]])
            for e in range(servers)
        ]
        back = [[draft.transfer(e, s, sizes[1][e], [ends[e]]) for e in others[s]] for s in range(servers)]
        waits = [[ends[s], *back[s]] for s in range(servers)]
    return draft.finished()


def random_iteration(servers: int, transfers: int, seed: int) -> TaskGraph:
    """Transfers of 12.5, 25 or 50 MB between random servers, each after a random task, and before one of 1 to 5 ms."""
    if transfers < 1:
        refuse("tasks", f"transfers={transfers}; use at least 1")
    random = np.random.default_rng(seed)
    draft = TaskGraphDraft(servers)
    known = [(s, draft.compute(s, float(random.integers(0, 5)) * 1e-3)) for s in range(servers)]
    for _ in range(transfers):
        source, task = known[int(random.integers(len(known)))]
        target = (source + int(random.integers(1, servers))) % servers
        sent = draft.transfer(source, target, 12.5e6 * 2 ** int(random.integers(3)), [task])
        known.append((target, draft.compute(target, float(random.integers(1, 6)) * 1e-3, [sent])))
    return draft.finished()
