"""Circuits between servers of limited degree: matchings, greedy by demand, and repair of connectivity.

Source  TopoOpt, Algorithm 1 (lines 13-17), Algorithm 5, appendix E.4 (1), (2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.formulations.topoopt.design import ports_left, sorted_circuits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

Matching = Literal["blossom", "assignment"]
#: Value of another circuit of a pair relative to the previous one: Discount(l) = sum_{x=1..l} 2^-x.
HALF = 0.5
#: Relative perturbation of weights that breaks ties without a pattern; ties by number would cluster the circuits.
TIE = 1e-6


def matched_circuits(demand: F64, out: I64, into: I64, kind: Matching = "blossom") -> I64:
    """Circuits of successive maximum-weight matchings until ports or demand run out, ``(m, 2)``.

    Parameters
    ----------
    demand
        Bytes between servers, ``(n, n)``; halved for a pair once it is matched.
    out, into
        Free ports of every server, ``(n,)``.
    kind
        ``blossom``: the paper's matching of a general graph; a matched pair gets a circuit each way, its weight is
        the demand both ways. ``assignment``: a matching of senders with receivers, one circuit per pair.
    """
    weight, out, into = demand.astype(np.float64), out.copy(), into.copy()
    found: list[tuple[int, int]] = []
    for _ in range(int(max(out.max(initial=0), into.max(initial=0)))):
        weight[out <= 0, :] = 0.0
        weight[:, into <= 0] = 0.0
        links = _blossom(weight, out, into) if kind == "blossom" else _assignment(weight)
        if not links:
            break
        for u, v in links:
            weight[u, v] *= HALF
            out[u] -= 1
            into[v] -= 1
        found += links
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _blossom(weight: F64, out: I64, into: I64) -> list[tuple[int, int]]:
    import networkx as nx

    free = (out > 0) & (into > 0)
    both = np.where(free[:, None] & free[None, :], weight + weight.T, 0.0)
    u, v = np.nonzero(np.triu(both, 1))
    if not u.size:
        return []
    graph: nx.Graph[int] = nx.Graph()
    scaled = both[u, v] / both.max() * (1.0 + TIE * _mixed(u, v))
    graph.add_weighted_edges_from(zip(u.tolist(), v.tolist(), scaled.tolist(), strict=True))
    pairs = sorted((min(pair), max(pair)) for pair in nx.max_weight_matching(graph))
    return [link for a, b in pairs for link in ((a, b), (b, a))]


def _mixed(u: I64, v: I64) -> F64:
    """Deterministic pseudo-random numbers in [0, 1), one for each pair."""
    key = (u * 73_856_093) ^ (v * 19_349_663)
    return (key * 2_654_435_761 % (1 << 32)) / float(1 << 32)


def _without_ties(demand: F64) -> F64:
    n = len(demand)
    changed: F64 = demand * (1.0 + TIE * _mixed(*np.divmod(np.arange(n * n), n)).reshape(n, n))
    return changed


def _assignment(weight: F64) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    if not weight.any():
        return []
    rows, columns = linear_sum_assignment(_without_ties(weight), maximize=True)
    kept = weight[rows, columns] > 0
    return list(zip(rows[kept].tolist(), columns[kept].tolist(), strict=True))


def greedy_circuits(demand: F64, degree: int, discount: float = HALF) -> I64:
    """Algorithm 5, lines 6-20: repeatedly a circuit for the highest demand, ``(m, 2)``.

    The demand of a pair is multiplied by ``discount`` after each circuit. Remaining ports connect pairs without demand,
    lowest numbers first.
    """
    n = len(demand)
    left = _without_ties(demand)
    np.fill_diagonal(left, -1.0)
    out, into = np.full(n, degree), np.full(n, degree)
    found: list[tuple[int, int]] = []
    while True:
        u, v = divmod(int(left.argmax()), n)
        if left[u, v] < 0:
            return np.array(found, dtype=np.int64).reshape(-1, 2)
        found.append((u, v))
        left[u, v] *= discount
        out[u] -= 1
        into[v] -= 1
        if out[u] == 0:
            left[u, :] = -1.0
        if into[v] == 0:
            left[:, v] = -1.0


def connected(n: int, circuits: I64, degree: int, demand: F64) -> I64:
    """Circuits that connect all servers, changed from the given ones by 2-edge replacement.

    Connected circuits are returned as they are. Otherwise free ports are filled (u -> v and w -> w become u -> w -> v),
    so that every server has ``degree`` circuits each way and every component is strongly connected. Then circuits of
    two components, those of least demand, exchange their heads until one component is left.
    """
    kept = sorted_circuits(circuits)
    if len(_components(n, kept)) == 1:
        return kept
    links = [(int(u), int(v)) for u, v in _filled(n, kept, degree)]
    parts = _components(n, np.array(links))
    while len(parts) > 1:
        place = np.empty(n, dtype=np.int64)
        for number, part in enumerate(parts):
            place[part] = number
        cheapest: dict[int, int] = {}
        for c, (u, v) in enumerate(links):
            best = cheapest.get(int(place[u]))
            if best is None or demand[u, v] < demand[links[best]]:
                cheapest[int(place[u])] = c
        one, other = cheapest[0], cheapest[1]
        (a, b), (c, d) = links[one], links[other]
        links[one], links[other] = (a, d), (c, b)
        parts = _components(n, np.array(links))
    return sorted_circuits(links)


def _components(n: int, circuits: I64) -> list[I64]:
    """Strongly connected components, in the order of their first servers."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    graph = sp.csr_array((np.ones(len(circuits)), (circuits[:, 0], circuits[:, 1])), shape=(n, n))
    count, label = connected_components(graph, connection="strong")
    parts = [np.flatnonzero(label == k) for k in range(count)]
    return sorted(parts, key=lambda part: int(part[0]))


def _filled(n: int, circuits: I64, degree: int) -> list[tuple[int, int]]:
    """The circuits with more added until no server has a free port.

    Free ports are paired. Two self-loops become a pair of circuits; the last one is inserted into a circuit between
    other servers, which exists because they have no free port and cannot all be connected to it alone.
    """
    links = [(int(u), int(v)) for u, v in circuits]
    out, into = ports_left(n, degree, circuits)
    senders, receivers = np.repeat(np.arange(n), out), np.roll(np.repeat(np.arange(n), into), -int(into.max(initial=0)))
    apart = senders != receivers
    links += zip(senders[apart].tolist(), receivers[apart].tolist(), strict=True)
    alone = senders[~apart].tolist()
    while alone:
        u = alone.pop()
        other = next((k for k, v in enumerate(alone) if v != u), None)
        if other is not None:
            v = alone.pop(other)
            links += [(u, v), (v, u)]
            continue
        at = next(k for k, (a, b) in enumerate(links) if u not in (a, b))
        a, b = links[at]
        links[at] = (a, u)
        links.append((u, b))
    return links
