"""Methods for OpTree's formulations: all-gather trees and the one-stage all-to-all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.optree import best_by_depth, theorem_2, uniform_tree
from opticoll.formulations.optree.one_stage import values_of
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.optree.one_stage import AllToAll
    from opticoll.formulations.optree.tree import TreeChoice
    from opticoll.solvers.methods.method import Context


def run_tree_search(context: Context) -> Answer:
    """The best all-gather tree of the requested depth, or of every depth (``steps_by_depth``).

    Found by dynamic programming over products of radices in about n ln n log2 n operations
    (:meth:`opticoll.formulations.optree.RadixGraph.layers`).
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


TREE_SEARCH = Method(
    name="tree-search",
    title="Dynamic programming over radices",
    summary="the best all-gather tree of every depth by dynamic programming over products of radices",
    applies=lambda formulation: formulation.name == "optree.tree",
    run=run_tree_search,
)


def run_uniform_tree(context: Context) -> Answer:
    """The paper's all-gather tree, of the requested depth or of Theorem 2's.

    Uses Theorem 2's depth k, and the smallest radix m with m^k >= n in every stage. Superfluous stages are omitted and
    the last radix is reduced to fit. A heuristic, because Theorem 2 is for real radices.
    """
    data: TreeChoice = context.data
    tree = uniform_tree(data.fabric, data.depth or theorem_2(data.fabric.n))
    return Answer(
        Termination.TOLERANCE,
        values={"radices": np.asarray(tree.radices, dtype=float)},
        solver={"name": "uniform-tree", "version": None, "algorithm": "Theorem 2", "options": {}},
        message="a closed form for real radices: it proves no bound",
    )


UNIFORM_TREE = Method(
    name="uniform-tree",
    title="m-ary tree of Theorem 2's depth",
    summary="the paper's closed form: depth by Theorem 2, one radix for all stages",
    applies=lambda formulation: formulation.name == "optree.tree",
    run=run_uniform_tree,
)


def run_cycle_cover(context: Context) -> Answer:
    """The optimal one-stage all-to-all in closed form (:mod:`opticoll.formulations.rounds`)."""
    data: AllToAll = context.data
    return Answer(
        Termination.OPTIMAL,
        values=values_of(data),
        solver={"name": "cycle-cover", "version": None, "options": {},
                "algorithm": "rectangles and triangles" if data.fibres.circular else "chains of intervals"},
    )  # fmt: skip


CYCLE_COVER = Method(
    name="cycle-cover",
    title="Full circles of wavelengths",
    summary="one-stage all-to-all on optical lines and rings in closed form: the fewest wavelengths for every n",
    applies=lambda formulation: formulation.name == "optree.one-stage",
    run=run_cycle_cover,
)


METHODS = (TREE_SEARCH, UNIFORM_TREE, CYCLE_COVER)
