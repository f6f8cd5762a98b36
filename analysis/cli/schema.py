"""The command ``schema``."""

from __future__ import annotations

import click

from opticoll.analysis.cli import output


@click.command()
@click.argument("command", nargs=-1)
def schema(command: tuple[str, ...]) -> int:
    """Print the JSON Schema of what a command prints with --json.

    COMMAND is solve, check, study, compare, results, bounds, claims, describe, sweep, iteration, hybrids, repair,
    cluster, list, or `list KIND`. Without it, print one object with all schemas.
    """
    from opticoll.analysis import json_outputs

    if command:
        output.emit_json(json_outputs.schema(" ".join(command)))
    else:
        output.emit_json({name: json_outputs.schema(name) for name in json_outputs.outputs()})
    return 0
