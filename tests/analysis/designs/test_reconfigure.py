"""Whether to change circuits during an all-to-all: verdicts, bounds and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from case_families import each

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.designs import reconfigure as module
from opticoll.analysis.designs.envelope import cyclic_records
from opticoll.analysis.designs.reconfigure import _sequence, reconfigure
from opticoll.analysis.designs.sequence_records import SequenceRecord, best_sequence
from opticoll.errors import BadInput
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.instances import parse
from opticoll.solvers.methods.topology.sequence_flows import all_lines, route


@pytest.mark.parametrize(
    ("delay", "verdict", "configurations", "value"),
    [(4.0, "stay", 1, 6), (1.5, "change", 2, 5.5), (0.25, "change", 3, 3.5)],
)
def test_the_best_number_of_four_nodes_with_one_circuit(delay, verdict, configurations, value):
    """T(1) = 6, T(2) = 4, T(3) = 3, each the optimum."""
    answer = reconfigure(4, 1, delay, directed=True, time_limit=10)
    assert (answer.verdict, answer.configurations, answer.certain) == (verdict, configurations, True)
    assert answer.value == pytest.approx(value)
    assert answer.bound == pytest.approx(value)
    assert answer.beyond >= answer.value * (1 - 1e-9)
    assert not answer.interrupted
    for row in answer.rows:
        assert row.value_bound == pytest.approx(row.bound + delay * (row.configurations - 1))
        assert row.T is None or row.bound * (1 - 1e-9) <= row.T


@pytest.mark.parametrize(
    ("n", "degree", "directed", "delay"),
    [(8, 2, False, 0.75), (16, 4, True, 0.01), (7, 3, False, 0.01), (16, 2, False, 3)],
)
def test_the_topologies_and_lengths_have_the_stated_time(n, degree, directed, delay):
    answer = reconfigure(n, degree, delay, directed=directed, time_limit=1)
    assert len(answer.topologies) == len(answer.lengths) == answer.configurations
    T = answer.value - delay * (answer.configurations - 1)
    assert sum(answer.lengths) == pytest.approx(T)
    assert answer.bound <= answer.value * (1 + 1e-9)
    assert routed_time(n, degree, directed, answer.topologies) <= T * (1 + 1e-9)


def routed_time(n, degree, directed, topologies):
    """Least time of these topologies in turn."""
    counts = np.zeros((len(topologies), n, n), dtype=np.int64)
    for k, spec in enumerate(topologies):
        one = parse(spec)
        np.add.at(counts[k], (one.tail, one.head), 1)
    assert max(counts.sum(axis=1).max(), counts.sum(axis=2).max()) <= degree
    assert directed or (counts == counts.transpose(0, 2, 1)).all()
    data = TopologySequence.of_nodes(n, degree, len(topologies), directed=directed)
    return route(data, all_lines(data, counts), len(topologies)).time


def test_a_group_without_a_spec_has_its_circuits_listed():
    record = SequenceRecord(8, 2, False, 2, "xor", ((1, 2), (3, 4)), 0.0, 0)
    topologies, lengths = _sequence(record)
    assert topologies[0].startswith("digraph:")
    assert routed_time(8, 2, False, topologies) == pytest.approx(sum(lengths))


def test_seconds_are_converted_and_progress_is_reported():
    seen = []
    answer = reconfigure(6, 2, "6us", shard="100kB", bandwidth="100Gb/s", time_limit=2, on_progress=seen.append)
    assert answer.delay == pytest.approx(0.75)
    assert answer.delay_s == pytest.approx(6e-6)
    assert answer.value_s == pytest.approx(answer.value * 8e-6)
    assert seen[-1]["objective"] == pytest.approx(answer.value)
    assert seen[-1]["bound"] <= answer.value * (1 + 1e-9)
    assert "100kB over a circuit of 100Gb/s, which takes 8e-06 s" in repr(answer)
    other = reconfigure(6, 2, "6us", shard=1e5, bandwidth="12.5GB/s", time_limit=2)
    assert other.value == pytest.approx(answer.value)
    assert other.lines()["shard"] == "100000.0 B over a circuit of 12.5GB/s, which takes 8e-06 s"


def test_linear_programs_are_solved_in_a_worker(monkeypatch):
    """HiGHS prints on the output of the process that first uses it."""
    import highspy

    monkeypatch.setattr(highspy, "Highs", None)
    assert cyclic_records(13, 4, False)
    assert best_sequence(6, 2, 2, seconds=0.1) is not None


def test_an_interrupted_search_keeps_what_is_known(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "best_sequence", interrupted)
    answer = reconfigure(23, 4, 1.0, directed=True)
    assert answer.interrupted
    assert answer.value <= 5.5 + 5 * 1.0
    assert answer.bound <= answer.value


@each(
    ("settings", "message"),
    [
        ({"delay": "3.7us"}, "add shard='64MB' and bandwidth='100Gb/s'"),
        ({"delay": "3.7us", "shard": "4MB"}, "is in seconds, so that shards and circuits need units; add bandwidth="),
        ({"delay": "3.7us", "bandwidth": "1Tb/s"}, "is in seconds, so that shards and circuits need units; add shard="),
        (
            {"delay": 20e-6, "shard": "8MB", "bandwidth": "1Tb/s"},
            "has no unit; write a time, such as 20us, or omit shard",
        ),
        ({"delay": "20", "shard": "8MB", "bandwidth": "1Tb/s"}, "delay=20 has no unit"),
        ({"bandwidth": "100Gb/s"}, "a bandwidth is for times in seconds"),
        ({"shard": "1MB"}, "a shard is for times in seconds"),
        ({"delay": 0}, "must be positive"),
        ({"delay": "inf"}, "give a finite time of at least 0"),
        ({"delay": "soon"}, "is not a time, such as"),
        ({"delay": "1us", "shard": "much", "bandwidth": "1Tb/s"}, "not a positive size"),
        ({"delay": "1us", "shard": "1MB", "bandwidth": "fast"}, "not a positive rate"),
        ({"time_limit": 0}, "time_limit: must be a positive number, not 0"),
        ({"n": 5000}, "exceeds the limit of 4096 nodes"),
        ({"n": 8.5}, "must be a whole number"),
        ({"degree": 8}, "from 1 to n - 1 ports"),
    ],
)
def test_other_questions_are_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        oc.reconfigure(**{"n": 8, "degree": 2, "delay": 1.0, **settings})


@pytest.mark.parametrize(
    ("made", "first"),
    [
        (lambda: oc.design(10, 3), "gap "),
        (lambda: oc.envelope(16, 2), "change "),
        (lambda: oc.envelope(9, 1), "change "),
        (lambda: oc.reconfigure(4, 1, 1.5, directed=True, time_limit=10), "answer "),
    ],
)
def test_answers_print_as_a_summary_that_begins_with_the_verdict(made, first):
    answer = made()
    title, *lines = repr(answer).splitlines()
    assert f"{answer.n} nodes, degree {answer.degree}" in title
    assert lines[0].lstrip().startswith(first)
    assert len(lines) < 12
    assert all(len(line) < 180 and "inf" not in line for line in lines)
    assert title in answer._repr_html_()


@pytest.mark.parametrize("delay", ["20us", "1", -1.0, float("nan"), True, None])
def test_an_envelope_takes_delays_without_unit(delay):
    with pytest.raises(BadInput, match=r"is no number of at least 0 .*; for seconds call reconfigure\(16, 2, '20us'"):
        oc.envelope(16, 2).at(delay)


def printed(capsys, *command):
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_answers_in_words_and_in_json(capsys):
    command = ["design", "n=4", "degree=1", "--directed", "--delay", "1.5", "--time-limit", "5"]
    assert main(command) == 0
    words = capsys.readouterr().out
    assert "changing is provably best" in words
    assert "2 configurations, 1 change   (provably the best number)" in words
    answer = printed(capsys, *command)
    assert answer["verdict"] == "change"
    assert answer["value"] == pytest.approx(5.5)
    assert len(answer["topologies"]) == 2
    assert answer["value_s"] is None


def test_long_sequences_are_cut_in_words(capsys):
    assert main(["design", "n=64", "degree=4", "--delay", "0.001", "--time-limit", "0.1"]) == 0
    words = capsys.readouterr().out
    assert "configurations more, with --json" in words
    assert main(["design", "n=128", "degree=4", "--delay", "20", "--time-limit", "1e-9"]) == 0
    assert "ended before all numbers that may pay were searched" in capsys.readouterr().out
    assert main(["design", "n=100", "degree=4", "--delay", "0.0001", "--time-limit", "0.1"]) == 0
    assert "direct circuits in turn" in capsys.readouterr().out


def test_numbers_that_reach_too_few_nodes_have_no_bound_in_json(capsys):
    """With one two-way circuit each, one configuration joins pairs only."""
    rows = printed(capsys, "design", "n=4", "degree=1", "--delay", "1", "--time-limit", "5")["rows"]
    assert all(row["bound"] is not None for row in rows if row["T"] is not None)
    assert rows[-1]["T"] == pytest.approx(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shard", "64MB"], "add --delay TIME"),
        (
            ["--delay", "20", "--shard", "8MB", "--bandwidth", "100Gb/s"],
            "design: delay=20 has no unit; write a time, such as 20us, or omit shard and bandwidth",
        ),
        (["--delay", "25us", "--shard", "4MB"], "add --bandwidth 100Gb/s"),
        (["--delay", "1", "--search"], "mutually exclusive"),
    ],
)
def test_options_that_do_not_go_together(options, message, capsys):
    assert main(["design", "n=8", "degree=2", *options]) == 2
    assert message in capsys.readouterr().err
