"""Problems for the tests of all formulations: a module for every formulation, named after it (``ROOM/MODULE.py``).

A module states

CASES       small instances with settings, on which builds are compared as matrices; the first one, the smallest, is
            also solved, stored, exported, mutated and drawn
CERTIFIED   an instance, settings, and a method of another kind, whose value the stated models must attain; where there
            is none, other settings under which the optimum is the same
CORRUPTED   instances, settings and names of arrays of solutions, into which errors are put; without it, those of the
            first case, with the variables of the model
draw        for an integer program: a random small instance with settings, from a generator of random numbers, of which
            DRAWN are in the population that ``auto`` must prove (:mod:`integer_population`); SAMPLE are the numbers of
            those that ``make test`` solves, without it the first one
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from opticoll.formulations import formulations
from opticoll.formulations.model import Formulation
from opticoll.instances import Instance

Settings = dict[str, Any]
Draw = Callable[[np.random.Generator], tuple[Instance, Settings]]


@dataclass(frozen=True)
class Problems:
    """What a module states, with the defaults."""

    cases: list[tuple[str, Settings]]
    certified: tuple[str, Settings, str | Settings] | None
    corrupted: list[tuple[str, Settings, tuple[str, ...]]]
    draw: Draw | None
    drawn: int
    sample: tuple[int, ...]


def module_of(name: str) -> str:
    """The module of a formulation's problems."""
    return f"problems.{name.replace('-', '_')}"


def _stated(module: ModuleType) -> Problems:
    cases = getattr(module, "CASES", [])
    return Problems(
        cases,
        getattr(module, "CERTIFIED", None),
        getattr(module, "CORRUPTED", [(*case, ()) for case in cases[:1]]),
        getattr(module, "draw", None),
        getattr(module, "DRAWN", 0),
        getattr(module, "SAMPLE", (0,)),
    )


def missing(name: str, model: type[Formulation]) -> str | None:
    """What a formulation lacks here, and where to write it; None if it is complete."""
    place = f"tests/{module_of(name).replace('.', '/')}.py"
    if name not in PROBLEMS:
        return f"{name}: write {place} with its problems, as tests/problems/__init__.py says"
    one = PROBLEMS[name]
    if name == "matrix.program":  # any program is a case of it
        return None
    wanted = {"CASES": bool(one.cases), "CERTIFIED": one.certified is not None}
    if model.problem == "MILP":
        wanted |= {"draw": one.draw is not None, "DRAWN": one.drawn > 0}
    lacking = [what for what, stated in wanted.items() if not stated]
    return f"{name}: {place} lacks {', '.join(lacking)} (see tests/problems/__init__.py)" if lacking else None


PROBLEMS: dict[str, Problems] = {
    name: _stated(importlib.import_module(module_of(name)))
    for name in sorted(formulations())
    if importlib.util.find_spec(module_of(name)) is not None
}
#: Cases (instance, settings) by formulation.
CASES = {name: problems.cases for name, problems in PROBLEMS.items() if problems.cases}


def first_case(name: str) -> tuple[str, Settings]:
    """The first case of a formulation."""
    return CASES[name][0]
