"""The approximation scheme that the paper compares its LP with: its guarantee against optima, its trees and phases."""

from __future__ import annotations

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from reference import flow_time

from opticoll.analysis.papers.alltoall.approximation import approximation, phase, tree
from opticoll.instances import parse


def arcs_of(topology):
    first_out = np.searchsorted(topology.tail, np.arange(topology.n + 1))
    return SimpleNamespace(tail=topology.tail.copy(), head=topology.head.copy(), first_out=first_out)


@pytest.mark.parametrize("spec", ["ring:5", "genkautz:n=9,d=3", "hypercube:2+host=1.5"])
@pytest.mark.parametrize("epsilon", [0.2, 0.05])
def test_the_value_is_within_its_guarantee(spec, epsilon):
    topology = parse(spec)
    best = 1 / flow_time(topology)
    value, grown = approximation(topology, epsilon)
    assert (1 - epsilon) ** 3 * best <= value <= best * (1 + 1e-9)
    assert grown >= topology.num_ranks


def test_trees_are_shortest():
    topology = parse("genkautz:n=14,d=3")
    graph, random = arcs_of(topology), np.random.default_rng(3)
    length = random.exponential(size=topology.arcs)
    network = nx.DiGraph()
    for u, v, one in zip(topology.tail.tolist(), topology.head.tolist(), length.tolist(), strict=True):
        network.add_edge(u, v, weight=min(one, network.get_edge_data(u, v, {"weight": np.inf})["weight"]))
    distance, parent, queue = np.empty(14), np.empty(14, dtype=np.int64), np.empty(14, dtype=np.int64)
    for root in range(14):
        tree(root, length, graph.head, graph.first_out, distance, parent, queue, np.zeros(14, dtype=np.bool_))
        expected = nx.single_source_dijkstra_path_length(network, root)
        assert distance == pytest.approx([expected[v] for v in range(14)])
        reached = np.flatnonzero(np.arange(14) != root)
        arcs = parent[reached]
        assert parent[root] == -1
        assert (graph.head[arcs] == reached).all()
        assert distance[graph.tail[arcs]] + length[arcs] == pytest.approx(distance[reached])


def test_vertices_without_a_path_are_left_out():
    """Two arcs that do not meet; lengths so far apart that one is lost in the other's sum."""
    graph = arcs_of(parse("path:4"))
    keep = np.flatnonzero(graph.tail != 1)  # nothing leaves vertex 1
    first_out = np.searchsorted(graph.tail[keep], np.arange(5))
    length = np.full(keep.size, 1e-300)
    length[0] = 1.0
    distance, parent, queue = np.empty(4), np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64)
    tree(0, length, graph.head[keep], first_out, distance, parent, queue, np.zeros(4, dtype=np.bool_))
    assert distance.tolist() == [0.0, 1.0, np.inf, np.inf]
    assert parent.tolist() == [-1, 0, -1, -1]


@pytest.mark.parametrize("groups", [1, 3, 14])
def test_a_phase_conserves_flow_for_any_number_of_sources(groups):
    topology = parse("genkautz:n=14,d=3")
    graph, random = arcs_of(topology), np.random.default_rng(groups)
    sources, demand = random.permutation(14)[:groups], random.uniform(0.0, 0.3, (groups, 14))
    demand[np.arange(groups), sources] = 0.0
    load, length = np.zeros(topology.arcs), np.ones(topology.arcs)
    grown = phase(sources, demand, np.ones(topology.arcs), 0.1, length, load, graph.tail, graph.head, graph.first_out)
    wanted = demand.sum(axis=0)
    wanted[sources] -= demand.sum(axis=1)
    assert topology.incidence() @ load == pytest.approx(wanted, abs=1e-12)
    assert grown >= groups
    assert (length >= 1.0 + 0.1 * load - 1e-12).all()


def test_a_phase_routes_every_demand_once_and_fills_no_arc_at_once():
    """On a path with a thin arc, a demand of 3 takes three trees of one unit each."""
    topology = parse("path:3")
    graph, arcs = arcs_of(topology), topology.arcs
    length, load = np.ones(arcs), np.zeros(arcs)
    wanted = np.array([[0.0, 0.0, 3.0]])
    grown = phase(np.array([0]), wanted, np.ones(arcs), 0.1, length, load, graph.tail, graph.head, graph.first_out)
    assert grown == 3
    assert topology.incidence() @ load == pytest.approx([-3.0, 0.0, 3.0])
    assert length[load > 0] == pytest.approx(1.1**3)
    assert (length[load == 0] == 1.0).all()
