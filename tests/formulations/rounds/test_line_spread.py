"""The fewest arcs of a chunk on a line: against exhaustive search, closed forms, and optimal schedules."""

from __future__ import annotations

from functools import cache
from itertools import combinations, islice

import numpy as np
import pytest

from opticoll.formulations.lumorph.collective_bounds import line_spread
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.line_spread import arcs_to_fill
from opticoll.formulations.rounds.round_schedule import Limits
from opticoll.formulations.rounds.wavelengths import lemma_1
from opticoll.instances import parse


@cache
def by_search(has: frozenset[int], nodes: int, rounds: int) -> float:
    """Fewest arcs on a line of ``nodes``, by all sets of receivers of the first round, each from its nearest holder."""
    lacking = [v for v in range(nodes) if v not in has]
    if not lacking:
        return 0
    if rounds == 0:
        return np.inf
    best = np.inf
    for k in range(1, len(lacking) + 1):
        for received in combinations(lacking, k):
            cost = sum(min(abs(v - u) for u in has) for v in received)
            if cost < best:
                best = min(best, cost + by_search(has | set(received), nodes, rounds - 1))
    return best


def test_gaps_are_those_of_exhaustive_search():
    most = 6
    for rounds, (closed, open_ended) in enumerate(islice(arcs_to_fill(most), 4), start=1):
        for m in range(most + 1):
            assert closed[m] == by_search(frozenset({0, m + 1}), m + 2, rounds)
            assert open_ended[m] == by_search(frozenset({0}), m + 1, rounds)


def test_one_round_is_lemma_1_and_many_rounds_take_one_arc_a_node():
    rounds = list(islice(arcs_to_fill(30), 15))
    m = np.arange(31)
    np.testing.assert_array_equal(rounds[0][0], (m + 1) ** 2 // 4)
    np.testing.assert_array_equal(rounds[0][1], m * (m + 1) // 2)
    np.testing.assert_array_equal(rounds[14][0], m)
    # n chunks over 2n arcs in one round: the wavelengths that Lemma 1 needs on a ring, for even n.
    for n in (4, 8, 16, 30):
        assert np.ceil(rounds[0][0][n - 1] / 2) == lemma_1(n, ring=True)


@pytest.mark.parametrize(
    ("spec", "rounds"),
    [("wdm-ring:n=8,wavelengths=2", 3), ("wdm-ring:n=16,wavelengths=2", 5), ("wdm-ring:n=128,wavelengths=64", 4)],
)
def test_bound_is_above_the_receptions(spec, rounds):
    fibres = parse(spec)
    (bound,) = line_spread(fibres, collective("all-gather", fibres.n), Limits(fibres.wavelengths, 1, ports=None))
    assert bound.value == rounds > -(-(fibres.n - 1) // (2 * fibres.wavelengths))


def test_other_machines_and_collectives_have_no_such_bound():
    fibres = parse("wdm-ring:n=8,wavelengths=2")
    limits = Limits(2, 1, ports=None)
    assert line_spread(fibres, collective("all-to-all", 8), limits) == []
    assert line_spread(parse("ring:8"), collective("all-gather", 8), limits) == []
    assert line_spread(parse("wdm-ring:n=8,wavelengths=2+fail=1"), collective("all-gather", 8), limits) == []
    assert line_spread(fibres, collective("all-gather", 8), Limits(2, 1, ports=None, load=None)) == []
    large = parse("wdm-ring:n=1024,wavelengths=64")
    assert line_spread(large, collective("all-gather", 1024), limits) == []
