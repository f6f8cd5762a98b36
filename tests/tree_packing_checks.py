"""The check of packed trees, from the trees alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.solvers.schedules.tree_packing import PackedTree, TreePacking


def moved(packing: TreePacking) -> Iterator[PackedTree]:
    """The trees and their images, one by one."""
    for image in packing.images.tolist():
        for tree in packing.trees:
            paths = tuple(tuple(image[v] for v in path) for path in tree.paths)
            yield replace(tree, root=image[tree.root], paths=paths)


def violations(packing: TreePacking) -> dict[str, float]:
    """Worst violation of every property of a packing, from its trees alone.

    ``spanning``: every tree reaches every rank exactly once, over arcs of the topology, with only switches in between;
    ``roots``: trees per shard of every root; ``time``: the relative load of an arc beyond the given time.
    """
    topology = packing.topology
    capacity: dict[tuple[int, int], float] = {}
    for u, v, c in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        capacity[u, v] = capacity.get((u, v), 0.0) + c
    ranks = set(topology.terminals.tolist())
    load, started, wrong = dict.fromkeys(capacity, 0), dict.fromkeys(ranks, 0), 0
    for tree in moved(packing):
        received = dict.fromkeys(ranks, 0)
        received[tree.root] = tree.count
        started[tree.root] += tree.count
        complete = {tree.root}
        for path in tree.paths:
            arcs = list(pairwise(path))
            fits = all(arc in capacity for arc in arcs) and not set(path[1:-1]) & ranks
            wrong += not (fits and path[0] in complete and path[-1] in ranks and tree.count > 0)
            for arc in arcs:
                load[arc] = load.get(arc, 0) + tree.count
            received[path[-1]] += tree.count
            complete.add(path[-1])
        wrong += any(amount != tree.count for amount in received.values())
    due = {v: w * packing.chunks for v, w in zip(topology.terminals.tolist(), packing.weight, strict=True)}
    over = max((load[arc] / (packing.chunks * c) for arc, c in capacity.items()), default=0.0) / float(packing.time)
    return {
        "spanning": float(wrong),
        "roots": float(max(abs(started[v] - due[v]) for v in due)),
        "time": max(over - 1.0, 0.0),
    }
