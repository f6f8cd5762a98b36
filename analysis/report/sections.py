"""Sections of the report page, each a function of the findings.

The section of the report on the papers' claims: verdicts, what was expected and found, and from which runs.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from opticoll.analysis.ledger.claim import Verdict
from opticoll.analysis.report.findings import machine
from opticoll.analysis.report.html_tables import PROOFS, Column, Markup, facts, join, missing, table, tag, text, written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pandas as pd

    from opticoll.analysis.report.findings import Findings

    Row = Mapping[str, Any]


#: Rows shown on the page at most; the CSV files hold all.
MOST_ROWS = 500
#: Runs whose details stand on the page; beyond :data:`MOST_ROWS` without the whole record, which is most of the bytes.
MOST_RECORDS = 5000

_RESULTS = (
    Column("problem", "instance", "name"),
    Column("formulation", "formulation"),
    Column("method", "method"),
    Column("n", "N", "count"),
    Column("objective", "objective", "number"),
    Column("T", "T = 1/F", "number"),
    Column("proof", "proof", "proof"),
    Column("gap", "gap", "gap"),
    Column("time_solve_s", "solve [s]", "seconds"),
    Column("seconds", "total [s]", "seconds"),
    Column("solver_name", "solver"),
)
_FAILURES = (
    Column("problem", "instance", "name"),
    Column("formulation", "formulation"),
    Column("method", "method"),
    Column("termination", "ended with"),
    Column("requested_time_limit_s", "time limit [s]", "seconds"),
    Column("proof", "proof", "proof"),
    Column("bound", "our bound", "number"),
    Column("message", "message", "long"),
)
_ENVIRONMENT = (
    Column("platform", "platform"),
    Column("host", "host"),
    Column("cpus", "cores", "count"),
    Column("python", "Python"),
    Column("opticoll", "opticoll"),
    Column("git_commit", "commit"),
    Column("runs", "runs", "count"),
    Column("first", "first run (UTC)"),
    Column("last", "last run (UTC)"),
)


def overview(findings: Findings) -> Markup:
    """Counts by proof status, over all and by formulation."""
    results = findings.results
    counts = results["proof"].value_counts()
    tiles = [("runs recorded", findings.runs), ("different cells", len(results))]
    tiles += [(words.split(" ", 1)[1], int(counts.get(name, 0))) for name, (_, words) in PROOFS.items()]
    tiles.append(("failed or unverified", len(findings.failures)))
    grid = tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles), class_="tiles")
    by = results.groupby("formulation")["proof"].value_counts().unstack(fill_value=0)
    rows = [{"formulation": name, **{str(k): int(v) for k, v in row.items()}} for name, row in by.iterrows()]
    columns = [Column("formulation", "formulation")]
    columns += [Column(name, words.split(" ", 1)[1], "count") for name, (_, words) in PROOFS.items() if name in by]
    failed = len(findings.failures)
    told = (
        tag(
            "p",
            f"{failed} of {len(results)} cells have no verified value: ",
            tag("a", "which and why", href="#failures"),
            ".",
        )
        if failed
        else tag("p", "Every cell has a value that our own checker verified.")
    )
    return join([grid, told, table(rows, columns, "Cells by formulation and proof status", sortable=False)])


def results_table(findings: Findings) -> Markup:
    """Best run of every cell, each with a link to its record."""
    shown = _records(findings.results)
    columns = [c for c in _RESULTS if c.field != "T" or findings.results["T"].notna().any()]
    links = {
        "problem": lambda row: tag("a", row["problem"], href=f"#{anchor(row['id'])}"),
        "objective": lambda row: _number(row, "objective"),
        "T": lambda row: _number(row, "T"),
    }
    note = tag(
        "p",
        "The best run of every cell. The objective is the verified value (for flow models F, the throughput), "
        "proven by a bound recomputed outside the solver; T is in units of shard size ÷ link bandwidth. "
        "Instances and values link to their records.",
        class_="soft",
    )
    return join([note, _cut(findings.results), table(shown, columns, "Results", cells=links)])


def _number(row: Mapping[str, Any], field: str) -> Markup:
    """Write a value as a link to the run that it is of."""
    shown = written(row[field], "number")
    return tag("span", shown) if missing(row[field]) else tag("a", shown, href=f"#{anchor(row['id'])}", class_="plain")


def runs_behind(rows: pd.DataFrame, shown: Collection[str], file: str) -> Markup:
    """Fold the runs that a figure is made of, each with a link to its record; ``file`` holds its points.

    Parameters
    ----------
    rows
        The figure's rows; their ``id`` names the run, where they have one.
    shown
        Ids of the records on the page.
    file
        The table of the points.
    """
    points = tag("p", "Points: ", tag("code", file), ".", class_="soft")
    if "id" not in rows:
        return points
    known = rows[rows["id"].isin(shown)].drop_duplicates("id").head(MOST_ROWS)
    if known.empty:
        return points
    wanted = (Column("problem" if "problem" in rows else "instance", "instance", "name"),
              Column("heuristic" if "heuristic" in rows else "method", "method"), Column("n", "N", "count"),
              Column("objective", "value", "number"), Column("reference", "optimum or bound", "number"),
              Column("ratio", "ratio", "ratio"), Column("proof", "proof", "proof"))  # fmt: skip
    columns = [column for column in wanted if column.field in known]
    first = columns[0].field
    cells = {first: lambda row: tag("a", row[first], href=f"#{anchor(row['id'])}")}
    grid = table(_records(known), columns, "Runs of this figure", cells=cells)
    return join([tag("details", tag("summary", f"The {len(known)} runs behind it"), grid, class_="behind"), points])


def bounds_table(bounds: pd.DataFrame) -> Markup:
    """Optimum and its fraction of every analytic bound, one row an instance; the tightest bound is marked."""
    names = list(dict.fromkeys(bounds["bound"]))
    rows: list[dict[str, Any]] = []
    for instance, here in bounds.groupby("instance", sort=False):
        ratios = dict(zip(here["bound"], here["ratio"], strict=True))
        first = here.iloc[0]
        rows.append({"instance": instance, "n": first["n"], "objective": first["objective"], "proof": first["proof"],
                     "_best": max((r for r in ratios.values() if not missing(r)), default=None), **ratios})  # fmt: skip
    columns = [Column("instance", "instance", "name"), Column("n", "N", "count")]
    columns += [Column("objective", "optimum", "number")]
    columns += [Column("proof", "proof", "proof"), *(Column(name, f"÷ {name}", "ratio") for name in names)]

    def cell(name: str) -> Any:
        def make(row: Mapping[str, Any]) -> Markup:
            value, best = row.get(name), row["_best"]
            tight = not missing(value) and best is not None and value >= best - 1e-6
            return tag("span", written(value, "ratio"), class_="best" if tight else None)

        return make

    return table(rows, columns, "Optimum over each bound", cells={name: cell(name) for name in names})


def missing_bounds(findings: Findings) -> Markup:
    """Instances without bounds, and why; nothing if there are none."""
    if not findings.missing:
        return Markup("")
    reasons: dict[str, list[str]] = {}
    for name, why in findings.missing.items():
        reasons.setdefault(why, []).append(name)
    folded = [
        tag("details", tag("summary", f"{len(names)} instance{'s' * (len(names) > 1)}: {why}"),
            tag("ul", *(tag("li", name) for name in names), class_="columns"))
        for why, names in reasons.items()
    ]  # fmt: skip
    return join([tag("h3", "Without bounds"), *folded])


def failures(findings: Findings) -> Markup:
    """Cells without a verified value, with what happened."""
    failed = findings.failures
    if failed.empty:
        return tag("p", "None: every cell has a verified value.")
    links = {"problem": lambda row: tag("a", row["problem"], href=f"#{anchor(row['id'])}")}
    note = tag(
        "p", "A run that reached a limit still keeps its bound; a failed run is no answer, and a study tries it again."
    )
    return join([note, _cut(failed), table(_records(failed), _FAILURES, "Failures", cells=links)])


def environment(findings: Findings) -> Markup:
    """Machines and versions of the runs, and of this report."""
    here = machine()
    solvers = findings.results[["solver_name", "solver_version"]].dropna().drop_duplicates().sort_values("solver_name")
    versions = ", ".join(f"{name} {version}" for name, version in solvers.itertuples(index=False))
    written_by = facts(
        [
            ("report written on", here["platform"]),
            ("cores", here["cpus"]),
            ("memory [GiB]", here["memory_gib"]),
            ("Python", here["python"]),
            ("opticoll", here["opticoll"]),
            ("commit", here["git_commit"]),
            ("solvers in the store", versions),
        ]
    )
    rows = _records(findings.environments)
    for row in rows:
        for moment in ("first", "last"):
            row[moment] = None if missing(row[moment]) else f"{row[moment]:%Y-%m-%d %H:%M}"
        row["git_commit"] = None if missing(row["git_commit"]) else _short(str(row["git_commit"]))
    return join([written_by, tag("h3", "Where the runs were made"), table(rows, _ENVIRONMENT, "Environments")])


def _short(commit: str) -> str:
    number, dash, dirty = commit.partition("-")
    return f"{number[:12]}{dash}{dirty}"


def records(shown: Iterable[str], whole: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Details of every shown run: effective options, versions, times and key; of a few runs also the whole record.

    Parameters
    ----------
    shown
        Ids of the records, in order.
    whole
        Records by id.
    """
    known = [whole[name] for name in shown if name in whole]
    few = len(known) <= MOST_ROWS
    asked = "opticoll results \"select * from runs where id = '...'\" --json"
    hint = tag("p", f"{len(known)} runs; whole records: ", tag("code", asked), ".", class_="soft")
    return join([Markup("") if few else hint, *(_details(one, whole=few) for one in known)])


def _details(record: Mapping[str, Any], *, whole: bool) -> Markup:
    solver, times = record.get("solver") or {}, record.get("time") or {}
    requested, size = record.get("requested") or {}, record.get("size") or {}
    place = record.get("environment") or {}
    told = facts(
        [
            ("key", tag("code", record.get("key"))),
            ("record", tag("code", record.get("id"))),
            ("instance hash", tag("code", record.get("instance_hash"))),
            ("ended with", record.get("termination")),
            ("objective", record.get("objective")),
            ("bound", record.get("bound")),
            ("bound from", record.get("bound_source")),
            ("effective settings", _pairs(record.get("settings"))),
            ("solver", " ".join(str(solver[k]) for k in ("name", "version") if solver.get(k))),
            ("algorithm", solver.get("algorithm")),
            ("effective options", _pairs(solver.get("options"))),
            ("limits", _pairs(_known(requested, "time_limit_s", "memory_limit_gib", "tol"))),
            ("run with", _pairs(_known(requested, "threads", "seed", "repetition"))),
            ("times [s]", _pairs({k.removesuffix("_s"): written(v) for k, v in _known(times, *times).items()})),
            ("size", _pairs(_known(size, *size))),
            ("peak memory [MB]", written(record.get("peak_memory_mb"), "number")),
            ("violations", _pairs({k: written(v, "gap") for k, v in (record.get("violations") or {}).items()})),
            ("versions", _pairs(_known(place, "opticoll", "git_commit", "python"))),
            ("started, finished (UTC)", " – ".join(str(record[k]) for k in ("started", "finished") if record.get(k))),
            ("message", record.get("message")),
        ]
    )  # fmt: skip
    what = ", ".join(written(record.get(name), "text") for name in ("instance", "formulation", "method"))
    heading = f"{what}: {written(record.get('proof'), 'text')}"
    rest = Markup("")
    if whole:
        text = json.dumps(record, indent=2, ensure_ascii=False, default=str)
        rest = tag("details", tag("summary", "Whole record"), tag("pre", text, tabindex="0"))
    return tag("details", tag("summary", heading), told, rest, id=anchor(record.get("id")))


def _known(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name) is not None}


def _pairs(values: Any) -> str | None:
    if not isinstance(values, dict) or not values:
        return None
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def anchor(name: Any) -> str:
    """Make the page's id of a record."""
    return f"record-{name}"


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in frame.head(MOST_ROWS).to_dict("records")]


def _cut(frame: pd.DataFrame) -> Markup | None:
    if len(frame) <= MOST_ROWS:
        return Markup("")
    return tag("p", f"The first {MOST_ROWS} of {len(frame)} rows; tables/results.csv holds all of them.")


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
