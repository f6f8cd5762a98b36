"""Benchmark tables by name; a module of this package with ``TABLES`` adds its own."""

from __future__ import annotations

from analysis.benchmarks.base import Row, Table
from instances.registry import contributed


def tables() -> dict[str, Table]:
    """All tables by name.

    Raises
    ------
    RuntimeError
        If two have one name.
    """
    found: dict[str, Table] = {}
    for one in contributed(__name__, "TABLES"):
        if found.setdefault(one.name, one) is not one:
            msg = f"two benchmark tables are called {one.name!r}: {found[one.name].title!r} and {one.title!r}"
            raise RuntimeError(msg)
    return found


__all__ = ["Row", "Table", "tables"]
