"""Minimum time of a collective that copies: the exact worst cut, by max-flows in whole numbers.

The minimum time T* = max of w(S) / c(S -> V - S) over S without some rank is found by Newton's method on
max-flows; packings of trees attain it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations.rounding import decimal, is_entered
from opticoll.instances.symmetry import one_of_each_orbit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.instances.topology import I64, Topology

#: Maximum sum of capacities in SciPy's max-flows, of 32 bits; larger ones are left to NetworkX.
MOST_FLOW = 2**31 - 1
#: Ranks from which on one receiver of every orbit of automorphisms is tried, where all ranks have equal shards.
MANY_RANKS = 32


@dataclass(frozen=True, eq=False)
class Network:
    """Joint arcs between distinct vertices with whole capacities; one unit is ``unit`` link bandwidths."""

    n: int
    tail: I64
    head: I64
    capacity: tuple[int, ...]
    ranks: I64
    weight: tuple[int, ...]
    unit: Fraction

    @property
    def shards(self) -> int:
        """Total weight W of the ranks."""
        return sum(self.weight)


def network_of(topology: Topology, weight: Sequence[int]) -> Network:
    """Network of a topology, with capacities scaled to whole numbers and parallel arcs joined.

    Capacities are the decimals that were entered; if one was computed, such as 4/3, all are the floats themselves.
    """
    read = decimal if all(map(is_entered, set(topology.capacity.tolist()))) else Fraction
    joint: dict[tuple[int, int], Fraction] = {}
    for u, v, c in zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True):
        if u != v:
            joint[u, v] = joint.get((u, v), Fraction(0)) + read(c)
    common = int(np.lcm.reduce([c.denominator for c in set(joint.values())], dtype=object))
    whole = [int(c * common) for c in joint.values()]
    shared = gcd(*whole)
    tail, head = (np.array([arc[end] for arc in joint], dtype=np.int64) for end in (0, 1))
    unit = Fraction(shared, common)
    return Network(
        topology.n, tail, head, tuple(c // shared for c in whole), topology.terminals.copy(), tuple(weight), unit
    )


def sink_side(
    n: int, arcs: Sequence[tuple[int, int, int]], supply: Sequence[tuple[int, int]], sink: int, need: int
) -> frozenset[int] | None:
    """Sink side of the smallest minimum cut, if fewer than ``need`` units reach the sink; else None.

    Parameters
    ----------
    n
        Number of vertices.
    arcs
        (tail, head, capacity), whole numbers of any size.
    supply
        (vertex, amount) pairs of flow that starts at a vertex.
    sink, need
        Vertex where the flow ends, and the amount required there.
    """
    joined = [*arcs, *((n, v, amount) for v, amount in supply)]
    if sum(c for _, _, c in joined) <= MOST_FLOW:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        tail, head, capacity = np.array(joined, dtype=np.int32).reshape(-1, 3).T
        graph = csr_array((capacity, (tail, head)), shape=(n + 1, n + 1))
        found = maximum_flow(graph, n, sink)
        if found.flow_value >= need:
            return None
        back = csr_array((graph - found.flow > 0).T)  # the flow back over an arc is negative
        return frozenset(breadth_first_order(back, sink, return_predecessors=False).tolist())
    import networkx as nx

    network: Any = nx.DiGraph()
    network.add_nodes_from(range(n + 1))
    for u, v, c in joined:
        before = network[u][v]["capacity"] if network.has_edge(u, v) else 0
        network.add_edge(u, v, capacity=before + c)
    value, (_, outside) = nx.minimum_cut(network, n, sink)
    return None if value >= need else frozenset(outside)


def least_time(topology: Topology, weight: Sequence[int]) -> tuple[Fraction, frozenset[int]]:
    """Compute T* and a set S that attains it.

    Parameters
    ----------
    topology
        Its terminals are the ranks.
    weight
        Number of shards that start at each rank, in rank order.

    Raises
    ------
    BadInput
        If some rank cannot be reached from a root.
    """
    network = network_of(topology, weight)
    time, inside = least_time_of(network, _receivers(topology, weight))
    return time / network.unit, inside


def _receivers(topology: Topology, weight: Sequence[int]) -> I64 | None:
    """One rank of every orbit of automorphisms, if many have equal shards; else None."""
    if len(weight) < MANY_RANKS or len(set(weight)) > 1:
        return None
    return topology.terminals[one_of_each_orbit(topology, topology.capacity)[0]]


def least_time_of(network: Network, receivers: I64 | None = None) -> tuple[Fraction, frozenset[int]]:
    """T* and a cut that attains it, as :func:`least_time`.

    ``receivers`` are ranks one of which is served last; by default, all.
    """
    place = dict(zip(network.ranks.tolist(), network.weight, strict=True))
    W, everything = network.shards, frozenset(range(network.n))
    arcs = list(zip(network.tail.tolist(), network.head.tolist(), network.capacity, strict=True))
    best: tuple[Fraction, frozenset[int]] | None = None
    entering = np.zeros(network.n, dtype=object)
    for _, v, c in arcs:
        entering[v] += c
    for v, w in place.items():
        if w < W and entering[v] and (best is None or Fraction(W - w, entering[v]) > best[0]):
            best = Fraction(W - w, entering[v]), everything - {v}
    if best is None:
        refuse("tree packing", "no arc enters a rank; use a connected topology")
    ranks, settled = deque(place if receivers is None else receivers.tolist()), 0
    while settled < len(ranks):
        v, p, q = ranks[0], best[0].numerator, best[0].denominator
        supply = [(u, w * q) for u, w in place.items() if w]
        outside = sink_side(network.n, [(u, w, c * p) for u, w, c in arcs], supply, v, W * q)
        if outside is None:
            ranks.rotate(-1)
            settled += 1
            continue
        inside, settled = everything - outside, 0
        leaving = sum(c for u, w, c in arcs if u in inside and w in outside)
        if not leaving:
            refuse("tree packing", f"vertex {v} cannot be reached; use a connected topology")
        best = Fraction(sum(w for u, w in place.items() if u in inside), leaving), inside
    return best


def reversed_arcs(topology: Topology) -> Topology:
    """Reverse every arc of a topology and renumber the arcs."""
    return topology.with_arcs(topology.head, topology.tail, topology.capacity)


def tight_partition(topology: Topology, weight: Sequence[int]) -> list[frozenset[int]] | None:
    """For every rank, find the smallest set containing it whose entering arcs are full at T*, if these are disjoint.

    Each such set X receives w(V - X) over c(V - X -> X) = w(V - X) / T*. None if some rank has no such set except V.
    """
    network = network_of(topology, weight)
    time, _ = least_time_of(network, _receivers(topology, weight))
    p, q = time.numerator, time.denominator
    arcs = list(zip(network.tail.tolist(), network.head.tolist(), (c * p for c in network.capacity), strict=True))
    place = dict(zip(network.ranks.tolist(), network.weight, strict=True))
    W, sets = network.shards, set()
    for v, own in place.items():
        supply = [(u, w * q) for u, w in place.items() if u != v and w]
        outside = sink_side(network.n, arcs, supply, v, (W - own) * q + 1)
        if outside is None or not place.keys() - outside:
            return None
        sets.add(outside)
    covered = [v for members in sets for v in members & place.keys()]
    return sorted(sets, key=min) if len(covered) == len(set(covered)) else None
