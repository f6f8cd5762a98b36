"""The command ``check``."""

from __future__ import annotations

from pathlib import Path

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.options import FORMULATION, INSTANCE, JSON, PRINT_CHECKER, read_settings


@click.command()
@FORMULATION
@INSTANCE
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    callback=read_settings,
    help="Parameter of the formulation; repeatable.",
)
@PRINT_CHECKER
@JSON
def check(formulation: str, instance: str, file: Path, settings: dict[str, str], as_json: bool) -> int:
    """Verify an external solution, schedule or certificate FILE.

    FILE is a solution of FORMULATION on INSTANCE in the format of `opticoll solve --solution`, or a schedule for
    INSTANCE: MSCCL XML, or JSON as `opticoll solve --schedule` writes it. Schedules are executed. INSTANCE and --set
    define the problem; a file for other parameters is refused. A bound is recomputed from the duals or ignored.
    A .vipr or .vipr.gz certificate must state the exact matrix of FORMULATION on INSTANCE; the proof is checked.
    A solution of `matrix.program mps:FILE`, or of a model that `export` has written, may be a file of HiGHS,
    SCIP, Gurobi, CPLEX, Xpress, COPT, MOSEK, CBC, python-mip, GLPK or MIPLIB.
    docs/reference/other-tools.md has what these tools leave out of their files.
    """
    with output.diverted_stdout():
        from opticoll.analysis.result.schedule_lines import executed_lines
        from opticoll.solvers import solution_json

        result = solution_json.check(formulation, instance, file, settings)
    if as_json:
        output.emit_json(result)
    else:
        columns = ["formulation", "instance", "verified", "objective"]
        output.show_table(
            [result], [*columns, *(["bound", "bound_source"] if result["bound"] is not None else []), "reason"]
        )
        if "schedule" in result and result["verified"]:
            output.show_fields(executed_lines(result["metrics"] or {}), "schedule")
        for note in result["notes"]:
            click.echo(f"note: {note}")
    if not result["verified"]:
        words = {"schedule": "schedule", "certificate": "certificate of this problem"}
        kind = next((word for key, word in words.items() if key in result), "solution")
        output.notify(f"{file}: is not a valid {kind}: {result.get('reason') or 'a constraint is violated'}")
        return 3
    return 0
