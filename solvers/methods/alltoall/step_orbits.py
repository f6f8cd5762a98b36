"""Method ``step-orbits``: the all-to-all in time steps, by source, on the orbits of automorphisms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.formulations.model import build_model
from opticoll.formulations.standard_form import Block
from opticoll.solvers.methods.flows.orbit_lp import LP, lp_solver
from opticoll.solvers.methods.method import Answer, Beyond, Method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Task


def run_step_orbits(context: Context) -> Answer:
    """The time-stepped LP by source, with one source per orbit of verified automorphisms and one row per orbit of arcs.

    The mean of an optimal flow over a group of automorphisms that preserve the problem is optimal, so only the flows of
    representatives r are variables, with their demands times the size w_r of their orbits, and ``capacity`` is its
    mean over every orbit P of arcs:

        sum_{a in P} sum_r f_art <= |P| c_P U_t.

    The flows are averaged over the stabilisers of r, divided by w_r and carried to all sources
    (:mod:`opticoll.solvers.methods.flows.flow_orbits`); a dual of P, divided by |P|, is the price of each of its arcs.
    Flows and bound are checked on the whole problem.

    Raises
    ------
    MethodMismatch
        If the model has one flow per pair (``aggregate=commodity``); ``timestep-children`` splits flows by pair.
    """
    from opticoll.solvers.auto import PYOMO_NONZEROS
    from opticoll.solvers.compile.compilation import compile_model
    from opticoll.solvers.compile.scaling import solve_scaled
    from opticoll.solvers.methods.flows.flow_orbits import find

    data: StepFlow = context.data
    if data.aggregate != "source":
        msg = "step-orbits: solves by source; set aggregate=source, or use the method timestep-children"
        raise MethodMismatch(msg)
    orbits = find(data.groups)
    context.remaining()
    few = StepFlow(orbits.reduced, data.steps, "source", relays=data.relays)
    size = few._estimate()
    stated = build_model(few, "pyomo" if size is not None and size["nonzeros"] <= PYOMO_NONZEROS else "cvxpy")
    form = _folded(compile_model(stated), orbits)
    columns = form.size["variables"]
    solver = lp_solver(str(context.parameters["lp"]), columns)
    outcome = solve_scaled(form, solver, context.request(), in_process=True)
    prices = None
    if outcome.row_duals is not None:
        duals = form.duals(outcome.row_duals)["capacity"] / orbits.arcs_in_orbit[:, None]
        prices = duals[orbits.arc_orbit]
    return Answer(
        outcome.termination,
        values=None if outcome.x is None else _lifted(data, few, orbits, form.values(outcome.x)),
        duals=None if prices is None else {"capacity": prices},
        solver={
            "name": METHOD.name,
            "version": outcome.version,
            "algorithm": f"{outcome.algorithm or solver} on orbits",
        },
        metrics=orbits.sizes | {"reduced_columns": columns},
        message=outcome.message,
    )


def _folded(form: StandardForm, orbits: Orbits) -> StandardForm:
    """The LP with the mean of ``capacity`` over every orbit of arcs, instead of one row per arc."""
    import scipy.sparse as sp

    capacity = form.rows["capacity"]  # (m, L)
    steps, rows, places = capacity.shape[1], form.A.shape[0], orbits.arcs_in_orbit.size
    kept = np.ones(rows, dtype=bool)
    kept[capacity.index] = False
    count = int(kept.sum())
    to = (orbits.arc_orbit[:, None] * steps + np.arange(steps)).ravel()
    share = np.repeat(1.0 / orbits.arcs_in_orbit[orbits.arc_orbit], steps)
    upward = np.where(np.isfinite(form.row_upper[capacity.index]), 1.0, -1.0)  # Pyomo turns some rows round
    mean = sp.coo_array((upward * share, (to, capacity.index)), shape=(places * steps, rows))
    means = Block("capacity", (places, steps), count + np.arange(places * steps))
    return replace(
        form,
        A=sp.csc_array(sp.vstack([form.A.tocsr()[kept], mean @ form.A])),
        row_lower=np.append(form.row_lower[kept], np.full(places * steps, -np.inf)),
        row_upper=np.append(form.row_upper[kept], np.zeros(places * steps)),
        rows={"capacity": means},
    )


def _lifted(data: StepFlow, few: StepFlow, orbits: Orbits, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Flows of all sources, and the utilisations that they need; None if the flows cannot be made exact."""
    exact = few.repair(values)
    if exact is None:
        return None
    flows = exact["f"] / orbits.weight[:, None]
    f = np.stack([orbits.lift(orbits.settle(flows[:, :, t].copy())) for t in range(data.steps)], axis=2)
    return {"f": f, "U": (f.sum(axis=1) / data.topology.capacity[:, None]).max(axis=0)}


def _symmetric(problem: Formulation, _task: Task, _size: Mapping[str, int]) -> bool:
    """Whether flows are by source, and the symmetries that family and numbering suggest leave at most half of them."""
    from opticoll.solvers.methods.flows.flow_orbits import source_orbits

    data = cast("StepFlow", problem)
    return data.aggregate == "source" and bool(2 * source_orbits(data.groups) <= data.groups.groups)


METHOD = Method(
    name="step-orbits",
    title="Time-stepped LP by source on the orbits of verified automorphisms",
    summary="one source per orbit instead of all, in time steps",
    serves=("alltoall.timestep-mcf",),
    # Beside other work: torus:5x5 10,004 variables in 3.0 s (2.9 s on orbits), torus:6x6 31,110 in 5.0 s (2.7 s);
    # torus:8x8 131,080 in 116 s (2.6 s).
    takes_over=(Beyond("alltoall.timestep-mcf", 12_000, 50_000, suits=_symmetric),),
    parameters=(LP,),
    run=run_step_orbits,
)
