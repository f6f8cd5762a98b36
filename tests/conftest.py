"""Shared fixtures: a store of its own for every test, and an independent LP solver (SciPy)."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def private_store(tmp_path, monkeypatch):
    """No test may write to the user's results."""
    monkeypatch.setenv("OPTICOLL_STORE", str(tmp_path / "store"))
