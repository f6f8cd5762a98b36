"""The group of all commands, and the option ``--plugin`` of each."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import streams
from opticoll.extensions import extensions, part

if TYPE_CHECKING:
    from collections.abc import Mapping

_WITHOUT = ("lab", "new")


def _load(context: click.Context, _: click.Parameter | None, places: tuple[str, ...]) -> None:
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
    """Commands that take plug-ins, and end quietly on Ctrl-C and when nobody reads their output any more.

    ``deferred`` are commands by name that are imported when they are used: where each is, and its line in the help.
    """

    def __init__(self, *arguments: Any, deferred: Mapping[str, tuple[str, str]] | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.deferred = dict(deferred or {})

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the option ``--plugin``."""
        super().add_command(cmd if cmd.name in _WITHOUT else PLUGIN(cmd), name)

    def add_contributed(self) -> None:
        """Add the commands of extensions."""
        for one in extensions():
            self.deferred = {**one.commands, **self.deferred}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, sorted."""
        return sorted({*self.commands, *self.deferred})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, imported if need be."""
        if cmd_name not in self.commands and cmd_name in self.deferred:
            self.add_command(part(self.deferred[cmd_name][0]), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, that of a plug-in among its own options ``--plugin`` too."""
        if self.get_command(ctx, args[0]) is None:
            _load(ctx, None, tuple(place for word, place in pairwise(args) if word == "--plugin"))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write names and lines of the commands into the help of all; none is imported for that."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (
                        name,
                        self.deferred[name][1] if name in self.deferred else self.commands[name].get_short_help_str(),
                    )
                    for name in self.list_commands(ctx)
                ]
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # which click would end with status 1
            return streams.closed_by_reader()
        except KeyboardInterrupt:
            raise click.Abort from None
