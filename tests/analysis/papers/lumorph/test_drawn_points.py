"""The drawn points of LuMorph's figures against values computed here a second time, from the tables alone."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import opticoll.instances.published
from opticoll.analysis.papers.lumorph import drawn_points
from opticoll.analysis.papers.lumorph.drawn_points import (
    PANELS,
    TOLERANCE,
    communication,
    fitted_buffer,
    gains,
    layers,
    points,
    queue_bounds,
)
from opticoll.errors import BadInput
from opticoll.formulations.lumorph.cost_formulas import ALGORITHMS, RATES, formula, layer_time

TABLES = Path(opticoll.instances.published.__file__).parent
#: Calls among all 256 GPUs, MB over the ring's bandwidth: sums of all-reduce times on 256 GPUs [ms], read off the logs.
TOTALS = {"bert": (52.820, 14.415, 11.359), "ncf": (9.390, 4.518, 5.027), "inception": (68.369, 13.915, 7.407)}
PER_BYTE = 1e6 / (300 * 2**30)


def drawn(number):
    with (TABLES / "lumorph_figures.csv").open(newline="", encoding="utf-8") as file:
        return [(p, s, float(x), float(y)) for n, p, s, x, y in csv.reader(file) if n == number]


def written_out(name, n, mib, delay=3.7, per_byte=PER_BYTE):
    """The formulas as the data's README prints them [us]."""
    data, log = mib * 2**20 * per_byte, n.bit_length() - 1
    if name == "Ideal switch+Ring":
        return 1.4 * (n - 1) + (2 - 2 / n) * data
    if name == "Ideal switch+Tree":
        return 1.4 * log + 4 * data
    if name == "Lumorph-2":
        return 2 * log * (0.7 + delay) + (2 - 2 / n) * data
    if name == "Lumorph-4":
        return 2 * -(-log // 2) * (0.7 + delay) + 4 / 3 * (2 - 2 / n) * data
    return (log - 1) * (0.7 + delay + data)


def test_figure_7_to_a_nanosecond():
    rows = drawn("7")
    assert len(rows) == len(points("7")) == 135
    for panel, name, mib, time in rows:
        assert written_out(name, int(panel.split("_")[0]), mib) == pytest.approx(time, abs=TOLERANCE["7"])
    assert [point.low for point in points("7")] == pytest.approx(
        [written_out(p.series, int(p.panel.split("_")[0]), p.x) for p in points("7")], rel=1e-12
    )


def test_figure_8_to_a_nanosecond_with_one_buffer_fitted():
    mib = fitted_buffer() / 2**20
    assert mib == pytest.approx(9.406, abs=1e-3)
    for _, name, delay, time in drawn("8a"):
        assert written_out(name, 256, mib, delay / 1000) == pytest.approx(time, abs=TOLERANCE["8a"])
    for _, buffer, rate, time in drawn("8b"):
        mine = written_out("Lumorph-2", 256, float(buffer.split()[0]), per_byte=1e6 / (16 * rate * 2**30))
        assert mine == pytest.approx(time, abs=TOLERANCE["8b"])
    assert (len(points("8a")), len(points("8b"))) == (9, 25)


@pytest.mark.parametrize("number", ["5", "6", "7", "8a", "8b", "10"])
def test_every_computed_point_agrees_and_every_other_is_within_its_bounds(number):
    assert len(points(number)) == len(drawn(number))
    assert all(point.agrees for point in points(number))
    # Twice the tolerance off, no computed point agrees.
    step = 2 * TOLERANCE[number] + 1e-9
    moved = [
        drawn_points.Point(p.figure, p.panel, p.series, p.x, p.drawn + step, p.low, p.high, p.exact)
        for p in points(number)
        if p.exact and abs(p.drawn - p.low) < step / 4
    ]
    assert moved
    assert not any(point.agrees for point in moved)


def test_figure_5_and_6_points_of_the_best_routes_are_proven():
    assert sum(point.exact for point in points("5")) == 14 + 24
    assert sum(point.exact for point in points("6")) == 28
    # The last step on 16x16: columns of 16 tiles; a cut of 16 edges between rows 8 and 9.
    pairs = [(a, b) for a, b in itertools.permutations(range(16), 2) if a % 4 == b % 4]
    crossing = sum((a < 8) != (b < 8) for a, b in pairs)
    (top,) = [p for p in points("5") if (p.panel, p.series, p.x) == ("left", "Lumorph-4+MCF", 256)]
    assert top.low == crossing == 32
    with pytest.raises(KeyError):
        points("3")


def logged(model, n):
    """Sizes of the calls among all GPUs, in the log's order, from the table."""
    with (TABLES / "lumorph_calls.csv").open(newline="", encoding="utf-8") as file:
        return [
            int(row["bytes"])
            for row in csv.DictReader(file)
            if row["model"] == model and row["gpus"] in ("any", str(n)) and row["kind"] == "all-reduce"
            for _ in range(int(row["repeat"]))
        ]


@pytest.mark.parametrize("model", TOTALS)
def test_figure_10_has_the_shares_of_the_logged_calls(model):
    counts = Counter(logged(model, 256))
    levels = {round(sum(k for s, k in counts.items() if s <= size) / counts.total(), 4) for size in counts}
    shown = {point.drawn for point in points("10") if point.series == model}
    assert shown <= {*levels, 0.0}
    assert len(levels - shown) <= 1, "the drawing ends where all calls are counted"
    ours = {point.low for point in points("10") if point.series == model}
    assert ours <= {0.0, *drawn_points.shares(model).values()}


@pytest.mark.parametrize("model", TOTALS)
def test_all_communication_has_the_times_of_the_readme(model):
    names = ("Ideal switch+Ring", "Lumorph-2", "Lumorph-4")
    apart = [communication(model, 256, name) - layers(model, 256) for name in names]
    assert apart == pytest.approx([1e3 * t for t in TOTALS[model]], abs=0.6)
    assert apart == pytest.approx(
        [sum(written_out(name, 256, size / 2**20) for size in logged(model, 256)) for name in names], rel=1e-12
    )
    assert layers(model, 256) == pytest.approx(2522.933 if model == "ncf" else 0.0, abs=1e-3)


def test_figure_11_lies_within_the_bounds_but_for_four_points():
    off = [(p.panel, p.series, p.x) for p in points("11") if not p.agrees]
    assert len(points("11")) == 63
    assert sorted(off) == [
        ("ncf", "Lumorph-2", 64),
        ("ncf", "Lumorph-4", 8),
        ("ncf", "Lumorph-4", 64),
        ("ncf", "Lumorph-4", 128),
    ]


@pytest.mark.parametrize(("model", "most"), [("bert", 1.727), ("ncf", 1.0755), ("inception", 1.3182)])
def test_figure_11_ratios(model, most):
    result = gains(model)
    assert max(gain.drawn for gain in result) == pytest.approx(most, abs=1e-4)
    by_table = {(s, int(x)): y for p, s, x, y in drawn("11") if p == model}
    for gain in result:
        assert gain.drawn == pytest.approx(
            by_table[gain.algorithm, gain.gpus] / by_table["Ideal switch+Ring", gain.gpus]
        )
        if gain.queue is not None:
            assert gain.low <= gain.queue[0] <= gain.queue[1] <= gain.high
    top = [gain for gain in result if gain.gpus == 256]
    assert all(gain.low <= gain.drawn <= gain.high for gain in top)
    assert all(gain.queue is None or gain.queue[0] <= gain.drawn <= gain.queue[1] for gain in top)
    assert {gain.queue is None for gain in result} == {model == "ncf"}


@pytest.mark.parametrize("order", [1, -1])
def test_the_bounds_of_the_queue_hold_for_any_ready_times(order, monkeypatch):
    """Simulate the queue with random ready times; the bounds know only what computing and the ring's run take."""
    random, sizes = np.random.default_rng(5), logged("bert", 256)[::order]

    def run(ready, name):
        now = 0.0
        for r, size in zip(ready, sizes, strict=True):
            now = max(now, r) + written_out(name, 256, size / 2**20)
        return max(now, free)

    for free in (2e4, 4e4, 9e4):
        ready = np.sort(random.uniform(0, free, len(sizes)))
        times = {"Zero-cost": free, "Ideal switch+Ring": run(ready, "Ideal switch+Ring")}
        monkeypatch.setattr(drawn_points, "drawn_time", lambda model, n, series, times=times: times[series])
        for name in ("Lumorph-2", "Lumorph-4"):
            low, high = queue_bounds("bert", 256, name)
            assert low - 1e-6 <= run(ready, name) <= high + 1e-6
            assert free <= low <= high <= free + communication("bert", 256, name) + 1e-6


# costs ----------------------------------------------------------------------------------------------------------------


def test_the_variants_of_the_costs_differ_where_they_say():
    sixteen = {variant: formula("Lumorph-4", 256, variant) for variant in ("printed", "plotted", "coded")}
    assert [cost.rounds for cost in sixteen.values()] == [8, 8, 8]
    assert [cost.reconfigure_us for cost in sixteen.values()] == [3.7, 3.7, 5.0]
    assert sixteen["plotted"].volume == sixteen["coded"].volume == pytest.approx(4 / 3 * sixteen["printed"].volume)
    assert (RATES["printed"], RATES["plotted"]) == (300e3, pytest.approx(322_122.547))
    tree = {variant: formula("Ideal switch+Tree", 256, variant) for variant in ("plotted", "coded")}
    assert (tree["plotted"].paid, tree["coded"].paid) == (0, 16)
    at = {name: formula(name, 256, "plotted").time(64 * 2**20) for name in ALGORITHMS}
    assert [round(at[name], 1) for name in ("Ideal switch+Ring", "Lumorph-2", "Lumorph-4")] == [772.0, 485.4, 588.6]
    assert round(formula("Lumorph-4", 256, "coded").time(64 * 2**20), 1) == 599.0


@pytest.mark.parametrize(
    ("name", "n", "variant", "words"),
    [
        ("Ideal switch+Tree", 256, "printed", "use variant plotted"),
        ("D&C", 256, "coded", "use variant plotted"),
        ("Lumorph-2", 24, "plotted", "power of two"),
        ("Lumorph-3", 16, "plotted", "use one of"),
    ],
)
def test_a_missing_cost_is_refused(name, n, variant, words):
    with pytest.raises(BadInput, match=words):
        formula(name, n, variant)


def test_transfers_between_layers_are_priced_as_in_the_code():
    # All-to-all of 4: two rounds. 32 senders to 64: every sender has 63 peers, 16 greedy rounds at an eighth.
    assert layer_time(range(4), range(4), 131072) == pytest.approx(9.6138, abs=1e-4)
    assert layer_time(range(32), range(64), 65536) == pytest.approx(96.4417, abs=1e-4)
    assert layer_time([3], [3], 1e9) == 0.0
    assert layer_time([0, 0, 1], [0, 1], 1e6) == layer_time([0, 1], [0, 1], 1e6)


def test_every_panel_is_in_the_table():
    assert {(n, p) for n in PANELS for p in PANELS[n]} == {(n, p) for n in PANELS for p, *_ in drawn(n)}


# the page -------------------------------------------------------------------------------------------------------------


def test_the_page_has_our_numbers():
    text = (Path(__file__).resolve().parents[4] / "docs" / "guide" / "figures-lumorph.md").read_text(encoding="utf-8")
    for model in TOTALS:
        for gain in gains(model):
            if gain.gpus == 256:
                name = gain.algorithm.upper()
                queue = "–" if gain.queue is None else "{:.3f} to {:.3f}".format(*gain.queue)
                row = f"| {model}, {name} | {gain.drawn:.3f} | {gain.low:.3f} to {gain.high:.3f} | {queue} |"
                assert row in text
    for number, words in (("7", "µs"), ("8a", "µs"), ("8b", "µs"), ("10", "0.00005")):
        count = len(points(number))
        assert f"{count} of {count} within" in text, words
    assert f"{sum(p.agrees for p in points('11'))} of {len(points('11'))} within our bounds" in text
    outside = [
        (gain.gpus, abs(gain.drawn - max(min(gain.drawn, gain.queue[1]), gain.queue[0])))
        for model in TOTALS
        for gain in gains(model)
        if gain.queue is not None and not gain.queue[0] <= gain.drawn <= gain.queue[1]
    ]
    assert max(off for _, off in outside) < 0.02
    assert sum(gpus >= 64 for gpus, _ in outside) == 1
