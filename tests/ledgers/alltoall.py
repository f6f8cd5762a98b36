"""The claims of the all-to-all paper: their verdicts, and second measurements that share no code with the ledger's."""

from __future__ import annotations

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import dijkstra
from second_measurements import (
    NOT,
    OPEN,
    REPRODUCED,
    UNTESTABLE,
    PaperLedger,
    constant,
    edited,
    scaled,
)

from opticoll.analysis.ledger.claim import Laboratory
from opticoll.analysis.papers.alltoall import claims as program_claims
from opticoll.analysis.papers.alltoall import path_claims, route_claims, topology_claims, upper_bound_claims
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.instances import parse

LEDGER = PaperLedger(
    "alltoall",
    {
        REPRODUCED: "matrix-form all-paths children steps-optimal steps-by-source theorem-2 bisection mcf-extp "
        "equal-weights forwarding path-diversity single-path eighty-one dimension-order virtual-channels "
        "coverage genkautz-bound expanders-alike sp-expanders",
        NOT: "genkautz-bound-d8 disjoint-paths sssp sssp-order host-bottleneck",
        OPEN: "decomposition-speed fptas over-xpander-d8 sp-expander-degree link-mcf-printed shortest-paths "
        "over-random over-xpander over-tori",
        UNTESTABLE: "forty-minutes path-throughput balanced-paths out-of-reach sccl gpu-throughput cluster-throughput",
    },
    undecided="forty-minutes path-throughput balanced-paths",
    quick="cluster-throughput dimension-order gpu-throughput out-of-reach path-diversity sccl",
)


LEDGER.falsified = [
    ("link-mcf-printed", {"networks": ["path:4"]}, OPEN),
    ("link-mcf-printed", {"networks": ["complete:5"]}, REPRODUCED),
    ("disjoint-paths", {"networks": ["torus:3x3"], "networks with disabled links": []}, REPRODUCED),
    ("path-diversity", {"power of N, at most": 0.1}, NOT),
    ("sp-expander-degree", {"N": [4], "d": [3], "random orders": 2}, REPRODUCED),
    ("matrix-form", {"networks": ["ring:4"]}, NOT, (program_claims, "certified_flow", scaled(0.9))),
    ("all-paths", {"networks": ["ring:4"]}, NOT, (program_claims, "certified_flow", scaled(0.9))),
    ("fptas", {"network": "genkautz:n=8,d=2", "epsilon": [0.5]}, NOT),
    ("sssp-order", {"networks": ["complete:4"], "random orders": 2}, REPRODUCED),
    ("genkautz-bound-d8", {"N": [32], "large N": 32}, REPRODUCED, (topology_claims, "ABOUT", lambda _true: 0.5)),
    ("over-xpander", {"N": [64]}, NOT, (topology_claims, "sampled_ratio", constant((1.3, 0.01)))),
    (
        "over-xpander-d8",
        {"families": ["random-regular"], "N": [18], "random graphs": 2},
        REPRODUCED,
        (topology_claims, "sampled_ratio", constant((1.1, 0.01))),
    ),
    (
        "dimension-order",
        {"largest side in two dimensions": 3, "tori of three dimensions": []},
        NOT,
        (ConcurrentFlow, "length_bound", constant(1.0)),
    ),
    (
        "bisection",
        {"nodes, at most": 5},
        NOT,
        (upper_bound_claims, "classes", constant(((parse("ring:5"), 1 / 3),))),
        (upper_bound_claims, "least_cut", scaled(0.5)),
    ),
    ("coverage", {"N, at most": 12}, NOT, (topology_claims, "parse", lambda _true: lambda _spec: parse("path:3"))),
    ("theorem-2", {}, NOT, (upper_bound_claims, "classes", constant(((parse("petersen"), 0.5),)))),
]
LEDGER.slowly_falsified = [
    ("shortest-paths", {"expanders": ["genkautz:n=16,d=4"], "tori": ["torus:4x4"], "k": [4]}, NOT),
    ("steps-by-source", {"networks": ["ring:4"]}, NOT, (Laboratory, "proven", lambda true: by_source_is_longer(true))),
    ("decomposition-speed", {"N": [12]}, NOT),
    ("mcf-extp", {"networks": ["hypercube:2"]}, NOT, (path_claims, "certified_flow", scaled(1.1))),
    ("equal-weights", {"networks": ["hypercube:2"]}, NOT, (path_claims, "certified_flow", scaled(1.1))),
    ("single-path", {"networks": ["hypercube:2"]}, NOT, (route_claims, "certified_time", scaled(0.9))),
    ("virtual-channels", {"networks": ["ring:4"]}, NOT, (Laboratory, "solve", edited(verified=False))),
    ("expanders-alike", {"N": [15], "random graphs": 2}, NOT, (topology_claims, "similar", constant(False))),
    ("sp-expanders", {"graphs of N nodes": {"16": 1}}, NOT, (topology_claims, "ABOUT", lambda _true: -1.0)),
    ("children", {"networks": ["path:3"]}, NOT, (program_claims, "certified_flow", scaled(1.1))),
    ("steps-optimal", {"networks": ["ring:4"]}, NOT, (program_claims, "certified_flow", scaled(1.1))),
    ("steps-optimal", {"networks": ["genkautz:n=8,d=2"], "steps beyond the diameter": 0}, NOT),
    ("forwarding", {"network": "torus:3x3", "injection [Gb/s]": 1000}, NOT),
    ("genkautz-bound", {"N": [16, 300]}, NOT, (topology_claims, "ABOUT", lambda _true: 0.01)),
    ("over-tori", {"N": [100], "printed": "3.4"}, NOT),
    ("over-random", {"N": [64], "printed [%]": "40"}, NOT),
    ("host-bottleneck", {}, REPRODUCED, (topology_claims, "ABOUT", lambda _true: 1.0)),
    (
        "sssp",
        {
            "networks": ["torus:3x3x3"],
            "tori of three and more dimensions": ["torus:3x3x3"],
        },
        REPRODUCED,
        (route_claims, "pair_loads", scaled(2.0)),
    ),
    ("eighty-one", {"networks": ["genkautz:n=81,d=4"]}, NOT, (route_claims, "similar", constant(False))),
]


def by_source_is_longer(true):
    """Replace proven optima by source with larger ones."""

    def wrong(laboratory, *args, **settings):
        record = true(laboratory, *args, **settings)
        return {"objective": record["objective"] * (1.1 if settings["aggregate"] == "source" else 1.0)}

    return wrong


def kautz(n, d):
    """Arcs i -> -d i - j (mod n), without loops."""
    return [(i, (-d * i - j) % n) for i in range(n) for j in range(1, d + 1) if (-d * i - j) % n != i]


def optimal_flow(n, arcs):
    """The maximum concurrent flow, by source: what u receives from s less what it passes on is at least F."""
    m = len(arcs)
    tail, head = np.array(arcs).T
    at = sp.csr_array((np.ones(m), (head, np.arange(m))), (n, m)) - sp.csr_array(
        (np.ones(m), (tail, np.arange(m))), (n, m)
    )
    keep = np.array([s * n + u for s in range(n) for u in range(n) if u != s])
    balance = sp.csr_array(sp.kron(sp.identity(n), at))[keep]
    A = sp.vstack(
        [
            sp.hstack([-balance, np.ones((keep.size, 1))]),
            sp.hstack([sp.kron(np.ones((1, n)), sp.identity(m)), sp.csr_array((m, 1))]),
        ]
    )
    cost = np.zeros(n * m + 1)
    cost[-1] = -1
    result = linprog(cost, A_ub=sp.csc_array(A), b_ub=[0.0] * keep.size + [1.0] * m, method="highs-ipm")
    assert result.status == 0
    return -result.fun


def least_time(n, d):
    """Sum of depths of the d-ary tree of n - 1 vertices below its root, over d."""
    depths = list(itertools.islice((k for k in itertools.count(1) for _ in range(d**k)), n - 1))
    return sum(depths) / d


@LEDGER.second("alltoall.genkautz-bound-d8")
def kautz_of_32_nodes(row):
    ratio = 1 / optimal_flow(32, kautz(32, 8)) / least_time(32, 8)
    assert ratio == pytest.approx(row.everything["N=32"], abs=1e-3)
    assert row.measured >= ratio > 1.1


@LEDGER.second("alltoall.genkautz-bound")
def kautz_near_the_bound(row):
    for n in (16, 64):
        assert 1 / optimal_flow(n, kautz(n, 4)) / least_time(n, 4) == pytest.approx(row.everything[f"N={n}"], abs=6e-4)
    hops = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(kautz(1000, 4))))
    distances = sum(sum(far.values()) for far in hops.values())
    assert distances / len(kautz(1000, 4)) / least_time(1000, 4) <= row.everything["N=1000"] * 1.001


@LEDGER.second("alltoall.theorem-2")
def every_small_digraph(row):
    for d in (1, 2, 3):
        rows = [list(itertools.combinations([v for v in range(4) if v != u], d)) for u in range(4)]
        for heads in itertools.product(*rows):
            arcs = [(u, v) for u, to in enumerate(heads) for v in to]
            graph = nx.DiGraph(arcs)
            if all(degree == d for _, degree in graph.in_degree) and nx.is_strongly_connected(graph):
                assert 1 / optimal_flow(4, arcs) >= least_time(4, d) - 1e-6
    petersen = nx.petersen_graph().to_directed()
    assert 1 / optimal_flow(10, list(petersen.edges)) == pytest.approx(least_time(10, 3)), "attained with 1 < d < N-1"
    assert least_time(10, 3) > 9 / 3, "(N-1)/d is not"
    assert row.everything["violations"] == 0


@LEDGER.second("alltoall.steps-optimal")
def unrolled_over_time(row):
    """The time-stepped LP as flows in the graph unrolled over time, for GK(8, 2) in four steps."""
    n, steps, arcs = 8, 4, kautz(8, 2)
    moves = [((u, t), (v, t + 1), t) for t in range(steps) for u, v in arcs]
    waits = [((u, t), (u, t + 1), None) for t in range(steps) for u in range(n)]
    edges, number = moves + waits, {(u, t): t * n + u for u in range(n) for t in range(steps + 1)}
    ends = np.array([[number[a], number[b]] for a, b, _ in edges]).T
    m, size = len(edges), len(number)
    at = sp.csr_array((np.ones(m), (ends[1], np.arange(m))), (size, m))
    at = at - sp.csr_array((np.ones(m), (ends[0], np.arange(m))), (size, m))
    needs = np.zeros((n, size))
    for s in range(n):
        needs[s, [number[u, steps] for u in range(n) if u != s]] = 1
        needs[s, number[s, 0]] = 1 - n
    share = sp.hstack([sp.identity(len(moves)), sp.csr_array((len(moves), len(waits)))])
    used = sp.csr_array((-np.ones(len(moves)), (np.arange(len(moves)), [t for *_, t in moves])), (len(moves), steps))
    result = linprog(
        np.append(np.zeros(n * m), np.ones(steps)),
        A_ub=sp.csc_array(sp.hstack([sp.kron(np.ones((1, n)), share), used])),
        b_ub=np.zeros(len(moves)),
        A_eq=sp.csc_array(sp.hstack([sp.kron(sp.identity(n), at), sp.csr_array((n * size, steps))])),
        b_eq=needs.ravel(),
        method="highs",
    )
    assert result.fun == pytest.approx(1 / optimal_flow(n, arcs))
    assert row.everything["genkautz:n=8,d=2"]["sum U_t"] == pytest.approx(result.fun, abs=1e-4)
    assert row.everything["genkautz:n=8,d=2"]["steps"] == steps


def disjoint_sets(n, arcs, seed):
    """A maximum set of arc-disjoint paths for every pair, by augmenting paths in random order: arcs by path."""
    random = np.random.default_rng(seed)
    out = {u: [a for a, (tail, _) in enumerate(arcs) if tail == u] for u in range(n)}
    into = {v: [a for a, (_, head) in enumerate(arcs) if head == v] for v in range(n)}
    for s, t in itertools.permutations(range(n), 2):
        used = set()
        while True:
            steps, queue = {s: None}, [s]
            for u in queue:
                moves = [(arcs[a][1], a) for a in out[u] if a not in used]
                moves += [(arcs[a][0], a) for a in into[u] if a in used]
                for k in random.permutation(len(moves)):
                    v, a = moves[k]
                    if v not in steps:
                        steps[v] = (u, a)
                        queue.append(v)
            if t not in steps:
                break
            v = t
            while v != s:
                v, a = steps[v]
                used ^= {a}
        leaving = [a for a in used if arcs[a][0] == s]
        for first in leaving:
            path, left = [first], used - {first}
            while arcs[path[-1]][1] != t:
                path.append(next(a for a in left if arcs[a][0] == arcs[path[-1]][1]))
                left = left - {path[-1]}
            used -= set(path)
            yield (s, t), path


def time_over(n, arcs, paths):
    """Least time over a list of pairs and paths."""
    pairs = {pair: k for k, pair in enumerate(itertools.permutations(range(n), 2))}
    load, serve = np.zeros((len(arcs), len(paths) + 1)), np.zeros((len(pairs), len(paths) + 1))
    load[:, -1] = -1
    for p, (pair, used) in enumerate(paths):
        load[used, p] = serve[pairs[pair], p] = 1
    cost = np.eye(len(paths) + 1)[-1]
    return linprog(cost, A_ub=load, b_ub=np.zeros(len(arcs)), A_eq=serve, b_eq=np.ones(len(pairs)), method="highs").fun


@LEDGER.second("alltoall.disjoint-paths")
def disjoint_paths_of_eight_and_sixteen_nodes(row):
    """On GK(8, 3) and GK(16, 4) each of 60 random maximum sets of disjoint paths takes 6 % more time than the MCF."""
    for n, d in ((8, 3), (16, 4)):
        arcs = kautz(n, d)
        least = min(time_over(n, arcs, list(disjoint_sets(n, arcs, seed))) for seed in range(60))
        assert least * optimal_flow(n, arcs) > 1.06
    assert "genkautz:n=8,d=3" in row.everything
    assert row.measured > 1.07


def torus_arcs(*shape):
    graph = nx.convert_node_labels_to_integers(nx.grid_graph(shape, periodic=True)).to_directed()
    return list(graph.edges)


def routed(arcs, seed, *, trees):
    """Arc loads of shortest paths taken one after the other, by destination or by pair; used arcs become longer."""
    random, graph = np.random.default_rng(seed), nx.DiGraph(arcs)
    n = len(graph)
    nx.set_edge_attributes(graph, n * n, "weight")
    load = dict.fromkeys(arcs, 0)
    targets = random.permutation(n).tolist()
    jobs = [(None, t) for t in targets] if trees else random.permutation(list(itertools.permutations(range(n), 2)))
    for s, t in jobs:
        sources = [u for u in range(n) if u != t] if s is None else [s]
        _, paths = nx.single_source_dijkstra(graph.reverse(copy=False), t)
        for source in sources:
            for v, u in itertools.pairwise(paths[source]):
                load[u, v] += 1
                graph[u][v]["weight"] += 1
    return load


@LEDGER.second("alltoall.sssp")
def trees_and_pairs(row):
    """Trees on a 5x5 torus, where T is half the mean distance times the nodes: less than 1.55 times, pairs below 2."""
    arcs = torus_arcs(5, 5)
    time = 25 * sum(2 * 5 * min(k, 5 - k) for k in range(5)) / len(arcs)
    trees = [max(routed(arcs, seed, trees=True).values()) / time for seed in range(8)]
    assert np.mean(trees) < 1.55
    assert max(max(routed(arcs, seed, trees=False).values()) for seed in range(3)) / time < 2
    assert row.measured[0] < 1.55


@LEDGER.second("alltoall.sssp-order")
def two_orders(row):
    arcs = torus_arcs(5, 5)
    first, second = (routed(arcs, seed, trees=False) for seed in (1, 2))
    assert sum(first.values()) == sum(second.values()), "every route is shortest"
    assert first != second
    assert row.violations


@LEDGER.second("alltoall.balanced-paths")
def single_shortest_paths_of_cubes(row):
    """On the 3-cube one shortest path per pair, bit by bit, attains T = 8 * 12 / 24."""
    load = dict.fromkeys(nx.hypercube_graph(3).to_directed().edges, 0)
    for s, t in itertools.permutations(itertools.product((0, 1), repeat=3), 2):
        for bit in range(3):
            before, after = (*t[:bit], *s[bit:]), (*t[: bit + 1], *s[bit + 1 :])
            if before != after:
                load[before, after] += 1
    assert max(load.values()) == 8 * 12 / 24
    assert row.everything["hypercube:3"] == pytest.approx(1)


def bounded_time(n, arcs, rounds):
    """Bounds on T by multiplicative weights: arc lengths prove the lower one, averaged trees attain the upper one."""
    tail, head = np.array(arcs).T
    load, lower = np.zeros(len(arcs)), 0.0
    number = np.full((n, n), -1)
    number[tail, head] = np.arange(len(arcs))
    for step in range(1, rounds + 1):
        length = np.exp(12 * (load / load.max() - 1)) if step > 1 else np.ones(len(arcs))
        far, before = dijkstra(sp.csr_array((length, (tail, head)), (n, n)), return_predecessors=True)
        lower = max(lower, far.sum() / length.sum())
        for s in range(n):
            below = np.ones(n)
            for v in np.argsort(-far[s])[:-1]:
                u = before[s, v]
                load[number[u, v]] += below[v]
                below[u] += below[v]
    return lower, load.max() / rounds


@LEDGER.second("alltoall.over-xpander-d8")
def a_random_graph_of_128_nodes(row):
    """GK(128, 8) takes longer than a random regular graph, by bounds of multiplicative weights."""
    graph = nx.random_regular_graph(8, 128, seed=1).to_directed()
    slower, _ = bounded_time(128, sorted(set(kautz(128, 8))), 60)
    _, faster = bounded_time(128, list(graph.edges), 60)
    assert slower > faster
    assert row.choices[-1].measured[1] < 1


@LEDGER.second("alltoall.sp-expander-degree")
def links_of_printed_heuristic(row):
    """Appendix E with networkx: after all pairs are routed, some vertex has fewer than d links in some order."""
    short = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        graph = nx.complete_graph(12).to_directed()
        nx.set_edge_attributes(graph, 1 / 24, "weight")
        formed = set()
        for s, t in random.permutation(list(itertools.permutations(range(12), 2))).tolist():
            if not nx.has_path(graph, s, t):
                continue
            for u, v in itertools.pairwise(nx.shortest_path(graph, s, t, weight="weight")):
                graph[u][v]["weight"] += 1
                formed.add((u, v))
                for free in (list(graph.out_edges(u)), list(graph.in_edges(v))):
                    end = 0 if free[0][0] == u and all(a == u for a, _ in free) else 1
                    mine = {e for e in formed if e[end] == (u if end == 0 else v)}
                    if len(mine) == 3:
                        graph.remove_edges_from(set(free) - mine)
        degrees = [sum(a == x for a, _ in formed) for x in range(12)]
        short.append(min(degrees) < 3)
    assert any(short)
    assert row.violations


@LEDGER.second("alltoall.host-bottleneck")
def torus_through_its_hosts(row):
    """At B = 1.3 every hop passes a host: a bound for the torus, and an even split that is valid for GenKautz."""
    torus = 2 * 10 * sum(min(k, 10 - k) for k in range(10)) / 1.3
    graph, loads, links = nx.DiGraph(kautz(100, 4)), np.zeros(100), Counter()
    for s in graph:
        far = nx.single_source_shortest_path_length(graph, s)
        order = sorted(far, key=far.get)
        ways, amount = {s: 1}, dict.fromkeys(order, 1.0)
        for v in order[1:]:
            ways[v] = sum(ways[u] for u in graph.predecessors(v) if far[u] == far[v] - 1)
        for v in order[:0:-1]:
            for u in (u for u in graph.predecessors(v) if far[u] == far[v] - 1):
                part = amount[v] * ways[u] / ways[v]
                links[u, v] += part
                amount[u] += part
            loads[v] += amount[v]
    kautz_time = max(loads.max() / 1.3, max(links.values()))
    assert torus > 1.3 * kautz_time
    assert row.measured > 1.3


@LEDGER.second("alltoall.link-mcf-printed")
def cycle_through_the_sink(row):
    """On a path of four nodes, T = 4 by the middle cut: 2 times 2 pairs over one arc."""
    arcs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert 1 / optimal_flow(4, arcs) == pytest.approx(4)
    assert row.witness.startswith("path:4: T = 3 ")
