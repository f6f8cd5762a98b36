"""A few cases of every quick part of the soak test, so it keeps working."""

from __future__ import annotations

import pytest
import soak
from case_families import each


@each("part", [part for part in soak.PARTS if part.quick])
def test_a_few_cases(part: soak.Part) -> None:
    again = soak.Part(part.name, part.run)
    for number in range(3):
        again.case(f"smoke.{number}")
    assert again.misses == []
    assert again.counts.total() == 3


def test_a_miss_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(draw: object, folder: object) -> str:
        raise KeyError("broken")  # noqa: EM101

    part = soak.Part("broken", broken)
    soak.campaign((part,), 0.0, 7, most=1)
    assert part.counts["missed"] == 1
    assert "MISSED broken, case 7.0: KeyError" in capsys.readouterr().out
    assert "| broken | 1 | 0 | 0 | 1 |" in soak.page((part,), "1s", 7)
