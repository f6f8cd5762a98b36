"""Measure the results, plots and timings of README and ``docs/``, and write them into the documents.

``python -m opticoll.analysis.bench`` runs the studies behind the plots (stored cells are skipped), the claims and every
timing table, stores the results, and writes each block of the documents between its markers as soon as it is complete.
Arguments restrict this to studies, ``claims`` or timing tables by name. ``--from-store`` writes the documents from
stored results alone. A block without data stays as it is; stderr then says what is missing and which command computes
it, and the exit status is 1.

A timing table states whether its figures are medians or single runs; ratios are within one run of this program. The
store keeps the tables in ``bench.json`` with their date, duration and machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from opticoll.analysis.benchmark import Row, Table, tables
from opticoll.analysis.report import frontpage
from opticoll.errors import BadFile, BadInput, OpticollError
from opticoll.solvers.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.analysis.store import Store

#: Documents with blocks, from the root.
DOCUMENTS = ("README.md", "docs/results.md", "docs/measured.md")
CLAIMS = "claims"
#: Folder of the claims pages, one per paper, from the root.
CLAIM_PAGES = "docs/claims"


def table(rows: list[Row]) -> str:
    """A Markdown table of rows that share their keys."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_text(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    return f"`{value}`" if isinstance(value, str) and ":" in value else str(value)


# stored tables -------------------------------------------------------------------------------------------------------


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


# documents ----------------------------------------------------------------------------------------------------------


def timing_blocks(store: Store, known: Mapping[str, Table]) -> dict[str, str]:
    """A block ``bench-NAME`` for every stored table: its heading, the table, and how it was measured."""
    blocks = {}
    for name, stored in stored_tables(store).items():
        if name in known:
            command = f"`python -m opticoll.analysis.bench {name}`"
            source = f"{command}, {stored.seconds:.0f} s, {stored.measured}, {stored.machine}"
            blocks[f"bench-{name}"] = f"**{known[name].title}**\n\n{table(stored.rows)}\n\n({source})"
    return blocks


def write(root: Path, blocks: Mapping[str, str], known: Mapping[str, Table]) -> None:
    """Write blocks into the documents below ``root`` that have markers for them; other blocks stay as they are.

    The block ``bench`` contains a block for every timing table, in their order.
    """
    for name in DOCUMENTS:
        path = root / name
        if not path.exists():
            continue
        old = path.read_text(encoding="utf-8")
        text = old
        tables_before = frontpage.content(text, "bench")
        if tables_before is not None:
            before = {key: frontpage.content(tables_before, key) for key in map("bench-{}".format, known)}
            bodies = {key: body for key, old_body in before.items() if (body := blocks.get(key, old_body)) is not None}
            text = frontpage.replaced(text, "bench", "\n\n".join(frontpage.wrapped(*item) for item in bodies.items()))
        for key in frontpage.names(text):
            if key in blocks:
                text = frontpage.replaced(text, key, _linked_from(name, blocks[key]))
        if text != old:
            path.write_text(text, encoding="utf-8")


def _linked_from(document: str, body: str) -> str:
    """Block whose links to files below ``docs/`` are relative to the folder of a document."""
    return body.replace("](docs/", "](") if document.startswith("docs/") else body


def publish(store: Store, root: Path, parts: Sequence[str], known: Mapping[str, Table]) -> dict[str, str]:
    """Write the blocks of ``parts``; return for each block without data what is missing and how to compute it."""
    blocks = {key: text for key, text in timing_blocks(store, known).items() if key.removeprefix("bench-") in parts}
    missing: dict[str, str] = {}
    absent = [name for name in known if name in parts and f"bench-{name}" not in blocks]
    if absent:
        names = " ".join(absent)
        missing["timings"] = (
            f"no times of {', '.join(absent)} in the store; run `python -m opticoll.analysis.bench {names}`"
        )
    if CLAIMS in parts:
        try:
            blocks["results"] = frontpage.results_table(store)
            blocks["verdicts"] = frontpage.verdicts_table(store)
        except frontpage.MissingData as error:
            missing["results"] = str(error)
        if (root / CLAIM_PAGES).is_dir():
            for paper, text in frontpage.claims_pages(store).items():
                (root / CLAIM_PAGES / f"{paper}.md").write_text(text, encoding="utf-8")
    plots = [plot for plot in frontpage.PLOTS if set(plot.studies) & set(parts)]
    if plots:
        from opticoll.analysis.report.findings import best_runs

        results = best_runs(store)
        for plot in plots:
            try:
                blocks[f"plot-{plot.name}"] = frontpage.plot_block(plot, store, results, root)
            except frontpage.MissingData as error:
                missing[f"plot-{plot.name}"] = str(error)
    write(root, blocks, known)
    return missing


# the command --------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Measure the named parts, by default all, and write their blocks.

    Returns
    -------
    int
        0; 1 if a block lacks data; 2 for bad input; 130 after Ctrl-C (finished measurements are stored).
    """
    known = tables()
    parts = [*frontpage.STUDIES, CLAIMS, *known]
    parser = argparse.ArgumentParser(
        prog="python -m opticoll.analysis.bench", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"parts to measure (default: all): {', '.join(parts)}")
    parser.add_argument("--from-store", action="store_true", help="write stored results, measure nothing")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="concurrent cells of a study (default: 1, for undisturbed times)"
    )
    parser.add_argument("--store", metavar="DIR", help="results store (default: $OPTICOLL_STORE, or ./results)")
    parser.add_argument(
        "--root", type=Path, default=Path(), metavar="DIR", help="folder of README.md (default: current folder)"
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options, parts, known)
    except OpticollError as error:
        print(f"opticoll.analysis.bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "opticoll.analysis.bench: interrupted; finished measurements are stored; run the command again to continue",
            file=sys.stderr,
        )
        return 130


def _run(options: argparse.Namespace, parts: list[str], known: Mapping[str, Table]) -> int:
    from opticoll.analysis.store import Store
    from opticoll.instances.spec import nearest

    for name in options.parts:
        if name not in parts:
            msg = f"no part {name!r}; {nearest(name, parts)}"
            raise BadInput(msg)
    chosen = [name for name in parts if name in options.parts] or list(parts)
    store = Store(options.store)
    if not options.from_store:
        store.check_writable()
        for name in chosen:
            print(f"{name} ...", file=sys.stderr, flush=True)
            _measure(name, store, known, options.jobs)
            publish(store, options.root, [name], known)
    missing = publish(store, options.root, chosen, known)
    for block, reason in missing.items():
        print(f"opticoll.analysis.bench: {block} not updated: {reason}", file=sys.stderr)
    return 1 if missing else 0


def _measure(name: str, store: Store, known: Mapping[str, Table], jobs: int | None) -> None:
    if name in known:
        measure(store, known[name])
        return
    if name == CLAIMS:
        from opticoll.analysis.ledger import ledger

        for row in ledger((), store, resume=True):
            print(f"  {row['id']}: {row['verdict']}", file=sys.stderr, flush=True)
        return
    from opticoll.analysis import study as study_command

    if study_command.run(name, store, jobs, None).interrupted:
        raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
