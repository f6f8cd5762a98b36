"""The facts about small networks in *What we found*: every command is run, every count is made again."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from case_families import each
from reference import flow_time, solved

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.store.records import Store
from opticoll.instances import parse
from opticoll.instances.spec import expand

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Small networks, exactly")[1]
ROWS = re.findall(r"^\| [^|]+ \| ([\d/]+) \| `opticoll ([^`]+)` \|$", SECTION, re.M)


@pytest.mark.parametrize(("time", "command"), ROWS)
def test_commands_print_the_times(time, command, capsys):
    assert main([*command.split(), "--json", "--no-store"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["metrics"].get("T", run["objective"]) == pytest.approx(float(Fraction(time)), rel=1e-7)
    assert run["proof"] == "optimal" or "equal-split" in command


def test_the_table_is_whole():
    assert len(ROWS) == SECTION.count("| `opticoll ") >= 30


# all connected graphs -------------------------------------------------------------------------------------------------


def graphs(n):
    return [parse(spec) for spec in expand(f"all-graphs:n={n}")]


def halves(topologies):
    """On how many all-reduce is faster than reduce-scatter and all-gather."""
    names = ("alltoall.reduce-scatter", "alltoall.all-gather")
    return sum(
        solved("alltoall.all-reduce", one)[1] < (1 - 1e-6) * sum(solved(name, one)[1] for name in names)
        for one in topologies
    )


def slow_steps(topologies):
    """On how many as many steps as the diameter take longer than the fluid optimum, and the largest ratio."""
    ratios = [
        solved("alltoall.timestep-mcf", one, steps=int(one.diameter))[1] * solved("alltoall.master", one)[1]
        for one in topologies
    ]
    return sum(ratio > 1 + 1e-6 for ratio in ratios), max(ratios)


def quoted(pattern):
    return tuple(map(float, re.search(pattern, " ".join(SECTION.split())).groups()))


@pytest.mark.slow
def test_counts_over_graphs_of_six_nodes():
    six = graphs(6)
    assert quoted(r"all-gather on (\d+) of (\d+):") == (halves(six), len(six))
    slow, ratio = slow_steps(six)
    assert quoted(r"too few\*\* on (\d+) of (\d+), by up to ([\d.]+) times") == (slow, len(six), pytest.approx(ratio))


def test_the_queries_count_what_linear_programs_count(tmp_path):
    """The study of the page on graphs of 4 nodes."""
    study = oc.study(
        [f"alltoall.{name}" for name in ("master", "timestep-mcf", "all-reduce", "reduce-scatter", "all-gather")],
        "all-graphs:n=4",
        "auto",
        store=tmp_path,
    )
    four = graphs(4)
    assert len(study) == 5 * len(four)
    two_halves, steps = re.findall(r"```sql\n(.*?)```", SECTION, re.S)
    first, second = (Store(tmp_path).sql(query.replace("a.n = 6", "a.n = 4")) for query in (two_halves, steps))
    assert first.iloc[0, 0] == halves(four) > 0
    slow, ratio = slow_steps(four)
    assert (second.iloc[0, 0], second.iloc[0, 1]) == (slow, pytest.approx(ratio))


def equal_split_time(links):
    """The largest load of a link if every pair splits equally over its shortest paths, from counts of walks."""
    n = len(links)
    hops, paths, walks = np.where(np.eye(n, dtype=bool), 0, n), np.eye(n), np.eye(n)
    for length in range(1, n):
        walks = walks @ links
        first = (walks > 0) & (hops == n)
        hops[first], paths[first] = length, walks[first]
    load = np.zeros((n, n))
    for s in range(n):
        for t in set(range(n)) - {s}:
            on = links & (hops[s][:, None] + 1 + hops[:, t] == hops[s, t])
            load += np.where(on, np.outer(paths[s], paths[:, t]) / paths[s, t], 0)
    return load.max()


def additions(n):
    """Links of every connected graph, before and after one more."""
    for topology in graphs(n):
        before = np.zeros((n, n), dtype=bool)
        before[topology.tail, topology.head] = True
        for u, v in combinations(range(n), 2):
            if not before[u, v]:
                after = before.copy()
                after[u, v] = after[v, u] = True
                yield before, after


def test_some_links_slow_equal_split_down():
    ratios = np.array([equal_split_time(after) / equal_split_time(before) for before, after in additions(6)])
    said = quoted(r"Of the (\d+) at 6 nodes, (\d+) slow ECMP down, by up to (\d+) %")
    assert said == (ratios.size, (ratios > 1 + 1e-9).sum(), pytest.approx(100 * (ratios.max() - 1)))


@each(("n", "missing"), [(3, 1), (4, 3 + 3 + 2 + 2 + 1)])
def test_no_link_slows_the_optimum_down(n, missing):
    """Additions: the pairs that are not linked in the path, and in the six connected graphs of 4 nodes."""
    assert unchanged(n)[0] == missing


@pytest.mark.slow
def test_links_that_nobody_misses():
    counts = np.array([unchanged(n) for n in (3, 4, 5, 6)]).sum(axis=0)
    assert quoted(r"Of the (\d+) ways to add a link to a connected graph of 3 to 6 nodes, (\d+)") == tuple(counts)


def unchanged(n):
    """Number of additions, and of those that do not change T."""
    ratios = [flow_time(after) / flow_time(before) for before, after in additions(n)]
    assert max(ratios) < 1 + 1e-7
    return len(ratios), sum(ratio > 1 - 1e-7 for ratio in ratios)


def test_single_paths_take_at_most_the_optimum_rounded_up():
    worst = {}
    for n in (4, 5):
        for topology in graphs(n):
            fluid = 1 / solved("alltoall.master", topology)[1]
            single = solved("alltoall.min-congestion", topology, paths="all")[1]
            assert single <= math.ceil(fluid - 1e-7) + 1e-7
            worst[n] = max(worst.get(n, 0), single / fluid)
    said = re.search(r"at most (\d/\d) of the optimum on graphs of 4 nodes and (\d/\d) on 5", " ".join(SECTION.split()))
    assert [float(Fraction(one)) for one in said.groups()] == pytest.approx([worst[4], worst[5]])


def test_mesh_links_that_can_fail():
    """16 of 24 links of a 4x4 mesh, one at a time."""
    mesh = parse("mesh:4x4")
    links = np.zeros((16, 16), dtype=bool)
    links[mesh.tail, mesh.head] = True
    kept = 0
    for u, v in zip(mesh.tail.tolist(), mesh.head.tolist(), strict=True):
        if u < v:
            without = links.copy()
            without[u, v] = without[v, u] = False
            kept += flow_time(without) < 16 * (1 + 1e-7)
    assert kept == int(re.search(r"without one of (\d+) of its 24 links", SECTION)[1])
