"""The command ``opticoll``. Large packages are imported inside the commands, so that ``--help`` is fast."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opticoll.analysis.instance_bounds import BoundRow
    from opticoll.analysis.store import Store
    from opticoll.solvers.task import Progress, Run

_KINDS = ["instances", "formulations", "methods", "solvers", "studies", "claims"]
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON value on stdout and nothing else.")
_STORE = click.option(
    "--store", "store_dir", metavar="DIR", help="Results store (default: $OPTICOLL_STORE, or ./results)."
)
_SET = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    help="Parameter of the model or method, or option of the solver; repeatable.",
)


class _Commands(click.Group):
    """Commands that end on Ctrl-C without an empty line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", "show_version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(context: click.Context, show_version: bool) -> None:
    """Optimization models of optical interconnects: solve them with any solver and certify the result."""
    if show_version:
        from opticoll.analysis.store.schema import opticoll_version

        click.echo(f"opticoll {opticoll_version() or 'unknown'}")
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command("list")
@click.argument("kind", required=False, type=click.Choice(_KINDS))
@_JSON
def list_command(kind: str | None, as_json: bool) -> int:
    """List what is available.

    KIND selects one list with its details; without it, all names are listed.
    """
    from opticoll.analysis import catalog, present

    with present.diverted_stdout():
        rows = catalog.names() if kind is None else catalog.KINDS[kind]()
    if as_json:
        present.emit_json(rows)
    elif kind is None:
        for name in _KINDS:
            words = ", ".join(row["name"] for row in rows if row["kind"] == name)
            click.echo(f"{name}: {words or 'none'}")
    elif rows:
        present.show_table(rows, present.LISTED.get(kind, list(rows[0])))
    else:
        click.echo(f"no {kind} registered yet", err=True)
    return 0


@cli.command()
@click.argument("formulation")
@click.argument("instance")
@click.option("--method", default="auto", show_default=True, help="Solver or method; see `opticoll list`.")
@click.option(
    "--form",
    metavar="pyomo|cvxpy",
    help="Modelling layer (default: the first one of the formulation; auto may build its matrix directly).",
)
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of the whole solve [s].")
@click.option("--memory-limit", type=float, metavar="GIB", help="Memory limit of all processes of the solve [GiB].")
@_SET
@click.option(
    "--tol", type=float, default=1e-6, show_default=True, help="Relative gap at which the value counts as optimal."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--solution", type=click.Path(path_type=Path), metavar="FILE", help="Write the solution as JSON.")
@click.option(
    "--schedule",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write an executable schedule: .xml (MSCCL), .json (links) or .routes.json.",
)
@click.option("--paths", type=click.Path(path_type=Path), metavar="FILE.npz", help="Write weighted paths of all pairs.")
@click.option(
    "--chunks", type=click.IntRange(min=1), metavar="N", help="Most chunks per shard in the schedule (default: 24)."
)
@click.option("--no-store", is_flag=True, help="Do not record the run.")
@_STORE
@_JSON
def solve(
    formulation: str,
    instance: str,
    method: str,
    form: str | None,
    time_limit: float | None,
    memory_limit: float | None,
    settings: tuple[str, ...],
    tol: float,
    seed: int,
    threads: int,
    solution: Path | None,
    schedule: Path | None,
    paths: Path | None,
    chunks: int | None,
    no_store: bool,
    store_dir: str | None,
    as_json: bool,
) -> int:
    """Solve, verify and certify FORMULATION on INSTANCE.

    Exit status: 0 solved and verified, 2 bad input, 3 no solution found, 4 solver unavailable.
    """
    from datetime import UTC, datetime

    from opticoll.analysis import present
    from opticoll.solvers.task import Task

    if no_store and store_dir:
        msg = "--no-store and --store exclude each other"
        raise click.UsageError(msg)
    store = None if no_store else _writable_store(store_dir)
    if solution is not None:
        _refuse_unwritable(solution)
    task = Task(formulation, instance, method, form, _settings(settings), time_limit, memory_limit, tol, seed, threads)
    if chunks is not None and schedule is None:
        msg = "--chunks cuts the shards of a schedule; name it with --schedule FILE"
        raise click.UsageError(msg)
    if schedule is not None:
        from opticoll.analysis import solution_files

        _refuse_unwritable(schedule)
        solution_files.refuse_schedule_early(schedule, task)
    if paths is not None:
        from opticoll.analysis import solution_files

        _refuse_unwritable(paths)
        solution_files.refuse_paths_early(paths, formulation)
    started = datetime.now(UTC)
    with present.diverted_stdout(), _spinner(f"{formulation} {instance}") as on_progress, _stoppable() as stop:
        from opticoll.solvers import runner

        run = runner.solve(task, on_progress=on_progress, stop=stop)
    if run.exit_status == 4:
        from opticoll.errors import SolverUnavailable

        raise SolverUnavailable(run.record.message or "the solver is not available")
    if store is not None:
        store.save(run, started=started)
    if solution is not None and run.verified:
        _write_json(solution, runner.solution_document(run))
    written: dict[str, Any] = {}
    if schedule is not None and run.verified:
        written["schedule"] = solution_files.write_schedule(schedule, run, chunks)
    if paths is not None and run.verified:
        written["paths"] = solution_files.write_paths(paths, run)
    if as_json:
        present.emit_json({**run.record, **written})
    else:
        present.show_run(run.record, _bounds_of(run))
    if run.exit_status:
        message = run.record.message or "no solution passed verification"
        _complain(f"no solution: ended with {run.termination}: {message}")
    return run.exit_status


@cli.command()
@click.argument("formulation")
@click.argument("instance")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set", "settings", multiple=True, metavar="K=V", help="Parameter of the formulation; repeatable.")
@_JSON
def check(formulation: str, instance: str, file: Path, settings: tuple[str, ...], as_json: bool) -> int:
    """Verify an external solution or schedule FILE.

    FILE is a solution of FORMULATION on INSTANCE in the format of `opticoll solve --solution`, or a schedule for
    INSTANCE: MSCCL XML, or JSON as `opticoll solve --schedule` writes it. Schedules are executed. INSTANCE and --set
    define the problem; a file for other parameters is refused. Its bound is recomputed from its duals, or ignored.
    """
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.solvers import runner

        found = runner.check(formulation, instance, file, _settings(settings))
    if as_json:
        present.emit_json(found)
    else:
        columns = ["formulation", "instance", "verified", "objective"]
        present.show_table(
            [found], [*columns, *(["bound", "bound_source"] if found["bound"] is not None else []), "reason"]
        )
        for note in found["notes"]:
            click.echo(f"note: {note}")
    if not found["verified"]:
        kind = "schedule" if "schedule" in found else "solution"
        _complain(f"{file}: is no {kind}: {found.get('reason') or 'a constraint is violated'}")
        return 3
    return 0


@cli.command()
@click.argument("formulation")
@click.argument("instance")
@click.option("--to", "path", required=True, type=click.Path(path_type=Path), metavar="FILE.mps|FILE.lp")
@click.option(
    "--form",
    metavar="pyomo|cvxpy",
    help="Modelling layer (default: the first one of the formulation; auto may build its matrix directly).",
)
@_SET
def export(formulation: str, instance: str, path: Path, form: str | None, settings: tuple[str, ...]) -> int:
    """Write the model as an MPS or LP file.

    The file holds the matrix of FORMULATION on INSTANCE and can be read by any solver.
    """
    from opticoll.analysis import present

    if path.suffix.lower() not in {".mps", ".lp"}:
        msg = f"--to {path}: the name must end in .mps or .lp"
        raise click.UsageError(msg)
    _refuse_unwritable(path)
    with present.diverted_stdout():
        from opticoll.solvers import runner

        runner.export(formulation, instance, path, form, _settings(settings))
    click.echo(f"wrote {path}", err=True)
    return 0


@cli.command()
@click.argument("study")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cells to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cells.")
@_STORE
@_JSON
def study(study: str, jobs: int | None, dask: str | None, store_dir: str | None, as_json: bool) -> int:
    """Run a study, by name or TOML file.

    Cells that have an answer in the store (a verified value, or a proof of infeasibility) are skipped. Run the command
    again to resume after an interruption.
    """
    from opticoll.analysis import present
    from opticoll.analysis import study as study_command

    if jobs is not None and dask is not None:
        msg = "--jobs and --dask exclude each other"
        raise click.UsageError(msg)
    store = _writable_store(store_dir)
    with present.diverted_stdout():
        summary = study_command.run(study, store, jobs, dask)
    if as_json:
        present.emit_json(study_command.as_json(summary))
    else:
        present.show_summary(summary)
    if summary.interrupted:
        rest = len(summary.study.cells) - len(summary.results)
        _complain(f"interrupted with {rest} cells to go; run `opticoll study {study}` again to resume")
        return 130
    return 0 if summary.complete else 1


@cli.command("bounds")
@click.argument("instance")
@click.option("--formulation", metavar="NAME", help="Formulation whose optimum is bounded (default: alltoall.master).")
@_JSON
def bounds_command(instance: str, formulation: str | None, as_json: bool) -> int:
    """Print the analytic bounds of INSTANCE."""
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.analysis.instance_bounds import bounds

        rows = bounds(instance, formulation)
    if as_json:
        present.emit_json(rows)
    else:
        present.show_bounds(rows)
    return 0


@cli.command()
@click.argument("identifiers", nargs=-1, metavar="[ID]...")
@click.option("--cached", is_flag=True, help="Show the stored measurements; measure nothing.")
@click.option("--resume", is_flag=True, help="Skip claims that this version has already measured into the store.")
@click.option("--no-store", is_flag=True, help="Measure everything and store nothing.")
@_STORE
@_JSON
def claims(
    identifiers: tuple[str, ...], cached: bool, resume: bool, no_store: bool, store_dir: str | None, as_json: bool
) -> int:
    """Compare the papers' numbers with measurements.

    ID is a claim, a paper (`optree`) or a pattern (`'topoopt.tax*'`); without any, all claims are measured. Runs that
    have an answer in the store are not repeated. Every claim is stored as soon as it is measured.
    """
    from opticoll.analysis import present

    given = {"--no-store": no_store, "--store": store_dir, "--cached": cached, "--resume": resume}
    for one, other in (("--no-store", "--cached"), ("--no-store", "--store"), ("--no-store", "--resume"),
                       ("--cached", "--resume")):  # fmt: skip
        if given[one] and given[other]:
            msg = f"{one} and {other} exclude each other"
            raise click.UsageError(msg)
    rest = 0
    with present.diverted_stdout():
        from opticoll.analysis import ledger as book

        wanted = len(book.chosen(identifiers))
        if cached:
            rows: list[Any] = book.kept(identifiers, _store(store_dir))
        else:
            store = None if no_store else _writable_store(store_dir)
            rows = present.gathered(_until_interrupted(book.ledger(identifiers, store, resume=resume)), "claims")
        rest = wanted - len(rows)
    if as_json:
        present.emit_json(rows)
    elif rows:
        present.show_table(rows, ["id", "paper", "where", "claim", "expected", "measured", "verdict", "reason"])
    elif not wanted:
        click.echo("no claims registered yet")
    if rest and cached:
        _complain(f"{rest} of {wanted} claims have not been measured into this store; `opticoll claims` measures them")
    elif rest:
        _complain(f"interrupted with {rest} of {wanted} claims to go; resume with `opticoll claims --resume`")
        return 130
    failed = [row["id"] for row in rows if row.get("failed")]
    if failed:
        _complain(f"{len(failed)} of {wanted} claims could not be measured: {', '.join(failed)}")
    return 1 if failed else 0


@cli.command()
@click.argument("sql", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@_STORE
@_JSON
def results(sql: str | None, as_csv: bool, store_dir: str | None, as_json: bool) -> int:
    """Print the results store as a table.

    The latest runs, or what the query SQL selects from the views `runs` (every record) and `latest` (the best
    record of each resume key).
    """
    from opticoll.analysis import present

    if as_csv and as_json:
        msg = "--csv and --json exclude each other"
        raise click.UsageError(msg)
    store = _store(store_dir)
    default = "SELECT * FROM latest ORDER BY finished" if as_csv or as_json else present.OVERVIEW
    frame = store.sql(default if sql is None else sql)
    if as_json:
        present.emit_json(present.frame_rows(frame))
    elif as_csv:
        click.echo(frame.to_csv(index=False), nl=False)
    elif frame.empty:
        click.echo(f"no runs to show in the store {store.root}", err=True)
    else:
        present.show_table(present.frame_rows(frame), list(frame.columns))
    return 0


@cli.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("report"), show_default=True, metavar="DIR")
@_STORE
def report(out: Path, store_dir: str | None) -> int:
    """Write the tables and plots of the store as HTML.

    The result is one self-contained page in the folder --out.
    """
    from opticoll.analysis.report import console as report_console
    from opticoll.analysis.report import page as writer
    from opticoll.analysis.report.findings import collect

    store = _store(store_dir)
    findings = collect(store)
    page = writer.build(store, out, findings)
    report_console.show(findings)
    click.echo(f"wrote {page}", err=True)
    return 0


@cli.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> int:
    """Open JupyterLab on the notebooks.

    ARGUMENTS after -- are passed on to JupyterLab.
    """
    import subprocess
    from importlib.util import find_spec

    from opticoll.analysis.store.schema import CHECKOUT

    folder = next((f for f in (CHECKOUT / "notebooks", Path("notebooks")) if f.is_dir()), None)
    if folder is None:
        msg = f"lab: no folder notebooks in {CHECKOUT} or here; run the command from a checkout of opticoll"
        raise click.UsageError(msg)
    if find_spec("jupyterlab") is None:
        msg = "lab: the package jupyterlab is not installed; pip install jupyterlab"
        raise click.UsageError(msg)
    return subprocess.run([sys.executable, "-m", "jupyterlab", str(folder), *arguments], check=False).returncode


# shared by the commands ---------------------------------------------------------------------------------------


def _store(folder: str | None) -> Store:
    from opticoll.analysis.store import Store

    return Store(folder)


def _writable_store(folder: str | None) -> Store:
    store = _store(folder)
    store.check_writable()
    return store


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            msg = f"--set {pair!r}: write --set NAME=VALUE"
            raise click.UsageError(msg)
        if name.strip() in settings:
            msg = f"--set: {name.strip()!r} is given twice"
            raise click.UsageError(msg)
        settings[name.strip()] = value.strip()
    return settings


def _refuse_unwritable(path: Path) -> None:
    """Refuse an output file that cannot be written, before the solve."""
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        msg = f"{path}: cannot be written; name a file in a folder that exists and may be written"
        raise click.UsageError(msg)


def _write_json(path: Path, document: Any) -> None:
    import json

    from opticoll.analysis.store.schema import plain
    from opticoll.errors import BadInput

    try:
        path.write_text(json.dumps(plain(document), allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error


def _bounds_of(run: Run) -> list[BoundRow]:
    """The analytic bounds of a run's formulation; none where they need more than the instance."""
    from opticoll.analysis.instance_bounds import rows

    if run.plan is None or run.plan.formulation.needs is not None:
        return []
    model = run.plan.formulation
    return rows(model, model.bounds(run.plan.data) if run.bounds is None else run.bounds)


class _spinner:
    """A spinner with the incumbent and the bound on a terminal; elsewhere the callback is None."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.status: Any = None

    def __enter__(self) -> Callable[[Progress], None] | None:
        if not sys.stderr.isatty():
            return None
        from rich.console import Console

        self.status = Console(stderr=True).status(self.title)
        self.status.__enter__()
        return self._update

    def _update(self, progress: Progress) -> None:
        shown = {"objective": progress["objective"], "bound": progress["bound"]}
        parts = [f"{name} {value:.8g}" for name, value in shown.items() if value is not None]
        self.status.update("   ".join([self.title, *parts]))

    def __exit__(self, *exception: object) -> None:
        if self.status is not None:
            self.status.__exit__(None, None, None)


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Let the first Ctrl-C stop the solve and keep its incumbent, and the second one end the command."""
    stop = threading.Event()

    def interrupted(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        _complain("stopping; the incumbent is kept (press Ctrl-C again to discard it)")

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _until_interrupted(rows: Iterator[Any]) -> Iterator[Any]:
    """Rows until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        yield from rows


# errors -------------------------------------------------------------------------------------------------------


def _complain(message: str) -> None:
    """Print a message as one line on stderr."""
    click.echo(f"opticoll: {' '.join(message.split())}", err=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every error is one line on stderr and an exit status, never a traceback."""
    try:
        status = cli.main(args=arguments, prog_name="opticoll", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        if os.environ.get("OPTICOLL_DEBUG"):
            raise
        command = error.ctx.command_path if error.ctx is not None else "opticoll"
        _complain(f"{error.format_message().rstrip('.')}; see `{command} --help`")
        return 2
    except click.ClickException as error:
        _complain(error.format_message())
        return 2
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader is gone
        return 141
    except Exception as error:  # the last resort of a command line
        if os.environ.get("OPTICOLL_DEBUG"):
            raise
        return _report_error(error)
    return status if isinstance(status, int) else 0


def _report_error(error: Exception) -> int:
    from opticoll.errors import OpticollError

    if isinstance(error, OpticollError):
        _complain(str(error))
        return error.exit_status
    if isinstance(error, MemoryError):
        _complain(f"out of memory: {error or 'allocation failed'}; use a smaller instance or another method")
        return 2
    _complain(f"unexpected {type(error).__name__}: {error}; set OPTICOLL_DEBUG=1 for the traceback, and report it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
