"""The command ``solve``."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import (
    CERTIFICATE,
    FORMS,
    FORMULATION,
    INSTANCE,
    JSON,
    METHOD,
    SET,
    SOLVERS,
    STORE,
    OutputFile,
    demand_setting,
    progress_line,
    refuse_together,
    schedule_options,
    writable_store,
)
from opticoll.errors import NoSolution, OpticollError, SolverUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.result.result import Result
    from opticoll.instances import Instance


@click.command()
@FORMULATION
@INSTANCE
@METHOD
@click.option(
    "--form",
    metavar=FORMS,
    help="Modelling layer of the stated model, or matrix where it is stated as such; with auto, also solve that model "
    "at any size (default: the faster one). `opticoll describe FORMULATION` lists the forms.",
)
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of the whole solve [s].")
@click.option("--memory-limit", type=float, metavar="GIB", help="Memory limit of all processes of the solve [GiB].")
@demand_setting
@SET
@click.option(
    "--tol", type=float, default=1e-6, show_default=True, help="Relative gap at which the value counts as optimal."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of solver or method.")
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Threads of the solver.")
@click.option("--exact", is_flag=True, help="Also solve in rational arithmetic: the optimum as a fraction, proven.")
@CERTIFICATE
@click.option(
    "--start",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Known solution to start from: JSON written by --solution, or a solver's solution file.",
)
@click.option("--solution", type=OutputFile(), metavar="FILE", help="Write the solution as JSON.")
@schedule_options
@click.option(
    "--shard",
    metavar="SIZE",
    help="Size of a shard, such as 64MB; needs capacities with a unit: INSTANCE+unit=100Gb/s.",
)
@click.option(
    "--why",
    is_flag=True,
    help="Also show what limits T: the cut or lengths that prove it, and the links with a price; or, if there is no "
    "solution, the rows that contradict each other.",
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
    settings: dict[str, str],
    exact: bool,
    start: Path | None,
    shard: str | None,
    why: bool,
    show_log: bool,
    no_store: bool,
    store: str | None,
    as_json: bool,
    time_limit: float | None,
    memory_limit: float | None,
    tol: float,
    seed: int,
    threads: int,
    **files: Any,
) -> int:
    """Solve, verify and certify FORMULATION on INSTANCE.

    Exit status: 0 solved and verified, 2 bad input, 3 no solution found, 4 solver unavailable.
    """
    from datetime import UTC, datetime

    from opticoll import plugins
    from opticoll.analysis.output_files import Outputs, errors_kept
    from opticoll.analysis.result.interruption import stoppable
    from opticoll.analysis.result.result import run_task
    from opticoll.formulations.model import forms_of
    from opticoll.formulations.registry import formulation as formulation_named
    from opticoll.solvers.process.worker import fork_ahead
    from opticoll.solvers.process.worker_imports import shorten_scipy
    from opticoll.solvers.task import Task

    if not plugins.known():  # theirs is this process, too, and SciPy whole
        shorten_scipy()
        if "matrix" not in forms_of(formulation_named(formulation)):
            import_module("scipy.sparse.csgraph")  # here and in the worker
        fork_ahead()

    refuse_together(("--no-store", "--store"))
    home = None if no_store else writable_store(store)
    outputs = Outputs(**files)
    limits = (time_limit, memory_limit, tol, seed, threads)
    task = outputs.prepared(Task(formulation, instance, method, form, settings, *limits, exact=exact))
    started = datetime.now(UTC)
    with (
        output.diverted_stdout(),
        progress_line(f"{formulation} {instance}", shown=not show_log, plain=not as_json) as on_progress,
        stoppable(output.notify) as stop,
    ):
        result = run_task(task, shard=shard, start=start, log=show_log, on_progress=on_progress, stop=stop)
    if result.plan is None:
        if as_json:
            output.emit_json({**result.record})
        raise NoSolution(result.record.message or "nothing could be tried")
    if result.exit_status == 4:
        raise SolverUnavailable(result.record.message or "the solver is not available")
    finished = datetime.now(UTC)
    if not as_json:
        with suppress(KeyboardInterrupt):  # Ctrl-C omits the bounds beside the value, and keeps the run
            result = result.compared()
    unsaved: list[OpticollError] = []
    if home is not None:  # before files are written: a schedule may take long, and may be interrupted
        with errors_kept(unsaved):
            home.save(result, started=started, finished=finished)
    title = f"{formulation} {instance}: writing"
    with progress_line(title, shown=not show_log and any(files.values()), plain=not as_json, searches=False):
        written, failures = result.write(outputs)
    failures += unsaved
    diagnosis = result.why() if why else None
    if as_json:
        output.emit_json({**result.record, **written, **({} if diagnosis is None else {"why": diagnosis.document()})})
    else:
        _show(result, written)
        if diagnosis is not None:
            output.show(diagnosis, as_json=False)
    for failure in failures:
        output.report(failure, click.get_current_context().command)
    if failures:
        return failures[0].exit_status
    if result.exit_status:
        from opticoll.analysis.rendering import unsolved

        output.notify(unsolved(result.record))
    if outputs.certificate is not None and "certificate" not in written:
        output.notify(f"--certificate {outputs.certificate}: nothing is proven exactly, so no file was written")
        return result.exit_status or 3
    return result.exit_status


def _listed_one_way(instance: Instance) -> bool:
    """Whether a topology file leaves the direction of its links to the default, and no arc has its reverse."""
    from opticoll.instances import Topology

    if not isinstance(instance, Topology) or not instance.spec.startswith("file:") or "directed=" in instance.spec:
        return False
    arcs = set(zip(instance.tail.tolist(), instance.head.tolist(), strict=True))
    return bool(arcs) and not any((v, u) in arcs for u, v in arcs)


def _show(result: Result, written: Mapping[str, Mapping[str, object]]) -> None:
    """Print a result, and what the written files hold."""
    from opticoll.analysis.rendering import extent
    from opticoll.analysis.result.schedule_lines import written_lines

    record = result.record
    lines = {"instance": f"{record.instance}{extent(record)}", **result.lines()}
    output.show_fields(lines, record.formulation)
    if rows := result.bound_rows():
        output.show_bounds(rows)
    for kind, facts in written.items():
        output.show_fields(written_lines(facts), kind)
    if result.plan is not None and _listed_one_way(result.plan.instance):
        output.notify(
            f"note: no link of {result.task.instance} runs both ways; append ,directed=false if each line is a "
            "two-way link"
        )
