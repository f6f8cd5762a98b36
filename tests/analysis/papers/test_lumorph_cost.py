"""The alpha-beta-r cost model: the closed form of the recursive exchange is the time of checked schedules."""

from __future__ import annotations

from functools import cache

import pytest
from case_families import each

from opticoll.analysis.papers.lumorph.machine_times import (
    GRIDS,
    LIGHTPATH,
    Line,
    Machine,
    changes,
    recursive_time,
    usable,
    weight,
)
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, chained, violations
from opticoll.instances import parse
from opticoll.solvers.methods.lumorph.collective_algorithms import pattern_of
from opticoll.solvers.methods.lumorph.patterns import factors
from opticoll.solvers.methods.lumorph.realisation import realised

BUFFERS = (0.0, 1.0, 64e3, 4e6, 64e6, 1e9)


@cache
def built(n, algorithm, **parameters):
    """Schedule of an all-reduce on n GPUs, wide enough that no round is split; checked up to 64 GPUs."""
    topology = parse(f"lightpath:{GRIDS[n]},lasers=16,waveguides=64")
    limits, wanted = Limits(16, 64, load=None), collective("all-reduce", n)
    pattern, _ = pattern_of(algorithm, wanted, topology, limits, **parameters)
    schedule = realised(topology, limits, pattern)
    if n <= 64:
        assert not any(violations(topology, wanted, limits, schedule).values())
    return schedule


@each("n", GRIDS)
@each("radix", [2, 4, 8, 16, 17])
def test_recursive_closed_forms_are_the_times_of_the_schedules(n, radix):
    digits = factors(n, radix)
    schedule = built(n, "recursive", radix=radix, scheme="exchange")
    line = Line(schedule.rounds, weight(schedule, n), int(changes(schedule).sum()))
    for buffer in BUFFERS:
        assert line.time(buffer) == pytest.approx(recursive_time(digits, buffer, LIGHTPATH), rel=1e-12)


def test_the_papers_numbers_at_256():
    # FORMULAS: LUMORPH-2 / -4 [us] at 64 KB, 4 MB, 16 MB, 64 MB.
    result = {64e3: (71, 36), 4e6: (97, 63.5), 16e6: (177, 149), 64e6: (495, 489)}
    for buffer, expected in result.items():
        ours = (recursive_time((2,) * 8, buffer, LIGHTPATH), recursive_time((4,) * 4, buffer, LIGHTPATH))
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


def test_reconfiguration_is_due_where_circuits_change():
    assert changes(built(8, "ring")).tolist() == [True] + [False] * 13
    doubling = built(8, "recursive", radix=2)
    # The last halving step and the first doubling step pair the same GPUs.
    assert changes(doubling).tolist() == [True, True, True, False, True, True]
    # So do the last doubling step and the first halving step of the next all-reduce.
    assert changes(chained([doubling, doubling])).sum() == 5 + 4
