"""Write the report: one self-contained HTML page of a results store, with its figures and tables as files.

    OUT/index.html      the page; it loads no other file, no font and nothing from the network
    OUT/figures/        every figure as SVG and PNG
    OUT/tables/         results, bounds, failures, claims, and the points of the papers' figures as CSV

Each file is replaced atomically. The templates escape all text, such as instance names and messages, and a content
security policy forbids every script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from opticoll.analysis.ledger.explanation import HEADINGS, away
from opticoll.analysis.plots.style import DARK_CSS, LIGHT_CSS, standalone
from opticoll.analysis.report import drawings, page_tables, sections
from opticoll.analysis.report.findings import PAPER_NAMES, SUPERSEDED_COMMAND, claims_frame, collect
from opticoll.errors import BadInput
from opticoll.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from opticoll.analysis.report.findings import Findings
    from opticoll.analysis.store import Store


_TEMPLATES = Path(__file__).resolve().parent / "templates"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def build(store: Store, out: Path, findings: Findings | None = None) -> Path:
    """Write the report of a store.

    Parameters
    ----------
    store
        The store to report on; it is only read.
    out
        Folder for the page, its figures and tables; created if missing, files of an earlier report are replaced.
    findings
        Result of :func:`~opticoll.analysis.report.findings.collect`, if the caller has it already.

    Returns
    -------
    Path
        The page, ``out/index.html``.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    BadFile
        If a file of the store is not a valid record.
    """
    findings = collect(store) if findings is None else findings
    out = Path(out)
    page = out / "index.html"
    with writing(out, "report", "choose another folder for the report"):
        if findings.results.empty and not findings.claims:
            _write(page, _page(store, findings).encode())
            return page
        claims = drawings.claims(findings)
        bounds, times = drawings.bounds_by_formulation(findings), drawings.times(findings)
        papers = drawings.from_papers(findings)
        claimed = [] if claims is None else [claims]
        frames = {"results": findings.results, "bounds": findings.bounds, "failures": findings.failures}
        frames |= {"claims": claims_frame(findings.claims)}
        drawn = [*claimed, *bounds.values(), *times.values(), *papers.values()]
        _write_files(out, drawn, frames)
        shown = sections.shown_records(store, findings)
        content: dict[str, object] = {"claims_figure": claims, "times": times, "shown": set(shown)}
        if not findings.results.empty:
            content |= {
                "overview": sections.overview(findings),
                "results": sections.results(findings),
                "bounds": sections.bounds(findings, bounds),
                "missing_bounds": sections.missing_bounds(findings),
                "papers": sections.papers(papers, set(shown)),
                "undrawn": sections.undrawn(papers),
                "failures": sections.failures(findings),
                "environment": sections.environment(findings),
                "records": sections.records({name: store.read(name) for name in shown}),
            }
        _write(page, _page(store, findings, **content).encode())
    return page


@cache
def templates() -> jinja2.Environment:
    """The report's templates: everything is escaped, and a missing variable is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"written": page_tables.written}
    environment.tests |= {"missing": page_tables.missing}
    environment.globals |= {
        "PROOFS": page_tables.PROOFS,
        "VERDICTS": sections.VERDICTS,
        "HEADINGS": HEADINGS,
        "away": away,
        "MOST_INSTANCES": sections.MOST_INSTANCES,
        "PAPER_NAMES": PAPER_NAMES,
        "SUPERSEDED_COMMAND": SUPERSEDED_COMMAND,
    }
    return environment


def _printable(value: object) -> object:
    """Text without control characters, which HTML cannot hold; None is a dash, markup is unchanged."""
    if value is None:
        return "–"
    return value if isinstance(value, Markup) else _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value))


def _page(store: Store, findings: Findings, **content: object) -> str:
    return _rendered("page.html.j2", {"findings": findings, "store": store.root.name, **content})


def _rendered(template: str, content: Mapping[str, object]) -> str:
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    css = LIGHT_CSS + DARK_CSS + (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    return (
        templates()
        .get_template(template)
        .render(
            now=datetime.now(UTC),
            css=Markup(css),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **content,
        )
    )


def build_comparison(
    out: Path, drawn: Sequence[drawings.ReportFigure], tables: Mapping[str, pd.DataFrame], **content: object
) -> Path:
    """Write a comparison of solvers (:mod:`opticoll.analysis.benchmark.solver_comparison`).

    Parameters
    ----------
    out
        Folder for the page, its figures and tables, which :func:`writing` has made.
    drawn, tables
        Figures, and tables by file name.
    content
        Variables of the template.
    """
    page = Path(out) / "index.html"
    _write_files(Path(out), drawn, tables)
    _write(page, _rendered("comparison.html.j2", content).encode())
    return page


@contextmanager
def writing(out: Path, command: str, remedy: str) -> Iterator[None]:
    """Make the folder of a page before the work whose results it takes, and name the file that cannot be written.

    Raises
    ------
    BadInput
        If the folder cannot be made, or a file in it not be written.
    """
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        msg = f"{command}: cannot write {error.filename or out}: {error.strerror or error}; {remedy}"
        raise BadInput(msg) from error


def _write_files(out: Path, drawn: Iterable[drawings.ReportFigure], tables: Mapping[str, pd.DataFrame]) -> None:
    """Write figures as SVG and PNG, and their points and the tables as CSV."""
    for figure in drawn:
        _write(out / "figures" / f"{figure.name}.svg", standalone(figure.drawing).encode())
        _write(out / "figures" / f"{figure.name}.png", figure.png)
        if figure.rows is not None:
            _write(out / figure.points, figure.rows.to_csv(index=False).encode())
    for name, frame in tables.items():
        _write(out / "tables" / f"{name}.csv", frame.to_csv(index=False).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rewrite(path, content)
