"""Trees of an all-gather: parameters, bounds by dynamic programming, potentials and receptions, solutions."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.optree import step_counts, step_times
from opticoll.formulations.optree.radix_trees import MOST_NODES, check_radices, walks
from opticoll.formulations.optree.step_counts import COUNTS
from opticoll.formulations.optree.tree_schedules import fabric_of, tree_schedule, violations
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.wavelengths import whole_fibres
from opticoll.formulations.variables import Array, Axis, SolutionSize, round_links

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.optree.radix_trees import RadixGraph
    from opticoll.formulations.optree.tree import TreeChoice
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


#: Maximum number of nodes for which the checker builds the schedule.
CHECKED_NODES = 128
#: Parameters of ``optree.tree``.
PARAMETERS = (
    Parameter(
        "count",
        str,
        default="lemma",
        help="steps of a stage: Lemma 1 as restored, the proven minimum, or Theorem 1's terms",
        choices=COUNTS,
    ),
    Parameter("depth", int, default=0, help="stages of the tree; 0: any number"),
    Parameter("data", float, default=0.0, help="bytes per node, for the time in packets; 0: no time", least=0),
    Parameter(
        "clock",
        float,
        default=0.0,
        help="clock of the O/E/O conversion [Hz], one cycle per flit; 0: none",
        least=0,
        only_with={"data": ()},
    ),
    Parameter(
        "conversion",
        str,
        default="pipelined",
        help="conversion of flits: during transmission, or after it",
        choices=step_times.CONVERSIONS,
        only_with={"clock": ()},
    ),
)


def prepared(
    cls: type[TreeChoice], instance: object, *, count: str, depth: int, data: float, clock: float, conversion: str
) -> TreeChoice:
    """The problem on intact fibres.

    Raises
    ------
    NotApplicable
        For too many nodes, or a depth that no tree on them has.
    """
    fibres = whole_fibres(instance, cls.name)
    fabric = fabric_of(fibres, count)
    if fibres.n > MOST_NODES:
        refuse(cls.name, f"trees are searched on at most {MOST_NODES} nodes, not {fibres.n}; use fewer", NotApplicable)
    if not 0 <= depth <= fabric.deepest:
        msg = f"{cls.name}: depth={depth}; trees on {fibres.n} nodes have depth 1 to {fabric.deepest}; 0 means any"
        raise NotApplicable(msg)
    return cls(fibres, fabric, depth, data, step_times.StepCost(clock or math.inf, conversion))


def stages(data: TreeChoice) -> RadixGraph:
    """All stages with their steps."""
    return walks(data.fabric)


def least_steps(data: TreeChoice) -> list[I64]:
    """Minimum steps to every product by exactly j stages, ``(n + 1,)`` each, up to ``depth`` or the largest."""
    return data.graph.layers(data.depth or data.fabric.deepest)


def arrays(data: TreeChoice, names: Collection[str]) -> dict[str, Array]:
    """Shapes of ``radices``, numbered from 1, or of y by product and radix; and of the duals of ``walk``."""
    walk = Array((Axis("product", data.fabric.n),), dual=True)
    if "radices" in names:
        size = SolutionSize("stages", most=data.fabric.n)
        stage = Axis("stage", size, lambda values: range(1, values["radices"].size + 1))
        return {"radices": Array((stage,), low=2, high=data.fabric.n + 1), "walk": walk}
    graph = data.graph
    named = Axis("stage", graph.arcs, lambda _: {"product": graph.product.tolist(), "radix": graph.radix.tolist()})
    return {"y": Array((named,)), "walk": walk}


def certify(data: TreeChoice, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by any potentials of products; not for a fixed depth.

    With u the duals of ``walk`` (either sign): the smallest c_e + u_P - u_Q, if negative, counts once per possible
    stage.
    """
    if "walk" not in duals or data.depth:
        return None
    u = np.asarray(duals["walk"], dtype=float)
    graph = data.graph
    if u.shape != (data.fabric.n,) or not np.isfinite(u).all():
        return None
    best = -np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        lost = rounding.gamma(8) * (2 * np.abs(u).max() + float(graph.cost.max()))
        for sign in (1.0, -1.0):
            v = sign * u
            slack = float((graph.cost + v[graph.product - 1] - v[graph.reached - 1]).min() - lost)
            terms = [v[-1], -v[0], float(rounding.down(min(slack, 0.0) * data.fabric.deepest))]
            best = max(best, rounding.sum_down(terms))
    if not np.isfinite(best):
        return None
    # ``best`` is rounded down, so round-off cannot lift it above an integer.
    reason = "no stage is cheaper than the difference of its products' potentials"
    return Bound("potentials", float(np.ceil(best)), reason, "optree")


def bounds(data: TreeChoice) -> list[Bound]:
    """Bounds from dynamic programming, checked against every stage, and from the chunks that a node receives.

    The first holds for the given count. The second holds for any all-gather, and so for the schedule of a tree,
    but not for the steps of count ``printed``.
    """
    layers, graph = data.layers, data.graph
    depth = data.depth or int(np.argmin([layer[-1] for layer in layers]))
    # Potentials of (stages so far, product): no stage may reach a product at a lower cost.
    for before, after in pairwise(layers):
        if (before[graph.product] + graph.cost < after[graph.reached]).any():
            msg = f"{data.name}: a stage has a lower cost than the potentials of the dynamic program"
            raise ArithmeticError(msg)
    results = [
        Bound(
            "dynamic-program",
            float(layers[depth][-1]),
            "no stage undercuts the minimum steps to its product",
            "optree",
            exact=True,
        ),
    ]
    if data.fabric.count != "printed":
        fabric = data.fabric
        least = step_counts.gather_bound(fabric.n, fabric.wavelengths, ring=fabric.ring)
        results.append(Bound("receptions", float(least), "a node receives n - 1 chunks over its fibres", "optree"))
    return results


closed_forms = bounds


def metrics(data: TreeChoice, value: float | None) -> dict[str, Json]:
    """Rounds, and times in microseconds if ``data`` is given."""
    rule = {"lemma": "with stages counted by Lemma 1", "printed": "with stages counted by Theorem 1's terms"}
    restricted = [rule.get(data.fabric.count), f"at depth {data.depth}" if data.depth else None]
    result: dict[str, Json] = {
        "rounds": None if value is None else int(value),
        "conditional_on": ", ".join(part for part in restricted if part) or None,
    }
    if data.message > 0:
        result["packets"] = data.cost.packets(data.message)
        result["step_us"] = 1e6 * data.cost.step(data.message)
        result["time_us"] = None if value is None else 1e6 * data.cost.gather(value, data.message)
    return result


def describe(data: TreeChoice, values: Mapping[str, F64]) -> dict[str, Json]:
    """The tree's radices, its depth, and the steps of every stage."""
    radices = radices_of(data, values)
    if radices is None:
        return {}
    return {"depth": len(radices), "radices": radices, "stage_steps": data.fabric.stages(radices)}


def rounds_of_tree(data: TreeChoice, values: Mapping[str, F64]) -> RoundSchedule:
    """Return the schedule of the tree, circuit by circuit.

    Raises
    ------
    NotApplicable
        If the values are not a tree, or the schedule is too large to list.
    """
    radices = radices_of(data, values)
    if radices is None:
        msg = f"{data.name}: the values are not a tree: the stages must be a walk from 1 to {data.fabric.n}"
        raise NotApplicable(msg)
    return tree_schedule(data.fibres, radices)


def links(data: TreeChoice, values: Mapping[str, F64]) -> Links:
    """Load of every link."""
    return round_links(data.fibres, data.rounds(values), np.full(data.fibres.arcs, data.fibres.channels))


def replayed(data: TreeChoice, schedule: RoundSchedule) -> dict[str, float]:
    """Violations of an external schedule."""
    return violations(data.fibres, schedule)


def radices_of(data: TreeChoice, values: Mapping[str, F64]) -> list[int] | None:
    """Read the radices, first stage first; None if the values are not a walk from 1 to n."""
    if "radices" in values:
        results = [int(m) for m in values["radices"]]
        try:
            check_radices(data.fabric.n, results)
        except BadInput:
            return None
        return results
    graph, taken = data.graph, np.flatnonzero(np.asarray(values["y"], dtype=float) > 0.5)
    stages = {int(graph.product[e]): int(e) for e in taken}
    results, at = [], 1
    while at in stages:
        e = stages.pop(at)
        results.append(int(graph.radix[e]))
        at = int(graph.reached[e])
    return results if at == data.fabric.n and len(results) == taken.size else None


def schedule_faults(data: TreeChoice, radices: list[int]) -> float:
    """Violations of the schedule, and rounds beyond the count; 0 for more than ``CHECKED_NODES`` nodes."""
    if data.fabric.n > CHECKED_NODES:
        return 0.0
    schedule = tree_schedule(data.fibres, radices)
    violated = sum(violations(data.fibres, schedule).values())
    if data.fabric.count == "printed":
        return violated
    return violated + max(0, schedule.rounds - sum(data.fabric.stages(radices)))
