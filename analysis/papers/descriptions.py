"""Figures as ``opticoll list figures`` and ``opticoll describe`` show them."""

from __future__ import annotations

from typing import TypedDict

from opticoll.analysis.describe import Description
from opticoll.analysis.papers.paper_figure import figures


class FigureRow(TypedDict):
    """A figure of a paper, and the study that produces its runs; None for a figure without runs."""

    name: str
    paper: str
    where: str
    title: str
    study: str | None


def listed() -> list[FigureRow]:
    """The figures."""
    return [
        {"name": one.name, "paper": one.paper, "where": one.where, "title": one.title, "study": one.study}
        for one in figures()
    ]


def describe(name: str) -> Description | None:
    """The figure of that name; None if there is none."""
    figure = next((one for one in figures() if one.name == name), None) if "-" in name else None
    if figure is None:
        return None
    return Description(
        kind="figure",
        name=name,
        title=figure.title,
        text=f"The paper: {figure.says}",
        source=f"{figure.paper}, {figure.where}",
        example=f"opticoll figure {name} --out {name}.pdf",
        facts={"study": figure.study, "without runs": figure.basis or None, "counts": figure.counts or None},
    )
