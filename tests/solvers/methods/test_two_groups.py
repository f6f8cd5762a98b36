"""Groups of order 2^k by presentations: against permutations, counts of all groups, and reductions word by word."""

from __future__ import annotations

import numpy as np
import pytest
from group_words import reduced_word
from numpy.testing import assert_array_equal

from opticoll.errors import BadInput
from opticoll.solvers.methods.topology.sequence_orbits import named_group
from opticoll.solvers.methods.topology.two_groups import drawn_groups, group_table, presentation_name


@pytest.mark.parametrize(("k", "groups"), [(1, 1), (2, 2), (3, 5), (4, 14)])
def test_all_groups_of_small_orders_are_drawn(k, groups):
    names = drawn_groups(k, 40, np.random.default_rng(1))
    assert len(names) == groups


@pytest.mark.parametrize("k", [3, 5, 6])
def test_tables_are_groups_and_follow_their_presentation(k):
    for name in drawn_groups(k, 4, np.random.default_rng(k)):
        group = named_group(1 << k, name)
        table, nodes = group.table, np.arange(1 << k)
        assert_array_equal(table[table], table[:, table])
        assert_array_equal(table[nodes, group.inverses], 0)
        assert_array_equal(table[0], nodes)
        for left, right in np.random.default_rng(0).integers(0, 1 << k, (20, 2)).tolist():
            letters = [g for number in (left, right) for g in range(k) if number >> g & 1]
            assert table[left, right] == reduced_word(name, letters)


def test_the_quaternions_are_no_metacyclic_group_of_a_split_extension():
    table = group_table(presentation_name([4, 4, 4, 0, 0, 0]))  # i i = -1, j i = i j (-1), j j = -1
    assert (table.diagonal() == 0).sum() == 2
    assert sorted(table.diagonal().tolist()) == [0, 0, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("name", ["pc:", "pc:1", "pc:0.0", "pc:2.2.x", "xor", "pc:2.0.2", "pc:2.2.0"])
def test_other_words_are_refused(name):
    with pytest.raises(BadInput, match="group"):
        group_table(name)
