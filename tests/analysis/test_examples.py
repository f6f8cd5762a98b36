"""Random examples of tests are the same in every run, see ``conftest.py``."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn():
    seen = []

    @given(st.integers(), st.text())
    def note(number, text):
        seen.append((number, text))

    note()
    return seen


@pytest.mark.skipif(not settings.default.derandomize, reason="this run looks for new examples")
def test_examples_do_not_depend_on_the_modules_that_are_loaded(tmp_path, monkeypatch):
    before = drawn()
    module = ModuleType("full_of_constants")
    module.__file__ = str(tmp_path / "full_of_constants.py")
    (tmp_path / "full_of_constants.py").write_text(f"numbers = {[*range(10**6, 10**6 + 500)]}\n")
    monkeypatch.setitem(sys.modules, "full_of_constants", module)
    assert drawn() == before
