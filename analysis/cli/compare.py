"""The command ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import complete_studies
from opticoll.analysis.cli.options import JSON, SOLVERS, STORE

if TYPE_CHECKING:
    from opticoll.analysis.benchmark.study_comparison import StudyComparison


@click.command()
@click.argument("study", shell_complete=complete_studies)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write a page with figures and tables.")
@click.option("--time", "clock", type=click.Choice(["solver", "solve", "total"]), help="Which time to compare.")
@click.option("--accuracy", type=float, metavar="X", help="KKT residual (or gap) at which an LP counts as solved.")
@SOLVERS
@STORE
@JSON
def compare(
    study: str, out: Path | None, clock: Any, accuracy: float | None, store_dir: str | None, as_json: bool
) -> int:
    """Compare the contestants of a study that has been run.

    STUDY is a name or TOML file. A contestant is a method with its options. Nothing is run: `opticoll study STUDY` does
    that. With --out, the page has performance profiles, times with their spread, gaps over time and wrong answers.
    """
    with output.diverted_stdout():
        from opticoll.analysis.benchmark import study_comparison
        from opticoll.analysis.store import Store
        from opticoll.analysis.study.study_file import find, load

        made = study_comparison.compare(load(find(study)), Store(store_dir), clock=clock, accuracy=accuracy)
        page = None if out is None else study_comparison.write_page(made, out)
    if as_json:
        output.emit_json({**made.document(), "page": None if page is None else str(page)})
    else:
        _show_comparison(made)
        if page is not None:
            click.echo(f"wrote {page}", err=True)
    return 0


def _show_comparison(made: StudyComparison) -> None:
    """Print the comparison of a study: one line per contestant, by class of problems, then wrong answers."""
    from opticoll.analysis.benchmark import solver_metrics
    from opticoll.analysis.benchmark.study_comparison import CLOCKS, SHOWN
    from opticoll.analysis.rendering import frame_rows

    for name, frame in made.summaries.items():
        rows = frame_rows(frame)
        shown = [column for column in SHOWN if any(row[column] not in (None, 0) for row in rows)]
        output.show_table(rows, shown, f"study {made.study.name}: {name} programs")
    click.echo(f"{CLOCKS[made.clock]} Means are shifted geometric means [s].")
    each = made.comparison.each
    for contestant, runs in each[each["verdict"] == "unavailable"].groupby("solver")["runs"].sum().items():
        click.echo(f"{contestant}: {int(runs)} run{'s' * (int(runs) != 1)} had no usable solver", err=True)
    wrong = solver_metrics.wrong_answers(made.comparison.runs).rename(columns={"solver": "contestant"})
    if len(wrong):
        output.show_table(frame_rows(wrong), list(wrong.columns), "wrong answers")
    if made.missing:
        click.echo(f"{made.missing} of {len(made.study.cells)} cells have no record in the store", err=True)
