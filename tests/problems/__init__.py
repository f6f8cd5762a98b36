"""What the tests of all formulations need to know about each: a module ``tests/problems/ROOM/NAME.py`` for every one.

It has the path of the formulation's module and ends with ``PROBLEMS = Problems(...)``; :mod:`cases` collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from random_instances import Drawn, Random

from opticoll.instances import Instance

#: Files that some of them read.
DATA = Path(__file__).resolve().parents[1] / "data"

Settings = dict[str, Any]


@dataclass(frozen=True)
class Optimum:
    """An instance whose optimum is known without the stated model.

    Attributes
    ----------
    by
        The method of another kind that proves it; or settings under which another model has the same optimum; or the
        value itself, where a publication or a closed form gives it.
    """

    instance: str
    settings: Settings = field(default_factory=dict)
    _: KW_ONLY
    by: str | Settings | float


@dataclass(frozen=True)
class Draws:
    """Part of the random population of integer programs (:mod:`integer_population`).

    Attributes
    ----------
    count
        The number of its cases.
    draw
        An instance of at most eight vertices, solved within seconds, and settings. What the formulation refuses is
        drawn again.
    sample
        Numbers of the cases that ``make test`` solves.
    """

    count: int
    draw: Callable[[Random], Drawn]
    sample: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Problems:
    """Small problems of one formulation.

    Attributes
    ----------
    cases
        Instances with settings, which together reach every line of the builds: the builds are compared as matrices on
        all of them. The first is also solved, stored, reported and drawn.
    optimum
        Its value is compared with that of the stated model.
    draws
        Of integer programs.
    kinds
        If solutions are written in several kinds of arrays: for each kind, an instance, settings, and the names of
        arrays that choose it. One array after the other is corrupted; by default, those of the first case are.
    needed
        Of formulations that take their data from a solution of another one: any arrays of such a solution of an
        instance, given the parameters of that other formulation.
    """

    cases: Sequence[tuple[str, Settings]] = ()
    optimum: Optimum | None = None
    draws: Draws | None = None
    kinds: Sequence[tuple[str, Settings, tuple[str, ...]]] = ()
    needed: Callable[[Instance, Mapping[str, Any]], Mapping[str, np.ndarray]] | None = None
