"""What a figure of a paper is: its rows out of the store, its drawing, and what it says.

The papers' figures, drawn again from the store: what the paper says as lines and stars, ours as markers.

The scanned papers lost their curves; what their text states of a figure is drawn with it. A figure takes its rows
from the view ``latest`` by what they are (formulation, family, method), not by the study that made them, so that any
run counts. Each names the study that fills it. A module of this package with ``FIGURES`` adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from opticoll.instances.registry import contributed, modules_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a paper.

    Parameters
    ----------
    name, paper, where, title
        Identifier, the paper's short name, its figure numbers, one line.
    says
        What the paper's text states of it.
    study
        The study that makes its rows; None for a figure computed without one.
    select
        The rows it is made of, out of the findings' results (with ``ok``: answered and verified); may be empty. A
        figure of closed forms or constructed schedules computes its rows here.
    draw
        Those rows as a figure.
    finding
        What they say, in one or two sentences with numbers.
    """

    name: str
    paper: str
    where: str
    title: str
    says: str
    study: str | None
    select: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    finding: Callable[[pd.DataFrame], str]


def argument(spec: str, name: str) -> str | None:
    """The value of ``name=`` in an instance spec, also of a modifier (``+host=2.0``)."""
    found = re.search(rf"(?:^|[:,+]){name}=([^,+]+)", spec)
    return found.group(1) if found else None


#: The papers, each with a sub-package of claims, figures and benchmark tables.
PAPERS = ("alltoall", "lumorph", "optree", "sipml", "topoopt")


def modules_about(subject: str) -> list[str]:
    """Modules of this package and of the papers' sub-packages that are named ``subject`` or end with ``_subject``."""
    packages = (__name__, *(f"{__name__}.{paper}" for paper in PAPERS))
    found = (module for package in packages for module in modules_of(package))
    return [module for module in found if re.fullmatch(rf"(.*_)?{subject}", module.rpartition(".")[2])]


@cache
def figures() -> tuple[PaperFigure, ...]:
    """All figures, module by module in the order of their names."""
    return tuple(contributed(modules_about("figures"), "FIGURES"))


__all__ = ["PAPERS", "PaperFigure", "argument", "figures", "modules_about"]
