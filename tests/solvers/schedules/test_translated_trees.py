"""Trees that translations copy: closed forms, exhaustive answers, and schedules executed by two programs."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from moves_replay import replayed
from reference import shortest_routes
from tree_packing_checks import violations

from opticoll.formulations.flows.worst_cuts import least_time, network_of, reversed_arcs
from opticoll.instances import Topology, parse
from opticoll.instances.symmetry import arc_image
from opticoll.instances.translations import translations
from opticoll.solvers.schedules import tree_packing
from opticoll.solvers.schedules.collective_steps import COLLECTIVES, CollectiveSteps, schedule_collective
from opticoll.solvers.schedules.link_schedule import schedule_routes
from opticoll.solvers.schedules.moves_execution import run_moves
from opticoll.solvers.schedules.schedule_check import Cost
from opticoll.solvers.schedules.translated_trees import JointOrbits, PricedTrees, arborescence
from opticoll.solvers.schedules.tree_packing import pack

#: Time of all-gather [shards / link bandwidth] and trees per shard.
CLOSED = {
    "torus:4x8": ("31/4", 4),
    "torus:3x3x4": ("35/6", 6),
    "hypercube:6": ("21/2", 2),
    "complete:32": ("1", 1),
    "circulant:n=40,offsets=1x3x7": ("13/2", 2),
    "nvswitch:boxes=8": ("7/50", 1),
    "nvswitch:boxes=5,gpus=7,inside=100,outside=50": ("17/75", 3),
    "torus:6x6+host=2.0": ("35/2", 1),
}


@each("spec", CLOSED)
def test_copies_of_trees_take_the_time_of_the_worst_cut(spec):
    topology = parse(spec)
    time, trees = CLOSED[spec]
    for network in (topology, reversed_arcs(topology)):
        packing = pack(network)
        assert (packing.time, packing.bound, packing.chunks) == (Fraction(time), Fraction(time), trees)
        assert len(packing.images) > 1
        assert max(violations(packing).values()) < 1e-12


def test_copies_of_wrong_trees_are_noticed():
    packing = pack(parse("torus:4x8"))
    first = packing.trees[0]
    lacking = replace(first, paths=first.paths[:-1])
    assert violations(replace(packing, trees=(lacking, *packing.trees[1:])))["spanning"] > 0
    assert violations(replace(packing, images=packing.images[1:]))["roots"] > 0
    assert violations(replace(packing, time=packing.time / 2))["time"] > 0.5


@each("spec", ["torus:3x4", "petersen", "ring:7", "nvswitch:boxes=3,gpus=4", "mesh:3x3", "torus:4x4+fail=1"])
def test_translations_are_a_group_of_automorphisms_that_move_every_rank(spec):
    topology = parse(spec)
    images = translations(topology)
    members = {image.tobytes() for image in images}
    assert np.array_equal(images[0], np.arange(topology.n))
    assert len(members) == len(images)
    for image in images[1:]:
        assert arc_image(topology, image) is not None
        assert (image[topology.terminals] != topology.terminals).all()
    assert all(first[second].tobytes() in members for first, second in product(images, repeat=2))


def test_few_roots_are_found():
    for spec, count in (("torus:5x7", 35), ("nvswitch:boxes=6,gpus=4", 24), ("torus:4x4+fail=1", 1), ("path:4", 2)):
        assert len(translations(parse(spec))) == count


@st.composite
def priced_digraphs(draw):
    """A digraph of at most 5 vertices with whole costs, and a root."""
    n = draw(st.integers(2, 5))
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    arcs = draw(st.lists(st.tuples(st.sampled_from(pairs), st.integers(0, 6)), min_size=1, max_size=14))
    return n, draw(st.integers(0, n - 1)), arcs


def cheapest(n, root, arcs):
    """The cost of a minimum arborescence by trying one arc into every other vertex; None if there is none."""
    best = None
    into = [[i for i, ((_, v), _) in enumerate(arcs) if v == w] for w in range(n) if w != root]
    for chosen in product(*into):
        parent = {arcs[i][0][1]: arcs[i][0][0] for i in chosen}
        for v in parent:
            seen = set()
            while v != root and v not in seen:
                seen.add(v)
                v = parent[v]
            if v != root:
                break
        else:
            cost = sum(arcs[i][1] for i in chosen)
            best = cost if best is None else min(best, cost)
    return best


@settings(max_examples=150, deadline=None)
@given(priced_digraphs())
def test_arborescences_are_the_cheapest(case):
    n, root, arcs = case
    tail, head = (np.array([ends[i] for ends, _ in arcs]) for i in (0, 1))
    cost = np.array([float(c) for _, c in arcs])
    into = arborescence(n, root, tail, head, cost)
    best = cheapest(n, root, arcs)
    assert (into is None) == (best is None)
    if into is not None:
        taken = np.delete(into, root)
        assert into[root] == -1
        assert np.array_equal(head[taken], np.delete(np.arange(n), root))
        assert cost[taken].sum() == best
        assert cheapest(n, root, [arcs[i] for i in taken.tolist()]) == best


@each("spec", ["ring:6", "nvswitch:boxes=2,gpus=3", "nvswitch:boxes=3,gpus=2,inside=60", "hypercube:3+host=1.0"])
def test_the_program_over_trees_meets_its_bound_and_the_worst_cut(spec):
    """In these networks no switch has to copy; roots that are not translated are priced one by one."""
    topology = parse(spec)
    time = float(least_time(topology, [1] * topology.num_ranks)[0])
    network = network_of(topology, (1,) * topology.num_ranks)
    for images in (translations(topology), np.arange(topology.n)[None]):
        priced = PricedTrees(JointOrbits(network, images))
        assert priced.value / float(network.unit) == pytest.approx(time, rel=1e-6)
        assert priced.bound <= priced.value * (1 + 1e-9)
        assert priced.bound == pytest.approx(priced.value, rel=1e-6)


def test_switches_that_cannot_copy_cost_time_in_the_program_over_trees():
    star = Topology(4, [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], [1.0] * 3 + [3.0] * 3, terminals=[0, 1, 2])
    priced = PricedTrees(JointOrbits(network_of(star, (1, 1, 1)), np.arange(4)[None]))
    assert priced.value == pytest.approx(2.0)  # six shards leave three ranks, each at rate 1; the worst cut is 1
    assert priced.bound == pytest.approx(2.0)


@each("name", [name for name in COLLECTIVES if name != "alltoall.broadcast"])
@each("spec", ["torus:4x4", "nvswitch:boxes=3,gpus=4", "hypercube:3+host=2.0"])
def test_schedules_of_copies_are_executed_by_two_programs(name, spec, monkeypatch):
    monkeypatch.setattr(tree_packing, "MANY_RANKS", 2)
    tree_packing._pack.cache_clear()
    topology = parse(spec)
    result = schedule_collective(name, topology, most=4)
    tree_packing._pack.cache_clear()
    verdict = run_moves(result.steps, topology)
    assert verdict.valid, verdict.message
    assert replayed(result.steps, topology) == ("", None, None)
    assert verdict.metrics["time"] == pytest.approx(result.time)
    assert result.steps.time(topology, Cost(1.0)) == pytest.approx(result.steps.steps + result.time)


def test_sums_and_copies_whose_translations_differ_are_scheduled_together():
    topology = parse("genkautz:n=34,d=4")
    spread, summed = pack(topology, most=1), pack(reversed_arcs(topology), most=1)
    assert (len(spread.images), len(summed.images)) == (2, 1)
    whole = spread.expanded()
    assert max(violations(whole).values()) < 1e-12
    assert np.array_equal(whole.load(), spread.load())
    verdict = run_moves(schedule_collective("alltoall.all-reduce", topology, most=1).steps, topology)
    assert verdict.valid, verdict.message


@each("name", [*COLLECTIVES, "alltoall"])
@each("spec", ["ring:4", "nvswitch:boxes=2,gpus=2"])
def test_both_programs_refuse_what_is_changed_for_the_same_reason(name, spec):
    topology = parse(spec)
    if name == "alltoall":
        right = schedule_routes(topology, shortest_routes(topology), chunks=2).steps
    else:
        right = schedule_collective(name, topology, 0 if name == "alltoall.broadcast" else None, most=2).steps
    shards = [0, 1, 9] if name != "alltoall" else [(0, 1), (3, 1), (1, 1)]
    steps, reasons = [*map(list, right.by_step())], set()
    for seed in range(60):
        draw = random.Random(seed)
        changed = [list(step) for step in steps]
        for _ in range(draw.randint(1, 2)):
            step = draw.choice([one for one in changed if one])
            i = draw.randrange(len(step))
            move = step[i]
            change = draw.randrange(7)
            if change == 0:
                del step[i]
            elif change == 1:
                step[i] = move._replace(path=move.path[::-1])
            elif change == 2:
                step[i] = move._replace(
                    path=draw.choice([(0, 0), (0, 1, 0), (0, 1, 2), move.path + move.path[:1], (0, 2)])
                )
            elif change == 3:
                step[i] = move._replace(chunk=draw.choice([0, 1, 7]), shard=draw.choice(shards))
            elif change == 4:
                step[i] = move._replace(adds=not move.adds)
            elif change == 5:
                draw.choice(changed).append(move)
            else:
                other = draw.choice(changed)
                other.append(step.pop(i))
        schedule = CollectiveSteps.of(right.collective, right.chunks, changed, right.root)
        verdict, expected = run_moves(schedule, topology), replayed(schedule, topology)
        assert (verdict.reason, verdict.rank, verdict.chunk) == expected, (seed, verdict.message)
        reasons.add(verdict.reason)
    assert len(reasons) >= 4


def test_many_sums_are_replayed_in_parts(monkeypatch):
    topology = parse("torus:3x3")
    steps = schedule_collective("alltoall.all-reduce", topology, most=4).steps
    whole = run_moves(steps, topology)
    monkeypatch.setattr("opticoll.solvers.schedules.moves_execution.MOST_BYTES", 160)
    assert run_moves(steps, topology) == whole
    kept = [[move for move in step if (move.shard, move.chunk) != (8, 0)] for step in steps.by_step()]
    lacking = CollectiveSteps.of(steps.collective, steps.chunks, kept)
    verdict = run_moves(lacking, topology)
    assert (verdict.reason, verdict.rank, verdict.chunk) == replayed(lacking, topology)


@pytest.mark.slow
def test_five_hundred_ranks_are_scheduled_in_the_time_of_the_worst_cut():
    for spec, time in (("torus:8x8x8", "511/6"), ("nvswitch:boxes=64", "63/50")):
        topology = parse(spec)
        result = schedule_collective("alltoall.all-gather", topology)
        verdict = run_moves(result.steps, topology)
        assert verdict.valid, verdict.message
        assert float(Fraction(time)) <= verdict.metrics["time"] * (1 + 1e-12) <= 1.02 * float(Fraction(time))
