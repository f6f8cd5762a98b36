"""Text tables: cells separated by commas or blanks, and square matrices of them, with or without labels.

``#`` starts a comment. A labelled matrix has a first row of labels, behind a cell of its own (empty as
``DataFrame.to_csv`` writes it), and a label before every other row; rows and columns have the same labels, in whatever
order.

What is malformed is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.reading import parses_as_float, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.instances.topology import F64


#: Words separated by blanks of which the last is a number with a decimal comma.
_DECIMAL_COMMA = re.compile(r"^[^\S\n]*[^\s,]+[^\S\n]+[^\s,]+[^\S\n]+[0-9]+,[0-9]+[^\S\n]*$", re.MULTILINE)
#: Headings of the source and target columns, in lower case.
_SOURCES = ("src", "source", "from", "u", "tail", "origin", "sender")
_TARGETS = ("dst", "target", "to", "v", "head", "destination", "dest", "receiver")
#: Number of a line, and its cells.
Row = tuple[int, list[str]]


def split(line: str) -> list[str]:
    """Cells of a line, at commas if there are any, else at blanks."""
    if "," not in line:
        return line.split()
    try:
        cells = next(csv.reader([line])) if '"' in line else line.split(",")
    except csv.Error:  # a cell in quotes of more than 128 KiB
        cells = line.split(",")
    return [cell.strip() for cell in cells]


def cells_of(line: str, where: str) -> list[str]:
    """Cells of a line of a table."""
    if other := next((mark for mark in ";|" if mark in line), None):
        refuse(where, f"columns are separated by {other!r}; use commas or spaces")
    if line.startswith(("%", "//", "*")):
        refuse(where, f"{line[:60]!r} begins like a comment; comments begin with #")
    if "," in line and ("\t" in line or _DECIMAL_COMMA.search(line)):
        refuse(where, f"{line[:60]!r} has blanks between its columns and a comma inside one; write 2.5 for 2,5")
    return split(line)


def lines_of(text: str, begin: str = "") -> Iterator[tuple[int, str]]:
    """Number and contents of the lines that are not empty, without comments.

    Comments stand behind ``#``; with ``begin``, they are lines that begin with it.
    """
    for number, raw in enumerate(io.StringIO(text, newline=None), start=1):
        line = raw.strip() if begin else raw.partition("#")[0].strip()
        if line and not (begin and line.startswith(begin)):
            yield number, line


def rows_of(text: str, what: str) -> list[Row]:
    """The lines of a table that are neither empty nor comments; errors as :func:`cells_of`."""
    return [(number, cells_of(line, f"{what}, line {number}")) for number, line in lines_of(text)]


def end_columns(headings: Sequence[str], what: str) -> tuple[int, int] | None:
    """Positions of the columns with the source and the target of an edge; None if a heading is missing."""
    words = [heading.strip().lower() for heading in headings]
    ends = [[i for i, word in enumerate(words) if word in known] for known in (_SOURCES, _TARGETS)]
    if not all(ends):
        return None
    for end, found in zip(("source", "target"), ends, strict=True):
        if len(found) > 1:
            names = " and ".join(repr(headings[i].strip()[:40]) for i in found[:3])
            refuse(what, f"the columns {names} may all name the {end} of an edge; keep one of them")
    twice = next((name for name, count in Counter(map(str.strip, headings)).items() if name and count > 1), None)
    if twice is not None:
        refuse(what, f"{twice[:40]!r} heads several columns; keep one of them, or rename the others")
    return ends[0][0], ends[1][0]


def is_number(text: str) -> bool:
    """Whether a vertex name is a canonical natural number (no sign, no leading zero)."""
    return re.fullmatch(r"0|[1-9][0-9]*", text) is not None


@dataclass(frozen=True)
class Square:
    """A square matrix of cells: its labels, if it has any, and its rows in their order."""

    what: str
    labels: list[str] | None
    rows: list[Row]

    def place(self, i: int) -> str:
        """Where the i-th cell stands in the file, row by row."""
        return f"line {self.rows[i // len(self.rows)][0]}, column {i % len(self.rows) + 1}"

    def where(self, i: int) -> str:
        """The place of a cell, for messages."""
        return f"{self.what}, {self.place(i)}"

    def cells(self) -> list[str]:
        """All cells, row by row."""
        return [cell for _, cells in self.rows for cell in cells]

    def numbers(self) -> F64:
        """The matrix as numbers."""
        for i, cell in enumerate(self.cells()):
            if not parses_as_float(cell):
                refuse(self.where(i), f"{cell[:40]!r} is not a number; write numbers")
        return np.array(self.cells(), dtype=float).reshape(len(self.rows), len(self.rows))


def has_labels(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row of labels stands above rows that begin with them, or behind an empty cell."""
    if len(rows) < 2 or len(rows[0]) < 2 or parses_as_float(rows[0][0]):
        return False
    return not rows[0][0] or sorted(rows[0][1:]) == sorted(row[0] for row in rows[1:])


def check_labels(rows: Sequence[str], columns: Sequence[str], what: str) -> None:
    """Refuse labels of rows and columns that are not the same, or not distinct."""
    for side in (rows, columns):
        if len(set(side)) < len(side):
            twice = next(name for name in side if side.count(name) > 1)
            refuse(what, f"label {twice[:60]!r} occurs twice; use each label once")
    odd = sorted(set(rows) ^ set(columns))
    if odd:
        refuse(what, f"{odd[0][:60]!r} labels only a row or only a column; give both the same labels")


def square(rows: Sequence[Row], what: str) -> Square:
    """The square matrix in the rows of a table."""
    labels: list[str] | None = None
    if has_labels([cells for _, cells in rows]):
        labels = rows[0][1][1:]
        for number, cells in rows[1:]:
            if len(cells) != len(labels) + 1:
                msg = f"{what}, line {number}: {len(cells) - 1} entries for {len(labels)} labels; give one per label"
                raise BadFile(msg)
        check_labels([cells[0] for _, cells in rows[1:]], labels, what)
        place = {name: i for i, name in enumerate(labels)}
        rows = [(number, cells[1:]) for number, cells in sorted(rows[1:], key=lambda row: place[row[1][0]])]
    for number, cells in rows:
        if len(cells) != len(rows):
            refuse(f"{what}, line {number}", f"{len(cells)} entries in a matrix of {len(rows)} rows; give one per row")
    return Square(what, labels, list(rows))
