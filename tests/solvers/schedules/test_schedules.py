"""Schedules that run deliver every shard; corrupted ones are refused, each for its own reason."""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from case_families import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import all_pairs_allreduce, executed, naive_outcome, ring, step
from reference import shortest_routes, solved
from strategies import topologies

from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile, BadInput
from opticoll.formulations.model import states
from opticoll.instances import Topology, parse
from opticoll.solvers.schedules.link_schedule import schedule_routes
from opticoll.solvers.schedules.lowering import lower, schedule_file
from opticoll.solvers.schedules.msccl_xml import read_xml, write_xml
from opticoll.solvers.schedules.program import Place, Program
from opticoll.solvers.schedules.runtimes import TARGETS, exceeded
from opticoll.solvers.schedules.schedule_check import Cost
from opticoll.solvers.schedules.schedule_json import moves_document, routes_document
from opticoll.solvers.schedules.shard_routes import Route, Routes, cut, routes_of
from opticoll.solvers.schedules.verification import verify_document, verify_file, verify_program
from opticoll.solvers.solution_json import check

ROOT = Path(__file__).resolve().parents[3]
#: Reasons for a refusal, as the guide lists them.
REASONS = set(re.findall(r"^\| `([a-z-]+)` \| ", (ROOT / "docs/guide/schedules.md").read_text("utf-8"), re.MULTILINE))

relaxed = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_the_guide_lists_every_reason_for_a_refusal():
    rooms = [*(ROOT / "solvers/schedules").glob("*.py"), *(ROOT / "analysis/foreign_schedules").glob("*.py")]
    given = {reason for path in rooms for reason in re.findall(r'refused\(\s*"([a-z-]+)"', path.read_text("utf-8"))}
    assert given
    assert given <= REASONS


RUNNING = [
    ("alltoall.timestep-mcf", "hypercube:3", {"steps": 3}),
    pytest.param("alltoall.timestep-mcf", "bipartite:4x4", {"steps": 2}, marks=pytest.mark.slow),
    ("alltoall.timestep-mcf", "twisted-hypercube:3", {"steps": 2}),
    ("alltoall.timestep-mcf", "genkautz:n=12,d=4", {"steps": 3, "aggregate": "source"}),
    pytest.param(
        "alltoall.timestep-mcf", "genkautz:n=16,d=4", {"steps": 3, "aggregate": "source"}, marks=pytest.mark.slow
    ),
    ("alltoall.master", "genkautz:n=12,d=4", {}),
    pytest.param("alltoall.master", "genkautz:n=16,d=4", {}, marks=pytest.mark.slow),
    ("alltoall.master", "torus:3x4", {}),
    ("alltoall.link-mcf", "ring:5", {}),
]


def solution(name, spec, parameters):
    data, _, values = solved(name, spec, **parameters)
    if states(data, "repair") and max(data.residuals(values).values()) > 1e-9:
        values = data.repair(values)
    return data, values


def program_of(spec="hypercube:3", **options):
    topology = parse(spec)
    return topology, lower(schedule_routes(topology, shortest_routes(topology), **options).steps, topology)


@pytest.mark.parametrize(("name", "spec", "parameters"), RUNNING)
def test_schedules_deliver_every_shard(name, spec, parameters, tmp_path):
    topology = parse(spec)
    data, values = solution(name, topology, parameters)
    for ending in ("xml", "json", "routes.json"):
        path = tmp_path / f"schedule.{ending}"
        parts, facts, _ = schedule_file(path, name, data, topology, values)
        text = "".join(parts)
        path.write_text(text)
        verdict = verify_file(path, topology)
        assert verdict.valid, verdict
        time = verdict.metrics.get("time", verdict.metrics.get("async_time"))
        assert time <= facts["time"] * (1 + 1e-9)
        assert verdict.metrics["over_bound"] >= 1 - 1e-9
        assert facts["loss"] <= 0.06, facts
        if ending == "xml":
            assert verdict.metrics["redundant"] == 0
            assert verdict.metrics["fits_runtime"]
            assert write_xml(read_xml(path)) == text


def test_exact_shares_lose_nothing():
    topology = parse("bipartite:4x4")
    data, values = solution("alltoall.timestep-mcf", topology, {})
    routes = routes_of("alltoall.timestep-mcf", data, values)
    chunked = cut(topology, routes)
    assert chunked.loss < 1e-6
    coarse = cut(topology, routes, 1)
    assert coarse.chunks == 1
    assert coarse.loss > 0


def test_the_loss_of_whole_chunks_is_reported():
    square = Topology(4, [0, 0, 1, 2, 1, 2, 3, 3], [1, 2, 3, 3, 0, 0, 1, 2], [2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    rest = [r for r in shortest_routes(square).rows() if (r.source, r.target) != (0, 3)]
    arc = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(square.tail, square.head, strict=True))}
    thirds = [Route(0, 3, (arc[0, 1], arc[1, 3]), 2 / 3), Route(0, 3, (arc[0, 2], arc[2, 3]), 1 / 3)]
    whole = cut(square, Routes.of([*rest, *thirds]), 3)
    assert whole.chunks in (1, 2, 3)
    assert whole.carried.sum() == 12 * whole.chunks
    assert whole.time >= whole.fluid_time * (1 - 1e-9)


def test_alpha_decides_how_many_steps():
    topology = parse("torus:3x3")
    eager = schedule_routes(topology, shortest_routes(topology))
    lazy = schedule_routes(topology, shortest_routes(topology), cost=Cost(100.0))
    assert lazy.steps.steps == topology.diameter
    assert eager.time <= lazy.time
    assert lazy.alpha_beta_time == pytest.approx(100.0 * topology.diameter + lazy.time)


# corrupted XML ------------------------------------------------------------------------------------------------


def blocks_with(program, kind):
    return [
        (v, b)
        for v, rank in enumerate(program.ranks)
        for b in rank.blocks.values()
        if any(one.kind == kind for one in b.instructions)
    ]


def first(block, kind):
    return next(i for i, one in enumerate(block.instructions) if one.kind == kind)


def drop_send(program):
    _, block = blocks_with(program, "s")[0]
    del block.instructions[first(block, "s")]


def drop_receive(program):
    _, block = blocks_with(program, "r")[-1]
    block.instructions.pop()


def drop_transfer(program):
    v, block = blocks_with(program, "s")[0]
    other = next(b for b in program.ranks[block.send].blocks.values() if b.receive == v)
    block.instructions.pop()
    other.instructions.pop()


def duplicate_send(program):
    _, block = blocks_with(program, "s")[0]
    block.instructions.append(block.instructions[first(block, "s")])


def duplicate_element(program):
    _, block = blocks_with(program, "s")[0]
    i = first(block, "s")
    block.instructions.insert(i, replace(block.instructions[i], number=i + 1))


def swap_sends(program):
    for _, block in blocks_with(program, "s"):
        plain = [i for i, one in enumerate(block.instructions) if one.kind == "s" and one.source.buffer == "i"]
        if len(plain) > 1:
            i, j = plain[0], plain[-1]
            a, b = block.instructions[i], block.instructions[j]
            block.instructions[i], block.instructions[j] = replace(a, source=b.source), replace(b, source=a.source)
            return


def make_cycle(program):
    """The first send of a rank waits for a receive that the peer serves only after this send."""
    rank = program.ranks[0]
    sends = next(b for b in rank.blocks.values() if b.send >= 0)
    peer = sends.send
    back = next(b for b in rank.blocks.values() if b.receive == peer)
    theirs = next(b for b in program.ranks[peer].blocks.values() if b.send == 0)
    mirror = next(b for b in program.ranks[peer].blocks.values() if b.receive == 0)
    for block, waits, signalling in ((sends, (back.number, 0), back), (theirs, (mirror.number, 0), mirror)):
        block.instructions[0] = replace(block.instructions[0], waits=waits)
        signalling.instructions[0] = replace(signalling.instructions[0], signals=True)


def no_signal(program):
    for rank in program.ranks:
        for block in rank.blocks.values():
            block.instructions = [replace(one, signals=False) for one in block.instructions]


def no_dependency(program):
    for rank in program.ranks:
        for block in rank.blocks.values():
            block.instructions = [replace(one, waits=None) for one in block.instructions]


def own_copy(program):
    rank = program.ranks[2]
    rank.blocks[len(rank.blocks) - 1].instructions.clear()


def other_place(program):
    _, block = blocks_with(program, "r")[0]
    i = next(i for i, one in enumerate(block.instructions) if one.target.buffer == "o")
    one = block.instructions[i]
    block.instructions[i] = replace(one, target=Place("o", (one.target.offset + 1) % program.chunks_per_loop))


def beyond(program):
    _, block = blocks_with(program, "s")[0]
    block.instructions[0] = replace(block.instructions[0], source=Place("i", program.chunks_per_loop))


def two_channels_in_one(program):
    rank = program.ranks[0]
    block = next(b for b in rank.blocks.values() if b.send >= 0)
    rank.blocks[99] = replace(block, number=99)


def longer(program):
    _, block = blocks_with(program, "s")[0]
    block.instructions[0] = replace(block.instructions[0], source=Place("i", 0), count=2)


def elsewhere(program):
    _, block = blocks_with(program, "s")[0]
    block.instructions[0] = replace(block.instructions[0], waits=(77, 0))


def renumbered(program):
    """Changes the text of the file alone: the first step has another number."""


def without_peer(program):
    _, block = blocks_with(program, "s")[0]
    block.send = -1


CORRUPTED = [
    (drop_send, "unmatched-receive"),
    (drop_receive, "unmatched-send"),
    (drop_transfer, None),
    (duplicate_send, "unmatched-send"),
    (duplicate_element, "unmatched-send"),
    (swap_sends, "wrong-chunk"),
    (make_cycle, "deadlock"),
    (no_signal, "deadlock"),
    (no_dependency, "race"),
    (own_copy, "missing-chunk"),
    (other_place, None),
    (beyond, "bounds"),
    (two_channels_in_one, "two-owners"),
    (longer, "count-mismatch"),
    (elsewhere, "dependency"),
    (without_peer, "no-peer"),
    (renumbered, "numbering"),
]


@pytest.mark.parametrize(("change", "reason"), CORRUPTED)
def test_corrupted_programs_are_refused_each_for_its_reason(change, reason, tmp_path):
    topology, program = program_of()
    assert verify_program(program, topology, "alltoall").valid
    change(program)
    path = tmp_path / "x.xml"
    text = write_xml(program)
    if change is duplicate_element:  # as the file would have it: the same element twice
        text = write_xml(program_of()[1])
        line = next(line for line in text.splitlines() if 'type="s"' in line)
        text = text.replace(line, f"{line}\n{line}", 1)
    if change is renumbered:
        text = text.replace('<step s="0"', '<step s="7"', 1)
    path.write_text(text)
    result = check("alltoall.timestep-mcf", "hypercube:3", path)
    assert not result["verified"]
    violation = result["schedule"]["violation"]
    assert violation in REASONS
    assert reason is None or violation == reason, result
    assert result["reason"].startswith(violation)
    assert "\n" not in result["reason"]
    assert result["schedule"]["rank"] is not None


def test_a_transfer_repeated_at_both_ends_is_counted_and_harmless():
    topology, program = program_of("ring:4")
    v, block = blocks_with(program, "s")[0]
    other = next(b for b in program.ranks[block.send].blocks.values() if b.receive == v)
    block.instructions.append(block.instructions[-1])
    other.instructions.append(replace(other.instructions[-1], signals=False))
    verdict = verify_program(program, topology, "alltoall")
    assert verdict.valid, verdict
    assert verdict.metrics["redundant"] == 1
    assert naive_outcome(program, random.Random(1)) == "right"


def test_another_collective_topology_or_size_is_refused():
    topology, program = program_of("ring:4")
    assert verify_program(program, topology, "allgather").reason == "collective"
    assert verify_program(program, parse("ring:5"), "alltoall").reason == "ranks"
    assert verify_program(program, parse("path:4"), "alltoall").reason == "no-arc"


# other collectives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collective", ["allgather", "reducescatter", "allreduce"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_rings_of_the_other_collectives(collective, n, tmp_path):
    program = ring(collective, n)
    path = tmp_path / "ring.xml"
    path.write_text(write_xml(program))
    verdict = verify_program(read_xml(path), parse(f"ring:{n},directed"), collective)
    assert verdict.valid, verdict
    assert naive_outcome(program, random.Random(1)) == "right"


def test_sums_count_every_contribution_once():
    for collective in ("reducescatter", "allreduce"):
        twice = ring(collective, 4)
        block = twice.ranks[1].blocks[0]
        i = next(i for i, one in enumerate(block.instructions) if one.kind == "rrs")
        other = (block.instructions[i].source.offset + 1) % 4
        block.instructions[i] = replace(block.instructions[i], source=Place("i", other))
        assert executed(twice).reason == "wrong-sum"
        again = ring(collective, 4)
        block = again.ranks[0].blocks[0]
        block.instructions.append(step("re", ("i", 0), ("o", 0)))
        assert executed(again).reason == "wrong-sum"


def test_all_pairs_in_place_sends_before_it_receives():
    program = all_pairs_allreduce(4)
    assert executed(program).valid
    assert naive_outcome(program, random.Random(3)) == "right"
    for rank in program.ranks:  # without the waits the sum may overwrite what is still to be sent, or miss something
        last = rank.blocks[3]
        last.instructions = [replace(one, waits=None) for one in last.instructions]
    assert executed(program).reason == "race"


def test_reading_an_empty_buffer_is_reported():
    program = ring("allgather", 3)
    del program.ranks[1].blocks[0].instructions[0]  # its own shard never gets to the output
    verdict = executed(program)
    assert verdict.reason == "uninitialised"
    assert "rank 1" in verdict.message


# moves and routes -----------------------------------------------------------------------------------------


def moves(spec="hypercube:3"):
    topology = parse(spec)
    document = moves_document(topology, schedule_routes(topology, shortest_routes(topology)).steps)
    return topology, json.loads(json.dumps(document))


MOVE_CHANGES = [
    (lambda d: d["steps"][0].pop(), {"missing-chunk", "not-held"}),
    (lambda d: d["steps"][-1].pop(), {"missing-chunk"}),
    (lambda d: d["steps"][0].append(d["steps"][0][0]), {"duplicate"}),
    (lambda d: d["steps"].append([d["steps"][0][0]]), {"duplicate"}),
    (lambda d: d["steps"].reverse(), {"not-held"}),
    (lambda d: d["steps"][0][0].__setitem__(0, [0, 7]), {"no-arc"}),
    (lambda d: d["steps"][0][0].__setitem__(0, [0, 1, 3]), {"no-route"}),
    (lambda d: d["steps"][0][0].__setitem__(2, 1000), {"no-chunk"}),
    (lambda d: d["steps"][0][0].__setitem__(1, [0, 0]), {"no-chunk"}),
    (lambda d: d["steps"][0][0].__setitem__(1, 0), {"no-chunk"}),  # the shard of a rank, not of a pair
    (lambda d: d["steps"][0][0].__setitem__(3, "add"), {"wrong-sum"}),
    (lambda d: d.__setitem__("collective", "alltoall") or d["steps"].clear(), {"missing-chunk"}),
]


@pytest.mark.parametrize(("change", "reasons"), MOVE_CHANGES)
def test_corrupted_moves_are_refused(change, reasons, tmp_path):
    topology, document = moves()
    assert verify_document(document, tmp_path, topology, "alltoall").valid
    change(document)
    verdict = verify_document(document, tmp_path, topology, "alltoall")
    assert not verdict.valid
    assert verdict.reason in reasons, verdict
    assert verdict.rank is not None


ROUTE_CHANGES = [
    (lambda r: r.pop(), "weights"),
    (lambda r: r[0].__setitem__("weight", 0.5), "weights"),
    (lambda r: r[0]["path"].reverse(), "no-route"),
    (lambda r: r[0].__setitem__("path", [0, 7]), None),
    (lambda r: r.append(dict(r[0])), "weights"),
    (lambda r: r[0].__setitem__("target", 0), "no-route"),
]


@pytest.mark.parametrize(("change", "reason"), ROUTE_CHANGES)
def test_corrupted_routes_are_refused(change, reason, tmp_path):
    topology = parse("hypercube:3")
    document = {**routes_document(topology, cut(topology, shortest_routes(topology))), "chunks": None}
    verdict = verify_document(document, tmp_path, topology, "alltoall")
    assert verdict.valid
    assert verdict.metrics["time"] >= 4
    change(document["routes"])
    verdict = verify_document(document, tmp_path, topology, "alltoall")
    assert not verdict.valid
    assert reason is None or verdict.reason == reason


# files of others ----------------------------------------------------------------------------------------------


@cache
def good() -> str:
    """A program's file."""
    return write_xml(program_of("ring:3")[1])


def bad_xml() -> dict[str, str]:
    text = good()
    return {
        "nothing": "",
        "no XML": "hello",
        "cut off": text[: len(text) // 2],
        "another root": "<graph/>",
        "no ranks": '<algo name="x" nchunksperloop="1" ngpus="0" coll="alltoall"/>',
        "fewer ranks than said": good()
        .replace('ngpus="3"', 'ngpus="6"')
        .replace('nchunksperloop="3"', 'nchunksperloop="6"'),
        "odd chunks": text.replace('nchunksperloop="3"', 'nchunksperloop="4"'),
        "unknown collective": text.replace('coll="alltoall"', 'coll="scan"'),
        "unknown step": text.replace('type="s"', 'type="send"', 1),
        "unknown buffer": text.replace('srcbuf="i"', 'srcbuf="x"', 1),
        "no number": text.replace('cnt="1"', 'cnt="one"', 1),
        "no chunks": text.replace('cnt="1"', 'cnt="0"', 1),
        "huge count": text.replace('cnt="1"', 'cnt="99999999999"', 1),
        "huge number": text.replace('cnt="1"', f'cnt="{"9" * 5000}"', 1),
        "huge scratch": text.replace('s_chunks="', 's_chunks="99999999999', 1),
        "a rank twice": text.replace('gpu id="1"', 'gpu id="0"'),
        "a peer beyond": text.replace('send="1"', 'send="9"', 1),
        "a tb in a tb": text.replace("<step ", "<tb ", 1).replace("/>", "></tb>", 1),
        "deep": "<algo>" * 10000,
        "entities": '<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]>' + text,
        "external": '<!DOCTYPE a SYSTEM "file:///etc/passwd">' + text,
        "an encoding nobody knows": '<?xml version="1.0" encoding="nonsense"?>' + text,
    }


@each(("name", "text"), lambda: bad_xml().items())
def test_malformed_xml_is_one_line_and_exit_2(name, text, tmp_path, capfd):
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.raises(BadFile):
        verify_file(path, parse("ring:3"))
    assert main(["check", "alltoall.timestep-mcf", "ring:3", str(path)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert len(err) < 1000


def test_what_a_file_declares_allocates_nothing(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(
        good()
        .replace('s_chunks="0"', 's_chunks="2000000000"')
        .replace('nchunksperloop="3"', 'nchunksperloop="2000000001"')
    )
    assert not verify_file(path, parse("ring:3")).valid


BAD_JSON = [
    {"kind": "tree"},
    {"chunks": 0},
    {"chunks": 10**12},
    {"chunks": "2"},
    {"steps": 3},
    {"steps": [3]},
    {"steps": [[[[0, 1], [0, 1], 0]]]},
    {"steps": [[[[0, 1], [0], 0, "copy"]]]},
    {"steps": [[[[0, 1], [0, 9], 0, "copy"]]]},
    {"steps": [[[[0, 9], [0, 1], 0, "copy"]]]},
    {"steps": [[[[0, 1], [0, 1], -1, "copy"]]]},
    {"steps": [[[[0, 1], [0, 1], 0.5, "copy"]]]},
    {"instance_hash": "0"},
    {"instance_hash": None, "instance": "ring:5"},
    {"demands": [[0, 1, 5]]},
    {"collective": "allgather", "steps": [], "demand": [[0, 1, 5]]},
    {"collective": "scan"},
    {"collective": "broadcast", "steps": []},
    {"collective": "allgather", "root": 0, "steps": []},
    {"collective": "allgather", "steps": [[[[0], 0, 0, "copy"]]]},
    {"collective": "allgather", "steps": [[[[0, 1], 0, 0, "move"]]]},
    {"kind": "routes"},
    {"kind": "routes", "routes": [3]},
    {"kind": "routes", "routes": [{"source": 0}]},
    {"kind": "routes", "routes": [{"source": 0, "target": 1, "path": [0, 1], "weight": "1", "chunks": 1}]},
    {"kind": "routes", "routes": [{"source": 0, "target": 1, "path": [0, 99], "weight": 1, "chunks": 1}]},
    {"kind": "routes", "routes": [{"source": 0, "target": 1, "path": [0, 1], "weight": 10**400, "chunks": 1}]},
    {
        "kind": "routes",
        "routes": [{"source": 0, "target": 1, "path": [0, 1], "weight": 1.0, "chunks": 1, "Layer": 1}],
    },
]


@pytest.mark.parametrize("change", BAD_JSON)
def test_malformed_json_is_refused(change, tmp_path):
    _, document = moves("ring:4")
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**document, **change}))
    with pytest.raises(BadFile):
        check("alltoall.master", "ring:4", path)


def test_schedules_belong_to_topologies_and_alltoall(tmp_path):
    _, program = program_of("ring:3")
    path = tmp_path / "x.xml"
    path.write_text(write_xml(program))
    with pytest.raises(BadInput, match="topolog"):
        check("alltoall.master", "servers:n=12,degree=4,traffic=alltoall", path)
    hosts = parse("hypercube:2+host=1.5")
    schedule = schedule_routes(hosts, shortest_routes(hosts))
    assert verify_program(lower(schedule.steps, hosts), hosts, "alltoall").valid
    assert verify_document(moves_document(hosts, schedule.steps), tmp_path, hosts, "alltoall").valid


# the command line ---------------------------------------------------------------------------------------------


def test_solve_writes_a_schedule_and_check_takes_it(tmp_path, capfd):
    for ending in ("xml", "json", "routes.json"):
        path = tmp_path / f"x.{ending}"
        arguments = ["alltoall.timestep-mcf", "bipartite:4x4", "--set", "steps=2", "--no-store", "--json"]
        assert main(["solve", *arguments, "--schedule", str(path)]) == 0
        record = json.loads(capfd.readouterr().out)["schedule"]
        assert record["delivers"]
        assert record["simulated_time"] <= record["time"] * (1 + 1e-9)
        assert main(["check", "alltoall.timestep-mcf", "bipartite:4x4", str(path), "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["verified"]
        assert main(["check", "alltoall.timestep-mcf", "ring:8", str(path)]) == (3 if ending == "xml" else 2)
        assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["alltoall.master", "ring:4", "--schedule", "x.txt"],
        ["alltoall.child", "ring:4", "--schedule", "x.xml"],
        ["alltoall.broadcast", "ring:4", "--schedule", "x.xml"],
        ["alltoall.broadcast", "ring:4", "--set", "root=4"],
        ["alltoall.all-reduce", "ring:4", "--schedule", "x.routes.json"],
        ["lumorph.rounds", "lightpath:2x2,lasers=2", "--schedule", "x.xml"],
        ["alltoall.all-gather", "ring:4", "--schedule", "x.xml", "--channels", "99"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--channels", "17", "--instances", "2"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--target", "nccl"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--bytes", "1MB:1KB"],
        ["alltoall.master", "ring:4", "--schedule", "x.json", "--target", "rccl"],
        ["alltoall.master", "ring:4", "--schedule", "nowhere/x.xml"],
        ["alltoall.master", "ring:4", "--chunks", "3"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--chunks", "0"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--chunks", "x"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--bytes", "1MB"],
        ["alltoall.master", "ring:4", "--schedule", "x.xml", "--protocol", "TCP"],
    ],
)
def test_what_gives_no_schedule_is_refused_before_the_solve(arguments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["solve", *arguments, "--no-store"]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert not list(tmp_path.glob("x.*"))


# random changes -----------------------------------------------------------------------------------------------


@relaxed
@given(topologies(6), st.sampled_from([0.0, 1.0]), st.integers(1, 4))
def test_random_topologies_get_schedules_that_run(topology, alpha, most):
    schedule = schedule_routes(topology, shortest_routes(topology), cost=Cost(alpha), chunks=most)
    program = lower(schedule.steps, topology)
    verdict = verify_program(program, topology, "alltoall")
    assert verdict.valid, verdict
    assert not exceeded(program, TARGETS["msccl"])
    assert naive_outcome(program, random.Random(0)) == "right"


@cache
def programs() -> list[Program]:
    return [program_of("ring:4")[1], program_of("genkautz:n=6,d=2")[1], ring("allreduce", 4), all_pairs_allreduce(3)]


@settings(max_examples=32, deadline=None)
@given(st.integers(0, 3), st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_whatever_is_accepted_is_right_in_any_order(which, seed, changes):
    """Random corruption is refused, or harmless: then a naive executor gets it right in every order it tries."""
    program, chance = copy.deepcopy(programs()[which]), random.Random(seed)
    for _ in range(changes):
        block = chance.choice([b for rank in program.ranks for b in rank.blocks.values() if b.instructions])
        i = chance.randrange(len(block.instructions))
        j = chance.randrange(len(block.instructions))
        one = block.instructions[i]
        change = chance.randrange(7)
        if change == 0:
            del block.instructions[i]
        elif change == 1:
            block.instructions.insert(j, one)
        elif change == 2:
            block.instructions[i], block.instructions[j] = block.instructions[j], one
        elif change == 3:
            block.instructions[i] = replace(one, waits=None)
        elif change == 4:
            block.instructions[i] = replace(one, signals=not one.signals)
        elif change == 5:
            block.instructions[i] = replace(one, source=Place(one.source.buffer, max(one.source.offset, 0) ^ 1))
        else:
            block.instructions[i] = replace(one, target=Place(one.target.buffer, max(one.target.offset, 0) ^ 1))
    verdict = executed(program)
    if verdict.valid:
        assert all(naive_outcome(program, random.Random(seed + k)) == "right" for k in range(8))
    else:
        assert verdict.reason in REASONS


@pytest.mark.slow
def test_a_large_schedule_delivers():
    topology = parse("genkautz:n=64,d=4")
    data, values = solution("alltoall.master", topology, {})
    schedule = schedule_routes(topology, routes_of("alltoall.master", data, values))
    assert verify_program(lower(schedule.steps, topology), topology, "alltoall").valid
    assert schedule.time <= schedule.fluid_time * 1.02


def test_transfers_are_sorted_and_loads_add_up():
    topology = parse("torus:3x3")
    steps = schedule_routes(topology, shortest_routes(topology)).steps
    keys = np.column_stack([steps.step, steps.vertices[::2], steps.vertices[1::2], steps.shard, steps.chunk])
    assert (np.lexsort(keys.T[::-1]) == np.arange(steps.moves)).all()
    hops = topology.hops[:, topology.terminals].sum()
    assert steps.moves == hops * steps.chunks
