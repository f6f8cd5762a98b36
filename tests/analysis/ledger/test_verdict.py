"""The logic of verdicts: the natural reading decides, refutation needs every reading and a witness."""

from __future__ import annotations

import pytest
from case_families import each
from hypothesis import given
from hypothesis import strategies as st

from opticoll.analysis.ledger.verdict import (
    AS_STATED,
    Choice,
    NaturalReading,
    Verdict,
    decide,
    distance,
    marked,
    sensitivity,
    verdict_if,
)

#: Whether the claim holds under a reading, and whether the reading belongs to the natural one.
READINGS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6)


def choices_of(readings):
    return tuple(
        Choice(name="rounding", tried=str(k), verdict=verdict_if(holds), natural=natural)
        for k, (holds, natural) in enumerate(readings)
    )


@given(READINGS, st.booleans())
def test_the_natural_reading_decides(readings, witnessed):
    verdict = decide(choices_of(readings), "ring:4" if witnessed else None)
    natural = [holds for holds, belongs in readings if belongs]
    every = [holds for holds, _ in readings]
    if not any(every):
        assert verdict is (Verdict.REFUTED if witnessed else Verdict.NOT_REPRODUCED)
    elif natural:
        assert verdict is (Verdict.REPRODUCED if all(natural) else Verdict.NOT_REPRODUCED)
    else:
        assert verdict is (Verdict.REPRODUCED if all(every) else Verdict.OPEN)


@given(READINGS)
def test_only_a_witness_and_the_failure_of_all_refute(readings):
    verdict = decide(choices_of(readings), "ring:4")
    assert (verdict is Verdict.REFUTED) == (not any(holds for holds, _ in readings))
    assert decide(choices_of(readings)) is not Verdict.REFUTED


@given(READINGS)
def test_more_readings_do_not_change_the_verdict_under_the_natural_one(readings):
    """Once the natural reading holds, or another one does, what else is tried only changes the sensitivity."""
    natural = (Choice(name="rounding", tried="up", verdict=Verdict.REPRODUCED, natural=True),)
    others = tuple(Choice(name="rounding", tried=one.tried, verdict=one.verdict) for one in choices_of(readings))
    assert decide(natural + others) is decide(natural) is Verdict.REPRODUCED
    counts = sensitivity(natural + others)
    assert counts.tried == len(others)
    assert counts.agree == sum(holds for holds, _ in readings)


@given(READINGS)
def test_open_needs_readings_that_differ_and_no_natural_one(readings):
    choices = choices_of(readings)
    if decide(choices) is Verdict.OPEN:
        assert not any(choice.natural for choice in choices)
        assert len({choice.verdict for choice in choices}) == 2
        assert sensitivity(choices).agree == sum(holds for holds, _ in readings)


@given(READINGS)
def test_a_claim_as_stated_must_hold_in_every_reading(readings):
    choices = marked(choices_of(readings), AS_STATED)
    assert all(choice.natural for choice in choices)
    every = all(holds for holds, _ in readings)
    assert decide(choices) is (Verdict.REPRODUCED if every else Verdict.NOT_REPRODUCED)


def test_nothing_decides_nothing():
    with pytest.raises(ValueError, match="at least one reading"):
        decide(())
    assert sensitivity(()) is None


def test_a_reading_of_several_choices_belongs_to_a_natural_one_that_agrees_in_all_it_names():
    natural = NaturalReading(name="both", because="Because.", choices={"rounding": "up", "bytes": ["4", "8"]})
    for name, tried, belongs in (
        ("rounding; bytes", "up; 8", True),
        ("rounding; bytes; link", "up; 4; 100 Gb/s", True),
        ("rounding; bytes", "down; 8", False),
        ("rounding; bytes", "up; 2", False),
        ("rounding", "up", True),
        ("depth", "up", False),
        ("rounding; bytes", "up", False),
    ):
        assert natural.covers(Choice(name=name, tried=tried, verdict=Verdict.REPRODUCED)) is belongs, (name, tried)


def test_the_reading_that_decides_must_have_been_tried():
    natural = NaturalReading(name="up", because="Because.", choices={"rounding": "up"})
    with pytest.raises(ValueError, match="'up' is none of those tried: 0; 1"):
        marked(choices_of([(True, False), (False, False)]), natural)
    assert marked((), natural) == ()
    assert marked(choices_of([(True, True)]), None)[0].natural


@each(
    ("printed", "measured", "away"),
    [
        (4.0, 5.0, 0.25),
        (0, 0.2, 0.2),
        (-2, -1, 0.5),
        ([1, 2], [1, 3], 0.5),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 9}, 0.0),
        (1, "1", None),
        (1, True, None),
        ([1], [1, 2], None),
        ({"a": 1}, {"b": 1}, None),
        ("about 1", 1, None),
        ({}, {}, None),
        ([], [], None),
        ([1, [2, 3]], [1, [2, 6]], 1.0),
    ],
)
def test_distances_are_relative_and_only_between_numbers(printed, measured, away):
    assert distance(printed, measured) == away


@given(st.floats(0.1, 1e6), st.floats(0.5, 2.0))
def test_the_distance_of_a_number_is_its_relative_deviation(printed, factor):
    assert distance(printed, printed * factor) == pytest.approx(abs(factor - 1), abs=1e-9)
    assert distance({"x": printed}, {"x": printed * factor}) == distance(printed, printed * factor)
