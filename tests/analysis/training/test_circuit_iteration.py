"""Iterations on circuits in rounds: times by hand, bounds, replay of the schedule, wrong schedules, messages."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.training.circuit_iteration import circuit_iteration
from opticoll.analysis.training.circuit_replay import BLOCKS, residuals
from opticoll.analysis.training.timed_rounds import CircuitCosts, CircuitRounds
from opticoll.errors import BadInput
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_2, LUMORPH_4, formula
from opticoll.instances import parse
from opticoll.instances.topology import parse_rate
from opticoll.instances.training.task_graph import TaskGraphDraft

#: Bytes/s of a wavelength; 16 of them are 300 GB/s.
RATE = parse_rate("150Gb/s") / 8
COSTS = CircuitCosts(0.7e-6, 3.7e-6, RATE)
#: A buffer of four chunks of 15 MB: 50 us over 16 wavelengths.
BUFFER = 60e6
#: Bytes that take 10 us over 5 wavelengths, floor(16 / 3 peers).
SENT = 937_500.0


def one_layer(*, exchange=SENT):
    """100 us of computing, an exchange among all four, 50 us, then an all-reduce."""
    draft = TaskGraphDraft(4)
    first = [draft.compute(server, 100e-6) for server in range(4)]
    sent = [draft.transfer(s, t, exchange, [first[s]]) for s in range(4) for t in range(4) if s != t]
    last = [draft.compute(server, 50e-6, sent) for server in range(4)]
    draft.all_reduce(range(4), BUFFER, last)
    return draft.finished()


@pytest.mark.parametrize(
    ("algorithm", "time", "changes"),
    [
        # Halving 2 chunks, 1; doubling 1, 2: 4 rounds. The circuits of the second stay for the third.
        ("lumorph-2", 4 * 0.7 + 3 * 3.7 + 6 * 50, 3),
        # Two steps among all four: 5 wavelengths a pair in one round, 160 us, or 16 in three rounds.
        ("lumorph-4", 2 * 0.7 + 3.7 + 2 * 160, 1),
        # Six steps over circuits that stay.
        ("ring", 6 * 0.7 + 3.7 + 6 * 50, 1),
        ("auto", 6 * 0.7 + 3.7 + 6 * 50, 1),
    ],
)
def test_an_iteration_by_hand(algorithm, time, changes):
    result = oc.iteration(one_layer(), "lightpath:2x2", algorithm=algorithm, check=True)
    parts = result.circuits
    assert parts.all_reduces_s == pytest.approx(1e-6 * time, abs=1e-12)
    assert parts.exchanges_s == pytest.approx(1e-6 * (4.4 + 10), abs=1e-12)
    assert result.seconds == pytest.approx(1e-6 * (100 + 14.4 + 50 + time), abs=2e-9)
    assert parts.naive_s == pytest.approx(result.seconds, abs=2e-9), "one call has no other place"
    assert parts.exposed_s == pytest.approx(1e-6 * (14.4 + time), abs=2e-9)
    assert result.changes == changes + 1
    assert parts.changing_s == pytest.approx(3.7e-6 * (changes + 1))
    # Six steps of 0.7 + 50 us, and 0.7 us + 3 x 937,500 bytes at 300 GB/s.
    assert parts.switch_s == pytest.approx(1e-6 * (100 + 0.7 + 9.375 + 50 + 6 * 50.7), abs=2e-9)
    assert (parts.proof, parts.gap) == ("optimal", 0.0)
    assert result.bound_s == pytest.approx(result.seconds)
    assert result.violation < 1e-9
    assert result.routing is None
    # The chain: 100, 937,500 bytes and 50, then 2 x 3/4 of the buffer, all at 300 GB/s.
    assert parts.least_s == pytest.approx(1e-6 * (100 + 3.125 + 50 + 300))
    assert result.bounds["server"] == pytest.approx(1e-6 * (100 + 50 + 300))


def test_tiles_outside_a_group_could_help():
    """Three of four tiles: 60 MB out of a server at 300 GB/s, where the three alone need 4/3 of that."""
    draft = TaskGraphDraft(3)
    draft.all_reduce(range(3), BUFFER, [draft.compute(server, 100e-6) for server in range(3)])
    helped = oc.iteration(draft.finished(), "lightpath:2x2").circuits
    alone = oc.iteration(draft.finished(), "lightpath:1x3").circuits
    assert (helped.least_s, alone.least_s) == (pytest.approx(300e-6), pytest.approx(1e-6 * (100 + 800 / 3)))


@pytest.mark.parametrize(("algorithm", "name"), [("lumorph-2", LUMORPH_2), ("lumorph-4", LUMORPH_4)])
@pytest.mark.parametrize("size", [4096.0, 4e6, 256e6])
def test_with_waveguides_enough_the_times_are_the_papers(algorithm, name, size):
    """Section 4's costs, but the circuits of the last step of reducing stay for the first of gathering.

    Fifteen lasers of 20 GB/s: three peers use all of them.
    """
    rounds = CircuitRounds(parse("lightpath:4x4,lasers=15,waveguides=64"), CircuitCosts(0.7e-6, 3.7e-6, 20e9))
    found = rounds.all_reduce(tuple(range(16)), size, algorithm)
    printed = formula(name, 16, "printed")
    assert found.seconds == pytest.approx(1e-6 * (printed.time(size) - 3.7))
    assert (found.durations.size, found.changes) == (printed.rounds, printed.rounds - 1)


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("lightpath:3x3,lasers=1", {}),
        ("lightpath:1x6,lasers=2", {"overlap": "none"}),
        pytest.param("lightpath:4x8,lasers=16", {"servers": 24}, marks=pytest.mark.slow),
        ("lightpath:2x2", {"servers": 3, "delay": "1ms"}),
        ("lightpath:2x2", {"latency": 0.0, "delay": 0.0}),
    ],
)
def test_models_pass_the_replay(spec, settings):
    result = oc.iteration("dlrm", spec, section="5.6", check=True, **settings)
    parts = result.circuits
    assert result.violation < 1e-9
    assert parts.least_s <= result.bound_s * (1 + 1e-12) <= result.seconds * (1 + 2e-12)
    assert parts.proof == "optimal"
    assert result.seconds <= parts.naive_s * (1 + 1e-12)
    assert parts.switch_bound_s <= parts.switch_s * (1 + 1e-12)
    if not settings.get("latency", 1.0):
        assert result.seconds == pytest.approx(parts.switch_s), "lasers enough, and nothing but bytes takes time"


def test_few_lasers_make_rounds():
    """One laser: every GPU sends to one at a time, three rounds, or two of the index algorithm with two chunks each."""
    rounds = CircuitRounds(parse("lightpath:2x2,lasers=1,waveguides=1"), COSTS)
    for bytes_of_a_pair, name, time in ((1875.0, "index algorithm, radix 2", 9.2), (1.875e6, "direct", 313.2)):
        amounts = bytes_of_a_pair * (1 - np.eye(4))
        result = rounds.exchange(amounts)
        assert (result.algorithm, result.seconds) == (name, pytest.approx(1e-6 * time))
    assert rounds.all_reduce((0, 1, 2, 3), BUFFER).algorithm in {"lumorph-2", "ring"}
    with pytest.raises(oc.NotApplicable, match="3 simultaneous peers need 3 lasers"):
        rounds.all_reduce((0, 1, 2, 3), BUFFER, "lumorph-4")


def test_few_waveguides_split_a_step_or_thin_its_circuits():
    """Halves of 1x4 exchange over the middle: two pairs share its arcs, so 8 wavelengths each in one round."""
    rounds = CircuitRounds(parse("lightpath:1x4,waveguides=1"), COSTS)
    wide = CircuitRounds(parse("lightpath:1x4,waveguides=2"), COSTS)
    narrow, free = (each.all_reduce((0, 1, 2, 3), BUFFER, "lumorph-2") for each in (rounds, wide))
    assert free.seconds == pytest.approx(1e-6 * (4 * 0.7 + 3 * 3.7 + 6 * 50))
    assert free.durations == pytest.approx(1e-6 * np.array([104.4, 54.4, 50.7, 104.4]))
    assert narrow.durations == pytest.approx(1e-6 * np.array([204.4, 54.4, 50.7, 204.4]))


def test_calls_hide_behind_computing():
    draft = TaskGraphDraft(4)
    first = [draft.compute(server, 100e-6) for server in range(4)]
    draft.all_reduce(range(4), BUFFER, first)
    last = [draft.compute(server, 400e-6, [first[server]]) for server in range(4)]
    draft.all_reduce(range(4), BUFFER, last)
    result = oc.iteration(draft.finished(), "lightpath:2x2", algorithm="ring", check=True)
    assert result.seconds == pytest.approx(1e-6 * (500 + 307.9), abs=2e-9)
    assert result.circuits.naive_s == pytest.approx(1e-6 * (500 + 2 * 307.9), abs=2e-9)
    assert result.violation < 1e-9


def test_a_call_is_held_back_where_it_would_delay_transfers():
    """After 100 us: 10 us of computing, a transfer and 1000 us of computing; the call fits beside those."""
    draft = TaskGraphDraft(4)
    first = [draft.compute(server, 100e-6) for server in range(4)]
    draft.all_reduce(range(4), BUFFER, first)
    second = [draft.compute(server, 10e-6, [first[server]]) for server in range(4)]
    sent = draft.transfer(0, 3, SENT, second)
    for server in range(4):
        draft.compute(server, 1000e-6, [second[server], sent])
    result = oc.iteration(draft.finished(), "lightpath:2x2", check=True)
    # One pair has all 16 wavelengths.
    assert result.seconds == pytest.approx(1e-6 * (110 + 4.4 + 3.125 + 1000), abs=2e-9)
    assert (result.circuits.proof, result.bound) == ("optimal", "computing")
    assert result.violation < 1e-9


def random_graph(seed, servers=6):
    random = np.random.default_rng(seed)
    draft = TaskGraphDraft(servers)
    before = [[] for _ in range(servers)]
    for _ in range(4):
        for server in range(servers):
            before[server] = [draft.compute(server, float(random.uniform(0, 1e-4)), before[server])]
        members = sorted(random.choice(servers, int(random.integers(2, servers + 1)), replace=False).tolist())
        if random.random() < 0.8:
            waits = [task for server in members for task in before[server]]
            draft.all_reduce(members, float(random.uniform(1e3, 2e7)), waits)
        if random.random() < 0.6:
            for _ in range(4):
                source, target = random.choice(servers, 2, replace=False).tolist()
                sent = draft.transfer(source, target, float(random.uniform(1e3, 1e6)), before[source])
                before[target] = [*before[target], sent]
    return draft.finished()


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow), 3, 4, 5])
@pytest.mark.parametrize("spec", ["lightpath:2x3,lasers=3", "lightpath:2x3+fail=1,seed=1"])
def test_random_graphs_pass_the_replay(spec, seed):
    result = circuit_iteration(random_graph(seed), parse(spec), rate=RATE, check=True, time_limit=5)
    assert result.violation < 1e-9
    assert max(result.bounds.values()) <= result.seconds * (1 + 1e-9)
    assert result.parts.least_s <= result.seconds <= result.parts.naive_s * (1 + 1e-12)
    assert result.parts.proof in {"optimal", "exact"}


def test_wrong_schedules_are_refused():
    graph, mesh = one_layer(), parse("lightpath:2x2")
    right = circuit_iteration(graph, mesh, rate=RATE, algorithm="lumorph-2").schedule

    def worst(schedule, where=mesh, costs=COSTS):
        return residuals(graph, where, schedule, latency=costs.latency, delay=costs.delay, rate=costs.rate)

    def changed(number, **fields):
        several = list(right.communications)
        several[number] = replace(several[number], **fields)
        return replace(right, communications=tuple(several))

    assert set(worst(right)) == set(BLOCKS)
    assert max(worst(right).values()) < 1e-12
    early, short = right.begin.copy(), right.end.copy()
    early[-2] -= 1e-5
    short[0] -= 1e-5
    exchange, reduction = right.communications
    kept = np.arange(exchange.schedule.circuits)[1:]
    lost = exchange.schedule.taken(kept, np.arange(exchange.schedule.transfers))
    untold = exchange.schedule.taken(np.arange(exchange.schedule.circuits), np.arange(exchange.schedule.transfers)[1:])
    for block, schedule in {
        "order": replace(right, begin=early),
        "computing": replace(right, end=short),
        "device": changed(1, begin=exchange.begin),
        "window": changed(0, begin=exchange.begin - 1e-5),
        "rounds": changed(1, durations=reduction.durations * 0.99),
        "circuits": changed(0, schedule=untold),
        "delivered": changed(0, size=exchange.size * 0.99),
    }.items():
        assert worst(schedule)[block] > 1e-9, block
    assert worst(changed(0, schedule=lost))["rounds"] > 1e-9, "four wavelengths do not carry it in time"
    assert worst(replace(right, communications=right.communications[:1]))["delivered"] >= 1
    assert worst(right, costs=replace(COSTS, delay=4e-6))["rounds"] > 1e-7
    assert worst(right, costs=replace(COSTS, rate=RATE * 0.99))["rounds"] > 1e-9
    assert worst(right, parse("lightpath:2x2,lasers=15"))["circuits"] > 0
    assert worst(replace(right, begin=right.begin[1:]))["order"] == np.inf


def test_both_doors(capfd):
    words = ["iteration", "dlrm", "lightpath:2x4,lasers=4", "--section", "5.6", "--delay", "10us", "--check"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    result = oc.iteration("dlrm", "lightpath:2x4,lasers=4", section="5.6", delay=1e-5, check=True)
    assert document["seconds"] == result.seconds
    assert document["circuits"]["delay_s"] == pytest.approx(1e-5)
    assert document["violation"] < 1e-9
    assert result.circuits.proof == "optimal"
    assert main(words) == 0
    text = capfd.readouterr().out
    assert "circuits in rounds" in text
    assert "on an ideal switch" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lightpath:2x2", "--routing", "even"], "lightpath:2x2 sets circuits in rounds; omit --routing"),
        (["lightpath:2x2", "--ring-factor", "1"], "omit --ring-factor"),
        (["lightpath:2x2", "--servers", "8"], "has 4 servers, but the task graph needs 8"),
        (["lightpath:2x2", "--delay", "soon"], "delay 'soon' is not a time"),
        (["lightpath:2x2", "--delay", "3.7"], "delay '3.7' is not a time"),
        (["lightpath:2x2,lasers=2", "--algorithm", "lumorph-4"], "3 simultaneous peers need 3 lasers"),
        (["lightpath:2x2+host=2.0"], "remove +host"),
        (["ring:4", "--delay", "3.7us"], "ring:4 does not set circuits in rounds, as lightpath:.. does; omit --delay"),
        (["circuits:n=4,degree=2", "--algorithm", "ring"], "omit --algorithm"),
    ],
)
def test_settings_of_the_other_kind_are_refused_in_one_line(capfd, words, message):
    assert main(["iteration", "vgg", *words]) == 2
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_python_speaks_of_arguments():
    with pytest.raises(BadInput, match=r"omit ring_factor$"):
        oc.iteration("vgg", "lightpath:2x2", ring_factor=1.0)
    with pytest.raises(BadInput, match=r"omit time_limit$"):
        oc.iteration("vgg", "ring:4", time_limit=5)
