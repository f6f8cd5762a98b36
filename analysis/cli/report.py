"""The command ``report``."""

from __future__ import annotations

from pathlib import Path

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import STORE, readable_store


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="report",
    show_default=True,
    metavar="DIR",
    help="Folder for the page.",
)
@STORE
def report(out: Path, store: str | None) -> int:
    """Write the tables and plots of the store as HTML: one self-contained page in the folder --out."""
    from opticoll.analysis.report import page
    from opticoll.analysis.report.findings import collect

    home = readable_store(store)
    written = page.build(home, out, findings := collect(home))
    output.show(findings, as_json=False)
    click.echo(f"wrote {written}", err=True)
    return 0
