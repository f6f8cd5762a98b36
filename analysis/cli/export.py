"""The command ``export``."""

from __future__ import annotations

from pathlib import Path

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import FORMS, FORMULATION, INSTANCE, SET, OutputFile


@click.command()
@FORMULATION
@INSTANCE
@click.option("--to", "path", required=True, type=OutputFile(), metavar="FILE.mps|FILE.lp", help="File to write.")
@click.option(
    "--form",
    metavar=FORMS,
    help="Modelling layer, or matrix where it is stated as such; `opticoll describe FORMULATION` lists the forms, the "
    "default first.",
)
@SET
def export(formulation: str, instance: str, path: Path, form: str | None, settings: dict[str, str]) -> int:
    """Write the model as an MPS or LP file.

    The file holds the matrix of FORMULATION on INSTANCE as a minimization, in a form that HiGHS, SCIP, Gurobi, CPLEX,
    Xpress, COPT, MOSEK, CBC and GLPK read as the same program.
    """
    if path.suffix.lower() not in {".mps", ".lp"}:
        click.get_current_context().fail(f"--to {path}: the name must end in .mps or .lp")
    with output.diverted_stdout():
        from opticoll.solvers import export as exported

        notes = exported.export(formulation, instance, path, form, settings)
    click.echo("\n".join([f"wrote {path}", *(f"note: {note}" for note in notes)]), err=True)
    return 0
