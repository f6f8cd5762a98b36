"""All-to-all in time steps: bounds by prices of arcs in steps and by the fluid time, sizes, exact numbers.

The functions take the formulation (:mod:`opticoll.formulations.alltoall.timestep_mcf`), and are its methods.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.alltoall.time_expansion import step_distances
from opticoll.formulations.declared_axes import axes_arrays, size
from opticoll.formulations.flows import flow_bounds
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_checks import demand_metrics
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import BANDWIDTHS, SHARDS, Links

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.alltoall.timestep_mcf import StepFlow
    from opticoll.formulations.model import Values
    from opticoll.formulations.variables import Array
    from opticoll.instances.topology import F64
    from opticoll.types import Json

#: Most flows whose upper bounds are listed for an estimate of the size.
MOST_LISTED = 50_000_000
#: Vertices up to which the time is compared with bounds of the fluid time, and relative distance that counts as none.
MOST_BOUNDED, ATTAINED = 128, 1e-6


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


def certify(problem: StepFlow, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by the duals of ``capacity``, read as prices of arcs in steps."""
    if "capacity" not in duals or np.shape(duals["capacity"]) != (problem.topology.arcs, problem.steps):
        return None
    value = price_bound(problem, -np.asarray(duals["capacity"], dtype=float))
    return Bound("step-prices", value, "arc prices of every step from the duals, cheapest paths recomputed")


def bounds(problem: StepFlow) -> list[Bound]:
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
        for b in flow_bounds.bounds(fluid)
        if b.value > 0 and np.isfinite(b.value)
    ]


def derived(problem: StepFlow) -> list[Fraction]:
    """The demands, and the variable bounds that are sums and quotients of them: by group, and ``longest``."""
    each = [sum(map(rounding.decimal, column.tolist()), Fraction(0)) for column in problem.groups.demand.T]
    return [
        *rounding.decimals(problem.groups.demand),
        *each,
        sum(each, Fraction(0)) / rounding.entered(float(problem.topology.capacity.min())),
    ]


def estimate(problem: StepFlow) -> dict[str, int] | None:
    """About the size of the model, without the flows that are fixed at 0 if the array of all of them is listed."""
    m, groups, steps = problem.shape
    every = m * groups * steps
    flows = every if every > MOST_LISTED else int(np.count_nonzero(problem.upper))
    rows = m * steps + problem.topology.num_ranks * groups
    # The upper bounds of all flows take 9 bytes each, a fifth of a nonzero.
    return size(problem, variables=flows + steps, constraints=rows, nonzeros=max(3 * flows, every // 5))


def arrays(problem: StepFlow, names: Collection[str]) -> dict[str, Array]:
    """The flows f, the utilisations U, and the duals of ``capacity``."""
    return axes_arrays(problem, "capacity")


def metrics(problem: StepFlow, value: float | None) -> dict[str, Json]:
    """Steps, their time, the alpha-beta time alpha L + beta sum U_t, and whether more steps may take less."""
    return {
        "steps": problem.steps,
        "T_steps": value,
        "alpha_beta_time": None if value is None else problem.alpha * problem.steps + problem.beta * value,
        "ranks": problem.topology.num_ranks,
        **demand_metrics(problem.groups),
        "more_steps": _more_steps(problem, value),
        "conditional_on": f"in {problem.steps} step{'s' * (problem.steps > 1)}",
    }


def _more_steps(problem: StepFlow, value: float | None) -> str | None:
    """That one step more may take less, where the bounds of the fluid time leave it open; None for large networks."""
    if value is None or problem.topology.n > MOST_BOUNDED:
        return None
    least = max((bound.value for bound in bounds(problem)), default=0.0)
    if least >= value * (1 - ATTAINED):
        return None
    return f"steps={problem.steps + 1} may take less: any number of steps takes at least {least:.6g}"


def links(problem: StepFlow, values: Values) -> Links:
    """Shards over every arc in all steps, within the time of all steps."""
    load = np.asarray(values["f"], dtype=float).sum(axis=(1, 2))
    return Links(problem.topology, load, problem.topology.capacity, problem.objective(values), SHARDS, BANDWIDTHS)
