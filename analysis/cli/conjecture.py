"""The command ``conjecture``."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    settings_of,
    writable_store,
)

if TYPE_CHECKING:
    from opticoll.analysis.conjectures import Conjecture

#: Maximum number of instances in the table.
MOST_VALUES = 60


@click.command()
@FORMULATION
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="SPEC",
    shell_complete=complete_instances,
    help="Instances of one family, with {braces}.",
)
@click.option("--on", metavar="T|objective|METRIC", help="What is fitted (default: T, or the objective without T).")
@click.option("--in", "variables", metavar="NAME,...", help="Variables of the form (default: parameters that vary).")
@click.option("--period", type=click.IntRange(min=1), help="Period of the residues (default: the best one).")
@click.option("--reach", type=click.IntRange(min=0), help="Nodes up to which forms are tested (default: twice).")
@METHOD
@DEMAND
@SET
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of each instance [s].")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of instances to solve at a time.")
@click.option("--values", is_flag=True, help="Also print the exact optima, and the bounds that they attain.")
@click.option("--latex", is_flag=True, help="Print the formulas as a LaTeX table.")
@STORE
@JSON
def conjecture(
    formulation: str,
    over: tuple[str, ...],
    on: str | None,
    variables: str | None,
    period: int | None,
    reach: int | None,
    method: str,
    demand: str | None,
    settings: tuple[str, ...],
    time_limit: float | None,
    jobs: int | None,
    values: bool,
    latex: bool,
    store_dir: str | None,
    as_json: bool,
) -> int:
    """Fit closed forms to the exact optima of FORMULATION over a family of instances.

    Forms are quotients of polynomials in the parameters of the family, by their residues. Every form is held against
    at least as many instances as determine it; exceptions are printed, and what is proven beyond the instances solved.

    \b
    opticoll conjecture alltoall.master --over "ring:{3..24}"
    opticoll conjecture alltoall.master --over "circulant:n={10..60},offsets=1x3" --latex
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    refuse_together({"--json": as_json or None, "--latex": latex or None}, ("--json", "--latex"))
    store = writable_store(store_dir)
    with output.diverted_stdout():
        from opticoll.analysis import conjectures

        result = conjectures.conjecture(
            formulation,
            list(over),
            on=on,
            variables=None if variables is None else [name.strip() for name in variables.split(",")],
            period=period,
            reach=reach,
            settings=settings_of(settings),
            demand=demand_of(demand),
            method=method,
            time_limit=time_limit,
            store=store,
            jobs=jobs,
        )
    if as_json:
        output.emit_json(result)
    elif latex:
        click.echo(result.to_latex(), nl=False)
    else:
        _show(result, with_values=values)
    if result.interrupted:
        notify("interrupted; run the same command again to resume")
        return 130
    return 0


def _show(result: Conjecture, *, with_values: bool) -> None:
    """Print the formulas in words, and the exact optima on request."""
    output.show_fields(result.summary, f"{result.quantity} of {result.formulation}")
    if with_values:
        rows = [
            {"case": one.case, result.quantity: one.value, "attained by": one.attained}
            for one in result.values[:MOST_VALUES]
        ]
        output.show_table(rows, ["case", result.quantity, "attained by"], "exact optima")
        if len(result.values) > MOST_VALUES:
            click.echo(f"... {len(result.values) - MOST_VALUES} more; --json gives all")
