"""All-gather trees by dynamic programming over products of radices: the optimum, for every depth at once.

Least steps to every product by exactly j stages (:meth:`formulations.optree.stages.Walks.layers`), each stage one pass
over all (product, radix); about n ln n ln2 n operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.optree.stages import best_by_depth
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from formulations.optree.tree import TreeChoice
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """The best tree, or the best of the depth asked for; ``steps_by_depth`` has them all."""
    data: TreeChoice = context.data
    trees = best_by_depth(data.fabric, data.graph)
    best = trees[data.depth] if data.depth else min(trees.values(), key=lambda tree: (tree.steps, tree.depth))
    return Answer(
        Termination.OPTIMAL,
        values={"radices": np.asarray(best.radices, dtype=float)},
        solver={"name": "tree-search", "version": None, "algorithm": "dynamic programming", "options": {}},
        metrics={"steps_by_depth": {str(depth): tree.steps for depth, tree in trees.items()}},
    )


METHOD = Method(
    name="tree-search",
    title="Dynamic programming over radices",
    summary="the best all-gather tree of every depth by dynamic programming over products of radices",
    applies=lambda formulation: formulation.name == "optree.tree",
    run=run,
)
