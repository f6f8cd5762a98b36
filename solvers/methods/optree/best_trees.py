"""Best trees of an all-gather by dynamic programming over products of radices, and those of one radix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations.optree.radix_trees import NEVER, Fabric, RadixGraph, walks

if TYPE_CHECKING:
    from opticoll.instances.topology import I64


@dataclass(frozen=True)
class RadixTree:
    """A tree and its steps."""

    radices: tuple[int, ...]
    steps: int

    @property
    def depth(self) -> int:
        """Stages."""
        return len(self.radices)


def radices(graph: RadixGraph, layers: list[I64], depth: int) -> list[int]:
    """Trace the radices of a best tree of exactly that depth back through the layers (smallest radices last)."""
    results: list[int] = []
    at = graph.n
    for j in range(depth, 0, -1):
        into = np.flatnonzero(graph.reached == at)
        fits = layers[j - 1][graph.product[into]] + graph.cost[into] == layers[j][at]
        arc = int(into[np.argmax(fits)])
        results.append(int(graph.radix[arc]))
        at = int(graph.product[arc])
    return results[::-1]


def best_by_depth(fabric: Fabric, graph: RadixGraph | None = None) -> dict[int, RadixTree]:
    """Find a best tree of every depth 1 .. ceil(log2 n)."""
    result = walks(fabric) if graph is None else graph
    layers = result.layers(fabric.deepest)
    return {
        depth: RadixTree(tuple(radices(result, layers, depth)), int(layers[depth][fabric.n]))
        for depth in range(1, fabric.deepest + 1)
        if layers[depth][fabric.n] < NEVER
    }


def best_tree(fabric: Fabric, depth: int = 0) -> RadixTree:
    """Find a best tree of the given depth, or (0) of all depths; the shallowest if several are equal.

    Raises
    ------
    BadInput
        If no tree of the fabric has that depth.
    """
    trees = best_by_depth(fabric)
    if depth == 0:
        return min(trees.values(), key=lambda tree: (tree.steps, tree.depth))
    if depth not in trees:
        refuse("optree", f"no tree on {fabric.n} nodes has depth {depth}; use 1 to {fabric.deepest}")
    return trees[depth]


def uniform_radix(n: int, depth: int) -> int:
    """Smallest integer m with m^depth >= n: the m-ary tree of that depth."""
    m = max(2, round(n ** (1.0 / depth)) - 1)
    while m**depth < n:
        m += 1
    return m


def uniform_tree(fabric: Fabric, depth: int) -> RadixTree:
    """Build the m-ary tree of a depth with the smallest m for n leaves, without superfluous stages."""
    m, product, chosen = uniform_radix(fabric.n, depth), 1, []
    while product < fabric.n:
        chosen.append(min(m, -(-fabric.n // product)))
        product *= chosen[-1]
    return RadixTree(tuple(chosen), sum(fabric.stages(chosen)))
