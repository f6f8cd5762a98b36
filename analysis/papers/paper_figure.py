"""A figure of a paper, redrawn from stored results or closed forms."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from opticoll.errors import refuse
from opticoll.instances.spec import contributed, modules_of
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: Summarises the rows of a figure in one or two sentences with numbers.
Finding = Callable[["pd.DataFrame"], str]


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a paper.

    Parameters
    ----------
    name, paper, where, title
        Identifier, short name of the paper, its figure numbers, one-line title.
    says
        What the paper states about it.
    select
        Selects the rows of the figure from all results (with ``ok``: solved and verified); may be empty. A figure of
        closed forms or constructed schedules computes its rows here.
    draw
        Draws those rows.
    finding
        Summarises those rows in one or two sentences with numbers.
    study
        The study that produces its rows; None for a figure computed without stored results.
    basis
        What the rows that need no runs are computed from; empty for a figure of stored results alone.
    counts
        What is counted and how, where the labels of the axes do not say it.
    """

    name: str
    paper: str
    where: str
    title: str
    says: str
    select: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    finding: Finding
    study: str | None = None
    basis: str = ""
    counts: str = ""


@cache
def _stated(paper: str) -> dict[str, dict[str, Any]]:
    """The figures of a paper by name, from its ``figures.toml``."""
    text = files(f"opticoll.analysis.papers.{paper}").joinpath("figures.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)
    return {
        name: {field: tuple(value) if isinstance(value, list) else value for field, value in row.items()}
        for name, row in rows.items()
    }


def paper_figure(
    paper: str,
    name: str,
    select: Callable[[pd.DataFrame], pd.DataFrame],
    draw: Callable[[pd.DataFrame], Figure],
    finding: Finding,
) -> PaperFigure:
    """The figure that ``figures.toml`` of a paper states under a name, with the functions that draw it."""
    return PaperFigure(name, paper, select=select, draw=draw, finding=finding, **_stated(paper)[name])


class Figures(list[PaperFigure]):
    """The figures of a paper: rows of data in its ``figures.toml``, each joined to the functions that draw it.

    Parameters
    ----------
    paper
        Short name of the paper.
    """

    def __init__(self, paper: str) -> None:
        super().__init__()
        self.paper = paper

    def drawn(
        self, name: str, select: Callable[[pd.DataFrame], pd.DataFrame], draw: Callable[[pd.DataFrame], Figure]
    ) -> Callable[[Finding], Finding]:
        """Decorate the function that states the finding of a figure; arguments as of :class:`PaperFigure`."""

        def add(finding: Finding) -> Finding:
            self.append(paper_figure(self.paper, name, select, draw, finding))
            return finding

        return add


def argument(spec: str, name: str) -> str | None:
    """The value of ``name=`` in an instance spec or one of its modifiers (``+host=2.0``)."""
    match = re.search(rf"(?:^|[:,+]){name}=([^,+]+)", spec)
    return match.group(1) if match else None


def frame(rows: Sequence[object], columns: list[str] | None = None) -> pd.DataFrame:
    """The rows as a table; pandas is imported only here, when a figure is drawn."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def settings_of(rows: pd.DataFrame, name: str, default: str = "") -> list[str]:
    """The setting ``name`` of every run as text, or its default."""
    return [str(json.loads(text or "{}").get(name, default)) for text in rows["settings"]]


#: Full names of the papers.
PAPER_NAMES = {
    "alltoall": "All-to-all",
    "lumorph": "LuMorph",
    "sipml": "SiP-ML",
    "topoopt": "TopoOpt",
    "optree": "OpTree",
}
#: The papers: subpackages of claims and figures.
PAPERS = tuple(sorted(PAPER_NAMES))


def modules_about(subject: str) -> list[str]:
    """Modules of this package and its subpackages that are named ``subject`` or end with ``_subject``."""
    packages = ("opticoll.analysis.papers", *(f"opticoll.analysis.papers.{paper}" for paper in PAPERS))
    modules = (module for package in packages for module in modules_of(package))
    return [module for module in modules if re.fullmatch(rf"(.*_)?{subject}", module.rpartition(".")[2])]


@cache
def figures() -> tuple[PaperFigure, ...]:
    """All figures, in the order of their modules."""
    return tuple(contributed(modules_about("figures"), "FIGURES"))


def figure_named(name: str) -> PaperFigure:
    """The figure of that name.

    Raises
    ------
    BadInput
        If there is none.
    """
    known = {one.name: one for one in figures()}
    if not isinstance(name, str) or name not in known:
        refuse("figure", f"no figure {name!r}; {nearest(str(name), known)}; `opticoll list figures` lists them")
    return known[name]
