"""The command ``opticoll``: its group of commands, and its errors in one line each."""

from __future__ import annotations

import atexit
import gc
import signal
import sys
from typing import TYPE_CHECKING

import click

from opticoll.analysis.cli import streams
from opticoll.analysis.cli.group import PLUGIN, Commands
from opticoll.analysis.cli.output import INTERRUPTED, notify, report
from opticoll.errors import debugging

if TYPE_CHECKING:
    from collections.abc import Sequence


#: The commands of the library by name: where each is, and its line in the help of all.
COMMANDS = {
    "bounds": ("opticoll.analysis.cli.bounds:bounds_command", "Print the analytic bounds of instances."),
    "check": ("opticoll.analysis.cli.check:check", "Verify a solution, schedule or certificate."),
    "describe": ("opticoll.analysis.cli.describe:describe", "Describe a formulation, family, method, claim, ..."),
    "export": ("opticoll.analysis.cli.export:export", "Write the model as an MPS or LP file."),
    "lab": ("opticoll.analysis.cli.lab:lab", "Open JupyterLab on the notebooks."),
    "list": ("opticoll.analysis.cli.list:list_command", "List what is available."),
    "new": ("opticoll.analysis.cli.new:new", "Write an example plug-in of your own, and its test."),
    "report": ("opticoll.analysis.cli.report:report", "Write the tables and plots of the store as HTML."),
    "results": ("opticoll.analysis.cli.results:results", "Print the results store as a table."),
    "solve": ("opticoll.analysis.cli.solve:solve", "Solve, verify and certify a formulation on an instance."),
    "study": ("opticoll.analysis.cli.study:study", "Run a study, by name or TOML file."),
    "sweep": ("opticoll.analysis.cli.sweep:sweep", "Test a bound on the optimum over many instances."),
}


@click.group(
    cls=Commands,
    deferred=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@PLUGIN
@click.option("--version", "show_version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(context: click.Context, show_version: bool) -> None:
    """Optimization models of optical interconnects: solve them with any solver and certify the result."""
    if show_version:
        from opticoll.analysis.checkout import opticoll_version

        click.echo(f"opticoll {opticoll_version() or 'unknown'}")
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())


cli.add_contributed()


# errors -------------------------------------------------------------------------------------------------------


#: Signals that have come. Modules in C that load then end with an error of their own, not with KeyboardInterrupt.
_signals: list[int] = []


def _interrupt(number: int, frame: object) -> None:
    _signals.append(number)
    raise KeyboardInterrupt


def _interrupted() -> int:
    """Say that the command was interrupted, and return its exit status."""
    notify("interrupted")
    return 128 + _signals[0] if _signals else INTERRUPTED


def program() -> int:
    """Run the command line as the whole work of this process.

    Most objects come from imported modules and live as long as the process. Full collections, of which the last is at
    the exit, would examine them again and again: a quarter of the time of a small solve.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as SIGHUP is under nohup
            signal.signal(number, _interrupt)
    streams.prepare()
    gc.set_threshold(20_000, 10, 50)
    # At the exit too, except of DuckDB's objects: it would print that they leak.
    atexit.register(lambda: None if "duckdb" in sys.modules else gc.freeze())
    status = main()
    if _signals:  # after one that came within an exec, as of a dataclass, python -m would kill itself, not exit
        exec("")  # forgets that one
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every error is one line on stderr and an exit status, never a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        status = cli.main(args=arguments, prog_name="opticoll", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        if debugging():
            raise
        from opticoll.analysis.cli.hints import explained

        # An option without its argument has no context.
        named = ["opticoll", *(word for word in words if word in cli.commands)][:2]
        command = error.ctx.command_path if error.ctx is not None else " ".join(named)
        notify(f"{explained(error)}; see `{command} --help`")
        return 2
    except click.ClickException as error:
        notify(error.format_message())
        return 2
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        return streams.closed_by_reader()
    except BaseException as error:  # that nothing else has handled
        if _signals:
            return _interrupted()
        if debugging():
            raise
        return _report_error(error, next((cli.commands[word] for word in words if word in cli.commands), cli))
    if status == INTERRUPTED and _signals:  # the command has said what is kept
        return 128 + _signals[0]
    return status if isinstance(status, int) else 0


def _report_error(error: BaseException, command: click.Command) -> int:
    from opticoll.errors import OpticollError, one_line

    if isinstance(error, FileNotFoundError) and error.filename is None:
        from opticoll.shared_files import working_folder

        try:
            working_folder()
        except OpticollError as removed:
            error = removed
    if isinstance(error, OpticollError):
        report(error, command)
        return error.exit_status
    if isinstance(error, MemoryError):
        notify(f"out of memory: {error or 'allocation failed'}; use a smaller instance or another method")
        return 2
    if isinstance(error, OSError):
        named = f"{one_line(error.filename or 'a file', 120)}: {error.strerror}; name another file or folder"
        notify(named if error.strerror else str(error))
        return 2
    if isinstance(error, ValueError) and "null byte" in str(error):
        notify("a path holds a NUL character; name another file or folder")
        return 2
    from opticoll.plugin_faults import fault

    message = fault(error)
    if message is not None:
        notify(message)
        return 2
    if not isinstance(error, Exception):
        raise error
    notify(f"unexpected {type(error).__name__}: {error}; set OPTICOLL_DEBUG=1 for the traceback, and report it")
    return 1
