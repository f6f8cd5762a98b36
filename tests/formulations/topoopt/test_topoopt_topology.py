"""Circuits and routes at once: brute force, one matrix, bounds that hold, proofs by enumeration, mutations."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import flow_time, optimum, refused
from scipy.sparse.csgraph import shortest_path

from opticoll.analysis.study.study_file import find, load, tasks
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.formulations.topoopt import topology
from opticoll.formulations.topoopt.circuit_design import build_design
from opticoll.formulations.topoopt.forwarding import most_within, travelled
from opticoll.instances import parse
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.topology import minimum_load
from opticoll.solvers.methods.topology.load_annealing import anneal_loads, raised_bound
from opticoll.solvers.methods.topology.sequence_exchanges import anneal_circuits
from opticoll.solvers.methods.topology.split_loads import load_norm
from opticoll.solvers.methods.topoopt import design_search
from opticoll.solvers.methods.topoopt.design_search import Oracle, WiringSearch, restart_length
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.methods.topoopt.wiring_kernels import Options, renamings, with_free_ports
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task


def pool_of(seed, n, degree, *, sparse=0.0):
    random = np.random.default_rng(seed)
    demand = random.uniform(0, 2, (n, n)) * (random.random((n, n)) >= sparse)
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] += 0.1
    return ServerPool(n, degree, demand)


@cache
def full_wirings(n, degree, most):
    """Every multigraph to which no circuit can be added, as numbers of circuits."""
    rows = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        rows.append(
            [
                count
                for k in range(degree + 1)
                for chosen in combinations_with_replacement(others, k)
                if (count := np.bincount(chosen or [0], minlength=n) * bool(chosen)).max(initial=0) <= most
            ]
        )
    found = []
    for chosen in product(*rows):
        count = np.array(chosen, dtype=np.int64)
        out, into = count.sum(axis=1), count.sum(axis=0)
        addable = (out[:, None] < degree) & (into[None, :] < degree) & (count < most) & ~np.eye(n, dtype=bool)
        if (into <= degree).all() and not addable.any():
            found.append(count)
    return found


def tax_of(demand, count):
    dist = shortest_path(count, unweighted=True)
    return float(demand[demand > 0] @ dist[demand > 0]) / demand.sum()


def brute(pool, objective="max-load", parallel=0):
    """The least tax or load of all wirings; no load is below the demand times its hops over the number of circuits."""
    wirings = full_wirings(pool.n, pool.degree, parallel or pool.degree)
    if objective == "bandwidth-tax":
        return min(tax_of(pool.traffic, count) for count in wirings)
    hops = [tax_of(pool.traffic, count) * pool.traffic.sum() / count.sum() for count in wirings]
    best = np.inf
    for place in np.argsort(hops):
        if hops[place] >= best:
            break
        best = min(best, flow_time(wirings[place], pool.traffic))
    return best


def searched(pool, *, descents=1, tol=1e-6, **given):
    data = topology.Wiring.prepare(pool, given)
    search = WiringSearch(data, tol=tol, seed=0, tick=lambda: None, on_improvement=lambda _: None)
    search.exchanges(descents, 200)
    assert search.prove()
    return data, search


# against brute force ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "degree", "given"),
    [
        (3, 1, {}),
        (4, 1, {}),
        (3, 2, {}),
        (4, 2, {}),
        pytest.param(3, 3, {}, marks=pytest.mark.slow),
        (2, 2, {}),
        (4, 2, {"parallel": 1}),
        (4, 1, {"objective": "bandwidth-tax"}),
        (4, 2, {"objective": "bandwidth-tax"}),
        (3, 2, {"parallel": 1}),
    ],
)
def test_the_search_finds_and_proves_what_brute_force_finds(n, degree, given):
    for seed in range(1, 3):
        pool = pool_of(seed, n, degree, sparse=0.4 * (seed - 1))
        best = brute(pool, **given)
        data, search = searched(pool, **given)
        assert search.value == pytest.approx(best, rel=1e-6)
        assert search.closed
        assert search.bound <= best * (1 + 1e-9)
        assert max(data.residuals(search.best.values()).values()) <= 1e-9
        for bound in data.bounds():
            assert bound.value <= best * (1 + 1e-9), bound.name


@pytest.mark.parametrize(("objective", "parallel"), [("max-load", 0), ("max-load", 1), ("bandwidth-tax", 0)])
def test_the_program_has_the_optimum_of_brute_force(objective, parallel):
    pool = pool_of(4, 4, 2, sparse=0.3)
    data = topology.Wiring.prepare(pool, {"objective": objective, "parallel": parallel})
    form = compile_model(data.cvxpy())
    value, x = optimum(form)
    assert value == pytest.approx(brute(pool, objective, parallel), rel=1e-5)
    result = data._unfold(form.values(x))
    assert max(data.residuals(result).values()) <= 1e-6
    assert data.objective(result) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("method", ["certified-branching", "highs", "design-search"])
def test_methods_agree_end_to_end(method):
    run = solve(Task("topoopt.topology", pool_of(2, 4, 2), method, time_limit_s=600))
    assert run.verified
    assert run.objective == pytest.approx(brute(pool_of(2, 4, 2)), rel=1e-5)
    assert run.bound <= run.objective * (1 + 1e-9)
    if method != "highs":  # its own tree is not believed
        assert run.record["proof"] == "optimal"


# bounds and kernels -------------------------------------------------------------------------------------------


def random_wiring(random, n, degree):
    count = np.zeros((n, n), dtype=np.int64)
    for _ in range(degree):
        image = random.permutation(n)
        while (image == np.arange(n)).any():
            image = random.permutation(n)
        count[np.arange(n), image] += 1
    return count


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 7), st.integers(1, 3))
def test_no_completion_beats_the_bound_of_a_partial_wiring(seed, n, degree):
    from opticoll.solvers.methods.topoopt.wiring_kernels import beyond

    random = np.random.default_rng(seed)
    count, demand = random_wiring(random, n, degree), random.random((n, n)) * (random.random((n, n)) < 0.8)
    np.fill_diagonal(demand, 0.0)
    dist = shortest_path(count, unweighted=True)
    further = np.array([demand[dist > h].sum() for h in range(n)])
    bits = 1 << np.arange(n)
    for decided in range(n + 1):
        known = count * (np.arange(n) < decided)[:, None]
        reach, back = ((known > 0) @ bits), ((known > 0).T @ bits)
        spare = np.where(np.arange(n) < decided, 0, degree)
        spare_back = degree - known.sum(axis=0)
        unfilled, undecided = int(bits[spare_back > 0].sum()), int(bits[decided:].sum())
        may = np.where(spare > 0, unfilled, reach)
        may_back = back | np.where(spare_back > 0, undecided, 0)
        for args in ((reach, may, spare, demand), (back, may_back, spare_back, demand.T.copy())):
            least = np.zeros(n)
            ranked = np.argsort(-args[3], axis=1, kind="stable")
            assert beyond(*args, ranked, degree, np.inf, least) or not np.isfinite(dist[demand > 0]).all()
            assert (least <= further + 1e-9).all()
            assert not beyond(*args, ranked, degree, least.sum() * (1 - 1e-9), np.zeros(n)) or least.sum() == 0


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 7), st.integers(1, 3))
def test_no_completion_has_a_smaller_load_than_free_ports_allow(seed, n, degree):
    random = np.random.default_rng(seed)
    count, pool = random_wiring(random, n, degree), pool_of(seed, n, degree, sparse=0.3)
    demand, wider, true = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1), dtype=np.int64), []
    demand[:n, :n] = pool.traffic
    for decided in range(n + 1):
        with_free_ports(count, decided, degree, wider)
        assert (wider[n, :n] == degree - count[:decided].sum(axis=0)).all()
        true.append(minimum_load.least_load(wider, demand, np.ones((n + 1, n + 1)), np.inf)[0])
    sent, received = pool.traffic.sum(axis=1), pool.traffic.sum(axis=0)
    assert true[0] == pytest.approx(max(sent.max(), received.max()) / degree)
    assert true[-1] == pytest.approx(flow_time(count, pool.traffic))
    assert all(before <= after * (1 + 1e-9) for before, after in pairwise(true))


def test_few_whole_wirings_remain_for_a_proof():
    """Of 7570 wirings that use all ports of six servers (OEIS A007107)."""
    _, search = searched(pool_of(5, 6, 2), parallel=1)
    assert search.closed
    assert search.tally[2] <= 75


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 7), st.integers(1, 3))
def test_annealed_loads_are_minimum_loads(seed, n, degree):
    random = np.random.default_rng(seed)
    count, pool = random_wiring(random, n, degree), pool_of(seed, n, degree, sparse=0.3)
    state = np.stack([np.repeat(end, count[count > 0]) for end in np.nonzero(count)])
    best, loads = state.copy(), np.full(2, np.inf)
    before = flow_time(count, pool.traffic)
    anneal_loads(state, best, loads, degree, pool.traffic.copy(), 300, 0.05, 1e-3, seed)
    if not np.isfinite(before):
        assert not np.isfinite(loads).any()
        return
    for value, ends in zip(loads, (state, best), strict=True):
        made = np.zeros_like(count)
        np.add.at(made, tuple(ends), 1)
        assert (made.sum(axis=0) == degree).all()
        assert (made.sum(axis=1) == degree).all()
        assert made.max() <= degree
        assert not np.diagonal(made).any()
        assert value == pytest.approx(flow_time(made, pool.traffic), rel=1e-8)
    assert loads[1] <= min(loads[0], before) * (1 + 1e-9)


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 7), st.integers(1, 3), st.sampled_from([0.0, 0.4, 0.9]))
def test_shortest_path_trees_have_the_minimum_load(seed, n, degree, sparse):
    random = np.random.default_rng(seed)
    count, pool = random_wiring(random, n, degree), pool_of(seed, n, degree, sparse=sparse)
    demand, lengths = pool.traffic.copy(), random.random((n, n))
    true = flow_time(count, pool.traffic)
    low, high = minimum_load.least_load(count, demand, lengths, np.inf)
    if not np.isfinite(true):
        assert low == high == np.inf
        return
    assert low == pytest.approx(true, rel=1e-8)
    assert high == pytest.approx(true, rel=1e-8)
    if demand.any():
        oracle = Oracle(topology.Wiring.prepare(pool))
        assert oracle.proven(count, lengths) == pytest.approx(low, rel=1e-9)
        minimum_load.with_distances(count, lengths)
        other = random_wiring(random, n, degree)  # these lengths bound any wiring
        assert oracle.proven(other, lengths) <= flow_time(other, demand) * (1 + 1e-9)
        early, _ = minimum_load.least_load(count, demand, np.ones((n, n)), 0.5 * true)
        assert 0.5 * true <= early <= true * (1 + 1e-9)


@pytest.mark.parametrize(
    ("spec", "given"),
    [("servers:n=9,degree=2,traffic=alltoall", {}), ("servers:n=8,degree=2,traffic=dlrm", {"rings": "default"})],
)
def test_minimum_loads_of_degenerate_and_uneven_traffic(spec, given):
    data = topology.Wiring.prepare(parse(spec), given)
    for seed in range(6):
        count = random_wiring(np.random.default_rng(seed), data.n, 2)
        low, high = minimum_load.least_load(count, data.fixed.copy(), np.ones((data.n, data.n)), np.inf)
        assert low == pytest.approx(high, rel=1e-8)
        assert low == pytest.approx(Oracle(data).route(count).value, rel=1e-6)


def test_annealed_loads_reach_the_optimum():
    pool = pool_of(3, 4, 2)
    tail = np.repeat(np.arange(4), 2)
    state, loads = np.stack([tail, np.roll(tail, 2)]), np.full(2, np.inf)
    anneal_loads(state, state.copy(), loads, 2, pool.traffic.copy(), 3000, 0.05, 1e-3, 1)
    assert loads[1] == pytest.approx(brute(pool), rel=1e-8)


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 8), st.integers(1, 3), st.sampled_from([0.0, 0.4, 0.9]))
def test_raised_lengths_prove_a_load_that_a_wiring_cannot_undercut(seed, n, degree, sparse):
    random = np.random.default_rng(seed)
    count, pool = random_wiring(random, n, degree), pool_of(seed, n, degree, sparse=sparse)
    tail, head = (np.repeat(end, count[count > 0]) for end in np.nonzero(count))
    demand, true = pool.traffic.copy(), flow_time(count, pool.traffic)
    if not demand.any():
        return
    nodes = (np.arange(n)[:, None] + np.arange(n)) % n
    lengths = random.random(tail.size)
    low, steps = raised_bound(tail, head, demand, lengths, 0.95 * true, 3000, nodes)
    if not np.isfinite(true):
        assert low == np.inf
        return
    assert 0.95 * true * (1 - 1e-6) <= low <= true * (1 + 1e-9)
    assert steps <= 3000
    dist = np.full((n, n), np.inf)
    np.minimum.at(dist, (tail, head), lengths)
    np.fill_diagonal(dist, 0.0)
    for k in range(n):
        dist = np.minimum(dist, dist[:, k : k + 1] + dist[k])
    assert demand[demand > 0] @ dist[demand > 0] / lengths.sum() == pytest.approx(low, rel=1e-9)
    below, _ = raised_bound(tail, head, demand, lengths, 2 * true, 50, nodes)
    assert below <= true * (1 + 1e-9)


def test_restarts_have_the_lengths_of_luby():
    assert [restart_length(k) for k in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


def split_loads(count, demand):
    """Loads of circuits if demand is split equally over its shortest paths, counted by powers of the matrix."""
    n, dist, ways = len(count), shortest_path(count, unweighted=True), np.eye(len(count))
    power = np.eye(n)
    for hops in range(1, n):
        power = power @ count
        ways = np.where(dist == hops, power, ways)
    load = np.zeros((n, n))
    for s, t in zip(*np.nonzero(demand), strict=True):
        on = dist[s][:, None] + 1 + dist[:, t][None, :] == dist[s, t]
        load += on * (count > 0) * demand[s, t] * np.multiply.outer(ways[s], ways[:, t]) / ways[s, t]
    return np.repeat(load[count > 0], count[count > 0])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 8), st.integers(2, 3), st.integers(1, 3))
def test_annealing_minimises_the_norm_of_loads_over_split_paths(seed, n, degree, squarings):
    random = np.random.default_rng(seed)
    count, demand = random_wiring(random, n, degree), pool_of(seed, n, degree, sparse=0.3).traffic.copy()
    before, p = load_norm(count, demand, squarings), 2**squarings
    if np.isfinite(shortest_path(count, unweighted=True)).all():
        assert before == pytest.approx(((split_loads(count, demand) ** p).sum() / n) ** (1 / p))
    data = TopologySequence.of_nodes(n, degree, 1, directed=True, demand=demand)
    results = [
        anneal_circuits(data, np.random.default_rng(seed), count[None], 400, lambda: None, squarings=squarings)[0]
        for _ in range(2)
    ]
    assert np.array_equal(*results)
    assert (results[0].sum(axis=0) == degree).all()
    assert (results[0].sum(axis=1) == degree).all()
    assert not np.diagonal(results[0]).any()
    assert load_norm(results[0], demand, squarings) <= before


@pytest.mark.slow
def test_sixteen_servers_are_wired_better_than_before():
    """Annealing over lengths alone reached 19.76e6 bytes after 87 s."""
    data = topology.Wiring.prepare(parse("servers:n=16,degree=2,traffic=alltoall"))
    search = WiringSearch(data, tol=1e-6, seed=0, tick=lambda: None, on_improvement=lambda _: None)
    search.exchanges(6)
    assert search.value <= 19.65e6
    assert (search.loads, search.splits) == (6, 0)  # one chain
    assert max(data.residuals(search.best.values()).values()) <= 1e-9


def test_annealings_take_half_of_the_time_that_is_left(monkeypatch):
    data, seen = topology.Wiring.prepare(pool_of(0, 6, 2)), []
    search = WiringSearch(data, tol=1e-6, seed=0, tick=lambda: 10.0, on_improvement=lambda _: None)
    search.loaded = False
    tail, head = search.best.circuits.T

    def annealing(_data, _random, counts, moves, _tick, **_):
        seen.append(moves)
        return counts

    monkeypatch.setattr(design_search, "anneal_circuits", annealing)
    pairs = tail.size**2
    for pace in (np.inf, 6.0 * pairs, 6.0 * pairs, 0.0):
        search.splits, search.pace = 2, pace  # 32 steps for every pair are next
        search._over_splits(tail, head)
    assert seen == [32 * pairs, 30 * pairs, 30 * pairs, 16 * pairs]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 9), st.integers(1, 3))
def test_transport_bounds_hold_for_random_wirings(seed, n, degree):
    random = np.random.default_rng(seed)
    demand = random.random((n, n)) * ~np.eye(n, dtype=bool)
    count = random_wiring(random, n, degree)
    dist = shortest_path(count, unweighted=True)
    assert travelled(demand, degree) <= demand[demand > 0] @ dist[demand > 0] * (1 + 1e-12)
    assert most_within(demand, degree) >= demand[count > 0].sum() * (1 - 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(1, 3))
def test_the_imbalance_bound_holds_for_random_wirings(seed, n, degree):
    random = np.random.default_rng(seed)
    demand = random.random((n, n)) * ~np.eye(n, dtype=bool) * random.choice([1e-3, 1.0, 10.0], n)
    bounds = {b.name: b.value for b in topology.Wiring.prepare(ServerPool(n, degree, demand)).bounds()}
    best = min(flow_time(random_wiring(random, n, degree), demand) for _ in range(4))
    assert bounds["transport"] < bounds["imbalance"] <= best * (1 + 1e-9)


def test_the_imbalance_bound_by_hand():
    # Servers 1 and 2 receive one byte more than they send; the ring's largest load is 2.
    demand = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    data = topology.Wiring.prepare(ServerPool(3, 1, demand))
    assert (data.byte_hops, data.idle) == pytest.approx((3.0, 2.0))
    assert {b.name: b.value for b in data.bounds()}["imbalance"] == pytest.approx(5 / 3)
    assert topology.Wiring.prepare(ServerPool(3, 1, demand + demand.T)).idle == 0.0
    tax = topology.Wiring.prepare(ServerPool(3, 1, demand), {"objective": "bandwidth-tax"})
    assert "imbalance" not in {b.name for b in tax.bounds()}


def test_free_trees_have_no_imbalance_bound():
    # A place in a pair of trees may send more than it receives.
    pool = ServerPool(5, 2, pool_of(3, 5, 2).traffic, groups=[AllReduceGroup((0, 1, 2, 3, 4), 3.0)])
    for trees, known in (("trees", False), ("rings", True)):
        data = topology.Wiring.prepare(pool, {"all_reduce": trees})
        assert ("imbalance" in {b.name for b in data.bounds()}) == known


def test_prefixes_keep_an_image_of_every_wiring():
    pool = parse("servers:n=4,degree=2,traffic=alltoall")
    alike = renamings([pool.traffic])
    assert len(alike) == 24
    options = Options.of(4, 2, 2, deficits=False)
    depth = options.depth
    among = renamings([pool.traffic], first=depth)
    assert sorted(among.tolist()) == [g for g in sorted(alike.tolist()) if set(g[:depth]) == set(range(depth))]
    kept = {tuple(row) for row in options.prefixes(among, lambda: None).tolist()}
    assert {len(row) for row in kept} == {depth}
    place = {tuple(row): o for o, row in enumerate(options.counts.tolist())}
    assert 0 < depth < 4
    for count in full_wirings(4, 2, 2):
        if (count.sum(axis=1) < 2).any():
            continue
        images = (count[np.ix_(np.argsort(g), np.argsort(g))] for g in alike)
        assert any(tuple(place[tuple(row)] for row in image[:depth].tolist()) in kept for image in images)


# the answer ---------------------------------------------------------------------------------------------------


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 1000), st.permutations(range(4)), st.floats(1e-3, 1e9))
def test_names_direction_and_scale_do_not_matter(seed, order, scale):
    pool = pool_of(seed, 4, 2)
    value = searched(pool)[1].value
    assert searched(pool.relabelled(order))[1].value == pytest.approx(value, rel=2e-6)
    assert searched(ServerPool(4, 2, pool.traffic.T))[1].value == pytest.approx(value, rel=2e-6)
    assert searched(ServerPool(4, 2, scale * pool.traffic))[1].value == pytest.approx(scale * value, rel=2e-6)


@pytest.mark.parametrize(("n", "degree"), [(5, 1), (5, 2), (6, 2)])
def test_traffic_on_rings_is_carried_at_its_own_ports(n, degree):
    demand = sum(np.roll(np.eye(n), k, axis=1) for k in range(1, degree + 1))
    assert searched(ServerPool(n, degree, demand))[1].value == pytest.approx(1.0)
    assert searched(ServerPool(n, degree, demand), objective="bandwidth-tax")[1].value == pytest.approx(1.0)


def test_free_rings_are_no_worse_than_the_default_and_than_every_heuristic():
    pool = ServerPool(5, 2, pool_of(3, 5, 2).traffic * 0.2, groups=[AllReduceGroup((0, 2, 1, 4, 3), 3.0)])
    data, free = searched(pool)
    _, fixed = searched(pool, rings="default")
    assert free.closed
    assert fixed.closed
    assert free.value <= fixed.value * (1 + 1e-6)
    for heuristic in (topology_finder(pool), ocs_reconfig(pool)):
        assert heuristic.max_load >= free.bound * (1 - 1e-9)
    value, _ = optimum(
        compile_model(
            topology.Wiring.prepare(
                ServerPool(4, 2, np.eye(4)[[1, 0, 3, 2]], groups=[AllReduceGroup((0, 1, 2, 3), 1.0)])
            ).cvxpy()
        )
    )
    _, small = searched(ServerPool(4, 2, np.eye(4)[[1, 0, 3, 2]], groups=[AllReduceGroup((0, 1, 2, 3), 1.0)]))
    assert small.value == pytest.approx(value, rel=1e-5)
    assert max(data.residuals(free.best.values()).values()) <= 1e-9


def test_a_corrupted_design_is_refused():
    data, search = searched(pool_of(1, 5, 2))
    good = search.best.values()
    assert max(data.residuals(good).values()) <= 1e-9
    for name, change in (
        ("route_bytes", lambda a: a * 1.01),
        ("loads", lambda a: a * 0.5),
        ("circuits", lambda a: a[::-1]),
        ("route_circuits", lambda a: np.roll(a, 1)),
        ("circuits", lambda a: np.where(a == 0, 1, a)),
    ):
        bad = {**good, name: change(good[name])}
        assert refused(data, bad), name
    twice = {**good, "circuits": np.vstack([good["circuits"]] * 2)}
    assert refused(data, twice)


def test_any_variables_beside_a_design_can_be_a_start():
    task = Task("topoopt.topology", "servers:n=3,degree=2,traffic=dlrm", method="highs")
    data, values = topology.Wiring.prepare(parse(task.instance), {}), solve(task).values
    for wrong in ({"y": -values["y"]}, {"y": 1e9 * values["y"]}, {"share": 0 * values["share"]}):
        assert set(data._unfold({**values, **wrong})) == set(values)
    without = {name: array for name, array in values.items() if name != "share"}
    assert np.array_equal(data._unfold(without)["circuits"], values["circuits"])


def test_a_design_without_the_least_demand_is_refused():
    """Circuits both ways between 0 and 1 have a tax of 1, but half a byte from 1 to 2 needs a ring of all three."""
    pool = ServerPool(3, 1, [[0, 1e6, 0], [1e6, 0, 0.5], [0, 0, 0]])
    data = topology.Wiring.prepare(pool, {"objective": "bandwidth-tax"})
    both = build_design(pool, [[0, 1], [1, 0]], [], [([0], 1e6), ([1], 1e6)])
    assert data.residuals(both.values())["demand"] == 1.0
    ring = build_design(pool, [[0, 1], [1, 2], [2, 0]], [], [([0], 1e6), ([1, 2], 1e6), ([1], 0.5)])
    assert max(data.residuals(ring.values()).values()) == 0.0
    assert data.objective(ring.values()) == pytest.approx(1.5)


def test_limits_of_the_parameters_are_checked():
    pool = ServerPool(3, 2, [[0, 5, 0.1], [0, 0, 1], [1, 0, 0]])
    _, many = searched(pool)
    data, _ = searched(pool, parallel=1)
    assert max(np.unique(many.best.circuits, axis=0, return_counts=True)[1]) == 2
    assert data.residuals(many.best.values())["parallel"] == 1
    ringed = ServerPool(5, 2, np.zeros((5, 5)), groups=[AllReduceGroup(tuple(range(5)), 1.0)])
    other = topology_finder(ringed)
    assert topology.Wiring.prepare(ringed).residuals(other.values())["default_rings"] == 0
    assert topology.Wiring.prepare(ringed, {"rings": "default"}).residuals(other.values())["default_rings"] == np.inf


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        ("servers:n=4,degree=4", {"parallel": 1}, "ports"),
        ("ring:5", {}, "server pool"),
    ],
)
def test_bad_input_is_refused(spec, given, message):
    with pytest.raises(BadInput, match=message):
        topology.Wiring.prepare(parse(spec), given)


def test_groups_with_too_many_rings_are_not_listed():
    data = topology.Wiring.prepare(parse("servers:n=12,degree=4,traffic=dlrm"))
    with pytest.raises(NotApplicable, match="rings=default"):
        data.cvxpy()
    assert min(bound.value for bound in data.bounds()) > 0


def test_the_study_is_valid():
    study = load(find("topoopt-gap"))
    assert study.title.startswith("TopoOpt")
    for spec in {str(task.instance) for task in tasks(find("topoopt-gap"))}:
        topology.Wiring.prepare(parse(spec))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_seven_servers_with_two_ports_are_proven(seed):
    run = solve(Task("topoopt.topology", f"servers:n=7,degree=2,traffic=random,seed={seed}", time_limit_s=600))
    assert run.record["proof"] == "optimal"
    assert run.verified


@pytest.mark.slow
def test_the_search_agrees_with_the_program_on_five_servers():
    pool = pool_of(11, 5, 2)
    value, _ = optimum(compile_model(topology.Wiring.prepare(pool).cvxpy()))
    assert searched(pool)[1].value == pytest.approx(value, rel=1e-4)


def test_the_oracle_solves_after_runs_with_other_threads():
    """HiGHS keeps the threads of the first run in a process, and fails with another number."""
    import highspy

    pool = pool_of(0, 3, 1)
    count = random_wiring(np.random.default_rng(0), 3, 1)
    first = highspy.Highs()
    for name, setting in (("output_flag", False), ("threads", 2)):
        first.setOptionValue(name, setting)
    first.passModel(highspy.HighsLp())
    first.run()
    assert Oracle(topology.Wiring.prepare(pool)).route(count).bound == pytest.approx(
        flow_time(count, pool.traffic), rel=1e-6
    )
