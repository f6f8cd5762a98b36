"""The claims of the SiP-ML paper: their verdicts, and second measurements that share no code with the ledger's."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from second_measurements import (
    NOT,
    OPEN,
    REPRODUCED,
    PaperLedger,
    constant,
    edited,
)

from opticoll.analysis.ledger.claim import Laboratory
from opticoll.analysis.papers.sipml import placement_claims
from opticoll.instances import parse
from opticoll.solvers.methods.sipml import koenig_bisection

LEDGER = PaperLedger(
    "sipml",
    {
        REPRODUCED: "duty-cycle switches-degree ilp example prohibitive range sequential figure-4 hybrid-search "
        "distance hybrid-degree",
        OPEN: "split-cap convergence evaluation",
    },
    slow="convergence ilp prohibitive switches-degree",
    falsified_slowly="ilp prohibitive",
)


#: Traffic between all of eight GPUs.
EVERYONE = SimpleNamespace(traffic=~np.eye(8, dtype=bool))
LEDGER.falsified = [
    ("duty-cycle", {"printed [%]": 91}, NOT),
    ("duty-cycle", {"printed [%]": 90.5}, OPEN),
    ("duty-cycle", {"hold time over r": 9}, OPEN),
    ("duty-cycle", {"hold time over r": 8}, NOT),
    ("example", {"Delta": 3}, NOT),
    ("example", {"parts of C": 3}, NOT),
    (
        "hybrid-degree",
        {"seeds": 1},
        NOT,
        (placement_claims, "hybrid_traffic", constant(EVERYONE)),
    ),
    ("figure-4", {"Delta": 1}, NOT),
    ("hybrid-search", {"D": 1}, NOT),
    (
        "distance",
        {"seeds": 1, "graphs per seed": 5},
        NOT,
        (placement_claims, "partners", constant({placement_claims.PER_DIRECTION: 99, placement_claims.BOTH: 99})),
    ),
    (
        "switches-degree",
        {"seeds": 1, "assignments per seed": 3},
        NOT,
        (koenig_bisection, "matchings_of", lambda true: lambda *args: np.roll(true(*args), 1, axis=1)),
    ),
    (
        "range",
        {"k": 4},
        NOT,
        (placement_claims, "candidate_ranges", constant({"along the circle": {0, 1, 2, 3}, "by number": {0, 1, 2, 3}})),
    ),
    (
        "sequential",
        {"seeds": 1},
        NOT,
        (placement_claims, "_makespan", lambda _true: lambda _d, _a, device, _c: device[0] + 1.0),
    ),
    (
        "split-cap",
        {"k": [2], "seeds": 1},
        NOT,
        (placement_claims, "_in_rounds", lambda true: lambda durations, parts, k: true(durations, parts, k) / parts),
        (placement_claims, "_best", lambda _true: lambda durations, _k: 1.0 / len(durations)),
    ),
    ("convergence", {"seeds": 1, "graphs per seed": 2}, REPRODUCED, (placement_claims, "repair_ends", constant(True))),
    ("ilp", {"(GPUs, degree)": [[5, 7]], "seeds": 1}, NOT, (Laboratory, "proven", edited(objective=1.0))),
    ("prohibitive", {"(layers, parts, k)": [[2, 2, 4]]}, NOT),
]


def problem(text):
    """k, Delta, durations and dependencies of a problem described in words."""
    k, delta = (int(re.search(rf"{name} = (\d+)", text)[1]) for name in ("k", "Delta"))
    durations = [float(word) for word in re.search(r"durations ([\d. ]+)", text)[1].split()]
    arcs = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)>(\d+)", text)]
    return k, delta, durations, arcs


@LEDGER.second("sipml.figure-4")
def one_placement_by_hand(row):
    """A on GPU 0, B on 0, C on 0, 1, 2 and D on 2: sends 0 > 1, 2 and 1 > 2, at most two, ahead by at most two."""
    assert all("1 and 1" in choice.measured for choice in row.choices)
    sends = {(0, 1), (0, 2), (1, 2)}
    assert all((h - g) % 4 <= 2 for g, h in sends)
    assert all(len({g for g, h in sends if h == v} | {h for g, h in sends if g == v}) <= 2 for v in range(4))
    assert not any("4 and" in choice.measured for choice in row.choices)
    for a, d in itertools.product(range(1, 5), repeat=2):  # all GPUs of B and D, counted apart in each direction
        fits = any(
            len(set(first) - {0}) <= 2
            and all(len(set(third) - {g}) <= 2 for g in [0])
            and all(len(set(last) - {g}) <= 2 for g in third)
            and all(len(set(third) - {g}) <= 2 for g in last)
            and all(
                len(({0} if g in third else set()) - {g} | (set(third) - {g} if g in last else set())) <= 2
                for g in range(4)
            )
            and all(
                len(
                    ({0} - {g} if g in first else set())
                    | (set(last) - {g} if g in third else set())
                    | (set(third) - {g} if g == 0 else set())
                )
                <= 2
                for g in range(4)
            )
            and all(
                len(
                    (set(first) - {g} if g == 0 else set())
                    | ({0} - {g} if g in third else set())
                    | (set(third) - {g} if g in last else set())
                )
                <= 2
                for g in range(4)
            )
            for first in itertools.combinations(range(4), a)
            for third in itertools.combinations(range(4), 3)
            for last in itertools.combinations(range(4), d)
        )
        assert (f" {a} and {d}" in row.choices[1].measured) == fits


@LEDGER.second("sipml.hybrid-search")
def data_parallelism_by_hand(row):
    """k = 1: the whole graph on one GPU with 1/16 of the batch, and a ring of 16 for all parameters."""
    for model, layers, hidden, batch in row.scope["(model, layers, width, batch)"]:
        graph = parse(f"op-graph:model={model},layers={layers},hidden={hidden},parts=1,batch={batch // 16}")
        ring = sum(2 * graph.weights.sum() / 16 / 1e12 for _ in range(15)) * 1e6
        assert row.everything[model]["iteration by k [us]"]["k = 1"] == pytest.approx(
            graph.duration.sum() + ring, abs=0.06
        )
    assert [row.everything[model]["best k"] for model in ("transformer", "resnet", "dlrm")] == [1, 1, 8]


@LEDGER.second("sipml.duty-cycle")
def share_of_time(row):
    dark = np.r_[np.zeros(10_000), np.ones(1000)]
    assert 100 * (1 - dark.mean()) == pytest.approx(row.choices[0].measured, abs=0.01)
    assert 100 * (1 - dark[1000:].mean()) == pytest.approx(row.choices[1].measured)


@LEDGER.second("sipml.switches-degree")
def one_matching_per_switch(row):
    """Split regular bipartite multigraphs into perfect matchings, one after the other, with networkx."""
    random = np.random.default_rng(5)
    for n, degree in ((3, 4), (6, 3), (8, 7)):
        circuits = sum(np.eye(n, dtype=int)[random.permutation(n)] for _ in range(degree))
        for _switch in range(degree):
            graph = nx.Graph()
            graph.add_nodes_from([*range(n), *(~np.arange(n)).tolist()])
            graph.add_edges_from((int(i), ~int(j)) for i, j in zip(*np.nonzero(circuits), strict=True))
            matching = nx.bipartite.hopcroft_karp_matching(graph, top_nodes=range(n))
            for i in range(n):
                circuits[i, ~matching[i]] -= 1
        assert not circuits.any()
    assert row.violations == 0


@LEDGER.second("sipml.ilp")
def least_times(row):
    """The least time of each server: its needs at every V/m, by enumeration; and the circuits themselves for one."""
    random_pool = parse(row.instances[0])
    traffic = random_pool.traffic
    pairs = list(zip(*np.nonzero(traffic), strict=True))
    times = sorted({float(traffic[pair]) / m for pair in pairs for m in range(1, random_pool.degree + 1)})

    def fits(time):
        needs = np.zeros_like(traffic)
        for pair in pairs:
            needs[pair] = np.ceil(traffic[pair] / time * (1 - 1e-12))
        return max(needs.sum(axis=0).max(), needs.sum(axis=1).max()) <= random_pool.degree

    least = next(time for time in times if fits(time))
    record = Laboratory().solve("sipml.ocs-circuits", row.instances[0], method="koenig-bisection", bandwidth=1.0)
    assert record["objective"] == pytest.approx(least)
    assert row.tightness.max == pytest.approx(1.0, abs=1e-6)


@LEDGER.second("sipml.example")
def all_placements(row):
    """All 4^5 placements of B and the parts of C: the rounds of C against the partners of B's GPU."""
    rounds = {}
    for b, *parts in itertools.product(range(4), repeat=5):
        others = len(set(parts) - {b})
        longest = max(np.bincount(parts))
        rounds[others] = min(rounds.get(others, 9), 1 + longest)
    assert rounds[3] == 2 == row.everything["degree, Delta = 3"]
    assert min(rounds[others] for others in range(3)) == 3 == row.everything["degree, Delta = 2"]


@LEDGER.second("sipml.distance", "sipml.hybrid-degree")
def partners_of_the_witness(row):
    k, delta, _, arcs = problem(row.witness)
    device = [int(word) for word in row.witness.partition("GPUs ")[2].split()]
    inside = {(device[u], device[v]) for u, v in arcs if device[u] != device[v]}
    assert all((h - g) % k <= delta for g, h in inside), "within the distance"
    traffic = nx.DiGraph((f"0-{g}", f"0-{h}") for g, h in inside)
    limit = delta
    if row.id.endswith("hybrid-degree"):
        traffic = nx.compose(traffic, nx.DiGraph((f"1-{g}", f"1-{h}") for g, h in inside))
        traffic.add_edges_from((f"{i}-{g}", f"{1 - i}-{g}") for i in (0, 1) for g in set(device))
        limit = delta + 1
    assert max(max(dict(traffic.out_degree).values()), max(dict(traffic.in_degree).values())) <= limit
    most = max(dict(traffic.to_undirected().degree).values())
    assert most > limit
    assert row.witness.startswith(f"{most} partners, limit {limit}")


@LEDGER.second("sipml.convergence")
def printed_repair(row):
    """Run the printed procedure on the witness: moves to the nearest GPU, in numbers, until a state repeats."""
    k, delta, durations, arcs = problem(row.witness)
    *_, nearest, place = row.witness.split("; ")
    inputs = [[u for u, v in arcs if v == x] for x in range(len(durations))]
    children = [[v for u, v in arcs if u == x] for x in range(len(durations))]
    around = lambda g, h: min((h - g) % k, (g - h) % k)  # noqa: E731
    distance = {
        "around the circle, ties to the lower number": lambda g, h: (around(g, h), h),
        "around the circle, ties ahead": lambda g, h: (around(g, h), (h - g) % k),
        "around the circle, ties back": lambda g, h: (around(g, h), (g - h) % k),
        "ahead only": lambda g, h: (h - g) % k,
        "back only": lambda g, h: (g - h) % k,
    }[nearest]
    at, free, end = {}, [0.0] * k, [0.0] * len(durations)

    def reach(gpus):
        return [h for h in range(k) if all((h - g) % k <= delta for g in gpus)]

    def run():
        for x, duration in enumerate(durations):
            gpus = [at[u] for u in inputs[x]]
            latest = max((end[u] for u in inputs[x]), default=0.0)
            candidates = reach(gpus)
            if candidates:
                at[x] = min(candidates, key=lambda h: (max(free[h], latest), h))
                latest = max(free[at[x]], latest)
            else:
                tie = {
                    "first free": lambda h: (free[h], h),
                    "lowest number": lambda h: h,
                    "highest number": lambda h: -h,
                    "next after the last input": lambda h, last=gpus[-1]: (h - last) % k,
                }[place]
                votes = {h: sum((h - g) % k <= delta for g in gpus) for h in range(k)}
                at[x] = min(range(k), key=lambda h: (-votes[h], tie(h)))
                if repair(x):
                    return True
                latest = max([free[at[x]], *(end[u] for u in inputs[x])])
            free[at[x]] = end[x] = latest + duration
        return False

    def repair(x):
        backward, moved, states = [x], set(), set()
        while True:
            while backward:
                v = backward.pop()
                for u in inputs[v]:
                    if (at[v] - at[u]) % k > delta:
                        at[u] = min(((at[v] - step) % k for step in range(delta + 1)), key=lambda h: distance(at[u], h))
                        backward.append(u)
                        moved.add(u)
            state = (tuple(sorted(at.items())), tuple(sorted(moved)))
            if not moved or state in states:
                return bool(moved)
            states.add(state)
            pending, moved = sorted(moved), set()
            for u in pending:
                for v in children[u]:
                    if v in at and (at[v] - at[u]) % k > delta:
                        allowed = reach([at[w] for w in inputs[v]]) or reach([at[u]])
                        at[v] = min(allowed, key=lambda h: distance(at[v], h))
                        moved.add(v)
                        backward.append(v)

    assert run(), "a state repeats"


@LEDGER.second("sipml.range")
def ranges(row):
    total = sum(
        (k - 1) * sum(1 for size in (1, 2, 3) for _ in itertools.combinations(range(k), size)) for k in range(2, 13)
    )
    assert row.count == total
    assert {0, 2} == {g for g in range(4) if all((g - h) % 4 <= 2 for h in (0, 2))}, "not consecutive"


@LEDGER.second("sipml.sequential")
def one_placement_less(row):
    load = {
        max(a + b for a, b in zip(first, second, strict=True))
        for first, second in itertools.product([(1, 1, 0), (1, 0, 1), (0, 1, 1)], repeat=2)
    }
    assert load == {2}
    assert row.choices[0].measured == 1
    apart = max(1 + 2, 2 + 1)
    together = min(max(1 + 1 + sum(some), 4 - sum(some)) for some in ((), (2,), (2, 2)))
    assert together / apart == pytest.approx(row.choices[2].measured)


@LEDGER.second("sipml.split-cap")
def packed(row):
    """Makespans of two ops side by side, times 3 and 1, on two GPUs: partitions of the parts."""
    least = {p: min(max(1 + i * 3 / p, (p - i) * 3 / p) for i in range(p + 1)) for p in range(1, 7)}
    assert min(least.values()) / min(least[1], least[2]) == pytest.approx(row.everything["two ops side by side"])
