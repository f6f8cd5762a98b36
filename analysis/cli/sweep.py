"""The command ``sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import complete_instances
from opticoll.analysis.cli.options import (
    DEMAND,
    FORMULATION,
    JSON,
    METHOD,
    SET,
    STORE,
    demand_of,
    notify,
    refuse_together,
    refuse_unwritable,
    settings_of,
    writable_store,
)

if TYPE_CHECKING:
    from opticoll.analysis.sweep import SweepResult

#: Maximum number of cases in the table.
MOST_CASES = 40


@click.command()
@FORMULATION
@click.option(
    "--bound", required=True, metavar="NAME|FILE.py:FUNCTION", help="Bound of the formulation, or a Python function."
)
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="SPEC",
    shell_complete=complete_instances,
    help="Instances with {braces}, or a population.",
)
@click.option(
    "--on",
    metavar="objective|T|METRIC",
    help="What is bounded (default: what the function declares, or the objective).",
)
@click.option(
    "--sense", type=click.Choice(["lower", "upper"]), help="Sense of the bound (default: that of a relaxation)."
)
@METHOD
@DEMAND
@SET
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of each case [s].")
@click.option(
    "--tol", type=float, default=1e-6, show_default=True, help="Relative tolerance of optima and of comparing floats."
)
@click.option("--exact", is_flag=True, help="Solve every case in rational arithmetic and compare fractions.")
@click.option("--fail-on-violation", is_flag=True, help="Exit with status 1 if the bound is violated in some case.")
@click.option("--keep-copies", is_flag=True, help="Also solve isomorphic copies.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cases to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cases.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a table, JSON and plots of the cases."
)
@STORE
@JSON
def sweep(
    formulation: str,
    bound: str,
    over: tuple[str, ...],
    on: str | None,
    sense: Literal["lower", "upper"] | None,
    method: str,
    demand: str | None,
    settings: tuple[str, ...],
    time_limit: float | None,
    tol: float,
    exact: bool,
    fail_on_violation: bool,
    keep_copies: bool,
    jobs: int | None,
    dask: str | None,
    out: Path | None,
    store_dir: str | None,
    as_json: bool,
) -> int:
    """Test a bound on the optimum of FORMULATION over many instances.

    The bound is one of the formulation (`opticoll describe FORMULATION` lists them) or a Python function of the
    instance. Violations, tightness and the smallest counterexample are printed. Isomorphic topologies are one case.
    Run the command again to resume after an interruption.

    \b
    opticoll sweep alltoall.master --bound moore --over "all-digraphs:n=5,d=2"
    opticoll sweep alltoall.master --bound my.py:cut --on T --over "ring:{3..9}" --over "genkautz:n={8..64},d=4"
    opticoll sweep alltoall.master --bound my.py:cut --over "ring:{3..9}" --exact --fail-on-violation
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    refuse_together({"--jobs": jobs, "--dask": dask}, ("--jobs", "--dask"))
    if out is not None:
        refuse_unwritable(out / "sweep.json" if out.is_dir() else out)
    store = writable_store(store_dir)
    with output.diverted_stdout():
        from opticoll.analysis import sweep as bound_sweep

        result = bound_sweep.sweep(
            formulation,
            bound,
            list(over),
            on=on,
            sense=sense,
            settings=settings_of(settings),
            demand=demand_of(demand),
            method=method,
            time_limit=time_limit,
            tol=tol,
            exact=exact,
            keep_copies=keep_copies,
            store=store,
            jobs=jobs,
            dask=dask,
        )
        files = [] if out is None else result.save(out)
    if as_json:
        output.emit_json(result)
    else:
        _show_sweep(result)
    for file in files:
        click.echo(f"wrote {file}", err=True)
    for warning in result.warnings:
        notify(f"sweep: {warning}")
    for case in result.cases:
        if case.status == bound_sweep.Status.ERROR:
            notify(f"sweep: {result.bound} on {case.case}: {case.message}")
    if result.interrupted:
        rest = result.classes - len(result.cases)
        notify(f"interrupted with {rest} case{'s' * (rest != 1)} to go; run the same command again to resume")
        return 130
    return 1 if result.errors or (fail_on_violation and result.violations) else 0


def _show_sweep(result: SweepResult) -> None:
    """Print a sweep: its summary, and the cases in which the bound is violated or undecided, or fails."""
    summary = {name: text for name, text in result.summary.items() if name != "warning"}  # on stderr
    output.show_fields(summary, f"sweep of {result.bound} over {result.formulation}")
    noted = [dict(case.items()) for case in result.cases if case.status not in {"holds", "inapplicable"}]
    if noted:
        columns = ["case", "n", "copies", "status", "bound", "optimum", "lower", "upper", "ratio", "message"]
        if result.exact:
            columns = ["case", "n", "copies", "status", "bound_exact", "optimum_exact", "excess", "message"]
        output.show_table(noted[:MOST_CASES], columns, "cases in which the bound is violated, undecided or fails")
        if len(noted) > MOST_CASES:
            click.echo(f"... {len(noted) - MOST_CASES} more; --json and --out give all")
