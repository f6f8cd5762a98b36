"""The command ``opticoll``. Large packages are imported inside the commands, so ``--help`` is fast."""

from __future__ import annotations

import errno
import os
import sys
import threading
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis import commands
from opticoll.analysis.commands import PLUGIN, Commands, new
from opticoll.analysis.options import (
    CERTIFICATE,
    DEMAND,
    FORMULATION,
    INSTANCE,
    JSON,
    METHOD,
    PRINT_CHECKER,
    SET,
    SOLVERS,
    STORE,
    complete_claims,
    complete_formulations,
    demand_of,
    errors_kept,
    notify,
    refuse_unwritable,
    schedule_options,
    settings_of,
    stoppable,
    store_at,
    writable_store,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.analysis.progress_line import ProgressLine
    from opticoll.analysis.solution_files import ScheduleRequest
    from opticoll.errors import OpticollError
    from opticoll.instances import Instance

_KINDS = ["instances", "formulations", "methods", "solvers", "studies", "claims"]


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@PLUGIN
@click.option("--version", "show_version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(context: click.Context, show_version: bool) -> None:
    """Optimization models of optical interconnects: solve them with any solver and certify the result."""
    if show_version:
        from opticoll.analysis import opticoll_version

        click.echo(f"opticoll {opticoll_version() or 'unknown'}")
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command("list")
@click.argument("kind", required=False, type=click.Choice(_KINDS))
@SOLVERS
@JSON
def list_command(kind: str | None, as_json: bool) -> int:
    """List what is available.

    KIND selects one list with its details; without it, all names are listed.
    """
    from opticoll.analysis import catalog, present

    with present.diverted_stdout():
        every = catalog.names() if kind is None else []
        rows = every if kind is None else catalog.KINDS[kind]()
    if as_json:
        present.emit_json(rows)
    elif kind is None:
        for name in _KINDS:
            words = ", ".join(row["name"] for row in every if row["kind"] == name)
            click.echo(f"{name}: {words or 'none'}")
    elif rows:
        present.show_table(rows, present.LISTED.get(kind, list(rows[0])))
    else:
        click.echo(f"no {kind} registered yet", err=True)
    return 0


@cli.command()
@FORMULATION
@INSTANCE
@METHOD
@click.option(
    "--form",
    metavar="pyomo|cvxpy",
    help="Modelling layer of the stated model; with auto, also solve that model at any size (default: the faster one).",
)
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of the whole solve [s].")
@click.option("--memory-limit", type=float, metavar="GIB", help="Memory limit of all processes of the solve [GiB].")
@DEMAND
@SET
@click.option(
    "--tol", type=float, default=1e-6, show_default=True, help="Relative gap at which the value counts as optimal."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of solver or method.")
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Threads of the solver.")
@click.option("--exact", is_flag=True, help="Also solve in rational arithmetic: the optimum as a fraction, proven.")
@CERTIFICATE
@click.option("--solution", type=click.Path(path_type=Path), metavar="FILE", help="Write the solution as JSON.")
@schedule_options
@click.option("--paths", type=click.Path(path_type=Path), metavar="FILE.npz", help="Write weighted paths of all pairs.")
@click.option(
    "--shard",
    metavar="SIZE",
    help="Size of a shard, such as 64MB; needs capacities with a unit: INSTANCE+unit=100Gb/s.",
)
@click.option("--log", "show_log", is_flag=True, help="Show the solvers' own logs on stderr while they run.")
@click.option("--no-store", is_flag=True, help="Do not record the run.")
@SOLVERS
@STORE
@JSON
def solve(
    formulation: str,
    instance: str,
    method: str,
    form: str | None,
    time_limit: float | None,
    memory_limit: float | None,
    demand: str | None,
    settings: tuple[str, ...],
    tol: float,
    seed: int,
    threads: int,
    exact: bool,
    certificate: Path | None,
    solution: Path | None,
    schedule: ScheduleRequest | None,
    paths: Path | None,
    shard: str | None,
    show_log: bool,
    no_store: bool,
    store_dir: str | None,
    as_json: bool,
) -> int:
    """Solve, verify and certify FORMULATION on INSTANCE.

    Exit status: 0 solved and verified, 2 bad input, 3 no solution found, 4 solver unavailable.
    """
    from datetime import UTC, datetime

    from opticoll.analysis import describe, present, solution_files, units
    from opticoll.solvers.task import Task

    if no_store and store_dir:
        msg = "--no-store and --store are mutually exclusive"
        raise click.UsageError(msg)
    store = None if no_store else writable_store(store_dir)
    if solution is not None:
        refuse_unwritable(solution)
    combinatorial = False
    if certificate is not None:
        from opticoll.solvers.exact.combinatorial import is_combinatorial

        combinatorial = is_combinatorial(certificate)
        refuse_unwritable(certificate)
    asked = [*settings, *([f"demand={demand_of(demand)}"] if demand is not None else [])]
    task = Task(
        formulation, instance, method, form, settings_of(asked), time_limit, memory_limit, tol, seed, threads,
        exact=exact or (certificate is not None and not combinatorial),
    )  # fmt: skip
    if schedule is not None:
        solution_files.refuse_schedule_early(schedule, task)
        task = solution_files.for_schedule(task)
    scale = None if shard is None else units.scale_of(task, shard)
    if paths is not None:
        refuse_unwritable(paths)
        solution_files.refuse_paths_early(paths, formulation)
    started = datetime.now(UTC)
    with (
        present.diverted_stdout(),
        _progress_line(f"{formulation} {instance}", shown=not show_log, plain=not as_json) as on_progress,
        stoppable() as stop,
    ):
        from opticoll.solvers import auto
        from opticoll.solvers import solve as runner

        run = runner.solve(task, on_progress=on_progress, stop=stop, log=sys.stderr if show_log else None)
    if run.exit_status == 4:
        from opticoll.errors import SolverUnavailable

        raise SolverUnavailable(run.record.message or "the solver is not available")
    run = run if scale is None else replace(run, record=units.timed(run, scale))
    finished = datetime.now(UTC)
    with suppress(KeyboardInterrupt):  # Ctrl-C omits the bounds beside the value, and keeps the run
        run = run if as_json else auto.compared(run)
    written: dict[str, Any] = {}
    failures: list[OpticollError] = []
    # If one file cannot be written, the answer is still printed, and the other files and the record are written.
    with errors_kept(failures):
        if solution is not None and run.verified:
            from opticoll.solvers.solution import solution_document

            write_json(solution, solution_document(run))
    with errors_kept(failures):
        if schedule is not None and run.verified:
            written["schedule"] = solution_files.write_schedule(schedule, run)
    with errors_kept(failures):
        if paths is not None and run.verified:
            written["paths"] = solution_files.write_paths(paths, run)
    with errors_kept(failures):
        if certificate is not None and (run.verified if combinatorial else run.exact is not None):
            written["certificate"] = solution_files.write_certificate(certificate, run)
    with errors_kept(failures):
        if store is not None:
            store.save(run, started=started, finished=finished)
    if as_json:
        present.emit_json({**run.record, **written})
    else:
        present.show_run(run, describe.rows_of(run))
        for kind, facts in written.items():
            present.show_written(kind, facts)
    if not as_json and run.plan is not None and _listed_one_way(run.plan.instance):
        notify(f"note: no link of {instance} runs both ways; append ,directed=false if each line is a two-way link")
    for failure in failures:
        notify(str(failure))
    if failures:
        return failures[0].exit_status
    if run.exit_status:
        notify(present.unsolved(run.record))
    if certificate is not None and "certificate" not in written:
        notify(f"--certificate {certificate}: nothing is proven exactly, so no file was written")
        return run.exit_status or 3
    return run.exit_status


@cli.command()
@FORMULATION
@INSTANCE
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set", "settings", multiple=True, metavar="K=V", help="Parameter of the formulation; repeatable.")
@PRINT_CHECKER
@JSON
def check(formulation: str, instance: str, file: Path, settings: tuple[str, ...], as_json: bool) -> int:
    """Verify an external solution, schedule or certificate FILE.

    FILE is a solution of FORMULATION on INSTANCE in the format of `opticoll solve --solution`, or a schedule for
    INSTANCE: MSCCL XML, or JSON as `opticoll solve --schedule` writes it. Schedules are executed. INSTANCE and --set
    define the problem; a file for other parameters is refused. A bound is recomputed from the duals or ignored.
    A .vipr or .vipr.gz certificate must state the exact matrix of FORMULATION on INSTANCE, a .proof.json or
    .proof.json.gz certificate its data; the proof is checked.
    A solution of `matrix.program mps:FILE`, or of a model that `export` has written, may be a .sol file of HiGHS,
    SCIP, Gurobi, CBC or MIPLIB.
    """
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.solvers import solution

        result = solution.check(formulation, instance, file, settings_of(settings))
    if as_json:
        present.emit_json(result)
    else:
        columns = ["formulation", "instance", "verified", "objective"]
        present.show_table(
            [result], [*columns, *(["bound", "bound_source"] if result["bound"] is not None else []), "reason"]
        )
        if "schedule" in result and result["verified"]:
            present.show_executed(result["metrics"])
        for note in result["notes"]:
            click.echo(f"note: {note}")
    if not result["verified"]:
        words = {"schedule": "schedule", "certificate": "certificate of this problem"}
        kind = next((word for key, word in words.items() if key in result), "solution")
        notify(f"{file}: is not a valid {kind}: {result.get('reason') or 'a constraint is violated'}")
        return 3
    return 0


@cli.command()
@FORMULATION
@INSTANCE
@click.option(
    "--to", "path", required=True, type=click.Path(path_type=Path), metavar="FILE.mps|FILE.lp", help="File to write."
)
@click.option("--form", metavar="pyomo|cvxpy", help="Modelling layer (default: the first one of the formulation).")
@SET
def export(formulation: str, instance: str, path: Path, form: str | None, settings: tuple[str, ...]) -> int:
    """Write the model as an MPS or LP file.

    The file holds the matrix of FORMULATION on INSTANCE and can be read by any solver.
    """
    from opticoll.analysis import present

    if path.suffix.lower() not in {".mps", ".lp"}:
        msg = f"--to {path}: the name must end in .mps or .lp"
        raise click.UsageError(msg)
    refuse_unwritable(path)
    with present.diverted_stdout():
        from opticoll.solvers import solve as runner

        runner.export(formulation, instance, path, form, settings_of(settings))
    click.echo(f"wrote {path}", err=True)
    return 0


@cli.command("bounds")
@INSTANCE
@click.option(
    "--formulation",
    metavar="NAME",
    shell_complete=complete_formulations,
    help="Formulation whose optimum is bounded (default: alltoall.master).",
)
@DEMAND
@SET
@JSON
def bounds_command(
    instance: str, formulation: str | None, demand: str | None, settings: tuple[str, ...], as_json: bool
) -> int:
    """Print the analytic bounds of INSTANCE.

    Braces expand to several instances: 'genkautz:n={8..64},d=4', 'ring:{8,16}'.
    """
    from opticoll.analysis import present

    with present.diverted_stdout():
        from opticoll.analysis.describe import bounds

        rows = bounds(instance, formulation, settings_of(settings), demand=demand_of(demand))
    if as_json:
        present.emit_json(rows)
    elif rows:
        present.show_bounds(rows)
    else:
        click.echo(f"{instance}: no analytic bounds; `opticoll solve` computes a bound")
    return 0


@cli.command()
@click.argument("identifiers", nargs=-1, metavar="[ID]...", shell_complete=complete_claims)
@click.option("--cached", is_flag=True, help="Show the stored measurements; measure nothing.")
@click.option("--resume", is_flag=True, help="Skip claims that this version has already measured and stored.")
@click.option(
    "--seed",
    default=0,
    type=click.IntRange(min=0),
    metavar="N",
    help="Use the N-th sample of random graphs, orders and tie-breaks; only sample 0 (the default) is stored.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of claims to measure at a time, in local processes.")
@click.option("--no-store", is_flag=True, help="Measure everything and store nothing.")
@click.option("--explain", is_flag=True, help="Print each claim in full: scope, procedure, open choices, witness.")
@STORE
@JSON
def claims(
    identifiers: tuple[str, ...], cached: bool, resume: bool, seed: int, jobs: int | None, no_store: bool,
    explain: bool, store_dir: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Compare the papers' numbers with measurements.

    ID is a claim, a paper (`optree`) or a pattern (`'topoopt.tax*'`); without an ID, all claims are measured.
    Runs that have an answer in the store are not repeated. Every claim is stored as soon as it is measured.

    Exit status: 0 if all claims were measured, whatever the verdicts; 1 if a measurement failed; 2 bad input; 130 after
    Ctrl-C.
    """
    from opticoll.analysis import present

    given = {
        "--no-store": no_store, "--store": store_dir, "--cached": cached, "--resume": resume, "--explain": explain,
        "--json": as_json, "--seed": seed, "--jobs": jobs,
    }  # fmt: skip
    for first, second in (("--no-store", "--cached"), ("--no-store", "--store"), ("--no-store", "--resume"),
                          ("--cached", "--resume"), ("--cached", "--seed"), ("--cached", "--jobs"),
                          ("--resume", "--seed"), ("--explain", "--json")):  # fmt: skip
        if given[first] and given[second]:
            msg = f"{first} and {second} are mutually exclusive"
            raise click.UsageError(msg)
    rest = 0
    with present.diverted_stdout():
        from opticoll.analysis.ledger.claim import explanation
        from opticoll.analysis.ledger.ledger import ledger

        position = {claim.id: index for index, claim in enumerate(ledger.chosen(identifiers))}
        wanted = len(position)
        if cached:
            rows: list[Any] = ledger.kept(identifiers, store_at(store_dir))
        else:
            store = None if no_store else writable_store(store_dir)
            rows = present.gathered(
                _until_interrupted(ledger.ledger(identifiers, store, resume=resume, seed=seed, jobs=jobs)), "claims"
            )
            rows.sort(key=lambda row: position[row["id"]])
        rest = wanted - len(rows)
    if as_json:
        present.emit_json(rows)
    elif explain:
        click.echo("\n".join(explanation(row) for row in rows), nl=False)
    elif rows:
        present.show_claims(rows)
    elif not wanted:
        click.echo("no claims registered yet")
    if rest and cached:
        notify(f"{rest} of {wanted} claims have no measurement in this store; `opticoll claims` measures them")
    elif rest:
        notify(f"interrupted with {rest} of {wanted} claims to go; resume with `opticoll claims --resume`")
        return 130
    failed = [row["id"] for row in rows if row.get("failed")]
    if failed:
        notify(f"{len(failed)} of {wanted} claims could not be measured: {', '.join(failed)}")
    return 1 if failed else 0


@cli.command()
@click.argument("sql", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--time-limit", type=float, default=60.0, show_default=True, metavar="S", help="Limit of the query [s].")
@STORE
@JSON
def results(sql: str | None, as_csv: bool, time_limit: float, store_dir: str | None, as_json: bool) -> int:
    """Print the results store as a table.

    Without SQL, print the latest runs. A query can select from the views `runs` (every record) and `latest` (the best
    record of each resume key). Their column `superseded` marks results of another version of a plug-in, file, solver or
    opticoll than that of the latest run of the same task.
    """
    from opticoll.analysis import present

    if as_csv and as_json:
        msg = "--csv and --json are mutually exclusive"
        raise click.UsageError(msg)
    if not 0 < time_limit <= threading.TIMEOUT_MAX:
        msg = f"--time-limit {time_limit:g}: must be a positive number of seconds"
        raise click.UsageError(msg)
    store = store_at(store_dir)
    default = "SELECT * FROM latest ORDER BY finished" if as_csv or as_json else present.OVERVIEW
    frame = store.sql(default if sql is None else sql, time_limit_s=time_limit)
    if sql is None and not (as_csv or as_json) and len(frame) > present.MOST_RUNS:
        click.echo(f"the {present.MOST_RUNS} latest of {len(frame)} runs; all with --csv, or select with SQL", err=True)
        frame = frame.tail(present.MOST_RUNS)
    if as_json:
        present.emit_json(present.frame_rows(frame))
    elif as_csv:
        click.echo(frame.to_csv(index=False), nl=False)
    elif frame.empty:
        click.echo(f"no runs to show in the store {store.root}", err=True)
    elif sql is None:
        present.show_overview(frame)
    else:
        present.show_table(present.frame_rows(frame), list(frame.columns))
    return 0


@cli.command()
@click.option("--out", type=click.Path(path_type=Path), default="report", show_default=True, metavar="DIR",
              help="Folder for the page.")  # fmt: skip
@STORE
def report(out: Path, store_dir: str | None) -> int:
    """Write the tables and plots of the store as HTML: one self-contained page in the folder --out."""
    from opticoll.analysis.report import drawings, page
    from opticoll.analysis.report import findings as report_console
    from opticoll.analysis.report.findings import collect

    store = store_at(store_dir)
    if next(iter(store.names()), None) is not None:
        drawings.start_computed()
    written = page.build(store, out, findings := collect(store))
    report_console.show(findings)
    click.echo(f"wrote {written}", err=True)
    return 0


for _command in (*commands.COMMANDS, new):
    cli.add_command(_command)


# shared by the commands ---------------------------------------------------------------------------------------


def _progress_line(title: str, *, shown: bool, plain: bool) -> ProgressLine | nullcontext[None]:
    """Progress on stderr: in place on a terminal, else in plain lines; none if it is not ``shown``."""
    terminal = sys.stderr.isatty()
    if not shown or not (terminal or plain):
        return nullcontext()
    from opticoll.analysis.progress_line import ProgressLine

    return ProgressLine(title, notify, terminal=terminal)


def _listed_one_way(instance: Instance) -> bool:
    """Whether a topology file leaves the direction of its links to the default, and no arc has its reverse."""
    from opticoll.instances import Topology

    if not isinstance(instance, Topology) or not instance.spec.startswith("file:") or "directed=" in instance.spec:
        return False
    arcs = set(zip(instance.tail.tolist(), instance.head.tolist(), strict=True))
    return bool(arcs) and not any((v, u) in arcs for u, v in arcs)


def _until_interrupted(rows: Iterator[Any]) -> Iterator[Any]:
    """Rows until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        yield from rows


# errors -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every error is one line on stderr and an exit status, never a traceback."""
    try:
        status = cli.main(args=arguments, prog_name="opticoll", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        if os.environ.get("OPTICOLL_DEBUG"):
            raise
        command = error.ctx.command_path if error.ctx is not None else "opticoll"
        notify(f"{error.format_message().rstrip('.')}; see `{command} --help`")
        return 2
    except click.ClickException as error:
        notify(error.format_message())
        return 2
    except (click.Abort, KeyboardInterrupt):
        notify("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has closed the pipe
        return 141
    except BaseException as error:  # that nothing else has handled
        if os.environ.get("OPTICOLL_DEBUG"):
            raise
        return _report_error(error)
    return status if isinstance(status, int) else 0


#: Errors of the file system that a user can fix.
_FILE_ERRORS = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EROFS,
    errno.ENOSPC, errno.EDQUOT,
}  # fmt: skip


def _report_error(error: BaseException) -> int:
    from opticoll.errors import OpticollError
    from opticoll.solvers.task import one_line

    if isinstance(error, OpticollError):
        notify(str(error))
        return error.exit_status
    if isinstance(error, MemoryError):
        notify(f"out of memory: {error or 'allocation failed'}; use a smaller instance or another method")
        return 2
    if isinstance(error, OSError) and error.errno in _FILE_ERRORS:
        notify(f"{one_line(error.filename or 'a file', 120)}: {error.strerror}; name another file or folder")
        return 2
    if isinstance(error, ValueError) and "null byte" in str(error):
        notify("a path holds a NUL character; name another file or folder")
        return 2
    from opticoll.instances.plugins import fault

    message = fault(error)
    if message is not None:
        notify(message)
        return 2
    if not isinstance(error, Exception):
        raise error
    notify(f"unexpected {type(error).__name__}: {error}; set OPTICOLL_DEBUG=1 for the traceback, and report it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
