"""Method ``uniform-tree``: all-gather by a tree of equal radices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.optree.radix_trees import uniform_tree
from opticoll.formulations.optree.step_counts import theorem_2
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.optree.tree import TreeChoice
    from opticoll.solvers.methods.method import Context


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


METHOD = Method(
    name="uniform-tree",
    title="m-ary tree of Theorem 2's depth",
    summary="the paper's closed form: depth by Theorem 2, one radix for all stages",
    serves=("optree.tree",),
    run=run_uniform_tree,
)
