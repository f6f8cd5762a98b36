"""The command ``sweep``."""

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
    only_one,
    refuse_together,
)


@click.command()
@FORMULATION
@click.option(
    "--bound",
    required=True,
    multiple=True,
    callback=only_one,
    metavar="NAME|FILE.py:FUNCTION",
    help="Bound of the formulation, or a Python function.",
)
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="SPEC",
    shell_complete=names_of("instances"),
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
@demand_setting
@SET
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit of each case [s].")
@click.option(
    "--tol", type=float, default=1e-6, show_default=True, help="Relative tolerance of optima and of comparing floats."
)
@click.option("--exact", is_flag=True, help="Solve every case in rational arithmetic and compare fractions.")
@click.option("--fail-on-violation", is_flag=True, help="Exit with status 1 if the bound is violated in some case.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cases to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cases.")
@STORE
@JSON
def sweep(fail_on_violation: bool, as_json: bool, **options: Any) -> int:
    """Test a bound on the optimum of FORMULATION over many instances.

    The bound is one of the formulation (`opticoll describe FORMULATION` lists them) or a Python function of the
    instance. Violations, tightness and the smallest counterexample are printed. Isomorphic topologies are one case.
    Run the command again to resume after an interruption. Exit status: 1 after errors, 3 if no case is decided.

    \b
    opticoll sweep alltoall.master --bound moore --over "all-digraphs:n=5,d=2"
    opticoll sweep alltoall.master --bound my.py:cut --on T --over "ring:{3..9}" --over "genkautz:n={8..64},d=4"
    opticoll sweep alltoall.master --bound my.py:cut --over "ring:{3..9}" --exact --fail-on-violation
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from opticoll.solvers.process.worker import fork_ahead

    refuse_together(("--jobs", "--dask"))
    fork_ahead()
    with output.diverted_stdout():
        from opticoll.analysis.bounds.bound_comparison import Status
        from opticoll.analysis.bounds.sweep import sweep

        result = sweep(**options)
    output.show(result, as_json=as_json)
    for case in result.cases:
        if case.status == Status.ERROR:
            output.notify(f"sweep: {result.bound} on {case.case}: {case.message}")
    if result.interrupted:
        rest = result.classes - len(result.cases)
        output.notify(f"interrupted with {rest} case{'s' * (rest != 1)} to go; run the same command again to resume")
        return output.INTERRUPTED
    if result.errors or (fail_on_violation and result.violations):
        return 1
    return 3 if result.undecided and not result.decided else 0
