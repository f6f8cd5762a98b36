"""Method ``radix-tree``: OpTree's all-gather as a schedule of rounds, beside the ring and neighbour exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.formulations.model import NotApplicable, Parameter
from opticoll.formulations.optree.radix_trees import best_by_depth, uniform_tree, walks
from opticoll.formulations.optree.step_counts import theorem_2
from opticoll.formulations.optree.tree_schedules import fabric_of, tree_schedule
from opticoll.instances.photonics import WdmFibres
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context


def refuse(data: Any) -> str | None:
    """Reason why there is no tree: another machine or collective, or stated routes or wavelengths."""
    if not isinstance(data.topology, WdmFibres):
        return f"schedules optical lines and rings (wdm-ring, wdm-line), not {data.topology.spec}"
    if data.collective.name != "all-gather" or data.collective.chunks != data.topology.n:
        return f"schedules an all-gather of one chunk per node, not {data.collective.name}"
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
    return Answer(
        Termination.TOLERANCE,
        values=tree_schedule(fibres, tree.radices).values(),
        solver={"name": "radix-tree", "version": None, "algorithm": "tree of radices", "options": {}},
        metrics={"radices": [int(m) for m in tree.radices], "depth": tree.depth, "steps": tree.steps},
        message="the best tree is not always the best schedule: it proves no bound",
    )


METHOD = Method(
    name="radix-tree",
    title="OpTree's tree, circuit by circuit",
    summary="all-gather on optical lines and rings by a tree of integer radices, as OpTree does it",
    serves=("lumorph.rounds",),
    refuse=refuse,
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
