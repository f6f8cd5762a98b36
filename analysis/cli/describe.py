"""The command ``describe``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON, SET, SOLVERS

if TYPE_CHECKING:
    from opticoll.analysis.describe import Description

#: Markup of a docstring: a role with its text.
_ROLE = re.compile(r":[a-z]+:`~?([^`]*)`")


@click.command()
@click.argument("name", shell_complete=names_of())
@click.option(
    "--instance",
    metavar="SPEC",
    shell_complete=names_of("instances"),
    help="Instance for the sizes and bounds of a formulation.",
)
@SET
@SOLVERS
@JSON
def describe(name: str, instance: str | None, settings: dict[str, str], as_json: bool) -> int:
    """Describe a formulation, family, method, solver, study, claim or figure.

    For a formulation: its mathematics, parameters, forms, methods, and its size and bounds on a small instance or on
    --instance. A spec such as `genkautz:n=16,d=4` describes the family and the instance. --json prints a list with one
    object per meaning of NAME.
    """
    with output.diverted_stdout():
        from opticoll.analysis import describe as reference

        result = reference.describe(name, instance, settings)
    if as_json:
        output.emit_json(result)
    else:
        for one in result:
            _show_description(one)
    return 0


def _without_markup(text: str) -> str:
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def _fields(one: Description) -> dict[str, str]:
    """Facts about a name that is described, a line each."""
    from opticoll.analysis.rendering import cell, number

    lines = {"kind": one.kind, "source": one.source}
    lines |= {name: cell(value) for name, value in one.facts.items() if value is not None}
    lines |= {name: ", ".join(one[name]) for name in ("forms", "methods", "solvers", "formulations")}
    if one.sizes is not None:
        words = ("variables", "constraints", "nonzeros", "integers")
        numbers = ", ".join(f"{number(one.sizes[word])} {word}" for word in words if one.sizes[word] is not None)
        lines[f"on {one.sizes.instance}"] = numbers or "size unknown"
        lines["auto chooses"] = number(one.sizes.auto)
    lines["example"] = one.example
    return {name: line for name, line in lines.items() if line}


def _show_description(one: Description) -> None:
    """Print the description of a name: title, source, text, parameters, related names, sizes and bounds."""
    click.echo(f"{one.name}: {one.title}\n")
    headline, _, body = one.text.partition("\n\n")
    text = body if " ".join(headline.split()).rstrip(".") == one.title else one.text
    if text:
        click.echo(f"{_without_markup(text)}\n")
    if one.parameters:
        rows = [
            {**row, "default": "required" if row.required else row.default, "help": _without_markup(row.help)}
            for row in one.parameters
        ]
        columns = ["name", "type", "default", *(c for c in ("choices", "help") if any(row[c] for row in rows))]
        output.show_table(rows, columns, "parameters")
        click.echo()
    output.show_fields(_fields(one), None)
    if one.sizes is not None and one.sizes.bounds:
        click.echo()
        rows = [dict(bound) for bound in one.sizes.bounds]
        output.show_table(
            rows, ["name", "value", "exact", "reason"], f"bounds on the objective on {one.sizes.instance}"
        )
    click.echo()
