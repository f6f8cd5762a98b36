"""Schedules of circuits that change: their time, and what the simulator refuses."""

from __future__ import annotations

import copy
import json
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from case_families import each
from slow_cases import marked

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.solvers.schedules.schedule_json import configurations_document, read_configurations
from opticoll.solvers.schedules.sequence_schedule import sequence_schedule
from opticoll.solvers.schedules.sequence_simulator import run_configurations

NAME = "topology.sequence"

CASES = {
    "pass": ("servers:n=6,degree=2", {"configurations": 3}),
    "one": ("servers:n=5,degree=2", {"configurations": 1, "directed": True}),
    "step": ("servers:n=6,degree=2", {"configurations": 3, "delay": 0.5, "relays": "step"}),
    "overlap": ("servers:n=6,degree=2", {"configurations": 2, "delay": 0.5, "overlap": True, "directed": True}),
    "startup": ("servers:n=5,degree=1", {"configurations": 3, "directed": True, "startup": 0.5, "delay": 0.25}),
    "startup-overlap": (
        "servers:n=5,degree=1",
        {"configurations": 3, "startup": 0.5, "delay": 0.5, "overlap": True, "directed": True},
    ),
    "overlap-step": (
        "servers:n=5,degree=2",
        {"configurations": 3, "delay": 0.25, "overlap": True, "relays": "step", "charge": "changed"},
    ),
    "demand": ("servers:n=5,degree=2", {"configurations": 2, "delay": 0.1, "demand": "random:1", "start": "ring:5"}),
    "chosen": ("servers:n=5,degree=1", {"configurations": 0, "delay": 0.75, "directed": True}),
}


@cache
def solved(name):
    spec, settings = CASES[name]
    search = {"method": "sequence-search", "starts": 1, "exchanges": 3}
    return oc.solve(NAME, spec, **search, **settings)


def document_of(result):
    made = sequence_schedule(result.plan.problem, result.values)
    return json.loads(json.dumps(configurations_document(result.instance, made)))


def executed(result, document):
    data = result.plan.problem
    return run_configurations(read_configurations(document, Path("schedule"), result.instance, data.n), data)


@each("name", CASES)
def test_the_pieces_of_the_flow_take_the_time_of_the_solution(name):
    result = solved(name)
    schedule = result.schedule()
    assert schedule.check() is None
    assert schedule.time == pytest.approx(result.objective, rel=1e-6)
    assert schedule.verdict.metrics["arrived"] <= schedule.time * (1 + 1e-9)
    assert len(schedule.frame) == schedule.made.transfers
    assert "per shard" not in repr(schedule)


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 7))])
def test_the_stated_model_gives_schedules_as_well(seed):
    settings = {"delay": 0.5, "overlap": bool(seed % 2), "relays": ("pass", "step")[seed // 2 % 2]}
    result = oc.solve(
        NAME, "servers:n=3,degree=1", method="highs", configurations=3, demand=f"random:{seed}", **settings
    )
    schedule = result.schedule()
    assert schedule.check() is None
    assert schedule.time == pytest.approx(result.objective, rel=1e-6)


def test_the_flow_determines_the_chunks():
    with pytest.raises(BadInput, match=r"topology\.sequence: the flow determines the chunks; omit chunks"):
        solved("pass").schedule(chunks=4)


def dropped(document, draw):
    one = document["configurations"][int(draw.integers(len(document["configurations"])))]
    if not one["transfers"]:
        return None
    one["transfers"].pop(int(draw.integers(len(one["transfers"]))))
    return {"missing-chunk", "not-held"}


def earlier(document, draw):
    later = document["configurations"][1:]
    if not later:
        return None
    one = later[int(draw.integers(len(later)))]
    one["start"] -= 0.05
    return {"early"}


def darker(document, draw):
    """A circuit less, in both directions."""
    one = document["configurations"][int(draw.integers(len(document["configurations"])))]
    used = {tuple(move[0][i : i + 2]) for move in one["transfers"] for i in range(len(move[0]) - 1)}
    if not used:
        return None
    u, v = sorted(used)[int(draw.integers(len(used)))]
    for row in one["circuits"]:
        if {row[0], row[1]} == {u, v}:
            row[2] -= 1
    one["circuits"] = [row for row in one["circuits"] if row[2]]
    return {"dark", "rate", "ports"}


def brighter(document, draw):
    one = document["configurations"][int(draw.integers(len(document["configurations"])))]
    if not one["circuits"]:
        return None
    row = one["circuits"][int(draw.integers(len(one["circuits"])))]
    row[2] += 9
    return {"ports"}


def faster(document, draw):
    """A transfer that takes half the time, at twice the rate."""
    busy = [move for one in document["configurations"] for move in one["transfers"]]
    move = busy[int(draw.integers(len(busy)))]
    move[2] = (move[2] + move[3]) / 2
    return {"rate", None}


def larger(document, draw):
    chunk = document["chunks"][int(draw.integers(len(document["chunks"])))]
    chunk[2] *= 1.1
    return {"demand"}


def sooner(document, draw):
    """A transfer before its configuration begins."""
    busy = [(one, move) for one in document["configurations"] for move in one["transfers"]]
    one, move = busy[int(draw.integers(len(busy)))]
    move[2], move[3] = one["start"] - 0.2, one["start"] - 0.1
    return {"dark", "not-held", "rate"}


def endless(document, draw):
    """A last transfer at so low a rate that it is lost in the sum of what the circuits carry."""
    busy = [one["transfers"] for one in document["configurations"] if one["transfers"]][-1]
    busy[int(draw.integers(len(busy)))][3] = 1e308
    return {"dark"}


@pytest.mark.parametrize("change", [dropped, earlier, darker, brighter, faster, larger, sooner, endless])
@pytest.mark.parametrize(
    "name",
    [marked(name, slow=name not in ("pass", "overlap-step")) for name in CASES],
)
def test_changed_schedules_are_refused(name, change):
    result = solved(name)
    document, draw, refusals = document_of(result), np.random.default_rng(0), 0
    for _ in range(4):
        changed = copy.deepcopy(document)
        reasons = change(changed, draw)
        if reasons is None:
            continue
        verdict = executed(result, changed)
        assert (verdict.reason or None) in reasons, verdict.message
        refusals += not verdict.valid
    assert refusals or reasons is None or change is faster


def test_a_chunk_takes_one_circuit_in_a_step():
    stepping = TopologySequence.of_nodes(5, 2, 1, directed=True, relays="step")
    one = solved("one")
    document = document_of(one)
    stored = copy.deepcopy(document)
    for configuration in stored["configurations"]:  # one circuit after the other, stored between them
        configuration["transfers"] = [
            [
                [u, v],
                chunk,
                start + k * (end - start) / (len(path) - 1),
                start + (k + 1) * (end - start) / (len(path) - 1),
            ]
            for path, chunk, start, end in configuration["transfers"]
            for k, (u, v) in enumerate(pairwise(path))
        ]
    for changed, reason in ((document, "relayed"), (stored, "not-held")):
        stated = read_configurations(changed, Path("schedule"), one.instance, 5)
        assert run_configurations(stated, stepping).reason == reason


def test_other_problems_refuse_the_schedule(tmp_path):
    result, path = solved("step"), tmp_path / "s.json"
    facts = result.schedule().save(path)
    assert facts["delivers"]
    assert facts["simulated_time"] == pytest.approx(result.objective)
    spec, settings = CASES["step"]
    record = oc.check(NAME, spec, path, **settings)
    assert record["verified"]
    assert record["metrics"]["over_bound"] == pytest.approx(result.objective / result.bound)
    for other, word in (
        ({"delay": 0.75}, "early"),
        ({"configurations": 4}, "configurations"),
        ({"demand": "random:1"}, "demand"),
        ({"start": "ring:6"}, "start"),
        ({"parallel": 1, "delay": 0.1, "charge": "changed"}, ""),
    ):
        record = oc.check(NAME, spec, path, **{**settings, **other})
        assert record["verified"] == (not word), record["reason"]
        assert word in record["reason"]
    with pytest.raises(BadInput, match="instance_hash does not match"):
        oc.check(NAME, "servers:n=9,degree=2", path, **settings)
    for name, value, message in (
        ("collective", "allreduce", "for allreduce, not for alltoall"),
        ("dealy", 1, "'dealy'"),
    ):
        other = tmp_path / f"{name}.json"
        other.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
        with pytest.raises(BadInput, match=message):
            oc.check(NAME, spec, other, **settings)
    with pytest.raises(BadInput, match="checked as topology"):
        oc.check("alltoall.master", "ring:6", path)
    with pytest.raises(BadInput, match="circuits that change are written"):
        result.schedule().save(tmp_path / "s.xml")


@each(
    ("where", "value", "message"),
    [
        (("chunks",), 1, "chunks must be a list, not a whole number"),
        (("chunks", 0), [0, 1], r"chunks\[0\]"),
        (("chunks", 0), [0, 1, float("nan")], r"chunks\[0\]\[2\]"),
        (("configurations",), [], "length >= 1"),
        (("configurations", 0), [], r"configurations\[0\]"),
        (("configurations", 0, "start"), "0", r"configurations\[0\]\.start"),
        (("configurations", 0, "startup"), 1.0, r"configurations\[0\] has the unknown field 'startup'"),
        (("configurations", 0, "circuits", 0), [0, 99, 1], "vertex 99 is not one of"),
        (("configurations", 0, "circuits", 0), [0, 1, 1.5], r"circuits\[0\]\[2\]"),
        (("configurations", 0, "transfers", 0), [[0], 0, 0, 1], r"transfers\[0\]\[0\]"),
        (("configurations", 0, "transfers", 0), [[0, 1], 10**6, 0, 1], r"transfers\[0\]: the document has 48 chunks"),
    ],
)
def test_malformed_schedules_are_refused(where, value, message):
    result = solved("pass")
    document = document_of(result)
    place = document
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(BadInput, match=message):
        executed(result, document)


@each(("value", "reason"), [([[0, 1, 0], 0, 0, 1], "no-route"), ([[0, 0], 0, 0, 1], "no-route")])
def test_a_transfer_visits_a_node_once(value, reason):
    result = solved("pass")
    document = document_of(result)
    document["configurations"][0]["transfers"].insert(0, value)
    assert executed(result, document).reason == reason
    document["chunks"][0] = [0, 0, 1]
    assert executed(result, document).reason == "demand"
