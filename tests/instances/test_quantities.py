"""Times as settings: with units, relative, and by the name of a technology."""

from __future__ import annotations

import pytest

from opticoll.instances.quantities import TECHNOLOGIES, Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3.7us", 3.7e-6), ("3d-mems", 1e-2), ("2d-mems", 11.5e-6), ("tunable-lasers", 3.8e-9), ("1.5", None)],
)
def test_a_time_in_seconds(text, seconds):
    assert Duration(text).seconds == (None if seconds is None else pytest.approx(seconds))


def test_every_technology_is_the_time_of_table_one():
    assert {name: str(Duration(name)) for name in TECHNOLOGIES} == TECHNOLOGIES
    for wrong in ("patch-panel", "3d", True):
        with pytest.raises(ValueError, match="could not convert string to float"):
            Duration(wrong)
