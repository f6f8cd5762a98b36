"""The first reroutings of circuits, in plain Python: mostly there are some dozens to make, sooner than numba is loaded.

Rip up and reroute under negotiated congestion as in :mod:`solvers.routing.negotiation`, with one price for all: an arc
that carries ``load`` circuits and may carry ``limit`` costs ``1 + EVEN load / limit + pressure max(0, load + 1 -
limit)``, and pressure grows from sweep to sweep.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from instances.topology import Topology

#: Weight of fullness beside a length of 1; pressure at first and its growth a sweep.
EVEN, FIRST_PRESSURE, GROWTH = 0.05, 0.5, 1.5


def reroute_first(
    topology: Topology, ends: list[tuple[int, int]], paths: list[list[int]], limit: int, *, seed: int, most: int
) -> bool:
    """Reroute circuits, in place, until no arc carries more than ``limit`` of them or ``most`` reroutings are made.

    Parameters
    ----------
    ends
        Source and target of every circuit.
    paths
        Arcs of every circuit's route, replaced by those of its new one.

    Returns
    -------
    Whether the limit is met. Deterministic for a ``seed``.
    """
    random = np.random.default_rng(seed)
    tail = topology.tail.tolist()
    out: list[list[tuple[int, int]]] = [[] for _ in range(topology.n)]
    for arc, (u, v) in enumerate(zip(tail, topology.head.tolist(), strict=True)):
        out[u].append((arc, v))
    load, pressure = [0] * topology.arcs, FIRST_PRESSURE
    for path in paths:
        for arc in path:
            load[arc] += 1
    over, made = sum(max(count - limit, 0) for count in load), 0
    while over:
        # What an arc costs by the circuits that it carries already.
        cost = [1.0 + EVEN * count / limit + pressure * max(0, count + 1 - limit) for count in range(max(load) + 2)]
        for k in random.permutation(len(paths)).tolist():
            if not any(load[arc] > limit for arc in paths[k]):
                continue
            if made >= most:
                return False
            made += 1
            for arc in paths[k]:
                over -= load[arc] > limit
                load[arc] -= 1
            paths[k] = _lightest_path(out, tail, load, cost, *ends[k])
            for arc in paths[k]:
                load[arc] += 1
                over += load[arc] > limit
                if load[arc] >= len(cost):
                    cost.append(1.0 + EVEN * load[arc] / limit + pressure * (load[arc] + 1 - limit))
        pressure *= GROWTH
    return True


def _lightest_path(
    out: list[list[tuple[int, int]]], tail: list[int], load: list[int], cost: list[float], source: int, target: int
) -> list[int]:
    """Dijkstra's algorithm; the target can be reached, as it has been."""
    distance, into, settled = {source: 0.0}, dict[int, int](), set[int]()
    heap = [(0.0, source)]
    while True:
        length, u = heapq.heappop(heap)
        if u == target:
            break
        if u in settled:
            continue
        settled.add(u)
        for arc, v in out[u]:
            reach = length + cost[load[arc]]
            if reach < distance.get(v, np.inf):
                distance[v], into[v] = reach, arc
                heapq.heappush(heap, (reach, v))
    path = []
    while u != source:
        path.append(into[u])
        u = tail[into[u]]
    return path[::-1]
