"""All-gather on optical rings as rounds: ring, neighbour exchange, WRHT and OpTree's tree against the optimum."""

from __future__ import annotations

import pytest

from opticoll.analysis.papers.optree import table_one
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.lumorph.rounds import RoundModel
from opticoll.formulations.lumorph.sum_rounds import FORMULATION as SUMS
from opticoll.formulations.optree.radix_trees import walks
from opticoll.formulations.optree.tree_schedules import fabric_of
from opticoll.instances import parse
from opticoll.solvers.methods.optree.best_trees import best_by_depth
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task


def rounds(spec, method, **settings):
    record = solve(Task("lumorph.rounds", spec, method=method, settings=settings, time_limit_s=60))
    assert record.verified
    return record


@pytest.mark.parametrize("n", [4, 8])
def test_ring_and_neighbours_take_the_rounds_of_table_1(n):
    spec = f"wdm-ring:n={n},wavelengths=2"
    assert rounds(spec, "ring").objective == table_one.ring_steps(n) == n - 1
    swaps = rounds(spec, "neighbour-exchange", compact="false")
    assert swaps.objective == table_one.neighbour_exchange_steps(n) == n // 2
    assert swaps.record.metrics["steps"] == n // 2


def test_neighbours_both_ways_at_once_are_optimal_on_one_wavelength():
    # A node then receives a chunk from either side in every round: nobody can be faster.
    record = rounds("wdm-ring:n=8,wavelengths=1", "neighbour-exchange")
    assert record.objective == record.bound == 4
    assert record.proof.value == "optimal"
    assert record.record.metrics["stepwise_rounds"] == 7  # two chunks a step without compaction


@pytest.mark.parametrize(
    "spec", ["wdm-ring:n=16,wavelengths=2", "wdm-line:n=9,wavelengths=2", "wdm-ring:n=5,wavelengths=3,fibres=2"]
)
def test_tree_has_the_rounds_that_optree_counts(spec):
    fibres = parse(spec)
    fabric = fabric_of(fibres, "exact")
    trees = best_by_depth(fabric, walks(fabric))
    assert rounds(spec, "radix-tree").objective == min(tree.steps for tree in trees.values())
    for depth, tree in trees.items():
        assert rounds(spec, "radix-tree", depth=depth).objective <= tree.steps


def test_neighbours_beat_every_tree_in_the_paper_s_example():
    # Section III-C: 16 nodes, 2 wavelengths, 12 steps by two stages of radix 4.
    spec = "wdm-ring:n=16,wavelengths=2"
    tree = rounds(spec, "radix-tree", radices="uniform", depth=2)
    assert tree.objective == 12
    assert tree.record.metrics["radices"] == [4, 4]
    assert rounds(spec, "radix-tree").objective == 12
    assert rounds(spec, "neighbour-exchange").objective == 8
    assert tree.bound == 5


@pytest.mark.parametrize(
    ("n", "optimum", "others"),
    [(4, 1, [3, 2, 1]), pytest.param(6, 2, [5, 3, 3], marks=pytest.mark.slow)],
)
def test_the_optimum_of_small_rings_is_below_all_of_them(n, optimum, others):
    spec = f"wdm-ring:n={n},wavelengths=2"
    best = rounds(spec, "highs")
    assert best.proof.value == "optimal"
    assert best.objective == optimum
    assert [rounds(spec, name).objective for name in ("ring", "neighbour-exchange", "radix-tree")] == others


@pytest.mark.slow
def test_the_optimum_of_eight_nodes_meets_the_bound_of_the_line():
    best = rounds("wdm-ring:n=8,wavelengths=2", "highs", rmax=3)
    assert best.objective == best.bound == 3
    assert best.record.bound_source == "line spread"


@pytest.mark.parametrize(
    ("spec", "settings", "up", "down"),
    [
        # n = m^k on w wavelengths: up m^j (m - 1) / 2w, down (n - m^j) (m - 1) / 2w, together k n for m = 2w + 1
        ("wdm-ring:n=9,wavelengths=1", {}, [1, 3], [8, 6]),
        ("wdm-line:n=27,wavelengths=1", {}, [1, 3, 9], [26, 24, 18]),
        ("wdm-ring:n=25,wavelengths=2", {}, [1, 5], [24, 20]),
        ("wdm-ring:n=5,wavelengths=1,fibres=2", {}, [1], [4]),
        ("wdm-ring:n=16,wavelengths=4", {"group": 4}, [1, 2], [8, 6]),  # two nodes below the middle one: 2 4^j / w
    ],
)
def test_wrht_gathers_at_middle_nodes_and_comes_down_again(spec, settings, up, down):
    assert rounds(spec, "wrht", **settings).objective == sum(up) + sum(down)


def test_the_formula_for_wrht_is_below_what_a_circuit_for_every_copy_takes():
    """A node gets all but its own chunk from its middle node, which has a channel for every one of 2w: n - 1 rounds."""
    record = rounds("wdm-ring:n=64,wavelengths=4", "wrht")
    assert table_one.wrht_steps(64, 4) == 19
    assert record.objective >= 63


def test_what_does_not_apply_is_refused():
    for spec, settings, words in (
        ("lightpath:2x4,lasers=4", {}, "optical lines and rings"),
        ("wdm-ring:n=6,wavelengths=2", {"collective": "broadcast"}, "all-gather of one chunk per node"),
        ("wdm-ring:n=6,wavelengths=2", {"paths": "1"}, "chooses routes and wavelengths itself"),
        ("wdm-ring:n=6,wavelengths=2", {"depth": "9"}, "depth=9"),
    ):
        for method in ("radix-tree", "wrht"):
            with pytest.raises((NotApplicable, BadInput), match="depth" if "depth" in settings else words):
                solve(Task("lumorph.rounds", spec, method=method, settings=settings))
    with pytest.raises(NotApplicable, match="groups of 1 of 6 nodes; use at least 2"):
        solve(Task("lumorph.rounds", "wdm-ring:n=6,wavelengths=2", method="wrht", settings={"group": 1}))
    ring = parse("wdm-ring:n=6,wavelengths=2")
    with pytest.raises(NotApplicable, match="remove lasers"):
        RoundModel.prepare(ring, {"lasers": "4"})
    with pytest.raises(NotApplicable, match="no tiles with lasers"):
        SUMS.prepare(ring, {"collective": "all-reduce"})
