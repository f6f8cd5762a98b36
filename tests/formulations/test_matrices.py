"""The matrix of every case is the recorded one: builds share data, so that an error in these is in both of them."""

from __future__ import annotations

import json

import pytest
from matrices import EVERY, RECORD, fingerprint, named


@pytest.mark.parametrize(("name", "spec", "settings"), EVERY)
def test_the_matrix_is_the_recorded_one(name, spec, settings):
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert fingerprint(name, spec, settings) == recorded.get(named(name, spec, settings)), (
        "the model has changed; if that is meant, run python tests/matrices.py"
    )


def test_no_record_is_of_a_case_that_is_gone():
    assert set(json.loads(RECORD.read_text(encoding="utf-8"))) == {named(*one) for one in EVERY}
