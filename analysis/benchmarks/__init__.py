"""Benchmark tables by name; a module of this package with ``TABLES`` adds its own."""

from __future__ import annotations

from analysis.benchmarks.base import Row, Table
from instances.registry import contributed


def tables() -> dict[str, Table]:
    """All tables by name."""
    return {one.name: one for one in contributed(__name__, "TABLES")}


__all__ = ["Row", "Table", "tables"]
