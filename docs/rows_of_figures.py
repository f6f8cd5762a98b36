"""Write the rows of figures that come with opticoll, from the runs of the default store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.analysis.papers import figure_rows
from opticoll.analysis.papers.figure_rows import answered
from opticoll.analysis.papers.paper_figure import PaperFigure, figures

if TYPE_CHECKING:
    import pandas as pd

    from opticoll.analysis.store import Store

#: Figures of solve times alone, which say little on another machine.
TIMINGS = ("alltoall-6", "alltoall-scaling")
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


if __name__ == "__main__":
    from opticoll.analysis.store import Store

    for name, count in ship(Store(), Path(figure_rows.__file__).parent / figure_rows.FOLDER).items():
        print(f"{name}: {count} rows")
