"""Method ``topology-finder``: TopoOpt's heuristic for circuits and routes."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import Ring, ports_left, ring_demand, sorted_circuits
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.ring_permutations import coin_routes, selected

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.circuit_design import CircuitDesign
    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.methods.method import Context


Matching = Literal["blossom", "assignment"]
MATCHINGS: tuple[Matching, ...] = get_args(Matching)
Groups = Literal["printed", "shared"]
#: Value of another circuit of a pair relative to the previous one: Discount(l) = sum_{x=1..l} 2^-x.
HALF = 0.5
#: Relative perturbation of weights that breaks ties without a pattern; ties by number would cluster the circuits.
TIE = 1e-6


def matched_circuits(demand: F64, out: I64, into: I64, kind: Matching = "blossom", gains: F64 | None = None) -> I64:
    """Circuits of successive maximum-weight matchings until ports or demand run out, ``(m, 2)``.

    Parameters
    ----------
    demand
        Bytes between servers, ``(n, n)``.
    out, into
        Free ports of every server, ``(n,)``.
    kind
        ``blossom``: the paper's matching of a general graph; a matched pair gets a circuit each way, its weight is
        the demand both ways. ``assignment``: a matching of senders with receivers, one circuit per pair.
    gains
        Value of the l-th circuit of a pair relative to its demand, 0 beyond the last. None: half of that of the one
        before, as in the paper.
    """
    weight, out, into = demand.astype(np.float64), out.copy(), into.copy()
    number = np.zeros(demand.shape, dtype=np.int64)
    circuits: list[tuple[int, int]] = []
    for _ in range(int(max(out.max(initial=0), into.max(initial=0)))):
        weight[out <= 0, :] = 0.0
        weight[:, into <= 0] = 0.0
        links = _blossom(weight, out, into) if kind == "blossom" else _assignment(weight)
        if not links:
            break
        for u, v in links:
            number[u, v] += 1
            weight[u, v] *= HALF if gains is None else _ratio(gains, int(number[u, v]))
            out[u] -= 1
            into[v] -= 1
        circuits += links
    return np.array(circuits, dtype=np.int64).reshape(-1, 2)


def _ratio(gains: F64, number: int) -> float:
    """Gain of the circuit after ``number`` circuits relative to that of the last of these."""
    return float(gains[number] / gains[number - 1]) if number < gains.size else 0.0


def _blossom(weight: F64, out: I64, into: I64) -> list[tuple[int, int]]:
    free = (out > 0) & (into > 0)
    both = np.where(free[:, None] & free[None, :], weight + weight.T, 0.0)
    u, v = np.nonzero(np.triu(both, 1))
    if not u.size:
        return []
    scaled = both[u, v] / both.max() * (1.0 + TIE * _mixed(u, v))
    return [link for a, b in _matched(u.tobytes(), v.tobytes(), scaled.tobytes()) for link in ((a, b), (b, a))]


@lru_cache(maxsize=4)  # jobs that differ by a factor of their demand have the same matchings
def _matched(u: bytes, v: bytes, weight: bytes) -> tuple[tuple[int, int], ...]:
    """Maximum-weight matching of a general graph by its edges ``(m,)``, ``(m,)`` and their weights ``(m,)``."""
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    ends = (np.frombuffer(one, dtype=np.int64).tolist() for one in (u, v))
    graph.add_weighted_edges_from(zip(*ends, np.frombuffer(weight).tolist(), strict=True))
    return tuple(sorted((min(pair), max(pair)) for pair in nx.max_weight_matching(graph)))


def _mixed(u: I64, v: I64) -> F64:
    """Deterministic pseudo-random numbers in [0, 1), one for each pair."""
    key = (u * 73_856_093) ^ (v * 19_349_663)
    return (key * 2_654_435_761 % (1 << 32)) / float(1 << 32)


def without_ties(demand: F64) -> F64:
    """Demands ``(n, n)`` changed by at most a millionth, so that equal ones differ without a pattern."""
    n = len(demand)
    changed: F64 = demand * (1.0 + TIE * _mixed(*np.divmod(np.arange(n * n), n)).reshape(n, n))
    return changed


def _assignment(weight: F64) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    if not weight.any():
        return []
    rows, columns = linear_sum_assignment(without_ties(weight), maximize=True)
    positive = weight[rows, columns] > 0
    return list(zip(rows[positive].tolist(), columns[positive].tolist(), strict=True))


def connected(n: int, circuits: I64, degree: int, demand: F64) -> I64:
    """Circuits that connect all servers, obtained from the given ones by 2-edge replacement.

    Connected circuits are returned unchanged. Otherwise free ports are filled (u -> v and w -> w become u -> w -> v),
    so that every server has ``degree`` circuits each way and every component is strongly connected. Then circuits of
    two components, those of smallest demand, exchange their heads until one component is left.
    """
    joined = sorted_circuits(circuits)
    if len(_components(n, joined)) == 1:
        return joined
    links = [(int(u), int(v)) for u, v in _filled(n, joined, degree)]
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
        first, second = cheapest[0], cheapest[1]
        (a, b), (c, d) = links[first], links[second]
        links[first], links[second] = (a, d), (c, b)
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


# TopologyFinder and OCS-reconfig -------------------------------------------------------------------------------

Forwarding = Literal["shortest", "coin-change", "k-shortest"]


def ring_ports(pool: ServerPool) -> int:
    """d_A: ports of every server for rings (line 2)."""
    reduce, direct = pool.all_reduce_bytes, float(pool.point_to_point.sum())
    if reduce + direct == 0:
        return pool.degree
    return max(1, math.ceil(pool.degree * reduce / (reduce + direct) - 1e-9))


def group_ports(pool: ServerPool, groups: Groups = "printed") -> list[int]:
    """d_k: rings of every group (lines 5-11); ``shared``: groups compete only for ports of servers that they share."""
    most = ring_ports(pool)
    if groups == "printed":
        printed: list[int] = []
        for group in pool.groups:
            share = group.total / sum(other.total for other in pool.groups)
            printed.append(math.ceil((most - sum(printed)) * share - 1e-9))
        return printed
    left = np.full(pool.n, most)
    ports = [0] * len(pool.groups)
    members = [set(group.members) for group in pool.groups]
    for k in sorted(range(len(members)), key=lambda k: (-pool.groups[k].total, k)):
        rivals = sum(other.total for other, seen in zip(pool.groups, members, strict=True) if members[k] & seen)
        fair = math.ceil(most * pool.groups[k].total / rivals - 1e-9)
        servers = list(pool.groups[k].members)
        ports[k] = min(fair, int(left[servers].min()))
        left[servers] -= ports[k]
    return ports


def group_rings(
    pool: ServerPool,
    *,
    primes: bool = False,
    binary: bool = False,
    trees: bool = False,
    groups: Groups = "printed",
) -> tuple[list[Ring], list[tuple[int, int]]]:
    """Rings of all groups, or pairs of ``trees``, and the circuits of those that have ports."""
    rings: list[Ring] = []
    circuits: list[tuple[int, int]] = []
    for k, (group, count) in enumerate(zip(pool.groups, group_ports(pool, groups), strict=True)):
        number = count // tree_ports(group.size) if trees else count
        if number == 0:
            rings.append(Ring(k, 1.0, group.members, trees))
            continue
        steps = selected(group.size, number, primes, binary)
        for step in steps:
            rings.append(Ring(k, 1.0 / len(steps), tuple(group.ring(step).tolist()), trees))
            circuits += _circuits_of(rings[-1])
    return rings, circuits


@cache
def tree_ports(size: int) -> int:
    """Circuits out of the server with the most neighbours in a pair of double binary trees: 4 from four servers on."""
    return int(np.bincount(np.array(_circuits_of(Ring(0, 1.0, tuple(range(size)), trees=True)))[:, 0]).max())


def _circuits_of(ring: Ring) -> list[tuple[int, int]]:
    """A circuit for every hop; two where both trees have the same edge."""
    sender, receiver, part = ring.hops
    number = np.rint(part / part.min()).astype(np.int64)
    return list(zip(np.repeat(sender, number).tolist(), np.repeat(receiver, number).tolist(), strict=True))


@lru_cache(maxsize=4)  # a study plans many cells on one instance
def topology_finder(
    pool: ServerPool,
    *,
    primes: bool = False,
    binary: bool = False,
    matching: Matching = "blossom",
    paths: int = 1,
    forwarding: Forwarding = "shortest",
    trees: bool = False,
    groups: Groups = "printed",
) -> CircuitDesign:
    """TopologyFinder's design (Algorithm 1).

    Parameters
    ----------
    pool
        Servers, all-reduce groups, point-to-point traffic.
    primes
        Only prime steps (and +1).
    binary
        Fewer rings, of ratio 2, if the ratio would be smaller (appendix E.2).
    matching
        ``blossom`` as in the paper, or ``assignment`` of senders to receivers.
    paths
        Number of shortest paths that a forwarded demand is split over.
    forwarding
        ``shortest``; ``coin-change`` over the rings of a group of all servers in order; ``k-shortest``: point-to-point
        traffic of every pair over its ``paths`` shortest paths, also between servers with circuits of their own.
    trees
        Pairs of double binary trees in place of rings (appendix A).
    groups
        How groups share the ports for rings, see :func:`group_ports`.

    Raises
    ------
    NotApplicable
        For coin change if no such group has rings.
    """
    rings, ringed = group_rings(pool, primes=primes, binary=binary, trees=trees, groups=groups)
    own = sorted_circuits(ringed)
    direct, traffic = pool.point_to_point, pool.traffic
    if trees:
        wired = np.zeros((pool.n, pool.n), dtype=bool)
        wired[own[:, 0], own[:, 1]] = True
        traffic = ring_demand(pool, rings)
        direct = np.where(wired, direct, traffic)
    matched = matched_circuits(direct, *ports_left(pool.n, pool.degree, own), matching)
    circuits = connected(pool.n, np.concatenate([own, matched]), pool.degree, traffic)
    if forwarding != "coin-change":
        return routed_design(pool, circuits, rings, paths=paths, spread=forwarding == "k-shortest")
    if trees:
        msg = "coin change: it routes over rings, and all_reduce=trees has none; use forwarding=shortest"
        raise NotApplicable(msg)
    everyone = tuple(range(pool.n))
    counts = zip(pool.groups, group_ports(pool, groups), strict=True)
    coins = [
        p for g, count in counts if count and g.members == everyone for p in selected(pool.n, count, primes, binary)
    ]
    if not coins:
        msg = "coin change: no group has a ring over all servers in numerical order; use forwarding=shortest"
        raise NotApplicable(msg)
    return routed_design(pool, circuits, rings, paths=paths, offsets=coin_routes(pool.n, coins))


def clear_caches() -> None:
    """Clear the cached designs and matchings, for benchmarks that time their construction."""
    topology_finder.cache_clear()
    _matched.cache_clear()


def run_topology_finder(context: Context) -> Answer:
    """TopologyFinder: the paper's heuristic for circuits and routes.

    Source  TopoOpt, Algorithm 1, appendix E.4 (1), (2)

    1. d_A = max(1, ceil(d R / (R + A))) ports for rings, with R all-reduce and A point-to-point bytes.
    2. One group k after the other gets d_k = ceil(d_A R_k / R) of those that are left, and as many +p rings
       (TotientPerms, SelectPermutations), which share its all-reduce evenly.
    3. The remaining ports get circuits by maximum-weight matchings of the point-to-point traffic.
    4. Ring hops take their own circuits. Point-to-point traffic takes shortest paths over all circuits, or
       CoinChangeMod's, except between servers with a circuit of their own; or every pair splits it over its k shortest
       paths, a circuit of its own included (line 20 with the text of section 4.2, "k-shortest path routing for the MP
       transfers").

    ``binary`` applies appendix E.2's rule: a group of k servers gets at most log2 k rings, rounded up, and where that
    is fewer than its share, their ratio is 2. The ports it saves go to the matchings of point-to-point traffic.

    With ``all_reduce=trees`` (appendix A, E.1) a group gets pairs of double binary trees in place of rings, whose
    places are in the orders of the +p rings. A pair takes as many ports as its busiest server has neighbours, 4 from
    four servers on, so d_k ports hold d_k / 4 pairs, rounded down. The hops of a group with fewer ports join the
    traffic that is matched.

    With ``groups=shared``, which is ours, groups without a common server do not compete for ports: d_k = ceil(d_A R_k
    / sum of R over the groups that share a server with k), at most the free ports of its members; the largest first.

    Where the paper is not explicit: matchings take all free ports ("until we run out of degrees"), not d - d_A. A group
    without a port keeps its default ring over several hops. Line 2 demands a connected network; this is ensured at the
    end (:func:`connected`).
    """
    settings = context.parameters
    design = topology_finder(
        context.instance,
        primes=bool(settings["primes"]),
        binary=bool(settings["binary"]),
        matching=cast("Matching", settings["matching"]),
        paths=int(settings["split"]),
        forwarding=cast("Forwarding", settings["forwarding"]),
        trees=context.data.trees,
        groups=cast("Groups", settings["groups"]),
    )
    return Answer.heuristic(design.values(), f"{settings['matching']} matchings")


METHOD = Method(
    name="topology-finder",
    title="TopologyFinder (Algorithm 1)",
    summary="TotientPerms rings for all-reduce, matchings for point-to-point traffic, coin change or shortest paths",
    serves=("topoopt.topology",),
    parameters=(
        Parameter("primes", bool, default=False, help="prime ring steps (and +1) only"),
        Parameter("binary", bool, default=False, help="at most log2 n rings, with step ratio 2 if it would be less"),
        Parameter(
            "matching",
            str,
            default="blossom",
            help="matching of pairs, or of senders with receivers",
            choices=MATCHINGS,
        ),
        Parameter("split", int, default=1, help="number of shortest paths that forwarded traffic is split over"),
        Parameter(
            "forwarding",
            str,
            default="shortest",
            help="routes of demand without its own circuit, or of all",
            choices=("shortest", "coin-change", "k-shortest"),
        ),
        Parameter(
            "groups",
            str,
            default="printed",
            help="rings by Algorithm 1, or ports shared only by groups with a common server",
            choices=get_args(Groups),
        ),
    ),
    run=run_topology_finder,
    construct=topology_finder,
)
