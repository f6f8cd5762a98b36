"""README's results, plots and timings, and ``docs/measured.md``: measured and written again by ``make bench``.

``python -m opticoll.analysis.bench`` runs the studies behind the plots (cells that the store has answers for are
skipped), the
claims and every timing table, keeps all of it in the results store, and writes the blocks of the documents between
their markers, each as soon as it is there. Names of studies, ``claims`` or names of tables choose parts;
``--from-store`` measures nothing and writes what the store has. A block that the store cannot fill stays as it is in
the document; what is missing, and the command that makes it, goes to stderr, and the exit status is 1.

Timings are medians or single runs as each table says; ratios are within one run of this program. They are kept in
``bench.json`` of the store with the day, the seconds that the table took, and the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.analysis.benchmark import Row, Table, tables
from opticoll.analysis.report import frontpage
from opticoll.analysis.report import frontpage as markers
from opticoll.errors import BadFile, BadInput, OpticollError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.analysis.store import Store

#: Documents with blocks, from the root.
DOCUMENTS = ("README.md", "docs/measured.md")
CLAIMS = "claims"


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


# what is kept -------------------------------------------------------------------------------------------------------


def kept_tables(store: Store) -> dict[str, dict[str, Any]]:
    """The timing tables that a store keeps, by name: ``rows``, ``measured`` (day), ``seconds``, ``machine``.

    Raises
    ------
    BadFile
        If the file holds something else.
    """
    path = store.root / "bench.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        for one in found.values():
            if not one["rows"] or {frozenset(row) for row in one["rows"]} != {frozenset(one["rows"][0])}:
                msg = "rows of a table share their keys"
                raise ValueError(msg)
            _, _, _ = str(one["measured"]), float(one["seconds"]), str(one["machine"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"store: {path} holds no timing tables ({type(error).__name__}: {error}); move it out of the store"
        raise BadFile(msg) from error
    return dict(found)


def measure(store: Store, one: Table) -> None:
    """Measure a timing table and keep it."""
    started = time.monotonic()
    rows = one.measure()
    entry = {
        "rows": rows, "measured": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": round(time.monotonic() - started, 1),
        "machine": _machine(),
    }  # fmt: skip
    store.root.mkdir(parents=True, exist_ok=True)
    path = store.root / "bench.json"
    written = json.dumps({**kept_tables(store), one.name: entry}, indent=1)
    temporary = path.with_suffix(".json.new")
    temporary.write_text(written, encoding="utf-8")
    temporary.replace(path)


def _machine() -> str:
    from opticoll.analysis.store.schema import environment

    here = environment()
    return f"{here['cpus']} cores, Python {here['python']}"


# what is written ----------------------------------------------------------------------------------------------------


def timing_blocks(store: Store, known: Mapping[str, Table]) -> dict[str, str]:
    """A block ``bench-NAME`` for every kept table: its heading, the table, and how it was made."""
    made = {}
    for name, kept in kept_tables(store).items():
        if name in known:
            seconds, day, machine = f"{kept['seconds']:.0f} s", kept["measured"], kept["machine"]
            how = f"`python -m opticoll.analysis.bench {name}`, {seconds}, {day}, {machine}"
            made[f"bench-{name}"] = f"**{known[name].title}**\n\n{table(kept['rows'])}\n\n({how})"
    return made


def write(root: Path, made: Mapping[str, str], known: Mapping[str, Table]) -> None:
    """Put blocks into the documents below ``root`` that have markers for them; all others stay as they are.

    A block ``bench`` holds a block for every table that is known, in their order.
    """
    for name in DOCUMENTS:
        path = root / name
        if not path.exists():
            continue
        old = path.read_text(encoding="utf-8")
        text = old
        every = markers.content(text, "bench")
        if every is not None:
            there = {key: markers.content(every, key) for key in map("bench-{}".format, known)}
            bodies = {key: body for key, inside in there.items() if (body := made.get(key, inside)) is not None}
            text = markers.replaced(text, "bench", "\n\n".join(markers.wrapped(*item) for item in bodies.items()))
        for key in markers.names(text):
            if key in made:
                text = markers.replaced(text, key, made[key])
        if text != old:
            path.write_text(text, encoding="utf-8")


def publish(store: Store, root: Path, wanted: Sequence[str], known: Mapping[str, Table]) -> dict[str, str]:
    """Write the blocks of the parts wanted; give those left as before, with what is missing and what makes it."""
    made = {key: text for key, text in timing_blocks(store, known).items() if key.removeprefix("bench-") in wanted}
    lacking: dict[str, str] = {}
    absent = [name for name in known if name in wanted and f"bench-{name}" not in made]
    if absent:
        words = " ".join(absent)
        lacking["timings"] = (
            f"no times of {', '.join(absent)} in the store; `python -m opticoll.analysis.bench {words}` takes them"
        )
    if CLAIMS in wanted:
        try:
            made["results"] = frontpage.results_table(store)
        except frontpage.MissingData as error:
            lacking["results"] = str(error)
    plots = [one for one in frontpage.PLOTS if set(one.studies) & set(wanted)]
    if plots:
        from opticoll.analysis.report.findings import best_runs

        results = best_runs(store)
        for one in plots:
            try:
                made[f"plot-{one.name}"] = frontpage.plot_block(one, store, results, root)
            except frontpage.MissingData as error:
                lacking[f"plot-{one.name}"] = str(error)
    write(root, made, known)
    return lacking


# the command --------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Measure the named parts, all by default, and write their blocks.

    Returns
    -------
    int
        0; 1 if a block could not be written; 2 for bad input; 130 after Ctrl-C, which loses nothing.
    """
    known = tables()
    parts = [*frontpage.STUDIES, CLAIMS, *known]
    parser = argparse.ArgumentParser(
        prog="python -m opticoll.analysis.bench", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, all by default: {', '.join(parts)}")
    parser.add_argument("--from-store", action="store_true", help="measure nothing, write what the store has")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="cells of a study at a time (default: 1, so that times hold)"
    )
    parser.add_argument("--store", metavar="DIR", help="results store (default: $OPTICOLL_STORE, or ./results)")
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="where README.md is (default: here)")
    asked = parser.parse_args(arguments)
    try:
        return _run(asked, parts, known)
    except OpticollError as error:
        print(f"opticoll.analysis.bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("opticoll.analysis.bench: interrupted; what was measured is kept, start again to go on", file=sys.stderr)
        return 130


def _run(asked: argparse.Namespace, parts: list[str], known: Mapping[str, Table]) -> int:
    from opticoll.analysis.store import Store
    from opticoll.instances.spec import nearest

    for name in asked.parts:
        if name not in parts:
            msg = f"no part {name!r}; {nearest(name, parts)}"
            raise BadInput(msg)
    wanted = [name for name in parts if name in asked.parts] or list(parts)
    store = Store(asked.store)
    if not asked.from_store:
        store.check_writable()
        for name in wanted:
            print(f"{name} ...", file=sys.stderr, flush=True)
            _measure(name, store, known, asked.jobs)
            publish(store, asked.root, [name], known)
    lacking = publish(store, asked.root, wanted, known)
    for block, what in lacking.items():
        print(f"opticoll.analysis.bench: {block}: left as before: {what}", file=sys.stderr)
    return 1 if lacking else 0


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
