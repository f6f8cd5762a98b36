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

The optimum is over the paper's trees under the paper's count: other all-gather algorithms may take fewer rounds
(``metrics.any_schedule_bound``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.optree import step_counts, step_times
from opticoll.formulations.optree.radix_trees import MOST_NODES, Fabric, check_radices, walks
from opticoll.formulations.optree.step_counts import COUNTS
from opticoll.formulations.optree.tree_schedules import fabric_of, tree_schedule, violations
from opticoll.formulations.rounds.round_formulation import RoundFormulation
from opticoll.formulations.rounds.wavelengths import whole_fibres
from opticoll.formulations.variables import Array, Axis, SolutionSize, round_links

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.formulations.optree.radix_trees import RadixGraph
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.variables import Links
    from opticoll.instances.photonics import WdmFibres
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

NAME = "optree.tree"
#: Maximum number of nodes for which the checker builds the schedule.
CHECKED_NODES = 128


@dataclass(frozen=True, eq=False)
class TreeChoice(RoundFormulation):
    """Data of the model: fibres, count of the stages' steps, and depth (0: any).

    ``message`` per node [bytes] (0: not given) and ``cost`` determine the time of the tree.
    """

    name = NAME
    where = "Theorems 1, 2"
    performs = "all-gather"
    example = "wdm-line:n=64,wavelengths=8"
    sense = "min"
    problem = "MILP"
    parameters = (
        Parameter(
            "count",
            str,
            default="lemma",
            help="steps of a stage: Lemma 1 as restored, the proven minimum, or Theorem 1's terms",
            choices=COUNTS,
        ),
        Parameter("depth", int, default=0, help="stages of the tree; 0: any number"),
        Parameter("data", float, default=0.0, help="bytes per node, for the time in packets; 0: no time"),
        Parameter("clock", float, default=0.0, help="clock of the O/E/O conversion [Hz], one cycle per flit; 0: none"),
        Parameter(
            "conversion",
            str,
            default="pipelined",
            help="conversion of flits: during transmission, or after it",
            choices=step_times.CONVERSIONS,
        ),
    )
    meaning = "steps (rounds) of the tree"
    variables: ClassVar = {"y": ("stage",)}
    constraints: ClassVar = {"walk": ("product",), "stages": ()}

    fibres: WdmFibres
    fabric: Fabric
    depth: int = 0
    message: float = 0.0
    cost: step_times.StepCost = field(default_factory=step_times.StepCost)

    @cached_property
    def graph(self) -> RadixGraph:
        """All stages with their steps."""
        return walks(self.fabric)

    @cached_property
    def layers(self) -> list[I64]:
        """Minimum steps to every product by exactly j stages, ``(n + 1,)`` each, up to ``depth`` or the largest."""
        return self.graph.layers(self.depth or self.fabric.deepest)

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but an intact optical line or ring of at most ``MOST_NODES`` nodes, an impossible depth, or
            data or a clock out of range.
        """
        fibres = whole_fibres(instance, NAME)
        given = cls._completed(parameters)
        fabric = fabric_of(fibres, given["count"])
        if fibres.n > MOST_NODES:
            msg = f"{NAME}: trees are searched on at most {MOST_NODES} nodes, not {fibres.n}; use fewer"
            raise NotApplicable(msg)
        depth = given["depth"]
        if not 0 <= depth <= fabric.deepest:
            msg = f"{NAME}: depth={depth}; trees on {fibres.n} nodes have depth 1 to {fabric.deepest}; 0 means any"
            raise NotApplicable(msg)
        size, clock = given["data"], given["clock"]
        if not (0 <= size < math.inf and 0 <= clock < math.inf):
            msg = f"{NAME}: data={size} bytes and clock={clock} Hz must be at least 0 and finite"
            raise NotApplicable(msg)
        if clock and not size:
            msg = f"{NAME}: clock={clock} applies only to the time of a message; set data=BYTES too"
            raise NotApplicable(msg)
        if given["conversion"] != "pipelined" and not clock:
            msg = f"{NAME}: conversion={given['conversion']} has no effect without a clock; set clock= and data="
            raise NotApplicable(msg)
        cost = step_times.StepCost(clock or math.inf, given["conversion"])
        return cls(fibres, fabric, depth, size, cost)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Products, and stages (P,m)."""
        stages = list(zip(self.graph.product.tolist(), self.graph.radix.tolist(), strict=True))
        return {"product": range(1, self.fabric.n + 1), "stage": stages}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, graph, n = Cvx(self), self.graph, self.fabric.n
        stages = Index.table("stage", {"stage": np.arange(graph.arcs), "start": graph.product, "end": graph.reached})
        products = Index.table("product", {"product": np.arange(1, n + 1)})
        y = b.var("y", upper=1, integer=True)
        leaving, entering = products.of(stages, start="product"), products.of(stages, end="product")
        ends = 1.0 * (products["product"] == 1) - (products["product"] == n)
        b.row("walk", (leaving - entering) @ y == ends)
        if self.depth:
            b.row("stages", cp.sum(y) == self.depth)
        return b.minimize(graph.cost.astype(float) @ y)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``y[P,m]``, ``walk[P]``, ``stages``."""
        from pyomo.core import quicksum

        b, n = Pyo(self), self.fabric.n
        E = [(P, m) for P in range(1, n) for m in range(2, -(-n // P) + 1)]
        c = dict(zip(E, self.graph.cost.astype(float).tolist(), strict=True))
        y = b.var("y", upper=1, integer=True, over=E)
        into: dict[int, list[Any]] = {}
        out_of: dict[int, list[Any]] = {}
        for P, m in E:
            into.setdefault(min(P * m, n), []).append(y[P, m])
            out_of.setdefault(P, []).append(y[P, m])
        b.row("walk", lambda P: quicksum(out_of.get(P, [])) - quicksum(into.get(P, [])) == (P == 1) - (n == P))
        if self.depth:
            b.row("stages", lambda: quicksum(y.values()) == self.depth)
        return b.minimize(quicksum(c[e] * y[e] for e in E))

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        arcs, deep = self.graph.arcs, int(self.depth > 0)
        return {
            "variables": arcs,
            "constraints": self.fabric.n + deep,
            "nonzeros": (2 + deep) * arcs,
            "integers": arcs,
        }

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of ``radices``, numbered from 1, or of y by product and radix; and of the duals of ``walk``."""
        walk = Array((Axis("product", self.fabric.n),), dual=True)
        if "radices" in names:
            size = SolutionSize("stages", most=self.fabric.n)
            stage = Axis("stage", size, lambda values: range(1, values["radices"].size + 1))
            return {"radices": Array((stage,), low=2, high=self.fabric.n + 1), "walk": walk}
        graph = self.graph
        named = Axis("stage", graph.arcs, lambda _: {"product": graph.product.tolist(), "radix": graph.radix.tolist()})
        return {"y": Array((named,)), "walk": walk}

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``walk`` is 0 if the stages taken are a walk from 1 to n, ``binary`` the distance of y from integers,
        ``stages`` the
        deviation from the depth, ``schedule`` the violations of the schedule (up to ``CHECKED_NODES`` nodes).
        """
        radices = radices_of(self, values)
        if radices is None:
            return {"walk": np.inf, "binary": np.inf, "stages": np.inf, "schedule": np.inf}
        y = np.asarray(values["y"], dtype=float) if "y" in values and "radices" not in values else np.zeros(1)
        return {
            "walk": 0.0,
            "binary": float(np.minimum(np.abs(y), np.abs(y - 1.0)).max(initial=0.0)),
            "stages": float(abs(len(radices) - self.depth)) if self.depth else 0.0,
            "schedule": _schedule_faults(self, radices) if self.fabric.n <= CHECKED_NODES else 0.0,
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Steps of the tree, recomputed from its radices."""
        radices = radices_of(self, values)
        return np.inf if radices is None else float(sum(self.fabric.stages(radices)))

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound proven by any potentials of products; not for a fixed depth.

        With u the duals of ``walk`` (either sign): the smallest c_e + u_P - u_Q, if negative, counts once per possible
        stage.
        """
        if "walk" not in duals or self.depth:
            return None
        u = np.asarray(duals["walk"], dtype=float)
        graph = self.graph
        if u.shape != (self.fabric.n,) or not np.isfinite(u).all():
            return None
        best = -np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            lost = rounding.gamma(8) * (2 * np.abs(u).max() + float(graph.cost.max()))
            for sign in (1.0, -1.0):
                v = sign * u
                slack = float((graph.cost + v[graph.product - 1] - v[graph.reached - 1]).min() - lost)
                terms = [v[-1], -v[0], float(rounding.down(min(slack, 0.0) * self.fabric.deepest))]
                best = max(best, rounding.sum_down(terms))
        if not np.isfinite(best):
            return None
        # ``best`` is rounded down, so round-off cannot lift it above an integer.
        reason = "no stage is cheaper than the difference of its products' potentials"
        return Bound("potentials", float(np.ceil(best)), reason, "optree")

    def bounds(self) -> list[Bound]:
        """Bounds from dynamic programming, checked against every stage, and from the chunks that a node receives.

        The first holds for the given count. The second holds for any all-gather, and so for the schedule of a tree,
        but not for the steps of count ``printed``.
        """
        layers, graph = self.layers, self.graph
        depth = self.depth or int(np.argmin([layer[-1] for layer in layers]))
        # Potentials of (stages so far, product): no stage may reach a product at a lower cost.
        for before, after in pairwise(layers):
            if (before[graph.product] + graph.cost < after[graph.reached]).any():
                msg = f"{NAME}: a stage has a lower cost than the potentials of the dynamic program"
                raise ArithmeticError(msg)
        results = [
            Bound(
                "dynamic-program",
                float(layers[depth][-1]),
                "no stage undercuts the minimum steps to its product",
                "optree",
                exact=True,
                detail={"depth": depth},
            ),
        ]
        if self.fabric.count != "printed":
            fabric = self.fabric
            least = step_counts.gather_bound(fabric.n, fabric.wavelengths, ring=fabric.ring)
            results.append(Bound("receptions", float(least), "a node receives n - 1 chunks over its fibres", "optree"))
        return results

    def metrics(self, value: float | None) -> dict[str, Json]:
        """Rounds, the values of Theorems 1 and 2 (rings only), and times in microseconds if ``data`` is given."""
        fabric = self.fabric
        rule = {"lemma": "with stages counted by Lemma 1", "printed": "with stages counted by Theorem 1's terms"}
        restricted = [rule.get(fabric.count), f"at depth {self.depth}" if self.depth else None]
        result: dict[str, Json] = {
            "rounds": None if value is None else int(value),
            "any_schedule_bound": step_counts.gather_bound(fabric.n, fabric.wavelengths, ring=fabric.ring),
            "conditional_on": ", ".join(part for part in restricted if part) or None,
        }
        if fabric.ring:
            result["theorem_depth"] = step_counts.theorem_2(fabric.n)
            result["theorem_steps"] = step_counts.optree_steps(fabric.n, fabric.wavelengths)
        if self.message > 0:
            result["packets"] = self.cost.packets(self.message)
            result["step_us"] = 1e6 * self.cost.step(self.message)
            result["time_us"] = None if value is None else 1e6 * self.cost.gather(value, self.message)
        return result

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """The tree's radices and depth, and the rounds of its schedule (up to ``CHECKED_NODES`` nodes)."""
        radices = radices_of(self, values)
        if radices is None:
            return {}
        result: dict[str, Json] = {
            "depth": len(radices),
            "radices": radices,
            "stage_steps": self.fabric.stages(radices),
        }
        if self.fabric.n <= CHECKED_NODES:
            result["schedule_rounds"] = tree_schedule(self.fibres, radices).rounds
        return result

    def rounds(self, values: Mapping[str, F64]) -> RoundSchedule:
        """Return the schedule of the tree, circuit by circuit.

        Raises
        ------
        NotApplicable
            If the values are not a tree, or the schedule is too large to list.
        """
        radices = radices_of(self, values)
        if radices is None:
            msg = f"{NAME}: the values are not a tree: the stages must be a walk from 1 to {self.fabric.n}"
            raise NotApplicable(msg)
        return tree_schedule(self.fibres, radices)

    def links(self, values: Mapping[str, F64]) -> Links:
        """Load of every link."""
        return round_links(self.fibres, self.rounds(values), np.full(self.fibres.arcs, self.fibres.channels))

    def replay(self, schedule: RoundSchedule) -> dict[str, float]:
        """Violations of an external schedule."""
        return violations(self.fibres, schedule)

    def closed_forms(self) -> list[Bound]:
        """The exact ones among the bounds."""
        return self.bounds()


def radices_of(data: TreeChoice, values: Mapping[str, F64]) -> list[int] | None:
    """Read the radices, first stage first; None if the values are not a walk from 1 to n."""
    if "radices" in values:
        given = np.asarray(values["radices"], dtype=float)
        if given.ndim != 1 or not np.isfinite(given).all() or (given != np.rint(given)).any() or (given > 2**31).any():
            return None
        results = [int(m) for m in given]
        try:
            check_radices(data.fabric.n, results)
        except BadInput:
            return None
        return results
    y = np.asarray(values.get("y", ()), dtype=float)
    graph = data.graph
    if y.shape != (graph.arcs,) or not np.isfinite(y).all():
        return None
    taken = np.flatnonzero(y > 0.5)
    stages = {int(graph.product[e]): int(e) for e in taken}
    results, at = [], 1
    while at in stages:
        e = stages.pop(at)
        results.append(int(graph.radix[e]))
        at = int(graph.reached[e])
    return results if at == data.fabric.n and len(results) == taken.size else None


def _schedule_faults(data: TreeChoice, radices: list[int]) -> float:
    """Violations of the schedule, and rounds beyond the count."""
    schedule = tree_schedule(data.fibres, radices)
    violated = sum(violations(data.fibres, schedule).values())
    if data.fabric.count == "printed":
        return violated
    return violated + max(0, schedule.rounds - sum(data.fabric.stages(radices)))


FORMULATION = TreeChoice
