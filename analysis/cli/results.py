"""The command ``results``."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import JSON, STORE, readable_store, refuse_together

if TYPE_CHECKING:
    import pandas as pd

#: Maximum number of runs in the table of ``opticoll results`` without an argument.
MOST_RUNS = 200

#: The query of ``opticoll results`` without an argument.
OVERVIEW = (
    "SELECT formulation, instance, method, form, settings, requested_time_limit_s AS time_limit_s, "
    "requested_tol AS tol, requested_seed AS seed, requested_repetition AS repetition, plugins, solver_version, "
    "opticoll, same_code, superseded, termination, proof, objective, bound, gap, F, T, time_solve_s, peak_memory_mb, "
    "strftime(finished, '%Y-%m-%d %H:%M') AS finished "
    "FROM latest ORDER BY latest.finished, formulation, instance, method"
)
#: Columns that identify a run, and columns shown only if runs that agree in the former differ in them.
_IDENTIFYING = ["formulation", "instance", "method", "form"]
_DISTINGUISHING = ["settings", "time_limit_s", "tol", "seed", "repetition", "plugins", "solver_version", "opticoll"]


@click.command()
@click.argument("sql", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--time-limit", type=float, default=60.0, show_default=True, metavar="S", help="Limit of the query [s].")
@STORE
@JSON
def results(sql: str | None, as_csv: bool, time_limit: float, store: str | None, as_json: bool) -> int:
    """Print the results store as a table.

    Without SQL, print the latest runs. A query can select from the views `runs` (every record) and `latest` (the best
    record of each resume key). Their column `superseded` marks results of another version of a plug-in, file, solver or
    opticoll than that of the latest run of the same task; `same_code` is false for what other code of opticoll or of a
    plug-in computed, and empty where that is unknown.
    """
    from opticoll.analysis.rendering import frame_rows

    refuse_together(("--csv", "--json"))
    if not 0 < time_limit <= threading.TIMEOUT_MAX:
        click.get_current_context().fail(f"--time-limit {time_limit:g}: must be a positive number of seconds")
    home = readable_store(store)
    default = "SELECT * FROM latest ORDER BY finished" if as_csv or as_json else OVERVIEW
    frame = home.sql(default if sql is None else sql, time_limit_s=time_limit)
    if sql is None and not (as_csv or as_json) and len(frame) > MOST_RUNS:
        click.echo(f"the {MOST_RUNS} latest of {len(frame)} runs; all with --csv, or select with SQL", err=True)
        frame = frame.tail(MOST_RUNS)
    if as_json:
        output.emit_json(frame_rows(frame))
    elif as_csv:
        click.echo(frame.to_csv(index=False), nl=False)
    elif frame.empty:
        click.echo(f"no runs to show in the store {home.root}", err=True)
    elif sql is None:
        _show_overview(frame)
    else:
        output.show_table(frame_rows(frame), list(frame.columns))
    return 0


def _show_overview(frame: pd.DataFrame) -> None:
    """Print what :data:`OVERVIEW` selects, without the columns that distinguish no two runs."""
    from opticoll.analysis.rendering import frame_rows, number
    from opticoll.analysis.store.current_records import AGAIN, code_marks, code_note

    frame["same_code"] = code_marks(frame["same_code"])
    frame = frame.rename(columns={"same_code": "code"})
    note = code_note(frame["code"])
    runs = frame.groupby(_IDENTIFYING, dropna=False)
    alike = [name for name in _DISTINGUISHING if runs[name].nunique(dropna=False).max() <= 1]
    alike += [name for name in ("superseded", "code") if not frame[name].any()]
    rows = frame_rows(frame.drop(columns=alike))
    for row in rows:
        if "superseded" in row:
            row["superseded"] = "superseded" if row["superseded"] else ""
        if isinstance(used := row.get("plugins"), dict):
            row["plugins"] = {name: str(digest)[:8] for name, digest in used.items()}
        row |= {name: number(row[name], 3) for name in ("gap", "time_solve_s", "peak_memory_mb")}
    output.show_table(rows, list(rows[0]))
    if note is not None:
        click.echo(f"{note}; {AGAIN}", err=True)
