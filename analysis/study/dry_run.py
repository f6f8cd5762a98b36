"""What a study would run: the cells without an answer in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.analysis.rendering import Listing, Printed

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.analysis.store import Store
    from opticoll.analysis.study.study_file import Study
    from opticoll.types import Json

STORED, RUNS = "stored", "would run"


@dataclass(frozen=True)
class PlannedCell:
    """A cell of a study: whether it is stored or would run."""

    cell: str
    key: str
    status: str


@dataclass(repr=False)
class Preview(Printed):
    """The cells of a study, and what would be run."""

    study: Study
    cells: list[PlannedCell]

    def count(self, status: str) -> int:
        """Number of cells with a status."""
        return sum(cell.status == status for cell in self.cells)

    @property
    def frame(self) -> pd.DataFrame:
        """A row per cell, with the fields of :class:`PlannedCell`."""
        import pandas as pd

        return pd.DataFrame([vars(cell) for cell in self.cells], columns=["cell", "key", "status"])

    @property
    def _title(self) -> str:
        return f"study {self.study.name}"

    def lines(self) -> dict[str, str]:
        """How many cells are stored, and how many would run."""
        return {"cells": f"{len(self.cells)}: {self.count(STORED)} stored, {self.count(RUNS)} would run"}

    def tables(self) -> list[Listing]:
        """The cells that would run."""
        rows: list[dict[str, object]] = [{"cell": cell.cell} for cell in self.cells if cell.status == RUNS]
        return [Listing("would run", ["cell"], rows)] if rows else []

    def document(self) -> dict[str, Json]:
        """The preview as ``--json`` prints it."""
        return {
            "study": self.study.name,
            "file": str(self.study.source),
            "cells": len(self.cells),
            "stored": self.count(STORED),
            "would_run": self.count(RUNS),
            "plan": [dict(vars(cell)) for cell in self.cells],
        }


def preview(study: Study, store: Store) -> Preview:
    """What :func:`opticoll.analysis.study.running.run_study` would run; nothing is run or written."""
    answered = store.answered({cell.key for cell in study.cells})
    status = {cell.key: STORED if cell.key in answered else RUNS for cell in study.cells}
    return Preview(study, [PlannedCell(cell.label, cell.key, status[cell.key]) for cell in study.cells])
