"""Write the report: one self-contained HTML page of a results store, with its figures and tables as files.

    OUT/index.html      the page; it loads no other file, no font and nothing from the network
    OUT/figures/        every figure as SVG
    OUT/tables/         results, bounds, failures, and the tables and points of other sections as CSV

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

from opticoll.analysis.plots.style import card
from opticoll.analysis.report import drawings, page_tables, sections
from opticoll.analysis.report.findings import SUPERSEDED_COMMAND, collect
from opticoll.errors import BadInput
from opticoll.extensions import extensions
from opticoll.shared_files import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
    with writing(out, "report", "choose another folder for the report"):
        added = sections.added(store, findings)
        content: dict[str, object] = {"findings": findings, "store": store.root.name, "added": ()}
        if findings.results.empty and not added:
            return write_page(out, "page.html.j2", content)
        bounds, times = drawings.bounds_by_formulation(findings), drawings.times(findings)
        frames = {"results": findings.results, "bounds": findings.bounds, "failures": findings.failures}
        drawn = [*bounds.values(), *times.values(), *(figure for one in added for figure in one.figures)]
        write_files(out, drawn, frames | {name: rows for one in added for name, rows in one.tables.items()})
        content |= {"added": added, "times": times}
        if not findings.results.empty:
            content |= {
                "overview": sections.overview(findings),
                "results": sections.results(findings),
                "bounds": sections.bounds(findings, bounds),
                "missing_bounds": sections.missing_bounds(findings),
                "failures": sections.failures(findings),
                "environment": sections.environment(findings),
            }
        return write_page(out, "page.html.j2", content)


@cache
def templates() -> jinja2.Environment:
    """The report's templates: everything is escaped, and a missing variable is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_TEMPLATES, *(folder for one in extensions() for folder in one.templates)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"written": page_tables.written}
    environment.globals |= {
        "PROOFS": page_tables.PROOFS,
        "SUPERSEDED_COMMAND": SUPERSEDED_COMMAND,
    }
    return environment


def _printable(value: object) -> object:
    """Text without control characters, which HTML cannot hold; None is a dash, markup is unchanged."""
    if value is None:
        return "–"
    return value if isinstance(value, Markup) else _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value))


def section_of(template: str, **content: object) -> Markup:
    """A section of a page, from a template."""
    return Markup(templates().get_template(template).render(**content))


def write_page(out: Path, template: str, content: Mapping[str, object]) -> Path:
    """Write ``out/index.html`` from a template, with style and script."""
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    css = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    whole = {
        "now": datetime.now(UTC),
        "css": Markup(css),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **content,
    }
    _write(out / "index.html", templates().get_template(template).render(whole).encode())
    return out / "index.html"


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


def write_files(out: Path, drawn: Iterable[drawings.ReportFigure], tables: Mapping[str, pd.DataFrame]) -> None:
    """Write figures as SVG, and their points and the tables as CSV."""
    for figure in drawn:
        _write(out / "figures" / f"{figure.name}.svg", card(figure.drawing).encode())
        if figure.rows is not None:
            _write(out / figure.points, figure.rows.to_csv(index=False).encode())
    for name, frame in tables.items():
        _write(out / "tables" / f"{name}.csv", frame.to_csv(index=False).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rewrite(path, content)
