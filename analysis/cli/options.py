"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import math
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll.analysis.result.progress_line import ProgressLine
    from opticoll.analysis.store import Store


class FloatRange(click.FloatRange):
    """Numbers in a range; click's own takes NaN for one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse NaN as any other number outside the range."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


# options and arguments ------------------------------------------------------------------------------------------------

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON value on stdout and nothing else.")
STORE = click.option("--store", metavar="DIR", help="Results store (default: $OPTICOLL_STORE, or ./results).")


def read_settings(context: click.Context, _parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    """The options ``--set`` as names and values."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            context.fail(f"--set {pair!r}: write --set NAME=VALUE")
        if name.strip() in settings:
            context.fail(f"--set: {name.strip()!r} is given twice")
        settings[name.strip()] = value.strip()
    return settings


def only_one(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> str:
    """The value of an option of which click would silently take the last."""
    if len(values) > 1:
        context.fail(f"{parameter.opts[0]} is given twice; run the command once for each")
    return values[0]


SET = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    callback=read_settings,
    help="Parameter of the model or method, or option of the solver; repeatable.",
)


def demand_setting(command: Callable[..., int]) -> Callable[..., int]:
    """Add ``--demand``, which the command receives as the setting ``demand``; the path of a file begins ``file:``."""

    @functools.wraps(command)
    def wrapped(demand: str | None, settings: dict[str, str], **options: Any) -> int:
        if demand is not None:
            if "demand" in settings:
                click.get_current_context().fail("--set: 'demand' is given twice")
            from opticoll.instances.readers.reading import split_pairs

            settings["demand"] = f"file:{demand}" if Path(split_pairs(demand)[0]).is_file() else demand
        return command(settings=settings, **options)

    about = "Demand of an all-to-all; short for --set demand=TEXT or demand=file:FILE."
    return click.option("--demand", metavar="TEXT|FILE", help=about)(wrapped)


METHOD = click.option(
    "--method",
    default="auto",
    show_default=True,
    shell_complete=names_of("methods", "solvers"),
    help="Solver or method, see `opticoll list`; auto solves the stated model, or a large one by a certified method.",
)


def _use_solver_file(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Register the solvers of a file for this command and its workers."""
    if path is None:
        return
    name = "OPTICOLL_SOLVERS"
    before = os.environ.get(name)
    full = os.path.abspath(path)  # noqa: PTH100  symbolic links are not resolved
    os.environ[name] = full if before is None else f"{before}{os.pathsep}{full}"

    def restore() -> None:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before

    context.call_on_close(restore)


SOLVERS = click.option(
    "--solver-config",
    metavar="FILE",
    expose_value=False,
    is_eager=True,
    callback=_use_solver_file,
    help="TOML file of solvers that run as commands (also $OPTICOLL_SOLVERS).",
)
#: What --form names.
FORMS = "pyomo|cvxpy|matrix"
FORMULATION = click.argument("formulation", shell_complete=names_of("formulations"))
INSTANCE = click.argument("instance", shell_complete=names_of("instances"))


class OutputFile(click.Path):
    """A file to write, which is refused before the solve if it cannot be written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Refuse a file that cannot be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        refuse_unwritable(path)
        return path


def _certificate_name(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not path.name.lower().endswith((".vipr", ".vipr.gz")):
        msg = f"{path}: name a file .vipr or .vipr.gz; a value that a bound proves needs none: see `opticoll bounds`"
        raise click.BadParameter(msg)
    return path


def _print_checker(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.resources import files

        click.echo(files("opticoll.solvers.exact").joinpath("vipr_check.py").read_text(encoding="utf-8"), nl=False)
        context.exit()


CERTIFICATE = click.option(
    "--certificate",
    type=OutputFile(),
    callback=_certificate_name,
    metavar="FILE.vipr",
    help="Write the proof of the exact optimum in VIPR format (implies --exact); .vipr.gz compresses it.",
)
PRINT_CHECKER = click.option(
    "--print-checker",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_checker,
    help="Print the stand-alone checker of certificates, a Python program, and exit.",
)

_SCHEDULE = (
    click.option(
        "--schedule",
        type=OutputFile(),
        metavar="FILE",
        help="Write an executable schedule: .xml (MSCCL), .json (moves, circuits) or .routes.json.",
    ),
    click.option(
        "--chunks",
        metavar="N[,N...]",
        help="Chunks per shard in the schedule: exactly N, or the best of several numbers "
        "(default: a power of two up to 16, others up to 24 if those lose more than 1 %; up to 64 if links wait).",
    ),
    click.option(
        "--target",
        metavar="RUNTIME",
        help="Runtime whose limits an .xml keeps: msccl (default), rccl or azure-msccl.",
    ),
    click.option("--protocol", metavar="NAME", help="Protocol of an .xml: Simple (default), LL or LL128."),
    click.option(
        "--channels",
        type=click.IntRange(min=1),
        metavar="N",
        help="Minimum number of channels per connection in an .xml (default: as many as the target's limits need).",
    ),
    click.option(
        "--instances",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of parts into which an .xml splits each chunk, each with its own channels (default: 1).",
    ),
    click.option(
        "--bytes",
        "sizes",
        metavar="MIN:MAX",
        help="Buffer sizes for which the runtime selects an .xml, such as 64KiB:1GiB (default: the target's widest).",
    ),
)


def schedule_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a schedule; the command receives them as ``schedule``, a request or None."""

    @functools.wraps(command)
    def wrapped(**options: object) -> int:
        names = ("chunks", "target", "protocol", "channels", "instances", "sizes")
        chosen = {name: options.pop(name) for name in names}
        path = options.pop("schedule")
        given = {name: value for name, value in chosen.items() if value is not None}
        if path is None and given:
            click.get_current_context().fail(
                f"--{next(iter(given)).replace('sizes', 'bytes')} is an option of --schedule; add --schedule FILE"
            )
        request = None
        if path is not None:
            from opticoll.analysis.output_files import schedule_request

            request = schedule_request(path, **given)  # type: ignore[arg-type]
        return command(schedule=request, **options)

    for option in reversed(_SCHEDULE):
        wrapped = option(wrapped)
    return wrapped


# helpers --------------------------------------------------------------------------------------------------------------


def readable_store(folder: str | None) -> Store:
    """The results store in a folder, which must be there if it is named, or the default one."""
    from opticoll.analysis.store import Store

    store = Store(folder)
    store.check_readable()
    return store


def writable_store(folder: str | None) -> Store:
    """The results store in a folder; raises an error if it cannot be written."""
    from opticoll.analysis.store import Store

    store = Store(folder)
    store.check_writable()
    return store


def refuse_together(*pairs: tuple[str, str]) -> None:
    """Refuse options of this command that exclude each other."""
    context = click.get_current_context()
    given = {option: context.params.get(str(one.name)) for one in context.command.params for option in one.opts}
    for first, second in pairs:
        if given[first] and given[second]:
            context.fail(f"{first} and {second} are mutually exclusive")


def refuse_unwritable(path: Path) -> None:
    """Refuse an output file that cannot be written, before the solve."""
    try:
        if path.exists():
            possible = path.is_file() and os.access(path, os.W_OK)
        else:
            possible = path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError):  # a name too long, or with a NUL
        possible = False
    if not possible or not os.access(path.parent, os.W_OK):
        click.get_current_context().fail(f"{path}: cannot be written; name a file in an existing, writable folder")


def progress_line(title: str, *, shown: bool, plain: bool, searches: bool = True) -> ProgressLine | nullcontext[None]:
    """Progress on stderr: in place on a terminal, else in plain lines; none if it is not ``shown``."""
    terminal = sys.stderr.isatty()
    if not shown or not (terminal or plain):
        return nullcontext()
    from opticoll.analysis.result.progress_line import PlainLines, ProgressLine, RedrawnLine

    return ProgressLine(title, RedrawnLine() if terminal else PlainLines(output.notify), searches=searches)
