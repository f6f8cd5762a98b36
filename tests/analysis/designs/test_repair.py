"""``opticoll repair``: what it prints and returns."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.instances.servers import ServerPool
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

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
    ],
)
def test_bad_input_is_one_line(arguments, message):
    *given, last = arguments
    options = last if isinstance(last, dict) else {}
    with pytest.raises(BadInput, match=message):
        oc.repair(*(given if options else arguments), **options)


@pytest.mark.parametrize("seed", range(6))
def test_a_failure_that_cuts_traffic_off_has_no_least_load(seed):
    """Paths over the circuits that are left decide it; ratios to the least load count the other failures alone."""
    rng = np.random.default_rng(seed)
    traffic = rng.choice([0.0, 0.0, 1.0, 2.0, 5.0], (5, 5))
    np.fill_diagonal(traffic, 0.0)
    pool = ServerPool(5, 2, traffic)
    result, circuits = oc.repair(pool), topology_finder(pool).circuits.tolist()
    ratios = []
    for one in result.failures:
        left = nx.MultiDiGraph(circuits)
        left.remove_edge(*map(int, one.circuit.split("-")))
        left.add_nodes_from(range(5))
        whole = all(nx.has_path(left, s, t) for s, t in np.argwhere(traffic).tolist())
        assert (one.least is not None) == (one.bound is not None) == (one.reroute is not None) == whole
        if one.least is not None and one.swap is not None:
            ratios.append(one.swap / one.least)
    (row,) = (row for row in result.rows if row.repair == "swap")
    assert row.worst_over_least == (max(ratios) if ratios else None)
    apart = sum(one.least is None for one in result.failures)
    assert (f"{apart} of the failures leave traffic without a path" in result.lines()["least"]) == (apart > 0)
