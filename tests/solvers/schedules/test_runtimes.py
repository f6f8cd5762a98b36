"""Programs keep within limits of runtimes, data pass through switches, files of others are judged."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import executed, two_phase_allreduce
from reference import shortest_routes

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile, BadInput, NotApplicable
from opticoll.instances import Topology, parse
from opticoll.solvers.schedules import interpreter
from opticoll.solvers.schedules.link_schedule import schedule_routes, ways_between
from opticoll.solvers.schedules.lowering import XmlOptions, lower
from opticoll.solvers.schedules.msccl_xml import read_xml, write_xml
from opticoll.solvers.schedules.program import Place, Program, ThreadBlock
from opticoll.solvers.schedules.runtimes import TARGETS, exceeded
from opticoll.solvers.schedules.schedule_json import moves_document
from opticoll.solvers.schedules.schedule_kernels import fair_rates
from opticoll.solvers.schedules.shard_routes import Route, Routes, cut
from opticoll.solvers.schedules.verification import execute_program, verify_document, verify_file, verify_program


def boxes(ranks: int = 8, per_box: int = 4) -> Topology:
    """Boxes of ranks behind a switch each (capacity 4), and one switch between all ranks (capacity 1)."""
    many = ranks // per_box
    up = [(r, ranks + r // per_box, 4.0) for r in range(ranks)] + [(r, ranks + many, 1.0) for r in range(ranks)]
    arcs = up + [(v, u, c) for u, v, c in up]
    tail, head, capacity = zip(*arcs, strict=True)
    return Topology(ranks + many + 1, tail, head, capacity, terminals=list(range(ranks)))


def program_of(spec: str, options: XmlOptions | None = None, **chosen) -> tuple[Topology, Program]:
    topology = parse(spec)
    return topology, lower(
        schedule_routes(topology, shortest_routes(topology), **chosen).steps, topology, options=options
    )


# limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("spec", ["complete:40", "torus:3x4", "ring:9"])
def test_programs_keep_the_limits_of_their_target(target, spec):
    topology, program = program_of(spec, XmlOptions(target), chunks=4 if spec == "ring:9" else 1, budgets=(1,))
    assert not exceeded(program, TARGETS[target])
    verdict = verify_program(program, topology, "alltoall")
    assert verdict.valid, verdict
    assert target in verdict.metrics["fits_runtime"]
    assert target not in verdict.metrics["exceeds"]


def test_long_sequences_are_spread_over_channels():
    _, narrow = program_of("ring:16", XmlOptions("msccl"), chunks=4, budgets=(1,))
    _, wide = program_of("ring:16", XmlOptions("rccl"), chunks=4, budgets=(1,))
    channels = [{b.channel for rank in program.ranks for b in rank.blocks.values()} for program in (narrow, wide)]
    assert len(channels[1]) > len(channels[0])
    assert "steps in a thread block (at most 64)" in exceeded(narrow, TARGETS["rccl"])[0]


def test_a_chunk_that_is_sent_before_it_arrives_has_no_program():
    topology = parse("ring:5")
    steps = schedule_routes(topology, shortest_routes(topology), chunks=1).steps
    with pytest.raises(NotApplicable, match="before receiving it"):
        lower(replace(steps, step=np.zeros_like(steps.step)), topology)


def test_what_does_not_fit_says_by_how_much():
    _, program = program_of("complete:66", XmlOptions("rccl"), chunks=1, budgets=(None,))
    excess = exceeded(program, TARGETS["rccl"])
    assert excess == ["66 thread blocks in a rank (at most 64)"]
    assert exceeded(program, TARGETS["msccl"]) == ["no buffer size from minBytes=0 to maxBytes=0"]


def test_instances_and_protocol_and_sizes():
    options = XmlOptions("msccl", protocol="LL", instances=2, channels=2, sizes=(1024, 4096))
    topology, program = program_of("torus:3x3", options, chunks=1)
    assert program.chunks == 2
    assert {b.channel for rank in program.ranks for b in rank.blocks.values()} == {0, 1, 2, 3}
    text = write_xml(program)
    assert 'minBytes="1024" maxBytes="4096"' in text
    assert 'proto="LL"' in text
    verdict = verify_program(program, topology, "alltoall")
    assert verdict.valid, verdict
    one = verify_program(program_of("torus:3x3", chunks=1)[1], topology, "alltoall")
    assert verdict.time <= one.time + 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "nccl"},
        {"protocol": "Fast"},
        {"channels": 0},
        {"instances": 0},
        {"sizes": (4, 4)},
        {"sizes": (-1, 4)},
    ],
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(BadInput):
        XmlOptions(**wrong)


def test_names_are_those_that_runtimes_read(tmp_path):
    topology = parse("ring:4")
    made = oc.solve("alltoall.reduce-scatter", topology).schedule()
    for target, name in (("msccl", "reduce_scatter"), ("rccl", "reducescatter"), ("azure-msccl", "reducescatter")):
        path = tmp_path / f"{target}.xml"
        made.save(path, target=target)
        assert f'coll="{name}"' in path.read_text()
        verdict = verify_file(path, topology, "reducescatter")
        assert (target in verdict.metrics["fits_runtime"], "msccl" in verdict.metrics["fits_runtime"]) == (
            True,
            target == "msccl",
        )
    program = replace(program_of("ring:4")[1], name='a "b" ' * 40)
    path.write_text(write_xml(program))
    assert f'name="{("a {0}b{0} ".format(chr(39)) * 40)[:63]}"' in path.read_text()
    assert write_xml(read_xml(path)) == path.read_text()


def test_multiples_of_elements():
    _, program = program_of("ring:5", chunks=3)
    assert [TARGETS[name].multiple_of(program) for name in ("msccl", "rccl", "azure-msccl")] == [3, 3, 15]


def test_copies_that_runtimes_skip_are_skipped(tmp_path):
    topology, program = program_of("ring:4")
    path = tmp_path / "x.xml"
    text = write_xml(program)
    copy = '<copy i_off="0" o_off="0"><extra a="1"/></copy>'
    path.write_text(re.sub(r"(<gpu [^>]*>)", rf"\1{copy}", text))
    assert verify_file(path, topology).valid
    assert write_xml(read_xml(path)) == text
    path.write_text(text.replace("<gpu ", "<copy/><gpu ", 1))
    with pytest.raises(BadFile, match="copy"):
        read_xml(path)


# chunks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [1, 3, 16])
def test_a_number_of_chunks_is_exact(chunks):
    topology = parse("torus:3x3")
    assert cut(topology, shortest_routes(topology), chunks).chunks == chunks
    assert schedule_routes(topology, shortest_routes(topology), chunks=chunks).steps.chunks == chunks


def test_another_decomposition_is_tried_where_one_loses():
    topology = parse("torus:3x3")
    arc = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True))}
    halves = []
    for route in shortest_routes(topology).rows():
        if len(route.arcs) == 1:
            halves.append(route)
            continue
        s, t = route.source, route.target
        for v in sorted({int(topology.head[a]) for a in range(topology.arcs) if topology.tail[a] == s}):
            if (v, t) in arc:
                halves.append(Route(s, t, (arc[s, v], arc[v, t]), 0.5))
    chunked = cut(topology, Routes.of(halves))
    assert chunked.fluid_time == pytest.approx(3.0)
    assert chunked.loss < 1e-6
    assert chunked.chunks == 1
    assert chunked.prices[1] == pytest.approx(3.0)


@pytest.mark.parametrize("spec", ["torus:4x4", "hypercube:3", "genkautz:n=8,d=2"])
def test_prices_cover_what_was_tried_and_time_is_that_of_the_chunks(spec):
    topology = parse(spec)
    chunked = cut(topology, shortest_routes(topology), (1, 2, 4))
    assert set(chunked.prices) <= {1, 2, 4}
    assert chunked.time == pytest.approx(chunked.prices[chunked.chunks])
    load = np.zeros(topology.arcs)
    per_pair: dict[tuple[int, int], int] = {}
    for route, count in zip(chunked.routes.rows(), chunked.carried.tolist(), strict=True):
        load[list(route.arcs)] += count / chunked.chunks
        per_pair[route.source, route.target] = per_pair.get((route.source, route.target), 0) + count
    assert set(per_pair.values()) == {chunked.chunks}
    assert len(per_pair) == topology.n * (topology.n - 1)
    assert chunked.time == pytest.approx(float((load / topology.capacity).max()))


def test_routes_in_arrays_are_the_routes():
    rows = [
        Route(0, 2, (1, 4), 0.25, (0, 2), 3.0),
        Route(0, 1, (0,), 1.0, (1,)),
        Route(0, 2, (1, 5), 0.75, (0, 1), 3.0),
    ]
    assert Routes.of(rows).rows() == rows
    untimed = [replace(row, steps=None) for row in rows]
    assert Routes.of(untimed).rows() == untimed


def test_routes_with_equal_paths_are_joined_and_noise_is_dropped():
    rows = [Route(0, 2, (1, 4), 1.0), Route(0, 2, (1, 4), 0.5), Route(0, 2, (0, 3), 0.5), Route(0, 2, (2, 5), 1e-9)]
    assert Routes.joined(rows).rows() == [Route(0, 2, (1, 4), 0.75), Route(0, 2, (0, 3), 0.25)]
    timed = [replace(row, steps=(k, k + 1)) for k, row in enumerate(rows[:3])]
    assert [row.weight for row in Routes.joined(timed).rows()] == [0.5, 0.25, 0.25]


# switches -------------------------------------------------------------------------------------------------------------


def test_data_passes_switches_within_a_step(tmp_path):
    topology = boxes()
    schedule = schedule_routes(topology, shortest_routes(topology))
    document = moves_document(topology, schedule.steps)
    verdict = verify_document(document, tmp_path, topology, "alltoall")
    assert verdict.valid
    assert verdict.time == pytest.approx(schedule.time)  # loads of all arcs count, into switches and out of them
    held = json.loads(json.dumps(document))
    held["steps"][0][0][0].pop()  # the switch would store it
    verdict = verify_document(held, tmp_path, topology, "alltoall")
    assert verdict.reason == "no-route"


@pytest.mark.parametrize("target", TARGETS)
def test_programs_of_ranks_behind_switches(target, tmp_path):
    topology = boxes()
    program = lower(schedule_routes(topology, shortest_routes(topology)).steps, topology, options=XmlOptions(target))
    path = tmp_path / "x.xml"
    path.write_text(write_xml(program))
    verdict = verify_file(path, topology)
    assert verdict.valid, verdict
    assert target in verdict.metrics["fits_runtime"]
    assert len(read_xml(path).ranks) == 8
    assert verdict.time >= 4.0 - 1e-9  # 16 shards cross the middle each way, over 4 links
    assert verdict.time <= 8.0


def test_ways_go_through_switches_and_not_through_ranks():
    ways = ways_between(boxes())
    assert ways[0, 1] == [[(0, 8), (8, 1)], [(0, 10), (10, 1)]]
    assert ways[0, 4] == [[(0, 10), (10, 4)]]
    assert (0, 2) not in ways_between(parse("ring:4"))


# programs of others ---------------------------------------------------------------------------------------------------


def test_a_program_made_as_others_make_them_is_accepted():
    program = two_phase_allreduce(8, channels=2)
    assert executed(program).valid
    assert not exceeded(replace(program, min_bytes=512, max_bytes=40960), TARGETS["azure-msccl"])


def written_twice(*, ordered: bool) -> str:
    """Two thread blocks copy the rank's own chunk to its output; a third one reads what the second one wrote."""
    program = program_of("complete:2", chunks=1)[1]
    rank = program.ranks[0]
    own = rank.blocks[max(rank.blocks)].instructions[0]
    rank.sizes["s"] += 1
    spare = Place("s", rank.sizes["s"] - 1)
    rank.blocks[40] = ThreadBlock(40, -1, -1, 0, [replace(own, signals=True)])
    reader = replace(own, source=own.target, target=spare, waits=(40, 0) if ordered else None)
    rank.blocks[41] = ThreadBlock(41, -1, -1, 0, [reader])
    return write_xml(program)


def reason(text: str, path: Path) -> str:
    """Why the simulator refuses a file; '' if it accepts it."""
    path.write_text(text)
    return executed(read_xml(path)).reason


def test_a_value_may_be_written_again_but_not_before_it_is_there(tmp_path):
    """Whether that is a race does not depend on the order in which the simulator happens to execute."""
    assert reason(written_twice(ordered=True), tmp_path / "x.xml") == ""
    assert reason(written_twice(ordered=False), tmp_path / "x.xml") == "race"


def test_nops_do_not_signal(tmp_path):
    lines = write_xml(program_of("ring:4", None, chunks=1)[1]).splitlines()
    waiting = next(i for i, line in enumerate(lines) if "depid" in line and 'depid="-1"' not in line)
    gpu = max(i for i in range(waiting) if "<gpu" in lines[i])
    nop = (
        '<step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="-1" deps="-1" hasdep="1"/>'
    )
    lines.insert(gpu + 1, f'<tb id="40" send="-1" recv="-1" chan="0">{nop}</tb>')
    assert reason("\n".join(lines), tmp_path / "x.xml") == ""
    for name, value in (("depid", 40), ("deps", 0)):
        lines[waiting + 1] = re.sub(rf'\b{name}="-?\w+"', f'{name}="{value}"', lines[waiting + 1], count=1)
    assert reason("\n".join(lines), tmp_path / "x.xml") == "deadlock"


def test_programs_of_too_many_clocks_are_refused(monkeypatch):
    topology, program = program_of("torus:3x4", chunks=2)
    monkeypatch.setattr(interpreter, "MOST_CLOCK_ENTRIES", 10)
    with pytest.raises(BadInput, match="too many"):
        execute_program(program, topology)


# the command line -----------------------------------------------------------------------------------------------------


def test_solve_reports_the_cost_of_the_schedule(tmp_path, capfd):
    path = tmp_path / "x.xml"
    arguments = ["solve", "alltoall.master", "torus:3x3", "--no-store", "--schedule", str(path)]
    assert main([*arguments, "--chunks", "2", "--target", "rccl", "--bytes", "64KiB:1GiB"]) == 0
    text = capfd.readouterr().out
    for line in ("chunks     2 per shard", "loss       0 %", "fits       msccl, rccl, azure-msccl", str(path)[:40]):
        assert line in text
    assert 'minBytes="65536" maxBytes="1073741824"' in path.read_text()
    assert main([*arguments, "--chunks", "1,2", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)["schedule"]
    assert record["chunks"] == 1
    assert record["fits_runtime"] == ["msccl", "rccl", "azure-msccl"]
    assert record["target"] == "msccl"
    assert record["delivers"]


@pytest.mark.parametrize("name", ["broadcast", "reduce-scatter", "all-reduce"])
def test_check_reaches_every_collective(name, tmp_path, capfd):
    path, formulation = tmp_path / "x.json", f"alltoall.{name}"
    assert main(["solve", formulation, "ring:3", "--no-store", "--chunks", "1", "--schedule", str(path)]) == 0
    assert main(["check", formulation, "ring:3", str(path)]) == 0
    document = json.loads(path.read_text())
    document["steps"][-1].pop()
    path.write_text(json.dumps(document))
    assert main(["check", formulation, "ring:3", str(path)]) == 3
    assert "yes" not in capfd.readouterr().out.splitlines()[-1]


def test_the_file_of_the_instance_is_not_overwritten(tmp_path, capfd):
    path = tmp_path / "net.json"
    text = '{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}, {"source": 1, "target": 0}]}'
    path.write_text(text)
    assert main(["solve", "alltoall.master", f"file:{path}", "--no-store", "--schedule", str(path)]) == 2
    assert "file of the instance" in capfd.readouterr().err
    assert path.read_text() == text


@pytest.mark.parametrize("name", [["alltoall.link-mcf"], ["alltoall.path-mcf", "--set", "paths=all"]])
def test_a_schedule_takes_the_flow_of_the_master(name, tmp_path, capfd):
    path = tmp_path / "x.json"
    arguments = [name[0], "torus:3x3", *name[1:], "--no-store", "--json", "--schedule", str(path)]
    assert main(["solve", *arguments]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["method"] == "flow-decomposition"
    assert record["schedule"]["loss"] == 0


def test_rates_of_messages_are_max_min_fair():
    """Of three messages, two share a link of 1, and the third has the rest of a link of 3 that it shares with one."""
    rates = np.zeros(3)
    fair_rates(np.arange(3), np.array([0, 1, 3, 4]), np.array([0, 0, 1, 1]), np.ones(4), np.array([1.0, 3.0]), rates)
    assert rates == pytest.approx([0.5, 0.5, 2.5])


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gets_more_without_loss_of_a_slower_one(seed):
    rng = np.random.default_rng(seed)
    capacity = rng.integers(1, 5, 6).astype(float)
    ways = [rng.choice(6, rng.integers(1, 4), replace=False) for _ in range(rng.integers(1, 9))]
    start, arc, rates = np.cumsum([0, *map(len, ways)]), np.concatenate(ways), np.zeros(len(ways))
    fair_rates(np.arange(rates.size), start, arc, np.ones(arc.size), capacity, rates)
    load = np.zeros(6)
    for way, rate in zip(ways, rates, strict=True):
        load[way] += rate
    assert (load <= capacity * (1 + 1e-9)).all()
    for way, rate in zip(ways, rates, strict=True):
        full = [a for a in way if load[a] >= capacity[a] * (1 - 1e-9)]
        fastest = [max(r for w, r in zip(ways, rates, strict=True) if a in w) for a in full]
        assert any(rate >= other * (1 - 1e-9) for other in fastest)
