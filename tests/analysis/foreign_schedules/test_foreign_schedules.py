"""Schedules of TE-CCL, msccl-tools and ForestColl: executed on topologies, refused where they are wrong."""

from __future__ import annotations

import copy
import json
import re
from itertools import pairwise, permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opticoll as oc
from opticoll.errors import BadFile
from opticoll.instances import parse
from opticoll.solvers.schedules.verification import verify_file
from opticoll.solvers.solution_json import check

#: Switch 0 with three GPUs, as TE-CCL numbers them.
STAR = oc.topology([(g, 0, 1.0) for g in (1, 2, 3)] + [(0, g, 1.0) for g in (1, 2, 3)], ranks=[1, 2, 3])
RING = parse("ring:4")
GATHER = [
    f"Chunk 0 from {s} traveled over {s}->{1 + (s - 1 + k) % 3} in epoch {k - 1} via switches 0"
    for k in (1, 2)
    for s in (1, 2, 3)
]


def _halves():
    """An all-to-all of ring:4: neighbours directly, opposite ranks half each way."""
    first = [
        f"Chunk {(s + d) % 4} from {s} traveled over {s}->{(s + d) % 4} with volume 1.0 in epoch 0"
        for s in range(4)
        for d in (1, 3)
    ]
    out = [
        f"Chunk {(s + 2) % 4} from {s} traveled over {s}->{(s + d) % 4} with volume 0.5 in epoch 0"
        for s in range(4)
        for d in (1, 3)
    ]
    on = [
        f"Chunk {(s + 2) % 4} from {s} traveled over {(s + d) % 4}->{(s + 2) % 4} with volume 0.5 in epoch 1"
        for s in range(4)
        for d in (1, 3)
    ]
    return [*first, *out, *on]


def _teccl(flows, key="7-Flows"):
    return {"1-Epoch_Duration": 1e-6, "3-Epochs_Required": 2, key: flows, "8-Chunk paths": {}}


def _msccl(steps, inputs, outputs):
    maps = {
        name: {str(r): addresses for r, addresses in enumerate(m)}
        for name, m in (("input_map", inputs), ("output_map", outputs))
    }
    steps = [{"msccl_type": "step", "rounds": 1, "sends": sends} for sends in steps]
    return {"msccl_type": "algorithm", "name": "x", "instance": {}, "steps": steps, **maps}


AROUND = _msccl([[[(r - k) % 3, r, (r + 1) % 3] for r in range(3)] for k in range(2)], [[0], [1], [2]], [[0, 1, 2]] * 3)
SWAP = _msccl(
    [[[3 * s + t, s, t] for s, t in permutations(range(3), 2)]],
    [[3 * s + t for t in range(3)] for s in range(3)],
    [[3 * s + t for s in range(3)] for t in range(3)],
)


def _trees(k=2):
    """Trees over the star: a chain each way round from every GPU, each with half of the shard."""
    lines = [f'<Algo nchunkspernode="{k}">']
    for s in range(3):
        for i, d in enumerate((1, 2)):
            way = [s, (s + d) % 3, (s + 2 * d) % 3]
            lines.append(f'<tree root="(0, \'GPU\', {s})" index="{i}" nchunks="1" height="2">')
            for u, v in pairwise(way):
                a, b = f"(0, 'GPU', {u})", f"(0, 'GPU', {v})"
                lines.append(f'<send src="{a}" dst="{b}" path="{a},(-1, \'NVS\', 0),{b}"/>')
            lines.append("</tree>")
    return "\n".join([*lines, "</Algo>"])


def _named_star():
    ends = [f"(0, 'GPU', {g})" for g in range(3)]
    switch = "(-1, 'NVS', 0)"
    return oc.topology([(e, switch, 1.0) for e in ends] + [(switch, e, 1.0) for e in ends], ranks=ends)


def executed(tmp_path, content, topology, collective):
    path = tmp_path / ("s.xml" if isinstance(content, str) else "s.json")
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return verify_file(path, topology, collective)


@pytest.mark.parametrize(
    ("content", "topology", "collective", "metrics"),
    [
        (_teccl(GATHER), STAR, "allgather", {"async_time": 2.0, "steps": 2, "transfers": 6, "over_bound": 1.0}),
        (_teccl(_halves()), RING, "alltoall", {"async_time": 2.0, "chunks": 1, "over_bound": 1.0}),
        (_teccl(_halves(), "6-Flows"), RING, "alltoall", {"async_time": 2.0}),
        (AROUND, parse("complete:3"), "allgather", {"time": 2.0, "async_time": 2.0, "chunks": 1}),
        (AROUND, STAR, "allgather", {"time": 2.0, "over_bound": 1.0}),
        (SWAP, parse("complete:3"), "alltoall", {"time": 1.0, "over_bound": 1.0}),
        (SWAP, STAR, "alltoall", {"time": 2.0, "over_bound": 1.0}),
        (_trees().replace("<Algo ", "<Algo\n", 1), _named_star(), "allgather", {"time": 2.0}),
        (_trees(), _named_star(), "allgather", {"time": 2.0, "trees": 6, "height": 2, "chunks": 2, "over_bound": 1.0}),
    ],
)
def test_valid_schedules_take_the_time_of_their_links(tmp_path, content, topology, collective, metrics):
    verdict = executed(tmp_path, content, topology, collective)
    assert verdict.valid, verdict.message
    assert {key: verdict.metrics[key] for key in metrics} == pytest.approx(metrics)


def changed(document, old, new):
    return json.loads(json.dumps(document).replace(old, new, 1))


@pytest.mark.parametrize(
    ("content", "topology", "collective", "reason"),
    [
        (_teccl(GATHER[:-1]), STAR, "allgather", "missing-chunk: rank"),
        (_teccl(GATHER), STAR, "alltoall", "collective"),
        (
            _teccl(GATHER),
            oc.topology([(0, 1), (1, 0), (0, 2), (2, 0), (3, 0)], ranks=[1, 2, 3]),
            "allgather",
            "no-arc: step 0: chunk 0 of 2: moves 0->3",
        ),
        (changed(_teccl(GATHER), "3->1 in epoch 0", "2->1 in epoch 0"), STAR, "allgather", "not-held: step 0"),
        (changed(_teccl(GATHER), " via switches 0", ""), STAR, "allgather", "no-arc"),
        (changed(_teccl(GATHER), "via switches 0", "via switches 3"), STAR, "allgather", "no-arc"),
        (changed(_teccl(GATHER), "1->2", "1->0"), STAR, "allgather", "no-arc"),
        (changed(_teccl(_halves()), "volume 0.5 in epoch 1", "volume 0.6 in epoch 1"), RING, "alltoall", "not-held"),
        (
            changed(_teccl(_halves()), "volume 0.5 in epoch 1", "volume 0.4 in epoch 1"),
            RING,
            "alltoall",
            "arrives only in part (0.9)",
        ),
        (changed(_teccl(_halves()), "volume 0.5 in epoch 1", "volume 0.5 in epoch 0"), RING, "alltoall", "not-held"),
        (_msccl([[[0, 0, 1]]], [[0], [1], [2]], [[0, 1, 2]] * 3), parse("complete:3"), "allgather", "missing-chunk"),
        (_msccl([[[1, 0, 2]]], [[0], [1], [2]], [[0, 1, 2]] * 3), parse("complete:3"), "allgather", "not-held"),
        (SWAP, parse("ring:3,directed"), "alltoall", "no-arc"),
        (_trees().replace('nchunks="1"', 'nchunks="2"', 1), _named_star(), "allgather", "weights"),
        (_trees(1), _named_star(), "allgather", "weights"),
        (_trees(), _named_star(), "alltoall", "collective"),
        (re.sub("<send [^>]*>", "", _trees(), count=1), _named_star(), "allgather", "not-held: line 4"),
        (_trees().replace("(-1, 'NVS', 0),", "", 1), _named_star(), "allgather", "no-arc: line 3"),
        (
            _trees().replace("(0, 'GPU', 1)\" path", "(0, 'GPU', 2)\" path", 1),
            _named_star(),
            "allgather",
            "no-route: line 3",
        ),
    ],
)
def test_wrong_schedules_are_refused_with_the_reason(tmp_path, content, topology, collective, reason):
    verdict = executed(tmp_path, content, topology, collective)
    assert not verdict.valid
    assert reason in verdict.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_teccl([]), "'7-Flows' must be a list"),
        ({**_teccl(GATHER), "8-Flows": GATHER}, "it has '7-Flows' and '8-Flows'"),
        (_teccl(["Chunk 0 of 1"]), "7-Flows[0]: 'Chunk 0 of 1' is not"),
        (_teccl([GATHER[0], _halves()[0]]), "7-Flows[1]"),
        (_teccl(["Chunk 0 from 1 traveled over 1->9 in epoch 0"]), "vertex 9 is not one of"),
        (_teccl([_halves()[0].replace("1.0", "-1.0")]), "volume '-1.0'"),
        (_teccl([_halves()[0].replace("1.0", "1-0")]), "volume '1-0'"),
        ({**AROUND, "steps": 3}, "steps[0] must have a list of 'sends'"),
        ({**AROUND, "steps": [{"sends": [[0, 0]]}]}, "steps[0].sends[0]"),
        ({**AROUND, "steps": [{"sends": [[7, 0, 1]]}]}, "steps[0].sends[0]"),
        ({**AROUND, "input_map": {"0": [0]}}, "'input_map' must hold"),
        (_msccl([], [[0], [0], [0]], [[0]] * 3), "reducing collectives are not supported"),
        (_msccl([], [[0], [1], [2]], [[0, 1, 2], [0], [0]]), "neither an all-gather nor an all-to-all of 3"),
        (_trees().replace("'GPU', 1", "'GPU', 7", 1), "line 3: \"(0, 'GPU', 7)\" is not the label of a vertex"),
        (_trees().replace('nchunks="1"', 'nchunks="x"', 1), "line 2: nchunks='x'"),
        (_trees().replace("</Algo>", ""), "not well-formed XML"),
    ],
)
def test_malformed_files_are_refused(tmp_path, content, message):
    topology = _named_star() if isinstance(content, str) else STAR
    with pytest.raises(BadFile) as caught:
        executed(tmp_path, content, topology, "allgather")
    assert message in str(caught.value)


def test_check_reads_them(tmp_path):
    net, schedule, trees = tmp_path / "net.json", tmp_path / "s.json", tmp_path / "trees.xml"
    oc.save_topology(RING, net)
    schedule.write_text(json.dumps(_teccl(_halves())))
    report = check("alltoall.master", f"file:{net}", schedule)
    assert (report["verified"], report["objective"]) == (True, pytest.approx(2.0))
    oc.save_topology(_named_star(), net)
    trees.write_text(_trees())
    report = check("alltoall.all-gather", f"file:{net}", trees)
    assert (report["verified"], report["objective"]) == (True, pytest.approx(2.0))


def performs(document, n, ways):
    """Whether an msccl algorithm delivers its output_map, by sets alone."""
    has = {r: set(document["input_map"][str(r)]) for r in range(n)}
    for step in document["steps"]:
        new = []
        for address, u, v in step["sends"]:
            if address not in has[u] or (u, v) not in ways:
                return False
            new.append((v, address))
        for v, address in new:
            has[v].add(address)
    return all(has[r] >= set(document["output_map"][str(r)]) for r in range(n))


@settings(max_examples=48, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_algorithms_are_judged_as_by_sets(tmp_path, data):
    collective, document = data.draw(st.sampled_from([("allgather", AROUND), ("alltoall", SWAP)]))
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 2))):
        sends = data.draw(st.sampled_from([step["sends"] for step in document["steps"] if step["sends"]]))
        row = data.draw(st.integers(0, len(sends) - 1))
        kind = data.draw(st.sampled_from(["drop", "double", "change"]))
        if kind == "change":
            sends[row] = [sends[row][0], *data.draw(st.sampled_from(list(permutations(range(3), 2))))]
        elif kind == "double" or len(sends) > 1:
            sends[row : row + 1] = [sends[row]] * 2 if kind == "double" else []
    topology = parse("complete:3")
    ways = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    verdict = executed(tmp_path, document, topology, collective)
    assert verdict.valid == performs(document, 3, ways), verdict.message


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_files_give_a_verdict_or_one_line(tmp_path, data):
    document, topology, collective = data.draw(
        st.sampled_from(
            [
                (json.dumps(_teccl(GATHER)), STAR, "allgather"),
                (json.dumps(_teccl(_halves())), RING, "alltoall"),
                (json.dumps(AROUND), STAR, "allgather"),
                (_trees(), _named_star(), "allgather"),
            ]
        )
    )
    at = data.draw(st.integers(1, len(document) - 1))
    new = data.draw(st.sampled_from(["", document[at] * 2, "0", "9", "-", "x", '"', "<", "(", ",", "\x00"]))
    path = tmp_path / ("m.xml" if document.startswith("<") else "m.json")
    path.write_text(document[:at] + new + document[at + 1 :])
    reason = ""
    try:
        reason = verify_file(path, topology, collective).message
    except BadFile as error:
        reason = str(error)
    assert "\n" not in reason
