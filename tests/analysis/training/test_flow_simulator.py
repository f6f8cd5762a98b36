"""The flow-level simulator against closed forms, linear programs, published times and its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import flow_time

from opticoll.analysis.training.flow_simulator import (
    designed_network,
    simulate_circuits,
    simulate_flows,
)
from opticoll.analysis.training.network_iteration import ServerNetwork, bounds, flows_of, residuals
from opticoll.errors import BadInput, NoSolution
from opticoll.instances import Topology, parse
from opticoll.instances.families.machines import fat_tree, ideal_switch
from opticoll.instances.training.task_graph import TaskGraphDraft, training_iteration
from opticoll.instances.training.training_jobs import shared_cluster

GIGABITS_100 = 12.5e9


def simulate(graph, network, *, ring_factor=None, **settings):
    """The schedule of a task graph over a network."""
    return simulate_flows(graph, flows_of(graph, network, ring_factor=ring_factor), network.latency, **settings)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["single", "even"]))
def test_schedules_on_networks_with_many_paths_are_valid(seed, routing):
    random = np.random.default_rng(seed)
    draft = TaskGraphDraft(8)
    for task in range(20):
        s, t = random.permutation(8)[:2].tolist()
        after = [int(random.integers(task))] if task and random.random() < 0.4 else []
        draft.transfer(s, t, float(random.uniform(1, 5)), after)
    draft.all_reduce(random.permutation(8).tolist(), 3.0)
    graph = draft.finished()
    topology = parse("hypercube:3" if seed % 2 else "random-regular:n=8,d=3,seed=1")
    network = ServerNetwork(topology, 1.0, 0.01, routing)
    flows = flows_of(graph, network)
    for resolution in (0.0, 0.3):
        schedule = simulate(graph, network, resolution=resolution, record=True)
        result = residuals(graph, flows, schedule, 0.01)
        if resolution:
            result.pop("fairness")
        assert max(result.values()) < 1e-7
        assert all(one.value <= schedule.length * (1 + 1e-9) for one in bounds(graph, flows, 0.01))


# closed forms -------------------------------------------------------------------------------------------------------


def test_two_flows_share_a_link_and_the_rest_is_taken():
    # arcs 0->1 of 1 and 1->2 of 3: flows 0->1, 0->2, 1->2 get 1/2, 1/2, 5/2
    topology = Topology(3, [0, 1], [1, 2], [1.0, 3.0])
    draft = TaskGraphDraft(3)
    for s, t, size in ((0, 1, 1.0), (0, 2, 2.0), (1, 2, 5.0)):
        draft.transfer(s, t, size)
    schedule = simulate(draft.finished(), ServerNetwork(topology, 1.0, 0.0), record=True)
    # 0->1 ends at 2 as does 1->2; then 0->2 has 1 left at rate 1
    assert schedule.end.tolist() == pytest.approx([2.0, 3.0, 2.0])
    assert schedule.rates[0:3, 3].tolist() == pytest.approx([0.5, 0.5, 2.5])


@pytest.mark.parametrize("routing", ["single", "even"])
def test_parallel_arcs_are_one_link_of_their_total_capacity(routing):
    topology = Topology(2, [0, 0, 1], [1, 1, 0], [0.25, 0.75, 1.0])
    draft = TaskGraphDraft(2)
    draft.transfer(0, 1, 3.0)
    assert simulate(draft.finished(), ServerNetwork(topology, 1.0, 0.0, routing)).length == pytest.approx(3.0)


def test_a_server_computes_one_task_at_a_time_in_the_order_of_their_numbers():
    draft = TaskGraphDraft(2)
    first, second, third = draft.compute(0, 3.0), draft.compute(0, 1.0), draft.compute(1, 2.0)
    draft.compute(1, 1.0, [first, third])
    schedule = simulate(draft.finished(), ServerNetwork(ideal_switch(2), 1.0, 0.0))
    assert schedule.end.tolist() == [3.0, 4.0, 2.0, 4.0]
    assert second == 1


@pytest.mark.parametrize("factor", [None, 1.0])
def test_equation_1_is_exact_without_overlap_on_an_ideal_switch(factor):
    graph = training_iteration("dlrm", 16, section="5.6", overlap="none")
    schedule = simulate(graph, ServerNetwork(ideal_switch(16, 8), GIGABITS_100, 0.0), ring_factor=factor)
    wired = 8 * GIGABITS_100
    reduce = sum(graph.reduced.values()) * (2 * 15 / 16 if factor is None else factor)
    direct = graph.transferred.sum() / 16
    assert graph.transferred.sum(axis=1) == pytest.approx(np.full(16, direct))
    expected = graph.computing.max() + reduce / wired + direct / wired
    assert schedule.length == pytest.approx(expected, rel=1e-9)


def test_a_ring_of_circuits_takes_its_bytes_and_latency():
    draft = TaskGraphDraft(8)
    draft.all_reduce(range(8), 80.0)
    graph = draft.finished()
    network = designed_network(graph, parse("circuits:n=8,degree=2"), 10.0, latency=0.5)
    assert len(network.rings_of(tuple(range(8)))) == 2
    # two rings of 40 bytes each, 2 * 7/8 of them over every circuit; 14 steps of one hop
    assert simulate(graph, network).length == pytest.approx(2 * 7 / 8 * 40 / 10 + 14 * 0.5)


def test_full_bisection_is_as_fast_as_the_ideal_switch_and_oversubscription_is_not():
    draft = TaskGraphDraft(16)
    for s in range(16):
        draft.transfer(s, (s + 5) % 16, 4.0)
    graph = draft.finished()
    times = [
        simulate(graph, ServerNetwork(tree, 1.0, 0.0, "even")).length
        for tree in (ideal_switch(16), fat_tree(4), fat_tree(4, 2))
    ]
    assert times == pytest.approx([4.0, 4.0, 8.0])  # every server sends beyond its edge switch


def test_no_routing_is_faster_than_the_linear_program_for_permutations():
    topology = parse("hypercube:3")
    random = np.random.default_rng(3)
    for _ in range(3):
        target = random.permutation(8)
        pairs = [(s, int(t)) for s, t in enumerate(target) if s != t]
        least = flow_time(topology, np.eye(8)[target] * (target != np.arange(8))[:, None])
        draft = TaskGraphDraft(8)
        for s, t in pairs:
            draft.transfer(s, t, 1.0)
        for routing in ("single", "even"):
            assert simulate(draft.finished(), ServerNetwork(topology, 1.0, 0.0, routing)).length >= least - 1e-9


# circuits that change -----------------------------------------------------------------------------------------------


def test_circuits_follow_the_demand_with_a_pause():
    draft = TaskGraphDraft(4)
    for t in (1, 2, 3):
        draft.transfer(0, t, 10.0 * t)
    graph = draft.finished()
    network = parse("circuits:n=4,degree=1,rule=sip-ring,interval_ms=20000,pause_us=1000000")
    schedule, changes = simulate_circuits(graph, network, 1.0, latency=0.0)
    # 0-20 s: 20 of 30 bytes to 3; 21-40: 19 of 20 to 2; 41-51 and 61-71: 10 to 1 or 3; 81-82: the last byte to 2
    first, second, third = schedule.end.tolist()
    assert sorted([first, third]) == pytest.approx([51.0, 71.0])
    assert second == pytest.approx(82.0)
    assert changes == 4


def test_wavelengths_of_a_ring_are_assigned_again_at_every_interval():
    """Four transfers over half the ring fit on one wavelength each way; the fifth waits, then has both ways."""
    draft = TaskGraphDraft(4)
    for s in range(4):
        draft.transfer(s, (s + 2) % 4, 10.0)
    draft.transfer(0, 1, 5.0)
    network = parse("circuits:n=4,degree=1,rule=sip-ring-wavelengths,interval_ms=20000,pause_us=1000000")
    schedule, changes = simulate_circuits(draft.finished(), network, 1.0, latency=0.0)
    assert schedule.end.tolist() == pytest.approx([10.0] * 4 + [20.0 + 1.0 + 5.0 / 2])
    assert changes == 1
    assert network.most_circuits == 2


def test_the_default_duty_cycle_of_a_ring_is_nine_tenths():
    """One pair has all wavelengths both ways; a tenth of the time after the first interval is pause."""
    draft = TaskGraphDraft(4)
    draft.transfer(0, 1, 4 * 1e3)
    schedule, changes = simulate_circuits(
        draft.finished(), parse("circuits:n=4,degree=2,rule=sip-ring-wavelengths"), 1e6, latency=0.0
    )
    # 250 us at 4 bytes/us, then 225 us of every 250 us: 3000 bytes take three intervals and 75 us after a pause
    assert (changes, schedule.length) == (4, pytest.approx(1025e-6 + 75e-6))


def test_forwarding_serves_all_at_once_where_waiting_does_not():
    draft = TaskGraphDraft(6)
    for s in range(6):
        for t in range(6):
            if s != t:
                draft.transfer(s, t, 1.0)
    graph = draft.finished()
    text = "circuits:n=6,degree=2,rule=ocs-reconfig,interval_ms=10000,pause_us=1000000,forwarding={}"
    times = [simulate_circuits(graph, parse(text.format(word)), 1.0)[0].length for word in ("true", "false")]
    assert times[0] < 10.0 < times[1]


def test_traffic_without_a_route_is_an_error():
    draft = TaskGraphDraft(2)
    draft.transfer(0, 1, 1.0)
    with pytest.raises(NoSolution, match=r"no route for the transfer from server 0 to server 1 \(task 0\)"):
        simulate(draft.finished(), ServerNetwork(Topology(2, [1], [0]), 1.0))
    draft = TaskGraphDraft(2)
    begun = draft.compute(0, 1.0)
    reduced = draft.all_reduce((0, 1), 1.0, after=[begun])
    draft.compute(0, 1.0, after=[reduced])
    with pytest.raises(NoSolution, match=r"no route for the all-reduce among servers 0, 1 \(task 1\)"):
        simulate(draft.finished(), ServerNetwork(Topology(2, [1], [0]), 1.0))


# published times ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "within"), [("vgg", 0.001), ("bert", 0.005), ("candle", 0.05)])
@pytest.mark.parametrize("degree", [4, 8])
def test_published_times_of_figure_16_are_met_without_fitting(model, within, degree):
    graph = training_iteration(model, 16, section="5.6")
    network = designed_network(graph, parse(f"circuits:n=16,degree={degree}"), GIGABITS_100)
    ours = simulate(graph, network, resolution=1e-6).length
    rows = [one for one in shared_cluster() if (one.network, one.degree, one.model) == ("topoopt", degree, model)]
    assert rows
    for one in rows:
        assert ours == pytest.approx(one.mean, rel=within)
        assert ours <= one.least  # headers and start-up of their packets are left out here


@pytest.mark.parametrize(("precision", "ends"), [(0.01, [10, 13, 13.1, 14.05]), (0.02, [10, 13.15, 13.15, 14.1])])
def test_ends_within_a_part_of_the_time_since_the_start_are_put_together(precision, ends):
    # from 10 on three flows share a link of 1; the second would end 0.15 after the first, which is 1.5 % of 10
    draft = TaskGraphDraft(2)
    first = draft.transfer(0, 1, 10.0)
    for size in (1.0, 1.05, 2.0):
        draft.transfer(0, 1, size, [first])
    graph = draft.finished()
    flows = flows_of(graph, ServerNetwork(Topology(2, [0], [1], [1.0]), 1.0, 0.0))
    assert simulate_flows(graph, flows, 0.0, precision=precision).end.tolist() == pytest.approx(ends)


def test_a_precision_out_of_range_is_refused():
    graph = training_iteration("vgg", 16, section="5.6")
    flows = flows_of(graph, ServerNetwork(parse("ideal-switch:n=16"), GIGABITS_100))
    with pytest.raises(BadInput, match="precision -1"):
        simulate_flows(graph, flows, 0.0, precision=-1)


@pytest.mark.slow
def test_a_hundred_thousand_flow_events_give_one_schedule():
    random, draft, count = np.random.default_rng(0), TaskGraphDraft(64), 50_000
    for task in range(count):
        s, t = random.permutation(64)[:2].tolist()
        draft.transfer(s, t, float(random.uniform(1, 2)), [task - 200] if task >= 200 else [])
    graph, network = draft.finished(), ServerNetwork(parse("torus:8x8"), 1.0)
    first, second = simulate(graph, network), simulate(graph, network)
    assert first.events == 2 * count
    assert np.array_equal(first.end, second.end)
