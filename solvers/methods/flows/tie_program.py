r"""The last digits of a concurrent flow by a linear program over ties, where few orbits of arcs stand for many flows.

Given lengths l, let the arcs of small reduced cost of every group of sources be *used*. Trees of them, by the largest
inflow of every vertex, leave the other used arcs as *ties*, each of which closes a cycle with its tree
(:mod:`opticoll.solvers.methods.flows.sharpening`). Flows around these cycles keep all demands delivered, so with them
as variables the master LP has no flow balance left:

.. math:: \min T \quad\text{s.t.}\quad \text{load} + C^\top \theta \le T c, \qquad y + M \theta \ge 0,

where C sums cycles by orbits of arcs and M by arcs and groups. Its rows are the orbits of arcs, a few hundred instead
of one hundred thousand, and the tree arcs that a solution would make negative, added when it does. Changes are limited
to a share of the inflow beside them, since most solutions far away are negative somewhere; limits that cost anything
grow.

The program affects the time only: its flow is made exact, and its lengths bound the whole problem by shortest paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.single_source import unit_flow
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.methods.flows.sharpening import Cycles, cycles_of, levelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.instances.topology import F64, Mask
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.flows.reduced_solution import ReducedSolution
    from opticoll.solvers.task import Outcome

    Solver = Callable[[StandardForm], Outcome]

#: Least number of flow balances for every orbit of arcs. GK(1000,4) has 250; with 50, interior point on the flows
#: themselves is as fast.
LEAST_RATIO = 200
#: Reduced cost, in mean lengths, of the ties: under first-order lengths, and under those of a program.
FIRST_TIES, TIES = 1e-2, 1e-3
#: Solves of every pass, at most; the first one is for lengths.
ROUNDS = (8, 20, 20)
#: Increase of a tie, as a share of the flow of the tree arc beside it.
REACH = 0.3
#: Growth of a limit that costs more than this share of T.
GROWTH, COSTS = 16.0, 1e-12
#: Cost of T, so that the tolerances of a solver leave nothing of the gap.
SCALE = 1e5
#: Flow, in mean demands, below which a tree arc is negative; least flow of used arcs, so that flows prefer them.
NEGATIVE, LEAST = 1e-9, 1e-10


def suits(orbits: Orbits) -> bool:
    """Whether there are few orbits of arcs for the flows."""
    reduced = orbits.reduced
    return bool(reduced.topology.n * reduced.groups >= LEAST_RATIO * orbits.arcs_in_orbit.size)


def closed_by_ties(orbits: Orbits, near: ReducedSolution, tol: float, solve: Solver) -> ReducedSolution:
    """Improve both bounds of ``near``, whose lengths and flows are nearly optimal, by programs over ties."""
    best = near
    if near.gap <= tol or near.flows is None or near.lengths is None or not near.lengths.mean() > 0:
        return best
    cost = _costs(orbits, near.lengths)
    for number, rounds in enumerate(ROUNDS):
        if best.gap <= tol:
            break
        before = best.gap
        moved = _moved(orbits, best, cost <= (TIES if number else FIRST_TIES), solve, rounds)
        if moved is None:
            break
        best = best.with_flows(orbits, moved[0]).with_lengths(orbits, moved[1])
        assert best.lengths is not None
        cost = np.minimum(cost, _costs(orbits, best.lengths))
        if number and best.gap >= 0.5 * before:
            break
    return best


def _costs(orbits: Orbits, lengths: F64) -> F64:
    """Reduced costs, in mean lengths, ``(m, |R|)``; infinite for arcs that a group cannot use."""
    cost = orbits.reduced.reduced_costs(lengths / lengths.mean())
    return np.where(np.isfinite(cost) & ~orbits.reduced.blocked, cost, np.inf)


def _moved(orbits: Orbits, near: ReducedSolution, used: Mask, solve: Solver, rounds: int) -> tuple[F64, F64] | None:
    """Flows and lengths by a program over the ties of ``used``; None without trees, ties or lengths."""
    reduced = orbits.reduced
    assert near.flows is not None
    demand = reduced.demand / orbits.weight
    unit = float(demand[demand > 0].mean())

    def settled(flows: F64) -> F64 | None:
        return unit_flow(
            reduced.topology, reduced.sources, demand, np.where(used, np.maximum(flows, LEAST * unit), 0.0)
        )

    flows = settled(near.flows)
    cycles = None if flows is None else cycles_of(orbits, used, flows)
    if flows is None or cycles is None or not cycles.tie.size:
        return None
    flows = settled(levelled(orbits, cycles, flows, near))
    cycles = None if flows is None else cycles_of(orbits, used, flows)
    if flows is None or cycles is None:
        return None
    program = TieProgram(orbits, cycles, flows / unit, near.upper / unit)
    solution = program.solve(solve, rounds)
    if solution is None:
        return None
    theta, prices = solution
    lengths = (prices / orbits.by_orbit(reduced.capacity))[orbits.arc_orbit]
    moved = settled(cycles.around(flows, theta * unit))
    return None if moved is None or not lengths.mean() > 0 else (moved, lengths)


class TieProgram:
    """The program over the cycles of ties, from exact ``flows``, ``(m, |R|)``, in mean demands.

    Parameters
    ----------
    orbits, cycles
        The reduction, and the cycles.
    flows
        Flows on the used arcs.
    T
        Upper bound on the optimum, in the units of ``flows``.
    """

    def __init__(self, orbits: Orbits, cycles: Cycles, flows: F64, T: float) -> None:
        import scipy.sparse as sp

        reduced, weight = orbits.reduced, orbits.weight
        topology, groups = reduced.topology, reduced.groups
        tie, group = cycles.tie, cycles.group
        room = T * orbits.by_orbit(reduced.capacity) * orbits.arcs_in_orbit
        change = cycles.folded(orbits).multiply(weight[group][:, None]).T.multiply(1.0 / room[:, None])
        self.loads = sp.csr_array(sp.hstack([change, -np.ones((room.size, 1))]))
        self.limit = -orbits.by_orbit(flows @ weight) * orbits.arcs_in_orbit / room
        self.least = -flows[tie, group]

        is_tie = np.zeros(flows.shape, dtype=bool)
        is_tie[tie, group] = True
        self.tree = np.where(is_tie, np.inf, flows).ravel()
        of_tree = ~is_tie[cycles.arc, cycles.group[cycles.row]]
        row, arc, sign = cycles.row[of_tree], cycles.arc[of_tree], cycles.sign[of_tree]
        shape = (flows.size, tie.size + 1)
        self.changes = sp.csr_array((sign, (arc * groups + cycles.group[row], row)), shape=shape)

        place = topology.head[tie] * groups + group
        beside = np.zeros(topology.n * groups)
        arcs, of = np.nonzero(~is_tie & (flows > 0))
        beside[topology.head[arcs] * groups + of] = flows[arcs, of]
        self.most = REACH * beside[place] / np.bincount(place)[place]

    def solve(self, solve: Solver, rounds: int) -> tuple[F64, F64] | None:
        """Changes of the ties, and prices of the orbits of arcs, which add up to 1; None if a solver has none.

        After the last round tree arcs may be negative.
        """
        import scipy.sparse as sp

        rows, ties = self.limit.size, self.least.size
        held = np.zeros(self.tree.size, dtype=bool)
        cost = np.append(np.zeros(ties), SCALE)
        for _ in range(rounds):
            listed = np.flatnonzero(held)
            A = sp.csc_array(sp.vstack([self.loads, self.changes[listed]]))
            form = StandardForm(
                A,
                np.append(np.full(rows, -np.inf), -self.tree[listed]),
                np.append(self.limit, np.full(listed.size, np.inf)),
                np.append(self.least, 0.0),
                np.append(self.most, np.inf),
                cost,
                "min",
            )
            outcome = solve(form)
            if outcome.x is None or outcome.row_duals is None:
                return None
            theta, duals = outcome.x[:ties], np.abs(outcome.row_duals)
            prices = duals[:rows] / SCALE
            charged = -(A.T @ np.append(-duals[:rows], duals[rows:]))[:ties] / SCALE
            tight = (charged < -COSTS) & (-charged * self.most > COSTS)
            negative = (self.tree + self.changes[:, :ties] @ theta < -NEGATIVE) & ~held
            if not negative.any() and not tight.any():
                break
            self.most[tight] *= GROWTH
            held |= negative
        return theta, prices
