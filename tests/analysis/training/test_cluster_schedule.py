"""Schedules of a shared cluster: a second queue, violations that are noticed, fair rates, set-up by hand."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from opticoll.analysis.training.cluster_jobs import MIX, ClusterJob, draw_jobs
from opticoll.analysis.training.cluster_queue import simulate_cluster
from opticoll.analysis.training.cluster_schedule import residuals
from opticoll.analysis.training.rack_uplinks import crossings, fair_rates
from opticoll.errors import BadInput


def same(count: int, *, work: float = 10.0, apart: float = 0.0, servers: int = 2) -> list[ClusterJob]:
    """Jobs of the same size and duration, ``apart`` seconds one after the other."""
    return [ClusterJob("vgg", servers, apart * number, work) for number in range(count)]


@pytest.mark.parametrize("interval", [0.0, 20.0, 40.0])
def test_the_queue_is_that_of_a_heap(interval):
    """With jobs of one size the cluster is a queue of 3 places: a job begins when it and a place are there."""
    jobs = draw_jobs(300, servers=4, work=100.0, interval=interval, seed=3)
    schedule = simulate_cluster(jobs, 14, placement="random")
    places = [0.0] * 3
    for number, job in enumerate(jobs):
        begin = max(job.arrival, heapq.heappop(places))
        heapq.heappush(places, begin + job.work)
        assert schedule.granted[number] == pytest.approx(begin)
        assert schedule.ended[number] == pytest.approx(begin + job.work)
    assert max(residuals(schedule).values()) < 1e-9
    held = sum(4 * job.work for job in jobs)
    assert schedule.utilisation == pytest.approx(held / (14 * (schedule.ended.max() - schedule.arrival.min())))


@pytest.mark.slow
def test_waiting_is_erlangs():
    """Poisson arrivals, exponential durations, 4 places at load 0.8: Erlang's C is 0.5964, a wait 0.7455 of a job."""
    waiting, waits = [], []
    for seed in range(20):
        jobs = draw_jobs(4000, servers=2, work=1.0, interval=1 / 3.2, seed=seed)
        schedule = simulate_cluster(jobs, 8)
        wait = schedule.granted - schedule.arrival
        waiting.append((wait > 1e-12).mean())
        waits.append(wait.mean())
    assert np.mean(waiting) == pytest.approx(0.5964, abs=0.02)
    assert np.mean(waits) == pytest.approx(0.5964 / 0.8, abs=0.06)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_no_schedule_violates_a_condition(data):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=15))
    gaps = data.draw(st.lists(st.floats(0, 5), min_size=len(sizes), max_size=len(sizes)))
    jobs = [
        ClusterJob("vgg", size, arrival, 1.0 + number % 4)
        for number, (size, arrival) in enumerate(zip(sizes, np.cumsum(gaps).tolist(), strict=True))
    ]
    active = data.draw(st.one_of(st.none(), st.integers(1, 4)))
    setup = data.draw(st.sampled_from([0.0, 0.5, 3.0]))
    look = data.draw(st.sampled_from(["none", "arrival", "sequence"]))
    crowd = data.draw(st.booleans())
    schedule = simulate_cluster(
        jobs,
        8,
        active=active,
        setup=setup,
        look_ahead=look,
        placement=data.draw(st.sampled_from(["first", "random"])),
        slowdowns=(lambda numbers, _held: [1.0 + len(numbers)] * len(numbers)) if crowd else None,
    )
    assert max(residuals(schedule, active).values()) < 1e-9
    assert (schedule.begun - schedule.granted <= setup + 1e-9).all()


def test_jobs_that_share_a_link_slow_each_other_down():
    """Two jobs at half speed while both run: 10 s of work from 0 and from 5 end at 15 and 20."""
    schedule = simulate_cluster(same(2, apart=5.0), 4, slowdowns=lambda numbers, _held: [len(numbers)] * len(numbers))
    assert schedule.ended == pytest.approx([15.0, 20.0])
    assert schedule.mean_slowdown == pytest.approx([1.5, 1.5])
    assert schedule.piece_job.tolist() == [0, 0, 1, 1]
    assert max(residuals(schedule).values()) < 1e-12


@pytest.mark.parametrize(("work", "delays"), [(10.0, [0, 0, 0]), (4.0, [0, 3, 3]), (7.0, [0, 0, 0])])
def test_look_ahead_by_hand(work, delays):
    """Set-up of 7 s on second ports from the job before on: it delays the next job by 7 s less the duration."""
    jobs = same(3, work=work, servers=4)
    schedule = simulate_cluster(jobs, 4, setup=7.0, look_ahead="sequence")
    assert (schedule.begun - schedule.granted) == pytest.approx(delays)
    without = simulate_cluster(jobs, 4, setup=7.0)
    assert (without.begun - without.granted) == pytest.approx([7.0] * 3)
    late = simulate_cluster(same(2, work=20.0, apart=18.0, servers=4), 4, setup=7.0, look_ahead="arrival")
    assert (late.begun - late.granted) == pytest.approx([7.0, 0.0]), "the second one waits 9 s in the queue"
    later = simulate_cluster(same(2, work=20.0, apart=25.0, servers=4), 4, setup=7.0, look_ahead="arrival")
    assert (later.begun - later.granted) == pytest.approx([7.0, 5.0]), "27 s to 32 s; free since 27 s, known since 25 s"


def test_violations_are_noticed():
    schedule = simulate_cluster(same(4, apart=1.0), 4)
    assert schedule.granted == pytest.approx([0, 1, 10, 11])
    swapped = replace(schedule, held=(schedule.held[0], schedule.held[0], *schedule.held[2:]))
    assert residuals(swapped)["overlap"] == pytest.approx(9.0)
    short = replace(schedule, held=(schedule.held[0][:1], *schedule.held[1:]))
    assert residuals(short)["size"] == np.inf
    third = np.array([0.0, 0.0, 1.0, 0.0])
    late = replace(schedule, granted=schedule.granted + third, begun=schedule.begun + third)
    assert residuals(late)["idle"] == pytest.approx(1.0)
    assert residuals(schedule, active=1)["idle"] == 0.0
    order = replace(schedule, granted=schedule.granted[[0, 1, 3, 2]])
    assert residuals(order)["order"] == pytest.approx(1.0)
    early = replace(schedule, granted=schedule.granted - [0, 0.5, 0, 0])
    assert residuals(early)["early"] == pytest.approx(0.5)
    idler = replace(schedule, slowdown=schedule.slowdown * 2)
    assert residuals(idler)["work"] == pytest.approx(0.5)
    assert residuals(replace(schedule, slowdown=schedule.slowdown * 0.5))["work"] == np.inf
    outside = replace(schedule, piece_to=schedule.piece_to + 1.0)
    assert residuals(outside)["work"] == np.inf


def test_fair_rates_by_hand():
    """Racks of 2 with uplinks for 1: a ring through 4 servers of two racks in order crosses once each way."""
    assert crossings(np.array([0, 1, 2, 3]), 2, 2).tolist() == [1, 1, 1, 1]
    assert crossings(np.array([0, 2, 1, 3]), 2, 2).tolist() == [2, 2, 2, 2]
    assert fair_rates([np.array([0, 1, 2, 3])], 4, 2, 2.0).tolist() == [1.0]
    assert fair_rates([np.array([0, 2, 1, 3])], 4, 2, 2.0).tolist() == [0.5]
    assert fair_rates([np.array([0, 2]), np.array([1, 3])], 4, 2, 2.0).tolist() == [0.5, 0.5]
    rates = fair_rates([np.array([0, 2]), np.array([1, 4]), np.array([6, 7])], 8, 2, 2.0)
    assert rates.tolist() == [0.5, 0.5, 1.0]
    assert fair_rates([], 8, 2, 2.0).size == 0


def test_fair_rates_are_those_of_linear_programs():
    """Max-min: raise the least rate by an LP, fix what cannot rise further, and repeat."""
    draw = np.random.default_rng(5)
    for _ in range(5):
        places = draw.permutation(24)
        rings = [places[4 * k : 4 * k + 4] for k in range(6)]
        use = np.array([crossings(held, 4, 6) for held in rings]).T
        fixed: dict[int, float] = {}
        while len(fixed) < 6:
            free = [k for k in range(6) if k not in fixed]
            base = use[:, list(fixed)] @ np.array(list(fixed.values())) if fixed else np.zeros(12)
            level = linprog([-1.0], use[:, free].sum(axis=1)[:, None], 4 / 2.0 - base, bounds=[(0, 1)]).x[0]
            load = use[:, free].sum(axis=1) * level + base
            stuck = [k for k in free if level > 1 - 1e-9 or (use[load > 2.0 - 1e-9, k] > 0).any()]
            fixed |= dict.fromkeys(stuck, float(level))
        assert fair_rates(rings, 24, 4, 2.0) == pytest.approx([fixed[k] for k in range(6)])


def test_draws_follow_their_settings():
    jobs = draw_jobs(20_000, servers=16, work=50.0, interval=2.0, seed=1)
    assert np.mean([job.work for job in jobs]) == pytest.approx(50.0, rel=0.03)
    assert jobs[-1].arrival == pytest.approx(40_000, rel=0.03)
    for model, share in MIX.items():
        assert np.mean([job.model == model for job in jobs]) == share
    few = [job.model for job in draw_jobs(7, servers=16, work=50.0, interval=2.0)]
    assert [few.count(model) for model in MIX] == [3, 2, 1, 1], "2.8, 2.1, 1.4 and 0.7"
    assert jobs == draw_jobs(20_000, servers=16, work=50.0, interval=2.0, seed=1)
    together = draw_jobs(5, servers=16, work=50.0, interval=0.0, mix={"vgg": 1})
    assert {(job.model, job.arrival) for job in together} == {("vgg", 0.0)}


def test_weights_are_not_negative_and_not_all_zero():
    for weight in (0.0, -1.0):
        with pytest.raises(BadInput, match="positive weight"):
            draw_jobs(3, servers=2, work=1.0, interval=0.0, mix={"vgg": weight})
