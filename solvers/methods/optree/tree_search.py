"""Method ``tree-search``: the best all-gather tree by dynamic programming."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.optree.radix_trees import best_by_depth
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.optree.tree import TreeChoice
    from opticoll.solvers.methods.method import Context


def run_tree_search(context: Context) -> Answer:
    """The best all-gather tree of the requested depth, or of every depth (``steps_by_depth``).

    Found by dynamic programming over products of radices in about n ln n log2 n operations
    (:meth:`opticoll.formulations.optree.radix_trees.RadixGraph.layers`).
    """
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
    serves=("optree.tree",),
    # n=1024 7,251 variables in 3.5 s, n=1000 7,053 in 3.6 s; n=2048 15,925 not solved.
    takes_over=(Beyond("optree.tree", 8_000, 16_000),),
    run=run_tree_search,
)
