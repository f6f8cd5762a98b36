r"""The master LP on the orbits of verified automorphisms, lifted back to all sources.

A vertex-transitive network has one source to solve for instead of N, and as few capacity rows as orbits of arcs: the
16x16x16 torus is an LP of 720 columns. Every symmetry used is one that the arcs themselves show
(:mod:`instances.automorphisms`); what is lost of it by failures is not used. The reduction is
:mod:`formulations.alltoall.orbits`; flow and bound are checked on the whole problem, by means that know nothing of it.

Simplex solves small reductions, interior point large ones, and simplex again should its answer not close the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Parameter
from solvers.errors import MethodMismatch
from solvers.methods.base import Answer, Method
from solvers.outcome import SolveRequest, Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.alltoall.orbits import Orbits
    from solvers.methods.base import Context

    F64 = NDArray[np.float64]

#: Up to this many columns simplex is as fast as interior point.
SIMPLEX_COLUMNS = 6000
#: Entries of the lifted flow (8 bytes each, a few times over).
MOST_FLOWS = 500_000_000


@dataclass
class ReducedSolution:
    """Unit flows of the representatives, arc lengths, and the bounds on T* that they prove.

    ``flows`` are settled, ``(m, |R|)``, None where there are none; ``upper`` is infinite then, as ``lower`` is 0
    without ``lengths``, ``(m,)``.
    """

    termination: Termination
    flows: F64 | None = None
    lengths: F64 | None = None
    upper: float = np.inf
    lower: float = 0.0
    algorithm: str = ""
    version: str | None = None
    columns: int = 0
    message: str = ""

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return self.upper / self.lower - 1.0 if self.lower > 0 else np.inf


def run(context: Context) -> Answer:
    """Find the orbits, solve their LP, lift."""
    from formulations.alltoall import orbits as reduction

    entries = context.data.topology.arcs * context.data.groups
    if entries > MOST_FLOWS:
        msg = f"orbit-lp: {entries} flow variables are more than the {MOST_FLOWS} that are written down"
        raise MethodMismatch(msg)
    orbits = reduction.find(context.data)
    context.remaining()
    solver = str(context.parameters["lp"])
    found = solve_reduced(context, orbits, None, solver)
    if solver == "auto" and not found.gap <= context.task.tol and found.algorithm.startswith("interior"):
        again = solve_reduced(context, orbits, None, "highs-simplex")
        found = min(found, again, key=lambda one: one.gap)
    return answer_of(context, orbits, found, METHOD.name)


def solve_reduced(context: Context, orbits: Orbits, keep: NDArray[np.bool_] | None, solver: str) -> ReducedSolution:
    """Solve the reduced LP over the arcs ``keep``, ``(m, |R|)``, and make its flow exact.

    Raises
    ------
    TimeoutError
        When no time is left.
    """
    from formulations.alltoall import orbits as reduction
    from formulations.alltoall.concurrent_flow import length_bound
    from formulations.alltoall.single_source import unit_flow
    from solvers.compile import compile_model
    from solvers.isolation import solve_here

    form = compile_model(reduction.model(orbits, keep))
    columns = form.size["variables"]
    if solver == "auto":
        solver = "highs-simplex" if columns <= SIMPLEX_COLUMNS else "highs-ipx"
    task = context.task
    request = SolveRequest(context.remaining(), task.threads, task.tol, task.seed)
    outcome = solve_here(form, solver, request)
    found = ReducedSolution(
        outcome.termination, algorithm=outcome.algorithm or solver, version=outcome.version, columns=columns,
        message=outcome.message,
    )  # fmt: skip
    reduced = orbits.reduced
    if outcome.x is not None:
        flows = np.maximum(form.values(outcome.x)["y"], 0.0)
        exact = unit_flow(reduced.topology, reduced.sources, reduced.demand / orbits.weight, flows)
        if exact is not None:
            found.flows = orbits.settle(exact)
            found.upper = float((orbits.fold(found.flows @ orbits.weight) / reduced.capacity).max())
    if outcome.row_duals is not None:
        lengths = reduction.lengths(orbits, form.duals(outcome.row_duals)["capacity"])
        bound = length_bound(reduced, lengths)
        if np.isfinite(bound):
            found.lengths, found.lower = lengths, 1.0 / bound
    return found


def answer_of(context: Context, orbits: Orbits, found: ReducedSolution, name: str) -> Answer:
    """The whole problem's answer out of the representatives'."""
    closed = found.gap <= context.task.tol
    termination = Termination.OPTIMAL if closed else found.termination
    if termination is Termination.OPTIMAL and not closed:
        termination = Termination.TOLERANCE
    values = None
    if found.flows is not None:
        flows = orbits.lift(found.flows)
        flows /= found.upper
        values = {context.data.flow: flows, "F": np.asarray(1.0 / found.upper)}
    return Answer(
        termination,
        values=values,
        duals=None if found.lengths is None else {"capacity": found.lengths},
        bound=1.0 / found.lower if found.lower > 0 else None,
        solver={"name": name, "version": found.version, "algorithm": f"{found.algorithm} on orbits"},
        metrics=orbits.sizes | {"reduced_columns": found.columns},
        message=found.message,
    )


METHOD = Method(
    name="orbit-lp",
    title="Exact LP on the orbits of verified automorphisms",
    summary="one source an orbit instead of all; vertex-transitive networks of thousands of ranks in seconds",
    applies=lambda formulation: formulation.name == "alltoall.master",
    parameters=(
        Parameter(
            "lp", str, default="auto", choices=("auto", "highs-simplex", "highs-ipx"),
            help="solver of the reduced matrix; auto: highs-simplex, or highs-ipx above 6000 columns",
        ),
    ),
    run=run,
)  # fmt: skip
