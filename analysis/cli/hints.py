"""What a wrong word on the command line probably meant."""

from __future__ import annotations

import click

from opticoll.nearest_names import nearest


def explained(error: click.UsageError) -> str:
    """The message of an error, with what was probably meant."""
    message = error.format_message().rstrip(".")
    command = None if error.ctx is None else error.ctx.command
    if error.ctx is None or command is None:
        return message
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument):
        message = message.replace(f"'{error.param.make_metavar(error.ctx)}'", repr((error.param.name or "").upper()), 1)
    if isinstance(error, click.NoSuchOption):
        options = [word for one in command.params if isinstance(one, click.Option) for word in one.opts]
        if "--set" in options:
            name = error.option_name.lstrip("-").replace("-", "_")
            return f"{message}; a parameter of the model or method is written --set {name}=VALUE"
    if isinstance(command, click.Group) and message.startswith("No such command"):
        word = message.split("'")[1]
        return f"No such command {word!r}; {nearest(word, command.list_commands(error.ctx))}"
    if message.startswith("Got unexpected extra argument"):
        takes = [one.make_metavar(error.ctx) for one in command.params if isinstance(one, click.Argument)]
        return f"{message}; this command takes {' '.join(takes) or 'none'}"
    return message
