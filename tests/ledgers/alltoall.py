"""The claims of the all-to-all paper: their verdicts, and second measurements that share no code with the ledger's."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from second_measurements import (
    DEPENDS,
    NOT,
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
from opticoll.instances import parse

LEDGER = PaperLedger(
    "alltoall",
    {
        REPRODUCED: "matrix-form all-paths children steps-optimal steps-by-source forty-minutes theorem-2 bisection "
        "mcf-extp equal-weights path-throughput forwarding path-diversity single-path eighty-one dimension-order "
        "virtual-channels coverage genkautz-bound expanders-alike over-random sp-expanders",
        DEPENDS: "link-mcf-printed decomposition-speed fptas disjoint-paths equal-split shortest-paths sssp sssp-order "
        "balanced-paths genkautz-bound-d8 over-xpander-d8 over-tori over-xpander "
        "sp-expander-degree host-bottleneck",
        UNTESTABLE: "out-of-reach sccl gpu-throughput cluster-throughput",
    },
    quick="cluster-throughput dimension-order equal-split gpu-throughput out-of-reach path-diversity sccl",
)


LEDGER.falsified = [
    ("link-mcf-printed", {"networks": ["path:4"]}, DEPENDS),
    ("link-mcf-printed", {"networks": ["complete:5"]}, REPRODUCED),
    ("equal-split", {"paths per pair": [1]}, NOT),
    (
        "disjoint-paths",
        {
            "networks": ["genkautz:n=8,d=3"],
            "networks with disabled links": ["torus:3x3+fail=2,seed=1"],
            "equal within": [0.0],
        },
        NOT,
    ),
    ("path-diversity", {"power of N, at most": 0.1}, NOT),
    ("sp-expander-degree", {"N": [4], "d": [3], "random orders": 2}, REPRODUCED),
    ("matrix-form", {"networks": ["ring:4"]}, NOT, (program_claims, "certified_flow", scaled(0.9))),
    ("all-paths", {"networks": ["ring:4"]}, NOT, (program_claims, "certified_flow", scaled(0.9))),
    ("fptas", {"network": "genkautz:n=8,d=2", "epsilon": [0.5]}, NOT),
    ("path-throughput", {"network": "bipartite:2x2"}, NOT, (path_claims, "certified_flow", scaled(1.1))),
    ("sssp-order", {"networks": ["complete:4"], "random orders": 2}, REPRODUCED),
    ("genkautz-bound-d8", {"N": [32], "large N": 32, "close: within": 1e-6}, NOT),
    ("over-xpander", {"N": [64]}, NOT, (topology_claims, "sampled_ratio", constant((1.3, 0.01)))),
    (
        "over-xpander-d8",
        {"families": ["random-regular"], "N": [18], "random graphs": 2},
        NOT,
        (topology_claims, "sampled_ratio", constant((0.9, 0.01))),
    ),
    (
        "dimension-order",
        {"largest side in two dimensions": 3, "tori of three dimensions": []},
        NOT,
        (route_claims, "length_bound", constant(1.0)),
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
    ("decomposition-speed", {"N": [12], "least ratio": 1e6}, NOT),
    ("mcf-extp", {"networks": ["hypercube:2"]}, NOT, (path_claims, "certified_flow", scaled(1.1))),
    ("equal-weights", {"networks": ["hypercube:2"]}, NOT, (path_claims, "certified_flow", scaled(1.1))),
    ("single-path", {"networks": ["hypercube:2"]}, NOT, (route_claims, "certified_time", scaled(0.9))),
    ("balanced-paths", {"networks": ["hypercube:2"]}, NOT),
    ("virtual-channels", {"networks": ["ring:4"]}, NOT, (Laboratory, "solve", edited(verified=False))),
    ("expanders-alike", {"N": [15], "random graphs": 2, "nearly identical: within": 1e-9}, NOT),
    ("sp-expanders", {"graphs of N nodes": {"16": 1}, "similar: within": -1.0}, NOT),
    ("children", {"networks": ["path:3"]}, NOT, (program_claims, "certified_flow", scaled(1.1))),
    ("steps-optimal", {"networks": ["ring:4"]}, NOT, (program_claims, "certified_flow", scaled(1.1))),
    (
        "forty-minutes",
        {
            "hundreds of nodes": ["genkautz:n=12,d=4"],
            "a thousand nodes": "genkautz:n=16,d=4",
            "minutes": 1e-9,
            "sources sampled": 1,
        },
        NOT,
    ),
    ("steps-optimal", {"networks": ["genkautz:n=8,d=2"], "steps beyond the diameter": 0}, NOT),
    ("forwarding", {"network": "torus:3x3", "injection [Gb/s]": 1000}, NOT),
    ("genkautz-bound", {"N": [16, 300], "close: within": 0.01}, NOT),
    ("over-tori", {"N": [100], "printed": "3.4"}, NOT),
    ("over-random", {"N": [64], "printed [%]": "40"}, NOT),
    ("host-bottleneck", {"printed": "3.0"}, NOT),
    (
        "sssp",
        {
            "networks": ["torus:3x3x3"],
            "tori of three and more dimensions": ["torus:3x3x3"],
            "times that of the MCF": ["2.6", "2.8"],
        },
        NOT,
    ),
    ("eighty-one", {"networks": ["genkautz:n=81,d=4"], "near: within": 0.001}, NOT),
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


@LEDGER.second("alltoall.genkautz-bound")
def kautz_near_the_bound(row):
    for n in (16, 64):
        assert 1 / optimal_flow(n, kautz(n, 4)) / least_time(n, 4) == pytest.approx(row.measured[f"N={n}"], abs=6e-4)
    hops = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(kautz(1000, 4))))
    distances = sum(sum(far.values()) for far in hops.values())
    assert distances / len(kautz(1000, 4)) / least_time(1000, 4) <= row.measured["N=1000"] * 1.001


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
    assert row.measured["violations"] == 0


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
    assert row.measured["genkautz:n=8,d=2"]["sum U_t"] == pytest.approx(result.fun, abs=1e-4)
    assert row.measured["genkautz:n=8,d=2"]["steps"] == steps


@LEDGER.second("alltoall.disjoint-paths")
def disjoint_paths_of_eight_nodes(row):
    """Every maximum set of GK(8, 3), as networkx lists one, takes more time than the optimum."""
    arcs = kautz(8, 3)
    graph, number = nx.DiGraph(arcs), {arc: a for a, arc in enumerate(arcs)}
    pairs = list(itertools.permutations(range(8), 2))
    paths = [
        (k, [number[e] for e in itertools.pairwise(path)])
        for k, (s, t) in enumerate(pairs)
        for path in nx.edge_disjoint_paths(graph, s, t)
    ]
    load, serve = np.zeros((len(arcs), len(paths) + 1)), np.zeros((len(pairs), len(paths) + 1))
    load[:, -1] = -1
    for p, (k, used) in enumerate(paths):
        load[used, p] = serve[k, p] = 1
    cost = np.eye(len(paths) + 1)[-1]
    time = linprog(cost, A_ub=load, b_ub=np.zeros(len(arcs)), A_eq=serve, b_eq=np.ones(len(pairs))).fun
    assert time * optimal_flow(8, arcs) > 1.01
    assert row.witness.startswith("genkautz:n=8,d=3")


@LEDGER.second("alltoall.link-mcf-printed")
def cycle_through_the_sink(row):
    """On a path of four nodes, T = 4 by the middle cut: 2 times 2 pairs over one arc."""
    arcs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert 1 / optimal_flow(4, arcs) == pytest.approx(4)
    assert row.witness.startswith("path:4: T = 3 ")
