"""``opticoll iteration``: what it prints and returns."""

from __future__ import annotations

import json

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.instances.training.task_graph import TaskGraphDraft


@pytest.mark.parametrize(
    "network",
    [
        "circuits:n=8,degree=4",
        "circuits:n=16,degree=4,rule=sip-ocs",
        "circuits:n=16,degree=4,rule=ocs-reconfig",
        "circuits:n=16,degree=4,rule=sip-ring-wavelengths,interval_ms=25",
        "ideal-switch:n=16,capacity=4",
        "fat-tree:k=4,capacity=4",
        "fat-tree:k=4,oversubscription=2,capacity=4",
        "random-regular:n=8,d=4,seed=1",
    ],
)
def test_every_network_respects_the_bounds(network):
    result = oc.iteration("dlrm", network, section="5.6", check=True)
    assert result.bound_s == max(result.bounds.values()) > 0
    assert result.seconds >= result.bound_s * (1 - 1e-9)
    assert result.seconds >= result.computing_s
    assert (result.violation is None) == any(rule in network for rule in ("ocs-reconfig", "sip-ring"))
    assert result.violation is None or result.violation < 0.01
    if "rule" in network:  # a procedure finds the circuits
        assert result == oc.iteration("dlrm", network, section="5.6", check=True), "deterministic"


def test_the_command_prints_what_the_function_returns(capfd):
    words = ["iteration", "vgg", "ideal-switch:n=4,capacity=2", "--link", "25Gb/s", "--overlap", "none", "--check"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    expected = oc.iteration("vgg", "ideal-switch:n=4,capacity=2", link="25Gb/s", overlap="none", check=True)
    assert document["seconds"] == expected.seconds
    assert document["routing"] == "even"
    assert main(words) == 0
    assert "worst violation" in capfd.readouterr().out


def test_capacities_with_a_unit_need_no_link_and_own_graphs_no_model():
    draft = TaskGraphDraft(2)
    draft.transfer(0, 1, 50e9)
    result = oc.iteration(
        draft.finished(), oc.Topology(2, [0, 1], [1, 0], [400, 400], capacity_unit="Gb/s"), latency=0.0
    )
    assert result.seconds == pytest.approx(1.0)
    assert result.model == "custom"


@pytest.mark.parametrize(
    ("network", "routing", "shuffled", "loads"),
    [
        # a hop in two leaves its switch of two servers; of the rings +3 (or +5, +7) all do
        ("fat-tree:k=4", "even", False, [1, 1]),
        ("fat-tree:k=4,oversubscription=2", "even", False, [1, 1.5]),
        ("fat-tree:k=4", "single", True, [3, 2]),  # an order by chance: 3 hops of one ring meet on a link
    ],
)
def test_rings_of_totient_perms_share_an_all_reduce(network, routing, shuffled, loads):
    order = np.random.default_rng(0).permutation(16) if shuffled else np.arange(16)
    draft = TaskGraphDraft(16)
    draft.all_reduce(order.tolist(), 1e8)
    hop = 2 * 15 / 16 * 1e8 / 12.5e9
    for rings, load in zip((1, 2), loads, strict=True):
        found = oc.iteration(draft.finished(), network, routing=routing, rings=rings, latency=0.0, check=True)
        assert found.seconds == pytest.approx(load * hop)
        assert found.violation < 1e-6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["vgg", "circuits:n=4,degree=2", "--rings", "2"], "rings=2 is for topologies"),
        (["vgg", "servers:n=4,degree=2,traffic=vgg"], "is not a network"),
        (["vgg", "ring:4", "--servers", "8"], "has 4 servers, but the task graph needs 8"),
        (["vgg", "circuits:n=4,degree=2", "--servers", "8"], "has 4 servers, but the task graph needs 8"),
        (["vgg", "circuits:n=4,degree=1,rule=sip-ring", "--routing", "even"], "not available"),
        (["lenet", "ring:4"], "no operator times of lenet"),
        (["vgg", "ring:4", "--link", "fast"], "not a positive rate"),
        (["vgg", "lightpath:2x2"], "lightpath:2x2 sets circuits for all GPUs at a time"),
        (["vgg", "lightpath:2x2+host=2.0"], "sets circuits for all GPUs at a time"),
    ],
)
def test_bad_input_ends_with_one_line(capfd, words, message):
    assert main(["iteration", *words]) == 2
    assert message in capfd.readouterr().err


def test_an_invalid_network_is_refused():
    with pytest.raises(BadInput, match="routing"):
        oc.iteration("vgg", "ring:4", routing="best")
