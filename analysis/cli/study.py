"""The command ``study``."""

from __future__ import annotations

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON, SOLVERS, STORE, refuse_together


@click.command()
@click.argument("study", shell_complete=names_of("studies"))
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cells to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cells.")
@click.option("--dry-run", is_flag=True, help="Print which cells would run, and why; run nothing.")
@SOLVERS
@STORE
@JSON
def study(study: str, jobs: int | None, dask: str | None, dry_run: bool, store: str | None, as_json: bool) -> int:
    """Run a study, by name or TOML file.

    Cells that have an answer in the store (a verified value, or a proof of infeasibility) are skipped, if the same code
    of opticoll and of plug-ins computed it with the same solvers, and its solution is whole. Run the command again to
    resume after an interruption. Exit status: 0 if no cell failed; 1 if some failed or were not run; 3 if no cell has
    an answer (4 if all lack their solver); 130 after Ctrl-C, 143 after SIGTERM.
    """
    from opticoll.solvers.process.worker import fork_ahead

    fork_ahead()
    from opticoll.analysis.store import Store
    from opticoll.analysis.study import running

    refuse_together(("--jobs", "--dask"))
    home = Store(store)
    if dry_run:
        with output.diverted_stdout():
            from opticoll.analysis.study.dry_run import preview
            from opticoll.analysis.study.study_file import find, load

            shown = preview(load(find(study)), home)
        output.show(shown, as_json=as_json)
        return 0
    with output.diverted_stdout():
        summary = running.run(study, home, jobs, dask)
    output.show(summary, as_json=as_json)
    if summary.interrupted:
        rest = len(summary.study.cells) - len(summary.results)
        output.notify(
            f"interrupted with {rest} cell{'s' * (rest != 1)} to go; run `opticoll study {study}` again to resume"
        )
        return output.INTERRUPTED
    if summary.unanswered:
        output.notify(summary.unanswered)
    return summary.exit_status
