"""The report: one self-contained HTML page of what a store holds, with its figures and tables as files beside it.

    OUT/index.html      the page: no other file, no network, no font is loaded
    OUT/figures/        every figure as SVG and PNG
    OUT/tables/         results, bounds, failures, claims, and the points of the papers' figures as CSV

Every file appears whole or not at all. What users named (instances, files, messages) is escaped on the page, and a
content security policy forbids anything but the page's own script.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from opticoll.analysis.papers import figures
from opticoll.analysis.plots import store_plots as plots
from opticoll.analysis.plots.store_plots import claims_by_verdict
from opticoll.analysis.plots.style import DARK_CSS, LIGHT_CSS, drawing, inline, png, standalone
from opticoll.analysis.report import sections as section
from opticoll.analysis.report import solvers_section as report_solvers
from opticoll.analysis.report.findings import claims_frame, collect
from opticoll.analysis.report.html_tables import Markup, join, tag
from opticoll.analysis.report.sections import claims as claims_section
from opticoll.errors import BadInput
from opticoll.solvers.task import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from matplotlib.figure import Figure

    from opticoll.analysis.papers import PaperFigure
    from opticoll.analysis.report.findings import Findings
    from opticoll.analysis.store import Store

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_PAPERS = {"alltoall": "All-to-all", "lumorph": "LuMorph", "optree": "OpTree", "sipml": "SiP-ML", "topoopt": "TopoOpt"}
_HOW_TO_FILL = (
    "opticoll solve alltoall.master ring:8",
    "opticoll study demo",
    "opticoll report",
)


@dataclass(frozen=True)
class Drawn:
    """A figure with its file name, what it shows, and which section and formulation it belongs to."""

    name: str
    title: str
    description: str
    figure: Figure
    rows: pd.DataFrame | None = None

    @cached_property
    def drawing(self) -> str:
        """The figure as SVG text."""
        return drawing(self.figure)

    @cached_property
    def png(self) -> bytes:
        """The figure as PNG."""
        return png(self.figure)


def build(store: Store, out: Path, findings: Findings | None = None) -> Path:
    """Write the report of a store.

    Parameters
    ----------
    store
        What to report on; never changed.
    out
        Folder for the page, its figures and tables; made if missing, files of an earlier report are replaced.
    findings
        What :func:`~opticoll.analysis.report.findings.collect` found in the store, if the caller has it already.

    Returns
    -------
    Path
        The page, ``out/index.html``.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    BadFile
        If the store holds something that is no record.
    """
    found = collect(store) if findings is None else findings
    out = Path(out)
    try:
        page = out / "index.html"
        if found.results.empty and not found.claims:
            _write(page, _page(_empty(store)).encode())
            return page
        drawn = _figures(found)
        compared = report_solvers.compare(found.results)
        drawn["solvers"] = {} if compared is None else {one[0]: Drawn(*one) for one in report_solvers.figures(compared)}
        for one in [one for group in drawn.values() for one in group.values()]:
            _write(out / "figures" / f"{one.name}.svg", standalone(one.drawing).encode())
            _write(out / "figures" / f"{one.name}.png", one.png)
            if one.rows is not None:
                _write(out / _points(one), one.rows.to_csv(index=False).encode())
        tables = {"results": found.results, "bounds": found.bounds, "failures": found.failures}
        compared_tables = {} if compared is None else report_solvers.tables(compared)
        for name, frame in {**tables, "claims": claims_frame(found.claims), **compared_tables}.items():
            _write(out / "tables" / f"{name}.csv", frame.to_csv(index=False).encode())
        _write(page, _page(_filled(store, found, drawn, compared)).encode())
    except OSError as error:
        msg = (
            f"report: cannot write {error.filename or out}: {error.strerror or error}; choose another folder with --out"
        )
        raise BadInput(msg) from error
    return page


def _figures(findings: Findings) -> dict[str, dict[str, Drawn]]:
    """Make figures by section, and within it by formulation."""
    bounds: dict[str, Drawn] = {}
    for name, here in findings.bounds.groupby("formulation"):
        if here["ratio"].notna().any():
            counts = f"{here['instance'].nunique()} instances, {here['bound'].nunique()} bounds"
            told = f"The optimum as a fraction of each bound ({counts}); right is tighter. The table has the numbers."
            bounds[str(name)] = Drawn(
                f"bounds-{_slug(str(name))}", f"Optimum over bounds, {name}", told,
                plots.throughput_over_bounds(here),
            )  # fmt: skip
    times: dict[str, Drawn] = {}
    for name, here in findings.results.groupby("formulation"):
        told = f"Down is faster. {_counted(len(here), 'run')} by {_counted(here['method'].nunique(), 'method')}."
        times[str(name)] = Drawn(
            f"solve-time-{_slug(str(name))}", f"Solve time by size, {name}", told, plots.solve_time(here)
        )
    verified = findings.results[findings.results["ok"] & findings.results["T"].notna()]
    if not verified.empty:
        told = f"{verified['instance'].nunique()} instances, the time T of an all-to-all over the number of vertices."
        times[""] = Drawn("time-by-size", "All-to-all time by size", told, plots.time_by_size(verified))
    return {"claims": _claims_drawing(findings), "bounds": bounds, "times": times, "papers": _paper_drawings(findings)}


def _claims_drawing(findings: Findings) -> dict[str, Drawn]:
    if not findings.claims:
        return {}
    told = f"{len(findings.claims)} claims of the papers by verdict. The tables below have them all."
    drawn = Drawn("claims", "Claims by paper and verdict", told, claims_by_verdict(findings.claims))
    return {drawn.name: drawn}


def _paper_drawings(findings: Findings) -> dict[str, Drawn]:
    """Draw those figures of the papers that the store has rows for, by name."""
    found: dict[str, Drawn] = {}
    if findings.results.empty:
        return found
    for one in figures():
        if one.study is None:
            found[one.name] = _computed(one)
            continue
        rows = one.select(findings.results)
        if not rows.empty:
            found[one.name] = _drawn(one, rows)
    return found


def _drawn(one: PaperFigure, rows: pd.DataFrame) -> Drawn:
    return Drawn(f"paper-{one.name}", f"{one.where}: {one.title}", one.finding(rows), one.draw(rows), rows)


@cache
def _computed(one: PaperFigure) -> Drawn:
    """Draw a figure of closed forms or constructed schedules, which no store changes; once a process."""
    return _drawn(one, one.select(pd.DataFrame()))


def _points(one: Drawn) -> str:
    return f"tables/{one.name}.csv"


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}"


def _papers(drawn: dict[str, Drawn], shown: Collection[str]) -> Markup:
    """Every paper's figures together: what the paper says, the figure with both, what ours says, the runs behind it."""
    parts: list[Markup] = []
    absent = []
    papers: dict[str, list[PaperFigure]] = {}
    for one in figures():
        papers.setdefault(one.paper.lower(), []).append(one)
    parts.append(tag("p", *_links(papers), class_="soft"))
    for paper, group in papers.items():
        parts.append(tag("h3", _PAPERS.get(paper, paper), id=f"paper-{_slug(paper)}"))
        for one in group:
            if one.name not in drawn:
                how = "" if one.study is None else tag("code", f"opticoll study {one.study}")
                absent.append(tag("li", f"{_PAPERS.get(paper, paper)}, {one.where}: {one.title}: ", how))
                continue
            made = drawn[one.name]
            parts.append(tag("h4", f"{_capital(one.where)}: {one.title}"))
            parts.append(tag("p", tag("strong", "The paper: "), one.says))
            parts.append(_figure(made, tag("strong", "Here: ")))
            if one.study is not None:
                parts.append(tag("p", "Made by ", tag("code", f"opticoll study {one.study}"), ".", class_="soft"))
            if made.rows is not None:
                parts.append(section.runs_behind(made.rows, shown, _points(made)))
    if absent:
        parts.append(tag("p", "The store has no rows yet for:"))
        parts.append(tag("ul", *absent))
    return join(parts)


def _filled(
    store: Store, findings: Findings, drawn: dict[str, dict[str, Drawn]], compared: report_solvers.Comparison | None
) -> Markup:
    if findings.results.empty:  # claims that need no run
        parts = [("claims", "Claims", _claims(findings, drawn, ()))]
    else:
        parts = _sections(store, findings, drawn, compared)
    links = tag("ul", *(tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in parts))
    body = [
        tag("section", tag("h2", title, id=f"{name}-heading"), content, id=name, aria_labelledby=f"{name}-heading")
        for name, title, content in parts
    ]
    return Markup(_header(store, tag("nav", links, aria_label="Sections")) + tag("main", *body))


def _claims(findings: Findings, drawn: dict[str, dict[str, Drawn]], shown: Collection[str]) -> Markup:
    figure = next((_figure(one) for one in drawn["claims"].values()), None)
    return claims_section(findings.claims, findings.unmeasured, shown, figure)


def _sections(
    store: Store, findings: Findings, drawn: dict[str, dict[str, Drawn]], compared: report_solvers.Comparison | None
) -> list[tuple[str, str, Markup]]:  # fmt: skip
    """Id, heading and content of every section."""
    bounds: list[Markup] = [
        tag("p", "Analytic bounds need no solver. 1 means that the optimum meets the bound; bold is the tightest.",
            class_="soft")
    ]  # fmt: skip
    for name, here in findings.bounds.groupby("formulation"):
        bounds.append(tag("h3", name))
        if str(name) in drawn["bounds"]:
            bounds.append(_figure(drawn["bounds"][str(name)]))
        bounds.append(section.bounds_table(here))
    if len(bounds) == 1:
        bounds.append(tag("p", "No formulation in the store has analytic bounds."))
    bounds.append(section.missing_bounds(findings))
    times = tag("div", *(tag("div", tag("h3", name or "All-to-all time"), _figure(one))
                         for name, one in drawn["times"].items()), class_="several")  # fmt: skip
    held = set(store.names())
    used = [name for row in findings.claims for name in row["records"] if name in held]
    shown = list(dict.fromkeys([*findings.results["id"], *used]))[: section.MOST_RECORDS]
    records = section.records(shown, {name: plain(store.read(name)) for name in shown})
    return [
        ("overview", "Overview", section.overview(findings)),
        ("claims", "Claims", _claims(findings, drawn, set(shown))),
        ("results", "Results", section.results_table(findings)),
        ("bounds", "Bounds and optimum", join(bounds)),
        ("papers", "Figures of the papers", _papers(drawn["papers"], set(shown))),
        ("solvers", "Solver benchmark", _solvers(compared, drawn["solvers"])),
        ("times", "Times", times),
        ("failures", "Failures", section.failures(findings)),
        ("environment", "Environment", section.environment(findings)),
        ("records", "Records", records),
    ]


def _solvers(compared: report_solvers.Comparison | None, drawn: dict[str, Drawn]) -> Markup:
    return report_solvers.section(compared, lambda name: _figure(drawn[name]) if name in drawn else None)


def _empty(store: Store) -> Markup:
    return Markup(
        _header(store, None)
        + tag(
            "main",
            tag("h2", "This store is empty"),
            tag("p", "It holds no runs yet. These commands fill it and write this page anew:"),
            tag("pre", "\n".join(_HOW_TO_FILL)),
            tag("p", "Another store is named by --store DIR or the environment variable OPTICOLL_STORE."),
        )
    )


def _header(store: Store, navigation: Markup | None) -> Markup:
    now = datetime.now(UTC)
    told = tag("p", "Store ", tag("code", store.root.name), f", written {now:%Y-%m-%d %H:%M} UTC", class_="soft")
    return tag("header", tag("h1", "opticoll report"), told, navigation)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _links(papers: Iterable[str]) -> list[Markup]:
    """Links to the papers' headings, in one line."""
    return [Markup(tag("a", _PAPERS.get(one, one), href=f"#paper-{_slug(one)}") + " ") for one in papers]


def _figure(one: Drawn, told: Markup | None = None) -> Markup:
    """A figure with its caption: title and what it shows, or ``told`` and what it shows under a heading of its own."""
    shown = Markup(inline(one.drawing, one.name, one.title, one.description))
    box = tag("div", shown, class_="scroll", role="region", aria_label=one.title, tabindex="0")
    lead = f"{one.title}. " if told is None else told
    return tag("figure", box, tag("figcaption", lead, one.description))


def _page(body: Markup) -> str:
    css = LIGHT_CSS + DARK_CSS + (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{allowed}'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", "opticoll report"),
        tag("style", Markup(css)),
    )
    footer = tag("footer", tag("p", "Written by opticoll report."))
    whole = tag("html", head, tag("body", body, footer, tag("script", Markup(script))), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"


def _write(path: Path, content: bytes) -> None:
    """Put a file in place, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".tmp-{os.getpid()}-{secrets.token_hex(6)}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
