r"""The exact optimum of an all-to-all flow, from a nearly optimal pair of flows and lengths.

As in :mod:`opticoll.solvers.methods.flows.sharpening`, let C be the cycles of the arcs on shortest paths, by orbits of
arcs, and let only orbits with l > 0 count. What holds at an optimum is solved in fractions:

1. *Lengths*: :math:`C l = 0`. Independent rows and columns of C are found modulo a prime. The lengths of the other
   columns are rounded, those of the independent ones follow. T is the value of the bound of these lengths.
2. *Flows*: the amounts on ties are rounded, those on trees deliver the rest of the demand. The loads then differ from
   :math:`T c` by rounding. Amounts on independent ties, the largest ones, are corrected by the solution of
   :math:`C^\top \theta = T c - \text{load}`.

Both systems have the same matrix, which has at most as many rows as there are orbits of arcs: 297 for GK(1000,4), whose
linear program has 13 million nonzeros. If the loads are T c and no flow is negative, T is the optimum. Otherwise the
arcs on shortest paths were misread, which other thresholds may change; the last resort are rounded lengths and flows,
which prove an interval.

:mod:`opticoll.solvers.exact.orbit_check` verifies the result with the symmetries.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticoll.errors import NoSolution
from opticoll.formulations.flows.single_source import unit_flow
from opticoll.formulations.flows.symmetric_flow import SymmetricFlow
from opticoll.formulations.rounding import decimal
from opticoll.solvers.exact import orbit_check
from opticoll.solvers.exact.lifted_flows import distances
from opticoll.solvers.exact.linear import System
from opticoll.solvers.methods.flows.flow_orbits import find
from opticoll.solvers.methods.flows.reduced_solution import ReducedSolution
from opticoll.solvers.methods.flows.sharpening import LEAST_FLOW, cycles_of, full_orbits, moves, sharpened
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    import scipy.sparse as sp

    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
    from opticoll.instances.topology import F64, I64, Mask, Topology
    from opticoll.solvers.exact.exact_form import Whole
    from opticoll.solvers.methods.flows.flow_orbits import Orbits
    from opticoll.solvers.methods.flows.sharpening import Cycles

#: Reduced costs, in mean lengths, up to which an arc counts as one of a shortest path, tried in turn.
ZEROS = (1e-6, 1e-7, 1e-8, 1e-5, 1e-4, 1e-9)
#: Bits to which lengths, relative to their mean, and flows, relative to a demand, are rounded.
LENGTH_BITS, FLOW_BITS = 24, 32
#: The same for the interval of the last resort.
FINE_BITS = 48
#: Passes that move the flow to the arcs on shortest paths.
PASSES = 3
#: Most entries of the dense matrix whose independent rows and columns are found.
MOST_ENTRIES = 20_000_000
PRIME = 2_147_483_629


class TreeFlow(NamedTuple):
    """Unit flows of the representatives: a tree and ties for each.

    ``parent`` is the tree's arc into every vertex, ``(n, |R|)``, -1 for none. Arc ``tie[i]`` of representative
    ``group[i]`` carries ``amount[i] / below``; arcs of the trees carry what this leaves of the demand.
    """

    parent: I64
    tie: I64
    group: I64
    amount: Whole
    below: int


class ExactPair(NamedTuple):
    """Flows, and lengths of the orbits of arcs as integers, ``(orbits,)``."""

    flow: TreeFlow
    lengths: Whole


def interval(
    data: ConcurrentFlow, values: Mapping[str, F64], duals: Mapping[str, F64]
) -> tuple[Fraction, Fraction, dict[str, SymmetricFlow | F64]]:
    """The interval of T that flows and lengths near the given ones prove, checked in integers, and these flows.

    Raises
    ------
    NoSolution
        If there are no flows with lengths to start from, or what was found does not pass the check.
    """
    orbits = find(data)
    pair = None
    if values.get("g") is not None and float(np.asarray(values["F"])) > 0 and "capacity" in duals:
        pair = exact_pair(orbits, _near_optimum(orbits, values, duals))
    if pair is None:
        msg = (
            "exact: the solve left no flows with arc lengths to start from; raise the time limit or use another method"
        )
        raise NoSolution(msg)
    flows, lengths = tree_flows(orbits, pair.flow), pair.lengths[orbits.arc_orbit]
    reach = distances(orbits.reduced, [Fraction(length) for length in lengths.tolist()])
    low, high = orbit_check.interval(
        data.topology,
        [decimal(capacity) for capacity in data.capacity.tolist()],
        orbits.arc_images,
        orbits.reduced.sources,
        flows,
        pair.flow.below,
        lengths,
        np.array(reach, dtype=object).T,
    )
    settled = orbits.settle((flows / pair.flow.below).astype(float)) / float(high)
    return low, high, {"g": orbits.symmetric(settled), "F": np.asarray(1.0 / float(high))}


def _near_optimum(orbits: Orbits, values: Mapping[str, F64], duals: Mapping[str, F64]) -> ReducedSolution:
    """The unit flows of the representatives and the lengths in a run's values and duals."""
    given, time = values["g"], 1.0 / float(np.asarray(values["F"]))
    reduced = isinstance(given, SymmetricFlow) and np.array_equal(given.arcs, orbits.arc_images)
    flows = given.entries if reduced and isinstance(given, SymmetricFlow) else orbits.averaged(np.asarray(given))
    near = ReducedSolution(Termination.TOLERANCE).with_flows(orbits, flows * time)
    return near.with_lengths(orbits, orbits.fold(np.abs(duals["capacity"])))


def exact_pair(orbits: Orbits, near: ReducedSolution) -> ExactPair | None:
    """The optimum as an exact pair, or else a rounded pair; None if ``near`` has no flows, or no lengths."""
    near = sharpened(orbits, near, 0.0)
    if near.flows is None or near.lengths is None or not near.lengths.mean() > 0:
        return None
    for zero in ZEROS:
        pair = _optimum(orbits, near, zero)
        if pair is not None:
            return pair
    cycles = cycles_of(orbits, near.flows > 0, near.flows)
    if cycles is None:
        return None
    amount = _whole(near.flows[cycles.tie, cycles.group], FINE_BITS)
    flow = TreeFlow(_parents(orbits, near.flows > 0, cycles), cycles.tie, cycles.group, amount, 1 << FINE_BITS)
    return ExactPair(flow, _whole(orbits.by_orbit(near.lengths / near.lengths.mean()), FINE_BITS))


def _whole(values: F64, bits: int) -> Whole:
    """Numerators of rounded values over 2^bits."""
    return np.array([round(Fraction(value) * 2**bits) for value in values.tolist()], dtype=object)


def _optimum(orbits: Orbits, near: ReducedSolution, zero: float) -> ExactPair | None:
    """The exact pair whose shortest paths are those of reduced cost up to ``zero``; None if that is not optimal."""
    assert near.flows is not None
    assert near.lengths is not None
    reduced = orbits.reduced
    topology, sources, demand = reduced.topology, reduced.sources, reduced.demand / orbits.weight
    lengths = near.lengths / near.lengths.mean()
    used = (reduced.reduced_costs(lengths) <= zero) & ~reduced.blocked
    flows = unit_flow(topology, sources, demand, _kept(topology, used, near.flows))
    if flows is None:
        return None
    used |= flows > 0
    cycles = cycles_of(orbits, used, flows)
    if cycles is None:
        return None
    full = full_orbits(orbits, lengths, flows, near.lower)
    folded = cycles.folded(orbits)
    bases = _independent(folded, full, flows[cycles.tie, cycles.group])
    if bases is None:
        return None
    whole = _exact_lengths(bases[0], orbits.by_orbit(lengths))
    if whole is None:
        return None
    time = bound_of(orbits, whole)
    for _ in range(PASSES):
        load = orbits.by_orbit(float(time) * reduced.capacity - flows @ orbits.weight) * orbits.arcs_in_orbit
        size = np.maximum(flows[cycles.tie, cycles.group], LEAST_FLOW)
        theta = moves(folded, full, load, size, orbits.weight[cycles.group])
        np.add.at(flows, (cycles.arc, cycles.group[cycles.row]), cycles.sign * theta[cycles.row])
        exact = unit_flow(topology, sources, demand, np.maximum(flows, 0.0))
        if exact is None:
            return None
        flows = exact
    parent = _parents(orbits, used, cycles)
    amount = _whole(flows[cycles.tie, cycles.group], FLOW_BITS)
    flow = _corrected(orbits, TreeFlow(parent, cycles.tie, cycles.group, amount, 1 << FLOW_BITS), bases[1], time)
    return None if flow is None else ExactPair(flow, whole)


def _kept(topology: Topology, used: Mask, flows: F64) -> F64:
    """The flows on the arcs ``used``, and a little flow into vertices that these do not reach."""
    kept = np.where(used, flows, 0.0)
    inflow = np.zeros((topology.n, used.shape[1]))
    np.add.at(inflow, topology.head, kept)
    kept[used & (inflow[topology.head] <= 0)] = LEAST_FLOW
    return kept


def _parents(orbits: Orbits, used: Mask, cycles: Cycles) -> I64:
    """The tree's arc into every vertex, ``(n, |R|)``: the arcs ``used`` that are no ties."""
    tree = used.copy()
    tree[cycles.tie, cycles.group] = False
    parent = np.full((orbits.reduced.topology.n, used.shape[1]), -1, dtype=np.int64)
    arc, group = np.nonzero(tree)
    parent[orbits.reduced.topology.head[arc], group] = arc
    return parent


class _Basis(NamedTuple):
    """Independent rows of C, as numbers of ties, and columns, as numbers of orbits of arcs.

    ``square`` has these rows and columns, ``rest`` these rows and the ``others``, the further full orbits.
    """

    ties: I64
    columns: I64
    others: I64
    square: System
    rest: sp.csr_matrix

    @classmethod
    def of(cls, cycles: sp.csr_matrix, ties: I64, columns: I64) -> _Basis:
        """Of independent ties."""
        import scipy.sparse as sp

        dense = cycles[ties][:, columns].toarray()
        inner = _pivots(dense)
        part = sp.csr_matrix(dense[:, inner])
        square = System(
            part.indptr.astype(np.int64), part.indices.astype(np.int64), part.data.astype(object), ties.size
        )
        outer = np.delete(np.arange(columns.size), inner)
        return cls(ties, columns[inner], columns[outer], square, sp.csr_matrix(dense[:, outer]))


def _pivots(matrix: I64) -> I64:
    """The first independent columns of a dense matrix of full row rank, modulo a prime."""
    import flint

    if not matrix.size:
        return np.zeros(0, dtype=np.int64)
    residues = flint.nmod_mat(matrix.shape[0], matrix.shape[1], (matrix % PRIME).ravel().tolist(), PRIME)
    echelon, rank = residues.rref()
    found, at = [], 0
    for row in range(rank):
        while int(echelon[row, at]) == 0:
            at += 1
        found.append(at)
    return np.array(found, dtype=np.int64)


def _independent(folded: sp.csr_matrix, full: Mask, size: F64) -> tuple[_Basis, _Basis] | None:
    """A basis of C on the full orbits, and one of the ties with flow, both of ties with large flows, ``size``.

    None if C is too large.
    """
    import scipy.sparse as sp

    columns = np.flatnonzero(full)
    cycles = sp.csr_matrix(folded.multiply(full)).astype(np.int64)
    # One tie of the many with the same cycle, told apart by a random linear form.
    form = cycles @ np.random.default_rng(0).integers(-(1 << 40), 1 << 40, full.size)
    order = np.lexsort((-size, form))
    chosen = order[np.flatnonzero(np.diff(form[order], prepend=form.min(initial=0) - 1))]
    chosen = chosen[form[chosen] != 0]
    chosen = chosen[np.argsort(-size[chosen], kind="stable")]
    if chosen.size * columns.size > MOST_ENTRIES:
        return None
    ties = chosen[_pivots(cycles[chosen][:, columns].toarray().T)]
    basis, flowing = _Basis.of(cycles, ties, columns), ties[size[ties] > 0]
    return basis, basis if flowing.size == ties.size else _Basis.of(cycles, flowing, columns)


def _exact_lengths(basis: _Basis, lengths: F64) -> Whole | None:
    """Integer lengths near ``lengths`` (by orbit) up to their unit, with C l = 0; None if that makes one negative."""
    given = _whole(lengths[basis.others], LENGTH_BITS)
    right = np.zeros(basis.ties.size, dtype=object)
    rows = np.repeat(np.arange(basis.ties.size), np.diff(basis.rest.indptr))
    np.subtract.at(right, rows, basis.rest.data.astype(object) * given[basis.rest.indices])
    solved = basis.square.solve([Fraction(value) for value in right.tolist()])
    if solved is None or min(solved, default=0) < 0:
        return None
    below = math.lcm(*(value.denominator for value in solved))
    result = np.zeros(lengths.size, dtype=object)
    result[basis.others] = given * below
    result[basis.columns] = [value.numerator * (below // value.denominator) for value in solved]
    return result if any(result.tolist()) else None


def bound_of(orbits: Orbits, lengths: Whole) -> Fraction:
    """The lower bound on T of integer lengths of the orbits."""
    reduced = orbits.reduced
    by_arc = lengths[orbits.arc_orbit].tolist()
    demand = reduced.demand.astype(np.int64)
    total = sum(
        size * int(far)
        for r, reach in enumerate(distances(reduced, [Fraction(length) for length in by_arc]))
        for size, far in zip(demand[:, r].tolist(), reach, strict=True)
    )
    offered = zip(by_arc, reduced.capacity.tolist(), strict=True)
    return Fraction(total) / sum((length * decimal(capacity) for length, capacity in offered), Fraction(0))


def tree_flows(orbits: Orbits, flow: TreeFlow) -> Whole:
    """Flows of the arcs over ``flow.below``, ``(m, |R|)``; negative where ties carry more than the demand."""
    reduced = orbits.reduced
    topology, parent = reduced.topology, flow.parent
    result = np.zeros((topology.arcs, reduced.groups), dtype=object)
    result[flow.tie, flow.group] = flow.amount
    needed = (reduced.demand / orbits.weight).astype(np.int64).astype(object) * flow.below
    np.add.at(needed, (topology.tail[flow.tie], flow.group), flow.amount)
    np.subtract.at(needed, (topology.head[flow.tie], flow.group), flow.amount)
    vertex, group = np.nonzero(parent >= 0)
    depth, at, going = np.zeros(vertex.size, dtype=np.int64), vertex.copy(), np.arange(vertex.size)
    while going.size:
        depth[going] += 1
        at[going] = topology.tail[parent[at[going], group[going]]]
        going = going[parent[at[going], group[going]] >= 0]
    for level in range(int(depth.max(initial=0)), 0, -1):
        there = np.flatnonzero(depth == level)
        v, g = vertex[there], group[there]
        arc = parent[v, g]
        result[arc, g] = needed[v, g]
        np.add.at(needed, (topology.tail[arc], g), needed[v, g])
    return result


def _loads(orbits: Orbits, flow: TreeFlow) -> tuple[list[Fraction], bool]:
    """Total load of every orbit of arcs, and whether no flow is negative."""
    flows = tree_flows(orbits, flow)
    load = np.zeros(orbits.arcs_in_orbit.size, dtype=object)
    np.add.at(load, orbits.arc_orbit, flows @ orbits.weight.astype(np.int64).astype(object))
    return [Fraction(value, flow.below) for value in load.tolist()], bool((flows >= 0).all())


def _corrected(orbits: Orbits, flow: TreeFlow, basis: _Basis, time: Fraction) -> TreeFlow | None:
    """The flow with loads of exactly ``time`` times the capacity on full orbits; None if it is invalid."""
    room = [time * decimal(capacity) for capacity in orbits.reduced.capacity.tolist()]
    limit = [Fraction(0)] * orbits.arcs_in_orbit.size
    for orbit, capacity in zip(orbits.arc_orbit.tolist(), room, strict=True):
        limit[orbit] += capacity
    load, _ = _loads(orbits, flow)
    moved = basis.square.solve([limit[k] - load[k] for k in basis.columns.tolist()], transposed=True)
    if moved is None:
        return None
    weight = orbits.weight[flow.group[basis.ties]].astype(np.int64).tolist()
    change = [value / size for value, size in zip(moved, weight, strict=True)]
    below = math.lcm(flow.below, *(value.denominator for value in change))
    amount = flow.amount * (below // flow.below)
    for tie, value in zip(basis.ties.tolist(), change, strict=True):
        amount[tie] += value.numerator * (below // value.denominator)
    flow = flow._replace(amount=amount, below=below)
    load, valid = _loads(orbits, flow)
    within = all(value <= most for value, most in zip(load, limit, strict=True))
    return flow if valid and within else None
