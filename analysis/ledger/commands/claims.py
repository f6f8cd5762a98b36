"""The command ``claims``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from opticoll.analysis.cli import output
from opticoll.analysis.cli.completions import names_of
from opticoll.analysis.cli.options import JSON, STORE, readable_store, refuse_together, writable_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opticoll.analysis.ledger.claim import ClaimRow


@click.command()
@click.argument("identifiers", nargs=-1, metavar="[ID]...", shell_complete=names_of("claims"))
@click.option("--cached", is_flag=True, help="Show the stored measurements; measure nothing.")
@click.option("--resume", is_flag=True, help="Skip claims that this version has already measured and stored.")
@click.option(
    "--seed",
    default=0,
    type=click.IntRange(min=0),
    metavar="N",
    help="Use the N-th sample of random graphs, orders and tie-breaks; only sample 0 (the default) is stored.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of claims to measure at a time, in local processes.")
@click.option("--no-store", is_flag=True, help="Measure everything and store nothing.")
@click.option("--explain", is_flag=True, help="Print each claim in full: scope, procedure, open choices, witness.")
@STORE
@JSON
def claims(
    identifiers: tuple[str, ...],
    cached: bool,
    resume: bool,
    seed: int,
    jobs: int | None,
    no_store: bool,
    explain: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Compare the papers' numbers with measurements.

    ID is a claim, a paper (`optree`) or a pattern (`'topoopt.tax*'`); without an ID, all claims are measured, and
    counted by paper, weight and verdict.
    Runs that have an answer in the store are not repeated. Every claim is stored as soon as it is measured. There is no
    --time-limit: the limits of a claim's runs are part of its procedure, and others might change its verdict. After
    Ctrl-C, --resume measures the rest.

    Exit status: 0 if all claims were measured, whatever the verdicts; 1 if a measurement failed; 2 bad input; 130 after
    Ctrl-C.
    """
    refuse_together(
        ("--no-store", "--cached"),
        ("--no-store", "--store"),
        ("--no-store", "--resume"),
        ("--cached", "--resume"),
        ("--cached", "--seed"),
        ("--cached", "--jobs"),
        ("--resume", "--seed"),
        ("--explain", "--json"),
    )
    rest = 0
    with output.diverted_stdout():
        from opticoll.analysis.ledger.explanation import explanation
        from opticoll.analysis.ledger.ledger import chosen, kept, ledger

        position = {claim.id: index for index, claim in enumerate(chosen(identifiers))}
        wanted = len(position)
        if cached:
            rows: list[Any] = kept(identifiers, readable_store(store))
        else:
            home = None if no_store else writable_store(store)
            if wanted > 1:
                output.notify(f"{wanted} claims are measured; `opticoll claims --cached` shows stored measurements")
            rows = _gathered(
                _until_interrupted(ledger(identifiers, home, resume=resume, seed=seed, jobs=jobs)), "claims"
            )
            rows.sort(key=lambda row: position[row["id"]])
        rest = wanted - len(rows)
    if as_json:
        output.emit_json(rows)
    elif explain:
        click.echo("\n".join(explanation(row) for row in rows), nl=False)
    elif rows:
        if identifiers:
            _show_claims(rows)
        else:
            _show_tally(rows)
    elif not wanted:
        click.echo("no claims registered yet")
    if rest and cached:
        output.notify(f"{rest} of {wanted} claims have no measurement in this store; `opticoll claims` measures them")
    elif rest:
        way = "nothing of this run is stored" if no_store or seed else "resume with `opticoll claims --resume`"
        output.notify(f"interrupted with {rest} of {wanted} claims to go; {way}")
        return output.INTERRUPTED
    failed = [row["id"] for row in rows if row.get("failed")]
    if failed:
        output.notify(f"{len(failed)} of {wanted} claims could not be measured: {', '.join(failed)}")
    return 1 if failed else 0


def _until_interrupted(rows: Iterator[Any]) -> Iterator[Any]:
    """Rows until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        yield from rows


def _show_claims(rows: Sequence[ClaimRow]) -> None:
    """Print claims as a table; one whose measurement failed has the verdict "failed"."""
    from opticoll.analysis.ledger.explanation import away

    shown = [
        {
            **dict(row.items()),
            "verdict": row.outcome,
            "printed": row.expected if row.printed is None else row.printed,
            "distance": None if row.distance is None else away(row.distance),
        }
        for row in rows
    ]
    output.show_table(shown, ["id", "weight", "verdict", "printed", "measured", "distance", "claim", "where", "reason"])


def _show_tally(rows: Sequence[ClaimRow]) -> None:
    """Print the number of claims by paper, weight and verdict, and where to read more."""
    from opticoll.analysis.ledger.explanation import fragile, tally
    from opticoll.analysis.papers.paper_figure import PAPER_NAMES

    counts = tally(rows, PAPER_NAMES)
    output.show_table(counts, list(counts[0]))
    click.echo(fragile(rows))
    click.echo("`opticoll claims PAPER` lists the claims of a paper, and `--explain` prints each in full.")


def _gathered(rows: Iterable[ClaimRow], what: str) -> list[ClaimRow]:
    """Collect the rows of a slow source, counting them on the terminal as they arrive."""
    results: list[ClaimRow] = []
    with output.console().status(what) as status:
        for row in rows:
            results.append(row)
            status.update(f"{what}: {len(results)}, last {row.get('id', '')}")
    return results
