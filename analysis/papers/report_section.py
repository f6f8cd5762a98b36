"""The figures of the papers that a store has runs for, as a section of the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opticoll.analysis.papers.figure import drawn, source_of, stored_runs
from opticoll.analysis.papers.paper_figure import PAPER_NAMES, figures
from opticoll.analysis.report.drawings import ReportFigure, slug
from opticoll.analysis.report.page import section_of
from opticoll.analysis.report.sections import AddedSection

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from markupsafe import Markup

    from opticoll.analysis.papers.paper_figure import PaperFigure
    from opticoll.analysis.report.findings import Findings
    from opticoll.analysis.store import Store


class PaperPart(NamedTuple):
    """One figure of a paper."""

    title: str
    statement: str
    study: str | None
    drawn: ReportFigure


class Paper(NamedTuple):
    """The figures of one paper."""

    anchor: str
    title: str
    parts: list[PaperPart]


def section(store: Store, findings: Findings) -> AddedSection | None:
    """The figures of every paper that the store has runs for; None for a store without runs."""
    if findings.results.empty:
        return None
    made: dict[str, ReportFigure] = {}
    for figure in figures():
        rows = None if figure.study is None else figure.select(findings.results)
        if rows is not None and stored_runs(figure, rows):
            made[figure.name] = _drawn(figure, rows, store.root)
    return AddedSection("papers", "Figures of the papers", "times", _html(made), tuple(made.values()))


def _drawn(figure: PaperFigure, rows: pd.DataFrame, store: Path) -> ReportFigure:
    made = drawn(figure, rows, source_of(figure, rows, Path(store.name)))
    written = rows.drop(columns="store", errors="ignore")
    caption = f"{made.caption} Source: {made.source.replace('`', '')}."
    return ReportFigure(f"paper-{made.name}", made.title, caption, made, written)


def _html(made: Mapping[str, ReportFigure]) -> Markup:
    papers: dict[str, Paper] = {}
    for figure in figures():
        if (one := made.get(figure.name)) is not None:
            name = figure.paper.lower()
            title = f"{figure.where[:1].upper()}{figure.where[1:]}: {figure.title}"
            paper = papers.setdefault(name, Paper(f"paper-{slug(name)}", PAPER_NAMES.get(name, name), []))
            paper.parts.append(PaperPart(title, figure.says, figure.study, one))
    undrawn = [(figure.name, figure.title) for figure in figures() if figure.name not in made]
    return section_of("papers.html.j2", papers=list(papers.values()), undrawn=undrawn)
