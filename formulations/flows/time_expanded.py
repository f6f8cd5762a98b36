r"""A topology unrolled over time steps: what a flow in steps is a flow in.

Vertex (u, t) is u after t steps, numbered ``t n + u``, t = 0 .. L. Arc a of the topology in step t = 1 .. L runs from
(tail_a, t-1) to (head_a, t); a waiting arc runs from (u, t-1) to (u, t). The graph has no cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.digraph import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TimeExpanded:
    """The unrolled graph and where the arcs of every step lie in it.

    Parameters
    ----------
    graph
        n (L + 1) vertices, L (m + n) arcs.
    moving
        Arc of ``graph`` for arc a in step t (0-based), shape ``(m, L)``.
    waiting
        Arc of ``graph`` for waiting at u in step t, shape ``(n, L)``.
    arc, step
        The other way: arc of the topology (-1 where it waits) and step of every arc of ``graph``.
    """

    graph: Topology
    moving: NDArray[np.int64]
    waiting: NDArray[np.int64]
    arc: NDArray[np.int64]
    step: NDArray[np.int64]


def unroll(topology: Topology, steps: int) -> TimeExpanded:
    """``topology`` over ``steps`` steps."""
    n, m = topology.n, topology.arcs
    at = np.arange(steps) * n
    tail = np.concatenate([topology.tail[:, None] + at, np.arange(n)[:, None] + at]).ravel()
    head = np.concatenate([topology.head[:, None] + at + n, np.arange(n)[:, None] + at + n]).ravel()
    capacity = np.repeat(np.concatenate([topology.capacity, np.ones(n)]), steps)
    order = np.lexsort((capacity, head, tail))  # as Topology sorts them
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    positions = place.reshape(m + n, steps)
    arc = np.repeat(np.concatenate([np.arange(m), np.full(n, -1)]), steps)[order]
    step = np.tile(np.arange(steps), m + n)[order]
    graph = Topology(n * (steps + 1), tail, head, capacity, spec=f"{topology.spec} over {steps} steps")
    return TimeExpanded(graph, positions[:m], positions[m:], arc, step)


def step_distances(topology: Topology, sources: NDArray[np.int64], cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cheapest way from every source to every vertex in the steps there are, waiting being free.

    Parameters
    ----------
    topology, sources
        The graph; shape ``(K,)``.
    cost
        Cost >= 0 of using arc a in step t, shape ``(m, L)``.

    Returns
    -------
    Shape ``(K, n)``; ``inf`` where the steps do not suffice.
    """
    reach = np.full((sources.size, topology.n), np.inf)
    reach[np.arange(sources.size), sources] = 0.0
    for t in range(cost.shape[1]):
        arriving = reach[:, topology.tail] + cost[:, t]
        after = reach.copy()
        np.minimum.at(after.T, topology.head, arriving.T)
        reach = after
    return reach
