"""Method ``screened-lp``: the master LP on the arcs that first-order lengths leave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.flows.certified_pdhg import BEYOND_VARIABLES, iterate, reaches_tolerance, refuse
from opticoll.solvers.methods.flows.flow_orbits import ReducedSolution
from opticoll.solvers.methods.flows.orbit_lp import answer_of, solve_reduced
from opticoll.solvers.methods.flows.sharpening import sharpened
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, Mask
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.method import Context


#: Gap at which the first-order method stops; below it, interior point gains the next digit faster.
FIRST_TOL = 3e-5
#: Arcs are kept up to this reduced cost, in mean lengths; it grows in each round.
THRESHOLD, GROWTH = 0.02, 3.0
#: Reduced cost, in mean lengths, of arcs on shortest paths.
SHORTEST = 1e-9


def run_screened_lp(context: Context) -> Answer:
    r"""The master LP reduced by screening of arcs: optima to ten digits where first-order methods converge slowly.

    1. :mod:`certified_pdhg <opticoll.solvers.methods.flows.certified_pdhg>` closes the gap to about 1e-5, on one source
       for each orbit. Its arc lengths l give each arc and source a reduced cost :math:`l_a + dist_l(s, tail) -
       dist_l(s, head) \ge 0`.
    2. Optimal flows use arcs of reduced cost 0 under optimal lengths. Arcs above a threshold are omitted: at N = 1000
       these are two thirds of the columns and cause most of the fill-in of the normal equations.
    3. Interior point solves the rest. Its flow is made exact, and its lengths bound the *whole* problem,
       because shortest paths use all arcs. Both are sharpened (:mod:`opticoll.solvers.methods.flows.sharpening`). If
       the gap is not closed, the threshold grows, arcs on shortest paths under the prices of the program are added, and
       step 3 is repeated.

    Screening affects the time only. Flow and bound are checked on the whole problem by independent code.
    """
    from opticoll.solvers.methods.flows.flow_orbits import find

    refuse(context.data.flow, METHOD.name)
    orbits = find(context.data.flow)
    tol = context.task.tol
    keeper, termination, message = iterate(
        context,
        METHOD.name,
        orbits,
        max(tol, FIRST_TOL),
        single=True,
        steps=int(context.parameters["steps"]),
    )
    closing = keeper.closing
    assert closing is not None
    if closing.gap <= tol or termination is Termination.TIME_LIMIT or closing.lengths is None or closing.flows is None:
        return keeper.last(termination, message)
    best = ReducedSolution(
        Termination.TOLERANCE,
        closing.flows / orbits.weight,
        closing.lengths,
        closing.upper,
        closing.lower,
        algorithm="reflected Halpern PDHG",
    )
    best = sharpened(orbits, best, tol)
    counts, keep = keeper.counts(), np.zeros((orbits.data.topology.arcs, orbits.representative.size), dtype=bool)
    reduced: ReducedSolution | None = None
    threshold, rounds = float(context.parameters["threshold"]), 0
    try:
        while best.gap > tol and rounds < int(context.parameters["rounds"]) and not keep.all():
            assert best.lengths is not None
            keep |= screened(orbits, closing.lengths, threshold) | screened(orbits, best.lengths, threshold)
            if reduced is not None and reduced.lengths is not None:
                keep |= shortest(orbits, reduced.lengths, closing.lengths)
            reduced = solve_reduced(context, orbits, keep, "highs-ipx")
            rounds, threshold = rounds + 1, threshold * GROWTH
            best = sharpened(orbits, _better(best, reduced), tol)
    except TimeoutError:
        best.termination = Termination.TIME_LIMIT
    answer = answer_of(context, orbits, best, METHOD.name)
    answer.metrics = {**answer.metrics, **counts, "rounds": rounds, "kept": float(keep.mean())}
    return answer


def screened(orbits: Orbits, lengths: F64, threshold: float) -> Mask:
    """Arcs by representative, ``(m, |R|)``, whose reduced cost is at most ``threshold`` mean lengths."""
    return np.asarray(orbits.reduced.reduced_costs(lengths) <= threshold * lengths.mean())


def shortest(orbits: Orbits, lengths: F64, preferred: F64) -> Mask:
    """Arcs of a tree of shortest paths under ``lengths`` for every representative, ``(m, |R|)``.

    Of several arcs into a vertex the one of least reduced cost under the lengths ``preferred``. The prices of a program
    without some arcs make those short that it lacks.
    """
    groups, head = orbits.representative.size, orbits.data.topology.head
    arc, group = np.nonzero(screened(orbits, lengths, SHORTEST) & ~orbits.reduced.blocked)
    place = head[arc] * groups + group
    order = np.lexsort((orbits.reduced.reduced_costs(preferred)[arc, group], place))
    first = order[np.flatnonzero(np.diff(place[order], prepend=-1))]
    result = np.zeros((head.size, groups), dtype=bool)
    result[arc[first], group[first]] = True
    return result


def _better(first: ReducedSolution, second: ReducedSolution) -> ReducedSolution:
    """The better flow and the better lengths of two."""
    flows = min(first, second, key=lambda x: x.upper)
    bound = max(first, second, key=lambda x: x.lower)
    return replace(second, flows=flows.flows, upper=flows.upper, lengths=bound.lengths, lower=bound.lower)


METHOD = Method(
    name="screened-lp",
    title="PDHG lengths screen the arcs, interior point finishes",
    summary="certified gaps of 1e-7 and below at thousands of ranks, on orbits where symmetry is verified",
    serves=("alltoall.master",),
    takes_over=(Beyond("alltoall.master", BEYOND_VARIABLES, suits=lambda *given: not reaches_tolerance(*given)),),
    parameters=(
        Parameter(
            "threshold", float, default=THRESHOLD, help="reduced cost, in mean lengths, up to which arcs are kept"
        ),
        Parameter("rounds", int, default=5, help="largest number of interior-point solves, each with more arcs"),
        Parameter("steps", int, default=1_000_000, help="largest number of first-order iterations"),
    ),
    run=run_screened_lp,
)
