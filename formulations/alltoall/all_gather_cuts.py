r"""The throughput-optimal all-gather time of a topology: its worst cut, by max-flow.

In an all-gather every rank ends with every shard. For a set S of vertices that leaves out some rank, what the ranks in
S hold must leave S at least once:

    T >= |S & ranks| / c(S -> V - S),        T* = max over such S.

For one receiver v the maximum over S without v is the least T at which a super-source, joined to every other rank by an
arc of capacity 1, can send N-1 units to v under capacities c T (max-flow min-cut). Newton's method: from some T, any v
whose max-flow is short gives a cut of larger ratio; that is the next T; where none is short, T is T*. All in integers
(capacities are binary fractions), so that the comparison is exact and the last cut is a proof that needs no tolerance.

T* is attained: by coding in the network always (Ahlswede, Cai, Li & Yeung, IEEE Trans. Inf. Theory 46(4), 2000), and by
store-and-forward where every vertex is a rank, or where every vertex is entered by as much capacity as leaves
it (Edmonds' arborescence packing; Bang-Jensen, Frank & Jackson, SIAM J. Discrete Math. 8(2), 1995).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations import outward
from instances.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from instances.topology import Topology

_SUPER = "sources"


@dataclass(frozen=True)
class WorstCut:
    """The cut that bounds an all-gather: ``ranks`` of them in ``inside``, ``capacity`` out of it; a rank it misses."""

    time: float
    ranks: int
    capacity: float
    inside: tuple[int, ...]
    receiver: int
    rounds: int


def worst_cut(topology: Topology) -> WorstCut:
    """T* and a cut that attains it.

    Raises
    ------
    BadInput
        If some rank cannot be reached from another.
    """
    return _newton(topology)[0]


def optimal_flows(topology: Topology) -> tuple[WorstCut, NDArray[np.float64]]:
    """T*, and for every rank a flow that brings it one unit of each other rank within c T*; shape ``(m, N)``."""
    import networkx as nx

    cut, capacity, ratio = _newton(topology)
    flows = np.zeros((topology.arcs, topology.ranks))
    for j, v in enumerate(topology.terminals.tolist()):
        graph, scale = _graph(topology, capacity, ratio, v)
        _, sent = nx.maximum_flow(graph, _SUPER, v)
        joint: dict[tuple[int, int], int] = {}
        for a, pair in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
            joint[pair] = joint.get(pair, 0) + capacity[a]
        for a, (u, w) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
            if u != v and u != w:  # parallel arcs in proportion; what v would send on it keeps
                flows[a, j] = float(Fraction(sent[u].get(w, 0) * capacity[a], joint[u, w] * scale))
    return cut, flows


def _newton(topology: Topology) -> tuple[WorstCut, list[int], Fraction]:
    import networkx as nx

    capacity = _whole_capacities(topology)
    unit = Fraction(float(topology.capacity[0])) / capacity[0]
    ends = topology.terminals.tolist()
    arcs = list(zip(capacity, topology.tail.tolist(), topology.head.tolist(), strict=True))
    best: tuple[Fraction, set[int], int, int] | None = None
    for v in ends:  # everything but v
        entering = sum(c for c, u, w in arcs if w == v != u)
        if entering == 0:
            msg = f"all-gather: no arc enters {topology.labels[v]} of {topology.spec}; use a connected topology"
            raise BadInput(msg)
        ratio = Fraction(len(ends) - 1, entering)
        if best is None or ratio > best[0]:
            best = (ratio, set(range(topology.n)) - {v}, v, entering)
    assert best is not None
    rounds, settled = 0, 0
    order = list(ends)
    while settled < len(order):
        v = order[0]
        graph, scale = _graph(topology, capacity, best[0], v)
        value, (inside, _) = nx.minimum_cut(graph, _SUPER, v)
        rounds += 1
        if value == scale * (len(ends) - 1):
            settled += 1
            order = order[1:] + order[:1]
            continue
        inside = {u for u in inside if u != _SUPER}
        leaving = sum(c for c, u, w in arcs if u in inside and w not in inside)
        held = len(inside & set(ends))
        if leaving == 0:
            msg = f"all-gather: {topology.labels[v]} of {topology.spec} cannot be reached; use a connected topology"
            raise BadInput(msg)
        best, settled = (Fraction(held, leaving), inside, v, leaving), 0
    ratio, inside, v, leaving = best
    held = len(inside & set(ends))
    time = outward.fraction_down(ratio / unit)
    return (
        WorstCut(time, held, outward.fraction_up(leaving * unit), tuple(sorted(int(u) for u in inside)), v, rounds),
        capacity,
        ratio,
    )


def _whole_capacities(topology: Topology) -> list[int]:
    """Capacities as whole numbers in proportion."""
    fractions = [Fraction(float(c)) for c in topology.capacity]
    common = int(np.lcm.reduce([f.denominator for f in set(fractions)], dtype=object))
    whole = [int(f * common) for f in fractions]
    shared = int(np.gcd.reduce(sorted(set(whole)), dtype=object))
    return [w // shared for w in whole]


def _graph(topology: Topology, capacity: list[int], ratio: Fraction, receiver: int) -> tuple[Any, int]:
    """Capacities c T and the super-source's unit arcs to all but the receiver, all times the returned whole number."""
    import networkx as nx

    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(topology.n))
    for c, u, w in zip(capacity, topology.tail.tolist(), topology.head.tolist(), strict=True):
        if u != w:
            before = graph[u][w]["capacity"] if graph.has_edge(u, w) else 0
            graph.add_edge(u, w, capacity=before + c * ratio.numerator)
    for s in np.setdiff1d(topology.terminals, [receiver]).tolist():
        graph.add_edge(_SUPER, s, capacity=ratio.denominator)
    return graph, ratio.denominator
