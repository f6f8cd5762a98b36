"""The command ``conjecture``."""

from __future__ import annotations

from typing import Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import (
    FORMULATION,
    JSON,
    METHOD,
    SET,
    STORE,
    demand_setting,
)


@click.command()
@FORMULATION
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="SPEC",
    shell_complete=names_of("instances"),
    help="Instances of one family, with {braces}.",
)
@click.option("--on", metavar="T|objective|METRIC", help="What is fitted (default: T, or the objective without T).")
@click.option("--in", "variable", metavar="NAME", help="Variable of the form (default: the parameter that varies).")
@click.option("--period", type=click.IntRange(min=1), help="Period of the residues (default: the best one).")
@METHOD
@demand_setting
@SET
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of each instance [s].")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of instances to solve at a time.")
@STORE
@JSON
def conjecture(as_json: bool, **options: Any) -> int:
    """Fit closed forms to the exact optima of FORMULATION over a family of instances.

    Forms are quotients of polynomials in a parameter of the family, by its residues. Every form is held against
    at least as many instances as determine it; exceptions are printed.

    \b
    opticoll conjecture alltoall.master --over "ring:{3..24}"
    opticoll conjecture alltoall.master --over "circulant:n={10..60},offsets=1x3"
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    with output.diverted_stdout():
        from opticoll.analysis.conjectures import conjecture as conjectures

        result = conjectures.conjecture(**options)
    output.show(result, as_json=as_json)
    if result.interrupted:
        output.notify("interrupted; run the same command again to resume")
        return output.INTERRUPTED
    return 0
