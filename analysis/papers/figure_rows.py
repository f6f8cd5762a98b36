"""Rows of figures that come with opticoll, for stores without runs of their study.

A file a figure, whose first line says how its rows were made; the others are the table.
"""

from __future__ import annotations

import json
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.analysis.papers.paper_figure import PaperFigure
    from opticoll.analysis.store import Store

FOLDER = "shipped_rows"


def shipped_rows(name: str) -> tuple[pd.DataFrame, str] | None:
    """The rows of a figure that come with opticoll, and how they were made; None if there are none."""
    import pandas as pd

    path = files(__package__).joinpath(FOLDER, f"{name}.csv")
    if not path.is_file():
        return None
    first, _, table = path.read_text(encoding="utf-8").partition("\n")
    rows = pd.read_csv(StringIO(table), keep_default_na=False, na_values=[""])
    for column in rows:
        if len(rows) and rows[column].map(lambda value: isinstance(value, str) and value.startswith("[")).all():
            rows[column] = [json.loads(text) for text in rows[column]]
    return rows, f"shipped with opticoll: {first.removeprefix('# ')}"


def answered(figure: PaperFigure, store: Store) -> bool:
    """Whether every cell of the figure's study has been run."""
    from opticoll.analysis.study.study_file import find, load

    known = set(store.tables("SELECT DISTINCT key FROM runs")[0]["key"])
    return all(cell.key in known for cell in load(find(str(figure.study))).cells)
