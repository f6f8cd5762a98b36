"""Two builds of one model compared as matrices, entry by named entry.

Columns with bounds, integrality and cost; rows with coefficients and both sides; sense and constant of the objective.
The order of rows and columns is free. A row may be multiplied by -1, because CVXPY turns ``>=`` around and Pyomo does
not; its scale may not differ, because duals would. Numbers may differ by round-off (``TOLERANCE``, relative).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64

    Column: TypeAlias = F64
    Row: TypeAlias = dict[str, float]

TOLERANCE = 1e-12


def differences(
    first: StandardForm, second: StandardForm, called: tuple[str, str] = ("the first build", "the second build")
) -> list[str]:
    """What differs between two compiled models, in words; nothing if they are one matrix."""
    return list(each_difference(first, second, called))


@lru_cache(maxsize=4)
def normal(form: StandardForm) -> tuple[dict[str, Column], dict[str, Row]]:
    """Columns and rows by name, rows with their first coefficient, in the order of names, positive."""
    names = form.column_names()
    ends = np.stack([form.col_lower, form.col_upper, np.asarray(form.integer, dtype=float), form.cost], axis=1)
    columns = dict(zip(names, ends, strict=True))
    rows: dict[str, Row] = {}
    A = csr_array(form.A)
    for i, name in enumerate(form.row_names()):
        among = slice(A.indptr[i], A.indptr[i + 1])
        entries = sorted((names[j], value) for j, value in zip(A.indices[among], A.data[among], strict=True) if value)
        sign = np.sign(entries[0][1]) if entries else 1.0
        low, high = sorted([sign * form.row_lower[i] + 0.0, sign * form.row_upper[i] + 0.0])  # not -0.0
        rows[name] = {column: sign * value for column, value in entries} | {"lower": low, "upper": high}
    return columns, rows


def each_difference(
    first: StandardForm, second: StandardForm, called: tuple[str, str] = ("the first build", "the second build")
) -> Iterator[str]:
    """One difference between two compiled models after the other, the cheapest to find first."""
    if (first.sense, len(set(first.column_names()))) != (second.sense, len(set(second.column_names()))):
        yield "sense or number of columns"
    if not np.isclose(first.offset, second.offset, rtol=TOLERANCE, atol=0):
        yield f"constant of the objective: {first.offset!r}, {second.offset!r}"
    for ours, theirs in ((first.columns, second.columns), (first.rows, second.rows)):
        shapes = [(name, ours[name].shape, theirs[name].shape) for name in ours.keys() & theirs.keys()]
        yield from (f"shape of {name}: {one}, {other}" for name, one, other in shapes if one != other)
    (columns, rows), (other_columns, other_rows) = normal(first), normal(second)
    if len(columns) < first.A.shape[1] or len(rows) < first.A.shape[0]:
        yield "two rows or columns of one name"
    yield from _named_differences("column", columns, other_columns, called)
    yield from _named_differences("row", rows, other_rows, called)


def _named_differences(
    kind: str,
    ours: dict[str, Column] | dict[str, Row],
    theirs: dict[str, Column] | dict[str, Row],
    called: tuple[str, str],
) -> Iterator[str]:
    for name in sorted(ours.keys() ^ theirs.keys()):
        there, one, other = (called[0], ours, theirs) if name in ours else (called[1], theirs, ours)
        such = f"; the other has {kind}s such as {', '.join(sorted(other)[:3])}" if other else ""
        yield f"{kind} {name}: only in {there}, {_printed(one[name])}{such}"
    for name in sorted(ours.keys() & theirs.keys()):
        if not _same(ours[name], theirs[name]):
            yield f"{kind} {name}: {_printed(ours[name])}, {_printed(theirs[name])}"


def _same(ours: Column | Row, theirs: Column | Row) -> bool:
    """Whether two columns or rows are equal up to round-off."""
    if isinstance(ours, dict):
        assert isinstance(theirs, dict)
        if ours == theirs or ours.keys() != theirs.keys():
            return ours == theirs
        first, second = (np.array([part[key] for key in ours]) for part in (ours, theirs))
    else:
        first, second = ours, np.asarray(theirs)
    return np.array_equal(first, second) or bool(np.isclose(first, second, rtol=TOLERANCE, atol=0).all())


def _printed(one: Column | Row) -> str:
    """A row as its terms between its sides; a column as its bounds, whether it is whole, and its cost."""
    if not isinstance(one, dict):
        lower, upper, whole, cost = one.tolist()
        return f"{'whole ' if whole else ''}in [{lower:g}, {upper:g}] of cost {cost:g}"
    terms = " + ".join(f"{value:g} {name}" for name, value in one.items() if name not in ("lower", "upper"))
    return f"{one['lower']:g} <= {terms or '0'} <= {one['upper']:g}"
