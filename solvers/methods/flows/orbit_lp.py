"""Method ``orbit-lp``: the master LP reduced to the orbits of a group of automorphisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.flow_orbits import ReducedSolution
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.alltoall.master import Master
    from opticoll.instances.topology import F64, Mask
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Task


#: Up to this many columns simplex is as fast as interior point.
SIMPLEX_COLUMNS = 6000
LP = Parameter(
    "lp",
    str,
    default="auto",
    choices=("auto", "highs-simplex", "highs-ipx"),
    help="solver of the reduced matrix; auto: highs-simplex, or highs-ipx above 6000 columns",
)
#: The reduction is fastest up to this many flow variables, see notes/benchmarks-pdhg.md.
MOST_VARIABLES = 30_000
#: For a few sources, up to this many: circulant:n=20000,offsets=1x37x811 60,000 variables in 12 CPU s.
MOST_OF_FEW = 100_000


def run_orbit_lp(context: Context) -> Answer:
    """The master LP reduced by symmetry, solved by simplex or interior point.

    The LP on the orbits of verified automorphisms, whose flow stands for those of all sources. A vertex-transitive
    network has one source to solve for instead of N, and as many capacity rows as orbits of arcs: the 16x16x16 torus is
    an LP of 720 columns. Every symmetry is verified on the arcs (:mod:`opticoll.instances.symmetry`); symmetries that
    failed links break are not used. Simplex solves small reductions and interior point large ones, followed by simplex
    if the gap is not closed. The reduction is :mod:`opticoll.solvers.methods.flows.flow_orbits`.

    Independent code checks the automorphisms, the flow of one source of each orbit with the loads of all
    (:mod:`opticoll.formulations.flows.symmetric_flow`), and the bound.
    """
    from opticoll.solvers.methods.flows import flow_orbits as reduction
    from opticoll.solvers.methods.flows.sharpening import sharpened

    orbits = reduction.find(context.data.flow)
    context.remaining()
    solver = str(context.parameters["lp"])
    best = sharpened(orbits, solve_reduced(context, orbits, None, solver), context.task.tol)
    if solver == "auto" and not best.gap <= context.task.tol and best.algorithm.startswith("interior"):
        again = solve_reduced(context, orbits, None, "highs-simplex")
        best = min(best, again, key=lambda solution: solution.gap)
    return answer_of(context, orbits, best, METHOD.name)


def solve_reduced(context: Context, orbits: Orbits, keep: Mask | None, solver: str) -> ReducedSolution:
    """Solve the reduced LP over the arcs ``keep``, ``(m, |R|)``, and make its flow exact.

    Raises
    ------
    TimeoutError
        When no time is left.
    """
    from opticoll.solvers.compile.compilation import compile_model
    from opticoll.solvers.compile.scaling import solve_scaled
    from opticoll.solvers.methods.flows import flow_orbits as reduction

    form = compile_model(reduction.model(orbits, keep))
    columns = form.size["variables"]
    solver = lp_solver(solver, columns)
    outcome = solve_scaled(form, solver, context.request(), in_process=True)
    solution = ReducedSolution(
        outcome.termination,
        algorithm=outcome.algorithm or solver,
        version=outcome.version,
        columns=columns,
        message=outcome.message,
    )
    if outcome.x is not None:
        solution = solution.with_flows(orbits, form.values(outcome.x)["y"])
    if outcome.row_duals is not None:
        solution = solution.with_lengths(orbits, reduction.lengths(orbits, form.duals(outcome.row_duals)["capacity"]))
    return solution


def answer_of(context: Context, orbits: Orbits, reduced: ReducedSolution, name: str) -> Answer:
    """The answer for the whole problem from that of the representatives."""
    closed = reduced.gap <= context.task.tol
    termination = Termination.OPTIMAL if closed else reduced.termination
    if termination is Termination.OPTIMAL and not closed:
        termination = Termination.TOLERANCE
    values: dict[str, F64] | None = None
    if reduced.flows is not None:
        flows = orbits.symmetric(reduced.flows / reduced.upper)
        values = {"g": cast("F64", flows), "F": np.asarray(1.0 / reduced.upper)}
    return Answer(
        termination,
        values=values,
        duals=None if reduced.lengths is None else {"capacity": reduced.lengths},
        bound=1.0 / reduced.lower if reduced.lower > 0 else None,
        solver={"name": name, "version": reduced.version, "algorithm": f"{reduced.algorithm} on orbits"},
        metrics=orbits.sizes | {"reduced_columns": reduced.columns},
        message=reduced.message,
    )


def lp_solver(chosen: str, columns: int) -> str:
    """The solver of a reduced matrix that the parameter ``lp`` chooses."""
    if chosen != "auto":
        return chosen
    return "highs-simplex" if columns <= SIMPLEX_COLUMNS else "highs-ipx"


def _few_orbits(problem: Formulation, _task: Task, size: Mapping[str, int]) -> bool:
    """Whether the symmetries that family and numbering suggest leave few flow variables."""
    from opticoll.solvers.methods.flows.flow_orbits import few_columns

    flow = cast("Master", problem).flow
    return few_columns(flow, *(min(most, size["variables"] // 2) for most in (MOST_VARIABLES, MOST_OF_FEW)))


METHOD = Method(
    name="orbit-lp",
    title="Exact LP on the orbits of verified automorphisms",
    summary="one source per orbit instead of all; vertex-transitive networks of thousands of ranks in seconds",
    serves=("alltoall.master",),
    # Random regular graphs: n=135 72,901 variables in 8.3 s, n=100, d=8 80,001 in 6.0 s, n=110 48,401 in 5.7 s;
    # n=156 97,345 in 13.1 s.
    takes_over=(Beyond("alltoall.master", 35_000, 140_000, suits=_few_orbits),),
    parameters=(LP,),
    run=run_orbit_lp,
)
