"""Timings behind the README's tables: whole commands and layers, measured again by ``make bench``.

``python -m analysis.bench`` runs every measurement (or those named), prints Markdown tables, writes them to
``results/bench.json`` and puts them between the ``bench`` markers of ``README.md`` in the working directory, each as
soon as it is measured.
Timings are medians or single runs as each table says; ratios are within one run of this program.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from analysis.benchmarks import Row, Table, tables

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


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


def main(names: list[str]) -> int:
    """Run the named measurements (all by default) and publish their tables."""
    from instances.spec import nearest

    known = tables()
    for name in names:
        if name not in known:
            print(f"analysis.bench: no table {name!r}; {nearest(name, known)}", file=sys.stderr)
            return 2
    store = Path("results") / "bench.json"
    kept: dict[str, list[Row]] = json.loads(store.read_text()) if store.exists() else {}
    store.parent.mkdir(exist_ok=True)
    for name in names or list(known):
        kept[name] = known[name].measure()
        print(f"\n{known[name].title}\n\n{table(kept[name])}", flush=True)
        store.write_text(json.dumps(kept, indent=1))
        _publish(Path("README.md"), {one.title: table(kept[key]) for key, one in known.items() if key in kept}, known)
    return 0


def _publish(readme: Path, made: dict[str, str], known: Mapping[str, Table]) -> None:
    """Put tables by title between the markers; those there that were not made again stay, while they are known."""
    if not readme.exists():
        return
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        return
    there = {title: text.strip() for title, text in re.findall(r"\*\*(.+?)\*\*\n\n((?:\|.*\n?)+)", old)}
    shown = {one.title: made.get(one.title, there.get(one.title)) for one in known.values()}
    text = "\n\n".join(f"**{title}**\n\n{rows}" for title, rows in shown.items() if rows)
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
