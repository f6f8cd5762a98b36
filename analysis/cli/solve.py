"""The command ``solve``."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import (
    CERTIFICATE,
    FORMULATION,
    INSTANCE,
    JSON,
    METHOD,
    SET,
    SOLVERS,
    STORE,
    OutputFile,
    demand_setting,
    notify,
    progress_line,
    refuse_together,
    schedule_options,
    writable_store,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.result import Result
    from opticoll.instances import Instance

#: Loss of a schedule above which a remedy is suggested.
LOSSY = 0.01
#: Number of names and links that ``--why`` prints.
SHOWN = 12


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
    help="Known solution to start from: JSON written by --solution, or a solver's .sol file.",
)
@click.option("--solution", type=OutputFile(), metavar="FILE", help="Write the solution as JSON.")
@schedule_options
@click.option("--paths", type=OutputFile(), metavar="FILE.npz", help="Write weighted paths of all pairs.")
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

    from opticoll.analysis.interruption import stoppable
    from opticoll.analysis.solution_files import Outputs, errors_kept
    from opticoll.solvers.task import Task

    refuse_together(("--no-store", "--store"))
    home = None if no_store else writable_store(store)
    outputs = Outputs(**files)
    limits = (time_limit, memory_limit, tol, seed, threads)
    task = outputs.prepared(Task(formulation, instance, method, form, settings, *limits, exact=exact))
    started = datetime.now(UTC)
    with (
        output.diverted_stdout(),
        progress_line(f"{formulation} {instance}", shown=not show_log, plain=not as_json) as on_progress,
        stoppable(notify) as stop,
    ):
        from opticoll.analysis.result import solve_task

        log = sys.stderr if show_log else None
        result = solve_task(task, shard=shard, start=start, on_progress=on_progress, stop=stop, log=log)
    if result.exit_status == 4:
        from opticoll.errors import SolverUnavailable

        raise SolverUnavailable(result.record.message or "the solver is not available")
    finished = datetime.now(UTC)
    if not as_json:
        with suppress(KeyboardInterrupt):  # Ctrl-C omits the bounds beside the value, and keeps the run
            result = result.compared()
    written, failures = result.write(outputs)
    if home is not None:
        with errors_kept(failures):
            home.save(result, started=started, finished=finished)
    reasons = _reasons(result) if why else None
    if as_json:
        output.emit_json({**result.record, **written, **({} if reasons is None else {"why": reasons})})
    else:
        _show(result, written)
        if reasons is not None:
            _show_reasons(reasons)
    for failure in failures:
        notify(str(failure))
    if failures:
        return failures[0].exit_status
    if result.exit_status:
        from opticoll.analysis.rendering import unsolved

        notify(unsolved(result.record))
    if outputs.certificate is not None and "certificate" not in written:
        notify(f"--certificate {outputs.certificate}: nothing is proven exactly, so no file was written")
        return result.exit_status or 3
    return result.exit_status


def _reasons(result: Result) -> dict[str, Any]:
    """What limits the value of a result, or why there is no solution, as JSON."""
    from opticoll.errors import OpticollError
    from opticoll.formulations.model import states

    try:
        if result.verified and states(result.solved()[0].formulation, "links"):
            found = result.bottleneck()
            links = found.links.reset_index().to_dict("records")
            sides = None if found.sides is None else {"from": found.sides[0], "to": found.sides[1]}
            return {"kind": found.kind, "reason": found.reason, "sides": sides, "links": links}
        if result.verified:
            return {"kind": result.record.bound_source, "reason": "its solutions put no load on links", "links": []}
        rows = result.conflict()
        return {
            "kind": "conflict",
            **{str(name): value for name, value in rows.attrs.items()},
            "rows": rows.to_dict("records"),
        }
    except OpticollError as error:
        return {"kind": None, "reason": str(error)}


def _show_reasons(reasons: Mapping[str, Any]) -> None:
    """Print what :func:`_reasons` found."""
    from opticoll.analysis.rendering import number

    rows = reasons.get("rows")
    if rows is not None:
        output.show_table(rows, ["kind", "name", "statement"], "rows and bounds that contradict each other")
        return
    lines = {"kind": number(reasons["kind"]), "reason": str(reasons["reason"])}
    for side, names in (reasons.get("sides") or {}).items():
        lines[side] = ", ".join(map(str, names[:SHOWN])) + (f" and {len(names) - SHOWN} more" * (len(names) > SHOWN))
    output.show_fields(lines, "bottleneck")
    if links := reasons.get("links"):
        shown = [{name: number(value, 6) for name, value in link.items()} for link in links[:SHOWN]]
        columns = ["arc", "capacity", "load", "utilisation", "price"]
        output.show_table(shown, columns, f"links with a price: {len(links)}")


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

    record = result.record
    lines = {"instance": f"{record.instance}{extent(record)}", **result.lines()}
    output.show_fields(lines, record.formulation)
    if rows := result.bound_rows():
        output.show_bounds(rows)
    for kind, facts in written.items():
        _show_written(kind, facts)
    if result.plan is not None and _listed_one_way(result.plan.instance):
        notify(
            f"note: no link of {result.task.instance} runs both ways; append ,directed=false if each line is a "
            "two-way link"
        )


def _show_written(kind: str, written: Mapping[str, object]) -> None:
    """Print the contents of a schedule file or a file of paths, and their loss."""
    from opticoll.analysis.rendering import number

    facts: dict[str, Any] = dict(written)
    if kind != "schedule" or "rounds" in facts:
        output.show_fields({name: number(value, 12) for name, value in facts.items()}, kind)
        return
    several = facts["time_by_chunks"] if len(facts["time_by_chunks"]) > 1 else {}
    lines = {
        "file": facts["file"],
        "chunks": "the pieces of the flow" if facts["chunks"] is None else f"{facts['chunks']} per shard",
        "steps": number(facts.get("steps")),
        "configurations": number(facts.get("configurations")),
        "T": f"{number(facts['time'], 8)}   (of the flow: {number(facts['fluid_time'], 8)})",
        "loss": f"{100 * facts['loss']:.3g} %",
        "simulated": f"{number(facts['simulated_time'], 8)}   (every shard arrives)",
        "keeps": facts.get("keeps", ""),
        "T by chunks": ", ".join(f"{D}: {time:.7g}" for D, time in several.items()),
    }
    loss = facts["loss"]
    if not facts["delivers"]:
        lines["simulated"] = f"FAILS: {facts['violation']}"
    elif "target" in facts and facts["simulated_time"] and facts["fluid_time"]:  # a program has no synchronous steps
        loss = max(facts["simulated_time"] / facts["fluid_time"] - 1, 0.0)
        lines["T"] = f"{number(facts['fluid_time'], 8)} of the flow, {number(facts['time'], 8)} in synchronous steps"
        lines["loss"] = f"{100 * loss:.3g} %   (simulated time above the flow's)"
    if loss > LOSSY:
        lines["loss"] += "   (other numbers of chunks may lose less: --chunks N,N,...)"
    if "target" in facts:
        lines["target"] = f"{facts['target']}, {facts['channels']} channels"
        lines["elements"] = f"the number per peer must be a multiple of {facts['multiple_of']}"
        lines |= output.runtime_fits(facts.get("fits_runtime", ()), facts.get("exceeds", {}))
        if facts["target"] in facts.get("exceeds", {}):
            lines["instead"] = "fewer --chunks or --instances, another --target, or a schedule in .json, without limits"
    output.show_fields({name: text for name, text in lines.items() if text not in {"", "–"}}, "schedule")
