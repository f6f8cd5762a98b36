"""``opticoll repair``: what it prints and returns."""

from __future__ import annotations

import json

import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput

POOL = "servers:n=6,degree=3,traffic=candle"


def test_rows_by_hand():
    """Of three rings two are left: 3/2 of the load, and no routes are better; forwarding doubles it."""
    result = oc.repair(POOL)
    rows = {row.repair: row for row in result.rows}
    assert (result.servers, result.degree, result.circuits) == (6, 3, 18)
    assert len(result.failures) == len({one.circuit for one in result.failures})
    assert rows["swap"].possible == 0
    assert rows["swap"].worst_over_intact is None
    assert rows["best"].worst_over_intact == pytest.approx(1.5)
    assert rows["best"].worst_over_least == pytest.approx(1.0)
    for one in result.failures:
        assert one.least is not None
        assert one.bound is not None
        assert one.bound <= one.least * (1 + 1e-9)
    assert result.least == pytest.approx(result.load)
    assert result.violation < 1e-9


def test_the_command_prints_what_the_function_returns(capsys):
    words = ["repair", POOL, "--circuit", "0-1", "--no-optimum"]
    assert main([*words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    expected = oc.repair(POOL, circuits=["0-1"], optimum=False)
    assert [one["circuit"] for one in shown["failures"]] == ["0-1"]
    assert shown["failures"][0]["spread"] == expected.failures[0].spread
    assert shown["failures"][0]["least"] is None
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "reroute" in text
    assert "worst violation" in text


def test_without_any_repair_the_row_is_empty():
    (row,) = oc.repair("servers:n=4,degree=1,traffic=candle", circuits=["0-1"], optimum=False).failures
    assert (row.reroute, row.spread, row.swap) == (None, None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ring:4",), "server pool"),
        ((POOL, {"circuits": ["0-9"]}), "no circuit from server 0 to 9"),
        ((POOL, {"circuits": 1}), "must be a list of pairs"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    *given, last = arguments
    options = last if isinstance(last, dict) else {}
    with pytest.raises(BadInput, match=message) as caught:
        oc.repair(*(given if options else arguments), **options)
    assert "\n" not in str(caught.value)
