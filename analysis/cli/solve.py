"""The command ``solve``."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli.options import (
    CERTIFICATE,
    DEMAND,
    FORMULATION,
    INSTANCE,
    JSON,
    METHOD,
    SET,
    SOLVERS,
    STORE,
    demand_of,
    errors_kept,
    notify,
    refuse_unwritable,
    schedule_options,
    settings_of,
    stoppable,
    writable_store,
    write_json,
)

if TYPE_CHECKING:
    from opticoll.analysis.progress_line import ProgressLine
    from opticoll.analysis.solution_files import ScheduleRequest
    from opticoll.errors import OpticollError
    from opticoll.instances import Instance


@click.command()
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

    from opticoll.analysis import describe, solution_files, units
    from opticoll.analysis.cli import output
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
        formulation,
        instance,
        method,
        form,
        settings_of(asked),
        time_limit,
        memory_limit,
        tol,
        seed,
        threads,
        exact=exact or (certificate is not None and not combinatorial),
    )
    if schedule is not None:
        solution_files.refuse_schedule_early(schedule, task)
        task = solution_files.for_schedule(task)
    scale = None if shard is None else units.scale_of(task, shard)
    if paths is not None:
        refuse_unwritable(paths)
        solution_files.refuse_paths_early(paths, formulation)
    started = datetime.now(UTC)
    with (
        output.diverted_stdout(),
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
        output.emit_json({**run.record, **written})
    else:
        output.show_run(run, describe.rows_of(run))
        for kind, facts in written.items():
            output.show_written(kind, facts)
    if not as_json and run.plan is not None and _listed_one_way(run.plan.instance):
        notify(f"note: no link of {instance} runs both ways; append ,directed=false if each line is a two-way link")
    for failure in failures:
        notify(str(failure))
    if failures:
        return failures[0].exit_status
    if run.exit_status:
        notify(output.unsolved(run.record))
    if certificate is not None and "certificate" not in written:
        notify(f"--certificate {certificate}: nothing is proven exactly, so no file was written")
        return run.exit_status or 3
    return run.exit_status


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
