r"""Certified optima to ten digits where first-order methods crawl: screen by their lengths, finish by interior point.

1. :mod:`certified_pdhg <solvers.methods.certified_pdhg>` closes the gap to some 1e-5, on one source for each orbit of
   verified automorphisms. Its arc lengths l give each arc and source a reduced cost
   :math:`l_a + dist_l(s, tail) - dist_l(s, head) \ge 0`.
2. Optimal flows use arcs of reduced cost 0 under optimal lengths. Arcs above a threshold are left out: at N = 1000 two
   thirds of the columns, and with them most of what makes the normal equations fill in.
3. Interior point solves the rest (:mod:`formulations.alltoall.orbits`); its flow is made exact, its lengths bound the
   *whole* problem, for shortest paths take every arc. If the gap is not closed the threshold grows, arcs that the
   new lengths make short come in, and step 3 is repeated.

Screening is a guess that decides only the time: flow and bound are what they are, and the runner recomputes both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.methods.certified_pdhg import iterate, refuse
from solvers.methods.orbit_lp import ReducedSolution, answer_of, solve_reduced
from solvers.outcome import Termination
from solvers.pdhg.start import StartFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.alltoall.orbits import Orbits
    from solvers.methods.base import Context

#: First-order methods are asked for this gap; below, their next digit costs more than interior point's.
FIRST_TOL = 3e-5
#: Arcs stay up to this reduced cost, in mean lengths, and each round more so.
THRESHOLD, GROWTH = 0.03, 3.0


def run(context: Context) -> Answer:
    """Iterate, screen, solve; more arcs until the gap is closed."""
    from formulations.alltoall.orbits import find

    refuse(context.data, METHOD.name)
    orbits = find(context.data)
    tol = context.task.tol
    keeper, termination, message = iterate(
        context, METHOD.name, orbits, max(tol, FIRST_TOL), single=True, steps=context.parameters["steps"],
        start=context.parameters["start"],
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
        while best.gap > tol and rounds < context.parameters["rounds"] and not keep.all():
            assert best.lengths is not None
            keep |= screened(orbits, closing.lengths, threshold) | screened(orbits, best.lengths, threshold)
            found = solve_reduced(context, orbits, keep, "highs-ipx")
            rounds, threshold = rounds + 1, threshold * GROWTH
            best = _better(best, found)
    except TimeoutError:
        best.termination = Termination.TIME_LIMIT
    answer = answer_of(context, orbits, best, METHOD.name)
    answer.metrics |= counts | {"rounds": rounds, "kept": float(keep.mean())}
    return answer


def screened(orbits: Orbits, lengths: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Arcs by representative, ``(m, |R|)``, whose reduced cost is at most ``threshold`` mean lengths."""
    from formulations.alltoall.concurrent_flow import distances

    reduced = orbits.reduced
    topology = reduced.topology
    reach = distances(reduced, lengths)
    with np.errstate(invalid="ignore"):  # inf - inf where a relay is out of reach
        cost = lengths[:, None] + reach[topology.tail] - reach[topology.head]
    return np.asarray(cost <= threshold * lengths.mean())


def _better(one: ReducedSolution, other: ReducedSolution) -> ReducedSolution:
    """The better flow and the better lengths of two."""
    flows = min(one, other, key=lambda x: x.upper)
    bound = max(one, other, key=lambda x: x.lower)
    return ReducedSolution(
        other.termination, flows.flows, bound.lengths, flows.upper, bound.lower, other.algorithm, other.version,
        other.columns, other.message,
    )  # fmt: skip


METHOD = Method(
    name="screened-lp",
    title="PDHG lengths screen the arcs, interior point finishes",
    summary="certified gaps of 1e-7 and below at thousands of ranks, on orbits where symmetry is verified",
    applies=lambda formulation: formulation.name == "alltoall.master",
    parameters=(
        Parameter("threshold", float, default=THRESHOLD, help="reduced cost, in mean lengths, up to which arcs stay"),
        Parameter("rounds", int, default=5, help="most interior-point solves, each with more arcs"),
        Parameter("steps", int, default=1_000_000, help="most first-order iterations"),
        Parameter("start", StartFile, default=StartFile(""), help="solution of this or a near instance to start from"),
    ),
    run=run,
)
