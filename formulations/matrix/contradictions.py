"""Rows and columns of a program that no value satisfies, and columns that appear nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.matrix.program import FileProgram
    from opticoll.instances.topology import F64

    Values = Mapping[str, F64]


def contradiction(data: FileProgram) -> Bound | None:
    """A column or row that no value satisfies: bounds that cross, bounds without an integer, an empty row."""
    program = data.program
    low, high, whole = program.col_lower, program.col_upper, program.integer
    row_low, row_high = program.row_lower, program.row_upper
    empty = np.bincount(program.indices, minlength=program.rows) == 0
    columns, rows = program.column_names, program.row_names
    for what, names, wrong, lower, upper, reason in (
        ("column", columns, low > high, low, high, "its lower bound {} is above its upper bound {}"),
        ("column", columns, whole & (np.ceil(low) > np.floor(high)), low, high, "no integer is between {} and {}"),
        ("row", rows, row_low > row_high, row_low, row_high, "its lower end {} is above its upper end {}"),
        (
            "row",
            rows,
            empty & ((row_low > 0) | (row_high < 0)),
            row_low,
            row_high,
            "it is empty, and 0 is not in [{}, {}]",
        ),
    ):
        if wrong.any():
            first = int(wrong.argmax())
            name = f"{what} {names[first]}"
            ends = reason.format(f"{lower[first]:.15g}", f"{upper[first]:.15g}")
            return Bound(name, np.inf if program.sense == "min" else -np.inf, f"{name}: {ends}", "matrix")
    return None


def with_absent_columns(data: FileProgram, values: Values) -> dict[str, F64]:
    """Set columns that appear nowhere, which modelling layers omit, to a value within their bounds."""
    program = data.program
    absent = (np.diff(program.indptr) == 0) & (program.cost == 0)
    if not absent.any():
        return dict(values)
    low, high = program.col_lower[absent], program.col_upper[absent]
    whole = program.integer[absent]
    x = np.array(values["x"], dtype=float)
    x[absent] = np.clip(0.0, np.where(whole, np.ceil(low), low), np.where(whole, np.floor(high), high))
    return {**values, "x": x}
