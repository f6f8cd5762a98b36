"""MCF-extP: weighted paths out of a commodity's flow, widest first (all-to-all paper, 3.2.1)."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.path_stripping import WeightedPath
from instances.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from instances.topology import Topology

#: What may stay behind of a commodity's amount, relative: round-off of a flow that is one up to 1e-9.
ROUND_OFF = 1e-7


def widest_path(
    tails: list[int], heads: list[int], width: list[float], source: int, target: int
) -> tuple[list[int], float]:
    """The path whose narrowest arc is widest, and that width; among equals one of fewest arcs.

    Dijkstra with (max-min width, arcs) in place of length. Arcs are given by position; those of width 0 do not count.

    Returns
    -------
    Positions of its arcs from ``source`` on and its width; an empty list and 0 if no path is left.
    """
    leaving: dict[int, list[int]] = {}
    for i, tail in enumerate(tails):
        if width[i] > 0:
            leaving.setdefault(tail, []).append(i)
    best: dict[int, tuple[float, int]] = {source: (-np.inf, 0)}
    parent: dict[int, int] = {}
    queue = [(-np.inf, 0, source)]
    while queue:
        label, count, u = heapq.heappop(queue)
        if (label, count) > best[u]:
            continue
        if u == target:
            path: list[int] = []
            while u != source:
                path.append(parent[u])
                u = tails[path[-1]]
            return path[::-1], -label
        for i in leaving.get(u, ()):
            reached = (max(label, -width[i]), count + 1)
            if reached < best.get(heads[i], (0.0, 0)):
                best[heads[i]] = reached
                parent[heads[i]] = i
                heapq.heappush(queue, (*reached, heads[i]))
    return [], 0.0


def extract_paths(
    topology: Topology, source: int, target: int, flow: NDArray[np.float64], amount: float
) -> list[WeightedPath]:
    """Split a commodity's flow that brings ``amount`` to ``target`` into widest paths.

    Every path empties an arc or the rest of the demand, so that there are at most ``m`` of them, in the order of
    falling rates; what is left of the flow are circulations.

    Parameters
    ----------
    topology, source, target
        The graph and the commodity.
    flow
        Its flow, ``(m,)``.
    amount
        What it carries; amounts of the paths add up to it exactly.

    Raises
    ------
    BadInput
        If the flow does not carry that much (by more than round-off).
    """
    arcs = np.flatnonzero(flow > ROUND_OFF * 1e-3 * amount)
    width = flow[arcs].tolist()
    tails, heads, names = topology.tail[arcs].tolist(), topology.head[arcs].tolist(), arcs.tolist()
    left = amount
    found: list[WeightedPath] = []
    while left > ROUND_OFF * amount:
        path, rate = widest_path(tails, heads, width, source, target)
        if not path:
            msg = (
                f"MCF-extP: the flow from {topology.labels[source]} to {topology.labels[target]} carries "
                f"{amount - left:g} of {amount:g}; give a flow that serves every pair"
            )
            raise BadInput(msg)
        rate = min(rate, left)
        for i in path:
            width[i] -= rate
        left -= rate
        found.append(WeightedPath([names[i] for i in path], rate))
    carried = sum(path.amount for path in found)
    return [WeightedPath(path.arcs, path.amount * amount / carried) for path in found]
