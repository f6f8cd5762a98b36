"""Forwarded and combined copies: one matrix, closed forms, enumeration, and the index algorithm against the optimum."""

from __future__ import annotations

import json
from itertools import combinations, product
from math import ceil, log

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph.forwarded_rounds import ForwardedRounds
from opticoll.formulations.lumorph.forwarded_solution import most_peers
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import from_values, violations
from opticoll.instances import parse
from opticoll.solvers.methods.lumorph.index_algorithm import index_pattern, messages, radices

NAME = "lumorph.forwarded-rounds"


def problem(spec, **settings):
    return ForwardedRounds.prepare(parse(spec), settings)


@pytest.mark.parametrize(
    ("spec", "rounds"),
    [
        ("lightpath:1x2,lasers=1", 1),
        ("lightpath:2x2,lasers=1,waveguides=1", 2),
        ("lightpath:2x2,lasers=2,waveguides=1", 2),
        ("lightpath:2x2,lasers=3,waveguides=2", 1),
        ("lightpath:1x3,lasers=1,waveguides=1", 2),
        pytest.param("lightpath:2x3,lasers=2,waveguides=1", 2, marks=pytest.mark.slow),
    ],
)
def test_the_optimum_is_the_closed_form(spec, rounds):
    """ceil(log_{k+1} N) for k lasers, by the program without bounds: the program itself proves it."""
    for bounds in (True, False):
        run = oc.solve(NAME, spec, method="highs", bounds=bounds)
        assert (run.verified, run.value, run.termination) == (True, rounds, "optimal")
    topology = parse(spec)
    assert rounds == ceil(log(topology.n, topology.lasers + 1) - 1e-9)
    assert oc.solve(NAME, spec, method="index-algorithm").value == rounds


def test_a_line_of_three_by_enumeration():
    """Every choice of circuits of one wavelength in up to two rounds: one round never suffices, two do."""
    data = problem("lightpath:1x3,lasers=1")
    pairs = [(s, d) for s, d in product(range(3), repeat=2) if s != d]

    def arcs(s, d):
        step = 1 if d > s else -1
        return {(v, v + step) for v in range(s, d, step)}

    rounds = []
    for size in range(len(pairs) + 1):
        for chosen in combinations(pairs, size):
            used = [arc for s, d in chosen for arc in arcs(s, d)]
            one_each = all(len({pair[end] for pair in chosen}) == size for end in (0, 1))
            if one_each and len(used) == len(set(used)):
                rounds.append(chosen)

    def after(known, chosen):
        return tuple(frozenset(known[v].union(*(known[s] for s, d in chosen if d == v))) for v in range(3))

    start = tuple(frozenset({v}) for v in range(3))
    everything = tuple([frozenset(range(3))] * 3)
    first = {after(start, chosen) for chosen in rounds}
    assert everything not in first
    assert everything in {after(known, chosen) for known in first for chosen in rounds}
    assert data.fewest == 2


@pytest.mark.parametrize(("p", "radix"), [(2, 2), (5, 2), (8, 2), (8, 3), (9, 3), (12, 4), (16, 4)])
def test_the_pattern_is_the_index_algorithm(p, radix):
    wanted = collective("all-to-all", p)
    pattern = index_pattern(wanted, radix)
    steps = ceil(log(p, radix) - 1e-9)
    assert pattern.steps == steps
    _, peers = np.unique(pattern.step * p + pattern.source, return_counts=True)
    if radix**steps == p:
        assert set(peers.tolist()) == {p * (radix - 1) // radix}, "p / r chunks to each of r - 1 peers in every step"


@pytest.mark.parametrize(
    ("spec", "settings", "rounds", "volume"),
    [
        ("lightpath:2x4,lasers=1,waveguides=8", {}, 3, 12),  # radix 2: (N/2) log2 N chunks
        ("lightpath:2x4,lasers=7,waveguides=8", {}, 1, 1),  # direct circuits
        ("lightpath:2x4,lasers=7,waveguides=8", {"radix": 2}, 3, 12),
        ("lightpath:4x4,lasers=3,waveguides=4", {}, 2, 8),  # radix 4: 2 steps of N/4 chunks
        ("lightpath:4x4,lasers=16,waveguides=16", {"radix": 4, "lanes": "all"}, 2, 2),  # 5 lasers a peer: ceil(4/5)
    ],
)
def test_rounds_and_messages_of_the_cost_model(spec, settings, rounds, volume):
    run = oc.solve(NAME, spec, method="index-algorithm", **settings)
    assert run.verified
    assert (run.value, run.metrics["volume"]) == (rounds, volume)
    schedule = from_values(run.values)
    assert messages(schedule)[1] == volume
    assert run.metrics["wavelengths"] == schedule.circuit_wavelength.max() + 1 <= run.plan.problem.limits.wavelengths


@pytest.mark.parametrize("kind", ["broadcast", "scatter", "gather", "all-gather"])
def test_other_collectives_take_the_common_moves_once(kind):
    run = oc.solve(NAME, "lightpath:2x4,lasers=1,waveguides=8", method="index-algorithm", collective=kind)
    assert (run.verified, run.value, run.proof) == (True, 3, "optimal")


def test_the_index_algorithm_is_not_always_optimal():
    """On one row of five tiles with one laser it takes a round more than the program."""
    spec = "lightpath:1x5,lasers=1,waveguides=1"
    best, index = (oc.solve(NAME, spec, method=method).value for method in ("highs", "index-algorithm"))
    assert (best, index) == (3, 4)


def test_forwarding_is_what_the_direct_program_forbids():
    run = oc.solve(NAME, "lightpath:2x4,lasers=1,waveguides=8", method="index-algorithm")
    schedule, data = from_values(run.values), problem("lightpath:2x4,lasers=1,waveguides=8")
    assert sum(data.residuals(run.values).values()) == 0
    strict = violations(data.topology, data.collective, data.plain.limits, schedule)
    assert strict["redundant"] > 0, "chunks pass GPUs that do not require them"
    assert strict["payload"] > 0, "circuits carry several chunks"


def test_corrupted_schedules_are_refused():
    data = problem("lightpath:2x2,lasers=1")
    run = oc.solve(NAME, "lightpath:2x2,lasers=1", method="index-algorithm")
    for name, place, amount, block in (
        ("transfer_round", -1, 0, "payload"),
        ("transfer_chunk", 0, 0, "post"),
        ("circuit_wavelength", 0, 1, "paths"),
        ("transfer_adds", 0, 1, "redundant"),
    ):
        broken = {key: array.copy() for key, array in run.values.items()}
        broken[name][place] = amount
        assert data.residuals(broken)[block] > 0, (name, data.residuals(broken))


def test_the_program_sends_only_what_is_required_further_on():
    data = problem("lightpath:1x3,lasers=1")
    run = oc.solve(NAME, "lightpath:1x3,lasers=1", method="highs")
    schedule = data.rounds(run.values)
    received = set(zip(schedule.transfer_chunk.tolist(), schedule.transfer_target.tolist(), strict=True))
    wanted = set(map(tuple, data.collective.deliveries.tolist()))
    onward = set(zip(schedule.transfer_chunk.tolist(), schedule.transfer_source.tolist(), strict=True))
    assert received <= wanted | onward


def test_bounds_by_hand():
    bounds = {bound.name: bound.value for bound in problem("lightpath:2x4,lasers=2,waveguides=8").analytic_bounds}
    assert bounds == {"spread": 2, "gather": 2}  # 3 ** 2 >= 8 > 3
    gathered = problem("lightpath:2x4,lasers=1,waveguides=8", collective="gather")
    assert {bound.name: bound.value for bound in gathered.analytic_bounds} == {"spread": 1, "gather": 3}
    fibres = problem("wdm-ring:n=8,wavelengths=1")  # two neighbours, one wavelength: two circuits each way
    assert most_peers(fibres) == 2
    assert list(radices(8, 9)) == [8, 3, 2]
    assert list(radices(8, 4)) == [3, 2]


def test_the_command_line(capsys, tmp_path):
    path = tmp_path / "s.json"
    arguments = [NAME, "lightpath:2x2,lasers=1"]
    assert main(["solve", *arguments, "--json", "--no-store", "--schedule", str(path)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["objective"], record["metrics"]["rounds"], record["proof"]) == (2, 2, "optimal")
    assert main(["check", *arguments, str(path)]) == 0
    capsys.readouterr()
    for bad in (
        ["--set", "collective=all-reduce"],
        ["--set", "rmax=-1"],
        ["--method", "index-algorithm", "--set", "radix=1"],
        ["--method", "index-algorithm", "--set", "paths=1"],
    ):
        assert main(["solve", *arguments, *bad]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["solve", *arguments, "--set", "rmax=1"]) == 3


def test_refusals():
    with pytest.raises(NotApplicable, match="sums and does not copy"):
        problem("lightpath:2x2", collective="reduce")
    with pytest.raises(NotApplicable, match="too many to list"):
        problem("lightpath:16x16").pyomo()
