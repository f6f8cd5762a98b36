"""Circuits that change during a collective: bounds against all sequences, the model, the search."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from case_families import each
from scipy.optimize import Bounds, milp
from slow_cases import marked

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.topology.design import Design
from opticoll.formulations.topology.design_bounds import least_time
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.formulations.topology.sequence_bounds import (
    bounds,
    circuits,
    hop_time,
    known_sequences,
    layers,
    nodes_at,
    port_time,
    ring_time,
    rotation,
)
from opticoll.instances import parse
from opticoll.solvers.methods.topology.sequence_exchanges import anneal_circuits, exchanged, work
from opticoll.solvers.methods.topology.sequence_flows import all_lines, route

NAME = "topology.sequence"

DESIGN = "topology.design"


def time_of(configurations, demand, *, delay=0.0, overlap=False, step=False, used=None):
    """Least sum of lengths for these circuits, by a plain LP over flows of every source; infinite if there is none.

    Configurations that are not ``used`` have length 0.
    """
    K, n = len(configurations), len(demand)
    rooms = []  # circuits of every phase, and the configuration whose length they last; None for the delay
    for k, counts in enumerate(configurations):
        if k and overlap:
            rooms.append((np.minimum(configurations[k - 1], counts), None))
        rooms.append((counts, k))
    flows = [
        (p, s, u, v) for p, (room, _) in enumerate(rooms) for s in range(n) for u, v in np.argwhere(room) if v != s
    ]
    column = {name: place for place, name in enumerate(flows)}
    size = len(flows) + K
    above, right = [], []

    def row(entries, most):
        above.append(entries)
        right.append(most)

    for p, (room, k) in enumerate(rooms):
        for u, v in np.argwhere(room).tolist():
            entries = [(column[p, s, u, v], 1.0) for s in range(n) if s != v]
            if k is None:
                row(entries, delay * room[u, v])
            else:
                row([*entries, (len(flows) + k, -float(room[u, v]))], 0.0)
    for s, u in permutations(range(n), 2):
        out, into = [], []
        for p, (room, _) in enumerate(rooms):
            leaving = [(column[p, s, u, v], 1.0) for v in range(n) if room[u, v] and v != s]
            if step:
                row([*into, *out, *leaving], 0.0)
            out = out + leaving
            into = into + [(column[p, s, v, u], -1.0) for v in range(n) if room[v, u]]
            row([*into, *out], -demand[s][u] if p == len(rooms) - 1 else 0.0)
    if not flows:
        return np.inf
    places = [(r, c, a) for r, entries in enumerate(above) for c, a in entries]
    rows, cols, entries = zip(*places, strict=True)
    matrix = sp.csr_array((entries, (rows, cols)), shape=(len(above), size))
    cost = np.append(np.zeros(len(flows)), np.ones(K))
    most = np.full(size, np.inf)
    if used is not None:
        most[len(flows) :][~np.array(used)] = 0.0
    result = milp(cost, constraints=(matrix, -np.inf, right), bounds=Bounds(0.0, most))
    return result.fun if result.status == 0 else np.inf


def all_configurations(n, degree, *, directed):
    """Circuit counts of every maximal configuration, parallel circuits included."""
    pairs = [(u, v) for u in range(n) for v in range(n) if (u != v if directed else u < v)]
    result = []

    def add(place, counts, out, into):
        """Circuits at the pairs from ``place`` on, where so many ports are free."""
        if place == len(pairs):
            if not any(out[u] and into[v] for u in range(n) for v in range(n) if u != v):
                result.append(counts.copy())
            return
        u, v = pairs[place]
        for copies in range(min(out[u], into[v]) + 1):
            for s, t in [(u, v)] if directed else [(u, v), (v, u)]:
                counts[s, t], out[s], into[t] = copies, out[s] - copies, into[t] - copies
            add(place + 1, counts, out, into)
            for s, t in [(u, v)] if directed else [(u, v), (v, u)]:
                counts[s, t], out[s], into[t] = 0, out[s] + copies, into[t] + copies

    add(0, np.zeros((n, n), dtype=int), [degree] * n, [degree] * n)
    return result


@cache
def some(n, degree, directed):
    """All configurations, and one of each isomorphism class to begin with."""
    every = all_configurations(n, degree, directed=directed)
    seen, first = set(), []
    for counts in every:
        if counts.tobytes() not in seen:
            first.append(counts)
            seen |= {counts[np.ix_(order, order)].tobytes() for order in map(list, permutations(range(n)))}
    return every, first


def uniform(n):
    return np.ones((n, n)) - np.eye(n)


#: n, degree, one-way, K: every sequence, up to the names of nodes.
EVERY = [
    *((3, degree, directed, K) for degree in (1, 2) for directed in (False, True) for K in (1, 2)),
    *((3, 1, directed, 3) for directed in (False, True)),
    *((4, degree, directed, 1) for degree in (1, 2) for directed in (False, True)),
    *((4, 1, directed, 2) for directed in (False, True)),
    *((5, 1, directed, 1) for directed in (False, True)),
    (3, 2, False, 3),
    (4, 1, False, 3),
    (4, 2, False, 2),
    (5, 1, False, 2),
    (5, 2, False, 1),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, 2, True, 3), (4, 1, True, 3), (5, 1, True, 2))),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((5, 2, True, 1), (4, 2, False, 3), (4, 2, True, 2))),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((5, 1, False, 3), (5, 1, True, 3), (5, 2, False, 2))),
]


def sequences(n, degree, directed, K):
    every, first = some(n, degree, directed)
    for start in first:
        for rest in product(every, repeat=K - 1):
            yield [start, *rest]


@pytest.mark.parametrize(("n", "degree", "directed", "K"), EVERY)
def test_no_sequence_is_below_the_bounds(n, degree, directed, K):
    demands = [uniform(n)]
    if (n, K) in {(3, 2), (4, 2), (4, 1)}:
        draw = np.random.default_rng(n)
        demands.append(np.rint(draw.exponential(size=(n, n)) * 8) * uniform(n))
    for demand in demands:
        stated = {
            bound.name: bound.value
            for bound in bounds(TopologySequence.of_nodes(n, degree, K, demand=demand, directed=directed))
        }
        best = min(time_of(one, demand) for one in sequences(n, degree, directed, K))
        assert best >= max(stated.values()) * (1 - 1e-9)
        if np.isfinite(best) and demand is demands[0]:
            assert best <= known_time(n, degree, directed, K) * (1 + 1e-9)


def known_time(n, degree, directed, K):
    """The best of the known sequences of at most K configurations."""
    known = known_sequences(TopologySequence.of_nodes(n, degree, K, directed=directed))
    return float(min((one.time for one in known if one.configurations <= K), default=np.inf))


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(s, marks=pytest.mark.slow) for s in range(5, 40))])
def test_bounds_hold_for_random_sequences(seed):
    """With any demand, relays, delay and overlap; also sequences that are too many to list."""
    draw = np.random.default_rng(seed)
    n, degree, K = int(draw.integers(3, 6)), int(draw.integers(1, 3)), int(draw.integers(1, 4))
    directed, step, overlap = (bool(value) for value in draw.integers(0, 2, size=3))
    delay = float(draw.choice([0.25, 0.5, 1.0]))
    demand = uniform(n) if seed % 2 else np.rint(draw.exponential(size=(n, n)) * 4) * uniform(n)
    if not demand.any():
        return
    every, _ = some(n, degree, directed)
    data = TopologySequence.of_nodes(
        n,
        degree,
        K,
        demand=demand,
        delay=delay,
        directed=directed,
        relays="step" if step else "pass",
        overlap=overlap,
    )
    stated = max(bound.value for bound in data.bounds())
    for _ in range(15):
        chosen = [every[i] for i in draw.integers(len(every), size=K)]
        time = time_of(chosen, demand, delay=delay, overlap=overlap, step=step)
        assert time + delay * (K - 1) >= stated * (1 - 1e-9)


@pytest.mark.parametrize(("n", "degree", "directed", "K"), [(4, 1, True, 2), (3, 2, True, 2), (3, 2, False, 3)])
def test_bounds_of_uneven_demands_hold_for_all_sequences(n, degree, directed, K):
    """And are above those of hops from single nodes and of ports for some of them."""
    sharper = 0
    for seed in range(2):
        draw = np.random.default_rng(seed)
        demand = draw.integers(0, 9, size=(n, n)) * draw.choice([1, 4], size=(n, 1)) * uniform(n)
        data = TopologySequence.of_nodes(n, degree, K, demand=demand, directed=directed)
        best = min(time_of(one, demand) for one in product(some(n, degree, directed)[0], repeat=K))
        hops, ports = hop_time(data, K)[0], port_time(data)[0]
        assert max(hops, ports) <= best * (1 + 1e-9)
        far = np.repeat(np.arange(1, 1 + len(layers(data, K))), layers(data, K))
        work = max((-np.sort(-side, axis=1)[:, :-1] * far).sum() for side in (demand, demand.T))
        assert hops >= work / circuits(data) * (1 - 1e-12)
        sharper += hops > max(work / circuits(data), float(ports)) * (1 + 1e-9)
    assert sharper or n < 4 or not directed


def test_two_way_counts_are_the_coefficients_of_their_generating_function():
    for degree, K in product(range(1, 6), range(1, 6)):
        series, factor = np.zeros(7), np.zeros(7)
        factor[0], factor[1:] = 1, [degree * (degree - 1) ** (j - 1) for j in range(1, 7)]
        series[0] = 1
        for _ in range(K):
            series = np.convolve(series, factor)[:7]
        assert series[1:].tolist() == [nodes_at(h, K, degree, directed=False, step=False) for h in range(1, 7)]


@each("directed", [False, True])
@each(("n", "degree"), [(5, 2), (7, 2), (10, 3), (9, 3), (22, 3), (13, 4)])
def test_one_configuration_has_the_bound_of_designs(n, degree, directed):
    data = TopologySequence.of_nodes(n, degree, 1, directed=directed)
    assert hop_time(data, 1)[0] == least_time(Design.of_nodes(n, degree, directed))[0]


def test_bounds_of_two_prototypes():
    values = {K: hop_time(TopologySequence.of_nodes(16, 2, K, directed=True), K)[0] for K in (1, 2, 3, 4)}
    assert values == {1: 19, 2: 13, 3: 12, 4: 11}
    values = {K: hop_time(TopologySequence.of_nodes(32, 4, K, directed=True), K)[0] for K in (2, 3, 4)}
    assert values == {2: Fraction(27, 2), 3: Fraction(25, 2), 4: Fraction(23, 2)}


def test_the_load_of_a_ring_is_that_of_its_paths():
    for seed, (n, directed) in enumerate(product((3, 4, 5, 6), (False, True))):
        random = np.rint(np.random.default_rng(seed).exponential(size=(n, n)) * 8)
        demand = uniform(n) * (3.0 if n == 5 else random)
        load = np.zeros((2, n))
        for s, v in permutations(range(n), 2):
            ahead = (v - s) % n
            back = not directed and 2 * ahead > n
            for step in range(ahead, n) if back else range(ahead):
                load[int(back), (s + step) % n] += demand[s, v]
        data = TopologySequence.of_nodes(n, 2, 1, demand=demand, directed=directed)
        assert ring_time(data) == Fraction(load.max()) / (2 if directed else 1)


@each(("n", "degree"), [(2, 1), (5, 1), (6, 1), (6, 2), (7, 3)])
@each("directed", [False, True])
def test_rotations_serve_every_pair_within_the_ports(n, degree, directed):
    served = np.zeros((n, n), dtype=int)
    for pairs in rotation(n, degree, directed=directed):
        counts = np.zeros((n, n), dtype=int)
        for u, v in pairs:
            counts[u, v] += 1
        assert max(counts.sum(axis=0).max(), counts.sum(axis=1).max()) <= degree
        assert directed or (counts == counts.T).all()
        served += counts
    assert (served == uniform(n)).all()


# the model ------------------------------------------------------------------------------------------------------------

MODELS = [
    (3, 1, {"directed": True, "configurations": 2}),
    (3, 1, {"configurations": 3, "relays": "step", "delay": 0.5}),
    (4, 1, {"configurations": 2}),
    (4, 1, {"configurations": 3, "delay": 0.5, "charge": "changed"}),
    (3, 2, {"configurations": 2, "delay": 0.25, "overlap": True}),
    pytest.param(3, 1, {"configurations": 3, "delay": 1.0, "overlap": True, "directed": True}, marks=pytest.mark.slow),
    (3, 1, {"configurations": 3, "delay": 1.0, "overlap": True, "directed": True, "charge": "changed"}),
    pytest.param(3, 1, {"configurations": 3, "startup": 0.25, "directed": True}, marks=pytest.mark.slow),
    pytest.param(
        3,
        1,
        {"configurations": 3, "startup": 0.25, "delay": 1.0, "charge": "changed", "directed": True},
        marks=pytest.mark.slow,
    ),
    (3, 1, {"configurations": 3, "startup": 4.0, "relays": "step", "charge": "changed", "delay": 0.5}),
    (3, 1, {"configurations": 2, "startup": 0.5, "delay": 1.0, "overlap": True, "directed": True}),
    (3, 1, {"configurations": 2, "startup": 0.5, "delay": 4.0, "overlap": True, "directed": True}),
    (2, 1, {"configurations": 2, "startup": 0.3, "delay": 1.0, "overlap": True}),
    (2, 1, {"configurations": 2, "relays": "step"}),
    (3, 1, {"configurations": 2, "startup": 9.0, "delay": 0.5, "directed": True}),
    (3, 2, {"configurations": 2, "demand": np.array([[0, 5.0, 1], [0, 0, 2], [0.5, 0, 0]]), "delay": 0.5}),
]


def some_circuits(n, degree, directed):
    """All circuits within the ports, also those to which others could be added."""
    seen = {}
    for counts in all_configurations(n, degree, directed=directed):
        pairs = np.argwhere(counts if directed else np.triu(counts))
        for kept in product(*(range(counts[u, v] + 1) for u, v in pairs)):
            fewer = np.zeros_like(counts)
            for (u, v), copies in zip(pairs, kept, strict=True):
                fewer[u, v] = copies
                if not directed:
                    fewer[v, u] = copies
            seen[fewer.tobytes()] = fewer
    return list(seen.values())


def least_started(configurations, demand, startup, *, delay, overlap, step):
    """Least time with the start-up of every configuration that is used, of all choices of those.

    With ``overlap`` all data may flow in the changes, and no configuration need be used.
    """
    if startup == 0:
        return time_of(configurations, demand, delay=delay, overlap=overlap, step=step)
    best = np.inf
    for used in product((False, True), repeat=len(configurations)):
        if any(used) or overlap:
            time = time_of(configurations, demand, delay=delay, overlap=overlap, step=step, used=used)
            best = min(best, time + startup * sum(used))
    return best


@pytest.mark.parametrize(("n", "degree", "settings"), MODELS)
def test_the_model_has_the_least_time_of_all_sequences(n, degree, settings):
    given = dict(settings)
    demand, K = given.get("demand", uniform(n)), given.pop("configurations")
    delay, overlap, directed = (given.get(key, 0) for key in ("delay", "overlap", "directed"))
    changed, best, startup = given.get("charge") == "changed", np.inf, given.get("startup", 0.0)
    for one in sequences(n, degree, bool(directed), K):
        step = given.get("relays") == "step"
        kept, charged = [one[0]], 0
        for before, counts in pairwise(one):  # without a charge for changes that set nothing
            new = not changed or bool((counts > before).any())
            charged += new
            if new or step:
                kept.append(counts)
        times = {"delay": delay, "overlap": overlap, "step": step}
        best = min(best, least_started(kept, demand, startup, **times) + delay * charged)
    assert best >= max(bound.value for bound in TopologySequence.of_nodes(n, degree, K, **given).bounds()) * (1 - 1e-9)
    for method, search in (("highs", {}), ("sequence-search", {"starts": 2, "exchanges": 10})):
        run = oc.solve(NAME, f"servers:n={n},degree={degree}", method=method, configurations=K, **search, **given)
        assert run.verified
        assert run.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_one_configuration_without_parallel_circuits_is_a_design(directed):
    ours = oc.solve(NAME, "servers:n=5,degree=2", configurations=1, parallel=1, directed=directed)
    design = oc.solve(DESIGN, "servers:n=5,degree=2", directed=directed)
    assert ours.objective == pytest.approx(1 / design.objective, rel=1e-6)


def test_the_number_of_configurations_is_chosen():
    """At a small delay direct circuits in turn, at a large one a ring that stays."""
    spec = "servers:n=4,degree=1"
    given = {"directed": True, "method": "sequence-search", "exchanges": 30, "starts": 2}
    fixed = [oc.solve(NAME, spec, configurations=K, delay=1.0, **given).metrics["T_flow"] for K in (1, 2, 3)]
    counts = {}
    for delay in (0.25, 1.5, 4.0):
        run = oc.solve(NAME, spec, configurations=0, delay=delay, **given)
        assert run.objective == pytest.approx(min(T + delay * k for k, T in enumerate(fixed)), rel=1e-6)
        counts[delay] = run.metrics["configurations"]
    assert counts == {0.25: 3, 1.5: 2, 4.0: 1}


def test_a_start_stands_until_it_is_changed():
    stay = oc.solve(NAME, "servers:n=4,degree=1", configurations=1, start="ring:4,directed", directed=True)
    assert stay.objective == pytest.approx(6)
    assert max(bound.value for bound in stay.bounds) == pytest.approx(6)
    spec = "servers:n=5,degree=2"
    few = {"starts": 1, "exchanges": 10}
    run = oc.solve(NAME, spec, configurations=2, start="ring:5", delay=0.25, method="sequence-search", **few)
    assert run.metrics["topologies"][0] == "digraph:14.02.13.24.03"
    assert run.objective >= max(bound.value for bound in run.bounds)


@pytest.mark.parametrize(
    ("n", "degree", "optimum"), [(5, 3, 2.0), marked(7, 5, 1.5, slow=True), marked(9, 5, 25 / 11, slow=True)]
)
def test_a_search_of_one_configuration_uses_all_ports_but_one(n, degree, optimum):
    """Two-way circuits cannot give each of an odd number of nodes an odd number of ports; rings take 3, 3 and 5."""
    run = oc.solve(NAME, f"servers:n={n},degree={degree}", configurations=1, method="sequence-search")
    assert run.objective == pytest.approx(optimum)


def test_times_in_seconds_are_those_of_a_shard_over_a_link():
    """8 us is one shard of 100 kB over 100 Gb/s."""
    given = {"method": "sequence-search", "starts": 2, "exchanges": 20}
    sized = {**given, "bandwidth": "100Gb/s"}
    spec = "servers:n=6,degree=2"
    seconds = oc.solve(NAME, spec, configurations=0, delay="6us", startup="800 ns", shard="100kB", **sized)
    plain = oc.solve(NAME, spec, configurations=0, delay=0.75, startup=0.1, **given)
    assert seconds.objective == pytest.approx(plain.objective)
    assert seconds.metrics["T_s"] == pytest.approx(seconds.objective * 8e-6)
    assert "T_s" not in plain.metrics
    assert seconds.task.settings["shard"] == "100kB"
    inside = oc.solve(NAME, spec, configurations=0, delay="6µs", startup="8e-4ms", shard=100_000, **sized)
    assert inside.objective == pytest.approx(seconds.objective)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(s, marks=pytest.mark.slow) for s in range(6, 20))])
def test_bounds_with_start_up_hold_for_random_sequences(seed):
    draw = np.random.default_rng(seed)
    n, K = int(draw.integers(3, 6)), int(draw.integers(1, 4))
    directed, step, changed = (bool(value) for value in draw.integers(0, 2, size=3))
    startup, delay = float(draw.choice([0.25, 2.0])), float(draw.choice([0.5, 1.0]))
    demand = uniform(n) if seed % 3 else np.rint(draw.exponential(size=(n, n)) * 4 + 1) * uniform(n)
    relays, charge = ("step" if step else "pass"), ("changed" if changed else "any")
    data = TopologySequence.of_nodes(
        n, 2, K, demand=demand, delay=delay, directed=directed, relays=relays, charge=charge, startup=startup
    )
    stated = max(bound.value for bound in data.bounds())
    every = some_circuits(n, 1, directed)
    for _ in range(15):
        chosen = [every[i] for i in draw.integers(len(every), size=K)]
        charged = sum(not changed or bool((b > a).any()) for a, b in pairwise(chosen))
        time = least_started(chosen, demand, startup, delay=delay, overlap=False, step=step)
        assert time + delay * charged >= stated * (1 - 1e-9)


@each(
    ("instance", "settings", "message"),
    [
        ("ring:4", {}, "servers:n=8"),
        ("servers:n=4,degree=2,traffic=dlrm", {}, "traffic=alltoall"),
        ("servers:n=4,degree=2", {"configurations": 0}, "delay= greater than 0"),
        ("servers:n=4,degree=2", {"overlap": True}, "delay= greater than 0"),
        ("servers:n=4,degree=2", {"configurations": 0, "delay": 1, "relays": "step"}, "any number of configurations"),
        ("servers:n=4,degree=2", {"charge": "changed"}, "delay= greater than 0"),
        ("servers:n=4,degree=2", {"configurations": 65}, "0 to 64 configurations"),
        ("servers:n=4,degree=2", {"delay": -1.0}, "delay=-1.0; give a finite time of at least 0"),
        ("servers:n=4,degree=2", {"startup": -1.0}, "startup=-1.0; give a finite time"),
        ("servers:n=4,degree=2", {"delay": "3.7us"}, "or add shard='64MB' and bandwidth='100Gb/s'"),
        ("servers:n=4,degree=2", {"startup": "3.7us", "shard": "1MB"}, "needs the bandwidth of a circuit"),
        (
            "servers:n=4,degree=2",
            {"bandwidth": "100Gb/s"},
            "has no effect without shard; set shard=",
        ),
        ("servers:n=4,degree=2", {"delay": "3.7 parsec"}, "parameter 'delay' must be a time, such as"),
        ("servers:n=4,degree=2", {"delay": "1s", "shard": "1 MB", "bandwidth": "fast"}, "not a positive rate"),
        ("servers:n=4,degree=2", {"delay": "1s", "shard": "-5", "bandwidth": "1Gb/s"}, "not a positive size"),
        ("servers:n=4,degree=2", {"delay": float("inf")}, "finite"),
        ("servers:n=4,degree=1", {"start": "ring:4"}, "more links at a node than 1 ports"),
        ("servers:n=4,degree=2", {"start": "ring:4,directed"}, "directed=true"),
        ("servers:n=4,degree=2", {"start": "ring:5"}, "a topology of 4 nodes"),
        ("servers:n=4,degree=2", {"demand": "longest-matching"}, "another demand"),
        ("servers:n=200,degree=2", {"configurations": 0, "delay": 1e-3, "directed": True}, "configurations may pay"),
        ("servers:n=400,degree=2", {"configurations": 2, "method": "sequence-search"}, "lists 2 x 400.3 flows"),
    ],
)
def test_other_problems_are_refused(instance, settings, message):
    with pytest.raises(BadInput, match=message):
        oc.solve(NAME, instance, **settings)


@pytest.mark.parametrize("settings", [{"degree": 1, "K": 1}, {"degree": 1, "K": 2, "n": 5}])
def test_too_few_configurations_are_refuted(settings):
    n = settings.get("n", 4)
    run = oc.solve(NAME, f"servers:n={n},degree={settings['degree']}", configurations=settings["K"])
    assert run.termination == "infeasible"
    assert sum(layers(TopologySequence.of_nodes(n, 1, settings["K"]), settings["K"])) < n - 1


# the checker ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solved():
    return oc.solve(
        NAME,
        "servers:n=5,degree=2",
        method="sequence-search",
        configurations=3,
        delay=0.5,
        overlap=True,
        charge="changed",
        relays="step",
        exchanges=3,
        starts=1,
    )


def test_every_wrong_entry_is_noticed(solved):
    draw = np.random.default_rng(0)
    data = TopologySequence.of_nodes(5, 2, 3, delay=0.5, overlap=True, charge="changed", relays="step")
    values = {name: np.array(array) for name, array in solved.values.items()}
    assert max(data.residuals(values).values()) < 1e-7
    assert data.objective(values) == pytest.approx(solved.objective)
    changes = 0
    for _ in range(60):
        name = str(draw.choice(["x", "t", "g"]))
        wrong = {key: array.copy() for key, array in values.items()}
        used = np.argwhere(wrong[name] > 1e-6)
        place = tuple(used[draw.integers(len(used))])
        wrong[name][place] -= 1.0 if name == "x" else 0.05
        worse = max(data.residuals(wrong).values()) > 1e-3
        changes += worse or name == "t"  # lengths may be longer than needed by a ring of idle circuits
    assert changes == 60
    wrong = {**values, "t": values["t"] / 2}
    over = (values["g"].sum(axis=1)[::2] / np.maximum(values["x"].sum(axis=3), 1.0)).max(axis=(1, 2)) - wrong["t"]
    assert data.residuals(wrong)["capacity"] >= over.max() > 0.1
    wrong = {key: array.copy() for key, array in values.items()}
    wrong["z"][:] = 0
    assert (data.residuals(wrong)["setting"] > 0.5) == bool((values["z"] > 0.5).any())


@pytest.mark.parametrize(
    "settings", [{}, {"overlap": True, "charge": "changed", "delay": 0.5}, {"startup": 0.5, "relays": "step"}]
)
def test_repair_rounds_drops_and_lengthens(settings):
    result = oc.solve(NAME, "servers:n=4,degree=2", method="sequence-search", exchanges=10, starts=1, **settings)
    data = TopologySequence.of_nodes(4, 2, 2, **settings)
    exact = {name: np.array(array) for name, array in result.values.items()}
    near = {name: array for name, array in exact.items() if name not in ("w", "b", "e")}
    near["g"] = np.where(near["g"] == 0, 1e-9, near["g"])
    near |= {name: np.abs(near[name] - 1e-7) for name in ("x", "y", "z") if name in near}
    near["t"] = near["t"] * (1 - 1e-6)
    repaired = data.repair(near)
    assert max(data.residuals(repaired).values()) <= 1e-7
    assert data.objective(repaired) == pytest.approx(result.objective, rel=1e-7)
    assert set(repaired) == set(data._arrays(()))
    assert data.repair({"x": near["x"]}) is None


@pytest.mark.parametrize("missing", [1e-8, 1e-6])
def test_a_solver_that_leaves_out_its_tolerance_of_the_demand_is_repaired(missing):
    """What is sent and how long it takes grow until everything is served; of more, the checker decides."""
    demand = np.array([[0, 0, 0], [0, 0, 0.537], [0.881, 0, 0]])
    data = TopologySequence.of_nodes(3, 1, 2, demand=demand, directed=True)
    run = oc.solve(NAME, "servers:n=3,degree=1", configurations=2, demand=demand, directed=True, method="highs")
    values = {name: run.values[name] * (1 - missing if name in ("g", "t") else 1.0) for name in ("x", "g", "t")}
    assert data.residuals(values)["served"] == pytest.approx(missing)
    assert data.residuals(data.repair(values))["served"] <= 1e-15
    assert data.objective(data.repair(values)) == pytest.approx(0.881, rel=1e-12)
    values["g"] = 0.9 * values["g"]
    assert data.residuals(data.repair(values))["served"] >= 0.09


def test_a_circuit_within_the_tolerance_of_a_solver_is_repaired():
    result = oc.solve(
        NAME,
        "servers:n=3,degree=1",
        method="highs",
        demand="random:0",
        delay=0.25,
        configurations=3,
    )
    assert result.verified
    assert result.objective == pytest.approx(4.2402394, rel=1e-6)


# the search -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "settings", "value"),
    [
        ("servers:n=16,degree=2", {"configurations": 3, "directed": True}, 12),
        ("servers:n=16,degree=2", {"configurations": 4, "directed": True}, 11),
        ("servers:n=32,degree=4", {"configurations": 3, "directed": True}, 12.5),
        ("servers:n=8,degree=1", {"configurations": 3, "relays": "step"}, 12),
    ],
)
def test_the_search_attains_the_bound(spec, settings, value):
    run = oc.solve(NAME, spec, method="sequence-search", **settings)
    assert run.verified
    assert run.proof == "optimal"
    assert run.objective == pytest.approx(value)


@each("seed", range(12))
def test_the_time_of_given_circuits_is_that_of_a_plain_lp(seed):
    draw = np.random.default_rng(seed)
    n, K, step, directed = 4, int(draw.integers(1, 4)), bool(seed % 2), bool(seed % 3)
    every = some(n, 2, directed)[0]
    counts = np.array([every[i] for i in draw.integers(len(every), size=K)])
    demand = np.rint(draw.exponential(size=(n, n)) * 4) * uniform(n)
    data = TopologySequence.of_nodes(n, 2, K, demand=demand, directed=directed, relays="step" if step else "pass")
    lines = all_lines(data, counts)
    routed, best = route(data, lines, K), time_of(counts, demand, step=step)
    assert (routed is None) == (not np.isfinite(best))
    if routed is not None:
        assert routed.time == pytest.approx(best, abs=1e-7)


@each("seed", range(12))
def test_work_over_the_circuits_bounds_the_time(seed):
    draw = np.random.default_rng(seed)
    n, K, step = 4, int(draw.integers(1, 4)), bool(seed % 2)
    every = some(n, 2, bool(seed % 3))[0]
    counts = np.array([every[i] for i in draw.integers(len(every), size=K)]).astype(np.int64)
    demand = np.rint(draw.exponential(size=(n, n)) * 4) * uniform(n)
    best, bound = time_of(list(counts), demand, step=step), work(counts, demand, step) / counts.sum(axis=(1, 2)).max()
    assert bound > 1e4 if np.isinf(best) else bound <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "degree", "settings"),
    [
        (6, 1, {"directed": True}),
        (5, 3, {}),
        (6, 2, {"directed": True, "relays": "step"}),
        (6, 2, {"parallel": 1}),
        (6, 2, {"start": parse("ring:6")}),
        (6, 2, {"overlap": True, "delay": 0.5}),
    ],
)
def test_exchanges_keep_to_ports_and_limits_and_do_not_add_work(n, degree, settings):
    draw = np.random.default_rng(n)
    demand = draw.integers(1, 9, size=(n, n)) * uniform(n)
    data = TopologySequence.of_nodes(n, degree, 3, demand=demand, **settings)
    ring = np.roll(np.eye(n, dtype=np.int64), 1, axis=1)
    ring = ring if data.directed else ring + ring.T
    first = np.array([ring] * 3).astype(np.int64)
    step = settings.get("relays") == "step"
    looked = []
    last = anneal_circuits(data, draw, first, 2_000, lambda: looked.append(1))
    others = list(exchanged(data, draw, last, 50))
    assert len(looked) > 1
    assert len(others) > 2
    assert (last != first).any()
    assert work(last, demand, step) <= work(first, demand, step)
    loads = [work(one, demand, step) for one in others]
    assert loads == sorted(loads)
    for counts in (last, *others):
        assert counts.min() == 0
        assert counts.max() <= data.parallel
        assert not counts[:, np.arange(n), np.arange(n)].any()
        assert max(counts.sum(axis=1).max(), counts.sum(axis=2).max()) <= degree
        assert data.directed or (counts == counts.transpose(0, 2, 1)).all()
        assert data.standing is None or (counts[0] == first[0]).all()
    assert all(1 <= (one != last).sum() <= (4 if data.directed else 8) for one in others)


def test_circuits_and_ports_of_odd_sizes():
    assert circuits(TopologySequence.of_nodes(5, 3, 1)) == 14
    assert circuits(TopologySequence.of_nodes(5, 3, 1, directed=True)) == 15
    assert port_time(TopologySequence.of_nodes(5, 3, 1))[0] == Fraction(4, 3)
    assert str(parse("complete:5").spec) == "complete:5"


@pytest.mark.parametrize("n", [64, 100])
def test_a_search_that_ends_while_it_anneals_has_its_first_sequence(n):
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.methods.topology.sequence_search import SequenceSearch

    best = []

    class Short(Context):
        def remaining(self):
            best.append(search.best.value)
            if len(best) == 3:
                raise TimeoutError

    spec = f"servers:n={n},degree=4,traffic=alltoall"
    data = TopologySequence.prepare(parse(spec), {"configurations": "3"})
    context = Short(oc.Task(NAME, spec), data, None, {}, None, None, lambda *_: None)
    search = SequenceSearch(context, starts=8, moves=200, exchanges=150)
    with pytest.raises(TimeoutError):
        search.run()
    assert best[0] == np.inf
    assert max(bound.value for bound in bounds(data)) <= search.best.value <= best[1] < np.inf
