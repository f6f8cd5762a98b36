"""All-reduce over double binary trees: bytes by hand, the checker, bounds, TopologyFinder, and the best circuits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from reference import refused
from scipy.optimize import linprog

import opticoll as oc
from opticoll.errors import NotApplicable
from opticoll.formulations.topoopt import topology
from opticoll.formulations.topoopt.circuit_design import Ring, ring_demand
from opticoll.formulations.topoopt.circuit_design_bounds import lower_bounds
from opticoll.formulations.topoopt.circuit_design_solution import read_design, residuals
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.instances import parse
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.solvers.methods.topoopt.ocs_reconfig import ocs_reconfig
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder, tree_ports

TREES = {"all_reduce": "trees"}


def one_group(n: int, degree: int, summed: float = 1.0) -> ServerPool:
    """All servers sum ``summed`` bytes."""
    group = AllReduceGroup(tuple(range(n)), 2 * (n - 1) / n * summed)
    return ServerPool(n, degree, np.zeros((n, n)), groups=[group])


@pytest.mark.parametrize("n", [2, 3, 5, 8, 16, 33])
def test_trees_send_as_many_bytes_as_a_ring(n):
    """Every edge has half of the summed bytes both ways: 2 (n - 1) S in total, over at most four neighbours."""
    pool = one_group(n, 4, 6.0)
    demand = ring_demand(pool, [Ring(0, 1.0, tuple(range(n)), trees=True)])
    assert demand.sum() == pytest.approx(2 * (n - 1) * 6.0)
    assert (demand == demand.T).all()
    assert set(np.round(demand[demand > 0], 9)) <= {3.0, 6.0}, "6 where both trees have the same edge"
    assert (demand.sum(axis=1) >= 6.0 - 1e-9).all(), "a leaf of both trees sends all of its bytes"
    assert (demand > 0).sum(axis=1).max() <= tree_ports(n) <= 4


def test_sixteen_servers_by_hand():
    """Four rings carry 15/32 S on every circuit, the double tree S/2 on each of its own: 16/15 of it."""
    pool = parse("servers:n=16,degree=4,traffic=candle")
    summed = pool.groups[0].transfer * 16 / 30
    rings, trees = topology_finder(pool), topology_finder(pool, trees=True)
    assert rings.max_load == pytest.approx(15 / 32 * summed)
    assert trees.max_load == pytest.approx(summed / 2)
    assert trees.bandwidth_tax == pytest.approx(1.0)
    assert len(trees.circuits) == 4 * 15, "two trees of 15 edges, both ways"


@pytest.mark.parametrize("n", [8, 32, 128])
def test_trees_cost_k_over_k_less_one(n):
    for degree, pairs in ((4, 1), (8, 2)):
        pool = one_group(n, degree)
        trees = topology_finder(pool, trees=True)
        assert len(trees.rings) == pairs
        assert trees.max_load / topology_finder(pool).max_load == pytest.approx(n / (n - 1))


@pytest.mark.parametrize("spec", ["servers:n=6,degree=3,traffic=dlrm", "servers:n=12,degree=4,traffic=ncf"])
def test_designs_pass_the_checker_and_their_bounds(spec):
    pool = parse(spec)
    problem = topology.Wiring.prepare(pool, TREES)
    for design in (topology_finder(pool, trees=True), ocs_reconfig(pool, trees=True)):
        values = design.values()
        assert max(problem.residuals(values).values()) < 1e-9
        assert design.max_load >= max(bound.value for bound in problem.bounds())
        taxed = topology.Wiring.prepare(pool, TREES | {"objective": "bandwidth-tax"})
        assert design.bandwidth_tax >= max(bound.value for bound in taxed.bounds())
        back = read_design(pool, values)
        assert back is not None
        assert back.rings == design.rings
        assert topology.Wiring.prepare(pool).residuals(values)["rings"] == np.inf, "trees where rings are asked for"
        without = {name: array for name, array in values.items() if name != "ring_trees"}
        assert problem.residuals(without)["demand"] > 1e-3, "read as rings, the demand is another"
        for wrong in (np.full(len(design.rings), 0.5), np.ones(len(design.rings) + 1)):
            assert refused(problem, values | {"ring_trees": wrong})
    rings = topology_finder(pool).values()
    assert problem.residuals(rings)["rings"] == np.inf


def test_shares_of_trees_add_up():
    pool = one_group(8, 4)
    design = topology_finder(pool, trees=True)
    half = replace(design, rings=tuple(replace(ring, share=0.5) for ring in design.rings))
    assert residuals(pool, half.values())["rings"] == pytest.approx(0.5)


def test_a_member_may_send_less_than_on_a_ring():
    """The places 0 and 7 of 8 have one neighbour in each tree: S bytes, on a ring 7/4 S; the bound is 1/d of that."""
    pool = one_group(8, 8)
    assert lower_bounds(pool)["max-load"].value == pytest.approx(7 / 4 / 8)
    demand = ring_demand(pool, [Ring(0, 1.0, tuple(range(8)), trees=True)])
    assert demand.sum(axis=1).min() == pytest.approx(1.0)
    bound = lower_bounds(pool, trees=True)["max-load"]
    assert bound.name == "reach"
    assert bound.value == pytest.approx(14 / 64)


def test_few_ports_are_matched_by_the_demand_of_the_trees():
    pool = one_group(8, 2)
    design = topology_finder(pool, trees=True)
    demand = ring_demand(pool, design.rings)
    hops = {(int(u), int(v)) for u, v in np.argwhere(demand > 0)}
    direct = [(int(u), int(v)) in hops for u, v in design.circuits]
    assert sum(direct) > len(direct) / 2
    with pytest.raises(NotApplicable, match="coin change"):
        topology_finder(pool, trees=True, forwarding="coin-change")


def least_over_cycles(pool: ServerPool) -> float:
    """Least maximum load of one circuit out of every server, by all cyclic orders and an LP for the shares."""
    n, size = pool.n, pool.groups[0].size
    steps = [p for p in range(1, size) if np.gcd(p, size) == 1]
    choices = [ring_demand(pool, [Ring(0, 1.0, tuple(pool.groups[0].ring(p).tolist()), trees=True)]) for p in steps]
    best = np.inf
    for rest in itertools.permutations(range(1, n)):
        order = np.array([0, *rest])
        place = np.argsort(order)
        loads = np.zeros((n, len(choices)))
        for c, demand in enumerate(choices):
            for u, v in np.argwhere(demand > 0).tolist():
                for hop in range((place[v] - place[u]) % n):
                    loads[(place[u] + hop) % n, c] += demand[u, v]
        rows = np.column_stack([loads, -np.ones(n)])
        cost = np.r_[np.zeros(len(choices)), 1.0]
        equal = np.r_[np.ones(len(choices)), 0.0][None, :]
        best = min(best, linprog(cost, A_ub=rows, b_ub=np.zeros(n), A_eq=equal, b_eq=[1.0]).fun)
    return best


def test_the_best_circuits_are_those_of_all_cycles():
    pool = one_group(4, 1, 4.0)
    run = oc.solve(oc.Task("topoopt.topology", pool, "highs", settings=TREES))
    assert run.verified
    assert run.objective == pytest.approx(least_over_cycles(pool), rel=1e-6)
    own = topology_finder(pool, trees=True)
    assert own.max_load >= run.objective * (1 - 1e-9)


def test_design_search_refuses_trees():
    with pytest.raises(oc.BadInput, match="searches rings"):
        oc.solve(oc.Task("topoopt.topology", one_group(4, 2), "design-search", settings=TREES))


def test_routes_of_trees_take_their_own_circuits():
    pool = one_group(8, 4)
    design = topology_finder(pool, trees=True)
    again = routed_design(pool, design.circuits, design.rings)
    assert again.loads == pytest.approx(design.loads)
    assert (again.length == 1).all()
