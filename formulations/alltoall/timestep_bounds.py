"""All-to-all in time steps: bounds by prices of arcs in steps and by the fluid time, sizes, exact numbers.

The functions take the formulation (:mod:`opticoll.formulations.alltoall.timestep_mcf`), and are its methods.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.alltoall.time_expansion import holding, step_distances, step_hops
from opticoll.formulations.declared_axes import axes_arrays
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_bounds import bounds
from opticoll.formulations.flows.flow_checks import demand_metrics
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links
from opticoll.instances.demands import UNIFORM
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.alltoall.timestep_mcf import StepFlow
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64
    from opticoll.types import Json, Settings


def price_bound(problem: StepFlow, prices: F64) -> float:
    """Lower bound on ``sum_t U_t`` proven by prices ``(m, L)``, normalised here; rounded down.

    Negative and non-finite prices count as 0.
    """
    prices = np.where(np.isfinite(prices) & (prices > 0), prices, 0.0)
    scale = rounding.exponent(problem.topology.capacity)
    capacity = rounding.scaled_up(problem.topology.capacity, -scale)
    with np.errstate(all="ignore"):
        prices = prices / np.where((top := prices.max(axis=0, initial=0.0)) > 0, top, 1.0)
        prices = np.where((total := capacity @ prices) > 0, prices / total, 0.0)
    prices = np.minimum(prices, 1e280)
    most = max(rounding.dot_up(capacity, prices[:, t]) for t in range(problem.steps))
    unique, inverse = np.unique(problem.groups.sources, return_inverse=True)
    reach = step_distances(problem.topology, unique, prices, problem.holds)[inverse].T
    wanted = problem.groups.demand > 0
    paid = float(rounding.down(rounding.dot_down(problem.groups.demand[wanted], reach[wanted]), problem.steps))
    return max(float(rounding.scaled_down(rounding.quotient_down(paid, max(most, 1.0)), -scale)), 0.0)


def price_certificate(problem: StepFlow, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by the duals of ``capacity``, read as prices of arcs in steps."""
    if "capacity" not in duals or np.shape(duals["capacity"]) != (problem.topology.arcs, problem.steps):
        return None
    value = price_bound(problem, -np.asarray(duals["capacity"], dtype=float))
    return Bound("step-prices", value, "arc prices of every step from the duals, cheapest paths recomputed")


def fluid_times(problem: StepFlow) -> list[Bound]:
    """Bounds on the fluid time T, all of which also hold for ``sum_t U_t``."""
    fluid = ConcurrentFlow.by_source(problem.topology, None if problem.groups.uniform else problem.groups.traffic)
    return [
        Bound(
            b.name,
            rounding.quotient_down(1.0, b.value),
            f"sum U_t >= T; {b.reason}",
            b.paper,
            fraction=rounding.quotient(Fraction(1), b.fraction),
        )
        for b in bounds(fluid)
        if b.value > 0 and np.isfinite(b.value)
    ]


def exact_demands(problem: StepFlow) -> list[Fraction]:
    """The demands, and the variable bounds that are sums and quotients of them: by group, and ``longest``."""
    each = [sum(map(rounding.decimal, column.tolist()), Fraction(0)) for column in problem.groups.demand.T]
    return [
        *rounding.decimals(problem.groups.demand),
        *each,
        sum(each, Fraction(0)) / rounding.entered(float(problem.topology.capacity.min())),
    ]


def size_of_steps(problem: StepFlow) -> dict[str, int]:
    """Size of the model before it is built: variables fixed at 0, and rows without a term, are not counted."""
    steps, topology = problem.steps, problem.topology
    balanced = problem.groups.served & problem.holds[:, None]  # rows of ``balance``
    arc, group, step = np.nonzero(problem.upper > 0)
    tail, head, step = topology.tail[arc], topology.head[arc], step + 1
    first = np.full(balanced.shape, steps + 1)  # first step in which a vertex sends
    np.minimum.at(first, (tail, group), step)
    waits = steps - np.maximum(first - 1, 1)  # rows of causality
    sends, arrives = balanced[tail, group], balanced[head, group]
    touched = np.zeros_like(balanced)
    touched[tail, group] = touched[head, group] = True
    loaded = topology.arcs * steps
    passing = np.count_nonzero(~problem.holds[tail]) + np.count_nonzero(~problem.holds[head])
    sent = np.maximum(steps - np.maximum(step - 1, 1), 0)[sends].sum()
    received = np.maximum(steps - np.maximum(step, first[head, group] - 1), 0)[arrives].sum()
    return {
        "variables": step.size + steps,
        "constraints": int(
            loaded + np.maximum(waits[balanced], 0).sum() + _passed(problem) + np.count_nonzero(touched & balanced)
        ),
        "nonzeros": int(step.size + loaded + sent + received + passing + sends.sum() + arrives.sum()),
        "integers": 0,
    }


def _passed(problem: StepFlow) -> int:
    """Rows of ``passing``: relays with a flow that is not fixed at 0, by group and step."""
    touched = np.zeros((problem.topology.n, *problem.shape[1:]), dtype=bool)
    for ends in (problem.topology.tail, problem.topology.head):
        np.logical_or.at(touched, ends, problem.upper > 0)
    return int(np.count_nonzero(touched & ~problem.holds[:, None, None]))


def least_size_of_steps(instance: object, parameters: Settings) -> dict[str, int] | None:
    """Lower bound on the size of the model before its data are computed, from the distances.

    A variable not fixed at 0 has at least three nonzeros, a pair of ranks a row of ``balance``. The upper bounds
    of all flows, fixed or not, take 9 bytes each, which counts as a fifth of a nonzero.
    """
    uniform = parameters["demand"] == UNIFORM
    if not isinstance(instance, Topology) or not instance.connected or not uniform:
        return None
    ranks, by_source = instance.terminals, parameters["aggregate"] == "source"
    away, begins = step_hops(instance, holding(instance, str(parameters["relays"])))
    steps = int(parameters["steps"]) or int(away[np.ix_(ranks, ranks)].max())
    reached = away[ranks][:, instance.tail] + begins  # (N, m): the step in which s reaches the arc
    ahead = away[instance.head][:, ranks].T  # (N, m): the steps from the arc to t
    flows = 0
    for step in range(1, steps + 1):
        from_source = (reached <= step) & (instance.head != ranks[:, None])
        to_target = (ahead <= steps - step) & (instance.tail != ranks[:, None])
        others = to_target.sum(axis=0) - to_target  # targets other than the source
        flows += int((from_source & (others > 0) if by_source else from_source * others).sum())
    pairs = ranks.size * (ranks.size - 1)
    held = instance.arcs * steps * (ranks.size if by_source else pairs)
    return {
        "variables": flows + steps,
        "constraints": pairs,
        "nonzeros": max(3 * flows, held // 5),
        "integers": 0,
    }


def step_arrays(problem: StepFlow, names: Collection[str]) -> dict[str, Array]:
    """The flows f, the utilisations U, and the duals of ``capacity``."""
    return axes_arrays(problem, "capacity")


def step_metrics(problem: StepFlow, value: float | None) -> dict[str, Json]:
    """Steps, the time that they take together, and the alpha-beta time alpha L + beta sum U_t."""
    diameter = problem.topology.diameter
    return {
        "steps": problem.steps,
        "diameter": int(diameter) if np.isfinite(diameter) else None,
        "T_steps": value,
        "alpha_beta_time": None if value is None else problem.alpha * problem.steps + problem.beta * value,
        "ranks": problem.topology.num_ranks,
        **demand_metrics(problem.groups),
        "conditional_on": f"in {problem.steps} step{'s' * (problem.steps > 1)}",
    }


def step_links(problem: StepFlow, values: Values) -> Links:
    """Shards over every arc in all steps, within the time of all steps."""
    load = np.asarray(values["f"], dtype=float).sum(axis=(1, 2))
    return Links(problem.topology, load, problem.topology.capacity, problem.objective(values), SHARDS, BANDWIDTHS)
