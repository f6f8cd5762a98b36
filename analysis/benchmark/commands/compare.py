"""The command ``compare``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON, SOLVERS, STORE, readable_store, refuse_together


@click.command()
@click.argument("study", shell_complete=names_of("studies"))
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write figures and tables.")
@click.option("--time", "clock", type=click.Choice(["solver", "solve", "total"]), help="Which time to compare.")
@click.option("--accuracy", type=float, metavar="X", help="KKT residual (or gap) at which an LP counts as solved.")
@click.option("--latex", is_flag=True, help="Print the tables for LaTeX.")
@SOLVERS
@STORE
@JSON
def compare(
    study: str,
    out: Path | None,
    clock: Any,
    accuracy: float | None,
    latex: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Compare the contestants of a study that has been run.

    STUDY is a name or TOML file. A contestant is a method with its options. Nothing is run: `opticoll study STUDY` does
    that. With --out, the figures are performance profiles, in SVG, the tables CSV.
    """
    refuse_together(("--json", "--latex"))
    with output.diverted_stdout():
        from opticoll.analysis.benchmark import comparison, study_comparison
        from opticoll.analysis.study.study_file import find, load

        home = readable_store(store)
        made = study_comparison.compare(load(find(study)), home, clock=clock, accuracy=accuracy)
        if out is not None:
            made = replace(made, folder=comparison.write(made.comparison, out, {}))
    if latex:
        click.echo(made.to_latex(), nl=False)
    else:
        output.show(made, as_json=as_json)
    if made.folder is not None and not as_json:
        click.echo(f"wrote {made.folder}", err=True)
    return 0
