"""The section of the report on the papers' claims: verdicts, what was expected and found, and from which runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from analysis.claims.base import Verdict
from analysis.report_html import Markup, join, tag, text
from analysis.report_sections import anchor

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Row = Mapping[str, Any]

#: Standing of a verdict: colour and words that do without the colour.
CHIPS = {
    Verdict.REPRODUCED: ("good", "✓ reproduced"),
    Verdict.NOT_REPRODUCED: ("bad", "✗ not reproduced"),
    Verdict.SELF_CONTRADICTED: ("fair", "≠ self-contradicted"),
    Verdict.NOT_TESTABLE: ("mute", "– not testable"),
}
#: Instances named in a row at most; the CSV file has all.
MOST_INSTANCES = 6


def claims(rows: Sequence[Row], unmeasured: Sequence[str], shown: Collection[str], figure: Markup | None) -> Markup:
    """The ledger: counts by verdict, a picture, and a table for every paper.

    Parameters
    ----------
    rows
        Kept rows of the ledger.
    unmeasured
        Ids of the claims that have none.
    shown
        Ids of the records that the page has; runs of other records are named without a link.
    figure
        The counts drawn.
    """
    measure = tag("code", "opticoll claims")
    if not rows:
        return tag("p", "None of ", str(len(unmeasured)), " claims has been measured into this store: ", measure, ".")
    counts = Counter(str(row["verdict"]) for row in rows)
    failed = [row for row in rows if row.get("failed")]
    tiles = [(CHIPS[verdict][1].split(" ", 1)[1], counts.get(verdict, 0)) for verdict in Verdict]
    grid = tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles), class_="tiles")
    note = tag(
        "p",
        "What the papers state, held against what is measured here. A swept claim tells how many cases were examined "
        "and in how many it fails; the ratios are those of bound to optimum unless its row says otherwise.",
        class_="soft",
    )
    parts: list[object] = [grid, note]
    if failed:
        parts.append(tag("p", f"{len(failed)} of them could not be measured, for an error that is told in the row."))
    if unmeasured:
        parts.append(tag("p", f"{len(unmeasured)} more claims have not been measured into this store: ", measure, "."))
    parts.append(figure)
    for paper in dict.fromkeys(str(row["paper"]) for row in rows):
        here = [row for row in rows if row["paper"] == paper]
        parts += [tag("h3", paper), _table(paper, here, shown)]
    return join(part for part in parts if part is not None)


def _table(paper: str, rows: Sequence[Row], shown: Collection[str]) -> Markup:
    heads = ("claim", "verdict", "expected", "measured", "swept", "why, and from what")
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    body = [tag("tr", *_cells(row, heads, shown)) for row in rows]
    caption = f"Claims of {paper}"
    grid = tag("table", tag("thead", head), tag("tbody", *body), class_="claims", aria_label=caption)
    tall = " tall" if len(body) > 8 else ""
    return tag("div", grid, class_=f"scroll{tall}", role="region", aria_label=caption, tabindex="0")


def _cells(row: Row, heads: Sequence[str], shown: Collection[str]) -> list[Markup]:
    name = tag("strong", row["claim"])
    about = tag("div", row["where"], " · ", tag("code", row["id"]), class_="soft")
    tolerance = row.get("tolerance")
    expected = [value(row.get("expected"))]
    if tolerance and tolerance != "exact":
        expected.append(tag("div", f"within {tolerance}" if str(tolerance)[:1].isdigit() else tolerance, class_="soft"))
    cells = [chip(row), join(expected), value(row.get("measured")), _swept(row), _why(row, shown)]
    first = tag("th", name, about, scope="row", id=f"claim-{row['id']}", class_="long")
    return [first, *(tag("td", cell, data_label=head, class_="long" if head in {heads[3], heads[5]} else "wrap")
                     for head, cell in zip(heads[1:], cells, strict=True))]  # fmt: skip


def chip(row: Row) -> Markup:
    """The verdict of a row as a badge; a measurement that failed says so."""
    if row.get("failed"):
        return tag("span", "! not measured", class_="badge bad")
    look, words = CHIPS[Verdict(str(row["verdict"]))]
    return tag("span", words, class_=f"badge {look}")


def value(found: Any) -> Markup:
    """A number, a text, or a list of either by name, as people read it."""
    if isinstance(found, dict):
        return tag("ul", *(tag("li", name, ": ", value(item)) for name, item in found.items()), class_="plain")
    if isinstance(found, list):
        return join([value(item) for item in found], ", ")
    if isinstance(found, bool):
        return text("yes" if found else "no")
    return text(f"{found:.6g}" if isinstance(found, float) else found)


def _swept(row: Row) -> Markup:
    count, violations, spread = row.get("count"), row.get("violations"), row.get("tightness")
    parts: list[object] = []
    if count is not None:
        fails = "" if violations is None else f", fails in {violations}"
        parts.append(tag("div", f"{count} cases{fails}"))
    if spread is not None:
        told = " / ".join(f"{spread[name]:.4g}" for name in ("min", "median", "max"))
        parts.append(tag("div", told, tag("span", " min / median / max", class_="soft")))
    return join(parts) if parts else text(None)


def _why(row: Row, shown: Collection[str]) -> Markup:
    parts: list[object] = [tag("div", row["reason"])] if row["reason"] else []
    if row.get("counterexample"):
        parts.append(tag("div", "Smallest counterexample: ", row["counterexample"]))
    instances = row["instances"]
    if instances:
        more = f" and {len(instances) - MOST_INSTANCES} more" if len(instances) > MOST_INSTANCES else ""
        parts.append(tag("div", "On ", ", ".join(instances[:MOST_INSTANCES]), more, class_="soft"))
    runs = row["records"]
    if runs:
        links = [
            tag("a", str(number), href=f"#{anchor(name)}", title=name) if name in shown else text(number)
            for number, name in enumerate(runs, 1)
        ]
        parts.append(tag("div", "Runs: ", join(links, " "), class_="soft"))
    made = f", {row['seconds']:.3g} s" if isinstance(row.get("seconds"), (int, float)) else ""
    parts.append(tag("div", tag("code", f"opticoll claims {row['id']}"), f" {row['measured_at'][:10]}{made}",
                     class_="soft"))  # fmt: skip
    return join(parts)
