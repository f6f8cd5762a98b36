"""The papers' figures, drawn again from the store: what the paper says as lines and stars, ours as markers.

The scanned papers lost their curves; what their text states of a figure is drawn with it. A figure takes its rows
from the view ``latest`` by what they are (formulation, family, method), not by the study that made them, so that any
run counts. Each names the study that fills it. A module of this package with ``FIGURES`` adds its own.
"""

from __future__ import annotations

from functools import cache

from analysis.figures.base import PaperFigure, argument
from instances.registry import contributed


@cache
def figures() -> tuple[PaperFigure, ...]:
    """All figures, module by module in the order of their names."""
    return tuple(contributed(__name__, "FIGURES"))


__all__ = ["PaperFigure", "argument", "figures"]
