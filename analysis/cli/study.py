"""The command ``study``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import complete_studies
from opticoll.analysis.cli.options import JSON, SOLVERS, STORE, notify, refuse_together, writable_store

if TYPE_CHECKING:
    from opticoll.analysis.study.running import Summary


@click.command()
@click.argument("study", shell_complete=complete_studies)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of cells to run at a time, in local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster on which to run the cells.")
@SOLVERS
@STORE
@JSON
def study(study: str, jobs: int | None, dask: str | None, store_dir: str | None, as_json: bool) -> int:
    """Run a study, by name or TOML file.

    Cells that have an answer in the store (a verified value, or a proof of infeasibility) are skipped. Run the command
    again to resume after an interruption. Exit status: 0 if no cell failed; 1 if some failed or were not run; 3 if no
    cell has an answer (4 if all lack their solver); 130 after Ctrl-C.
    """
    from opticoll.analysis.study import running

    refuse_together({"--jobs": jobs, "--dask": dask}, ("--jobs", "--dask"))
    store = writable_store(store_dir)
    with output.diverted_stdout():
        summary = running.run(study, store, jobs, dask)
    if as_json:
        output.emit_json(running.as_json(summary))
    else:
        _show_summary(summary)
    if summary.interrupted:
        rest = len(summary.study.cells) - len(summary.results)
        notify(f"interrupted with {rest} cell{'s' * (rest != 1)} to go; run `opticoll study {study}` again to resume")
        return 130
    return _without_answer(summary)


def _without_answer(summary: Summary) -> int:
    """Report on stderr how many cells of a study have no answer; return the exit status.

    0 if no cell failed, 1 if some failed or were not run, 3 if no cell has an answer (4 if all lack their solver).
    """
    cells, failed, unavailable = len(summary.study.cells), summary.count("failed"), summary.count("unavailable")
    if failed + unavailable:
        reasons = [f"{failed} failed"] if failed else []
        reasons += [f"{unavailable} without a usable solver"] if unavailable else []
        again = "; run the study again to retry them" if failed else ""
        notify(
            f"study {summary.study.name}: {failed + unavailable} of {cells} cells have no answer "
            f"({', '.join(reasons)}){again}"
        )
    if 0 < failed + unavailable == cells:
        return 3 if failed else 4
    return 0 if summary.complete and not failed else 1


def _show_summary(summary: Summary) -> None:
    """Print the summary of a study, one line per formulation and method."""
    from opticoll.solvers.task import one_line

    groups: dict[tuple[str, str], list[Any]] = {}
    for cell in summary.study.cells:
        outcome = summary.results.get(cell.key)
        groups.setdefault((str(cell.task.formulation), cell.task.method), []).append(outcome)
    rows = []
    for (formulation, method), results in groups.items():
        known = [r for r in results if r is not None]
        times = sorted(r.solve_s for r in known if r.solve_s is not None)
        rows.append(
            {
                "formulation": formulation,
                "method": method,
                "cells": len(results),
                **{s: sum(r.status == s for r in known) for s in ("done", "skipped", "failed", "unavailable")},
                "median_solve_s": round(times[len(times) // 2], 4) if times else None,
            }
        )
    columns = [
        "formulation",
        "method",
        "cells",
        "done",
        "skipped",
        "failed",
        "unavailable",
        "median_solve_s",
    ]
    output.show_table(rows, columns, f"study {summary.study.name}")
    for cell in summary.study.cells:
        result = summary.results.get(cell.key)
        if result is not None and result.status in {"failed", "unavailable"}:
            click.echo(f"{result.status}: {cell.label}: {one_line(result.message)}", err=True)
