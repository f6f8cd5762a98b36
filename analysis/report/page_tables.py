"""Tables of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.types import Json


Kind = Literal["text", "name", "long", "number", "count", "seconds", "gap", "ratio", "proof"]
#: Values of a row by field.
Row = Mapping[str, Any]

_NUMBERS = {"number", "count", "seconds", "gap", "ratio"}
#: Colour class of every proof status, and words that are clear without the colour.
PROOFS = {
    "exact": ("good", "✓ exact"),
    "optimal": ("good", "✓ optimal"),
    "infeasible": ("good", "✓ infeasible"),
    "certified-gap": ("fair", "≈ certified gap"),
    "feasible": ("fair", "○ feasible"),
    "bound-only": ("bad", "✗ bound only"),
    "none": ("bad", "✗ none"),
}
#: Maximum number of rows of a table on the page; the CSV files have all rows.
MOST_ROWS = 500


@dataclass(frozen=True)
class Column:
    """A column: the field it shows, its heading, and the kind of its values."""

    field: str
    heading: str
    kind: Kind = "text"

    @property
    def numeric(self) -> bool:
        """Whether the column is aligned and sorted as numbers."""
        return self.kind in _NUMBERS

    def sort_key(self, row: Row) -> str:
        """Exact value that a numeric column is sorted by; empty where there is none."""
        value: Any = row.get(self.field)
        return "" if missing(value) else repr(float(value))


@dataclass(frozen=True)
class PageTable:
    """A table of the page.

    Parameters
    ----------
    caption
        Accessible name.
    columns
        The first one heads its row.
    rows
        Values by field; ``bold`` names the fields to emphasise.
    total
        Number of rows before the table was cut to :data:`MOST_ROWS`.
    sortable
        Whether headings sort.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    total: int
    sortable: bool = True


def table(frame: pd.DataFrame, columns: Iterable[Column], caption: str) -> PageTable:
    """Make a table of the first :data:`MOST_ROWS` rows of a frame."""
    return PageTable(caption, tuple(columns), rows(frame), len(frame))


def rows(frame: pd.DataFrame) -> list[dict[str, Json]]:
    """First :data:`MOST_ROWS` rows of a frame by field."""
    return [{str(name): value for name, value in row.items()} for row in frame.head(MOST_ROWS).to_dict("records")]


def missing(value: object) -> bool:
    """Whether a cell of a data frame is empty."""
    return value is None or value != value or str(value) == "NaT"


def written(value: Any, kind: Kind = "number") -> str:
    """Write a value in the format of its kind; a missing one is a dash."""
    if missing(value):
        return "–"
    if kind not in _NUMBERS:
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        return "∞" if number > 0 else "−∞"
    if kind == "count":
        return f"{int(number)}"
    if kind == "seconds":
        return f"{number:.2f}" if number < 100 else f"{number:.0f}"
    if kind == "gap":
        return "0" if number == 0 else f"{number:.1e}"
    if kind == "ratio":
        return f"{number:.4f}"
    return f"{number:.6g}"
