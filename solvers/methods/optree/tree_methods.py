"""All-gather trees by dynamic programming over products of radices: the optimum, for every depth at once.

Least steps to every product by exactly j stages (:meth:`opticoll.formulations.optree.tree_theory.Walks.layers`), each
stage one pass
over all (product, radix); about n ln n ln2 n operations.

The paper's own tree: Theorem 2's depth, and the least radix m with m^k >= n in every stage.

Stages that are not needed are left out, and the last radix is cut to what is left to reach. A heuristic: Theorem 2
holds for real radices.

One-stage all-to-all by full circles of wavelengths: optimal in closed form, for lines and rings of any size.

Every wavelength is filled: rectangles and triangles over opposite nodes on a ring, chains of intervals on a line, see
:mod:`opticoll.formulations.rounds.wavelengths`. The values go through the checker, which knows nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.optree.one_stage import values_of
from opticoll.formulations.optree.tree_theory import best_by_depth, theorem_2, uniform_tree
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.optree.one_stage import AllToAll
    from opticoll.formulations.optree.tree import TreeChoice
    from opticoll.solvers.methods.method import Context


def run_tree_search(context: Context) -> Answer:
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


TREE_SEARCH = Method(
    name="tree-search",
    title="Dynamic programming over radices",
    summary="the best all-gather tree of every depth by dynamic programming over products of radices",
    applies=lambda formulation: formulation.name == "optree.tree",
    run=run_tree_search,
)


def run_uniform_tree(context: Context) -> Answer:
    """The m-ary tree of the depth asked for, or of Theorem 2's."""
    data: TreeChoice = context.data
    tree = uniform_tree(data.fabric, data.depth or theorem_2(data.fabric.n))
    return Answer(
        Termination.TOLERANCE,
        values={"radices": np.asarray(tree.radices, dtype=float)},
        solver={"name": "uniform-tree", "version": None, "algorithm": "Theorem 2", "options": {}},
        message="a closed form for real radices: it stops without trying to prove anything",
    )


UNIFORM_TREE = Method(
    name="uniform-tree",
    title="m-ary tree of Theorem 2's depth",
    summary="the paper's closed form: depth by Theorem 2, one radix for all stages",
    applies=lambda formulation: formulation.name == "optree.tree",
    run=run_uniform_tree,
)


def run_cycle_cover(context: Context) -> Answer:
    """The assignment in closed form."""
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
    summary="one-stage all-to-all on optical lines and rings in closed form: the fewest wavelengths for any n",
    applies=lambda formulation: formulation.name == "optree.one-stage",
    run=run_cycle_cover,
)


METHODS = (
    TREE_SEARCH,
    UNIFORM_TREE,
    CYCLE_COVER,
)
