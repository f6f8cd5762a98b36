"""What the readers of MPS and LP files share: the draft of a program that they fill, lines, refusals and notes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.text_blocks import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

#: Bounds of at least this size are infinite, as in every reader of these formats.
INFINITE = 1e20
#: Coefficients of rows smaller than this are refused: solvers drop them.
LEAST_COEFFICIENT = 1e-12


@dataclass
class ProgramDraft:
    """A program as a file states it.

    ``columns`` and ``rows`` are names; the matrix is given by entries (``entry_row``, ``entry_column``,
    ``entry_value``), in any order, without repeated positions. ``lower``, ``upper`` and ``cost`` have one value per
    column.

    Parameters
    ----------
    sense
        ``"min"`` or ``"max"``; None where the file states none, which means min.
    notes
        What a user should know about the file, one sentence each.
    """

    columns: list[str]
    rows: list[str]
    entry_row: NDArray[np.int64]
    entry_column: NDArray[np.int64]
    entry_value: NDArray[np.float64]
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    cost: NDArray[np.float64]
    offset: float
    integer: NDArray[np.bool_]
    sense: Literal["min", "max"] | None
    notes: list[str] = field(default_factory=list)


class Entries:
    """Entries of a matrix in the order of a file, added one by one or as arrays."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._values: list[float] = []
        self._lines: list[int] = []

    def append(self, row: int, column: int, value: float, line: int) -> None:
        """Add an entry and the line that states it."""
        self._rows.append(row)
        self._columns.append(column)
        self._values.append(value)
        self._lines.append(line)

    def extend(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike, lines: ArrayLike) -> None:
        """Add entries, in arrays of one length."""
        if self._rows:
            single = self._rows, self._columns, self._values, self._lines
            self._rows, self._columns, self._values, self._lines = [], [], [], []
            self.extend(*single)
        self._parts.append(
            (
                np.asarray(rows, dtype=np.int64),
                np.asarray(columns, dtype=np.int64),
                np.asarray(values, dtype=float),
                np.asarray(lines, dtype=np.int64),
            )
        )

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Rows, columns, values and lines of all entries."""
        self.extend([], [], [], [])
        rows, columns, values, lines = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        return rows, columns, values, lines


class LineReader:
    """The lines of a file, and refusals and notes that name one."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content, self.where = content, where
        self._notes: dict[str, str] = {}

    @property
    def notes(self) -> list[str]:
        """What a user should know about the file, one sentence each."""
        return list(self._notes.values())

    def note(self, line: int, what: str, others: str) -> None:
        """Note a construct that other programs read as ``others`` says; of several alike, the first.

        What they read was measured (``tests/outside_readers.py``) with the versions that the notes name.
        """
        self._notes.setdefault(others, f"line {line}: {what}, {others}")

    def lines(self) -> Iterator[str]:
        """Lines without their ends.

        Raises
        ------
        BadFile
            If the file is not UTF-8 text.
        """
        return (line for _, line in self.numbered_lines())

    def numbered_lines(self) -> Lines:
        """Lines with their numbers, one by one or in blocks.

        Raises
        ------
        BadFile
            If the file is not UTF-8 text.
        """
        return Lines(self.content, self._refuse_undecodable)

    def _refuse_undecodable(self) -> NoReturn:
        for number, line in enumerate(self.content.split(b"\n"), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                self.refuse(number, "is not UTF-8 text; save the file as UTF-8")
        self.refuse(1, "is not UTF-8 text; save the file as UTF-8")

    def refuse(self, line: int, what: str) -> NoReturn:
        """Refuse the file because of a line."""
        msg = f"{self.where}, line {line}: {what}"
        raise BadFile(msg)

    def refuse_file(self, what: str) -> NoReturn:
        """Refuse the file as a whole."""
        msg = f"{self.where}: {what}"
        raise BadFile(msg)

    def check_coefficients(
        self,
        values: NDArray[np.float64],
        lines: Sequence[int] | NDArray[np.int64],
        columns: Sequence[int] | NDArray[np.int64],
        names: Sequence[str],
    ) -> None:
        """Refuse a coefficient that is infinite or that solvers drop, by its line and the name of its column."""
        size = np.abs(values)
        wrong = np.flatnonzero(~(size < INFINITE) | ((size > 0) & (size < LEAST_COEFFICIENT)))
        if wrong.size:
            first = int(wrong[0])
            value, name = values[first], quoted(names[columns[first]])
            if size[first] < 1:
                self.refuse(
                    lines[first],
                    f"the coefficient {value:g} of {name} is smaller than {LEAST_COEFFICIENT:g}, which solvers drop; "
                    "scale the row or remove the entry",
                )
            self.refuse(lines[first], f"the coefficient {value:g} of {name} is not a finite number")


def quoted(text: str) -> str:
    """A word of a file as messages show it."""
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


def parse_number(text: str, *, infinite: bool = False) -> float | None:
    """A decimal number, with ``inf`` and ``infinity`` if they are allowed; None for anything else.

    Python also takes ``1_0``, ``nan`` and digits of other alphabets; these formats do not.
    """
    try:
        value = float(text)
    except ValueError:
        return None
    if math.isnan(value) or "_" in text or not text.isascii():
        return None
    if math.isinf(value) and not infinite:
        return None
    return value


def infinite_beyond(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values, those of at least :data:`INFINITE` in size made infinite."""
    return np.where(np.abs(values) >= INFINITE, np.copysign(np.inf, values), values)
