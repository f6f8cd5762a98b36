"""The command ``figure``."""

from __future__ import annotations

from pathlib import Path

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON, STORE, OutputFile


@click.command()
@click.argument("name", required=False, shell_complete=names_of("figures"))
@click.option(
    "--out",
    type=OutputFile(),
    metavar="FILE.pdf|.svg|.png",
    help="Write the figure; the suffix is the format.",
)
@STORE
@JSON
def figure(name: str | None, out: Path | None, store: str | None, as_json: bool) -> int:
    """Draw a figure of a paper, with the paper's points where they are published.

    Without NAME, all figures are listed. The runs of the store are drawn, else the rows that come with opticoll, or
    closed forms; the output says which. --json prints the rows.
    """
    from opticoll.analysis.papers import descriptions
    from opticoll.analysis.papers.extension import EXTENSION

    if name is None:
        if out or as_json:
            click.get_current_context().fail("name a figure; `opticoll figure` lists them")
        output.show_table(descriptions.listed(), list(EXTENSION.lists["figures"][1]))
        return 0
    with output.diverted_stdout():
        from opticoll.analysis.papers.figure import as_json as description
        from opticoll.analysis.papers.figure import figure as draw
        from opticoll.analysis.papers.paper_figure import figure_named
        from opticoll.analysis.plots.data_figure import checked_format

        stated = figure_named(name)
        if out is not None:
            checked_format(out)
        drawn = draw(name, store=store)
        if out is not None:
            drawn.save(out)
    if as_json:
        output.emit_json(description(drawn, out))
    else:
        output.show_fields(
            {"the paper": stated.says, "drawn": drawn.caption, "source": drawn.source}
            | ({"counts": drawn.counts} if drawn.counts else {}),
            f"{drawn.name}. {drawn.title}",
        )
        panels = [
            {"panel": panel, "x": x, "y": y} for panel, x, y in drawn.convention.itertuples(index=False) if x or y
        ]
        if panels:
            click.echo()
            output.show_table(panels, ["panel", "x", "y"], "axes")
    if out is not None:
        click.echo(f"wrote {out}", err=True)
    return 0
