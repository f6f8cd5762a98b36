"""Analytic bounds on concurrent flows: distances, cuts, Moore bound, and lengths."""

from __future__ import annotations

import re
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import rounding
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import Bound
from opticoll.instances.spec import family_of, is_as_parsed
from opticoll.instances.topology import Topology
from opticoll.plugin_faults import blaming, place_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.topology import F64, I64, Mask


def closed_form(topology: Topology) -> Bound | None:
    """Optimum declared by the topology's family, or None.

    A spec is only a name: the topology must equal the instance that the spec describes.

    Raises
    ------
    BadInput
        If the family's function returns anything but a positive fraction or None.
    """
    n, unit = topology.n, bool((topology.capacity == 1.0).all())
    if "+" in topology.spec or n < 2 or topology.num_ranks != n or not unit:
        return None
    declared = family_of(topology)
    if declared is None or declared[0].closed_form is None:
        return None
    function = declared[0].closed_form
    with blaming(function):
        time = function(**declared[1])
    if time is None or not is_as_parsed(topology):
        return None
    if not isinstance(time, Rational) or time <= 0:
        what = f"{place_of(function)}closed_form of {topology.spec} returned {time!r}"
        msg = f"{what}; return a positive Fraction or None"
        raise BadInput(msg)
    flow = 1 / Fraction(time)
    reason = f"T = {float(time):g} for this family"
    return Bound("closed-form", rounding.fraction_up(flow), reason, "alltoall", exact=True, fraction=flow)


PAPER = "alltoall"
#: Multiplicative-weight steps of the any-lengths bound up to 256 vertices; above, fewer at the same cost.
LENGTH_STEPS = 60


def bounds(data: ConcurrentFlow) -> list[Bound]:
    """All analytic bounds on the flow of ``data``, whose sources and demands are at terminals."""
    return [make(data) for make in BOUNDS.values()] + closed_forms(data)


def closed_forms(data: ConcurrentFlow) -> list[Bound]:
    """Optimum of the family, if known, for the uniform demand."""
    known = closed_form(data.topology) if data.uniform else None
    return [] if known is None else [known]


def moore_depths(vertices: int, degree: int) -> I64:
    """Smallest depths of ``vertices`` others in a tree of out-degree ``degree``, ascending (Theorem 2)."""
    sizes: list[int] = []
    left, layer = vertices, 1
    while left > 0:
        layer = layer * degree if degree > 1 else 1
        sizes.append(min(layer, left))
        left -= sizes[-1]
    return np.repeat(np.arange(1, len(sizes) + 1), sizes)


def moore_bound(data: ConcurrentFlow) -> Bound:
    """Theorem 2 for the largest out-degree d: no vertex has more than d^k others at distance k."""
    topology = data.topology
    others, degree = topology.num_ranks - 1, int(topology.out_degree.max(initial=0))
    depth = moore_depths(others, degree)
    if data.uniform:
        total = int(depth.sum())
        needed = float(rounding.down(topology.num_ranks * total))
        work: Fraction | None = Fraction(topology.num_ranks * total)
        reason = f"Theorem 2 with out-degree {degree}: total depth {total} of {others} others"
    else:
        largest_first = -np.sort(-data.traffic, axis=1)[:, :others]
        needed = rounding.dot_down(largest_first, np.broadcast_to(depth, largest_first.shape))
        work = work_by_hops(largest_first, np.broadcast_to(depth, largest_first.shape))
        reason = f"Theorem 2 with out-degree {degree}: the largest demands of every source at the smallest depths"
    value = rounding.quotient_up(rounding.sum_up(topology.capacity), needed)
    return _stated(data, "moore", value, rounding.quotient(rounding.exact_sum(topology.capacity), work), reason)


def _stated(data: ConcurrentFlow, name: str, value: float, fraction: Fraction | None, reason: str) -> Bound:
    """An upper bound with its fraction, whose nearest float above is the value if the data are whole numbers."""
    meant = rounding.whole(data.topology.capacity) and (data.uniform or rounding.whole(data.traffic))
    if fraction is not None and meant:
        value = min(value, rounding.fraction_up(fraction))
    return Bound(name, value, reason, PAPER, fraction=fraction)


def work_by_hops(demand: F64, hops: F64 | I64) -> Fraction | None:
    """Sum of demands times whole numbers of hops, in arrays of the same shape; None where it is not computed."""
    total = Fraction(0)
    for level in np.unique(hops).tolist():
        part = rounding.exact_sum(demand[hops == level])
        if part is None or (part and not np.isfinite(level)):
            return None
        total += part * int(level) if part else 0
    return total


def node_cut_bound(data: ConcurrentFlow) -> Bound:
    """Bound from the capacity out of, and into, every rank."""
    topology, ends = data.topology, data.topology.terminals
    leaving = np.bincount(topology.tail, topology.capacity, topology.n)[ends]
    entering = np.bincount(topology.head, topology.capacity, topology.n)[ends]
    ratio = np.full((2, ends.size), np.inf)
    others = np.full(ends.size, ends.size - 1.0)
    sent, received = (others, others) if data.uniform else (data.traffic.sum(axis=1), data.traffic.sum(axis=0))
    for side, (room, wanted) in enumerate(((leaving, sent), (entering, received))):
        with np.errstate(over="ignore"):
            np.divide(room, wanted, out=ratio[side], where=wanted > 0)
    side, rank = divmod(int(np.argmin(ratio)), ends.size)
    name, alone = topology.labels[ends[rank]], np.arange(topology.n) == ends[rank]
    shown = repr(name) if re.fullmatch(r"\d+\.\d+", name) else name  # 0.1 is a name, not a number
    inside = alone if side == 0 else ~alone
    return _stated(data, "node-cut", cut_value(data, inside), exact_cut(data, inside), f"capacity at vertex {shown}")


def _groups_of_a_source(data: ConcurrentFlow) -> int:
    """Maximum number of groups with the same source, whose demands add up."""
    return int(np.bincount(data.sources).max(initial=0))


def distance_bound(data: ConcurrentFlow) -> Bound:
    """Bound from hop distances, since every shard uses at least that many links: Theorem 1 summed over all pairs."""
    topology, value = data.topology, data.length_bound(np.ones(data.topology.arcs))
    needed = data.hop_sum() if data.uniform else work_by_hops(data.traffic, topology.hops[:, topology.terminals])
    fraction = rounding.quotient(rounding.exact_sum(topology.capacity), needed)
    return _stated(data, "distance", value, fraction, "Theorem 1 with this graph's hop distances")


def any_lengths_bound(data: ConcurrentFlow) -> Bound:
    """Best of the lengths 1/c and multiplicative-weight steps: arcs that shortest paths overload become longer.

    There are no steps if 1/c proves a known optimum.
    """
    topology, scale = data.topology, rounding.exponent(data.capacity)
    capacity = np.maximum(np.ldexp(data.capacity, -scale), 1e-300)
    weights = np.log(capacity.min()) - np.log(capacity)
    best, used = data.length_bound(capacity.min() / capacity), 0
    steps = LENGTH_STEPS * 256**2 // max(topology.n, 256) ** 2  # 0 if it is too large for shortest-path trees
    if best <= min((known.value for known in closed_forms(data)), default=0.0) * (1 + 1e-12):
        steps = 0
    trees = ShortestTrees(data) if steps else None
    for step in range(steps):
        assert trees is not None
        value, load = trees.bound_and_load(np.exp(np.maximum(weights - weights.max(), -600.0)))
        if value < best:
            best, used = value, step
        load = np.ldexp(load, -rounding.exponent(load)) / capacity  # a power of two, so that nothing overflows
        peak = load.max(initial=0.0)
        if not peak > 0:
            break
        weights = weights + load / peak / (1.0 + 0.15 * step)
    return Bound("any-lengths", best, f"lengths after {used} multiplicative-weight steps from 1/c", PAPER)


class ShortestTrees:
    """Shortest-path trees of one problem: what does not depend on the lengths is computed once."""

    def __init__(self, data: ConcurrentFlow) -> None:
        topology = data.topology
        self.topology = topology
        self.sources, group = np.unique(data.sources, return_inverse=True)
        self.rows = np.arange(self.sources.size)[:, None]
        self.wanted, (demand, power) = np.zeros((self.sources.size, topology.n)), data.scaled_demand()
        np.add.at(self.wanted, group, demand.T)
        self.needed = self.wanted > 0
        self.demand = self.wanted[self.needed]
        self.roundings = topology.n + _groups_of_a_source(data)
        scale = rounding.exponent(data.capacity)
        self.capacity, self.power = rounding.scaled_up(data.capacity, -scale), scale - power
        self.key = topology.tail * topology.n + topology.head  # ascending, as arcs are sorted by their ends

    def bound_and_load(self, lengths: F64) -> tuple[float, F64]:
        """Bound of positive lengths, and the load of their shortest-path trees on every arc, ``(m,)``."""
        from scipy.sparse.csgraph import dijkstra

        n, matrix = self.topology.n, self.topology.length_matrix(lengths)
        reach, parent = dijkstra(matrix, indices=self.sources, return_predecessors=True)
        cost = rounding.float_down(rounding.dot_down(self.demand, reach[self.needed]), self.roundings)
        total = rounding.dot_up(self.capacity, lengths)
        value = float(rounding.scaled_up(rounding.quotient_up(total, cost), self.power))

        # Leaves first, one tree level at a time: every vertex adds its demand and forwarded load to its parent.
        reached = parent >= 0
        depth = reached.astype(np.int64)
        above = np.where(reached, parent, np.arange(n)[None, :])
        while (step := depth[self.rows, above]).any():
            depth, above = depth + step, above[self.rows, above]
        carried, level_of = self.wanted.ravel().copy(), depth.ravel()
        into = (self.rows * n + parent).ravel()
        for level in range(int(level_of.max(initial=0)), 0, -1):
            places = np.flatnonzero(level_of == level)
            np.add.at(carried, into[places], carried[places])
        places = np.flatnonzero(level_of)
        first = np.searchsorted(self.key, parent.ravel()[places] * np.int64(n) + places % n)
        arc = np.lexsort((lengths, self.key))[first]  # of parallel arcs the shortest
        return value, np.asarray(np.bincount(arc, carried[places], self.topology.arcs), dtype=float)


def sweep_cut_bound(data: ConcurrentFlow) -> Bound:
    """Best prefix cut of a spectral order and of breadth-first orders, in both directions."""
    topology = data.topology
    best, side, entering = np.inf, np.zeros(topology.n, dtype=bool), False
    ends = np.zeros(topology.n)
    ends[topology.terminals] = 1.0
    for order in _sweep_orders(topology):
        rank = np.empty(topology.n, dtype=np.int64)
        rank[order] = np.arange(topology.n)
        first, last = rank[topology.tail], rank[topology.head]
        inside = np.cumsum(ends[order])[:-1]
        out, into = _demand_across(data, rank, inside)
        for enters, low, high, wanted in ((False, first, last, out), (True, last, first, into)):
            # An arc crosses the cut behind position p when one end is at most p and the other beyond.
            crossing = low < high
            change = np.zeros(topology.n, dtype=np.longdouble)  # as thin and thick arcs may cancel
            np.add.at(change, low[crossing], topology.capacity[crossing])
            np.subtract.at(change, high[crossing], topology.capacity[crossing])
            cut = np.maximum(np.cumsum(change)[:-1], 0)
            with np.errstate(over="ignore"):
                ratio = np.divide(cut, wanted, out=np.full_like(cut, np.inf), where=wanted > 0)
            if ratio.size and ratio.min() < best:
                best, entering, side = float(ratio.min()), enters, rank <= int(np.argmin(ratio))
    size, side = int(np.count_nonzero(side[topology.terminals])), ~side if entering else side
    reason = f"cut with {size} rank{'s' * (size != 1)} on one side"
    return _stated(data, "sweep-cut", cut_value(data, side), exact_cut(data, side), reason)


def exact_cut(data: ConcurrentFlow, side: Mask) -> Fraction | None:
    """``c(S -> complement) / D(S -> complement)`` of :func:`cut_value` as a fraction, if the data are decimals."""
    topology, inside = data.topology, side[data.topology.terminals]
    capacity = rounding.exact_sum(topology.capacity[side[topology.tail] & ~side[topology.head]])
    if data.uniform:
        wanted: Fraction | None = Fraction(int(np.count_nonzero(inside)) * int(np.count_nonzero(~inside)))
    else:
        wanted = rounding.exact_sum(data.traffic[np.ix_(inside, ~inside)])
    return rounding.quotient(capacity, wanted)


def cut_value(data: ConcurrentFlow, side: Mask) -> float:
    """``c(S -> complement) / D(S -> complement)`` of the vertices S of the mask ``side``, ``(n,)``, rounded up."""
    topology = data.topology
    capacity = rounding.sum_up(topology.capacity[side[topology.tail] & ~side[topology.head]])
    selected = side[topology.terminals]
    if data.uniform:
        wanted = float(np.count_nonzero(selected) * np.count_nonzero(~selected))
    else:
        wanted = float(
            rounding.down(rounding.sum_down(data.traffic[np.ix_(selected, ~selected)]), _groups_of_a_source(data))
        )
    return rounding.quotient_up(capacity, wanted)


def _demand_across(data: ConcurrentFlow, rank: I64, inside: F64) -> list[NDArray[Any]]:
    """Demand out of every prefix of an order, and into it, each ``(n-1,)``, about.

    Parameters
    ----------
    data, rank
        Position of every vertex in the order, ``(n,)``.
    inside
        Terminals among the first 1, 2, ... vertices, ``(n-1,)``.
    """
    topology = data.topology
    if data.uniform:
        pairs = inside * (topology.num_ranks - inside)
        return [pairs, pairs]
    by_place = np.argsort(rank[topology.terminals])
    wanted = data.traffic[np.ix_(by_place, by_place)].astype(np.longdouble)
    results = []
    for matrix in (wanted, wanted.T):
        later = np.triu(matrix, 1)
        across = np.cumsum(later.sum(axis=1) - later.sum(axis=0))
        results.append(np.concatenate([[0.0], across])[inside.astype(int)])
    return results


def _sweep_orders(topology: Topology) -> list[I64]:
    n = topology.n
    # An even power of two, so that square roots of degrees scale without rounding.
    capacity = np.maximum(np.ldexp(topology.capacity, -2 * (rounding.exponent(topology.capacity) // 2)), 1e-300)
    orders = [np.arange(n)]
    if 3 <= n <= 2000:
        orders.append(_spectral_order(topology, capacity))
    for root in np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int)).tolist():
        reached = topology.breadth_first(root)
        if reached.size == n:
            orders.append(reached)
    return orders


def _spectral_order(topology: Topology, capacity: F64) -> I64:
    """Vertices along the second eigenvector of the normalised Laplacian (deterministic)."""
    weights = np.zeros((topology.n, topology.n))
    np.add.at(weights, (topology.tail, topology.head), capacity)
    weights = weights + weights.T
    degree = weights.sum(axis=1)
    scale = 1.0 / np.sqrt(np.maximum(degree, 1e-300))
    _, vectors = np.linalg.eigh(np.eye(degree.size) - scale[:, None] * weights * scale[None, :])
    return np.argsort(vectors[:, 1] * scale, kind="stable")


#: The analytic bounds, by name.
BOUNDS = {
    "moore": moore_bound,
    "node-cut": node_cut_bound,
    "distance": distance_bound,
    "any-lengths": any_lengths_bound,
    "sweep-cut": sweep_cut_bound,
}
