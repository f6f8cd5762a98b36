"""Rows of figures that come with opticoll, for stores without runs of their study.

``python -m opticoll.analysis.papers.figure_rows`` writes them from the runs of the default store beside this module, a
file a figure. The first line of a file says how its rows were made; the others are the table.
"""

from __future__ import annotations

import json
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.analysis.papers.paper_figure import PaperFigure, figures

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.analysis.store import Store

FOLDER = "shipped_rows"
#: Figures of solve times alone, which say little on another machine.
TIMINGS = ("alltoall-6", "alltoall-scaling", "lumorph-programs")
#: Columns of a run that a figure may use; the others describe the machine and the run.
RUN_COLUMNS = (
    "formulation",
    "instance",
    "problem",
    "n",
    "arcs",
    "ranks",
    "method",
    "settings",
    "sense",
    "objective",
    "bound",
    "T",
    "max_load",
    "rounds",
    "proof",
    "termination",
    "ok",
    "verified",
    "time_solve_s",
    "time_solver_s",
    "requested_time_limit_s",
    "size_variables",
)


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


def ship(store: Store, folder: Path) -> dict[str, int]:
    """Write the rows of every figure that the runs of a store give, and the number of rows by figure.

    A figure whose study has cells that were not run is left out, and so are those of :data:`TIMINGS`.
    """
    from opticoll.analysis.report.findings import best_runs

    runs, written = best_runs(store), {}
    folder.mkdir(exist_ok=True)
    for figure in figures():
        if figure.study is None or figure.basis or figure.name in TIMINGS:
            continue
        rows = figure.select(runs)
        if rows.empty or not answered(figure, store):
            continue
        text = _kept(rows, runs).to_csv(index=False, lineterminator="\n")
        (folder / f"{figure.name}.csv").write_text(f"# {_origin(figure, runs)}\n{text}", encoding="utf-8")
        written[figure.name] = len(rows)
    return written


def answered(figure: PaperFigure, store: Store) -> bool:
    """Whether every cell of the figure's study has been run."""
    from opticoll.analysis.study.study_file import find, load

    known = set(store.tables("SELECT DISTINCT key FROM runs")[0]["key"])
    return all(cell.key in known for cell in load(find(str(figure.study))).cells)


def _kept(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    columns = [c for c in rows if c not in runs or c in RUN_COLUMNS]
    table = rows[columns].dropna(axis="columns", how="all").copy()
    for column in table:
        if table[column].map(lambda value: isinstance(value, list)).any():
            table[column] = table[column].map(json.dumps)
    return table


def _origin(figure: PaperFigure, runs: pd.DataFrame) -> str:
    """How the runs of a store were made: study, date, version and machine."""
    day = runs["finished"].max()
    version = ", ".join(sorted(set(runs["opticoll"].dropna().astype(str))))
    cores = int(runs["cpus"].max())
    return f"`opticoll study {figure.study}`, {day:%Y-%m-%d}, opticoll {version}, {cores} cores that other work shared"


def main() -> None:
    """Write the rows of the default store beside this module."""
    from opticoll.analysis.store import Store

    for name, count in ship(Store(), Path(__file__).parent / FOLDER).items():
        print(f"{name}: {count} rows")


if __name__ == "__main__":
    main()
