"""Methods for OpTree's formulations: trees by closed forms and dynamic programming, and their rounds of circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.optree.one_stage_solution import values_of
from opticoll.formulations.optree.radix_trees import walks
from opticoll.formulations.optree.step_counts import theorem_2
from opticoll.formulations.optree.tree_schedules import fabric_of, tree_schedule, wrht_schedule
from opticoll.formulations.parameters import Parameter
from opticoll.instances.photonics import WdmFibres
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.methods.optree.best_trees import best_by_depth, uniform_tree
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.optree.one_stage import AllToAll
    from opticoll.formulations.optree.tree import TreeChoice
    from opticoll.solvers.methods.method import Context
    from opticoll.types import Json


def run_cycle_cover(context: Context) -> Answer:
    """The optimal one-stage all-to-all in closed form (:mod:`opticoll.formulations.rounds.wavelengths`)."""
    data: AllToAll = context.data
    return Answer(
        Termination.OPTIMAL,
        values=values_of(data),
        solver={"algorithm": "rectangles and triangles" if data.fibres.circular else "chains of intervals"},
    )


CYCLE_COVER = Method(
    name="cycle-cover",
    title="Full circles of wavelengths",
    summary="one-stage all-to-all on optical lines and rings in closed form: the fewest wavelengths for every n",
    serves=("optree.one-stage",),
    # A ring of 10 nodes 2,353 variables in 0.7 s, a line of 10 2,275 in 0.8 s; a ring of 11 3,536 not solved.
    takes_over=(Beyond("optree.one-stage", 2_500),),
    run=run_cycle_cover,
)


def run_uniform_tree(context: Context) -> Answer:
    """The paper's all-gather tree, of the requested depth or of Theorem 2's.

    Uses Theorem 2's depth k, and the smallest radix m with m^k >= n in every stage. Superfluous stages are omitted and
    the last radix is reduced to fit. A heuristic, because Theorem 2 is for real radices.
    """
    data: TreeChoice = context.data
    tree = uniform_tree(data.fabric, data.depth or theorem_2(data.fabric.n))
    return Answer.heuristic({"radices": np.asarray(tree.radices, dtype=float)}, "Theorem 2")


UNIFORM_TREE = Method(
    name="uniform-tree",
    title="m-ary tree of Theorem 2's depth",
    summary="the paper's closed form: depth by Theorem 2, one radix for all stages",
    serves=("optree.tree",),
    run=run_uniform_tree,
)


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
        solver={"algorithm": "dynamic programming"},
        metrics={"steps_by_depth": {str(depth): tree.steps for depth, tree in trees.items()}},
    )


TREE_SEARCH = Method(
    name="tree-search",
    title="Dynamic programming over radices",
    summary="the best all-gather tree of every depth by dynamic programming over products of radices",
    serves=("optree.tree",),
    # n=1024 7,251 variables in 3.5 s, n=1000 7,053 in 3.6 s; n=2048 15,925 not solved.
    takes_over=(Beyond("optree.tree", 8_000, first=True),),
    run=run_tree_search,
)


def refuse_radix_tree(data: Any) -> str | None:
    """Reason why there is no tree: another machine or collective, or stated routes or wavelengths."""
    if not isinstance(data.topology, WdmFibres):
        return f"schedules optical lines and rings (wdm-ring, wdm-line), not {data.topology.spec}"
    if data.collective.name != "all-gather" or data.collective.chunks != data.topology.n:
        given = f"{data.collective.name} of {data.collective.chunks} chunks"
        return f"schedules an all-gather of one chunk per node, not {given} among {data.topology.n}"
    if data.fixed or data.routes_stated:
        return "chooses routes and wavelengths itself, not among the stated ones (paths, routes, wavelengths)"
    return None


def run_radix_tree(context: Context) -> Answer:
    """OpTree's all-gather on an optical line or ring, circuit by circuit.

    The tree is the one of fewest steps among all integer radices (``radices=best``), or the paper's, of Theorem 2's
    depth and one radix (``radices=uniform``), with the given ``depth`` instead of the best one or Theorem 2's. Depth 1
    is the one-stage model.
    """
    fibres = context.data.topology
    depth = int(context.parameters["depth"])
    fabric = fabric_of(fibres, "exact")
    if not 0 <= depth <= fabric.deepest:
        msg = f"radix-tree: depth={depth}; trees on {fibres.n} nodes have depth 1 to {fabric.deepest}; 0 means any"
        raise NotApplicable(msg)
    if context.parameters["radices"] == "uniform":
        tree = uniform_tree(fabric, depth or theorem_2(fibres.n))
    else:
        trees = best_by_depth(fabric, walks(fabric))
        tree = trees[depth] if depth else min(trees.values(), key=lambda one: (one.steps, one.depth))
    metrics: dict[str, Json] = {"radices": [int(m) for m in tree.radices], "depth": tree.depth, "steps": tree.steps}
    return Answer.heuristic(tree_schedule(fibres, tree.radices).values(), "tree of radices", metrics)


RADIX_TREE = Method(
    name="radix-tree",
    title="OpTree's tree, circuit by circuit",
    summary="all-gather on optical lines and rings by a tree of integer radices, as OpTree does it",
    serves=("lumorph.rounds",),
    refuse=refuse_radix_tree,
    parameters=(
        Parameter(
            "radices",
            str,
            default="best",
            help="radices of fewest steps, or the paper's: one radix, depth by Theorem 2",
            choices=("best", "uniform"),
        ),
        Parameter("depth", int, default=0, help="stages of the tree; 0: the best number, or Theorem 2's"),
    ),
    run=run_radix_tree,
)


def run_wrht(context: Context) -> Answer:
    """WRHT's tree for an all-gather, circuit by circuit: groups gather at their middle nodes, level by level.

    Then every middle node sends each of its group what that lacks
    (:func:`opticoll.formulations.optree.tree_schedules.wrht_schedule`), a circuit for every copy of a chunk. WRHT
    (arXiv 2207.10982) is an all-reduce over groups of 2w + 1, in which a circuit carries a sum; its all-gather is lost.
    """
    fibres = context.data.topology
    group = int(context.parameters["group"]) or 2 * fibres.channels + 1
    return Answer.heuristic(wrht_schedule(fibres, group).values(), "tree of groups", {"group": group})


WRHT = Method(
    name="wrht",
    title="WRHT's tree of groups, circuit by circuit",
    summary="all-gather on optical lines and rings over the middle nodes of groups of 2w + 1, as WRHT reduces",
    serves=("lumorph.rounds",),
    refuse=refuse_radix_tree,
    parameters=(Parameter("group", int, default=0, help="most nodes of a group; 0: 2w + 1 for w channels", least=0),),
    run=run_wrht,
)


METHODS = (CYCLE_COVER, UNIFORM_TREE, TREE_SEARCH, RADIX_TREE, WRHT)
