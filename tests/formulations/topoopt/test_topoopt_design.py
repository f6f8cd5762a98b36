"""Designs of server pools: constructions pass the checker, corrupted ones do not, bounds hold, methods run."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import refused

from opticoll.analysis.papers.topoopt import iteration_loads
from opticoll.analysis.papers.topoopt import price_claims as cost
from opticoll.errors import NotApplicable
from opticoll.formulations.topoopt import circuit_design, circuit_design_solution, topology
from opticoll.formulations.topoopt.circuit_design import Ring, build_design
from opticoll.formulations.topoopt.circuit_design_bounds import lower_bounds
from opticoll.formulations.topoopt.circuit_design_solution import read_design, residuals
from opticoll.instances import ServerPool, parse
from opticoll.instances.servers import AllReduceGroup
from opticoll.solvers.methods import methods
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import (
    connected,
    group_ports,
    matched_circuits,
    ring_ports,
    topology_finder,
)
from opticoll.solvers.methods.topoopt.utility_circuits import geometric, greedy_circuits
from opticoll.solvers.procedure import rebuild, send
from opticoll.solvers.task import Task

SPECS = [
    "n=2,degree=1,traffic=dlrm",
    "n=2,degree=3,traffic=alltoall",
    "n=3,degree=1,traffic=random",
    "n=12,degree=4,traffic=dlrm",
    "n=12,degree=1,traffic=vgg,parallel=hybrid,shards=3",
    "n=13,degree=5,traffic=random",
    "n=9,degree=2,traffic=alltoall",
    "n=12,degree=4,traffic=bert,parallel=hybrid,shards=4",
    "n=24,degree=4,traffic=dlrm,section=5.4,batch=2048",
    "n=16,degree=20,traffic=ncf",
]
ROOT = Path(__file__).resolve().parents[3]
OPTIONS = [{}, {"matching": "assignment"}, {"paths": 2}, {"primes": True}]


def worst(pool, result):
    return max(residuals(pool, result.values()).values())


@each("spec", SPECS)
def test_constructions_pass_the_checker_and_obey_the_bounds(spec):
    pool = parse(f"servers:{spec}")
    least = lower_bounds(pool)
    for result in [topology_finder(pool, **options) for options in OPTIONS] + [ocs_reconfig(pool)]:
        assert worst(pool, result) < 1e-12
        assert result.topology.connected
        assert result.max_load >= least["max-load"].value * (1 - 1e-12)
        assert result.bandwidth_tax >= least["bandwidth-tax"].value * (1 - 1e-12)
        assert worst(pool, read_design(pool, result.values())) < 1e-12
        assert result.length @ result.route_bytes == pytest.approx(result.loads.sum())
        assert circuit_design_solution.describe(result)["max_load"] == result.max_load


@each("degree", [4, 8])
@each("name", ["dlrm,section=5.3", "candle", "bert", "ncf", "resnet50", "vgg"])
def test_the_six_jobs_at_the_papers_size(name, degree):
    pool = parse(f"servers:n=128,degree={degree},traffic={name}")
    result = topology_finder(pool)
    assert worst(pool, result) < 1e-12
    assert len(result.circuits) == 128 * degree
    if not pool.point_to_point.any():  # rings alone: every port carries the same, nothing is forwarded
        assert result.max_load == pytest.approx(lower_bounds(pool)["max-load"].value, rel=1e-12)
        assert result.bandwidth_tax == pytest.approx(1.0, rel=1e-12)


def test_a_corrupted_design_is_refused():
    pool = parse("servers:n=12,degree=4,traffic=dlrm")
    good = topology_finder(pool).values()
    assert max(residuals(pool, good).values()) == 0
    longer = int(np.argmax(np.diff(good["route_start"])))
    at = int(good["route_start"][longer])

    def swap(v):
        v["ring_order"][[1, 2]] = v["ring_order"][[2, 1]]  # still a ring, but its hops are other demand

    changes = {
        "circuit": lambda v: v["circuits"].__setitem__((0, 1), (v["circuits"][0, 1] + 6) % 12),
        "loop": lambda v: v["circuits"].__setitem__((0, 1), v["circuits"][0, 0]),
        "server": lambda v: v["circuits"].__setitem__((0, 1), 12),
        "half": lambda v: v["circuits"].__setitem__((0, 1), 1.5),
        "nan": lambda v: v["route_bytes"].__setitem__(0, np.nan),
        "less": lambda v: v["route_bytes"].__setitem__(0, v["route_bytes"][0] * 0.999),
        "negative": lambda v: v["route_bytes"].__setitem__(0, -1.0),
        "chain": lambda v: v["route_circuits"].__setitem__(at + 1, (v["route_circuits"][at + 1] + 17) % 48),
        "number": lambda v: v["route_circuits"].__setitem__(0, 48),
        "load": lambda v: v["loads"].__setitem__(0, v["loads"][0] * 1.01),
        "share": lambda v: v["ring_share"].__setitem__(0, 0.5),
        "member": lambda v: v["ring_order"].__setitem__(0, v["ring_order"][1]),
        "order": swap,
        "group": lambda v: v["ring_group"].__setitem__(0, 1),
        "start": lambda v: v["route_start"].__setitem__(1, 0),
        "missing": lambda v: v.pop("circuits"),
        "stated": lambda v: v.__setitem__("max_load", np.asarray(v["loads"].max() * 0.9)),
        "tax": lambda v: v.__setitem__("bandwidth_tax", np.asarray(np.nan)),
    }
    for name, change in changes.items():
        broken = {key: array.copy() for key, array in good.items()}
        change(broken)
        assert refused(topology.Wiring.prepare(pool), broken), name
    for stated in ("max_load", "bandwidth_tax"):
        true = {**good, stated: np.asarray(getattr(read_design(pool, good), stated))}
        assert max(residuals(pool, true).values()) == 0


def test_what_the_checker_counts():
    """Three servers, one port: the ring 0-1-2, and bytes from 0 to 2 over 1."""
    pool = ServerPool(3, 1, [[0, 0, 5], [0, 0, 0], [0, 0, 0]], groups=[AllReduceGroup((0, 1, 2), 7.0)])
    ring = [[0, 1], [1, 2], [2, 0]]
    result = build_design(pool, ring, [Ring(0, 1.0, (0, 1, 2))], [([0], 7.0), ([1], 7.0), ([2], 7.0), ([0, 1], 5.0)])
    assert worst(pool, result) == 0
    assert result.loads.tolist() == [12.0, 12.0, 7.0]
    assert result.bandwidth_tax == 31 / 26
    assert result.demand.tolist() == [[0, 7, 5], [0, 0, 7], [7, 0, 0]]
    # A second port's worth of circuits, a walk that comes back, a ring the wrong way round.
    more = build_design(
        pool, [[0, 1], [0, 2], [1, 2], [2, 0]], result.rings, [([0], 7.0), ([2], 7.0), ([3], 7.0), ([1], 5.0)]
    )
    assert residuals(pool, more.values())["degree"] == 1
    back = build_design(pool, ring, result.rings, [([0], 7.0), ([1], 7.0), ([2], 7.0), ([0, 1, 2, 0, 1], 5.0)])
    assert residuals(pool, back.values())["routes"] == np.inf
    other = build_design(pool, ring, [Ring(0, 1.0, (0, 2, 1))], [([0], 7.0), ([1], 7.0), ([2], 7.0), ([0, 1], 5.0)])
    assert residuals(pool, other.values())["demand"] > 0.5


def test_bounds_against_every_topology_of_one_port():
    """With one port each the connected topologies are the cyclic orders: all tried, routes forced."""
    random = np.random.default_rng(3)
    for n in (3, 4, 5):
        demand = random.uniform(1, 2, (n, n)) * ~np.eye(n, dtype=bool)
        pool = ServerPool(n, 1, demand)
        loads, taxes = [], []
        for rest in itertools.permutations(range(1, n)):
            order = [0, *rest]
            place = np.argsort(order)
            load = np.zeros(n)
            for s, t in itertools.permutations(range(n), 2):
                for k in range((place[t] - place[s]) % n):
                    load[(place[s] + k) % n] += demand[s, t]
            loads.append(load.max())
            taxes.append(load.sum() / demand.sum())
        least = lower_bounds(pool)
        assert least["max-load"].value <= min(loads) + 1e-9
        assert least["bandwidth-tax"].value <= min(taxes) + 1e-9
        result = topology_finder(pool)
        assert min(loads) - 1e-9 <= result.max_load <= max(loads) + 1e-9
        assert any(abs(result.max_load - load) < 1e-9 for load in loads)


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(12)))
def test_renaming_servers_keeps_the_value_of_a_design(order):
    pool = parse("servers:n=12,degree=4,traffic=dlrm")
    result = topology_finder(pool)
    renamed = pool.relabelled(order)
    new = np.asarray(order)
    moved = new[result.circuits]
    place = np.lexsort((moved[:, 1], moved[:, 0]))
    number = np.argsort(place)
    again = circuit_design.CircuitDesign(
        renamed,
        moved[place],
        tuple(Ring(r.group, r.share, tuple(new[list(r.order)].tolist())) for r in result.rings),
        result.route_start,
        number[result.route_circuits],
        result.route_bytes,
    )
    assert worst(renamed, again) < 1e-12
    assert again.max_load == result.max_load
    one, other = lower_bounds(pool), lower_bounds(renamed)
    assert all(one[name].value == pytest.approx(other[name].value) for name in one)


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 10**6))
def test_scaled_traffic_has_the_same_circuits(n, degree, seed):
    demand = np.random.default_rng(seed).integers(0, 4, (n, n)) * ~np.eye(n, dtype=bool)
    demand[0, 1] += 1
    pool, double = ServerPool(n, degree, demand), ServerPool(n, degree, 2.0 * demand)
    for build in (topology_finder, ocs_reconfig):
        one, two = build(pool), build(double)
        assert worst(pool, one) < 1e-12
        assert (one.circuits == two.circuits).all()
        assert two.max_load == pytest.approx(2 * one.max_load)


def test_ports_are_shared_out_as_algorithm_1_says():
    whole = tuple(range(4))
    pool = ServerPool(4, 4, np.zeros((4, 4)), groups=[AllReduceGroup(whole, 3.0), AllReduceGroup(whole, 1.0)])
    assert ring_ports(pool) == 4
    assert group_ports(pool) == [3, 1]
    half = np.full((4, 4), 1.0) * ~np.eye(4, dtype=bool)
    assert ring_ports(ServerPool(4, 4, half, groups=[AllReduceGroup(whole, 3.0)])) == 2
    assert ring_ports(ServerPool(4, 4, 1e6 * half, groups=[AllReduceGroup(whole, 3.0)])) == 1  # never none
    apart = ServerPool(4, 3, np.zeros((4, 4)), groups=[AllReduceGroup((0, 1), 1.0), AllReduceGroup((2, 3), 1.0)])
    assert group_ports(apart) == [2, 1]  # one after the other
    assert group_ports(apart, "shared") == [3, 3]  # no server in both
    assert topology_finder(apart).topology.connected
    fours = [AllReduceGroup(tuple(range(k, k + 4)), 1.0) for k in range(0, 16, 4)]
    quarters = ServerPool(16, 4, np.zeros((16, 16)), groups=fours)
    assert (group_ports(quarters), group_ports(quarters, "shared")) == ([1] * 4, [4] * 4)
    loads = [topology_finder(quarters, groups=groups).max_load for groups in ("printed", "shared")]
    assert loads == pytest.approx([1.0, 0.5])
    hybrid = parse("servers:n=16,degree=4,traffic=vgg,section=5.6,parallel=hybrid,shards=4")
    assert (group_ports(hybrid), group_ports(hybrid, "shared")) == ([2, 1, 1, 0, 0], [2] * 5)


def test_groups_as_printed_and_shared_over_the_jobs_of_the_page():
    rows = {}
    for shards in (2, 4, 8):
        loads = []
        for model, n, d in itertools.product(("vgg", "bert", "candle", "resnet50"), (16, 32), (4, 8)):
            pool = parse(f"servers:n={n},degree={d},traffic={model},parallel=hybrid,shards={shards}")
            bound, same = lower_bounds(pool)["max-load"].value, group_ports(pool) == group_ports(pool, "shared")
            ours = [topology_finder(pool, groups=groups).max_load / bound for groups in ("printed", "shared")]
            loads.append([*ours, ours[0] / ours[1], not same])
        one = np.array(loads)
        cells = [f"{np.median(c):.2f} ({c.min():.2f} to {c.max():.2f})" for c in one[:, :3].T]
        rows[shards] = f"| {shards} | {one[:, 3].sum():.0f} of 16 | {' | '.join(cells)} |"
    page = (ROOT / "docs/formulations/topoopt.topology.md").read_text(encoding="utf-8")
    assert all(row in page for row in rows.values()), rows


@pytest.mark.parametrize("n", [4, 6])
def test_blossom_is_the_best_matching_by_brute_force(n):
    random = np.random.default_rng(n)
    for _ in range(5):
        demand = random.uniform(0, 1, (n, n)) * ~np.eye(n, dtype=bool)
        result = matched_circuits(demand, np.ones(n, dtype=int), np.ones(n, dtype=int))
        both = demand + demand.T

        def best(left, both=both):
            if not left:
                return 0.0
            a, *rest = left
            return max(both[a, b] + best([c for c in rest if c != b]) for b in rest)

        assert demand[result[:, 0], result[:, 1]].sum() == pytest.approx(best(list(range(n))))
        assigned = matched_circuits(demand, np.ones(n, dtype=int), np.ones(n, dtype=int), "assignment")
        most = max(
            sum(demand[i, p] for i, p in enumerate(order))
            for order in itertools.permutations(range(n))
            if all(i != p for i, p in enumerate(order))
        )
        assert demand[assigned[:, 0], assigned[:, 1]].sum() == pytest.approx(most)


def test_equal_demand_makes_no_clusters():
    """All-to-all traffic: every matching is as good for itself, but what they make together must have few hops."""
    pool = parse("servers:n=64,degree=4,traffic=alltoall")
    for result in (topology_finder(pool), topology_finder(pool, matching="assignment"), ocs_reconfig(pool)):
        assert worst(pool, result) < 1e-12
        assert result.bandwidth_tax < 1.5 * lower_bounds(pool)["bandwidth-tax"].value
        assert result.max_load < 2.2 * lower_bounds(pool)["max-load"].value


def test_greedy_circuits_halve_what_they_serve():
    demand = np.array([[0, 8.0, 3.0], [1.0, 0, 0], [0, 0, 0]])
    result = greedy_circuits(demand, 2, geometric(2, 0.5))
    assert result[:3].tolist() == [[0, 1], [0, 1], [1, 0]]  # 8, then 4 before 3
    assert greedy_circuits(demand, 2, geometric(2, 0.25))[:2].tolist() == [[0, 1], [0, 2]]
    assert np.bincount(result[:, 0]).max() <= 2


@settings(max_examples=24, deadline=None)
@given(st.integers(2, 10), st.integers(1, 3), st.integers(0, 10**6), st.floats(0, 1))
def test_separate_components_get_connected(n, degree, seed, share):
    random = np.random.default_rng(seed)
    some = greedy_circuits(random.uniform(0, 1, (n, n)) ** 8, degree, geometric(degree, 0.5))
    some = some[random.uniform(size=len(some)) < share]
    result = connected(n, some, degree, random.uniform(0, 1, (n, n)))
    assert (result[:, 0] != result[:, 1]).all()
    assert max(np.bincount(result[:, 0]).max(), np.bincount(result[:, 1]).max()) <= degree
    assert nx.is_strongly_connected(nx.DiGraph(result.tolist()))
    assert len(set(result.ravel().tolist())) == n


def test_coin_change_forwards_over_rings_and_is_refused_without():
    pool = parse("servers:n=30,degree=3,traffic=dlrm,section=5.4")
    result = topology_finder(pool, forwarding="coin-change")
    assert worst(pool, result) < 1e-12
    assert result.bandwidth_tax == pytest.approx(topology_finder(pool).bandwidth_tax)  # both fewest hops, rings alone
    with pytest.raises(NotApplicable, match="coin change"):
        topology_finder(parse("servers:n=6,degree=2,traffic=alltoall"), forwarding="coin-change")
    with pytest.raises(NotApplicable, match="at least 1"):
        topology_finder(pool, paths=0)
    with pytest.raises(NotApplicable, match="discount"):
        ocs_reconfig(pool, discount=0.0)


def test_k_shortest_paths_carry_all_point_to_point_traffic():
    """Line 20: every pair over its k shortest paths, a circuit of its own being the first; rings keep their hops."""
    pool = parse("servers:n=12,degree=3,traffic=dlrm,section=5.4")
    result = topology_finder(pool, forwarding="k-shortest", paths=3)
    assert worst(pool, result) < 1e-12
    graph = nx.MultiDiGraph(result.circuits.tolist())
    simple = nx.DiGraph(graph)
    carried = np.zeros((12, 12))
    for ring in result.rings:
        for u, v in zip(ring.order, (*ring.order[1:], ring.order[0]), strict=True):
            carried[u, v] += ring.share * pool.groups[ring.group].transfer
    least = 0.0
    for s, t in np.argwhere(pool.point_to_point > 0).tolist():
        lengths = [len(path) - 1 for path in itertools.islice(nx.shortest_simple_paths(simple, s, t), 3)]
        least += pool.point_to_point[s, t] * sum(lengths) / len(lengths)
    assert result.loads.sum() == pytest.approx(carried.sum() + least, rel=1e-9)
    one = topology_finder(pool, forwarding="k-shortest", paths=1)
    assert one.bandwidth_tax == pytest.approx(topology_finder(pool).bandwidth_tax)
    rings_alone = parse("servers:n=12,degree=3,traffic=vgg")
    same = topology_finder(rings_alone, forwarding="k-shortest", paths=2)
    np.testing.assert_allclose(same.loads, topology_finder(rings_alone).loads)


def test_the_rule_of_ratio_two_leaves_ports_to_the_matchings():
    """16 servers, 8 ports, 16^(1/8) < 2: four rings of ratio 2 instead, and four ports for point-to-point traffic."""
    pool = parse("servers:n=16,degree=8,traffic=dlrm,section=5.4,batch=64")
    plain, rule = (topology_finder(pool, binary=binary) for binary in (False, True))
    assert len(plain.rings) == 8
    assert len(rule.rings) == 4
    assert [ring.order[1] - ring.order[0] for ring in rule.rings] == [1, 3, 5, 9]
    assert worst(pool, rule) < 1e-12
    assert rule.circuits.shape[0] == 16 * 8
    few = parse("servers:n=16,degree=4,traffic=dlrm,section=5.4,batch=64")
    np.testing.assert_array_equal(topology_finder(few, binary=True).circuits, topology_finder(few).circuits)


@pytest.mark.parametrize(
    ("instance", "says"),
    [
        ("ring:8", "server pool"),
        (ServerPool(3, 1, np.zeros((3, 3))), "no traffic"),
    ],
)
def test_an_invalid_pool_is_refused(instance, says):
    with pytest.raises(NotApplicable, match=says):
        circuit_design.server_pool(parse(instance) if isinstance(instance, str) else instance, "here")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (
            "topology-finder",
            {
                "primes": False,
                "binary": False,
                "matching": "blossom",
                "split": 1,
                "forwarding": "coin-change",
                "groups": "printed",
            },
        ),
        ("ocs-reconfig", {"discount": 0.5, "split": 2}),
    ],
)
def test_methods_return_designs(name, given):
    """As the runner calls them: the pool crosses to the worker, the values come back and pass the checker."""
    pool = parse("servers:n=12,degree=4,traffic=dlrm")
    made = ServerPool(pool.n, pool.degree, pool.point_to_point, groups=pool.groups)
    task = rebuild(send(Task("topoopt.topology", made), made)["sent"])
    assert task.instance == pool
    method = methods()[name]
    assert method.applies(SimpleNamespace(name="topoopt.topology"))
    assert not method.applies(SimpleNamespace(name="topoopt.routing"))
    assert {p.name for p in method.parameters} == set(given)
    data = topology.Wiring.prepare(task.instance)
    answer = method.run(SimpleNamespace(instance=task.instance, data=data, parameters=given))
    assert max(residuals(pool, answer.values).values()) < 1e-12


def test_slowdown_by_hand():
    """One port, a ring of 4, one byte between any two: 6 bytes a circuit, 3 a server: alpha 2 = mean hops."""
    pool = parse("servers:n=4,degree=1,traffic=alltoall,volume=1")
    result = iteration_loads.slowdown(topology_finder(pool))
    assert (result.alpha, result.mean_hops, result.tax) == (2.0, 2.0, 2.0)
    assert iteration_loads.iteration_time(8.0, 12.0, 2.0, 4, 1.0) == 8.0


def test_alpha_is_at_least_the_mean_hops():
    for batch in (128, 2048):
        pool = parse(f"servers:n=64,degree=4,traffic=dlrm,section=5.4,batch={batch}")
        for forwarding in ("shortest", "coin-change"):
            result = iteration_loads.slowdown(topology_finder(pool, forwarding=forwarding))
            assert result.alpha >= result.mean_hops > 1


def test_cost_of_an_interface_by_hand():
    assert cost.interface_cost("topoopt", 100) == 678 + 99 + 25 + 2 * (100 + 150)
    assert cost.interface_cost("ideal-switch", 100, nics=False) == 6 * 99 + 5 * 187 + 3 * 150
    assert cost.interconnect_cost("expander", 128, 4, 100) == 512 * (678 + 99 + 75)
    assert cost.fat_tree_ports(8) == (128, 80, 640)  # appendix G
    assert cost.fat_tree_ports(26)[0] == 4394  # section 5.2
