"""The command ``list``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import JSON, SOLVERS
from opticoll.extensions import extensions

#: Columns of the lists of the library; ``--json`` prints all of them.
LISTED = {
    "instances": ["kind", "name", "example", "summary", "source"],
    "formulations": ["name", "class", "title", "where", "forms", "methods", "parameters"],
    "methods": ["name", "title", "formulations", "parameters"],
    "solvers": ["name", "algorithm", "version", "usable", "licence", "capabilities", "remedy"],
    "studies": ["name", "title"],
}


def listed() -> dict[str, list[str]]:
    """Columns of every ``opticoll list KIND``, also those of extensions."""
    return LISTED | {kind: list(columns) for one in extensions() for kind, (_, columns) in one.lists.items()}


class _Lists(click.Choice[str]):
    """The argument KIND, which plug-ins may extend."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        self.choices = tuple(listed())
        return str(super().convert(value, param, ctx))


@click.command("list")
@click.argument("kind", required=False, metavar="[KIND]", type=_Lists(listed()))
@SOLVERS
@JSON
def list_command(kind: str | None, as_json: bool) -> int:
    """List what is available.

    KIND selects one list with its details: instances, formulations, methods, solvers, studies, or one of an extension,
    as claims and figures; without it, all names are listed.
    """
    from opticoll.analysis import catalog

    with output.diverted_stdout():
        every = catalog.names() if kind is None else []
        rows = every if kind is None else catalog.kinds()[kind]()
    if as_json:
        output.emit_json(rows)
    elif kind is None:
        for name in listed():
            words = ", ".join(row["name"] for row in every if row["kind"] == name)
            click.echo(f"{name}: {words or 'none'}")
    elif rows:
        output.show_table(rows, listed()[kind])
    else:
        click.echo(f"no {kind} registered yet", err=True)
    return 0
