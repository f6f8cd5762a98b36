"""TotientPerms, SelectPermutations, CoinChangeMod, double binary trees: walked, swept, brute-forced."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.formulations.topoopt import binary_trees
from opticoll.solvers.methods.topoopt import ring_permutations
from opticoll.solvers.methods.topoopt.ring_permutations import as_printed, coin_routes, coin_sequence, coin_table


def test_the_papers_examples():
    assert ring_permutations.totient_perms(12) == [1, 5, 7, 11]
    assert ring_permutations.totient_perms(2) == [1]
    assert ring_permutations.totient_perms(16, primes=True) == [1, 3, 5, 7, 11, 13]
    assert ring_permutations.selected(16, 3) == (1, 3, 7)  # figure 7
    assert ring_permutations.selected(128, 4) == (1, 3, 11, 37)


def test_theorem_2_a_step_is_one_ring_iff_it_is_co_prime():
    for n in range(2, 60):
        walked = [p for p in range(1, n) if ring_permutations.is_single_ring(n, p)]
        assert walked == ring_permutations.totient_perms(n)
        assert len(walked) == sum(math.gcd(p, n) == 1 for p in range(1, n + 1)) - (n == 1)
        successors = {tuple((i + p) % n for i in range(n)) for p in walked}
        assert len(successors) == len(walked)  # all different


@pytest.mark.parametrize("n", [4, 5, 6])
def test_no_other_regular_rings_by_brute_force(n):
    """Of all (n-1)! cyclic orders those with a constant step are the +p rings."""
    regular = set()
    for rest in itertools.permutations(range(1, n)):
        order = (0, *rest)
        steps = {(b - a) % n for a, b in zip(order, (*rest, 0), strict=True)}
        if len(steps) == 1:
            regular |= steps
    assert sorted(regular) == ring_permutations.totient_perms(n)


def test_theorem_1_over_a_sweep():
    for n in (2, 3, 7, 16, 30, 64, 97, 128, 210, 255, 256, 360, 512):
        for d in range(1, 9):
            assert ring_permutations.diameter(n, ring_permutations.selected(n, d)) <= ring_permutations.theorem_1(n, d)


def test_the_rule_of_ratio_two():
    """Appendix E.2: fewer rings where n^(1/d) < 2, and a diameter of at most 1.2 log2 n; elsewhere the same rings."""
    for n in (5, 6, 12, 16, 17, 64, 100, 128):
        for d in range(1, 12):
            result = ring_permutations.selected(n, d, binary=True)
            if n ** (1 / d) < 2:
                assert len(result) == math.ceil(math.log2(n)) <= d
                assert ring_permutations.diameter(n, result) <= 1.2 * math.log2(n)
            else:
                assert result == ring_permutations.selected(n, d)
    assert ring_permutations.selected(128, 10, binary=True)[:4] == (1, 3, 5, 9)


@pytest.mark.parametrize(("ratio", "count"), [(2, 3), (3, 3), (4, 2), (2, 8), (10, 2)])
def test_coins_of_a_geometric_sequence(ratio, count):
    assert ring_permutations.geometric_coins(ratio, count) == count * (ratio - 1) < count * ratio


def test_selection_starts_at_the_least_uses_all_before_any_again():
    result = ring_permutations.select_permutations(12, 8, ring_permutations.totient_perms(12))
    assert sorted(result) == sorted([1, 5, 7, 11] * 2)
    assert result[0] == 1
    assert set(result[:4]) == {1, 5, 7, 11}


@st.composite
def circulants(draw):
    n = draw(st.integers(2, 60))
    steps = draw(st.lists(st.integers(1, n - 1), min_size=1, max_size=5, unique=True))
    if math.gcd(n, *steps) != 1:
        steps = sorted({1, *steps})
    return n, steps


@settings(max_examples=24, deadline=None)
@given(circulants())
def test_coin_change_is_as_short_as_dijkstra(case):
    n, steps = case
    distance, last = coin_table(n, steps)
    graph = nx.DiGraph([(i, (i + p) % n) for i in range(n) for p in steps])
    assert distance.tolist() == [nx.single_source_shortest_path_length(graph, 0)[m] for m in range(n)]
    for m, places in enumerate(coin_routes(n, steps)):
        coins = coin_sequence(n, last, m)
        assert len(coins) == distance[m]
        assert set(coins) <= set(steps)
        assert places[-1] % n == m
    printed = as_printed(n, steps)
    if n > 2:
        assert printed is not None
        assert (printed[1:] == distance[1:] - 1).all()  # the print starts a coin at 0


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 15, 16, 17, 33, 100, 128])
def test_double_binary_trees(n):
    trees = binary_trees.double_binary_tree(n)
    for parent in trees:
        assert (parent < 0).sum() == 1
        edges = [(int(p), v) for v, p in enumerate(parent) if p >= 0]
        tree = nx.Graph(edges)
        assert nx.is_tree(tree)
        assert len(tree) == n
        assert max(nx.shortest_path_length(tree, int(np.argmin(parent))).values()) <= math.ceil(math.log2(n)) + 1
        assert np.bincount(parent[parent >= 0]).max() <= 2
    if n % 2 == 0:
        inner = [set(parent[parent >= 0].tolist()) for parent in trees]
        assert not inner[0] & inner[1]  # inner in one, leaf in the other
        assert inner[0] == set(range(0, n, 2))
    traffic = binary_trees.tree_traffic(trees, 6.0)
    assert traffic.sum() == pytest.approx(2 * (n - 1) * 6.0)  # as over a ring
    assert traffic.sum(axis=1).max() <= 2 * 6.0 + 1e-9
    assert (traffic == traffic.T).all()
