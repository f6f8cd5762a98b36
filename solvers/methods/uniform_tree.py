"""The paper's own tree: Theorem 2's depth, and the least radix m with m^k >= n in every stage.

Stages that are not needed are left out, and the last radix is cut to what is left to reach. A heuristic: Theorem 2
holds for real radices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.optree.stages import uniform_tree
from formulations.optree.theory import theorem_2
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from formulations.optree.tree import TreeChoice
    from solvers.methods.base import Context


def run(context: Context) -> Answer:
    """The m-ary tree of the depth asked for, or of Theorem 2's."""
    data: TreeChoice = context.data
    tree = uniform_tree(data.fabric, data.depth or theorem_2(data.fabric.n))
    return Answer(
        Termination.TOLERANCE,
        values={"radices": np.asarray(tree.radices, dtype=float)},
        solver={"name": "uniform-tree", "version": None, "algorithm": "Theorem 2", "options": {}},
        message="a closed form for real radices: it stops without trying to prove anything",
    )


METHOD = Method(
    name="uniform-tree",
    title="m-ary tree of Theorem 2's depth",
    summary="the paper's closed form: depth by Theorem 2, one radix for all stages",
    applies=lambda formulation: formulation.name == "optree.tree",
    run=run,
)
