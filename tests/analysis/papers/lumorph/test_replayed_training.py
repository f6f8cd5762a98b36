"""BERT's iteration replayed: the logged calls, the queue by hand, and what the gain over the ring depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from opticoll.analysis.papers.lumorph.drawn_points import FREE, call_sizes, drawn_time, gains
from opticoll.analysis.papers.lumorph.replayed_training import bert_iteration, iteration_us, replayed_gain
from opticoll.formulations.lumorph.cost_formulas import formula


def test_the_calls_are_those_of_the_logs():
    assert tuple(sorted(call.size for call in bert_iteration(256).calls)) == call_sizes("bert")
    joined = bert_iteration(256, split=False).calls
    assert (len(joined), sum(call.size for call in joined)) == (36 + 49, sum(call_sizes("bert")))


@pytest.mark.parametrize("algorithm", ["Ideal switch+Ring", "Lumorph-2", "Lumorph-4"])
def test_the_time_is_that_of_one_queue(algorithm):
    job, cost = bert_iteration(256), formula(algorithm, 256, "plotted")
    now, free, calls = 0.0, 0.0, list(job.calls)
    for number, stage in enumerate(job.stages):
        now += stage.computing_us
        while calls and calls[0].ready == number:
            free = max(now, free) + cost.time(calls.pop(0).size)
    assert iteration_us(job, algorithm) == pytest.approx(max(now, free), abs=0.5)
    everything = sum(cost.time(call.size) for call in job.calls)
    assert iteration_us(job, algorithm, overlap=False) == pytest.approx(now + everything, abs=0.5)


def test_the_gain_depends_on_computing_and_on_the_number_of_calls():
    free = drawn_time("bert", 256, FREE)
    assert sum(stage.computing_us for stage in bert_iteration(256, free_us=free).stages) == pytest.approx(free)
    assert replayed_gain(256, free_us=free) == pytest.approx(1.659, abs=5e-4)
    assert replayed_gain(256) == pytest.approx(1.316, abs=5e-4)
    assert replayed_gain(256, free_us=free, split=False) < 1.25
    assert replayed_gain(256, free_us=free, overlap=False) > 1.8


def test_the_page_has_our_numbers():
    text = (Path(__file__).resolve().parents[4] / "docs" / "guide" / "figures-lumorph.md").read_text(encoding="utf-8")
    for gpus in (64, 128, 256):
        free = drawn_time("bert", gpus, FREE)
        drawn = max(gain.drawn for gain in gains("bert") if gain.gpus == gpus)
        ways = ({"free_us": free}, {}, {"free_us": free, "split": False}, {"free_us": free, "overlap": False})
        row = [str(gpus), f"{drawn:.3f}", *(f"{replayed_gain(gpus, **way):.3f}" for way in ways)]
        assert f"| {' | '.join(row)} |" in text
    small = [size for size in call_sizes("bert") if size <= 4096]
    assert f"{len(small)} of the {len(call_sizes('bert'))} calls have at most 4096 bytes" in text
