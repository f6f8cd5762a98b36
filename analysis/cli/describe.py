"""The command ``describe``."""

from __future__ import annotations

import click

from opticoll.analysis.cli.completions import complete_instances, complete_names
from opticoll.analysis.cli.options import JSON, SET, SOLVERS, settings_of


@click.command()
@click.argument("name", shell_complete=complete_names)
@click.option(
    "--instance",
    metavar="SPEC",
    shell_complete=complete_instances,
    help="Instance for the sizes and bounds of a formulation.",
)
@SET
@SOLVERS
@JSON
def describe(name: str, instance: str | None, settings: tuple[str, ...], as_json: bool) -> int:
    """Describe a formulation, family, method, solver, study or claim.

    For a formulation: its mathematics, parameters, forms, methods, and its size and bounds on a small instance or on
    --instance. A spec such as `genkautz:n=16,d=4` describes the family and the instance. --json prints a list with one
    object per meaning of NAME.
    """
    from opticoll.analysis.cli import output

    with output.diverted_stdout():
        from opticoll.analysis import describe as reference

        result = reference.describe(name, instance, settings_of(settings))
    if as_json:
        output.emit_json(result)
    else:
        for one in result:
            output.show_description(one)
    return 0
