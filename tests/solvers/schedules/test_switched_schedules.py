"""Schedules on hosts behind switches, whose ranks have any places among the vertices."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_cases import marked

import opticoll as oc
from opticoll.instances import Topology
from opticoll.solvers.schedules.shard_routes import _with_shortest, routes_of

ALL_TO_ALL = ("alltoall.master", "alltoall.link-mcf", "alltoall.path-mcf", "alltoall.min-congestion")
TREES = ("alltoall.all-gather", "alltoall.reduce-scatter", "alltoall.all-reduce", "alltoall.broadcast")


def racks(sizes, order, within, between):
    """GPUs of every rack behind a switch, and circuits between the GPUs of neighbouring racks, in a ring.

    ``order`` are the vertices of the GPUs and switches, rack by rack, the switch of a rack last; ``within`` and
    ``between`` are the capacities of the links in turn.
    """
    arcs, ranks, members, at = [], [], [], iter(order)
    for size in sizes:
        members.append([next(at) for _ in range(size)])
        switch = next(at)
        ranks += members[-1]
        arcs += [(*ends, within[len(arcs) % len(within)]) for v in members[-1] for ends in ((v, switch), (switch, v))]
    for rack, first in enumerate(members):
        following = members[(rack + 1) % len(members)]
        pairs = zip(first, following, strict=False) if rack or len(members) > 1 else ()
        for k, (u, v) in enumerate(pairs):
            arcs += [(u, v, between[k % len(between)]), (v, u, between[k % len(between)])]
    tail, head, capacity = zip(*arcs, strict=True)
    return Topology(sum(sizes) + len(sizes), tail, head, capacity, terminals=ranks)


@st.composite
def switched(draw):
    """Racks with random sizes, capacities and order of the vertices."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    order = draw(st.permutations(range(sum(sizes) + len(sizes))))
    capacities = st.lists(st.sampled_from([0.3, 0.5, 1.0, 1.7, 9.0]), min_size=1, max_size=3)
    return racks(sizes, order, draw(capacities), draw(capacities))


def reported(gpus, order):
    """Three racks of GPUs, switches of 3600 Gb/s before, between or after them, circuits of 200 and 400 Gb/s."""
    size = gpus + 1
    places = (
        [*range(3 * size)],
        [v for first in range(0, 3 * size, size) for v in (*range(first + 1, first + size), first)],
        [v for rack in range(3) for v in (*range(rack * gpus, (rack + 1) * gpus), 3 * gpus + rack)],
    )
    return racks([gpus] * 3, places[order], [9.0], [0.5, *[1.0] * (gpus - 1)])


def assert_executable(result, folder):
    """The schedule delivers everything in no less than T, in memory and in every file that it can be written to."""
    schedule = result.schedule()
    assert schedule.check() is None
    T, task = result.metrics["T"], result.task
    assert schedule.time >= T * (1 - 1e-6)
    suffixes = [".json"] if task.formulation.endswith("broadcast") else [".json", ".xml"]
    for suffix in suffixes + ([".routes.json"] if task.formulation in ALL_TO_ALL else []):
        assert schedule.save(folder / f"plan{suffix}")["delivers"]
        verdict = oc.check(task.formulation, task.instance, folder / f"plan{suffix}")
        assert verdict["verified"], (suffix, verdict)
        assert verdict["metrics"].get("time", T) >= T * (1 - 1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plans")


@pytest.mark.parametrize(
    ("name", "order", "gpus"),
    [
        marked(name, order, gpus, slow=gpus == 4 or order != quick)
        for quick, name in enumerate(("alltoall.master", "alltoall.link-mcf", "alltoall.all-gather"))
        for order in range(3)
        for gpus in (2, 4)
    ],
)
def test_reported_racks(name, order, gpus, folder):
    assert_executable(oc.solve(name, reported(gpus, order)), folder)


@settings(max_examples=3, deadline=None)
@given(switched(), st.sampled_from(ALL_TO_ALL))
def test_every_all_to_all_is_executable(folder, topology, name):
    assert_executable(oc.solve(name, topology), folder)


@settings(max_examples=3, deadline=None)
@given(switched(), st.sampled_from(TREES))
def test_every_collective_along_trees_is_executable(folder, topology, name):
    assert_executable(oc.solve(name, topology), folder)


@settings(max_examples=5, deadline=None)
@given(switched())
def test_added_routes_are_shortest_paths_of_their_pairs(topology):
    result = oc.solve("alltoall.master", topology)
    found = routes_of("alltoall.master", result.plan.problem, result.values)
    graph = nx.DiGraph(list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)))
    added = _with_shortest(topology, found).rows()[len(found) :]
    for route in added:
        ends = [int(topology.tail[route.arcs[0]]), *topology.head[list(route.arcs)].tolist()]
        assert (ends[0], ends[-1]) == (route.source, route.target)
        assert ends[1:-1] == topology.tail[list(route.arcs[1:])].tolist()
        assert len(route.arcs) == nx.shortest_path_length(graph, route.source, route.target)
    shortest = nx.floyd_warshall_numpy(graph, nodelist=range(topology.n))
    known = {(r.source, r.target) for r in [*found.rows(), *added] if len(r.arcs) == shortest[r.source, r.target]}
    assert known == {(s, t) for s in topology.terminals.tolist() for t in topology.terminals.tolist() if s != t}


@pytest.mark.parametrize("name", ["alltoall.link-mcf", "alltoall.path-mcf"])
@pytest.mark.parametrize(("within", "between"), [(10, 3), (450, 50), (300, 25)])
def test_links_of_a_small_cluster_wait_less_in_more_chunks(name, within, between):
    """Two boxes of two GPUs: whole shards wait for each other on their way over fast and slow links."""
    graph = nx.DiGraph()
    for gpu in range(4):
        for switch, capacity in ((f"box{gpu // 2}", within), ("network", between)):
            graph.add_edge(f"gpu{gpu}", switch, capacity=capacity)
            graph.add_edge(switch, f"gpu{gpu}", capacity=capacity)
    result = oc.solve(name, oc.topology(graph, switches=["box0", "box1", "network"]))
    whole, chosen = result.schedule(chunks=1), result.schedule()
    assert chosen.check() is None
    assert result.T * (1 - 1e-9) <= chosen.time <= min(whole.time, 1.02 * result.T)
