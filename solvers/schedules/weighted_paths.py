"""Weighted paths for every commodity from a master solution.

The master's flow of each source, made exact and acyclic, splits into at most N + m paths (Ford & Fulkerson, 1962), each
found from a target back to the source along the fullest arcs. At N = 1000, d = 4 these are millions of paths, in flat
arrays. MCF-extP (all-to-all paper, 3.2.1) takes the paths of a single commodity's flow, widest first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.flows.single_source import WeightedPath, strip_paths, unit_flow
from opticoll.formulations.rounds.segments import offsets

if TYPE_CHECKING:
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, I32, I64, Topology


@dataclass(frozen=True, eq=False)
class WeightedPaths:
    """Paths of K commodities, in flat arrays.

    Parameters
    ----------
    F
        Served fraction: the rate of commodity (s, v) is F D_sv.
    sources, targets
        Of the commodities with D_sv > 0, ascending by (source, target), ``(K,)``.
    first_path
        Paths of commodity k are ``first_path[k] .. first_path[k + 1]``, ``(K + 1,)``.
    first_arc
        Arcs of path p are ``first_arc[p] .. first_arc[p + 1]`` of ``arcs``, ``(P + 1,)``.
    arcs, rate
        Arc numbers in order from the source; flow of each path, ``(P,)``.
    """

    F: float
    sources: I64
    targets: I64
    first_path: I64
    first_arc: I64
    arcs: I32
    rate: F64

    @property
    def summary(self) -> dict[str, float | int]:
        """Numbers of paths and their lengths."""
        length = np.diff(self.first_arc)
        return {
            "paths": int(self.rate.size),
            "paths_per_commodity": self.rate.size / max(self.sources.size, 1),
            "most_paths_of_a_commodity": int(np.diff(self.first_path).max(initial=0)),
            "longest_path": int(length.max(initial=0)),
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
        msg = f"weighted paths: the flow on {topology.spec} cannot serve every rank"
        raise BadInput(msg)
    parts = []
    for i, source in enumerate(data.sources.tolist()):
        targets = np.flatnonzero(shards[:, i])
        split = strip_paths(topology, source, unit[:, i], targets, shards[targets, i])
        paths = list(chain.from_iterable(split))
        arcs = np.fromiter(chain.from_iterable(path.arcs for path in paths), np.int32)
        lengths, rates = np.array([(len(path.arcs), path.amount) for path in paths]).reshape(-1, 2).T
        parts.append((np.array(list(map(len, split))), lengths.astype(np.int64), rates, arcs))
    load = unit.sum(axis=1)
    F = float((topology.capacity[load > 0] / load[load > 0]).min())
    sources, targets, _ = data.demanded()
    counts, lengths, rates, arcs = (np.concatenate(part) for part in zip(*parts, strict=True))
    return WeightedPaths(F, sources, targets, offsets(counts), offsets(lengths), arcs, rates * F)


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
