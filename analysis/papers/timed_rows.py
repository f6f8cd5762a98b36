"""Rows of the papers' benchmark tables: a command, timed from start to verified finish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.analysis.benchmark.measured_tables import timed_solve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.benchmark.measured_tables import Row


def timed_row(columns: Mapping[str, str], formulation: str, instance: str, *more: str) -> Row:
    """Run ``opticoll solve``; the row has the instance, the columns, and the seconds of the whole command.

    Parameters
    ----------
    columns
        The field of the record by heading; fields within fields are separated by dots: ``time.solve_s``.
    formulation, instance, more
        Arguments of the command.
    """
    seconds, record = timed_solve(formulation, instance, *more)
    fields = {heading: _field(record, path) for heading, path in columns.items()}
    return {"instance": instance, **fields, "whole command [s]": seconds}


def _field(record: Any, path: str) -> Any:
    """A field of a record; None for a metric that it lacks."""
    for name in path.split("."):
        record = record.get(name)
    return record
