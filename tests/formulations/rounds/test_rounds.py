"""Collectives, schedules of rounds, and their check: known schedules pass, every corruption is refused by its block."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.errors import BadInput
from opticoll.formulations.rounds.collectives import (
    COLLECTIVES,
    ROOTED,
    Collective,
    collective,
    phases,
    read_collective,
)
from opticoll.formulations.rounds.round_schedule import (
    BLOCKS,
    Limits,
    chained,
    direct,
    from_values,
    opposite_arcs,
    together,
    violations,
)
from opticoll.instances import parse

NONE = dict.fromkeys(BLOCKS, 0.0)


def ring_gather(n):
    """The all-gather around a ring, one neighbour a round: what v - r sent first arrives at v + 1 in round r."""
    topology = parse(f"ring:{n}")
    arc = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True))}
    when, v = (a.ravel() for a in np.meshgrid(np.arange(n - 1), np.arange(n), indexing="ij"))
    target = (v + 1) % n
    arcs = [arc[int(s), int(d)] for s, d in zip(v, target, strict=True)]
    return topology, direct(when, v, target, (v - when) % n, 0 * v, np.arange(v.size + 1), arcs)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_the_ring_gathers_scatters_sums_and_all_reduces(n):
    topology, gather = ring_gather(n)
    turned = gather.backwards(opposite_arcs(topology, topology))
    assert violations(topology, collective("all-gather", n), Limits(1), gather) == NONE
    assert violations(topology, collective("reduce-scatter", n), Limits(1), turned) == NONE
    both = chained([turned, gather])
    assert violations(topology, collective("all-reduce", n), Limits(1), both) == NONE
    assert both.rounds == 2 * (n - 1)


def test_named_arrays_bring_a_schedule_back():
    topology, gather = ring_gather(5)
    again = from_values(gather.values())
    assert again is not None
    assert violations(topology, collective("all-gather", 5), Limits(1), again) == NONE
    assert from_values({}) is None
    for name, array in gather.values().items():
        for broken in (array + 0.5, np.append(array, np.nan), array[None], array * 0 + 1e300, array[:-1]):
            values = {**gather.values(), name: broken}
            result = violations(topology, collective("all-gather", 5), Limits(1), from_values(values))
            assert max(result.values()) > 0, name


def changed(schedule, name, index, value):
    array = getattr(schedule, name).copy()
    array[index] = value
    return replace(schedule, **{name: array})


def test_every_corruption_is_refused_by_its_own_block():
    n = 6
    topology, gather = ring_gather(n)
    wanted, limits = collective("all-gather", n), Limits(1)

    def refused(schedule, block):
        assert violations(topology, wanted, limits, schedule)[block] > 0

    every, transfers = np.arange(gather.circuits), np.arange(gather.transfers)
    refused(gather.taken(every, transfers[1:]), "post")
    refused(gather.taken(every[1:], transfers), "payload")
    refused(changed(gather, "transfer_chunk", 7, 3), "causality")
    refused(together([gather, gather]), "waveguides")
    refused(together([gather, gather]), "lasers")
    refused(together([gather, gather]), "photodiodes")
    refused(together([gather, gather]), "redundant")
    refused(changed(gather, "circuit_wavelength", 0, 1), "paths")
    refused(changed(gather, "circuit_arcs", 0, int(gather.circuit_arcs[5])), "paths")
    refused(changed(gather, "circuit_target", 0, 4), "paths")
    refused(changed(gather, "transfer_adds", 0, True), "redundant")
    refused(changed(gather, "transfer_round", transfers[-1], 0), "causality")
    refused(changed(gather, "transfer_round", n, 0), "causality")  # sent on in the round in which it arrives
    for name, bad in (("circuit_round", -1), ("transfer_chunk", n), ("circuit_arcs", topology.arcs)):
        assert violations(topology, wanted, limits, changed(gather, name, 0, bad)) == dict.fromkeys(BLOCKS, np.inf)
    assert violations(topology, wanted, limits, None) == dict.fromkeys(BLOCKS, np.inf)


def test_rounds_may_be_idle():
    topology = parse("ring:4")
    arcs = [int(np.flatnonzero((topology.tail == 0) & (topology.head == 1))[0])]
    wanted = Collective("one", 4, 1, np.array([[0, 0]]), np.array([[0, 1]]))
    late = direct([3], [0], [1], [0], [0], [0, 1], arcs)
    assert violations(topology, wanted, Limits(1), late) == NONE
    assert late.rounds == 4
    far = direct([10**9], [0], [1], [0], [0], [0, 1], arcs)
    assert violations(topology, wanted, Limits(1), far) == dict.fromkeys(BLOCKS, np.inf)


def test_a_path_must_be_simple():
    topology = parse("ring:4")
    arc = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True))}
    wanted = Collective("one", 4, 1, np.array([[0, 0]]), np.array([[0, 2]]))
    good = direct([0], [0], [2], [0], [0], [0, 2], [arc[0, 1], arc[1, 2]])
    assert violations(topology, wanted, Limits(1), good) == NONE
    round_trip = [arc[0, 1], arc[1, 0], arc[0, 1], arc[1, 2]]
    result = violations(topology, wanted, Limits(1, waveguides=2), direct([0], [0], [2], [0], [0], [0, 4], round_trip))
    assert result["paths"] == 1
    gap = direct([0], [0], [2], [0], [0], [0, 2], [arc[0, 1], arc[3, 2]])
    assert violations(topology, wanted, Limits(1), gap)["paths"] == 1


def test_sums_count_every_contribution_once():
    n = 4
    topology, gather = ring_gather(n)
    turned = gather.backwards(opposite_arcs(topology, topology))
    wanted = collective("reduce-scatter", n)
    every, transfers = np.arange(turned.circuits), np.arange(turned.transfers)
    assert violations(topology, wanted, Limits(1), turned.taken(every, transfers[1:]))["post"] > 0
    # Every sum sent on before it is complete.
    shuffled = changed(turned, "transfer_round", slice(None), turned.rounds - 1 - turned.transfer_round)
    assert violations(topology, wanted, Limits(1, load=None), shuffled)["post"] > 0
    copied = changed(turned, "transfer_adds", slice(None), False)
    assert violations(topology, wanted, Limits(1), copied)["post"] > 0
    twice = together([turned, turned.moved(turned.rounds)])
    assert violations(topology, wanted, Limits(1), twice)["redundant"] > 0


@pytest.mark.parametrize(
    ("moves", "block"),
    [
        ([(0, 1, True), (1, 2, False)], None),
        ([(1, 0, True), (0, 1, False), (1, 2, False)], None),
        ([(2, 1, True), (0, 1, True), (1, 2, False)], "causality"),  # 2 has no contribution
        ([(0, 1, True), (0, 1, False), (1, 0, False), (1, 2, False)], "redundant"),  # the sum already has 0's
    ],
)
def test_sums_of_two_contributions_on_a_line(moves, block):
    """One move a round, of the contributions of 0 and 1 whose sum 2 requires."""
    topology = parse("path:3")
    wanted = Collective("one", 3, 1, np.array([[0, 0], [0, 1]]), np.array([[0, 2]]), summing=True)
    source, target, adds = map(list, zip(*moves, strict=True))
    arcs = [
        int(np.flatnonzero((topology.tail == u) & (topology.head == v))[0]) for u, v in zip(source, target, strict=True)
    ]
    rounds, zeros = np.arange(len(moves)), np.zeros(len(moves), dtype=int)
    schedule = direct(rounds, source, target, zeros, zeros, np.arange(len(moves) + 1), arcs, adds=np.array(adds))
    result = violations(topology, wanted, Limits(1), schedule)
    assert {name for name, count in result.items() if count and name != "post"} == ({block} if block else set())
    assert (result["post"] > 0) == (block == "redundant")


def test_wider_machines_take_more_in_a_round():
    topology, gather = ring_gather(4)
    crowd = together([gather, changed(gather, "circuit_wavelength", slice(None), 1)])
    wanted = collective("all-gather", 4)
    result = violations(topology, wanted, Limits(2), crowd)
    assert result["waveguides"] == result["lasers"] == 0
    assert violations(topology, wanted, Limits(2, ports=None), crowd)["lasers"] == 0
    double = together([gather, gather])
    assert violations(topology, wanted, Limits(1, waveguides=2, ports=None), double)["waveguides"] == 0


@each("name", COLLECTIVES)
@each("pieces", [1, 2])
def test_collectives_say_what_they_mean(name, pieces):
    n, ranks = 7, [1, 2, 4, 6]
    p = len(ranks)
    result = collective(name, n, ranks, root=2 if name in ROOTED else 0, pieces=pieces)
    one_shard, per_rank = pieces * (p - 1), pieces * p * (p - 1)
    deliveries = {
        "broadcast": one_shard,
        "scatter": one_shard,
        "gather": one_shard,
        "all-gather": per_rank,
        "all-to-all": per_rank,
        "reduce": 0,
        "reduce-scatter": 0,
        "all-reduce": 0,
    }
    assert len(result.deliveries) == deliveries[name]
    assert set(np.unique(result.pre[:, 1])) | set(np.unique(result.post[:, 1])) <= set(ranks)
    assert result.summing == name.startswith(("reduce", "all-reduce"))
    assert [phase.backwards for phase in phases(result)] == {True: [True], False: [False]}.get(result.summing, []) + (
        [False] if name == "all-reduce" else []
    )
    moved = sum(len(phase.copying.deliveries) for phase in phases(result))
    assert moved == {"reduce": one_shard, "reduce-scatter": per_rank, "all-reduce": 2 * per_rank}.get(
        name, deliveries[name]
    )


@settings(max_examples=12, deadline=None)
@given(st.permutations(range(6)), st.sampled_from(COLLECTIVES))
def test_renaming_vertices_renames_a_collective(order, name):
    result = collective(name, 6)
    renamed = result.relabelled(order)
    assert np.array_equal(np.sort(renamed.holders), np.sort(result.holders))
    assert np.array_equal(renamed.relabelled(np.argsort(order)).pre, result.pre)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("all-gater", 4), "all-gather"),
        (("broadcast", 4, [0, 0, 1]), "distinct"),
        (("broadcast", 4, [0, 9]), "distinct"),
        (("broadcast", 4, [0]), "at least 2"),
        (("file:nowhere.json", 4), "cannot be read"),
    ],
)
def test_bad_collectives_are_refused(arguments, says):
    with pytest.raises(BadInput, match=says):
        collective(*arguments)


@pytest.mark.parametrize("keywords", [{"root": 9}, {"pieces": 0}, {"pieces": 10**9}, {"root": -1}])
def test_bad_sizes_are_refused(keywords):
    with pytest.raises(BadInput):
        collective("all-gather", 4, **keywords)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"chunks": [{"pre": [], "post": [1]}]}, "no vertex holds"),
        ({"chunks": [{"pre": [0], "post": [4]}]}, "post contains vertex 4; use 0..3"),
        (
            {"chunks": [{"pre": [0], "post": [True]}]},
            r"post\[0\] must be a whole number, not true or false",
        ),
        ({"chunks": [{"pre": [0]}]}, r"chunks\[0\] lacks the field 'post'"),
        ({"chunks": [{"pre": [0], "post": [1], "pots": []}]}, "unknown field 'pots'"),
        ({"chunks": [], "name": "x"}, "length >= 1"),
        ({"chunk": []}, "unknown field 'chunk'"),
        ([], "must be an object, not a list"),
        ({"chunks": [{"pre": [0], "post": [1]}], "sums": True}, "unknown field 'sums'"),
    ],
)
def test_bad_files_of_collectives_are_refused(message, says, tmp_path):
    path = tmp_path / "collective.json"
    path.write_text(json.dumps(message))
    with pytest.raises(BadInput, match=says):
        read_collective(path, 4)
    path.write_text("[" * 100_000)
    with pytest.raises(BadInput, match="not valid JSON"):
        read_collective(path, 4)
    path.write_text('{"chunks": [], "chunks": [{"pre": [0], "post": [1]}]}')
    with pytest.raises(BadInput, match="occurs twice"):
        read_collective(path, 4)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_read_as_a_collective(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        read_collective(tmp_path / "pipe", 4)


def test_a_collective_from_a_file_of_the_user(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "chunks": [{"pre": [0, 1], "post": [2, 3, 1]}]}))
    for stated, word in (({"root": 1}, "root=1"), ({"pieces": 2}, "pieces=2")):
        with pytest.raises(BadInput, match=f"{word} has no effect; the file states all chunks"):
            collective(f"file:{path}", 4, **stated)
    result = collective(f"file:{path}", 4)
    assert result.deliveries.tolist() == [[0, 2], [0, 3]]
    assert result.name == "mine"
    path.write_text(json.dumps({"sum": True, "chunks": [{"pre": [0, 1, 2], "post": [3]}]}))
    (phase,) = phases(collective(f"file:{path}", 4))
    assert phase.backwards
    assert phase.copying.pre.tolist() == [[0, 3]]
    assert phase.copying.deliveries.tolist() == [[0, 0], [0, 1], [0, 2]]
