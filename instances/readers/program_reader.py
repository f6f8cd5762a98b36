"""What the readers of MPS and LP files share: lines, refusals and notes, and the program as it is read.

Both formats fill one :class:`ProgramReader`, which checks coefficients, sides and bounds in the line that states them.
"""

from __future__ import annotations

import io
import math
from array import array
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from opticoll.instances.matrix_program import MatrixProgram
from opticoll.instances.readers.reading import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

Relation = Literal["<", "=", ">"]
#: Bounds of at least this size are infinite, as in every reader of these formats.
INFINITE = 1e20
#: Coefficients of rows smaller than this are refused: solvers drop them.
LEAST_COEFFICIENT = 1e-12
#: Coefficients of rows of at most this size are dropped by some solvers while they read a file.
_LEAST_KEPT = 1e-9


class ProgramReader:
    """A program while its file is read.

    The reader of a format names columns and rows in the order of the file and adds entries, costs, sides and bounds;
    :meth:`program` is the program once all lines are read.

    Parameters
    ----------
    content, where
        The file, and how messages call it.
    """

    def __init__(self, content: bytes, where: str) -> None:
        self.content, self.where = content, where
        self.sense: Literal["min", "max"] | None = None
        self.offset = 0.0
        self.columns: dict[str, int] = {}
        self.column_names: list[str] = []
        self.cost: dict[int, float] = {}
        self.integer: set[int] = set()
        self.lowers: dict[int, tuple[float, int]] = {}  # value and line
        self.uppers: dict[int, tuple[float, int]] = {}
        self.row_names: list[str] = []
        self.row_line: dict[str, int] = {}
        self.row_lower, self.row_upper = array("d"), array("d")
        self.entry_rows, self.entry_columns, self.entry_values = array("q"), array("q"), array("d")
        self._notes: dict[str, str] = {}

    # Lines, refusals and notes

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1.

        Raises
        ------
        BadFile
            If the file is not UTF-8 text.
        """
        try:
            yield from enumerate(io.TextIOWrapper(io.BytesIO(self.content), "utf-8", newline="\n"), start=1)
        except UnicodeDecodeError:
            for number, line in enumerate(self.content.split(b"\n"), start=1):
                if line.decode("utf-8", "replace").encode() != line:
                    self.refuse(number, "is not UTF-8 text; save the file as UTF-8")

    def refuse(self, line: int, what: str) -> NoReturn:
        """Refuse the file because of a line."""
        refuse(f"{self.where}, line {line}", what)

    def refuse_file(self, what: str) -> NoReturn:
        """Refuse the file as a whole."""
        refuse(self.where, what)

    def note(self, line: int, what: str, others: str) -> None:
        """Note a construct that other programs read as ``others`` says; of several alike, the first.

        What they read was measured (``tests/outside_readers.py``) with the versions that the notes name.
        """
        self._notes.setdefault(others, f"line {line}: {what}, {others}")

    # Contents

    def add_column(self, name: str) -> int:
        """Number of a new column."""
        column = self.columns[name] = len(self.column_names)
        self.column_names.append(name)
        return column

    def add_row(self, name: str, relation: Relation, side: float, line: int) -> int:
        """Number of a new row; an empty name is made up in the end."""
        row = len(self.row_names)
        self.row_names.append(name)
        self.row_lower.append(-math.inf)
        self.row_upper.append(math.inf)
        self.set_sides(row, *sides(relation, side), line)
        return row

    def name_row(self, name: str, line: int) -> None:
        """Take a name for a row, which no other may have."""
        if name in self.row_line:
            self.refuse(line, f"a second row {quoted(name)}; line {self.row_line[name]} has one")
        self.row_line[name] = line

    def set_sides(self, row: int, low: float, high: float, line: int) -> None:
        """State both sides of a row."""
        if low >= INFINITE or high <= -INFINITE:
            side, name = (low if low >= INFINITE else high), self.row_names[row]
            of = f" of {quoted(name)}" if name else ""
            self.refuse(line, f"the right-hand side {side:g}{of} excludes every number; state a finite one")
        self.row_lower[row], self.row_upper[row] = low, high

    def add_entry(self, row: int, column: int, value: float, line: int) -> None:
        """Add an entry of the matrix; no position is given twice."""
        if not (LEAST_COEFFICIENT <= abs(value) < INFINITE or value == 0.0):
            if abs(value) < LEAST_COEFFICIENT:
                self.refuse(
                    line,
                    f"the coefficient {value:g} of {quoted(self.column_names[column])} is smaller than "
                    f"{LEAST_COEFFICIENT:g}, which solvers drop; scale the row or remove the entry",
                )
            self._refuse_coefficient(column, value, line)
        if 0 < abs(value) <= _LEAST_KEPT:
            self.note(line, f"a coefficient of {value:g}", "which is 0 for HiGHS 1.16 and SCIP 10")
        self.entry_rows.append(row)
        self.entry_columns.append(column)
        self.entry_values.append(value)

    def set_cost(self, column: int, value: float, line: int) -> None:
        """State the coefficient of a column in the objective."""
        if not abs(value) < INFINITE:
            self._refuse_coefficient(column, value, line)
        self.cost[column] = value

    def _refuse_coefficient(self, column: int, value: float, line: int) -> NoReturn:
        self.refuse(
            line, f"the coefficient {value:g} of {quoted(self.column_names[column])} is not a finite number; state one"
        )

    def set_bound(self, column: int, relation: Relation, value: float, line: int) -> None:
        """State one bound of a column, or both (``=``)."""
        name = quoted(self.column_names[column])
        low, high = sides(relation, value)
        if low >= INFINITE or high <= -INFINITE:
            self.refuse(line, f"the bound {value:g} of {name} excludes every number; state a finite one")
        if relation != "<":
            self.state_once(self.lowers, column, low, line, f"the lower bound of {name}")
        if relation != ">":
            self.state_once(self.uppers, column, high, line, f"the upper bound of {name}")

    def state_once(
        self, values: dict[int, tuple[float, int]], place: int, value: float, line: int, what: str, others: str = ""
    ) -> None:
        """Store a value and its line; it may be stated again only if it is the same."""
        earlier = values.setdefault(place, (value, line))
        if earlier[0] != value:
            stated = f"as {earlier[0]:.15g} in line {earlier[1]} and as {value:.15g}"
            self.refuse(line, f"{what} is stated twice, {stated}{others}; keep one")

    def program(self) -> MatrixProgram:
        """The program, when all lines are read.

        Raises
        ------
        BadFile
            If it has no columns, or a column has a negative upper bound and no lower bound.
        """
        import scipy.sparse as sp

        count = len(self.column_names)
        if not count:
            self.refuse_file("no columns; write a linear program")
        lower, upper, cost, integer = np.zeros(count), np.full(count, np.inf), np.zeros(count), np.zeros(count, bool)
        for column, (value, _) in self.lowers.items():
            lower[column] = value
        for column, (value, line) in self.uppers.items():
            upper[column] = value
            if value < 0 and column not in self.lowers:
                self.refuse(
                    line,
                    f"column {quoted(self.column_names[column])} has a negative upper bound and no lower bound, which "
                    "is 0 for HiGHS, SCIP and MOSEK and, in MPS, -infinity for Gurobi, COPT and CPLEX; state one",
                )
        notes = tuple(self._notes.values())
        cost[list(self.cost)] = list(self.cost.values())
        integer[list(self.integer)] = True
        matrix = sp.csc_array(
            (np.array(self.entry_values), (np.array(self.entry_rows), np.array(self.entry_columns))),
            shape=(len(self.row_names), count),
        )
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return MatrixProgram(
            indptr=matrix.indptr.astype(np.int64),
            indices=matrix.indices.astype(np.int64),
            data=matrix.data,
            row_lower=_finite(np.array(self.row_lower)),
            row_upper=_finite(np.array(self.row_upper)),
            col_lower=_finite(lower),
            col_upper=_finite(upper),
            cost=cost,
            offset=self.offset,
            integer=integer,
            sense=self.sense or "min",
            column_names=tuple(self.column_names),
            row_names=tuple(_named(self.row_names)),
            notes=(*notes[:-1], *(f"{note} (docs/reference/other-tools.md)" for note in notes[-1:])),
            sense_stated=self.sense is not None,
        )


def sides(relation: Relation, value: float) -> tuple[float, float]:
    """Least and largest value of what is related to a number."""
    return (-math.inf if relation == "<" else value), (math.inf if relation == ">" else value)


def _finite(values: np.ndarray) -> np.ndarray:
    """Values, those of at least :data:`INFINITE` in size made infinite."""
    return np.where(np.abs(values) >= INFINITE, np.copysign(np.inf, values), values)


def _named(rows: list[str]) -> list[str]:
    """Names of rows, made up for those without one."""
    taken = set(rows)
    names = []
    for place, name in enumerate(rows):
        made = name or f"r{place}"
        while not name and made in taken:
            made += "_"
        names.append(made)
    return names


def quoted(text: str) -> str:
    """A word of a file as messages show it."""
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


def parse_number(text: str) -> float | None:
    """A decimal number, ``inf`` or ``infinity``; None for anything else.

    Python also takes ``1_0``, ``nan`` and digits of other alphabets; these formats do not.
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) or "_" in text or not text.isascii() else value
