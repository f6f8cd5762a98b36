r"""All-gather tree on an optical line or ring: integer radices of the stages with fewest steps.

Source  OpTree, Theorems 1 and 2, in integers
Sets    P in 1 .. n products of radices so far, where n stands for all products of at least n; e in E stages (P,m):
        P < n, 2 <= m <= ceil(n/P), from P to min(P m, n), by P, then m
Data    c_e steps of the stage, by ``count`` (:mod:`opticoll.formulations.optree.radix_trees`); k = ``depth`` (0: any)
Vars    y_e in {0,1} whether the tree has stage e, (|E|,)

min sum_e c_e y_e  s.t.
    walk[P]    sum_{e from P} y_e - sum_{e to P} y_e = [P = 1] - [P = n]
    stages     sum_e y_e = k                            (only for k > 0)

|E| is about n ln n. Without ``stages`` the matrix is that of a shortest walk, and its vertices are integral.

Optimum: dynamic programming over stages. Its minimum steps to every product are potentials; the bound follows once
every stage is checked against them. Any duals of ``walk`` are potentials that bound the optimum.

A tree may also be given by its ``radices`` alone, (k,). The checker reads either. Up to ``CHECKED_NODES`` nodes it also
builds the schedule, circuit by circuit, and counts its violations and the rounds beyond the count (``exact`` and
``lemma``).

The optimum is over the paper's trees under the paper's count: other all-gather algorithms may take fewer rounds, but no
fewer than the bound ``receptions``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.optree import step_times, tree_solution
from opticoll.formulations.optree.radix_trees import Fabric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.photonics import WdmFibres
    from opticoll.instances.topology import F64


@dataclass(frozen=True, eq=False)
class TreeChoice(Formulation):
    """Data of the model: fibres, count of the stages' steps, and depth (0: any).

    ``message`` per node [bytes] (0: not given) and ``cost`` determine the time of the tree.
    """

    name = "optree.tree"
    where = "Theorems 1, 2"
    performs = "all-gather"
    example = "wdm-line:n=64,wavelengths=8"
    problem = "MILP"
    parameters = tree_solution.PARAMETERS
    meaning = "steps (rounds) of the tree"
    variables: ClassVar = {"y": ("stage",)}
    constraints: ClassVar = {"walk": ("product",), "stages": ()}
    _beside = (tree_solution,)

    fibres: WdmFibres
    fabric: Fabric
    depth: int = 0
    message: float = 0.0
    cost: step_times.StepCost = field(default_factory=step_times.StepCost)

    graph = cached_property(tree_solution.stages)
    layers = cached_property(tree_solution.least_steps)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Products, and stages (P,m)."""
        stages = list(zip(self.graph.product.tolist(), self.graph.radix.tolist(), strict=True))
        return {"product": range(1, self.fabric.n + 1), "stage": stages}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, graph, n, c = Cvx(self), self.graph, self.fabric.n, self.graph.cost.astype(float)
        stages = Index.table("stage", {"stage": np.arange(graph.arcs), "start": graph.product, "end": graph.reached})
        products = Index.table("product", {"product": np.arange(1, n + 1)})
        y = b.var("y", upper=1, integer=True)
        leaving, entering = products.of(stages, start="product"), products.of(stages, end="product")
        ends = 1.0 * (products["product"] == 1) - (products["product"] == n)
        b.row("walk", (leaving - entering) @ y == ends)
        if self.depth:
            b.row("stages", cp.sum(y) == self.depth)
        return b.minimize(c @ y)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[P,m]``, ``walk[P]``, ``stages``."""
        b, n = Pyo(self), self.fabric.n
        E = [(P, m) for P in range(1, n) for m in range(2, -(-n // P) + 1)]
        c = dict(zip(E, self.graph.cost.astype(float).tolist(), strict=True))
        y = b.var("y", upper=1, integer=True, over=E)
        into: dict[int, list[Any]] = {}
        out_of: dict[int, list[Any]] = {}
        for P, m in E:
            into.setdefault(min(P * m, n), []).append(y[P, m])
            out_of.setdefault(P, []).append(y[P, m])
        b.row("walk", lambda P: b.sum(out_of.get(P, [])) - b.sum(into.get(P, [])) == (P == 1) - (n == P))
        if self.depth:
            b.row("stages", lambda: b.sum(y.values()) == self.depth)
        return b.minimize(b.sum(c[e] * y[e] for e in E))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``walk`` is 0 if the stages taken are a walk from 1 to n, ``binary`` the distance of y from integers,
        ``stages`` the deviation from the depth, ``schedule`` the violations of the schedule (up to ``CHECKED_NODES``
        nodes).
        """
        radices = tree_solution.radices_of(self, values)
        if radices is None:
            return {"walk": np.inf, "binary": np.inf, "stages": np.inf, "schedule": np.inf}
        y = np.asarray(values["y"], dtype=float) if "y" in values and "radices" not in values else np.zeros(1)
        return {
            "walk": 0.0,
            "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
            "stages": float(abs(len(radices) - self.depth)) if self.depth else 0.0,
            "schedule": tree_solution.schedule_faults(self, radices),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Steps of the tree, recomputed from its radices."""
        radices = tree_solution.radices_of(self, values)
        return np.inf if radices is None else float(sum(self.fabric.stages(radices)))

    rounds = tree_solution.rounds_of_tree
    replay = tree_solution.replayed


FORMULATION = TreeChoice
