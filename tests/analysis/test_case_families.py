"""One test over all cases of a family runs them all and names every one that fails."""

from __future__ import annotations

import inspect

import pytest
from case_families import each


def test_all_failures_are_raised_and_named():
    ran = []

    @each(("number", "text"), [(1, "a"), (2, "b"), (3, "c")])
    @each("factor", (1, -1))
    def positive(number, text, factor, fixture):
        ran.append((number, text, factor))
        assert fixture == "fixture"
        if number == 3:
            pytest.fail("not three")
        assert number * factor > 0

    assert list(inspect.signature(positive).parameters) == ["fixture"]
    with pytest.raises(BaseExceptionGroup, match="3 of 3 cases failed") as caught:
        positive(fixture="fixture")
    assert len(ran) == 6
    for group, inner, case in zip(caught.value.exceptions, (1, 1, 2), (1, 2, 3), strict=True):
        assert group.__notes__ == [f"case number={case!r}, text={'abc'[case - 1]!r}"]
        assert len(group.exceptions) == inner
        assert group.exceptions[-1].__notes__ == ["case factor=-1"]


def test_a_family_without_a_failure_passes():
    ran = []
    each("number", lambda: range(3))(lambda number: ran.append(number))()
    assert ran == [0, 1, 2]


def test_a_family_has_cases():
    with pytest.raises(AssertionError, match="no cases"):
        each("number", [])(lambda number: None)()
