"""The group of all commands, and the option ``--plugin`` of each."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import click

from opticoll.analysis.cli import streams
from opticoll.extensions import parts

_WITHOUT = ("lab", "new")


def _load(context: click.Context, parameter: click.Parameter, places: tuple[str, ...]) -> None:
    """Load plug-ins, including those of the environment, before anything else is read."""
    if places or os.environ.get("OPTICOLL_PLUGINS"):
        from opticoll.analysis.cli import output
        from opticoll.plugins import load_configured, load_plugin

        skipped = (Exception,) if context.resilient_parsing else ()  # completion goes on without those that fail
        with suppress(*skipped), output.diverted_stdout():
            if not context.resilient_parsing:
                load_configured()
            for place in places:
                load_plugin(place)
        if isinstance(context.command, Commands):
            context.command.add_contributed()


PLUGIN = click.option(
    "--plugin",
    multiple=True,
    metavar="FILE.py",
    expose_value=False,
    is_eager=True,
    callback=_load,
    help="Plug-in with formulations, families, solvers, ... of your own: a file or an installed module; repeatable.",
)


class Commands(click.Group):
    """Commands that take plug-ins, and end quietly on Ctrl-C and when nobody reads their output any more."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the option ``--plugin``."""
        super().add_command(cmd if cmd.name in _WITHOUT else PLUGIN(cmd), name)

    def add_contributed(self) -> None:
        """Add the commands of extensions."""
        for command in parts("commands"):
            if command.name not in self.commands:
                self.add_command(command)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # which click would end with status 1
            return streams.closed_by_reader()
        except KeyboardInterrupt:
            raise click.Abort from None
