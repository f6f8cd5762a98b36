"""The chooser of figure 2: each rule of the text, commands that run, counts of shortest paths, bad input."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise

import networkx as nx
import pytest

from opticoll.analysis.cli.main import main
from opticoll.analysis.papers.alltoall.schedule_choice import schedule_for, schedules, shortest_paths
from opticoll.errors import BadInput
from opticoll.instances import parse


@pytest.mark.parametrize(
    ("spec", "fabric", "host", "schedule", "words"),
    [
        ("hypercube:3", "host", None, "tsMCF", "no host is a bottleneck"),
        ("hypercube:3", "host", 3.0, "tsMCF", "no host is a bottleneck"),
        ("hypercube:3", "host", 2.0, "tsMCF", "the host's 2 is less than the 3 of its links"),
        ("genkautz:n=27,d=4", "nic-weighted", None, "pMCF", "no more than the degree 4"),
        ("torus:4x4x4", "nic-weighted", None, "MCF-extP", "more than the degree 6"),
        ("torus:3x3x3", "nic-equal", None, "ILP", "27 ranks are few"),
        ("torus:11x11", "nic-equal", None, "SSSP", "121 ranks are too many for an ILP"),
        ("torus:3x3x3", "nic-weighted", 4.0, "pMCF", "limits only its own traffic"),
    ],
)
def test_the_rules_of_the_text(spec, fabric, host, schedule, words):
    choice = schedule_for(spec, fabric, host)
    assert choice.schedule == schedule
    assert words in choice.reason
    assert ("+host=" in choice.command) == ("less than" in choice.reason)


@pytest.mark.parametrize("host", [None, 1.5])
@pytest.mark.parametrize("fabric", ["host", "nic-weighted", "nic-equal"])
def test_the_commands_run(fabric, host, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    command = shlex.split(schedule_for("ring:4", fabric, host).command)
    assert main([*command[1:], "--json", "--no-store"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["verified"]
    assert record["schedule"]["delivers"]
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("spec", ["torus:3x4", "genkautz:n=10,d=3", "hypercube:3", "petersen"])
def test_shortest_paths_are_those_of_networkx(spec):
    topology = parse(spec)
    graph = nx.MultiDiGraph()
    graph.add_edges_from(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    simple = nx.DiGraph(graph)
    pairs = [(s, t) for s in graph for t in graph if s != t]
    total = sum(ways(graph, path) for s, t in pairs for path in nx.all_shortest_paths(simple, s, t))
    assert shortest_paths(topology) * topology.n * (topology.n - 1) == pytest.approx(total)


def ways(graph, path):
    product = 1
    for u, v in pairwise(path):
        product *= graph.number_of_edges(u, v)
    return product


def test_describe_names_them(capfd):
    assert main(["describe", "torus:4x4x4", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    facts = (document[0] if isinstance(document, list) else document)["facts"]
    named = [text for name, text in facts.items() if name.startswith("all-to-all")]
    assert [text.partition(":")[0] for text in named] == [choice.schedule for choice in schedules("torus:4x4x4")]


@pytest.mark.parametrize(
    ("spec", "fabric", "host", "words"),
    [
        ("ring:4", "switch", None, "unknown fabric"),
        ("ring:4", "host", 0.0, "must be positive"),
        ("ring:4+host=2", "host", None, "consist of ranks"),
    ],
)
def test_refusals(spec, fabric, host, words):
    with pytest.raises(BadInput, match=words):
        schedule_for(spec, fabric, host)
