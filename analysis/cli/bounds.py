"""The command ``bounds``."""

from __future__ import annotations

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import INSTANCE, JSON, SET, demand_setting


@click.command("bounds")
@INSTANCE
@click.option(
    "--formulation",
    metavar="NAME",
    shell_complete=names_of("formulations"),
    help="Formulation whose optimum is bounded (default: alltoall.master).",
)
@demand_setting
@SET
@click.option("--shard", metavar="SIZE", help="Size of a shard, such as 64MB, for times in seconds.")
@JSON
def bounds_command(
    instance: str, formulation: str | None, settings: dict[str, str], shard: str | None, as_json: bool
) -> int:
    """Print the analytic bounds of INSTANCE.

    Braces expand to several instances: 'genkautz:n={8..64},d=4', 'ring:{8,16}'.
    """
    with output.diverted_stdout():
        from opticoll.analysis.bounds.instance_bounds import bound_rows

        rows = bound_rows(instance, formulation, settings, shard=shard)
    if as_json:
        output.emit_json(rows)
    elif rows:
        output.show_bounds(rows)
    else:
        click.echo(f"{instance}: no analytic bounds; `opticoll solve` computes a bound")
    return 0
