"""Circuits of greatest utility: models and methods against enumeration and min-cost flow, prices, greedy's half."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import networkx as nx
import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import refused
from scipy.optimize import linear_sum_assignment

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.topoopt.utility import CircuitUtility
from opticoll.formulations.topoopt.utility_solution import DISCOUNTS, exact_gains
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.solvers.methods.topoopt.utility_circuits import (
    counted,
    greedy_circuits,
    matched_circuits,
    optimal_circuits,
)

#: Demands 3, 2 and 2 that share a port out of 0 and one into 1: greedy serves the first alone.
HALF = np.array([[0, 3, 2, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 2, 0, 0]], dtype=float)


def drawn(n, degree, seed, discount="halves"):
    """Whole demands from 0 to 9."""
    demand = np.random.default_rng(seed).integers(0, 10, (n, n)).astype(float)
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] += 1.0
    return CircuitUtility.prepare(ServerPool(n, degree, demand), {"discount": discount})


def value(data, circuits):
    return data.objective(data.filled(circuits))


def stated_utility(data, circuits):
    """Equation (1) in fractions, from the discounts as the paper defines them."""
    gains = exact_gains(data.discount, data.degree)
    return sum(
        (Fraction(float(t)) * sum(gains[:count], Fraction(0)) for t, count in zip(data.amounts, circuits, strict=True)),
        Fraction(0),
    )


def enumerated(data):
    """The greatest utility over all numbers of circuits within the ports."""
    best = Fraction(0)
    for circuits in itertools.product(range(data.gains.size + 1), repeat=len(data.pairs)):
        used = [np.bincount(data.pairs[:, end], circuits, minlength=data.n).max() for end in (0, 1)]
        if max(used) <= data.degree:
            best = max(best, stated_utility(data, circuits))
    return best


def flow_value(data):
    """The optimum by network simplex in whole numbers: a unit of flow is a circuit."""
    graph = nx.DiGraph()
    gains = exact_gains(data.discount, data.degree)
    scale = int(np.lcm.reduce([gain.denominator for gain in gains]))
    graph.add_node("s", demand=-data.n * data.degree)
    graph.add_node("t", demand=data.n * data.degree)
    graph.add_edge("s", "t", weight=0)
    for v in range(data.n):
        graph.add_edge("s", ("out", v), capacity=data.degree, weight=0)
        graph.add_edge(("in", v), "t", capacity=data.degree, weight=0)
    for (i, j), amount in zip(data.pairs.tolist(), data.amounts.tolist(), strict=True):
        for k, gain in enumerate(gains):
            middle = (i, j, k)
            graph.add_edge(("out", i), middle, capacity=1, weight=-int(amount * scale * gain))
            graph.add_edge(middle, ("in", j), capacity=1, weight=0)
    cost, _ = nx.network_simplex(graph)
    return Fraction(-cost, scale)


def test_discounts_are_those_of_the_paper():
    for count in range(1, 8):
        assert sum(exact_gains("halves", count)) == sum(Fraction(1, 2**x) for x in range(1, count + 1))
    assert exact_gains("factorial", 4) == [1, Fraction(1, 2), Fraction(1, 6), Fraction(1, 24)]
    assert exact_gains("every", 3) == [1, 1, 1]
    assert exact_gains("first", 3) == [1]
    assert np.isfinite([float(gain) for gain in exact_gains("halves", 5000)]).all()
    data = drawn(3, 3, 0)
    assert data.discounts.tolist() == [0.0, 0.5, 0.75, 0.875]
    assert drawn(3, 3, 0, "first").discounts.tolist() == [0.0, 1.0, 1.0, 1.0]


@each("discount", DISCOUNTS)
@each("seed", range(4))
def test_the_linear_program_attains_the_best_of_all_circuits(discount, seed):
    data = drawn(3, 2, seed, discount)
    best = enumerated(data)
    circuits, out, into = optimal_circuits(data)
    assert stated_utility(data, circuits) == best == flow_value(data)
    assert value(data, circuits) == pytest.approx(float(best), rel=1e-12)
    assert float(best) <= data.price_bound(out, into) <= float(best) * (1 + 1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 9), st.integers(1, 5), st.integers(0, 10**6), st.sampled_from(DISCOUNTS))
def test_the_linear_program_equals_min_cost_flow(n, degree, seed, discount):
    data = drawn(n, degree, seed, discount)
    circuits, *_ = optimal_circuits(data)
    best = flow_value(data)
    assert stated_utility(data, circuits) == best
    assert max(data.residuals(data.filled(circuits)).values()) == 0
    assert all(bound.value >= best for bound in data.bounds())
    greedy = stated_utility(data, counted(data, greedy_circuits(data.demand, data.degree, data.gains)))
    assert best / 2 <= greedy <= best


@settings(max_examples=16, deadline=None)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 10**6), st.floats(-1.0, 5.0))
def test_any_prices_bound_every_choice(n, degree, seed, size):
    data = drawn(n, degree, seed)
    prices = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, n)) * size
    best = flow_value(data)
    assert Fraction(data.price_bound(*prices)) >= best
    bound = data.certify({"ports_out": prices[0], "ports_in": prices[1]})
    assert Fraction(bound.value) >= best
    assert data.certify({"ports_out": prices[0]}) is None


@each("discount", DISCOUNTS)
@each(("n", "degree"), [(4, 2), (4, 3), (5, 6), (3, 5)])
def test_equal_demands_have_a_closed_form(discount, n, degree):
    pool = ServerPool(n, degree, 8.0 * (np.ones((n, n)) - np.eye(n)))
    data = CircuitUtility.prepare(pool, {"discount": discount})
    (bound,) = data._closed_forms()
    rounds, more = divmod(degree, n - 1)
    gains = [*exact_gains(discount, degree), *[Fraction(0)] * degree]
    stated = 8 * n * ((n - 1) * sum(gains[:rounds]) + more * gains[rounds])
    assert flow_value(data) == stated
    assert bound.exact
    assert bound.value == pytest.approx(float(stated), rel=1e-12)
    assert oc.solve(CircuitUtility.name, pool, discount=discount).objective == pytest.approx(float(stated), rel=1e-12)


def test_one_port_is_an_assignment():
    data = drawn(7, 1, 3, "every")
    rows, columns = linear_sum_assignment(data.demand, maximize=True)
    circuits, *_ = optimal_circuits(data)
    assert value(data, circuits) == data.demand[rows, columns].sum()


def test_greedy_has_half_at_worst():
    """Demands 3, 2, 2 with one port each: Algorithm 5 takes 3, the others together are 4."""
    pool = ServerPool(4, 1, HALF)
    runs = {
        method: oc.solve(CircuitUtility.name, pool, method=method) for method in ("transportation", "greedy-circuits")
    }
    assert runs["transportation"].objective == 2.0
    assert runs["greedy-circuits"].objective == 1.5
    assert runs["transportation"].proof == "optimal"
    assert runs["transportation"].values["y"].ravel().tolist() == [0.0, 1.0, 1.0]


def test_algorithm_5_by_hand():
    """Two ports: demands 8, 3 from 0 and 1 from 1; 8, then 4 before 3: Discount(2) 8 + Discount(1) 1."""
    demand = np.array([[0, 8.0, 3.0], [1.0, 0, 0], [0, 0, 0]])
    data = CircuitUtility.prepare(ServerPool(3, 2, demand))
    circuits = counted(data, greedy_circuits(demand, 2, data.gains))
    assert circuits.tolist() == [2, 0, 2]
    assert value(data, circuits) == 8 * 0.75 + 1 * 0.75
    first = CircuitUtility.prepare(ServerPool(3, 2, demand), {"discount": "first"})
    circuits = counted(first, greedy_circuits(demand, 2, first.gains))
    assert circuits.tolist() == [1, 1, 1]
    assert value(first, circuits) == 12.0


def test_connecting_servers_costs_utility():
    demand = np.array([[0, 9.0, 0, 0], [9.0, 0, 0, 0], [0, 0, 0, 9.0], [0, 0, 9.0, 0]])
    pool = ServerPool(4, 1, demand)
    apart = oc.solve(CircuitUtility.name, pool, method="greedy-circuits")
    joined = oc.solve(CircuitUtility.name, pool, method="greedy-circuits", connected=True)
    assert (apart.objective, joined.objective) == (18.0, 9.0)  # the two circuits that join them have no demand


@pytest.mark.parametrize("kind", ["blossom", "assignment"])
def test_successive_matchings_follow_the_discount(kind):
    demand = np.array([[0, 8.0, 3.0], [8.0, 0, 1.0], [3.0, 1.0, 0]])
    ports = np.full(3, 2)
    halves = matched_circuits(demand, ports, ports, kind)
    assert np.array_equal(halves, matched_circuits(demand, ports, ports, kind, gains=np.array([0.5, 0.25])))
    once = matched_circuits(demand, ports, ports, kind, gains=np.ones(1))
    assert len(np.unique(once, axis=0)) == len(once)
    every = matched_circuits(demand, ports, ports, "blossom", gains=np.ones(2))
    assert every.tolist().count([0, 1]) == 2


@cache
def solved(method):
    return oc.solve(CircuitUtility.name, "servers:n=6,degree=3,traffic=random,seed=2", method=method)


def test_methods_keep_to_the_bounds_of_the_optimum():
    best = solved("transportation")
    assert best.proof == "optimal"
    for method in ("greedy-circuits", "successive-matchings"):
        run = solved(method)
        assert run.proof in {"certified-gap", "optimal"}
        assert best.objective / 2 <= run.objective <= best.objective * (1 + 1e-12)
    assert solved("highs").objective == pytest.approx(best.objective, rel=1e-9)


def test_corrupted_circuits_are_refused():
    data = drawn(4, 2, 1)
    circuits, *_ = optimal_circuits(data)
    good = data.filled(circuits)
    assert max(data.residuals(good).values()) == 0
    assert data.residuals({"y": good["y"] * 0.5})["integer"] == 0.5
    everything = data.residuals({"y": np.ones_like(good["y"])})
    assert everything["ports_out"] >= 1
    assert everything["ports_in"] >= 1
    only_in = np.zeros_like(good["y"])
    only_in[data.pairs[:, 1] == 1] = 1.0
    assert data.residuals({"y": only_in})["ports_out"] == 0
    assert data.residuals({"y": only_in})["ports_in"] > 0
    for wrong in ({}, {"y": good["y"][:-1]}, {"y": np.full_like(good["y"], np.nan)}):
        assert refused(data, wrong)
    swapped = good["y"][:, ::-1] * 0.99999
    assert np.array_equal(data.repair({"y": swapped})["y"], good["y"])


def test_traffic_and_input():
    pool = ServerPool(3, 2, np.zeros((3, 3)), groups=[AllReduceGroup((0, 1, 2), 5.0)])
    assert CircuitUtility.prepare(pool).amounts.tolist() == [5.0] * 3
    with pytest.raises(BadInput, match="no point-to-point traffic"):
        CircuitUtility.prepare(pool, {"traffic": "direct"})
    with pytest.raises(BadInput, match="needs a server pool"):
        oc.solve(CircuitUtility.name, "ring:4")
    with pytest.raises(BadInput, match="has no traffic"):
        oc.solve(CircuitUtility.name, ServerPool(3, 2, np.zeros((3, 3))))
