"""``opticoll hybrids``: what it prints and returns."""

from __future__ import annotations

import json

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.instances import parse

GRAPH = "op-graph:model=dlrm,layers=1,hidden=64"


def test_every_divisor_has_a_row_between_its_bound_and_its_time():
    result = oc.hybrids(GRAPH, 12, 24, link="8Tb/s")
    assert [(row.k, row.replicas) for row in result.rows] == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert result.omitted == []
    for row in result.rows:
        assert row.time_us == row.step_us + row.all_reduce_us
        assert 0 < row.bound_us <= row.time_us
    assert result.time_us == min(row.time_us for row in result.rows)
    assert result.bound_us == min(row.bound_us for row in result.rows)


def test_one_gpu_a_group_by_hand():
    """The step is the whole graph on one GPU; the ring sends 2 (l-1)/l of all parameters at 12.5 GB/s."""
    row = oc.hybrids(GRAPH, 4, 8).rows[0]
    graph = parse(f"{GRAPH},parts=1,batch=2")
    assert (row.k, row.replicas) == (1, 4)
    assert row.step_us == pytest.approx(float(graph.duration.sum()))
    assert row.all_reduce_us == pytest.approx(1.5 * float(np.sum(graph.weights)) / 12.5e9 * 1e6)
    assert row.bound_us == pytest.approx(row.time_us)


def test_one_group_reduces_nothing():
    assert oc.hybrids(GRAPH, 4, 8).rows[-1].all_reduce_us == 0.0


def test_the_command_prints_what_the_function_returns(capsys):
    words = ["hybrids", GRAPH, "--gpus", "12", "--batch", "8", "--degree", "4"]
    assert main([*words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    expected = oc.hybrids(GRAPH, 12, 8)
    assert shown["best"] == expected.best == 12
    assert shown["omitted"] == [1, 2, 4]  # 12, 6 and 3 groups do not divide a batch of 8
    assert [row["time_us"] for row in shown["rows"]] == [row.time_us for row in expected.rows]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "k = 12" in text
    assert "omitted" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ring:4", 4, 4), "not a computation graph"),
        ((GRAPH, 0, 4), "gpus: must be a whole number of at least 1, not 0"),
        ((GRAPH, 4, 0), "batch: must be a whole number of at least 1, not 0"),
        ((GRAPH, 7, 3, {"memory": 1e-9}), "no way to divide 7 GPUs"),
        ((GRAPH, 4, 4, {"link": "fast"}), "link"),
        ((f"{GRAPH},parts=2", 4, 4), "states parts or batch"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    *given, last = arguments
    options = last if isinstance(last, dict) else {}
    with pytest.raises(BadInput, match=message):
        oc.hybrids(*(given if options else arguments), **options)
