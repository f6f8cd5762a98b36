"""Measure the results, plots and timings of README and ``docs/``, and write them.

``python docs/documents.py [PART]...`` is for maintainers.

The documents show them in blocks (:mod:`blocks`). The counts of claims come from the ledger. A plot is drawn only if
every cell of its studies has a run in the store, since part of a study could look like a different result.
:class:`MissingData` names what a store lacks and the command that computes it; its block is unchanged.

A timing table states whether its figures are medians or single runs; ratios are within one run of this program. The
store keeps the tables in ``bench.json`` with their date, duration and machine.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from blocks import content, names, replaced, wrapped
from blocks import table as table_of
from claim_pages import page
from measured_tables import tables
from timed_commands import Row

from opticoll.analysis.cli.options import STORE, writable_store
from opticoll.analysis.cli.output import notify
from opticoll.analysis.ledger.explanation import fragile, tally
from opticoll.analysis.ledger.ledger import claims, kept
from opticoll.analysis.papers.paper_figure import PAPER_NAMES
from opticoll.errors import BadFile, BadInput
from opticoll.nearest_names import nearest
from opticoll.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure
    from timed_commands import Table

    from opticoll.analysis.ledger.claim import ClaimRow
    from opticoll.analysis.papers.paper_figure import PaperFigure
    from opticoll.analysis.store import Store


_log = logging.getLogger("opticoll")

#: Folder of the plots, relative to the root of the documents.
FIGURES = "docs/generated/figures"


class MissingData(Exception):
    """A store lacks data for a block; the message names the data and the command that computes it."""


def verdicts_table(store: Store) -> str:
    """Table of the number of stored claims by paper, weight and verdict.

    Raises
    ------
    MissingData
        If the store has no measured claim, or one that failed.
    """
    rows = kept((), store)
    wrong = [row.id for row in rows if row.failed] if rows else ["none is measured"]
    if wrong:
        msg = f"claims: {', '.join(wrong)}; measure with `opticoll claims`"
        raise MissingData(msg)
    entries = tally(rows, {paper: f"[{name}](docs/generated/claims/{paper}.md)" for paper, name in PAPER_NAMES.items()})
    lines = table([{name: str(value) for name, value in entry.items()} for entry in entries])
    absent = len(claims()) - len(rows)
    rest = f" {absent} more claims are not measured." if absent else ""
    return f"{lines}\n\n{fragile(rows)}{rest}"


def claims_pages(store: Store) -> dict[str, str]:
    """One Markdown page per paper with every stored claim, by paper."""
    by_paper: dict[str, list[ClaimRow]] = {}
    for row in kept((), store):
        by_paper.setdefault(row.paper, []).append(row)
    return {paper: page(PAPER_NAMES.get(paper, paper), rows) for paper, rows in by_paper.items()}


def escaped(text: str) -> str:
    """Escape the characters of a table's cell that Markdown interprets."""
    return " ".join(re.sub(r"[\\|*_<`$]", r"\\\g<0>", text).split())


@dataclass(frozen=True)
class Plot:
    """A plot of ``docs/generated/heuristics.md`` or of a formulation's page.

    Parameters
    ----------
    name
        Name of its file and, after ``plot-``, of its block.
    studies
        Studies whose cells must all have a run in the store.
    make
        Function to title, one-sentence caption and drawing from :func:`opticoll.analysis.report.findings.best_runs`.
    rows
        Function from the same to the rows of a table below the plot; None for no table.
    """

    name: str
    studies: tuple[str, ...]
    make: Callable[[pd.DataFrame], tuple[str, str, Figure]]
    rows: Callable[[pd.DataFrame], list[Row]] | None = None


def plot_block(plot: Plot, store: Store, results: pd.DataFrame, root: Path) -> str:
    """Draw a plot into :data:`FIGURES` below ``root`` and return the Markdown that shows it.

    Raises
    ------
    MissingData
        If cells of its studies have no run in the store.
    """
    from opticoll.analysis.plots.style import svg

    _check_complete(plot, store)
    title, caption, figure = plot.make(results)
    path = root / FIGURES / f"{plot.name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = svg(figure)
    if not path.exists() or path.read_text(encoding="utf-8") != drawn:
        path.write_text(drawn, encoding="utf-8")
    commands = ", ".join(f"`opticoll study {study}`" for study in plot.studies)
    below = "" if plot.rows is None else f"\n\n{table(plot.rows(results))}"
    return f"![{escaped(title)}]({FIGURES}/{plot.name}.svg)\n\n*{escaped(caption)}* ({commands}){below}"


def _check_complete(plot: Plot, store: Store) -> None:
    from opticoll.analysis.study.study_file import find, load

    known = set(store.tables("SELECT DISTINCT key FROM runs")[0]["key"])
    wrong = []
    for name in plot.studies:
        cells = load(find(name)).cells
        absent = sum(cell.key not in known for cell in cells)
        if absent:
            wrong.append(
                f"{absent} of {len(cells)} cells of {name} have no run; compute them with `opticoll study {name}`"
            )
    if wrong:
        raise MissingData("; ".join(wrong))


def _chosen(name: str, results: pd.DataFrame) -> tuple[PaperFigure, pd.DataFrame]:
    """Figure of :mod:`opticoll.analysis.papers` with its rows, at least one."""
    from opticoll.analysis.papers.paper_figure import figure_named

    figure = figure_named(name)
    rows = results if results.empty else figure.select(results)
    if rows.empty:
        msg = f"no runs for the figure {name}; compute them with `opticoll study {figure.study}`"
        raise MissingData(msg)
    return figure, rows


def _gap(name: str, title: str) -> Callable[[pd.DataFrame], tuple[str, str, Figure]]:
    def make(results: pd.DataFrame) -> tuple[str, str, Figure]:
        figure, rows = _chosen(name, results)
        known = rows[rows["ratio"].notna()]
        if known.empty:
            msg = f"no verified value of a heuristic for the figure {name}; run `opticoll study {figure.study}`"
            raise MissingData(msg)
        medians = known.groupby("heuristic")["ratio"].median().sort_values(kind="stable")
        problems = known.drop_duplicates(["formulation", "problem"])
        caption = (
            f"{title}: {len(problems)} problems, {int(problems['proven'].sum())} with a proven optimum; "
            f"median ratios to the optimum (or best bound) from {medians.iloc[0]:.3g} ({medians.index[0]}) to "
            f"{medians.iloc[-1]:.3g} ({medians.index[-1]}), the worst {known['ratio'].max():.3g}."
        )
        return title, caption, figure.draw(rows)

    return make


def _front(results: pd.DataFrame) -> tuple[str, str, Figure]:
    figure, rows = _chosen("alltoall-channels", results)
    caption = "Load of verified routes without cyclic dependencies, and the bound on every such routing."
    return figure.title, caption, figure.draw(rows)


def _front_rows(results: pd.DataFrame) -> list[Row]:
    """Least load by network and number of layers; a range is from the bound to the best found."""
    rows = _chosen("alltoall-channels", results)[1]
    lines: dict[str, Row] = {}
    for row in rows.to_dict("records"):
        line = lines.setdefault(row["instance"], {"Network": row["instance"]})
        least, found = f"{row['bound']:g}", f"{row['load']:g}"
        line[f"$L = {row['layers']}$"] = found if found == least else f"{least} to {found}"
    return list(lines.values())


PLOTS = (
    Plot("gap-alltoall", ("gap-alltoall",), _gap("gap-alltoall", "All-to-all, paths and layers by heuristics")),
    Plot("gap-lumorph", ("gap-lumorph",), _gap("gap-lumorph", "LuMorph, routes and rounds by heuristics")),
    Plot("gap-sipml", ("gap-sipml",), _gap("gap-sipml", "SiP-ML, first fit on the ring and degree-aware placement")),
    Plot("gap-optree", ("gap-optree",), _gap("gap-optree", "OpTree, uniform trees of Theorem 2's depth")),
    Plot("gap-topoopt", ("topoopt-gap",), _gap("gap-topoopt", "TopoOpt, circuits and strategies by heuristics")),
    Plot("channels-front", ("channels-front",), _front, _front_rows),
)
#: Studies behind the plots.
STUDIES = tuple(dict.fromkeys(study for plot in PLOTS for study in plot.studies))


#: Documents with blocks, from the root.
DOCUMENTS = (
    "README.md",
    "docs/results.md",
    "docs/generated/heuristics.md",
    "docs/generated/measured.md",
    "docs/formulations/alltoall.channels.md",
    "docs/formulations/alltoall.few-paths.md",
    "docs/formulations/topoopt.circuits.md",
)
CLAIMS = "claims"
#: Folder of the claims pages, one per paper, from the root.
CLAIM_PAGES = "docs/generated/claims"


def table(rows: list[Row]) -> str:
    """A Markdown table of rows that share their keys."""
    return "\n".join(table_of(rows[0], ([_text(row[name]) for name in rows[0]] for row in rows)))


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    return f"`{value}`" if isinstance(value, str) and ":" in value else str(value)


class TimingTable(msgspec.Struct, frozen=True, kw_only=True):
    """A measured table: its rows, the date, the seconds that it took, and the machine."""

    rows: list[Row]
    measured: str
    seconds: float
    machine: str

    def __post_init__(self) -> None:
        if len({frozenset(row) for row in self.rows}) != 1:
            msg = "needs rows with the same keys"
            raise ValueError(msg)


def stored_tables(store: Store) -> dict[str, TimingTable]:
    """The timing tables in a store, by name.

    Raises
    ------
    BadFile
        If the file is not valid.
    """
    path = store.root / "bench.json"
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, TimingTable])
    except (OSError, msgspec.DecodeError) as error:
        msg = f"store: {path} has no valid timing tables ({error}); move it out of the store"
        raise BadFile(msg) from error


def measure(store: Store, table: Table) -> None:
    """Measure a timing table and store it."""
    started = time.monotonic()
    rows = table.measure()
    measured = TimingTable(
        rows=rows,
        measured=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=round(time.monotonic() - started, 1),
        machine=_machine(),
    )
    store.root.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode({**stored_tables(store), table.name: measured})
    rewrite(store.root / "bench.json", msgspec.json.format(content, indent=1))


def _machine() -> str:
    from opticoll.analysis.store.schema import environment

    machine = environment()
    return f"{machine['cpus']} cores, Python {machine['python']}"


def timing_blocks(store: Store, known: Mapping[str, Table]) -> dict[str, str]:
    """A block ``bench-NAME`` for every stored table: its heading, the table, and how it was measured."""
    blocks = {}
    for name, stored in stored_tables(store).items():
        if name in known:
            command = f"`python docs/documents.py {name}`"
            source = f"{command}, {stored.seconds:.0f} s, {stored.measured}, {stored.machine}"
            blocks[f"bench-{name}"] = f"**{known[name].title}**\n\n{table(stored.rows)}\n\n({source})"
    return blocks


def write(root: Path, blocks: Mapping[str, str], known: Mapping[str, Table]) -> None:
    """Write blocks into the documents below ``root`` that have markers for them; other blocks are unchanged.

    The block ``bench`` contains a block for every timing table, in their order.
    """
    for name in DOCUMENTS:
        path = root / name
        if not path.exists():
            continue
        old = path.read_text(encoding="utf-8")
        text = old
        tables_before = content(text, "bench")
        if tables_before is not None:
            before = {key: content(tables_before, key) for key in map("bench-{}".format, known)}
            bodies = {key: body for key, old_body in before.items() if (body := blocks.get(key, old_body)) is not None}
            text = replaced(text, "bench", "\n\n".join(wrapped(*item) for item in bodies.items()))
        for key in names(text):
            if key in blocks:
                text = replaced(text, key, _linked_from(name, blocks[key]))
        if text != old:
            path.write_text(text, encoding="utf-8")


def _linked_from(document: str, body: str) -> str:
    """Block whose links to files below ``docs/`` are relative to the folder of a document."""
    return body.replace("](docs/", f"]({'../' * (document.count('/') - 1)}") if document.startswith("docs/") else body


def publish(store: Store, root: Path, parts: Sequence[str]) -> dict[str, str]:
    """Write the blocks of ``parts``; return for each block without data what is missing and how to compute it."""
    known = tables()
    blocks = {key: text for key, text in timing_blocks(store, known).items() if key.removeprefix("bench-") in parts}
    missing: dict[str, str] = {}
    absent = [name for name in known if name in parts and f"bench-{name}" not in blocks]
    if absent:
        command = f"python docs/documents.py {' '.join(absent)}"
        missing["timings"] = f"no times of {', '.join(absent)} in the store; run `{command}`"
    if CLAIMS in parts:
        try:
            blocks["verdicts"] = verdicts_table(store)
        except MissingData as error:
            missing["verdicts"] = str(error)
        if (root / CLAIM_PAGES).is_dir():
            for paper, text in claims_pages(store).items():
                (root / CLAIM_PAGES / f"{paper}.md").write_text(text, encoding="utf-8")
    plots = [plot for plot in PLOTS if set(plot.studies) & set(parts)]
    if plots:
        from opticoll.analysis.report.findings import best_runs

        results = best_runs(store)
        for plot in plots:
            try:
                blocks[f"plot-{plot.name}"] = plot_block(plot, store, results, root)
            except MissingData as error:
                missing[f"plot-{plot.name}"] = str(error)
    write(root, blocks, known)
    return missing


def chosen_parts(names: Sequence[str]) -> list[str]:
    """The parts with these names, or all: studies behind plots, the claims, timing tables.

    Raises
    ------
    BadInput
        For an unknown name.
    """
    parts = [*STUDIES, CLAIMS, *tables()]
    for name in names:
        if name not in parts:
            msg = f"no part {name!r}; {nearest(name, parts)}"
            raise BadInput(msg)
    return [name for name in parts if name in names] or parts


def measure_part(name: str, store: Store, jobs: int | None) -> None:
    """Measure a part, and store the results."""
    known = tables()
    if name in known:
        measure(store, known[name])
    elif name == CLAIMS:
        from opticoll.analysis.ledger.ledger import ledger

        for row in ledger((), store, resume=True):
            _log.info("%s: %s", row["id"], row["verdict"])
    else:
        from opticoll.analysis.study import running

        if running.run(name, store, jobs, None).interrupted:
            raise KeyboardInterrupt


@click.command()
@click.argument("parts", nargs=-1, metavar="[PART]...")
@click.option("--from-store", is_flag=True, help="Write stored results; measure nothing.")
@click.option("--jobs", type=click.IntRange(min=1), help="Concurrent cells of a study (default: 1, for exact times).")
@STORE
@click.option("--root", type=click.Path(path_type=Path), default=Path(), metavar="DIR", help="Folder of README.md.")
def write_documents(parts: tuple[str, ...], from_store: bool, jobs: int | None, store: str | None, root: Path) -> None:
    """Measure tables and plots of the documents, by default all, and write them into README and docs.

    PART is a study behind a plot, `claims` or a table of times. Results are stored; stored cells and claims are not
    repeated. Exit status: 0; 1 if a block lacks data, which is named with the command that computes it.
    """
    from opticoll.analysis.store import Store

    chosen = chosen_parts(parts)
    home = Store(store) if from_store else writable_store(store)
    for part in () if from_store else chosen:
        notify(f"documents: {part} ...")
        measure_part(part, home, jobs)
        publish(home, root, [part])
    missing = publish(home, root, chosen)
    for block, reason in missing.items():
        notify(f"documents: {block} not updated: {reason}")
    if missing:
        raise SystemExit(1)


if __name__ == "__main__":
    write_documents()
