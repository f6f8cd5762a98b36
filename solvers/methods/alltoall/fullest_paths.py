"""Method ``fullest-paths``: the fullest paths of every pair in an optimum without a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.alltoall import path_mcf_solution
from opticoll.formulations.flows.path_flow import largest
from opticoll.solvers.methods.method import Answer, Beyond, Method

if TYPE_CHECKING:
    from opticoll.formulations.alltoall.few_paths import FewPaths
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context


def best_flow(form: StandardForm, limit_s: float | None = None) -> F64:
    """Flows of a basic optimum over the paths, ``(|P|,)``.

    Raises
    ------
    TimeoutError
        Where HiGHS does not end within the limit.
    """
    from scipy.optimize import linprog

    served = np.isfinite(form.row_lower)
    sign = np.where(served, -1.0, 1.0)
    right = np.where(served, -form.row_lower, form.row_upper)
    between = np.column_stack([form.col_lower, form.col_upper])
    A = form.A.multiply(sign[:, None]).tocsr()
    limits = {} if limit_s is None else {"time_limit": limit_s}
    solved = linprog(-form.cost, A_ub=A, b_ub=right, bounds=between, method="highs-ds", options=limits)
    if solved.status == 1:
        raise TimeoutError
    assert solved.status == 0, "a flow of 0 is feasible, and capacities are finite"
    return np.maximum(solved.x[:-1], 0.0)


def run(context: Context) -> Answer:
    """Two linear programs: over all paths; then over the ``routes_per_pair`` of every pair with most flow in the first.

    Where the first has no pair with more paths, its optimum is that of the problem. When time ends within the second,
    the answer is the first's flow over these paths, scaled to serve all pairs alike; within the first, equal flows over
    the first paths of every pair.
    """
    data: FewPaths = context.data
    paths = data.routing.paths
    form = path_mcf_solution.flow_program(data)
    _save(context, np.ones(paths.paths))
    first = best_flow(form, context.remaining())
    _save(context, first)
    most = np.append(np.zeros(paths.paths), np.inf)
    most[largest(paths, first, data.routes_per_pair)] = np.inf
    values = path_mcf_solution.repair(data, {"f": best_flow(replace(form, col_upper=most), context.remaining())})
    assert values is not None
    left_out = int((first > 0)[most[:-1] == 0].sum())
    return Answer.heuristic(values, "two linear programs", {"paths_left_out": left_out})


def _save(context: Context, f: F64) -> None:
    """Keep the fullest paths of these flows, scaled, as the answer where time ends."""
    values = context.data.repair({"f": f})
    context.save(Answer.heuristic(values, "fullest paths, scaled"), float(values["F"]))


METHOD = Method(
    name="fullest-paths",
    title="Fullest paths of every pair",
    summary="the paths of every pair with most flow in an optimum without a limit, and the best flow over them",
    serves=("alltoall.few-paths",),
    # HiGHS: genkautz:n=16,d=3 with four paths of a pair, 1,921 variables, in 7 s.
    takes_over=(Beyond("alltoall.few-paths", 2_000, proves=False),),
    run=run,
)
