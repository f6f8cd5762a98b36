"""The master LP reduced by symmetry or by screening of arcs, solved by simplex or interior point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.flows.certified_pdhg import StartFile, iterate, refuse
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from opticoll.formulations.flows.flow_orbits import Orbits
    from opticoll.instances.digraph import F64, Mask
    from opticoll.solvers.methods.method import Context


#: Up to this many columns simplex is as fast as interior point.
SIMPLEX_COLUMNS = 6000
#: Most entries of the lifted flow (8 bytes each, in several copies).
MOST_FLOWS = 500_000_000


@dataclass
class ReducedSolution:
    """Unit flows of the representatives, arc lengths, and the bounds on T* that they prove.

    ``flows``, ``(m, |R|)``, are settled; without them ``upper`` is infinite, and without ``lengths``, ``(m,)``,
    ``lower`` is 0.
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


def run_orbit_lp(context: Context) -> Answer:
    """The master LP reduced by symmetry, solved by simplex or interior point.

    The LP on the orbits of verified automorphisms, lifted back to all sources. A vertex-transitive network has one
    source to solve for instead of N, and as many capacity rows as orbits of arcs: the 16x16x16 torus is an LP of 720
    columns. Every symmetry is verified on the arcs (:mod:`opticoll.instances.symmetry`); symmetries that failed links
    break are not used. Simplex solves small reductions and interior point large ones, followed by simplex if the gap is
    not closed. The reduction is :mod:`opticoll.formulations.flows.flow_orbits`.

    Flow and bound are checked on the whole problem by independent code.
    """
    from opticoll.formulations.flows import flow_orbits as reduction

    entries = context.data.topology.arcs * context.data.groups
    if entries > MOST_FLOWS:
        msg = f"orbit-lp: {entries} flow variables are more than the {MOST_FLOWS} that can be stored"
        raise MethodMismatch(msg)
    orbits = reduction.find(context.data)
    context.remaining()
    solver = str(context.parameters["lp"])
    best = solve_reduced(context, orbits, None, solver)
    if solver == "auto" and not best.gap <= context.task.tol and best.algorithm.startswith("interior"):
        again = solve_reduced(context, orbits, None, "highs-simplex")
        best = min(best, again, key=lambda solution: solution.gap)
    return answer_of(context, orbits, best, ORBIT_LP.name)


def solve_reduced(context: Context, orbits: Orbits, keep: Mask | None, solver: str) -> ReducedSolution:
    """Solve the reduced LP over the arcs ``keep``, ``(m, |R|)``, and make its flow exact.

    Raises
    ------
    TimeoutError
        When no time is left.
    """
    from opticoll.formulations.flows import flow_orbits as reduction
    from opticoll.formulations.flows.concurrent_flow import length_bound
    from opticoll.formulations.flows.single_source import unit_flow
    from opticoll.solvers.relaxation import solve_scaled
    from opticoll.solvers.standard_form import compile_model

    form = compile_model(reduction.model(orbits, keep))
    columns = form.size["variables"]
    if solver == "auto":
        solver = "highs-simplex" if columns <= SIMPLEX_COLUMNS else "highs-ipx"
    task = context.task
    request = SolveRequest(context.remaining(), task.threads, task.tol, task.seed)
    outcome = solve_scaled(form, solver, request, in_process=True)
    solution = ReducedSolution(
        outcome.termination, algorithm=outcome.algorithm or solver, version=outcome.version, columns=columns,
        message=outcome.message,
    )  # fmt: skip
    reduced = orbits.reduced
    if outcome.x is not None:
        flows = np.maximum(form.values(outcome.x)["y"], 0.0)
        exact = unit_flow(reduced.topology, reduced.sources, reduced.demand / orbits.weight, flows)
        if exact is not None:
            solution.flows = orbits.settle(exact)
            solution.upper = float((orbits.fold(solution.flows @ orbits.weight) / reduced.capacity).max())
    if outcome.row_duals is not None:
        lengths = reduction.lengths(orbits, form.duals(outcome.row_duals)["capacity"])
        bound = length_bound(reduced, lengths)
        if np.isfinite(bound):
            solution.lengths, solution.lower = lengths, 1.0 / bound
    return solution


def answer_of(context: Context, orbits: Orbits, reduced: ReducedSolution, name: str) -> Answer:
    """The answer for the whole problem from that of the representatives."""
    closed = reduced.gap <= context.task.tol
    termination = Termination.OPTIMAL if closed else reduced.termination
    if termination is Termination.OPTIMAL and not closed:
        termination = Termination.TOLERANCE
    values = None
    if reduced.flows is not None:
        flows = orbits.lift(reduced.flows)
        flows /= reduced.upper
        values = {context.data.flow: flows, "F": np.asarray(1.0 / reduced.upper)}
    return Answer(
        termination,
        values=values,
        duals=None if reduced.lengths is None else {"capacity": reduced.lengths},
        bound=1.0 / reduced.lower if reduced.lower > 0 else None,
        solver={"name": name, "version": reduced.version, "algorithm": f"{reduced.algorithm} on orbits"},
        metrics=orbits.sizes | {"reduced_columns": reduced.columns},
        message=reduced.message,
    )


ORBIT_LP = Method(
    name="orbit-lp",
    title="Exact LP on the orbits of verified automorphisms",
    summary="one source per orbit instead of all; vertex-transitive networks of thousands of ranks in seconds",
    applies=lambda formulation: formulation.name == "alltoall.master",
    parameters=(
        Parameter(
            "lp", str, default="auto", choices=("auto", "highs-simplex", "highs-ipx"),
            help="solver of the reduced matrix; auto: highs-simplex, or highs-ipx above 6000 columns",
        ),
    ),
    run=run_orbit_lp,
)  # fmt: skip


#: Gap at which the first-order method stops; below it, interior point gains the next digit faster.
FIRST_TOL = 3e-5
#: Arcs are kept up to this reduced cost, in mean lengths; it grows in each round.
THRESHOLD, GROWTH = 0.03, 3.0


def run_screened_lp(context: Context) -> Answer:
    r"""The master LP reduced by screening of arcs: optima to ten digits where first-order methods converge slowly.

    1. :mod:`certified_pdhg <opticoll.solvers.methods.flows.certified_pdhg>` closes the gap to about 1e-5, on one source
       for each orbit. Its arc lengths l give each arc and source a reduced cost :math:`l_a + dist_l(s, tail) -
       dist_l(s, head) \ge 0`.
    2. Optimal flows use arcs of reduced cost 0 under optimal lengths. Arcs above a threshold are omitted: at N = 1000
       these are two thirds of the columns and cause most of the fill-in of the normal equations.
    3. Interior point solves the rest. Its flow is made exact, and its lengths bound the *whole* problem, because
       shortest paths use all arcs. If the gap is not closed, the threshold grows, arcs that are short under the new
       lengths are added, and step 3 is repeated.

    Screening affects the time only. Flow and bound are checked on the whole problem by independent code.
    """
    from opticoll.formulations.flows.flow_orbits import find

    refuse(context.data, SCREENED_LP.name)
    orbits = find(context.data)
    tol = context.task.tol
    keeper, termination, message = iterate(
        context, SCREENED_LP.name, orbits, max(tol, FIRST_TOL), single=True, steps=int(context.parameters["steps"]),
        start=str(context.parameters["start"]),
    )  # fmt: skip
    closing = keeper.closing
    assert closing is not None
    if closing.gap <= tol or termination is Termination.TIME_LIMIT or closing.lengths is None or closing.flows is None:
        return keeper.last(termination, message)
    best = ReducedSolution(
        Termination.TOLERANCE, closing.flows / orbits.weight, closing.lengths, closing.upper, closing.lower,
        algorithm="reflected Halpern PDHG",
    )  # fmt: skip
    counts, keep = keeper.counts(), np.zeros((orbits.data.topology.arcs, orbits.representative.size), dtype=bool)
    threshold, rounds = float(context.parameters["threshold"]), 0
    try:
        while best.gap > tol and rounds < int(context.parameters["rounds"]) and not keep.all():
            assert best.lengths is not None
            keep |= screened(orbits, closing.lengths, threshold) | screened(orbits, best.lengths, threshold)
            reduced = solve_reduced(context, orbits, keep, "highs-ipx")
            rounds, threshold = rounds + 1, threshold * GROWTH
            best = _better(best, reduced)
    except TimeoutError:
        best.termination = Termination.TIME_LIMIT
    answer = answer_of(context, orbits, best, SCREENED_LP.name)
    answer.metrics = {**answer.metrics, **counts, "rounds": rounds, "kept": float(keep.mean())}
    return answer


def screened(orbits: Orbits, lengths: F64, threshold: float) -> Mask:
    """Arcs by representative, ``(m, |R|)``, whose reduced cost is at most ``threshold`` mean lengths."""
    from opticoll.formulations.flows.concurrent_flow import distances

    reduced = orbits.reduced
    topology = reduced.topology
    reach = distances(reduced, lengths)
    with np.errstate(invalid="ignore"):  # inf - inf where a relay cannot be reached
        cost = lengths[:, None] + reach[topology.tail] - reach[topology.head]
    return np.asarray(cost <= threshold * lengths.mean())


def _better(first: ReducedSolution, second: ReducedSolution) -> ReducedSolution:
    """The better flow and the better lengths of two."""
    flows = min(first, second, key=lambda x: x.upper)
    bound = max(first, second, key=lambda x: x.lower)
    return ReducedSolution(
        second.termination, flows.flows, bound.lengths, flows.upper, bound.lower, second.algorithm, second.version,
        second.columns, second.message,
    )  # fmt: skip


SCREENED_LP = Method(
    name="screened-lp",
    title="PDHG lengths screen the arcs, interior point finishes",
    summary="certified gaps of 1e-7 and below at thousands of ranks, on orbits where symmetry is verified",
    applies=lambda formulation: formulation.name == "alltoall.master",
    parameters=(
        Parameter(
            "threshold", float, default=THRESHOLD, help="reduced cost, in mean lengths, up to which arcs are kept"
        ),
        Parameter("rounds", int, default=5, help="largest number of interior-point solves, each with more arcs"),
        Parameter("steps", int, default=1_000_000, help="largest number of first-order iterations"),
        Parameter(
            "start", StartFile, default=StartFile(""), help="solution of this or a similar instance to start from"
        ),
    ),
    run=run_screened_lp,
)


METHODS = (ORBIT_LP, SCREENED_LP)
