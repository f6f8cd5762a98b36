"""Weighted paths for every commodity from a master solution.

The master's flow of each source, made exact and acyclic, splits into at most N + m paths (Ford & Fulkerson, 1962), each
found from a target back to the source along the fullest arcs. At N = 1000, d = 4 these are millions of paths, in flat
arrays. MCF-extP (all-to-all paper, 3.2.1) takes the paths of a single commodity's flow, widest first.
"""

from __future__ import annotations

import heapq
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticoll.errors import BadInput, refuse
from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.flows.single_source import WeightedPath, strip_paths, unit_flow
from opticoll.formulations.rounds.segments import offsets

if TYPE_CHECKING:
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, Topology


class WeightedPaths(NamedTuple):
    """Paths of the commodities with demand, the flow of each, ``(|P|,)``, and F: commodity k gets F D_k."""

    paths: PathSet
    rate: F64
    F: float

    @property
    def summary(self) -> dict[str, float | int]:
        """Numbers of paths and their lengths."""
        paths = self.paths
        return {
            "paths": paths.paths,
            "paths_per_commodity": paths.paths / max(paths.pairs, 1),
            "most_paths_of_a_commodity": int(np.diff(paths.first).max(initial=0)),
            "longest_path": int(paths.length.max(initial=0)),
        }


def from_flow(data: ConcurrentFlow, flow: F64) -> WeightedPaths:
    """Split all sources' flows.

    Parameters
    ----------
    data
        Data of the master.
    flow
        ``g`` of ``alltoall.master``, ``(m, |S|)``; it need not be exact or acyclic.

    Raises
    ------
    BadInput
        If some rank is not reached at all.
    """
    topology, shards = data.topology, data.demand
    unit = unit_flow(topology, data.sources, shards, flow)
    if unit is None:
        refuse("weighted paths", f"the flow on {topology.spec} cannot serve every rank")
    parts = []
    for i, source in enumerate(data.sources.tolist()):
        targets = np.flatnonzero(shards[:, i])
        split = strip_paths(topology, source, unit[:, i], targets, shards[targets, i])
        listed = list(chain.from_iterable(split))
        arcs = np.fromiter(chain.from_iterable(path.arcs for path in listed), np.int64)
        lengths, rates = np.array([(len(path.arcs), path.amount) for path in listed]).reshape(-1, 2).T
        parts.append((np.array(list(map(len, split))), lengths, rates, arcs))
    load = unit.sum(axis=1)
    F = float((topology.capacity[load > 0] / load[load > 0]).min())
    counts, lengths, rates, arcs = (np.concatenate(part) for part in zip(*parts, strict=True))
    sources, targets, _ = data.demanded()
    pair = np.repeat(np.arange(counts.size), counts)
    return WeightedPaths(PathSet(topology, sources, targets, arcs, offsets(lengths), pair), rates * F, F)


#: Relative amount of a commodity that may remain: round-off of a flow feasible to within 1e-9.
EXTRACTION_ROUND_OFF = 1e-7


def widest_path(
    tails: list[int], heads: list[int], width: list[float], source: int, target: int
) -> tuple[list[int], float]:
    """Find the path whose narrowest arc is widest, and its width; among equals one with fewest arcs.

    Dijkstra with (max-min width, arcs) in place of length. Arcs are given by position; those of width 0 are ignored.

    Returns
    -------
    Positions of its arcs from ``source`` on, and its width; an empty list and 0 if there is no path.
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


def extract_paths(topology: Topology, source: int, target: int, flow: F64, amount: float) -> list[WeightedPath]:
    """Split a commodity's flow that delivers ``amount`` to ``target`` into widest paths.

    Every path empties an arc or the rest of the demand, so there are at most ``m`` of them, in order of
    decreasing rate; the rest of the flow consists of circulations.

    Parameters
    ----------
    topology, source, target
        The graph and the commodity.
    flow
        Flow of the commodity, ``(m,)``.
    amount
        Amount that it carries; the amounts of the paths add up to it exactly.

    Raises
    ------
    BadInput
        If the flow does not carry that much (by more than round-off).
    """
    arcs = np.flatnonzero(flow > EXTRACTION_ROUND_OFF * 1e-3 * amount)
    width = flow[arcs].tolist()
    tails, heads, names = topology.tail[arcs].tolist(), topology.head[arcs].tolist(), arcs.tolist()
    left = amount
    paths: list[WeightedPath] = []
    while left > EXTRACTION_ROUND_OFF * amount:
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
        paths.append(WeightedPath([names[i] for i in path], rate))
    carried = sum(path.amount for path in paths)
    return [WeightedPath(path.arcs, path.amount * amount / carried) for path in paths]
