"""The command ``schema``."""

from __future__ import annotations

import click

from opticoll.analysis.cli import output


class _NamesOutputs(click.Command):
    """A command whose help names the commands with a schema, which are looked up when it is shown."""

    _text: str | None = None

    @property
    def help(self) -> str | None:
        from opticoll.analysis.json_outputs import outputs

        names = [name for name in outputs() if not name.startswith("list ")]
        return None if self._text is None else self._text.replace("COMMANDS", ", ".join(names))

    @help.setter
    def help(self, text: str | None) -> None:
        self._text = text


@click.command(cls=_NamesOutputs, short_help="Print the JSON Schema of what a command prints with --json.")
@click.argument("command", nargs=-1)
def schema(command: tuple[str, ...]) -> int:
    """Print the JSON Schema of what a command prints with --json.

    COMMAND is COMMANDS, or `list KIND`. Without it, print one object with all schemas.
    """
    from opticoll.analysis import json_outputs

    if command:
        output.emit_json(json_outputs.schema(" ".join(command)))
    else:
        output.emit_json({name: json_outputs.schema(name) for name in json_outputs.outputs()})
    return 0
