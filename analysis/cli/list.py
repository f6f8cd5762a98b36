"""The command ``list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opticoll.analysis.cli.options import JSON, SOLVERS

if TYPE_CHECKING:
    pass


_KINDS = ["instances", "formulations", "methods", "solvers", "studies", "claims"]


@click.command("list")
@click.argument("kind", required=False, type=click.Choice(_KINDS))
@SOLVERS
@JSON
def list_command(kind: str | None, as_json: bool) -> int:
    """List what is available.

    KIND selects one list with its details; without it, all names are listed.
    """
    from opticoll.analysis import catalog
    from opticoll.analysis.cli import output

    with output.diverted_stdout():
        every = catalog.names() if kind is None else []
        rows = every if kind is None else catalog.KINDS[kind]()
    if as_json:
        output.emit_json(rows)
    elif kind is None:
        for name in _KINDS:
            words = ", ".join(row["name"] for row in every if row["kind"] == name)
            click.echo(f"{name}: {words or 'none'}")
    elif rows:
        output.show_table(rows, output.LISTED.get(kind, list(rows[0])))
    else:
        click.echo(f"no {kind} registered yet", err=True)
    return 0
