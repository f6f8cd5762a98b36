"""Bounds against exact rational arithmetic: capacities and demands over hundreds of orders of magnitude, bad duals.

On graphs with one path for every pair (directed rings, trees) the optimum is the routing along these paths, which
fractions give exactly. Cuts are enumerated. No module under test computes any of the references.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import ceil, inf

import networkx as nx
import numpy as np
import pytest
from reference import multigraph, shortest_routes
from slow_cases import marked

from opticoll.formulations.alltoall import all_gather, link_mcf, min_congestion, path_mcf, timestep_mcf
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.formulations.flows.flow_bounds import ShortestTrees
from opticoll.formulations.flows.flow_bounds import bounds as flow_bounds
from opticoll.formulations.lumorph.collective_bounds import rounded_up
from opticoll.formulations.lumorph.mesh_cuts import length_bound as overlap_bound
from opticoll.formulations.lumorph.min_overlap import unit_data
from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
from opticoll.formulations.sipml.transfers import transfers_of
from opticoll.formulations.topoopt.forwarding import travelled
from opticoll.instances.servers import ServerPool
from opticoll.instances.topology import Topology

SPANS = ((0, 0), (-8, 8), (-305, -290), (285, 300), (-300, 300))


def numbers(random, size, span):
    """Positive numbers over these powers of ten."""
    low, high = span
    return np.ones(size) if low == high else 10.0 ** random.uniform(low, high, size)


def unique_paths(random):
    """A directed ring or a two-way tree of 3 to 6 vertices with random capacities."""
    n = int(random.integers(3, 7))
    if random.random() < 0.4:
        pairs = [(v, (v + 1) % n) for v in range(n)]
    else:
        edges = [(v, int(random.integers(0, v))) for v in range(1, n)]
        pairs = edges + [(v, u) for u, v in edges]
    tail, head = np.array(pairs).T
    return Topology(n, tail, head, numbers(random, len(pairs), SPANS[random.integers(len(SPANS))]))


def any_graph(random):
    """A directed ring with chords, 3 to 6 vertices."""
    n = int(random.integers(3, 7))
    others = [(u, v) for u, v in product(range(n), repeat=2) if u != v and v != (u + 1) % n]
    chords = [others[i] for i in random.permutation(len(others))[: random.integers(0, len(others))]]
    tail, head = np.array([(v, (v + 1) % n) for v in range(n)] + chords).T
    return Topology(n, tail, head, numbers(random, tail.size, SPANS[random.integers(len(SPANS))]))


def fractions(values):
    return [Fraction(float(v)) for v in values]


def shortest(topology, lengths):
    """All distances by Floyd and Warshall, in fractions or whole numbers."""
    graph = multigraph(topology)
    nx.set_edge_attributes(graph, {edge: lengths[edge[2]] for edge in graph.edges(keys=True)}, "weight")
    return nx.floyd_warshall(graph)


def routed(topology, traffic):
    """The concurrent flow of routes of fewest arcs, exact: a lower bound on F, the optimum where paths are unique."""
    load = [Fraction(0)] * topology.arcs
    for route in shortest_routes(topology).rows():
        for a in route.arcs:
            load[a] += Fraction(float(traffic[route.source, route.target]))
    return min(c / use for c, use in zip(fractions(topology.capacity), load, strict=True) if use > 0)


def adversarial(random, topology, size=None):
    """Duals from good to senseless, one array each."""
    shape = (topology.arcs,) if size is None else size
    weight = (topology.capacity.min() / topology.capacity).reshape(-1, *[1] * (len(shape) - 1))
    base = random.random(shape)
    spike = np.zeros(shape)
    spike[random.integers(shape[0])] = 1.0
    broken = base.copy()
    broken.flat[random.integers(base.size)] = random.choice([np.nan, np.inf, -np.inf, -1.0])
    return [
        np.ones(shape),
        weight * np.ones(shape),
        spike,
        base,
        -base,
        base - 0.5,
        1e300 * base,
        1e14 + base,
        5e-324 * np.ceil(3 * base),
        1e-310 * base,
        broken,
        np.full(shape, np.nan),
        np.zeros(shape),
        10.0 ** random.uniform(-300, 300, shape),
        spike + 1e-13 * base,
    ]


def above(bound, exact):
    return bound == inf or (bound > -inf and Fraction(bound) >= exact)


def below(bound, exact):
    return bound == -inf or (bound < inf and Fraction(bound) <= exact)


def flow_trial(random):
    """(name, right side) of every bound on the concurrent flow of one instance."""
    unique = random.random() < 0.7
    topology = unique_paths(random) if unique else any_graph(random)
    n = topology.n
    uniform = random.random() < 0.5
    traffic = np.ones((n, n))
    if not uniform:
        traffic = numbers(random, (n, n), SPANS[random.integers(len(SPANS))]) * (random.random((n, n)) < 0.7)
        traffic[0, 1] = max(traffic[0, 1], 1e-300)
    np.fill_diagonal(traffic, 0.0)
    exact = routed(topology, traffic)
    data = model.ConcurrentFlow.by_source(topology) if uniform else model.ConcurrentFlow.by_source(topology, traffic)
    result = {bound.name: bound.value for bound in flow_bounds(data)}
    for name, value in result.items():
        yield f"flow {name}", above(value, exact)

    capacity, wanted = fractions(topology.capacity), [fractions(row) for row in traffic]
    total = sum(capacity)
    hops = shortest(topology, [1] * topology.arcs)
    cost = sum(wanted[s][t] * hops[s][t] for s, t in product(range(n), repeat=2) if s != t)
    yield "distance formula", above(result["distance"], total / cost)
    arcs = list(zip(topology.tail.tolist(), topology.head.tolist(), capacity, strict=True))
    ratios = []
    for size in range(1, n):
        for chosen in combinations(range(n), size):
            inside = set(chosen)
            needed = sum(wanted[s][t] for s in inside for t in range(n) if t not in inside)
            if needed:
                ratios.append(sum(c for u, v, c in arcs if u in inside and v not in inside) / needed)
    yield "sweep-cut formula", above(result["sweep-cut"], min(ratios))

    lengths = 10.0 ** random.uniform(-9, 0, topology.arcs)
    reach = shortest(topology, fractions(lengths))
    paid = sum(wanted[s][t] * reach[s][t] for s, t in product(range(n), repeat=2) if s != t)
    ratio = sum(c * length for c, length in zip(capacity, fractions(lengths), strict=True)) / paid
    yield "lengths formula", above(data.length_bound(lengths), ratio)
    yield "lengths and load formula", above(ShortestTrees(data).bound_and_load(lengths)[0], ratio)
    for duals in adversarial(random, topology):
        bound = Master(data).certify({"capacity": duals})
        yield "flow certify", bound is None or above(bound.value, exact)
    if uniform and random.random() < 0.3:
        yield from uniform_trial(random, topology, exact, unique)


def uniform_trial(random, topology, exact, unique):
    """The same for the models that only know the uniform demand."""
    printed = link_mcf.LinkFlow.prepare(topology, {"printed": True})
    paths = path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "all"})
    listed = path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "shortest"})
    for bound in printed.bounds():
        yield "printed distance", above(bound.value, exact)
    for data in (paths, listed):
        for bound in data.bounds():
            yield f"paths {bound.name}", above(bound.value, exact)
    # One path for every pair, unsplit: its time is attained, and an optimum where paths are unique.
    time = 1 / exact
    whole = min_congestion.ChosenPaths.prepare(topology, {"paths": "all"})
    for bound in whole.bounds():
        yield f"congestion {bound.name}", below(bound.value, time)
    steps = timestep_mcf.StepFlow.prepare(topology, {"aggregate": "source", "steps": 0})
    loads = {}
    for route in shortest_routes(topology).rows():
        for t, a in enumerate(route.arcs):
            loads[t, a] = loads.get((t, a), 0) + 1
    capacity = fractions(topology.capacity)
    last = max(t for t, _ in loads)
    schedule = sum(max(k / capacity[a] for (t, a), k in loads.items() if t == step) for step in range(last + 1))
    for bound in steps.bounds():
        yield f"steps {bound.name}", below(bound.value, schedule)
        if unique:
            yield f"steps fluid {bound.name}", below(bound.value, time)
    for duals in adversarial(random, topology):
        for data in (paths, listed):
            bound = data.certify({"capacity": duals})
            yield "paths certify", bound is None or above(bound.value, exact)
        bound = printed.certify({"capacity": duals})
        yield "printed certify", bound is None or above(bound.value, exact)
        bound = whole.certify({"congestion": duals})
        yield "congestion certify", bound is None or below(bound.value, time)
    for duals in adversarial(random, topology, (topology.arcs, steps.steps)):
        bound = steps.certify({"capacity": -duals})
        yield "steps certify", bound is None or below(bound.value, schedule)


def gather_trial(random):
    """All-gather: every cut enumerated gives the optimum."""
    topology = any_graph(random)
    n = topology.n
    arcs = list(zip(topology.tail.tolist(), topology.head.tolist(), fractions(topology.capacity), strict=True))
    best = max(
        Fraction(size) / sum(c for u, v, c in arcs if u in chosen and v not in chosen)
        for size in range(1, n)
        for chosen in map(set, combinations(range(n), size))
    )
    data = all_gather.AllGather.prepare(topology)
    for bound in data.bounds():
        yield f"gather {bound.name}", below(bound.value, best)
        if bound.exact and best < Fraction(np.finfo(float).max):
            yield "gather attained", bound.value == pytest.approx(float(best), rel=1e-15)
    for duals in adversarial(random, topology, (topology.arcs, n)):
        bound = data.certify({"capacity": -duals})
        yield "gather certify", bound is None or below(bound.value, best)


def other_trial(random):
    """Whole circuits and rounds, ports, byte-hops."""
    topology = any_graph(random)
    n = topology.n
    ends = np.array([(s, t) for s, t in product(range(n), repeat=2) if s != t])
    hops, result = shortest(topology, [1] * topology.arcs), unit_data(topology, *ends.T)
    load = [0] * topology.arcs
    for route in shortest_routes(topology).rows():
        for a in route.arcs:
            load[a] += 1
    needed = ceil(Fraction(sum(hops[s][t] for s, t in ends.tolist()), topology.arcs))
    yield "overlap hops", overlap_bound(result, np.ones(topology.arcs)) == needed
    for duals in adversarial(random, topology):
        yield "overlap certify", overlap_bound(result, duals) <= max(load)
    count, room = int(random.integers(1, 10**6)), int(random.integers(1, 10**4))
    yield "rounds", rounded_up(count / room) == -(-count // room)

    servers, degree = int(random.integers(3, 5)), int(random.integers(2, 5))
    traffic = numbers(random, (servers, servers), SPANS[random.integers(2)])
    np.fill_diagonal(traffic, 0.0)
    pool = ServerPool(servers, servers + degree, traffic)
    bandwidth = 10.0 ** random.uniform(-2, 2)
    circuits = OcsCircuits(pool, transfers_of(traffic, bandwidth, "test"), "counts")
    volume = [fractions(row) for row in traffic]
    need = max(
        least_time([v / Fraction(bandwidth) for v in line if v], pool.degree)
        for line in [*volume, *map(list, zip(*volume, strict=True))]
    )
    for bound in circuits.bounds():
        yield f"circuits {bound.name}", below(bound.value, need)
        if bound.exact:
            yield "circuits attained", bound.value == pytest.approx(float(need), rel=1e-14)

    if servers == 3:
        cells = [(s, t) for s, t in product(range(3), repeat=2) if s != t]
        within = Fraction(0)
        for chosen in product((0, 1), repeat=6):
            picked = [cell for cell, taken in zip(cells, chosen, strict=True) if taken]
            if all(sum(cell[side] == v for cell in picked) <= 1 for side in (0, 1) for v in range(3)):
                within = max(within, sum((volume[s][t] for s, t in picked), Fraction(0)))
        whole = sum(map(sum, volume))
        yield "byte-hops", below(travelled(traffic, 1), 2 * whole - within)


def least_time(shares, ports):
    """Least T at which transfers of these times over one circuit take no more circuits than there are, by trying."""
    times = sorted({share / c for share in shares for c in range(1, ports + 1)})
    return next(T for T in times if sum(ceil(share / T) for share in shares) <= ports)


TRIALS = (flow_trial, gather_trial, other_trial)


def wrong(trial, seeds):
    """Bounds compared and those on the wrong side as (seed, name)."""
    tried, results = 0, []
    for seed in seeds:
        for name, right in trial(np.random.default_rng(seed)):
            tried += 1
            if not right:
                results.append((seed, name))
    return tried, results


@pytest.mark.parametrize("count", [8, marked(10_000, slow=True)])
@pytest.mark.parametrize("trial", TRIALS)
def test_no_bound_is_on_the_wrong_side(trial, count):
    tried, result = wrong(trial, range(count))
    assert tried > 10 * count
    assert result == []
