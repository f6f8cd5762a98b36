r"""The last digits of a concurrent flow, from the equations that hold at an optimum.

Let y be flows and l lengths that are nearly optimal. At an optimum

* arcs that carry flow of a source lie on shortest paths: around every cycle of them the lengths, signed by direction,
  add up to 0. With a tree of such arcs for every source, each further arc, a *tie*, closes one cycle: :math:`C l = 0`;
* arcs with l > 0 are full: their loads are :math:`T c`.

Which arcs carry flow and which are full is read off the nearly optimal pair by strict complementarity: of two numbers
whose product is 0 at an optimum, relative to their means, the smaller one is the zero. Then

1. l is projected onto :math:`\{C l = 0\}`, and T is the value of its bound,
2. flow is moved around the cycles: theta solves :math:`C^\top \theta = T c - \text{load}` on the full arcs, with the
   least norm relative to the flows of the ties.

Both are least squares in as many unknowns as there are orbits of arcs. A wrong reading does no harm: the bound is that
of shortest paths over all arcs, the flow is made exact again, and the better of old and new is kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticoll.formulations.flows.single_source import unit_flow

if TYPE_CHECKING:
    import scipy.sparse as sp

    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.solvers.methods.flows.flow_orbits import Orbits, ReducedSolution

#: Orbits of arcs, at most: the systems are dense.
MOST_ORBITS = 4_000
#: Passes; later ones read the arcs off better lengths and flows.
PASSES = 4
#: A pass that leaves more than this share of the gap is the last.
GAIN = 0.1
#: Reduced cost, in mean lengths, that rounding leaves of 0.
ZERO = 1e-10
#: Flow, in mean demands, that a tie without flow counts as in the norm.
LEAST_FLOW = 1e-6
#: Regularizations, relative to the mean diagonal, the first that leaves a matrix definite; steps of refinement.
RIDGES, REFINEMENTS = (1e-12, 1e-9), 10


class Cycles(NamedTuple):
    """Cycles of the ties: ``row[i]`` uses ``arc[i]`` in direction ``sign[i]``; arc and group of each tie."""

    row: I64
    arc: I64
    sign: F64
    tie: I64
    group: I64

    def folded(self, orbits: Orbits) -> sp.csr_matrix:
        """C by orbits of arcs, ``(ties, orbits)``."""
        import scipy.sparse as sp

        shape = (self.tie.size, orbits.arcs_in_orbit.size)
        return sp.csr_matrix((self.sign, (self.row, orbits.arc_orbit[self.arc])), shape=shape)

    def around(self, flows: F64, theta: F64) -> F64:
        """The flows, ``(m, |R|)``, after a change ``theta``, ``(ties,)``, around every cycle."""
        result = flows.copy()
        np.add.at(result, (self.arc, self.group[self.row]), self.sign * theta[self.row])
        return result


def sharpened(orbits: Orbits, near: ReducedSolution, tol: float) -> ReducedSolution:
    """Improve both bounds of ``near`` beyond its solver's tolerance, where possible; ``near`` itself otherwise."""
    best = near
    if orbits.arcs_in_orbit.size > MOST_ORBITS:
        return best
    for number in range(PASSES):
        before = best.gap
        if before <= tol or best.flows is None or best.lengths is None or not best.lengths.mean() > 0:
            break
        after = _pass(orbits, best, with_zeros=number > 0)
        if after is not None and after.gap < before:
            best = after
        if number and best.gap > GAIN * before:
            break
    return best


def _pass(orbits: Orbits, near: ReducedSolution, *, with_zeros: bool) -> ReducedSolution | None:
    """One projection of the lengths and one move of the flow; None without trees of the arcs read off, or ties."""
    assert near.flows is not None
    assert near.lengths is not None
    reduced = orbits.reduced
    demand = reduced.demand / orbits.weight
    unit = demand[demand > 0].mean()
    lengths = near.lengths / near.lengths.mean()
    used = _used(orbits, lengths, near.flows / unit, with_zeros=with_zeros)
    cycles = cycles_of(orbits, used, near.flows)
    if cycles is None or not cycles.tie.size:
        return None
    full = full_orbits(orbits, lengths, near.flows, near.lower)
    projected = _projected(cycles.folded(orbits), orbits.by_orbit(lengths), full)
    better = near.with_lengths(orbits, np.maximum(projected, 0.0)[orbits.arc_orbit])
    flows = unit_flow(reduced.topology, reduced.sources, demand, np.where(used, near.flows, 0.0))
    if flows is None:
        return better
    return better.with_flows(orbits, levelled(orbits, cycles, flows, better))


def levelled(orbits: Orbits, cycles: Cycles, flows: F64, near: ReducedSolution) -> F64:
    """The flows after the least move around the cycles that loads the arcs that ``near`` reads as full with T c."""
    assert near.lengths is not None
    reduced, weight = orbits.reduced, orbits.weight
    demand = reduced.demand / weight
    full = full_orbits(orbits, near.lengths / near.lengths.mean(), flows, near.lower)
    wanted = orbits.by_orbit(near.lower * reduced.capacity - flows @ weight) * orbits.arcs_in_orbit
    size = np.maximum(flows[cycles.tie, cycles.group], LEAST_FLOW * demand[demand > 0].mean())
    theta = moves(cycles.folded(orbits), full, wanted, size, weight[cycles.group])
    return cycles.around(flows, theta)


def _used(orbits: Orbits, lengths: F64, flows: F64, *, with_zeros: bool) -> Mask:
    """Arcs that carry flow of a group at an optimum, ``(m, |R|)``; with zeros, also those of reduced cost 0."""
    cost = orbits.reduced.reduced_costs(lengths)
    used = flows > np.maximum(cost, ZERO)
    if with_zeros:
        used |= cost <= ZERO
    return used & np.isfinite(cost) & ~orbits.reduced.blocked


def full_orbits(orbits: Orbits, lengths: F64, flows: F64, T: float) -> Mask:
    """Orbits of arcs that are full at an optimum, ``(orbits,)``."""
    reduced = orbits.reduced
    room = 1.0 - orbits.fold(flows @ orbits.weight) / (T * reduced.capacity)
    return np.asarray(np.bincount(orbits.arc_orbit, lengths > room) > 0)


def cycles_of(orbits: Orbits, used: Mask, flows: F64) -> Cycles | None:
    """The cycles of the arcs ``used``, over the tree of the largest inflow of every vertex; None if that is no tree."""
    reduced = orbits.reduced
    topology, groups = reduced.topology, reduced.groups
    arc, group = np.nonzero(used)
    place = topology.head[arc] * groups + group
    order = np.lexsort((flows[arc, group], place))
    last = order[np.append(np.flatnonzero(np.diff(place[order])), order.size - 1)] if order.size else order
    parent = np.full(topology.n * groups, -1, dtype=np.int64)
    parent[place[last]] = arc[last]
    is_tie = np.ones(arc.size, dtype=bool)
    is_tie[last] = False
    tie, group = arc[is_tie], group[is_tie]
    source = reduced.sources[group]
    rows, arcs, signs = [np.arange(tie.size)], [tie], [np.ones(tie.size)]
    for ends, sign in ((topology.tail, 1.0), (topology.head, -1.0)):
        row, at = np.arange(tie.size), ends[tie]
        for _ in range(topology.n):
            away = at != source[row]
            row, at = row[away], at[away]
            if not row.size:
                break
            back = parent[at * groups + group[row]]
            if (back < 0).any():
                return None
            rows.append(row)
            arcs.append(back)
            signs.append(np.full(row.size, sign))
            at = topology.tail[back]
        else:
            return None
    return Cycles(np.concatenate(rows), np.concatenate(arcs), np.concatenate(signs), tie, group)


def _projected(folded: sp.csr_matrix, lengths: F64, full: Mask) -> F64:
    """The lengths nearest to ``lengths`` (by orbit) with ``C l = 0``, to rounding, and 0 for arcs that are not full."""
    from scipy.linalg import cho_solve

    lengths = np.where(full, lengths, 0.0)
    loops = folded.multiply(full).tocsr()
    factor = _factor((loops.T @ loops).toarray())
    for _ in range(REFINEMENTS):
        lengths = lengths - cho_solve(factor, loops.T @ (loops @ lengths))
    return lengths


def moves(folded: sp.csr_matrix, full: Mask, wanted: F64, size: F64, weight: F64) -> F64:
    """Flow around every cycle, ``(ties,)``, for the ``wanted`` change of the load of full orbits of arcs.

    Of least norm relative to ``size``; ``weight`` is how many sources a group stands for.
    """
    from scipy.linalg import cho_solve

    loads = folded.multiply(full).multiply(weight[:, None]).tocsr()
    factor = _factor((loads.T @ loads.multiply((size**2)[:, None])).toarray())
    theta = np.zeros(size.size)
    for _ in range(REFINEMENTS):
        theta += size**2 * (loads @ cho_solve(factor, np.where(full, wanted, 0.0) - loads.T @ theta))
    return theta


def _factor(gram: F64) -> tuple[F64, bool]:
    """The Cholesky factor of the matrix with a small multiple of the identity added.

    Raises
    ------
    LinAlgError
        If it is not positive definite even then.
    """
    from scipy.linalg import LinAlgError, cho_factor

    mean = np.trace(gram) / len(gram)
    for ridge in RIDGES:
        with suppress(LinAlgError):
            factor: tuple[F64, bool] = cho_factor(gram + ridge * (mean if mean > 0 else 1.0) * np.eye(len(gram)))
            return factor
    msg = "the equations of ties are not definite"
    raise LinAlgError(msg)
