"""Write a program in matrix form as an MPS or LP file that other tools read as the same program.

Readers differ about what the formats leave open, so the files keep to what all of them read alike
(``docs/reference/matrix-files.md`` has the table of readers):

* the file is a minimization: a maximization is negated, and a comment says so;
* numbers have the digits that give the same double back;
* the constant of the objective is the cost of a column that is fixed at 1, since readers drop,
  refuse or negate others;
* every bound of an integer column is stated, and every lower bound before a negative upper bound;
* rows with two different sides are two rows: readers of MPS files round the sides of a range, or refuse it;
* rows without a side are left out.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.shared_files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, I64

#: Suffixes of the files.
Suffix = Literal[".mps", ".lp"]
#: Comment in the file of a maximization.
NEGATED = "objective negated: the problem is a maximization; its value is minus the value of this file"
#: Row of an LP file whose program has none.
NO_ROW = "no_rows"
#: Longest name in a file: CBC reads up to 100 characters, CPLEX, Gurobi and GLPK up to 255.
LONGEST = 80
#: Words that begin a section, state a sense or are numbers in LP files, or begin one in MPS files.
_RESERVED = frozenset(
    (
        *("min", "max", "minimize", "maximize", "minimise", "maximise", "minimum", "maximum", "subject", "such"),
        *("st", "s.t.", "st.", "to", "that", "bounds", "bound", "general", "generals", "gen", "integer"),
        *("integers", "int", "binary", "binaries", "bin", "free", "inf", "infinity", "nan", "semi", "semis"),
        *("sin", "sos", "sos1", "sos2", "sec", "end", "lazy", "user", "name", "rows", "columns", "rhs", "ranges"),
        *("endata", "objsense", "objname", "obj", "marker"),
    )
)
#: Terms of a line in LP files.
_TERMS = 8


def plain_names(names: Sequence[str], letter: str) -> list[str]:
    """Names that every reader of MPS and LP files takes for names, all different.

    Runs of other characters than letters, digits, ``_`` and ``.`` become ``_``. A name that would be a number, an
    exponent or a word of the formats gets the prefix ``letter_``; names that would be equal or too long get their
    position.
    """
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.") for name in names]
    plain = [name if _is_plain(name) else f"{letter}_{name}" for name in plain]
    if len(set(plain)) < len(plain):
        plain = [f"{name}.{position}" for position, name in enumerate(plain)]
    return [
        name if len(name) <= LONGEST else f"{name[: LONGEST - 12]}.{position}" for position, name in enumerate(plain)
    ]


def _is_plain(name: str) -> bool:
    lower = name.lower()
    return bool(re.match(r"[A-DF-Za-df-z_]", name)) and lower not in _RESERVED and not lower.startswith("inf")


@dataclass(frozen=True)
class WrittenProgram:
    """A program as a file states it: minimized, with the rows and columns of the file.

    Parameters
    ----------
    form
        The program; its last column is the constant of the objective if there is one.
    columns, rows
        Names in the file.
    row
        The row of the original program from which each comes, shape ``(rows,)``; -1 for a bound.
    suffix
        ``.mps`` or ``.lp``.
    notes
        What somebody who reads the file should know, one sentence each.
    table
        Names that differ from those of the program: kind, name, and name in the file.
    """

    form: StandardForm
    columns: list[str]
    rows: list[str]
    row: I64
    suffix: Suffix
    notes: tuple[str, ...] = ()
    table: tuple[tuple[str, str, str], ...] = ()

    def write(self, path: Path, title: str) -> None:
        """Write the file; its first comments are a title and the notes."""
        mark, lines = ("\\", self._lp()) if self.suffix == ".lp" else ("*", self._mps())
        words = (" ".join(one.split()).encode("ascii", "replace").decode() for one in (title, *self.notes))
        lines = chain((f"{mark} {one}" for one in words), lines)
        write_file(path, (f"{line}\n" for line in lines))

    def write_table(self, path: Path) -> None:
        """Write the table of names as CSV."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("kind", "name", "name_in_file"), *self.table])
        write_file(path, text.getvalue())

    def _mps(self) -> Iterator[str]:
        form = self.form
        taken = {*self.columns, *self.rows}
        objective, sides, bounds = (_free_name(name, taken) for name in ("obj", "RHS", "BND"))
        below = form.row_lower == -np.inf
        kind = np.where(form.row_lower == form.row_upper, "E", np.where(below, "L", "G")).tolist()
        side = np.where(below, form.row_upper, form.row_lower)
        # Without FREE, CBC 2.10 takes some lines for fixed format: "No match for column".
        yield from ("NAME opticoll FREE", "ROWS", f" N {objective}")
        yield from (f" {letter} {name}" for letter, name in zip(kind, self.rows, strict=True))
        yield "COLUMNS"
        starts, indices = form.A.indptr.tolist(), form.A.indices.tolist()
        data, costs = form.A.data.tolist(), form.cost.tolist()
        whole, marks = False, 0
        for j, (name, integer) in enumerate(zip(self.columns, np.asarray(form.integer).tolist(), strict=True)):
            if integer != whole:
                yield f" MARKER{marks} 'MARKER' '{'INTORG' if integer else 'INTEND'}'"
                whole, marks = integer, marks + 1
            first, last = starts[j], starts[j + 1]
            if costs[j] or first == last:
                yield f" {name} {objective} {number(costs[j])}"
            for at in range(first, last):
                yield f" {name} {self.rows[indices[at]]} {number(data[at])}"
        if whole:
            yield f" MARKER{marks} 'MARKER' 'INTEND'"
        yield "RHS"
        yield from (
            f" {sides} {name} {number(value)}" for name, value in zip(self.rows, side.tolist(), strict=True) if value
        )
        yield "BOUNDS"
        for name, low, high, integer in self._bounds():
            if low == high:
                yield f" FX {bounds} {name} {number(low)}"
            elif (low, high) == (-np.inf, np.inf):
                yield f" FR {bounds} {name}"
            else:
                if high == np.inf and integer:
                    yield f" PL {bounds} {name}"  # first: PuLP takes it for the bounds [0, inf)
                if low == -np.inf:
                    yield f" MI {bounds} {name}"
                elif low or high < 0 or integer:
                    yield f" LO {bounds} {name} {number(low)}"
                if high < np.inf:
                    yield f" UP {bounds} {name} {number(high)}"
        yield "ENDATA"

    def _lp(self) -> Iterator[str]:
        form = self.form
        label = _free_name("obj", {*self.columns, *self.rows})
        yield "Minimize"
        # Columns without cost are named too: every reader then has the columns in this order.
        yield from _expression(label, form.cost.tolist(), self.columns)
        yield "Subject To"
        by_row = form.A.tocsr()
        starts, indices, data = by_row.indptr.tolist(), by_row.indices.tolist(), by_row.data.tolist()
        for i, (name, low, high) in enumerate(
            zip(self.rows, form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
        ):
            part = slice(starts[i], starts[i + 1])
            terms = [self.columns[j] for j in indices[part]]
            *lines, last = _expression(name, data[part] or [0.0], terms or self.columns[:1])
            yield from lines
            relation = "=" if low == high else "<=" if low == -np.inf else ">="
            yield f"{last} {relation} {number(high if low == -np.inf else low)}"
        if not self.rows:  # GLPK reads no section without a row
            yield f" {NO_ROW}: 0 {self.columns[0]} >= 0"
        yield "Bounds"
        for name, low, high, integer in self._bounds():
            if low == high:
                yield f" {name} = {number(low)}"
            elif (low, high) == (-np.inf, np.inf):
                yield f" {name} free"
            elif low == -np.inf:
                yield f" -inf <= {name} <= {number(high)}"
            else:
                if low or high < 0 or integer:
                    yield f" {name} >= {number(low)}"
                if high < np.inf:
                    yield f" {name} <= {number(high)}"
        if form.is_mip:
            yield "Generals"
            yield from (f" {name}" for name, whole in zip(self.columns, np.asarray(form.integer), strict=True) if whole)
        yield "End"

    def _bounds(self) -> Iterable[tuple[str, float, float, bool]]:
        form = self.form
        return zip(
            self.columns,
            form.col_lower.tolist(),
            form.col_upper.tolist(),
            np.asarray(form.integer).tolist(),
            strict=True,
        )


@lru_cache(1 << 16)
def number(value: float) -> str:
    """The shortest digits that give the same double back."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _expression(label: str, values: list[float], names: Sequence[str]) -> Iterator[str]:
    """Lines of ``label: value name ...``, a few terms each."""
    for first in range(0, max(len(values), 1), _TERMS):
        terms = [
            f"{'-' if value < 0 else '+'} {number(abs(value))} {name}"
            for value, name in zip(values[first : first + _TERMS], names[first : first + _TERMS], strict=True)
        ]
        yield f" {label}: {' '.join(terms).removeprefix('+ ')}" if not first else f"  {' '.join(terms)}"


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def written(
    form: StandardForm,
    suffix: Suffix,
    columns: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
) -> WrittenProgram:
    """The program as a file of this format states it.

    ``columns`` and ``rows`` are names; by default those of the blocks of the form.
    """
    import scipy.sparse as sp

    names = {
        "column": list(form.column_names() if columns is None else columns),
        "row": list(form.row_names() if rows is None else rows),
    }
    plain = {"column": plain_names(names["column"], "x"), "row": plain_names(names["row"], "r")}
    table = tuple(
        (kind, name, new) for kind in names for name, new in zip(names[kind], plain[kind], strict=True) if name != new
    )
    notes = [NEGATED] if form.sense == "max" else []
    form = form.minimized()
    low, high, rounded = _rounded(form)
    notes += [f"bounds of {rounded} integer columns are rounded inwards to integers"] if rounded else []
    crossed = np.flatnonzero(low > high)  # infeasible: the upper bound as a row
    row_low, row_high = form.row_lower, form.row_upper
    two = np.isfinite(row_low) & np.isfinite(row_high) & (row_low != row_high)
    kept, split = np.flatnonzero(np.isfinite(row_low) | np.isfinite(row_high)), np.flatnonzero(two)
    if split.size:
        notes.append(f"{split.size} rows with two sides are two rows each: NAME (>=) and NAME_up (<=)")
    if left := row_low.size - kept.size:
        notes.append(f"{left} rows without a side are left out")
    by_row = form.A.tocsr()
    bound_rows = sp.csr_array(
        (np.ones(crossed.size), (np.arange(crossed.size), crossed)), shape=(crossed.size, low.size)
    )
    matrix = sp.vstack([by_row[kept], by_row[split], bound_rows], format="csc")
    taken = set(plain["row"])
    extra = [f"{plain['row'][i]}_up" for i in split.tolist()] + [f"{plain['column'][j]}_up" for j in crossed.tolist()]
    extra = [_free_name(name, taken) for name in extra]
    in_file = plain["column"]
    cost, integer = form.cost, np.asarray(form.integer)
    col_high = np.where(low > high, np.inf, high)
    if form.offset:
        in_file = [*in_file, _free_name("constant", set(in_file))]
        matrix = sp.hstack([matrix, sp.csc_array((matrix.shape[0], 1))], format="csc")
        low, col_high, cost = np.append(low, 1.0), np.append(col_high, 1.0), np.append(cost, form.offset)
        integer = np.append(integer, False)
        notes.append(f"column {in_file[-1]} is fixed at 1: its cost is the constant of the objective")
    matrix = sp.csc_array(matrix)
    stated = replace(
        form,
        A=matrix,
        row_lower=np.concatenate([row_low[kept], np.full(len(extra), -np.inf)]),
        row_upper=np.concatenate([np.where(two, np.inf, row_high)[kept], row_high[split], high[crossed]]),
        col_lower=low,
        col_upper=col_high,
        cost=cost,
        integer=integer,
        offset=0.0,
        columns={},
        rows={},
    )
    return WrittenProgram(
        stated,
        in_file,
        [plain["row"][i] for i in kept.tolist()] + extra,
        np.concatenate([kept, split, np.full(crossed.size, -1)]),
        suffix,
        tuple(notes),
        table,
    )


def _rounded(form: StandardForm) -> tuple[F64, F64, int]:
    """Column bounds, those of integer columns rounded inwards where an integer is left; the number of these columns.

    Some readers ignore fractions of such bounds, and GLPK refuses them.
    """
    low, high = np.ceil(form.col_lower), np.floor(form.col_upper)
    changes = np.asarray(form.integer) & ((low != form.col_lower) | (high != form.col_upper)) & (low <= high)
    lower, upper = np.where(changes, low, form.col_lower), np.where(changes, high, form.col_upper)
    return lower, upper, int(changes.sum())
