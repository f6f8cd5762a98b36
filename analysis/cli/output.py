"""Output of the commands: tables for people, one JSON value for programs."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from opticoll.analysis.bounds.instance_bounds import BoundRow
    from opticoll.analysis.rendering import Listing, Printed
    from opticoll.errors import OpticollError
    from opticoll.solvers.task import Fields


#: Exit status of a command that was interrupted and has said so; after a signal it becomes 128 and the signal's number.
INTERRUPTED = 130
#: Width of a column in which longer words can still be read, and of what is printed elsewhere than on a terminal
#: [characters].
_READABLE, _WIDE = 6, 200


def notify(message: str) -> None:
    """Print a message as one line on stderr."""
    from opticoll.errors import one_line

    click.echo(f"opticoll: {one_line(message)}", err=True)


def report(error: OpticollError, command: click.Command) -> None:
    """Print an error, in the words of a command, as one line on stderr."""
    notify(error.said(functools.partial(_argument, command)))


def _argument(command: click.Command, name: str, value: object) -> str:
    """An argument of a function of Python as a command says it: by its option of that name, else ``--set``."""
    options = (one for one in command.params if isinstance(one, click.Option))
    option = next((one for one in options if one.name == name), None)
    if option is None:
        return f"--set {name}=" + ("" if value is None else str(value))
    return option.opts[0] if option.is_flag or value is None else f"{option.opts[0]} {value}"


@contextlib.contextmanager
def diverted_stdout() -> Iterator[None]:
    """Redirect stdout to stderr, also for compiled code: stdout is reserved for the result."""
    sys.stdout.flush()
    try:
        real = os.dup(1)
    except OSError:  # no such descriptor
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(real, 1)
        os.close(real)


def emit_json(value: Any) -> None:
    """Print exactly one JSON value; NaN and infinity become null."""
    import json

    from opticoll.solvers.task import plain

    click.echo(json.dumps(plain(value), allow_nan=False, ensure_ascii=not streams.prints_unicode()))


def show(value: Printed, *, as_json: bool) -> int:
    """Print what a command found: its document as JSON, or its lines and tables; returns exit status 0."""
    if as_json:
        emit_json(value.document())
    else:
        show_fields(value.lines(), value._title)
        for listing in value.tables():
            show_listing(listing)
        for remark in value.remarks():
            click.echo(remark, err=True)
    return 0


def show_listing(listing: Listing) -> None:
    """Print a table below what was printed before."""
    click.echo()
    show_table(listing.rows, listing.columns, listing.title)
    if listing.note:
        click.echo(listing.note)


def console() -> Console:
    """A rich console on stdout: wide outside a terminal, and raising BrokenPipeError on a closed pipe."""
    import rich.console

    class Screen(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Screen(width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def show_table(rows: Sequence[Mapping[str, object] | Fields], columns: Sequence[str], title: str | None = None) -> None:
    """Print rows as a table on stdout, or one below the other if the screen is too narrow for the columns."""
    from opticoll.analysis.rendering import cell
    from opticoll.errors import one_line

    texts = [[one_line(cell(row.get(column))) for column in columns] for row in rows]
    plain = [[column.replace("_", " ") for column in columns], *texts]
    widths = [max(map(len, cells)) for cells in zip(*plain, strict=True)]
    if not sys.stdout.isatty() and sum(widths) + 2 * len(widths) - 2 <= _WIDE and all(map(_is_narrow, chain(*plain))):
        for text in [*([title] if title else []), *("  ".join(map(str.ljust, cells, widths)) for cells in plain)]:
            print(text)
        sys.stdout.flush()
        return
    from rich.table import Table
    from rich.text import Text

    least = [
        min(_READABLE, max(map(len, (*name.split("_"), *(line[i] for line in texts)))))
        for i, name in enumerate(columns)
    ]
    if texts and sum(least) + 2 * len(least) > console().width:
        for number, line in enumerate(texts):
            if number:
                click.echo()
            show_fields(dict(zip(columns, line, strict=True)), title if number == 0 else None)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for line in texts:
        table.add_row(*map(Text, line))
    _print_titled(title, table)


def _is_narrow(text: str) -> bool:
    """Whether every character takes one column."""
    return text.isascii() or all(ord(one) < 0x300 or 0x2010 <= ord(one) < 0x2500 for one in text)


def show_fields(lines: Mapping[str, str], title: str | None) -> None:
    """Print names and values in two columns on stdout; a word longer than a line stays whole, to be copied."""
    import textwrap

    screen, width = console() if sys.stdout.isatty() else None, max(map(len, lines), default=0) + 2
    room = max((_WIDE if screen is None else screen.width) - width, 1)

    def put(name: str, text: str, style: str) -> None:
        if screen is None:
            print(name + text, flush=True)
        else:
            from rich.text import Text

            screen.print(Text.assemble((name, style), text), soft_wrap=True)

    if title:
        put(title, "", "table.title")
    for name, text in lines.items():
        parts = [
            part
            for line in text.splitlines() or [""]
            for part in textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
        ]
        for number, part in enumerate(parts):
            put(f"{'' if number else name:<{width}}", part, "bold")


def _print_titled(title: str | None, table: Table) -> None:
    """Print a table under its title, which is not folded to the width of the table."""
    from rich.text import Text

    screen = console()
    if title:
        screen.print(Text(title, style="table.title"))
    screen.print(table)


def show_bounds(rows: Sequence[BoundRow]) -> None:
    """Print analytic bounds, tightest first."""
    timed = any(row["T"] is not None for row in rows)
    fractions = [row["T_exact"] if timed else row["value_exact"] for row in rows]
    several = len({row["formulation"] for row in rows}) > 1
    columns = [*(["instance"] if any("instance" in row for row in rows) else [])]
    columns += [*(["formulation"] if several else []), "name", "quantity", "sense", "value"]
    columns += ["T"] if timed else []
    columns += ["T_s"] if any(row["T_s"] is not None for row in rows) else []
    if any(one is not None for one in fractions):
        columns.append("T_exact" if timed else "value_exact")
    show_table(rows, [*columns, "exact", "reason", "paper"], "analytic bounds")
    if any(row["value"] == (math.inf if row["sense"] == "lower" else -math.inf) for row in rows):
        click.echo("A lower bound of inf, or an upper one of -inf, proves that there is no solution.")
