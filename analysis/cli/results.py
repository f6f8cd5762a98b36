"""The command ``results``."""

from __future__ import annotations

import threading

import click

from opticoll.analysis.cli.options import JSON, STORE, store_at


@click.command()
@click.argument("sql", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--time-limit", type=float, default=60.0, show_default=True, metavar="S", help="Limit of the query [s].")
@STORE
@JSON
def results(sql: str | None, as_csv: bool, time_limit: float, store_dir: str | None, as_json: bool) -> int:
    """Print the results store as a table.

    Without SQL, print the latest runs. A query can select from the views `runs` (every record) and `latest` (the best
    record of each resume key). Their column `superseded` marks results of another version of a plug-in, file, solver or
    opticoll than that of the latest run of the same task.
    """
    from opticoll.analysis.cli import output

    if as_csv and as_json:
        msg = "--csv and --json are mutually exclusive"
        raise click.UsageError(msg)
    if not 0 < time_limit <= threading.TIMEOUT_MAX:
        msg = f"--time-limit {time_limit:g}: must be a positive number of seconds"
        raise click.UsageError(msg)
    store = store_at(store_dir)
    default = "SELECT * FROM latest ORDER BY finished" if as_csv or as_json else output.OVERVIEW
    frame = store.sql(default if sql is None else sql, time_limit_s=time_limit)
    if sql is None and not (as_csv or as_json) and len(frame) > output.MOST_RUNS:
        click.echo(f"the {output.MOST_RUNS} latest of {len(frame)} runs; all with --csv, or select with SQL", err=True)
        frame = frame.tail(output.MOST_RUNS)
    if as_json:
        output.emit_json(output.frame_rows(frame))
    elif as_csv:
        click.echo(frame.to_csv(index=False), nl=False)
    elif frame.empty:
        click.echo(f"no runs to show in the store {store.root}", err=True)
    elif sql is None:
        output.show_overview(frame)
    else:
        output.show_table(output.frame_rows(frame), list(frame.columns))
    return 0
