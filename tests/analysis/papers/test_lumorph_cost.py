"""The alpha-beta-r cost model: closed forms are the times of checked schedules, and bounds hold."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.analysis.papers.lumorph.drawn_lines import PIECES, electrical
from opticoll.analysis.papers.lumorph.machine_times import (
    LIGHTPATH,
    Machine,
    changes,
    least_rounds,
    least_time,
    recursive_time,
    ring_time,
    switch_time,
    timeline,
    usable,
)
from opticoll.errors import BadInput
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, chained, violations
from opticoll.instances import parse
from opticoll.solvers.methods.lumorph.collective_algorithms import pattern_of
from opticoll.solvers.methods.lumorph.patterns import depths, factors, two_trees
from opticoll.solvers.methods.lumorph.realisation import realised

SHAPES = {4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
BUFFERS = (0.0, 1.0, 64e3, 4e6, 64e6, 1e9)


@cache
def built(n, algorithm, lasers=16, waveguides=64, **parameters):
    """Schedule and pattern of an all-reduce on n GPUs, wide enough that no round is split; checked up to 64 GPUs."""
    topology = parse(f"lightpath:{SHAPES[n]},lasers={lasers},waveguides={waveguides}")
    limits, wanted = Limits(lasers, waveguides, load=None), collective("all-reduce", n)
    pattern, _ = pattern_of(algorithm, wanted, topology, limits, **parameters)
    schedule = realised(topology, limits, pattern)
    if n <= 64:
        assert not any(violations(topology, wanted, limits, schedule).values())
    return schedule, pattern


@each("n", SHAPES)
@each("radix", [2, 4, 8, 16, 17])
def test_recursive_closed_forms_are_the_times_of_the_schedules(n, radix):
    digits = factors(n, radix)
    schedule, pattern = built(n, "recursive", radix=radix, scheme="exchange")
    for buffer in BUFFERS:
        assert timeline(schedule, buffer / n, LIGHTPATH).total_us == pytest.approx(
            recursive_time(digits, buffer, LIGHTPATH), rel=1e-12
        )
        ideal = 2 * len(digits) * 0.7 + 2 * (n - 1) / n * buffer * LIGHTPATH.beta
        assert switch_time(pattern, n, buffer / n, LIGHTPATH) == pytest.approx(ideal, rel=1e-12)


@pytest.mark.parametrize("n", [pytest.param(n, marks=pytest.mark.slow) if n > 64 else n for n in SHAPES])
def test_ring_closed_forms_are_the_times_of_the_schedules(n):
    schedule, pattern = built(n, "ring")
    standing = dataclasses.replace(LIGHTPATH, charged="changes")
    for buffer in BUFFERS:
        for machine in (LIGHTPATH, standing, LIGHTPATH.electrical):
            assert timeline(schedule, buffer / n, machine).total_us == pytest.approx(
                ring_time(n, buffer, machine), rel=1e-12
            )
        assert switch_time(pattern, n, buffer / n, LIGHTPATH) == pytest.approx(
            ring_time(n, buffer, LIGHTPATH.electrical), rel=1e-12
        )


def test_the_papers_numbers_at_256():
    # FORMULAS: ring against LUMORPH-2 / -4 [us] at 64 KB, 4 MB, 16 MB, 64 MB.
    result = {64e3: (357, 71, 36), 4e6: (384, 97, 63.5), 16e6: (463, 177, 149), 64e6: (782, 495, 489)}
    for buffer, expected in result.items():
        ours = (
            ring_time(256, buffer, LIGHTPATH.electrical),
            recursive_time((2,) * 8, buffer, LIGHTPATH),
            recursive_time((4,) * 4, buffer, LIGHTPATH),
        )
        assert ours == pytest.approx(expected, abs=0.6)
    assert LIGHTPATH.beta == pytest.approx(1 / 300e3)  # 300 GB/s


def test_appendix_b_counts_one_peer_of_three():
    three = recursive_time((4, 4), 16.0, Machine(0, 0, 3, 8e-3))
    # Both halves of the all-reduce, a byte a microsecond and laser: 1 + 4 bytes on each of three lasers.
    assert three == pytest.approx(2 * (1 + 4))
    assert three * 3 == pytest.approx(2 * 15)


def test_sixteen_lasers_give_three_peers_fifteen():
    assert usable(16, 3) == 15 / 16
    assert usable(16, 7) == 14 / 16
    assert [usable(16, k) for k in (1, 2, 4, 8, 16)] == [1.0] * 5
    assert usable(15, 3) == 1.0
    with pytest.raises(BadInput, match="lasers"):
        usable(2, 3)


@given(
    st.sampled_from([4, 8]),
    st.sampled_from(["recursive", "ring", "tree", "double-binary-tree", "divide-and-conquer"]),
    st.floats(0, 1e9),
    st.floats(0, 30),
    st.integers(1, 3),
)
@settings(max_examples=25, deadline=None)
def test_no_schedule_beats_the_bound_and_time_scales(n, algorithm, buffer, delay, waveguides):
    schedule, _ = built(n, algorithm, waveguides=waveguides)
    machine = Machine(reconfigure_us=delay)
    time = timeline(schedule, buffer / n, machine).total_us
    assert time >= least_time(n, buffer, machine) * (1 - 1e-12)
    quick = Machine(machine.alpha_us / 2, machine.reconfigure_us / 2, 16, machine.laser_gbps * 2)
    assert timeline(schedule, buffer / n, quick).total_us == pytest.approx(time / 2)
    standing = dataclasses.replace(machine, charged="changes")
    assert least_time(n, buffer, standing) * (1 - 1e-12) <= timeline(schedule, buffer / n, standing).total_us <= time


def test_k_peers_beat_the_papers_bound_on_rounds():
    assert [least_rounds(256, k) for k in (1, 3, 7, 15, 16)] == [8, 4, 3, 2, 2]
    schedule, _ = built(16, "recursive", radix=16)
    with pytest.raises(BadInput, match="at least 2"):
        least_rounds(8, 0)
    # An all-reduce is two spreadings: 2 rounds where log2 N is 4.
    assert schedule.rounds == 2 < least_rounds(16)


def test_reconfiguration_is_paid_where_circuits_change():
    ring, _ = built(8, "ring")
    assert changes(ring).tolist() == [True] + [False] * 13
    doubling, _ = built(8, "recursive", radix=2)
    # The last halving step and the first doubling step pair the same GPUs.
    assert changes(doubling).tolist() == [True, True, True, False, True, True]
    result = timeline(doubling, 1.0, dataclasses.replace(LIGHTPATH, charged="changes"))
    assert result.reconfigurations == 5
    assert timeline(doubling, 1.0, LIGHTPATH).reconfigurations == 6
    # So do the last doubling step and the first halving step of the next all-reduce.
    assert changes(chained([doubling, doubling])).sum() == 5 + 4
    closed = recursive_time((2, 2, 2), 8.0, dataclasses.replace(LIGHTPATH, charged="changes"))
    assert result.total_us == pytest.approx(closed)


def test_sizes_may_differ_by_chunk():
    schedule, _ = built(4, "recursive", radix=4)
    one = timeline(schedule, np.array([1e6, 0, 0, 0]), LIGHTPATH)
    assert one.data.tolist() == pytest.approx([1e6 / (5 * LIGHTPATH.circuit_rate)] * 2)
    each, same = (timeline(schedule, size, LIGHTPATH) for size in (np.full(4, 7.0), 7.0))
    assert each.total_us == same.total_us


def test_the_time_of_a_schedule_without_circuits_is_not_made_up():
    schedule, _ = built(4, "ring")
    with pytest.raises(BadInput, match="no circuit"):
        timeline(schedule.taken(np.arange(schedule.circuits - 16), np.arange(schedule.transfers)), 1.0, LIGHTPATH)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Machine(alpha_us=-1),
        lambda: Machine(reconfigure_us=float("nan")),
        lambda: Machine(lasers=0),
        lambda: Machine(laser_gbps=0),
        lambda: Machine(charged="never"),
    ],
)
def test_invalid_machines_are_refused(make):
    with pytest.raises(BadInput, match="machine"):
        make()


@pytest.mark.parametrize("sizes", [-1.0, float("inf"), np.ones(3), np.array([1.0, -1, 1, 1])])
def test_bad_sizes_are_refused(sizes):
    schedule, _ = built(4, "ring")
    with pytest.raises(BadInput, match="sizes"):
        timeline(schedule, sizes, LIGHTPATH)


def test_pipelined_trees_on_a_switch_take_height_and_pieces():
    # Two trees of p/2 pieces each: 2 h + p/2 - 1 steps, four pieces in and out of an inner vertex in the steady state.
    for line, pieces in zip(electrical("double-binary-tree", 64), PIECES, strict=True):
        height = int(max(depths(parent).max() for parent in two_trees(64)))
        assert line.rounds == 2 * height + pieces // 2 - 1
        assert line.weight * 16 <= 4 * line.rounds / pieces * (1 + 1e-12)
    assert min(line.weight for line in electrical("double-binary-tree", 64)) * 16 >= 2 * 63 / 64
